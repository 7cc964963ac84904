"""Which `Host` and `Origin` may enter: the names of this machine, and those that are configured. No socket."""

import pytest

from assay.edges.http.listen_address import parsed
from assay.edges.http.origin_check import Safety, is_loopback, leads_here
from assay.settings import SettingsError
from kit.rows import rows

OURS = Safety()
FRIENDLY = Safety(["assay.example", "other.example:8443"], ["https://app.example.com", "https://b.example:1"])


@rows(
    "host",
    [
        b"localhost", b"localhost:1", b"LocalHost:65535", b"localhost:", b"127.0.0.1", b"127.0.0.1:80", b"[::1]",
        b"[::1]:80", b"localhost  ",
    ],
)  # fmt: skip
def test_this_machine_is_served_by_its_own_names(host: bytes) -> None:
    assert OURS.allows(host, None)


@rows(
    "host",
    [
        None, b"", b"evil.example", b"localhost.evil.example", b"127.0.0.1.evil.example", b"localhost.", b"127.0.0.1.",
        b"user@localhost", b"localhost@evil.example", b"@localhost", b"localhost:80@evil.example", b"localhost:80:80",
        b"localhost:abc", b"localhost:-1", b"localhost:65536", b"localhost:999999", b"localhost:+80",
        b"localhost:\xc2\xb2", b"localhost/", b"localhost?", b"localhost#", b"localhost\\evil", b"//localhost",
        b"http://localhost", b"localhost, evil.example", b"localhost evil.example", b"local\thost", b"local\nhost",
        b"::1", b"[::1", b"::1]", b"[::1].evil.example", b"[::1]evil", b"[::1%25eth0]", b"[::ffff:127.0.0.1]",
        b"127.1", b"0.0.0.0", b"0", b"2130706433", b"0x7f.0.0.1", b"0177.0.0.1", b"127.0.0.2", b"\xff",
        "lоcalhost".encode(), "ⓛocalhost".encode(), b"localhost%00", b"localhost%2eevil.example", b"*",
    ],
)  # fmt: skip
def test_any_other_host_is_forbidden(host: bytes | None) -> None:
    """2025-11-25, basic/transports, Security Warning: DNS rebinding gives a page its own name for this machine."""
    assert not OURS.allows(host, None)
    assert OURS.objection(host, None).what.isprintable()


@rows(
    ("host", "good"),
    [
        (b"assay.example", True), (b"ASSAY.example:80", True), (b"other.example", True), (b"other.example:8443", True),
        (b"example", False), (b"x.assay.example", False), (b"assay.example.evil", False), (b"assay.example.", False),
    ],
)  # fmt: skip
def test_a_configured_name_is_served_and_none_like_it(host: bytes, good: bool) -> None:
    assert FRIENDLY.allows(host, None) is good
    assert not OURS.allows(host, None)


@rows(
    "origin",
    [
        b"http://localhost", b"http://localhost:3000", b"HTTP://LOCALHOST:3000", b"https://127.0.0.1:8443",
        b"http://[::1]:5173",
    ],
)  # fmt: skip
def test_a_page_of_this_machine_may_speak(origin: bytes) -> None:
    assert OURS.allows(b"localhost", origin)


@rows(
    "origin",
    [
        b"", b"null", b"https://evil.example", b"http://localhost.evil.example", b"http://127.0.0.1.evil.example",
        b"http://localhost.", b"http://localhost@evil.example", b"http://evil@localhost", b"http://localhost:80:80",
        b"http://localhost:port", b"http://localhost/", b"http://localhost/evil", b"http://localhost?", b"localhost",
        b"//localhost", b"file://localhost", b"ws://localhost", b"chrome-extension://localhost", b"http:localhost",
        b"http:/localhost", b"http://", b"http:// localhost", b"http://http://localhost",
        b"http://localhost http://evil.example", b"http://local\thost", b"http://[::1].evil.example", b"http://\xff",
        b"http://0.0.0.0", b"http://127.1", b"https://app.example.com",
    ],
)  # fmt: skip
def test_a_page_of_any_other_site_may_not(origin: bytes) -> None:
    """2025-11-25, basic/transports: present and invalid MUST be 403."""
    assert not OURS.allows(b"localhost", origin)


@rows(
    ("origin", "good"),
    [
        (b"https://app.example.com", True), (b"https://APP.example.com", True), (b"https://b.example:1", True),
        (b"http://app.example.com", False), (b"https://app.example.com:8443", False), (b"https://b.example", False),
        (b"https://app.example.com.evil.example", False), (b"https://x.app.example.com", False), (b"null", False),
        (b"https://b.example:11", False), (b"https://assay.example", False), (b"https://app.example.com/", False),
    ],
)  # fmt: skip
def test_a_page_of_a_configured_site_may_speak_and_none_like_it(origin: bytes, good: bool) -> None:
    assert FRIENDLY.allows(b"localhost", origin) is good


# ── where it listens ─────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    "address",
    ["nowhere", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:65536", f"127.0.0.1:{'9' * 5000}", "127.0.0.1:-1", ""],
)
def test_an_invalid_address_is_a_mistake_in_the_settings(address: str) -> None:
    with pytest.raises(SettingsError, match="PORT"):
        parsed("--http", address)


def test_an_address_is_a_host_and_a_port() -> None:
    assert parsed("--http", "[::1]:80") == ("::1", 80)
    assert parsed("--http", ":0") == ("127.0.0.1", 0)


@rows(
    ("host", "ours"),
    [
        ("127.0.0.1", True), ("127.0.0.2", True), ("localhost", True), ("LOCALHOST", True), ("::1", True),
        ("[::1]", True), ("0.0.0.0", False), ("::", False), ("127.evil.example", False), ("localhost.evil", False),  # noqa: S104 - nothing is bound
        ("10.0.0.1", False), ("assay.example", False), ("", False),
    ],
)  # fmt: skip
def test_what_only_this_machine_can_reach_is_known(host: str, ours: bool) -> None:
    assert is_loopback(host) is ours
    assert leads_here(host) is ours


def test_a_name_under_localhost_leads_here_but_not_only_this_machine_may_reach_it() -> None:
    """Some resolvers ask others for it."""
    assert leads_here("App.Localhost")
    assert not is_loopback("App.Localhost")
    assert not leads_here("applocalhost")

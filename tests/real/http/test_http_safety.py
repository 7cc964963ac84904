"""Who may speak to the server over HTTP: names and origins, repeated headers, requests that are two in one."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.base.loopback import is_loopback, leads_here
from assay.spec.revisions import LATEST
from kit.http_client import JSON, Service, frame_of, head, initialize, modern, request, run, serving

ASKED = frame_of(request(1, "list_schemas"))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("safety")) as running:
        yield running


@pytest.fixture(scope="module")
def friendly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One that serves another name, and pages of another site."""
    names = ("http.hosts=assay.example,other.example:8443", "http.origins=https://app.example.com,https://b.example:1")
    with serving(tmp_path_factory.mktemp("friendly"), *names) as running:
        yield running


def posted(service: Service, lines: bytes) -> tuple[int, bytes]:
    """The status of a POST with these *lines* in its head beside the usual ones, and all that came."""
    with service.open() as wire:
        usual = b"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(ASKED)
        wire.send(usual + lines + b"Connection: close\r\n\r\n" + ASKED)
        found = wire.answer()
        return found.status, found.body + wire.rest()


# ── Host ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "host",
    [
        b"localhost", b"localhost:1", b"LocalHost:65535", b"localhost:", b"127.0.0.1", b"127.0.0.1:80", b"[::1]",
        b"[::1]:80", b"  localhost  ",
    ],
)  # fmt: skip
def test_this_machine_is_served_by_its_own_names(service: Service, host: bytes) -> None:
    assert posted(service, b"Host: %b\r\n" % host)[0] == 200


STRANGERS = [
    b"", b"evil.example", b"localhost.evil.example", b"127.0.0.1.evil.example", b"evil.example:80", b"localhost.",
    b"127.0.0.1.", b"user@localhost", b"localhost@evil.example", b"@localhost", b"localhost:80@evil.example",
    b"localhost:80:80", b"localhost:abc", b"localhost:-1", b"localhost:65536", b"localhost:999999", b"localhost:+80",
    b"localhost:\xc2\xb2", b"localhost/", b"localhost/../evil", b"localhost?", b"localhost#", b"localhost\\evil",
    b"//localhost", b"http://localhost", b"localhost, evil.example", b"localhost evil.example", b"local\thost",
    b"::1", b"[::1", b"::1]", b"[::1].evil.example", b"[::1]evil", b"[::1%25eth0]", b"[::ffff:127.0.0.1]",
    b"127.1", b"0.0.0.0", b"0", b"2130706433", b"0x7f.0.0.1", b"0177.0.0.1", b"127.0.0.2",
    b"\xff", "lоcalhost".encode(), "ⓛocalhost".encode(), b"localhost%00", b"localhost%2eevil.example", b"*",
]  # fmt: skip


@pytest.mark.parametrize("host", STRANGERS, ids=ascii)
def test_any_other_host_is_forbidden(service: Service, host: bytes) -> None:
    """2025-11-25, basic/transports, Security Warning: DNS rebinding gives a page its own name for this machine."""
    status, body = posted(service, b"Host: %b\r\n" % host)
    assert status == 403
    assert b"list_schemas" not in body
    assert b"-31014" in body


def test_a_request_without_host_is_forbidden(service: Service) -> None:
    assert posted(service, b"")[0] == 403


@pytest.mark.parametrize("host", [b"a\x00b", b"a\x7fb", b"a\x01"], ids=ascii)
def test_a_host_that_no_header_can_hold_is_no_http(service: Service, host: bytes) -> None:
    assert posted(service, b"Host: localhost%b\r\n" % host)[0] in {400, 403}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("OPTIONS", "/mcp"), ("PUT", "/mcp"),
        ("GET", "/metrics"), ("GET", "/.well-known/oauth-protected-resource"),
        ("GET", "/.well-known/oauth-protected-resource/mcp"),
    ],
)  # fmt: skip
def test_a_stranger_learns_nothing_anywhere(service: Service, method: str, path: str) -> None:
    assert service.ask(method, path, host="evil.example").status == 403
    assert service.ask(method, path, headers={"origin": "https://evil.example"}).status == 403


@pytest.mark.parametrize("host", ["assay.example", "ASSAY.example:80", "other.example", "other.example:8443"])
def test_a_configured_name_is_served(friendly: Service, host: str) -> None:
    assert friendly.ask("POST", "/mcp", ASKED, JSON, host).status == 200


@pytest.mark.parametrize("host", ["example", "x.assay.example", "assay.example.evil", "assay.example."])
def test_a_name_beside_the_configured_one_is_not(friendly: Service, host: str) -> None:
    assert friendly.ask("POST", "/mcp", ASKED, JSON, host).status == 403


@pytest.mark.parametrize("host", ["assay.example", "localhost"])
def test_a_name_has_to_be_configured(service: Service, friendly: Service, host: str) -> None:
    assert service.ask("POST", "/mcp", ASKED, JSON, host).status == (403 if host == "assay.example" else 200)


# ── Origin ───────────────────────────────────────────────────────────────────────────────────────────────────────────

FRIENDS = [
    b"http://localhost", b"http://localhost:3000", b"HTTP://LOCALHOST:3000", b"https://127.0.0.1:8443",
    b"http://[::1]:5173",
]  # fmt: skip


@pytest.mark.parametrize("origin", FRIENDS, ids=ascii)
def test_a_page_of_this_machine_may_speak(service: Service, origin: bytes) -> None:
    assert posted(service, b"Host: localhost\r\nOrigin: %b\r\n" % origin)[0] == 200


@pytest.mark.parametrize(
    "origin",
    [
        b"", b"null", b"https://evil.example", b"http://localhost.evil.example", b"http://127.0.0.1.evil.example",
        b"http://localhost.", b"http://localhost@evil.example", b"http://evil@localhost", b"http://localhost:80:80",
        b"http://localhost:port", b"http://localhost/", b"http://localhost/evil", b"http://localhost?", b"localhost",
        b"//localhost", b"file://localhost", b"ws://localhost", b"chrome-extension://localhost", b"http:localhost",
        b"http:/localhost", b"http://", b"http:// localhost", b"http://http://localhost", b"http://localhost http://evil.example",
        b"http://local\thost", b"http://[::1].evil.example", b"http://\xff", b"http://0.0.0.0", b"http://127.1",
        b"https://app.example.com",
    ],
    ids=ascii,
)  # fmt: skip
def test_a_page_of_any_other_site_may_not(service: Service, origin: bytes) -> None:
    """2025-11-25, basic/transports: present and invalid MUST be 403."""
    assert posted(service, b"Host: localhost\r\nOrigin: %b\r\n" % origin)[0] == 403


@pytest.mark.parametrize("origin", ["https://app.example.com", "https://APP.example.com", "https://b.example:1"])
def test_a_page_of_a_configured_site_may_speak(friendly: Service, origin: str) -> None:
    assert friendly.post(ASKED, origin=origin).status == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://app.example.com", "https://app.example.com:8443", "https://app.example.com.evil.example",
        "https://x.app.example.com", "https://b.example", "https://b.example:11", "https://assay.example",
        "https://app.example.com/", "null",
    ],
)  # fmt: skip
def test_a_page_of_a_site_like_it_may_not(friendly: Service, origin: str) -> None:
    assert friendly.post(ASKED, origin=origin).status == 403


# ── browsers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_preflight_of_a_friend_is_granted_what_it_asks(friendly: Service) -> None:
    asked = {
        "origin": "https://app.example.com",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,mcp-protocol-version,mcp-session-id",
    }
    found = friendly.ask("OPTIONS", "/mcp", headers=asked)
    assert (found.status, found.body) == (204, b"")
    assert found.header("access-control-allow-origin") == "https://app.example.com"
    assert found.header("access-control-allow-headers") == asked["access-control-request-headers"]
    assert {"POST", "GET", "DELETE"} <= set((found.header("access-control-allow-methods") or "").split(", "))
    assert found.header("vary") == "origin"


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_a_preflight_of_a_stranger_is_not(friendly: Service, origin: str) -> None:
    found = friendly.ask("OPTIONS", "/mcp", headers={"origin": origin, "access-control-request-method": "POST"})
    assert found.status == 403
    assert found.header("access-control-allow-origin") is None


@pytest.mark.parametrize(
    "said", [request(1, "list_schemas"), initialize("2025-11-25"), {"jsonrpc": "2.0"}, b"{"], ids=str
)
def test_a_page_can_read_its_answer(friendly: Service, said: object) -> None:
    found = friendly.post(said, origin="https://app.example.com")
    assert found.header("access-control-allow-origin") == "https://app.example.com"
    assert "www-authenticate" in (found.header("access-control-expose-headers") or "").split(", ")
    assert "origin" in (found.header("vary") or "")


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        pytest.param("POST", "/mcp", ASKED, {"content-type": "text/plain"}, 415, id="unsupported"),
        pytest.param("POST", "/mcp", ASKED, {**JSON, "accept": "text/html"}, 406, id="not-acceptable"),
        pytest.param("GET", "/mcp", b"", {}, 405, id="not-allowed"),
    ],
)
def test_a_page_can_read_a_refusal(
    friendly: Service, method: str, path: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    found = friendly.ask(method, path, body, {**headers, "origin": "https://app.example.com"})
    assert found.status == status
    assert found.header("access-control-allow-origin") == "https://app.example.com"


def test_nothing_is_shared_with_a_client_that_is_no_page(service: Service) -> None:
    found = service.post(ASKED)
    assert not [name for name, _ in found.pairs if name.startswith("access-control")]


# ── headers that come twice ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(b"Host: localhost\r\nHost: localhost\r\n", id="same"),
        pytest.param(b"Host: localhost\r\nHost: evil.example\r\n", id="good-first"),
        pytest.param(b"Host: evil.example\r\nHost: localhost\r\n", id="good-last"),
        pytest.param(b"Host: localhost\r\nHost:\r\n", id="one-empty"),
        pytest.param(b"Host: local\r\nHost: host\r\n", id="in-halves"),
        pytest.param(b"Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://localhost\r\n", id="origins"),
        pytest.param(b"Host: localhost\r\nOrigin: http://local\r\nOrigin: host\r\n", id="origin-in-halves"),
        pytest.param(b"Host: localhost\r\nOrigin: http://localhost\r\nOrigin: null\r\n", id="origin-and-null"),
    ],
)
def test_two_hosts_or_origins_are_forbidden(service: Service, lines: bytes) -> None:
    """RFC 9112, 3.2: more than one Host is to be refused; of two, a proxy may believe the other."""
    assert posted(service, lines)[0] in {400, 403}


@pytest.mark.parametrize("path", ["/metrics", "/.well-known/oauth-protected-resource"])
def test_two_hosts_are_forbidden_beside_the_endpoint_too(service: Service, path: str) -> None:
    for hosts in ((b"localhost", b"evil.example"), (b"evil.example", b"localhost")):
        with service.open() as wire:
            wire.send(b"GET %b HTTP/1.1\r\nHost: %b\r\nHost: %b\r\n\r\n" % (path.encode(), *hosts))
            assert wire.answer().status in {400, 403}


def test_two_session_ids_are_refused(service: Service) -> None:
    with service.open() as wire:
        first = head("POST", "/mcp", {"host": "localhost", **JSON, "content-length": str(len(ASKED))})
        wire.send(first[:-2] + b"Mcp-Session-Id: a\r\nMcp-Session-Id: a\r\n\r\n" + ASKED)
        assert wire.answer().status == 400


@pytest.mark.parametrize("name", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
@pytest.mark.parametrize("other", [True, False])
def test_headers_of_a_request_that_come_twice_are_a_mismatch(service: Service, name: str, other: bool) -> None:
    """2026-07-28, streamable-http, Server Validation: one reader takes the first, another one the last."""
    said = request(1, "tools/call", {"name": "list_schemas", "arguments": {}}, LATEST)
    body, headers = frame_of(said), modern(said)
    value = "other" if other else headers[name.lower()]
    again = f"{name}: {value if isinstance(value, str) else value.decode()}\r\n\r\n".encode()
    with service.open() as wire:
        first = head("POST", "/mcp", {"host": "localhost", **headers, "content-length": str(len(body))})
        wire.send(first[:-2] + again + body)
        found = wire.answer()
    assert (found.status, found.error()["code"]) == (400, -32020)


def test_two_accept_headers_are_one_list(service: Service) -> None:
    """RFC 9110, 5.3."""
    lines = b"Host: localhost\r\nAccept: text/html\r\nAccept: application/json\r\n"
    assert posted(service, lines)[0] == 200


@pytest.mark.parametrize(
    "kinds", [(b"application/json", b"text/plain"), (b"text/plain", b"application/json")], ids=["last", "first"]
)
def test_two_content_types_are_none(service: Service, kinds: tuple[bytes, bytes]) -> None:
    with service.open() as wire:
        lines = b"".join(b"Content-Type: %b\r\n" % kind for kind in kinds)
        wire.send(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n%bContent-Length: %d\r\n\r\n" % (lines, len(ASKED)) + ASKED
        )
        assert wire.answer().status == 415


# ── two requests in one ──────────────────────────────────────────────────────────────────────────────────────────────

HIDDEN = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNK = b"%x\r\n%b\r\n0\r\n\r\n" % (len(ASKED), ASKED)
LENGTH = b"Content-Length: %d\r\n" % len(ASKED)
TE = b"Transfer-Encoding: chunked\r\n"


@pytest.mark.parametrize(
    ("lines", "body"),
    [
        pytest.param(LENGTH + TE, b"0\r\n\r\n" + ASKED, id="length-and-chunked"),
        pytest.param(TE + LENGTH, b"0\r\n\r\n" + ASKED, id="chunked-and-length"),
        pytest.param(LENGTH + LENGTH, ASKED, id="two-lengths"),
        pytest.param(LENGTH + b"Content-Length: 5\r\n", ASKED, id="two-different-lengths"),
        pytest.param(b"Content-Length: %d, %d\r\n" % (len(ASKED), len(ASKED)), ASKED, id="list-of-lengths"),
        pytest.param(b"Content-Length: +%d\r\n" % len(ASKED), ASKED, id="signed-length"),
        pytest.param(b"Content-Length: -1\r\n", ASKED, id="negative-length"),
        pytest.param(b"Content-Length: 0x10\r\n", ASKED, id="hexadecimal-length"),
        pytest.param(b"Content-Length: 99999999999999999999999\r\n", ASKED, id="length-beyond-64-bits"),
        pytest.param(b"Content-Length : 5\r\n", ASKED, id="space-before-the-colon"),
        pytest.param(b"Transfer-Encoding : chunked\r\n", CHUNK, id="chunked-with-space-before-the-colon"),
        pytest.param(b"Transfer-Encoding: xchunked\r\n", CHUNK, id="almost-chunked"),
        pytest.param(b"Transfer-Encoding: \x0bchunked\r\n", CHUNK, id="chunked-after-a-vertical-tab"),
        pytest.param(b"Transfer-Encoding: chunked, identity\r\n", CHUNK, id="chunked-not-last"),
        pytest.param(b"Transfer-Encoding: identity\r\n" + LENGTH, ASKED, id="identity"),
        pytest.param(b"Transfer-Encoding: gzip\r\n", CHUNK, id="gzip"),
        pytest.param(TE + TE, CHUNK, id="chunked-twice"),
        pytest.param(TE, b"0x%x\r\n%b\r\n0\r\n\r\n" % (len(ASKED), ASKED), id="chunk-size-with-prefix"),
        pytest.param(TE, b"-1\r\n" + ASKED, id="negative-chunk"),
        pytest.param(TE, b"fffffffffffffffff\r\n" + ASKED, id="chunk-beyond-64-bits"),
        pytest.param(TE, b"%x\n%b\r\n0\r\n\r\n" % (len(ASKED), ASKED), id="chunk-ends-in-line-feed"),
        pytest.param(TE, b"%x\r\n%bXX0\r\n\r\n" % (len(ASKED), ASKED), id="chunk-without-end"),
        pytest.param(b"X: a\r\n b\r\n" + LENGTH, ASKED, id="folded-header"),
        pytest.param(b"X: a\nContent-Length: 3\n" + LENGTH, ASKED, id="line-feed-only"),
        pytest.param(b"X: a\rb\r\n" + LENGTH, ASKED, id="carriage-return-only"),
        pytest.param(b"X\x00: a\r\n" + LENGTH, ASKED, id="null-in-a-name"),
        pytest.param(b": a\r\n" + LENGTH, ASKED, id="no-name"),
    ],
)  # fmt: skip
def test_a_request_that_two_readers_would_end_at_two_places_is_refused(
    service: Service, lines: bytes, body: bytes
) -> None:
    """RFC 9112, 6.1 and 11.2. What hides behind it is not answered: the connection ends with the one refusal."""
    with service.open() as wire:
        wire.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + lines)
        wire.send(b"\r\n" + body + HIDDEN)
        found = wire.answer()
        assert found.status in {400, 413}
        assert found.header("connection") == "close"
        assert wire.rest() == b""


# ── where it listens ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_an_address_that_others_can_reach_needs_somebody_at_the_door(tmp_path: Path, address: str) -> None:
    done = run(tmp_path, "--http", address)
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert address in line
    assert "[auth]" in line
    assert "http.open = true" in line
    assert not (tmp_path / "ready").exists()


def test_an_operator_can_leave_the_door_open(tmp_path: Path) -> None:
    with serving(tmp_path, "http.open=true", address="0.0.0.0:0") as running:
        running.address = "127.0.0.1", running.address[1]
        assert running.post(ASKED).status == 200
        assert running.ask("POST", "/mcp", ASKED, JSON, "evil.example").status == 403


def test_an_ipv6_address_is_served(tmp_path: Path) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    with serving(tmp_path, address="[::1]:0") as running:
        assert running.address[0] == "::1"
        assert running.post(ASKED).status == 200


@pytest.mark.parametrize(
    "address",
    ["nowhere", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:65536", f"127.0.0.1:{'9' * 5000}", "127.0.0.1:-1", ""],
)
def test_an_invalid_address_is_a_usage_error(tmp_path: Path, address: str) -> None:
    done = run(tmp_path, "--http", address)
    assert done.returncode == 2
    assert "PORT" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_a_slip(service: Service, tmp_path: Path) -> None:
    done = run(tmp_path, "--http", f"127.0.0.1:{service.address[1]}")
    assert done.returncode == 2
    assert "in use" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
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

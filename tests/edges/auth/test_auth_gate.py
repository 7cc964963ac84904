"""Who is let in, and what is said to the others: keys, headers, challenges, metadata."""

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.extras import how_to_install
from assay.edges.auth import Denied, Gate, Principal, challenges, gate
from assay.edges.auth.api_keys import PREFIX, new_key, written_hash
from assay.settings import ApiKey, Auth, Jwt, SettingsError, load
from kit.issuers import AUDIENCE, ISSUER, Setup, bearer, jwt_section, setup, signer, with_file
from kit.places import ROOT
from kit.rows import rows

KEY = "assay_mfrggzdfmztwq2lknnwg23tpobyxe43u"


def entry(key: str = KEY, **more: Any) -> ApiKey:
    return ApiKey(written_hash(key.encode()), **more)


def keys_only(**more: Any) -> Setup:
    return setup(Auth(keys={"ci": entry(**more)}))


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_section_there_is_no_gate() -> None:
    assert Gate.read(None, cwd=".", tier="pro") is None


def test_a_key_lets_its_holder_in_by_name_and_tier() -> None:
    assert keys_only(tier="pro").gate.known(bearer(KEY)) == Principal("ci", "pro")
    assert setup(Auth(keys={"ci": entry()}), tier="enterprise").gate.known(bearer(KEY)) == Principal("ci", "enterprise")


def test_each_key_is_that_of_its_holder() -> None:
    keys = {f"holder {number}": new_key() for number in range(100)}
    found = setup(Auth(keys={name: entry(key) for name, key in keys.items()})).gate
    assert all(found.known(bearer(key)) == Principal(name, "community") for name, key in keys.items())


def test_a_hash_may_be_written_in_capitals() -> None:
    capitals = "sha256:" + sha256(KEY.encode()).hexdigest().upper()
    assert setup(Auth(keys={"ci": ApiKey(capitals)})).name(bearer(KEY)) == "ci"


@rows(
    ("expires", "end"),
    [
        ("2027-01-15", 1_799_971_200.0),
        ("2027-01-15T08:00:00", 1_800_000_000.0),
        ("2027-01-15T10:00:00+02:00", 1_800_000_000.0),
    ],
)
def test_a_key_is_good_until_it_expires(expires: str, end: float) -> None:
    """Ours: a date is its first moment, in UTC."""
    found = keys_only(expires=expires)
    found.clock.now = end - 0.1
    assert found.name(bearer(KEY)) == "ci"
    found.clock.now = end
    assert found.reason(bearer(KEY)) == "the key expired on 2027-01-15"


def test_new_keys_differ_and_are_easily_known() -> None:
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(key.startswith(PREFIX) and len(key) == 38 and key.replace("_", "").isalnum() for key in keys)


# ── headers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    "header",
    [b"Bearer " + KEY.encode(), b"bearer " + KEY.encode(), b"BEARER   " + KEY.encode(), bearer(KEY) + b"  "],
)
def test_the_scheme_is_written_in_any_letters(header: bytes) -> None:
    """RFC 9110 §11.1."""
    assert keys_only().name(header) == "ci"


@rows(
    ("header", "reason", "error"),
    [
        pytest.param(None, "a bearer token is required", b"", id="none"),
        pytest.param(b"", "the Authorization header has no bearer token", b"", id="empty"),
        pytest.param(b"Bearer", "the Authorization header has no bearer token", b"", id="scheme-alone"),
        pytest.param(b"Bearer   ", "the Authorization header has no bearer token", b"", id="nothing-behind-it"),
        pytest.param(b"Basic YTpi", "the Authorization header has no bearer token", b"", id="basic"),
        pytest.param(KEY.encode(), "the Authorization header has no bearer token", b"", id="no-scheme"),
        pytest.param(b"Bearer\t" + KEY.encode(), "the Authorization header has no bearer token", b"", id="tab"),
        pytest.param(bearer("a b"), "the bearer token is malformed", b"invalid_token", id="two-words"),
        pytest.param(bearer(f"{KEY},{KEY}"), "the bearer token is malformed", b"invalid_token", id="two-keys"),
        pytest.param(bearer("\u00e9"), "the bearer token is malformed", b"invalid_token", id="beyond-ascii"),
        pytest.param(bearer(b"a\r\nb"), "the bearer token is malformed", b"invalid_token", id="line-break"),
        pytest.param(bearer(KEY[:-1]), "the key is unknown", b"invalid_token", id="key-cut-short"),
        pytest.param(bearer(KEY.upper()), "the key is unknown", b"invalid_token", id="key-in-capitals"),
        pytest.param(bearer(written_hash(KEY.encode())[7:]), "the key is unknown", b"invalid_token", id="the-hash"),
        pytest.param(bearer("a.b.c"), "the key is unknown", b"invalid_token", id="token-where-there-are-none"),
        pytest.param(bearer("x" * 9000), "the Authorization header is too long", b"invalid_token", id="long"),
    ],
)
def test_who_is_not_let_in_gets_the_reason(header: bytes | None, reason: str, error: bytes) -> None:
    """RFC 6750 §3.1: without a token, the challenge has no error."""
    description = b', error="%b", error_description="%b"' % (error, reason.encode()) if error else b""
    found = keys_only().gate.known(header)
    assert found == Denied(401, b'Bearer realm="assay"' + description, reason)


def test_a_long_header_is_refused_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = keys_only().gate
    monkeypatch.setattr(gate, "sha256", lambda _: pytest.fail("a digest of a header that is too long"))
    monkeypatch.setattr(gate, "_credential", lambda _: pytest.fail("a look into a header that is too long"))
    assert found.known(b"Bearer " + b"x" * (8192 - 6)) == found.known(b"x" * 100_000)


def test_verify_alone_says_the_same() -> None:
    found = keys_only()
    for header in (bearer(KEY), bearer("other"), b""):
        assert found.admit(header) == found.gate.known(header)


@given(st.binary(max_size=100) | st.binary(max_size=60).map(lambda rest: b"Bearer " + rest))
def test_no_header_breaks_anything(header: bytes) -> None:
    assert isinstance(keys_only().gate.known(header), Denied)


def test_every_reason_fits_into_a_header() -> None:
    """RFC 6750 §3: neither quotation marks nor backslashes, nothing beyond ASCII."""
    every = [value for value in vars(challenges).values() if isinstance(value, challenges.AuthRefusal)]
    assert len({each.reason for each in every}) == len(every) > 15
    for each in every:
        assert set(each.reason) <= set(map(chr, range(0x20, 0x7F))) - set('"\\')
        assert each.status in (401, 403)


# ── challenge and metadata ───────────────────────────────────────────────────────────────────────────────────────────


HERE = "https://assay.example/.well-known/oauth-protected-resource/mcp"


def refused(setup: Setup) -> Denied:
    found = setup.gate.known(None)
    assert isinstance(found, Denied)
    return found


def test_the_metadata_say_where_to_get_a_token(tmp_path: Path) -> None:
    """RFC 9728 §2; MCP 2025-06-18, Authorization: `authorization_servers` has at least one."""
    found = with_file(tmp_path, signer())
    assert found.gate.metadata(AUDIENCE) == {
        "resource": AUDIENCE,
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
    }
    expected = b'Bearer realm="assay", resource_metadata="%b"' % HERE.encode()
    assert found.gate.challenge(refused(found), HERE) == expected


def test_scopes_are_in_the_metadata_and_in_the_challenge(tmp_path: Path) -> None:
    """MCP 2025-11-25, Authorization: servers should say which scopes are needed."""
    found = with_file(tmp_path, signer(), required_scopes=("mcp:use", "mcp:read"))
    metadata = found.gate.metadata(AUDIENCE)
    assert metadata is not None
    assert metadata["scopes_supported"] == ["mcp:use", "mcp:read"]
    expected = b'Bearer realm="assay", scope="mcp:use mcp:read", resource_metadata="%b"' % HERE.encode()
    assert found.gate.challenge(refused(found), HERE) == expected


@rows("issuer", [None, "accounts.example"])
def test_without_an_address_of_an_issuer_there_are_no_metadata(tmp_path: Path, issuer: str | None) -> None:
    for found in (keys_only(), with_file(tmp_path, signer(), issuer=issuer)):
        assert found.gate.metadata(AUDIENCE) is None
        assert found.gate.challenge(refused(found), HERE) == b'Bearer realm="assay"'


@rows("address", ["", 'https://x/", error="', "https://x/\r\nSet-Cookie: a=b", "https://x/\\", "https://\u00e9/", "x"])
def test_an_address_that_would_break_the_header_is_left_out(tmp_path: Path, address: str) -> None:
    """It is made of the Host header, which a stranger writes."""
    found = with_file(tmp_path, signer())
    assert found.gate.challenge(refused(found), address) == b'Bearer realm="assay"'


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_sample_on_the_page_is_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "authentication.md").read_text(encoding="utf-8")
    samples = [part.partition("```")[0] for part in page.split("```toml\n")[1:]]
    assert samples
    for sample in samples:
        (tmp_path / "assay.toml").write_text(sample)
        section = load({}, tmp_path).auth
        assert section is not None
        assert setup(section, tmp_path).gate.metadata(AUDIENCE) is not None


# ── what is loaded, and what is missing ──────────────────────────────────────────────────────────────────────────────


@rows("missing", ["jwt", "cryptography", "aiohttp"])
def test_what_is_not_installed_is_named_with_its_remedy(missing: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in [each for each in sys.modules if each.startswith(("assay.edges.auth.", "assay.edges.upstream"))]:
            patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, missing, None)
        with pytest.raises(SettingsError) as caught:
            Gate.read(Auth(jwt=Jwt(jwks="https://x/", audience=())), cwd=".", tier="pro")
    assert str(caught.value) == f"[auth.jwt] needs {missing}: {how_to_install('auth')}"


@rows(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        (b"", "not a JSON Web Key Set"),
        (b'{"keys": {}}', "not a JSON Web Key Set"),
        (b"x" * 300_000, "more than 256 KiB"),
    ],
)
def test_a_file_without_keys_stops_the_server_before_it_starts(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "keys.json").write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        setup(Auth(jwt=jwt_section("keys.json")), tmp_path)
    assert str(caught.value) == f"auth.jwt.jwks: keys.json: {reason}"

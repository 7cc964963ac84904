"""Who is let in, and what is said to the others: keys, headers, challenges, metadata."""

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.edges.auth import Denied, Gate, Principal
from assay.edges.auth.api_keys import PREFIX, new_key, written_hash
from assay.settings import ApiKey, Auth, Jwt, SettingsError, load
from assay.settings.extras import how_to_install
from kit.issuers import AUDIENCE, ISSUER, Setup, bearer, jwt_section, setup, signer, with_file
from kit.places import ROOT
from kit.rows import rows

KEY = "assay_mfrggzdfmztwq2lknnwg23tpobyxe43u"


def entry(key: str = KEY, **more: Any) -> ApiKey:
    return ApiKey(written_hash(key.encode()), **more)


def keys_only(**more: Any) -> Setup:
    return setup(Auth(keys={"ci": entry(**more)}))


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_lets_its_holder_in_by_name_and_tier_and_no_other() -> None:
    assert Gate.read(None, cwd=".", tier="pro") is None
    keys = {f"holder {number}": new_key() for number in range(100)}
    assert len(set(keys.values())) == 100
    assert all(key.startswith(PREFIX) and len(key) == 38 and key.replace("_", "").isalnum() for key in keys.values())
    tiers = {name: {"tier": "pro"} if name == "holder 7" else {} for name in keys}
    found = setup(Auth(keys={name: entry(key, **tiers[name]) for name, key in keys.items()}), tier="enterprise").gate
    for name, key in keys.items():
        assert found.known(bearer(key)) == Principal(name, "pro" if name == "holder 7" else "enterprise")


def test_a_hash_and_the_scheme_may_be_written_in_any_letters() -> None:
    """RFC 9110 §11.1."""
    capitals = "sha256:" + sha256(KEY.encode()).hexdigest().upper()
    found = setup(Auth(keys={"ci": ApiKey(capitals)}))
    for header in (b"Bearer %b", b"bearer %b", b"BEARER   %b", b"Bearer %b  "):
        assert found.name(header % KEY.encode()) == "ci"


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


# ── headers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


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


@given(st.binary(max_size=100) | st.binary(max_size=60).map(lambda rest: b"Bearer " + rest))
def test_no_header_breaks_anything(header: bytes) -> None:
    assert isinstance(keys_only().gate.known(header), Denied)


# ── challenge and metadata ───────────────────────────────────────────────────────────────────────────────────────────


HERE = "https://assay.example/.well-known/oauth-protected-resource/mcp"


def refused(setup: Setup) -> Denied:
    found = setup.gate.known(None)
    assert isinstance(found, Denied)
    return found


def test_metadata_and_challenge_say_where_to_get_a_token_and_with_which_scopes(tmp_path: Path) -> None:
    """RFC 9728 §2; MCP 2025-06-18, Authorization: `authorization_servers` has at least one; 2025-11-25: scopes."""
    where = b'resource_metadata="%b"' % HERE.encode()
    metadata: Any = {"authorization_servers": [ISSUER], "bearer_methods_supported": ["header"], "resource": AUDIENCE}
    found = with_file(tmp_path, signer())
    assert found.gate.metadata(AUDIENCE) == metadata
    assert found.gate.challenge(refused(found), HERE) == b'Bearer realm="assay", ' + where
    found = with_file(tmp_path, signer(), required_scopes=("mcp:use", "mcp:read"))
    assert found.gate.metadata(AUDIENCE) == {**metadata, "scopes_supported": ["mcp:use", "mcp:read"]}
    assert found.gate.challenge(refused(found), HERE) == b'Bearer realm="assay", scope="mcp:use mcp:read", ' + where


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

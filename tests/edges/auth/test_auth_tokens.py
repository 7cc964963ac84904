"""Signed tokens: what is good, what is not, and for how long it is remembered."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jwt import PyJWS
from jwt.algorithms import RSAAlgorithm

from assay.edges.auth import Denied, Principal, tokens
from assay.edges.auth.api_keys import written_hash
from assay.settings import ApiKey, Auth
from assay.settings.auth_section import ALGORITHMS
from kit.issuers import (
    AUDIENCE,
    NOW,
    Setup,
    Signer,
    b64,
    bearer,
    forged,
    jwt_section,
    key_set,
    mac,
    run,
    setup,
    signer,
    with_file,
)
from kit.rows import rows

SECRET = "s3cret-7f1c"  # noqa: S105 - it is none
"""Stands where a secret would, and must be nowhere else."""


@pytest.fixture
def one(tmp_path: Path) -> Setup:
    """A gate that trusts one key."""
    return with_file(tmp_path, signer())


def with_entries(directory: Path, *entries: Any) -> Setup:
    """A gate that trusts these keys, with every algorithm."""
    (directory / "keys.json").write_text(json.dumps({"keys": entries}))
    return setup(Auth(jwt=jwt_section("keys.json", algorithms=ALGORITHMS)), directory)


# ── signatures ───────────────────────────────────────────────────────────────────────────────────────────────────────


@rows("algorithm", [*ALGORITHMS, "Ed448"])
@rows("named", [True, False])
def test_a_token_of_every_algorithm_lets_its_holder_in(tmp_path: Path, algorithm: str, named: bool) -> None:
    """With the algorithm in the key, and without."""
    key = signer(algorithm)
    found = with_entries(tmp_path, key.jwk(alg=key.algorithm if named else None))
    assert found.admit(bearer(key.token())) == Principal("alice", "community")


def pem(key: Signer) -> bytes:
    public: bytes = key.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return public


def confusions() -> list[Any]:
    rs, other = signer("RS256"), signer("RS256", "other")
    not_accepted = "the token is signed with an algorithm that is not accepted"
    wrong = "the signature of the token is invalid"
    unknown = "the token is signed with an unknown key"
    hs = {"alg": "HS256", "typ": "JWT", "kid": "one"}
    return [
        pytest.param(forged(hs, sign=mac(pem(rs))), not_accepted, id="hs256-with-the-public-key"),
        pytest.param(forged({"alg": "none", "kid": "one"}, sign=lambda _: b""), not_accepted, id="none"),
        pytest.param(forged({"kid": "one"}), not_accepted, id="no-algorithm"),
        pytest.param(forged({"alg": ["RS256"], "kid": "one"}), not_accepted, id="several-algorithms"),
        pytest.param(forged({"alg": "RS256", "kid": "one"}, sign=lambda _: b""), wrong, id="no-signature"),
        pytest.param(forged({"alg": "RS256", "kid": "one"}, sign=mac(pem(rs))), wrong, id="rs256-that-is-hs256"),
        pytest.param(forged({"alg": "ES256", "kid": "one"}), unknown, id="algorithm-of-another-kind-of-key"),
        pytest.param(rs.token(algorithm="RS512"), not_accepted, id="algorithm-not-configured"),
        pytest.param(rs.token(algorithm="PS256"), unknown, id="key-that-names-another-algorithm"),
        pytest.param(other.token(header={"kid": "one"}), wrong, id="kid-of-another-key"),
        pytest.param(other.token(), unknown, id="unknown-kid"),
        pytest.param(other.token(header={}), wrong, id="no-kid-and-another-key"),
        pytest.param(rs.token(header={"kid": "../../dev/null"}), unknown, id="kid-that-is-a-path"),
        pytest.param(other.token(header={"jwk": other.jwk()}), wrong, id="brings-its-own-key"),
        pytest.param(other.token(header={"kid": "one", "jku": "https://x.example"}), wrong, id="says-where-its-key-is"),
    ]  # fmt: skip


@rows(("token", "reason"), confusions())
def test_a_token_cannot_choose_how_it_is_checked(tmp_path: Path, token: bytes, reason: str) -> None:
    """RFC 8725 §3.1, §3.10."""
    found = with_file(tmp_path, signer("RS256"), algorithms=("RS256", "PS256", "ES256"))
    assert found.reason(bearer(token)) == reason


def test_the_curve_is_part_of_the_algorithm(tmp_path: Path) -> None:
    """RFC 7518 §3.4. Not every version of PyJWT looks at it."""
    unknown = "the token is signed with an unknown key"
    bitcoin = Signer("one", "ES256", ec.generate_private_key(ec.SECP256K1()))
    for entry in (bitcoin.jwk(), bitcoin.jwk(alg=None), signer("ES384").jwk(alg="ES256"), signer("ES384").jwk()):
        assert with_entries(tmp_path, entry).reason(bearer(forged({"alg": "ES256", "kid": "one"}))) == unknown


@rows("header", [{"crit": ["exp"]}, {"crit": []}, {"b64": True}, {"crit": ["b64"], "b64": False}])
def test_a_token_that_needs_an_extension_is_refused(one: Setup, header: dict[str, Any]) -> None:
    """RFC 7515 §4.1.11."""
    token = forged({"alg": "ES256", "kid": "one", **header})
    assert one.reason(bearer(token)) == "the token needs an extension that is not supported"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2), st.integers(0, 1000))
def test_a_token_with_another_letter_is_no_good(one: Setup, part: int, place: int) -> None:
    """But for the last letter of all, some of whose bits mean nothing: not every version of PyJWT looks at those."""
    parts = signer().token().split(b".")
    at = place % (len(parts[part]) - 1)
    other = b"A" if parts[part][at : at + 1] != b"A" else b"B"
    parts[part] = parts[part][:at] + other + parts[part][at + 1 :]
    assert isinstance(one.admit(bearer(b".".join(parts))), Denied)


@rows(
    "token",
    [
        b"..",
        b"a.b.c",
        b64(b"[]") + b".e30.x",
        b64(b"\xff\xfe") + b".e30.x",
        b64(b"[" * 5000) + b".e30.x",
        b64(b'{"a":' * 1100) + b".e30.x",
        b64(b'{"alg":"ES256","alg":"none"}') + b".e30.x",
        b64(b'{"alg":"ES256","kid":7}') + b".e30.x",
        b64(b'{"alg":"ES256","kid":"one","x":' + b"9" * 5000 + b"}") + b".e30.x",
        b64(b'{"alg":"ES256","kid":"one"}') + b"." + b64(b"[" * 4000) + b".x",
        b64(b'{"alg":"ES256","kid":"one"}') + b".=.=",
        b64(b'{"alg":"ES256","kid":"\\ud800"}') + b".e30.x",
    ],
)
def test_what_only_looks_like_a_token_is_refused(one: Setup, token: bytes) -> None:
    found = one.admit(bearer(token))
    assert isinstance(found, Denied)
    assert found.status == 401


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=40).map(b64), min_size=3, max_size=3), st.booleans())
def test_no_token_breaks_anything(one: Setup, parts: list[bytes], headed: bool) -> None:
    head = [b64(b'{"alg":"ES256","kid":"one"}')] if headed else parts[:1]
    assert isinstance(one.admit(bearer(b".".join([*head, *parts[1:]]))), Denied)


# ── claims ───────────────────────────────────────────────────────────────────────────────────────────────────────────


EXPIRED = "the token has expired"
EARLY = "the token is not valid yet"
OTHER_ISSUER = "the token is from another issuer"
OTHER_AUDIENCE = "the token is for another audience"
MALFORMED = "the claims of the token are malformed"
NAMELESS = "the token has no usable principal"


@rows(
    ("claims", "reason"),
    [
        pytest.param({"exp": NOW - 31}, EXPIRED, id="expired"),
        pytest.param({"exp": NOW - 30}, EXPIRED, id="expired-at-the-end-of-the-leeway"),
        pytest.param({"exp": NOW - 29.5}, "", id="expired-within-the-leeway"),
        pytest.param({"exp": -1e300}, EXPIRED, id="expired-before-time-began"),
        pytest.param({"exp": 1e300}, "", id="far-away"),
        pytest.param({"exp": None}, "the token has no exp", id="no-end"),
        pytest.param({"exp": str(int(NOW) + 300)}, MALFORMED, id="end-in-a-string"),
        pytest.param({"exp": True}, MALFORMED, id="end-that-is-true"),
        pytest.param({"nbf": NOW + 31}, EARLY, id="early"),
        pytest.param({"nbf": NOW + 30}, "", id="early-within-the-leeway"),
        pytest.param({"iss": "https://other.example"}, OTHER_ISSUER, id="other-issuer"),
        pytest.param({"iss": "https://issuer.example/"}, OTHER_ISSUER, id="issuer-with-a-slash"),
        pytest.param({"iss": None}, OTHER_ISSUER, id="no-issuer"),
        pytest.param({"aud": "https://other.example"}, OTHER_AUDIENCE, id="other-audience"),
        pytest.param({"aud": None}, OTHER_AUDIENCE, id="no-audience"),
        pytest.param({"aud": AUDIENCE + "/deeper"}, OTHER_AUDIENCE, id="longer-audience"),
        pytest.param({"aud": ["https://other.example", AUDIENCE]}, "", id="one-of-several"),
        pytest.param({"aud": {AUDIENCE: 1}}, OTHER_AUDIENCE, id="audience-that-is-an-object"),
        pytest.param({"sub": None}, NAMELESS, id="no-name"),
        pytest.param({"sub": "a\nb"}, NAMELESS, id="name-with-a-line-break"),
        pytest.param({"sub": "\u202eecila"}, NAMELESS, id="name-that-turns-round"),
        pytest.param({"sub": "a" * 257}, NAMELESS, id="long-name"),
        pytest.param({"sub": "a" * 256}, "", id="name-just-short-enough"),
        pytest.param({"iat": NOW + 10_000}, "", id="issued-in-the-future"),
    ],
)
def test_claims_are_judged(one: Setup, claims: dict[str, Any], reason: str) -> None:
    """RFC 7519 §4.1."""
    found = one.admit(bearer(signer().token(**claims)))
    assert (found.reason if isinstance(found, Denied) else "") == reason


@rows("payload", [b"[]", b"", b"null", b'{"exp":1,"exp":2}', b"\xff", b'{"sub":7}'])
def test_claims_that_are_none_are_refused_even_if_signed(one: Setup, payload: bytes) -> None:
    token = PyJWS().encode(payload, signer().private, "ES256", {"kid": "one"}).encode()
    assert one.reason(bearer(token)) in (MALFORMED, "the token has no exp")


@rows(
    ("configured", "claims", "reason"),
    [
        ({"principal_claim": "uid"}, {"uid": 7}, NAMELESS),
        ({"principal_claim": "uid"}, {"uid": "alice", "sub": None}, ""),
        ({"leeway": 0}, {"exp": NOW}, EXPIRED),
        ({"leeway": 0}, {"nbf": NOW + 1}, EARLY),
        ({"leeway": 0}, {"exp": NOW + 1, "nbf": NOW}, ""),
        ({"require_exp": False}, {"exp": None}, ""),
        ({"require_exp": False}, {"exp": NOW - 100}, EXPIRED),
        ({"issuer": None, "audience": ()}, {"iss": "x", "aud": "y"}, ""),
        ({"issuer": None, "audience": ()}, {"iss": None, "aud": None}, ""),
    ],
)
def test_what_claims_have_to_say_can_be_configured(
    tmp_path: Path, configured: dict[str, Any], claims: dict[str, Any], reason: str
) -> None:
    found = with_file(tmp_path, signer(), **configured)
    denied = found.admit(bearer(signer().token(**claims)))
    assert (denied.reason if isinstance(denied, Denied) else "") == reason
    if "audience" in configured:
        assert found.said[0] == "auth: tokens for any audience are accepted, because auth.jwt.audience is empty"


@rows(
    ("claims", "tier"),
    [
        ({}, "community"),
        ({"plan": "gold"}, "pro"),
        ({"plan": "black"}, "enterprise"),
        ({"plan": ["gold", "black", 7]}, "enterprise"),
        ({"plan": "pro"}, "community"),
        ({"plan": ["none", {"gold": 1}]}, "community"),
        ({"plan": {"gold": True}}, "community"),
    ],
)
def test_a_claim_is_looked_up_for_the_tier(tmp_path: Path, claims: dict[str, Any], tier: str) -> None:
    found = with_file(tmp_path, signer(), tier_claim="plan", tiers={"gold": "pro", "black": "enterprise"})
    assert found.admit(bearer(signer().token(**claims))) == Principal("alice", tier)


@rows(
    ("claims", "enough"),
    [
        ({"scope": "mcp:read mcp:use"}, True),
        ({"scp": ["mcp:read", "mcp:use"]}, True),
        ({"scp": "mcp:read mcp:use"}, True),
        ({"scope": "mcp:read", "scp": ["mcp:use"]}, True),
        ({"scope": "mcp:read"}, False),
        ({"scope": "mcp:read,mcp:use"}, False),
        ({"scope": "mcp:use-not mcp:read"}, False),
        ({"scope": 7}, False),
        ({}, False),
    ],
)
def test_a_token_without_the_scopes_is_forbidden(tmp_path: Path, claims: dict[str, Any], enough: bool) -> None:
    """RFC 6750 §3.1: 403, and the scopes that it takes."""
    found = with_file(tmp_path, signer(), required_scopes=("mcp:use", "mcp:read"))
    answer = found.admit(bearer(signer().token(**claims)))
    expected = Denied(
        403,
        b'Bearer realm="assay", error="insufficient_scope", '
        b'error_description="the token lacks required scopes", scope="mcp:use mcp:read"',
        "the token lacks required scopes",
    )
    assert answer == (Principal("alice", "community") if enough else expected)


# ── keys and tokens together ─────────────────────────────────────────────────────────────────────────────────────────


def test_keys_and_tokens_are_accepted_side_by_side_and_no_token_takes_the_name_of_a_key(tmp_path: Path) -> None:
    """Ours: sessions belong to names, and at some issuers people choose theirs."""
    (tmp_path / "keys.json").write_bytes(key_set(signer()))
    dotted = "a.key.with-two-dots-and-enough-characters"
    keys = {"ci": ApiKey(written_hash(b"assay_x"), "pro"), "old": ApiKey(written_hash(dotted.encode()))}
    found = setup(Auth(keys=keys, jwt=jwt_section("keys.json", required_scopes=("mcp:use",))), tmp_path)
    assert found.gate.known(bearer("assay_x")) == Principal("ci", "pro")
    assert found.gate.known(bearer(dotted)) == Principal("old", "community")
    assert found.name(bearer(signer().token(scope="mcp:use"))) == "alice"
    assert found.reason(bearer("assay_y")) == "the key is unknown"
    named = found.reason(bearer(signer().token(sub="ci", scope="mcp:use")))
    assert named == "the principal of the token has the name of an API key"


# ── sets of keys ─────────────────────────────────────────────────────────────────────────────────────────────────────


def small() -> Signer:
    return Signer("one", "RS256", rsa.generate_private_key(65537, 1024))  # noqa: S505 - that is the point


@rows(
    "entry",
    [
        pytest.param(signer().jwk(use="enc"), id="for-encryption"),
        pytest.param(signer().jwk(key_ops=["sign"]), id="for-signing-only"),
        pytest.param(signer().jwk(key_ops="verify"), id="operations-in-a-string"),
        pytest.param(signer().jwk(alg="ECDH-ES"), id="for-another-algorithm"),
        pytest.param(signer().jwk(kid=7), id="kid-that-is-a-number"),
        pytest.param(signer().jwk(x=None), id="half-a-key"),
        pytest.param(signer().jwk(x="!!!"), id="no-base64"),
        pytest.param(signer().jwk(x=signer("ES256", "other").jwk()["x"]), id="not-on-the-curve"),
        pytest.param(signer().jwk(kty="oct", k="c2VjcmV0"), id="secret"),
        pytest.param(signer().jwk(kty=["EC"]), id="type-that-is-an-array"),
        pytest.param(signer().jwk(crv="P-384"), id="another-curve"),
        pytest.param(small().jwk(), id="rsa-too-short"),
        pytest.param(None, id="null"),
    ],
)
def test_a_key_that_is_of_no_use_is_passed_over(tmp_path: Path, entry: Any) -> None:
    good = signer("EdDSA", "good")
    found = with_entries(tmp_path, entry, good.jwk())
    assert found.name(bearer(good.token())) == "alice"
    assert found.said[0] == "auth: 1 keys from keys.json (1 more are unusable)"
    assert found.reason(bearer(signer().token())) == "the token is signed with an unknown key"


def test_keys_are_found_by_kind_and_name_or_all_are_tried(tmp_path: Path) -> None:
    """RFC 7517 §4.5: keys of different kinds may have the same name. A private key serves as a public one."""
    same = [signer("RS256", "same"), signer("EdDSA", "same"), signer("ES256", "same")]
    found = with_file(tmp_path, *same)
    assert [found.name(bearer(key.token())) for key in same] == ["alice"] * 3
    keys = [signer("ES256", "one"), signer("ES256", "two"), signer("EdDSA", "three")]
    found = with_entries(tmp_path, *(key.jwk(kid=None if key.kid == "two" else key.kid) for key in keys))
    assert [found.name(bearer(key.token(header={}))) for key in keys] == ["alice"] * 3
    assert found.reason(bearer(keys[1].token())) == "the token is signed with an unknown key"
    private = json.loads(RSAAlgorithm.to_jwk(same[0].private))
    found = with_entries(tmp_path, {**private, "kid": "same", "key_ops": ["sign", "verify"]})
    assert found.name(bearer(same[0].token())) == "alice"
    found = with_entries(tmp_path, *([{}] * 100), signer().jwk())
    assert found.said == ["auth: 0 keys from keys.json (101 more are unusable)"], "a hundred are read"


# ── what is remembered ───────────────────────────────────────────────────────────────────────────────────────────────


def kept(one: Setup) -> list[int]:
    """The lengths of what is remembered of each token."""
    assert one.gate._tokens is not None
    return [len(digest) for digest in one.gate._tokens._good]


def test_a_token_is_checked_once_and_known_by_its_digest_until_it_ends(
    one: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = bearer(signer().token(exp=NOW + 60))
    assert one.gate.known(header) is None
    assert one.name(header) == "alice"
    assert kept(one) == [32]
    with monkeypatch.context() as patch:
        patch.setattr("jwt.PyJWS.decode", lambda *_, **__: pytest.fail("checked again"))
        for each in (header, header.replace(b"Bearer", b"bearer")):
            assert one.gate.known(each) == run(one.gate.verify(each)) == Principal("alice", "community")
    one.clock.now = NOW + 60 + 29.9
    assert one.gate.known(header) is not None
    one.clock.now = NOW + 60 + 30
    assert one.gate.known(header) is None
    assert (kept(one), one.reason(header)) == ([], EXPIRED)


def test_neither_a_refused_token_nor_one_that_has_ended_is_remembered(one: Setup) -> None:
    header = bearer(signer().token(nbf=NOW + 100))
    assert one.reason(header) == EARLY
    assert one.gate.known(header) is None
    for number in range(5):
        one.admit(bearer(signer().token(sub=f"holder {number}", exp=NOW + 10)))
    one.clock.now += 100
    assert one.name(header) == "alice"
    assert kept(one) == [32]


def test_those_used_longest_ago_are_forgotten_first(one: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "REMEMBERED", 3)
    headers = [bearer(signer().token(sub=f"holder {number}")) for number in range(4)]
    for header in headers[:3]:
        one.admit(header)
    assert one.gate.known(headers[0]) is not None
    one.admit(headers[3])
    assert [one.gate.known(header) is not None for header in headers] == [True, False, True, True]


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_secret_is_said_to_anybody(tmp_path: Path) -> None:
    """Tokens, keys, and what claims say, in no log line and in no answer."""
    good, stranger = signer(), signer("ES256", SECRET)
    (tmp_path / "keys.json").write_bytes(key_set(good))
    section = Auth(keys={"ci": ApiKey(written_hash(SECRET.encode()))}, jwt=jwt_section("keys.json"))
    found = setup(section, tmp_path)
    claims: list[dict[str, Any]] = [
        {"iss": SECRET}, {"aud": SECRET}, {"exp": SECRET}, {"nbf": SECRET}, {"sub": SECRET + "\n"}, {"scope": SECRET},
        {"email": SECRET, "exp": NOW - 100}, {"tier": SECRET, "sub": None},
    ]  # fmt: skip
    sent = [good.token(**each) for each in claims]
    sent += [stranger.token(), forged({"alg": SECRET}), forged({"alg": "ES256", "kid": SECRET, "crit": [SECRET]})]
    sent += [SECRET.encode() + b"x", b"assay_" + SECRET.encode(), forged({"alg": "ES256", "kid": "one", "x": SECRET})]
    said = [repr(found.admit(bearer(token))) for token in sent] + found.said
    # Only what was given in full has no answer of denial: a token with a scope that was not asked for.
    assert sum("Denied" in each for each in said) == len(sent) - 1
    text = "\n".join(said)
    assert SECRET not in text
    assert not [token for token in sent if token.decode().split(".")[-1] in text]
    assert written_hash(SECRET.encode()) not in repr(section)

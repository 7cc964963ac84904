"""Who is let in with a key or a token, what is said to those who are not, and what a caller's tier decides."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from assay.edges.auth.api_keys import new_key, written_hash
from assay.spec.revisions import LATEST
from kit.http_client import (
    BOTH,
    STORE,
    Service,
    call,
    frame_of,
    initialize,
    late_backend,
    modern,
    of,
    request,
    run,
    serving,
)

ALICE, BOB, OLD = new_key(), new_key(), new_key()
"""One in the lowest tier, one in a higher one, and one whose time is over."""

KEYS = f"""
[tiers.features]
populate_backend = "pro"

[auth.keys.alice]
hash = "{written_hash(ALICE.encode())}"

[auth.keys.bob]
hash = "{written_hash(BOB.encode())}"
tier = "pro"

[auth.keys.old]
hash = "{written_hash(OLD.encode())}"
expires = 2020-01-01
"""

SIGNER = ec.generate_private_key(ec.SECP256R1())
ISSUER = "https://issuer.example"

TOKENS = f"""
[auth.jwt]
jwks = "keys.json"
issuer = "{ISSUER}"
audience = ["https://assay.example/mcp"]
required_scopes = ["assets:use"]
tiers = {{ gold = "pro" }}
"""

ASKED = request(1, "list_schemas")


def token(**claims: Any) -> str:
    """A good token, but for what *claims* say."""
    now = int(time.time())
    every = {"iss": ISSUER, "aud": "https://assay.example/mcp", "sub": "carol", "exp": now + 600, "scope": "assets:use"}
    return jwt.encode({**every, **claims}, SIGNER, algorithm="ES256", headers={"kid": "one"})


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with keys only. At the end none of them is in its log."""
    directory = tmp_path_factory.mktemp("keyed")
    (directory / "assay.toml").write_text(KEYS)
    with serving(directory) as running:
        yield running
        log = running.log.so_far()
    for secret in (ALICE, BOB, OLD, *(written_hash(key.encode())[7:] for key in (ALICE, BOB, OLD))):
        assert secret not in log


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with keys and tokens."""
    directory = tmp_path_factory.mktemp("signed")
    public = {**json.loads(ECAlgorithm.to_jwk(SIGNER.public_key())), "kid": "one", "use": "sig", "alg": "ES256"}
    (directory / "keys.json").write_text(json.dumps({"keys": [public]}))
    (directory / "assay.toml").write_text(KEYS + TOKENS)
    with serving(directory) as running:
        yield running


def bearer(secret: str) -> dict[str, str]:
    return {**BOTH, "authorization": f"Bearer {secret}"}


# ── shares ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_principal_has_its_share_of_the_requests(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text(KEYS.replace("populate_backend", "diff_assets"))
    with late_backend() as (backend, env), serving(tmp_path, "http.requests_each=1", env=env) as running:
        wire = running.open()
        wire.say("POST", "/mcp", frame_of(request(1, "populate_backend", STORE)), bearer(BOB))
        backend.was_asked()
        storing = request(2, "populate_backend", STORE)
        refused = running.post(storing, bearer(BOB))
        assert (refused.status, refused.header("retry-after"), refused.error()["code"]) == (429, "1", -31016)
        assert running.post(ASKED, bearer(ALICE)).status == 200
        backend.allowed.set()
        assert wire.answer().status == 200
        assert running.post(storing, bearer(BOB)).status == 200


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
@pytest.mark.parametrize("key", [ALICE, BOB], ids=["alice", "bob"])
def test_the_holder_of_a_key_is_let_in(keyed: Service, key: str, scheme: str) -> None:
    assert keyed.post(ASKED, authorization=f"{scheme} {key}").json()["result"]["ok"] is True


@pytest.mark.parametrize(
    ("authorization", "error"),
    [
        pytest.param(None, "", id="none"),
        pytest.param("", "", id="empty"),
        pytest.param(ALICE, "", id="no-scheme"),
        pytest.param(f"Basic {ALICE}", "", id="another-scheme"),
        pytest.param("Bearer", "", id="no-token"),
        pytest.param("Bearer ", "", id="empty-token"),
        pytest.param(f"Bearer {new_key()}", "invalid_token", id="unknown"),
        pytest.param(f"Bearer {ALICE[:-1]}", "invalid_token", id="cut-short"),
        pytest.param(f"Bearer {ALICE.upper()}", "invalid_token", id="upper-case"),
        pytest.param(f"Bearer {ALICE} {BOB}", "invalid_token", id="two"),
        pytest.param(f"Bearer {OLD}", "invalid_token", id="expired"),
        pytest.param(f"Bearer {written_hash(ALICE.encode())}", "invalid_token", id="its-hash"),
        pytest.param(f"Bearer {'a.b.c'}", "invalid_token", id="a-token-where-none-is-configured"),
        pytest.param("Bearer " + "x" * 9000, "invalid_token", id="too-long"),
    ],
)
def test_nobody_else_is(keyed: Service, authorization: str | None, error: str) -> None:
    """RFC 6750, 3: the error is told where there was a token, and nothing of it is repeated."""
    given = {} if authorization is None else {"authorization": authorization.encode("latin-1")}
    found = keyed.post(ASKED, {**BOTH, **given})
    assert found.status == 401
    challenge = found.header("www-authenticate") or ""
    assert challenge.startswith('Bearer realm="assay"')
    assert (f'error="{error}"' in challenge) if error else ("error" not in challenge)
    assert "resource_metadata" not in challenge
    assert found.error()["code"] == -31013
    assert ALICE[:-1].encode() not in found.body
    assert ALICE[:-1] not in challenge


@pytest.mark.parametrize("path", ["/mcp?access_token={}", "/mcp?authorization=Bearer%20{}", "/mcp?key={}"])
def test_a_key_in_the_address_lets_nobody_in(keyed: Service, path: str) -> None:
    """2025-11-25, Authorization: tokens MUST NOT be in the query string."""
    assert keyed.ask("POST", path.format(ALICE), ASKED, BOTH).status == 401


def test_two_keys_at_once_let_nobody_in(keyed: Service) -> None:
    with keyed.open() as wire:
        lines = f"Authorization: Bearer {ALICE}\r\nAuthorization: Bearer {BOB}\r\n".encode()
        wire.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + lines)
        wire.send(b"Content-Length: 2\r\n\r\n{}")
        assert wire.answer().status == 400


def test_a_key_that_is_not_ascii_lets_nobody_in(keyed: Service) -> None:
    """RFC 6750, 3.1: a malformed request is 400."""
    assert keyed.post(ASKED, {**BOTH, "authorization": b"Bearer \xff\xfe"}).status == 400


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "PUT"])
def test_the_door_is_before_everything(keyed: Service, method: str) -> None:
    """Nothing is learned of methods without a key."""
    assert keyed.ask(method, "/mcp").status == 401


def test_health_is_for_everybody_and_metrics_are_not(keyed: Service) -> None:
    assert keyed.ask("GET", "/healthz").status == 200
    assert keyed.ask("GET", "/readyz").status == 200
    refused = keyed.ask("GET", "/metrics")
    assert (refused.status, b"assay_messages_total" in refused.body) == (401, False)
    assert keyed.ask("GET", "/metrics", headers=bearer(ALICE)).status == 200


def test_two_keys_let_nobody_at_the_metrics(keyed: Service) -> None:
    with keyed.open() as wire:
        lines = f"Authorization: Bearer {new_key()}\r\nAuthorization: Bearer {BOB}\r\n".encode()
        wire.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n")
        assert wire.answer().status == 401


def test_a_stranger_with_a_key_is_still_a_stranger(keyed: Service) -> None:
    assert keyed.ask("POST", "/mcp", ASKED, bearer(ALICE), host="evil.example").status == 403


def test_a_page_can_read_the_challenge(keyed: Service) -> None:
    found = keyed.post(ASKED, origin="http://localhost:3000")
    assert found.status == 401
    assert found.header("access-control-allow-origin") == "http://localhost:3000"


def test_a_preflight_needs_no_key(keyed: Service) -> None:
    """Browsers send none with it."""
    asked = {"origin": "http://localhost:3000", "access-control-request-method": "POST"}
    assert keyed.ask("OPTIONS", "/mcp", headers=asked).status == 204


def test_with_somebody_at_the_door_any_address_will_do(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text(KEYS)
    with serving(tmp_path, address="0.0.0.0:0") as running:
        running.address = "127.0.0.1", running.address[1]
        assert running.post(ASKED).status == 401
        assert running.post(ASKED, bearer(ALICE)).status == 200


def test_a_key_in_the_configuration_itself_is_a_slip_that_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text(f'[auth.keys.alice]\nhash = "{ALICE}"\n')
    done = run(tmp_path, "--http", "127.0.0.1:0")
    assert done.returncode == 2
    assert "auth.keys.alice" in done.stderr
    assert ALICE not in done.stderr


# ── tiers ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", LATEST])
@pytest.mark.parametrize(("key", "tier"), [(ALICE, "community"), (BOB, "pro")], ids=["community", "pro"])
def test_the_tier_of_a_key_decides(keyed: Service, revision: str, key: str, tier: str) -> None:
    """specs/004: an envelope with a hint, not a refusal."""
    said = call(1, "populate_backend", {"asset": {}}, revision)
    headers = modern(said) if revision == LATEST else of(revision)
    found = keyed.post(said, headers, authorization=f"Bearer {key}")
    assert found.status == 200
    envelope = found.json()["result"]["structuredContent"]
    assert envelope["tier"] == tier
    if tier == "pro":
        assert envelope["data"]["detail"] == "SYN_BACKEND_URL is not set"
        assert envelope["upgrade_hints"] == []
    else:
        assert envelope["error"]["error_code"] == "upgrade_required"
        assert [(each["feature"], each["tier"]) for each in envelope["upgrade_hints"]] == [("populate_backend", "pro")]
        assert envelope["data"] is None


@pytest.mark.parametrize(("key", "detail"), [
    (ALICE, "populate_backend needs the pro tier"), (BOB, "SYN_BACKEND_URL is not set"),
], ids=["community", "pro"])  # fmt: skip
def test_the_tier_of_a_key_decides_on_the_bare_door(keyed: Service, key: str, detail: str) -> None:
    found = keyed.post(request(1, "populate_backend", {"asset": {}}), bearer(key))
    assert found.json()["result"] == {"ok": False, "reason": "unsupported", "detail": detail}


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("claims", "tier"), [({}, "community"), ({"tier": "gold"}, "pro"), ({"tier": "x"}, "community")]
)
def test_the_holder_of_a_token_is_let_in_with_its_tier(signed: Service, claims: dict[str, Any], tier: str) -> None:
    said = call(1, "list_schemas", {}, LATEST)
    found = signed.post(said, modern(said, authorization=f"Bearer {token(**claims)}"))
    assert found.json()["result"]["structuredContent"]["tier"] == tier


def test_where_there_are_tokens_a_key_is_good_too(signed: Service) -> None:
    assert signed.post(ASKED, bearer(ALICE)).status == 200


@pytest.mark.parametrize(
    ("claims", "status", "error"),
    [
        pytest.param({"exp": 1_000_000_000}, 401, "invalid_token", id="expired"),
        pytest.param({"aud": "https://other.example"}, 401, "invalid_token", id="for-another-service"),
        pytest.param({"iss": "https://evil.example"}, 401, "invalid_token", id="of-another-issuer"),
        pytest.param({"sub": "alice"}, 401, "invalid_token", id="named-like-a-key"),
        pytest.param({"scope": "other"}, 403, "insufficient_scope", id="without-the-scope"),
    ],
)  # fmt: skip
def test_a_token_that_is_no_good_is_told_why_and_where_to_get_another(
    signed: Service, claims: dict[str, Any], status: int, error: str
) -> None:
    """RFC 9728, 5.1; 2025-11-25, Authorization: 401 names the metadata, 403 the scopes."""
    found = signed.post(ASKED, bearer(token(**claims)))
    assert found.status == status
    challenge = found.header("www-authenticate") or ""
    assert f'error="{error}"' in challenge
    assert 'scope="assets:use"' in challenge
    host = f"{signed.address[0]}:{signed.address[1]}"
    assert f'resource_metadata="http://{host}/.well-known/oauth-protected-resource/mcp"' in challenge
    assert found.error()["code"] == (-31014 if status == 403 else -31013)


def test_a_token_that_was_tampered_with_is_no_good(signed: Service) -> None:
    first, claims, signature = token().split(".")
    other = ec.generate_private_key(ec.SECP256R1())
    forged = jwt.encode({"sub": "carol", "iss": ISSUER}, other, algorithm="ES256", headers={"kid": "one"})
    none = jwt.encode({"sub": "carol", "iss": ISSUER}, "", algorithm="none")
    for bad in (f"{first}.{claims}.{signature[::-1]}", f"{first}.{claims}.", forged, none, f"{first}.{claims}"):
        assert signed.post(ASKED, bearer(bad)).status == 401


@pytest.mark.parametrize("path", ["", "/mcp"])
def test_clients_are_told_where_to_get_tokens(signed: Service, path: str) -> None:
    """RFC 9728, 3; for everybody, since whoever asks has no token yet."""
    found = signed.ask("GET", f"/.well-known/oauth-protected-resource{path}")
    assert found.status == 200
    host, port = signed.address
    assert found.json() == {
        "resource": f"http://{host}:{port}/mcp",
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["assets:use"],
    }


def test_a_page_can_read_where_to_get_tokens(signed: Service) -> None:
    origin = {"origin": "http://localhost:6274"}
    found = signed.ask("GET", "/.well-known/oauth-protected-resource/mcp", headers=origin)
    assert found.header("access-control-allow-origin") in {"*", origin["origin"]}
    asked = {**origin, "access-control-request-headers": "mcp-protocol-version"}
    assert signed.ask("OPTIONS", "/.well-known/oauth-protected-resource/mcp", headers=asked).status == 204


@pytest.mark.parametrize("path", ["", "/mcp"])
def test_where_there_are_no_tokens_nobody_is_sent_for_one(keyed: Service, path: str) -> None:
    assert keyed.ask("GET", f"/.well-known/oauth-protected-resource{path}").status == 404


def test_a_message_of_every_era_needs_a_key(keyed: Service) -> None:
    discover = request(1, "server/discover", {}, LATEST)
    assert keyed.post(discover, modern(discover)).status == 401
    assert keyed.post(initialize("2025-11-25")).status == 401

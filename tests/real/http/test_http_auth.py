"""Who is let in with a key or a token, what is said to those who are not, and what a caller's tier decides."""

import time
from pathlib import Path
from typing import Any

from assay.edges.auth.api_keys import new_key, written_hash
from assay.spec.revisions import LATEST
from kit.http_client import (
    BOTH,
    STORE,
    call,
    late_backend,
    modern,
    of,
    request,
    run,
    serving,
)
from kit.issuers import AUDIENCE, ISSUER, key_set, signer

ALICE, BOB, OLD = new_key(), new_key(), new_key()
"""One in the lowest tier, one in a higher one, and one that has expired."""

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

TOKENS = f"""
[auth.jwt]
jwks = "keys.json"
issuer = "{ISSUER}"
audience = ["{AUDIENCE}"]
required_scopes = ["assets:use"]
tiers = {{ gold = "pro" }}
"""

ASKED = request(1, "list_schemas")


def token(**claims: Any) -> str:
    """A good token, but for what *claims* say."""
    return signer().token(**{"sub": "carol", "exp": int(time.time()) + 600, "scope": "assets:use", **claims}).decode()


def bearer(secret: str) -> dict[str, str]:
    return {**BOTH, "authorization": f"Bearer {secret}"}


REFUSED = {
    None: "",
    f"Basic {ALICE}": "",
    f"Bearer {ALICE[:-1]}": "invalid_token",
    f"Bearer {OLD}": "invalid_token",
    f"Bearer {written_hash(ALICE.encode())}": "invalid_token",
    "Bearer " + "x" * 9000: "invalid_token",
}
"""What does not open, with the error of its challenge (RFC 6750, 3)."""

METADATA = "/.well-known/oauth-protected-resource"


def test_the_holder_of_a_key_is_let_in_and_everybody_else_learns_nothing(tmp_path: Path) -> None:
    """With a gate, any address will do."""
    (tmp_path / "assay.toml").write_text(KEYS)
    with serving(tmp_path, address="0.0.0.0:0") as keyed:
        keyed.address = "127.0.0.1", keyed.address[1]
        for key in (ALICE, BOB):
            assert keyed.post(ASKED, authorization=f"bearer {key}").json()["result"]["ok"] is True
        for authorization, error in REFUSED.items():
            given = {} if authorization is None else {"authorization": authorization}
            found = keyed.post(ASKED, {**BOTH, **given})
            assert (found.status, found.error()["code"]) == (401, -31013)
            challenge = found.header("www-authenticate") or ""
            assert challenge.startswith('Bearer realm="assay"')
            assert (f'error="{error}"' in challenge) if error else ("error" not in challenge)
            assert "resource_metadata" not in challenge
            assert ALICE[:-1] not in f"{challenge}{found.body!r}"
        # RFC 6750, 3.1: a malformed request is 400.
        assert keyed.post(ASKED, {**BOTH, "authorization": b"Bearer \xff\xfe"}).status == 400
        # 2025-11-25, Authorization: tokens MUST NOT be in the query string.
        for path in ("/mcp?access_token={}", "/mcp?authorization=Bearer%20{}"):
            assert keyed.ask("POST", path.format(ALICE), ASKED, BOTH).status == 401
        for line, status in ((b"POST /mcp", 400), (b"GET /metrics", 401)):
            with keyed.open() as wire:
                two = f"Authorization: Bearer {new_key()}\r\nAuthorization: Bearer {BOB}\r\n".encode()
                wire.send(line + b" HTTP/1.1\r\nHost: localhost\r\n" + two + b"Content-Length: 0\r\n\r\n")
                assert wire.answer().status == status
        # Of every method; only health is for everybody.
        assert [keyed.ask(method, "/mcp").status for method in ("POST", "GET", "DELETE", "PUT")] == [401] * 4
        assert [keyed.ask("GET", path).status for path in ("/healthz", "/readyz", "/metrics")] == [200, 200, 401]
        assert keyed.ask("GET", "/metrics", headers=bearer(ALICE)).status == 200
        assert keyed.ask("POST", "/mcp", ASKED, bearer(ALICE), host="evil.example").status == 403
        # Where there are no tokens, nothing says where to get one.
        assert [keyed.ask("GET", METADATA + path).status for path in ("", "/mcp")] == [404, 404]
        log = keyed.log.so_far()
    assert not [key for key in (ALICE, BOB, OLD) if key in log or written_hash(key.encode())[7:] in log]
    # A key in the settings itself is a mistake that is not repeated.
    (tmp_path / "assay.toml").write_text(f'[auth.keys.alice]\nhash = "{ALICE}"\n')
    done = run(tmp_path, "--http", "127.0.0.1:0")
    assert (done.returncode, "auth.keys.alice" in done.stderr, ALICE in done.stderr) == (2, True, False)


def test_keys_and_tokens_have_their_tiers_and_others_learn_where_to_get_one(tmp_path: Path) -> None:
    """specs/004: a tier that is too low gets an envelope with a hint. RFC 9728: 401 names the metadata, 403 scopes."""
    (tmp_path / "keys.json").write_bytes(key_set(signer()))
    (tmp_path / "assay.toml").write_text(KEYS + TOKENS)
    with late_backend() as (backend, env), serving(tmp_path, env=env) as running:
        backend.allowed.set()
        said = call(1, "populate_backend", STORE)
        low, high = (
            running.post(said, of("2025-11-25", authorization=f"Bearer {key}")).json()["result"]["structuredContent"]
            for key in (ALICE, BOB)
        )
        assert (high["tier"], high["data"]["asset_id"], high["upgrade_hints"]) == ("pro", "stored", [])
        assert (low["tier"], low["data"], low["error"]["error_code"]) == ("community", None, "upgrade_required")
        assert [(each["feature"], each["tier"]) for each in low["upgrade_hints"]] == [("populate_backend", "pro")]
        said = call(1, "list_schemas", {}, LATEST)
        for claims, tier in (({}, "community"), ({"tier": "gold"}, "pro"), ({"tier": "x"}, "community")):
            found = running.post(said, modern(said, authorization=f"Bearer {token(**claims)}"))
            assert found.json()["result"]["structuredContent"]["tier"] == tier
        host = f"http://{running.address[0]}:{running.address[1]}"
        bad: list[tuple[dict[str, Any], int, str]] = [
            ({"exp": 1_000_000_000}, 401, "invalid_token"),
            ({"sub": "alice"}, 401, "invalid_token"),
            ({"scope": "other"}, 403, "insufficient_scope"),
        ]
        for claims, status, error in bad:
            found = running.post(ASKED, bearer(token(**claims)))
            challenge = found.header("www-authenticate") or ""
            assert (found.status, found.error()["code"]) == (status, -31014 if status == 403 else -31013)
            assert f'error="{error}"' in challenge
            assert 'scope="assets:use"' in challenge
            assert f'resource_metadata="{host}{METADATA}/mcp"' in challenge
        first, claimed, signature = token().split(".")
        assert running.post(ASKED, bearer(f"{first}.{claimed}.{signature[::-1]}")).status == 401
        # For everybody, since whoever asks has no token yet; a page, too.
        page = {"origin": "http://localhost:6274"}
        for path in ("", "/mcp"):
            found = running.ask("GET", METADATA + path, headers=page)
            assert (found.status, found.header("access-control-allow-origin")) == (200, page["origin"])
            assert found.json() == {
                "resource": f"{host}/mcp",
                "authorization_servers": [ISSUER],
                "bearer_methods_supported": ["header"],
                "scopes_supported": ["assets:use"],
            }

"""How much one principal, and one server of a host, may take of what a guard over HTTP has for all."""

import json
from pathlib import Path
from typing import Any

from assay.edges.auth.api_keys import new_key, written_hash
from assay.edges.http.quotas import Full, Quota
from assay.spec.revisions import LATEST
from kit.http_client import BOTH, Service, Wire, frame_of, initialize, modern, request
from kit.scripted_http import REVISION, Liar, Peer, Received, good, guarding, listening, lying

LISTING = request(1, "tools/list", {}, LATEST)
HANGS = request(2, "prompts/list", {}, LATEST)


def hanging(received: Received, peer: Peer) -> None:
    """Answers everything but the list of prompts, and listens."""
    if received.method == "GET":
        peer.events()
        peer.wait()
    elif received.message.get("method") == "prompts/list":
        peer.wait()
    else:
        good(received, peer)


def keyed(directory: Path) -> tuple[str, dict[str, str]]:
    """A settings file with the keys of two principals, and the header that each sends."""
    keys = {name: new_key() for name in ("alice", "bob")}
    file = directory / "settings.toml"
    file.write_text("".join(f'[auth.keys.{n}]\nhash = "{written_hash(k.encode())}"\n' for n, k in keys.items()))
    return str(file), {name: f"Bearer {key}" for name, key in keys.items()}


def held(guard: Service, liar: Liar, path: str = "/mcp", **more: str) -> Wire:
    """A request that the server has, and does not answer."""
    wire = guard.open()
    wire.say("POST", path, frame_of(HANGS), modern(HANGS, **more))
    while liar.next().message.get("method") != "prompts/list":
        pass
    return wire


def status(found: Any) -> tuple[int, str | None]:
    """How a request is refused, and when to try again."""
    return found.status, found.header("retry-after")


def test_a_principal_has_its_share_of_the_requests(tmp_path: Path) -> None:
    file, tokens = keyed(tmp_path)
    options = ("--config", file, "--set", "http.requests_each=1", "--set", "http.requests=2")
    with lying(hanging) as liar, guarding(tmp_path, liar.url, *options) as guard:
        wire = held(guard, liar, authorization=tokens["bob"])
        refused = guard.post(LISTING, modern(LISTING, authorization=tokens["bob"]))
        assert status(refused) == (429, "1")
        assert refused.error()["data"]["detail"] == "you have too many requests at once"
        assert guard.post(LISTING, modern(LISTING, authorization=tokens["alice"])).status == 200
        held(guard, liar, authorization=tokens["alice"])
        assert status(guard.post(LISTING, modern(LISTING, authorization=tokens["alice"]))) == (503, "1")
        wire.socket.close()


def test_where_nobody_is_told_apart_there_are_no_shares(tmp_path: Path) -> None:
    options = ("--set", "http.requests_each=1", "--set", "http.requests_per_server=1")
    with lying(hanging) as liar, guarding(tmp_path, liar.url, *options) as guard:
        held(guard, liar)
        assert guard.post(LISTING, modern(LISTING)).status == 200


def test_a_principal_has_its_share_of_the_streams(tmp_path: Path) -> None:
    file, tokens = keyed(tmp_path)
    options = ("--config", file, "--set", "http.streams_each=1")
    with lying(hanging) as liar, guarding(tmp_path, liar.url, *options) as guard:
        listens: dict[str, dict[str, Any]] = {}
        for name, token in tokens.items():
            opened = guard.post(initialize(REVISION), BOTH, authorization=token)
            ident = opened.header("mcp-session-id") or ""
            listens[name] = {"accept": "text/event-stream", "mcp-session-id": ident, "authorization": token}
        for name, code in (("bob", 200), ("bob", 429), ("alice", 200), ("alice", 429)):
            wire = guard.open()
            wire.say("GET", "/mcp", headers=listens[name])
            assert wire.head().status == code


def test_a_server_of_a_host_that_hangs_leaves_places_for_the_others(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    with lying(hanging) as slow, lying(good) as quick:
        file.write_text(json.dumps({"mcpServers": {"slow": {"url": slow.url}, "quick": {"url": quick.url}}}))
        with listening(tmp_path, "--config", str(file), "--set", "http.requests_per_server=2") as guard:
            for _ in range(2):
                held(guard, slow, "/slow/mcp")
            refused = guard.ask("POST", "/slow/mcp", LISTING, modern(LISTING))
            assert status(refused) == (503, "1")
            assert refused.error()["data"]["detail"] == "too many requests at once for this server"
            assert guard.ask("POST", "/quick/mcp", LISTING, modern(LISTING)).status == 200


def test_a_place_that_is_given_back_can_be_taken_again_and_leaves_no_trace() -> None:
    quota = Quota("requests", 3, each=2, per_server=2)
    for _ in range(1000):
        for server in ("a", "b"):
            assert quota.full("bob", server) is None
            quota.take("bob", server)
        assert quota.full("bob", "c") == Full(429, "you have too many requests at once")
        quota.take("alice", "a")
        assert quota.full("carl", "d") == Full(503, "too many requests at once")
        for name, server in (("bob", "a"), ("alice", "a"), ("bob", "b")):
            quota.give_back(name, server)
    assert (quota.held, quota._by_principal, quota._by_server) == (0, {}, {})

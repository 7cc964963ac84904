"""One client cannot push out the requests and responses of another by holding many bytes."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from test_front_quotas import keyed

from assay.base.limits import DEFAULT
from assay.edges import url_backend
from assay.edges.backend import HttpRequest
from assay.edges.http.heads import RequestHead, read_head
from assay.edges.http.http_server import BODY_BYTES
from assay.edges.upstream_target import UpstreamTarget
from assay.edges.url_backend import UrlBackend
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sink, Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Mode, Terms
from assay.spec.revisions import LATEST
from kit.http_client import SECONDS, Service, Wire, frame_of, head, modern, request
from kit.scripted_http import Peer, Received, good, guarding, lying

LISTING = request(1, "tools/list", {}, LATEST)
PIECE = 15 << 20


def begun(guard: Service, length: int, sent: bytes, **more: str) -> Wire:
    """Return a connection with a POST of *length* bytes of which only *sent* has come."""
    wire = guard.open()
    headers = {"host": wire.name, "content-length": str(length), **modern(LISTING, **more)}
    wire.send(head("POST", "/mcp", headers))
    with suppress(ConnectionError):
        wire.send(sent)
    return wire


def is_cut(wire: Wire) -> bool:
    """Whether the guard has closed the connection."""
    wire.socket.settimeout(0.05)
    try:
        return wire.socket.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_unfinished_bodies_of_one_principal_cut_off_no_other(tmp_path: Path) -> None:
    """The other one began first, and holds least."""
    file, tokens = keyed(tmp_path)
    frame = frame_of(LISTING)
    with lying(good) as liar, guarding(tmp_path, liar.url, "--config", file) as guard:
        alice = begun(guard, len(frame), frame[:20], authorization=tokens["alice"])
        bobs = [
            begun(guard, PIECE + 1, b" " * PIECE, authorization=tokens["bob"]) for _ in range(BODY_BYTES // PIECE + 1)
        ]
        for _ in range(1000):
            if any(map(is_cut, bobs)):
                break
        else:
            raise AssertionError("no connection was cut")
        alice.send(frame[20:])
        assert alice.answer().status == 200


class Findings(Sink):
    """What was found."""

    def __init__(self) -> None:
        self.rules: list[str] = []

    def found(self, verdict: Any, *_: Any) -> None:
        self.rules += [each.rule for each in verdict.violations]


async def asked(backend: UrlBackend, ident: int, principal: str) -> bytes:
    """Return the body of the answer to a request of *principal*."""
    message = request(ident, "tools/list", {}, LATEST)
    every = modern(message).items()
    pairs = [(name.encode(), value if isinstance(value, bytes) else value.encode()) for name, value in every]
    found = read_head("POST", pairs)
    assert isinstance(found, RequestHead)
    sent: list[bytes] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def send(event: dict[str, Any]) -> None:
        sent.append(event.get("body", b""))

    await backend.answer(HttpRequest(found, b"", frame_of(message), principal), receive, send)
    return b"".join(sent)


@pytest.mark.parametrize("mode", ["enforce", "audit"])
def test_long_answers_of_one_principal_fail_no_other(monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    monkeypatch.setattr(url_backend, "HELD_BYTES", 100_000)
    sink = Findings()
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=mode == "enforce")
    factory = SessionFactory(Terms(mode, DEFAULT, 60.0), Sinks((sink,)), watch)

    def slowly(received: Received, peer: Peer) -> None:
        ident = received.message["id"]
        # Those of the others are short, so that only what they hold meanwhile counts.
        told = TOOLS if ident == 9 else {**TOOLS, "tools": []}
        frame = frame_of({"jsonrpc": "2.0", "id": ident, "result": told})
        peer.head(200, content_type="application/json")
        if ident == 9:
            for at in range(0, len(frame), 500):
                peer.send(frame[at : at + 500])
            return
        peer.send(b" " * 30_000)
        peer.wait()
        peer.send(frame)

    async def run(url: str) -> tuple[bytes, list[bytes]]:
        backend = UrlBackend(factory, UpstreamTarget(url), gated=True)
        bobs = [asyncio.create_task(asked(backend, number, "bob")) for number in range(3)]
        async with asyncio.timeout(SECONDS):
            while backend._held.total < 90_000:
                await asyncio.sleep(0.01)
            answer = await asked(backend, 9, "alice")
            liar.released.set()
            said = await asyncio.gather(*bobs)
        await backend.close()
        return answer, said

    with lying(slowly) as liar:
        answer, bobs = asyncio.run(run(liar.url))
    assert json.loads(answer)["result"]["tools"] == TOOLS["tools"]
    failed = [each for each in map(json.loads, bobs) if "error" in each]
    assert len(failed) == (1 if mode == "enforce" else 0)
    assert all("too many long answers" in each["error"]["message"] for each in failed)
    assert "protocol/unanswered" not in sink.rules, "the server is not to blame"


TOOLS = {
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
    "tools": [
        {"name": f"tool-{number}", "description": "x" * 100, "inputSchema": {"type": "object"}} for number in range(150)
    ],
}

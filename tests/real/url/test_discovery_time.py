"""A server that does not answer `server/discover` does not keep its client from going on with `initialize`."""

import asyncio
import json
from typing import Any

import pytest

from assay.base.limits import DEFAULT
from assay.core.conversation import Conversation
from assay.edges.backend import Backend, HttpRequest
from assay.edges.child_backend import ChildBackend
from assay.edges.http.heads import RequestHead, read_head
from assay.edges.upstream_target import UpstreamTarget
from assay.edges.url_backend import UrlBackend
from assay.guard import deadlines
from assay.guard.deliveries import ClientTraits, Outcome, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.session import GuardedSession, Timing
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.spec.revisions import LATEST
from kit.guard_process import frame_of, initialize, liar, request, result
from kit.http_client import SECONDS, call, modern
from kit.scripted_http import Peer, Received, lying

DISCOVER = request("d", "server/discover", {"_meta": call(1, "x", {}, LATEST)["params"]["_meta"]})
LATE = -31012


class Talk:
    """A session of `assay guard` over standard input and output, with a clock."""

    def __init__(self, timeout: float) -> None:
        self.now = 1000.0
        self.session = GuardedSession(
            Conversation(),
            Sinks(),
            ClientTraits("stdio"),
            ServerTraits("child"),
            timing=Timing(timeout, clock=lambda: self.now),
        )

    def client(self, message: Any) -> Outcome:
        """The client sends a message."""
        return self.session.from_client(frame_of(message))

    def at_the_deadline(self) -> Outcome:
        """The time of the next deadline comes."""
        self.now = self.session.deadline
        return self.session.tick()


def errors(made: Outcome) -> list[tuple[Any, int, str]]:
    """Return id, code and text of each error for the client."""
    every = [json.loads(each.frame) for each in made.to_client]
    return [(each["id"], each["error"]["code"], each["error"]["message"]) for each in every]


@pytest.mark.parametrize(("timeout", "limit"), [(600.0, 10.0), (4.0, 4.0)])
def test_discovery_times_out_early_and_the_client_falls_back(timeout: float, limit: float) -> None:
    talk = Talk(timeout)
    talk.client(call(1, "search", {"words": "sea"}, LATEST))
    talk.now += 1
    talk.client(DISCOVER)
    made = talk.at_the_deadline()
    if limit < timeout:
        # The guard waits for the list of tools, and forwards the call without it.
        assert (talk.now, made.to_server != ()) == (1005.0, True)
        made = talk.at_the_deadline()
        assert talk.now == 1001.0 + limit
        assert errors(made) == [("d", LATE, f"No answer came within {limit:g} s")]
    talk.client(initialize())
    answer = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
    assert talk.session.from_server(frame_of(result("open", answer))).to_client
    if limit < timeout:
        assert errors(talk.at_the_deadline()) == [(1, LATE, f"No answer came within {timeout:g} s")]


def test_without_a_limit_discovery_has_none() -> None:
    talk = Talk(0.0)
    talk.client(DISCOVER)
    assert talk.session.deadline == float("inf")


async def asked(backend: Backend, message: Any) -> Any:
    """Return the answer to a request without a session."""
    pairs = [
        (name.encode(), value if isinstance(value, bytes) else value.encode())
        for name, value in modern(message).items()
    ]
    head = read_head("POST", pairs)
    assert isinstance(head, RequestHead)
    sent: list[bytes] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def send(event: dict[str, Any]) -> None:
        sent.append(event.get("body", b""))

    async with asyncio.timeout(SECONDS):
        await backend.answer(HttpRequest(head, b"", frame_of(message), "anonymous"), receive, send)
    return json.loads(b"".join(sent))


def factory() -> SessionFactory:
    """Return what makes sessions that wait ten minutes for an answer."""
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    return SessionFactory(Terms("enforce", DEFAULT, 600.0), Sinks(), watch)


async def discovered(backend: Backend) -> None:
    """A call waits already, and has its own time."""
    waiting = asyncio.create_task(asked(backend, call(1, "search", {"words": "sea"}, LATEST)))
    try:
        await asyncio.sleep(0)
        answer = await asked(backend, DISCOVER)
        assert (answer["id"], answer["error"]["code"]) == ("d", LATE)
        assert answer["error"]["message"] == "No answer came within 0.2 s"
        assert not waiting.done()
    finally:
        waiting.cancel()
        await backend.close()


def test_discovery_of_a_silent_command_over_http_times_out_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "DISCOVER_SECONDS", 0.2)

    async def run() -> None:
        await discovered(ChildBackend(factory(), liar(on={"tools/call": [], "server/discover": []})))

    asyncio.run(run())


def test_discovery_of_a_silent_url_times_out_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "DISCOVER_SECONDS", 0.2)

    def silent(_: Received, peer: Peer) -> None:
        peer.wait()

    async def run(url: str) -> None:
        await discovered(UrlBackend(factory(), UpstreamTarget(url)))

    with lying(silent) as liar:
        asyncio.run(run(liar.url))

"""The front of a guard over HTTP: mistakes of a backend, long bodies, and a backend that is made on first use."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from assay.edges import http_front
from assay.edges.auth import Principal
from assay.edges.awaited_exchange import AwaitedExchange
from assay.edges.backend import Backend, HttpRequest
from assay.edges.http.access import Door
from assay.edges.http.heads import RequestHead, read_head
from assay.edges.http.origin_check import Safety
from assay.edges.http.replies import Receive, Send, reply
from assay.edges.http_front import LONG_BODY, Front
from assay.edges.multi_server import Hosted
from assay.guard.hosted_server import HostedEntry
from assay.settings.http_section import Http
from kit.http_client import frame_of, request
from kit.memory_http import Exchange, answer_of, as_pairs, begun, run, settled
from kit.rows import rows

PING = frame_of(request("q", "ping"))


class Scripted:
    """A backend that does what it is made with."""

    def __init__(self, doing: Callable[[HttpRequest, Send], Any]) -> None:
        self._doing = doing
        self.is_stopped = False

    async def answer(self, request: HttpRequest, _: Receive, send: Send) -> None:
        await self._doing(request, send)

    def stop(self) -> None:
        self.is_stopped = True

    async def close(self) -> None:
        """Nothing runs."""


def asked(backend: Backend, *bodies: bytes, **headers: str) -> list[Exchange]:
    """Requests to a guard with that backend."""
    door = Door(Safety(), None, Principal("anonymous", "community"))
    front = Front({"/mcp": backend}, door, Http(), frame_bytes=1 << 20, metrics=bytes)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    pairs = as_pairs({"host": "localhost", "content-type": "application/json", **given})
    return [begun(front, "POST", "/mcp", body, pairs) for body in bodies]


@rows(
    ("body", "headers", "status", "ident"),
    [
        (frame_of(request(7, "ping")), {}, 500, 7),
        (PING, {"mcp_session_id": "s"}, 200, "q"),
        (frame_of(request(True, "ping")), {}, 500, None),
        (b"[", {}, 500, None),
    ],
)
def test_a_mistake_of_ours_is_one_answer_by_id_that_says_nothing_of_it(
    body: bytes, headers: dict[str, str], status: int, ident: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: Any) -> None:
        raise RuntimeError("a mistake of ours, with a secret in it")

    async def scenario() -> Any:
        return await asked(Scripted(fails), body, **headers)[0].answer()

    caplog.clear()
    with caplog.at_level(logging.ERROR, "assay"):
        answer = run(scenario())
    assert (answer.status, answer.json().get("id"), answer.error()["code"]) == (status, ident, -32603)
    assert b"secret" not in answer.body
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_one_long_body_too_many_is_refused_and_short_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are bounded together until they are answered."""
    long = frame_of(request(1, "ping", {"_meta": {"x": "x" * LONG_BODY}}))
    monkeypatch.setattr(http_front, "BODIES", 2 * len(long))

    async def scenario() -> None:
        go = asyncio.Event()

        async def slow(request: HttpRequest, send: Send) -> None:
            if len(request.frame) > LONG_BODY:
                await go.wait()
            await reply(send, 200, b"{}")

        *waiting, refused, short = asked(Scripted(slow), long, long, long, PING)
        await settled()
        assert ((await refused.answer()).status, refused.so_far.error()["code"]) == (503, -31016)
        assert (await short.answer()).status == 200
        assert [each.is_silent for each in waiting] == [True, True]
        go.set()
        assert [(await each.answer()).status for each in waiting] == [200, 200]

    run(scenario())


def test_records_are_written_before_a_response_that_took_long() -> None:
    """A task of the connection has taken over when the response comes; it is sent then without a buffer."""
    steps: list[str] = []

    class Timeless:
        """An exchange of which only its time is asked for."""

        def keep_time(self) -> None:
            """Apply the time limit."""

    async def send(message: dict[str, Any]) -> None:
        steps.append(message["type"])

    async def never() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def scenario() -> None:
        comes = asyncio.Event()
        nothing: Any = None
        exchange: Any = Timeless()
        awaited = AwaitedExchange(nothing, 0.0, lambda: steps.append("commit"))

        async def work() -> None:
            await comes.wait()
            steps.append("record")
            await awaited.send({"type": "start", "status": 200, "headers": []})
            await awaited.send({"type": "body", "body": b"{}"})

        awaited.start(exchange, work())
        writing = asyncio.ensure_future(awaited.carry_on(never, send))
        await settled()
        steps.clear()
        comes.set()
        await writing

    run(scenario())
    assert steps[:3] == ["record", "commit", "start"]
    assert "body" in steps[3:]


# ── a server that is started on first use ────────────────────────────────────────────────────────────────────────────


def answered(hosted: Hosted, frame: bytes = PING, **headers: str) -> tuple[int, Any]:
    """What it answers."""
    head = read_head("POST", as_pairs({name.replace("_", "-"): value for name, value in headers.items()}))
    assert isinstance(head, RequestHead)
    found = answer_of(lambda receive, send: hosted.answer(HttpRequest(head, b"", frame, "anonymous"), receive, send))
    return found.status, json.loads(found.body)


def test_a_server_is_made_once_when_it_is_first_asked_and_tried_again_if_that_fails() -> None:
    made: list[Scripted] = []
    failures = 2

    async def echoes(_: HttpRequest, send: Send) -> None:
        await reply(send, 200, b"%d" % len(made))

    def make() -> Backend:
        nonlocal failures
        if failures:
            failures -= 1
            raise OSError("too many open files")
        made.append(Scripted(echoes))
        return made[-1]

    hosted = Hosted(HostedEntry("a", ("x",)), make)
    assert hosted.state == "idle"
    status, body = answered(hosted)
    assert (status, body["id"], body["error"]["code"], hosted.state) == (502, "q", -31011, "failed")
    status, body = answered(hosted, mcp_session_id="s")
    assert (status, body["id"]) == (200, "q")
    assert [answered(hosted) for _ in range(2)] == [(200, 1), (200, 1)]
    assert (hosted.state, hosted.trouble) == ("running", "")
    hosted.stop()
    assert made[0].is_stopped

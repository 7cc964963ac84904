"""A mistake of ours, wherever it is: whoever waits gets one error, the log says what happened, the guard goes on."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from assay.base.limits import DEFAULT
from assay.base.verdict import Party, Verdict
from assay.core.conversation import Conversation
from assay.edges.backend import HttpRequest
from assay.edges.child_backend import ChildBackend
from assay.edges.http.heads import RequestHead, read_head
from assay.guard import internal_errors
from assay.guard.factory import SessionFactory
from assay.guard.id_map import IdMap
from assay.guard.sinks import Sink, Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Mode, Terms
from assay.spec.revisions import LATEST
from kit.guard_process import liar
from kit.hosted import NEWEST, hosting
from kit.http_client import BOTH, SECONDS, call, frame_of, initialize, modern, request

Told = tuple[int, bytes, dict[bytes, bytes]]


class Mistaken:
    """A judge with a mistake: it breaks at the answer to a call, until it is repaired."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_repaired = False
        hear = Conversation.hear

        def broken(conversation: Conversation, party: Party, frame: bytes, *given: Any) -> Verdict:
            if not self.is_repaired and party is Party.SERVER and b'"structuredContent"' in frame:
                raise ZeroDivisionError("a mistake")
            return hear(conversation, party, frame, *given)

        monkeypatch.setattr(Conversation, "hear", broken)
        monkeypatch.setattr(internal_errors, "_logged", set())


class MistakenSink(Sink):
    """A place for records with a mistake: it records nothing."""

    def passed(self, *_: Any) -> None:
        """Break."""
        raise ZeroDivisionError("a mistake")

    found = guard_frame = passed


def factory_of(mode: Mode = "enforce", timeout: float = 60.0, *sinks: Sink) -> SessionFactory:
    """What makes sessions."""
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=mode == "enforce")
    return SessionFactory(Terms(mode, DEFAULT, timeout), Sinks(sinks), watch)


async def asked(children: ChildBackend, message: Any, headers: dict[str, Any]) -> Told:
    """What comes of a request."""
    pairs = [(name.encode(), value if isinstance(value, bytes) else value.encode()) for name, value in headers.items()]
    head = read_head("POST", pairs)
    assert isinstance(head, RequestHead)
    request = HttpRequest(head, b"", frame_of(message), "anonymous")
    told: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def send(event: dict[str, Any]) -> None:
        told.append(event)

    async with asyncio.timeout(SECONDS):
        await children.answer(request, receive, send)
    body = b"".join(each.get("body", b"") for each in told)
    return told[0]["status"], body, dict(told[0]["headers"])


async def in_session(children: ChildBackend) -> dict[str, Any]:
    status, _, headers = await asked(children, initialize(NEWEST), {**BOTH})
    assert status == 200
    return {**BOTH, "accept": "application/json", "mcp-session-id": headers[b"mcp-session-id"]}


async def without_session(_: ChildBackend) -> dict[str, Any]:
    return {}


OPENED = pytest.mark.parametrize("opened", [in_session, without_session], ids=["own-child", "without-session"])


@OPENED
@pytest.mark.parametrize("answers", [True, False], ids=["answered", "late"])
def test_records_that_fail_change_no_answer(
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    answers: bool,
    opened: Callable[[ChildBackend], Awaitable[dict[str, Any]]],
) -> None:
    monkeypatch.setattr(internal_errors, "_logged", set())
    factory = factory_of("enforce", 60.0 if answers else 1.0, MistakenSink())
    command = liar() if answers else liar(on={"tools/call": []})

    async def said() -> None:
        children = ChildBackend(factory, command)
        try:
            headers = [await opened(children) for _ in range(2)]
            for _, body, _ in await asyncio.gather(*(_called(children, each) for each in headers)):
                answer = json.loads(body)
                assert answer["id"] == 7
                assert "result" in answer if answers else answer["error"]["code"] == -31012
        finally:
            await children.close()

    with caplog.at_level(logging.ERROR, "assay"):
        asyncio.run(said())
    assert any(each.exc_info and each.exc_info[0] is ZeroDivisionError for each in caplog.records)


@pytest.mark.parametrize("mode", ["audit", "enforce"])
@OPENED
def test_a_mistake_fails_one_request_and_the_child_and_its_clients_go_on(
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    mode: Mode,
    opened: Callable[[ChildBackend], Awaitable[dict[str, Any]]],
) -> None:
    """Under audit the answer is forwarded as it came: nothing but the record of it is lost."""
    mistaken = Mistaken(monkeypatch)
    factory = factory_of(mode)
    pids = tmp_path / "pids"
    command = liar(start=[["pid"]], received=str(pids))

    async def said() -> None:
        children = ChildBackend(factory, command)
        try:
            headers, other = await opened(children), await opened(children)
            answer = json.loads((await _called(children, headers))[1])
            assert answer["id"] == 7
            if mode == "audit":
                assert "result" in answer
            else:
                assert answer["error"]["code"] == -32603
                assert answer["error"]["data"]["violations"][0]["rule"] == "guard/failure"
            mistaken.is_repaired = True
            for each in (headers, other):
                assert "result" in json.loads((await _called(children, each))[1])
        finally:
            await children.close()

    with caplog.at_level(logging.ERROR, "assay"):
        asyncio.run(said())
    assert len(caplog.records) == 1
    started = [each for each in pids.read_text().split("\n") if each.isdigit()]
    assert len(started) == (1 if opened is without_session else 2), "no child was started again"


async def _called(children: ChildBackend, headers: dict[str, Any]) -> Told:
    message = call(7, "search", {"words": "sea"}, "" if headers else LATEST)
    return await asked(children, message, headers or modern(message))


def test_sessions_are_counted_for_whoever_looks_at_the_metrics() -> None:
    factory = factory_of()

    async def counted() -> list[int]:
        children = ChildBackend(factory, liar())
        try:
            before = children.sessions
            await in_session(children)
            return [before, children.sessions]
        finally:
            await children.close()

    assert asyncio.run(counted()) == [0, 1]


SHAPES: list[Any] = [[], [1], "x", 5, None, {"progressToken": [1]}, {"requestId": {}}, {"_meta": [1]}]
METHODS = ["notifications/progress", "notifications/cancelled", "notifications/message", "roots/list", "nope"]
ODD = [
    {"jsonrpc": "2.0", "method": method, **more, **params}
    for method in METHODS
    for more in ({}, {"id": 5}, {"id": [5]})
    for params in ({}, *({"params": each} for each in SHAPES))
]
"""Messages whose params are of every type, with and without an id."""


@pytest.mark.parametrize("mode", ["audit", "enforce"])
@pytest.mark.parametrize("kind", ["own", "stateless"])
def test_nothing_that_a_server_says_makes_us_end_it(tmp_path: Path, mode: str, kind: str) -> None:
    """Under audit all of it is forwarded, as far as it can be said whom it is for."""
    odd = [["say", each] for each in ODD]
    received = tmp_path / "received"
    on = {"tools/list": [*odd, ["good"]]}
    script: dict[str, Any] = {"start": [["pid"]], "on": on, "received": str(received)}
    with hosting(tmp_path, "--mode", mode, **script) as service:
        if kind == "stateless":
            message = request(1, "tools/list", {}, LATEST)
            message["params"]["_meta"]["progressToken"] = "t"
            headers: dict[str, Any] = modern(message)
        else:
            message = request(1, "tools/list", {"_meta": {"progressToken": "t"}})
            headers = service.session(NEWEST)
        for _ in range(2):
            answer = service.post(message, headers)
            assert b'"id":1,' in answer.body
            assert b'"inputSchema"' in answer.body
        assert "Traceback" not in service.log.so_far()
    assert len([each for each in received.read_text().split("\n") if each.isdigit()]) == 1


@pytest.mark.parametrize("mode", ["audit", "enforce"])
@pytest.mark.parametrize("kind", ["own", "stateless"])
def test_nothing_that_a_client_says_makes_us_end_a_server(tmp_path: Path, mode: str, kind: str) -> None:
    received = tmp_path / "received"
    asks, tells = ["prompts/list", "nope"], ["notifications/cancelled", "notifications/progress", "notifications/nope"]
    on = {**{each: [["result", {}]] for each in asks}, **{each: [] for each in tells}}
    script: dict[str, Any] = {"start": [["pid"]], "on": on, "received": str(received)}
    with hosting(tmp_path, "--mode", mode, **script) as service:
        session = None if kind == "stateless" else service.session(NEWEST)
        good = request("good", "tools/list", {}, "" if session else LATEST)
        for method in [*asks, *tells]:
            for params in ({}, *({"params": each} for each in SHAPES)):
                odd = {"jsonrpc": "2.0", **({"id": 3} if method in asks else {}), "method": method, **params}
                headers = session or {**modern(good), "mcp-method": method, "x-principal": "bob"}
                assert service.post(odd, headers).status < 500
        assert service.post(good, session or modern(good)).json()["id"] == "good"
        assert "Traceback" not in service.log.so_far()
    assert len([each for each in received.read_text().split("\n") if each.isdigit()]) == 1


def test_an_answer_that_cannot_be_routed_fails_its_request_only(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake in the map of ids: who has asked is still known by the number in the answer."""
    factory = factory_of()

    def breaks(*_: Any) -> Any:
        raise ZeroDivisionError("a mistake")

    async def said() -> None:
        children = ChildBackend(factory, liar())
        try:
            headers = await without_session(children)
            with monkeypatch.context() as broken:
                broken.setattr(IdMap, "answer", breaks)
                broken.setattr(internal_errors, "_logged", set())
                answer = json.loads((await _called(children, headers))[1])
                assert (answer["id"], answer["error"]["code"]) == (7, -32603)
            assert "result" in json.loads((await _called(children, headers))[1])
        finally:
            await children.close()

    with caplog.at_level(logging.ERROR, "assay"):
        asyncio.run(said())
    assert len(caplog.records) == 1

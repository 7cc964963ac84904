"""A mistake of ours, wherever it is: whoever waits gets one error, the log says what happened, the guard goes on."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any

import pytest
from guarded import liar
from hosted import NEWEST
from http_client import BOTH, SECONDS, call, frame_of, initialize, modern

from assay.edges.guard.front.guarded import Request
from assay.edges.guard.http_to_child.children import Children
from assay.edges.guard.http_to_child.childtalk import Talk
from assay.edges.guard.overseer import Oversight
from assay.edges.recorder import Recorder, Records
from assay.guard import failure
from assay.guard.terms import Terms
from assay.limits import DEFAULT
from assay.spec.revisions import LATEST
from assay.verdict import Party, Verdict

Told = tuple[int, bytes, dict[bytes, bytes]]


class Mistaken:
    """Somebody who watches, and has a mistake: it breaks at what *breaks* says, until it is mended."""

    def __init__(self, breaks: Callable[[Verdict], bool]) -> None:
        self._breaks = breaks
        self.mended = False

    def heard(self, verdict: Verdict, _: float) -> None:
        if not self.mended and self._breaks(verdict):
            raise ZeroDivisionError("a mistake")

    passed = heard

    def aside(self, data: bytes) -> None:
        """Nothing is printed here."""

    def another(self) -> "Mistaken":
        return self

    def flight(self, _: str, __: Sequence[str] = ()) -> str | None:
        return None


def _is_late(verdict: Verdict) -> bool:
    return verdict.kind == "missing"


def _is_answer(verdict: Verdict) -> bool:
    """Also what stands for one: not even the end of the server can be told."""
    return verdict.party is Party.SERVER and verdict.method == "tools/call"


async def asked(children: Children, message: Any, headers: dict[str, Any]) -> Told:
    """What comes of a request."""
    pairs = [(name.encode(), value if isinstance(value, bytes) else value.encode()) for name, value in headers.items()]
    request = Request("POST", dict(pairs), pairs, b"", frame_of(message), "anonymous")
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


async def in_session(children: Children) -> dict[str, Any]:
    status, _, headers = await asked(children, initialize(NEWEST), {**BOTH})
    assert status == 200
    return {**BOTH, "accept": "application/json", "mcp-session-id": headers[b"mcp-session-id"]}


async def without_session(_: Children) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("breaks", [_is_late, _is_answer])
@pytest.mark.parametrize(
    ("opened", "shared"),
    [(in_session, False), (in_session, True), (without_session, False)],
    ids=["own-child", "shared-child", "without-session"],
)
def test_nobody_waits_for_ever_and_the_server_goes_on(
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    breaks: Callable[[Verdict], bool],
    opened: Callable[[Children], Awaitable[dict[str, Any]]],
    shared: bool,
) -> None:
    monkeypatch.setattr(failure, "_logged", set())
    watcher = Mistaken(breaks)
    answers = breaks is _is_answer
    late = 60.0 if answers else 0.2
    recorder = Recorder("http", "/mcp", Records(None), holding=True)
    oversight = Oversight(Terms("enforce", DEFAULT, late), recorder, watcher)
    command = liar() if answers else liar(on={"tools/call": []})

    async def said() -> None:
        children = Children(oversight, command, shared=shared)
        try:
            headers = [await opened(children) for _ in range(2)]
            every = await asyncio.gather(*(_called(children, each) for each in headers))
            for _, body, _ in every:
                answer = json.loads(body)
                assert answer["id"] == 7
                assert answer["error"]["code"] == (-32603 if answers else -32012)
            watcher.mended = True
            # In the same sessions, and so by the same servers.
            for each in headers:
                _, body, _ = await _called(children, each)
                assert ("result" if answers else "error") in json.loads(body)
        finally:
            await children.close()

    with caplog.at_level(logging.ERROR, "assay"):
        asyncio.run(said())
    assert any(each.exc_info and each.exc_info[0] is ZeroDivisionError for each in caplog.records)


def test_who_comes_right_after_a_mistake_gets_another_server(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake beside the guard: the server that was killed for it is still there for a moment."""
    watcher = Mistaken(lambda _: False)
    from_server = Talk.from_server

    def mistaken(talk: Talk, frame: bytes, rest: bytes = b"") -> None:
        if not watcher.mended and b"structuredContent" in frame:
            raise ZeroDivisionError("a mistake")
        from_server(talk, frame, rest)

    monkeypatch.setattr(Talk, "from_server", mistaken)
    recorder = Recorder("http", "/mcp", Records(None), holding=True)
    oversight = Oversight(Terms("enforce", DEFAULT, 60.0), recorder, watcher)

    async def said() -> None:
        children = Children(oversight, liar(), shared=True, clock=lambda: monotonic() + 10 * watcher.mended)
        try:
            _, body, _ = await _called(children, await in_session(children))
            assert b"its log says why" in body
            watcher.mended = True
            _, body, _ = await _called(children, await in_session(children))
            assert "result" in json.loads(body)
        finally:
            await children.close()

    with caplog.at_level(logging.ERROR, "assay"):
        asyncio.run(said())
    assert len(caplog.records) == 1


async def _called(children: Children, headers: dict[str, Any]) -> Told:
    message = call(7, "search", {"words": "sea"}, "" if headers else LATEST)
    return await asked(children, message, headers or modern(message))


def test_sessions_are_counted_for_whoever_looks_at_the_metrics() -> None:
    recorder = Recorder("http", "/mcp", Records(None), holding=True)
    oversight = Oversight(Terms("enforce", DEFAULT, 60.0), recorder, Mistaken(lambda _: False))

    async def counted() -> list[int]:
        children = Children(oversight, liar())
        try:
            before = children.sessions
            await in_session(children)
            return [before, children.sessions]
        finally:
            await children.close()

    assert asyncio.run(counted()) == [0, 1]

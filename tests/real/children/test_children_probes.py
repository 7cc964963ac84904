"""A client that probes for 2026-07-28 and goes on with a session: what it has probed with does not stay for long."""

import asyncio
from typing import Any

import pytest

from assay.base.limits import DEFAULT
from assay.edges.backend import HttpRequest
from assay.edges.child_backend import PROBED, ChildBackend
from assay.edges.http.heads import RequestHead, read_head
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.spec.revisions import LATEST
from kit.guard_process import liar
from kit.http_client import frame_of, modern, request

NO = {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32601, "message": "no such method"}}
SCRIPTS: dict[str, dict[str, Any]] = {"refuses": {"on": {"server/discover": [["say", NO]]}}, "lists": {}}


async def asked(children: ChildBackend, method: str) -> int:
    """The status of what a client gets for a request without a session."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    message = request(1, method, {}, LATEST)
    pairs = [
        (name.encode(), each if isinstance(each, bytes) else each.encode()) for name, each in modern(message).items()
    ]
    head = read_head("POST", pairs)
    assert isinstance(head, RequestHead)
    async with asyncio.timeout(30):
        await children.answer(HttpRequest(head, b"", frame_of(message), "anonymous"), receive, send)
    status: int = sent[0]["status"]
    return status


async def stays(script: dict[str, Any], methods: list[str]) -> bool:
    """Whether the child is still needed some seconds after a client asked it *methods*."""
    now = [0.0]
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    factory = SessionFactory(Terms("enforce", DEFAULT, 60.0), Sinks(), watch)
    children = ChildBackend(factory, liar(**script), errors=lambda _: None, clock=lambda: now[0])
    try:
        for each in methods:
            await asked(children, each)
        children.sweep()
        assert children.running
        now[0] += PROBED + 0.1
        children.sweep()
        # The end begins in a task of its own.
        await asyncio.sleep(0)
        return children._stateless.child.pipe is not None
    finally:
        await children.close()
        assert not children.running


@pytest.mark.parametrize(
    ("how", "methods", "kept"),
    [
        pytest.param("refuses", ["server/discover"], False, id="refused-probe"),
        pytest.param("lists", ["tools/list"], True, id="result"),
        pytest.param("refuses", ["tools/list", "server/discover"], True, id="result-and-refusal"),
    ],
)
def test_a_child_that_only_refuses_is_not_kept(how: str, methods: list[str], kept: bool) -> None:
    assert asyncio.run(stays(SCRIPTS[how], methods)) == kept

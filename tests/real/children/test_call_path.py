"""
How many Python calls, in how many modules, a call of a tool passes through on its way from HTTP to a child and back.

Only calls in this project count; the child runs in a process of its own. The figures are pinned so that the path stays
short: a change that makes it longer is to be seen.
"""

import asyncio
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import uvicorn

from assay.base.limits import DEFAULT
from assay.edges.auth import Principal
from assay.edges.child_backend import ChildBackend
from assay.edges.http.access import Door
from assay.edges.http.http_server import Connection, HttpServer, listening
from assay.edges.http.origin_check import Safety
from assay.edges.http_front import Front
from assay.edges.recorder import Recorder, Records
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.records.journal.writer import Journal
from assay.settings.http_section import Http
from assay.spec.revisions import LATEST
from kit.guard_process import liar
from kit.hosted import NEWEST
from kit.http_client import BOTH, SECONDS, Wire, call, frame_of, initialize, modern, request
from kit.places import ROOT

SOURCE = str(ROOT / "src" / "assay")
CALLS = 50


class Caller(threading.Thread):
    """A client in a thread of its own, which is not counted."""

    def __init__(self, address: tuple[str, int], revision: str, server: HttpServer) -> None:
        super().__init__(daemon=True)
        self.address, self.revision, self.server = address, revision, server
        self.loop = asyncio.get_running_loop()
        self.seen: Counter[tuple[str, str]] = Counter()
        self.wrong: list[Any] = []
        self.last = 0

    def run(self) -> None:
        """Open, list, call a few times uncounted, then count."""
        with Wire(self.address) as self.wire:
            self.headers: dict[str, Any] = {}
            if self.revision != LATEST:
                opened = self._post(initialize(self.revision), BOTH)
                self.headers = {**BOTH, "mcp-session-id": opened.header("mcp-session-id")}
                self._post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', self.headers)
            listing = request("list", "tools/list", {}, "" if self.headers else LATEST)
            self._post(listing, self.headers or modern(listing))
            self._call(CALLS)
            self._on_loop(lambda: sys.setprofile(self._count))
            self._call(CALLS)
            self._on_loop(lambda: sys.setprofile(None))
        self.server.should_exit = True

    def _post(self, message: Any, headers: Any) -> Any:
        self.wire.say("POST", "/mcp", frame_of(message), headers)
        return self.wire.answer()

    def _call(self, times: int) -> None:
        for _ in range(times):
            self.last += 1
            message = call(self.last, "search", {"words": "sea"}, "" if self.headers else LATEST)
            answer = self._post(message, self.headers or modern(message))
            if answer.json().get("result", {}).get("structuredContent") is None:
                self.wrong.append(answer)

    def _on_loop(self, act: Any) -> None:
        done = threading.Event()
        self.loop.call_soon_threadsafe(act)
        self.loop.call_soon_threadsafe(done.set)
        done.wait(SECONDS)

    def _count(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE):
            self.seen[code.co_filename.removeprefix(SOURCE), code.co_qualname] += 1


async def counted(directory: Path, revision: str) -> Caller:
    """Serve one client that calls a tool, and count."""
    journal = Journal.open(str(directory), log=lambda _: None)
    recorder = Recorder("http", "/mcp", Records(journal), holding=True)
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    factory = SessionFactory(Terms("enforce", DEFAULT, 60.0), Sinks(recorder.sinks), watch)
    backend = ChildBackend(factory, liar())
    door = Door(Safety(), None, Principal("anonymous", "free"))
    front = Front({"/mcp": backend}, door, Http(), frame_bytes=DEFAULT.frame_bytes, metrics=bytes)
    Connection.outbox.flush = front.flush
    config = uvicorn.Config(front, http=Connection, log_config=None, lifespan="off", access_log=False, loop="asyncio")
    config.proxy_headers = False
    server = HttpServer(config, front, Http(), lambda: None)
    sock = listening("127.0.0.1", 0)
    caller = Caller(sock.getsockname(), revision, server)
    caller.start()
    async with asyncio.timeout(SECONDS):
        await server.serve(sockets=[sock])
    assert journal is not None
    journal.close()
    return caller


@pytest.mark.parametrize(("revision", "most", "modules"), [(NEWEST, 81, 23), (LATEST, 120, 38)])
def test_a_call_of_a_tool_takes_a_short_way(tmp_path: Path, revision: str, most: int, modules: int) -> None:
    caller = asyncio.run(counted(tmp_path, revision))
    assert not caller.wrong
    # What is done once a second is not part of the way.
    way = {place: times for place, times in caller.seen.items() if times >= CALLS}
    lines = [f"{times / CALLS:5.1f} {place[0]} {place[1]}" for place, times in sorted(way.items())]
    files = {place[0] for place in way}
    calls = round(sum(way.values()) / CALLS)
    assert calls <= most, "\n".join([f"{calls} calls in {len(files)} modules", *lines])
    assert len(files) <= modules, "\n".join([f"{calls} calls in {len(files)} modules", *lines])

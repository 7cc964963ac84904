"""
The events of a console for one page.

The store of rows is the queue: a slow page only has a place in it. A page whose place was dropped, or that is too far
behind, is asked to load everything again.
"""

import asyncio
from collections.abc import Callable, Iterator
from math import inf
from time import time
from typing import Any, Final

import orjson

from assay.console.console_state import ConsoleState
from assay.edges.http.replies import Send
from assay.ladder.events import unbroken

MOST_PAGES: Final = 16
"""Maximal pages that listen at once."""

MOST_ROWS: Final = 2_000
"""Maximal rows of one event."""

MOST_BEHIND: Final = 20_000
"""Rows that a page may be behind; loading all rows again is then faster."""

PACE: Final = 0.2
"""Seconds between two events with rows."""

SLOW_PACE: Final = 0.2
"""Seconds between two events about servers, findings, sessions and contracts."""

RATES_PACE: Final = 5.0
"""Seconds after which the rates of servers are sent again, if nothing else has come."""

KEEP_ALIVE: Final = 15.0
"""Seconds until a comment is sent, if nothing else was."""


class ChangeSignal:
    """Wakes all pages when something has changed, or the console ends."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.over = False

    def changed(self) -> None:
        """Wake all pages."""
        event, self._event = self._event, asyncio.Event()
        event.set()

    def end(self) -> None:
        """End all streams."""
        self.over = True
        self.changed()

    async def wait(self, gone: "asyncio.Future[Any]", seconds: float) -> None:
        """Wait for a change, at most *seconds*, or until the page is *gone*."""
        waiting = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait({waiting, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()


def event(kind: str, data: Any) -> bytes:
    """Return an event of a stream. JSON has no line breaks, so one line of data is enough."""
    return f"event: {kind}\ndata: ".encode() + unbroken(orjson.dumps(data)) + b"\n\n"


class EventStream:
    """The stream of one page."""

    def __init__(
        self, state: ConsoleState, epoch: str, seq: int, tick: int, *, servers: Callable[[], list[Any]]
    ) -> None:
        """Begin behind the row *seq*, with what has changed since *tick*; *servers* returns all servers."""
        self._state, self._epoch, self._seq = state, epoch, seq
        self._servers = servers
        self._tick = tick
        self._dropped = state.dropped
        self._known_servers = 0
        self._slow_due = 0.0
        self._rates_due = inf
        """When the servers are sent again although nothing has come: their calls of the last minute become fewer."""

    @property
    def is_lost(self) -> bool:
        """Whether rows are missing for this page."""
        store = self._state.store
        return self._seq + 1 < store.oldest or self._seq > store.newest or store.newest - self._seq > MOST_BEHIND

    async def run(self, send: Send, gone: "asyncio.Future[Any]", signal: ChangeSignal) -> None:
        """Write events until the page is *gone* or the console ends. The head was sent already."""
        loop = asyncio.get_running_loop()
        spoken = loop.time()
        while not gone.done():
            if signal.over:
                await _body(send, event("bye", {}), more=False)
                return
            if self.is_lost:
                why = "rows are missing: the page was too slow, or the console was restarted"
                await _body(send, event("reset", {"why": why}), more=False)
                return
            made = b"".join(self._due(loop.time()))
            if made:
                await _body(send, made + self._place())
                spoken = loop.time()
                # The pace is kept whatever happens meanwhile: rows are gathered.
                await asyncio.wait({gone}, timeout=PACE)
            elif loop.time() - spoken >= KEEP_ALIVE:
                await _body(send, b": alive\n\n")
                spoken = loop.time()
            else:
                await signal.wait(gone, self._patience(loop.time(), spoken))

    def _place(self) -> bytes:
        """Return the place to resume at, as an event of its own without data: all events before it have come."""
        return f"id: {self._epoch}-{self._seq}-{self._tick}\n\n".encode()

    def _patience(self, now: float, spoken: float) -> float:
        """Return the seconds until something is to be sent without a further change."""
        due = min(spoken + KEEP_ALIVE, self._rates_due)
        return max(0.01, (min(due, self._slow_due) if self._state.tick > self._tick else due) - now)

    def _due(self, now: float) -> Iterator[bytes]:
        rows = self._state.store.after(self._seq, MOST_ROWS)
        if rows:
            self._seq += len(rows)
            if self._known_servers < self._state.newest_server:
                # Before its first row: a page chooses rows by the name of their server.
                yield self._rates(now)
            yield b'event: rows\ndata: {"rows":[' + unbroken(b",".join(rows)) + b"]}\n\n"
        if now >= self._slow_due and self._state.tick > self._tick:
            self._slow_due = now + SLOW_PACE
            yield from self._changes(now)
        elif now >= self._rates_due:
            yield self._rates(now)

    def _rates(self, now: float) -> bytes:
        """Return the event with all servers, and plan the next one while a rate is not zero."""
        self._known_servers = self._state.newest_server
        servers = self._servers()
        moves = any(each["callsPerMinute"] for each in servers)
        self._rates_due = now + RATES_PACE if moves else inf
        return event("servers", {"servers": servers, "now": time()})

    def _changes(self, now: float) -> Iterator[bytes]:
        state, since = self._state, self._tick
        self._tick = state.tick
        if state.changed_servers(since):
            yield self._rates(now)
        groups, sessions = state.findings.changed(since), state.sessions.changed(since)
        if groups:
            yield event("findings", {"groups": groups})
        if sessions:
            yield event("sessions", {"sessions": sessions})
        contracts = state.contracts.changed(since)
        if contracts:
            yield event("contracts", {"servers": contracts})
        if state.files_tick > since:
            yield event("files", {"loading": state.loading, "failed": state.failed})
        if state.dropped != self._dropped:
            self._dropped = state.dropped
            yield event("dropped", self._dropped)


async def _body(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})

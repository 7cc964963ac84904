"""
The events of a console for one page.

The store of rows is the queue: a slow page only has a place in it. A page whose place was dropped, or that is too far
behind, is asked to load everything again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from math import inf
from time import time
from typing import Any, Final

import orjson

from assay.console.state import ConsoleState
from assay.judge.events import unbroken

MOST_PAGES: Final = 16
"""Maximal pages that listen at once."""

MOST_ROWS: Final = 2_000
"""Maximal rows of one event."""

MOST_BEHIND: Final = 20_000
"""Rows that a page may be behind; loading all rows again is then faster."""

PACE: Final = 0.2
"""Seconds between two events of a kind: what comes meanwhile is gathered."""

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

    async def wait(self, seconds: float) -> None:
        """Wait for a change, at most *seconds*."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return


def event(kind: str, data: Any) -> bytes:
    """Return an event of a stream. JSON has no line breaks, so one line of data is enough."""
    return f"event: {kind}\ndata: ".encode() + unbroken(orjson.dumps(data)) + b"\n\n"


class EventStream:
    """The stream of one page."""

    def __init__(self, state: ConsoleState, epoch: str, seq: int, tick: int) -> None:
        """Begin behind the row *seq*, with what has changed since *tick*."""
        self._state, self._epoch, self._seq = state, epoch, seq
        self._tick = tick
        self._dropped = state.dropped
        self._rates_due = inf
        """When the servers are sent again although nothing has come: their calls of the last minute become fewer."""
        self.is_over = False
        """Whether the browser was signed out."""

    @property
    def is_lost(self) -> bool:
        """Whether rows are missing for this page."""
        store = self._state.store
        return self._seq + 1 < store.oldest or self._seq > store.newest or store.newest - self._seq > MOST_BEHIND

    async def run(self, signal: ChangeSignal) -> AsyncIterator[bytes]:
        """Yield events until the console ends."""
        loop = asyncio.get_running_loop()
        spoken = loop.time()
        # The head alone is not sent before the first bytes of the body.
        yield b"retry: 1000\n\n"
        while not self.is_over:
            if signal.over:
                yield event("bye", {})
                return
            if self.is_lost:
                why = "rows are missing: the page was too slow, or the console was restarted"
                yield event("reset", {"why": why})
                return
            made = b"".join(self._due(loop.time()))
            if made:
                yield made + self._place()
                spoken = loop.time()
                # The pace is kept whatever happens meanwhile: rows are gathered.
                await asyncio.sleep(PACE)
            elif loop.time() - spoken >= KEEP_ALIVE:
                yield b": alive\n\n"
                spoken = loop.time()
            else:
                await signal.wait(max(0.01, min(spoken + KEEP_ALIVE, self._rates_due) - loop.time()))

    def _place(self) -> bytes:
        """Return the place to resume at, as an event of its own without data: all events before it have come."""
        return f"id: {self._epoch}-{self._seq}-{self._tick}\n\n".encode()

    def _due(self, now: float) -> Iterator[bytes]:
        """Yield what has changed since the last call."""
        state, since = self._state, self._tick
        rows, self._tick = state.store.after(self._seq, MOST_ROWS), state.tick
        if state.tick > since or now >= self._rates_due:
            # Before the rows: a page chooses rows by the name of their server.
            servers = state.server_answers(time(), since)
            self._rates_due = now + RATES_PACE if any(each["callsPerMinute"] for each in servers) else inf
            yield from _event_with("servers", servers)
        if rows:
            self._seq += len(rows)
            yield b'event: rows\ndata: {"rows":[' + unbroken(b",".join(rows)) + b"]}\n\n"
        if state.tick == since:
            return
        yield from _event_with("findings", state.findings.answer(since)["groups"], "groups")
        yield from _event_with("sessions", state.sessions.answer(since))
        yield from _event_with("contracts", [each.id for each in state.servers if each.lists.tick > since], "servers")
        if state.files_tick > since:
            yield event("files", {"loading": state.loading, "failed": state.failed})
        if state.dropped != self._dropped:
            self._dropped = state.dropped
            yield event("dropped", self._dropped)


def _event_with(kind: str, changed: list[Any], member: str = "") -> Iterator[bytes]:
    """Yield an event with what has changed, if something has; its *member* is called like the event."""
    if changed:
        yield event(kind, {member or kind: changed})

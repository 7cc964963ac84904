"""
Where a console gets its records from: running guards, journals on this machine, and files of the command line.

Guards and journals are polled on the event loop; files are read and judged in a thread.
"""

import asyncio
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from math import inf
from operator import itemgetter
from time import monotonic, time
from typing import Any, Final, Protocol

from assay.console.console_state import ConsoleSource, ConsoleState
from assay.console.journal_shelf import JournalShelf, RunTail
from assay.console.time_order import WINDOW, TimedItem, TimeOrder, in_order
from assay.guard.internal_errors import log_once
from assay.records.journal.reading import Record
from assay.records.live.feed_items import RECORD, FeedItem, item_of, rows_of, text_of
from assay.records.live.listener_queue import ListenerQueue
from assay.records.live.live_feed import LiveFeed
from assay.records.live.live_sources import LiveSource, LiveSources

PAUSE: Final = 0.1
"""Seconds between two looks at what has come."""

_LOOKS: Final = 0.5
"""Seconds between two searches for new guards and journals."""

_AT_ONCE: Final = ("hello", "server")
"""Events that are taken at once: older records of the journal follow them."""

_MOST_AT_ONCE: Final = 1_000
"""Items that are taken before requests are answered again: some hundredths of a second."""


_MOST_BESIDE: Final = 50
"""The same beside a guard, whose messages wait meanwhile: some milliseconds."""


def _taken(state: ConsoleState, source: ConsoleSource, item: FeedItem) -> None:
    """Let *state* take an item. One that it cannot take is logged: those after it are shown all the same."""
    try:
        state.take(source, item, time())
    except Exception as error:
        log_once(error, "a record cannot be shown")


class MachinePump:
    """Feeds a console with all guards and journals of this user."""

    def __init__(
        self,
        state: ConsoleState,
        changed: Callable[[], None],
        directory: str | None,
        journals: Callable[[], Iterable[str]],
    ) -> None:
        """*directory* has the sockets of guards; *journals* returns the directories of journals."""
        self._state, self._changed = state, changed
        self._sources = LiveSources(directory, past=True)
        self._shelf = JournalShelf(journals)
        self._names: dict[int, tuple[LiveSource, ConsoleSource]] = {}
        """By the identity of the guard, which is kept so that no other gets it meanwhile."""
        self._count = 0
        self._order = TimeOrder()
        self._begun = False
        """Whether the journals of earlier runs were read. Before that the records of guards wait: they are newer."""

    async def run(self) -> None:
        """Take what comes, until it is cancelled."""
        looked = 0.0
        try:
            while True:
                looks = monotonic() - looked >= _LOOKS
                if looks:
                    looked = monotonic()
                    self._sources.look_around()
                await self._collect()
                if (looks or not self._begun) and not self._sources.pending:
                    self._begun = True
                    await self._from_journals()
                if self._begun:
                    await self._take(self._order.due(self._before()))
                await asyncio.sleep(PAUSE)
        finally:
            self._sources.close()
            self._shelf.close()

    def _before(self) -> float:
        """Return the time before which all items have come; what one source sends alone is in order."""
        now = time()
        self._order.clock(now)
        alone = len(self._sources.guards) + len(self._shelf.growing) <= 1
        return inf if alone else now - WINDOW

    async def _collect(self) -> None:
        """Hold what has come from guards, until it is taken in order."""
        for count, (source, item) in enumerate(self._from_guards(), 1):
            if item.event in _AT_ONCE:
                _taken(self._state, source, item)
                self._changed()
            else:
                self._order.add(source, item, time())
            if self._order.is_full:
                await self._take(self._order.due(0.0))
            if count % _MOST_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _take(self, items: Iterator[TimedItem]) -> None:
        count = 0
        for _, _, source, item in items:
            _taken(self._state, source, item)
            count += 1
            if count % _MOST_AT_ONCE == 0:
                self._changed()
                await asyncio.sleep(0)
        if count:
            self._changed()

    def _from_guards(self) -> Iterator[tuple[ConsoleSource, FeedItem]]:
        for news in self._sources.arrived():
            item = news.item
            if item.event in ("hello", "server"):
                for row in rows_of(item.data) if item.event == "hello" else [item.data]:
                    journal = row.get("journal")
                    if isinstance(journal, dict):
                        self._shelf.covered.add(text_of(journal, "run"))
            yield self._source(news.source), item
            if item.event == "bye":
                self._names.pop(id(news.source), None)

    def _source(self, live: LiveSource) -> ConsoleSource:
        known = self._names.get(id(live))
        if known is None:
            self._count += 1
            known = self._names[id(live)] = live, ConsoleSource(("guard", self._count), "guard")
        return known[1]

    async def _from_journals(self) -> None:
        tails = self._shelf.look_around()
        known = [(tail, tail.grows) for tail in self._shelf.growing]
        read = [_read_tail(tail) for tail in (*tails, *(each for each, _ in known))]
        await self._take(merge(self._order.due(self._before()), *read, key=itemgetter(0)))
        for tail in tails:
            self._shelf.keep(tail)
        for tail, grows in known:
            self._state.live(tail.source, "running" if grows else "ended")
            if not grows:
                self._shelf.drop(tail)


def _read_tail(tail: RunTail) -> Iterator[TimedItem]:
    """Yield what was written to a journal, up to an error of the file."""
    with suppress(OSError):
        yield from in_order(tail.source, tail.arrived(), time())


class GuardPump:
    """Feeds the console beside a guard with the feed of that guard."""

    def __init__(self, state: ConsoleState, changed: Callable[[], None], feed: LiveFeed) -> None:
        self._state, self._changed, self._feed = state, changed, feed
        self.source = ConsoleSource(("guard", os.getpid()), "guard")
        self._queue: ListenerQueue = feed.join()
        self._rest = b""
        self._waiting: deque[bytes] = deque()
        """Lines that are not taken yet."""

    async def run(self) -> None:
        """Take what comes, until it is cancelled."""
        while True:
            while self.take(_MOST_BESIDE):
                await asyncio.sleep(0)
            await asyncio.sleep(PAUSE)

    def take(self, most: float = inf) -> bool:
        """Take at most so many items of what has come; return whether some are left."""
        self._feed.look()
        # The feed gathers lines before it puts them into the queues.
        self._feed.distribute()
        self._state.address(self.source, self._feed.address)
        count = 0
        while count < most and (self._waiting or self._fetch()):
            item = item_of(self._waiting.popleft())
            if item is not None:
                _taken(self._state, self.source, item)
                count += 1
        if count:
            self._changed()
        return count >= most

    def _fetch(self) -> bool:
        """Take the next lines from the queue of the feed; return whether there are any."""
        while not self._waiting and (piece := self._queue.piece()):
            data = bytes(piece)
            self._queue.sent(len(data))
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._waiting.extend(lines)
        return bool(self._waiting)


class FileEvidence(Protocol):
    """A file of the command line that is being read."""

    def records(self) -> Iterator[Record]:
        """Yield its records. Raises `EvidenceError`."""

    def notes(self) -> Iterable[str]:
        """Return remarks about it, after its last record."""


class EvidenceError(Exception):
    """A file cannot be read; the message is one line."""


class FilePump:
    """Reads and judges files in a thread, and hands their records to the event loop in batches."""

    def __init__(
        self,
        state: ConsoleState,
        changed: Callable[[], None],
        names: Sequence[str],
        opened: Callable[[str], FileEvidence],
    ) -> None:
        self._state, self._changed, self._names, self._opened = state, changed, list(names), opened
        # Full queues make the thread wait, so the memory is bounded.
        self._queue: queue.Queue[tuple[str, Any, Any]] = queue.Queue(8)
        self._over = threading.Event()

    async def run(self) -> None:
        """Take the records of all files."""
        loading, failed = list(self._names), [*self._state.failed]
        self._state.files(list(loading), failed)
        sources = {name: ConsoleSource(("file", name), "file", name) for name in self._names}
        threading.Thread(target=self._read, daemon=True).start()
        try:
            while loading:
                kind, name, what = await asyncio.to_thread(self._queue.get)
                if kind == "records":
                    for each in what:
                        _taken(self._state, sources[name], FeedItem(RECORD, each))
                elif kind == "end":
                    notes, why = what
                    loading.remove(name)
                    failed = [*failed, {"file": name, "why": why}] if why else failed
                    self._state.note(sources[name], notes)
                    self._state.files(list(loading), failed)
                self._changed()
        finally:
            self._over.set()

    def _read(self) -> None:
        for name in self._names:
            why, notes = "", []
            try:
                evidence = self._opened(name)
                self._put_all(name, evidence.records())
                notes = list(evidence.notes())
            except EvidenceError as error:
                why = str(error)
            except Exception as error:
                log_once(error, f"{name} could not be read")
                why = "an internal error; the log says why"
            self._put(("end", name, (notes, why)))

    def _put_all(self, name: str, records: Iterator[Record]) -> None:
        batch: list[Record] = []
        for each in records:
            batch.append(each)
            if len(batch) >= _MOST_AT_ONCE // 2:
                self._put(("records", name, batch))
                batch = []
        self._put(("records", name, batch))

    def _put(self, item: tuple[str, Any, Any]) -> None:
        while not self._over.is_set():
            with suppress(queue.Full):
                self._queue.put(item, timeout=1)
                return

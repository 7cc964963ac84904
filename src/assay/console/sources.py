"""
Where a console gets its records from: journals on this machine, and files of the command line.

Journals are polled on the event loop; files are read and judged in a thread.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from operator import itemgetter
from time import time
from typing import Any, Final, Protocol

from assay.console.journal_shelf import JournalShelf, RunTail
from assay.console.servers import ConsoleSource
from assay.console.state import ConsoleState
from assay.guard.internal_errors import log_once
from assay.records.record import Event, Record, seconds_of

PAUSE: Final = 0.1
"""Seconds between two looks at what has come."""

_ENDS: Final = 5
"""Looks after which those journals are found that are not written any more."""

_MOST_AT_ONCE: Final = 1_000
"""Items that are taken before requests are answered again: some hundredths of a second."""


def _taken(state: ConsoleState, source: ConsoleSource, item: Record | Event) -> None:
    """Let *state* take an item. One that it cannot take is logged: those after it are shown all the same."""
    try:
        state.take(source, item, time())
    except Exception as error:
        log_once(error, "a record cannot be shown")


class JournalPump:
    """Feeds a console with all journals of this user."""

    def __init__(
        self, state: ConsoleState, changed: Callable[[], None], directories: Callable[[], Iterable[str]]
    ) -> None:
        """*directories* returns the directories of journals that exist now."""
        self._state, self._changed = state, changed
        self._shelf = JournalShelf(directories)
        self._looks = 0

    async def run(self) -> None:
        """Take what comes, until it is cancelled."""
        try:
            while True:
                await self._look()
                await asyncio.sleep(PAUSE)
        finally:
            self._shelf.close()

    async def _look(self) -> None:
        """Take what was appended since the last look, by all guards in the order of time."""
        new = self._shelf.look_around()
        # Before it is read: what a process writes before it ends is read, too.
        self._looks += 1
        known = [(tail, self._looks % _ENDS > 0 or tail.grows) for tail in self._shelf.growing]
        await self._take(merge(*map(_read_tail, (*new, *(tail for tail, _ in known))), key=itemgetter(0)))
        for tail in new:
            self._state.live(tail.source, grows=self._shelf.keep(tail))
            self._changed()
        for tail, grows in known:
            if not grows:
                self._state.live(tail.source, grows=False)
                self._shelf.drop(tail)
                self._changed()

    async def _take(self, items: Iterator[tuple[float, ConsoleSource, Record | Event]]) -> None:
        count = 0
        for _, source, item in items:
            _taken(self._state, source, item)
            count += 1
            if count % _MOST_AT_ONCE == 0:
                self._changed()
                await asyncio.sleep(0)
        if count:
            self._changed()


def _read_tail(tail: RunTail) -> Iterator[tuple[float, ConsoleSource, Record | Event]]:
    """Yield what was written to a journal, up to an error of the file, with times that never go back."""
    last, now = 0.0, time()
    with suppress(OSError):
        for item in tail.arrived():
            last = max(last, min(seconds_of(item.ts, now), now))
            yield last, tail.source, item


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
                        _taken(self._state, sources[name], each)
                elif kind == "end":
                    notes, why = what
                    loading.remove(name)
                    failed = [*failed, {"file": name, "why": why}] if why else failed
                    self._state.note(sources[name], notes)
                    self._state.live(sources[name], grows=False)
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

"""
Where a console gets its records from: running guards, journals on this machine, and files of the command line.

Guards and journals are polled on the event loop; files are read and judged in a thread.
"""

import asyncio
import os
import queue
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from time import monotonic, time, time_ns
from typing import Any, Final, Protocol

from assay.console.console_state import ConsoleSource, ConsoleState
from assay.guard.internal_errors import log_once
from assay.records.journal import run_files, runs
from assay.records.journal.reading import Record
from assay.records.journal.runs import JournalRun
from assay.records.live.feed_items import RECORD, FeedItem, item_of, rows_of, text_of
from assay.records.live.listener_queue import ListenerQueue
from assay.records.live.live_feed import LiveFeed
from assay.records.live.live_sources import LiveSource, LiveSources

PAUSE: Final = 0.1
"""Seconds between two looks at what has come."""

_LOOKS: Final = 0.5
"""Seconds between two searches for new guards and journals."""

_MOST_AT_ONCE: Final = 1_000
"""Items that are taken before requests are answered again: some hundredths of a second."""

_MOST_RUNS: Final = 100
"""Maximal runs whose journals are read, the newest first; each that grows has an open file."""

_PAST_BYTES: Final = 4 << 20
"""Bytes at the end of a journal that are read for what happened before: some 8,000 records."""

_ALL_PAST_BYTES: Final = 48 << 20
"""The same for all journals: as many records as a console keeps."""

_GRACE: Final = 3.0
"""Seconds that a running guard has to announce its journal on its feed, before the journal is read itself."""

_SETTLED: Final = 10**9
"""Nanoseconds after which another change of a directory has a different time."""

_CHUNK: Final = 1 << 20
_LONGEST_LINE: Final = 32 << 20
"""Maximal bytes of a line, as of a feed."""


class RunTail:
    """The end of the journal of one run, and what is appended to it. Links are not followed."""

    def __init__(self, run: JournalRun, past: int) -> None:
        """Open the last file of *run*, at most *past* bytes before its end. Raises `OSError`."""
        self.run = run
        self.source = ConsoleSource(("run", run.name), "journal", runs.folder_name(run))
        self._path = run.paths[-1]
        self._descriptor = _opened(self._path)
        size = os.fstat(self._descriptor).st_size
        begin = max(0, size - past)
        os.lseek(self._descriptor, begin, os.SEEK_SET)
        self._rest = b""
        self._skips = begin > 0
        """Whether the first line is cut off."""

    @property
    def grows(self) -> bool:
        """Whether a process still writes it."""
        return run_files.is_written(self._path)

    def arrived(self) -> Iterator[FeedItem]:
        """Yield the records that were written since the last call."""
        while True:
            while data := os.read(self._descriptor, _CHUNK):
                yield from self._items(data)
            if not self._turn():
                return

    def _items(self, data: bytes) -> Iterator[FeedItem]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            self._rest, self._skips = b"", True
        for line in lines:
            if self._skips:
                self._skips = False
                continue
            item = item_of(line)
            if item is not None and item.event == RECORD:
                yield item

    def _turn(self) -> bool:
        """Continue with the next file of the run, if there is one."""
        files = run_files.files_of(self._path)
        later = [each for each in files if run_files.number_of(each) > run_files.number_of(self._path)]
        if not later:
            return False
        with suppress(OSError):
            descriptor = _opened(later[0])
            os.close(self._descriptor)
            self._descriptor, self._path, self._rest = descriptor, later[0], b""
            return True
        return False

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _opened(path: str) -> int:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path}: not a regular file")
    return descriptor


class JournalShelf:
    """The journals of this machine that no feed has: finished runs, and those of guards without a feed."""

    def __init__(self, directories: Callable[[], Iterable[str]]) -> None:
        self._directories = directories
        self.covered: set[str] = set()
        """The runs that come from a feed."""
        self._known: set[str] = set()
        self._seen: dict[str, int] = {}
        """When the directories were changed last."""
        self._growing: list[RunTail] = []
        self._past = _ALL_PAST_BYTES

    def look_around(self) -> list[RunTail]:
        """Return new journals to read, oldest first."""
        found = [run for run in self._runs() if run.name not in self._known | self.covered]
        now = time()
        made = []
        for run in sorted(found, key=runs.by_age, reverse=True)[:_MOST_RUNS]:
            if run.is_written and now - run.began < _GRACE:
                # Its guard may be about to announce it.
                self._seen.pop(os.path.dirname(run.path), None)
                continue
            self._known.add(run.name)
            made += self._tail(run)
        return made[::-1]

    def _tail(self, run: JournalRun) -> list[RunTail]:
        past = min(_PAST_BYTES, max(0, self._past))
        if not past and not run.is_written:
            return []
        self._past -= min(past, run.size)
        # Another process may have removed it.
        with suppress(OSError):
            return [RunTail(run, past)]
        return []

    def keep(self, tail: RunTail) -> None:
        """Follow a journal that still grows."""
        if tail.grows and len(self._growing) < _MOST_RUNS:
            self._growing.append(tail)
        else:
            tail.close()

    @property
    def growing(self) -> list[RunTail]:
        """The journals that grow."""
        return list(self._growing)

    def drop(self, tail: RunTail) -> None:
        """Follow a journal no longer."""
        self._growing.remove(tail)
        tail.close()

    def _runs(self) -> Iterator[JournalRun]:
        """Yield the runs of directories that have changed: a new name changes the time of its directory."""
        for directory in self._directories():
            with suppress(OSError):
                changed = os.stat(directory).st_mtime_ns
                if self._seen.get(directory) != changed:
                    # One that was changed a moment ago is read again: its time may be that of two changes.
                    self._seen[directory] = changed if time_ns() - changed > _SETTLED else 0
                    yield from runs.runs_in(directory)

    def close(self) -> None:
        """Close all files."""
        for tail in self._growing:
            tail.close()


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
        self._names: dict[int, ConsoleSource] = {}
        self._count = 0

    async def run(self) -> None:
        """Take what comes, until it is cancelled."""
        looked = 0.0
        try:
            while True:
                if monotonic() - looked >= _LOOKS:
                    looked = monotonic()
                    self._sources.look_around()
                    await self._take(self._from_guards())
                    if not self._sources.pending:
                        await self._from_journals()
                else:
                    await self._take(self._from_guards())
                await asyncio.sleep(PAUSE)
        finally:
            self._sources.close()
            self._shelf.close()

    async def _take(self, items: Iterator[tuple[ConsoleSource, FeedItem]]) -> None:
        count = 0
        for source, item in items:
            self._state.take(source, item, time())
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

    def _source(self, live: LiveSource) -> ConsoleSource:
        found = self._names.get(id(live))
        if found is None:
            self._count += 1
            # The source is kept, so that its number stays its own.
            found = self._names[id(live)] = ConsoleSource(("guard", self._count, live), "guard")
        return found

    async def _from_journals(self) -> None:
        for tail in self._shelf.look_around():
            await self._take((tail.source, item) for item in tail.arrived())
            self._shelf.keep(tail)
        for tail in self._shelf.growing:
            grows = tail.grows
            with suppress(OSError):
                await self._take((tail.source, item) for item in tail.arrived())
            self._state.live(tail.source, "running" if grows else "ended")
            if not grows:
                self._shelf.drop(tail)


class GuardPump:
    """Feeds the console beside a guard with the feed of that guard."""

    def __init__(self, state: ConsoleState, changed: Callable[[], None], feed: LiveFeed) -> None:
        self._state, self._changed, self._feed = state, changed, feed
        self.source = ConsoleSource(("guard", os.getpid()), "guard")
        self._queue: ListenerQueue = feed.join()
        self._rest = b""

    async def run(self) -> None:
        """Take what comes, until it is cancelled."""
        while True:
            self.take()
            await asyncio.sleep(PAUSE)

    def take(self) -> None:
        """Take what has come."""
        self._feed.look()
        # A feed may gather lines before it puts them into the queues.
        getattr(self._feed, "distribute", lambda: None)()
        self._state.address(self.source, self._feed.address)
        came = False
        while piece := self._queue.piece():
            data = bytes(piece)
            self._queue.sent(len(data))
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                item = item_of(line)
                if item is not None:
                    came = True
                    self._state.take(self.source, item, time())
        if came:
            self._changed()


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
                        self._state.take(sources[name], FeedItem(RECORD, each), time())
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

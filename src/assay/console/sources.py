"""
Where a console gets its records from: journals on this machine, and files of the command line.

Journals are polled on the event loop; files are read and judged in threads.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from heapq import merge
from itertools import islice, takewhile
from operator import itemgetter
from time import time, time_ns
from typing import Final, Protocol

from assay.console.servers import ConsoleSource
from assay.console.state import ConsoleState
from assay.edges.threads import beside
from assay.guard.internal_errors import log_once
from assay.records import run_files
from assay.records.reading import SETTLED, NewRuns, Pages
from assay.records.record import Event, Record, read_line, seconds_of
from assay.records.run_files import JournalRun

PAUSE: Final = 0.1
"""Seconds between two looks at what has come."""

_ENDS: Final = 5
"""Looks after which those journals are found that are not written any more."""

_MOST_AT_ONCE: Final = 1_000
"""Items that are taken before requests are answered again: some hundredths of a second."""

_MOST_RUNS: Final = 100
"""Maximal runs whose journals are read, the newest first, and that are followed; each has an open file."""

_PAST_BYTES: Final = 4 << 20
"""Bytes at the end of a journal that are read for what happened before: some 8,000 records."""

_ALL_PAST_BYTES: Final = 48 << 20
"""The same for all journals: as many records as a console keeps."""

_LONGEST_LINE: Final = 32 << 20
"""Maximal bytes of a line. A frame of 4 MiB, the longest in a record, has up to 24 MiB as JSON."""

_MOST_HEAD: Final = 100
"""Lines at the beginning of a file that are searched for the servers of its run."""


def _taken(state: ConsoleState, source: ConsoleSource, item: Record | Event) -> None:
    """Let *state* take an item. One that it cannot take is logged: those after it are shown all the same."""
    try:
        state.take(source, item, time())
    except Exception as error:
        log_once(error, "a record cannot be shown")


# ── journals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class RunTail:
    """The end of the journal of one run, and what is appended to it."""

    def __init__(self, run: JournalRun, past: int) -> None:
        """Open the last file of *run*, at most *past* bytes before its end. Raises `OSError`."""
        self.source = ConsoleSource(("run", run.name), "journal", run_files.folder_name(run))
        self._path = run.paths[-1]
        self._pages = Pages(self._path, whole=True, longest=_LONGEST_LINE)
        self._head: list[Record | Event] = []
        """What the file says about its servers, if its beginning is not read."""
        if os.path.getsize(self._path) > past:
            begin = map(read_line, islice(self._pages.arrived(), _MOST_HEAD))
            self._head = [each for each in takewhile(lambda item: isinstance(item, Event), begin) if each is not None]
            self._pages.skip(past)

    @property
    def grows(self) -> bool:
        """Whether a process still writes it: a file that was created just now may not be locked yet."""
        last = run_files.files_of(self._path)[-1]
        with suppress(OSError):
            return run_files.is_written(last) or time_ns() - os.stat(last).st_mtime_ns < SETTLED
        return False

    def arrived(self) -> Iterator[Record | Event]:
        """Yield the records and events that were written since the last call."""
        head, self._head = self._head, []
        yield from head
        yield from filter(None, map(read_line, self._pages.arrived()))

    def close(self) -> None:
        """Close the file."""
        self._pages.close()


class JournalPump:
    """Feeds a console with all journals of this user: those of finished runs, and of running guards."""

    def __init__(
        self, state: ConsoleState, changed: Callable[[], None], directories: Callable[[], Iterable[str]]
    ) -> None:
        """*directories* returns the directories of journals that exist now."""
        self._state, self._changed, self._runs = state, changed, NewRuns(directories)
        self._growing: list[RunTail] = []
        self._past = _ALL_PAST_BYTES
        self._looks = 0

    async def run(self) -> None:
        """Take what comes, until it is cancelled."""
        try:
            while True:
                await self._look()
                await asyncio.sleep(PAUSE)
        finally:
            for tail in self._growing:
                tail.close()

    async def _look(self) -> None:
        """Take what was appended since the last look, by all guards in the order of time."""
        new = self._new_tails()
        self._looks += 1
        # Before it is read: what a process writes before it ends is read, too.
        ended = [each for each in (*new, *(() if self._looks % _ENDS else self._growing)) if not each.grows]
        await self._take(merge(*map(_read_tail, (*new, *self._growing)), key=itemgetter(0)))
        for tail in dict.fromkeys((*new, *ended)):
            self._state.live(tail.source, grows=tail not in ended)
            self._changed()
        growing = [each for each in (*self._growing, *new) if each not in ended]
        self._growing = growing[:_MOST_RUNS]
        for tail in (*ended, *growing[_MOST_RUNS:]):
            tail.close()

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

    def _new_tails(self) -> list[RunTail]:
        """Return new journals to read, oldest first."""
        tails = []
        # The newest have the first claim on what is read of the past.
        for run in self._runs.found()[: -_MOST_RUNS - 1 : -1]:
            past = min(_PAST_BYTES, self._past)
            if past or run.is_written:
                self._past -= min(past, run.size)
                # Another process may have removed it.
                with suppress(OSError):
                    tails.append(RunTail(run, past))
        return tails[::-1]


def _read_tail(tail: RunTail) -> Iterator[tuple[float, ConsoleSource, Record | Event]]:
    """Yield what was written to a journal, up to an error of the file, with times that never go back."""
    last, now = 0.0, time()
    with suppress(OSError):
        for item in tail.arrived():
            last = max(last, min(seconds_of(item.ts, now), now))
            yield last, tail.source, item


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class FileEvidence(Protocol):
    """A file of the command line."""

    def records(self) -> Iterator[Record]:
        """Yield its records. Raises `EvidenceError`."""

    def notes(self) -> Iterable[str]:
        """Return remarks about it, after its last record."""


class EvidenceError(Exception):
    """A file cannot be read; the message is one line."""


class FilePump:
    """Reads and judges files, and takes their records in batches."""

    def __init__(self, state: ConsoleState, changed: Callable[[], None], files: Mapping[str, FileEvidence]) -> None:
        self._state, self._changed, self._files = state, changed, files

    async def run(self) -> None:
        """Take the records of all files."""
        loading, failed = list(self._files), self._state.failed
        self._state.files(loading, failed)
        for name, evidence in self._files.items():
            source = ConsoleSource(("file", name), "file", name)
            why = await self._read(source, evidence)
            loading = loading[1:]
            failed = [*failed, {"file": name, "why": why}] if why else failed
            self._state.live(source, grows=False)
            self._state.files(loading, failed)
            self._changed()

    async def _read(self, source: ConsoleSource, evidence: FileEvidence) -> str:
        """Take the records of a file; return why it could not be read to its end, or ""."""
        try:
            records = evidence.records()
            while batch := await beside(list[Record], islice(records, _MOST_AT_ONCE // 2)):
                for each in batch:
                    _taken(self._state, source, each)
                self._changed()
            self._state.note(source, list(evidence.notes()))
        except EvidenceError as error:
            return str(error)
        except Exception as error:
            log_once(error, f"{source.name} could not be read")
            return "an internal error; the log says why"
        return ""

"""
All that guards of this user are judging: the feeds of running guards, and the journals that grow without a feed.

One interface for both, for `assay top` and for consoles. Nothing here waits: the caller polls, or selects on `filenos`.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from time import time
from typing import Any, Final, NamedTuple

from assay.records.journal.following import Following, Source
from assay.records.journal.reading import Record, server_of
from assay.records.journal.run_files import is_run
from assay.records.live.feed_items import RECORD, FeedItem, item_of, rows_of, text_of
from assay.records.live.feed_reader import FeedReader
from assay.records.live.live_sockets import SUPPORTED, sockets_in

MOST_GUARDS: Final = 64
"""Maximal guards to listen to; each has a connection."""

PAST_BYTES: Final = 1 << 20
"""Bytes at the end of a journal to read for what happened before: some 2,000 records."""


class LiveSource:
    """A running guard, or a journal that grows."""

    def __init__(self, reader: FeedReader | None, journal: Source | None = None) -> None:
        self.reader = reader
        self.journal = journal
        self.count = 0
        """Records of a journal so far."""
        self.skips: dict[str, int] = {}
        """Records of a server that are known already, and come once more."""

    @property
    def hello(self) -> dict[str, Any] | None:
        """The first line of the guard; None for a journal."""
        return self.reader.hello if self.reader is not None else None

    @property
    def name(self) -> str:
        """The names of its servers; of a journal, its run."""
        if self.journal is not None:
            return self.journal.run.name
        names = [text_of(row, "name") for row in rows_of(self.hello or {})]
        return ", ".join(filter(None, names)) or "?"

    @property
    def is_live(self) -> bool:
        """Whether it is a running guard with a feed."""
        return self.reader is not None

    def is_known(self, record: Record) -> bool:
        """Whether *record* is one of those that come once more; it is counted off then."""
        if not self.skips:
            return False
        name = server_of(record)
        left = self.skips.get(name, 0) - 1
        if left <= 0:
            self.skips.pop(name, None)
        else:
            self.skips[name] = left
        return left >= 0


class LiveNews(NamedTuple):
    """An item of one source."""

    source: LiveSource
    item: FeedItem
    past: bool = False
    """Whether it was written before the reader came."""


class LiveSources:
    """The sources from now on; call `look_around` once or twice a second for new ones."""

    def __init__(
        self, directory: str | None, journals: Callable[[], Iterable[str]] = lambda: (), *, past: bool = False
    ) -> None:
        """
        *directory* has the sockets of guards; *journals* returns the directories of journals that exist now.

        With *past*, the last records of the journal of each guard come first.
        """
        self._directory = directory if SUPPORTED else None
        self._journals = journals
        self._past = past
        self._guards: dict[str, LiveSource] = {}
        self._given_up: set[str] = set()
        self._covered: set[str] = set()
        """The runs that come from a feed."""
        self._by_run: dict[str, LiveSource] = {}
        self._since = time()
        self._following: Following | None = None
        self.look_around()

    @property
    def guards(self) -> list[LiveSource]:
        """The running guards that have said hello."""
        return [each for each in self._guards.values() if each.hello is not None]

    @property
    def pending(self) -> bool:
        """Whether a guard has not said hello yet. Journals are searched only after that: a feed may have them."""
        return any(each.hello is None for each in self._guards.values())

    def filenos(self) -> list[int]:
        """Return the descriptors to wait for; a journal has none."""
        return [each.reader.fileno() for each in self._guards.values() if each.reader is not None]

    def look_around(self) -> None:
        """Find new guards and journals, and let go of those that have ended."""
        self._find_guards()
        if self.pending:
            return
        if self._following is None:
            self._following = Following(self._journals, None, self._since, skip=self._covered.__contains__)
        else:
            self._following.look_around()

    def arrived(self) -> Iterator[LiveNews]:
        """Yield what has come since the last call; the end of a guard comes as the event ``bye``."""
        was_pending = self.pending
        for path, source in list(self._guards.items()):
            yield from self._from_guard(path, source)
        if was_pending and not self.pending:
            self.look_around()
        for news in self._following.arrived() if self._following is not None else ():
            if news.entry.record is not None:
                source = self._by_run.setdefault(news.source.run.name, LiveSource(None, news.source))
                source.count += 1
                yield LiveNews(source, FeedItem(RECORD, news.entry.record))

    def close(self) -> None:
        """Close all connections and files."""
        for source in self._guards.values():
            if source.reader is not None:
                source.reader.close()
        if self._following is not None:
            self._following.close()

    # ── guards ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _find_guards(self) -> None:
        for path, _ in sockets_in(self._directory) if self._directory is not None else ():
            if path in self._guards or path in self._given_up or len(self._guards) >= MOST_GUARDS:
                continue
            # It may have ended just now; a socket of a killed guard is removed.
            with suppress(OSError):
                self._guards[path] = LiveSource(FeedReader(path))

    def _from_guard(self, path: str, source: LiveSource) -> Iterator[LiveNews]:
        reader = source.reader
        if reader is None:
            return
        said_bye = False
        for item in reader.arrived():
            if item.record is not None and source.is_known(item.record):
                continue
            if item.event == "refused":
                # The connection is over, and the item says nothing about a server.
                continue
            said_bye = said_bye or item.event == "bye"
            yield LiveNews(source, item)
            if item.event in ("hello", "server"):
                yield from self._cover(source, rows_of(item.data) if item.event == "hello" else [item.data])
        if reader.ended:
            del self._guards[path]
            if reader.hello is None:
                # It is not a guard, or has no room: it is not asked again.
                self._given_up.add(path)
            elif not said_bye:
                yield LiveNews(source, FeedItem("bye", {"event": "bye", "why": reader.why}))

    def _cover(self, source: LiveSource, rows: list[dict[str, Any]]) -> Iterator[LiveNews]:
        """Note the journals that the feed has the records of, and yield their last records if those are wanted."""
        for row in rows:
            journal = row.get("journal")
            run = text_of(journal, "run") if isinstance(journal, dict) else ""
            if not run or not isinstance(journal, dict) or run in self._covered:
                continue
            self._covered.add(run)
            before = self._by_run.pop(run, None)
            if before is not None and self._following is not None:
                # Its journal was found a moment before the feed announced it: these records come again.
                self._following.drop(run)
                source.skips[text_of(row, "name")] = before.count
            elif self._past:
                yield from _last_records(source, journal)


def _last_records(source: LiveSource, journal: dict[str, Any]) -> Iterator[LiveNews]:
    """Yield the last records of a journal, up to where its feed began."""
    path, end = journal.get("path"), journal.get("bytes")
    if not isinstance(path, str) or not isinstance(end, int):
        return
    begin = max(0, end - PAST_BYTES)
    try:
        data = _read(path, begin, min(end, begin + PAST_BYTES)) if is_run(path) else b""
    except (OSError, ValueError, OverflowError):
        return
    lines = data.split(b"\n")
    for line in lines[1:] if begin else lines:
        item = item_of(line)
        if item is not None and item.event == RECORD:
            yield LiveNews(source, item, past=True)


def _read(path: str, begin: int, end: int) -> bytes:
    # A link is not followed, and opening a named pipe does not wait: the feed may be of another program.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        file.seek(begin)
        return file.read(end - begin)

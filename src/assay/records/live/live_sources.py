"""
All that guards of this user are judging: the feeds of running guards, and the journals that grow without a feed.

One interface for both, for `assay top` and for consoles. Nothing here waits: the caller polls, or selects on `filenos`.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from time import time
from typing import Any, Final, NamedTuple

from assay.records.journal.following import Following, Source
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
        self.covered: set[str] = set()
        """The runs of journals that its feed has the records of."""

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
        self._past = past
        self._guards: dict[str, LiveSource] = {}
        self._refused: set[str] = set()
        self._by_run: dict[str, LiveSource] = {}
        self._find_guards()
        self._following = Following(journals, None, time(), skip=self._is_covered)

    @property
    def guards(self) -> list[LiveSource]:
        """The running guards that have said hello."""
        return [each for each in self._guards.values() if each.hello is not None]

    def filenos(self) -> list[int]:
        """Return the descriptors to wait for; a journal has none."""
        return [each.reader.fileno() for each in self._guards.values() if each.reader is not None]

    def look_around(self) -> None:
        """Find new guards and journals, and let go of those that have ended."""
        self._find_guards()
        self._following.look_around()

    def arrived(self) -> Iterator[LiveNews]:
        """Yield what has come since the last call; ends of guards come as the event ``bye``."""
        for path, source in list(self._guards.items()):
            yield from self._from_guard(path, source)
        for news in self._following.arrived():
            if news.entry.record is not None:
                run = news.source.run.name
                source = self._by_run.setdefault(run, LiveSource(None, news.source))
                yield LiveNews(source, FeedItem(RECORD, news.entry.record))

    def close(self) -> None:
        """Close all connections and files."""
        for source in self._guards.values():
            if source.reader is not None:
                source.reader.close()
        self._following.close()

    # ── guards ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _find_guards(self) -> None:
        if self._directory is None:
            return
        for path, _ in sockets_in(self._directory):
            if path in self._guards or path in self._refused or len(self._guards) >= MOST_GUARDS:
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
            if item.event in ("hello", "server"):
                rows = rows_of(item.data) if item.event == "hello" else [item.data]
                yield LiveNews(source, item)
                yield from self._covered(source, rows)
            elif item.event != RECORD or not self._is_followed(source):
                said_bye = said_bye or item.event == "bye"
                yield LiveNews(source, item)
        if reader.ended:
            del self._guards[path]
            if reader.hello is None:
                # It is no guard, or has no room: it is not asked again.
                self._refused.add(path)
            elif not said_bye:
                yield LiveNews(source, FeedItem("bye", {"event": "bye", "why": reader.why}))

    def _covered(self, source: LiveSource, rows: list[dict[str, Any]]) -> Iterator[LiveNews]:
        """Note the journals that the feed has the records of, and yield their last records if those are wanted."""
        for row in rows:
            journal = row.get("journal")
            if isinstance(journal, dict) and isinstance(journal.get("run"), str):
                run = journal["run"]
                if run not in source.covered and run not in self._by_run:
                    source.covered.add(run)
                    if self._past:
                        yield from _last_records(source, journal)

    def _is_covered(self, run: str) -> bool:
        return any(run in each.covered for each in self._guards.values())

    def _is_followed(self, source: LiveSource) -> bool:
        """Whether the records of a guard come from its journal, because that was found first."""
        rows = rows_of(source.hello or {})
        runs = {text_of(row["journal"], "run") for row in rows if isinstance(row.get("journal"), dict)}
        return bool(runs) and not source.covered


def _last_records(source: LiveSource, journal: dict[str, Any]) -> Iterator[LiveNews]:
    """Yield the last records of a journal, up to where its feed began."""
    path, end = journal.get("path"), journal.get("bytes")
    if not isinstance(path, str) or not isinstance(end, int):
        return
    begin = max(0, end - PAST_BYTES)
    try:
        with open(path, "rb") as file:
            file.seek(begin)
            data = file.read(end - begin)
    except (OSError, ValueError):
        return
    lines = data.split(b"\n")
    for line in lines[1:] if begin else lines:
        item = item_of(line)
        if item is not None and item.event == RECORD:
            yield LiveNews(source, item, past=True)

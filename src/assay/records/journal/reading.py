"""Reads a journal line by line: from a file, from all files of a run, or from standard input."""

import os
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any, Final, NamedTuple, Self, cast

import orjson

from assay.records.journal import run_files
from assay.records.line_blocks import BLOCK, LineBlock, is_url, numbered_lines, open_binary, split_blocks
from assay.records.outcomes import recorded_outcome
from assay.records.unpacking import unpacked

LONGEST_LINE: Final = 128 << 20
"""Maximal bytes of a line. A line is held in memory, and parsing takes several times its size."""

_CHUNK: Final = 1 << 20
"""Bytes of a line that is being written to read at a time."""


class Pages:
    """
    The lines of one journal, open for reading.

    A directory, and `.latest` in it, stands for its newest run, and the first file of a run for all of its files; any
    other file is read alone.
    """

    def __init__(self, name: str, *, whole: bool = False, longest: int = LONGEST_LINE) -> None:
        """
        Open the journal called *name*, a path or a URL, ``-`` for standard input. Raises `OSError`.

        With *whole*, *name* is the first remaining file of a run, and all its files are read. A line of more than
        *longest* bytes is replaced by a note, which is not JSON. A file may be compressed.
        """
        self._path = ""
        self._goes_on = False
        self._longest = longest
        self.tick: Callable[[int], None] | None = None
        """Gets the bytes that are read from files from now on, compressed or not."""
        self._ticked = 0
        self._file: BufferedReader
        self._held: list[bytes] = []
        self._size = 0
        self.too_long = 0
        """Number of lines that were too long."""
        self._over = False
        if name == "-":
            self._file = unpacked(open(0, "rb", closefd=False))  # noqa: SIM115 - `with` closes it
            return
        if is_url(name):
            self._path = name
            self._file = unpacked(open_binary(name))
            return
        if os.path.basename(name) == run_files.LATEST and os.path.islink(name):
            # The link leads to the last file of a run.
            name = os.path.dirname(name) or os.curdir
        is_directory = os.path.isdir(name)
        self._path = run_files.newest(name) if is_directory else name
        self._goes_on = whole or is_directory or run_files.begins_run(name)
        self._file = unpacked(open(self._path, "rb"))  # noqa: SIM115 - as above

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        """Yield every line; many consecutive blank ones as one item."""
        for block in self.blocks():
            yield from block

    def blocks(self) -> Iterator[LineBlock]:
        """Yield every line in large blocks, which are read ahead."""
        while True:
            # What is there is read at once: standard input may be written slowly.
            yield from split_blocks(self._read, self._longest, self._instead)
            if not self._turn():
                return

    def pieces(self) -> Iterator[bytes]:
        """Yield everything that is still to be read of one file, in pieces of any size."""
        while piece := self._read(BLOCK):
            yield piece

    def _read(self, most: int) -> bytes:
        data = self._file.read1(most)
        self._count()
        return data

    def _count(self) -> None:
        """Report what was read of the file since the last time."""
        if self.tick is None or not self._path:
            return
        try:
            now = self._file.raw.tell() if is_url(self._path) else os.lseek(self._file.fileno(), 0, os.SEEK_CUR)
        except OSError:
            return
        if now > self._ticked:
            self.tick(now - self._ticked)
            self._ticked = now

    def _instead(self, size: int) -> bytes:
        """Return the note in place of a line of *size* bytes."""
        self.too_long += 1
        return b"(a line of %d bytes; at most %d are read)\n" % (size, self._longest)

    def followed(self, pause: Callable[[], None]) -> Iterator[bytes]:
        """Yield complete lines as they are written, for ever; call *pause* between reads."""
        while True:
            yield from self.arrived()
            pause()

    def arrived(self) -> Iterator[bytes]:
        """Yield complete lines written since the last call. A partial line is kept until it is complete."""
        while True:
            line = self._file.readline(_CHUNK)
            self._hold(line)
            if line.endswith(b"\n"):
                yield self._take()
            elif len(line) < _CHUNK and not self._over:
                # The rest of the old file is read first.
                self._over = not line and self._is_over()
                if not self._over:
                    return
            elif not line:
                if self._size:
                    yield self._take()
                self._over = not self._turn() and not self._begin_anew()

    def _hold(self, part: bytes) -> None:
        """Keep part of a line, unless the line is too long."""
        self._size += len(part)
        if self._size > self._longest:
            self._held.clear()
        elif part:
            # Joined once: a line that grows byte by byte would be copied each time.
            self._held.append(part)

    def _take(self) -> bytes:
        held, size = self._held, self._size
        self._held, self._size = [], 0
        return b"".join(held) if size <= self._longest else self._instead(size)

    def skip(self) -> None:
        """Skip everything that was written so far."""
        while self._turn():
            pass
        self._file.seek(0, os.SEEK_END)

    def peek(self) -> bytes:
        """Return the first bytes without consuming them; empty if the journal is."""
        return self._file.peek()

    def keep(self) -> None:
        """Make the journal readable twice: standard input, or another pipe, is copied."""
        if not self._file.seekable():
            with self._file as pipe:
                self._file = BufferedReader(cast("RawIOBase", BytesIO(pipe.read())))

    def rewind(self) -> None:
        """Start again with the first line."""
        if self._goes_on:
            self._open(run_files.files_of(self._path)[0])
        else:
            self._file.seek(0)
            self._ticked = 0

    def _is_over(self) -> bool:
        """Whether this file is complete: there is a next one, or its name belongs to another file."""
        return self._following() is not None or self._is_moved()

    def _is_moved(self) -> bool:
        try:
            there = os.stat(self._path)
        except OSError:
            return False
        here = os.fstat(self._file.fileno())
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    def _begin_anew(self) -> bool:
        if self._is_moved():
            self._open(self._path)
        return True

    def _following(self) -> str | None:
        """Return the next file of the run."""
        if not self._goes_on:
            return None
        number = run_files.number_of(self._path)
        return next((each for each in run_files.files_of(self._path) if run_files.number_of(each) > number), None)

    def _turn(self) -> bool:
        """Continue with the next file of the run; return whether there is one."""
        while (path := self._following()) is not None:
            try:
                self._open(path)
            except FileNotFoundError:
                # It was removed as one of the oldest.
                self._path = path
                continue
            return True
        return False

    def _open(self, path: str) -> None:
        file = unpacked(open(path, "rb"))  # noqa: SIM115 - as above
        self._file.close()
        self._file, self._path, self._ticked = file, path, 0


Record = dict[str, Any]

# Members that every record has. A record may have more.
_MEMBERS: Final[tuple[tuple[str, type | tuple[type, ...]], ...]] = (
    ("ts", str),
    ("requestId", str),
    ("transport", str),
    ("route", str),
    ("method", (str, type(None))),
    ("status", str),
    ("durationMs", (int, float)),
    ("inputBytes", int),
    ("outputBytes", int),
    ("error", (dict, type(None))),
    ("metadata", dict),
)


EVENTS: Final = ("server", "session", "restart", "state", "tools")
"""The events of a journal, which are lines about a server. A reader ignores others."""


class JournalEntry(NamedTuple):
    """A line of a journal."""

    number: int
    raw: bytes
    """The bytes of the line, without its newline."""
    record: Record | None
    """None for a line that is not a record."""


def entries(lines: Iterable[bytes]) -> Iterator[JournalEntry]:
    """Yield every line that is not blank."""
    for number, line in numbered_lines(lines):
        found = entry_of(number, line)
        if found is not None:
            yield found


def entry_of(number: int, line: bytes) -> JournalEntry | None:
    """Parse the line with this *number*; None for a blank one and for an event."""
    raw = line.rstrip(b"\r\n")
    if not raw:
        return None
    value = line_value(raw)
    if value is None or is_record(value):
        return JournalEntry(number, raw, value)
    return None if is_event(value) else JournalEntry(number, raw, None)


def line_value(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a *line*; None for any other line."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def is_record(value: dict[str, Any]) -> bool:
    """Whether *value* has all members that a record must have."""
    return all(name in value and isinstance(value[name], kind) for name, kind in _MEMBERS)


def is_event(value: dict[str, Any]) -> bool:
    """Whether *value* is a line about a server, and not a record."""
    return value.get("event") in EVENTS and "requestId" not in value


def violations(record: Record) -> list[tuple[str, str]]:
    """Return the violated rules, each with its place."""
    found = (record["error"] or {}).get("violations")
    listed = found if isinstance(found, list) else []
    return [(str(each.get("rule")), str(each.get("at"))) for each in listed if isinstance(each, dict)]


def quarantined(record: Record) -> list[str]:
    """Return the entries of a list that were quarantined, or would be under enforce: ``tool legacy``."""
    found = (record["error"] or {}).get("quarantined")
    listed = found if isinstance(found, list) else []
    return [f"{each.get('kind')} {each.get('name')}" for each in listed if isinstance(each, dict)]


def is_audited(record: Record) -> bool:
    """Whether a guard in audit mode wrote *record*; False also for one that does not have the mode."""
    return bool(record["metadata"].get("mode") == "audit")


def server_of(record: Record) -> str:
    """Return the name of the server; "" for a record without one."""
    name = record["metadata"].get("server")
    return name if isinstance(name, str) else ""


class Filter(NamedTuple):
    """A filter for records: a record must match one value of each given filter."""

    verdicts: Sequence[str] = ()
    """The words of `records.outcomes`."""
    methods: Sequence[str] = ()
    tools: Sequence[str] = ()
    rules: Sequence[str] = ()
    """A rule, or a rung for all of its rules."""
    servers: Sequence[str] = ()
    """Names of servers. A record without a name passes: its file was already chosen by the folder name."""
    quarantined: bool = False
    """Only records of lists with quarantined entries."""

    def wants(self, record: Record) -> bool:
        """Whether *record* matches."""
        return (
            (not self.verdicts or recorded_outcome(record).word in self.verdicts)
            and (not self.methods or record["method"] in self.methods)
            and (not self.tools or record["metadata"].get("tool") in self.tools)
            and (not self.rules or any(self._names(rule) for rule, _ in violations(record)))
            and (not self.servers or (server_of(record) or self.servers[0]) in self.servers)
            and (not self.quarantined or bool(quarantined(record)))
        )

    def _names(self, rule: str) -> bool:
        return any(rule == wanted or rule.startswith(f"{wanted}/") for wanted in self.rules)


def recorded_time(ts: str, now: float) -> float:
    """Return the time of a record in seconds since 1970; *now* if it is not a time."""
    try:
        return datetime.fromisoformat(ts).timestamp()
    except (ValueError, OverflowError, OSError):
        return now


def recorded_frame(metadata: dict[str, Any]) -> bytes | None:
    """Return the message of a record, given its metadata; None if it is not recorded."""
    text, encoded = metadata.get("frame"), metadata.get("frameBase64")
    if isinstance(text, str):
        return text.encode()
    try:
        return b64decode(encoded, validate=True) if isinstance(encoded, str) else None
    except ValueError:
        return None

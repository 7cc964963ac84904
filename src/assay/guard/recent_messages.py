"""
Keep the last messages of a conversation, and write them to a file when it breaks.

All conversations of a guard share one limit, so that many clients cannot use up the memory.
"""

import os
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Final
from weakref import WeakSet

import orjson

from assay.guard.deliveries import UNKNOWN, End
from assay.judge.redaction import Redactor
from assay.model.verdict import Kind, Party, Verdict

__all__ = ("UNKNOWN", "End", "RecentMessages", "Shelf", "flights_in")

KEPT: Final = 50
KEPT_BYTES: Final = 64 << 10
"""Maximal messages to keep, and bytes of each: at most some 3 MB."""

WRITTEN_BYTES: Final = 256 << 10
"""
Maximal bytes of all messages in one file. Searching 3 MB for secrets takes a third of a second, during which all other
clients would wait.
"""

TOTAL_BYTES: Final = 64 << 20
"""Maximal bytes of all conversations of a guard. Those that were silent longest are dropped first."""

ENTRY_BYTES: Final = 512
"""Approximate overhead of one message in bytes: the entry and the id of a request."""

_UNWEIGHED: Final = TOTAL_BYTES // 8
"""Bytes that may be added before the total is computed again."""

FLIGHTS: Final = 50
"""Maximal flights in a directory: as many as there are runs in a journal."""

_ANSWERS: Final = frozenset({"result", "error"})
_OPENING: Final = frozenset({"initialize", "notifications/initialized"})
"""Methods that are always kept: later messages cannot be judged without them."""

_Kept = tuple[Party, bytes, Kind, str | int | None, str | None, float, bytes]
"""
The sender, the frame, its kind; the id and the method of its request, if any; the time; and the findings as JSON, empty
for a good message.

Not the exchange itself, which has the contract of a tool with its schemas.
"""


class Shelf:
    """
    The shared limit of all flights of one guard.

    The total is computed only now and then, so that a message costs one subtraction: the code that adds to a flight
    subtracts from `room`, and calls `weigh` when nothing is left.
    """

    __slots__ = ("_flights", "room")

    def __init__(self) -> None:
        self._flights: WeakSet[RecentMessages] = WeakSet()
        self.room = _UNWEIGHED
        """Bytes that may still be added before `weigh` is called."""

    def add(self, flight: "RecentMessages") -> None:
        """Count *flight* from now on, as long as it exists."""
        self._flights.add(flight)

    def weigh(self) -> None:
        """Drop the messages of the conversations that were silent longest, if the total exceeds the limit."""
        total = {flight: flight.size for flight in self._flights if flight.kept}
        excess = sum(total.values()) + _UNWEIGHED - TOTAL_BYTES
        if excess > 0:
            for flight in sorted(total, key=lambda each: each.kept[-1][5]):
                excess -= total[flight]
                flight.forget()
                if excess <= 0:
                    break
        self.room = _UNWEIGHED


class RecentMessages:
    """The last messages of one conversation."""

    __slots__ = ("__weakref__", "_opening", "kept", "opened")

    def __init__(self) -> None:
        self.kept: deque[_Kept] = deque(maxlen=KEPT)
        """The messages. The caller cuts a frame one byte past the limit, and calls `fill` when this is full."""
        self.opened = False
        """Whether the opening messages are kept apart from the rest, or dropped."""
        self._opening: list[_Kept] = []

    @property
    def size(self) -> int:
        """The approximate bytes of the kept messages."""
        return sum(len(each[1]) + len(each[6]) + ENTRY_BYTES for each in (*self.kept, *self._opening))

    def forget(self) -> None:
        """Drop all messages."""
        self.kept.clear()
        self.opened = True
        self._opening = []

    def add_findings(self, verdict: Verdict) -> int:
        """Keep the findings of the last message, which may be masked or cut later; return their bytes."""
        from assay.records.rows import spelt_findings  # noqa: PLC0415 - for messages with findings only

        if not self.kept:
            # All messages were dropped.
            return 0
        findings = orjson.dumps(spelt_findings(verdict, str))
        self.kept[-1] = (*self.kept[-1][:6], findings)
        return len(findings)

    def fill(self) -> None:
        """Drop the oldest messages from now on, except the opening ones."""
        if not self.opened:
            self.opened = True
            self._opening = [each for each in self.kept if _method(each) in _OPENING]

    def write(
        self, directory: str, redact: Sequence[str], log: Callable[[str], None], end: End = UNKNOWN
    ) -> str | None:
        """
        Write the last messages, redacted, into a file that `assay check` reads; return its path, if there is one.

        The last row has the end of the server.
        """
        if not self.kept:
            log("assay: no flight recorder: nothing is kept of this session")
            return None
        name = f"flight-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            path, descriptor = _created(os.path.join(directory, name))
            with open(descriptor, "wb") as file:
                file.writelines(self._rows(redact, end))
            _prune(directory)
        except OSError as error:
            log(f"assay: no flight recorder: {os.path.join(directory, name)}.jsonl: {error.strerror}")
            return None
        log(f"assay: the last messages of this session are in {path}")
        return path

    def _rows(self, redact: Sequence[str], end: End) -> Iterator[bytes]:
        redactor = Redactor(redact)
        kept = [*(each for each in self._opening if each not in self.kept), *self.kept]
        asked = {(party, ident) for party, _, kind, ident, *_ in kept if kind == "request"}
        # Without its request, which was dropped, a response would look unsolicited.
        kept = [
            each for each in kept if each[2] not in _ANSWERS or each[3] is None or (each[0].other, each[3]) in asked
        ]
        longest = _longest([len(frame) for _, frame, *_ in kept])
        cut = {(party, ident) for party, frame, kind, ident, *_ in kept if kind == "request" and len(frame) > longest}
        for party, frame, kind, ident, _, _, findings in kept:
            payload = _payload(frame[: longest + 1], redactor)
            row: dict[str, Any] = {"dir": "c2s" if party is Party.CLIENT else "s2c", **payload}
            # A cut message cannot be judged, but its request or response can.
            row |= {"cut": True, "kind": kind, "id": ident} if len(frame) > longest else {}
            if "cut" in row or "redacted" in row or (kind in _ANSWERS and (party.other, ident) in cut):
                row |= _shown(findings, redactor)
            yield orjson.dumps(row) + b"\n"
        if end.why:
            said = [redactor.text(each) for each in end.last_words]
            yield orjson.dumps({"event": "end", "dir": "s2c", "why": end.why, "stderr": said}) + b"\n"


def _longest(sizes: list[int]) -> int:
    """Return the length at which messages of these *sizes* are cut so that all fit into a file."""
    room = WRITTEN_BYTES
    for number, size in enumerate(sorted(sizes)):
        share = room // (len(sizes) - number)
        if size > share:
            return min(share, KEPT_BYTES)
        room -= size
    return KEPT_BYTES


def _created(name: str) -> tuple[str, int]:
    """Create a file that only the owner can read. Several sessions of one process can break within a second."""
    for number in count(1):
        path = f"{name}.jsonl" if number == 1 else f"{name}-{number}.jsonl"
        with suppress(FileExistsError):
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    raise AssertionError("there is always another number")


def _payload(frame: bytes, redactor: Any) -> dict[str, Any]:
    """Return a frame without secrets, in the form of a recording."""
    try:
        text = frame.decode()
        shown = redactor.frame(text)
        return {"msg": shown} if shown is text else {"msg": shown, "redacted": True}
    except UnicodeDecodeError:
        # Latin-1 decodes any bytes, and the patterns need only ASCII.
        text = frame.decode("latin-1")
        shown = redactor.unreadable(text)
        encoded = b64encode(shown.encode("latin-1")).decode()
        return {"base64": encoded} if shown is text else {"base64": encoded, "redacted": True}


def _shown(findings: bytes, redactor: Any) -> dict[str, Any]:
    """Return the findings of a message for its row. Names in a place come from the peer, so they are redacted."""
    found: dict[str, Any] = orjson.loads(findings) if findings else {"findings": []}
    return {**found, "findings": [{**each, "at": redactor.text(each["at"])} for each in found["findings"]]}


def _method(kept: _Kept) -> str | None:
    _, frame, kind, _, method, *_ = kept
    if method is not None:
        return method
    return "notifications/initialized" if kind == "notification" and b'"notifications/initialized"' in frame else None


def flights_in(directory: str) -> list[tuple[str, float]]:
    """Return the files of flights in *directory*, each with when it was written, in seconds since 1970."""
    try:
        with os.scandir(directory) as entries:
            found = [each for each in entries if each.name.startswith("flight-") and each.name.endswith(".jsonl")]
        kept = [each for each in found if each.is_file(follow_symlinks=False)]
        return [(each.path, each.stat(follow_symlinks=False).st_mtime) for each in kept]
    except OSError:
        # The directory does not exist yet, or cannot be read.
        return []


def _prune(directory: str) -> None:
    """Remove the oldest flights beyond the limit."""
    names = sorted(name for name in os.listdir(directory) if name.startswith("flight-") and name.endswith(".jsonl"))
    for name in names[:-FLIGHTS]:
        # Another process may have removed it.
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, name))

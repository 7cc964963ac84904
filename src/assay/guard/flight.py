"""
The last messages of one conversation, kept for the case that it breaks, and written into a file then.

All conversations of a guard share one bound on what they keep, so that many clients cannot use up the memory.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Final
from weakref import WeakSet

import orjson

from assay.base.verdict import Kind, Party, Verdict
from assay.guard.deliveries import UNKNOWN, End

__all__ = ("UNKNOWN", "End", "Flight", "Shelf", "flights_in")

KEPT: Final = 50
KEPT_BYTES: Final = 64 << 10
"""Messages that a flight recorder keeps, and bytes of each: some 3 MB at most."""

WRITTEN_BYTES: Final = 256 << 10
"""
Bytes of all messages that go into one file. To look for secrets in 3 MB takes a third of a second, for which everybody
else who uses the guard would have to wait.
"""

TOTAL_BYTES: Final = 64 << 20
"""Bytes that all conversations of a guard keep together. Those that were silent longest are forgotten first."""

ENTRY_BYTES: Final = 512
"""What one message takes beside its bytes, roughly: the entry itself and the id of a request."""

_UNWEIGHED: Final = TOTAL_BYTES // 8
"""Bytes that may be added before everything is weighed again."""

FLIGHTS: Final = 50
"""Files of broken sessions that are left where a new one is written. As many as there are runs in a journal."""

_ANSWERS: Final = frozenset({"result", "error"})
_OPENING: Final = frozenset({"initialize", "notifications/initialized"})
"""Without these nobody could judge what follows; so they are kept, however long ago they were."""

_Kept = tuple[Party, bytes, Kind, str | int | None, str | None, float, bytes]
"""
Who spoke, what, of which kind; the id and the method of the request that it is part of, if it is; when; and the
findings as JSON, empty for a good message.

Not the exchange itself, which has the contract of a tool with its schemas.
"""


class Shelf:
    """
    What all flights of one guard keep together.

    Flights are weighed only now and then, so that a message costs one subtraction: who adds to a flight takes what it
    adds from `room`, and calls `weigh` when nothing is left of that.
    """

    __slots__ = ("_flights", "_most", "_unweighed", "room")

    def __init__(self, most: int = TOTAL_BYTES) -> None:
        self._flights: WeakSet[Flight] = WeakSet()
        self._most = most
        self._unweighed = min(most // 8, _UNWEIGHED)
        self.room = self._unweighed
        """Bytes that may still be added before `weigh` is called."""

    def add(self, flight: "Flight") -> None:
        """From now on *flight* is weighed with the others, as long as somebody has it."""
        self._flights.add(flight)

    def weigh(self) -> None:
        """Forgets what the conversations that were silent longest have said, if all together is too much."""
        total = {flight: flight.size for flight in self._flights if flight.kept}
        excess = sum(total.values()) + self._unweighed - self._most
        if excess > 0:
            for flight in sorted(total, key=lambda each: each.kept[-1][5]):
                excess -= total[flight]
                flight.forget()
                if excess <= 0:
                    break
        self.room = self._unweighed


class Flight:
    """What one conversation last said."""

    __slots__ = ("__weakref__", "_opening", "kept", "opened")

    def __init__(self) -> None:
        self.kept: deque[_Kept] = deque(maxlen=KEPT)
        """Whoever adds to it cuts a frame one byte past what is kept, and calls `fill` when there is no more room."""
        self.opened = False
        """Whether how the conversation was opened is kept apart from the rest, or forgotten."""
        self._opening: list[_Kept] = []

    @property
    def size(self) -> int:
        """Bytes of what is kept, roughly."""
        return sum(len(each[1]) + len(each[6]) + ENTRY_BYTES for each in (*self.kept, *self._opening))

    def forget(self) -> None:
        """Keeps nothing of what was said so far."""
        self.kept.clear()
        self.opened = True
        self._opening = []

    def add_findings(self, verdict: Verdict) -> int:
        """Keep what is wrong with the last message, which may be masked or cut later; return the bytes that takes."""
        from assay.records.recording.outcome import spelt_findings  # noqa: PLC0415 - for messages with findings only

        if not self.kept:
            # All was forgotten to make room.
            return 0
        findings = orjson.dumps(spelt_findings(verdict, str))
        self.kept[-1] = (*self.kept[-1][:6], findings)
        return len(findings)

    def fill(self) -> None:
        """From now on the oldest are dropped: how the conversation was opened stays."""
        if not self.opened:
            self.opened = True
            self._opening = [each for each in self.kept if _method(each) in _OPENING]

    def write(
        self, directory: str, redact: Sequence[str], log: Callable[[str], None], end: End = UNKNOWN
    ) -> str | None:
        """
        Write the last messages, redacted, into a file that `assay check` reads; return its path, if there is one.

        The last row says how the server ended.
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
        from assay.core.redaction import Redactor  # noqa: PLC0415 - for broken sessions only

        redactor = Redactor(redact)
        kept = [*(each for each in self._opening if each not in self.kept), *self.kept]
        asked = {(party, ident) for party, _, kind, ident, *_ in kept if kind == "request"}
        # Without its request, which is no longer here, an answer would seem to answer nothing.
        kept = [
            each for each in kept if each[2] not in _ANSWERS or each[3] is None or (each[0].other, each[3]) in asked
        ]
        longest = _longest([len(frame) for _, frame, *_ in kept])
        cut = {(party, ident) for party, frame, kind, ident, *_ in kept if kind == "request" and len(frame) > longest}
        for party, frame, kind, ident, _, _, findings in kept:
            payload = _payload(frame[: longest + 1], redactor)
            row: dict[str, Any] = {"dir": "c2s" if party is Party.CLIENT else "s2c", **payload}
            # Who reads it cannot judge half a message, but what belongs to that.
            row |= {"cut": True, "kind": kind, "id": ident} if len(frame) > longest else {}
            if "cut" in row or "redacted" in row or (kind in _ANSWERS and (party.other, ident) in cut):
                row |= _shown(findings, redactor)
            yield orjson.dumps(row) + b"\n"
        if end.why:
            said = [redactor.text(each) for each in end.last_words]
            yield orjson.dumps({"event": "end", "dir": "s2c", "why": end.why, "stderr": said}) + b"\n"


def _longest(sizes: list[int]) -> int:
    """Bytes after which messages of these *sizes* are cut, so that all fit into a file: short ones stay whole."""
    room = WRITTEN_BYTES
    for number, size in enumerate(sorted(sizes)):
        share = room // (len(sizes) - number)
        if size > share:
            return min(share, KEPT_BYTES)
        room -= size
    return KEPT_BYTES


def _created(name: str) -> tuple[str, int]:
    """A new file that only the owner can read. Several sessions of one process can break within a second."""
    for number in count(1):
        path = f"{name}.jsonl" if number == 1 else f"{name}-{number}.jsonl"
        with suppress(FileExistsError):
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    raise AssertionError("there is always another number")


def _payload(frame: bytes, redactor: Any) -> dict[str, Any]:
    """A frame without its secrets, as a recording has it."""
    try:
        text = frame.decode()
        shown = redactor.frame(text)
        return {"msg": shown} if shown is text else {"msg": shown, "redacted": True}
    except UnicodeDecodeError:
        from base64 import b64encode  # noqa: PLC0415 - for bytes that are no text

        # Every byte is a character in Latin-1, and that is all that the patterns need.
        text = frame.decode("latin-1")
        shown = redactor.unreadable(text)
        encoded = b64encode(shown.encode("latin-1")).decode()
        return {"base64": encoded} if shown is text else {"base64": encoded, "redacted": True}


def _shown(findings: bytes, redactor: Any) -> dict[str, Any]:
    """The findings of a message as its row has them. The names in a place are the peer's."""
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
        # None has been written yet, or it is not ours to read.
        return []


def _prune(directory: str) -> None:
    """Removes the oldest flights beyond those that are left."""
    names = sorted(name for name in os.listdir(directory) if name.startswith("flight-") and name.endswith(".jsonl"))
    for name in names[:-FLIGHTS]:
        # Another process may have removed it already.
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, name))

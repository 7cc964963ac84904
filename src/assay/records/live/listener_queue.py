"""What waits for one listener of a feed, bounded. No I/O, no clock."""

from collections import deque
from typing import Final

MOST_BYTES: Final = 8 << 20
"""Maximal bytes that wait for a listener. All listeners share the same lines in memory."""

MOST_RECORDS: Final = 20_000
"""Maximal records that wait for a listener: at 50,000 a second, which is the most that a guard makes, 0.4 s."""

PIECE: Final = 256 << 10
"""Bytes to send at once: as many as a socket takes on most systems."""


class ListenerQueue:
    """Lines for one listener. What exceeds the limits is dropped and counted; the listener gets the count in place."""

    __slots__ = ("_lines", "_piece", "_records", "_size", "dropped")

    def __init__(self) -> None:
        self._lines: deque[tuple[bytes, int]] = deque()
        self._piece = memoryview(b"")
        self._size = self._records = 0
        self.dropped = 0
        """Records that were dropped since the listener was last informed."""

    def put(self, lines: bytes, records: int) -> None:
        """Add whole *lines* with so many *records*, or count them as dropped if they are too many."""
        if self._records + records > MOST_RECORDS or self._size + len(lines) > MOST_BYTES:
            self.dropped += records
            return
        if self.dropped:
            self._note_dropped()
        self._add(lines, records)

    def say(self, line: bytes) -> None:
        """Add a line that is never dropped: hello, the last line."""
        if self.dropped:
            self._note_dropped()
        self._add(line, 0)

    def piece(self) -> memoryview:
        """Return the bytes to send next; empty if nothing waits."""
        if not self._piece and (self._lines or self.dropped):
            if not self._lines:
                self._note_dropped()
            self._piece = memoryview(self._next_lines())
        return self._piece

    def sent(self, count: int) -> None:
        """So many bytes of the piece were sent."""
        self._size -= count
        self._piece = self._piece[count:]

    def _add(self, lines: bytes, records: int) -> None:
        self._lines.append((lines, records))
        self._size += len(lines)
        self._records += records

    def _next_lines(self) -> bytes:
        taken: list[bytes] = []
        size = 0
        while self._lines and size < PIECE:
            lines, records = self._lines.popleft()
            taken.append(lines)
            size += len(lines)
            self._records -= records
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def _note_dropped(self) -> None:
        self._add(b'{"event":"dropped","count":%d}\n' % self.dropped, 0)
        self.dropped = 0

"""
The first rung: from bytes to frames and back, one message per line. No JSON, no I/O.

Over HTTP the body of a request is the frame; only the limit applies there.
"""

from collections.abc import Iterable, Iterator

from assay.model.limits import DEFAULT
from assay.model.verdict import Violation
from assay.rules import violation

_WHITE_SPACE = b" \t\r\n"
_SPACES = bytes.maketrans(b"\r\n", b"  ")


_MANY = 1_000
"""The number of lines in a chunk from which blank ones are removed at once."""


Text = str | bytes | bytearray | memoryview
"""The types of a frame that callers of the library may pass."""


class Rest(bytes):
    """A piece of an over-long line after its start, unchanged, with the newline."""


class Splitter:
    """
    Cuts a stream of bytes into frames, the same ones however the bytes arrive.

    A line over the limit is returned once, cut one byte past the limit, which is enough for `check` to refuse it. The
    rest of it is dropped as it arrives, so that memory stays bounded, and the next line is served. With *passing* the
    rest is returned instead of dropped.
    """

    __slots__ = ("_dropping", "_held", "_limit", "_passing", "_pieces", "between")

    def __init__(self, limit: int = DEFAULT.frame_bytes, *, passing: bool = False) -> None:
        self._limit = limit
        self._passing = passing
        # Pieces, not one growing buffer: a line that arrives byte by byte must not be copied at every byte.
        self._pieces: list[bytes] = []
        self._held = 0
        self._dropping = False
        self.between = True
        """Whether the last line is complete."""

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """Yield the frames that *chunk* completes, without their newlines. Use all of them before the next call."""
        if not self.between or len(chunk) > self._limit:
            return self._feed(chunk)
        # The common case: whole lines, and perhaps the start of one, none of which can be too long.
        lines = chunk.split(b"\n")
        tail = lines.pop()
        if len(lines) > _MANY and not self._passing:
            # Each would be judged, and skipped.
            lines = [line for line in lines if line.strip(_WHITE_SPACE)]
        if tail:
            self._pieces.append(tail)
            self._held = len(tail)
            self.between = False
        return lines

    def _feed(self, chunk: bytes) -> Iterator[bytes]:
        *lines, tail = chunk.split(b"\n")
        for line in lines:
            if len(line) > self._limit or self._pieces or self._dropping:
                yield from self._add(line, b"\n")
            else:
                yield line
        if tail:
            yield from self._add(tail, b"")
        self.between = not self._held and not self._dropping

    def _add(self, piece: bytes, newline: bytes) -> Iterator[bytes]:
        """Yield the line that *piece* ends with a *newline*, or the start of one that is too long, and its rest."""
        rest = piece
        if not self._dropping:
            self._pieces.append(piece)
            self._held += len(piece)
            if self._held <= self._limit and not newline:
                return
            self._dropping = self._held > self._limit
            whole = self._join()
            yield whole[: self._limit + 1]
            rest = whole[self._limit + 1 :]
        if self._dropping and self._passing and (rest or newline):
            yield Rest(rest + newline)
        if newline:
            self._dropping = False

    def end(self) -> bytes | None:
        """Return the last line, if the stream ended without a newline."""
        return self._join() if self._pieces else None

    def _join(self) -> bytes:
        whole = b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        return whole


def write(frame: bytes) -> bytes:
    """Return the bytes of *frame* for a stream."""
    return frame + b"\n"


def as_frame(given: Text) -> bytes:
    """
    Return *given* as the bytes of one frame; raise `TypeError` if it is neither text nor bytes.

    Half of a surrogate pair becomes bytes that are not UTF-8, which the next rung refuses with a rule.
    """
    if isinstance(given, bytes):
        return given
    if isinstance(given, str):
        return given.encode("utf-8", "surrogatepass")
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    raise TypeError(f"a frame is str or bytes (or bytearray, memoryview), not {_instead(given)}")


def _instead(given: object) -> str:
    remedy = "; write it with json.dumps first" if isinstance(given, dict | list) else ""
    return type(given).__name__ + remedy


def one_line(frame: bytes) -> bytes:
    """
    Return *frame*, which is JSON, without line breaks: outside of strings they are white space, and inside they are
    escaped.

    Many line readers, the official Python SDK among them, treat a carriage return as the end of a line; so do readers
    of server-sent events. The text between two of them would be a message that was never judged.
    """
    return frame.translate(_SPACES) if b"\n" in frame or b"\r" in frame else frame


def is_blank(frame: bytes) -> bool:
    """Return whether the line is empty; such a line is skipped, not judged."""
    return not frame.strip(_WHITE_SPACE)


def check_returns(frame: bytes) -> Violation | None:
    """Return the violation of *frame*, a line of a stream, if other readers may see two lines; otherwise None."""
    if b"\r" not in frame.strip(_WHITE_SPACE):
        return None
    return violation("framing/carriage-return", expected="one line", found="a carriage return inside the message")


def check(frame: bytes, limit: int) -> Violation | None:
    """Return the violation of a frame that is too long to be parsed; otherwise None."""
    if len(frame) <= limit:
        return None
    return violation("framing/size", expected=f"at most {limit:,} bytes", found=f"more than {limit:,} bytes")

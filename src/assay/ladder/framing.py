"""
The first rung: from bytes to frames and back, one message per line. No JSON, no I/O.

Over HTTP the body of a request is the frame; only the limit applies there.
"""

from collections.abc import Iterable, Iterator

from assay.base.limits import DEFAULT
from assay.base.verdict import Violation
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
            if self._passing and (self._dropping or self._held + len(line) > self._limit):
                yield from self._passed(line + b"\n")
            else:
                frame = self._take(line)
                if frame is not None:
                    yield frame
            self._dropping = False
        if tail and self._passing and (self._dropping or self._held + len(tail) > self._limit):
            yield from self._passed(tail)
        elif tail:
            cut = self._hold(tail)
            if cut is not None:
                yield cut
        self.between = not self._held and not self._dropping

    def _passed(self, data: bytes) -> Iterator[bytes]:
        """Yield more of an over-long line: once its start, which `check` refuses, then the rest."""
        if not self._dropping:
            self._pieces.append(data)
            whole = b"".join(self._pieces)
            self._pieces.clear()
            self._held = 0
            self._dropping = True
            yield whole[: self._limit + 1]
            data = whole[self._limit + 1 :]
        if data:
            yield Rest(data)

    def end(self) -> bytes | None:
        """Return the last line, if the stream ended without a newline."""
        return self._join() if self._pieces else None

    def _take(self, line: bytes) -> bytes | None:
        """Return the frame that ends with *line*; None if its start was returned as over-long already."""
        if self._dropping:
            return None
        if not self._pieces:
            return line[: self._limit + 1]
        self._pieces.append(line)
        return self._join()

    def _hold(self, tail: bytes) -> bytes | None:
        """Keep an unfinished line; past the limit yield its start, and drop the rest."""
        if self._dropping:
            return None
        self._pieces.append(tail)
        self._held += len(tail)
        if self._held <= self._limit:
            return None
        self._dropping = True
        return self._join()

    def _join(self) -> bytes:
        frame = b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        return frame[: self._limit + 1]


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

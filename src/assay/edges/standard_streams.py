"""
Make standard output and standard error robust against a closed pipe, another encoding and a full disk.

- A closed pipe (``| head``) ends the output, not the command. Later output is dropped, so the exit status covers the
  whole run and does not depend on how fast the reader was.
- A full disk raises `OutputError` for standard output. It is not an `OSError`, because commands report those as errors
  of the file that they read.
- Errors of standard error are ignored.
"""

import io
import os
import sys
from typing import Any, Final, TextIO

from assay.model.printable import ERRORS


class OutputError(Exception):
    """Standard output cannot be written to."""


_CHOSEN: Final = frozenset({"replace", "ignore", "xmlcharrefreplace", "namereplace"})
"""Error handlers that only PYTHONIOENCODING sets, so they are kept."""


class _Output(io.FileIO):
    """Standard output. The descriptor belongs to the process, so it is not closed with this object."""

    is_gone = False
    """Whether the reader is gone and output is dropped."""

    def write(self, data: Any, /) -> Any:
        """Write as `FileIO` does; drop everything if the reader is gone."""
        if self.is_gone:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as error:
            # The rest of the buffer must not fail again when the interpreter exits.
            self.is_gone = True
            return self._failed(error, memoryview(data).nbytes)

    def _failed(self, error: OSError, size: int) -> int:
        if isinstance(error, BrokenPipeError):
            return size
        raise OutputError(error.strerror or "the write failed") from None


class _Errors(_Output):
    """Standard error. Output that cannot be written is dropped."""

    def _failed(self, error: OSError, size: int) -> int:  # noqa: ARG002 - there is nowhere to report it
        return size


def prepare() -> None:
    """Replace `sys.stdout` and `sys.stderr` by robust ones; streams that are not the process's own stay."""
    sys.stdout = _prepared(sys.stdout, _Output)
    sys.stderr = _prepared(sys.stderr, _Errors)


def for_stderr(text: str) -> bytes:
    """Return the bytes of *text* for a command that writes to the descriptor of standard error."""
    return text.encode(getattr(sys.stderr, "encoding", None) or "utf-8", ERRORS)


def write_utf8(text: str) -> None:
    """
    Write JSON to standard output as UTF-8 (RFC 8259), whatever the encoding of the terminal.

    Do not mix it with `print`, which has its own buffer.
    """
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(text)
    else:
        buffer.write(text.encode(errors="backslashreplace"))


def stop_without_reader(*, waiting: bool = False) -> None:
    """
    Raise `BrokenPipeError` if the reader of standard output is gone, for a command that only prints.

    With *waiting*, check the pipe itself: a command that waits for new output writes nothing that could fail.
    """
    raw = _raw(sys.stdout)
    if isinstance(raw, _Output) and (raw.is_gone or (waiting and _has_no_reader(raw.fileno()))):
        raise BrokenPipeError


def _has_no_reader(descriptor: int) -> bool:
    try:
        from select import POLLERR, POLLHUP, poll  # noqa: PLC0415 - not on Windows
    except ImportError:
        return False
    asked = poll()
    asked.register(descriptor, 0)
    return any(events & (POLLERR | POLLHUP) for _, events in asked.poll(0))


def _raw(stream: Any) -> Any:
    buffer = getattr(stream, "buffer", None)
    return getattr(buffer, "raw", buffer)


def _open_missing() -> None:
    """Open standard streams that were closed at start: the next opened file would become one of them."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The system uses the lowest free descriptor, which is this one.
            os.open(os.devnull, os.O_RDWR)


def _prepared(stream: TextIO | None, kind: type[_Output]) -> TextIO:
    if stream is None:
        _open_missing()
        return open(os.devnull, "w", encoding="utf-8")
    raw = _raw(stream)
    # A subclass is ours, or the Windows console, which has its own write method.
    if type(raw) is not io.FileIO or not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    own = kind(raw.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        # Unbuffered if Python runs with -u.
        own if stream.buffer is raw else io.BufferedWriter(own),
        encoding=stream.encoding,
        errors=stream.errors if stream.errors in _CHOSEN else ERRORS,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )

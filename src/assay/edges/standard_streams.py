"""
Standard output and standard error that do not fail the command: a closed pipe, another encoding, a full disk.

- A closed pipe (``| head``) ends the output and not the command. What is printed afterwards is dropped, so the exit
  status is that of the whole run and does not depend on how fast the reader was.
- A full disk raises `OutputError` for standard output. It is no `OSError`, because commands take those for a
  fault of the file that they read.
- Standard error is never worth failing for.
"""

import io
import os
import sys
from typing import Any, Final, TextIO

from assay.base.ascii_marks import ERRORS


class OutputError(Exception):
    """Standard output cannot be written to."""


_CHOSEN: Final = frozenset({"replace", "ignore", "xmlcharrefreplace", "namereplace"})
"""Error handlers that are set only by a person who wants them, with PYTHONIOENCODING."""


class _Output(io.FileIO):
    """Standard output. The descriptor belongs to the process, so it is not closed with this object."""

    is_gone = False
    """Whether nothing more can be written: what comes is dropped."""

    def write(self, data: Any, /) -> Any:
        """Write as much as fits, as `FileIO` does; drop it all if the reader is gone."""
        if self.is_gone:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as error:
            # What is left in the buffer must not fail once more when the interpreter ends.
            self.is_gone = True
            return self._failed(error, memoryview(data).nbytes)

    def _failed(self, error: OSError, size: int) -> int:
        if isinstance(error, BrokenPipeError):
            return size
        raise OutputError(error.strerror or "the write failed") from None


class _Errors(_Output):
    """Standard error: what cannot be written is dropped."""

    def _failed(self, error: OSError, size: int) -> int:  # noqa: ARG002 - there is nowhere to report it
        return size


def prepare() -> None:
    """Replace `sys.stdout` and `sys.stderr` by ones that cope; streams that are not the process's own are left."""
    sys.stdout = _prepared(sys.stdout, _Output)
    sys.stderr = _prepared(sys.stderr, _Errors)


def for_stderr(text: str) -> bytes:
    """The bytes of *text* for a command that writes to standard error by its descriptor."""
    return text.encode(getattr(sys.stderr, "encoding", None) or "utf-8", ERRORS)


def write_utf8(text: str) -> None:
    """
    Write JSON to standard output: it is UTF-8 (RFC 8259), whatever encoding the text for people has.

    Not beside `print`: that has a buffer of its own.
    """
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(text)
    else:
        buffer.write(text.encode(errors="backslashreplace"))


def stop_without_reader(*, waiting: bool = False) -> None:
    """
    Raise `BrokenPipeError` if the reader of standard output is gone, for a command that only shows something.

    A command that is *waiting* for something to show has the pipe looked at: it writes nothing that could fail.
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
    """Open standard streams that were closed when we were started: the next file opened would become one of them."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest that is free, which is this one.
            os.open(os.devnull, os.O_RDWR)


def _prepared(stream: TextIO | None, kind: type[_Output]) -> TextIO:
    if stream is None:
        _open_missing()
        return open(os.devnull, "w", encoding="utf-8")
    raw = _raw(stream)
    # A subclass is one of ours, or the console of Windows, which has a write of its own.
    if type(raw) is not io.FileIO or not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    own = kind(raw.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        # Without a buffer where Python runs with -u.
        own if stream.buffer is raw else io.BufferedWriter(own),
        encoding=stream.encoding,
        errors=stream.errors if stream.errors in _CHOSEN else ERRORS,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )

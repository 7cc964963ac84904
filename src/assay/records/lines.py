"""
Split bytes into lines, and open files that may be compressed with gzip or zstd, or at a URL. No parsing.

Lines come in large blocks: splitting a block takes a tenth of the time of reading line by line.
"""

import errno
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from io import BufferedReader, BytesIO, RawIOBase
from itertools import groupby
from typing import Any, BinaryIO, Final, cast

from assay.settings.extras import missing

BLOCK: Final = 64 << 10
"""Bytes to read at a time: what is made of them stays in the cache of the processor."""

_FEWEST_BLANKS: Final = 64
"""Consecutive blank lines of a block that become one item. Fewer are not worth a block of their own."""

_SHORT: Final = 8
"""Bytes of a line on average, below which most lines of a block must be blank: a message has at least 40."""

_BUFFER: Final = 1 << 20
"""Bytes to fetch from a URL, or to decompress, at a time."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


LineBlock = list[bytes]
"""
Some consecutive lines of a file, with their newlines. Only the last line of a file may have none.

Many consecutive blank lines are one item, and a block of their own: a file may have a gigabyte of them.
"""


class LineSplitter:
    """
    Splits what is read into lines.

    A line of more than *longest* bytes, with its newline, is not kept in memory: a note takes its place, which is not
    JSON.
    """

    __slots__ = ("_held", "_longest", "_size", "too_long")

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._held: list[bytes] = []
        """The parts of the line that is not complete, unless it is too long."""
        self._size = 0
        self.too_long = 0
        """Number of lines that were too long."""

    def feed(self, chunk: bytes) -> Iterator[LineBlock]:
        """Yield the lines that are complete with *chunk*, which has at most `BLOCK` bytes."""
        if b"\n" not in chunk:
            self._hold(chunk)
            return
        if chunk.isspace() and self._size + len(chunk) <= self._longest and not b"".join(self._held).strip():
            # No list of lines is made.
            blank, newline, last = b"".join((*self._held, chunk)).rpartition(b"\n")
            yield [blank + newline]
            self._held, self._size = [], 0
            self._hold(last)
            return
        # It takes half of the time of `bytes.split`.
        lines = BytesIO(chunk).readlines()
        last = b"" if chunk.endswith(b"\n") else lines.pop()
        self._hold(lines[0])
        lines[0] = self.rest()
        if self._longest < BLOCK:
            lines[1:] = [each if len(each) <= self._longest else self._note(len(each)) for each in lines[1:]]
        self._hold(last)
        if len(lines) * _SHORT > len(chunk):
            yield from _without_blanks(lines)
        else:
            yield lines

    def rest(self) -> bytes:
        """Return the line that is held, at the end of a file without its newline; empty without one."""
        held, size = self._held, self._size
        self._held, self._size = [], 0
        return b"".join(held) if size <= self._longest else self._note(size)

    def _hold(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._longest:
            self._held.clear()
        elif part:
            # Joined once: a line of many chunks would be copied with each of them.
            self._held.append(part)

    def _note(self, size: int) -> bytes:
        self.too_long += 1
        return b"(a line of %d bytes; at most %d are read)\n" % (size, self._longest)


def _without_blanks(lines: list[bytes]) -> Iterator[LineBlock]:
    """Yield the same lines; many consecutive blank ones are a block of one item."""
    block: LineBlock = []
    for is_blank, found in groupby(lines, bytes.isspace):
        group = list(found)
        if is_blank and len(group) >= _FEWEST_BLANKS:
            yield block
            yield [b"".join(group)]
            block = []
        else:
            block += group
    yield block


def numbered_lines(lines: Iterable[bytes], before: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank with its number, after *before* others. An item may be several blank lines."""
    number = before
    for line in lines:
        if line.isspace():
            number += line.count(b"\n") or 1
            continue
        # Any other line has one newline at most: counting them takes a tenth of the time of reading a journal.
        number += 1
        if line:
            yield number, line


# ── files by name ────────────────────────────────────────────────────────────────────────────────────────────────────


class UnreadableError(OSError):
    """A URL cannot be read, or a compressed file not to its end."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EIO, why)


def is_url(name: str) -> bool:
    """Return whether *name* is a URL, such as ``s3://bucket/file``, and not a path."""
    return _URL.match(name) is not None


def open_url(name: str) -> BufferedReader:
    """Open the file at a URL for reading. Raises `OSError`."""
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]  # noqa: PLC0415 - only for a URL
    except ImportError as error:
        raise UnreadableError(f"a URL needs {missing(error, 'cluster')}") from None
    try:
        system, path = url_to_fs(name)
        return BufferedReader(cast("RawIOBase", system.open(path, "rb")), _BUFFER)
    except (ImportError, ValueError, RuntimeError) as error:
        # The package for a scheme is not installed, or the scheme is unknown.
        raise UnreadableError(str(error)) from None
    except OSError as error:
        if error.strerror is not None:
            raise
        # Packages for schemes raise these with the URL alone, or with a text of their own.
        cause = error.__cause__ or error
        why = "not found" if cause is error and isinstance(error, FileNotFoundError) else str(cause)
        raise UnreadableError(why or type(cause).__name__) from None


def size_of_url(name: str) -> int | None:
    """Return the bytes of the file at a URL; None if they are not known. Raises `OSError`."""
    with open_url(name) as file:
        known = getattr(file.raw, "size", None)
        if known is None and file.seekable():
            known = file.seek(0, 2)
    return known if isinstance(known, int) else None


# ── compressed files ─────────────────────────────────────────────────────────────────────────────────────────────────

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ZIP: Final = b"PK\x03\x04"

_MOST_TIMES: Final = 200
"""
Bytes that a byte of compressed data may unpack to, on average.

Recordings and journals unpack to 10 to 30 times their size with gzip, and to 120 times with the highest level of zstd
if every message is a ping. A file that was made to waste time unpacks to 1,000 times its size, or to 10,000 times.
"""

_ALWAYS: Final = 8 << 20
"""Bytes that any file may unpack to: one long message may consist of the same words."""


def unpacked(file: BufferedReader) -> BufferedReader:
    """Return *file*, decompressed if it is compressed. Nothing is consumed. Raises `UnreadableError`."""
    head = file.peek(4)[:4]
    if head.startswith(_GZIP):
        return BufferedReader(_Unpacked(file, "gzip"), _BUFFER)
    if head == _ZSTD:
        return BufferedReader(_Unpacked(file, "zstd"), _BUFFER)
    if head == _ZIP:
        file.close()
        raise UnreadableError("a zip archive; unpack it, and give the directory")
    return file


class _Metered:
    """Compressed data that counts its bytes as they are read."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self.size = 0
        """The bytes that were read."""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most *size*."""
        data = self._file.read(size)
        self.size += len(data)
        return data


class _Unpacked(RawIOBase):
    """The decompressed bytes of a file. Memory and time are bounded, whatever the file unpacks to."""

    def __init__(self, file: BufferedReader, method: str) -> None:
        self._file, self._method = file, method
        self._packed = _Metered(file)
        packed = cast("BinaryIO", self._packed)
        self._damages: tuple[type[Exception], ...] = (zlib.error, gzip.BadGzipFile)
        self._inner: Any
        if method == "gzip":
            self._inner = gzip.GzipFile(fileobj=packed)
        else:
            zstd = _zstd()
            # The default limit for the window, 128 MiB, bounds the memory.
            self._inner, self._damages = zstd.ZstdFile(packed), (zstd.ZstdError,)
        self._size = 0
        """The bytes that were unpacked."""

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the compressed file."""
        return self._file.fileno()

    def readinto(self, buffer: Any, /) -> int:
        """Fill *buffer*. Raises `UnreadableError` if the data is damaged or cut off, or unpacks to far too much."""
        try:
            # What comes before a fault is returned: `read` would lose it.
            data = self._inner.read1(len(buffer))
        except EOFError:
            raise UnreadableError(f"the {self._method} data is cut off; what is missing is not judged") from None
        except self._damages as error:
            raise UnreadableError(f"the {self._method} data is damaged: {error}") from None
        self._size += len(data)
        if self._size > _ALWAYS + _MOST_TIMES * self._packed.size:
            raise UnreadableError(
                f"the {self._method} data unpacks to more than {_MOST_TIMES} times its size, and is not read further; "
                f"if it is a recording, unpack it: {self._method} -dc FILE | assay check -"
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def _zstd() -> Any:
    """Return the module that unpacks zstd: from Python 3.14 on, it is a part of the standard library."""
    try:
        from compression import zstd  # type: ignore[import-not-found]  # noqa: PLC0415 - from 3.14 on
    except ImportError:
        try:
            from backports import zstd  # noqa: PLC0415 - only for such a file
        except ImportError as error:
            raise UnreadableError(f"zstd needs {missing(error, 'zstd')}") from None
    return zstd

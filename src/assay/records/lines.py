"""
Read the lines of a file, which may be compressed with gzip or zstd, or at a URL. No parsing.

Lines come in large blocks: splitting a block takes a tenth of the time of reading line by line.
"""

import errno
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader, BytesIO, RawIOBase
from itertools import groupby
from typing import Any, BinaryIO, Final, cast

from assay.base.extras import missing

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


def split_blocks(read: Callable[[int], bytes], longest: int, instead: Callable[[int], bytes]) -> Iterator[LineBlock]:
    """
    Yield all lines that *read* returns, which gets the bytes to read at most.

    A line of more than *longest* bytes, with its newline, is not kept in memory; *instead* gets its size, and returns
    its replacement, with a newline.
    """
    held: list[bytes] = []
    size = 0
    while chunk := read(BLOCK):
        if size + len(chunk) <= longest and chunk.isspace() and b"\n" in chunk and not b"".join(held).strip():
            # No list of lines is made.
            blank, newline, last = b"".join((*held, chunk)).rpartition(b"\n")
            yield [blank + newline]
            held, size = [last] if last else [], len(last)
            continue
        if b"\n" not in chunk:
            # Joined once: a line of many chunks would be copied with each of them.
            size += len(chunk)
            if size <= longest:
                held.append(chunk)
            else:
                held.clear()
            continue
        # It takes half of the time of `bytes.split`.
        lines = BytesIO(chunk).readlines()
        if size > longest:
            yield [instead(size + len(lines.pop(0)))]
        elif held:
            lines[0] = b"".join((*held, lines[0]))
        last = b"" if chunk.endswith(b"\n") else lines.pop()
        held, size = [last] if last else [], len(last)
        if lines and _has_long(lines, longest):
            lines = [_short(each, longest, instead) for each in lines]
        if len(lines) * _SHORT > len(chunk):
            yield from _without_blanks(lines)
        elif lines:
            yield lines
    if size:
        yield [b"".join(held) if size < longest else instead(size)]


def _without_blanks(lines: list[bytes]) -> Iterator[LineBlock]:
    """Yield the same lines; many consecutive blank ones are a block of one item."""
    block: LineBlock = []
    for is_blank, found in groupby(lines, bytes.isspace):
        group = list(found)
        if not is_blank or len(group) < _FEWEST_BLANKS:
            block += group
            continue
        if block:
            yield block
        yield [b"".join(group)]
        block = []
    if block:
        yield block


def numbered_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank with its number. An item may be several blank lines."""
    number = 0
    for line in lines:
        if line.isspace():
            number += line.count(b"\n") or 1
        else:
            number += 1
            if line:
                yield number, line


def _has_long(lines: list[bytes], longest: int) -> bool:
    # Two blocks at most are here at a time, unless a line is long.
    return longest < 2 * BLOCK or len(lines[0]) > longest


def _short(line: bytes, longest: int, instead: Callable[[int], bytes]) -> bytes:
    return line if len(line) <= longest else instead(len(line))


# ── files by name ────────────────────────────────────────────────────────────────────────────────────────────────────


def is_url(name: str) -> bool:
    """Return whether *name* is a URL, such as ``s3://bucket/file``, and not a path."""
    return _URL.match(name) is not None


def open_binary(name: str) -> BufferedReader:
    """Open the file at a path or URL for reading. Raises `OSError`."""
    if not is_url(name):
        return open(name, "rb")
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]  # noqa: PLC0415 - only for a URL
    except ImportError as error:
        raise UrlError(f"a URL needs {missing(error, 'cluster')}") from None
    try:
        system, path = url_to_fs(name)
        return BufferedReader(cast("RawIOBase", system.open(path, "rb")), _BUFFER)
    except (ImportError, ValueError, RuntimeError) as error:
        # The package for a scheme is not installed, or the scheme is unknown.
        raise UrlError(str(error)) from None


def size_of_url(name: str) -> int | None:
    """Return the bytes of the file at a URL; None if they are not known. Raises `OSError`."""
    with open_binary(name) as file:
        known = getattr(file.raw, "size", None)
        if known is None and file.seekable():
            known = file.seek(0, 2)
    return known if isinstance(known, int) else None


class UrlError(OSError):
    """A URL cannot be read."""

    def __init__(self, why: str) -> None:
        super().__init__(5, why)


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


class UnpackingError(OSError):
    """A compressed file cannot be read to its end."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EIO, why)


def unpacked(file: BufferedReader) -> BufferedReader:
    """Return *file*, decompressed if it is compressed. Nothing is consumed. Raises `UnpackingError`."""
    head = file.peek(4)[:4]
    if head.startswith(_GZIP):
        return BufferedReader(_Unpacked(file, "gzip"), _BUFFER)
    if head == _ZSTD:
        return BufferedReader(_Unpacked(file, "zstd"), _BUFFER)
    if head == _ZIP:
        file.close()
        raise UnpackingError("a zip archive; unpack it, and give the directory")
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
        self._begin()

    def _begin(self) -> None:
        self._packed = _Metered(self._file)
        self._inner = _OPENERS[self._method](cast("BinaryIO", self._packed))
        self._size = 0
        """The bytes that were unpacked."""

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the compressed file."""
        return self._file.fileno()

    def seekable(self) -> bool:
        """Return whether it can be read again."""
        return self._file.seekable()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go back to the start, which is the only place to go to."""
        if offset or whence:
            raise UnpackingError("compressed data can only be read from its start")
        self._file.seek(0)
        self._begin()
        return 0

    def readinto(self, buffer: Any, /) -> int:
        """Fill *buffer*. Raises `UnpackingError` if the data is damaged or cut off, or unpacks to far too much."""
        try:
            data = self._inner.read(len(buffer))
        except EOFError:
            raise UnpackingError(f"the {self._method} data is cut off; what is missing is not judged") from None
        except _damages() as error:
            raise UnpackingError(f"the {self._method} data is damaged: {error}") from None
        self._size += len(data)
        if self._size > _ALWAYS + _MOST_TIMES * self._packed.size:
            raise UnpackingError(
                f"the {self._method} data unpacks to more than {_MOST_TIMES} times its size, and is not read further; "
                f"if it is a recording, unpack it: {self._method} -dc FILE | assay check -"
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def _open_gzip(file: BinaryIO) -> BinaryIO:
    return cast("BinaryIO", gzip.GzipFile(fileobj=file))


def _open_zstd(file: BinaryIO) -> BinaryIO:
    try:
        module = _zstd()
    except ImportError as error:
        raise UnpackingError(f"zstd needs {missing(error, 'zstd')}") from None
    # The default limit for the window, 128 MiB, bounds the memory.
    return cast("BinaryIO", module.ZstdFile(file))


def _zstd() -> Any:
    try:
        from compression import zstd as standard  # type: ignore[import-not-found]  # noqa: PLC0415 - from 3.14 on
    except ImportError:
        from backports import zstd  # noqa: PLC0415 - only for such a file

        return zstd
    return standard


def _damages() -> tuple[type[Exception], ...]:
    """Return the exceptions for damaged data."""
    known = (zlib.error, gzip.BadGzipFile)
    try:
        return (*known, _zstd().ZstdError)
    except ImportError:
        return known


_OPENERS: Final = {"gzip": _open_gzip, "zstd": _open_zstd}

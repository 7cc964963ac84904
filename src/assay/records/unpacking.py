"""Read a file that may be compressed with gzip or zstd: its first bytes decide, not its name."""

import errno
import gzip
import zlib
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO, Final, cast

from assay.base.extras import missing

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ZIP: Final = b"PK\x03\x04"

_BUFFER: Final = 1 << 20
"""Bytes to decompress at a time."""

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

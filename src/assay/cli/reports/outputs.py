"""Where reports go: standard output, or files that are replaced only when the report is complete."""

import os
import stat
import sys
from contextlib import AbstractContextManager, ExitStack, suppress
from errno import EISDIR
from io import TextIOWrapper
from typing import BinaryIO, Final

from assay.cli.terminal.progress_bar import printing
from assay.cli.terminal.style import Style
from assay.edges.standard_streams import write_utf8
from assay.model.atomic_file import replacing
from assay.model.errors import UsageError

_DEVICES: Final = ("/dev/", "/proc/")
"""Directories whose entries are never replaced, such as /dev/stdout."""


class ReportFileError(UsageError):
    """A report cannot be written. Not an `OSError`, which would be reported as an error of the recording."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(f"cannot write {path}: {error.strerror or 'the write failed'}")


class ReportOutput:
    """Standard output: in its own encoding for people, in UTF-8 for programs."""

    def __init__(self, *, for_people: bool) -> None:
        self.style = Style(sys.stdout)
        self._for_people = for_people

    def write(self, text: str) -> None:
        """Write *text*."""
        with printing(sys.stdout):
            if self._for_people:
                sys.stdout.write(text)
            else:
                write_utf8(text)

    def finish(self) -> None:
        """Complete the output. Raises `ReportFileError`."""

    def abandon(self) -> None:
        """Leave no incomplete file behind."""


class OutputFile(ReportOutput):
    """A file in UTF-8. A regular file is replaced atomically; a pipe or device is written to as it is."""

    def __init__(self, path: str) -> None:
        """Open a new file beside *path*. Raises `ReportFileError`."""
        self.path = path
        self._stack = ExitStack()
        try:
            raw = self._stack.enter_context(_opened(path))
        except OSError as error:
            raise ReportFileError(path, error) from None
        self._file = TextIOWrapper(raw, "utf-8", "replace", newline="\n")
        self.style = Style(self._file, {})

    def write(self, text: str) -> None:
        """Write *text*. Raises `ReportFileError`."""
        try:
            self._file.write(text)
        except OSError as error:
            raise ReportFileError(self.path, error) from None

    def finish(self) -> None:
        """Put the complete file in place. Raises `ReportFileError`."""
        try:
            self._file.flush()
            self._stack.close()
        except OSError as error:
            raise ReportFileError(self.path, error) from None

    def abandon(self) -> None:
        """Remove the incomplete file."""
        # An error leaves the old file as it is.
        with suppress(OSError), self._stack:
            raise InterruptedError


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), path)
    if not stat.S_ISREG(mode) or os.path.abspath(path).startswith(_DEVICES):
        return open(path, "wb")
    # A link stays one: the file that it leads to is replaced.
    return replacing(os.path.realpath(path))

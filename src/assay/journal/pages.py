"""The lines of a journal, from wherever it is: a file, all files of a run one after the other, or standard input."""

import os
from collections.abc import Callable, Iterator
from io import BufferedReader, BytesIO, RawIOBase
from typing import Self, cast

from assay.journal import files


class Pages:
    """
    The lines of one journal, open for reading.

    A directory, and `.latest` in it, stands for its newest run, and the first file of a run for all of them; any other
    file is read alone.
    """

    def __init__(self, name: str, *, whole: bool = False) -> None:
        """
        Opens the journal called *name*, ``-`` for standard input; raises `OSError`.

        *whole* says that *name* is the first file that is left of a run, of which all are read.
        """
        self._path = ""
        self._goes_on = False
        self._held = b""
        self._over = False
        if name == "-":
            self._file: BufferedReader = open(0, "rb", closefd=False)  # noqa: SIM115 - `with` closes it
            return
        if os.path.basename(name) == files.LATEST and os.path.islink(name):
            # It leads to the last file of a run.
            name = os.path.dirname(name) or os.curdir
        is_directory = os.path.isdir(name)
        self._path = files.newest(name) if is_directory else name
        self._goes_on = whole or is_directory or files.begins_run(name)
        self._file = open(self._path, "rb")  # noqa: SIM115 - as above

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing more is read."""
        self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        """Every line that is there."""
        while True:
            yield from self._file
            if not self._turn():
                return

    def followed(self, pause: Callable[[], None]) -> Iterator[bytes]:
        """Whole lines as they are written, without end; *pause* is called while there are none."""
        while True:
            yield from self.arrived()
            pause()

    def arrived(self) -> Iterator[bytes]:
        """Whole lines that were written since this was last called. Half a line is kept until it is whole."""
        while True:
            line = self._file.readline()
            self._held += line
            if self._held.endswith(b"\n"):
                yield self._take()
            elif not self._over:
                # What was written to the file before it was over is read first.
                self._over = not line and self._is_over()
                if not self._over:
                    return
            elif not line:
                if self._held:
                    yield self._take()
                self._over = not self._turn() and not self._begin_anew()

    def _take(self) -> bytes:
        held, self._held = self._held, b""
        return held

    def skip(self) -> None:
        """Passes over everything that was written so far."""
        while self._turn():
            pass
        self._file.seek(0, os.SEEK_END)

    def peek(self) -> bytes:
        """Return some bytes that it begins with, which stay to be read; none if it is empty."""
        return self._file.peek()

    def keep(self) -> None:
        """Makes sure that it can be read twice, which standard input cannot."""
        if not self._path and not self._file.seekable():
            self._file = BufferedReader(cast("RawIOBase", BytesIO(self._file.read())))

    def rewind(self) -> None:
        """Begins again with the first line."""
        if self._goes_on:
            self._open(files.files_of(self._path)[0])
        else:
            self._file.seek(0)

    def _is_over(self) -> bool:
        """Whether nothing more is written to this file: there is a further one, or another under its name."""
        return self._following() is not None or self._is_moved()

    def _is_moved(self) -> bool:
        try:
            there = os.stat(self._path)
        except OSError:
            return False
        here = os.fstat(self._file.fileno())
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    def _begin_anew(self) -> bool:
        if self._is_moved():
            self._open(self._path)
        return True

    def _following(self) -> str | None:
        """The next file of the run."""
        if not self._goes_on:
            return None
        number = files.number_of(self._path)
        return next((each for each in files.files_of(self._path) if files.number_of(each) > number), None)

    def _turn(self) -> bool:
        """Goes on with the next file of the run; whether there is one."""
        while (path := self._following()) is not None:
            try:
                self._open(path)
            except FileNotFoundError:
                # It was among the oldest, and is gone.
                self._path = path
                continue
            return True
        return False

    def _open(self, path: str) -> None:
        file = open(path, "rb")  # noqa: SIM115 - as above
        self._file.close()
        self._file, self._path = file, path

"""Where units of work are done: here, or in other processes, whose results are kept in a file until they are read."""

from __future__ import annotations

import os
import pickle
import stat
import sys
from collections.abc import Collection, Iterator, Sequence
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from assay.cli.checking.check_stream import portable
from assay.cli.reports.check_findings import CheckedMessage
from assay.records.line_blocks import is_url

if TYPE_CHECKING:
    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.work_units import Tick, WorkUnit

_BATCH: Final = 256
"""Results in a batch: enough that sending it costs little beside its content."""

_LARGEST_BATCH: Final = 1 << 20
"""Bytes of messages in a batch, which has at least one."""

_IN_MEMORY: Final = 256 << 10
"""Bytes of the results of one unit to keep in memory; more of them are kept in a temporary file."""

_LENGTH: Final = 8
"""Bytes of the length before each batch in a file."""

_OF_A_PROCESS: Final = ("/dev/", "/proc/")
"""Directories with names that mean another file in every process, such as /dev/fd/3."""


class ClusterError(Exception):
    """A cluster cannot be used; the message has the reason."""


class Executor(Protocol):
    """Does units of work."""

    is_shared: bool
    """Whether several processes do the work, so that large files are worth splitting."""
    largest: int
    """Maximal bytes of a range of a file: a lost unit is done again."""

    def start(self, units: Sequence[WorkUnit]) -> int:
        """Begin with *units*, in order, before those that still wait; return the index of the first one."""

    def stream(self, index: int) -> Iterator[Any]:
        """Yield the results of one unit, once. Waits until they are there."""

    def ended(self, indices: Collection[int]) -> tuple[int, Any]:
        """Wait until one of these units is done; return its index and its last result. `stream` yields that, too."""

    def drop(self, indices: Collection[int]) -> None:
        """End these units, whose results are not needed."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None:
        """End all work."""


class InOneProcess:
    """Does each unit when its results are asked for."""

    is_shared = False
    largest = sys.maxsize

    def __init__(self, terms: CheckTerms, tick: Tick) -> None:
        self._terms, self._tick = terms, tick
        self._units: list[WorkUnit] = []
        self._spools: dict[int, Spool] = {}

    def start(self, units: Sequence[WorkUnit]) -> int:
        """Do nothing yet."""
        self._units.extend(units)
        return len(self._units) - len(units)

    def stream(self, index: int) -> Iterator[Any]:
        """Do one unit, and yield its results as they come."""
        if index in self._spools:
            return self._spools.pop(index).items()
        return self._units[index].results(self._terms, self._tick)

    def ended(self, indices: Collection[int]) -> tuple[int, Any]:
        """Do one of these units."""
        index = min(indices)
        self._spools[index] = spooled(self.stream(index))
        return index, self._spools[index].last

    def drop(self, indices: Collection[int]) -> None:
        """Forget what is done of these units."""
        for index in indices:
            if index in self._spools:
                self._spools.pop(index).drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left to end."""


def is_only_here(path: str | None) -> bool:
    """Return whether only this process can read a file: standard input, or a pipe, whose bytes are there only once."""
    if path is None or is_url(path):
        return False
    if path == "-" or os.path.abspath(path).startswith(_OF_A_PROCESS):
        return True
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        # The process that reads it reports the error.
        return False


def packed(items: Iterator[Any]) -> Iterator[bytes]:
    """Yield *items* in batches, as bytes."""
    batch: list[Any] = []
    size = 0
    for item in items:
        if isinstance(item, CheckedMessage):
            size += len(item.judged.verdict.frame)
            batch.append(portable(item))
        else:
            batch.append(item)
        if len(batch) >= _BATCH or size >= _LARGEST_BATCH:
            yield pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)
            batch, size = [], 0
    if batch:
        yield pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)


class Spool:
    """The packed results of a unit, until they are read."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY, prefix="assay-check-")  # noqa: SIM115 - `drop` closes it
        self._newest = 0
        """The place of the newest batch."""

    def add(self, batch: bytes) -> None:
        """Add a batch that `packed` has yielded."""
        self._newest = self._file.tell()
        self._file.write(len(batch).to_bytes(_LENGTH, "big"))
        self._file.write(batch)

    @property
    def last(self) -> Any:
        """The last result."""
        self._file.seek(self._newest + _LENGTH)
        return pickle.loads(self._file.read())[-1]  # noqa: S301 - as below

    def items(self) -> Iterator[Any]:
        """Yield all results, once."""
        # Closed also if the reader stops early, as it does at the end of a unit.
        with self._file:
            self._file.seek(0)
            while size := self._file.read(_LENGTH):
                # Our own results: an attacker who can change them can change the program, too.
                yield from pickle.loads(self._file.read(int.from_bytes(size, "big")))  # noqa: S301

    def drop(self) -> None:
        """Forget all results."""
        self._file.close()


def spooled(items: Iterator[Any]) -> Spool:
    """Return all *items* in a new spool."""
    made = Spool()
    for batch in packed(items):
        made.add(batch)
    return made

"""Where units of work are done: here, or in other processes, whose results are kept in a file until they are read."""

from __future__ import annotations

import os
import pickle
import stat
from collections.abc import Iterator, Sequence
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

AHEAD: Final = 100
"""Units that are begun before the results of the first of them are read: each may have a file."""

_LENGTH: Final = 8
"""Bytes of the length before each batch in a file."""

_OF_A_PROCESS: Final = ("/dev/", "/proc/")
"""Directories with names that mean another file in every process, such as /dev/fd/3."""


class ClusterError(Exception):
    """A cluster cannot be used; the message has the reason."""


class Executor(Protocol):
    """Does units of work."""

    def map(self, units: Sequence[WorkUnit]) -> Iterator[Iterator[Any]]:
        """Begin with *units*, and yield the results of each, in order. Called once."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None:
        """End all work."""


class InOneProcess:
    """Does each unit when its results are asked for."""

    def __init__(self, terms: CheckTerms, tick: Tick) -> None:
        self._terms, self._tick = terms, tick

    def map(self, units: Sequence[WorkUnit]) -> Iterator[Iterator[Any]]:
        """Do one unit after the other, and yield its results as they come."""
        return (unit.results(self._terms, self._tick) for unit in units)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left to end."""


def is_only_here(path: str) -> bool:
    """Return whether only this process can read a file: standard input, or a pipe, whose bytes are there only once."""
    if is_url(path):
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

    def add(self, batch: bytes) -> None:
        """Add a batch that `packed` has yielded."""
        self._file.write(len(batch).to_bytes(_LENGTH, "big"))
        self._file.write(batch)

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

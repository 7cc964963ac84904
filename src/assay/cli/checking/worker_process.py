"""What another process of this machine does: units of work, whose results it sends through a pipe."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from assay.cli.checking.executors import packed

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.work_units import WorkUnit

_REPORTED: Final = 1 << 20
"""Bytes that a process reads until it reports them: each report takes the time of judging some messages."""

RESULTS, READ, DONE, FAILED = b"r", b"b", b"d", b"f"
"""The first byte of a message from a process: a batch of results, bytes that it has read, or the end of its unit."""


def serve(connection: Connection, terms: CheckTerms, inherited: Sequence[Connection]) -> None:
    """
    Do units until the pipe is closed: the life of a worker process.

    A forked process has inherited the ends of pipes that the main process has. Other processes would not notice the end
    of the main process if these were kept.
    """
    for each in inherited:
        each.close()
    if inherited:
        # The main process has handlers, which would end it in its own way.
        for number in (signal.SIGTERM, signal.SIGHUP):
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
    else:
        _begin_anew()
    with suppress(EOFError, OSError):
        while True:
            _serve_one(connection, terms, connection.recv())


def _begin_anew() -> None:
    """Set up a process that has nothing of the main process."""
    from assay.cli.checking.tuning import tune  # noqa: PLC0415 - for this process only

    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    tune()


class _UnitTicks:
    """Reports the bytes that a unit has read, from time to time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._count = 0

    def add(self, count: int) -> None:
        """Count some bytes more."""
        self._count += count
        if self._count >= _REPORTED:
            self.report()

    def report(self) -> None:
        """Report all bytes up to now."""
        self._connection.send_bytes(READ + self._count.to_bytes(8, "big"))
        self._count = 0


def _serve_one(connection: Connection, terms: CheckTerms, unit: WorkUnit) -> None:
    ticks = _UnitTicks(connection)
    try:
        for batch in packed(unit.results(terms, ticks.add)):
            connection.send_bytes(RESULTS + batch)
        ticks.report()
    except MemoryError:
        # The unit is done again in a new process, which has all of its memory for it.
        raise SystemExit(1) from None
    except OSError:
        raise
    except Exception:
        from traceback import format_exc  # noqa: PLC0415 - for a bug only

        connection.send_bytes(FAILED + format_exc().encode(errors="replace"))
    else:
        connection.send_bytes(DONE)

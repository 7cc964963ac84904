"""
Handle SIGHUP: reopen files, so that log rotation can move them away.

A closed terminal sends the same signal. Then the process ends, as usual, unless the signal is ignored, as with nohup.
"""

import os
import select
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_told: list[Callable[[], None]] = []


def heed() -> None:
    """From now on SIGHUP only reopens files. Call it before anything exists that must not be left behind."""
    stays = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or not _has_terminal()

    def came(_: int, __: FrameType | None) -> None:
        if not stays and not _has_terminal():
            os.kill(os.getpid(), signal.SIGTERM)
            return
        for tell in _told:
            tell()

    signal.signal(signal.SIGHUP, came)


@contextmanager
def telling(reopen: Callable[[], None]) -> Iterator[None]:
    """Within this context, call *reopen* for the signal. It can come at any time, so *reopen* must do little."""
    _told.append(reopen)
    try:
        yield
    finally:
        _told.remove(reopen)


def end_with_terminal() -> None:
    """From now on SIGHUP ends this process as SIGTERM does, unless SIGHUP was ignored at its start, as with nohup."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))


def end_with_reader(descriptor: int) -> None:
    """From now on end this process, as with SIGTERM, when the reader of the pipe at *descriptor* is gone."""
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return

    def watch() -> None:
        poll = select.poll()
        # No event is requested: a broken pipe is always reported.
        poll.register(descriptor, 0)
        poll.poll()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def is_heeded() -> bool:
    """Whether SIGHUP is already handled."""
    return callable(signal.getsignal(signal.SIGHUP))


def _has_terminal() -> bool:
    """Whether this process has a controlling terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True

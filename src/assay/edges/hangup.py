"""
SIGHUP while we serve: files are opened anew, so that others can move them away.

A terminal that is closed sends the same signal. Then it is over, as it always was, unless whoever started us has seen
to it that we stay, as nohup does.
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
    """From now on SIGHUP does no more than that. To be called before there is anything that must not be left behind."""
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
    """Meanwhile *reopen* is called when the signal comes, at any time, and so must not do much."""
    _told.append(reopen)
    try:
        yield
    finally:
        _told.remove(reopen)


def end_with_terminal() -> None:
    """From now on SIGHUP ends this process as SIGTERM does, unless whoever started it ignores SIGHUP, as nohup does."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))


def end_with_reader(descriptor: int) -> None:
    """From now on this process ends as with SIGTERM when the pipe at *descriptor* has no reader any more."""
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return

    def watch() -> None:
        poll = select.poll()
        # No event is asked for: a broken pipe is reported all the same.
        poll.register(descriptor, 0)
        poll.poll()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def is_heeded() -> bool:
    """Whether somebody sees to the signal: then it is nobody else's."""
    return callable(signal.getsignal(signal.SIGHUP))


def _has_terminal() -> bool:
    """Whether this process has a terminal that can be closed. After that it has none."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True

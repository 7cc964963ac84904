"""Signals that end a run: no process and no incomplete report is left behind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a run as Ctrl-C does."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    names = (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP"))
    # A signal that is ignored, as under nohup, stays so. Only the main thread can have handlers.
    taken = [
        each
        for each in names
        if each is not None and current_thread() is main_thread() and signal.getsignal(each) is signal.SIG_DFL
    ]
    for each in taken:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)

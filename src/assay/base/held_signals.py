"""Keep signals while threads or processes are started, which then never get them."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def signals_held(*names: str) -> Iterator[None]:
    """Keep these signals, or all of them, until the end of this. What is started in the meantime never gets them."""
    if sys.platform == "win32":
        yield
        return
    kept = {getattr(signal, name) for name in names} or signal.valid_signals()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, kept)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

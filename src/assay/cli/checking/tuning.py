"""Settings of the interpreter for a process that judges millions of messages."""

import gc
from typing import Final

LARGE_INPUT: Final = 4 << 20
"""Bytes of input from which on it is worth it."""


def tune() -> None:
    """
    Look for garbage more rarely, for the rest of the process.

    Judging makes hardly any cycles, and keeps some hundred thousand objects, which the collector would look at again
    and again: it takes a twelfth of the time with the usual thresholds.
    """
    gc.set_threshold(50_000, 20, 100)

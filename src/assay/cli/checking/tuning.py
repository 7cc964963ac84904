"""Settings of the interpreter for a process that judges millions of messages."""

import gc


def tune() -> None:
    """
    Look for garbage more rarely.

    Judging makes hardly any cycles, and keeps some hundred thousand objects. With the usual thresholds the collector
    looks at all of them again and again, and takes a tenth of the time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)

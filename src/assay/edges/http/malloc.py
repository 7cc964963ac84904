"""
Return unused memory to the system.

glibc returns a large block to the system at once, until the first one is freed: from then on blocks of that size stay
in the process. With hundreds of slow clients that is a third of its memory. An explicit threshold is never moved.
"""

import ctypes
import os
from typing import Final

LARGE: Final = 128 << 10
"""Minimal bytes of a block that is returned at once: the initial value of glibc."""

_M_MMAP_THRESHOLD: Final = -3


def give_back() -> None:
    """Set the threshold. Other libraries have none, and a setting of the user stays."""
    if not os.environ.get("MALLOC_MMAP_THRESHOLD_") and not os.environ.get("GLIBC_TUNABLES"):
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)
        if set_option is not None:
            set_option(_M_MMAP_THRESHOLD, LARGE)

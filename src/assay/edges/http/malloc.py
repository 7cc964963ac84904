"""
What the process keeps of the memory that it no longer needs.

glibc takes a large piece from the system and gives it back at once, until the first such piece is freed: from then on
pieces of that size stay in the process, between others that are in use. Beside hundreds of slow clients that is a
third of all it has. A threshold that is set is never moved.
"""

import ctypes
import os
from typing import Final

LARGE: Final = 128 << 10
"""Bytes from which on memory is given back as soon as it is free: where glibc itself begins."""

_M_MMAP_THRESHOLD: Final = -3


def give_back() -> None:
    """From now on. Other systems' libraries have no such threshold, and what the user has set stays."""
    if not os.environ.get("MALLOC_MMAP_THRESHOLD_") and not os.environ.get("GLIBC_TUNABLES"):
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)
        if set_option is not None:
            set_option(_M_MMAP_THRESHOLD, LARGE)

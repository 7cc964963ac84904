"""How many bytes of text an object keeps alive: what a bound is about, and the same on every machine."""

import gc
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

_OURS = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
"""What is there once, whatever comes: code, and what it refers to."""


def kept_bytes(*roots: Any) -> int:
    """Return the bytes and characters of all texts that can be reached from *roots*, each counted once."""
    seen, waiting, total = set[int](), list(roots), 0
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, _OURS):
            continue
        seen.add(id(each))
        if isinstance(each, bytes | bytearray | str):
            total += len(each)
        waiting.extend(gc.get_referents(each))
    return total

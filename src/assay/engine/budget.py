"""Whether judging an instance by a schema comes to an end in time, known before the engine is asked. Counting only."""

from typing import Any, Final, Protocol

STEPS: Final = 40_000_000
"""Looks at a value in one judgement: about half a second, at 12 ns each. The engine cannot be stopped in between."""

LARGEST: Final = 1 << 19
"""Values in a frame of 1 MiB: each takes two bytes at least."""

_TEXT: Final = 6
"""Characters of a string count as one value for each 2^6: patterns and lengths look at every one of them."""


class Wide(Protocol):
    """A schema of which it is known how often it looks at one value at most."""

    width: int
    always_affordable: bool


def affordable(schema: Wide, instance: Any) -> bool:
    """Whether *schema* can judge *instance* within `STEPS`. Known at once for nearly all schemas; else it counts."""
    if schema.always_affordable:
        return True
    left = STEPS // schema.width
    waiting = [instance]
    while waiting and left >= 0:
        value = waiting.pop()
        left -= 1
        if isinstance(value, dict):
            left -= len(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str):
            left -= len(value) >> _TEXT
    return left >= 0

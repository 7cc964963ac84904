"""
Whether an instance can be judged in bounded time, told from what is known of its schema. Asks the engine nothing.

Admission bounds what one path of an instance costs, not how many values lie beside each other: 2,000 evaluations are
nothing for one value and 12 s for each of 500,000.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.engine.compiled import Compiled

STEPS = 40_000_000
"""Steps of the engine one judgement may take: about half a second at 12 ns each. It cannot be interrupted, and holds
the interpreter meanwhile."""

FRAME_VALUES = 1 << 19
"""Values a frame of the default size can hold: a value takes a character and a separator."""

_UNUSUAL = 8
"""What a number counts for whose exponent makes exact comparison long."""


def is_narrow(width: int) -> bool:
    """Whether no frame of the default size can cost too much by a schema of this *width*."""
    return width * FRAME_VALUES <= STEPS


def affordable(compiled: "Compiled", instance: Any, *, size: int | None = None) -> bool:
    """
    Whether judging *instance* by *compiled* takes at most `STEPS`.

    Needs no look at the instance if the schema is narrow, nor if *size*, the bytes of the text it was read from, is
    small enough; else it counts values, until there are too many.
    """
    if compiled.always_affordable or (size is not None and compiled.width * (size // 2 + 1) <= STEPS):
        return True
    return not holds_more(instance, STEPS // compiled.width)


def holds_more(instance: Any, most: int) -> bool:
    """Whether *instance* holds more than *most* values and keys; strings count again for each 64 characters."""
    count = 1
    level = [instance]
    while level and count <= most:
        inside: list[Any] = []
        for one in level:
            count += _own(one)
            if isinstance(one, dict):
                count += 2 * len(one) + (sum(map(len, one)) >> 6)
                inside.extend(one.values())
            elif isinstance(one, list):
                count += len(one)
                inside.extend(one)
            if count > most:
                return True
        level = inside
    return count > most


def _own(value: Any) -> int:
    """What a scalar counts for beyond one."""
    if isinstance(value, str):
        return len(value) >> 6
    if isinstance(value, float):
        return 0 if 1e-15 < abs(value) < 1e30 or not value else _UNUSUAL
    if isinstance(value, int) and value.bit_length() > 64:
        # The engine takes an integer beyond 64 bits over as text: quadratic in its length.
        return (value.bit_length() >> 6) ** 2 >> 2
    return 0

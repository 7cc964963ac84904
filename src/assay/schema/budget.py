"""
How much judging and explaining one message may cost. Asks the engine nothing.

The cost of a schema bounds what one value of an instance takes, not how many values there are: 2,000 steps are nothing
for one value and 12 s for each of 500,000.
"""

from typing import TYPE_CHECKING, Any, Final

import orjson

from assay.model import large_frames

if TYPE_CHECKING:
    from assay.schema.compiled import Compiled

STEPS: Final = 8_000_000
"""Steps of the engine that one message may take: about 0.1 s at 12 ns each. The engine cannot be interrupted, and holds
the interpreter while it works."""

LARGE: Final = 128 << 10
"""Bytes from which on a message gets a budget of its own."""

_QUESTION: Final = 2_000
"""Steps that one question of an explanation counts for: 24 µs. The most expensive explanation measured took 30 µs."""

_UNUSUAL: Final = 8
"""The weight of a number whose exponent makes exact comparison slow."""

_LONGEST: Final = 2**64

_UNKNOWN: Final = 1 << 40
"""More values than any message has: each part of the message is counted before it is judged."""

_READ: Final = 3
"""Steps that reading one value of a large message counts for. Chosen so that the worst messages of bench/worst.py take
about 250 ms."""

_EXACT: Final = 25
"""The width from which on a schema may compare exactly: `multipleOf` has that."""


_COMPILES: Final = 2
"""Contracts that one message compiles. A batch over HTTP may need more, if they did not stay compiled until then."""


class Budget:
    """The steps that are left for one message. All rungs that judge or explain it draw from the same budget."""

    __slots__ = ("compiles", "steps", "values", "violations")

    def __init__(self, frame: bytes, violations: int) -> None:
        """*violations* is how many are listed. Without a *frame* nothing is known of the message beforehand."""
        size = len(frame)
        self.values = (size or _UNKNOWN) if size <= LARGE else large_frames.at_most(frame) + (size >> 6)
        """At least the number of values and keys in the message; strings count again for each 64 characters."""
        self.steps = STEPS if size <= LARGE else max(STEPS - _READ * self.values, STEPS // 2)
        """Steps of the engine that are left."""
        self.violations = violations
        self.compiles = _COMPILES
        """Contracts that may still be compiled, where other clients wait meanwhile."""

    def affords(self, compiled: "Compiled", instance: Any) -> bool:
        """
        Whether the budget suffices to judge *instance*, a part of the message, by *compiled*; if so, draw the cost.

        The instance of a small message or of a narrow schema is not counted.
        """
        width = compiled.width
        values = self.values
        if values * width * (_UNUSUAL if width >= _EXACT else 1) > self.steps:
            values = _counted(instance, max(self.steps, 0) // width, exact=width >= _EXACT)
        cost = values * width
        if cost > self.steps:
            return False
        self.steps -= cost
        return True

    def questions(self, most: int, width: int = 1) -> int:
        """Return how many questions about a schema of *width* an explanation may ask, at most *most*."""
        return max(0, min(most, self.steps // max(_QUESTION, width)))

    def asked(self, questions: int, width: int = 1) -> None:
        """Draw the cost of *questions* about a schema of *width*."""
        self.steps -= questions * max(_QUESTION, width)


def _counted(instance: Any, most: int, *, exact: bool) -> int:
    """Return the number of values of *instance*, counted in its text unless their kind matters."""
    if exact:
        return counted(instance, most)
    text = orjson.dumps(instance)
    return large_frames.counted(text, most) + (len(text) >> 6)


def is_narrow(width: int) -> bool:
    """Whether no message below `LARGE` can cost too much by a schema of this *width*: a value takes two bytes."""
    return width * (LARGE >> 1) <= STEPS


def affordable(compiled: "Compiled", instance: Any) -> bool:
    """Whether judging *instance* by *compiled* takes at most `STEPS`, where no message is known."""
    return counted(instance, STEPS // compiled.width) * compiled.width <= STEPS


def counted(instance: Any, most: int) -> int:
    """
    Return how many values and keys *instance* holds; strings count again for each 64 characters.

    Stops as soon as there are more than *most*.
    """
    count = 1
    level = [instance]
    while level and count <= most:
        inside: list[Any] = []
        for one in level:
            kind = type(one)
            if kind is dict:
                count += 2 * len(one) + (sum(map(len, one)) >> 6)
                inside.extend(one.values())
            elif kind is list:
                count += len(one)
                inside.extend(one)
            elif kind is str:
                count += len(one) >> 6
            elif kind is float:
                count += 0 if 1e-15 < abs(one) < 1e30 or not one else _UNUSUAL
            elif kind is int and not -_LONGEST <= one <= _LONGEST:
                # The engine takes an integer beyond 64 bits over as text: quadratic in its length.
                count += (one.bit_length() >> 6) ** 2 >> 2
            if count > most:
                return count
        level = inside
    return count

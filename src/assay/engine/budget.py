"""
What judging one message may cost, told from what is known of its schema. Asks the engine nothing.

Admission bounds what one path of an instance costs, not how many values lie beside each other: 2,000 evaluations are
nothing for one value and 12 s for each of 500,000.
"""

from typing import TYPE_CHECKING, Any, Final

import orjson

from assay.base import value_count

if TYPE_CHECKING:
    from assay.engine.compiled import Compiled

STEPS: Final = 8_000_000
"""Steps of the engine that one message may take: about 0.1 s at 12 ns each. It cannot be interrupted, and holds the
interpreter meanwhile."""

LARGE: Final = 128 << 10
"""Bytes from which on a message is judged within a budget that was made for it."""

QUESTION: Final = 2_000
"""Steps that a question of an explanation counts for: 30 µs for the dearest explanation measured, 24 µs here."""

_UNUSUAL: Final = 8
"""What a number counts for whose exponent makes exact comparison long."""

_LONGEST: Final = 2**64

_UNKNOWN: Final = 1 << 40
"""More values than any message has: each part of it is counted before it is judged."""

_READ: Final = 3
"""Steps that reading a value counts for, of a large message. Chosen so that the worst messages of bench/worst.py stay
near 250 ms."""

_EXACT: Final = 25
"""The width from which on a schema may compare exactly: `multipleOf` has that."""


class Budget:
    """What may still be spent on one message. Every rung that judges or explains it draws from the same one."""

    __slots__ = ("steps", "values", "violations")

    def __init__(self, frame: bytes, violations: int) -> None:
        """*violations* is how many are listed. Without a *frame* nothing is known of the message beforehand."""
        size = len(frame)
        self.values = (size or _UNKNOWN) if size <= LARGE else value_count.at_most(frame) + (size >> 6)
        """No fewer than the values and keys in the message; strings count again for each 64 characters."""
        self.steps = STEPS if size <= LARGE else max(STEPS - _READ * self.values, STEPS // 2)
        """Steps of the engine that are left."""
        self.violations = violations

    def affords(self, compiled: "Compiled", instance: Any) -> bool:
        """
        Whether judging *instance*, a part of the message, by *compiled* takes no more than is left; if so, draws it.

        A message that is small, or whose schema is narrow, needs no look at the instance.
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

    def questions(self, most: int) -> int:
        """How many questions an explanation may ask, at most *most*."""
        return max(0, min(most, self.steps // QUESTION))

    def asked(self, questions: int) -> None:
        """Draws what an explanation has asked."""
        self.steps -= questions * QUESTION


def _counted(instance: Any, most: int, *, exact: bool) -> int:
    """The values of *instance*, which was read from a frame, counted in its text where their kind does not matter."""
    if exact:
        return counted(instance, most)
    text = orjson.dumps(instance)
    return value_count.counted(text, most) + (len(text) >> 6)


def is_narrow(width: int) -> bool:
    """Whether no message below `LARGE` can cost too much by a schema of this *width*: a value takes two bytes."""
    return width * (LARGE >> 1) <= STEPS


def affordable(compiled: "Compiled", instance: Any) -> bool:
    """Whether judging *instance*, of which nothing else is known, by *compiled* takes at most `STEPS`."""
    return counted(instance, STEPS // compiled.width) * compiled.width <= STEPS


def counted(instance: Any, most: int) -> int:
    """
    How many values and keys *instance* holds; strings count again for each 64 characters.

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

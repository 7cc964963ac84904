"""
Regular expressions with look-around or back-references, matched within a bound.

The engine for these patterns limits steps back, not time: between two steps back it may read the text as often as loops
are nested, and a match that needs more steps back silently counts as no match. So before a message is judged by such a
pattern, each of its texts is tried alone. A text that is long, that would take too long, or that the limit does not
decide, is judged without the pattern.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import jsonschema_rs

from assay.engine.drafts import DRAFT_2020_12
from assay.engine.patterns import MANY_STATES, UNBOUNDED, after_atom, repeated, states

_LONGEST: Final = 1_024
"""Characters of a text that is matched."""

_FEW, _STEPS_BACK = 8, 128
"""
Limits on steps back, tried one after the other. The pattern of Pydantic for a decimal needs 1 to 4, those of zod 2 for
an address and 10 to 30 for a duration. The engine judges with the second.
"""

_ASKED, _REFUSED = 40, 400
"""Steps of the JSON Schema engine, about 12 ns each, for one question, and for an exception as its answer: 5 µs."""

_CHEAP: Final = 1_000
"""Such steps that each further copy of a text has free: real ones take 50 ns, part of the width of a schema."""

_UNIT: Final = 2
"""Such steps for one character that is read: 3 to 25 ns were measured."""

_AT_ONCE: Final = 3
"""States for one step forward, if a pattern has too many states for an automaton: 7 ns each."""


class Backtracking:
    """One pattern that only the engine with steps back can match."""

    __slots__ = ("_few", "_most", "_weight", "pattern")

    def __init__(self, pattern: str, pattern_size: int, draft: str = DRAFT_2020_12.uri) -> None:
        """Raises what the engine raises; which patterns it accepts depends on the *draft*."""
        self.pattern = pattern
        self._weight = _weighed(pattern)
        alone = {"$schema": draft, "pattern": pattern}
        self._few, self._most = (
            jsonschema_rs.validator_for(
                alone, pattern_options=stepping_back(pattern_size, pattern_size, steps), offline=True, mask="…"
            )
            for steps in (_FEW, _STEPS_BACK)
        )

    def drawn(self, text: str, times: int, left: int, copies: int = 1) -> int | None:
        """
        Return what is left of *left* steps after matching *text*, *times* for each of its *copies*, and once here.

        None if the text cannot be decided within *left*. A text that few steps back decide is decided with more of
        them as well, which the engine judges with.
        """
        if len(text) > _LONGEST:
            return None
        for steps, matcher in ((_FEW, self._few), (_STEPS_BACK, self._most)):
            cost = self.cost(len(text), steps)
            left -= cost * (times + 1)
            if left < 0:
                return None
            matched = _matches(matcher, text)
            left -= 0 if matched else _REFUSED
            if matched is not None:
                left -= (copies - 1) * times * max(0, cost - _CHEAP)
                return left if left >= 0 else None
        return None

    def cost(self, length: int, steps: int) -> int:
        """Return a bound on the steps of the JSON Schema engine for a text of *length* with so many *steps* back."""
        weight, loops = self._weight
        read: int = (length + 1) ** (loops + 1)
        return _ASKED + (steps + 1) * weight * _UNIT * read


def _matches(matcher: jsonschema_rs.Validator, text: str) -> bool | None:
    """Return whether *text* matches; None if the limit of *matcher* does not decide it."""
    try:
        matcher.validate(text)
    except jsonschema_rs.ValidationError as error:
        return False if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Pattern) else None
    return True


def stepping_back(pattern_size: int, automaton_size: int, steps: int = _STEPS_BACK) -> jsonschema_rs.FancyRegexOptions:
    """Return the options to match backtracking patterns; other patterns still take linear time."""
    return jsonschema_rs.FancyRegexOptions(
        backtrack_limit=steps, size_limit=pattern_size, dfa_size_limit=automaton_size
    )


def undecided(
    patterns: Sequence[Backtracking], instance: Any, times: int, left: int
) -> tuple[Backtracking | None, int]:
    """
    Return the first of *patterns* that does not decide a text of *instance* within *left* steps, and what is left then.

    Each text counts, keys included: only judging would show which text is compared with which pattern.
    """
    # In the order of the message, so that the same message is always judged the same way.
    for text, copies in Counter(_texts(instance)).items():
        for pattern in patterns:
            drawn = pattern.drawn(text, times, left, copies)
            if drawn is None:
                return pattern, left
            left = drawn
    return None, left


def _texts(instance: Any) -> Iterator[str]:
    waiting = [instance]
    for one in waiting:  # grows during the loop
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            yield from one
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


class _Weight(NamedTuple):
    """The work of a part of a pattern between two steps back."""

    looks: int = 0
    """How often the text is read: once for each look-around and back-reference, as often as it is repeated."""
    loops: int = 0
    """How many loops are around them, inside each other: each reads the text once for each character."""

    def repeated(self, most: int) -> "_Weight":
        """Return the work of the same part so many times."""
        if not self.looks:
            return self
        return _Weight(self.looks, self.loops + 1) if most >= UNBOUNDED else _Weight(self.looks * most, self.loops)

    def beside(self, other: "_Weight") -> "_Weight":
        """Return the work of two parts."""
        return _Weight(self.looks + other.looks, max(self.loops, other.loops))


def _weighed(pattern: str) -> _Weight:
    """Return the work of the whole *pattern*, its own reading of the text included."""
    levels = [_Weight(1)]
    at = 0
    while at < len(pattern):
        if pattern[at] == "(":
            levels.append(_Weight(int(pattern.startswith(_LOOKS, at))))
            at += 1
            continue
        part = levels.pop() if pattern[at] == ")" and len(levels) > 1 else _Weight()
        if pattern[at] == "\\" and pattern[at + 1 : at + 2] in _REFERENCES:
            part = _Weight(1)
        _, most, at = repeated(pattern, after_atom(pattern, at))
        levels[-1] = levels[-1].beside(part.repeated(most))
    whole = _Weight()
    for level in levels:
        whole = whole.beside(level)
    many = states(pattern)
    return whole._replace(looks=whole.looks * (1 if many < MANY_STATES else 1 + many // _AT_ONCE))


_LOOKS: Final = ("(?=", "(?!", "(?<=", "(?<!")
_REFERENCES: Final = frozenset("123456789k")

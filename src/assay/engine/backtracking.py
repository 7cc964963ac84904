"""
Regular expressions with look-around or back-references, matched within a budget.

The engine for these patterns limits steps back, not steps: between two steps back it may read the text as often as
loops are nested, and a match that needs more steps back silently counts as no match. So before a message is judged by
such a pattern, each of its texts must be decidable, and the cost is drawn from the budget of the message.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

import jsonschema_rs

from assay.engine.drafts import DRAFT_2020_12
from assay.engine.patterns import MANY_STATES, UNBOUNDED, Piece, after_atom, alive, repeated

STEPS_BACK: Final = (2, 8, 32, 128, 1_024)
"""
Limits on steps back, tried one after the other. The pattern of Pydantic for a decimal needs 1 to 4, those of zod 2 for
an address and 10 to 30 for a duration. The engine judges with the last limit.
"""

_UNIT: Final = 2
"""Steps of the JSON Schema engine, about 12 ns each, for one step forward: 3 to 25 ns were measured."""

_ASKED: Final = 40
"""Steps for one question: 0.5 µs."""

_REFUSED: Final = 400
"""Steps for the exception of a text that does not match or cannot be decided: 5 µs."""

_CHEAP: Final = 1_000
"""Steps that each further copy of a text has free: real ones take 50 ns, which is part of the width of a schema."""

_SHORT, _MOST_KNOWN = 64, 128
"""Characters of a text whose outcome is cached, and the size of the cache."""

_UNASKED: Final = object()

_AT_ONCE: Final = 3
"""States for one step forward, if a pattern has too many states for an automaton: 7 ns each."""


class Backtracking:
    """One pattern that only the engine with steps back can match."""

    __slots__ = ("_draft", "_forward", "_known", "_matchers", "_pattern_size", "_states", "pattern")

    def __init__(self, pattern: str, pattern_size: int, draft: str = DRAFT_2020_12.uri) -> None:
        """Raises what the engine raises; which patterns it accepts depends on the *draft*."""
        self.pattern = pattern
        self._draft = draft
        self._pattern_size = pattern_size
        self._forward, self._states = _read(pattern)
        self._known: dict[tuple[str, int], Any] = {}
        self._matchers = {STEPS_BACK[0]: self._matcher(STEPS_BACK[0])}

    def drawn(self, text: str, times: int, left: int, copies: int = 1) -> int | None:
        """
        Return what is left of *left* steps after matching *text*, *times* for each of its *copies*.

        None if the text cannot be decided within *left*. A text that is decided with few steps back is decided with
        the most steps back as well, which the engine judges with.
        """
        for steps in STEPS_BACK:
            cost = self.cost(len(text), steps) * (times + 1) + self._making(steps)
            if cost > left:
                return None
            left -= cost
            matched = self._matches(text, steps)
            if matched is not True:
                left = max(left - _REFUSED, 0)
            if matched is not None:
                left -= (copies - 1) * times * max(0, self.cost(len(text), steps) - _CHEAP)
                return left if left >= 0 else None
        return None

    def cost(self, length: int, steps: int) -> int:
        """Return a bound on the steps of the JSON Schema engine for a text of *length* with so many *steps* back."""
        forward = _at(self._forward, length)
        if self._states >= MANY_STATES:
            forward *= 1 + self._states // _AT_ONCE
        return _ASKED + (steps + 1) * forward * _UNIT

    def _making(self, steps: int) -> int:
        """Return the steps to compile the matcher for so many *steps* back, unless it exists: 0.6 ms for 64 KiB."""
        return 0 if steps in self._matchers else self._pattern_size // 2

    def _matches(self, text: str, steps: int) -> bool | None:
        """Whether *text* matches; None if so many *steps* back do not decide it."""
        known = self._known.get((text, steps), _UNASKED)
        if known is _UNASKED:
            known = self._asked(text, steps)
            # The names of properties recur in every message.
            if len(text) <= _SHORT and len(self._known) < _MOST_KNOWN:
                self._known[text, steps] = known
        matched: bool | None = known
        return matched

    def _asked(self, text: str, steps: int) -> bool | None:
        matcher = self._matchers.get(steps)
        if matcher is None:
            matcher = self._matchers[steps] = self._matcher(steps)
        try:
            matcher.validate(text)
        except jsonschema_rs.ValidationError as error:
            return False if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Pattern) else None
        return True

    def _matcher(self, steps: int) -> jsonschema_rs.Validator:
        patterns = stepping_back(self._pattern_size, self._pattern_size, steps)
        alone = {"$schema": self._draft, "pattern": self.pattern}
        return jsonschema_rs.validator_for(alone, pattern_options=patterns, offline=True, mask="…")


def stepping_back(
    pattern_size: int, automaton_size: int, steps: int = STEPS_BACK[-1]
) -> jsonschema_rs.FancyRegexOptions:
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


class _Level:
    """A group, or the whole pattern, while it is read."""

    __slots__ = ("forward", "looks", "most_alive", "plain", "run")

    def __init__(self, *, looks: bool = False) -> None:
        self.forward = [0]
        """Steps forward, as the coefficients of a polynomial in the length of a text plus one."""
        self.looks = looks
        """Whether it has look-around or a back-reference."""
        self.run: list[Piece] = []
        """The pieces since the last of these: the engine gives them to an automaton."""
        self.plain = True
        self.most_alive = 0

    def take(self, size: list[int], piece: Piece) -> None:
        """Add a piece that an automaton matches."""
        self.forward = _sum(self.forward, size)
        self.run.append(piece)

    def part(self, size: list[int], inside: int = 0) -> None:
        """Add a part that no automaton matches, with so many states alive inside it."""
        self.forward = _sum(self.forward, size)
        self.looks = True
        self.most_alive = max(self.most_alive, inside, alive(self.run, plain=self.plain))
        self.run = []
        self.plain = True


def _read(pattern: str) -> tuple[list[int], int]:
    """
    Return the most steps forward of *pattern* between two steps back, and the most states of an automaton in it.

    A loop runs its content once for each character. If the content looks around, it reads the text again, so loops
    inside each other multiply; otherwise each character is read once.
    """
    levels = [_Level()]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        level = levels[-1]
        if char == "(":
            levels.append(_Level(looks=pattern.startswith(_LOOKS, at)))
            at += 1
            continue
        if char == "|":
            level.plain, at = False, at + 1
            continue
        closed = levels.pop() if char == ")" and len(levels) > 1 else None
        referring = char == "\\" and pattern[at + 1 : at + 2] in _REFERENCES
        at = after_atom(pattern, at)
        least, most, at = repeated(pattern, at)
        _enter(levels[-1], closed, referring, least, most)
    whole = levels[0]
    for level in levels[1:]:
        whole.part(level.forward, level.most_alive)
    whole.part([1])
    return whole.forward, whole.most_alive


def _enter(level: _Level, closed: _Level | None, referring: bool, least: int, most: int) -> None:
    """Add an atom, or a group that was *closed*, to *level*, so many times."""
    if closed is not None and closed.looks:
        closed.part([0])
        level.part(_times(closed.forward, most), closed.most_alive)
    elif referring:
        level.part(_times([0, 1], most))
    else:
        size = 1 if closed is None else alive(closed.run, plain=False)
        level.plain = level.plain and closed is None
        often = 1 if most >= UNBOUNDED else most
        loops = closed is not None or most >= UNBOUNDED
        level.take([size * often, size if loops else 0], (size, least, most))


def _times(size: list[int], most: int) -> list[int]:
    return [0, *size] if most >= UNBOUNDED else [count * max(most, 1) for count in size]


def _sum(one: list[int], other: list[int]) -> list[int]:
    return [first + second for first, second in zip_longest(one, other, fillvalue=0)]


def _at(counts: Sequence[int], length: int) -> int:
    total = 0
    for count in reversed(counts):
        total = min(total * (length + 1) + count, _MOST)
    return total


_LOOKS: Final = ("(?=", "(?!", "(?<=", "(?<!")
_REFERENCES: Final = frozenset("123456789k")
_MOST: Final = 1 << 40

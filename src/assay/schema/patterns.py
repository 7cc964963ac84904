"""
Regular expressions of schemas: what matching them costs, and those with look-around or back-references.

A pattern is read here without compiling it. Python's own compiler is no help: it has another standard, and warns of
what it finds in the patterns of a peer.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import jsonschema_rs

from assay.schema.drafts import DRAFT_2020_12
from assay.schema.wording import SHORT, found, shown

_UNBOUNDED: Final = 1 << 20
"""Stands for any number of times."""


class _Part(NamedTuple):
    """An atom of a pattern, or a parenthesis or bar, and how many times it is repeated."""

    at: int
    atom: str
    quantifier: str = ""
    least: int = 1
    most: int = 1
    """`_UNBOUNDED` for any number of times."""

    @property
    def copies(self) -> int:
        """How many copies of the atom are made; an unbounded repetition is a loop at the last copy."""
        return self.most if self.most < _UNBOUNDED else max(self.least, 1)


def _parts(pattern: str) -> Iterator[_Part]:
    at = 0
    while at < len(pattern):
        if pattern[at] in "(|":
            yield _Part(at, pattern[at])
            at += 1
            continue
        end = _after_atom(pattern, at)
        least, most, rest = _repeated(pattern, end)
        yield _Part(at, pattern[at:end], pattern[end:rest], least, most)
        at = rest


def _after_atom(pattern: str, at: int) -> int:
    """Return where the atom of *pattern* that begins *at* ends."""
    if pattern[at] == "\\":
        braces = pattern[at + 1 : at + 2] in ("p", "P", "x", "u", "U") and pattern[at + 2 : at + 3] == "{"
        end = pattern.find("}", at) if braces else at + 1
        return (end if end >= 0 else at + 1) + 1
    if pattern[at] == "[":
        end = at + 1 + (pattern[at + 1 : at + 2] == "^")
        end += pattern[end : end + 1] == "]"
        while end < len(pattern) and pattern[end] != "]":
            end += 2 if pattern[end] == "\\" else 1
        return end + 1
    return at + 1


def _repeated(pattern: str, at: int) -> tuple[int, int, int]:
    """Return at least and at most how many times the atom before *at* is repeated, and where the rest begins."""
    least, most = 1, 1
    while at < len(pattern) and pattern[at] in "*+?{":
        if pattern[at] == "{":
            end = pattern.find("}", at)
            low, comma, high = pattern[at + 1 : end].partition(",")
            if end < 0 or not _is_count(low) or not (high == "" or _is_count(high)):
                break
            least *= int(low)
            most *= int(high) if high else (max(int(low), 1) if not comma else _UNBOUNDED)
            at = end
        elif pattern[at] == "?":
            least = 0
        else:
            least, most = (0 if pattern[at] == "*" else least), _UNBOUNDED
        at += 1
    return least, min(most, _UNBOUNDED), at


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 8


def strictly(pattern: str) -> str:
    """
    Return *pattern* with each bracket or brace that closes nothing escaped; the meaning is the same.

    Before draft 2019-09 the engine accepts only this spelling; zod writes a lone one for addresses after RFC 5322.
    """
    return "".join(
        ("\\" + part.atom if part.atom in ("]", "}") else part.atom) + part.quantifier for part in _parts(pattern)
    )


# ── what matching costs ───────────────────────────────────────────────────────────────────────────────────────────────
# In steps of the JSON Schema engine, about 12 ns each.

_MATCH: Final = 12
"""To match as an automaton does: 64 ns for a few characters, 200 ns for 64."""
_STEPPING_BACK: Final = 60
"""To match with few steps back; more are counted when the text is known."""
_MANY_STATES: Final = 32
"""States below which a pattern counts as one with an automaton. Ours: `[ab]*a[ab]{50}c` has none within 1 MiB."""
_THREAD: Final = 37
"""For each state that is alive where a pattern has no automaton of modest size: 7 ns a character."""

_LOOKING: Final = re.compile(r"\(\?<?[=!]|\\[1-9k]")


def pattern_steps(pattern: Any) -> int:
    """Return the steps of the engine that matching 64 characters with *pattern* takes."""
    if not isinstance(pattern, str):
        return _MATCH
    if may_step_back(pattern):
        return _STEPPING_BACK
    states = _states(pattern)
    return _MATCH + (_THREAD * states if states >= _MANY_STATES else 0)


def may_step_back(pattern: str) -> bool:
    """Whether *pattern* seems to have look-around or back-references; inside brackets they are only characters."""
    return _LOOKING.search(pattern) is not None


def _states(pattern: str) -> int:
    """
    Return a bound on the states of *pattern* that are alive at once while it is matched.

    Each atom counts as often as its repetitions say. In a plain sequence from the start of the text only the states
    count that different matches of the part before can reach: ``^.{1,1000}$`` has one.
    """
    groups = [0]
    plain, reached, ways = pattern.startswith("^"), 0, 1
    for part in _parts(pattern):
        if part.atom in ("(", "|"):
            plain = False
            groups += [0] if part.atom == "(" else []
            continue
        size = (groups.pop() if part.atom == ")" and len(groups) > 1 else 1) * part.copies
        groups[-1] = min(groups[-1] + size, _UNBOUNDED)
        reached += min(size, ways)
        ways = min(ways * (part.most - part.least + 1), _UNBOUNDED)
    return min(reached if plain else sum(groups), _UNBOUNDED)


# ── look-around and back-references ───────────────────────────────────────────────────────────────────────────────────

_LONGEST_TEXT: Final = 1_024
"""Characters of a text that is matched with such a pattern."""

_FEW, _STEPS_BACK = 8, 128
"""
Limits on steps back, tried one after the other. The pattern of Pydantic for a decimal needs 1 to 4, those of zod 2 for
an address and 10 to 30 for a duration. The engine judges with the second.
"""

_ASKED, _REFUSED = 40, 400
"""Steps for one question, and for an exception as its answer: 5 µs."""

_CHEAP: Final = 1_000
"""Steps that each further copy of a text has free: real ones take 50 ns, part of the width of a schema."""

_UNIT: Final = 2
"""Steps for one character that is read: 3 to 25 ns were measured."""

_AT_ONCE: Final = 3
"""States for one step forward, if a pattern has too many states for an automaton: 7 ns each."""

_LOOKS: Final = ("(?=", "(?!", "(?<=", "(?<!")


class Backtracking:
    """
    One pattern that only the engine with steps back can match.

    That engine limits steps back, not time: between two steps back it may read the text as often as loops are nested,
    and a match that needs more steps back silently counts as no match. So before a message is judged by such a pattern,
    each of its texts is tried alone. A text that is long, that would take too long, or that the limit does not decide,
    is judged without the pattern.
    """

    __slots__ = ("_few", "_looks", "_loops", "_most", "pattern")

    def __init__(self, pattern: str, pattern_size: int, draft: str = DRAFT_2020_12.uri) -> None:
        """Raises what the engine raises; which patterns it accepts depends on the *draft*."""
        self.pattern = pattern
        self._looks, self._loops = _looks(pattern)
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
        if len(text) > _LONGEST_TEXT:
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
        read: int = (length + 1) ** (self._loops + 1)
        return _ASKED + (steps + 1) * self._looks * _UNIT * read


def _matches(matcher: jsonschema_rs.Validator, text: str) -> bool | None:
    """Return whether *text* matches; None if the limit of *matcher* does not decide it."""
    try:
        matcher.validate(text)
    except jsonschema_rs.ValidationError as error:
        return False if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Pattern) else None
    return True


def _looks(pattern: str) -> tuple[int, int]:
    """
    Return how often *pattern* reads the text between two steps back, and how many loops are around that.

    It reads the text once, and once for each look-around and back-reference, as often as it is repeated. Each loop
    around them reads the text once for each character.
    """
    groups = [(1, 0)]
    for part in _parts(pattern):
        if part.atom == "(":
            groups.append((int(pattern.startswith(_LOOKS, part.at)), 0))
            continue
        looks, loops = groups.pop() if part.atom == ")" and len(groups) > 1 else (0, 0)
        if part.atom[0] == "\\" and part.atom[1:] in _REFERENCES:
            looks = 1
        if looks and part.most >= _UNBOUNDED:
            loops += 1
        else:
            looks *= part.most
        groups[-1] = (groups[-1][0] + looks, max(groups[-1][1], loops))
    states = _states(pattern)
    times = 1 if states < _MANY_STATES else 1 + states // _AT_ONCE
    return sum(looks for looks, _ in groups) * times, max(loops for _, loops in groups)


_REFERENCES: Final = frozenset("123456789k")


def stepping_back(pattern_size: int, automaton_size: int, steps: int = _STEPS_BACK) -> jsonschema_rs.FancyRegexOptions:
    """Return the options to match backtracking patterns; other patterns still take linear time."""
    return jsonschema_rs.FancyRegexOptions(
        backtrack_limit=steps, size_limit=pattern_size, dfa_size_limit=automaton_size
    )


def undecided(
    patterns: Sequence[Backtracking], instance: Any, width: int, left: int
) -> tuple[Backtracking | None, int]:
    """
    Return the first of *patterns* that does not decide a text of *instance* within *left* steps, and what is left then.

    Each text counts, keys included: only judging would show which text is compared with which pattern. A schema of
    this *width* matches a text with no more than so many patterns.
    """
    times = max(1, width // _STEPPING_BACK)
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


# ── broken patterns ───────────────────────────────────────────────────────────────────────────────────────────────────

_LONGEST: Final = 1000
"""Characters of a pattern that is examined for mistakes. A report shows only the first few anyway."""

_SET: Final = re.compile(r"\[\^?(?:[^\]\\]|\\.)*+\]", re.DOTALL)
_TIMES: Final = re.compile(r"\{([0-9]{1,9})(?:(,)([0-9]{1,9})?)?\}")


def found_pattern(pattern: Any) -> str:
    """Describe *pattern*, which no engine accepts: its beginning, and whether it is broken."""
    if not isinstance(pattern, str):
        return found(pattern)
    text = f'"{pattern}"' if len(pattern) <= SHORT and pattern.isprintable() else shown(pattern)
    return f"{text}, which is not a valid regular expression" if is_broken(pattern) else f"the string {text}"


def is_broken(pattern: str) -> bool:
    """Whether *pattern* is certainly not a regular expression, by any standard."""
    if len(pattern) > _LONGEST:
        return False
    depth = at = 0
    last = "start"
    while at < len(pattern) and depth >= 0:
        char = pattern[at]
        times = _TIMES.match(pattern, at) if char == "{" else None
        if char in "*+?" or times is not None:
            # Behind a quantifier `?` makes it lazy and `+` possessive; another one has nothing to repeat.
            if last == "start" or (last == "times" and char not in "+?") or (times is not None and _falls(times)):
                return True
            last = "atom" if last == "times" else "times"
            at = times.end() if times is not None else at + 1
            continue
        last = "start" if char in "(|" else "atom"
        depth += (char == "(") - (char == ")")
        at = _behind(pattern, at)
        if at < 0:
            return True
    return depth != 0


def _behind(pattern: str, at: int) -> int:
    """Return where the next part of *pattern* begins, -1 if the one *at* does not end."""
    if pattern[at] == "[":
        ended = _SET.match(pattern, at)
        return ended.end() if ended is not None else -1
    if pattern[at] == "\\":
        return at + 2 if at + 1 < len(pattern) else -1
    return at + (2 if pattern.startswith("(?", at) else 1)


def _falls(times: re.Match[str]) -> bool:
    """Whether a quantifier has a lower bound above its upper bound."""
    return times[3] is not None and int(times[1]) > int(times[3])

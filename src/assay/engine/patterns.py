"""
Regular expressions of schemas, read without compiling them: how many states they keep, and whether they can be valid.

Python's own compiler is no help: it has another standard, and warns of what it finds in the patterns of a peer.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from assay.engine.wording import SHORT, found, shown

MANY_STATES: Final = 32
"""States below which a pattern counts as one with an automaton. Ours: `[ab]*a[ab]{50}c` has none within 1 MiB."""
STEPPING_BACK: Final = 60
"""Steps of the engine, about 12 ns each, to match with few steps back; more are counted when the text is known."""
UNBOUNDED: Final = 1 << 20
"""Stands for any number of times."""

Piece = tuple[int, int, int]
"""Atoms, and at least and at most how many times; `UNBOUNDED` for any number."""

_MATCH: Final = 12
"""Steps to match as an automaton does: 64 ns for a few characters, 200 ns for 64."""
_THREAD: Final = 37
"""Steps for each state that is alive where a pattern has no automaton of modest size: 7 ns a character."""

_LOOKING: Final = re.compile(r"\(\?<?[=!]|\\[1-9k]")


def pattern_steps(pattern: Any) -> int:
    """Return the steps of the engine that matching 64 characters with *pattern* takes."""
    if not isinstance(pattern, str):
        return _MATCH
    if may_step_back(pattern):
        return STEPPING_BACK
    many = states(pattern)
    return _MATCH + (_THREAD * many if many >= MANY_STATES else 0)


def may_step_back(pattern: str) -> bool:
    """Whether *pattern* seems to have look-around or back-references; inside brackets they are only characters."""
    return _LOOKING.search(pattern) is not None


def states(pattern: str) -> int:
    """
    Return a bound on the states of *pattern* that are alive at once while it is matched.

    Each atom counts as often as its repetitions say. In a plain sequence from the start of the text only the states
    count that different matches of the part before can reach: ``^.{1,1000}$`` has one.
    """
    pieces, plain = _pieces(pattern)
    return alive(pieces, plain=plain and pattern.startswith("^"))


def alive(pieces: Sequence[Piece], *, plain: bool) -> int:
    """Return the same bound for *pieces*; *plain* for a sequence that can begin in one place only."""
    if not plain:
        return min(sum(size * _copies(least, most) for size, least, most in pieces), UNBOUNDED)
    count, ways = 0, 1
    for size, least, most in pieces:
        count += min(size * _copies(least, most), ways)
        ways = min(ways * (most - least + 1), UNBOUNDED) if most < UNBOUNDED else UNBOUNDED
    return min(count, UNBOUNDED)


def _pieces(pattern: str) -> tuple[list[Piece], bool]:
    """Return the pieces of *pattern*, a group as one of them; and whether it has no groups and no alternatives."""
    levels: list[list[Piece]] = [[]]
    plain, at = True, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "(":
            levels.append([])
            plain, at = False, at + 1
            continue
        if char == "|":
            plain, at = False, at + 1
            continue
        size = 1
        if char == ")" and len(levels) > 1:
            size = min(sum(one * _copies(least, most) for one, least, most in levels.pop()), UNBOUNDED)
        at = after_atom(pattern, at)
        least, most, at = repeated(pattern, at)
        levels[-1].append((size, least, most))
    return [piece for level in levels for piece in level], plain


def _copies(least: int, most: int) -> int:
    """Return how many copies of an atom are made; an unbounded repetition is a loop at the last copy."""
    return most if most < UNBOUNDED else max(least, 1)


def after_atom(pattern: str, at: int) -> int:
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


def repeated(pattern: str, at: int) -> tuple[int, int, int]:
    """Return at least and at most how many times the atom before *at* is repeated, and where the rest begins."""
    least, most = 1, 1
    while at < len(pattern) and pattern[at] in "*+?{":
        if pattern[at] == "{":
            end = pattern.find("}", at)
            low, comma, high = pattern[at + 1 : end].partition(",")
            if end < 0 or not _is_count(low) or not (high == "" or _is_count(high)):
                break
            least *= int(low)
            most *= int(high) if high else (max(int(low), 1) if not comma else UNBOUNDED)
            at = end
        elif pattern[at] == "?":
            least = 0
        else:
            least, most = (0 if pattern[at] == "*" else least), UNBOUNDED
        at += 1
    return least, min(most, UNBOUNDED), at


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 8


def strictly(pattern: str) -> str:
    """
    Return *pattern* with each bracket or brace that closes nothing escaped; the meaning is the same.

    Before draft 2019-09 the engine accepts only this spelling; zod writes a lone one for addresses after RFC 5322.
    """
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        end = after_atom(pattern, at)
        atom = pattern[at:end]
        _, _, at = repeated(pattern, end)
        parts += ["\\" + atom if atom in ("]", "}") else atom, pattern[end:at]]
    return "".join(parts)


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

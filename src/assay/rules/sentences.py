"""
Say what is wrong with a message as a sentence: "Missing argument `url`".

A finding records a place, what was expected and what was found. The sentence is made of these three when it is shown,
so findings of old journals have one as well. Rules whose sentence differs from the general one have it in
``rules.txt``.
"""

import re
from string import Formatter
from typing import Final, Protocol

from assay.rules.table import RULES


class Worded(Protocol):
    """A violation, or a finding of a journal."""

    @property
    def rule(self) -> str: ...
    @property
    def at(self) -> str: ...
    @property
    def place(self) -> str: ...
    @property
    def expected(self) -> str: ...
    @property
    def found(self) -> str: ...


_ARTICLE: Final = re.compile(r"^(?:an?|the) ")
_VALUE: Final = re.compile(
    r'(?:an?|the|one of|more than|greater than|less than|at least|at most) |["\d-]|(?:null|true|false)\b'
)
"""How a text begins that names a value, so that "must be" can stand before it."""

_SIZE: Final = re.compile(r"(?:at least|at most) \S+ (?!or )\w|items ")
"""How a text begins that names the size or the parts of a value, so that "must have" can stand before it."""

_WHOLE: Final = re.compile(r"^an? (?:string|array|object) of ")


def sentence(finding: Worded) -> str:
    """Return what is wrong, as a sentence without a full stop."""
    rule = RULES.get(finding.rule)
    for template in rule.says if rule else ():
        filled = _filled(template, {"expected": finding.expected, "found": finding.found})
        if filled is not None:
            return filled[:1].upper() + filled[1:] if _ARTICLE.match(filled) else filled
    return _general(finding.at, finding.expected, finding.found)


def located(finding: Worded) -> str:
    """Return the sentence with the place, on one line."""
    return sentence(finding) if finding.place == "the message" else f"{sentence(finding)}, at {finding.place}"


def details(finding: Worded) -> str:
    """Return the line below the sentence: the place, and what was expected and found unless the sentence has both."""
    said, found = sentence(finding), finding.found.removeprefix("the string ")
    texts = f"expected {finding.expected}, found {finding.found}"
    if finding.place == "the message":
        return texts
    is_said = finding.expected in said and (found in said or found == "nothing")
    return f"at {finding.place}" if is_said else f"at {finding.place}: {texts}"


def _filled(template: str, texts: dict[str, str]) -> str | None:
    """Return *template* with the texts; None if one of them has other words than the template gives."""
    parts = []
    for literal, name, words, _ in Formatter().parse(template):
        parts.append(literal)
        if name is not None:
            before, star, after = words.partition("*") if words else ("", "*", "")
            text = texts[name]
            fits = len(text) >= len(before) + len(after) and text.startswith(before) and text.endswith(after)
            if not fits or (not star and text != before):
                return None
            parts.append(text[len(before) : len(text) - len(after)] if star else "")
    return "".join(parts)


def _general(at: str, expected: str, found: str) -> str:
    noun = "argument" if at.startswith("/params/arguments") else "property"
    if found in {"nothing", "none"}:
        return f"Missing {_ARTICLE.sub('', expected, count=1)}"
    if expected.startswith("the property `"):
        return f"Missing {noun} {expected.removeprefix('the property ')}"
    if expected.startswith("no property") and found.startswith("the property "):
        only = expected.partition(" but ")[2]
        return f"Unexpected {noun} {found.removeprefix('the property ')}{f'; only {only} is allowed' if only else ''}"
    if expected in {"nothing here", "nothing beyond the schema"} and at:
        return f"Unexpected {noun} {_subject(at)}"
    if _VALUE.match(expected) or _SIZE.match(expected):
        if _SIZE.match(expected):
            return f"{_subject(at)} must have {expected}, not {_WHOLE.sub('', found)}"
        return f"{_subject(at)} must be {expected}, not {found.removeprefix('the string ')}"
    return f"Expected {expected}, found {found}"


def _subject(at: str) -> str:
    """Return the last name in a place, with the numbers behind it: ``tools[0]``."""
    name, numbers = "", ""
    for step in reversed(at.split("/")[1:]):
        if not step.isdecimal():
            name = step.replace("~1", "/").replace("~0", "~")
            break
        numbers = f"[{step}]{numbers}"
    return f"`{name}{numbers}`" if name or numbers else "The message"

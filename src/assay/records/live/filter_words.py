"""
Typed words that choose records, such as ``tool:search verdict:refused sea``. All words must match. No I/O.

`assay top` and consoles use the same words.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from assay.records.journal.reading import Record, quarantined, server_of, violations
from assay.spec.schema import suggestion

VERDICTS: Final = ("ok", "reported", "refused", "failed", "stopped", "passed", "repaired", "quarantined")
"""The words after ``verdict:``. A refused message was stopped, or passed in audit mode."""

_LONGEST: Final = 500
"""Maximal characters of a filter."""


class FilterError(ValueError):
    """An unknown word; the message says which, and what is meant."""


def verdicts_of(record: Record) -> set[str]:
    """Return all verdict words of *record*."""
    metadata = record["metadata"]
    found = {record["status"]}
    if record["status"] == "refused":
        found.add("passed" if metadata.get("passed") is True else "stopped")
    if metadata.get("repairs"):
        found.add("repaired")
    if quarantined(record):
        found.add("quarantined")
    return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


Values = Callable[[Record], Iterable[str]]

_VALUES: Final[dict[str, Values]] = {
    "tool": lambda record: [_text(record["metadata"].get("tool"))],
    "method": lambda record: [_text(record["method"])],
    "server": lambda record: [server_of(record)],
    "rule": lambda record: [rule for rule, _ in violations(record)],
    "at": lambda record: [at for _, at in violations(record)],
    "session": lambda record: [_text(record["metadata"].get("session"))],
    "id": lambda record: [_text(record["metadata"].get("id"))],
    "dir": lambda record: [_text(record["metadata"].get("party"))],
    "kind": lambda record: [_text(record["metadata"].get("kind"))],
}

WORDS: Final = (*_VALUES, "verdict")
"""The keys before a colon."""


class FilterWord(NamedTuple):
    """One word of a filter."""

    key: str
    """One of `WORDS`; "" for a word without a key, which may be anywhere."""
    value: str
    """In lower case."""

    def wants(self, record: Record) -> bool:
        """Whether *record* matches: it has the value in it, at any place and in any case."""
        if self.key == "verdict":
            return self.value in verdicts_of(record)
        if self.key == "rule":
            return any(_names(rule.lower(), self.value) for rule in _VALUES["rule"](record))
        keys = [self.key] if self.key else list(_VALUES)
        return any(self.value in each.lower() for key in keys for each in _VALUES[key](record))


def _names(rule: str, value: str) -> bool:
    """Whether *value* is the rule, a rung with all of its rules, or the beginning of a name."""
    return rule.startswith(value) or rule.partition("/")[2].startswith(value)


class FilterWords(NamedTuple):
    """A filter; an empty one wants every record."""

    words: tuple[FilterWord, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "FilterWords":
        """Return the filter of *text*. Raises `FilterError`."""
        return cls(tuple(_word(each) for each in text[:_LONGEST].lower().split()))

    def wants(self, record: Record) -> bool:
        """Whether *record* matches all words."""
        return all(word.wants(record) for word in self.words)


def _word(text: str) -> FilterWord:
    key, colon, value = text.partition(":")
    if not colon:
        return FilterWord("", text)
    if key not in WORDS:
        raise FilterError(f"{key}: unknown word{_remedy(key, WORDS)}")
    if key == "verdict" and value not in VERDICTS:
        raise FilterError(f"verdict:{value}: unknown verdict{_remedy(value, VERDICTS)}")
    return FilterWord(key, value)


def _remedy(word: str, known: Iterable[str]) -> str:
    names = list(known)
    return suggestion(word, names) or f"; use {', '.join(names)}"

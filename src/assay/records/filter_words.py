"""
Typed words that choose records, such as ``tool:search -verdict:ok "two words"``. All words must match. No I/O.

`assay top`, the API of the console and its page have the same words; `src/assay/web/console_filter.js` has them for the
page, and one table of cases tests both.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from assay.records.journal.reading import Record, server_of, violations
from assay.records.outcomes import WORDS as VERDICTS
from assay.records.outcomes import recorded_outcome
from assay.spec.schema import suggestion

STATUSES: Final = ("ok", "error", "open")
"""The words after ``status:``: a result, an error, and a request without an answer."""

_LONGEST: Final = 500
"""Maximal characters of a filter."""

_SPACES: Final = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What separates words: as in JavaScript, where it is not all that it is in Python."""

_TOKEN: Final = re.compile(rf'(-)?(?:([a-z]+):)?(?:"([^"]*)"?|([^{_SPACES}"]+))')
"""A word: a minus, a key, and a value that may be in quotes. The page has the same expression."""

_ANSWERS: Final = frozenset({"result", "error", "missing"})


class FilterError(ValueError):
    """A word that is likely mistyped; the message says which, and what is meant."""


def status_of_row(record: Record) -> str:
    """
    Return one of `STATUSES`; "" for a message that has none, such as a notification.

    A request is ``open``, as far as its own record shows: an answer may have come.
    """
    kind = record["metadata"].get("kind")
    if kind in ("error", "missing") or record["status"] == "failed":
        return "error"
    if kind == "request":
        # The guard answers what it blocks.
        return "" if recorded_outcome(record).shown == "blocked" else "open"
    return "ok" if kind == "result" else ""


def answered_requests(records: Iterable[Record]) -> set[str]:
    """Return the ids of the requests that are answered by one of *records*."""
    return {each["requestId"] for each in records if each["metadata"].get("kind") in _ANSWERS}


class FilterSubject(NamedTuple):
    """A record, and what it does not say about itself."""

    record: Record
    server: str
    """The name of the server: that of a file, if the record has none."""
    is_open: bool
    """Whether no answer to it has come."""


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        # As a page shows it.
        value = int(value)
    return value if isinstance(value, str) else "" if value is None else str(value)


def _member(name: str) -> "Values":
    return lambda subject: [_text(subject.record["metadata"].get(name))]


Values = Callable[[FilterSubject], Iterable[str]]

_VALUES: Final[dict[str, Values]] = {
    "tool": _member("tool"),
    "method": lambda subject: [_text(subject.record["method"])],
    "server": lambda subject: [subject.server],
    "rule": lambda subject: [rule for rule, _ in violations(subject.record)],
    "at": lambda subject: [at for _, at in violations(subject.record)],
    "session": _member("session"),
    "id": _member("id"),
    "dir": _member("party"),
    "kind": _member("kind"),
    "principal": _member("principal"),
}

WORDS: Final = (*_VALUES, "verdict", "status")
"""The keys before a colon."""


class FilterWord(NamedTuple):
    """One word of a filter."""

    key: str
    """One of `WORDS`; "" for a word without a key, which may be in any value but ``verdict`` and ``status``."""
    value: str
    """In lower case."""
    excludes: bool = False
    """Whether it has a minus: only other records match."""

    def wants(self, subject: FilterSubject) -> bool:
        """Whether the record matches."""
        keys = [self.key] if self.key else list(_VALUES)
        return any(self._has(subject, key) for key in keys) is not self.excludes

    def _has(self, subject: FilterSubject, key: str) -> bool:
        """Whether the record has the value at *key*, in any case."""
        if key == "verdict":
            return self.value == recorded_outcome(subject.record).word
        if key == "status":
            status = status_of_row(subject.record)
            return status.startswith(self.value) and (status != "open" or subject.is_open)
        matches = _names if key == "rule" else _contains
        return any(matches(each.lower(), self.value) for each in _VALUES[key](subject))


def _contains(text: str, value: str) -> bool:
    return value in text


def _names(rule: str, value: str) -> bool:
    """Whether *value* is the rule, a rung with all of its rules, or the beginning of a name."""
    return rule.startswith(value) or rule.partition("/")[2].startswith(value)


class FilterWords(NamedTuple):
    """A filter; an empty one wants every record."""

    words: tuple[FilterWord, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "FilterWords":
        """Return the filter of *text*. Raises `FilterError` for a word that is likely mistyped."""
        if len(text) > _LONGEST:
            # Without its last words a filter would choose more, such as what a word with a minus excludes.
            raise FilterError(f"a filter has at most {_LONGEST} characters")
        return cls(tuple(filter(None, (_word(*each.groups()) for each in _TOKEN.finditer(text.lower())))))

    @property
    def asks_for_answers(self) -> bool:
        """Whether it must be known which requests are answered."""
        return any(word.key == "status" for word in self.words)

    @property
    def asks_for_server(self) -> bool:
        """Whether the name of the server decides."""
        return any(word.key in ("", "server") for word in self.words)

    def wants(self, record: Record, *, server: str = "", is_open: bool = False) -> bool:
        """
        Whether *record* matches all words.

        *server* is the name of its server, if the record has none; *is_open* is whether no answer to it has come.
        """
        subject = FilterSubject(record, server_of(record) or server, is_open)
        return all(word.wants(subject) for word in self.words)


_CHOICES: Final = {"verdict": (VERDICTS, False), "status": (STATUSES, True)}
"""The values of a key, if they are known, and whether the beginning of one is enough."""


def _word(minus: str | None, key: str | None, quoted: str | None, bare: str | None) -> FilterWord | None:
    value = quoted if quoted is not None else bare or ""
    if not value:
        return None
    if key is not None and key not in WORDS:
        if suggestion(key, WORDS):
            raise FilterError(f"{key}: unknown word{suggestion(key, WORDS)}")
        # A colon in a text, as in an address.
        key, value = None, f"{key}:{value}"
    known, short = _CHOICES.get(key or "", ((), False))
    if known and value not in known and not (short and any(each.startswith(value) for each in known)):
        raise FilterError(f"{key}:{value}: unknown {key}{_remedy(value, known)}")
    return FilterWord(key or "", value, minus is not None)


def _remedy(word: str, known: Iterable[str]) -> str:
    names = list(known)
    return suggestion(word, names) or f"; use {', '.join(names)}"

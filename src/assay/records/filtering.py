"""
The one filter for records: `assay journal show`, the console and its exports. No I/O.

A filter is a list of words, such as ``tool:search -verdict:ok "two words"``, which must all match.
`src/assay/web/console_filter.js` has the same words for the page, and one table of cases tests both.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from assay.records.outcomes import WORDS as VERDICTS
from assay.records.outcomes import recorded_outcome
from assay.records.record import Record
from assay.spec.schema import suggestion

STATUSES: Final = ("ok", "error", "open")
"""The words after ``status:``: a result, an error, and a request without an answer."""

_LONGEST: Final = 500
"""Maximal characters of a filter."""

_SPACES: Final = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What separates words: as in JavaScript, where it is not all that it is in Python."""

_TOKEN: Final = re.compile(rf'(-)?(?:([a-z]+):)?(?:"([^"]*)"?|([^{_SPACES}"]+))')
"""A word: a minus, a key, and a value that may be in quotes. The page has the same expression."""


class FilterError(ValueError):
    """A word that is likely mistyped; the message says which, and what is meant."""


def status_of_row(record: Record) -> str:
    """
    Return one of `STATUSES`; "" for a message that has none, such as a notification.

    A request is ``open``, as far as its own record shows: an answer may have come.
    """
    kind = record.metadata.kind
    if kind in ("error", "missing") or record.status == "failed":
        return "error"
    if kind == "request":
        # The guard answers what it blocks.
        return "" if recorded_outcome(record).shown == "blocked" else "open"
    return "ok" if kind == "result" else ""


def answered_requests(records: Iterable[Record]) -> set[str]:
    """Return the ids of the requests that are answered by one of *records*."""
    return {each.request_id for each in records if each.is_answer}


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        # As a page shows it.
        value = int(value)
    return value if isinstance(value, str) else "" if value is None else str(value)


_VALUES: Final[dict[str, Callable[[Record], Iterable[str]]]] = {
    "tool": lambda record: [record.metadata.tool or ""],
    "method": lambda record: [record.method or ""],
    "server": lambda record: [record.metadata.server],
    "rule": lambda record: [each.rule for each in record.findings],
    "at": lambda record: [each.at for each in record.findings],
    "session": lambda record: [record.metadata.session],
    "id": lambda record: [_text(record.metadata.id)],
    "dir": lambda record: [record.metadata.party],
    "kind": lambda record: [record.metadata.kind],
    "principal": lambda record: [record.metadata.principal],
}
WORDS: Final = (*_VALUES, "verdict", "status")
"""The keys before a colon."""


class FilterWord(NamedTuple):
    """One word of a filter."""

    key: str
    """One of `WORDS`; "" for a word without a key, which may be in any value but ``verdict`` and ``status``."""
    values: tuple[str, ...]
    """In lower case, unless the word is exact. One of them must match."""
    excludes: bool = False
    """Whether it has a minus: only other records match."""
    is_exact: bool = False
    """Whether a value must be equal, and not only a part. A rung stands for all of its rules."""

    def wants(self, record: Record, server: str, *, is_open: bool) -> bool:
        """Whether the record matches."""
        keys = [self.key] if self.key else list(_VALUES)
        return any(self._has(record, key, server, is_open) for key in keys) is not self.excludes

    def _has(self, record: Record, key: str, server: str, is_open: bool) -> bool:
        """Whether the record has one of the values at *key*."""
        if key == "verdict":
            return recorded_outcome(record).word in self.values
        if key == "status":
            status = status_of_row(record)
            return status.startswith(self.values) and (status != "open" or is_open)
        found = _VALUES[key](record) if key != "server" else [record.metadata.server or server]
        return any(self._matches(key, each, value) for each in found for value in self.values)

    def _matches(self, key: str, text: str, value: str) -> bool:
        if self.is_exact:
            return text == value or (key == "rule" and text.startswith(f"{value}/"))
        text = text.lower()
        # A rule matches by the beginning of its rung or of its name.
        return text.startswith(value) or text.partition("/")[2].startswith(value) if key == "rule" else value in text


class RecordFilter(NamedTuple):
    """A filter; an empty one wants every record."""

    words: tuple[FilterWord, ...] = ()
    quarantined: bool = False
    """Only records of lists with quarantined entries."""

    @classmethod
    def parse(cls, text: str) -> "RecordFilter":
        """Return the filter of *text*. Raises `FilterError` for a word that is likely mistyped."""
        if len(text) > _LONGEST:
            # Without its last words a filter would choose more, such as what a word with a minus excludes.
            raise FilterError(f"a filter has at most {_LONGEST} characters")
        return cls(tuple(filter(None, (_word(*each.groups()) for each in _TOKEN.finditer(text.lower())))))

    @classmethod
    def of_options(cls, *, quarantined: bool = False, **wanted: Iterable[str]) -> "RecordFilter":
        """Return the filter for exact values by key; a key without values wants every record."""
        words = ((key, tuple(values)) for key, values in wanted.items())
        return cls(tuple(FilterWord(key, values, is_exact=True) for key, values in words if values), quarantined)

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
        if self.quarantined and not record.quarantined:
            return False
        return all(word.wants(record, server, is_open=is_open) for word in self.words)


_CHOICES: Final = {"verdict": (VERDICTS, False), "status": (STATUSES, True)}
"""The values of a key, if they are known, and whether the beginning of one is enough."""


def _word(minus: str | None, key: str | None, quoted: str | None, bare: str | None) -> FilterWord | None:
    value = quoted if quoted is not None else bare or ""
    if not value:
        return None
    if key is not None and key not in WORDS:
        if near := suggestion(key, WORDS):
            raise FilterError(f"{key}: unknown word{near}")
        # A colon in a text, as in an address.
        key, value = None, f"{key}:{value}"
    known, short = _CHOICES.get(key or "", ((), False))
    if known and value not in known and not (short and any(each.startswith(value) for each in known)):
        remedy = suggestion(value, known) or f"; use {', '.join(known)}"
        raise FilterError(f"{key}:{value}: unknown {key}{remedy}")
    return FilterWord(key or "", (value,), minus is not None)

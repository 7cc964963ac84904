"""
The baseline: known findings in a file that people review. They are shown as known, and do not fail the check.

A finding is known by its rule, party, method, tool, entry, place and server, up to the number of times in the file.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from assay.judge import syntax
from assay.records.digest import FindingKey, key_of
from assay.records.judged_records import JudgedRecord
from assay.rules import RULES

VERSION: Final = 1
"""Version of the file. It changes when a member changes its meaning, not when one is added."""

MOST_ENTRIES: Final = 10_000
"""Maximal number of entries: a longer list is not reviewed, and peers could make it arbitrarily long."""

LARGEST: Final = 16 << 20
"""Maximal bytes of the file: the largest number of entries with the longest names fits."""


class BaselineError(Exception):
    """A file is not a baseline, or there is too much to write one."""


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """One known finding."""

    key: FindingKey
    count: int
    """How many times it is known."""
    why: str = ""
    """Why it is accepted, in the words of a reviewer."""


class Baseline:
    """Known findings, one by one in the order of the files, and how many of them were found."""

    def __init__(self, entries: tuple[BaselineEntry, ...] = (), *, is_new: bool = False) -> None:
        """A new baseline takes every finding, with the reasons that the *entries* of an earlier one have."""
        self._entries, self._is_new = entries, is_new
        self._allowed = {each.key: each.count for each in entries}
        self._found: Counter[FindingKey] = Counter()

    def marked(self, message: JudgedRecord) -> JudgedRecord:
        """Count the findings of *message*, and return it with those marked that are known."""
        known = {number for number, each in enumerate(message.findings) if self._has(key_of(message.record, each))}
        return message._replace(known=frozenset(known)) if known else message

    def _has(self, key: FindingKey) -> bool:
        """Count one finding, and return whether it is known."""
        if key in self._found or (len(self._found) <= MOST_ENTRIES if self._is_new else key in self._allowed):
            self._found[key] += 1
        return self._is_new or 0 < self._found[key] <= self._allowed.get(key, 0)

    def stale(self) -> list[BaselineEntry]:
        """Return the entries that were not found; none of a new baseline."""
        return [] if self._is_new else [each for each in self._entries if each.key not in self._found]

    def text(self) -> str:
        """Return the file with everything that was found, sorted, without empty members. Raises `BaselineError`."""
        if len(self._found) > MOST_ENTRIES:
            raise BaselineError(f"more than {MOST_ENTRIES:,} different findings: fix the most frequent ones first")
        reasons = {each.key: each.why for each in self._entries}
        listed = [
            {name: each for name, each in {**key._asdict(), "count": count, "why": reasons.get(key)}.items() if each}
            for key, count in sorted(self._found.items())
        ]
        return json.dumps({"assayBaseline": VERSION, "findings": listed}, indent=2, ensure_ascii=False) + "\n"


def read_baseline(text: bytes) -> tuple[BaselineEntry, ...]:
    """Return the entries of a baseline. Raises `BaselineError`."""
    document = syntax.read(text)
    if not isinstance(document, dict) or "assayBaseline" not in document:
        raise BaselineError('not a baseline: expected an object with "assayBaseline"; --write-baseline writes one')
    if document["assayBaseline"] != VERSION:
        raise BaselineError(f"a baseline of version {document['assayBaseline']!r}; this Assay reads version {VERSION}")
    findings = document.get("findings")
    if not isinstance(findings, list):
        raise BaselineError('expected a list "findings"')
    return tuple(_entries(findings))


def _entries(findings: list[Any]) -> Iterator[BaselineEntry]:
    seen: set[FindingKey] = set()
    for number, each in enumerate(findings):
        entry = _entry(number, each)
        if entry.key in seen:
            raise BaselineError(f"/findings/{number}: the same finding as an earlier entry; add the counts")
        seen.add(entry.key)
        yield entry


def _entry(number: int, listed: Any) -> BaselineEntry:
    """Return one entry, with every member checked: a mistyped name would accept more than is meant."""
    where = f"/findings/{number}"
    if not isinstance(listed, dict):
        raise BaselineError(f"{where}: expected an object")
    known = {*FindingKey._fields, "count", "why"}
    for name, value in listed.items():
        if name not in known:
            raise BaselineError(f"{where}: unknown member {name!r}")
        if not isinstance(value, int if name == "count" else str):
            raise BaselineError(f"{where}/{name}: expected {'a number' if name == 'count' else 'text'}")
    if listed.get("rule") not in RULES:
        raise BaselineError(f"{where}/rule: unknown rule {listed.get('rule')!r}; assay rules lists them all")
    count = listed.get("count", 1)
    if count < 1:
        raise BaselineError(f"{where}/count: expected at least 1")
    key = FindingKey(**{name: listed.get(name, "") for name in FindingKey._fields})
    return BaselineEntry(key, count, listed.get("why", ""))

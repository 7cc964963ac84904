"""Describe the repairs of a message to people, from its record. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_WORDS: Final = {"add": "added", "replace": "changed", "remove": "removed"}

MOST_SHOWN: Final = 5
"""The most repairs that are named: a list may have one for each of its tools."""


def changes(repairs: Sequence[Any], most: int = MOST_SHOWN) -> str:
    """Return the first repairs in words, and the number of the others; a record may come from another version."""
    known = [each for each in repairs if isinstance(each, Mapping) and each.get("op") in _WORDS]
    words = [_change(each) for each in known[:most]]
    more = len(repairs) - len(words)
    return ", ".join([*words, *([f"and {more:,} more"] if more else [])])


def _change(repair: Mapping[str, Any]) -> str:
    words = f"{_WORDS[repair['op']]} {repair.get('path')}"
    if "value" not in repair:
        return words
    was = f" from {repair['was']}" if "was" in repair else ""
    return f"{words}{was} {'to' if repair['op'] == 'replace' else 'as'} {repair['value']}"

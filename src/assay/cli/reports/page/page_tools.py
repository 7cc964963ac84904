"""Tools as servers list them, with an estimate of what each definition costs in a model's context. No I/O."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from assay.cli.reports.page.shown_message import name_of, value_of
from assay.cli.reports.page.smallest import DistinctCount, rank
from assay.records.record import Record, cut

CHARACTERS_A_TOKEN: Final = 4
"""A token of English text or JSON has about four characters; tokenizers differ by a fifth."""

_MOST_LISTED: Final = 2000
"""Tools of one list that are looked at."""

_LONGEST_TEXT: Final = 400
"""Characters of a description that are shown."""

_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

_LARGEST_DEFINITION: Final = 1 << 20
"""Characters of a definition by which versions are distinguished."""


def listed_tools(record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tools in a result of tools/list, by name."""
    value = value_of(record)
    result = value.get("result") if isinstance(value, dict) else None
    tools = result.get("tools") if isinstance(result, dict) else None
    for tool in tools[:_MOST_LISTED] if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            yield tool["name"], tool


def compact(tool: dict[str, Any]) -> str:
    """Return a definition as compact JSON."""
    return orjson.dumps(tool).decode()


def tokens_of(characters: int) -> int:
    """Return an estimate of the tokens of a text with so many characters."""
    return -(-characters // CHARACTERS_A_TOKEN)


class PageTool:
    """One tool of one server, as it was listed last."""

    __slots__ = ("_at", "_digest", "lists", "shown", "versions")

    def __init__(self) -> None:
        self._at: tuple[str, int] = ("", -1)
        self._digest = 0
        self.lists = 0
        """The number of lists that have it."""
        self.versions = DistinctCount(64)
        """The number of different definitions."""
        self.shown: dict[str, Any] = {}

    def add(self, at: tuple[str, int], tool: dict[str, Any], text: str) -> None:
        """Add the definition in the list at a place; *text* is its compact JSON."""
        digest = rank(text[:_LARGEST_DEFINITION], len(text))
        self.lists += 1
        self.versions.add(digest)
        if (at, digest) > (self._at, self._digest):
            if digest != self._digest:
                self.shown = _definition(tool, len(text))
            self._at, self._digest = at, digest

    def merge(self, other: "PageTool") -> None:
        """Add the definitions of *other*."""
        self.lists += other.lists
        self.versions.merge(other.versions)
        if (other._at, other._digest) > (self._at, self._digest):
            self._at, self._digest, self.shown = other._at, other._digest, other.shown

    def as_json(self) -> dict[str, Any]:
        """Return the tool for a page."""
        return {**self.shown, "lists": self.lists, "versions": self.versions.count}


def _definition(tool: dict[str, Any], characters: int) -> dict[str, Any]:
    notes = tool.get("annotations")
    hints = notes if isinstance(notes, dict) else {}
    title = tool.get("title", hints.get("title"))
    description = tool.get("description")
    return {
        "title": name_of(title) if isinstance(title, str) else "",
        "description": cut(description, _LONGEST_TEXT) if isinstance(description, str) else "",
        "hints": {each: hints[each] for each in _HINTS if isinstance(hints.get(each), bool)},
        "hasOutput": isinstance(tool.get("outputSchema"), dict),
        "characters": characters,
        "tokens": tokens_of(characters),
    }

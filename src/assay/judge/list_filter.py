"""
Quarantines invalid entries of a list, so that the valid ones are forwarded, and names them. No I/O.

A fault of an entry by the official schema refuses the whole list at first. Here it is limited to that entry, if the
list is valid without it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from assay.judge import render, syntax
from assay.model.json_values import items, obj, text
from assay.model.printable import counted, listed, plain
from assay.model.verdict import Exchange, ListEntry, Violation
from assay.schema.tool_contracts import MOST_QUARANTINED

LISTS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
    "skills/list": "skills",
    "resources/directory/read": "resources",
}
"""The methods that are answered with a list, and the member that has it."""

_NAMED: Final = {**LISTS, "roots/list": "roots", "tasks/list": "tasks"}
"""The same, with the lists whose entries are only named."""

_NOUNS: Final = {
    "tools": ("tool", "name"),
    "resources": ("resource", "name", "uri"),
    "resourceTemplates": ("resource template", "name", "uriTemplate"),
    "prompts": ("prompt", "name"),
    "roots": ("root", "name", "uri"),
    "tasks": ("task", "taskId"),
    "skills": ("skill", "uri"),
}
"""The noun for an entry of each list, and the members that may name the entry, best first."""

_NAME_LENGTH: Final = 60
"""The length of a name that is shown, in characters: the peer chose it. The specification asks for 128 at most."""

_MOST_KEPT: Final = 1000
"""Quarantined entries to remember for a summary: a peer can send any number of names."""

_TOGETHER: Final = 16
"""The number of entries that are judged together."""


# ── what is forwarded ────────────────────────────────────────────────────────────────────────────────────────────────


def limited(exchange: Exchange, result: dict[str, Any], found: Sequence[Violation]) -> list[Violation]:
    """Return *found* for one of `LISTS`, with faults that concern only entries limited to those entries."""
    member = LISTS[exchange.method]
    refused = [each for each in found if each.stops]
    numbers = {_number(each, member) for each in refused}
    if not refused or None in numbers or not isinstance(result.get(member), list):
        return list(found)
    bad = _bad(exchange.entry.result.is_valid, result, member)
    if bad is None:
        return list(found)
    kept = [replace(each, action="quarantine") if each.stops else each for each in found]
    # An entry without a violation of its own is quarantined as well, so it gets one.
    like = replace(refused[0], action="quarantine")
    return kept + [replace(like, at=f"/result/{member}/{number}") for number in sorted(bad - numbers)]


def _bad(fits: Callable[[Any], bool], result: dict[str, Any], member: str) -> set[int] | None:
    """
    Return the numbers of the entries that are invalid by themselves; None if there are too many, or the rest is
    invalid.

    Entries are judged together, and one by one only if some of them are invalid: a long list of faults does not name
    every invalid entry.
    """
    entries = result[member]
    # The other members of the result may be large, and would be judged again with each entry.
    plain = {key: value for key, value in result.items() if not isinstance(value, dict | list)}
    if not fits({**result, member: []}) or not fits({**plain, member: []}):
        return None
    bad: set[int] = set()
    for start in range(0, len(entries), _TOGETHER):
        some = entries[start : start + _TOGETHER]
        if not fits({**plain, member: some}):
            bad.update(number for number, one in enumerate(some, start) if not fits({**plain, member: [one]}))
        if len(bad) > MOST_QUARANTINED:
            return None
    return bad


def entries(exchange: Exchange, found: Sequence[Violation]) -> set[int]:
    """Return the numbers of the entries that are not forwarded, alone or with the whole list."""
    member = LISTS.get(exchange.method)
    if member is None:
        return set()
    numbers = (_number(each, member) for each in found if each.stops or each.action == "quarantine")
    return {number for number in numbers if number is not None}


def without(frame: bytes, message: dict[str, Any], method: str, numbers: Collection[int]) -> bytes:
    """Return the answer in *frame* without the entries of these *numbers*; everything else stays as it is."""
    exact = syntax.read_exactly(frame, message)
    member = LISTS[method]
    kept = [one for number, one in enumerate(exact["result"][member]) if number not in numbers]
    result = syntax.write({**exact["result"], member: kept})
    return render.result_frame(render.id_token(frame, message["id"]), result)


def _number(violation: Violation, member: str) -> int | None:
    """Return the number of the entry that *violation* is in; None if it is not in an entry."""
    head = f"/result/{member}/"
    if not violation.at.startswith(head):
        return None
    number = violation.at.removeprefix(head).partition("/")[0]
    return int(number) if number.isdigit() and len(number) < 9 else None


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def named(exchange: Exchange, message: dict[str, Any], found: Sequence[Violation]) -> list[Violation]:
    """Return *found*, each violation with the entry of the list that it is about."""
    member = _NAMED.get(exchange.method)
    if member is None:
        return list(found)
    entries = items(obj(message.get("result")).get(member))
    numbers = [_number(each, member) for each in found]
    return [
        each
        if number is None or number >= len(entries)
        else replace(each, entry=_named(member, number, entries[number]))
        for each, number in zip(found, numbers, strict=True)
    ]


def _named(member: str, number: int, listed: Any) -> ListEntry:
    kind, *keys = _NOUNS[member]
    name = next((name for key in keys if (name := text(obj(listed).get(key)))), f"number {number + 1}")
    return entry(kind, name)


def entry(kind: str, name: str) -> ListEntry:
    """Return an entry as it is shown: its name shortened, without control characters."""
    return ListEntry(kind, plain(name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 1] + "…"))


def about(tool: str, found: Sequence[Violation]) -> list[Violation]:
    """Return *found* of a call, with the tool as the entry where it is the tool that cannot be used."""
    which = entry("tool", tool)
    return [replace(each, entry=which) if each.action == "quarantine" else each for each in found]


def tool_at(violation: Violation, result: Any) -> str | None:
    """Return the name of the tool that *violation* is about, in a list of tools."""
    number, tools = _number(violation, "tools"), items(obj(result).get("tools"))
    name = obj(tools[number]).get("name") if number is not None and number < len(tools) else None
    return name if isinstance(name, str) else None


def quarantined(found: Sequence[Violation]) -> tuple[ListEntry, ...]:
    """Return the entries that are quarantined, each once."""
    return tuple(dict.fromkeys(each.entry for each in found if each.entry is not None and each.action == "quarantine"))


def summed(entries: Sequence[ListEntry], where: str, hidden: Callable[[str], str] = str) -> str:
    """Return the quarantined entries of the message *where*: ``2 tools in tools/list #1: search, delete``."""
    names = [hidden(each.name) for each in entries]
    return f"{counted(len(names), entries[0].kind)} in {where}: {listed(names)}"


class Quarantined:
    """The quarantined entries of many messages, each once, in order of appearance. Their names are printable."""

    __slots__ = ("_entries", "_more")

    def __init__(self) -> None:
        self._entries: dict[ListEntry, None] = {}
        self._more = 0

    def add(self, entries: Iterable[ListEntry]) -> None:
        """Add the entries of one message."""
        for each in entries:
            if each in self._entries:
                continue
            if len(self._entries) < _MOST_KEPT:
                self._entries[each] = None
            else:
                self._more += 1

    def lines(self, hidden: Callable[[str], str] = str) -> Iterator[str]:
        """Return a line for each kind: ``search, delete (2 tools)``. *hidden* masks secrets in a name."""
        for kind in dict.fromkeys(each.kind for each in self._entries):
            names = [hidden(each.name) for each in self._entries if each.kind == kind]
            yield f"{listed(names)} ({counted(len(names), kind)})"
        if self._more:
            yield f"{self._more:,} more"

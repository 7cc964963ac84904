"""
Quarantines invalid entries of a list, so that the valid ones are forwarded. No I/O.

A fault of an entry by the official schema refuses the whole list at first. Here it is limited to that entry, if the
list is valid without it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from assay.base.printable import plain
from assay.base.verdict import Exchange, ListEntry, Violation
from assay.contracts.tool_contracts import MOST_QUARANTINED
from assay.core import render
from assay.ladder import syntax

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

_TOGETHER: Final = 16
"""The number of entries that are judged together."""


def limited(exchange: Exchange, result: dict[str, Any], found: Sequence[Violation]) -> list[Violation]:
    """Return *found*, with faults that concern only entries of a list limited to those entries."""
    member = LISTS.get(exchange.method, "")
    entries = result.get(member)
    refused = [each for each in found if each.stops]
    if not refused or not isinstance(entries, list) or any(_entry(each, member) is None for each in refused):
        return list(found)
    bad = _bad(exchange.entry.result.is_valid, result, member)
    if bad is None:
        return list(found)
    named = {_entry(each, member) for each in refused}
    listed = [replace(each, action="quarantine") if each.stops else each for each in found]
    # An entry without a violation of its own is quarantined as well, so it gets one.
    like = replace(refused[0], action="quarantine")
    return listed + [replace(like, at=f"/result/{member}/{number}") for number in sorted(bad - named)]


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
    numbers = (_entry(each, member) for each in found if each.stops or each.action == "quarantine")
    return {number for number in numbers if number is not None}


def entry(kind: str, name: str) -> ListEntry:
    """Return an entry as it is shown: its name shortened, without control characters."""
    return ListEntry(kind, plain(name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 1] + "…"))


def named(exchange: Exchange, message: dict[str, Any], found: Sequence[Violation]) -> list[Violation]:
    """Return *found*, each violation with the entry of the list that it is about."""
    member = _NAMED.get(exchange.method)
    result = message.get("result")
    listed = result.get(member) if member is not None and isinstance(result, dict) else None
    if member is None or not isinstance(listed, list):
        return list(found)
    numbers = [_entry(each, member) for each in found]
    return [
        each if number is None or number >= len(listed) else replace(each, entry=_named(member, number, listed[number]))
        for each, number in zip(found, numbers, strict=True)
    ]


def about(tool: str, found: Sequence[Violation]) -> list[Violation]:
    """Return *found* of a call, with the tool as the entry where it is the tool that cannot be used."""
    which = entry("tool", tool)
    return [replace(each, entry=which) if each.action == "quarantine" else each for each in found]


def quarantined(found: Sequence[Violation]) -> tuple[ListEntry, ...]:
    """Return the entries that are quarantined, each once."""
    return tuple(dict.fromkeys(each.entry for each in found if each.entry is not None and each.action == "quarantine"))


def _named(member: str, number: int, listed: Any) -> ListEntry:
    kind, *keys = _NOUNS[member]
    names = (listed.get(key) for key in keys) if isinstance(listed, dict) else ()
    known = next((each for each in names if isinstance(each, str) and each), None)
    return entry(kind, known if known is not None else f"number {number + 1}")


def tool_at(violation: Violation, result: Any) -> str | None:
    """Return the name of the tool that *violation* is about, in a list of tools."""
    number = _entry(violation, "tools")
    tools = result.get("tools") if isinstance(result, dict) else None
    if number is None or not isinstance(tools, list) or number >= len(tools):
        return None
    name = tools[number].get("name") if isinstance(tools[number], dict) else None
    return name if isinstance(name, str) else None


def without(frame: bytes, message: dict[str, Any], method: str, numbers: Collection[int]) -> bytes:
    """Return the answer in *frame* without the entries of these *numbers*; everything else stays as it is."""
    exact = syntax.read_exactly(frame, message)
    member = LISTS[method]
    kept = [one for number, one in enumerate(exact["result"][member]) if number not in numbers]
    result = syntax.write({**exact["result"], member: kept})
    return render.result_frame(render.id_token(frame, message["id"]), result)


def _entry(violation: Violation, member: str) -> int | None:
    """Return the number of the entry that *violation* is in; None if it is not in an entry."""
    head = f"/result/{member}/"
    if not violation.at.startswith(head):
        return None
    number = violation.at.removeprefix(head).partition("/")[0]
    return int(number) if number.isdigit() and len(number) < 9 else None

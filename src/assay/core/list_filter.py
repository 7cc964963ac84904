"""
One bad entry of a list does not spoil the others: it is set aside, and the rest goes on. No I/O.

What is wrong with an entry by the official schema refuses the whole list at first; here it becomes a matter of that
entry alone, if without it the list is good.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from assay.base.verdict import Exchange, ListEntry, Violation
from assay.contracts.tool_contracts import MOST_ASIDE
from assay.core import render
from assay.ladder import syntax

LISTS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""The methods that answer with a list, and the member that it is."""

_NAMED: Final = {**LISTS, "roots/list": "roots", "tasks/list": "tasks"}
"""The same, with the lists whose entries are only named."""

_NOUNS: Final = {
    "tools": ("tool", "name"),
    "resources": ("resource", "name", "uri"),
    "resourceTemplates": ("resource template", "name", "uriTemplate"),
    "prompts": ("prompt", "name"),
    "roots": ("root", "name", "uri"),
    "tasks": ("task", "taskId"),
}
"""What an entry of a list is called, and the members that it may be known by, best first."""

_NAME_LENGTH: Final = 60
"""Characters of a name that are shown: names are the peer's. The specification asks for 128 at most."""

_TOGETHER: Final = 16
"""Entries that are asked about together."""


def set_aside(exchange: Exchange, result: dict[str, Any], found: Sequence[Violation]) -> list[Violation]:
    """*found*, with what only concerns entries of a list made a matter of those entries."""
    member = LISTS.get(exchange.method, "")
    entries = result.get(member)
    refused = [each for each in found if each.stops]
    if not refused or not isinstance(entries, list) or any(_entry(each, member) is None for each in refused):
        return list(found)
    bad = _bad(exchange.entry.result.is_valid, result, member)
    if bad is None:
        return list(found)
    named = {_entry(each, member) for each in refused}
    told = [replace(each, action="quarantine") if each.stops else each for each in found]
    # An entry that is not named is set aside all the same: say so.
    like = replace(refused[0], action="quarantine")
    return told + [replace(like, at=f"/result/{member}/{number}") for number in sorted(bad - named)]


def _bad(fits: Callable[[Any], bool], result: dict[str, Any], member: str) -> set[int] | None:
    """
    The numbers of the entries that are wrong by themselves; None if there are too many, or something else is wrong.

    Entries are asked about together, and one by one only where some of them are wrong: what is listed of many faults
    does not name every bad entry.
    """
    entries = result[member]
    # Beside the entries there may be anything, and it would be judged again with each of them.
    plain = {key: value for key, value in result.items() if not isinstance(value, dict | list)}
    if not fits({**result, member: []}) or not fits({**plain, member: []}):
        return None
    bad: set[int] = set()
    for start in range(0, len(entries), _TOGETHER):
        some = entries[start : start + _TOGETHER]
        if not fits({**plain, member: some}):
            bad.update(number for number, one in enumerate(some, start) if not fits({**plain, member: [one]}))
        if len(bad) > MOST_ASIDE:
            return None
    return bad


def entries(exchange: Exchange, found: Sequence[Violation]) -> set[int]:
    """The numbers of the entries that are not handed on, alone or with the whole list."""
    member = LISTS.get(exchange.method)
    if member is None:
        return set()
    numbers = (_entry(each, member) for each in found if each.stops or each.action == "quarantine")
    return {number for number in numbers if number is not None}


def entry(kind: str, name: str) -> ListEntry:
    """An entry as it is shown: its name cut short, with nothing in it that a terminal would act upon."""
    from assay.base.printable import plain  # noqa: PLC0415 - only where something is wrong

    return ListEntry(kind, plain(name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 1] + "…"))


def named(exchange: Exchange, message: dict[str, Any], found: Sequence[Violation]) -> list[Violation]:
    """*found*, each with the entry of the list that it is about."""
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
    """*found* against a call, with the tool where it is the tool that cannot be used."""
    which = entry("tool", tool)
    return [replace(each, entry=which) if each.action == "quarantine" else each for each in found]


def quarantined(found: Sequence[Violation]) -> tuple[ListEntry, ...]:
    """The entries that are quarantined, each once."""
    return tuple(dict.fromkeys(each.entry for each in found if each.entry is not None and each.action == "quarantine"))


def _named(member: str, number: int, listed: Any) -> ListEntry:
    kind, *keys = _NOUNS[member]
    names = (listed.get(key) for key in keys) if isinstance(listed, dict) else ()
    known = next((each for each in names if isinstance(each, str) and each), None)
    return entry(kind, known if known is not None else f"number {number + 1}")


def tool_at(violation: Violation, result: Any) -> str | None:
    """The tool that *violation* is about, in a list of them."""
    number = _entry(violation, "tools")
    tools = result.get("tools") if isinstance(result, dict) else None
    if number is None or not isinstance(tools, list) or number >= len(tools):
        return None
    name = tools[number].get("name") if isinstance(tools[number], dict) else None
    return name if isinstance(name, str) else None


def without(frame: bytes, message: dict[str, Any], method: str, numbers: Collection[int]) -> bytes:
    """The answer in *frame* without the entries of these *numbers*; everything else as it was."""
    exact = syntax.read_exactly(frame, message)
    member = LISTS[method]
    kept = [one for number, one in enumerate(exact["result"][member]) if number not in numbers]
    result = syntax.write({**exact["result"], member: kept})
    return render.result_frame(render.id_token(frame, message["id"]), result)


def _entry(violation: Violation, member: str) -> int | None:
    """The number of the entry that *violation* is in; None if it is in none."""
    head = f"/result/{member}/"
    if not violation.at.startswith(head):
        return None
    number = violation.at.removeprefix(head).partition("/")[0]
    return int(number) if number.isdigit() and len(number) < 9 else None

"""
What has changed in a tool, a resource template or a prompt since it was reviewed, and how much it matters. No I/O.

`breaking` means that a caller or reader that relies on the old definition may fail with the new one. `wording` breaks
no program, but may mislead a model: a changed description is how a trusted server begins to attack.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from assay.engine.canonical import canonical, text
from assay.engine.pointers import escaped
from assay.engine.wording import name
from assay.lock.change import ABSENT, WEIGHTS, Change, Weight, was_is
from assay.lock.schema_changes import ARGUMENTS, RESULTS, schema_changes
from assay.spec.revisions import is_known
from assay.spec.schema import protocol_schema

MOST: Final = 1000
"""Changes of one definition that are listed one by one."""


class ChangeKind(NamedTuple):
    """A kind of entry that a server offers."""

    noun: str
    method: str
    member: str
    """The member that lists them, in a result of *method* and in a lock."""
    key: str
    """The member of a definition that identifies it."""
    definition: str
    """Its definition in the protocol's schema."""


KINDS: Final = (
    ChangeKind("tool", "tools/list", "tools", "name", "Tool"),
    ChangeKind("resource template", "resources/templates/list", "resourceTemplates", "uriTemplate", "ResourceTemplate"),
    ChangeKind("prompt", "prompts/list", "prompts", "name", "Prompt"),
)
BY_METHOD: Final = {kind.method: kind for kind in KINDS}

_QUIET: Final = frozenset({"execution", "icons"})
"""Members without text for a model: if a newer revision introduces them, that is not reported."""


def changes(kind: ChangeKind, old: dict[str, Any], new: dict[str, Any], was: str = "", now: str = "") -> list[Change]:
    """
    Return the changes in *new*, the worst first; [] if both mean the same.

    *was* and *now* are the revisions in which they were listed. A member that the new revision does not have is not
    reported as gone; one that the new revision introduces is reported as new, since it was not reviewed.
    """
    old, new = canonical(old), canonical(new)
    if text(old) == text(new):
        return []
    found: list[Change] = []
    for member in sorted(old.keys() | new.keys()):
        before, after = old.get(member, ABSENT), new.get(member, ABSENT)
        if before is not ABSENT and after is not ABSENT and text(before) == text(after):
            continue
        if was != now and _comes_with_revision(kind, member, before, after, was, now):
            continue
        compare = _MEMBERS.get((kind.noun, member)) or _MEMBERS.get(("", member)) or _unknown
        found += compare(f"/{escaped(member)}", before, after)
    return _bounded(sorted(found, key=lambda change: WEIGHTS.index(change.weight)))


def _bounded(found: list[Change]) -> list[Change]:
    if len(found) <= MOST:
        return found
    return [*found[:MOST], Change("undecided", "", f"{len(found) - MOST:,} more changes", ABSENT, ABSENT)]


def _comes_with_revision(kind: ChangeKind, member: str, before: Any, after: Any, was: str, now: str) -> bool:
    """Whether *member* is missing in one definition only because its revision does not have it."""
    if after is ABSENT:
        return _has(was, kind, member) and not _has(now, kind, member)
    return before is ABSENT and member in _QUIET and _has(now, kind, member) and not _has(was, kind, member)


def _has(revision: str, kind: ChangeKind, member: str) -> bool:
    # A lock may have been made in a revision that is unknown here.
    schema = protocol_schema(revision) if is_known(revision) else None
    if schema is None or kind.definition not in schema.definitions:
        return False
    return member in schema.definition(kind.definition).get("properties", {})


# ── members ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_Compare = Callable[[str, Any, Any], Iterator[Change]]


def _as(weight: Weight) -> _Compare:
    """Return the comparison of a member whose changes all have the same weight."""

    def compare(at: str, old: Any, new: Any) -> Iterator[Change]:
        yield Change(weight, at, was_is(old, new), old, new)

    return compare


_unknown: Final = _as("undecided")
_wording: Final = _as("wording")


def _input(at: str, old: Any, new: Any) -> Iterator[Change]:
    yield from schema_changes(at, True if old is ABSENT else old, True if new is ABSENT else new, ARGUMENTS)


def _output(at: str, old: Any, new: Any) -> Iterator[Change]:
    if old is ABSENT:
        yield Change("compatible", at, "promises something now", old, new)
    elif new is ABSENT:
        yield Change("breaking", at, "promises nothing any more", old, new)
    else:
        yield from schema_changes(at, old, new, RESULTS)


def _annotations(at: str, old: Any, new: Any) -> Iterator[Change]:
    """Compare hints such as read-only or destructive. Clients use them to decide whether to ask the user."""
    was, now = _members(old), _members(new)
    if was is None or now is None:
        yield Change("undecided", at, was_is(old, new), old, new)
        return
    for member in sorted(was.keys() | now.keys()):
        before, after = was.get(member, ABSENT), now.get(member, ABSENT)
        if before is ABSENT or after is ABSENT or text(before) != text(after):
            weight: Weight = "wording" if member == "title" else "hints"
            yield Change(weight, f"{at}/{escaped(member)}", was_is(before, after), before, after)


def _members(value: Any) -> dict[str, Any] | None:
    if value is ABSENT:
        return {}
    return value if isinstance(value, dict) else None


_TASKS: Final = ("forbidden", "optional", "required")


def _execution(at: str, old: Any, new: Any) -> Iterator[Change]:
    """Compare whether a tool is called as a task."""
    was, now = (one.get("taskSupport", "forbidden") if isinstance(one, dict) else "forbidden" for one in (old, new))
    known = was in _TASKS and now in _TASKS and was != now
    weight: Weight = (
        "undecided" if not known else "compatible" if (was, now) == ("forbidden", "optional") else "breaking"
    )
    if known and was == "required" and now == "optional":
        weight = "compatible"
    yield Change(weight, at, was_is(old, new) if not known else f"tasks were {was}, are {now}", old, new)


def _mime_type(at: str, old: Any, new: Any) -> Iterator[Change]:
    yield Change("compatible" if old is ABSENT else "breaking", at, was_is(old, new), old, new)


def _arguments(at: str, old: Any, new: Any) -> Iterator[Change]:
    """Compare the arguments of a prompt by name."""
    was, now = _named(old), _named(new)
    if was is None or now is None:
        yield Change("undecided", at, was_is(old, new), old, new)
        return
    for each in sorted(was.keys() | now.keys()):
        yield from _argument(at, each, was.get(each), now.get(each))
    kept = [each for each in was if each in now]
    if kept != [each for each in now if each in was]:
        yield Change("wording", at, "in another order", old, new)


def _argument(at: str, called: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> Iterator[Change]:
    shown = name(called)
    if old is None or new is None:
        required = new is not None and new.get("required") is True
        weight: Weight = "breaking" if required or new is None else "compatible"
        words = f"{shown} is gone" if new is None else f"{shown} is new, {'required' if required else 'optional'}"
        yield Change(weight, at, words, ABSENT if old is None else old, ABSENT if new is None else new)
        return
    for member in sorted((old.keys() | new.keys()) - {"name"}):
        before, after = old.get(member, ABSENT), new.get(member, ABSENT)
        if before is ABSENT or after is ABSENT or text(before) != text(after):
            yield Change(
                _weight_of_argument(member, after), at, f"{member} of {shown}: {was_is(before, after)}", before, after
            )


def _weight_of_argument(member: str, after: Any) -> Weight:
    if member == "required":
        return "compatible" if after in (False, ABSENT) else "breaking"
    return "wording" if member in {"title", "description"} else "undecided"


def _named(arguments: Any) -> dict[str, dict[str, Any]] | None:
    """Return arguments by name; None if names are missing or repeated."""
    if arguments is ABSENT:
        return {}
    if not isinstance(arguments, list):
        return None
    found = {one["name"]: one for one in arguments if isinstance(one, dict) and isinstance(one.get("name"), str)}
    return found if len(found) == len(arguments) else None


_MEMBERS: Final[dict[tuple[str, str], _Compare]] = {
    ("", "title"): _wording,
    ("", "description"): _wording,
    ("", "icons"): _wording,
    ("", "annotations"): _annotations,
    ("tool", "inputSchema"): _input,
    ("tool", "outputSchema"): _output,
    ("tool", "execution"): _execution,
    ("resource template", "mimeType"): _mime_type,
    ("prompt", "arguments"): _arguments,
}
"""The comparison of each member, by the kind of definition, "" for all. Other members are undecided."""

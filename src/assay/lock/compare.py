"""
Compares what a server offers with what was reviewed: what has changed, and how much each change matters. No I/O.

`breaking` means that a caller or reader that relies on the old definition may fail with the new one. `wording` breaks
no program, but may mislead a model: a changed description is how a trusted server begins to attack.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from assay.judge.masking import masked_command, masked_url
from assay.judge.server_commands import same_server
from assay.lock.locked import KINDS, EntryKind, Locked
from assay.schema.canonical import canonical, text
from assay.schema.pointers import NOWHERE, escaped
from assay.schema.schema_diff import Effect, SchemaDifference, acts_elsewhere, schema_differences, unequal
from assay.schema.wording import listed, name, shown, wanted
from assay.spec.revisions import is_known
from assay.spec.schema import protocol_schema

ABSENT: Final = NOWHERE
"""Stands for a missing value, since null is a value."""

MOST: Final = 1000
"""Changes of one definition that are listed one by one."""

Weight = Literal["breaking", "undecided", "hints", "wording", "compatible"]

WEIGHTS: Final[tuple[Weight, ...]] = ("breaking", "undecided", "hints", "wording", "compatible")
"""The weights of a change, the worst first. An undecided one counts as breaking."""

PHRASES: Final[dict[Weight, str]] = {
    "breaking": "a breaking change",
    "undecided": "a change that may be breaking",
    "hints": "other hints",
    "wording": "other wording",
    "compatible": "a compatible change",
}
"""A name for each weight of a change."""

_ONLY_FOR: Final = "/offeredTo"

NOTES: Final = frozenset(
    {
        ("/server/version", "compatible"),
        ("/revision", "compatible"),
        ("/command", "wording"),
        ("/url", "wording"),
        ("/variant", "compatible"),
        (_ONLY_FOR, "compatible"),
    }
)
"""Changes with nothing new to review: they are reported as notes, and do not count as differences."""


class Change(NamedTuple):
    """One difference between the reviewed definition and the present one."""

    weight: Weight
    at: str
    """JSON Pointer into the definition; into the old one if what was there is gone."""
    words: str
    old: Any
    new: Any
    """The old and the new value; `ABSENT` for a missing one."""

    @property
    def breaking(self) -> bool:
        """Whether it counts as breaking."""
        return self.weight in {"breaking", "undecided"}


# ── the offer of a server ────────────────────────────────────────────────────────────────────────────────────────────


class Difference(NamedTuple):
    """An entry that was added, removed or changed."""

    noun: str
    """The kind of entry: tool, resource template, prompt; or the server itself."""
    name: str
    what: Literal["added", "removed", "changed"]
    changes: tuple[Change, ...] = ()

    @property
    def breaking(self) -> bool:
        """Whether a client that relies on the lock may fail."""
        return self.what == "removed" or any(each.breaking for each in self.changes)

    @property
    def counts(self) -> bool:
        """Whether an operator has to review it."""
        return self.what != "changed" or self.weight is not None

    @property
    def weight(self) -> Weight | None:
        """The worst weight of the changes to review; None without one, as for an added entry."""
        if self.what == "removed":
            return "breaking"
        weights = (each.weight for each in self.changes if (each.at, each.weight) not in NOTES)
        return min(weights, key=WEIGHTS.index, default=None)


def differences(old: Locked, new: Locked, *, named: bool = False) -> list[Difference]:
    """
    Return what is different in *new*, the server itself first.

    *named* says that the operator chose the entry by its name, so that its command need not be the same.
    """
    itself = tuple(_changes_of_server(old, new, named))
    found = [Difference("server", old.server.get("name", ""), "changed", itself)] if itself else []
    for kind in KINDS:
        was, now = old.of(kind), new.of(kind)
        for key in sorted(was.keys() | now.keys()):
            if key not in was:
                found.append(Difference(kind.noun, key, "added"))
            elif key not in now:
                found.append(Difference(kind.noun, key, "removed"))
            else:
                inside = tuple(_changes_of_entry(kind, key, old, new))
                found += [Difference(kind.noun, key, "changed", inside)] if inside else []
    return found


def _changes_of_entry(kind: EntryKind, key: str, old: Locked, new: Locked) -> Iterator[Change]:
    accepted, now = old.of(kind)[key], new.of(kind)[key]
    found: list[Change] = []
    for definition in now:
        changed = closest_changes(kind, accepted, definition, old.revision, new.revision)
        found += (change for change in changed if change not in found)
    yield from sorted(found, key=_rank)
    # The offer to a kind of client for which the server failed is unknown.
    if old.unasked or new.unasked:
        return
    before, after = (each.clients_of(kind).get(key) for each in (old, new))
    if len(now) < len(accepted) and not found and after is None:
        yield Change("compatible", "/variant", "all clients get the same definition now", ABSENT, ABSENT)
    if after is None and before is not None:
        yield Change("compatible", _ONLY_FOR, "now offered to every client", before, ABSENT)
    elif after != before:
        yield Change("breaking", _ONLY_FOR, f"now offered only to clients {after}", before or ABSENT, after)


def closest_changes(
    kind: EntryKind, accepted: Sequence[dict[str, Any]], new: dict[str, Any], was: str, now: str
) -> list[Change]:
    """Return how *new* differs from the one of the *accepted* definitions that it differs least from."""
    every = (changes(kind, definition, new, was, now) for definition in accepted)
    # The worst change comes first.
    return min(every, key=lambda found: (-_rank(found[0]) if found else -len(WEIGHTS), len(found)))


def _changes_of_server(old: Locked, new: Locked, named: bool) -> Iterator[Change]:
    if not old.is_reached_by(new.command, new.url):
        yield _change_of_command(old, new, named)
    yield from identity_changes(old, new.server)
    for instructions in new.instructions:
        yield from instruction_changes(old, instructions)
    if old.revision != new.revision:
        yield Change("compatible", "/revision", was_is(old.revision, new.revision), old.revision, new.revision)


def _change_of_command(old: Locked, new: Locked, named: bool) -> Change:
    """
    Return how the command or URL of the server differs.

    Other arguments, such as a folder that differs between machines, need no review, nor does a command under a name
    that the operator chose: the offer of the server is compared in any case.
    """
    was, now = (" ".join(masked_command(one.command)) or masked_url(one.url) for one in (old, new))
    same = bool(old.command and new.command) and same_server(masked_command(old.command), masked_command(new.command))
    weight: Weight = "wording" if named or same else "undecided"
    return Change(weight, "/command" if new.command else "/url", was_is(was, now), was, now)


def identity_changes(locked: Locked, server: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the changes in name and version of a server."""
    weights: tuple[tuple[str, Weight], ...] = (("name", "breaking"), ("version", "compatible"))
    for member, weight in weights:
        was, now = locked.server.get(member), server.get(member)
        if was is not None and now is not None and was != now:
            yield Change(weight, f"/server/{member}", was_is(was, now), was, now)


def instruction_changes(locked: Locked, instructions: Any) -> Iterator[Change]:
    """Yield the change in the instructions of a server, if they are not accepted."""
    if instructions not in locked.instructions:
        before, after = (ABSENT if one is None else one for one in (locked.instructions[0], instructions))
        yield Change("wording", "/instructions", was_is(before, after), before, after)


# ── definitions ──────────────────────────────────────────────────────────────────────────────────────────────────────

_QUIET: Final = frozenset({"execution", "icons"})
"""Members without text for a model: if a newer revision introduces them, that is not reported."""


def changes(kind: EntryKind, old: dict[str, Any], new: dict[str, Any], was: str = "", now: str = "") -> list[Change]:
    """
    Return the changes in *new*, the worst first; [] if both mean the same.

    *was* and *now* are the revisions in which they were listed. A member that the new revision does not have is not
    reported as gone; one that the new revision introduces is reported as new, since it was not reviewed.
    """
    found: list[Change] = []
    for member, before, after in _differing(canonical(old), canonical(new)):
        if was == now or not _comes_with_revision(kind, member, before, after, was, now):
            compare = _MEMBERS.get((kind.noun, member)) or _MEMBERS.get(("", member)) or _as("undecided")
            found += compare(f"/{escaped(member)}", before, after)
    found.sort(key=_rank)
    if len(found) <= MOST:
        return found
    return [*found[:MOST], Change("undecided", "", f"{len(found) - MOST:,} more changes", ABSENT, ABSENT)]


def _rank(change: Change) -> int:
    """Return the place of a change in an order with the worst first."""
    return WEIGHTS.index(change.weight)


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield each member that differs, with the old and the new value; `ABSENT` for a missing one."""
    for member in sorted(old.keys() | new.keys()):
        before, after = old.get(member, ABSENT), new.get(member, ABSENT)
        if before is ABSENT or after is ABSENT or text(before) != text(after):
            yield member, before, after


def _comes_with_revision(kind: EntryKind, member: str, before: Any, after: Any, was: str, now: str) -> bool:
    """Whether *member* is missing in one definition only because its revision does not have it."""
    if after is ABSENT:
        return _has(was, kind, member) and not _has(now, kind, member)
    return before is ABSENT and member in _QUIET and _has(now, kind, member) and not _has(was, kind, member)


def _has(revision: str, kind: EntryKind, member: str) -> bool:
    # A lock may have been made in a revision that is unknown here.
    return is_known(revision) and member in protocol_schema(revision).definition(kind.definition)["properties"]


# ── members of a definition ──────────────────────────────────────────────────────────────────────────────────────────

_Compare = Callable[[str, Any, Any], Iterator[Change]]


def _as(weight: Weight) -> _Compare:
    """Return the comparison of a member whose changes all have the same weight."""

    def compare(at: str, old: Any, new: Any) -> Iterator[Change]:
        yield Change(weight, at, was_is(old, new), old, new)

    return compare


def _annotations(at: str, old: Any, new: Any) -> Iterator[Change]:
    """Compare hints such as read-only or destructive. Clients use them to decide whether to ask the user."""
    was, now = ({} if one is ABSENT else one for one in (old, new))
    if not isinstance(was, dict) or not isinstance(now, dict):
        yield Change("undecided", at, was_is(old, new), old, new)
        return
    for member, before, after in _differing(was, now):
        weight: Weight = "wording" if member == "title" else "hints"
        yield Change(weight, f"{at}/{escaped(member)}", was_is(before, after), before, after)


_TASKS: Final = ("forbidden", "optional", "required")


def _execution(at: str, old: Any, new: Any) -> Iterator[Change]:
    """Compare whether a tool is called as a task."""
    was, now = (one.get("taskSupport", "forbidden") if isinstance(one, dict) else "forbidden" for one in (old, new))
    if was not in _TASKS or now not in _TASKS or was == now:
        yield Change("undecided", at, was_is(old, new), old, new)
    else:
        yield Change("compatible" if now == "optional" else "breaking", at, f"tasks were {was}, are {now}", old, new)


def _mime_type(at: str, old: Any, new: Any) -> Iterator[Change]:
    yield Change("compatible" if old is ABSENT else "breaking", at, was_is(old, new), old, new)


def _arguments(at: str, old: Any, new: Any) -> Iterator[Change]:
    """Compare the arguments of a prompt by name."""
    was, now = _named(old), _named(new)
    if was is None or now is None:
        yield Change("undecided", at, was_is(old, new), old, new)
        return
    for called, before, after in _differing(was, now):
        yield from _argument(at, name(called), before, after)
    if [each for each in was if each in now] != [each for each in now if each in was]:
        yield Change("wording", at, "in another order", old, new)


def _argument(at: str, called: str, old: Any, new: Any) -> Iterator[Change]:
    if new is ABSENT:
        yield Change("breaking", at, f"{called} is gone", old, new)
    elif old is ABSENT:
        is_required = new.get("required") is True
        words = f"{called} is new, {'required' if is_required else 'optional'}"
        yield Change("breaking" if is_required else "compatible", at, words, old, new)
    else:
        for member, before, after in _differing(old, new):
            weight: Weight = "wording" if member in {"title", "description"} else "undecided"
            if member == "required":
                weight = "compatible" if after in (False, ABSENT) else "breaking"
            yield Change(weight, at, f"{member} of {called}: {was_is(before, after)}", before, after)


def _named(arguments: Any) -> dict[str, dict[str, Any]] | None:
    """Return arguments by name; None if names are missing or repeated."""
    if arguments is ABSENT:
        return {}
    if not isinstance(arguments, list):
        return None
    found = {one["name"]: one for one in arguments if isinstance(one, dict) and isinstance(one.get("name"), str)}
    return found if len(found) == len(arguments) else None


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_ARGUMENTS: Final[Mapping[Effect, Weight]] = {
    "narrows": "breaking",
    "widens": "compatible",
    "breaks": "breaking",
    "adds": "compatible",
    "text": "wording",
    "unclear": "undecided",
}
"""The weights in a schema of arguments: a caller fails if less is accepted."""

_RESULTS: Final[Mapping[Effect, Weight]] = {**_ARGUMENTS, "narrows": "compatible", "widens": "breaking"}
"""The weights in a schema of results: a reader fails if more is possible."""


def _input(at: str, old: Any, new: Any) -> Iterator[Change]:
    yield from _schemas(at, True if old is ABSENT else old, True if new is ABSENT else new, _ARGUMENTS)


def _output(at: str, old: Any, new: Any) -> Iterator[Change]:
    if old is ABSENT:
        yield Change("compatible", at, "promises something now", old, new)
    elif new is ABSENT:
        yield Change("breaking", at, "promises nothing any more", old, new)
    else:
        yield from _schemas(at, old, new, _RESULTS)


def _schemas(at: str, old: Any, new: Any, weights: Mapping[Effect, Weight]) -> Iterator[Change]:
    is_sure = not acts_elsewhere(old) and not acts_elsewhere(new)
    found = False
    for each in schema_differences(old, new):
        found = True
        weight = weights[each.effect]
        weight = weight if is_sure or weight != "compatible" else "undecided"
        yield Change(weight, at + each.at, _words(each), each.old, each.new)
    if not found:
        yield Change("undecided", at, "something else has changed", old, new)


def _words(each: SchemaDifference) -> str:
    """Describe a difference of two schemas."""
    keyword, old, new = each.keyword, each.old, each.new
    if keyword == "required" and each.key is not None:
        return f"{'now' if old is ABSENT else 'no longer'} requires {name(each.key)}"
    if keyword == "enum" and isinstance(old, list) and isinstance(new, list):
        gone, more = ([shown(one) for _, one in unequal(*pair)] for pair in ((old, new), (new, old)))
        words = [f"no longer takes {listed(gone)}"] * bool(gone) + [f"also takes {listed(more)}"] * bool(more)
        return ", ".join(words)
    if not keyword or each.key is not None:
        return was_is(old, new, lambda schema: wanted(schema) or "a value")
    return was_is(old, new, lambda value: _value(keyword, value))


def _value(keyword: str, value: Any) -> str:
    is_described = keyword == "type" or (keyword == "enum" and isinstance(value, list))
    return (wanted({keyword: value}) if is_described else "") or shown(value)


_MEMBERS: Final[dict[tuple[str, str], _Compare]] = {
    ("", "title"): _as("wording"),
    ("", "description"): _as("wording"),
    ("", "icons"): _as("wording"),
    ("", "annotations"): _annotations,
    ("tool", "inputSchema"): _input,
    ("tool", "outputSchema"): _output,
    ("tool", "execution"): _execution,
    ("resource template", "mimeType"): _mime_type,
    ("prompt", "arguments"): _arguments,
}
"""The comparison of each member, by the kind of definition, "" for all. Other members are undecided."""


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_BEFORE: Final = 16
"""Characters that are shown before the first difference of two texts."""


def was_is(old: Any, new: Any, show: Callable[[Any], str] = shown) -> str:
    """Describe both values in a few words."""
    if old is ABSENT:
        return f"new: {show(new)}"
    return f"gone; was {show(old)}" if new is ABSENT else f"was {show(old)}, is {show(new)}"


def describe(change: Change, most: int) -> str:
    """Describe *change*, with at most *most* characters of each text."""
    if isinstance(change.old, str) and isinstance(change.new, str):
        old, new = _excerpts(change.old, change.new, most)
        return f'was "{old}", is "{new}"'
    if change.weight == "wording" and isinstance(change.new, str):
        return f'new: "{visible(change.new, most)}"'
    return change.words


def _excerpts(old: str, new: str, most: int) -> tuple[str, str]:
    """Return two texts, each cut to *most* characters around their first difference."""
    if max(len(old), len(new)) <= most:
        return visible(old, most), visible(new, most)
    alike = next((number for number, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
    parting = min(len(old), len(new)) if alike is None else alike
    start = max(0, parting - _BEFORE)
    head = "…" if start else ""
    return head + visible(old[start:], most), head + visible(new[start:], most)


def visible(text: Any, most: int) -> str:
    """Return *text* on one line, shortened, with invisible characters escaped."""
    cut = str(text)[:most]
    if not cut.isprintable():
        cut = "".join(each if each.isprintable() else _escape(ord(each)) for each in cut)
    return cut + ("…" if len(str(text)) > most else "")


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\u{{{code:x}}}"

"""What a server offered when it was locked, and how that differs from what it offers now. No I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import orjson

from assay.base.server_names import same_server
from assay.core.masked_commands import masked_command
from assay.core.masking import masked_url
from assay.lock.changes import KINDS, WEIGHTS, Change, ChangeKind, Weight, changes
from assay.lock.shifts import ABSENT, was_is

Definitions = Mapping[str, dict[str, Any]]
"""Definitions of one kind, by what they are known by."""

Way = Literal["without capabilities", "with capabilities"]
"""A kind of client that a server is asked as. Servers offer more, or something else, to clients with capabilities."""

BARE: Final[Way] = "without capabilities"
CAPABLE: Final[Way] = "with capabilities"
WAYS: Final[tuple[Way, ...]] = (BARE, CAPABLE)

_MOST_NAMES: Final = 20
"""Names that are listed on one line."""

TOLD: Final = frozenset(
    {
        ("/server/version", "compatible"),
        ("/revision", "compatible"),
        ("/command", "wording"),
        ("/url", "wording"),
        ("/variant", "compatible"),
        ("/offeredTo", "compatible"),
    }
)
"""Changes that show nobody anything that was not reviewed: they are reported, and do not count as differences."""


@dataclass(frozen=True)
class Locked:
    """One server."""

    command: tuple[str, ...] = ()
    url: str = ""
    """How it is reached: one of the two. From a file, without what looks like a secret."""
    revision: str = ""
    """The revision that it was asked in."""
    server: Mapping[str, str] = field(default_factory=dict)
    """The name and version that it gives itself, as far as it does."""
    instructions: str | None = None
    """What it tells a model about itself."""
    listed: Mapping[str, Definitions] = field(default_factory=dict)
    """What it offers, by the member that lists it: tools, resourceTemplates, prompts."""
    variants: Mapping[str, Definitions] = field(default_factory=dict)
    """The definitions that clients with capabilities get, where these differ from *listed*; by the same members."""
    offered: Mapping[str, Mapping[str, Way]] = field(default_factory=dict)
    """The names that only one kind of client gets, and which kind; by the same members."""
    other_instructions: tuple[str | None, ...] = ()
    """The instructions that clients with capabilities get, where these differ."""
    unasked: Way | None = None
    """The kind of client that the server failed for, so that nothing is known of it."""

    def of(self, kind: ChangeKind) -> Definitions:
        """What it offers of one kind."""
        return self.listed.get(kind.member, {})

    def forms(self, kind: ChangeKind, name: str) -> list[dict[str, Any]]:
        """Return every definition that is locked under *name*: none, one, or two."""
        every = (of.get(kind.member, {}).get(name) for of in (self.listed, self.variants))
        return [each for each in every if each is not None]

    def only_for(self, kind: ChangeKind) -> Mapping[str, Way]:
        """Return the names of one kind that only one kind of client gets."""
        return self.offered.get(kind.member, {})

    def is_reached_by(self, command: tuple[str, ...], url: str) -> bool:
        """Whether this is the server of that command, or at that address; secrets in them are not compared."""
        if (self.command, self.url) == (command, url):
            return True
        if len(self.command) != len(command) or bool(self.url) != bool(url):
            return False
        return (masked_command(self.command), masked_url(self.url)) == (masked_command(command), masked_url(url))

    @cached_property
    def texts(self) -> Mapping[str, Mapping[str, tuple[bytes, ...]]]:
        """The definitions as bytes, for a quick look: what is spelt alike is the same."""
        return {kind.member: {key: tuple(map(spelt, self.forms(kind, key))) for key in self.of(kind)} for kind in KINDS}

    def counts(self) -> str:
        """How much it offers, in words."""
        some = [_counted(len(self.of(kind)), kind.noun) for kind in KINDS if self.of(kind)]
        return ", ".join(some) or "nothing at all"

    def notes(self) -> Iterator[str]:
        """Yield a line about each difference between what the two kinds of clients get."""
        if self.unasked is not None:
            yield f"what clients {self.unasked} get is not locked: the server failed for such a client"
        for kind in KINDS:
            for way in WAYS:
                names = sorted(name for name, only in self.only_for(kind).items() if only == way)
                if names:
                    yield f"only for clients {way}: {_listed(len(names), kind.noun, names)}"
            other = sorted(self.variants.get(kind.member, {}))
            if other:
                yield f"other definitions for clients {CAPABLE}: {_listed(len(other), kind.noun, other)}"
        if self.other_instructions:
            yield f"other instructions for clients {CAPABLE}"


def spelt(definition: Any) -> bytes:
    """A definition as bytes, whatever the order of its keys."""
    return orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)


class Difference(NamedTuple):
    """Something that is there, is gone, or is not what it was."""

    noun: str
    """The kind of thing: tool, resource template, prompt; or the server itself."""
    name: str
    what: Literal["added", "removed", "changed"]
    changes: tuple[Change, ...] = ()

    @property
    def breaking(self) -> bool:
        """Whether somebody who relies on what was locked may fail."""
        return self.what == "removed" or any(each.breaking for each in self.changes)

    @property
    def counts(self) -> bool:
        """Whether an operator has to review it."""
        return self.what != "changed" or self.weight is not None

    @property
    def weight(self) -> Weight | None:
        """The worst weight of the changes to review; None if there are none, as for something that was added."""
        if self.what == "removed":
            return "breaking"
        weights = (each.weight for each in self.changes if (each.at, each.weight) not in TOLD)
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
        for name in sorted(was.keys() | now.keys()):
            if name not in was:
                found.append(Difference(kind.noun, name, "added"))
            elif name not in now:
                found.append(Difference(kind.noun, name, "removed"))
            else:
                inside = tuple(_changes_of_entry(kind, name, old, new))
                found += [Difference(kind.noun, name, "changed", inside)] if inside else []
    return found


def _changes_of_entry(kind: ChangeKind, name: str, old: Locked, new: Locked) -> Iterator[Change]:
    was, now = old.forms(kind, name), new.forms(kind, name)
    every = [closest_changes(kind, was, form, old.revision, new.revision) for form in now]
    told: list[Change] = []
    for each in (change for changed in every for change in changed):
        if each not in told:
            told.append(each)
    yield from sorted(told, key=lambda change: WEIGHTS.index(change.weight))
    # Where one kind of client could not be asked, nothing is known of what it gets.
    if old.unasked is None and new.unasked is None:
        only = new.only_for(kind).get(name)
        if len(now) < len(was) and not told and only is None:
            yield Change("compatible", "/variant", "all clients get the same definition now", ABSENT, ABSENT)
        yield from _changes_of_clients(old.only_for(kind).get(name), only)


def _changes_of_clients(was: Way | None, now: Way | None) -> Iterator[Change]:
    if was == now:
        return
    if now is None:
        yield Change("compatible", "/offeredTo", "now offered to every client", was, ABSENT)
    else:
        before = ABSENT if was is None else was
        yield Change("breaking", "/offeredTo", f"now offered only to clients {now}", before, now)


def closest_changes(
    kind: ChangeKind, forms: Sequence[dict[str, Any]], new: dict[str, Any], was: str = "", now: str = ""
) -> list[Change]:
    """Return how *new* differs from the one of the locked *forms* that it differs least from."""
    every = [changes(kind, form, new, was, now) for form in forms]
    return min(every, key=_severity)


def _severity(found: Sequence[Change]) -> tuple[int, int]:
    # Changes come with the worst first, and so do weights.
    return (len(WEIGHTS) - WEIGHTS.index(found[0].weight), len(found)) if found else (0, 0)


def _changes_of_server(old: Locked, new: Locked, named: bool) -> Iterator[Change]:
    if not old.is_reached_by(new.command, new.url):
        yield _change_of_command(old, new, named)
    yield from identity_changes(old, new.server, new.instructions)
    for instructions in new.other_instructions:
        yield from identity_changes(old, {}, instructions)
    if old.revision != new.revision:
        yield Change("compatible", "/revision", was_is(old.revision, new.revision), old.revision, new.revision)


def _change_of_command(old: Locked, new: Locked, named: bool) -> Change:
    """
    Return how the way to the server differs.

    Other arguments, such as the folder that each person has elsewhere, are nothing to review, and nothing is under a
    name that the operator chose: what the server offers is compared all the same.
    """
    was, now = (" ".join(masked_command(one.command)) or masked_url(one.url) for one in (old, new))
    same = bool(old.command and new.command) and same_server(masked_command(old.command), masked_command(new.command))
    weight: Weight = "wording" if named or same else "undecided"
    return Change(weight, "/command" if new.command else "/url", was_is(was, now), was, now)


def identity_changes(locked: Locked, server: Mapping[str, Any], instructions: Any) -> Iterator[Change]:
    """What a server says of itself, and said otherwise when it was locked."""
    for member in ("name", "version"):
        was, now = locked.server.get(member), server.get(member)
        if was is not None and now is not None and was != now:
            yield Change(
                "breaking" if member == "name" else "compatible", f"/server/{member}", was_is(was, now), was, now
            )
    if instructions != locked.instructions and instructions not in locked.other_instructions:
        before, after = (ABSENT if one is None else one for one in (locked.instructions, instructions))
        yield Change("wording", "/instructions", was_is(before, after), before, after)


def _listed(number: int, noun: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{_counted(number, noun)} ({shown}{', …' if number > _MOST_NAMES else ''})"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

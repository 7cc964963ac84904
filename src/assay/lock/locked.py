"""What a server offered when it was locked, and how its present offer differs. No I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import orjson

from assay.base.printable import counted
from assay.base.server_names import same_server
from assay.contracts.tool_contract import Contract
from assay.contracts.tool_lists import contract_of
from assay.core.masked_commands import masked_command
from assay.core.masking import masked_url
from assay.lock.change import ABSENT, WEIGHTS, Change, Weight, was_is
from assay.lock.changes import KINDS, ChangeKind, changes
from assay.spec.revisions import features_of

Definitions = Mapping[str, dict[str, Any]]
"""Definitions of one kind, by name or URI template."""

Way = Literal["without capabilities", "with capabilities"]
"""A kind of client. Servers offer more tools, or other definitions, to clients with capabilities."""

BARE: Final[Way] = "without capabilities"
CAPABLE: Final[Way] = "with capabilities"
WAYS: Final[tuple[Way, ...]] = (BARE, CAPABLE)

_MOST_NAMES: Final = 20
"""Names that are listed on one line."""

NOTES: Final = frozenset(
    {
        ("/server/version", "compatible"),
        ("/revision", "compatible"),
        ("/command", "wording"),
        ("/url", "wording"),
        ("/variant", "compatible"),
        ("/offeredTo", "compatible"),
    }
)
"""Changes with nothing new to review: they are reported as notes, and do not count as differences."""


@dataclass(frozen=True)
class Locked:
    """One locked server."""

    command: tuple[str, ...] = ()
    url: str = ""
    """How it is reached: a command or a URL. Read from a file, secrets are masked."""
    revision: str = ""
    """The revision of the conversation in which it was locked."""
    server: Mapping[str, str] = field(default_factory=dict)
    """Its own name and version, if it has them."""
    instructions: str | None = None
    """Its instructions for a model."""
    listed: Mapping[str, Definitions] = field(default_factory=dict)
    """What it offers, by the member that lists it: tools, resourceTemplates, prompts."""
    variants: Mapping[str, Definitions] = field(default_factory=dict)
    """The definitions for clients with capabilities, where they differ from *listed*; by the same members."""
    offered: Mapping[str, Mapping[str, Way]] = field(default_factory=dict)
    """The names that only one kind of client gets, and that kind; by the same members."""
    other_instructions: tuple[str | None, ...] = ()
    """The instructions for clients with capabilities, if they differ."""
    unasked: Way | None = None
    """The kind of client for which the server failed, so that its offer to them is unknown."""

    def of(self, kind: ChangeKind) -> Definitions:
        """Return the definitions of one kind."""
        return self.listed.get(kind.member, {})

    def forms(self, kind: ChangeKind, name: str) -> list[dict[str, Any]]:
        """Return every definition that is locked under *name*: zero, one or two."""
        every = (of.get(kind.member, {}).get(name) for of in (self.listed, self.variants))
        return [each for each in every if each is not None]

    def only_for(self, kind: ChangeKind) -> Mapping[str, Way]:
        """Return the names of one kind that only one kind of client gets."""
        return self.offered.get(kind.member, {})

    def is_reached_by(self, command: tuple[str, ...], url: str) -> bool:
        """Whether this is the server of that command or URL; secrets are not compared."""
        if (self.command, self.url) == (command, url):
            return True
        if len(self.command) != len(command) or bool(self.url) != bool(url):
            return False
        return (masked_command(self.command), masked_url(self.url)) == (masked_command(command), masked_url(url))

    @cached_property
    def texts(self) -> Mapping[str, Mapping[str, tuple[bytes, ...]]]:
        """The definitions as bytes, for a quick comparison: equal bytes are equal definitions."""
        return {kind.member: {key: tuple(map(spelt, self.forms(kind, key))) for key in self.of(kind)} for kind in KINDS}

    @cached_property
    def contracts(self) -> Mapping[str, Contract]:
        """The contracts of its tools, except those that differ from client to client."""
        other, outputs = self.variants.get("tools", {}), features_of(self.revision).output_schemas
        tools = self.listed.get("tools", {})
        return {name: contract_of(tool, outputs=outputs) for name, tool in tools.items() if name not in other}

    def counts(self) -> str:
        """Return how many entries of each kind it offers, in words."""
        some = [counted(len(self.of(kind)), kind.noun) for kind in KINDS if self.of(kind)]
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
    """Return a definition as bytes; the order of its keys does not matter."""
    return orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)


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
    found: list[Change] = []
    for each in (change for changed in every for change in changed):
        if each not in found:
            found.append(each)
    yield from sorted(found, key=lambda change: WEIGHTS.index(change.weight))
    # The offer to a kind of client for which the server failed is unknown.
    if old.unasked is None and new.unasked is None:
        only = new.only_for(kind).get(name)
        if len(now) < len(was) and not found and only is None:
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
    # Changes are sorted with the worst first, and so are weights.
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
    Return how the command or URL of the server differs.

    Other arguments, such as a folder that differs between machines, need no review, nor does a command under a name
    that the operator chose: the offer of the server is compared in any case.
    """
    was, now = (" ".join(masked_command(one.command)) or masked_url(one.url) for one in (old, new))
    same = bool(old.command and new.command) and same_server(masked_command(old.command), masked_command(new.command))
    weight: Weight = "wording" if named or same else "undecided"
    return Change(weight, "/command" if new.command else "/url", was_is(was, now), was, now)


def identity_changes(locked: Locked, server: Mapping[str, Any], instructions: Any) -> Iterator[Change]:
    """Yield the changes in name, version and instructions of a server."""
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
    return f"{counted(number, noun)} ({shown}{', …' if number > _MOST_NAMES else ''})"

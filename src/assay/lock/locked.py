"""What a server offered when it was locked, and how that differs from what it offers now. No I/O."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import orjson

from assay.lock.changes import KINDS, Change, Kind, changes
from assay.lock.shifts import ABSENT, was_is
from assay.masking import masked_command, masked_url

Definitions = Mapping[str, dict[str, Any]]
"""Definitions of one kind, by what they are known by."""

TOLD: Final = frozenset({"/server/version", "/revision"})
"""What may change without anybody having to review it: it is told, and no more."""


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

    def of(self, kind: Kind) -> Definitions:
        """What it offers of one kind."""
        return self.listed.get(kind.member, {})

    def is_reached_by(self, command: tuple[str, ...], url: str) -> bool:
        """Whether this is the server of that command, or at that address; secrets in them are not compared."""
        if (self.command, self.url) == (command, url):
            return True
        if len(self.command) != len(command) or bool(self.url) != bool(url):
            return False
        return (masked_command(self.command), masked_url(self.url)) == (masked_command(command), masked_url(url))

    @cached_property
    def texts(self) -> Mapping[str, Mapping[str, bytes]]:
        """The definitions as bytes, for a quick look: what is spelt alike is the same."""
        return {kind.member: {key: spelt(one) for key, one in self.of(kind).items()} for kind in KINDS}

    def counts(self) -> str:
        """How much it offers, in words."""
        some = [_counted(len(self.of(kind)), kind.noun) for kind in KINDS if self.of(kind)]
        return ", ".join(some) or "nothing at all"


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
        """Whether somebody has to review it."""
        return self.what != "changed" or any(each.at not in TOLD for each in self.changes)


def differences(old: Locked, new: Locked) -> list[Difference]:
    """What is different in *new*, the server itself first."""
    itself = tuple(_changes_of_server(old, new))
    found = [Difference("server", old.server.get("name", ""), "changed", itself)] if itself else []
    for kind in KINDS:
        was, now = old.of(kind), new.of(kind)
        for name in sorted(was.keys() | now.keys()):
            if name not in was:
                found.append(Difference(kind.noun, name, "added"))
            elif name not in now:
                found.append(Difference(kind.noun, name, "removed"))
            else:
                inside = changes(kind, was[name], now[name], old.revision, new.revision)
                found += [Difference(kind.noun, name, "changed", tuple(inside))] if inside else []
    return found


def _changes_of_server(old: Locked, new: Locked) -> Iterator[Change]:
    if not old.is_reached_by(new.command, new.url):
        was, now = (" ".join(masked_command(one.command)) or masked_url(one.url) for one in (old, new))
        yield Change("undecided", "/command" if new.command else "/url", was_is(was, now), was, now)
    yield from identity_changes(old, new.server, new.instructions)
    if old.revision != new.revision:
        yield Change("compatible", "/revision", was_is(old.revision, new.revision), old.revision, new.revision)


def identity_changes(locked: Locked, server: Mapping[str, Any], instructions: Any) -> Iterator[Change]:
    """What a server says of itself, and said otherwise when it was locked."""
    for member in ("name", "version"):
        was, now = locked.server.get(member), server.get(member)
        if was is not None and now is not None and was != now:
            yield Change(
                "breaking" if member == "name" else "compatible", f"/server/{member}", was_is(was, now), was, now
            )
    if locked.instructions != instructions:
        before, after = (ABSENT if one is None else one for one in (locked.instructions, instructions))
        yield Change("wording", "/instructions", was_is(before, after), before, after)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

"""
What changes in a configuration when servers go behind the guard, or come out again. Text in, text out, no I/O.

How an entry finds back to what it was: the backup has its text. If that text, put behind the same guard, is what now
stands in the file, it is what was there before, to the byte, however much else has changed since. Where that cannot be
shown, the entry is taken apart: its arguments name the server's own command, or its URL and headers.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from assay.clients.entries import ConfigError, Server, advice, objection, servers
from assay.clients.guarding import Guard, Guarded, Mode, guarded, guarded_in, program_of, starts_guard
from assay.clients.jsonc import Edit, edited, plain, read

ALREADY: Final = "it runs behind the guard already"
NOT_BEHIND: Final = "it does not run behind the guard"
UNCHECKED: Final = "it starts assay guard through another program, which was not checked"
BY_HAND: Final = "its guard is started in a way of its own, and can only be taken out by hand"

_NAMED: Final = 10
"""How many servers are named to somebody who asked for one that is not there."""


@dataclass(frozen=True, slots=True)
class Change:
    """Another text for an entry, and how it was found."""

    server: Server
    text: str
    outcome: Literal["wrapped", "updated", "restored", "rebuilt"]
    advice: str | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """An entry that stays as it is, and why. *fine* if it is as was asked for."""

    server: Server
    why: str
    fine: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration, and what becomes of it."""

    before: str
    after: str
    changes: tuple[Change, ...]
    left: tuple[Left, ...]


IsOurs = Callable[[str, Mapping[str, Any]], bool]
"""Whether a command, started with these variables, is this very program."""

Known = Mapping[tuple[str, str], str]
"""The entries of a backup, by section and name."""


def wrap(
    text: str,
    backup: str | None,
    names: Collection[str],
    program: str,
    mode: Mode | None,
    *,
    move: bool = False,
    is_ours: IsOurs | None = None,
) -> Plan:
    """
    The servers called *names*, or all of them, behind the guard; *program* starts it, a JSON string.

    One that is behind it already is changed only if it is to have another *mode*, or, with *move*, another program.
    Without *move* it counts as behind the guard only if *is_ours* says so of its program; None takes it by its name.
    Raises `ConfigError`, also for a name that is not there or cannot be put behind the guard.
    """
    known = _entries(backup)
    moved = program if move else None
    return _planned(text, names, lambda server: _wrapped(server, known, moved, program, mode, is_ours))


def unwrap(text: str, backup: str | None, names: Collection[str] = ()) -> Plan:
    """The servers called *names*, or all of them, without the guard. Raises `ConfigError`."""
    known = _entries(backup)
    return _planned(text, names, lambda server: _unwrapped(server, known))


def are_guarded(text: str) -> bool:
    """Whether a server of the configuration runs behind the guard. Raises `ConfigError`."""
    return any(guarded_in(server.text) for server in servers(text))


def _planned(text: str, names: Collection[str], fate: Callable[[Server], Change | Left]) -> Plan:
    fates = [fate(server) for server in _chosen(servers(text), names)]
    left = tuple(each for each in fates if isinstance(each, Left))
    for each in left:
        if names and not each.fine:
            raise ConfigError(f"{each.server.name}: {each.why}")
    changes = tuple(each for each in fates if isinstance(each, Change))
    after = edited(text, (Edit(each.server.start, each.server.end, each.text) for each in changes))
    return Plan(text, after, changes, left)


def _chosen(found: list[Server], names: Collection[str]) -> list[Server]:
    there = [server.name for server in found]
    for name in names:
        if name not in there:
            raise ConfigError(f"no server is called {name}{_suggestion(name, there)}")
    if not found:
        raise ConfigError("no servers in it")
    return [server for server in found if not names or server.name in names]


def _suggestion(name: str, there: list[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only the mistaken pay for it

    folded = {each.casefold(): each for each in there}
    near = get_close_matches(name.casefold()[:100], list(folded)[:500], n=1)
    if near:
        return f"; did you mean {folded[near[0]]}?"
    return f"; there are {', '.join(there[:_NAMED])}{' …' if len(there) > _NAMED else ''}" if there else ""


def _wrapped(
    server: Server, known: Known, moved: str | None, program: str, mode: Mode | None, is_ours: IsOurs | None
) -> Change | Left:
    present = guarded_in(server.text)
    if present is not None:
        if moved is None and is_ours is not None and not is_ours(*program_of(server.text)):
            return Left(
                server, f"its command {present.guard.program} is not this assay; --program PATH puts another there"
            )
        guard = Guard(moved or present.guard.program, present.guard.options).with_mode(mode)
        if guard == present.guard:
            return Left(server, ALREADY, fine=True)
        return Change(server, guarded(_original(server, present, known).text, guard), "updated")
    if starts_guard(server.text):
        return Left(server, ALREADY if is_ours is None else UNCHECKED, fine=True)
    why = objection(server.text)
    if why is not None:
        return Left(server, why)
    return Change(server, guarded(server.text, Guard(program).with_mode(mode)), "wrapped", advice(server.text))


def _unwrapped(server: Server, known: Known) -> Change | Left:
    present = guarded_in(server.text)
    if present is not None:
        return _original(server, present, known)
    return Left(server, BY_HAND) if starts_guard(server.text) else Left(server, NOT_BEHIND, fine=True)


def _original(server: Server, present: Guarded, known: Known) -> Change:
    """What was there before the guard: as the backup has it, or else taken apart."""
    saved = known.get((server.section, server.name))
    if saved is not None and _is_origin(saved, present):
        return Change(server, saved, "restored")
    return Change(server, present.bare, "rebuilt")


def _is_origin(saved: str, present: Guarded) -> bool:
    """Whether *saved* is what became *present*."""
    if objection(saved) is not None:
        return False
    again = guarded(saved, present.guard)
    if again == present.text:
        return True
    # A client has written the file anew, in its own layout. An entry with a command is taken apart in that layout; of
    # one with a URL, only the backup knows how it was spelt. A comment would be lost, and nobody but a person wrote it.
    now = read(present.text)
    return present.first is None and not now.comments and plain(now.root) == plain(read(again).root)


def _entries(backup: str | None) -> Known:
    """What is in a backup; nothing, if there is none or it cannot be read."""
    try:
        return {(each.section, each.name): each.text for each in servers(backup)} if backup is not None else {}
    except ConfigError:
        return {}

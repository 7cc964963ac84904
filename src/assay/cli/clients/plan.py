"""
Plan the changes to a configuration that put servers behind the guard, or restore them. Text in, text out, no I/O.

How an entry is restored: the backup has its text. If that text, put behind the same guard, equals the entry in the
file, it is the exact original, whatever else has changed since. Otherwise the entry is rebuilt from its arguments,
which have the server's command, or its URL and headers.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, Final, Literal

from assay.base.server_names import cut_name
from assay.cli.clients.dialect import JSON, ConfigError, Dialect, NoServersError, ServerEntry
from assay.cli.clients.entries import advice, hesitation, objection
from assay.cli.clients.jsonc import plain
from assay.cli.clients.wrapping import NAME, GuardCommand, Guarded, guarded, guarded_in, program_of, starts_guard
from assay.ladder.spots import Edit, edited
from assay.spec.schema import closest

ALREADY: Final = "it already runs behind the guard"
NOT_BEHIND: Final = "it does not run behind the guard"
UNCHECKED: Final = "it starts assay guard through another program, which assay cannot check"
BY_HAND: Final = "its guard was not written by assay wrap; remove it by hand"

_NAMED: Final = 10
"""Number of servers that the error about an unknown one lists."""


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """The new text of an entry, and how it was found."""

    server: ServerEntry
    text: str
    outcome: Literal["wrapped", "updated", "restored", "rebuilt"]
    advice: str | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """An entry that is left alone, and why. *fine* if it already is as requested."""

    server: ServerEntry
    why: str
    fine: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration and its planned changes."""

    before: str
    after: str
    changes: tuple[ConfigChange, ...]
    left: tuple[Left, ...]


IsOurs = Callable[[str, Mapping[str, Any]], bool]
"""Function that checks whether a command, started with these variables, is this program."""

Known = Mapping[tuple[str, str], str]
"""The entries of a backup, by section and name."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The requested way to guard servers."""

    program: str
    """The program that the client starts."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the guard with their values, such as ``--mode``."""
    move: bool = False
    """Whether an existing guard is changed to this *program*, too."""
    is_ours: IsOurs | None = None
    """Checks whether an existing guard is this program; None accepts any with this name."""


def wrap(text: str, backup: str | None, names: Collection[str], wish: Wish, dialect: Dialect = JSON) -> Plan:
    """
    Return the plan that puts the servers called *names*, or all of them, behind the guard.

    A server that is already behind the guard changes only if an option or the program differs, or if its guard has no
    name yet. Raises `ConfigError`, also for an unknown name and for a server that cannot be put behind the guard.
    """
    known = _entries(backup, dialect)
    return _planned(text, names, dialect, lambda server: _wrapped(server, known, wish, dialect, server.name in names))


def unwrap(text: str, backup: str | None, names: Collection[str] = (), dialect: Dialect = JSON) -> Plan:
    """Return the plan that restores the servers called *names*, or all of them. Raises `ConfigError`."""
    known = _entries(backup, dialect)
    return _planned(text, names, dialect, lambda server: _unwrapped(server, known, dialect))


def are_guarded(text: str, dialect: Dialect = JSON) -> bool:
    """Whether a server of the configuration runs behind the guard. Raises `ConfigError`."""
    return any(guarded_in(server.text, dialect) for server in dialect.servers(text) if not server.trouble)


def guard_names(text: str, dialect: Dialect = JSON) -> list[str]:
    """Return the names of the guards in a configuration, in the order of its text. Raises `ConfigError`."""
    found = (guarded_in(server.text, dialect) for server in dialect.servers(text) if not server.trouble)
    names = (present.guard.value(NAME) for present in found if present is not None)
    return [name for name in names if name is not None]


def _planned(
    text: str, names: Collection[str], dialect: Dialect, fate: Callable[[ServerEntry], ConfigChange | Left]
) -> Plan:
    found = dialect.servers(text)
    fates = [_untouched(server) or fate(server) for server in _chosen(found, names)]
    left = tuple(each for each in fates if isinstance(each, Left))
    for each in left:
        if names and not each.fine:
            raise ConfigError(f"{each.server.label}: {each.why}")
    changes = tuple(each for each in fates if isinstance(each, ConfigChange))
    after = edited(text, (Edit(each.server.start, each.server.end, each.text) for each in changes))
    _verify(after, found, changes, dialect)
    return Plan(text, after, changes, left)


def _untouched(server: ServerEntry) -> Left | None:
    return Left(server, server.trouble) if server.trouble else None


def _verify(after: str, before: list[ServerEntry], changes: tuple[ConfigChange, ...], dialect: Dialect) -> None:
    """Parse the new text. Raises `ConfigError` if it is not what was planned."""
    texts = {(each.server.section, each.server.name): each.text for each in changes}
    planned = [each._replace(text=texts.get((each.section, each.name), each.text)) for each in before]
    if changes and [_read(each, dialect) for each in dialect.servers(after)] != [
        _read(each, dialect) for each in planned
    ]:
        raise ConfigError("it cannot be edited safely; nothing was written")


def _read(server: ServerEntry, dialect: Dialect) -> tuple[str, str, Any]:
    return server.section, server.name, server.trouble or plain(dialect.entry(server.text))


def _chosen(found: list[ServerEntry], names: Collection[str]) -> list[ServerEntry]:
    there = [server.name for server in found]
    for name in names:
        if name not in there:
            raise ConfigError(f"no server is called {name}{suggestion(name, there)}")
    if not found:
        raise NoServersError("no servers in it")
    return [server for server in found if not names or server.name in names]


def suggestion(name: str, there: list[str]) -> str:
    """Return a suggestion for *name* among the servers that are *there*, as the end of a message."""
    near = closest(name[:100], there[:500])
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there are {', '.join(there[:_NAMED])}{' …' if len(there) > _NAMED else ''}" if there else ""


def _wrapped(server: ServerEntry, known: Known, wish: Wish, dialect: Dialect, named: bool) -> ConfigChange | Left:
    present = guarded_in(server.text, dialect)
    if present is not None:
        return _renewed(server, present, known, wish)
    if starts_guard(server.text, dialect):
        return Left(server, ALREADY if wish.is_ours is None else UNCHECKED, fine=True)
    why = objection(server.text, dialect)
    if why is not None:
        return Left(server, why)
    why = None if named else hesitation(server.text, dialect)
    if why is not None:
        return Left(server, f"{why}; --server {quote(server.name)} puts it behind the guard anyway")
    guard = _named(GuardCommand(dialect.written(wish.program)), server).with_options(wish.options)
    return ConfigChange(server, guarded(server.text, guard, dialect), "wrapped", advice(server.text, dialect))


def _renewed(server: ServerEntry, present: Guarded, known: Known, wish: Wish) -> ConfigChange | Left:
    """Return the change of an entry that is already behind the guard."""
    dialect = present.dialect
    if not wish.move and wish.is_ours is not None and not wish.is_ours(*program_of(server.text, dialect)):
        return Left(server, f"its command {present.guard.program} is not this assay; --program PATH replaces it")
    program = dialect.written(wish.program) if wish.move else present.guard.program
    guard = _named(GuardCommand(program, present.guard.options), server).with_options(wish.options)
    if guard == present.guard:
        return Left(server, ALREADY, fine=True)
    return ConfigChange(server, guarded(_original(server, present, known).text, guard, dialect), "updated")


def _named(guard: GuardCommand, server: ServerEntry) -> GuardCommand:
    """Return *guard* with the name of the client's entry, which findings and the journal use for the server."""
    # A name with a leading hyphen would be parsed as an option.
    return guard if guard.has(NAME) else guard.with_options({NAME: cut_name(server.name.lstrip("-"))})


def _unwrapped(server: ServerEntry, known: Known, dialect: Dialect) -> ConfigChange | Left:
    present = guarded_in(server.text, dialect)
    if present is not None:
        return _original(server, present, known)
    return Left(server, BY_HAND) if starts_guard(server.text, dialect) else Left(server, NOT_BEHIND, fine=True)


def _original(server: ServerEntry, present: Guarded, known: Known) -> ConfigChange:
    """Return the entry before the guard: from the backup, or rebuilt from its arguments."""
    saved = known.get((server.section, server.name))
    if saved is not None and _is_origin(saved, present):
        return ConfigChange(server, saved, "restored")
    return ConfigChange(server, present.bare, "rebuilt")


def _is_origin(saved: str, present: Guarded) -> bool:
    """Whether *saved* is the original of *present*."""
    dialect = present.dialect
    if objection(saved, dialect) is not None:
        return False
    again = guarded(saved, present.guard, dialect)
    if again == present.text:
        return True
    # The client has rewritten the file in its own layout. An entry with a command is rebuilt in that layout; for one
    # with a URL, only the backup has the original keys. A comment would be lost, although a person wrote it.
    same = plain(dialect.entry(present.text)) == plain(dialect.entry(again))
    return present.first is None and same and not dialect.has_comments(present.text)


def _entries(backup: str | None, dialect: Dialect) -> Known:
    """Return the entries of a backup; empty if it does not exist or cannot be read."""
    try:
        found = dialect.servers(backup) if backup is not None else []
    except ConfigError:
        return {}
    return {(each.section, each.name): each.text for each in found if not each.trouble}

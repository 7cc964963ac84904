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
from assay.cli.clients.dialect import JSON, Dialect, NoServersError, ServerEntry, written
from assay.cli.clients.entries import advice, hesitation, objection
from assay.cli.clients.jsonc import ConfigError
from assay.cli.clients.wrapping import NAME, GuardCommand, Guarded, guarded, guarded_in, starts_guard
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


Known = Mapping[tuple[str, str], ServerEntry]
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
    is_ours: Callable[[str, Mapping[str, Any]], bool] | None = None
    """Checks whether a command, started with these variables, is this program; None accepts any with this name."""


def wrap(text: str, names: Collection[str], wish: Wish, dialect: Dialect = JSON) -> Plan:
    """
    Return the plan that puts the servers called *names*, or all of them, behind the guard.

    A server that is already behind the guard changes only if an option or the program differs, or if its guard has no
    name yet. Raises `ConfigError`, also for an unknown name and for a server that cannot be put behind the guard.
    """
    return _planned(text, names, dialect, lambda server: _wrapped(server, wish, named=server.name in names))


def unwrap(text: str, backup: str | None, names: Collection[str] = (), dialect: Dialect = JSON) -> Plan:
    """Return the plan that restores the servers called *names*, or all of them. Raises `ConfigError`."""
    known = _entries(backup, dialect)
    return _planned(text, names, dialect, lambda server: _unwrapped(server, known))


def guard_names(text: str, dialect: Dialect = JSON) -> list[str]:
    """Return the names of the guards in a configuration; empty for one without a name. Raises `ConfigError`."""
    found = (guarded_in(server) for server in dialect.servers(text) if not server.trouble)
    return [present.guard.value(NAME) or "" for present in found if present is not None]


def _planned(
    text: str, names: Collection[str], dialect: Dialect, fate: Callable[[ServerEntry], ConfigChange | Left]
) -> Plan:
    servers = dialect.servers(text)
    there = [server.name for server in servers]
    for name in names:
        if name not in there:
            raise ConfigError(f"no server is called {name}{suggestion(name, there)}")
    if not servers:
        raise NoServersError("no servers in it")
    changes: list[ConfigChange] = []
    left: list[Left] = []
    for server in servers:
        if names and server.name not in names:
            continue
        found = Left(server, server.trouble) if server.trouble else fate(server)
        if isinstance(found, ConfigChange):
            changes.append(found)
        elif names and not found.fine:
            raise ConfigError(f"{server.label}: {found.why}")
        else:
            left.append(found)
    after = edited(text, (Edit(each.server.start, each.server.end, each.text) for each in changes))
    # The new text is parsed again: a bug must not damage a configuration.
    planned = {id(each.server): each.text for each in changes}
    expected = [(each.section, each.name, planned.get(id(each), each.text)) for each in servers]
    if changes and [(each.section, each.name, each.text) for each in dialect.servers(after)] != expected:
        raise ConfigError("it cannot be edited safely; nothing was written")
    return Plan(text, after, tuple(changes), tuple(left))


def suggestion(name: str, there: list[str]) -> str:
    """Return a suggestion for *name* among the servers that are *there*, as the end of a message."""
    near = closest(name[:100], there[:500])
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there are {', '.join(there[:_NAMED])}{' …' if len(there) > _NAMED else ''}" if there else ""


def _wrapped(server: ServerEntry, wish: Wish, *, named: bool) -> ConfigChange | Left:
    present = guarded_in(server)
    if present is None:
        if starts_guard(server):
            return Left(server, ALREADY if wish.is_ours is None else UNCHECKED, fine=True)
        why = objection(server)
        if why is not None:
            return Left(server, why)
        why = None if named else hesitation(server)
        if why is not None:
            return Left(server, f"{why}; --server {quote(server.name)} puts it behind the guard anyway")
        guard = _named(GuardCommand(written(wish.program)), server).with_options(wish.options)
        return ConfigChange(server, guarded(server, guard), "wrapped", advice(server))
    program, env = server.written["command"], server.written.get("env")
    if not wish.move and wish.is_ours is not None and not wish.is_ours(program, env if isinstance(env, dict) else {}):
        return Left(server, f"its command {present.guard.program} is not this assay; --program PATH replaces it")
    moved = written(wish.program) if wish.move else present.guard.program
    guard = _named(GuardCommand(moved, present.guard.options), server).with_options(wish.options)
    if guard == present.guard:
        return Left(server, ALREADY, fine=True)
    return ConfigChange(server, present.with_guard(guard), "updated")


def _named(guard: GuardCommand, server: ServerEntry) -> GuardCommand:
    """Return *guard* with the name of the client's entry, which findings and the journal use for the server."""
    # A name with a leading hyphen would be parsed as an option.
    return guard.with_options({NAME: cut_name(server.name.lstrip("-"))}) if guard.value(NAME) is None else guard


def _unwrapped(server: ServerEntry, known: Known) -> ConfigChange | Left:
    present = guarded_in(server)
    if present is None:
        return Left(server, BY_HAND) if starts_guard(server) else Left(server, NOT_BEHIND, fine=True)
    saved = _origin(present, known)
    return (
        ConfigChange(server, present.bare, "rebuilt") if saved is None else ConfigChange(server, saved.text, "restored")
    )


def _origin(present: Guarded, known: Known) -> ServerEntry | None:
    """Return the entry of the backup that *present* was before the guard; None if it has another one, or none."""
    entry = present.entry
    saved = known.get((entry.section, entry.name))
    if saved is None or objection(saved) is not None:
        return None
    again = guarded(saved, present.guard)
    # A client may have rewritten the file in its own layout. A comment would be lost, although a person wrote it.
    rewritten = not entry.has_comments and saved.parsed(again) == entry.written
    return saved if again == entry.text or rewritten else None


def _entries(backup: str | None, dialect: Dialect) -> Known:
    """Return the entries of a backup; empty if it does not exist or cannot be read."""
    try:
        found = dialect.servers(backup) if backup is not None else []
    except ConfigError:
        return {}
    return {(each.section, each.name): each for each in found if not each.trouble}

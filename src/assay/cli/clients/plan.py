"""
Plan the changes to a configuration that put servers behind the guard, or restore them. Text in, text out, no I/O.

How an entry is restored: the backup has its text. If that text, put behind the same guard, equals the entry in the
file, it is the exact original, whatever else has changed since. Otherwise the entry is rebuilt from its arguments,
which have the server's command, or its URL and headers.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, Final, Literal, NamedTuple

from assay.cli.clients.dialect import JSON, Dialect, NoServersError, ServerEntry, written
from assay.cli.clients.parsing import ConfigError
from assay.cli.clients.wrapping import (
    NAME,
    GuardCommand,
    advice,
    guarded,
    guarded_in,
    hesitation,
    objection,
    starts_guard,
)
from assay.judge.text_edit import Edit, edited
from assay.model.names import cut_name
from assay.spec.schema import suggestion

_NAMED: Final = 10
"""Number of servers that the error about an unknown one lists."""


Outcome = Literal["wrapped", "updated", "restored", "rebuilt", "already", "not behind", "unchecked", "refused"]


class Decision(NamedTuple):
    """What happens to one server: the new text of its entry, or why the entry is left alone."""

    server: ServerEntry
    outcome: Outcome
    text: str = ""
    note: str = ""
    """Why the entry is left alone, or advice about the change."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration and its planned changes."""

    dialect: Dialect
    before: str
    after: str
    changes: list[Decision]
    left: list[Decision]

    def count(self, *outcomes: Outcome) -> int:
        """Return the number of servers with one of these *outcomes*."""
        return sum(each.outcome in outcomes for each in (*self.changes, *self.left))


@dataclass(frozen=True, slots=True)
class Wish:
    """The requested way to guard servers."""

    program: str
    """The program that the client starts."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the guard with their values, such as ``--mode``."""
    move: bool = False
    """Whether an existing guard is changed to this *program*, too."""
    is_ours: Callable[[str, Mapping[str, Any]], bool] = lambda _, __: True
    """Checks whether a command, started with these variables, is this program."""


def wrap(text: str, names: Collection[str], wish: Wish, dialect: Dialect = JSON) -> Plan:
    """
    Return the plan that puts the servers called *names*, or all of them, behind the guard.

    A server that is already behind the guard changes only if an option or the program differs, or if its guard has no
    name yet. Raises `ConfigError`, also for an unknown name and for a server that cannot be put behind the guard.
    """
    return _planned(text, names, dialect, lambda server: _wrapped(server, wish, named=server.name in names))


def unwrap(text: str, backup: str | None, names: Collection[str] = (), dialect: Dialect = JSON) -> Plan:
    """Return the plan that restores the servers called *names*, or all of them. Raises `ConfigError`."""
    try:
        saved = dialect.servers(backup) if backup is not None else []
    except ConfigError:
        saved = []
    known = {(each.section, each.name): each for each in saved if not each.trouble}
    return _planned(text, names, dialect, lambda server: _unwrapped(server, known.get((server.section, server.name))))


def guard_names(text: str, dialect: Dialect = JSON) -> list[str]:
    """Return the names of the guards in a configuration; empty for one without a name. Raises `ConfigError`."""
    found = (guarded_in(server) for server in dialect.servers(text) if not server.trouble)
    return [present.guard.value(NAME) or "" for present in found if present is not None]


def _planned(text: str, names: Collection[str], dialect: Dialect, decide: Callable[[ServerEntry], Decision]) -> Plan:
    servers = dialect.servers(text)
    there = [server.name for server in servers]
    for name in names:
        if name not in there:
            raise ConfigError(f"no server is called {name}{likely(name, there)}")
    if not servers:
        raise NoServersError("no servers in it")
    decisions = [
        Decision(server, "refused", note=server.trouble) if server.trouble else decide(server)
        for server in servers
        if not names or server.name in names
    ]
    for each in decisions:
        if names and each.outcome == "refused":
            raise ConfigError(f"{each.server.label}: {each.note}")
    changes = [each for each in decisions if each.text]
    after = edited(text, (Edit(each.server.start, each.server.end, each.text) for each in changes))
    # The new text is parsed again: a bug must not damage a configuration.
    planned = {id(each.server): each.text for each in changes}
    expected = [(each.section, each.name, planned.get(id(each), each.text)) for each in servers]
    if changes and [(each.section, each.name, each.text) for each in dialect.servers(after)] != expected:
        raise ConfigError("it cannot be edited safely; nothing was written")
    return Plan(dialect, text, after, changes, [each for each in decisions if not each.text])


def likely(name: str, there: list[str]) -> str:
    """Return what *name* may stand for among the servers that are *there*, as the end of a message."""
    listed = f"; there are {', '.join(there[:_NAMED])}{' …' if len(there) > _NAMED else ''}" if there else ""
    return suggestion(name[:100], there[:500]) or listed


def _wrapped(server: ServerEntry, wish: Wish, *, named: bool) -> Decision:
    present = guarded_in(server)
    if present is None:
        if starts_guard(server):
            through = "it starts assay guard through another program, which assay cannot check"
            return Decision(server, "unchecked", note=through)
        why = objection(server)
        if why is None and not named and (doubt := hesitation(server)):
            why = f"{doubt}; --server {quote(server.name)} puts it behind the guard anyway"
        if why is not None:
            return Decision(server, "refused", note=why)
        guard = _wished(GuardCommand(written(wish.program)), server, wish)
        return Decision(server, "wrapped", guarded(server, guard), advice(server) or "")
    program, env = server.written["command"], server.written.get("env")
    if not wish.move and not wish.is_ours(program, env if isinstance(env, dict) else {}):
        why = f"its command {present.guard.program} is not this assay; --program PATH replaces it"
        return Decision(server, "refused", note=why)
    moved = written(wish.program) if wish.move else present.guard.program
    guard = _wished(GuardCommand(moved, present.guard.options), server, wish)
    if guard == present.guard:
        return Decision(server, "already", note="it already runs behind the guard")
    return Decision(server, "updated", present.with_guard(guard))


def _wished(guard: GuardCommand, server: ServerEntry, wish: Wish) -> GuardCommand:
    """Return *guard* with the wanted options, and a name, which findings and the journal use for the server."""
    if guard.value(NAME) is None:
        # A name with a leading hyphen would be parsed as an option.
        guard = guard.with_options({NAME: cut_name(server.name.lstrip("-"))})
    return guard.with_options(wish.options)


def _unwrapped(server: ServerEntry, saved: ServerEntry | None) -> Decision:
    present = guarded_in(server)
    if present is None and starts_guard(server):
        return Decision(server, "refused", note="its guard was not written by assay wrap; remove it by hand")
    if present is None:
        return Decision(server, "not behind", note="it does not run behind the guard")
    if saved is not None and objection(saved) is None:
        again = guarded(saved, present.guard)
        # A client may have rewritten the file in its own layout. A comment would be lost, although a person wrote it.
        rewritten = not server.has_comments and saved.parsed(again) == server.written
        if again == server.text or rewritten:
            return Decision(server, "restored", saved.text)
    return Decision(server, "rebuilt", present.bare)

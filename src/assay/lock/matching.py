"""
Finds the entry of a lock for a server: by its name, its command or its URL.

A lock restricts what a server may offer, so a loose match is better than no match: without an entry everything passes.
What a loose match accepts was reviewed, and a server that calls itself by another name than the locked one is refused.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from assay.judge.masking import masked_command, masked_url
from assay.judge.server_commands import may_be_same_server, same_server
from assay.lock.lock_file import FILE, Lock, LockError, read
from assay.lock.locked import Locked

_MOST_NAMES: Final = 10
"""Names of entries in one message."""


class Match(NamedTuple):
    """An entry of a lock, and how it was found."""

    name: str
    locked: Locked
    by: Literal["name", "command", "program", "file"]
    """
    *program* is the same command with other arguments, or the same address in another spelling.

    *file* is the only entry of a file that the operator named.
    """


def entry_for(lock: Lock, *, name: str | None = None, command: Sequence[str] = (), url: str = "") -> Match | None:
    """
    Return the entry of *lock* for a server; None if it has none.

    *name* is the one that the operator gave the server: an entry of that name is the right one, whatever its command.
    Raises `LockError` if several entries fit and say different things.
    """
    if name is not None and name in lock:
        return Match(name, lock[name], "name")
    exact = [each for each, locked in lock.items() if locked.is_reached_by(tuple(command), url)]
    if exact:
        return Match(only_entry(lock, exact), lock[exact[0]], "command")
    loose = loose_entries(lock, command, url)
    return Match(only_entry(lock, loose), lock[loose[0]], "program") if loose else None


def loose_entries(lock: Lock, command: Sequence[str], url: str = "") -> list[str]:
    """Return the names of the entries for the same server with other arguments, or at the same address."""
    masked, address = masked_command(command), masked_url(url)
    return [
        name
        for name, locked in lock.items()
        if (locked.command and command and same_server(locked.command, masked))
        or (locked.url and url and _is_same_address(locked.url, address))
    ]


def _is_same_address(one: str, other: str) -> bool:
    """Return whether two URLs are of the same server, ignoring query, case of the host, and a last slash."""
    try:
        first, second = (urlsplit(each) for each in (one, other))
        ports = [each.port or {"http": 80, "https": 443}.get(each.scheme) for each in (first, second)]
    except ValueError:
        return False
    same = (first.scheme, first.hostname, ports[0]) == (second.scheme, second.hostname, ports[1])
    return same and bool(first.hostname) and first.path.rstrip("/") == second.path.rstrip("/")


def only_entry(lock: Lock, names: Sequence[str]) -> str:
    """Return the first of the entries with these *names*. Raises `LockError` unless all of them allow the same."""
    if not alike([lock[each] for each in names]):
        shown = f"{', '.join(names[:-1][:_MOST_NAMES])} and {names[-1]}"
        both = "both" if len(names) == 2 else "all"
        remedy = "choose one with --name NAME, or keep each in a file of its own (--lock FILE)"
        raise LockError(f"{shown} are {both} entries for this server; {remedy}")
    return names[0]


def alike(entries: Sequence[Locked]) -> bool:
    """Whether all entries allow the same."""
    allowed = [(each.texts, each.server, each.instructions) for each in entries]
    return all(each == allowed[0] for each in allowed)


def chosen(
    wish: str, *, name: str | None = None, command: tuple[str, ...] = (), url: str = "", enforcing: bool = False
) -> Match | None:
    """
    Return the entry for a guarded server; None if no lock applies.

    *wish* is ``off`` for no lock, ``auto`` for `assay.lock` in the working directory, if it exists and has this server,
    or the path of a file that must have it. The only entry of a file is used for this server, unless the server has
    another *name*. Raises `LockError`; if *enforcing*, also if an entry may be meant but does not match exactly: an
    unreviewed tool must not reach a client because of the folder in which the guard runs.
    """
    if wish == "off" or (wish == "auto" and not os.path.lexists(FILE)):
        return None
    path = FILE if wish == "auto" else wish
    try:
        lock = read(path)
    except FileNotFoundError:
        link = "it is a link to a file that does not exist" if os.path.islink(path) else "no such file"
        raise LockError(f"{path}: {link}; create one with assay lock") from None
    try:
        found = entry_for(lock, name=name, command=command, url=url)
    except LockError as error:
        raise LockError(f"{path}: {error}") from None
    if found is None and wish == "auto" and enforcing:
        _check_meant(lock, command)
    if found is not None or wish == "auto":
        return found
    if len(lock) == 1 and name is None:
        [(only, locked)] = lock.items()
        return Match(only, locked, "file")
    raise LockError(f"{path}: no entry for {name or 'this server'}; {remedy(lock, path, url)}")


def _check_meant(lock: Lock, command: Sequence[str]) -> None:
    """Raise `LockError` if an entry of *lock*, which is `assay.lock`, may be meant for *command*."""
    masked = masked_command(command)
    meant = [name for name, locked in lock.items() if locked.command and may_be_same_server(locked.command, masked)]
    if meant:
        shown = " or ".join(meant[:_MOST_NAMES])
        remedy = "choose it with --name NAME, or add an entry with assay lock -- COMMAND"
        raise LockError(f"{FILE}: {shown} may be the entry for this server, but the commands differ; {remedy}")


def notices(found: Match | None, *, name: str | None, command: Sequence[str], url: str) -> Iterator[str]:
    """Yield what the operator should know about the entry of `assay.lock` that a server is held to."""
    if found is None:
        what = name or ("this URL" if url else "this command")
        yield f"{FILE} has no entry for {what}; the lock is not applied; {remedy(read(FILE), FILE, url)}"
        return
    entry = found.locked
    shown = " ".join(masked_command(entry.command)) or masked_url(entry.url)
    if found.by == "program" and url:
        yield f"lock entry {found.name} applies; it was locked for {shown}"
    elif found.by == "program":
        yield f"lock entry {found.name} applies; it was locked with other arguments: {shown}"
    elif found.by == "name" and not _is_same(entry, command, url):
        yield f"lock entry {found.name} applies by its name; it was locked for {shown}"


def _is_same(entry: Locked, command: Sequence[str], url: str) -> bool:
    if entry.is_reached_by(tuple(command), url):
        return True
    return bool(command and entry.command) and same_server(entry.command, masked_command(command))


def remedy(lock: Lock, path: str, url: str = "") -> str:
    """Return what to do about a server that *lock*, the file at *path*, has no entry for."""
    option = "" if path == FILE else f" --lock {path}"
    names = ", ".join(sorted(lock)[:_MOST_NAMES]) + (", …" if len(lock) > _MOST_NAMES else "")
    use = f", or choose an entry with --name ({names})" if lock else ""
    return f"add one with assay lock{option} {'--target URL' if url else '-- COMMAND'}{use}"

"""
Which entry of a lock a server is held to: the one of its name, of its command, or of its URL.

A lock restricts what a server may offer, so an entry that fits loosely is better than none: under a lock that is not
applied everything passes. What a loose match lets through was reviewed all the same, and a server that calls itself by
another name than the locked one is refused.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from assay.guard.server_names import same_server
from assay.lock.file import FILE, Lock, LockError, read
from assay.lock.locked import Locked
from assay.masked_commands import masked_command
from assay.masking import masked_url

_MOST_NAMES: Final = 10
"""Names of entries that are listed in a message."""


class Match(NamedTuple):
    """An entry of a lock, and what it was found by."""

    name: str
    locked: Locked
    by: Literal["name", "command", "program", "file"]
    """*program* is the command with other arguments; *file* says that it is the only entry of a file that was named."""


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
        if not _alike([lock[each] for each in exact]):
            remedy = "choose one with --name NAME, or keep each in a file of its own (--lock FILE)"
            raise LockError(f"{' and '.join(exact)} are both entries for this server; {remedy}")
        return Match(exact[0], lock[exact[0]], "command")
    masked = masked_command(command)
    loose = [each for each, locked in lock.items() if locked.command and same_server(locked.command, masked)]
    return Match(loose[0], lock[loose[0]], "program") if loose and _alike([lock[each] for each in loose]) else None


def _alike(entries: Sequence[Locked]) -> bool:
    """Whether all entries allow the same."""
    allowed = [(each.texts, each.server, each.instructions, each.other_instructions) for each in entries]
    return all(each == allowed[0] for each in allowed)


def chosen(wish: str, *, name: str | None = None, command: tuple[str, ...] = (), url: str = "") -> Match | None:
    """
    Return the entry that a guarded server is held to; None if it is held to nothing.

    *wish* is ``off`` for nothing, ``auto`` for `assay.lock` in the working directory, if that is there and has this
    server, or the path of a file that must have it; a file with one entry is taken to be of this server, unless that
    has another *name*. Raises `LockError`.
    """
    if wish == "off" or (wish == "auto" and not os.path.exists(FILE)):
        return None
    path = FILE if wish == "auto" else wish
    try:
        lock = read(path)
    except FileNotFoundError:
        raise LockError(f"{path}: no such file; assay lock makes one") from None
    try:
        found = entry_for(lock, name=name, command=command, url=url)
    except LockError as error:
        raise LockError(f"{path}: {error}") from None
    if found is not None or wish == "auto":
        return found
    if len(lock) == 1 and name is None:
        [(only, locked)] = lock.items()
        return Match(only, locked, "file")
    raise LockError(f"{path}: no entry for {name or 'this server'}; {remedy(lock, path, url)}")


def told(found: Match | None, *, name: str | None, command: Sequence[str], url: str) -> Iterator[str]:
    """Yield what the operator should know about the entry of `assay.lock` that a server is held to."""
    if found is None:
        what = name or ("this URL" if url else "this command")
        yield f"{FILE} has no entry for {what}; the lock is not applied; {remedy(read(FILE), FILE, url)}"
        return
    entry = found.locked
    shown = " ".join(masked_command(entry.command)) or masked_url(entry.url)
    if found.by == "program":
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

"""
Reads and writes `assay.lock`, a file that reads well in a diff. The only module of the lock that touches a disk.

Everything is sorted, so the same server gives the same bytes. Invisible characters are escaped, so that a reviewer
sees them.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from assay.judge import syntax
from assay.judge.masking import masked_command, masked_url
from assay.lock.locked import BARE, CAPABLE, CLIENTS, KINDS, Accepted, EntryKind, Locked
from assay.model.atomic_file import replace_file
from assay.model.limits import DEFAULT
from assay.model.verdict import Violation
from assay.schema.canonical import canonical, fingerprint

FILE: Final = "assay.lock"

FORMAT: Final = 1
"""The version of the file format."""

_LONGEST: Final = 64 << 20
"""Bytes. The largest known lists of tools have a hundredth of that."""

_DEPTH: Final = DEFAULT.depth + 8
"""Levels of nesting: a definition may have as many as a message, and is itself some levels down."""

_PREFIX: Final = "sha256:"

Lock = dict[str, Locked]
"""Locked servers by name."""


class LockError(Exception):
    """A lock cannot be read or written; the message says why, in one line."""


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def read(path: str | os.PathLike[str]) -> Lock:
    """Return the lock in the file at *path*. Raises `LockError`, or `FileNotFoundError` if the file does not exist."""
    try:
        # A link in a checkout may lead to a device or a pipe. Opening it may block, or consume the client's messages.
        if os.fspath(path) == FILE and not stat.S_ISREG(os.stat(path).st_mode):
            raise LockError(f"{path}: not a regular file")
        with open(path, "rb") as file:
            content = file.read(_LONGEST + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LockError(f"{path}: {error.strerror}") from None
    if len(content) > _LONGEST:
        raise LockError(f"{path}: longer than {_LONGEST:,} bytes")
    try:
        return parsed(content)
    except LockError as error:
        raise LockError(f"{path}: {error}") from None


def parsed(content: bytes) -> Lock:
    """Return the lock in the *content* of a file. Raises `LockError`."""
    document = syntax.read(content.strip(), _DEPTH)
    if isinstance(document, Violation):
        place, what = document.at or "the file", f"expected {document.expected}, found {document.found}"
        raise LockError(f"not a lock: {place}: {what} [{document.rule}]")
    top = _object(document, "")
    number = top.get("format")
    if type(number) is int and number > FORMAT:
        raise LockError(f"made by a newer Assay, in format {number}; this one reads format {FORMAT}")
    if number != FORMAT or type(number) is not int:
        raise LockError(f'not a lock: expected "format": {FORMAT}')
    servers = _object(top.get("servers"), "/servers")
    return {name: _server(value, f"/servers/{name}") for name, value in servers.items()}


def _server(value: Any, at: str) -> Locked:
    entry = _object(value, at)
    command, url = entry.get("command", []), entry.get("url", "")
    if not isinstance(command, list) or not all(isinstance(one, str) for one in command) or not isinstance(url, str):
        raise LockError(f"{at}: expected a command, which is an array of strings, or a url")
    if bool(command) == bool(url):
        raise LockError(f"{at}: expected either a command or a url")
    server = _object(entry.get("server", {}), f"{at}/server")
    for member in ("revision", "instructions"):
        if not isinstance(entry.get(member, ""), str):
            raise LockError(f"{at}/{member}: expected a string")
    instructions: tuple[str | None, ...] = (entry.get("instructions"),)
    if "variantInstructions" in entry:
        instructions += (entry["variantInstructions"],)
    if not isinstance(instructions[-1], str | None):
        raise LockError(f"{at}/variantInstructions: expected a string, or null")
    listed: dict[str, dict[str, Accepted]] = {kind.member: {} for kind in KINDS}
    only_for: dict[str, dict[str, str]] = {}
    for kind in KINDS:
        for key, each in _object(entry.get(kind.member, {}), f"{at}/{kind.member}").items():
            place = f"{at}/{kind.member}/{key}"
            held = _object(each, place)
            listed[kind.member][key] = tuple(_accepted(kind, key, held, place))
            if "offeredTo" in held:
                only_for.setdefault(kind.member, {})[key] = _clients(held["offeredTo"], f"{place}/offeredTo")
    return Locked(
        command=tuple(command),
        url=url,
        revision=entry.get("revision", ""),
        server={member: one for member, one in server.items() if isinstance(one, str)},
        instructions=instructions,
        listed=listed,
        only_for=only_for,
        unasked=_clients(entry["notAsked"], f"{at}/notAsked") if "notAsked" in entry else "",
    )


def _accepted(kind: EntryKind, key: str, held: dict[str, Any], at: str) -> Iterator[dict[str, Any]]:
    yield _definition(kind, key, held, at)
    if "variant" in held:
        yield _definition(kind, key, _object(held["variant"], f"{at}/variant"), f"{at}/variant")


def _definition(kind: EntryKind, key: str, held: dict[str, Any], at: str) -> dict[str, Any]:
    definition = _object(held.get("definition"), f"{at}/definition")
    if definition.get(kind.key) != key or held.get("fingerprint") != known_by(definition):
        remedy = "remove the server with assay lock --remove NAME, and lock it again"
        raise LockError(f"{at}: changed by hand: it does not fit its fingerprint; {remedy}")
    return definition


def _clients(value: Any, at: str) -> str:
    """Return the kind of clients that a member of the file names."""
    for each in CLIENTS:
        if value == f"clients {each}":
            return each
    raise LockError(f'{at}: expected "clients {BARE}" or "clients {CAPABLE}"')


def _object(value: Any, at: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise LockError(f"not a lock: {at or 'the file'}: expected an object")
    return value


def known_by(definition: dict[str, Any]) -> str:
    """Return the fingerprint of a definition: the same for all spellings of it."""
    return _PREFIX + fingerprint(canonical(definition))


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def written(lock: Lock) -> bytes:
    """Return *lock* as the content of a file."""
    document = {"format": FORMAT, "servers": {name: _entry(locked) for name, locked in lock.items()}}
    text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)
    return (_INVISIBLE.sub(_escape, text) + "\n").encode()


def _entry(locked: Locked) -> Mapping[str, Any]:
    # The file is for version control, which never forgets a secret.
    entry: dict[str, Any] = (
        {"command": list(masked_command(locked.command))} if locked.command else {"url": masked_url(locked.url)}
    )
    entry |= {"revision": locked.revision, "server": dict(locked.server)}
    if locked.instructions[0] is not None:
        entry["instructions"] = locked.instructions[0]
    for other in locked.instructions[1:]:
        entry["variantInstructions"] = other
    if locked.unasked:
        entry["notAsked"] = f"clients {locked.unasked}"
    for kind in KINDS:
        only_for = locked.clients_of(kind)
        entry[kind.member] = {key: _held(each, only_for.get(key)) for key, each in locked.of(kind).items()}
    return entry


def _held(accepted: Accepted, clients: str | None) -> Mapping[str, Any]:
    """Return one tool, resource template or prompt as it is in the file."""
    first, *others = ({"definition": one, "fingerprint": known_by(one)} for one in accepted)
    held: dict[str, Any] = dict(first)
    for other in others:
        held["variant"] = other
    if clients is not None:
        held["offeredTo"] = f"clients {clients}"
    return held


# Candidates for characters that cannot be seen. The layout itself has line breaks.
_INVISIBLE: Final = re.compile(r"[^\n\x20-\x7e]")


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable():
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def write(path: str | os.PathLike[str], lock: Lock) -> None:
    """Write *lock* to the file at *path*, atomically. Raises `LockError`."""
    # A link is followed, and stays a link. A link in a foreign checkout could name any file that does not exist yet.
    target = Path(os.path.realpath(path))
    if os.path.islink(path) and not target.exists():
        raise LockError(f"cannot write {path}: it is a link to {target}, which does not exist")
    try:
        replace_file(target, written(lock), target.stat() if target.exists() else None)
    except OSError as error:
        raise LockError(f"cannot write {path}: {error.strerror}") from None

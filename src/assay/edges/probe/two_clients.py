"""
List what a server offers to a client without capabilities, and to a client with all of them.

Each kind has a separate run or session: a server decides by the handshake what it offers.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final

from assay.edges.probe.capabilities import ALL_CAPABILITIES, NO_CAPABILITIES
from assay.edges.probe.server_probe import (
    CLIENT,
    InquiryError,
    InterruptedInquiryError,
    LineError,
    Log,
    ServerLine,
    UnreachableError,
    inquire,
)
from assay.lock.compare import changes
from assay.lock.locked import BARE, CAPABLE, CLIENTS, KINDS, Accepted, EntryKind, Locked
from assay.model.limits import Limits
from assay.spec.revisions import handshake


def united(bare: Locked, capable: Locked) -> Locked:
    """
    Return everything that a server offers to either kind of client.

    If the two get different definitions or instructions, both are kept, so that both are reviewed.
    """
    listed: dict[str, dict[str, Accepted]] = {}
    only_for: dict[str, dict[str, str]] = {}
    for kind in KINDS:
        mine, theirs = bare.of(kind), capable.of(kind)
        both = {name: _accepted(kind, mine[name], theirs[name]) for name in mine.keys() & theirs.keys()}
        listed[kind.member] = {**mine, **theirs, **both}
        only = dict.fromkeys(mine.keys() - theirs.keys(), BARE) | dict.fromkeys(theirs.keys() - mine.keys(), CAPABLE)
        if only:
            only_for[kind.member] = only
    other = tuple(each for each in capable.instructions if each not in bare.instructions)
    return replace(bare, listed=listed, only_for=only_for, instructions=bare.instructions + other)


def _accepted(kind: EntryKind, bare: Accepted, capable: Accepted) -> Accepted:
    return bare + capable if changes(kind, bare[0], capable[0]) else bare


_DECLARED: Final[Mapping[str, Mapping[str, Any]]] = {BARE: NO_CAPABILITIES, CAPABLE: ALL_CAPABILITIES}


def inquire_as_both(
    opened: Callable[[], AbstractContextManager[ServerLine]],
    log: Log,
    limits: Limits,
    timeout: float,
    *,
    client: Mapping[str, str] = CLIENT,
    command: tuple[str, ...] = (),
    url: str = "",
) -> Locked:
    """
    Return the union of what the server offers to a client without capabilities and to one with all of them.

    Each of the two has *timeout* seconds. If the server fails for one of them, that is logged, and the list of the
    other is returned. Raises `InquiryError` if it fails for both.
    """
    found: dict[str, Locked] = {}
    failed: dict[str, InquiryError] = {}
    for clients in CLIENTS:
        discovers = BARE not in found or not handshake(found[BARE].revision)
        try:
            found[clients] = inquire(
                opened,
                log,
                limits,
                timeout,
                client=client,
                capabilities=_DECLARED[clients],
                command=command,
                url=url,
                discovers=discovers,
            )
        except InterruptedInquiryError:
            raise
        except InquiryError as error:
            if isinstance(error, UnreachableError) and not found:
                raise
            failed[clients] = error
    if not failed:
        return _as_one(found[BARE], found[CAPABLE])
    if not found:
        raise _both_failed(failed[BARE], failed[CAPABLE])
    [(clients, reason)], [locked] = failed.items(), found.values()
    log(f"failed for a client {clients}: {reason}")
    for line in reason.last_words if isinstance(reason, LineError) else ():
        log(f"    {line}")
    return replace(locked, unasked=clients)


def _as_one(bare: Locked, capable: Locked) -> Locked:
    names = [each.server.get("name", "") for each in (bare, capable)]
    if names[0] != names[1]:
        raise InquiryError(f"the server calls itself {names[0]!r} or {names[1]!r}, depending on the client")
    return united(bare, capable)


def _both_failed(bare: InquiryError, capable: InquiryError) -> InquiryError:
    if str(bare) == str(capable):
        return bare
    reason = f"{bare}; for a client {CAPABLE}: {capable}"
    return type(bare)(reason, bare.last_words) if isinstance(bare, LineError) else InquiryError(reason)

"""
List what a server offers to a client without capabilities, and to a client with all of them.

Each kind has a separate run or session: a server decides by the handshake what it offers.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final, TypeVar

from assay.base.limits import Limits
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
from assay.lock.changes import KINDS, ChangeKind, changes
from assay.lock.locked import BARE, CAPABLE, WAYS, Definitions, Locked, Way
from assay.spec.revisions import handshake

_Found = TypeVar("_Found")


def united(bare: Locked, capable: Locked) -> Locked:
    """
    Return everything that a server offers to either kind of client.

    If the two get different definitions, both are kept, so that both are reviewed.
    """
    other = capable.instructions
    return replace(
        bare,
        listed={kind.member: {**capable.of(kind), **bare.of(kind)} for kind in KINDS},
        variants=_some({kind.member: _variants(kind, bare, capable) for kind in KINDS}),
        offered=_some({kind.member: _offered(kind, bare, capable) for kind in KINDS}),
        other_instructions=() if other == bare.instructions else (other,),
    )


def _variants(kind: ChangeKind, bare: Locked, capable: Locked) -> Definitions:
    both = bare.of(kind).keys() & capable.of(kind).keys()
    return {name: capable.of(kind)[name] for name in both if changes(kind, bare.of(kind)[name], capable.of(kind)[name])}


def _offered(kind: ChangeKind, bare: Locked, capable: Locked) -> dict[str, Way]:
    only_bare: dict[str, Way] = dict.fromkeys(bare.of(kind).keys() - capable.of(kind).keys(), BARE)
    only_capable: dict[str, Way] = dict.fromkeys(capable.of(kind).keys() - bare.of(kind).keys(), CAPABLE)
    return only_bare | only_capable


def _some(by_member: dict[str, _Found]) -> dict[str, _Found]:
    return {member: found for member, found in by_member.items() if found}


_DECLARED: Final[Mapping[Way, Mapping[str, Any]]] = {BARE: NO_CAPABILITIES, CAPABLE: ALL_CAPABILITIES}


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
    found: dict[Way, Locked] = {}
    failed: dict[Way, InquiryError] = {}
    for way in WAYS:
        discovers = BARE not in found or not handshake(found[BARE].revision)
        try:
            found[way] = inquire(
                opened,
                log,
                limits,
                timeout,
                client=client,
                capabilities=_DECLARED[way],
                command=command,
                url=url,
                discovers=discovers,
            )
        except InterruptedInquiryError:
            raise
        except InquiryError as error:
            if isinstance(error, UnreachableError) and not found:
                raise
            failed[way] = error
    if not failed:
        return _as_one(found[BARE], found[CAPABLE])
    if not found:
        raise _both_failed(failed[BARE], failed[CAPABLE])
    [(way, reason)], [locked] = failed.items(), found.values()
    log(f"failed for a client {way}: {reason}")
    for line in reason.last_words if isinstance(reason, LineError) else ():
        log(f"    {line}")
    return replace(locked, unasked=way)


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

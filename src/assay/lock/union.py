"""Unites what a server offers to clients without and with capabilities. No I/O."""

from dataclasses import replace
from typing import TypeVar

from assay.lock.changes import KINDS, ChangeKind, changes
from assay.lock.locked import BARE, CAPABLE, Definitions, Locked, Way

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

"""
Compares the tags of lists with the definitions that they stand for, since a server was locked. No I/O.

Tags are a draft: an opaque string that changes whenever the definitions do. They are never trusted in place of the
definitions, which are always compared.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from assay.engine.canonical import canonical, text
from assay.lock.changes import BY_METHOD, KINDS
from assay.lock.locked import BARE, CAPABLE, WAYS, Locked, Way
from assay.spec.draft_names import DISCOVER
from assay.spec.revisions import handshake

TagState = Literal["contradicts", "ambiguous", "retagged", "changed", "removed", "added", "agrees"]

TAG_STATES: Final[Mapping[TagState, str]] = {
    "contradicts": "the locked tag, but other definitions",
    "ambiguous": "one tag for clients that get different definitions",
    "retagged": "another tag, but the same definitions",
    "changed": "another tag",
    "removed": "no tag any more",
    "added": "a tag that is not in the lock",
    "agrees": "agree",
}
"""What is reported of a tag, the worst first."""

_ORDER: Final = tuple(TAG_STATES)

METHODS: Final = (DISCOVER, *(kind.method for kind in KINDS))
"""The methods whose tags are locked."""


def compared(old: Locked, new: Locked) -> dict[str, TagState]:
    """Return the state of each tag in *old* or *new*, by method; for two kinds of clients the worse one."""
    found: dict[str, TagState] = {}
    for method in METHODS:
        states = list(_states(old, new, method))
        if _is_ambiguous(new, method):
            states.append("ambiguous")
        if states:
            found[method] = min(states, key=_ORDER.index)
    return found


def summary_of(states: Mapping[str, TagState]) -> str:
    """Return *states* in one line, the worst first."""
    by_state = ((TAG_STATES[state], [method for method in states if states[method] == state]) for state in _ORDER)
    return "; ".join(f"{words}: {', '.join(methods)}" for words, methods in by_state if methods) or "none offered"


def offered(locked: Locked) -> str | None:
    """Return the tags that a server offers, in one line; None if its revision cannot have any."""
    if handshake(locked.revision):
        return None
    tagged = [method for method in METHODS if locked.tags_of(method)]
    doubtful = [method for method in tagged if _is_ambiguous(locked, method)]
    more = f"; {TAG_STATES['ambiguous']}: {', '.join(doubtful)}" if doubtful else ""
    return (", ".join(tagged) or "none offered") + more


def _states(old: Locked, new: Locked, method: str) -> Iterator[TagState]:
    if old.revision != new.revision:
        # Definitions of two revisions differ in more than what a server has changed.
        return
    # The offer to a kind of client for which the server failed is unknown.
    for way in WAYS:
        if way not in {old.unasked, new.unasked}:
            was, now = old.tag(method, way), new.tag(method, way)
            if was is not None or now is not None:
                yield _state(was, now, _is_same(old, new, method, way))


def _state(was: str | None, now: str | None, same: bool | None) -> TagState:
    if was is None or now is None:
        return "added" if was is None else "removed"
    if was == now:
        return "contradicts" if same is False else "agrees"
    return "retagged" if same else "changed"


def _is_same(old: Locked, new: Locked, method: str, way: Way) -> bool | None:
    """Whether the definitions are the same; None if that is unknown, as a lock has only parts of `server/discover`."""
    if method == DISCOVER:
        return None if _instructions(old, way) == _instructions(new, way) else False
    return _definitions(old, method, way) == _definitions(new, method, way)


def _instructions(locked: Locked, way: Way) -> str | None:
    return locked.other_instructions[0] if way == CAPABLE and locked.other_instructions else locked.instructions


def _definitions(locked: Locked, method: str, way: Way) -> dict[str, bytes]:
    """Return what one kind of client gets, as bytes that are equal if the definitions mean the same."""
    kind = BY_METHOD[method]
    only = locked.only_for(kind)
    # Where the two kinds of clients get different definitions, the second is that for clients with capabilities.
    forms = {name: locked.forms(kind, name) for name in locked.of(kind) if only.get(name, way) == way}
    return {name: text(canonical(each[-1 if way == CAPABLE else 0])) for name, each in forms.items()}


def _is_ambiguous(locked: Locked, method: str) -> bool:
    """Whether clients that get different definitions get the same tag."""
    tag = locked.tag(method, BARE)
    if tag is None or locked.unasked is not None or tag != locked.tag(method, CAPABLE):
        return False
    if method == DISCOVER:
        return _instructions(locked, BARE) != _instructions(locked, CAPABLE)
    return _definitions(locked, method, BARE) != _definitions(locked, method, CAPABLE)

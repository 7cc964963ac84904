"""Ids and progress tokens that are used again, and values of messages as they are remembered. No I/O, no clock."""

from typing import Any, Final

from assay.base.verdict import Violation
from assay.core.party_state import Id, Side
from assay.core.render import shown_id
from assay.rules import violation
from assay.spec.revisions import handshake

_NOTHING: Final[dict[str, Any]] = {}


def object_of(value: Any) -> dict[str, Any]:
    """Return *value* if it is an object, otherwise an empty one: its fault is reported elsewhere."""
    return value if isinstance(value, dict) else _NOTHING


def ident_of(value: Any) -> Id | None:
    """Return an id or a token as the state keeps it: 1.0 is 1, "1" is another."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | int) else None


_MOST_SHARED: Final = 1000
"""The most shared progress tokens that are remembered per party. Each one is a mistake, so real clients have none."""


def check_id(side: Side, ident: Id, method: str, revision: str) -> list[Violation]:
    """
    Return the violation of a request whose id *side* has used before in this session.

    2026-07-28 has no sessions, and forbids only ids that are still open. `initialize` is the first request of a
    session.
    """
    before = side.settled.get(ident)
    if before is None or before.reusable or method == "initialize" or not handshake(revision):
        return []
    found = f"{shown_id(ident)}, already used for {before.method}"
    return [violation("protocol/id-reused", "/id", expected="a new id", found=found, revision=revision)]


def begin_session(side: Side) -> None:
    """Note that `initialize` was forwarded: the ids that *side* used before do not count."""
    for each in side.settled.values():
        each.reusable = True


def check_token(side: Side, token: Id, revision: str) -> list[Violation]:
    """Return the violation of a request whose progress token belongs to another open request of *side*."""
    other = next((each for each in side.open.values() if each.token == token), None)
    if other is None:
        return []
    # From now on a progress notification could be about either request.
    side.shared[token] = None
    if len(side.shared) > _MOST_SHARED:
        del side.shared[next(iter(side.shared))]
    found = f"{shown_id(token)}, the token of the open request {shown_id(other.id)} ({other.method})"
    return [
        violation(
            "protocol/progress-token",
            "/params/_meta/progressToken",
            expected="an unused token",
            found=found,
            revision=revision,
        )
    ]

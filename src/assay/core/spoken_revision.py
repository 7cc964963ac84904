"""The revision that a conversation is in, as its verdicts show it. No I/O, no state."""

from typing import Final

from assay.base.verdict import Verdict
from assay.spec.revisions import REVISIONS, handshake

_OPENING: Final = frozenset({"initialize", "server/discover"})
"""Requests that only propose a revision."""


def spoken(verdict: Verdict) -> str | None:
    """
    Return the revision that a message shows to be in use; None if it shows none.

    The result of `initialize` names it. A client may send `server/discover` first and then choose a handshake, so that
    neither the probe nor its answer shows anything.
    """
    if verdict.method not in _OPENING:
        return verdict.revision
    if verdict.method == "server/discover" or verdict.kind != "result":
        return None
    result = verdict.value.get("result")
    named = result.get("protocolVersion") if isinstance(result, dict) else None
    return named if named in REVISIONS else None


def preferred(known: str | None, now: str | None) -> str | None:
    """Return the revision to name for several messages: the first, but one with a handshake rather than one without."""
    if now is None or known is None:
        return known or now
    return now if handshake(now) and not handshake(known) else known

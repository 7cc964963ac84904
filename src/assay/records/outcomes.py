"""
What became of a message, as one of five words. Every table, report, filter, export and page has its word from here.

The status in a journal record is what the message deserves; the word is what a reader sees. No I/O.
"""

from typing import Final, Literal, NamedTuple

from assay.base.verdict import Verdict
from assay.records.record import Record, status_of

Word = Literal["ok", "reported", "repaired", "blocked", "failed"]

WORDS: Final[tuple[Word, ...]] = ("ok", "reported", "repaired", "blocked", "failed")
"""All words, in the order of summaries."""


class MessageOutcome(NamedTuple):
    """What became of one message."""

    word: Word
    """The word to count and to filter by."""
    is_forwarded: bool = False
    """Whether a rule blocks the message, and audit mode forwarded it."""

    @property
    def shown(self) -> str:
        """The word for people: a message that audit mode forwarded was not blocked."""
        return WOULD_BLOCK if self.is_forwarded else self.word


WOULD_BLOCK: Final = "would block"

SHOWN: Final = (*WORDS[:3], "blocked", WOULD_BLOCK, "failed")
"""Every `MessageOutcome.shown`, in the order of summaries."""


def outcome_of(verdict: Verdict) -> MessageOutcome:
    """Return what becomes of the message of *verdict*."""
    return _outcome(
        status_of(verdict),
        is_repaired=bool(verdict.repairs),
        is_forwarded=verdict.onward is verdict.frame,
        is_fallback=not verdict.violations and _is_fallback(verdict.kind, verdict.method),
    )


def recorded_outcome(record: Record) -> MessageOutcome:
    """Return what became of the message of *record*."""
    return _outcome(
        record.status,
        is_repaired=bool(record.metadata.repairs),
        is_forwarded=record.metadata.passed,
        is_fallback=not record.findings and _is_fallback(record.metadata.kind, record.method),
    )


def _outcome(status: str, *, is_repaired: bool, is_forwarded: bool, is_fallback: bool) -> MessageOutcome:
    if status == "refused":
        return MessageOutcome("blocked", is_forwarded)
    if is_repaired:
        return MessageOutcome("repaired")
    if status == "failed":
        return MessageOutcome("ok" if is_fallback else "failed")
    # A list with quarantined tools is reported: the list itself was forwarded. A later version may have more statuses.
    return MessageOutcome("ok" if status == "ok" else "reported")


def _is_fallback(kind: object, method: object) -> bool:
    """
    Whether a server responds to `server/discover` with an error, as servers before 2026-07-28 do.

    Clients of several revisions send it first and continue with `initialize`, so this is not a failure. The code
    differs: -32601, -32600 or -32602, and -32000 for a server that wants `initialize` first.
    """
    return kind == "error" and method == "server/discover"

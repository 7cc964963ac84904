"""
A message for people: its title, and what became of it as one of five words. Every table, report, filter, export and
page has both from here.

The status in a journal record is what the message deserves; the word is what a reader sees. No I/O.
"""

from collections.abc import Container
from typing import Any, Final, Literal, NamedTuple

import orjson

from assay.judge.render import shown_id
from assay.model.printable import plain
from assay.model.verdict import UNNAMED, Verdict
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


# ── the title ────────────────────────────────────────────────────────────────────────────────────────────────────────

_LONGEST_METHOD: Final = 100
_LONGEST_NAME: Final = 40
"""Maximal characters: a peer chooses them, and a megabyte would take seconds to scan and hide everything after it."""

_NAMELESS: Final = {"blank": "(blank line)", "batch": "a batch"}

_NAMED: Final = {"prompts/get": "name", "resources/read": "uri"}
"""The parameter with the name of a prompt or resource, by method."""


def title(verdict: Verdict) -> str:
    """Return a short title of a message, safe for a terminal."""
    kind, exchange = verdict.kind, verdict.exchange
    rules = [each.rule for each in verdict.violations]
    if kind == "missing" and exchange is not None:
        return _title(kind, rules, exchange.method[:_LONGEST_METHOD], exchange.tool, shown_id(exchange.id))
    value = verdict.value if isinstance(verdict.value, dict) else {}
    # A null is shown, except in an error: its sender could not read the request, or never sends an id.
    has_id = "id" in value and (kind != "error" or value["id"] is not None)
    name = verdict.tool or (_asked_for(verdict.method, value) if kind == "request" else "")
    method = (verdict.method or "")[:_LONGEST_METHOD]
    return _title(kind, rules, method, name, shown_id(value["id"]) if has_id else None)


def recorded_title(record: Record) -> str:
    """Return the title of a recorded message. It has the name of a prompt or resource if its frame is recorded."""
    metadata, name = record.metadata, record.metadata.tool
    if not name and metadata.kind == "request" and record.method in _NAMED and metadata.frame is not None:
        try:
            name = _asked_for(record.method, orjson.loads(metadata.frame))
        except orjson.JSONDecodeError:
            name = None
    ident = None if metadata.id is None else str(metadata.id)
    times = f" × {metadata.repeated:,}" if metadata.repeated else ""
    return _title(metadata.kind, [each.rule for each in record.findings], record.method, name, ident, times)


def _title(
    kind: str, rules: Container[str], method: str | None, name: str | None, ident: str | None, times: str = ""
) -> str:
    if kind == "unreadable":
        # Bytes that are not UTF-8, a line that is too long, or JSON that is not JSON-RPC may look like a message.
        return f"{'(not JSON)' if 'syntax/json' in rules else '(not a message)'}{times}"
    if kind in _NAMELESS:
        return f"{_NAMELESS[kind]}{times}"
    named = " ".join(each for each in (method, (name or "")[:_LONGEST_NAME]) if each and each != UNNAMED)
    number = f" #{ident}" if ident is not None else " without an id" if kind == "error" else ""
    if kind == "missing":
        return plain(f"never answered: {named or 'a request'}{number}")
    if kind in {"result", "error"}:
        return plain(f"{kind} of {named}{number}" if named else f"{kind}{number}")
    return plain(f"{named or kind}{number}")


def _asked_for(method: str | None, value: Any) -> str:
    """Return the prompt or the resource in a request."""
    params = value.get("params") if isinstance(value, dict) and method in _NAMED else None
    name = params.get(_NAMED[str(method)]) if isinstance(params, dict) else None
    return name if isinstance(name, str) else ""

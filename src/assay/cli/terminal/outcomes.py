"""
The outcome of a recorded message, as tables show it. No I/O.

A record has a status, which is for programs and does not depend on the mode. People want to know more: whether a
refused message was forwarded anyway, and whether entries of a list were quarantined.
"""

from typing import Final, NamedTuple

from assay.records.journal.reading import Record, is_audited, quarantined


class RecordOutcome(NamedTuple):
    """The names of one outcome."""

    word: str
    """For a column of `WIDEST` characters."""
    short: str
    """For a narrow column, of eight."""
    counted: str
    """The word after a count of such messages."""
    colour: str


OK: Final = RecordOutcome("ok", "ok", "ok", "green")
REPORTED: Final = RecordOutcome("reported", "reported", "reported", "yellow")
QUARANTINED: Final = RecordOutcome("quarantined", "reported", "quarantined", "yellow")
WOULD_QUARANTINE: Final = RecordOutcome("reported", "reported", "would be quarantined", "yellow")
REFUSED: Final = RecordOutcome("refused", "refused", "refused", "red")
WOULD_REFUSE: Final = RecordOutcome("would refuse", "passed", "would be refused", "yellow")
FAILED: Final = RecordOutcome("failed", "failed", "failed", "red")
NOT_SUPPORTED: Final = RecordOutcome("not supported", "failed", "not supported", "dim")

OUTCOMES: Final = (OK, REPORTED, QUARANTINED, WOULD_QUARANTINE, REFUSED, WOULD_REFUSE, FAILED, NOT_SUPPORTED)
"""All outcomes, in the order of the summary."""

WIDEST: Final = max(len(each.word) for each in OUTCOMES)

_BY_STATUS: Final = {"ok": OK, "reported": REPORTED, "refused": REFUSED, "failed": FAILED}

_METHOD_NOT_FOUND: Final = -32601


def outcome(record: Record) -> RecordOutcome:
    """Return the outcome of the message of *record*."""
    status = record["status"]
    if status == "refused" and record["metadata"].get("passed") is True:
        return WOULD_REFUSE
    if status == "reported" and quarantined(record):
        return WOULD_QUARANTINE if is_audited(record) else QUARANTINED
    if status == "failed" and _answers_probe(record):
        return NOT_SUPPORTED
    # An unknown status may come from another version.
    return _BY_STATUS.get(status) or RecordOutcome(status, status, status, "bold")


def _answers_probe(record: Record) -> bool:
    """
    Whether a server responds to `server/discover` with the usual error of servers before 2026-07-28.

    Clients of several revisions send it first and continue with `initialize`, so this is not a fault.
    """
    asked = record["method"] == "server/discover" and record["metadata"].get("kind") == "error"
    return asked and (record["error"] or {}).get("jsonrpcCode") == _METHOD_NOT_FOUND

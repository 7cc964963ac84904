"""A journal for tests, and recording a verdict as a guarded session does."""

from pathlib import Path
from typing import Any

import orjson

from assay.edges.recorder import Recorder
from assay.model.verdict import Verdict
from assay.records.journal import Journal
from assay.records.record import Record, read_record

FINDING = {"rule": "contract/input", "at": "", "expected": "x", "found": "y", "source": "ours", "hint": "z"}
"""A finding as a journal has it."""


def record_with(**members: Any) -> Record:
    """Return a record with these members; those that a record does not have are of its metadata."""
    record: dict[str, Any] = {
        "ts": "2026-11-15T22:39:04.000000Z",
        "requestId": "r1",
        "transport": "stdio",
        "route": "stdio",
        "method": "tools/call",
        "status": "ok",
        "durationMs": 1.5,
        "inputBytes": 10,
        "outputBytes": 10,
        "error": None,
    }
    metadata: dict[str, Any] = {"schemaVersion": "1", "deterministic": False, "revision": None, "tool": None}
    metadata |= {"party": "client", "kind": "request", "id": 1}
    for name, value in members.items():
        (record if name in record else metadata)[name] = value
    if record["error"] is not None:
        record["error"] = {
            "code": None,
            "jsonrpcCode": None,
            "httpStatus": None,
            "message": None,
            "violations": [],
            **record["error"],
        }
    found = read_record(orjson.dumps({**record, "metadata": metadata}))
    assert found is not None
    return found


def open_journal(directory: Path | str, **options: Any) -> Journal:
    """Open a journal that can be opened."""
    journal = Journal.open(directory, **options)
    assert journal is not None
    return journal


def write_verdict(journal: Journal, verdict: Verdict, transport: str = "stdio", route: str = "", **more: Any) -> None:
    """Write the record of one *verdict*, with a moment of its own."""
    moment = journal.moment(transport, route or transport, verdict.method, verdict.frame, **more)
    journal.write(journal.line(verdict, moment, 0))


def record_verdict(recorder: Recorder, verdict: Verdict, now: float, sent: int, session: str = "") -> None:
    """Hand *verdict* to every sink of *recorder*; *sent* bytes went out for it."""
    for sink in recorder.sinks:
        if verdict.findings is None and sent == len(verdict.frame):
            sink.passed(verdict, now, session)
        else:
            sink.found(verdict, now, session, sent)
    if not recorder._holding:
        recorder.flush()

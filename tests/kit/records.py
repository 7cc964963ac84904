"""A journal for tests, and recording a verdict as a guarded session does."""

from pathlib import Path
from typing import Any

from assay.base.verdict import Verdict
from assay.edges.recorder import Recorder
from assay.records.journal.writer import Journal


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

"""Recording a verdict as a guarded session does."""

from assay.base.verdict import Verdict
from assay.edges.recorder import Recorder


def record_verdict(recorder: Recorder, verdict: Verdict, now: float, sent: int, session: str = "") -> None:
    """Hand *verdict* to every sink of *recorder*; *sent* bytes went out for it."""
    for sink in recorder.sinks:
        if verdict.findings is None and sent == len(verdict.frame):
            sink.passed(verdict, now, session)
        else:
            sink.found(verdict, now, session, sent)
    if not recorder._holding:
        recorder.flush()

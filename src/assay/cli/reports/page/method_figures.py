"""How often a method was used, how long its answers took, and how large its messages were. No I/O."""

from typing import Any

from assay.base.verdict import Verdict
from assay.records.log_histogram import LogHistogram


class MethodFigures:
    """The figures of one method, or of one tool."""

    __slots__ = (
        "answers",
        "errors",
        "failed",
        "findings",
        "latency",
        "notifications",
        "requests",
        "sent",
        "unanswered",
    )

    def __init__(self) -> None:
        self.requests = self.notifications = self.errors = self.failed = self.unanswered = self.findings = 0
        self.latency = LogHistogram()
        """Microseconds from the request to its answer, where both have a time."""
        self.sent = LogHistogram()
        """Bytes of requests and notifications."""
        self.answers = LogHistogram()
        """Bytes of results and errors."""

    def add(self, verdict: Verdict, findings: int, microseconds: int | None) -> None:
        """Count one message; *microseconds* since its request, if it is an answer and both times are known."""
        kind = verdict.kind
        self.findings += findings
        if kind == "missing":
            self.unanswered += bool(verdict.violations)
            return
        if kind in {"result", "error"}:
            self.answers.add(len(verdict.frame))
            # A server before 2026-07-28 does not know the first request of newer clients, which is not its failure.
            self.errors += kind == "error" and verdict.method != "server/discover"
            self.failed += kind == "result" and _has_failed(verdict.value)
            if microseconds is not None:
                self.latency.add(microseconds)
            return
        self.sent.add(len(verdict.frame))
        self.requests += kind == "request"
        self.notifications += kind == "notification"

    def merge(self, other: "MethodFigures") -> None:
        """Add the messages of *other*."""
        for name in ("requests", "notifications", "errors", "failed", "unanswered", "findings"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("latency", "sent", "answers"):
            getattr(self, name).merge(getattr(other, name))

    def as_json(self) -> dict[str, Any]:
        """Return the figures for a page."""
        counts = ("requests", "notifications", "errors", "failed", "unanswered", "findings")
        spread = ("latency", "sent", "answers")
        return {name: getattr(self, name) for name in counts} | {name: getattr(self, name).as_json() for name in spread}


def _has_failed(value: Any) -> bool:
    """Whether a result of a call says that the tool failed."""
    result = value.get("result") if isinstance(value, dict) else None
    return isinstance(result, dict) and result.get("isError") is True

"""The formats of `assay check`: those that are written while files are judged, and those made of the finished run."""

from collections.abc import Callable
from importlib import import_module
from typing import Final

from assay.cli.checking.evidence import DigestFactory
from assay.cli.reports.result import ReportOptions, RunResult
from assay.cli.reports.streams import ComparisonReport, NdjsonReport, StreamReport, TextReport, Write
from assay.cli.terminal.style import Style

_STREAMS: Final = {"text": TextReport, "ndjson": NdjsonReport, "comparison": ComparisonReport}

_DOCUMENTS: Final = {
    **dict.fromkeys(("json", "sarif", "junit", "gitlab"), "documents"),
    **dict.fromkeys(("github", "markdown"), "markdown"),
    "html": "page",
}
"""The module of each format with a function of the finished run. They are imported where they are asked for."""

FORMATS: Final = ("text", "json", "ndjson", "sarif", "junit", "github", "gitlab", "markdown", "html")
"""The names of all formats that can be asked for."""


def stream_of(name: str, options: ReportOptions, write: Write, style: Style) -> StreamReport | None:
    """Return the report that is written message by message in the format *name*; None for another format."""
    return _STREAMS[name](options, write, style) if name in _STREAMS else None


def document_of(name: str) -> Callable[[RunResult], str]:
    """Return the function that makes the document in the format *name*. It may raise `ReportFileError`."""
    module = import_module(f"assay.cli.reports.{_DOCUMENTS[name]}")
    made: Callable[[RunResult], str] = getattr(module, f"{name}_text")
    return made


def digests_of(name: str) -> tuple[DigestFactory, ...]:
    """Return what the format *name* keeps of all messages, with or without findings."""
    if name != "html":
        return ()
    from assay.console.report import ReportDigest  # noqa: PLC0415 - 60 ms and an extra, for this format only

    return (ReportDigest,)

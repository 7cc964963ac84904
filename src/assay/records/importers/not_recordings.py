"""Files that people have, and that have no messages: each is refused with its own reason. No I/O."""

import re
from typing import Final, NamedTuple

from assay.records.importers.importer import Detect, first_object, lines_of

RECORD: Final = "assay guard --record FILE -- COMMAND records them"
"""What to do to get messages."""

_CURSOR: Final = re.compile(
    rb"\d{4}-\d\d-\d\d [\d:.]+ \[\w+\] .*\b(?:Handling \w+ action|[lL]istOfferings|CreateClient)\b"
)

_VSCODE: Final = re.compile(
    rb"\d{4}-\d\d-\d\d [\d:.]+ \[\w+\] (?:Starting server |Connection state: |Discovered \d+ tools|\[server stderr\])"
)


class NotRecording(NamedTuple):
    """A kind of file without messages."""

    detect: Detect
    reason: str


def _is_claude_code(head: bytes, name: str) -> bool:
    first = first_object(head)
    return "mcp-logs-" in name or ({"sessionId", "cwd"} <= first.keys() and bool({"debug", "error"} & first.keys()))


def _is_spans(head: bytes, _: str) -> bool:
    first = first_object(head)
    is_span = {"traceId", "spanId"} <= first.keys() or {"trace_id", "span_id"} <= first.keys()
    return is_span or b'"resourceSpans"' in head


def _is_cursor(head: bytes, _: str) -> bool:
    return any(_CURSOR.match(line) for line in lines_of(head))


def _is_vscode(head: bytes, _: str) -> bool:
    return any(_VSCODE.match(line) for line in lines_of(head))


def _is_utf16(head: bytes, _: str) -> bool:
    return head.startswith((b"\xff\xfe", b"\xfe\xff"))


NOT_RECORDINGS: Final = (
    NotRecording(_is_utf16, "UTF-16; save it as UTF-8, in PowerShell with Out-File -Encoding utf8"),
    NotRecording(_is_claude_code, f"a log of Claude Code, which has no messages; {RECORD}"),
    NotRecording(_is_spans, f"OpenTelemetry spans, which have no messages; {RECORD}"),
    NotRecording(
        _is_vscode,
        "output of VS Code without messages; set its level to Debug or Trace in the menu of the output, and start "
        "the server again",
    ),
    NotRecording(_is_cursor, f"output of Cursor, which has no messages; {RECORD}"),
)

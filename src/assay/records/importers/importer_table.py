"""
The table of all formats, and which of them a file has. No I/O.

The choices of ``--from``, the documentation and the tests come from the table.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from assay.records import rows
from assay.records.importers import client_logs, har, inspector, journal, message_lines
from assay.records.importers.importer import RECORD, REWRITTEN, Head, Importer, ImportOptions
from assay.records.rows import TranscriptError, TranscriptRow

_NO_STRAYS: Final = "output that is not JSON"
_NO_HEADERS: Final = "HTTP headers"

_MEMBERS: Final = frozenset({"msg", "base64", "dir", "party"})
_EVENTS: Final = ("recording", "open")
"""No set: a file may have a list as its event, and a set cannot look for one."""


def _is_ours(head: Head) -> bool:
    """Return whether the file is a journal, or its first JSON object is a row of a recording."""
    first = head.first
    is_row = ("type" not in first and not _MEMBERS.isdisjoint(first)) or first.get("event") in _EVENTS
    return is_row or journal.is_journal(head.data)


def _read_ours(lines: Iterable[bytes], _: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the rows of a recording or of a journal."""
    rest = iter(lines)
    head = []
    for line in rest:
        head.append(line)
        if line.strip():
            break
    read_rows = journal.read if head and journal.is_journal(head[-1]) else rows.read
    return read_rows(chain(head, rest))


IMPORTERS: Final = (
    Importer(
        "assay",
        "Assay",
        "`assay guard --record FILE`, a [journal](#journals) with payloads, a flight",
        (),
        _is_ours,
        _read_ours,
    ),
    Importer(
        "messages",
        "plain messages, one per line",
        "`tee` around a server, logs of SDKs; `--party` for one side",
        ("the sender, if the message does not show it", _NO_HEADERS),
        message_lines.is_plain,
        message_lines.read_plain,
    ),
    Importer(
        "inspector",
        "MCP Inspector 2, Protocol",
        "the tab Protocol, *Export*",
        (REWRITTEN, _NO_STRAYS, _NO_HEADERS, "all but the last 1,000 messages"),
        inspector.is_protocol,
        inspector.read_protocol,
        is_document=True,
    ),
    Importer(
        "inspector-network",
        "MCP Inspector 2, Network",
        "the tab Network, *Export*",
        (REWRITTEN, "masked values, such as tokens and passwords", "messages on GET streams"),
        inspector.is_network,
        inspector.read_network,
        is_document=True,
    ),
    Importer(
        "claude-desktop",
        "Claude Desktop",
        "`mcp-server-NAME.log` and `mcp.log` in `~/Library/Logs/Claude`, `%APPDATA%\\Claude\\logs` or "
        "`~/.config/Claude/logs`",
        (REWRITTEN, "messages that the log cuts or summarizes", "the full text of output that is not JSON"),
        client_logs.is_claude,
        client_logs.read_claude,
    ),
    Importer(
        "vscode",
        "VS Code",
        "*MCP: List Servers*, *Show Output*, at the log level Debug or Trace",
        (REWRITTEN, _NO_HEADERS),
        client_logs.is_vscode,
        client_logs.read_vscode,
    ),
    Importer(
        "har",
        "HAR 1.2",
        "the network tab of a browser, mitmproxy, Proxyman, Charles: export as HAR",
        ("the times of messages in a stream", "bodies that the exporter leaves out, often those of streams"),
        har.detect,
        har.read,
        is_document=True,
    ),
    Importer(
        "map",
        "JSON lines with a message in a member",
        "any other program; `--map` names the members",
        (_NO_HEADERS,),
        lambda _: False,
        message_lines.read_mapped,
    ),
)
"""Every format. The first one that recognises a file reads it; the last one is read only with ``--map``."""

BY_NAME: Final = {each.name: each for each in IMPORTERS}

NATIVE: Final = BY_NAME["assay"]
MAPPED: Final = BY_NAME["map"]

_LOOKED_AT: Final = 1 << 20
"""Bytes at the start of a file in which its format must show: a log may begin with other lines."""

_MOST_PIECES: Final = 1 << 16
"""Lines at the start of a file in which its format must show: each is looked at by every format, several times."""


def recognised(head: bytes, name: str) -> Importer | None:
    """Return the format of a file that begins with *head*; None if it is not known, or not yet."""
    start = Head(head, name)
    return next((each for each in IMPORTERS if each.detect(start)), None)


def looked_at(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the growing start of a file after 1, 2, 4, 8 … of its *pieces*, so that a format is found early."""
    head: list[bytes] = []
    size, due = 0, 1
    for count, piece in enumerate(islice(pieces, _MOST_PIECES), 1):
        head.append(piece)
        size += len(piece)
        if size > _LOOKED_AT:
            break
        if count == due:
            yield b"".join(head)
            due *= 2
    yield b"".join(head)


# ── files that have no messages ──────────────────────────────────────────────────────────────────────────────────────

_LOG_LINE: Final = rb"\d{4}-\d\d-\d\d [\d:.]+ \[\w+\] "
_VSCODE: Final = re.compile(
    _LOG_LINE + rb"(?:Starting server |Connection state: |Discovered \d+ tools|\[server stderr\])"
)
_CURSOR: Final = re.compile(_LOG_LINE + rb".*\b(?:Handling \w+ action|[lL]istOfferings|CreateClient)\b")


def _why_not(head: Head) -> str | None:
    """Return the reason for which a file is refused that people have, and that has no messages."""
    names = head.first.keys()
    if head.data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16; save it as UTF-8, in PowerShell with Out-File -Encoding utf8"
    if "mcp-logs-" in head.name or ({"sessionId", "cwd"} <= names and not names.isdisjoint({"debug", "error"})):
        return f"a log of Claude Code, which has no messages; {RECORD}"
    if {"traceId", "spanId"} <= names or {"trace_id", "span_id"} <= names or b'"resourceSpans"' in head.text:
        return f"OpenTelemetry spans, which have no messages; {RECORD}"
    if any(map(_VSCODE.match, head.lines)):
        return (
            "output of VS Code without messages; set its level to Debug or Trace in the menu of the output, and "
            "start the server again"
        )
    if any(map(_CURSOR.match, head.lines)):
        return f"output of Cursor, which has no messages; {RECORD}"
    return None


def unknown(head: bytes, name: str) -> TranscriptError:
    """Return the error for a file that begins with *head* and has no known format: why, and what to do."""
    start = Head(head, name)
    reason = _why_not(start)
    if reason is not None:
        return TranscriptError(reason)
    if not start.first:
        return TranscriptError(f"not a recording: no line is a JSON object, or a line of a known log; {RECORD}")
    names = ", ".join(each[:40] for each in list(start.first)[:8])
    return TranscriptError(
        f"not a known recording: a line has the members {names}; name those with the direction and the "
        "message (--map dir=NAME,msg=NAME), or the format (--from)"
    )

"""Messages with findings as a page shows them: of limited length. No I/O."""

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from assay.cli.reports.page.shortened import shortened
from assay.cli.terminal.excerpts import POSITIONS, unreadable_fault
from assay.engine.pointers import steps
from assay.records.digest import level_of
from assay.records.judged_records import JudgedRecord
from assay.records.outcomes import recorded_outcome, recorded_title
from assay.records.record import Finding, Record, cut

_SPECIFICATION: Final = "https://modelcontextprotocol.io/specification"
_PAGE: Final = re.compile(r"MCP (\d{4}-\d\d-\d\d|\([^)]*\)), ([a-z][a-z/-]*)")


def _page(found: re.Match[str], revision: str | None) -> str | None:
    name = found[1] if found[1][0] != "(" else revision
    return None if name is None else f"{_SPECIFICATION}/{name}/{found[2]}"


_DOCUMENTS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str | None], str | None]], ...]] = (
    (_PAGE, _page),
    (re.compile(r"RFC (\d+)"), lambda found, _: f"https://www.rfc-editor.org/rfc/rfc{found[1]}"),
    (re.compile(r"JSON-RPC 2\.0"), lambda _, __: "https://www.jsonrpc.org/specification"),
    (
        re.compile(r"JSON Schema (\d{4}-\d\d), (core|validation)"),
        lambda found, _: f"https://json-schema.org/draft/{found[1]}/json-schema-{found[2]}",
    ),
)


def source_link(source: str, revision: str | None) -> str | None:
    """Return the address of the first document that *source* names; None if it is not a known one."""
    for pattern, address in _DOCUMENTS:
        found = pattern.search(source)
        if found is not None:
            return address(found, revision)
    return None


MOST_FINDINGS: Final = 10
"""Maximal findings of one message that a page has; a verdict has up to 20."""

_LONGEST_NAME: Final = 200
"""Characters of a name that a peer chose. The longest names in use have 64."""

_LONGEST_TEXT: Final = 300
"""Characters of each text about a finding."""

_LARGEST_UNREADABLE: Final = 64 << 10
"""Bytes of a message that is not JSON in which the fault is looked for."""

_LARGEST_POINTER: Final = 1000
"""Characters of a place to look for: longer ones are cut."""


def name_of(name: str) -> str:
    """Return a name that a peer chose, shortened."""
    return cut(name, _LONGEST_NAME)


def title_of(record: Record) -> str:
    """Return a message in a few words."""
    return recorded_title(record)


def value_of(record: Record) -> Any:
    """Return the message, with secrets masked; None if it is not recorded, or not JSON."""
    try:
        return orjson.loads(record.metadata.frame or b"")
    except orjson.JSONDecodeError:
        return None


def shown_finding(record: Record, finding: Finding) -> dict[str, Any]:
    """Return one finding for a page."""
    shown: dict[str, Any] = {
        "rule": finding.rule,
        "level": level_of(finding),
        "action": finding.done,
        "at": finding.at,
        "expected": cut(finding.expected, _LONGEST_TEXT),
        "found": cut(finding.found, _LONGEST_TEXT),
        "source": cut(finding.source, _LONGEST_TEXT),
        "sourceUrl": source_link(finding.source, record.metadata.revision),
        "hint": cut(finding.hint, _LONGEST_TEXT),
        "schemaAt": finding.schema_at,
        "reason": finding.reason,
        "entry": None if finding.entry is None else str(finding.entry),
    }
    return {name: each for name, each in shown.items() if each is not None}


def shown_message(message: JudgedRecord, time: float | None, most: int) -> dict[str, Any]:
    """Return a message with its findings for a page; its text has about *most* characters."""
    record = message.record
    metadata = record.metadata
    findings = [shown_finding(record, each) for each in message.findings[:MOST_FINDINGS]]
    shown = {
        "file": message.file,
        "line": message.line,
        "conversation": message.conversation,
        "server": metadata.server,
        "time": time,
        "party": metadata.party,
        "kind": metadata.kind,
        "title": title_of(record),
        "method": record.method or "",
        "tool": metadata.tool or "",
        "size": record.input_bytes,
        "outcome": recorded_outcome(record).word,
        "lacks": metadata.lacks,
        "more": record.more + len(message.findings) - len(findings),
        "findings": findings,
    }
    return shown | message_text(record, most, findings)


def message_text(record: Record, most: int, findings: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the text of a message, and whether it was cut; *findings* get the position of a fault."""
    frame = record.frame
    if record.metadata.kind in {"missing", "blank"} or not frame:
        return {"text": "", "cut": False}
    value = value_of(record)
    if value is None or record.metadata.kind == "unreadable":
        return _unreadable(record, frame, most, findings)
    if len(frame) <= 2 * most:
        return {"text": frame.decode(errors="replace"), "cut": False}
    ways = [_steps(each["at"]) for each in findings]
    return {"text": cut(shortened(value, ways, most), 2 * most), "cut": True}


def _steps(pointer: str) -> tuple[str, ...]:
    if pointer[:1] != "/" or len(pointer) > _LARGEST_POINTER:
        return ()
    try:
        return tuple(steps(pointer))
    except (ValueError, IndexError):
        return ()


def _unreadable(record: Record, frame: bytes, most: int, findings: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the text of a message that is not JSON: the part around the fault, if it is long."""
    is_cut = len(frame) > _LARGEST_UNREADABLE
    text = frame[:_LARGEST_UNREADABLE].decode(errors="replace")
    spots = [_position(text, each) for each in record.findings[: len(findings)]]
    first = next((each[0] for each in spots if each is not None), 0)
    start = max(0, min(first - most // 2, len(text) - most))
    shown = text[start : start + most]
    for finding, spot in zip(findings, spots, strict=True):
        if spot is not None and spot[0] - start < len(shown):
            finding["span"] = [_units(shown[: max(0, each - start)]) for each in spot]
    return {"text": shown, "cut": is_cut or len(shown) < len(text)}


def _position(text: str, finding: Finding) -> tuple[int, int] | None:
    """Return where the fault is in text that is not JSON; None if the finding has a place, or it is unknown."""
    if finding.rule not in POSITIONS:
        return None
    fault = unreadable_fault(text, finding)
    # Without a position the whole text is wrong, such as a line of a log.
    return (0, len(text)) if fault is None else (fault.start, max(fault.end, fault.start + 1))


def _units(text: str) -> int:
    """Return the length of *text* as a browser counts it: in units of UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2

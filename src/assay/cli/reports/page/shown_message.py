"""Messages with findings as a page shows them: without secrets, of limited length. No I/O."""

import re
from collections.abc import Callable
from typing import Any, Final

from assay.base.verdict import Verdict, Violation
from assay.cli.reports.check_findings import CheckedMessage, CheckFinding, cut
from assay.cli.reports.page.shortened import shortened
from assay.cli.terminal.excerpts import POSITIONS, unreadable_fault
from assay.core.redaction import Redactor
from assay.engine.pointers import steps

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

_LONGEST_TEXT: Final = 300
"""Characters of each text about a finding."""

_LARGEST_UNREADABLE: Final = 64 << 10
"""Bytes of a message that is not JSON in which secrets and the fault are looked for."""

_MARGIN: Final = 4096
"""Characters at the end of such a message that are not shown, if it is longer: more than a secret has."""

_LARGEST_POINTER: Final = 1000
"""Characters of a place to look for: longer ones are cut."""


def shown_finding(finding: CheckFinding) -> dict[str, Any]:
    """Return one finding for a page."""
    violation = finding.violation
    shown: dict[str, Any] = {
        "rule": violation.rule,
        "level": finding.level,
        "action": violation.action,
        "at": violation.at,
        "expected": cut(violation.expected, _LONGEST_TEXT),
        "found": cut(violation.found, _LONGEST_TEXT),
        "source": cut(violation.source, _LONGEST_TEXT),
        "sourceUrl": source_link(violation.source, finding.revision),
        "hint": cut(violation.hint, _LONGEST_TEXT),
        "schemaAt": violation.schema_at,
        "reason": violation.reason,
        "entry": None if violation.entry is None else str(violation.entry),
    }
    return {name: each for name, each in shown.items() if each is not None}


def shown_message(
    message: CheckedMessage, title: str, time: float | None, redactor: Redactor, most: int
) -> dict[str, Any]:
    """Return a message with its findings for a page; its text has about *most* characters."""
    judged, verdict = message.judged, message.judged.verdict
    findings = [shown_finding(each) for each in message.findings[:MOST_FINDINGS]]
    shown = {
        "file": message.file,
        "line": judged.line,
        "conversation": judged.conversation,
        "server": message.server,
        "time": time,
        "party": str(verdict.party),
        "kind": verdict.kind,
        "title": title,
        "method": message.method or "",
        "tool": message.tool or "",
        "size": len(verdict.frame),
        "outcome": message.outcome,
        "lacks": judged.lacks,
        "more": verdict.more + len(message.findings) - len(findings),
        "findings": findings,
    }
    return shown | message_text(verdict, redactor, most, findings)


def message_text(verdict: Verdict, redactor: Redactor, most: int, findings: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the text of a message without secrets, and whether it was cut; *findings* get the position of a fault."""
    frame = verdict.frame
    if verdict.kind in {"missing", "blank"} or not frame:
        return {"text": "", "cut": False}
    if verdict.value is None:
        return _unreadable(verdict, redactor, most, findings)
    if len(frame) <= most:
        text = redactor.frame(frame.decode(errors="replace"), verdict.value)
        if len(text) <= 2 * most:
            return {"text": text, "cut": False}
    ways = [_steps(each["at"]) for each in findings]
    return {"text": cut(shortened(verdict.value, ways, redactor, most), 2 * most), "cut": True}


def _steps(pointer: str) -> tuple[str, ...]:
    if pointer[:1] != "/" or len(pointer) > _LARGEST_POINTER:
        return ()
    try:
        return tuple(steps(pointer))
    except (ValueError, IndexError):
        return ()


def _unreadable(verdict: Verdict, redactor: Redactor, most: int, findings: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the text of a message that is not JSON: the part around the fault, if it is long."""
    frame = verdict.frame[:_LARGEST_UNREADABLE]
    is_cut = len(frame) < len(verdict.frame)
    text = redactor.unreadable(frame.decode(errors="replace"))
    if is_cut:
        # A secret at the end may be cut in half, and then is not recognized.
        text = text[:-_MARGIN]
    spots = [_position(text, frame, each, redactor) for each in verdict.violations[: len(findings)]]
    first = next((each[0] for each in spots if each is not None), 0)
    start = max(0, min(first - most // 2, len(text) - most))
    shown = text[start : start + most]
    for finding, spot in zip(findings, spots, strict=True):
        if spot is not None and spot[0] - start < len(shown):
            finding["span"] = [_units(shown[: max(0, each - start)]) for each in spot]
    return {"text": shown, "cut": is_cut or len(shown) < len(text)}


def _position(text: str, frame: bytes, violation: Violation, redactor: Redactor) -> tuple[int, int] | None:
    """Return where the fault is in text that is not JSON; None if the violation has a place, or it is unknown."""
    if violation.rule not in POSITIONS:
        return None
    fault = unreadable_fault(frame, violation, redactor)
    # Without a position the whole text is wrong, such as a line of a log.
    return (0, len(text)) if fault is None else (fault.start, max(fault.end, fault.start + 1))


def _units(text: str) -> int:
    """Return the length of *text* as a browser counts it: in units of UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2

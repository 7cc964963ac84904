"""Show a judged server card or AI catalog: for people, with place, rule and fix of each finding, or as JSON."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from assay.base.printable import plain
from assay.base.verdict import Violation
from assay.cli.terminal.style import Style
from assay.cli.terminal.verdicts import rule_lines, without_repeats
from assay.core.extensions.card_rules import DocumentFindings, is_card_entry
from assay.core.quarantined_names import counted
from assay.core.render import as_json

_OF_RESPONSES: Final = frozenset({"card/media-type", "card/https", "card/cors", "card/caching"})
"""Rules about the HTTP response, not about a place in the document."""

_UNUSABLE: Final = frozenset({"card/schema", "card/catalog"})
"""Rules about the shape: a client that validates ignores a document or an entry that breaks one."""

_LONGEST: Final = 100
"""Characters of a name or a version that are shown."""


class Compared(NamedTuple):
    """The server that a card was compared with."""

    url: str
    """Its endpoint, without secrets."""
    method: str
    """The request whose result the card was compared with."""
    revision: str


class JudgedDocument(NamedTuple):
    """A document, and everything that was found."""

    source: str
    """The file or the URL, without secrets."""
    catalog: bool
    value: Any
    """Its JSON value; None if it is not JSON."""
    findings: DocumentFindings
    compared: Compared | None = None
    """None if the server itself was not asked, or gave no answer."""
    remarks: tuple[str, ...] = ()
    """What was not judged, and why."""
    partial: bool = False
    """Whether something was not judged that should have been."""

    @property
    def kind(self) -> str:
        """``card`` or ``catalog``."""
        return "catalog" if self.catalog else "card"


def lines(judged: JudgedDocument, style: Style) -> Iterator[str]:
    """Yield the lines about a document."""
    violations, more = judged.findings
    yield style.paint(plain(judged.source), "bold")
    yield f"{style.paint(*_mark(violations))} {_title(judged)}"
    shown = [(_place_lines(each, judged.kind, style), rule_lines(each, style)) for each in violations]
    yield from without_repeats(shown)
    if more:
        yield f"         and at least {more} more"
    if judged.compared is not None:
        url, method, revision = judged.compared
        yield from style.wrapped(plain(f"compared with {url}: {method}, MCP {revision}"), 2)
    yield style.paint(counted(len(violations) + more, "finding") if violations else "no findings", "bold")


def _mark(violations: tuple[Violation, ...]) -> tuple[str, str]:
    """Return the mark and its colour: a document that its readers cannot use, one with findings, or a good one."""
    if any(each.rule in _UNUSABLE or each.rule.startswith("syntax/") for each in violations):
        return "✗", "red"
    return ("!", "yellow") if violations else ("✓", "green")


def _title(judged: JudgedDocument) -> str:
    value = judged.value if isinstance(judged.value, dict) else {}
    if judged.catalog:
        entries = value.get("entries")
        cards = sum(map(is_card_entry, entries)) if isinstance(entries, list) else 0
        return f"catalog with {counted(cards, 'server card')}"
    known = (value.get(name) for name in ("name", "version"))
    words = [plain(each[:_LONGEST]) for each in known if isinstance(each, str) and each]
    return " ".join(["card", *words])


def _place_lines(violation: Violation, kind: str, style: Style) -> list[str]:
    place = "the HTTP response" if violation.rule in _OF_RESPONSES else violation.at or f"the {kind}"
    text = plain(f"{place}: expected {violation.expected}, found {violation.found}")
    return [style.paint(line, "bold") for line in style.wrapped(text, 9)]


def as_object(judged: JudgedDocument) -> dict[str, Any]:
    """Return the same as a JSON object."""
    return {
        "source": judged.source,
        "kind": judged.kind,
        "compared": None if judged.compared is None else judged.compared._asdict(),
        "remarks": list(judged.remarks),
        "violations": [as_json(each) for each in judged.findings.violations],
        "more": judged.findings.more,
    }

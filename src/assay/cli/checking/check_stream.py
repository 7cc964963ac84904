"""What comes out of reading a file, or a part of one: findings in order, and at the end counts and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from assay.base.verdict import Exchange, Findings, verdict
from assay.cli.reports.check_findings import CheckedMessage
from assay.core.lifecycle import preferred
from assay.records.recording.reasons import Reasons
from assay.records.transcript import Meeting

if TYPE_CHECKING:
    from assay.cli.checking.check_terms import MessageDigest
    from assay.records.recording.range_judging import RangeCounts

AS_RECORDED = "with the guard's own verdict"
"""How a message is counted whose payload is incomplete: the verdict of the guard is used."""

Order = tuple[int, int]
"""The place of something in its file: the line, and a second number to sort by."""


class ChangedVerdict(NamedTuple):
    """A verdict of a journal that is another one today."""

    order: Order
    text: str
    """The lines that show it, without control characters."""


@dataclass(slots=True)
class UnitEnd:
    """What is known at the end of a file, or of a part of it."""

    good: int = 0
    """Messages without findings that were not listed."""
    failed: int = 0
    """How many of them report the server's own error."""
    is_judged: bool = False
    """Whether a message was judged."""
    remarks: tuple[str, ...] = ()
    """Remarks about the file as a whole."""
    notes: list[tuple[int, str]] = field(default_factory=list)
    """Remarks about places in it, each with its line."""
    unjudged: Reasons = field(default_factory=Reasons)
    recorded: Reasons = field(default_factory=Reasons)
    revisions: list[tuple[int, str]] = field(default_factory=list)
    """Revisions that may be that of the file, each with its line."""
    is_partial: bool = False
    """Whether messages are missing or were not judged."""
    remedy: str = ""
    """The hint for a file with nothing to judge."""
    error: str | None = None
    """Why the file could not be read to its end."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """The number of records by the outcome of the comparison."""
    digests: list[MessageDigest] = field(default_factory=list)
    counts: RangeCounts | None = None
    """The counts of a range of a recording."""

    def move(self, lines: int) -> None:
        """Count *lines* more before everything that has a line."""
        self.notes = [(line + lines, note) for line, note in self.notes]
        self.revisions = [(line + lines, revision) for line, revision in self.revisions]
        self.unjudged.move(lines)
        self.recorded.move(lines)

    def merge(self, other: UnitEnd) -> None:
        """Add the end of another part of the same file."""
        self.good += other.good
        self.failed += other.failed
        self.is_judged = self.is_judged or other.is_judged
        self.remarks += other.remarks
        self.notes = sorted([*self.notes, *other.notes])
        self.unjudged.merge(other.unjudged)
        self.recorded.merge(other.recorded)
        self.revisions = sorted([*self.revisions, *other.revisions])
        self.is_partial = self.is_partial or other.is_partial
        self.remedy = self.remedy or other.remedy
        self.outcomes += other.outcomes
        for mine, theirs in zip(self.digests, other.digests, strict=False):
            mine.merge(theirs)
        self.digests = self.digests or other.digests

    @property
    def revision(self) -> str | None:
        """The revision of the file, if it is known."""
        found: str | None = None
        for _, each in self.revisions:
            found = preferred(found, each)
        return found

    def all_remarks(self) -> Iterator[str]:
        """Yield the remarks in the order in which they are shown."""
        yield from self.remarks
        yield from (text for _, text in self.notes)
        yield from _counted(self.unjudged, "not judged")
        yield from _counted(self.recorded, AS_RECORDED)


def _counted(messages: Reasons, what: str) -> Iterator[str]:
    for why, count in messages:
        yield f"{count:,} message{'' if count == 1 else 's'} {what}: {why}"


StreamItem = CheckedMessage | Meeting | ChangedVerdict | UnitEnd
"""What reading yields: findings and other items in order, then one `UnitEnd`."""


def order_of(item: CheckedMessage | Meeting | ChangedVerdict) -> Order:
    """Return the place of *item* in its file."""
    if isinstance(item, CheckedMessage):
        return item.judged.order or (item.judged.line, 0)
    return item.order


def moved(item: StreamItem, lines: int) -> StreamItem:
    """Return *item* with *lines* more before it."""
    if isinstance(item, UnitEnd):
        item.move(lines)
        return item
    if isinstance(item, CheckedMessage):
        judged = item.judged
        findings = tuple(replace(each, line=each.line + lines) for each in item.findings)
        return item._replace(judged=judged._replace(line=judged.line + lines), findings=findings)
    line, second = item.order
    return item._replace(order=(line + lines, second))


class RecalledExchange(NamedTuple):
    """What reports show of a request, without the contract that judged it."""

    method: str
    tool: str | None
    id: str | int


def portable(message: CheckedMessage) -> CheckedMessage:
    """Return *message* without what cannot be pickled, and what no report shows."""
    judged = message.judged
    heard, found, asked = judged.verdict, judged.verdict.findings, judged.verdict.exchange
    known = None if asked is None else RecalledExchange(asked.method, asked.tool, asked.id)
    shown = None if found is None else Findings(found.violations, found.more, quarantined=found.quarantined)
    exchange = cast("Exchange | None", cast("Any", known))
    again = verdict(heard.party, heard.frame, heard.kind, heard.value, exchange, heard.revision, shown)
    return message._replace(judged=judged._replace(verdict=again))

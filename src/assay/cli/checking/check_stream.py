"""What comes out of reading a file: findings in order, and at the end counts and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from assay.base.verdict import Exchange, Findings, verdict
from assay.cli.reports.check_findings import CheckedMessage
from assay.records.transcript import Meeting

if TYPE_CHECKING:
    from assay.cli.checking.check_terms import MessageDigest

AS_RECORDED = "with the guard's own verdict"
"""How a message is counted whose payload is incomplete: the verdict of the guard is used."""


class ChangedVerdict(NamedTuple):
    """A verdict of a journal that is another one today."""

    text: str
    """The lines that show it, without control characters."""


@dataclass(slots=True)
class UnitEnd:
    """What is known at the end of a file."""

    good: int = 0
    """Messages without findings that were not listed."""
    failed: int = 0
    """How many of them report the server's own error."""
    is_judged: bool = False
    """Whether a message was judged."""
    remarks: tuple[str, ...] = ()
    """Remarks about the file as a whole."""
    notes: list[str] = field(default_factory=list)
    """Remarks about places in it."""
    unjudged: Counter[str] = field(default_factory=Counter)
    """The number of messages that were not judged, by reason, in the order of the first message of each."""
    recorded: Counter[str] = field(default_factory=Counter)
    """The number of messages with the verdict of the guard, likewise."""
    revision: str | None = None
    """The revision of the file, if it is known."""
    is_partial: bool = False
    """Whether messages are missing or were not judged."""
    remedy: str = ""
    """The hint for a file with nothing to judge."""
    error: str | None = None
    """Why the file could not be read to its end."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """The number of records by the outcome of the comparison."""
    digests: list[MessageDigest] = field(default_factory=list)

    def all_remarks(self) -> Iterator[str]:
        """Yield the remarks in the order in which they are shown."""
        yield from self.remarks
        yield from self.notes
        yield from _counted(self.unjudged, "not judged")
        yield from _counted(self.recorded, AS_RECORDED)


def _counted(messages: Counter[str], what: str) -> Iterator[str]:
    for why, count in messages.items():
        yield f"{count:,} message{'' if count == 1 else 's'} {what}: {why}"


StreamItem = CheckedMessage | Meeting | ChangedVerdict | UnitEnd
"""What reading yields: findings and other items in order, then one `UnitEnd`."""


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

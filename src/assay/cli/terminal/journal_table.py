"""
Show journal records on a terminal: one line each, and the findings below it. Text of peers is made safe.

On a terminal a record fits the window, and a line with the date comes before the first record of a day. In a file every
line is complete and has its date, so that it can be searched and sorted.
"""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from textwrap import wrap
from typing import Final

from assay.cli.terminal.style import Style
from assay.cli.terminal.table import Column, Table
from assay.cli.terminal.verdicts import COLOURS
from assay.judge.render import MOST_SHOWN, changes
from assay.model.printable import counted, listed, plain
from assay.records.outcomes import SHOWN, recorded_outcome, recorded_title
from assay.records.record import Finding, Metadata, Record
from assay.rules.sentences import sentence

_EXPENDABLE: Final = ((37, ("in", "out")), (15, ("ms",)), (7, ("server",)))
"""Columns to leave out on a terminal where the message has less room than this."""

_MESSAGE: Final = 40
"""Width of the message column if nothing is cut; a longer message shifts the columns after it."""

_ROOM_FOR_SERVER: Final = 96
_ROOM_FOR_FRACTIONS: Final = 110
"""Widths of a terminal from which the server has a wider column, and times have fractions of a second beside it."""

_WRONG_LINES: Final = 3
"""Maximal lines on a terminal for one finding."""

_MOST_LINES: Final = 30
"""Maximal lines of one frame to show without --wide."""

_INDENT: Final = "    "


class JournalTable:
    """A table that fits the terminal; without a terminal, or with --wide, nothing is cut."""

    def __init__(
        self,
        style: Style,
        *,
        servers: bool = False,
        payloads: bool = False,
        wide: bool = False,
        utc: bool = False,
        unfolded: int = 0,
    ) -> None:
        """
        *servers* is for a column with the server, *payloads* for frames below records, *wide* for no limit of lines.

        With at most *unfolded* records a terminal shows all of their findings; with more, only the first of each.
        """
        self._style = style
        self._payloads, self._wide, self._unfolded = payloads, wide, unfolded
        self._limit = limit = None if wide else style.limit
        self._zone = UTC if utc else None
        self._day = ""
        self._shown = 0
        server = 16 if limit is None or limit >= _ROOM_FOR_SERVER else 12
        clock = 8 if limit is None or limit - servers * (server + 2) < _ROOM_FOR_FRACTIONS else 12
        self._clock = (24 if utc else 29) if limit is None else clock
        self._table = Table(
            style,
            [
                Column("time", self._clock),
                *([Column("server", server)] if servers else []),
                Column("who", 6),
                Column("message", _MESSAGE if limit is None else limit),
                Column("verdict", max(map(len, SHOWN))),
                Column("ms", 8, is_number=True),
                Column("in", 7, is_number=True),
                Column("out", 7, is_number=True),
            ],
            wide=wide,
        )
        self._table.fit("message", _EXPENDABLE)

    def head(self) -> str:
        """Return the header line."""
        return self._table.head()

    def lines(self, record: Record) -> Iterator[str]:
        """Return the lines for one record."""
        try:
            moment = datetime.fromisoformat(record.ts).astimezone(self._zone)
        except (ValueError, OverflowError, OSError):
            moment = None
        if self._limit is not None and moment is not None and (day := moment.date().isoformat()) != self._day:
            self._day = day
            yield self._style.paint(f"{day} ({zone(moment)})", "bold")
        verdict = recorded_outcome(record).shown
        yield from self._table.lines(
            {
                "time": record.ts if moment is None else self._time(moment),
                "server": record.metadata.server or "-",
                "who": record.metadata.party,
                "message": recorded_title(record),
                "verdict": (verdict, COLOURS[verdict]),
                "ms": f"{record.duration_ms:.2f}",
                "in": str(record.input_bytes),
                "out": str(record.output_bytes),
            }
        )
        self._shown += 1
        yield from (self._style.paint(line, "dim") for line in self._wrong(record))
        for line in self._payload(record.metadata) if self._payloads else ():
            text = f"{_INDENT}  {line}"
            yield (text if self._limit is None else self._style.cut(text, self._limit)).rstrip()

    def _time(self, moment: datetime) -> str:
        """Return the time on a terminal, which shows the date before; else date, time and zone."""
        shown = moment.isoformat(sep=" ", timespec="milliseconds")
        if self._limit is not None:
            return shown[11 : 11 + self._clock]
        return f"{shown.removesuffix('+00:00')}Z" if moment.tzinfo is UTC else shown

    def _wrong(self, record: Record) -> Iterator[str]:
        """
        Return the quarantined entries, the findings and the repairs.

        A terminal may show only the first finding, and limits the lines of each. Elsewhere every finding is one line.
        """
        names = list(map(str, record.quarantined))
        if names:
            word = "would be quarantined" if record.is_audited else "quarantined"
            yield from self._indented(f"{word}: {', '.join(names) if self._limit is None else listed(names)}")
        is_whole = self._limit is None or self._shown <= self._unfolded
        for each in every_wrong(record) if is_whole else filter(None, [first_wrong(record)]):
            yield from self._indented(each)
        repairs = record.metadata.repairs
        if repairs:
            yield from self._indented(f"repaired: {changes(repairs, len(repairs) if is_whole else MOST_SHOWN)}")

    def _indented(self, text: str) -> list[str]:
        limit = self._limit
        if limit is None:
            return [plain(_INDENT + text)]
        # Cut before wrapping: a finding can have a megabyte.
        lines = wrap(plain(text[: 10 * limit]), limit, initial_indent=_INDENT, subsequent_indent=_INDENT)
        if len(lines) > _WRONG_LINES:
            lines = [*lines[: _WRONG_LINES - 1], self._style.cut(f"{lines[_WRONG_LINES - 1]} …", limit)]
        return lines

    def _payload(self, metadata: Metadata) -> Iterator[str]:
        """Yield the lines of a frame; without --wide, only the first ones."""
        if metadata.omitted:
            yield "(frame left out: more than 4 MiB or 50,000 values)"
            return
        if metadata.redacted:
            yield "(secrets are hidden)"
        lines = _frame_lines(metadata)
        shown = lines if self._wide else lines[:_MOST_LINES]
        yield from map(plain, shown)
        if len(shown) < len(lines):
            yield f"({len(lines) - len(shown):,} more lines; --wide shows them)"


def zone(moment: datetime) -> str:
    """Return the zone: ``UTC``, or ``local time, UTC+01:00``."""
    shown = moment.strftime("%z")
    return "UTC" if moment.tzinfo is UTC else f"local time, UTC{shown[:3]}:{shown[3:5]}"


def _frame_lines(metadata: Metadata) -> list[str]:
    if metadata.frame is None:
        return [] if metadata.frame_base64 is None else [f"base64 {metadata.frame_base64}"]
    try:
        return json.dumps(json.loads(metadata.frame), indent=2, ensure_ascii=False).split("\n")
    except (ValueError, RecursionError):
        # A frame that is not JSON, or nested too deeply.
        return metadata.frame.splitlines()


def first_wrong(record: Record) -> str:
    """Return the first violation, or the error; empty without an error."""
    error = record.error
    if error is None:
        return ""
    if not error.violations:
        named = " ".join(str(each) for each in (error.code, error.jsonrpc_code) if each is not None)
        said = ": ".join(each for each in (named, error.message or "") if each)
        return said or "the tool returned isError"
    more = len(error.violations) - 1 + error.more
    return _worded(error.violations[0]) + (f" (and {more} more)" if more else "")


def every_wrong(record: Record) -> Iterator[str]:
    """Yield every violation in the record."""
    if not record.findings:
        yield from filter(None, [first_wrong(record)])
    yield from map(_worded, record.findings)
    if record.more:
        yield f"and {record.more} more, which the journal does not list"


def _worded(finding: Finding) -> str:
    # The entry before the place, which may be too long for the terminal.
    about = "" if finding.entry is None else f" ({finding.entry})"
    return f"{finding.rule}{about}: {sentence(finding)}{f', at {finding.at}' if finding.at else ''}"


class Totals:
    """Counts by verdict and by rule, and whether everything was forwarded."""

    def __init__(self) -> None:
        self._verdicts: Counter[str] = Counter()
        self._rules: Counter[str] = Counter()
        self._records = self._audited = self._blocked = 0

    def add(self, record: Record, *, is_shown: bool) -> None:
        """Count a record, which a filter may have left out."""
        verdict = recorded_outcome(record).shown
        self._records += 1
        if is_shown:
            self._verdicts[verdict] += 1
            self._rules.update(each.rule for each in record.findings)
        if record.is_audited:
            self._audited += 1
            self._blocked += verdict == "blocked"

    def lines(self, style: Style, broken: int) -> Iterator[str]:
        """Return the lines with the counts; *broken* is the number of lines that are not records."""
        shown, total = self._verdicts.total(), self._records
        counts = ", ".join(f"{self._verdicts[each]} {each}" for each in SHOWN if self._verdicts[each])
        text = f"{'' if shown == total else f'{shown} of '}{counted(total, 'record')}{': ' if counts else ''}{counts}"
        if broken:
            text += "; 1 line is not a record" if broken == 1 else f"; {broken:,} lines are not records"
        yield from (style.paint(line, "bold") for line in style.wrapped(text, 0))
        for rule, count in sorted(self._rules.items(), key=lambda item: (-item[1], item[0])):
            yield f"  {count:>5} × {plain(rule)}"
        if not self._audited:
            return
        # Messages that cannot be forwarded at all, such as one that is too long.
        but = f", except {counted(self._blocked, 'blocked message')}" if self._blocked else ""
        note = f"audit: everything was forwarded{but}"
        if self._audited < total:
            note = f"{self._audited:,} of {total:,} records are from audit mode: everything in them was forwarded{but}"
        yield from style.wrapped(f"({note})", 0, 1)

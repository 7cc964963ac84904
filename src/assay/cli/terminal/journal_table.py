"""
Show journal records on a terminal: one line each, and the findings below it. Text of peers is made safe.

On a terminal a record fits the window, and a line with the date comes before the first record of a day. In a file every
line is complete and has its date, so that it can be searched and sorted.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from textwrap import wrap
from typing import Final, NamedTuple

from assay.base.printable import counted, plain
from assay.cli.terminal.record_text import Clock, payload_lines, whole, zone
from assay.cli.terminal.style import Style
from assay.cli.terminal.verdicts import COLOURS
from assay.core.quarantined_names import listed
from assay.core.render import MOST_SHOWN, changes
from assay.records.outcomes import SHOWN, recorded_outcome, recorded_title
from assay.records.record import Finding, Record

_WITH_BYTES: Final = 96
_WITH_TIMES: Final = 56
_WITH_FRACTIONS: Final = 110
"""Terminal widths from which bytes, durations and fractions of a second are shown."""

_VERDICT: Final = max(map(len, SHOWN))
"""Width of the column for the verdict."""

_SERVER: Final = 16
_SHORT_SERVER: Final = 12
"""Width of the server column on wide and on narrow terminals."""

_NARROWEST: Final = 38
"""The server column is left out if fewer columns than this would remain."""

_MESSAGE: Final = 40
"""Width of the message column if nothing is cut; a longer message shifts the columns after it."""

_WRONG_LINES: Final = 3
"""Maximal lines on a terminal for one finding."""

_INDENT: Final = "    "


class View(NamedTuple):
    """Options of the table."""

    servers: bool = False
    """Whether there is a column for the server."""
    payloads: bool = False
    """Whether the frame is shown below its record."""
    wide: bool = False
    """Whether nothing is cut or wrapped."""
    utc: bool = False
    """Whether times are in UTC instead of the local time zone."""
    unfolded: int = 0
    """With at most this many records, a terminal shows all of their findings; with more, only the first of each."""


class JournalTable:
    """A table that fits the terminal; without a terminal, or with --wide, nothing is cut."""

    def __init__(self, style: Style, view: View = View()) -> None:  # noqa: B008 - it never changes
        self._style = style
        self._view = view
        self._limit = None if view.wide else style.limit
        self._clock = Clock(utc=view.utc)
        self._day = ""
        self._shown = 0
        self._measure(self._limit)

    def head(self) -> str:
        """Return the header line."""
        cells = self._cells("time", "server", "who", "message", "verdict", "ms", "in", "out")
        return self._style.paint("  ".join(cells).rstrip(), "dim")

    def lines(self, record: Record) -> Iterator[str]:
        """Return the lines for one record."""
        moment = self._clock.read(record.ts)
        if self._limit is not None and moment is not None:
            yield from self._date_line(moment)
        yield self._row(record, moment)
        self._shown += 1
        yield from (self._style.paint(line, "dim") for line in self._wrong(record))
        if self._view.payloads:
            yield from self._payload(record)

    def _row(self, record: Record, moment: datetime | None) -> str:
        verdict = recorded_outcome(record).shown
        cells = self._cells(
            self._time(moment) or record.ts,
            record.metadata.server or "-",
            record.metadata.party,
            recorded_title(record),
            verdict,
            f"{record.duration_ms:.2f}",
            str(record.input_bytes),
            str(record.output_bytes),
        )
        number = 4 if self._server_width else 3
        cells[number] = self._style.paint(cells[number], COLOURS[verdict])
        return "  ".join(cells).rstrip()

    def _time(self, moment: datetime | None) -> str:
        if moment is None:
            return ""
        if self._limit is None:
            return whole(moment)
        return moment.replace(tzinfo=None).isoformat(timespec="milliseconds")[11 : 11 + self._clock_width]

    def _date_line(self, moment: datetime) -> Iterator[str]:
        day = moment.date().isoformat()
        if day != self._day:
            self._day = day
            yield self._style.paint(f"{day} ({zone(moment)})", "bold")

    def _wrong(self, record: Record) -> Iterator[str]:
        """
        Return the quarantined entries, the findings and the repairs.

        A terminal may show only the first finding, and limits the lines of each. Elsewhere every finding is one line.
        """
        names = list(map(str, record.quarantined))
        if names:
            word = "would be quarantined" if record.is_audited else "quarantined"
            yield from self._indented(f"{word}: {', '.join(names) if self._limit is None else listed(names)}")
        is_whole = self._limit is None or self._shown <= self._view.unfolded
        for each in every_wrong(record) if is_whole else filter(None, [first_wrong(record)]):
            yield from self._indented(each)
        repairs = record.metadata.repairs
        if repairs:
            yield from self._indented(f"repaired: {changes(repairs, len(repairs) if is_whole else MOST_SHOWN)}")

    def _indented(self, text: str) -> list[str]:
        return [plain(_INDENT + text)] if self._limit is None else self._wrapped(text)

    def _wrapped(self, text: str) -> list[str]:
        limit = self._limit or len(text)
        # Cut before wrapping: a finding can have a megabyte.
        lines = wrap(plain(text[: 10 * limit]), limit, initial_indent=_INDENT, subsequent_indent=_INDENT)
        if len(lines) > _WRONG_LINES:
            lines = [*lines[: _WRONG_LINES - 1], self._style.cut(f"{lines[_WRONG_LINES - 1]} …", limit)]
        return lines

    def _payload(self, record: Record) -> Iterator[str]:
        for line in payload_lines(record.metadata, whole=self._view.wide):
            yield self._fit(f"{_INDENT}  {line}", self._limit or 0).rstrip()

    def _cells(
        self, time: str, server: str, who: str, what: str, verdict: str, duration: str, taken: str, sent: str
    ) -> list[str]:
        cells = [self._fit(time, self._clock_width)]
        if self._server_width:
            cells.append(self._fit(server, self._server_width))
        cells += [self._fit(who, 6), self._fit(what, self._message_width), self._fit(verdict, _VERDICT)]
        if self._room >= _WITH_TIMES:
            cells.append(duration.rjust(8))
        if self._room >= _WITH_BYTES:
            cells += [taken.rjust(7), sent.rjust(7)]
        return cells

    def _measure(self, limit: int | None) -> None:
        """Compute the widths of the columns from the terminal; without one, use typical widths."""
        server = 0 if not self._view.servers else _SERVER if limit is None or limit >= _WITH_BYTES else _SHORT_SERVER
        if limit is None:
            self._room, self._clock_width = _WITH_FRACTIONS, 24 if self._view.utc else 29
            self._server_width, self._message_width = server, _MESSAGE
            return
        room = limit - (server + 2 if server else 0)
        self._server_width = server if room >= _NARROWEST else 0
        self._room = room if self._server_width else limit
        self._clock_width = 12 if self._room >= _WITH_FRACTIONS else 8
        rest = self._clock_width + 2 + 6 + 2 + 2 + _VERDICT
        rest += 10 if self._room >= _WITH_TIMES else 0
        rest += 18 if self._room >= _WITH_BYTES else 0
        self._message_width = self._room - rest

    def _fit(self, text: str, width: int) -> str:
        """Return *text* cut or padded to *width* columns; if nothing is cut, only padded."""
        text = plain(text)
        return text.ljust(width) if self._limit is None else self._style.cut(text, width).ljust(width)


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
    found = f"expected {finding.expected}, found {finding.found}"
    return f"{finding.rule}{about} at {finding.at or 'the message'}: {found}"


class Totals:
    """Counts by verdict and by rule, and whether everything was forwarded."""

    def __init__(self) -> None:
        self._verdicts: Counter[str] = Counter()
        self._rules: Counter[str] = Counter()
        self._passed_over = self._audited = self._blocked = 0

    def add(self, record: Record) -> None:
        """Count a shown record."""
        self._verdicts[recorded_outcome(record).shown] += 1
        self._rules.update(each.rule for each in record.findings)
        self._audit(record)

    def pass_over(self, record: Record) -> None:
        """Count a record that a filter left out."""
        self._passed_over += 1
        self._audit(record)

    def _audit(self, record: Record) -> None:
        if record.is_audited:
            self._audited += 1
            self._blocked += recorded_outcome(record).shown == "blocked"

    def lines(self, style: Style, broken: int) -> Iterator[str]:
        """Return the lines with the counts; *broken* is the number of lines that are not records."""
        shown = self._verdicts.total()
        total = shown + self._passed_over
        counts = [f"{self._verdicts[each]} {each}" for each in SHOWN if self._verdicts[each]]
        records = f"{shown} of {counted(total, 'record')}" if self._passed_over else counted(total, "record")
        others = ""
        if broken:
            others = "; 1 line is not a record" if broken == 1 else f"; {broken:,} lines are not records"
        text = f"{records}{': ' if counts else ''}{', '.join(counts)}{others}"
        yield from (style.paint(line, "bold") for line in style.wrapped(text, 0))
        for rule, count in sorted(self._rules.items(), key=lambda item: (-item[1], item[0])):
            yield f"  {count:>5} × {plain(rule)}"
        if self._audited:
            yield from style.wrapped(f"({self._forwarded(total)})", 0, 1)

    def _forwarded(self, total: int) -> str:
        """Return the note about audit mode for these records."""
        # Messages that cannot be forwarded at all, such as one that is too long.
        but = f", except {counted(self._blocked, 'blocked message')}" if self._blocked else ""
        if self._audited < total:
            return f"{self._audited:,} of {total:,} records are from audit mode: everything in them was forwarded{but}"
        return f"audit: everything was forwarded{but}"

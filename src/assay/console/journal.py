"""
Records for people: a line each, below it what is wrong. What peers have said is printed safely.

On a terminal a record takes the columns that there are, and a line before the first record of a day has the date. In a
file every line is whole and has its date, so that it can be searched and sorted.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from textwrap import wrap
from typing import Any, Final, NamedTuple

from assay.console.clock import Clock, whole, zone
from assay.console.names import MOST_NAMES
from assay.console.payloads import payload_lines
from assay.console.plain import plain
from assay.console.style import Style
from assay.journal.reading import Record, quarantined, server_of, violations
from assay.journal.record import STATUSES
from assay.verdict import UNNAMED

_COLOURS: Final = {"ok": "green", "reported": "yellow", "refused": "red", "failed": "red"}

_WITH_BYTES: Final = 96
_WITH_TIMES: Final = 56
_WITH_FRACTIONS: Final = 110
"""Columns of a terminal from which on there is room for the bytes, the duration, the fractions of a second."""

_SERVER: Final = 16
_SHORT_SERVER: Final = 12
"""Columns for the name of the server: many, or where there are few in all."""

_NARROWEST: Final = 38
"""Columns that the rest must have for the name of the server to be shown."""

_MESSAGE: Final = 40
"""Columns for a message where nothing is cut; a longer one moves what follows it."""

_WRONG_LINES: Final = 3
"""Lines of a terminal for what is wrong with one message."""

_INDENT: Final = "    "


class View(NamedTuple):
    """What of a record is shown."""

    servers: bool = False
    """Whether there is a column for the server."""
    payloads: bool = False
    """Whether the frame is shown below it."""
    wide: bool = False
    """Whether nothing is cut or wrapped."""
    utc: bool = False
    """Whether times are in UTC, and not in the local time zone."""


class Table:
    """A table as wide as the terminal; where there is none, or all is wanted, as wide as it takes."""

    def __init__(self, style: Style, view: View = View()) -> None:  # noqa: B008 - it never changes
        self._style = style
        self._view = view
        self._limit = None if view.wide else style.limit
        self._clock = Clock(utc=view.utc)
        self._day = ""
        self._measure(self._limit)

    def head(self) -> str:
        """The names of the columns."""
        cells = self._cells("time", "server", "who", "message", "status", "ms", "in", "out")
        return self._style.paint("  ".join(cells).rstrip(), "dim")

    def lines(self, record: Record) -> Iterator[str]:
        """One record."""
        moment = self._clock.read(record["ts"])
        if self._limit is not None and moment is not None:
            yield from self._date_line(moment)
        yield self._row(record, moment)
        yield from (self._style.paint(line, "dim") for line in self._wrong(record))
        if self._view.payloads:
            yield from self._payload(record)

    def _row(self, record: Record, moment: datetime | None) -> str:
        status = record["status"]
        cells = self._cells(
            self._time(moment) or record["ts"],
            server_of(record) or "-",
            str(record["metadata"].get("party", "?")),
            title(record),
            status,
            f"{record['durationMs']:.2f}",
            str(record["inputBytes"]),
            str(record["outputBytes"]),
        )
        number = 4 if self._server_width else 3
        cells[number] = self._style.paint(cells[number], _COLOURS.get(status, "bold"))
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
        """What is wrong: on a terminal the first of it in some lines, elsewhere all of it, a line each."""
        if self._limit is None:
            yield from (plain(_INDENT + each) for each in every_wrong(record))
            names = quarantined(record)
            if names:
                yield plain(f"{_INDENT}quarantined: {', '.join(names)}")
        else:
            wrong = first_wrong(record)
            yield from self._wrapped(wrong) if wrong else ()

    def _wrapped(self, text: str) -> list[str]:
        limit = self._limit or len(text)
        # Much longer than what is shown of it, so that little is wrapped of a megabyte.
        lines = wrap(plain(text[: 10 * limit]), limit, initial_indent=_INDENT, subsequent_indent=_INDENT)
        if len(lines) > _WRONG_LINES:
            lines = [*lines[: _WRONG_LINES - 1], self._style.cut(f"{lines[_WRONG_LINES - 1]} …", limit)]
        return lines

    def _payload(self, record: Record) -> Iterator[str]:
        for line in payload_lines(record["metadata"], whole=self._view.wide):
            yield self._fit(f"{_INDENT}  {line}", self._limit or 0).rstrip()

    def _cells(
        self, time: str, server: str, who: str, what: str, status: str, duration: str, taken: str, sent: str
    ) -> list[str]:
        cells = [self._fit(time, self._clock_width)]
        if self._server_width:
            cells.append(self._fit(server, self._server_width))
        cells += [self._fit(who, 6), self._fit(what, self._message_width), self._fit(status, 8)]
        if self._room >= _WITH_TIMES:
            cells.append(duration.rjust(8))
        if self._room >= _WITH_BYTES:
            cells += [taken.rjust(7), sent.rjust(7)]
        return cells

    def _measure(self, limit: int | None) -> None:
        """Shares out the columns of the terminal; without one, every column has what it mostly takes."""
        server = 0 if not self._view.servers else _SERVER if limit is None or limit >= _WITH_BYTES else _SHORT_SERVER
        if limit is None:
            self._room, self._clock_width = _WITH_FRACTIONS, 24 if self._view.utc else 29
            self._server_width, self._message_width = server, _MESSAGE
            return
        room = limit - (server + 2 if server else 0)
        self._server_width = server if room >= _NARROWEST else 0
        self._room = room if self._server_width else limit
        self._clock_width = 12 if self._room >= _WITH_FRACTIONS else 8
        rest = self._clock_width + 2 + 6 + 2 + 2 + 8
        rest += 10 if self._room >= _WITH_TIMES else 0
        rest += 18 if self._room >= _WITH_BYTES else 0
        self._message_width = self._room - rest

    def _fit(self, text: str, width: int) -> str:
        """*text* in *width* columns; where nothing is cut, in as many as it takes."""
        text = plain(text)
        return text.ljust(width) if self._limit is None else self._style.cut(text, width).ljust(width)


def title(record: Record) -> str:
    """What a message was, in a few words."""
    metadata = record["metadata"]
    kind = metadata.get("kind")
    words = {"unreadable": "(no message)", "blank": "(blank line)", "batch": "a batch"}
    if kind in words:
        times = metadata.get("repeated")
        return f"{words[kind]} × {times:,}" if type(times) is int else words[kind]
    named = " ".join(str(each) for each in (record["method"], metadata.get("tool")) if each and each != UNNAMED)
    ident = metadata.get("id")
    if not named:
        without = f"{kind} without an id" if kind == "error" else f"{kind}"
        return without if ident is None else f"{kind} #{ident}"
    shown = named if ident is None else f"{named} #{ident}"
    if kind in {"result", "error"}:
        return f"{kind} of {shown}"
    return f"never answered: {shown}" if kind == "missing" else shown


def first_wrong(record: Record) -> str:
    """The first violation, or the error itself; nothing where nothing is wrong."""
    error = record["error"]
    if error is None:
        return ""
    listed = violations(record)
    if not listed:
        named = " ".join(str(each) for each in (error.get("code"), error.get("jsonrpcCode")) if each is not None)
        return ": ".join(each for each in (named, str(error.get("message") or "")) if each) or "a failure was reported"
    rest = f" (and {more} more)" if (more := _more(record, 1)) else ""
    first = next(each for each in error["violations"] if isinstance(each, dict))
    return _worded(first, _about(error, first)) + rest


def every_wrong(record: Record) -> Iterator[str]:
    """Everything that is wrong, as far as the journal has it."""
    if not violations(record):
        yield from filter(None, [first_wrong(record)])
        return
    for each in record["error"]["violations"]:
        if isinstance(each, dict):
            yield _worded(each, _entries([each.get("entry")]))
    if more := _more(record, len(violations(record))):
        yield f"and {more} more, which the journal does not list"


def _more(record: Record, shown: int) -> int:
    """How many violations there are beyond those that are *shown*."""
    more = record["error"].get("more")
    return len(violations(record)) - shown + (more if isinstance(more, int) else 0)


def _worded(violation: dict[str, Any], about: str) -> str:
    # Before the place, which may be so long that a terminal shows nothing behind it.
    found = f"expected {violation.get('expected')}, found {violation.get('found')}"
    return f"{violation.get('rule')}{about} at {violation.get('at') or 'the message'}: {found}"


def _about(error: dict[str, Any], first: dict[str, Any]) -> str:
    """The entries of a list that are quarantined, else the one that the first violation is about."""
    listed = error.get("quarantined")
    return _entries(listed if isinstance(listed, list) else [first.get("entry")])


def _entries(entries: list[Any]) -> str:
    named = [each for each in entries if isinstance(each, dict)]
    names = ", ".join(str(each.get("name")) for each in named[:MOST_NAMES])
    return f" ({named[0].get('kind')}{'' if len(named) == 1 else 's'} {names})" if named else ""


class Totals:
    """How many of what, and the rules that were broken."""

    def __init__(self) -> None:
        self._statuses: Counter[str] = Counter()
        self._rules: Counter[str] = Counter()
        self._passed_over = 0

    def add(self, record: Record) -> None:
        """Counts what is shown."""
        self._statuses[record["status"]] += 1
        self._rules.update(rule for rule, _ in violations(record))

    def pass_over(self) -> None:
        """Counts what is not."""
        self._passed_over += 1

    def lines(self, style: Style, broken: int) -> Iterator[str]:
        """The counts, for people; *broken* lines were not records."""
        shown = self._statuses.total()
        total = shown + self._passed_over
        counts = [f"{self._statuses[each]} {each}" for each in STATUSES if self._statuses[each]]
        records = f"{shown} of {_counted(total, 'record')}" if self._passed_over else _counted(total, "record")
        others = ""
        if broken:
            others = "; 1 line is not a record" if broken == 1 else f"; {broken:,} lines are not records"
        text = f"{records}{': ' if counts else ''}{', '.join(counts)}{others}"
        yield from (style.paint(line, "bold") for line in style.wrapped(text, 0))
        for rule, count in sorted(self._rules.items(), key=lambda item: (-item[1], item[0])):
            yield f"  {count:>5} × {plain(rule)}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

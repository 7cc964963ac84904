"""Records for people: a line each, below it the first thing that is wrong. What peers have said is printed safely."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from assay.console.names import MOST_NAMES
from assay.console.plain import plain
from assay.console.style import Style
from assay.journal.reading import Entry, Record, violations
from assay.journal.record import STATUSES
from assay.verdict import UNNAMED

_COLOURS: Final = {"ok": "green", "reported": "yellow", "refused": "red", "failed": "red"}

_WITH_BYTES: Final = 72
_WITH_TIMES: Final = 56
_WITH_FRACTIONS: Final = 96
"""Widths of a terminal from which on there is room for the bytes, the duration, the fractions of a second."""

_INDENT: Final = "    "


class Table:
    """A table as wide as the terminal."""

    def __init__(self, style: Style) -> None:
        self._style = style
        width = style.width
        self._clock = 12 if width >= _WITH_FRACTIONS else 8
        rest = self._clock + 2 + 6 + 2 + 2 + 8
        rest += 10 if width >= _WITH_TIMES else 0
        rest += 18 if width >= _WITH_BYTES else 0
        self._what = width - rest

    def head(self) -> str:
        """The names of the columns."""
        cells = self._cells("time", "who", "message", "status", "ms", "in", "out")
        return self._style.paint("  ".join(cells).rstrip(), "dim")

    def lines(self, entry: Entry) -> Iterator[str]:
        """One record, or that there is none."""
        record = entry.record
        if record is None:
            yield self._style.paint(f"line {entry.number}: no record ({len(entry.raw):,} bytes)", "red")
            return
        status = record["status"]
        cells = self._cells(
            record["ts"][11 : 11 + self._clock],
            str(record["metadata"].get("party", "?")),
            title(record),
            status,
            f"{record['durationMs']:.2f}",
            str(record["inputBytes"]),
            str(record["outputBytes"]),
        )
        cells[3] = self._style.paint(cells[3], _COLOURS.get(status, "bold"))
        yield "  ".join(cells).rstrip()
        wrong = first_wrong(record)
        if wrong:
            yield self._style.paint(_fit(_INDENT + wrong, self._style.width).rstrip(), "dim")

    def _cells(self, time: str, who: str, what: str, status: str, duration: str, taken: str, sent: str) -> list[str]:
        cells = [_fit(time, self._clock), _fit(who, 6), _fit(what, self._what), _fit(status, 8)]
        if self._style.width >= _WITH_TIMES:
            cells.append(duration.rjust(8))
        if self._style.width >= _WITH_BYTES:
            cells += [taken.rjust(7), sent.rjust(7)]
        return cells


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
    rule, at = listed[0]
    first: dict[str, Any] = next(each for each in error["violations"] if isinstance(each, dict))
    more = len(listed) - 1 + (error["more"] if isinstance(error.get("more"), int) else 0)
    rest = f" (and {more} more)" if more else ""
    found = f"expected {first.get('expected')}, found {first.get('found')}{rest}"
    # Before the place, which may be so long that a terminal shows nothing behind it.
    return f"{rule}{_about(error, first)} at {at or 'the message'}: {found}"


def _about(error: dict[str, Any], first: dict[str, Any]) -> str:
    """The entries of a list that are quarantined, else the one that the first violation is about."""
    listed = error.get("quarantined")
    entries = listed if isinstance(listed, list) else [first.get("entry")]
    named = [each for each in entries if isinstance(each, dict)]
    names = ", ".join(str(each.get("name")) for each in named[:MOST_NAMES])
    return f" ({named[0].get('kind')}{'' if len(named) == 1 else 's'} {names})" if named else ""


class Totals:
    """How many of what, and the rules that were broken."""

    def __init__(self) -> None:
        self._statuses: Counter[str] = Counter()
        self._rules: Counter[str] = Counter()
        self._broken = 0
        self._passed_over = 0

    def add(self, entry: Entry) -> None:
        """Counts what is shown."""
        if entry.record is None:
            self._broken += 1
            return
        self._statuses[entry.record["status"]] += 1
        self._rules.update(rule for rule, _ in violations(entry.record))

    def pass_over(self) -> None:
        """Counts what is not."""
        self._passed_over += 1

    def lines(self, style: Style) -> Iterator[str]:
        """The counts, for people."""
        shown = self._statuses.total()
        total = shown + self._passed_over
        counts = [f"{self._statuses[each]} {each}" for each in STATUSES if self._statuses[each]]
        records = f"{shown} of {_counted(total, 'record')}" if self._passed_over else _counted(total, "record")
        none = "is none" if self._broken == 1 else "are none"
        broken = f"; {_counted(self._broken, 'line')} that {none}" if self._broken else ""
        text = f"{records}{': ' if counts else ''}{', '.join(counts)}{broken}"
        yield from (style.paint(line, "bold") for line in style.wrapped(text, 0))
        for rule, count in sorted(self._rules.items(), key=lambda item: (-item[1], item[0])):
            yield f"  {count:>5} × {plain(rule)}"


def _fit(text: str, width: int) -> str:
    text = plain(text)
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

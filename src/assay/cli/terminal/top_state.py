"""What `assay top` shows and how keys change it. No I/O, no clock, no library for terminals."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from assay.base.printable import plain
from assay.cli.program import program
from assay.records.live.feed_items import text_of
from assay.records.live.filter_words import FilterError, FilterWords
from assay.records.live.live_totals import LiveFinding, LiveTotals, ServerTotals

BARS: Final = "▁▂▃▄▅▆▇█"

_MOST_TYPED: Final = 200
"""Maximal characters of a filter that is typed."""

HELP: Final = (
    ("/", "filter: words that must all match, such as tool:search rule:contract verdict:blocked"),
    ("p", "pause and go on"),
    ("f", "follow the newest finding"),
    ("j k, arrows", "choose a finding"),
    ("Enter", "show all of the finding"),
    ("y", "copy its rule and place"),
    ("?", "this help"),
    ("q", "quit; Esc goes back"),
)


def how_to_begin() -> tuple[str, str, str]:
    """Return what to do where no guard runs."""
    name = program()
    return (
        "No guard is running.",
        f"Put your clients' servers behind one: {name} wrap --all",
        f"Or see a broken server behind one:    {name} demo",
    )


class ServerRow(NamedTuple):
    """The cells of one server."""

    name: str
    transport: str
    mode: str
    state: str
    calls: int
    """Calls in the last minute."""
    spark: str
    p95: float | None
    findings: int
    blocked: int
    why: str

    def as_json(self) -> dict[str, Any]:
        """Return the row for programs."""
        whole = self._asdict()
        del whole["spark"]
        return {"name": self.name, "callsPerMinute": whole.pop("calls"), "p95Ms": whole.pop("p95"), **whole}


class Picture(NamedTuple):
    """What is shown at one moment."""

    servers: tuple[ServerRow, ...] = ()
    findings: tuple[LiveFinding, ...] = ()
    """Newest first."""
    dropped: int = 0


def sparkline(counts: Sequence[int]) -> str:
    """Return one character for each count; the highest is a full block."""
    most = max(counts, default=0)
    if not most:
        return BARS[0] * len(counts)
    return "".join(BARS[-(-count * (len(BARS) - 1) // most)] for count in counts)


def server_row(one: ServerTotals, now: float) -> ServerRow:
    """Return the cells of *one*, safe for a terminal."""
    return ServerRow(
        plain(one.name),
        plain(one.transport),
        plain(one.mode),
        plain(one.state),
        one.calls.per_minute(now),
        sparkline(one.calls.series(now)),
        one.durations.quantile(0.95),
        one.findings,
        one.blocked,
        plain(one.stderr or one.why),
    )


class TopState:
    """The state of the view."""

    def __init__(self, totals: LiveTotals) -> None:
        self._totals = totals
        self.picture = Picture()
        self.filter = FilterWords()
        self.filter_text = ""
        self.typed: str | None = None
        """The filter while it is typed; None otherwise."""
        self.paused = False
        self.selected: LiveFinding | None = None
        """The chosen finding; None while the newest is followed."""
        self.page = "list"
        """``list``, ``finding`` or ``help``."""
        self.note = ""
        """A line about the last key."""
        self.copied: str | None = None
        """A text for the clipboard, which the caller takes."""
        self.over = False

    @property
    def current(self) -> LiveFinding | None:
        """The finding that a key is about."""
        if self.selected is not None:
            return self.selected
        return self.picture.findings[0] if self.picture.findings else None

    def refresh(self, now: float) -> None:
        """Show what is known *now*, unless the view is paused."""
        if self.paused:
            return
        totals = self._totals
        wanted = (each for each in reversed(totals.recent) if self._wants(each))
        rows = tuple(server_row(one, now) for one in totals.rows(now))
        self.picture = Picture(rows, tuple(wanted), totals.dropped)

    def _wants(self, finding: LiveFinding) -> bool:
        record = finding.record
        return self.filter.wants(record, server=finding.server, is_open=record["requestId"] in self._totals.open)

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def key(self, key: str) -> None:
        """Handle a key: a character, or a name such as ``up``."""
        self.note = ""
        if self.typed is not None:
            self._type(key)
        elif key in _KEYS:
            _KEYS[key](self)

    def _type(self, key: str) -> None:
        typed = self.typed or ""
        if key == "escape":
            self.typed = None
        elif key == "backspace":
            self.typed = typed[:-1]
        elif key == "enter":
            self._apply(typed)
        elif len(key) == 1 and key.isprintable() and len(typed) < _MOST_TYPED:
            self.typed = typed + key

    def _apply(self, typed: str) -> None:
        try:
            self.filter = FilterWords.parse(typed)
        except FilterError as error:
            self.note = plain(str(error))
            return
        self.filter_text, self.typed, self.selected = typed.strip(), None, None

    def _move(self, by: int) -> None:
        findings = self.picture.findings
        if not findings:
            return
        at = next((number for number, each in enumerate(findings) if each is self.selected), 0)
        self.selected = findings[min(max(0, at + by), len(findings) - 1)]

    def _follow(self) -> None:
        self.selected, self.note = None, "following the newest finding"

    def _pause(self) -> None:
        self.paused = not self.paused

    def _begin_filter(self) -> None:
        self.typed = self.filter_text

    def _open(self) -> None:
        if self.current is not None:
            self.selected, self.page = self.current, "finding"

    def _help(self) -> None:
        self.page = "list" if self.page == "help" else "help"

    def _back(self) -> None:
        self.page = "list"

    def _quit(self) -> None:
        self.over = True

    def _copy(self) -> None:
        found = self.current
        if found is not None:
            self.copied = plain(f"{found.rule} {found.at}".rstrip())
            self.note = f"copied: {self.copied}"


_KEYS: Final[dict[str, Callable[[TopState], None]]] = {
    "q": TopState._quit,
    "p": TopState._pause,
    "f": TopState._follow,
    "/": TopState._begin_filter,
    "?": TopState._help,
    "y": TopState._copy,
    "enter": TopState._open,
    "escape": TopState._back,
    "j": lambda state: state._move(1),
    "down": lambda state: state._move(1),
    "k": lambda state: state._move(-1),
    "up": lambda state: state._move(-1),
    "pagedown": lambda state: state._move(10),
    "pageup": lambda state: state._move(-10),
}


def finding_lines(found: LiveFinding) -> list[tuple[str, str]]:
    """Return all of a finding: labels and texts, safe for a terminal."""
    violation = found.violation
    rows = [
        ("rule", found.rule),
        ("at", found.at or "the message"),
        ("expected", text_of(violation, "expected")),
        ("found", text_of(violation, "found")),
        ("hint", text_of(violation, "hint")),
        ("source", text_of(violation, "source")),
        ("message", " ".join(filter(None, (text_of(found.record["metadata"], "party"), found.method, found.tool)))),
        ("verdict", found.status),
        ("server", found.server),
        ("time", found.ts),
    ]
    return [(name, plain(text)) for name, text in rows if text]

"""Draw the state of `assay top`, with rich. Text of peers is made safe before, and is never parsed as markup."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from textwrap import wrap
from typing import Final, NamedTuple

from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.table import Table
from rich.text import Text

from assay.base.printable import plain
from assay.cli.terminal.record_text import COLOURS
from assay.cli.terminal.top_state import HELP, Picture, ServerRow, TopState, finding_lines, how_to_begin
from assay.core.quarantined_names import counted
from assay.records.live.live_totals import LiveFinding

STATE_STYLES: Final = {"running": "green", "failed": "bold red", "ended": "dim", "idle": "dim"}
STATUS_STYLES: Final = {word: colour for word, colour in COLOURS.items() if word != "ok"}


class TopColumn(NamedTuple):
    """A column of a table, and the widths of the terminal for which it is shown."""

    title: str
    width: int
    from_width: int = 0
    right: bool = False
    ratio: int = 0
    below: int = 10_000

    def fits(self, width: int) -> bool:
        """Whether it is shown on a terminal of *width* columns."""
        return self.from_width <= width < self.below


SERVER_COLUMNS: Final = (
    TopColumn("server", 8, ratio=1),
    TopColumn("via", 5, 76),
    TopColumn("mode", 7, 60),
    TopColumn("state", 7),
    TopColumn("calls/min", 9, 40, right=True),
    TopColumn("last minute", 12, 70),
    TopColumn("p95 ms", 8, 50, right=True),
    TopColumn("findings", 8, 30, right=True),
    TopColumn("blocked", 7, 56, right=True),
)
FINDING_COLUMNS: Final = (
    TopColumn("time", 8, 50),
    TopColumn("server", 10, 76),
    TopColumn("message", 14, 60, below=110),
    TopColumn("method", 16, 110),
    TopColumn("tool", 16, 110),
    TopColumn("rule", 12, ratio=3),
    TopColumn("place", 8, 40, ratio=3),
)


def screen(state: TopState, width: int, height: int) -> RenderableType:
    """Return the whole screen; it fits *width* columns and *height* lines."""
    head = Text(_headline(state), style="reverse", no_wrap=True, overflow="ellipsis")
    head.truncate(width, overflow="ellipsis", pad=True)
    room = max(1, height - 2)
    if state.page == "help":
        body = Group(*_labelled(HELP, 12, width))
    elif state.page == "finding" and state.selected is not None:
        body = Group(*_labelled(finding_lines(state.selected), 10, width))
    else:
        body = Group(*_lists(state, width, room))
    foot = Text(_footline(state), no_wrap=True, overflow="ellipsis")
    foot.truncate(width, overflow="ellipsis")
    whole = Layout()
    whole.split_column(Layout(head, size=1), Layout(body), Layout(foot, size=1))
    return whole


def _headline(state: TopState) -> str:
    picture = state.picture
    parts = ["assay top", counted(len(picture.servers), "server")]
    parts += ["paused"] if state.paused else []
    parts += [f"{picture.dropped:,} dropped"] if picture.dropped else []
    parts += [f"filter: {plain(state.filter_text)}"] if state.filter_text else []
    return " · ".join(parts)


def _footline(state: TopState) -> str:
    if state.note:
        return state.note
    if state.typed is not None:
        return f"/{plain(state.typed)}"
    return "/ filter  p pause  f follow  Enter show  y copy  ? help  q quit"


def _lists(state: TopState, width: int, room: int) -> Iterator[RenderableType]:
    picture = state.picture
    if not picture.servers:
        for line in how_to_begin()[:room]:
            yield Text(line, no_wrap=True, overflow="ellipsis")
        return
    servers = min(len(picture.servers), max(1, (room - 2) // 2))
    yield _servers(picture.servers[:servers], width)
    left = room - servers - 1
    if left > 1:
        yield _findings(state, picture, width, left - 1)


def _servers(rows: Sequence[ServerRow], width: int) -> Table:
    shown = [column for column in SERVER_COLUMNS if column.fits(width)]
    table = _table(shown)
    for row in rows:
        cells = {
            "server": Text(row.name),
            "via": Text(row.transport),
            "mode": Text(row.mode),
            "state": Text(row.state, style=STATE_STYLES.get(row.state, "")),
            "calls/min": Text(f"{row.calls:,}"),
            "last minute": Text(row.spark, style="cyan"),
            "p95 ms": Text("-" if row.p95 is None else f"{row.p95:,.1f}"),
            "findings": Text(f"{row.findings:,}", style="yellow" if row.findings else ""),
            "blocked": Text(f"{row.blocked:,}", style="red" if row.blocked else ""),
        }
        table.add_row(*(cells[column.title] for column in shown))
    return table


def _findings(state: TopState, picture: Picture, width: int, room: int) -> Table:
    shown = [column for column in FINDING_COLUMNS if column.fits(width)]
    table = _table(shown)
    findings = picture.findings
    chosen = next((number for number, each in enumerate(findings) if each is state.selected), 0)
    first = max(0, min(chosen - room // 2, len(findings) - room))
    for each in findings[first : first + room]:
        table.add_row(*_cells(each, shown), style="reverse" if each is state.selected else "")
    return table


def _cells(found: LiveFinding, shown: Sequence[TopColumn]) -> Iterator[Text]:
    cells = {
        "time": Text(_time(found.ts)),
        "server": Text(plain(found.server)),
        "message": Text(plain(found.tool or found.method)),
        "method": Text(plain(found.method)),
        "tool": Text(plain(found.tool)),
        "rule": Text(plain(found.rule), style=STATUS_STYLES.get(found.status, "")),
        "place": Text(plain(found.at)),
    }
    return (cells[column.title] for column in shown)


def _time(ts: str) -> str:
    try:
        return datetime.fromisoformat(ts).astimezone().strftime("%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return plain(ts[:8])


def _table(columns: Sequence[TopColumn]) -> Table:
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            width=None if column.ratio else column.width,
            min_width=1,
            ratio=column.ratio or None,
            no_wrap=True,
            overflow="ellipsis",
        )
    return table


def _labelled(rows: Sequence[tuple[str, str]], indent: int, width: int) -> Iterator[Text]:
    """Yield rows of a label and a text, which is wrapped beside its label."""
    for name, text in rows:
        lines = wrap(text, max(10, width - indent)) or [""]
        yield Text.assemble((f"{name:<{indent}}", "bold"), lines[0])
        yield from (Text(" " * indent + line) for line in lines[1:])

"""``assay top``: what all guards of this user are judging, live in a terminal."""

# ruff: noqa: PLC0415  each command imports only what it needs: `assay --help` needs none of it

from __future__ import annotations

import argparse
import os
import sys
from time import monotonic, time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.cli.terminal.top_state import Picture, ServerRow, TopState
    from assay.records.live.live_sources import LiveSources
    from assay.records.live.live_totals import LiveTotals

_EPILOG = """\
In a terminal: / filters, p pauses, f follows, j and k or the arrows choose a finding, Enter shows all of it, y copies
its rule and place, ? has all keys, q quits.
Guards of this user with a live feed are found by themselves; of others, journals are read as they grow.

Exit status: 0, or 2 if nothing can be shown.
"""

_PAUSE: Final = 0.25
"""Seconds between two drawings of the screen, if no key was pressed."""

_LOOKS: Final = 0.5
"""Seconds between two searches for new guards."""

_SETTLED: Final = 2.5
"""Maximal seconds until all guards have said hello, for one table."""

_MOST_ONCE: Final = 10
"""Findings below one table."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``top``."""
    parser = subparsers.add_parser(
        "top",
        help="watch all guards in a terminal: calls, durations, findings",
        description="Show all running guards of this user: servers, calls a minute, durations, and the last findings.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--once", action="store_true", help="print one table and exit; so does output to a file or pipe"
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="for people, or with --once for programs"
    )
    parser.add_argument(
        "--filter", metavar="WORDS", default="", help="show only findings that match, as with the key /"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show the guards; return the exit status."""
    from assay.cli.journal_choice import Directories
    from assay.cli.terminal.top_state import TopState
    from assay.records.live.filter_words import FilterError, FilterWords
    from assay.records.live.live_sources import LiveSources
    from assay.records.live.live_totals import LiveTotals
    from assay.settings.state_directory import live_directory

    totals = LiveTotals()
    state = TopState(totals)
    try:
        state.filter, state.filter_text = FilterWords.parse(args.filter), args.filter.strip()
    except FilterError as error:
        _say(f"--filter {error}")
        return 2
    directories = Directories(args, _say)
    sources = LiveSources(live_directory(os.environ), directories.usual, past=True)
    try:
        if args.once or args.format == "json" or not (sys.stdout.isatty() and sys.stdin.isatty()):
            return _once(args, sources, totals, state)
        return _watch(sources, totals, state)
    finally:
        sources.close()


def _say(line: str) -> None:
    from assay.base.printable import plain

    print(plain(f"assay top: {line}"), file=sys.stderr)


def _take(sources: LiveSources, totals: LiveTotals) -> None:
    now = time()
    for news in sources.arrived():
        totals.take(news.source, news.item, now)


# ── one table ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _once(args: argparse.Namespace, sources: LiveSources, totals: LiveTotals, state: TopState) -> int:
    import select

    due = monotonic() + _SETTLED
    _take(sources, totals)
    while sources.pending and monotonic() < due:
        select.select(sources.filenos(), [], [], 0.1)
        _take(sources, totals)
    state.refresh(time())
    if args.format == "json":
        _print_json(state.picture)
    else:
        _print_table(state.picture)
    return 0


def _print_json(picture: Picture) -> None:
    from assay.cli.reports.report_json import dumped
    from assay.edges.standard_streams import write_utf8

    findings = [
        {"ts": each.ts, "server": each.server, "method": each.method, "tool": each.tool, "status": each.status}
        | each.violation
        for each in picture.findings
    ]
    whole = {
        "servers": [each.as_json() for each in picture.servers],
        "findings": findings,
        "dropped": picture.dropped,
    }
    write_utf8(dumped(whole, indent=True) + "\n")


_HEAD: Final = ("server", "via", "mode", "state", "calls/min", "p95 ms", "findings", "blocked")
_WORDS: Final = 4
"""Columns of words, which are aligned left; the others are numbers."""


def _print_table(picture: Picture) -> None:
    from assay.cli.terminal.style import Style
    from assay.cli.terminal.top_state import how_to_begin

    if not picture.servers:
        print("\n".join(how_to_begin()))
        return
    style = Style(sys.stdout)
    for line in (*_table_lines(picture), *_finding_lines(picture)):
        print(line if style.limit is None else style.cut(line, style.limit))


def _table_lines(picture: Picture) -> Iterator[str]:
    from assay.cli.terminal.style import columns

    rows = [_HEAD, *map(_cells, picture.servers)]
    widths = [max(map(columns, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        gaps = [" " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)]
        words = (f"{cell}{gap}" for cell, gap in zip(row[:_WORDS], gaps, strict=False))
        numbers = (f"{gap}{cell}" for cell, gap in zip(row[_WORDS:], gaps[_WORDS:], strict=True))
        yield "  ".join((*words, *numbers)).rstrip()


def _cells(row: ServerRow) -> tuple[str, ...]:
    p95 = "-" if row.p95 is None else f"{row.p95:,.1f}"
    numbers = (f"{row.calls:,}", p95, f"{row.findings:,}", f"{row.blocked:,}")
    return (row.name, row.transport, row.mode, row.state, *numbers)


def _finding_lines(picture: Picture) -> Iterator[str]:
    from assay.base.printable import plain

    for each in picture.findings[:_MOST_ONCE]:
        where = " ".join(filter(None, (each.method, each.tool)))
        yield plain(f"{each.ts[:19]}  {each.server}  {where}  {each.status}: {each.rule} {each.at}".rstrip())


# ── the terminal ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _watch(sources: LiveSources, totals: LiveTotals, state: TopState) -> int:
    """Draw the screen until the user quits."""
    try:
        from rich.console import Console
        from rich.live import Live

        from assay.cli.terminal.top_keys import Keyboard
        from assay.cli.terminal.top_screen import screen
    except ImportError as error:
        from assay.base.extras import missing

        _say(f"needs {missing(error, 'console')}; --once needs nothing")
        return 2
    console = Console(highlight=False, markup=False, emoji=False)
    # What is copied must reach the terminal as it is.
    whole = Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    looked = drawn = 0.0
    with Keyboard(sys.stdin.fileno()) as keyboard, whole as live:
        while not state.over:
            _take(sources, totals)
            now = monotonic()
            if now - looked >= _LOOKS:
                looked = now
                sources.look_around()
            if now - drawn >= _PAUSE or keyboard.pressed:
                drawn = now
                state.refresh(time())
                live.update(screen(state, console.width, console.height), refresh=True)
            for key in keyboard.keys(sources.filenos(), _PAUSE):
                state.key(key)
            _copy(state)
    return 0


def _copy(state: TopState) -> None:
    """Copy a text to the clipboard of the terminal (OSC 52), which works over SSH, too."""
    if state.copied is not None:
        from base64 import b64encode

        sys.stdout.write(f"\x1b]52;c;{b64encode(state.copied.encode()).decode()}\x07")
        sys.stdout.flush()
        state.copied = None

"""`assay top`: one table for files and programs, and a screen with keys for people."""

import base64
import fcntl
import io
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from guarded import SECONDS, Guarded, call, liar, tool
from listening import ASSAY, guard, short_state, variables
from rich.console import Console
from test_live_figures import record

from assay.cli.terminal.top_keys import keys_of
from assay.cli.terminal.top_screen import screen
from assay.cli.terminal.top_state import TopState, sparkline
from assay.records.live.feed_items import FeedItem
from assay.records.live.live_totals import LiveTotals

SEARCH = tool("search", inputSchema={"type": "object", "properties": {"limit": {"type": "integer"}}})
NOW = 1_794_909_600.0


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory of its own."""
    yield from short_state()


@contextmanager
def books(state: Path) -> Iterator[Guarded]:
    """A guard that has judged two calls, one of them bad."""
    with guard("--name", "books", "--mode", "enforce", "--", *liar(tools=[SEARCH]), state=state) as one:
        one.open()
        one.ask(call(1, limit=3))
        one.ask(call(2, limit="\x1b[31mred"))
        yield one


def top(state: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The command, without a terminal."""
    return subprocess.run(
        [*ASSAY, "top", *options],
        env=variables(state),
        cwd=state,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_without_a_guard_three_lines_say_how_to_begin(state: Path) -> None:
    done = top(state, "--once")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 3
    assert "wrap --all" in done.stdout


def test_one_table_has_servers_and_findings(state: Path) -> None:
    with books(state):
        head, row, finding = top(state).stdout.splitlines()
    assert head.split()[:4] == ["server", "via", "mode", "state"]
    assert row.split()[:5] == ["books", "stdio", "enforce", "running", "2"]
    assert row.split()[-2:] == ["1", "1"]
    assert "tools/call search  blocked: contract/input /params/arguments/limit" in finding


def test_programs_get_json(state: Path) -> None:
    with books(state):
        found = json.loads(top(state, "--once", "--format", "json").stdout)
    [server] = found["servers"]
    [finding] = found["findings"]
    assert (server["name"], server["callsPerMinute"], server["blocked"]) == ("books", 2, 1)
    assert (finding["rule"], finding["at"]) == ("contract/input", "/params/arguments/limit")
    assert found["dropped"] == 0


def test_json_is_safe_to_show(state: Path) -> None:
    with books(state) as one:
        one.ask({"jsonrpc": "2.0", "id": 3, "method": "\x9b2J\u202e\u2066"})
        text = top(state, "--once", "--format", "json").stdout
    assert not [each for each in text if not each.isprintable() and each != "\n"]
    assert '"method": "\\u009b2J\\u202e\\u2066"' in text
    assert json.loads(text)["findings"][0]["method"] == "\x9b2J\u202e\u2066"


def test_a_filter_leaves_findings_out(state: Path) -> None:
    with books(state):
        assert len(top(state, "--filter", "tool:search rule:contract").stdout.splitlines()) == 3
        assert len(top(state, "--filter", "tool:other").stdout.splitlines()) == 2
    done = top(state, "--filter", "tol:x")
    assert (done.returncode, "did you mean tool" in done.stderr) == (2, True)


# ── a terminal ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Terminal:
    """The command in a terminal of this size."""

    def __init__(self, state: Path, columns: int = 80, lines: int = 24, **more: str) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.chdir(state)
            os.execve(ASSAY[0], [*ASSAY, "top"], {**variables(state), "TERM": "xterm-256color", **more})  # noqa: S606 - as a shell does
        self.data = b""

    def press(self, keys: str) -> None:
        """Press *keys*, one after the other."""
        self.data = b""
        os.write(self.descriptor, keys.encode())

    def shows(self, wanted: Callable[[str], bool]) -> str:
        """Wait until the screen is as wanted; return it without colours."""
        while True:
            text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.data.decode(errors="replace"))
            if wanted(text):
                return text
            assert select.select([self.descriptor], [], [], SECONDS)[0], f"nothing more came after {text[-2000:]}"
            self.data += os.read(self.descriptor, 1 << 16)

    def ended(self) -> int:
        """The exit status."""
        while True:
            try:
                if not os.read(self.descriptor, 1 << 16):
                    break
            except OSError:
                break
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_keys_choose_show_copy_and_filter(state: Path) -> None:
    with books(state) as one:
        terminal = Terminal(state)
        first = terminal.shows(lambda text: "contract/input" in text)
        assert "books" in first
        one.ask(call(3, limit="again"))
        terminal.shows(lambda text: text.count("contract/input") > 1)
        terminal.press("j\r")
        whole = terminal.shows(lambda text: "expected" in text and "hint" in text)
        assert "an integer" in whole
        assert b"\x1b[31mred" not in terminal.data
        terminal.press("y")
        terminal.shows(lambda text: "copied: contract/input" in text)
        copied = base64.b64encode(b"contract/input /params/arguments/limit")
        assert b"\x1b]52;c;" + copied + b"\x07" in terminal.data
        terminal.press("\x1b")
        terminal.shows(lambda text: "calls/min" in text)
        terminal.press("/tol:x\r")
        terminal.shows(lambda text: "did you mean tool" in text)
        terminal.press("\x1b")
        terminal.press("/tool:nothing\r")
        terminal.shows(lambda text: "filter: tool:nothing" in text)
        terminal.press("p")
        terminal.shows(lambda text: "paused" in text)
        terminal.press("?")
        terminal.shows(lambda text: "follow the newest finding" in text)
        terminal.press("q")
        assert terminal.ended() == 0


def test_no_colour_is_respected_and_control_c_quits(state: Path) -> None:
    with books(state):
        terminal = Terminal(state, NO_COLOR="1")
        terminal.shows(lambda text: "contract/input" in text)
        assert re.search(rb"\x1b\[3[0-9]m", terminal.data) is None
        terminal.press("\x03")
        assert terminal.ended() == 0


def filled(count: int = 50) -> TopState:
    """A view with findings of a peer that sends control characters."""
    totals = LiveTotals()
    hello = {"servers": [{"name": f"server {number}\x1b[2J", "state": "running"} for number in range(9)]}
    totals.take(None, FeedItem("hello", hello), NOW)
    for number in range(count):
        found: dict[str, Any] = record("refused", ("contract/input",), server=f"server {number % 9}\x1b[2J")
        found["metadata"]["tool"] = "t\x07[bold]" + "ü漢" * 30
        totals.take(None, FeedItem("record", found), NOW)
    state = TopState(totals)
    state.refresh(NOW)
    return state


@pytest.mark.parametrize("columns", [1, 10, 25, 40, 60, 80, 200])
@pytest.mark.parametrize("lines", [1, 2, 3, 5, 24, 60])
@pytest.mark.parametrize("page", ["", "?", "\r"])
def test_every_size_of_a_terminal_is_filled_and_not_exceeded(columns: int, lines: int, page: str) -> None:
    state = filled()
    for key in keys_of(page.encode()):
        state.key(key)
    file = io.StringIO()
    console = Console(file=file, width=columns, height=lines, force_terminal=True, color_system=None, markup=False)
    shown = console.render_lines(screen(state, columns, lines), console.options.update(height=lines), pad=False)
    assert len(shown) <= lines
    assert all(sum(part.cell_length for part in line) <= columns for line in shown)
    text = "".join(part.text for line in shown for part in line)
    assert all(each.isprintable() or each == "\n" for each in text)


def test_a_chosen_finding_stays_while_others_come() -> None:
    state = filled()
    for _ in range(3):
        state.key("down")
    chosen = state.current
    for number in range(5):
        state._totals.take(None, FeedItem("record", record("refused", (f"new/rule{number}",))), NOW)
    state.refresh(NOW)
    assert state.current is chosen
    state.key("f")
    assert state.current is not None
    assert state.current.rule == "new/rule4"
    state.key("p")
    state._totals.take(None, FeedItem("record", record("refused", ("new/rule9",))), NOW)
    state.refresh(NOW)
    assert state.current.rule == "new/rule4"


def test_a_sparkline_has_the_highest_count_on_top() -> None:
    assert sparkline([0, 1, 4, 8]) == "▁▂▅█"
    assert sparkline([0, 0]) == "▁▁"


def test_keys_have_names() -> None:
    assert list(keys_of(b"\x1b[A\x1bOBj\x1b[6~\r\x1b[1;5C\x7f")) == [
        "up",
        "down",
        "j",
        "pagedown",
        "enter",
        "backspace",
    ]
    assert list(keys_of(b"\x1b")) == ["escape"]

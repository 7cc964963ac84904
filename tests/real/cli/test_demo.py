"""`assay demo`: what it shows, what stays up, and that nothing is left behind however it ends."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assay.cli.main import main
from kit.guard_process import SECONDS
from kit.quiet import quiet_host

ADDRESS = f"{quiet_host(3)}:0"
DEMO = [sys.executable, "-m", "assay", "demo"]


def test_the_comparison_names_every_fault_with_its_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--once"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for expected in (
        "list the tools ✗ no tools: the client",
        "✓ weather, report",
        "✗ connection closed: a line is",
        "✓ Sunny in Paris, 21 °C.",
        "call report ✗ connection closed ✗ No answer came: the server",
        "exited with status 1: RuntimeError: database is",
        "search: quarantined, so that the client can use the rest of the list",
        "/result/tools/1/inputSchema/properties/words: expected an object",
        "assay explain protocol/result",
        "weather: the stray line went to stderr, and the result to the client",
        'the message: expected one JSON value, found the text "weather: cache is warm"',
        "syntax/json",
        "report: the client got an answer, and the server was restarted",
        "| RuntimeError: database is gone",
    ):
        assert expected in shown


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_comparison_fits_the_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["demo", "--once"]) == 0
    prose = capsys.readouterr().out.partition("What the guard found")[0].splitlines()[6:]
    assert max(map(len, prose)) <= width


class Demo:
    """A demonstration that serves, and what it has printed so far."""

    def __init__(self, process: subprocess.Popen[bytes], output: int) -> None:
        self.process = process
        self.printed = ""
        while "Ctrl-C" not in self.printed:
            assert select.select([output], [], [], SECONDS)[0], self.printed
            chunk = os.read(output, 1 << 16)
            assert chunk, self.printed
            self.printed += chunk.decode(errors="replace")
        self.url = re.findall(r"http://[0-9.:]+", self.printed)[0]

    def is_up(self) -> bool:
        """Whether somebody listens at its address."""
        host, port = self.url.removeprefix("http://").split(":")
        try:
            socket.create_connection((host, int(port)), timeout=SECONDS).close()
        except ConnectionRefusedError:
            return False
        return True

    def ended(self) -> int:
        """The exit status, after which nobody listens at its address."""
        status = self.process.wait(SECONDS)
        assert not self.is_up()
        return status


@contextmanager
def demonstrated(tmp_path: Path) -> Iterator[Demo]:
    """A demonstration whose output is a pipe of ours."""
    with (
        (tmp_path / "errors").open("wb") as errors,
        subprocess.Popen(
            [*DEMO, ADDRESS], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        try:
            assert process.stdout is not None
            yield Demo(process, process.stdout.fileno())
        finally:
            process.kill()


def call(demo: Demo, server: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What `assay call` makes of one of its servers."""
    command = [sys.executable, "-m", "assay", "call", f"{demo.url}/{server}/mcp", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
def test_a_signal_ends_all_of_it(sign: signal.Signals, tmp_path: Path) -> None:
    with demonstrated(tmp_path) as demo:
        assert demo.is_up()
        demo.process.send_signal(sign)
        assert demo.ended() == 0


@pytest.mark.parametrize("at", ["call report", "weather again", "What the guard found"])
def test_a_signal_during_the_comparison_ends_it(at: str, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*DEMO, ADDRESS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if at.encode() in line:
                    break
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) in {0, 130}
            assert b"Try it in another window" not in process.stdout.read()
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []


def test_the_commands_that_it_prints_work(tmp_path: Path) -> None:
    with demonstrated(tmp_path) as demo:
        assert "weather(city: string)" in call(demo, "demo").stdout
        good = call(demo, "demo", "weather", '{"city": "Oslo"}')
        assert (good.returncode, good.stdout) == (0, "Sunny in Oslo, 21 °C.\n")
        bad = call(demo, "demo", "weather", '{"city": 5}')
        assert bad.returncode == 1
        assert "expected a string, found 5" in bad.stdout
        crashed = call(demo, "demo", "report")
        assert crashed.returncode == 1
        assert "No answer came" in crashed.stderr
        assets = call(demo, "assets", "list_schemas", "--format", "json")
        assert json.loads(assets.stdout)["result"]["structuredContent"]["tool_id"] == "list_schemas"
        nowhere = call(demo, "nowhere")
        assert nowhere.returncode == 2
        assert "MCP is at /demo/mcp, /assets/mcp" in nowhere.stderr
        root = subprocess.run(
            [sys.executable, "-m", "assay", "call", demo.url],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert root.returncode == 2
        assert "MCP is at /demo/mcp, /assets/mcp" in root.stderr
        demo.process.send_signal(signal.SIGINT)
        assert demo.ended() == 0


def test_it_ends_when_nobody_reads_its_output_any_more(tmp_path: Path) -> None:
    """As with ``make run | head``."""
    with demonstrated(tmp_path) as demo:
        assert demo.process.stdout is not None
        demo.process.stdout.close()
        assert demo.ended() == 0


def test_it_ends_with_its_terminal(tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    with (tmp_path / "errors").open("wb") as errors:
        process = subprocess.Popen(
            # The terminal becomes the controlling one of a session of its own, as in a window.
            [sys.executable, "-c", _IN_A_WINDOW, *DEMO, ADDRESS],
            cwd=tmp_path,
            stdin=terminal,
            stdout=terminal,
            stderr=errors,
            start_new_session=True,
        )
    os.close(terminal)
    with process:
        try:
            demo = Demo(process, controller)
            os.close(controller)
            demo.ended()
        finally:
            process.kill()


_IN_A_WINDOW = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


@pytest.mark.parametrize(
    ("level", "command"),
    [
        pytest.param("", "demo 127.0.0.1:0", id="by-hand"),
        pytest.param("1", "make run ADDRESS=127.0.0.1:0", id="by-make"),
    ],
)
def test_a_port_in_use_names_the_command_to_use(
    level: str, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAKELEVEL", raising=False)
    if level:
        monkeypatch.setenv("MAKELEVEL", level)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["demo", address]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"assay: {address}: Address already in use; to use any free port: ")
    assert command in err


def test_settings_of_the_directory_do_not_change_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "assay.toml").write_text('[guard]\nmode = "audit"\n[guard.policy]\n"syntax/*" = "pass"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--once"]) == 0
    assert "✓ weather, report" in capsys.readouterr().out
    assert [each.name for each in tmp_path.iterdir()] == ["assay.toml"]

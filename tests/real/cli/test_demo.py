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

from kit.command import ASSAY, assay_text, variables_but
from kit.guard_process import SECONDS
from kit.quiet import quiet_host

ADDRESS = f"{quiet_host(3)}:0"
DEMO = [*ASSAY, "demo"]


EXPECTED = (
    "list the tools ✗ no tools: the client",
    "✓ weather, report",
    "✗ connection closed: a line is",
    "✓ Sunny in Paris, 21 °C.",
    "call report ✗ connection closed ✗ No answer came: the server",
    "exited with status 1: RuntimeError: database is",
    "search: quarantined, so that the client can use the rest of the list",
    '`words` must be an object, not "string", at /result/tools/1/inputSchema/properties/words',
    "assay explain protocol/result",
    "weather: the stray line went to stderr, and the result to the client",
    'Not JSON: "weather: cache is warm"',
    "syntax/json",
    "report: the client got an answer, and the server was restarted",
    "| RuntimeError: database is gone",
)


def test_the_comparison_names_every_fault_with_its_rule_at_any_width_and_with_any_settings(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('[guard]\nmode = "audit"\n[guard.policy]\n"syntax/*" = "pass"\n')
    for width in (40, 100):
        done = assay_text("demo", "--once", cwd=tmp_path, COLUMNS=str(width))
        assert done.returncode == 0
        prose = done.stdout.partition("What the guard found")[0].splitlines()[6:]
        assert max(map(len, prose)) <= width
    shown = " ".join(done.stdout.split())
    assert [each for each in EXPECTED if each not in shown] == []
    assert [each.name for each in tmp_path.iterdir()] == ["assay.toml"]


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
        """Whether anything listens at its address."""
        host, port = self.url.removeprefix("http://").split(":")
        try:
            socket.create_connection((host, int(port)), timeout=SECONDS).close()
        except ConnectionRefusedError:
            return False
        return True

    def ended(self) -> int:
        """The exit status, after which nothing listens at its address."""
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


def test_the_commands_that_it_prints_work_and_a_signal_ends_all_of_it(tmp_path: Path) -> None:
    with demonstrated(tmp_path) as demo:

        def call(server: str, *words: str) -> subprocess.CompletedProcess[str]:
            return assay_text("call", f"{demo.url}{server}", *words)

        assert "weather(city: string)" in call("/demo/mcp").stdout
        good = call("/demo/mcp", "weather", '{"city": "Oslo"}')
        assert (good.returncode, good.stdout) == (0, "Sunny in Oslo, 21 °C.\n")
        bad = call("/demo/mcp", "weather", '{"city": 5}')
        assert bad.returncode == 1
        assert "/params/arguments/city: expected a string, found 5" in bad.stdout
        assert "`city` must be a string, not 5" in bad.stderr
        crashed = call("/demo/mcp", "report")
        assert crashed.returncode == 1
        assert "No answer came" in crashed.stderr
        assets = call("/assets/mcp", "list_schemas", "--format", "json")
        assert json.loads(assets.stdout)["result"]["structuredContent"]["tool_id"] == "list_schemas"
        for nowhere in ("/nowhere/mcp", ""):
            assert "MCP is at /demo/mcp, /assets/mcp" in call(nowhere).stderr

        address = demo.url.removeprefix("http://")
        for level, command in (("", f"demo {ADDRESS}\n"), ("1", f"make run ADDRESS={ADDRESS}\n")):
            taken = assay_text("demo", address, **({"MAKELEVEL": level} if level else {}), env=variables_but("MAKE"))
            assert (taken.returncode, taken.stdout) == (2, "")
            assert taken.stderr.startswith(f"assay: {address}: Address already in use; to use any free port: ")
            assert command in taken.stderr

        demo.process.send_signal(signal.SIGINT)
        assert demo.ended() == 0


def test_it_ends_with_its_reader_its_terminal_and_by_a_signal_during_the_comparison(tmp_path: Path) -> None:
    # As with `make run | head`.
    with demonstrated(tmp_path) as demo:
        assert demo.process.stdout is not None
        demo.process.stdout.close()
        assert demo.ended() == 0

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

    (tmp_path / "files").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "files"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*DEMO, ADDRESS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            next(line for line in process.stdout if b"call report" in line)
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) in {0, 130}
            assert b"Try it in another window" not in process.stdout.read()
        finally:
            process.kill()
    assert list((tmp_path / "files").iterdir()) == []


_IN_A_WINDOW = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)

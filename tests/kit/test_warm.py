"""A process that is forked from one with its imports done is the process that a new interpreter would have been."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kit import processes
from kit.warm import TEXT, WarmStart

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere processes start as usual")

SECONDS = 60

ITSELF = """
import json, os, signal, sys, time

def stream(each):
    return [each.encoding, each.errors, each.line_buffering, each.write_through, each.isatty(), each.fileno()]

json.dump(
    {
        "argv": sys.argv,
        "path": sys.path,
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "streams": [stream(each) for each in (sys.stdin, sys.stdout, sys.stderr)],
        "same streams": [sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
        "signals": {each.name: str(signal.getsignal(each)) for each in signal.valid_signals() if each < 32},
        "descriptors": sorted(os.listdir("/proc/self/fd")),
        "zone": time.tzname,
        "leads its session": os.getsid(0) == os.getpid(),
        "flags": list(sys.flags),
        "parent": os.getppid(),
        "main": __name__,
    },
    sys.stdout,
    default=str,
)
sys.stdout.flush()
exec(sys.stdin.read() or "sys.exit(7)")
"""


@pytest.fixture
def script(tmp_path: Path) -> Iterator[list[str]]:
    """Return the command of a program that shows itself and does what it reads; fork it in this test."""
    path = tmp_path / "itself.py"
    path.write_text(ITSELF)
    warm = WarmStart(sys.executable, [str(path)], "json")
    before, processes.WARM = processes.WARM, (warm,)
    try:
        yield [sys.executable, str(path)]
    finally:
        processes.WARM = before
        warm.close()


def ran(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Return what came of *command*."""
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, **options)


def cold(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Return what came of *command* in an interpreter of its own. The option changes nothing but the way it starts."""
    return ran(command, executable=command[0], **options)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="plain"),
        pytest.param({"cwd": "/"}, id="directory"),
        pytest.param({"env": {**os.environ, "TZ": "Asia/Tokyo", "WORD": "wörd\udcff"}}, id="environment"),
        pytest.param({"env": {"PATH": os.environ["PATH"]}}, id="other-environment"),
        pytest.param({"env": {**os.environ, "PYTHONUNBUFFERED": "1"}}, id="unbuffered"),
        pytest.param({"env": {**os.environ, "PYTHONIOENCODING": "latin-1"}}, id="encoding"),
        pytest.param({"start_new_session": True}, id="session"),
    ],
)
def test_it_is_the_same_as_a_new_interpreter(script: list[str], options: dict[str, Any]) -> None:
    # The readline library sets variables for the size of the terminal that Python does not see.
    options = {"env": dict(os.environ), "input": "", **options}
    warm, new = ran([*script, "a", "b c"], **options), cold([*script, "a", "b c"], **options)
    assert json.loads(warm.stdout) == json.loads(new.stdout)
    assert (warm.returncode, warm.stderr) == (new.returncode, new.stderr) == (7, "")


def _read_all(terminal: int) -> bytes:
    """Return what a terminal shows. It gives it in pieces, and an error at its end."""
    pieces = []
    with suppress(OSError):
        while piece := os.read(terminal, 1 << 16):
            pieces.append(piece)
    return b"".join(pieces)


def test_a_terminal_is_one(script: list[str]) -> None:
    shown = []
    for program in (None, script[0]):
        ours, theirs = pty.openpty()
        null = subprocess.DEVNULL
        done = subprocess.run(script, executable=program, stdin=null, stdout=theirs, timeout=SECONDS, check=False)
        os.close(theirs)
        shown.append((done.returncode, json.loads(_read_all(ours))["streams"]))
        os.close(ours)
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    "program",
    [
        "sys.exit()",
        "sys.exit(256 + 3)",
        "sys.exit('not today')",
        "1 / 0",
        "raise KeyboardInterrupt",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "os.kill(os.getpid(), signal.SIGINT)",
        "import atexit; atexit.register(print, 'at exit'); print('last', end='')",
        "import threading; threading.Timer(0.01, print, ['from a thread']).start()",
        "sys.stdout.close()",
        "os._exit(9)",
    ],
)
def test_it_ends_as_a_new_interpreter_does(script: list[str], program: str) -> None:
    warm, new = ran(script, input=program), cold(script, input=program)
    assert warm.returncode == new.returncode
    assert warm.stdout.partition('"main"')[2] == new.stdout.partition('"main"')[2]
    assert warm.stderr.splitlines()[-1:] == new.stderr.splitlines()[-1:]


def test_a_text_is_run_as_by_a_new_interpreter() -> None:
    text = f"{TEXT}import json, sys; print(json.dumps([sys.argv, sys.path, __name__])); sys.exit(4)"
    warm, new = ran([sys.executable, "-c", text, "a"]), cold([sys.executable, "-c", text, "a"])
    assert (warm.returncode, warm.stdout, warm.stderr) == (new.returncode, new.stdout, new.stderr)
    assert warm.returncode == 4


def test_it_gets_descriptors_by_their_number(script: list[str]) -> None:
    readable, writable = os.pipe()
    done = ran(script, input=f"os.write({writable}, b'hello')", pass_fds=[writable])
    os.close(writable)
    assert (done.returncode, os.read(readable, 10)) == (0, b"hello")
    os.close(readable)


def test_it_can_be_awaited_and_killed_and_is_no_longer_there(script: list[str]) -> None:
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        process.send_signal(signal.SIGKILL)
        assert process.wait(SECONDS) == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_a_directory_that_is_missing_is_an_error_as_usual(script: list[str], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ran(script, cwd=tmp_path / "missing")


def test_imports_are_not_counted_as_time_of_the_test(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "slow.py").write_text(f"open({str(pipe)!r}).read()")
    during: list[tuple[float, float]] = []

    def look() -> None:
        # It is open when the module is being imported.
        with pipe.open("w"):
            during.append(signal.getitimer(signal.ITIMER_REAL))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    warm = WarmStart(sys.executable, [], "slow", environment=environment)
    before = signal.getitimer(signal.ITIMER_REAL)
    warm.launcher(environment)
    after = signal.getitimer(signal.ITIMER_REAL)
    warm.close()
    looking.join(SECONDS)
    assert during == [(0.0, 0.0)]
    assert (after[0] > 0) is (before[0] > 0)


# ── started by a process that is not ours ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def launched(script: list[str]) -> list[str]:
    """Return the command of the same program, as another process starts it."""
    [warm] = processes.WARM
    command = [*warm.launcher(os.environ), *script[1:]]
    assert command[1] == "-IS"
    return command


def test_a_launcher_starts_the_same_program(script: list[str], launched: list[str]) -> None:
    options: dict[str, Any] = {"env": {**os.environ, "WORD": "wörd\udcff"}, "input": "", "cwd": "/"}
    warm, new = ran([*launched, "a", "b c"], **options), cold([*script, "a", "b c"], **options)
    shown, expected = json.loads(warm.stdout), json.loads(new.stdout)
    assert shown.pop("parent") != expected.pop("parent")
    assert shown == expected
    assert (warm.returncode, warm.stderr) == (new.returncode, new.stderr) == (7, "")


@pytest.mark.parametrize("program", ["sys.exit(256 + 3)", "1 / 0", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_launcher_ends_as_the_program_does(script: list[str], launched: list[str], program: str) -> None:
    assert ran(launched, input=program).returncode == cold(script, input=program).returncode


def test_a_launcher_passes_signals_on(launched: list[str]) -> None:
    program = b"signal.signal(signal.SIGTERM, lambda *_: sys.exit(11)); print('ready', flush=True); signal.pause()\n"
    with subprocess.Popen(launched, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(program)
        process.stdin.close()
        assert process.stdout.readline().endswith(b"ready\n")
        process.terminate()
        assert process.wait(SECONDS) == 11


def test_a_program_closes_its_streams_and_is_killed_with_its_launcher(launched: list[str]) -> None:
    program = b"os.close(1); os.write(2, b'ready'); signal.pause()\n"
    pipe = subprocess.PIPE
    with subprocess.Popen(launched, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(program)
        process.stdin.close()
        assert process.stdout.read()
        assert process.stderr.read(5) == b"ready"
        process.kill()
        assert process.stderr.read() == b""


def test_with_other_settings_of_the_interpreter_there_is_no_launcher() -> None:
    warm = WarmStart(sys.executable, [])
    assert warm.launcher({**os.environ, "PYTHONIOENCODING": "latin-1"}) == [sys.executable]

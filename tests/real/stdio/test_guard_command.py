"""The command: its options, its exit statuses, and streams that are not what they should be."""

import fcntl
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kit.guard_process import GUARD, INITIALIZED, SECONDS, call, frame_of, guarded, initialize, liar, request, result

SAID = b"".join(frame_of(each) + b"\n" for each in (initialize(), INITIALIZED, request(1, "ping")))


def run(directory: Path, *arguments: str, said: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
    """The command, with everything said at once."""
    return subprocess.run(
        [*GUARD, *arguments], input=said, capture_output=True, cwd=directory, timeout=SECONDS, check=False, **options
    )


# ── what cannot be run ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["./nowhere"], "cannot start ./nowhere: No such file or directory"),
        (["no-such-command"], "cannot start no-such-command: No such file or directory"),
        (["./text"], "cannot start ./text: Permission denied"),
        ([""], "cannot start : "),
    ],
)
def test_a_server_that_cannot_be_started_is_status_2(tmp_path: Path, command: list[str], reason: str) -> None:
    (tmp_path / "text").write_bytes(b"")
    done = run(tmp_path, "--", *command, said=SAID)
    assert (done.returncode, done.stdout) == (2, b"")
    [line] = done.stderr.decode().splitlines()
    assert line.startswith(f"assay: {reason}")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--timeout", "-1"], "expected 0 or more seconds"),
        (["--timeout", "inf"], "expected 0 or more seconds"),
        (["--timeout", "nan"], "expected 0 or more seconds"),
        (["--timeout", "soon"], "soon: expected 0 or more seconds"),
        (["--mode", "loud"], "invalid choice"),
        (["--set", "guard.mode=loud"], 'guard.mode: expected one of audit, enforce, found the string "loud"'),
        (["--set", "guard.mode=enforc"], "did you mean enforce?"),
        (["--set", "guard.timeout=-1"], "timeout must be at least 0"),
        (["--set", "guard.frame_bytes=0"], "frame_bytes, children and children_each at least 1"),
        (["--set", "guard.frame=1"], "did you mean"),
    ],
)
def test_a_slip_is_status_2_and_nothing_is_started(tmp_path: Path, options: list[str], reason: str) -> None:
    done = run(tmp_path, *options, "--", *liar(start=[["tell", "x"]], received=str(tmp_path / "started")))
    assert done.returncode == 2
    assert reason in done.stderr.decode()
    assert not (tmp_path / "started").exists()


def test_without_a_command_there_is_nothing_to_guard(tmp_path: Path) -> None:
    assert run(tmp_path, "--").returncode == 2


# ── options ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_of_the_server_is_left_as_it_is(tmp_path: Path) -> None:
    """Options that look like ours, another `--`, nothing at all."""
    program = "import sys; print(sys.argv[1:], file=sys.stderr)"
    given = ["--mode", "-y", "--", "--quiet", "", "--", "é"]
    done = run(tmp_path, "--quiet", "--", sys.executable, "-c", program, *given)
    assert done.stderr.decode().splitlines()[0] == str(given)


@pytest.mark.parametrize(
    ("options", "variables", "enforced"),
    [
        ([], {}, False),
        (["--mode", "enforce"], {}, True),
        (["--set", "guard.mode=enforce"], {}, True),
        ([], {"ASSAY_GUARD_MODE": "enforce"}, True),
        (["--mode", "audit"], {"ASSAY_GUARD_MODE": "enforce"}, False),
    ],
)
def test_the_mode_comes_from_an_option_a_setting_or_a_variable(
    tmp_path: Path, options: list[str], variables: dict[str, str], enforced: bool
) -> None:
    done = run(tmp_path, *options, "--", *liar(start=[["raw", "banner\n"]]), said=SAID, env={**os.environ, **variables})
    assert (b"banner" in done.stdout) is not enforced


def test_the_server_has_our_environment_and_directory(tmp_path: Path) -> None:
    program = "import os, sys; print(os.getcwd(), os.environ['SOME'], file=sys.stderr)"
    done = run(tmp_path, "--quiet", "--", sys.executable, "-c", program, env={**os.environ, "SOME": "thing"})
    assert done.stderr.decode().splitlines()[0] == f"{tmp_path} thing"


def test_settings_come_from_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('[guard]\nmode = "enforce"\ntimeout = 0.2\nflights = "off"\n')
    with guarded(tmp_path, "--config", "assay.toml", on={"initialize": []}) as one:
        assert one.ask(initialize())["error"]["code"] == -31012


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def shell(directory: Path, redirected: str, said: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The command, its streams redirected as a shell does."""
    command = ["sh", "-c", f'exec "$@" {redirected}', "sh", *GUARD, "--mode", "enforce", "--", *liar()]
    return subprocess.run(command, input=said, capture_output=True, cwd=directory, timeout=SECONDS, check=False)


def test_files_are_streams_too(tmp_path: Path) -> None:
    """Without a newline at the end."""
    (tmp_path / "input").write_bytes(SAID.removesuffix(b"\n"))
    done = shell(tmp_path, "<input >output 2>log")
    assert done.returncode == 0
    assert json.loads((tmp_path / "output").read_bytes().splitlines()[-1]) == result(1, {})
    assert b"0 blocked" in (tmp_path / "log").read_bytes()


@pytest.mark.parametrize("redirected", ["<&-", "<&- 2>&-", "</dev/null", ">&- <&-"])
def test_without_an_input_the_client_has_left(tmp_path: Path, redirected: str) -> None:
    assert shell(tmp_path, redirected).returncode == 0


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "2>/dev/null"])
def test_what_became_of_stderr_is_no_matter(tmp_path: Path, redirected: str) -> None:
    done = shell(tmp_path, redirected, b"hello?\n" + SAID)
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[-1]) == result(1, {})


@pytest.mark.parametrize("redirected", [">&-", ">/dev/null"])
def test_an_output_that_leads_nowhere_is_one(tmp_path: Path, redirected: str) -> None:
    assert shell(tmp_path, redirected, SAID).returncode == 0


def test_a_pipe_is_left_as_it_was_found(tmp_path: Path) -> None:
    """Others may have it, too, and would not know what to do if it did not block."""
    reader, writer = os.pipe()
    try:
        with guarded(tmp_path, streams={"stdout": writer}) as one:
            one.say(initialize())
            os.read(reader, 1 << 16)
            assert fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK
            one.close()
            assert one.ended() == 0
        assert not fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK
    finally:
        os.close(reader)
        os.close(writer)


def test_sockets_are_streams_too(tmp_path: Path) -> None:
    """Some clients have them for pipes. One that closes its half has said all, and still reads."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(SECONDS)
        with guarded(tmp_path, streams={"stdin": theirs, "stdout": theirs, "stderr": subprocess.PIPE}) as one:
            theirs.close()
            ours.sendall(SAID)
            ours.shutdown(socket.SHUT_WR)
            got = b""
            while chunk := ours.recv(1 << 16):
                got += chunk
            assert json.loads(got.splitlines()[-1]) == result(1, {})
            assert one.process.wait(SECONDS) == 0


def test_calls_of_the_shell_are_servers_too(tmp_path: Path) -> None:
    """A wrapper that waits for the real server: a signal for the one is one for both."""
    with guarded(tmp_path, command=["sh", "-c", 'python="$0"; "$python" "$@"; true', *liar()]) as one:
        one.open()
        assert "result" in one.ask(call(1))
        one.process.terminate()
        assert one.ended() == 0

"""The command: how it starts its server, its exit statuses, and streams that are not what they should be."""

import fcntl
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from assay.edges.child import Child, StartError
from kit.command import assay_process
from kit.guard_process import (
    GUARD,
    INITIALIZED,
    SECONDS,
    frame_of,
    guarded,
    hurried,
    initialize,
    request,
    result,
    scripted,
)
from kit.rows import rows

SAID = b"".join(frame_of(each) + b"\n" for each in (initialize(), INITIALIZED, request(1, "ping")))

# ── the server's command ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_server_has_its_command_as_it_is_and_our_environment_and_directory(tmp_path: Path) -> None:
    """Options that look like ours, another `--`, nothing at all."""
    program = "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['SOME'], file=sys.stderr)"
    given = ["--mode", "-y", "--", "--quiet", "", "--", "é"]
    done = assay_process(
        "guard", "--quiet", "--", sys.executable, "-c", program, *given, cwd=tmp_path, env={**os.environ, "SOME": "it"}
    )
    assert done.stderr.decode().splitlines()[0] == f"{given} {tmp_path} it"


def test_a_server_that_cannot_be_started_is_status_2_and_leaves_nothing_open(tmp_path: Path) -> None:
    done = assay_process("guard", "--", "./nowhere", said=SAID, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"assay: cannot start ./nowhere: No such file or directory\n"
    before = os.listdir("/proc/self/fd")
    for command in (["./nowhere"], [""], ["/etc"], ["/etc/passwd"], ["a\0b"]):
        with pytest.raises(StartError, match="cannot start"):
            Child(command)
    assert os.listdir("/proc/self/fd") == before


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("redirected", "answered"),
    [
        # Without a newline at the end.
        ("<input >output 2>log", True),
        ("<input >output 2>&-", True),
        ("<input >output 2>/dev/full", True),
        ("<&- >output 2>&-", False),
        ("</dev/null >output", False),
        ("<input >&-", False),
        ("<input >/dev/null", False),
    ],
)
def test_files_are_streams_and_missing_ones_do_no_harm(tmp_path: Path, redirected: str, answered: bool) -> None:
    """Without an input the client has left; an output that leads nowhere is one; stderr is no matter."""
    (tmp_path / "input").write_bytes(b"hello?\n" + SAID.removesuffix(b"\n"))
    (tmp_path / "output").write_bytes(b"")
    command = ["sh", "-c", f'exec "$@" {redirected}', "sh", *GUARD, "--mode", "enforce", "--", *scripted()]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, timeout=SECONDS, check=False)
    assert done.returncode == 0
    lines = (tmp_path / "output").read_bytes().splitlines()
    assert [json.loads(line) for line in lines[-1:]] == [result(1, {})] * answered


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
            assert one.ended() == 0


# ── peers that do not read ───────────────────────────────────────────────────────────────────────────────────────────


def test_both_sides_writing_at_once_never_wait_for_each_other(tmp_path: Path) -> None:
    """
    A server that writes all of an answer before it reads on, and a client that has more to say than fits anywhere.

    If the guard stopped reading from the server because that does not read, neither would ever go on.
    """
    head = '{"jsonrpc":"2.0","id":$id,"result":{"structuredContent":{"hits":1},"content":[{"type":"text","text":"'
    on = {"tools/call": [["long", head, 300_000, '"}]}}\n']]}
    with guarded(tmp_path, "--mode", "enforce", on=on) as one:
        one.open()
        one.say(*(frame_of(request(number, "tools/call", CALL)) for number in range(40)))
        assert [one.answer()["id"] for _ in range(40)] == list(range(40))


CALL = {"name": "search", "arguments": {"words": "x" * 50_000}}


def test_a_server_that_floods_its_log_is_not_held_up_by_who_does_not_read_it(tmp_path: Path) -> None:
    """Our own stderr is a pipe that is not read; messages go on, and the last words are kept all the same."""
    reader, writer = os.pipe()
    noise = ["often", 5000, "this is no message".ljust(60) + "\n"]
    on = {"ping": [["logs", 2_000_000], noise, ["good"]], "tools/call": [["log", "the end\n"], ["exit", 1]]}
    try:
        soon = hurried({"cli.guard:_LAST_LINES": 0.05})
        with guarded(tmp_path, "--mode", "enforce", guard=soon, on=on, streams={"stderr": writer}) as one:
            one.open()
            assert one.ask(request(1, "ping")) == result(1, {})
            failed = one.ask(request(2, "tools/call", CALL))
            assert failed["error"]["data"]["stderr"][-1] == "the end"
            assert one.ended() == 3
    finally:
        os.close(reader)
        os.close(writer)

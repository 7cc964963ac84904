"""Tests that fail, hang or run where signals are ignored leave no process behind, in a run of pytest of their own."""

import os
import re
import select
import subprocess
import sys
from pathlib import Path

from kit.places import TESTS

SECONDS = 60

FAILING = """
import signal
import subprocess

import pytest

# Both processes ignore polite requests, hold the pipe open and would run for longer than the outer test waits.
STUBBORN = ["sh", "-c", 'trap "" TERM INT HUP; sleep 300 & echo started; wait; sleep 300']


def started():
    process = subprocess.Popen(STUBBORN, stdout=subprocess.PIPE, close_fds=False)
    with process.stdout:
        assert process.stdout.readline() == b"started\\n"
    return process


def test_fails_inside_the_block():
    with started():
        raise AssertionError


def test_fails_and_forgets_the_process():
    started()
    raise AssertionError


@pytest.mark.timeout(1)
def test_waits_for_ever():
    started().wait()


@pytest.mark.timeout(1)
def test_waits_for_ever_in_its_clean_up():
    process = started()
    try:
        process.wait()
    finally:
        process.wait()


def test_signals_have_their_default_effect():
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGPIPE):
        ended = subprocess.run(["sh", "-c", f"kill -{number.value} $$; sleep 30"])
        assert ended.returncode == -number
"""


def test_no_process_survives_a_failed_test_and_signals_are_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "test_failing.py").write_text(FAILING)
    pytest = [sys.executable, "-m", "pytest", "-c", str(TESTS.parent / "pyproject.toml"), "-p", "conftest"]
    # Otherwise it ends by deleting the temporary files of other runs, however many they are.
    pytest.append(f"--basetemp={tmp_path / 'temporary'}")
    readable, writable = os.pipe()
    # As a script starts a background job, and nohup a command.
    done = subprocess.run(
        ["sh", "-c", 'trap "" INT QUIT HUP; exec "$@"', "sh", *pytest, "-p", "no:cacheprovider", "test_failing.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        pass_fds=[writable],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    os.close(writable)
    assert re.search(r"^4 failed, 1 passed", done.stdout, re.MULTILINE), done.stdout + done.stderr
    # The pipe ends when the last process that inherited it has ended.
    assert select.select([readable], [], [], SECONDS)[0]
    assert os.read(readable, 1) == b""
    os.close(readable)

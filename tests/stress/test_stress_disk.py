"""A disk that fills up stops the journal, and nothing else."""

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from stress_server import Server, call, http, initialize, lines_of, recorded, run_in, serving

from kit.http_client import SECONDS

ROOM = 64 << 10
"""Bytes: about seventy calls on record."""

CALLS = 300

Serving = Callable[..., AbstractContextManager[Server]]


@contextmanager
def small_disk(directory: Path, *options: str, **pipes: Any) -> Iterator[Server]:
    """The journal is on a file system of that size, which only the server sees, and which ends with it."""
    wrapper = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    mount = f'mount -t tmpfs -o size={ROOM} none "$0"'
    journal = str(directory / "journal")
    try:
        subprocess.run([*wrapper, mount, journal], check=True, capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nothing can be mounted here")
    with serving(directory, *options, wrapper=[*wrapper, f'{mount} && exec "$@"', journal], **pipes) as server:
        yield server


@contextmanager
def small_file(directory: Path, *options: str, **pipes: Any) -> Iterator[Server]:
    """No file of the server may grow beyond that size."""
    if not hasattr(resource, "prlimit"):
        pytest.skip("nobody can limit another process here")
    with serving(directory, *options, **pipes) as server:
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (ROOM, ROOM))
        yield server


EITHER = pytest.mark.parametrize(
    ("limited", "why"),
    [
        pytest.param(small_disk, "No space left on device", id="disk"),
        pytest.param(small_file, "File too large", id="file"),
    ],
)


@EITHER
def test_a_full_disk_stops_the_journal_and_not_http(tmp_path: Path, limited: Serving, why: str) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    with limited(tmp_path, *http(), "--journal", str(journal)) as server, server.connect() as connection:
        for number in range(CALLS):
            assert connection.ask(call(number)) == number
        lines = stopped(server, journal, why)
        assert server.metric("assay_journal_failures_total") == 2 * CALLS - len(lines) > 0


@EITHER
def test_a_full_disk_stops_the_journal_and_not_stdio(tmp_path: Path, limited: Serving, why: str) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with limited(tmp_path, "--journal", str(journal), **pipes) as server:
        stdin, stdout = server.process.stdin, server.process.stdout
        assert stdin is not None
        assert stdout is not None
        # A few at a time: they are answered and recorded together.
        stdin.write(initialize("open") + b"\n")
        lines_of(stdout, 1)
        for begin in range(0, CALLS, 10):
            stdin.write(b"".join(call(number) + b"\n" for number in range(begin, begin + 10)))
            answers = [json.loads(line) for line in lines_of(stdout, 10).splitlines()]
            assert [each["id"] for each in answers if "result" in each] == list(range(begin, begin + 10))
        stopped(server, journal, why)


def stopped(server: Server, journal: Path, why: str) -> Sequence[bytes]:
    """The log says once that the journal has stopped, which is left with whole lines: these records."""
    # As the server sees it: on its own disk.
    path = run_in(Path(f"/proc/{server.process.pid}/root{journal}"))
    said = path.read_bytes()
    assert ROOM // 2 < len(said) <= ROOM
    assert server.log()[1:] == [f"journal stopped: {journal / path.name}: {why}"]
    command = [sys.executable, "-m", "assay", "journal", "show", "--format", "json", str(path)]
    shown = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)
    records = b"".join(line for line in said.splitlines(keepends=True) if "event" not in json.loads(line))
    assert (shown.returncode, shown.stderr, shown.stdout) == (0, b"", records)
    lines = records.splitlines()
    assert recorded(lines)
    return lines

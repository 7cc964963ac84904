"""`assay check` with other processes: the loss of one loses no finding, and all of them end with the command."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from assay.cli import check
from assay.cli.checking import parallel
from assay.cli.main import main
from kit.archives import archive
from kit.check_formats import outputs, written
from kit.places import GOLDEN

SECONDS = 60

SMALL = """# warm start
import os, signal, sys
from assay.cli import check
from assay.cli.checking import parallel

class Interrupted(parallel.ProcessPoolExecutor):
    def submit(self, *call):
        future = super().submit(*call)
        os.killpg(0, signal.SIGINT)
        return future

if __name__ == "__main__":
    check.SMALL_INPUT = 0
    if sys.argv[1] == "interrupted":
        del sys.argv[1]
        parallel.ProcessPoolExecutor = Interrupted
    from assay.cli.main import main
    sys.exit(main(sys.argv[1:]))
"""
"""A check that shares even the smallest inputs."""


class Losing(ProcessPoolExecutor):
    """A pool that loses a process with its third unit."""

    begun = 0

    def submit(self, *call: Any, **options: Any) -> Any:
        """Begin with a unit."""
        future = super().submit(*call, **options)
        Losing.begun += 1
        if Losing.begun == 3:
            os.kill(next(iter(self._processes)), signal.SIGKILL)
        return future


def test_all_output_is_the_same_although_a_process_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"_AHEAD": 0, "ProcessPoolExecutor": Losing}.items():
        monkeypatch.setattr(parallel, name, value)
    monkeypatch.setattr(check, "SMALL_INPUT", 0)
    files = [str(archive(tmp_path / f"{seed}.jsonl", seed)) for seed in range(5)]
    found = []
    for jobs in ("1", "2"):
        (tmp_path / jobs).mkdir()
        status = main(["check", "--jobs", jobs, *outputs(tmp_path / jobs), *files, str(GOLDEN), "nowhere.jsonl"])
        found.append((status, written(tmp_path / jobs), capsys.readouterr()))
    assert found[0] == found[1]
    assert 3 <= Losing.begun < 6


def test_streams_are_read_by_the_main_process_and_small_inputs_by_no_other(tmp_path: Path) -> None:
    """As in ``assay check a.jsonl <(zcat b.jsonl.gz)``: other processes do not have the descriptor."""
    path, found = archive(tmp_path / "a.jsonl", 1), list[tuple[int, bytes, bytes]]()
    for jobs in ("1", "2"):
        reader, writer = os.pipe()
        os.write(writer, path.read_bytes()[:4000])
        os.close(writer)
        files = [str(path), "-", f"/dev/fd/{reader}"]
        done = subprocess.run(
            [sys.executable, "-c", SMALL, "check", "--jobs", jobs, *files],
            input=path.read_bytes(),
            pass_fds=[reader],
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
        os.close(reader)
        name = f"/dev/fd/{reader}".encode()
        out, errors = (each.replace(name, b"/dev/fd/N") for each in (done.stdout, done.stderr))
        found.append((done.returncode, out, errors))
    assert found[0] == found[1]
    assert b"\n-\n" in found[0][1]
    assert b"/dev/fd/N" in found[0][1]
    code = f"from assay.cli.main import main; main(['check', {str(path)!r}]); import sys; print(*sys.modules)"
    small = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=SECONDS)
    loaded = small.stdout.splitlines()[-1].split()
    assert "assay.cli.checking.evidence" in loaded
    assert not {"multiprocessing", "assay.cli.checking.parallel"} & {*loaded}


def children(pid: int) -> list[int]:
    """Return the processes that *pid* has started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def watched(pids: Sequence[int]) -> list[int]:
    """Return descriptors of processes, which can be read when they have ended."""
    return [os.pidfd_open(pid) for pid in pids]


def all_end(descriptors: Sequence[int]) -> bool:
    """Wait until these processes have ended."""
    try:
        return all(select.select([each], [], [], SECONDS)[0] for each in descriptors)
    finally:
        for each in descriptors:
            os.close(each)


@pytest.mark.skipif(sys.platform != "linux", reason="the processes of another are listed on Linux only")
def test_all_processes_end_with_the_command(tmp_path: Path) -> None:
    """By Ctrl-C, which a terminal sends to all of them, also while they are started; and if the command is killed."""
    # More than a pipe holds, so that the command waits for its reader.
    text = (
        archive(tmp_path / "a.jsonl", 1, conversations=60, is_cut=False).read_bytes().rstrip(b"\n").rsplit(b"\n", 1)[0]
        + b"\n"
    )
    for name in "abc":
        (tmp_path / f"{name}.jsonl").write_bytes(text * 4)
    files = [str(tmp_path / f"{name}.jsonl") for name in "abc"]
    check = ("check", "--jobs", "2", "--all", *files)
    command = [sys.executable, "-c", SMALL]
    begun = subprocess.run(
        [*command, "interrupted", *check], capture_output=True, check=False, timeout=SECONDS, start_new_session=True
    )
    assert (begun.returncode, begun.stdout, begun.stderr) == (130, b"", b"")
    for number in (signal.SIGINT, signal.SIGKILL):
        with subprocess.Popen(
            [*command, *check], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            started = watched(children(process.pid))
            assert len(started) >= 2
            if number == signal.SIGINT:
                os.killpg(process.pid, number)
            else:
                process.kill()
            _, errors = process.communicate(timeout=SECONDS)
            assert all_end(started)
            if number == signal.SIGINT:
                assert (process.returncode, errors) == (130, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no such signals")
def test_a_run_that_is_ended_leaves_no_incomplete_report(tmp_path: Path) -> None:
    """As by ``timeout``, or by a CI job that is cancelled: the earlier report stays, alone."""
    place, fifo = tmp_path / "place", tmp_path / "recording"
    place.mkdir()
    os.mkfifo(fifo)
    page = place / "page.html"
    page.write_text("earlier", encoding="utf-8")
    for number in (signal.SIGTERM, signal.SIGHUP):
        command = [sys.executable, "-m", "assay", "check", "--output", f"html={page}", str(fifo)]
        # The recording is opened when the report is begun.
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process, fifo.open("wb"):
            assert len(list(place.iterdir())) == 2
            process.send_signal(number)
            _, errors = process.communicate(timeout=SECONDS)
        assert (process.returncode, errors) == (128 + number, b"")
        assert list(place.iterdir()) == [page]
        assert page.read_text(encoding="utf-8") == "earlier"

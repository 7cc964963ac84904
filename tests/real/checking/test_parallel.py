"""`assay check --jobs`: other processes change nothing but the time, and the loss of one loses no finding."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import pytest

from assay.cli.checking import parallel, work
from assay.cli.checking.check_stream import StreamItem, UnitEnd
from assay.cli.checking.check_terms import CheckTerms
from assay.cli.checking.evidence_files import Piece
from assay.cli.checking.work import WorkUnit
from assay.cli.main import main
from assay.cli.reports.check_findings import CheckedMessage
from assay.settings import Settings
from kit.archives import archive
from kit.check_formats import outputs, written
from kit.places import TESTS

TERMS = CheckTerms(Settings())
SECONDS = 60
SIZE = 1 << 50
"""Bytes of a unit, if its size is asked for."""


class Lines:
    """A digest with the lines of all messages, which fails in a file with another process."""

    def __init__(self, fault: str = "", file: str = "") -> None:
        self.fault, self.file = fault, file
        self.lines: list[int] = []

    def add(self, message: CheckedMessage) -> None:
        """Keep one line."""
        self.lines.append(message.judged.line)
        if message.file == self.file and len(self.lines) == 20 and parent_process() is not None:
            if self.fault == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise MemoryError if self.fault == "memory" else KeyError(self.fault)

    def merge(self, other: "Lines") -> None:
        """Add the lines of *other*."""
        self.lines += other.lines


def units(place: Path, count: int) -> list[WorkUnit]:
    """Return so many recordings as units, which are shown as a, b, c …"""
    paths = [archive(place / f"{seed}.jsonl", seed, conversations=12) for seed in range(count)]
    return [WorkUnit(str(each), str(each), "abcdefgh"[index], size=SIZE) for index, each in enumerate(paths)]


def listed(results: Iterable[Iterator[StreamItem]]) -> list[Any]:
    """Return the findings and the lines of each unit."""
    found = []
    for each in results:
        *messages, end = each
        assert isinstance(end, UnitEnd)
        texts = [str(each.findings) for each in messages if isinstance(each, CheckedMessage)]
        found.append((texts, end.good, [digest.lines for digest in end.digests if isinstance(digest, Lines)]))
    return found


def here(terms: CheckTerms, given: Sequence[WorkUnit]) -> list[Any]:
    """Return what this process finds in the units."""
    return listed(work.results_of(terms, each, lambda _: None) for each in given)


def elsewhere(terms: CheckTerms, given: Sequence[WorkUnit], tick: work.Tick = lambda _: None) -> list[Any]:
    """Return what two other processes find in the units."""
    return listed(parallel.results_elsewhere(terms, given, tick, 2, None))


@pytest.mark.parametrize("fault", ["", "killed", "memory"])
def test_nothing_is_lost_with_a_process(tmp_path: Path, fault: str) -> None:
    """Its file, and all files that are not finished, are judged in this process."""
    ticks: list[int] = []
    terms, given = replace(TERMS, digests=(partial(Lines, fault, "c" if fault else ""),)), units(tmp_path, 5)
    assert elsewhere(terms, given, ticks.append) == here(terms, given)
    # The bytes of a file that another process has judged are reported at once.
    assert ticks == [SIZE] * 5 if not fault else ticks.count(SIZE) < 5 < len(ticks)


def test_a_fault_of_ours_is_raised_with_its_traceback(tmp_path: Path) -> None:
    terms = replace(TERMS, digests=(partial(Lines, "a bug", "b"),))
    with pytest.raises(KeyError, match="a bug") as caught:
        elsewhere(terms, units(tmp_path, 3))
    assert ", in add\n" in str(caught.value.__cause__)


class Counting(ProcessPoolExecutor):
    """A pool that counts its units, and loses a process with one of them."""

    begun = 0
    lost_at = 0

    def submit(self, *call: Any, **options: Any) -> Any:
        """Begin with a unit."""
        future = super().submit(*call, **options)
        Counting.begun += 1
        if Counting.begun == Counting.lost_at:
            os.kill(next(iter(self._processes)), signal.SIGKILL)
        return future


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> type[Counting]:
    """Count the units of a run that begins with two of them at a time, for each process."""
    monkeypatch.setattr(Counting, "begun", 0)
    monkeypatch.setattr(Counting, "lost_at", 0)
    monkeypatch.setattr(parallel, "_AHEAD", 0)
    monkeypatch.setattr(parallel, "ProcessPoolExecutor", Counting)
    return Counting


def test_no_unit_is_begun_far_ahead_of_the_reader(tmp_path: Path, counting: type[Counting]) -> None:
    """The results of each unit that is begun are kept until they are read."""
    given = units(tmp_path, 8)
    for index, results in enumerate(parallel.results_elsewhere(TERMS, given, lambda _: None, 1, None)):
        assert len([*results]) > 1
        assert counting.begun <= index + 2
    assert counting.begun == 8


class Late(ProcessPoolExecutor):
    """A pool that gets its unit just when it loses a process, and never does it."""

    def submit(self, *call: Any, **options: Any) -> Any:
        """Begin with a unit."""
        super().submit(*call, **options)
        os.kill(next(iter(self._processes)), signal.SIGKILL)
        deadline = time.monotonic() + SECONDS
        while not self._broken and time.monotonic() < deadline:
            time.sleep(0.01)
        return Future()


def test_a_unit_that_is_begun_while_a_process_dies_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool of Python 3.11 forgets it."""
    monkeypatch.setattr(parallel, "ProcessPoolExecutor", Late)
    given = units(tmp_path, 2)
    assert elsewhere(TERMS, given) == here(TERMS, given)


@pytest.mark.parametrize("error", [OSError, NotImplementedError])
def test_a_system_without_pools_judges_in_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """As a sandbox without semaphores."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(parallel, "ProcessPoolExecutor", fail)
    given = units(tmp_path, 2)
    assert elsewhere(TERMS, given) == here(TERMS, given)


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share even the smallest inputs."""
    monkeypatch.setattr(work, "SMALL_INPUT", 0)


def checked(place: Path, jobs: int, *arguments: str) -> Any:
    """Run `assay check` with this number of processes, and return all that it writes."""
    place.mkdir()
    status = main(["check", "--jobs", str(jobs), *outputs(place), *arguments])
    return status, written(place)


@pytest.mark.timeout(240)  # It has much to do, and other tests run beside it.
@pytest.mark.usefixtures("small")
def test_all_output_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for seed in range(3):
        archive(inputs / f"{seed}.jsonl", seed, conversations=12)
    (inputs / "broken.jsonl").write_bytes((inputs / "0.jsonl").read_bytes()[:12_000] + b"\nno row\n{}\n")
    (inputs / "empty.jsonl").touch()
    golden = str(TESTS / "data" / "golden.jsonl")
    files = [str(inputs), golden, "nowhere.jsonl", str(tmp_path / "*.none")]
    baseline = str(tmp_path / "baseline.json")
    assert main(["check", "--write-baseline", baseline, str(inputs / "0.jsonl")]) in {0, 2}
    capsys.readouterr()
    for name, options in {
        "plain": (),
        "all": ("--all",),
        "messages": ("--messages",),
        "known": ("--baseline", baseline, "--fail-on", "refuse"),
    }.items():
        one = checked(tmp_path / f"{name}1", 1, *options, *files), capsys.readouterr()
        assert (checked(tmp_path / f"{name}2", 2, *options, *files), capsys.readouterr()) == one, name


@pytest.mark.usefixtures("small")
def test_standard_input_is_read_by_the_main_process(tmp_path: Path) -> None:
    path, other = archive(tmp_path / "a.jsonl", 1), archive(tmp_path / "b.jsonl", 2)
    found = []
    for jobs in ("1", "2"):
        command = [sys.executable, "-c", _SMALL, "check", "--jobs", jobs, str(path), "-", str(other)]
        done = subprocess.run(command, input=path.read_bytes(), capture_output=True, check=False)
        found.append((done.returncode, done.stdout, done.stderr))
    assert found[0] == found[1]
    assert b"\n-\n" in found[0][1]


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="the system has no names for descriptors")
def test_a_pipe_of_the_shell_is_read_by_the_main_process(tmp_path: Path) -> None:
    """As in ``assay check a.jsonl <(zcat b.jsonl.gz)``: other processes do not have the descriptor."""
    path = archive(tmp_path / "a.jsonl", 1)
    found = []
    for jobs in ("1", "2"):
        reader, writer = os.pipe()
        os.write(writer, path.read_bytes()[:4000])
        os.close(writer)
        command = [sys.executable, "-c", _SMALL, "check", "--jobs", jobs, str(path), f"/dev/fd/{reader}"]
        done = subprocess.run(command, pass_fds=[reader], capture_output=True, check=False, timeout=60)
        os.close(reader)
        found.append((done.returncode, done.stdout.replace(str(reader).encode(), b"N"), done.stderr.count(b"No such")))
    assert found[0] == found[1]
    assert b"/dev/fd/N" in found[0][1]


_SMALL = """
import sys
from assay.cli.checking import work
if __name__ == "__main__":
    work.SMALL_INPUT = 0
    from assay.cli.main import main
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("lost_at", [1, 3])
@pytest.mark.usefixtures("small")
def test_all_output_is_the_same_although_a_process_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], counting: type[Counting], lost_at: int
) -> None:
    """At the beginning, and in the middle of the work."""
    files = [str(archive(tmp_path / f"{seed}.jsonl", seed, conversations=20)) for seed in range(6)]
    one = checked(tmp_path / "one", 1, *files), capsys.readouterr()
    assert counting.begun == 0
    counting.lost_at = lost_at
    assert (checked(tmp_path / "two", 2, *files), capsys.readouterr()) == one
    assert lost_at <= counting.begun < 6


_IDLE = """
import sys, time
from assay.cli.checking import parallel, work
from assay.cli.checking.check_terms import CheckTerms
from assay.settings import Settings

units = [work.WorkUnit(each, each, each) for each in sys.argv[1:]]
for results in parallel.results_elsewhere(CheckTerms(Settings()), units, print, 2, None):
    print(len([*results]), flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the processes of another are listed on Linux only")
def test_processes_end_with_the_main_process(tmp_path: Path) -> None:
    """Also if it is killed: they do not wait for the next unit for ever."""
    files = [each.path for each in units(tmp_path, 4)]
    with subprocess.Popen([sys.executable, "-c", _IDLE, *files], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        started = children(process.pid)
        process.kill()
        process.wait()
        assert not left_of(started)
    assert len(started) >= 2


def test_small_inputs_stay_in_one_process(tmp_path: Path) -> None:
    """Nothing of multiprocessing is imported for them."""
    path = archive(tmp_path / "a.jsonl", 1)
    code = f"from assay.cli.main import main; main(['check', {str(path)!r}]); import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "assay.cli.checking.work" in loaded
    assert not {"multiprocessing", "assay.cli.checking.parallel"} & {*loaded}


@pytest.mark.usefixtures("small")
def test_one_process_is_enough_for_one_file(tmp_path: Path) -> None:
    path = str(archive(tmp_path / "a.jsonl", 1))
    [unit] = work.units_of([Piece(path)], lambda name: (name, False), is_absolute=False)
    assert not work.is_for_many([unit], 2)
    assert not work.is_for_many([unit, unit._replace(error="No such file or directory")], 2)
    assert not work.is_for_many([unit, unit], 1)
    assert work.is_for_many([unit, unit], 2)


@pytest.mark.parametrize("count", [1, 3])
def test_an_interrupt_ends_all_processes_without_a_traceback(tmp_path: Path, count: int) -> None:
    """The terminal sends it to all processes at once, also while they are started. One of them is multiprocessing's."""
    rows = tmp_path / "long.jsonl"
    archive(rows, 1, conversations=60, is_cut=False)
    text = rows.read_bytes().rstrip(b"\n").rsplit(b"\n", 1)[0] + b"\n"
    for name in ("a.jsonl", "b.jsonl", "c.jsonl"):
        (tmp_path / name).write_bytes(text * 60)
    files = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl", "c.jsonl")]
    command = [sys.executable, "-c", _SMALL, "check", "--jobs", "2", "--all", *files]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        deadline = time.monotonic() + SECONDS
        while len(children(process.pid)) < count and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
        started = children(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (130, b"")
    assert started
    assert not left_of(started)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.skipif(sys.platform == "win32", reason="the system has no such signals")
def test_a_run_that_is_ended_leaves_no_incomplete_report(tmp_path: Path, name: str) -> None:
    """As by ``timeout``, or by a CI job that is cancelled: the earlier report stays, alone."""
    number, page = getattr(signal, name), tmp_path / "page.html"
    page.write_text("earlier", encoding="utf-8")
    command = [sys.executable, "-m", "assay", "check", "--output", f"html={page}", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + SECONDS
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
        assert len(list(tmp_path.iterdir())) == 2
        process.send_signal(number)
        _, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (128 + number, b"")
    assert list(tmp_path.iterdir()) == [page]
    assert page.read_text(encoding="utf-8") == "earlier"


def children(pid: int) -> list[int]:
    """Return the processes that *pid* has started."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in path.read_text().split()] if path.exists() else []


def state(pid: int) -> str:
    """Return the state of a process; Z if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def left_of(pids: Sequence[int]) -> list[int]:
    """Wait until these processes have ended; return those that have not."""
    deadline = time.monotonic() + SECONDS
    while (left := [pid for pid in pids if state(pid) != "Z"]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def test_a_number_of_processes_is_at_least_one(capsys: pytest.CaptureFixture[str]) -> None:
    for given in ("0", "-1", "many"):
        with pytest.raises(SystemExit):
            main(["check", "--jobs", given, "x"])
        assert "expected a number of processes, at least 1" in capsys.readouterr().err

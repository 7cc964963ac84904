"""`assay check --jobs`: other processes change nothing but the time, and the loss of one loses no finding."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import pytest

from assay.cli.checking import local_workers, work_plan
from assay.cli.checking.check_terms import CheckTerms
from assay.cli.checking.executors import InOneProcess
from assay.cli.checking.local_workers import LocalWorkers, WorkerError, may_fork
from assay.cli.main import main
from assay.settings import Settings
from kit.archives import archive
from kit.check_formats import outputs, written

TERMS = CheckTerms(Settings())
SECONDS = 60


class Doing(NamedTuple):
    """A unit that yields numbers, and may fail before it has yielded all of them."""

    numbers: int
    marks: str = ""
    """A directory in which each try leaves a file."""
    deaths: int = 0
    """How many times the process is killed in the middle."""
    fault: str = ""
    path: str = "a"

    def results(self, _: Any, tick: Any) -> Iterator[Any]:
        """Yield the numbers."""
        tries = 0
        if self.marks:
            tries = len(os.listdir(self.marks))
            Path(self.marks, f"{self.numbers}-{tries}-{os.getpid()}").touch()
        for number in range(self.numbers):
            if number == self.numbers // 2:
                if tries < self.deaths:
                    os.kill(os.getpid(), signal.SIGKILL)
                if self.fault == "memory":
                    raise MemoryError
                if self.fault:
                    raise KeyError(self.fault)
            yield number
        tick(self.numbers)


def test_results_come_in_order_and_progress_is_summed_up() -> None:
    ticks: list[int] = []
    with LocalWorkers(TERMS, ticks.append, 2) as workers:
        found = [[*each] for each in workers.map([Doing(count) for count in (1000, 3, 0, 700)])]
    assert found == [[*range(count)] for count in (1000, 3, 0, 700)]
    assert sum(ticks) == 1703


@pytest.mark.parametrize("deaths", [1, 2, 3])
def test_a_unit_whose_process_is_killed_is_done_again(tmp_path: Path, deaths: int) -> None:
    """After three processes it is done in this one, which the unit does not kill then."""
    with LocalWorkers(TERMS, lambda _: None, 2) as workers:
        found = [[*each] for each in workers.map([Doing(600, str(tmp_path), deaths), Doing(4)])]
    assert found == [[*range(600)], [*range(4)]]
    tries = sorted(tmp_path.iterdir(), key=lambda path: int(path.name.split("-")[1]))
    assert len(tries) == deaths + 1
    assert (tries[-1].name.split("-")[2] == str(os.getpid())) is (deaths == 3)


def test_a_unit_without_memory_is_done_in_this_process_at_last(tmp_path: Path) -> None:
    with LocalWorkers(TERMS, lambda _: None, 1) as workers:
        [results] = workers.map([Doing(10, str(tmp_path), fault="memory")])
        with pytest.raises(MemoryError):
            list(results)
    assert len([*tmp_path.iterdir()]) == 4


def test_a_fault_of_ours_is_raised_with_its_traceback() -> None:
    with LocalWorkers(TERMS, lambda _: None, 1) as workers:
        results = workers.map([Doing(10, fault="a bug")])
        with pytest.raises(WorkerError, match="KeyError: 'a bug'"):
            next(results)


@pytest.mark.parametrize("jobs", [1, 3])
def test_no_unit_is_begun_far_ahead_of_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    """The results of each unit that is begun are kept until they are read."""
    monkeypatch.setattr(local_workers, "AHEAD", 4)
    with LocalWorkers(TERMS, lambda _: None, jobs) as workers:
        for index, results in enumerate(workers.map([Doing(30 + each, str(tmp_path)) for each in range(20)])):
            assert [*results] == [*range(30 + index)]
            assert len([*tmp_path.iterdir()]) <= index + 4
    assert len([*tmp_path.iterdir()]) == 20


def test_a_process_with_another_thread_is_not_forked() -> None:
    """The copy would have the locks of the thread, and not the thread."""
    ended = Event()
    thread = Thread(target=ended.wait)
    thread.start()
    try:
        assert not may_fork()
    finally:
        ended.set()
        thread.join()


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share even the smallest inputs."""
    monkeypatch.setattr(work_plan, "SMALL_INPUT", 0)


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
    golden = str(Path(__file__).parents[1] / "journal" / "golden.jsonl")
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
from assay.cli.checking import work_plan
if __name__ == "__main__":
    work_plan.SMALL_INPUT = 0
    from assay.cli.main import main
    sys.exit(main(sys.argv[1:]))
"""

METHODS = ["spawn", *(["fork"] if sys.platform == "linux" else [])]
"""How processes are started."""

_SHARED = """
import atexit, os, signal, sys
from assay.cli.checking import local_workers, work_plan
if __name__ == "__main__":
    work_plan.SMALL_INPUT = 0
    method, marks, kill = sys.argv[1:4]
    if method == "spawn":
        local_workers.may_fork = lambda: False
    contexts = local_workers.get_context
    def context(name):
        open(os.path.join(marks, name), "w").close()
        return contexts(name)
    class Losing(local_workers.LocalWorkers):
        def map(self, units):
            begun = super().map(units)
            os.kill(self._workers[-1].process.pid, signal.SIGKILL)
            open(os.path.join(marks, "killed"), "w").close()
            return begun
    if kill == "kill":
        local_workers.LocalWorkers = Losing
    local_workers.get_context = context
    atexit.register(print, "<after>")
    # Not flushed yet when processes are started.
    print("<before>", end="")
    from assay.cli.main import main
    sys.exit(main(sys.argv[4:]))
"""


class Ran(NamedTuple):
    """What came of a command."""

    status: int
    output: bytes
    errors: bytes
    files: dict[str, str]


def ran(place: Path, method: str, jobs: int, files: list[Path], *, kill: bool = False) -> Ran:
    """Run `assay check` with every report; *kill* one of its processes."""
    place.mkdir()
    marks = place / "marks"
    marks.mkdir()
    given = ["check", "--jobs", str(jobs), *outputs(place), *map(str, files)]
    command = [sys.executable, "-c", _SHARED, method, str(marks), "kill" if kill else "", *given]
    done = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)
    if jobs > 1:
        assert {each.name for each in marks.iterdir()} >= {method, *(["killed"] if kill else [])}
    return Ran(done.returncode, done.stdout, done.stderr, written(place))


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Ran]:
    """Some recordings, and what comes of them without other processes."""
    place = tmp_path_factory.mktemp("files")
    files = [archive(place / f"{seed}.jsonl", seed, conversations=20) for seed in range(5)]
    return files, ran(place / "one", METHODS[0], 1, files)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kill", [False, True])
def test_files_in_other_processes_change_nothing(
    in_one_process: tuple[list[Path], Ran], tmp_path: Path, method: str, kill: bool
) -> None:
    """Forked or not, and if one of them is lost. What was printed before is printed once."""
    files, one = in_one_process
    assert one.output.startswith(b"<before>")
    assert one.output.count(b"<before>") == one.output.count(b"<after>\n") == 1
    assert one.status == 1
    assert len(one.files) > 5
    assert ran(tmp_path / "two", method, 2, files, kill=kill) == one


_IDLE = """
import sys, time
from assay.cli.checking.check_terms import CheckTerms
from assay.cli.checking.local_workers import LocalWorkers
from assay.settings import Settings

class Quick:
    path = "a"
    def results(self, terms, tick):
        yield 1

with LocalWorkers(CheckTerms(Settings()), print, 3) as workers:
    print([[*each] for each in workers.map([Quick()] * 9)], flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_forked_processes_end_with_the_main_process() -> None:
    """None of them keeps a pipe of another one open, which would wait for the next unit for ever."""
    with subprocess.Popen([sys.executable, "-c", _IDLE], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        started = children(process.pid)
        process.kill()
        process.wait()
        deadline = time.monotonic() + SECONDS
        while (left := [pid for pid in started if state(pid) != "Z"]) and time.monotonic() < deadline:
            time.sleep(0.02)
    assert len(started) == 3
    assert not left


def test_small_inputs_stay_in_one_process(tmp_path: Path) -> None:
    """Nothing of multiprocessing is imported for them."""
    path = archive(tmp_path / "a.jsonl", 1)
    code = f"from assay.cli.main import main; main(['check', {str(path)!r}]); import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "assay.cli.checking.executors" in loaded
    assert not {"multiprocessing", "assay.cli.checking.local_workers"} & {*loaded}


def test_one_process_is_enough_for_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_plan, "SMALL_INPUT", 0)
    [work] = work_plan.works_of([work_plan_piece(archive(tmp_path / "a.jsonl", 1))], lambda name: (name, False))
    assert isinstance(work_plan.executor_of(TERMS, [work], lambda _: None, 2), InOneProcess)
    gone = replace(work, error="No such file or directory")
    assert isinstance(work_plan.executor_of(TERMS, [work, gone], lambda _: None, 2), InOneProcess)
    assert isinstance(work_plan.executor_of(TERMS, [work, work], lambda _: None, 1), InOneProcess)
    assert isinstance(work_plan.executor_of(TERMS, [work, work], lambda _: None, 2), LocalWorkers)


def work_plan_piece(path: Path) -> Any:
    """The piece of a file."""
    from assay.cli.checking.evidence_files import Piece

    return Piece(str(path))


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_ends_all_processes_without_a_traceback(tmp_path: Path, method: str) -> None:
    """The terminal sends it to all processes at once."""
    rows = tmp_path / "long.jsonl"
    archive(rows, 1, conversations=60, is_cut=False)
    text = rows.read_bytes().rstrip(b"\n").rsplit(b"\n", 1)[0] + b"\n"
    for name in ("a.jsonl", "b.jsonl", "c.jsonl"):
        (tmp_path / name).write_bytes(text * 60)
    files = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl", "c.jsonl")]
    forks = (
        "" if method == "fork" else "from assay.cli.checking import local_workers as l; l.may_fork = lambda: False\n"
    )
    command = [sys.executable, "-c", forks + _SMALL, "check", "--jobs", "2", "--all", *files]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        deadline = time.monotonic() + SECONDS
        while len(children(process.pid)) < 2 and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
        started = children(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (130, b"")
    assert started
    # One of them is multiprocessing's own, which ends by itself.
    deadline = time.monotonic() + SECONDS
    while (left := [pid for pid in started if state(pid) != "Z"]) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left


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


def test_a_number_of_processes_is_at_least_one(capsys: pytest.CaptureFixture[str]) -> None:
    for given in ("0", "-1", "many"):
        with pytest.raises(SystemExit):
            main(["check", "--jobs", given, "x"])
        assert "expected a number of processes, at least 1" in capsys.readouterr().err

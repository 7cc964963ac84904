"""`assay check --jobs`: other processes change nothing but the time, and the loss of one loses no finding."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any, NamedTuple

import pytest

from assay.cli.checking import work_plan
from assay.cli.checking.check_terms import CheckTerms
from assay.cli.checking.executors import InOneProcess
from assay.cli.checking.local_workers import LocalWorkers, WorkerError, may_fork
from assay.cli.main import main
from assay.cli.reports.report_options import FORMATS
from assay.settings import Settings
from assay.spec.extensions.official import OFFICIAL
from kit.archives import archive, split_small_files
from kit.check_formats import outputs, written
from kit.guarded import guarded_rows, plain_rows

TERMS = CheckTerms(Settings(), OFFICIAL)
SECONDS = 60


class Doing(NamedTuple):
    """A unit that yields numbers, and may fail before it has yielded all of them."""

    numbers: int
    marks: str = ""
    """A directory in which each try leaves a file."""
    deaths: int = 0
    """How many times the process is killed in the middle."""
    fault: str = ""

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
        assert workers.start([Doing(count) for count in (1000, 3, 0, 700)]) == 0
        assert [[*workers.stream(index)] for index in range(4)] == [[*range(count)] for count in (1000, 3, 0, 700)]
        assert workers.start([Doing(5)]) == 4
        assert [*workers.stream(4)] == [*range(5)]
    assert sum(ticks) == 1708


@pytest.mark.parametrize("deaths", [1, 2, 3])
def test_a_unit_whose_process_is_killed_is_done_again(tmp_path: Path, deaths: int) -> None:
    """After three processes it is done in this one, which the unit does not kill then."""
    with LocalWorkers(TERMS, lambda _: None, 2) as workers:
        workers.start([Doing(600, str(tmp_path), deaths), Doing(4)])
        assert [*workers.stream(0)] == [*range(600)]
        assert [*workers.stream(1)] == [*range(4)]
    tries = sorted(tmp_path.iterdir(), key=lambda path: int(path.name.split("-")[1]))
    assert len(tries) == deaths + 1
    assert (tries[-1].name.split("-")[2] == str(os.getpid())) is (deaths == 3)


def test_a_unit_without_memory_is_done_in_this_process_at_last(tmp_path: Path) -> None:
    with LocalWorkers(TERMS, lambda _: None, 1) as workers:
        workers.start([Doing(10, str(tmp_path), fault="memory")])
        with pytest.raises(MemoryError):
            [*workers.stream(0)]
    assert len([*tmp_path.iterdir()]) == 4


def test_a_fault_of_ours_is_raised_with_its_traceback() -> None:
    with LocalWorkers(TERMS, lambda _: None, 1) as workers:
        workers.start([Doing(10, fault="a bug")])
        with pytest.raises(WorkerError, match="KeyError: 'a bug'"):
            workers.stream(0)


class Endless(NamedTuple):
    """A unit that reads for ever."""

    marks: str

    def results(self, _: Any, tick: Any) -> Iterator[Any]:
        """Yield numbers."""
        Path(self.marks, str(os.getpid())).touch()
        for number in count():
            tick(1 << 16)
            yield number


def test_the_first_unit_that_is_done_is_known_before_its_results_are_read(tmp_path: Path) -> None:
    with LocalWorkers(TERMS, lambda _: None, 2) as workers:
        workers.start([Endless(str(tmp_path)), Doing(600), Doing(3)])
        assert workers.ended({0, 1, 2}) == (1, 599)
        assert workers.ended({0, 2}) == (2, 2)
        assert [*workers.stream(1)] == [*range(600)]
        assert [*workers.stream(2)] == [*range(3)]


def test_a_unit_that_no_process_survives_is_known_as_well(tmp_path: Path) -> None:
    with LocalWorkers(TERMS, lambda _: None, 1) as workers:
        workers.start([Doing(600, str(tmp_path), 3)])
        assert workers.ended({0}) == (0, 599)
        assert [*workers.stream(0)] == [*range(600)]


def test_units_that_are_dropped_make_room_for_others(tmp_path: Path) -> None:
    """The processes go on with the next units at once, and none of them is started again."""
    with LocalWorkers(TERMS, lambda _: None, 2) as workers:
        workers.start([Doing(2), Endless(str(tmp_path)), Endless(str(tmp_path)), Endless(str(tmp_path))])
        assert workers.ended({0, 1, 2, 3}) == (0, 1)
        deadline = time.monotonic() + SECONDS
        while len([*tmp_path.iterdir()]) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        busy = {int(path.name) for path in tmp_path.iterdir()}
        workers.drop(range(4))
        first = workers.start([Doing(5), Doing(6)])
        assert [*workers.stream(first)] == [*range(5)]
        assert [*workers.stream(first + 1)] == [*range(6)]
        assert busy == {each.process.pid for each in workers._workers}


def test_units_that_are_started_later_are_done_first(tmp_path: Path) -> None:
    (tmp_path / "order").mkdir()
    with LocalWorkers(TERMS, lambda _: None, 1) as workers:
        workers.start([Endless(str(tmp_path)), Doing(1, str(tmp_path / "order"))])
        assert workers.start([Doing(2, str(tmp_path / "order"))]) == 2
        workers.drop({0})
        assert [[*workers.stream(1)], [*workers.stream(2)]] == [[0], [0, 1]]
    assert sorted(path.name[:3] for path in (tmp_path / "order").iterdir()) == ["1-1", "2-0"]


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
    split_small_files(monkeypatch)


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
def test_files_are_split_into_ranges_or_in_another_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second file has a session that is too long for ranges, and the third one a row of an unknown conversation."""
    plain = plain_rows(200, 4)
    sent = plain[3].replace(":1,", ":999,", 1)
    files = []
    for name, rows in {
        "a": plain,
        "b": [plain[0], plain[1].replace(":1,", ":999,", 1), *plain[1:-1], sent, plain[-1]],
        "c": [*plain[:-9], sent, *plain[-9:]],
        "d": plain,
    }.items():
        files.append(str(tmp_path / name))
        Path(files[-1]).write_text("\n".join([*rows, ""]))
    assert main(["check", "--jobs", "1", *files]) == 1
    one = capsys.readouterr()
    assert main(["check", "--jobs", "2", *files]) == 1
    assert capsys.readouterr() == one
    ticks: list[int] = []
    works = work_plan.works_of([work_plan_piece(Path(file)) for file in files], lambda name: (name, False))
    with LocalWorkers(TERMS, ticks.append, 2) as workers:
        plan = work_plan.WorkPlan(TERMS, works, workers, 2)
        plan.begin()
        assert all(work.ranges for work in works)
        for work in works:
            assert list(plan.stream(work))
    assert [bool(work.ranges) for work in works] == [True, False, False, True]
    assert [bool(work.units) for work in works] == [False, True, True, False]
    # The shares of the parts of a file are rounded.
    assert sum(work.size for work in works) - 200 < sum(ticks) <= sum(work.size for work in works)


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

_RANGED = """
import atexit, os, signal, sys
from assay.cli.checking import local_workers, range_units, stream_merge, work_plan
if __name__ == "__main__":
    work_plan.SMALL_INPUT = work_plan.SPLIT_FILE = 0
    range_units.SMALLEST_RANGE = range_units.LEAST_BEHIND = 30_000
    method, marks, kill = sys.argv[1:4]
    if method == "spawn":
        local_workers.may_fork = lambda: False
    contexts, put = local_workers.get_context, stream_merge.put_together
    def marked(name, function):
        def call(*given):
            open(os.path.join(marks, name(*given)), "w").close()
            return function(*given)
        return call
    class Losing(local_workers.LocalWorkers):
        def start(self, units):
            started, mark = super().start(units), os.path.join(marks, "killed")
            if not os.path.exists(mark):
                os.kill(self._workers[-1].process.pid, signal.SIGKILL)
                open(mark, "w").close()
            return started
    if kill == "kill":
        local_workers.LocalWorkers = Losing
    local_workers.get_context = marked(lambda name: name, contexts)
    stream_merge.put_together = marked(lambda *_: "put together", put)
    atexit.register(print, "<after>")
    # Not flushed yet when processes are started.
    print("<before>", end="")
    from assay.cli.main import main
    sys.exit(main(sys.argv[4:]))
"""


def guarded_file(path: Path, talks: int) -> Path:
    """Write a recording of a guard that can be judged in ranges."""
    rows = guarded_rows(Random(9), talks, strange=0)  # noqa: S311 - no secret
    # Without lists: a call before its list is judged by line numbers, which a range does not know.
    text = "".join(f"{row}\n" for row in rows if "inputSchema" not in row)
    path.write_text(text, encoding="utf-8")
    return path


class Ran(NamedTuple):
    """What came of a command."""

    status: int
    output: bytes
    errors: bytes
    files: dict[str, str]


def ran(place: Path, method: str, jobs: int, path: Path, *, kill: bool = False) -> Ran:
    """Run `assay check` in ranges, with every report that does not need every message; *kill* one of its processes."""
    place.mkdir()
    marks = place / "marks"
    marks.mkdir()
    formats = [word for name in FORMATS if name != "html" for word in ("--output", f"{name}={place / name}")]
    given = ["check", "--jobs", str(jobs), *formats, str(path)]
    command = [sys.executable, "-c", _RANGED, method, str(marks), "kill" if kill else "", *given]
    done = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)
    files = {each.name: each.read_text(encoding="utf-8") for each in place.iterdir() if each.is_file()}
    if jobs > 1:
        assert {each.name for each in marks.iterdir()} >= {method, "put together", *(["killed"] if kill else [])}
    return Ran(done.returncode, done.stdout, done.stderr, files)


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    """A recording, and what comes of it without other processes."""
    place = tmp_path_factory.mktemp("ranged")
    path = guarded_file(place / "a.jsonl", 400)
    return path, ran(place / "one", METHODS[0], 1, path)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kill", [False, True])
def test_ranges_in_other_processes_change_nothing(
    in_one_process: tuple[Path, Ran], tmp_path: Path, method: str, kill: bool
) -> None:
    """Forked or not, and if one of them is lost. What was printed before is printed once."""
    path, one = in_one_process
    assert one.output.startswith(b"<before>")
    assert one.output.count(b"<before>") == one.output.count(b"<after>\n") == 1
    assert one.status == 1
    assert len(one.files) > 5
    assert ran(tmp_path / "two", method, 2, path, kill=kill) == one


_IDLE = """
import sys, time
from assay.cli.checking.check_terms import CheckTerms
from assay.cli.checking.local_workers import LocalWorkers
from assay.settings import Settings
from assay.spec.extensions.official import OFFICIAL

class Quick:
    def results(self, terms, tick):
        yield 1

with LocalWorkers(CheckTerms(Settings(), OFFICIAL), print, 3) as workers:
    workers.start([Quick()] * 9)
    print([[*workers.stream(index)] for index in range(9)], flush=True)
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
    assert not {"multiprocessing", "assay.cli.checking.local_workers", "assay.cli.checking.block_scan"} & {*loaded}


def test_one_process_is_enough_for_one_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_plan, "SMALL_INPUT", 0)
    [work] = work_plan.works_of([work_plan_piece(archive(tmp_path / "a.jsonl", 1))], lambda name: (name, False))
    assert isinstance(work_plan.executor_of(TERMS, [work], lambda _: None, 2), InOneProcess)
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

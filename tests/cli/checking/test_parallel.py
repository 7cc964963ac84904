"""`assay check --jobs` and `--cluster`: others change nothing but where the work is done, whatever becomes of them."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import SimpleQueue
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import pytest

from assay.base.extras import NAME
from assay.cli.checking import parallel, work
from assay.cli.checking.check_stream import StreamItem, UnitEnd
from assay.cli.checking.check_terms import CheckTerms
from assay.cli.checking.evidence_files import Piece
from assay.cli.checking.work import ClusterError, WorkUnit
from assay.cli.main import main
from assay.cli.reports.check_findings import CheckedMessage
from assay.settings import Settings
from kit.archives import archive
from kit.check_formats import outputs, written
from kit.places import GOLDEN
from kit.rows import rows

SIZE = 1 << 50
"""Bytes of a unit, if its size is asked for."""


class Lines:
    """A digest with the lines of all messages, which fails in a file with *fault*."""

    def __init__(self, fault: str = "", file: str = "") -> None:
        self.fault, self.file = fault, file
        self.lines: list[int] = []

    def add(self, message: CheckedMessage) -> None:
        """Keep one line."""
        self.lines.append(message.judged.line)
        if self.fault and message.file == self.file and len(self.lines) == 20:
            raise KeyError(self.fault)

    def merge(self, other: "Lines") -> None:
        """Add the lines of *other*."""
        self.lines += other.lines


TERMS = CheckTerms(Settings(), digests=(Lines,))


class Pool:
    """Other processes, in this one: units are done when they are begun, and *lost* ones as *how* says."""

    lost: frozenset[int] = frozenset()
    how: Any = None
    begun = 0

    def __init__(self, *_: Any) -> None:
        self._broken: str | bool = False
        self._processes: dict[int, Any] = {}
        self._result_queue: Any = SimpleQueue()

    def submit(self, call: Any, *given: Any) -> "Future[Any]":
        """Begin with a unit."""
        cls, future = type(self), Future[Any]()
        cls.begun += 1
        if cls.begun - 1 not in cls.lost:
            try:
                future.set_result(call(*given))
            except KeyError as error:
                future.set_exception(error)
        elif cls.how is None:
            # As the pool of Python 3.11 does: it forgets a unit that is begun while a process dies.
            self._broken = "a process has died"
        elif issubclass(cls.how, BrokenProcessPool) and cls.begun > 1:
            raise cls.how
        else:
            future.set_exception(cls.how())
        return future

    def shutdown(self, **_: Any) -> None:
        """Do nothing."""


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> type[Pool]:
    """Have a pool in this process, also for the smallest inputs, that begins with two units for each process."""

    class Fresh(Pool):
        pass

    monkeypatch.setattr(work, "SMALL_INPUT", 0)
    monkeypatch.setattr(parallel, "_AHEAD", 0)
    monkeypatch.setattr(parallel, "_PAUSE", 0)
    monkeypatch.setattr(parallel, "ProcessPoolExecutor", Fresh)
    return Fresh


def units(place: Path, count: int) -> list[WorkUnit]:
    """Return so many recordings as units, which are shown as a, b, c …"""
    paths = [archive(place / f"{seed}.jsonl", seed, conversations=3) for seed in range(count)]
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


def here(given: Sequence[WorkUnit]) -> list[Any]:
    """Return what this process finds in the units."""
    return listed(work.results_of(TERMS, each, lambda _: None) for each in given)


@rows("lost", [(), (0,), (2,), range(8)], ids=["none", "the first", "one in the middle", "all"])
@rows("how", [None, BrokenProcessPool, MemoryError, OSError])
def test_a_unit_that_is_lost_is_done_here(
    pool: type[Pool], tmp_path: Path, lost: Sequence[int], how: type[Exception] | None
) -> None:
    pool.lost, pool.how, pool.begun = frozenset(lost), how, 0
    given, ticks = units(tmp_path, 5), list[int]()
    assert listed(parallel.results_elsewhere(TERMS, given, ticks.append, 2, None)) == here(given)
    # The bytes of a file that another process has judged are reported at once.
    assert (ticks == [SIZE] * 5) == (not lost)


@pytest.mark.usefixtures("pool")
def test_a_system_without_pools_judges_in_one_process_and_a_fault_of_ours_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a sandbox without semaphores."""
    given = units(tmp_path, 3)
    terms = replace(TERMS, digests=(partial(Lines, "a bug", "b"),))
    with pytest.raises(KeyError, match="a bug"):
        listed(parallel.results_elsewhere(terms, given, lambda _: None, 2, None))
    for error in (OSError, NotImplementedError):
        monkeypatch.setattr(parallel, "ProcessPoolExecutor", Mock(side_effect=error))
        assert listed(parallel.results_elsewhere(TERMS, given, lambda _: None, 2, None)) == here(given)


def test_no_unit_is_begun_far_ahead_of_the_reader(tmp_path: Path, pool: type[Pool]) -> None:
    """The results of each unit that is begun are kept until they are read."""
    for index, results in enumerate(parallel.results_elsewhere(TERMS, units(tmp_path, 8), lambda _: None, 1, None)):
        assert len([*results]) > 1
        assert pool.begun <= index + 2
    assert pool.begun == 8


def test_all_output_is_the_same(tmp_path: Path, pool: type[Pool], capsys: pytest.CaptureFixture[str]) -> None:
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for seed in range(3):
        archive(inputs / f"{seed}.jsonl", seed, conversations=4)
    (inputs / "broken.jsonl").write_bytes((inputs / "0.jsonl").read_bytes()[:12_000] + b"\nno row\n{}\n")
    (inputs / "empty.jsonl").touch()
    files = [str(inputs), str(GOLDEN), "nowhere.jsonl", str(tmp_path / "*.none")]
    baseline = str(tmp_path / "baseline.json")
    assert main(["check", "--write-baseline", baseline, str(inputs / "0.jsonl")]) in {0, 2}
    capsys.readouterr()
    for options in ((), ("--all",), ("--messages",), ("--baseline", baseline, "--fail-on", "refuse")):
        found, begun = [], []
        for jobs in ("1", "2"):
            status = main(["check", "--jobs", jobs, *outputs(tmp_path), *options, *files])
            found.append((status, written(tmp_path), capsys.readouterr()))
            begun.append(pool.begun)
        assert (found[0] == found[1], begun[0] < begun[1]) == (True, True), options


@pytest.mark.usefixtures("pool")
def test_one_process_is_enough_for_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(archive(tmp_path / "a.jsonl", 1))
    [unit] = work.units_of([Piece(path)], lambda name: (name, False), is_absolute=False)
    assert not work.is_for_many([unit], 2)
    assert not work.is_for_many([unit, unit._replace(error="No such file or directory")], 2)
    assert not work.is_for_many([unit, unit], 1)
    assert work.is_for_many([unit, unit], 2)
    for given in ("0", "-1", "many"):
        with pytest.raises(SystemExit):
            main(["check", "--jobs", given, "x"])
        assert "expected a number of processes, at least 1" in capsys.readouterr().err


# ── a cluster ────────────────────────────────────────────────────────────────────────────────────────────────────────


class KilledWorker(Exception):  # noqa: N818 - as it is called there
    """No worker survived a unit."""


class Cluster:
    """The client of a scheduler whose workers are in this process; *faults* are what goes wrong."""

    def __init__(self, faults: dict[str, Any]) -> None:
        self._faults = faults
        self._begun = 0

    def __call__(self, *_: Any, **__: Any) -> "Cluster":
        self._raise("connect")
        return self

    def _raise(self, name: str) -> None:
        if name in self._faults:
            raise self._faults[name]

    def wait_for_workers(self, *_: Any, **__: Any) -> None:
        self._raise("workers")

    def run(self, function: Any, *given: Any, **_: Any) -> dict[str, Any]:
        return {"tcp://w:1": self._faults.get(function.__name__) or function(*given)}

    def nthreads(self) -> dict[str, int]:
        return {"tcp://w:1": 1}

    def submit(self, call: Any, *given: Any, **_: Any) -> "Future[Any]":
        self._begun += 1
        future = Future[Any]()
        if "unit" in self._faults and self._begun == 2:
            future.set_exception(self._faults["unit"])
        else:
            future.set_result(call(*given))
        return future

    def close(self) -> None:
        pass


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the faults of a cluster, which is there instead of that of the extra."""
    faults: dict[str, Any] = {}
    made, scheduler = ModuleType("distributed"), ModuleType("distributed.scheduler")
    vars(made)["Client"], vars(scheduler)["KilledWorker"] = Cluster(faults), KilledWorker
    monkeypatch.setitem(sys.modules, "distributed", made)
    monkeypatch.setitem(sys.modules, "distributed.scheduler", scheduler)
    return faults


def test_a_unit_that_no_worker_survives_is_done_here(cluster: dict[str, Any], tmp_path: Path) -> None:
    given = units(tmp_path, 5)
    for error in (None, KilledWorker(), MemoryError()):
        cluster.clear()
        cluster.update({} if error is None else {"unit": error})
        assert listed(parallel.results_elsewhere(TERMS, given, lambda _: None, 2, "tcp://s:1")) == here(given)


@rows(
    ("fault", "reason"),
    [
        ({"connect": OSError("Timed out\nmore")}, "cannot connect to the scheduler at tcp://s:1: Timed out"),
        ({"connect": ValueError("unknown scheme")}, "cannot connect to the scheduler at tcp://s:1: unknown scheme"),
        ({"workers": TimeoutError()}, "the cluster at tcp://s:1 has no workers"),
        (
            {"version": "0.0.9"},
            f"the worker tcp://w:1 has Assay 0.0.9, and this is {version(NAME)}; install the same one",
        ),
        (
            {"version": PackageNotFoundError(NAME)},
            f"the worker tcp://w:1 does not have Assay; install {NAME} {version(NAME)} there",
        ),
        (
            {"sizes_of": [-1]},
            f"{GOLDEN}: the worker tcp://w:1 does not see it; give a path or a URL that all workers can read",
        ),
        ({"unit": OSError("gone")}, "the connection to tcp://s:1 was lost: gone"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_named(cluster: dict[str, Any], fault: dict[str, Any], reason: str) -> None:
    cluster.clear()
    cluster.update(fault)
    unit = WorkUnit(str(GOLDEN), str(GOLDEN), "a", size=SIZE)
    given = [unit] if "sizes_of" in fault else [unit, unit]
    with pytest.raises(ClusterError) as caught:
        listed(parallel.results_elsewhere(TERMS, given, lambda _: None, 2, "tcp://s:1"))
    assert str(caught.value) == reason


def test_without_the_extra_one_line_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["check", "--cluster", "tcp://127.0.0.1:8786", str(GOLDEN)]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors.startswith("assay check: --cluster needs distributed: ")
    assert errors.endswith("[cluster]'\n")

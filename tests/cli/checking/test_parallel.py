"""`assay check --jobs` and `--cluster`: others change nothing but where the work is done, whatever becomes of them."""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import SimpleQueue
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from assay.cli import check
from assay.cli.checking import parallel
from assay.cli.checking.evidence import CheckTerms
from assay.cli.checking.files import CheckedFile
from assay.cli.main import main
from assay.settings import Settings
from assay.settings.extras import NAME
from kit.archives import archive
from kit.check_formats import outputs, written
from kit.places import GOLDEN
from kit.rows import rows

Checked = Callable[..., Any]


@pytest.fixture
def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Checked:
    """Check recordings, of which some cannot be read, with options; return the status and all output."""
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for seed in range(3):
        archive(inputs / f"{seed}.jsonl", seed, conversations=4)
    (inputs / "broken.jsonl").write_bytes((inputs / "0.jsonl").read_bytes()[:12_000] + b"\nno row\n{}\n")
    (inputs / "empty.jsonl").touch()
    files = [str(inputs), str(GOLDEN), "nowhere.jsonl", str(tmp_path / "*.none")]

    def check(*options: str) -> Any:
        capsys.readouterr()
        return main(["check", *outputs(tmp_path), *options, *files]), written(tmp_path), capsys.readouterr()

    return check


class Pool:
    """Other processes, in this one: units are done when they are begun, and *lost* ones as *how* says."""

    lost: frozenset[int] = frozenset()
    how: Any = None
    unmade: type[Exception] | None = None
    begun = 0

    def __init__(self, *_: Any) -> None:
        if self.unmade is not None:
            raise self.unmade
        self._broken: str | bool = False
        self._processes: dict[int, Any] = {}
        self._result_queue: Any = SimpleQueue()

    def submit(self, call: Any, *given: Any) -> "Future[Any]":
        """Begin with a unit."""
        cls, future = type(self), Future[Any]()
        cls.begun += 1
        if cls.begun - 1 not in cls.lost:
            future.set_result(call(*given))
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

    monkeypatch.setattr(check, "SMALL_INPUT", 0)
    monkeypatch.setattr(parallel, "_AHEAD", 0)
    monkeypatch.setattr(parallel, "_PAUSE", 0)
    monkeypatch.setattr(parallel, "ProcessPoolExecutor", Fresh)
    return Fresh


@rows("lost", [(0,), (2,), range(8)], ids=["the first", "one in the middle", "all"])
@rows("how", [None, BrokenProcessPool, MemoryError, OSError])
def test_a_unit_that_is_lost_is_done_here(
    pool: type[Pool], checked: Checked, lost: Sequence[int], how: type[Exception] | None
) -> None:
    pool.lost, pool.how, pool.begun = frozenset(lost), how, 0
    assert checked("--jobs", "2") == checked("--jobs", "1")
    assert pool.begun > 0


@rows("error", [OSError, NotImplementedError])
def test_a_system_without_pools_judges_in_one_process(
    pool: type[Pool], checked: Checked, error: type[Exception]
) -> None:
    """As a sandbox without semaphores."""
    pool.unmade = error
    assert checked("--jobs", "2") == checked("--jobs", "1")


def test_all_output_is_the_same(pool: type[Pool], checked: Checked, tmp_path: Path) -> None:
    baseline = str(tmp_path / "baseline.json")
    assert main(["check", "--write-baseline", baseline, str(tmp_path / "inputs" / "0.jsonl")]) in {0, 2}
    for options in ((), ("--all",), ("--messages",), ("--baseline", baseline, "--fail-on", "refuse")):
        pool.begun = 0
        one = checked("--jobs", "1", *options)
        assert pool.begun == 0
        assert checked("--jobs", "2", *options) == one, options
        assert pool.begun > 0


def test_no_unit_is_begun_far_ahead_of_the_reader(tmp_path: Path, pool: type[Pool]) -> None:
    """The results of each unit that is begun are kept until they are read."""
    paths = [str(archive(tmp_path / f"{seed}.jsonl", seed)) for seed in range(8)]
    units = [CheckedFile(each, each, each, size=1 << 50) for each in paths]
    found = parallel.results_elsewhere(CheckTerms(Settings()), units, lambda _: None, 1, None)
    for index, results in enumerate(found):
        assert len([*results]) > 1
        assert pool.begun <= index + 2
    assert pool.begun == 8


def test_one_process_is_enough_for_one_file(pool: type[Pool], capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--jobs", "2", str(GOLDEN), "nowhere.jsonl"])
    assert pool.begun == 0
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


def test_a_unit_that_no_worker_survives_is_done_here(cluster: dict[str, Any], checked: Checked) -> None:
    one = checked("--jobs", "1")
    for error in (None, KilledWorker(), MemoryError()):
        cluster.clear()
        cluster.update({} if error is None else {"unit": error})
        assert checked("--cluster", "tcp://s:1") == one


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
            {"sizes_of": [-1, 5]},
            f"{GOLDEN}: the worker tcp://w:1 does not see it; give a path or a URL that all workers can read",
        ),
        ({"unit": OSError("gone")}, "the connection to tcp://s:1 was lost: gone"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_named(
    cluster: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: dict[str, Any], reason: str
) -> None:
    cluster.clear()
    cluster.update(fault)
    other = archive(tmp_path / "a.jsonl", 1)
    assert main(["check", "--cluster", "tcp://s:1", str(GOLDEN), str(other)]) == 2
    assert f"assay check: {reason}\n" in capsys.readouterr().err


def test_without_the_extra_one_line_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["check", "--cluster", "tcp://127.0.0.1:8786", str(GOLDEN)]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors.startswith("assay check: --cluster needs distributed: ")
    assert errors.endswith("[cluster]'\n")

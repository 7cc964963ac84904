"""`assay check --cluster`: a real cluster of processes changes nothing but where the work is done."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from assay.cli.checking import parallel, work
from assay.cli.main import main
from kit.archives import ADD, REVISION, archive, text
from kit.check_formats import outputs, written
from kit.places import TESTS

distributed: Any = pytest.importorskip("distributed", reason="the extra cluster is not installed")

GOLDEN = str(TESTS / "data" / "golden.jsonl")


SECONDS = 60


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the cluster as long as for anything else: other tests run beside it."""
    monkeypatch.setattr(parallel, "_PATIENCE", SECONDS)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A scheduler, and two workers that are processes of their own."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as made:
        yield made


def checked(place: Path, *arguments: str) -> Any:
    """Run `assay check`, and return all that it writes to files."""
    place.mkdir()
    return main(["check", *outputs(place), *arguments]), written(place)


class Killer(distributed.WorkerPlugin):  # type: ignore[misc]  # without types
    """Kills the process of the worker that is the first to begin with so many units."""

    def __init__(self, marks: str, at: int) -> None:
        self.marks, self.at = marks, at
        self.begun = 0

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:  # noqa: ARG002 - of the interface
        """Look at each step of a task."""
        if finish != "executing" or "do_unit" not in str(key):
            return
        self.begun += 1
        if self.begun >= self.at:
            # Two workers may be here at the same time, and one of them creates the file.
            with suppress(FileExistsError):
                Path(self.marks, "killed").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def killing(cluster: Any, tmp_path: Path) -> Iterator[Path]:
    """Kill one worker in the middle of the work; the path has a file when that is done."""
    import cloudpickle  # type: ignore[import-untyped]  # it has no types

    marks = tmp_path / "marks"
    marks.mkdir()
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        client.register_plugin(Killer(str(marks), 3), name="killer")
        yield marks
        client.unregister_worker_plugin("killer")
    cloudpickle.unregister_pickle_by_value(module)


def test_all_output_is_the_same_although_a_worker_is_killed(
    cluster: Any, killing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for seed in range(6):
        archive(inputs / f"{seed}.jsonl", seed, conversations=10)
    files = [str(inputs), GOLDEN, "nowhere.jsonl"]
    one = checked(tmp_path / "one", "--jobs", "1", *files), capsys.readouterr()
    assert (checked(tmp_path / "many", "--cluster", cluster.scheduler_address, *files), capsys.readouterr()) == one
    assert len([*killing.iterdir()]) == 1


def test_recorded_conversations_have_the_same_findings_wherever_they_are_judged(
    shared: Path,
    cluster: Any,
    killing: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In one process, in two, and on a cluster that loses a worker in the middle: byte for byte, in every format."""
    monkeypatch.setattr(work, "SMALL_INPUT", 0)
    files = str(shared / "transcripts")
    one = checked(tmp_path / "one", "--jobs", "1", files), capsys.readouterr()
    assert one[0][0] == 1
    assert len(one[0][1]["ndjson"].splitlines()) > 150
    assert (checked(tmp_path / "two", "--jobs", "2", files), capsys.readouterr()) == one
    assert not [*killing.iterdir()]
    assert (checked(tmp_path / "many", "--cluster", cluster.scheduler_address, files), capsys.readouterr()) == one
    assert len([*killing.iterdir()]) == 1


def test_a_unit_that_no_worker_survives_is_done_here(
    cluster: Any, killing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The scheduler gives up after the first worker.
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    files = [str(archive(tmp_path / f"{seed}.jsonl", seed, conversations=2)) for seed in range(6)]
    status = main(["check", "--jobs", "1", *files])
    one = capsys.readouterr()
    assert main(["check", "--cluster", cluster.scheduler_address, *files]) == status
    assert capsys.readouterr() == one
    assert len([*killing.iterdir()]) == 1


def test_more_files_than_are_begun_at_a_time(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_AHEAD", -1)
    for seed in range(9):
        archive(tmp_path / f"{seed}.jsonl", seed, conversations=2)
    status = main(["check", "--jobs", "1", str(tmp_path)])
    one = capsys.readouterr()
    assert main(["check", "--cluster", cluster.scheduler_address, str(tmp_path)]) == status
    assert capsys.readouterr() == one


def test_relative_paths_and_urls_are_read(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path / "a.jsonl", 1)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "a.jsonl"]) == 1
    one = capsys.readouterr().out.partition("\n")[2]
    for name in ("a.jsonl", path.as_uri()):
        for place in ((), ("--cluster", cluster.scheduler_address)):
            assert main(["check", *place, name]) == 1
            shown = capsys.readouterr().out
            assert shown.partition("\n")[::2] == (name, one)


def test_tools_that_another_file_lists_are_known(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers have another working directory, and look for lists in all files."""
    opening = {"event": "open", "conversation": 1, "server": "s", "mode": "audit", "revision": REVISION}
    call = {"id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"n": "wrong"}}}
    asked, listed = {"id": 2, "method": "tools/list"}, {"id": 2, "result": {"tools": [ADD]}}
    for name, messages in {"a.jsonl": [("c2s", call)], "b.jsonl": [("c2s", asked), ("s2c", listed)]}.items():
        rows = [opening, *({"dir": side, "conversation": 1, "msg": text(each)} for side, each in messages)]
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    status = main(["check", "a.jsonl", "b.jsonl"])
    one = capsys.readouterr()
    assert "contract/input" in one.out
    assert main(["check", "--cluster", cluster.scheduler_address, "a.jsonl", "b.jsonl"]) == status
    assert capsys.readouterr() == one


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of a server with the files of *tmp_path*."""

    class Silent(SimpleHTTPRequestHandler):
        """Logs nothing."""

        def log_message(self, *_: Any) -> None:
            """Do nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(tmp_path))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_url_of_a_server_is_read(served: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import gzip

    path = archive(tmp_path / "a.jsonl", 1)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert main(["check", str(path)]) == 1
    one = capsys.readouterr().out.partition("\n")[2]
    for name in ("a.jsonl", "b.jsonl.gz"):
        assert main(["check", f"{served}/{name}"]) == 1
        assert capsys.readouterr().out.partition("\n")[::2] == (f"{served}/{name}", one)
    assert main(["check", f"{served}/none.jsonl"]) == 2
    assert main(["check", "nothing://x/y.jsonl"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].startswith(f"assay check: {served}/none.jsonl: ")
    assert errors[1].startswith("assay check: nothing://x/y.jsonl: Protocol not known: nothing")


# ── what can go wrong ────────────────────────────────────────────────────────────────────────────────────────────────


def failing(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a check that cannot begin; return its only line."""
    assert main(["check", *arguments, GOLDEN]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    [line] = errors.splitlines()
    return line


def test_a_scheduler_that_is_not_there(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_PATIENCE", 0.5)
    line = failing(capsys, "--cluster", "tcp://127.0.0.1:9")
    assert line.startswith("assay check: cannot connect to the scheduler at tcp://127.0.0.1:9: ")


def test_an_address_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot connect to the scheduler at what://x: " in failing(capsys, "--cluster", "what://x")


def test_a_worker_with_another_version(
    cluster: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "version", lambda _: "0.0.9")
    monkeypatch.setattr(distributed.Client, "run", lambda *_, **__: {"tcp://w:1": "0.1.0"})
    line = failing(capsys, "--cluster", cluster.scheduler_address)
    assert line == "assay check: the worker tcp://w:1 has Assay 0.1.0, and this is 0.0.9; install the same one"


def test_a_worker_without_assay(
    cluster: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = PackageNotFoundError("mcp-assay")
    monkeypatch.setattr(distributed.Client, "run", lambda *_, **__: {"tcp://w:1": missing})
    line = failing(capsys, "--cluster", cluster.scheduler_address)
    assert line.startswith("assay check: the worker tcp://w:1 does not have Assay; install mcp-assay ")


def test_a_file_that_a_worker_does_not_see(
    cluster: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_: Any, function: Any, *arguments: Any, **__: Any) -> Any:
        return {"tcp://w:1": [-1] if function is parallel.sizes_of else function(*arguments)}

    monkeypatch.setattr(distributed.Client, "run", run)
    line = failing(capsys, "--cluster", cluster.scheduler_address)
    assert line.endswith("the worker tcp://w:1 does not see it; give a path or a URL that all workers can read")


def test_a_cluster_without_workers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # The scheduler is there, and may take longer to answer than no worker is waited for.
    connect = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda address, **_: connect(address, timeout=SECONDS))
    monkeypatch.setattr(parallel, "_PATIENCE", 1)
    with distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", host="127.0.0.1") as empty:
        line = failing(capsys, "--cluster", empty.scheduler_address)
    assert line == f"assay check: the cluster at {empty.scheduler_address} has no workers"


def test_without_the_extra(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    line = failing(capsys, "--cluster", "tcp://127.0.0.1:8786")
    assert line.startswith("assay check: --cluster needs distributed: ")
    assert line.endswith("[cluster]'")

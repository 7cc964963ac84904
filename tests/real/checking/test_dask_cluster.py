"""`assay check --cluster`: a real cluster of processes changes nothing but where the work is done."""

import gzip
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from assay.cli.checking import parallel
from assay.cli.main import main
from kit.archives import ADD, REVISION, archive, text
from kit.check_formats import outputs, written
from kit.places import GOLDEN

distributed: Any = pytest.importorskip("distributed", reason="the extra cluster is not installed")

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
        archive(inputs / f"{seed}.jsonl", seed)
    files = [str(inputs), str(GOLDEN), "nowhere.jsonl"]
    one = checked(tmp_path / "one", "--jobs", "1", *files), capsys.readouterr()
    assert (checked(tmp_path / "many", "--cluster", cluster.scheduler_address, *files), capsys.readouterr()) == one
    assert len([*killing.iterdir()]) == 1


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve the files of *folder* over HTTP; yield the address."""

    class Silent(SimpleHTTPRequestHandler):
        """Logs nothing."""

        def log_message(self, *_: Any) -> None:
            """Do nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_paths_urls_and_lists_of_other_files_are_found_by_workers(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers have another working directory, and look for lists in all files."""
    place = ("--cluster", cluster.scheduler_address)
    opening = {"event": "open", "conversation": 1, "server": "s", "mode": "audit", "revision": REVISION}
    call = {"id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"n": "wrong"}}}
    asked, listed = {"id": 2, "method": "tools/list"}, {"id": 2, "result": {"tools": [ADD]}}
    for name, messages in {"a.jsonl": [("c2s", call)], "b.jsonl": [("c2s", asked), ("s2c", listed)]}.items():
        rows = [opening, *({"dir": side, "conversation": 1, "msg": text(each)} for side, each in messages)]
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    with serving(tmp_path) as served:
        for name in ("a.jsonl", (tmp_path / "a.jsonl").as_uri(), f"{served}/c.jsonl.gz"):
            status = main(["check", name, "b.jsonl"])
            one = capsys.readouterr()
            assert "contract/input" in one.out
            assert main(["check", *place, name, "b.jsonl"]) == status
            assert capsys.readouterr() == one
        assert main(["check", f"{served}/none.jsonl", "nothing://x/y.jsonl"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].startswith(f"assay check: {served}/none.jsonl: ")
    assert errors[1].startswith("assay check: nothing://x/y.jsonl: Protocol not known: nothing")

"""Journals of processes that are killed, meet in a directory, fork, are followed, or get nothing but garbage."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import which

import orjson
import pytest

from assay.console.rows import COLUMNS
from assay.console.servers import ConsoleSource
from assay.console.state import ConsoleState
from assay.judge.conversation import Conversation
from assay.model.verdict import Party
from assay.records.journal import Journal
from assay.records.reading import Pages, entries
from assay.records.run_files import runs_in
from assay.settings.state_directory import server_folder
from kit.filter_cases import CASES, RECORDS
from kit.outputs import SECONDS, read_until
from kit.places import DATA, ROOT

PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":%d,"result":{}}'

ENDLESS = """
import sys
from assay.records.journal import Journal
from assay.model.verdict import Party, verdict

good = verdict(Party.CLIENT, b"{}", "request", {"jsonrpc": "2.0", "id": 1, "method": "x" * 90}, None, None)
journal = Journal.open(sys.argv[1], log=sys.exit)
print(journal.path, flush=True)
sys.stdin.readline()
while True:
    before = journal.written
    moment = journal.moment("stdio", "stdio", "x", b"{}")
    journal.write(journal.line(good, moment, 0) * int(sys.argv[2]))
    if before <= 1 << 20 < journal.written:
        print("much", flush=True)
"""
"""Says where it journals; then does so until it is killed, and says when it has written a mebibyte."""

FORKED = """
import os, sys
from assay.records.journal import Journal
journal = Journal.open(sys.argv[1], log=sys.exit)
journal.moment('stdio', 'stdio', None, b'')
child = os.fork()
for _ in range(100):
    journal.write((journal.moment('stdio', 'stdio', None, b'').request_id + '\\n').encode())
if child: os.waitpid(child, 0)
"""


def whole(content: bytes) -> int:
    """How many whole records *content* has; only its last line may be none."""
    *lines, rest = content.split(b"\n")
    for line in lines:
        assert orjson.loads(line)["status"] == "ok"
    assert rest == b"" or rest.startswith(b'{"ts":')
    return len(lines)


def opened(directory: Path) -> Journal:
    """A journal that keeps one run."""
    journal = Journal.open(directory, keep=1)
    assert journal is not None
    return journal


def test_processes_keep_out_of_each_others_way_and_leave_whole_lines_when_they_are_killed(tmp_path: Path) -> None:
    """A write that was under way may be cut; `kill -9` cannot be waited for."""
    pipe, paths = subprocess.PIPE, list[Path]()
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path), count], stdin=pipe, stdout=pipe)
            )
            for count in ("1", "200")
        ]
        for process in processes:
            assert process.stdout is not None
            paths.append(Path(process.stdout.readline().decode().strip()))
        assert paths[0] != paths[1]
        assert os.readlink(tmp_path / ".latest") in {path.name for path in paths}
        # A run that is still written is not removed.
        opened(tmp_path).close()
        assert {str(path) for path in paths} <= {path for each in runs_in(str(tmp_path)) for path in each.paths}
        for process in processes:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"much\n"
            process.send_signal(signal.SIGKILL)
            process.wait(SECONDS)
    assert [whole(path.read_bytes()) > 1000 for path in paths] == [True, True]
    journal = opened(tmp_path)
    assert [path for each in runs_in(str(tmp_path)) for path in each.paths] == [journal.path]
    journal.close()
    # A forked process has ids of its own.
    forked = tmp_path / "forked"
    subprocess.run([sys.executable, "-c", FORKED, str(forked)], check=True, timeout=SECONDS)
    ids = (forked / ".latest").read_text().splitlines()
    assert len(ids) == len(set(ids)) == 200


def counts(directory: Path) -> list[int]:
    with Pages(str(directory)) as pages:
        return [each.record.metadata.repeated for each in entries(pages) if each.record is not None]


def test_a_server_that_gets_nothing_but_garbage_writes_little_and_loses_at_most_a_count(tmp_path: Path) -> None:
    env = {**os.environ, "MCP_READY_FILE": str(tmp_path / "ready")}
    command = [sys.executable, "-m", "assay", "serve", "--journal"]
    with subprocess.Popen(
        [*command, str(tmp_path / "killed")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env=env,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"1\n1\n1\n")
        process.stdin.flush()
        for _ in range(3):
            assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert counts(tmp_path / "killed")[0] == 0
    done = subprocess.run(
        [*command, str(tmp_path / "j")], input=b"1\n" * 20_000, stdout=subprocess.DEVNULL, cwd=tmp_path, env=env,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert sum(path.stat().st_size for path in (tmp_path / "j").glob("*.jsonl")) < 100_000
    assert sum(each or 1 for each in counts(tmp_path / "j")) == 20_000


# ── follow ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def begun(server: str) -> Journal:
    """A new journal of the server called *server*."""
    journal = Journal.open(server_folder(os.environ, server) or "", server=server)
    assert journal is not None
    return journal


def said(journal: Journal, number: int) -> None:
    """A ping and its answer are written."""
    conversation = Conversation(revision="2025-11-25")
    asked = conversation.hear(Party.CLIENT, PING % number)
    verdict = conversation.hear(Party.SERVER, PONG % number)
    moment = journal.moment("stdio", "stdio", "ping", asked.frame)
    journal.write(journal.line(asked, moment, 1) + journal.line(verdict, moment, 1))


@contextmanager
def following(*options: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    command = [sys.executable, "-m", "assay", "journal", "show", "--follow", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.fileno()
        finally:
            process.kill()


def test_servers_are_followed_over_restarts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new run of it is shown too, with a line that says so; those of others are not."""
    monkeypatch.delenv("ASSAY_JOURNAL", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    # Without a server all are followed, and the first is waited for.
    with following() as (_, out):
        read_until(out, b"no journals yet; waiting for the first")
        said(begun("one"), 1)
        assert b"new run of one" in read_until(out, b"result of ping #1")
        said(begun("other"), 2)
        seen = read_until(out, b"result of ping #2")
        assert b"new run of other" in seen
        assert b"  other             server  result of ping #2" in seen
    living = begun("files")
    said(living, 1)
    with following("--server", "files") as (process, out):
        read_until(out, b"result of ping #1")
        said(living, 2)
        read_until(out, b"result of ping #2")
        living.close()
        other, again = begun("time"), begun("files")
        said(other, 3)
        said(again, 4)
        seen = read_until(out, b"result of ping #4")
        assert f"new run of files ({Path(again.path).stem[-8:]})".encode() in seen
        assert b"ping #3" not in seen
        process.send_signal(signal.SIGINT)
        assert b"6 records: 6 ok" in read_until(out, b"6 records")
        assert process.wait(SECONDS) == 130


# ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_page_chooses_the_same_rows() -> None:
    node = which("node")
    if node is None:
        pytest.skip("node is not installed: the page's filter is tested in the browser only")
    state = ConsoleState()
    for each in RECORDS:
        state.take(ConsoleSource("test", "journal"), each, 0.0)
    given = {
        "columns": COLUMNS,
        "rows": [json.loads(row) for row in state.store.after(0)],
        "servers": state.server_answers(0.0),
        "filters": [each["filter"] for each in CASES],
    }
    command = [node, str(DATA / "filter_rows.mjs"), str(ROOT / "src" / "assay" / "web")]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    matches = [[seq - 1 for seq in seqs] for seqs in json.loads(done.stdout)]
    assert {case["filter"]: found for case, found in zip(CASES, matches, strict=True)} == {
        case["filter"]: case["matches"] for case in CASES
    }

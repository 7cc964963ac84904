"""The files of the journal: their place, what happens when processes meet there, die there, or find the disk full."""

import errno
import os
import re
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from assay.base.verdict import Party, verdict
from assay.records.journal.run_files import runs
from assay.records.journal.writer import Journal

NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}\.jsonl")
SECONDS = 60
GOOD = verdict(Party.CLIENT, b"{}", "request", {"jsonrpc": "2.0", "id": 1, "method": "get_schema"}, None, None)


@pytest.fixture
def said() -> list[str]:
    """What was logged."""
    return []


def opened(directory: Path | str, said: list[str] | None = None, keep: int = 50) -> Journal:
    journal = Journal.open(directory, keep=keep, log=(said if said is not None else []).append)
    assert journal is not None
    return journal


def line_of(journal: Journal) -> bytes:
    return journal.line(GOOD, journal.moment("stdio", "stdio", "get_schema", b"{}"), 0)


def whole(content: bytes) -> int:
    """How many whole records *content* has; only its last line may be none."""
    *lines, rest = content.split(b"\n")
    for line in lines:
        assert orjson.loads(line)["status"] == "ok"
    assert rest == b"" or rest.startswith(b'{"ts":')
    return len(lines)


# ── a run ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_has_a_file_of_its_own_that_only_its_owner_can_read(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        journal = opened(tmp_path / "runs" / "here")
    finally:
        os.umask(before)
    path = Path(journal.path)
    assert NAME.fullmatch(path.name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    journal.close()


def test_what_is_written_is_in_the_file_at_once(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    lines = line_of(journal) + line_of(journal)
    journal.write(lines)
    assert Path(journal.path).read_bytes() == lines
    assert (journal.written, journal.failures) == (len(lines), 0)
    journal.close()


def test_the_newest_run_is_found_by_a_relative_link(tmp_path: Path) -> None:
    for _ in range(3):
        journal = opened(tmp_path / "runs")
        journal.write(line_of(journal))
        assert os.readlink(tmp_path / "runs" / ".latest") == os.path.basename(journal.path)
        journal.close()
    (tmp_path / "runs").rename(tmp_path / "moved")
    assert whole((tmp_path / "moved" / ".latest").read_bytes()) == 1
    assert len(os.listdir(tmp_path / "moved")) == 4


def test_the_link_is_there_at_any_time(tmp_path: Path) -> None:
    """A reader finds a run however often the link is swapped."""
    opened(tmp_path).close()
    done = threading.Event()

    def begin_runs() -> None:
        for _ in range(100):
            opened(tmp_path).close()
        done.set()

    thread = threading.Thread(target=begin_runs)
    thread.start()
    looks = 0
    while not done.is_set() or not looks:
        assert (tmp_path / ".latest").is_file()
        looks += 1
    thread.join(SECONDS)


def test_after_the_end_nothing_is_written(tmp_path: Path, said: list[str]) -> None:
    journal = opened(tmp_path, said)
    line = line_of(journal)
    journal.close()
    journal.close()
    journal.write(line + line)
    assert Path(journal.path).read_bytes() == b""
    assert (journal.written, journal.failures, said) == (0, 2, [])


# ── places where there can be none ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("place", ["file/below", "/proc/none/of/it", "x" * 300])
def test_a_directory_that_cannot_be_written_is_no_journal_and_one_line(
    tmp_path: Path, said: list[str], place: str
) -> None:
    (tmp_path / "file").write_text("")
    assert Journal.open(tmp_path / place, log=said.append) is None
    [line] = said
    assert line.startswith("no journal: ")
    assert line.endswith(("Not a directory", "No such file or directory", "File name too long"))


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to the administrator")
def test_a_directory_of_somebody_else_is_no_journal(tmp_path: Path, said: list[str]) -> None:
    tmp_path.chmod(0o500)
    assert Journal.open(tmp_path, log=said.append) is None
    assert said == [f"no journal: {tmp_path}: Permission denied"]


def test_without_a_link_there_is_a_journal_all_the_same(tmp_path: Path, said: list[str]) -> None:
    (tmp_path / ".latest").mkdir()
    journal = opened(tmp_path, said)
    journal.write(line_of(journal))
    journal.close()
    assert [line.partition(":")[0] for line in said] == ["journal"]
    assert journal.failures == 0
    assert len(os.listdir(tmp_path)) == 2


# ── old runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def old_runs(directory: Path, count: int) -> list[Path]:
    paths = [directory / f"20200101T0000{number:02}Z-00000000.jsonl" for number in range(count)]
    for path in paths:
        path.write_bytes(b"")
    return paths


def test_old_runs_are_removed_the_oldest_first(tmp_path: Path) -> None:
    old = old_runs(tmp_path, 5)
    others = [tmp_path / name for name in ("notes.txt", "20200101.jsonl", "20200101T000000Z-0000000g.jsonl")]
    for path in others:
        path.write_text("not ours")
    journal = opened(tmp_path, keep=3)
    assert runs(str(tmp_path)) == [*map(str, old[3:]), journal.path]
    assert all(path.exists() for path in others)
    journal.close()


def test_a_run_that_is_still_written_is_not_removed(tmp_path: Path) -> None:
    first = opened(tmp_path, keep=1)
    second = opened(tmp_path, keep=1)
    assert set(runs(str(tmp_path))) == {first.path, second.path}
    first.write(line_of(first))
    first.close()
    third = opened(tmp_path, keep=1)
    assert set(runs(str(tmp_path))) == {second.path, third.path}
    second.close()
    third.close()


# ── a full disk ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file can grow past 64 KiB. Python ignores the signal that comes with it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fill(journal: Journal, times: int) -> bytes:
    """Writes two lines so many times, as for a request and its answer; all that should have been written."""
    everything = b""
    for _ in range(times):
        lines = line_of(journal) + line_of(journal)
        everything += lines
        journal.write(lines)
    return everything


def stopped_well(journal: Journal, everything: bytes, said: list[str], reason: str) -> None:
    content = Path(journal.path).read_bytes()
    assert everything.startswith(content)
    assert content.endswith(b"\n")
    assert journal.written == len(content)
    assert journal.failures == everything.count(b"\n") - content.count(b"\n") > 0
    assert said == [f"journal stopped: {journal.path}: {reason}"]


@pytest.mark.usefixtures("small_files")
def test_a_file_that_may_not_grow_stops_the_journal_after_a_whole_line(tmp_path: Path, said: list[str]) -> None:
    journal = opened(tmp_path, said)
    everything = fill(journal, 200)
    stopped_well(journal, everything, said, "File too large")


def test_a_disk_that_is_full_from_the_start_is_logged_once(tmp_path: Path, said: list[str]) -> None:
    journal = opened(tmp_path, said)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, journal.output._descriptor)
    os.close(full)
    fill(journal, 3)
    assert (journal.written, journal.failures) == (0, 6)
    assert said == [f"journal stopped: {journal.path}: No space left on device"]


def half_taken(monkeypatch: pytest.MonkeyPatch, *outcomes: int | OSError) -> None:
    """Lets writes take so many bytes, or fail; then all is well again. Nothing real fails like this when asked to."""
    left = list(outcomes)
    write = os.write

    def taking(descriptor: int, data: bytes) -> int:
        outcome = left.pop(0) if left else len(data)
        if isinstance(outcome, OSError):
            raise outcome
        return write(descriptor, data[:outcome])

    monkeypatch.setattr(os, "write", taking)


def test_a_short_write_is_completed_if_it_can_be(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(tmp_path, said)
    lines = line_of(journal)
    half_taken(monkeypatch, 50)
    journal.write(lines)
    assert Path(journal.path).read_bytes() == lines
    assert (journal.written, journal.failures, said) == (len(lines), 0, [])
    journal.close()


def test_two_short_writes_are_enough(tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    journal = opened(tmp_path, said)
    first, second = line_of(journal), line_of(journal)
    half_taken(monkeypatch, 50, len(first))
    journal.write(first + second)
    assert Path(journal.path).read_bytes() == first
    assert (journal.written, journal.failures) == (len(first), 1)
    assert said == [f"journal stopped: {journal.path}: only a part was written"]


def test_what_another_process_appended_is_not_cut_off(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(tmp_path, said)
    theirs = line_of(journal)
    with open(journal.path, "ab") as other:
        other.write(theirs)
    half_taken(monkeypatch, 50, OSError(errno.EIO, "Input/output error"))
    ours = line_of(journal)
    journal.write(ours)
    assert Path(journal.path).read_bytes() == theirs + ours[:50] + b"\n"
    assert journal.failures == 1
    assert said == [f"journal stopped: {journal.path}: Input/output error"]

"""The files of the journal: their place, what happens when processes meet there, die there, or find the disk full."""

import errno
import os
import re
import stat
from pathlib import Path

import pytest

from assay.base.verdict import Party, verdict
from assay.records.journal.run_files import runs
from assay.records.journal.writer import Journal
from kit.records import open_journal
from kit.rows import rows
from kit.small_files import small_files

NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}\.jsonl")
FIRST = -1
"""A write that takes as much as the first line has."""
GOOD = verdict(Party.CLIENT, b"{}", "request", {"jsonrpc": "2.0", "id": 1, "method": "get_schema"}, None, None)


@pytest.fixture
def said() -> list[str]:
    """What was logged."""
    return []


def opened(directory: Path | str, said: list[str] | None = None, keep: int = 50) -> Journal:
    return open_journal(directory, keep=keep, log=(said if said is not None else []).append)


def line_of(journal: Journal) -> bytes:
    return journal.line(GOOD, journal.moment("stdio", "stdio", "get_schema", b"{}"), 0)


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


def test_lines_are_in_the_file_at_once_and_none_after_the_end(tmp_path: Path, said: list[str]) -> None:
    for _ in range(3):
        journal = opened(tmp_path / "runs", said)
        lines = line_of(journal) + line_of(journal)
        journal.write(lines)
        assert Path(journal.path).read_bytes() == lines
        assert os.readlink(tmp_path / "runs" / ".latest") == os.path.basename(journal.path)
        journal.close()
        journal.close()
        journal.write(lines)
        assert (journal.written, journal.failures, said) == (len(lines), 2, [])
    # The link is relative.
    (tmp_path / "runs").rename(tmp_path / "moved")
    assert (tmp_path / "moved" / ".latest").read_bytes() == lines
    assert len(os.listdir(tmp_path / "moved")) == 4


# ── places where there can be none ───────────────────────────────────────────────────────────────────────────────────


@rows("place", ["file/below", "/proc/none/of/it", "x" * 300])
def test_a_directory_that_cannot_be_written_is_no_journal_and_one_line(
    tmp_path: Path, said: list[str], place: str
) -> None:
    said.clear()
    (tmp_path / "file").write_text("")
    assert Journal.open(tmp_path / place, log=said.append) is None
    [line] = said
    assert line.startswith("no journal: ")
    assert line.endswith(("Not a directory", "No such file or directory", "File name too long"))


def test_without_a_link_there_is_a_journal_all_the_same(tmp_path: Path, said: list[str]) -> None:
    (tmp_path / ".latest").mkdir()
    journal = opened(tmp_path, said)
    journal.write(line_of(journal))
    journal.close()
    assert [line.partition(":")[0] for line in said] == ["journal"]
    assert journal.failures == 0
    assert len(os.listdir(tmp_path)) == 2


# ── old runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_old_runs_are_removed_the_oldest_first_unless_they_are_still_written(tmp_path: Path) -> None:
    old = [tmp_path / f"20200101T0000{number:02}Z-00000000.jsonl" for number in range(5)]
    others = [tmp_path / name for name in ("notes.txt", "20200101.jsonl", "20200101T000000Z-0000000g.jsonl")]
    for path in (*old, *others):
        path.write_bytes(b"")
    first = opened(tmp_path, keep=3)
    assert runs(str(tmp_path)) == [*map(str, old[3:]), first.path]
    second = opened(tmp_path, keep=1)
    assert set(runs(str(tmp_path))) == {first.path, second.path}
    first.close()
    third = opened(tmp_path, keep=1)
    assert set(runs(str(tmp_path))) == {second.path, third.path}
    assert all(path.exists() for path in others)
    second.close()
    third.close()


# ── a full disk ──────────────────────────────────────────────────────────────────────────────────────────────────────


def fill(journal: Journal, times: int) -> bytes:
    """Writes two lines so many times, as for a request and its answer; all that should have been written."""
    everything = b""
    for _ in range(times):
        lines = line_of(journal) + line_of(journal)
        everything += lines
        journal.write(lines)
    return everything


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


@rows(
    ("outcomes", "whole", "reason"),
    [
        ((50,), 2, ""),
        ((50, FIRST), 1, "only a part was written"),
        ((OSError(errno.ENOSPC, "No space left"),), 0, "No space left"),
    ],
)
def test_a_short_write_is_completed_and_a_second_one_ends_after_a_whole_line(
    tmp_path: Path, said: list[str], outcomes: tuple[int | OSError, ...], whole: int, reason: str
) -> None:
    journal = opened(tmp_path, said)
    lines = line_of(journal), line_of(journal)
    with pytest.MonkeyPatch.context() as patch:
        half_taken(patch, *(len(lines[0]) if each == FIRST else each for each in outcomes))
        journal.write(b"".join(lines))
    assert Path(journal.path).read_bytes() == b"".join(lines[:whole])
    assert journal.failures == 2 - whole
    assert said == ([f"journal stopped: {journal.path}: {reason}"] if reason else [])
    said.clear()


def test_a_file_that_may_not_grow_stops_the_journal_after_a_whole_line(tmp_path: Path, said: list[str]) -> None:
    journal = opened(tmp_path, said)
    with small_files(1 << 16):
        everything = fill(journal, 200)
    content = Path(journal.path).read_bytes()
    assert everything.startswith(content)
    assert (content[-1:], journal.written) == (b"\n", len(content))
    assert journal.failures == everything.count(b"\n") - content.count(b"\n") > 0
    assert said == [f"journal stopped: {journal.path}: File too large"]


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

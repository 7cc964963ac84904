"""The files of the journal: their place and length, which are removed, and what happens if the disk is full."""

import errno
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from assay.model.verdict import Party, verdict
from assay.records.journal import Journal
from assay.records.reading import Pages
from assay.records.run_files import files_of, runs_in
from kit.command import assay_text
from kit.records import open_journal
from kit.rows import rows
from kit.small_files import small_files

FILE_BYTES = 8192
NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}\.jsonl")
FIRST = -1
"""A write that takes as much as the first line has."""
GOOD = verdict(Party.CLIENT, b"{}", "request", {"jsonrpc": "2.0", "id": 1, "method": "get_schema"}, None, None)


@pytest.fixture
def said() -> list[str]:
    """What was logged."""
    return []


def opened(directory: Path, said: list[str] | None = None, **options: Any) -> Journal:
    options = {"file_bytes": FILE_BYTES, "log": (said if said is not None else []).append, **options}
    return open_journal(directory, **options)


def line_of(journal: Journal) -> bytes:
    return journal.line(GOOD, journal.moment("stdio", "stdio", "get_schema", b"{}"), 0)


def fill(journal: Journal, messages: int) -> bytes:
    """Write so many messages; return their lines."""
    every = b""
    for _ in range(messages):
        line = line_of(journal)
        journal.write(line)
        every += line
    return every


def names(directory: Path) -> list[str]:
    return [os.path.basename(path) for each in runs_in(str(directory)) for path in each.paths]


def shown(directory: Path) -> str:
    """What `assay journal show` prints of all runs in it."""
    return assay_text("journal", "show", "--format", "json", str(directory)).stdout


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


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_goes_on_in_further_files_that_are_read_as_one(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    every = fill(journal, 100)
    journal.close()
    run = names(tmp_path)[0].removesuffix(".jsonl")
    assert names(tmp_path) == [
        f"{run}.jsonl",
        *(f"{run}.{number:04}.jsonl" for number in range(2, len(names(tmp_path)) + 1)),
    ]
    assert len(names(tmp_path)) > 3
    paths = [tmp_path / name for name in names(tmp_path)]
    assert all(path.stat().st_size <= FILE_BYTES for path in paths)
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert os.readlink(tmp_path / ".latest") == paths[-1].name
    for name in (tmp_path, tmp_path / ".latest", paths[0]):
        with Pages(str(name)) as pages:
            assert b"".join(pages) == every
    with Pages(str(paths[1])) as pages:
        assert b"".join(pages) == paths[1].read_bytes()
    assert shown(tmp_path).encode() == every
    assert (journal.written, journal.failures) == (len(every), 0)


def test_a_file_that_cannot_be_begun_leaves_the_run_where_it_is(tmp_path: Path) -> None:
    said: list[str] = []
    journal = opened(tmp_path, said)
    first = Path(journal.path)
    # As if its directory had been moved away.
    journal.output.path = str(tmp_path / "none" / first.name)
    every = fill(journal, 100)
    journal.close()
    assert first.read_bytes() == every
    assert 1 <= len(said) <= 5
    assert all(line.startswith("journal: ") for line in said)


@rows("target", ["/etc/passwd", "../other.jsonl", "nothing"])
def test_a_link_that_leads_outside_is_not_followed(tmp_path: Path, target: str) -> None:
    place = tmp_path / str(len(target))
    journal = opened(place)
    every = fill(journal, 1)
    journal.close()
    (tmp_path / "other.jsonl").write_bytes(b"secret\n")
    (place / ".latest").unlink()
    (place / ".latest").symlink_to(target)
    assert shown(place).encode() == every


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


# ── what is removed ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_old_runs_are_removed_the_oldest_first_unless_they_are_still_written(tmp_path: Path) -> None:
    old = [tmp_path / f"20200101T0000{number:02}Z-00000000.jsonl" for number in range(5)]
    others = [tmp_path / name for name in ("notes.txt", "20200101.jsonl", "20200101T000000Z-0000000g.jsonl")]
    for path in (*old, *others):
        path.write_bytes(b"")
    first = opened(tmp_path, keep=3)
    assert [path for each in runs_in(str(tmp_path)) for path in each.paths] == [*map(str, old[3:]), first.path]
    second = opened(tmp_path, keep=1)
    assert {path for each in runs_in(str(tmp_path)) for path in each.paths} == {first.path, second.path}
    first.close()
    third = opened(tmp_path, keep=1)
    assert {path for each in runs_in(str(tmp_path)) for path in each.paths} == {second.path, third.path}
    assert all(path.exists() for path in others)
    second.close()
    third.close()


def test_all_files_together_take_only_so_much(tmp_path: Path) -> None:
    """The oldest go first, those of the run itself too; a reader finds what is left."""
    old = tmp_path / "20200101T000000Z-00000000.jsonl"
    old.write_bytes(b"x" * 4 * FILE_BYTES)
    os.utime(old, (0, 0))
    journal = opened(tmp_path, total_bytes=4 * FILE_BYTES)
    assert not old.exists()
    every = fill(journal, 300)
    assert sum(path.stat().st_size for path in tmp_path.glob("*.jsonl")) <= 4 * FILE_BYTES
    journal.close()
    with Pages(str(tmp_path)) as pages:
        left = b"".join(pages)
    assert every.endswith(left)
    assert len(left) > FILE_BYTES


def test_what_another_process_writes_to_is_not_removed(tmp_path: Path) -> None:
    other = opened(tmp_path, file_bytes=1 << 20)
    fill(other, 200)
    os.utime(other.path, (0, 0))
    journal = opened(tmp_path, total_bytes=2 * FILE_BYTES)
    fill(journal, 100)
    assert Path(other.path).exists()
    other.close()
    fill(journal, 100)
    assert not Path(other.path).exists()
    journal.close()


def test_runs_are_kept_and_removed_with_all_their_files(tmp_path: Path) -> None:
    for _ in range(3):
        journal = opened(tmp_path, keep=2)
        fill(journal, 60)
        journal.close()
    assert len({name[:25] for name in names(tmp_path)}) == 2
    living = opened(tmp_path, keep=2)
    fill(living, 60)
    for _ in range(3):
        opened(tmp_path, keep=1).close()
    assert {path for path in files_of(living.path) if os.path.exists(path)} == set(files_of(living.path))
    assert len(files_of(living.path)) > 1
    living.close()


# ── opened anew ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    path = Path(journal.path)
    before = fill(journal, 2)
    path.rename(tmp_path / "moved")
    journal.reopen()
    after = fill(journal, 2)
    assert (tmp_path / "moved").read_bytes() == before
    assert path.read_bytes() == after
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    journal.reopen()
    after += fill(journal, 1)
    assert path.read_bytes() == after
    journal.close()


def test_a_file_that_cannot_be_opened_anew_is_written_on_and_a_stopped_journal_goes_on(tmp_path: Path) -> None:
    said: list[str] = []
    journal = opened(tmp_path, said)
    path = Path(journal.path)
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "other")
    journal.reopen()
    written = fill(journal, 2)
    assert (tmp_path / "moved").read_bytes() == written
    assert (not (tmp_path / "other").exists(), len(said)) == (True, 1)
    os.close(journal.output._descriptor)
    fill(journal, 2)
    assert (journal.failures, len(said)) == (2, 2)
    path.unlink()
    journal.reopen()
    assert fill(journal, 2) == path.read_bytes()
    journal.close()


# ── a full disk ──────────────────────────────────────────────────────────────────────────────────────────────────────


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
    journal = opened(tmp_path, said, file_bytes=1 << 20)
    with small_files(1 << 16):
        everything = fill(journal, 400)
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

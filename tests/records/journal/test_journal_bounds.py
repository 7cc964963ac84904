"""How much a journal takes: files of a certain length, all of them together, and garbage that is only counted."""

import os
import stat
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from assay.base.limits import Limits
from assay.base.verdict import Party, Verdict
from assay.cli.main import main
from assay.core.conversation import Conversation
from assay.core.redaction import Redactor
from assay.edges.recorder import Recorder, Records
from assay.records.journal import repeats, run_files
from assay.records.journal.reading import LONGEST_LINE, Pages, entries
from assay.records.journal.record import payload
from assay.records.journal.writer import Journal
from kit import command
from kit.records import open_journal, record_verdict
from kit.rows import rows

FILE_BYTES = 8192
PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'


def opened(directory: Path, said: list[str] | None = None, **options: Any) -> Journal:
    options = {"file_bytes": FILE_BYTES, "log": (said if said is not None else []).append, **options}
    return open_journal(directory, **options)


def fill(journal: Journal, messages: int) -> bytes:
    """So many messages are written; the lines of them."""
    conversation = Conversation(revision="2025-11-25")
    every = b""
    for number in range(messages):
        verdict = conversation.hear(Party.CLIENT, PING % number)
        moment = journal.moment("stdio", "stdio", "ping", verdict.frame)
        line = journal.line(verdict, moment, 0)
        journal.write(line)
        every += line
    return every


def names(directory: Path) -> list[str]:
    return [os.path.basename(path) for path in run_files.runs(str(directory))]


assay = partial(command.assay, NO_COLOR="1", COLUMNS="120")


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
    assert assay("journal", "show", "--format", "json", str(tmp_path)).stdout == every
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
    assert assay("journal", "show", "--format", "json", str(place)).stdout == every


# ── what is removed ──────────────────────────────────────────────────────────────────────────────────────────────────


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
    assert {path for path in run_files.files_of(living.path) if os.path.exists(path)} == set(
        run_files.files_of(living.path)
    )
    assert len(run_files.files_of(living.path)) > 1
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


# ── garbage ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def recorded(journal: Journal, frames: list[bytes], session: str = "", **options: Any) -> Recorder:
    """A recorder that has recorded what a client said."""
    recorder = Recorder("stdio", "stdio", Records(journal), **options)
    conversation = Conversation(revision="2025-11-25")
    for frame in frames:
        record_verdict(recorder, conversation.hear(Party.CLIENT, frame), recorder.clock(), 0, session)
    return recorder


def records(directory: Path) -> list[dict[str, Any]]:
    with Pages(str(directory)) as pages:
        return [each.record for each in entries(pages) if each.record is not None]


def counts(directory: Path) -> list[int]:
    return [each["metadata"].get("repeated", 0) for each in records(directory)]


GARBAGE = [b"1", b"{}", b"[]", b"[1]", b'"x"', b"\xff", b"oops", b'{"id":1}']


@rows(
    ("frames", "options", "expected"),
    [
        ([b"1", *[b"%d" % number for number in range(1000)], PING % 1, b"1", b"1"], {}, [0, 1000, 0, 0, 1]),
        *(([each] * 100, {}, [0, 99]) for each in GARBAGE),
        ([b"1", b"oops", b"1"], {}, [0, 0, 0]),
        # With payloads only the same bytes are counted; a deterministic run counts nothing.
        ([b"1", b"1", b"2", b"2", b"2"], {"payloads": True}, [0, 1, 0, 2]),
        ([b"1"] * 5, {"deterministic": True}, [0] * 5),
    ],
)
def test_garbage_that_comes_again_and_again_is_one_record_and_a_count(
    tmp_path: Path, frames: list[bytes], options: dict[str, Any], expected: list[int]
) -> None:
    place = tmp_path / str(len(list(tmp_path.iterdir())))
    journal = opened(place, **options)
    recorded(journal, frames)
    journal.close()
    found = records(place)
    assert [each["metadata"].get("repeated", 0) for each in found] == expected
    assert sum(each["inputBytes"] for each in found) == sum(map(len, frames))
    if max(expected) == 1000:
        assert "(not a message) × 1,000" in assay("journal", "show", str(place)).stdout.decode()


def test_garbage_of_another_session_or_party_is_counted_by_itself(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    recorder = recorded(journal, [b"1"], "a")
    conversation = Conversation(revision="2025-11-25")
    for party, session in ((Party.CLIENT, "b"), (Party.SERVER, "a"), (Party.CLIENT, "a"), (Party.CLIENT, "b")):
        record_verdict(recorder, conversation.hear(party, b"1"), recorder.clock(), 0, session)
    journal.close()
    assert counts(tmp_path) == [0, 0, 0, 1, 1]


def test_many_sessions_that_send_garbage_are_counted_within_bounds(tmp_path: Path) -> None:
    journal = opened(tmp_path, file_bytes=64 << 20)
    conversation = Conversation(revision="2025-11-25")
    verdicts: list[Verdict] = [conversation.hear(Party.CLIENT, b"1") for _ in range(2)]
    recorder = Recorder("http", "/mcp", Records(journal))
    for number in range(repeats.MOST_ROWS + 100):
        for verdict in verdicts:
            record_verdict(recorder, verdict, recorder.clock(), 0, str(number))
        assert len(journal.rows) <= repeats.MOST_ROWS
    journal.close()
    assert sum(counts(tmp_path)) == repeats.MOST_ROWS + 100


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_long_names_of_tools_and_long_garbage_are_not_kept(tmp_path: Path) -> None:
    """What is remembered for the next line is bounded in bytes, not only in number."""
    journal = opened(tmp_path, file_bytes=64 << 20)
    recorder = Recorder("stdio", "stdio", Records(journal))
    conversation = Conversation(revision="2025-11-25")
    tracemalloc.start()
    try:
        for number in range(200):
            call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%d%b"}}' % (
                number, number, b"x" * 500_000,
            )  # fmt: skip
            verdict = conversation.hear(Party.CLIENT, call)
            assert verdict.accepted
            record_verdict(recorder, verdict, recorder.clock(), 0, str(number))
            conversation.give_up(Party.CLIENT, number)
            garbage = Conversation().hear(Party.CLIENT, b"%d" % number + b"y" * 500_000)
            record_verdict(recorder, garbage, recorder.clock(), 0, str(number))
            record_verdict(recorder, garbage, recorder.clock(), 0, str(number))
        del call, verdict, garbage
        assert tracemalloc.get_traced_memory()[0] < 20 << 20
    finally:
        tracemalloc.stop()
    journal.close()


@rows(
    ("frame", "omitted"),
    [
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', False, id="small"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":[' + b"1," * 60_000 + b"1]}}", True, id="many"
        ),
        pytest.param(
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"," * 60_000 + b'"}}', False, id="text"
        ),
        pytest.param(b" " * (5 << 20) + b"{", True, id="long"),
    ],
)
def test_a_payload_that_would_take_long_to_look_through_is_left_out(frame: bytes, omitted: bool) -> None:
    """Every value is looked at for secrets: a million took a second, in which no client was served."""
    verdict = Conversation(revision="2025-11-25", limits=Limits(frame_bytes=16 << 20)).hear(Party.CLIENT, frame)
    written = payload(verdict, Redactor())
    assert ("omitted" in written, "frame" in written) == (omitted, not omitted)


# ── long lines ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_that_is_too_long_is_passed_over_and_one_in_parts_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"a\n" + b"b" * 99 + b"\n" + b"c" * 100 + b"\n" + b"d\n" + b"e" * 200)
    cut = b"(a line of %d bytes; at most 100 are read)\n"
    expected = [b"a\n", b"b" * 99 + b"\n", cut % 101, b"d\n"]
    with Pages(str(file), longest=100) as pages:
        assert (list(pages), pages.too_long) == ([*expected, cut % 200], 2)
    with Pages(str(file), longest=100) as pages, file.open("ab", buffering=0) as more:
        assert list(pages.arrived()) == expected
        more.write(b"\nx")
        assert list(pages.arrived()) == [cut % 201]
        more.write(b"y\nz")
        assert list(pages.arrived()) == [b"xy\n"]


def test_commands_report_a_line_that_is_too_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"ts":')
    # Nothing of this is on the disk.
    os.truncate(file, LONGEST_LINE + 10)
    assert main(["check", str(file)]) == 2
    assert "a line is too long" in capsys.readouterr().err
    assert main(["journal", "show", str(file)]) == 2
    assert "1 line longer than 134,217,728 bytes, and not read" in capsys.readouterr().err

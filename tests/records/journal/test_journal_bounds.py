"""How much a journal takes: files of a certain length, all of them together, and garbage that is only counted."""

import gc
import os
import stat
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import orjson
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
from kit.records import record_verdict
from kit.rows import rows

FILE_BYTES = 8192
PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'


def opened(directory: Path, said: list[str] | None = None, **options: Any) -> Journal:
    options = {"file_bytes": FILE_BYTES, "log": (said if said is not None else []).append, **options}
    journal = Journal.open(directory, **options)
    assert journal is not None
    return journal


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


def test_a_record_longer_than_a_file_may_be_has_a_file_of_its_own(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    fill(journal, 1)
    journal.write(b"x" * 3 * FILE_BYTES + b"\n")
    fill(journal, 1)
    journal.close()
    assert len(names(tmp_path)) == 3


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


def test_a_run_that_is_followed_goes_on_with_its_next_file(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    every = fill(journal, 10)
    read: list[bytes] = []
    with Pages(str(tmp_path)) as pages:

        def more() -> None:
            nonlocal every
            every += fill(journal, 30)

        for line in pages.followed(more):
            read.append(line)
            if len(read) == 100:
                break
    journal.close()
    assert b"".join(read) == b"".join(every.splitlines(keepends=True)[:100])
    assert len(names(tmp_path)) > 2


def test_a_run_in_several_files_is_replayed_as_one(tmp_path: Path) -> None:
    journal = opened(tmp_path, payloads=True)
    conversation = Conversation()
    recorder = Recorder("stdio", "stdio", Records(journal))
    opening = b'{"jsonrpc":"2.0","id":"a","method":"initialize","params":%b}' % orjson.dumps(
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    )
    for frame in (opening, *(PING % number for number in range(50)), *[b"oops"] * 3, PING % 0):
        record_verdict(recorder, conversation.hear(Party.CLIENT, frame), recorder.clock(), 0)
    journal.close()
    assert len(names(tmp_path)) > 3
    for name in (tmp_path, tmp_path / names(tmp_path)[0]):
        done = assay("replay", str(name))
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout == b"54 records: 54 the same\n"


def test_the_link_stays_with_a_newer_run(tmp_path: Path) -> None:
    older = opened(tmp_path)
    newer = opened(tmp_path)
    fill(older, 100)
    assert os.readlink(tmp_path / ".latest") == os.path.basename(newer.path)
    older.close()
    newer.close()


@pytest.mark.parametrize("target", ["/etc/passwd", "../other.jsonl", "nothing"])
def test_a_link_that_leads_outside_is_not_followed(tmp_path: Path, target: str) -> None:
    journal = opened(tmp_path / "runs")
    every = fill(journal, 1)
    journal.close()
    (tmp_path / "other.jsonl").write_bytes(b"secret\n")
    (tmp_path / "runs" / ".latest").unlink()
    (tmp_path / "runs" / ".latest").symlink_to(target)
    assert assay("journal", "show", "--format", "json", str(tmp_path / "runs")).stdout == every


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


def test_a_file_that_cannot_be_opened_anew_is_written_on(tmp_path: Path) -> None:
    said: list[str] = []
    journal = opened(tmp_path, said)
    path = Path(journal.path)
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "other")
    journal.reopen()
    written = fill(journal, 2)
    journal.close()
    assert (tmp_path / "moved").read_bytes() == written
    assert not (tmp_path / "other").exists()
    assert len(said) == 1


def test_a_journal_that_has_stopped_goes_on_when_it_is_opened_anew(tmp_path: Path) -> None:
    said: list[str] = []
    journal = opened(tmp_path, said)
    os.close(journal.output._descriptor)
    fill(journal, 2)
    assert journal.failures == 2
    assert len(said) == 1
    journal.reopen()
    assert Path(journal.path).read_bytes() + fill(journal, 2) == Path(journal.path).read_bytes()
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


def test_garbage_that_comes_again_and_again_is_one_record_and_a_count(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    recorded(journal, [b"1", *[b"%d" % number for number in range(1000)], PING % 1, b"1", b"1"])
    journal.close()
    assert counts(tmp_path) == [0, 1000, 0, 0, 1]
    count = records(tmp_path)[1]
    assert (count["status"], count["inputBytes"]) == ("refused", 10 + 2 * 90 + 3 * 900)
    shown = assay("journal", "show", str(tmp_path)).stdout.decode()
    assert "(not a message) × 1,000" in shown


@pytest.mark.parametrize("frame", [b"1", b"{}", b"[]", b"[1]", b'"x"', b"\xff", b"oops", b'{"id":1}'])
def test_every_kind_of_garbage_is_counted(tmp_path: Path, frame: bytes) -> None:
    journal = opened(tmp_path)
    recorded(journal, [frame] * 100)
    journal.close()
    assert counts(tmp_path) == [0, 99]


def test_what_is_wrong_otherwise_or_is_said_by_another_has_a_record_of_its_own(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    recorder = recorded(journal, [b"1", b"oops", b"1"], "a")
    conversation = Conversation(revision="2025-11-25")
    for party, session in ((Party.CLIENT, "b"), (Party.SERVER, "a"), (Party.CLIENT, "a"), (Party.CLIENT, "b")):
        record_verdict(recorder, conversation.hear(party, b"1"), recorder.clock(), 0, session)
    journal.close()
    assert counts(tmp_path) == [0, 0, 0, 0, 0, 1, 1]


def test_with_payloads_only_the_same_bytes_are_counted(tmp_path: Path) -> None:
    journal = opened(tmp_path, payloads=True)
    recorded(journal, [b"1", b"1", b"2", b"2", b"2"])
    journal.close()
    assert [(each["metadata"]["frame"], each["metadata"].get("repeated")) for each in records(tmp_path)] == [
        ("1", None),
        ("1", 1),
        ("2", None),
        ("2", 2),
    ]


def test_in_a_deterministic_run_nothing_is_counted(tmp_path: Path) -> None:
    journal = opened(tmp_path, deterministic=True)
    recorded(journal, [b"1"] * 5)
    journal.close()
    assert counts(tmp_path) == [0] * 5


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


def test_contracts_of_tools_are_not_kept_by_the_journal(tmp_path: Path) -> None:
    """With them their schemas would stay, long after the session has ended."""
    journal = opened(tmp_path)
    recorder = Recorder("stdio", "stdio", Records(journal))
    conversation = Conversation(revision="2025-11-25")
    tools = b'{"tools":[{"name":"only-here","inputSchema":{"type":"object"}}]}'
    for party, frame in (
        (Party.CLIENT, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
        (Party.SERVER, b'{"jsonrpc":"2.0","id":1,"result":%b}' % tools),
        (Party.CLIENT, b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"only-here"}}'),
        (Party.SERVER, b'{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'),
    ):
        verdict = conversation.hear(party, frame)
        assert verdict.findings is None
        record_verdict(recorder, verdict, recorder.clock(), 0)
    assert verdict.exchange is not None
    kind = type(verdict.exchange.contract)

    def kept() -> int:
        gc.collect()
        return sum(type(each) is kind and each.name == "only-here" for each in gc.get_objects())

    assert kept() == 1
    del verdict, conversation
    assert kept() == 0
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


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"a\n" + b"b" * 99 + b"\n" + b"c" * 100 + b"\n" + b"d\n" + b"e" * 200)
    expected = [
        b"a\n",
        b"b" * 99 + b"\n",
        b"(a line of 101 bytes; at most 100 are read)\n",
        b"d\n",
        b"(a line of 200 bytes; at most 100 are read)\n",
    ]
    with Pages(str(file), longest=100) as pages:
        assert list(pages) == expected
        assert pages.too_long == 2
    with Pages(str(file), longest=100) as pages:
        assert list(pages.arrived()) == expected[:-1]
        with file.open("ab") as more:
            more.write(b"\n")
        assert list(pages.arrived()) == [b"(a line of 201 bytes; at most 100 are read)\n"]


def test_a_line_that_is_written_bit_by_bit_is_whole_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.touch()
    with Pages(str(file)) as pages, file.open("ab", buffering=0) as more:
        for _ in range(100):
            more.write(b"x" * 50_000)
            assert list(pages.arrived()) == []
        more.write(b"\ny\nz")
        assert list(pages.arrived()) == [b"x" * 5_000_000 + b"\n", b"y\n"]


def test_commands_report_a_line_that_is_too_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"ts":')
    # Nothing of this is on the disk.
    os.truncate(file, LONGEST_LINE + 10)
    assert main(["check", str(file)]) == 2
    assert "a line is too long" in capsys.readouterr().err
    assert main(["journal", "show", str(file)]) == 2
    assert "1 line longer than 134,217,728 bytes, and not read" in capsys.readouterr().err

"""How much a journal takes: garbage that is only counted, what is kept in memory, and long lines."""

import os
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import main
from assay.edges.recorder import Recorder, Records
from assay.judge.conversation import Conversation
from assay.judge.redaction import Redactor
from assay.model.limits import Limits
from assay.model.verdict import Party, Verdict
from assay.records import repeats
from assay.records.journal import Journal
from assay.records.reading import LONGEST_LINE, Pages
from assay.records.record import payload
from kit.command import assay_text
from kit.journals import records
from kit.kept import kept_bytes
from kit.records import open_journal, record_verdict
from kit.rows import rows

FILE_BYTES = 64 << 20
PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'


# ── garbage ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def recorded(journal: Journal, frames: list[bytes], session: str = "", **options: Any) -> Recorder:
    """A recorder that has recorded what a client said."""
    recorder = Recorder("stdio", "stdio", Records(journal), **options)
    conversation = Conversation(revision="2025-11-25")
    for frame in frames:
        record_verdict(recorder, conversation.hear(Party.CLIENT, frame), recorder.clock(), 0, session)
    return recorder


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
    journal = open_journal(place, **options)
    recorded(journal, frames)
    journal.close()
    found = records(place)
    assert [each["metadata"].get("repeated", 0) for each in found] == expected
    assert sum(each["inputBytes"] for each in found) == sum(map(len, frames))
    if max(expected) == 1000:
        assert "(not a message) × 1,000" in assay_text("journal", "show", str(place)).stdout


def test_garbage_of_another_session_or_party_is_counted_by_itself(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    recorder = recorded(journal, [b"1"], "a")
    conversation = Conversation(revision="2025-11-25")
    for party, session in ((Party.CLIENT, "b"), (Party.SERVER, "a"), (Party.CLIENT, "a"), (Party.CLIENT, "b")):
        record_verdict(recorder, conversation.hear(party, b"1"), recorder.clock(), 0, session)
    journal.close()
    assert counts(tmp_path) == [0, 0, 0, 1, 1]


def test_many_sessions_that_send_garbage_are_counted_within_bounds(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, file_bytes=FILE_BYTES)
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
    journal = open_journal(tmp_path, file_bytes=FILE_BYTES)
    recorder = Recorder("stdio", "stdio", Records(journal))
    conversation = Conversation(revision="2025-11-25")
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
    assert kept_bytes(journal, recorder) < 1 << 20
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
    assert "1 line is longer than 134,217,728 bytes, and not read" in capsys.readouterr().err
    assert main(["journal", "show", str(file)]) == 2
    assert "1 line longer than 134,217,728 bytes, and not read" in capsys.readouterr().err

"""A recording that is split into conversations, and judged in parts, gives what it gives as a whole."""

from pathlib import Path
from random import Random

import pytest

from assay.cli.checking import block_scan, recording_split
from assay.cli.checking.check_stream import UnitEnd
from assay.cli.checking.check_terms import CheckTerms
from assay.cli.checking.work_units import FilePart, WholeFile
from assay.records.recording import judging
from assay.settings import Settings
from assay.spec.extensions.official import OFFICIAL
from kit.alike import recorded
from kit.archives import archive
from kit.parts import TERMS, as_whole, in_parts, tiny

LISTED = (
    '{"dir":"s2c","conversation":1,"msg":{"jsonrpc":"2.0","id":1,"result":'
    '{"tools":[{"name":"add","inputSchema":{"type":"object","required":["n"]}}]}}}'
)
CALLED = (
    '{"dir":"c2s","conversation":2,"msg":{"jsonrpc":"2.0","id":1,"method":"tools/call",'
    '"params":{"name":"add","arguments":{}}}}'
)


@pytest.mark.parametrize("seed", range(40))
def test_the_parts_give_what_the_whole_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    tiny(monkeypatch, page=(150, 400, 1500, 1 << 20)[seed % 4], scanned=(700, 3000, 1 << 20)[seed % 3])
    path = archive(tmp_path / "a.jsonl", seed)
    work, found = in_parts(path)
    assert found == as_whole(path)
    assert len(work.units) > 2


@pytest.mark.parametrize("seed", range(20))
def test_so_they_do_if_conversations_begin_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    tiny(monkeypatch, page=(400, 1500)[seed % 2])
    path = tmp_path / "a.jsonl"
    path.write_bytes(recorded(Random(seed), 20))  # noqa: S311 - no secret
    assert in_parts(path)[1] == as_whole(path)


def test_every_message_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny(monkeypatch)
    path = archive(tmp_path / "a.jsonl", 1)
    terms = CheckTerms(Settings(), OFFICIAL, with_messages=True)
    _, found = in_parts(path, terms)
    assert found == as_whole(path, terms)
    assert found[-1][0] == 0
    assert len(found) > len(as_whole(path))


def test_conversations_that_share_tools_stay_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call of the second conversation is wrong by the tools that the first one has listed."""
    tiny(monkeypatch, page=100, unit=100)
    rows = [
        '{"event":"recording","version":1}',
        '{"event":"open","conversation":1,"server":"a","mode":"audit","revision":"2025-11-25"}',
        '{"dir":"c2s","conversation":1,"msg":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1,\\"method\\":\\"tools/list\\"}"}',
        LISTED,
        *(
            f'{{"dir":"c2s","conversation":{number},"msg":{{"jsonrpc":"2.0","method":"notifications/initialized"}}}}'
            for number in range(10, 20)
        ),
        '{"event":"open","conversation":2,"server":"a","mode":"audit","revision":"2025-11-25","tools":1}',
        CALLED,
        '{"event":"close"}',
    ]
    path = tmp_path / "shared.jsonl"
    path.write_text("\n".join(rows) + "\n")
    work, found = in_parts(path)
    assert found == as_whole(path)
    parts = [each.part.numbers for each in work.units if isinstance(each, FilePart)]
    assert any({1, 2} <= each for each in parts)
    assert len(parts) > 3
    assert any("contract/input" in str(each) for each in found)


@pytest.mark.parametrize(
    "line",
    [
        "not JSON",
        '{"dir":"c2s","conversation":3,"msg":"{}"',
        '{"dir":"c2s","conversation":3,"msg":"{}","msg":"{}"}',
        '{"dir":"c2s","conversation":3,"msg":"\t"}',
        '{"dir":"up","conversation":3,"msg":"{}"}',
        '{"dir":"c2s","conversation":3}',
        '{"dir":"c2s","msg":"{}","conversation":3}',
        '{"dir":"c2s","conversation":3,"msg":"{}","conversation":4}',
        "[]",
        '{,"msg":"{}"}',
        '{"event":[],"conversation":3}',
        '{"dir":"c2s","conversation":3,"msg":"{}","event":{}}',
        '{"dir":"c2s","conversation":3,"msg":"{}","event":"recording"}',
        '{"dir":"c2s","conversation":3,"msg":"{}","event":"stopped"}',
        '{"dir":"c2s","conversation":3,"msg":"{}","event":"open","revision":"2025-11-25","tools":4}',
    ],
)
@pytest.mark.parametrize("place", [0.3, 0.8])
def test_an_odd_line_has_the_same_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, place: float
) -> None:
    """A line that cannot be read ends the judging, and messages behind it do not count, whoever they belong to."""
    tiny(monkeypatch)
    path = archive(tmp_path / "a.jsonl", 5, conversations=30, is_cut=False)
    lines = path.read_text(encoding="utf-8").split("\n")
    lines.insert(int(place * len(lines)), line)
    path.write_text("\n".join(lines), encoding="utf-8")
    assert in_parts(path)[1] == as_whole(path)


def test_a_row_with_its_number_behind_the_message_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head of the row names another conversation, so the file is judged as a whole after all."""
    tiny(monkeypatch, page=100, unit=100)
    ping = '"msg":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1,\\"method\\":\\"tools/list\\"}"'
    rows = [f'{{"dir":"c2s","conversation":{number},{ping}}}' for number in range(1, 30)]
    rows.insert(20, f'{{"dir":"c2s","conversation":2,{ping},"party":"client","conversation" :3}}')
    rows.insert(10, f'{{"dir":"c2s",{ping},"conversation":3}}')
    path = tmp_path / "odd.jsonl"
    path.write_text("\n".join(rows[:20]) + "\n")
    work, found = in_parts(path)
    assert found == as_whole(path)
    assert len(work.units) > 2


@pytest.mark.parametrize(
    ("last", "found_open"),
    [
        ('{"dir":"c2s","msg":{"event":"x', 29),
        ('{"event":"clo', 29),
        ('{"event":"close"}', 0),
        ('{"\\u0065vent":"close"}', 0),
    ],
)
def test_only_a_whole_row_shows_that_a_guard_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str, found_open: int
) -> None:
    """Open requests are reported at the end of a recording of another program, and not of one of a guard."""
    tiny(monkeypatch, page=100, unit=100)
    asked = '"msg":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1,\\"method\\":\\"tools/list\\"}"'
    rows = [f'{{"dir":"c2s","conversation":{number},{asked}}}' for number in range(1, 30)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([*rows, last]))
    work, found = in_parts(path)
    assert found == as_whole(path)
    assert len(work.units) > 2
    assert str(found).count("violation=Violation(rule='protocol/unanswered'") == found_open


@pytest.mark.parametrize("by_guard", [True, False])
def test_conversations_that_one_process_would_drop_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_guard: bool
) -> None:
    """With room for a few conversations only, a message of one that was silent for long is not judged."""
    monkeypatch.setattr(judging, "MOST_CONVERSATIONS", 4)
    monkeypatch.setattr(recording_split, "MOST_CONVERSATIONS", 4)
    tiny(monkeypatch, page=100, unit=100)
    ping = '"msg":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":%d,\\"method\\":\\"tools/list\\"}"'
    order = [1, 2, 3, 4, 1, 5, 6, 2, 1, 7, 8, 9, 9, 10, 10, 11, 11, 11, 5]
    rows = [f'{{"dir":"c2s","conversation":{number},{ping % at}}}' for at, number in enumerate(order, 1)]
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join(['{"event":"recording"}', *rows, '{"event":"close"}'] if by_guard else rows) + "\n")
    work, found = in_parts(path)
    assert found == as_whole(path)
    assert "not judged: too many conversations" in found[-1][-1]
    local = tmp_path / "local.jsonl"
    rows = [f'{{"dir":"c2s","conversation":{at // 8},{ping % at}}}' for at in range(400)]
    local.write_text("\n".join(['{"event":"recording"}', *rows, '{"event":"close"}'] if by_guard else rows) + "\n")
    work, found = in_parts(local)
    assert found == as_whole(local)
    # Without a guard, the end of the file shows which conversations were dropped.
    assert (len(work.units) > 5) is by_guard


def test_a_conversation_is_dropped_by_its_last_message_not_by_its_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "MOST_CONVERSATIONS", 3)
    ping = '"msg":"{\\"jsonrpc\\":\\"2.0\\",\\"method\\":\\"notifications/initialized\\"}"'
    path = tmp_path / "a.jsonl"
    order = [1, 2, 3, 1, 4, 1, 3, 2]
    path.write_text("".join(f'{{"dir":"c2s","conversation":{number},{ping}}}\n' for number in order))
    assert "1 message not judged: too many conversations" in as_whole(path)[-1]


def test_a_line_without_an_end_can_be_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny(monkeypatch)
    path = archive(tmp_path / "a.jsonl", 3, is_cut=False)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    _, found = in_parts(path)
    assert found == as_whole(path)
    assert "cut off" not in str(found[-1])


def test_what_cannot_be_split_is_one_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    tiny(monkeypatch)
    path = archive(tmp_path / "a.jsonl", 3)
    packed_file = tmp_path / "a.jsonl.gz"
    packed_file.write_bytes(gzip.compress(path.read_bytes()))
    alone = tmp_path / "alone.jsonl"
    alone.write_text('{"dir":"c2s","msg":"{}"}\n' * 100)
    for each in (packed_file, alone, Path(__file__).parents[1] / "journal" / "golden.jsonl"):
        work, found = in_parts(each)
        assert not work.units
        assert found == as_whole(each)


def test_a_file_that_is_gone_is_an_error_of_that_file(tmp_path: Path) -> None:
    unit = WholeFile(str(tmp_path / "gone.jsonl"), "gone.jsonl")
    [end] = unit.results(TERMS, lambda _: None)
    assert isinstance(end, UnitEnd)
    assert end.error == "No such file or directory"


def test_nothing_is_kept_of_a_conversation_that_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row behind its end is not judged, wherever it is, until the conversation is opened again."""
    tiny(monkeypatch, page=100, unit=100)
    ping = '"msg":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":%d,\\"method\\":\\"ping\\"}"'
    opening = '{"event":"open","conversation":%d,"server":"a","mode":"audit","revision":"2025-11-25"}'
    rows = ['{"event":"recording","version":1}']
    for number in range(1, 9):
        rows += [opening % number, f'{{"dir":"c2s","conversation":{number},{ping % 1}}}']
        rows += [f'{{"event":"release","conversation":{number}}}']
    late = f'{{"dir":"c2s","conversation":3,{ping % 2}}}'
    path = tmp_path / "ended.jsonl"
    path.write_text("\n".join([*rows, late, late, opening % 3, late, '{"event":"close"}']) + "\n")
    work, found = in_parts(path)
    assert found == as_whole(path)
    assert len(work.units) > 4
    end = found[-1]
    assert end[0] == 9
    assert end[-1] == "2 messages not judged: its conversation had ended"


@pytest.mark.parametrize("row", ['{"event":"stopped","why":"x"}', '{"event":"recording"}'])
def test_remarks_about_places_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    """A short row asks for a long remark: with all of them, memory and stderr would grow faster than the file."""
    tiny(monkeypatch, page=1000, unit=100)
    ping = '"msg":"{\\"jsonrpc\\":\\"2.0\\",\\"method\\":\\"notifications/initialized\\"}"'
    rows = [f'{{"dir":"c2s","conversation":{number},{ping}}}' for number in range(1, 30)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([*rows, *[row] * 500, ""]))
    _, found = in_parts(path)
    assert found == as_whole(path)
    remarks = [each for each in found[-1][6:] if "missing" in each or "about places" in each]
    assert len(remarks) == 101
    assert remarks[-1] == "400 more remarks about places in it"


def test_an_empty_row_is_not_one_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    row = '{"dir":"c2s","msg":{"jsonrpc":"2.0","method":"notifications/initialized"}}'
    path.write_text(f"{row}\n{{}}\n{row}\n")
    assert as_whole(path)[-1][5] == "line 2: expected an object with dir and msg"


@pytest.mark.parametrize(("name", "limit"), [("MOST_SHARED", 20), ("LARGEST_SHARED", 400)])
def test_a_file_of_events_without_a_conversation_is_not_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    """The main process would keep all of them: 600 bytes for a row of 18."""
    tiny(monkeypatch, page=100, scanned=1 << 20, unit=100)
    ping = '"msg":"{\\"jsonrpc\\":\\"2.0\\",\\"method\\":\\"notifications/initialized\\"}"'
    rows = [f'{{"dir":"c2s","conversation":{number},{ping}}}' for number in range(1, 30)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([*rows, *['{"event":"close"}'] * 25, ""]))
    assert in_parts(path)[0].units
    monkeypatch.setattr(block_scan, name, limit)
    work, found = in_parts(path)
    assert not work.units
    assert found == as_whole(path)

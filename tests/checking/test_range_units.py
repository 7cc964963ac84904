"""A recording of a guard that is judged in ranges, without a scan, gives what it gives as a whole."""

import re
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.checking import range_units, recording_split, work_plan
from assay.cli.checking.check_stream import UnitEnd
from assay.cli.checking.check_terms import CheckTerms
from assay.cli.checking.evidence_files import Piece
from assay.cli.checking.range_units import FileRange, ranges_of, seems_fit
from assay.cli.reports.check_findings import CheckedMessage
from assay.records import line_blocks
from assay.records.recording import judging, range_judging
from assay.settings import Settings
from assay.spec.extensions.official import OFFICIAL
from kit.guarded import ODD, OPENING, PING, guarded_rows, plain_rows
from kit.laws import law
from kit.parts import TERMS, Apart, as_whole, in_parts, in_ranges

CUT = ["\n", "", '\n{"dir":"c2s","conversation":3,"msg":"{', '\n{"dir":"c2s","conversation":3,', '\n{"event":"cl']
"""What a file may end with."""


@law(200)
@given(
    seed=st.integers(0, 1 << 32),
    odd=st.lists(st.tuples(st.sampled_from([*ODD]), st.integers(0, 12), st.integers(0, 1000)), max_size=6),
    end=st.sampled_from(CUT),
    size=st.sampled_from([120, 400, 900, 3000]),
    behind=st.sampled_from([500, 5000, 1 << 20]),
    block=st.sampled_from([200, 900, 1 << 16]),
)
def test_ranges_give_what_the_whole_gives(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    odd: list[tuple[str, int, int]],
    end: str,
    size: int,
    behind: int,
    block: int,
) -> None:
    """Whatever is in the file: it is judged in ranges, in parts after a scan, or as a whole."""
    random = Random(seed)  # noqa: S311 - no secret
    rows = [*guarded_rows(random, random.randint(2, 9))]
    for name, number, place in odd:
        rows.insert(1 + place * len(rows) // 1000, ODD[name](number))
    path = tmp_path_factory.mktemp("law") / "a.jsonl"
    path.write_text("\n".join(rows) + end, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        in_ranges(patch, size=size, behind=behind)
        patch.setattr(line_blocks, "BLOCK", block)
        # So that units meet what they have to refuse.
        patch.setattr(work_plan, "_LOOKED_AT", 200)
        assert in_parts(path)[1] == as_whole(path)


def written(path: Path, rows: list[str]) -> Path:
    """Write a recording."""
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("size", [100, 300, 1000, 4000])
def test_an_ordinary_recording_is_not_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    in_ranges(monkeypatch, size=size)
    path = written(tmp_path / "a.jsonl", plain_rows(30, 4))
    work, found = in_parts(path)
    assert found == as_whole(path)
    assert len(work.ranges) > 2
    assert not work.units


def test_most_recordings_of_a_guard_are_not_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that a guard writes, such as gaps, and conversations that were never released at the end."""
    in_ranges(monkeypatch)
    count = 0
    for seed in range(40):
        path = written(tmp_path / f"{seed}.jsonl", [*guarded_rows(Random(seed), 8)])  # noqa: S311 - no secret
        work, found = in_parts(path)
        assert found == as_whole(path)
        count += bool(work.ranges)
    # In the others a tool is called before it is listed.
    assert count > 5


class Refusal(NamedTuple):
    """A recording that ranges do not suffice for."""

    rows: list[str]
    error: str = ""
    """Why a unit ends; "" if the counts of all units show it."""
    settings: dict[str, int] = {}  # noqa: RUF012 - never changed


ORDINARY = plain_rows(30, 4)
SENT = '{"dir":"c2s","conversation":%d,' + PING + "}"


def with_row(row: str, place: int = 100) -> list[str]:
    """The ordinary recording with a row more."""
    return [*ORDINARY[:place], row, *ORDINARY[place:]]


REFUSALS = {
    "a second recording": Refusal(with_row('{"event":"recording"}'), "another recording begins"),
    "shared tools": Refusal(with_row('{"event":"open","conversation":99,"tools":1}'), "conversations share tools"),
    "handed down tools": Refusal(
        with_row('{"event":"tools","conversation":99,"from":1}'), "conversations share tools"
    ),
    "an event with a message": Refusal(
        with_row(f'{{"dir":"c2s",{PING},"event":"open","conversation":99}}'), "an event has a message"
    ),
    "a number that is opened while it is alive": Refusal(
        [ORDINARY[0], OPENING % 99, *ORDINARY[1:100], OPENING % 99, *ORDINARY[100:]],
        "a conversation is opened again before its end",
    ),
    "a session that is too long": Refusal(
        [ORDINARY[0], OPENING % 99, SENT % 99, *ORDINARY[1:], SENT % 99],
        "a conversation goes on far behind the range that it is opened in",
        {"LEAST_BEHIND": 1000},
    ),
    "a row that cannot be read": Refusal(with_row("no JSON"), "line [0-9]+: expected one JSON value.*"),
    "a row without a message": Refusal(
        with_row('{"dir":"c2s","conversation":1}', 3), 'line [0-9]+: expected "msg", the frame'
    ),
    "a line that is too long": Refusal(
        with_row(" " * 2000), "a line has [0-9]+ bytes or more", {"LONGEST": 1500}
    ),
    "many rows of no conversation": Refusal(
        [*ORDINARY, *['{"event":"close"}'] * 30], "too many rows belong to no conversation", {"MOST_SHARED": 10}
    ),
    "long rows of no conversation": Refusal(
        [*ORDINARY, '{"event":"close"}' + " " * 400], "too many rows belong to no conversation", {"LARGEST_SHARED": 300}
    ),
    "many conversations at a time": Refusal(
        [ORDINARY[0], *(OPENING % number for number in range(80, 90)), *ORDINARY[1:]], "", {"MOST_CONVERSATIONS": 12}
    ),
    "a message of a conversation that was never opened": Refusal(with_row(SENT % 99)),
    "a message after the release": Refusal(with_row(SENT % 1)),
    "a second release": Refusal(with_row('{"event":"release","conversation":1}')),
    "a row without a number": Refusal(with_row(f'{{"dir":"c2s",{PING}}}')),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_other_recordings_are_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A unit notices, or the counts show, that ranges would not give what one process gives."""
    case = REFUSALS[name]
    in_ranges(monkeypatch)
    monkeypatch.setattr(work_plan, "_LOOKED_AT", 200)
    for key, value in case.settings.items():
        for module in (range_units, range_judging, judging, recording_split):
            if hasattr(module, key):
                monkeypatch.setattr(module, key, value)
    path = written(tmp_path / "a.jsonl", case.rows)
    apart = Apart(TERMS)
    work, found = in_parts(path, apart=apart)
    assert not work.ranges
    assert len(apart.errors) == bool(case.error)
    assert re.fullmatch(case.error, "".join(apart.errors))
    assert found == as_whole(path)


def test_rows_that_are_too_many_and_rows_that_are_too_few_do_not_balance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that two ranges would judge must not hide one that none of them judges."""
    in_ranges(monkeypatch)
    rows = [ORDINARY[0], OPENING % 99, SENT % 99, *ORDINARY[1:]]
    # The first range has 99 until here, by a row that looks as if it had no number.
    rows[100:100] = [f'{{"dir":"c2s",{PING}}}', f'{{"dir":"c2s",{PING},"event":"open","conversation":99}}', SENT % 99]
    rows[130:130] = [SENT % 77, '{"event":"release","conversation":99}']
    path = written(tmp_path / "a.jsonl", rows)
    work, found = in_parts(path)
    assert not work.ranges
    assert found == as_whole(path)


@pytest.mark.parametrize("size", [300, 600, 1200, 2000])
def test_a_number_can_be_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Its rows were those of another range before; they are not skipped any more."""
    in_ranges(monkeypatch, size=size)
    again = [OPENING % 1, *[SENT % 1] * 9, '{"event":"release","conversation":1}']
    path = written(tmp_path / "a.jsonl", [ORDINARY[0], *again * 9, ORDINARY[-1]])
    work, found = in_parts(path)
    assert found == as_whole(path)
    assert work.ranges


@pytest.mark.parametrize("size", [300, 600, 1200])
def test_a_last_line_that_is_cut_off_is_in_no_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """It looks as if it were in one that another range has."""
    in_ranges(monkeypatch, size=size)
    path = tmp_path / "a.jsonl"
    rows = [*ORDINARY[:-1], OPENING % 31, *[SENT % 31] * 30]
    path.write_text("\n".join([*rows, (SENT % 31)[:50]]))
    work, found = in_parts(path)
    assert found == as_whole(path)
    assert f"line {len(rows) + 1} is cut off" in str(found[-1])
    assert work.ranges


@pytest.mark.parametrize(
    ("last", "error", "shared"),
    [
        ((SENT % 1)[:50], None, 1),
        (SENT % 1, None, 0),
        ('{"event":"recording"}', "another recording begins", None),
    ],
)
def test_the_first_line_of_a_range_is_not_that_of_the_file(
    tmp_path: Path, last: str, error: str | None, shared: int | None
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{ORDINARY[0]}\n{last}")
    unit = FileRange(str(path), "a", len(ORDINARY[0]) + 1, len(last), 1 << 20)
    [end] = unit.results(TERMS, lambda _: None)
    assert isinstance(end, UnitEnd)
    assert end.error == error
    assert (None if end.counts is None else len(end.counts.shared)) == shared


def test_lines_have_their_numbers_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_ranges(monkeypatch, size=400)
    rows = [row if at % 5 else row.replace(PING, '"msg":"no JSON"') for at, row in enumerate(ORDINARY)]
    path = written(tmp_path / "a.jsonl", rows)
    work, found = in_parts(path)
    assert work.ranges
    assert found == as_whole(path)
    lines = [at for at, row in enumerate(rows, 1) if "no JSON" in row]
    messages = [item[0] for item in found if isinstance(item[0], CheckedMessage)]
    unreadable = [(each.judged.line, finding) for each in messages for finding in each.findings]
    assert [line for line, each in unreadable if each.violation.rule == "syntax/json"] == lines
    assert all(line == each.line for line, each in unreadable)


@pytest.mark.parametrize(
    "rows",
    [
        ['{"dir":"c2s","conversation":1,"msg":"{}"}'],
        ["", *ORDINARY],
        ['{"event":"close"}'],
        ["no JSON"],
        [ORDINARY[0], '{"event":"open","server":"a"}'],
        [ORDINARY[0], OPENING % 1, '{"event":"open","conversation":2,"tools":1}'],
        [ORDINARY[0], '{"event":"tools","conversation":2,"from":1}'],
    ],
)
def test_what_begins_in_another_way_is_scanned_at_once(rows: list[str]) -> None:
    assert seems_fit(b"".join(f"{row}\n".encode() for row in ORDINARY[:9]) + b'{"event":"open","cut')
    assert not seems_fit(b"".join(f"{row}\n".encode() for row in rows))


@pytest.mark.parametrize("terms", [{"with_messages": True}, {"digests": (dict,)}])
def test_reports_of_every_message_need_a_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terms: dict[str, object]
) -> None:
    in_ranges(monkeypatch)
    path = written(tmp_path / "a.jsonl", ORDINARY)
    every = CheckTerms(Settings(), OFFICIAL, **terms)  # type: ignore[arg-type]  # they fit
    [work] = work_plan.works_of([Piece(str(path))], lambda name: (name, False))
    plan = work_plan.WorkPlan(every, [work], Apart(every), 2)
    plan.begin()
    assert not work.ranges
    assert work.units


def test_ranges_get_smaller_and_cover_the_file() -> None:
    """The first one is small, because it shows whether sessions are too long."""
    first, *units = ranges_of("a", "a", 1 << 30, 2, 200 << 20)
    assert (first.offset, first.size, units[0].offset) == (0, 8 << 20, 8 << 20)
    assert [each.offset for each in units[1:]] == [each.offset + each.size for each in units[:-1]]
    assert units[-1].offset + units[-1].size == 1 << 30
    assert units[0].size == 200 << 20
    assert [each.size for each in units] == sorted((each.size for each in units), reverse=True)
    assert max(each.size for each in ranges_of("a", "a", 1 << 30, 2, 64 << 20)) == 64 << 20
    assert ranges_of("a", "a", 8 << 20, 2, 64 << 20) == []
    assert ranges_of("a", "a", 0, 2, 64 << 20) == []
    assert ranges_of("a", "a", 1 << 40, 2, 64 << 20) == []


def test_the_bytes_of_all_ranges_are_those_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", ORDINARY)
    size = path.stat().st_size
    read: list[int] = []
    for offset in range(0, size, 700):
        unit = FileRange(str(path), "a", offset, min(700, size - offset), 1 << 20)
        list(unit.results(TERMS, read.append))
    assert sum(read) == size

"""Rows of a recording, good and odd: what `assay check` says of each, and what it keeps of conversations."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.checking.evidence import CheckTerms, FileEnd, results_of
from assay.cli.checking.files import CheckedFile
from assay.records import judging
from assay.records.lines import LineSplitter, numbered_lines
from assay.settings import Settings
from kit.archives import archive
from kit.laws import law
from kit.rows import rows

TERMS = CheckTerms(Settings())

PING = '"msg":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":%d,\\"method\\":\\"ping\\"}"'
NOTICE = '"msg":"{\\"jsonrpc\\":\\"2.0\\",\\"method\\":\\"notifications/initialized\\"}"'
OPENING = '{"event":"open","conversation":%d,"server":"a","mode":"audit","revision":"2025-11-25"}'


def end_of(path: Path, rows: Iterable[str] | None = None) -> FileEnd:
    """Judge a file, with these *rows* if they are given, and return its end."""
    if rows is not None:
        path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    end: Any = [*results_of(TERMS, CheckedFile("given", str(path), "shown"), lambda _: None)][-1]
    assert isinstance(end, FileEnd)
    return end


@rows(
    ("row", "error"),
    [
        ("no JSON", "line 3: expected "),
        ("[]", "line 3: expected an object with dir and msg"),
        ("{}", "line 3: expected an object with dir and msg"),
        ('{"dir":"up","msg":"{}"}', 'line 3: expected "dir": "c2s" or "s2c"'),
        (r'{"dir":"c2s","msg":"\ud800"}', "line 3: "),
        ('{"dir":"c2s"}', 'line 3: expected "msg", the frame'),
        ('{"dir":"c2s","msg":"{}","dir":"s2c"}', "line 3: expected "),
        ('{"dir":"c2s","msg":"{}"}}', "line 3: expected "),
    ],
)
def test_a_row_that_cannot_be_read_ends_the_file_with_its_line(tmp_path: Path, row: str, error: str) -> None:
    good = f'{{"dir":"c2s",{NOTICE}}}'
    found = end_of(tmp_path / "a.jsonl", [good, "  ", row, good])
    assert (found.error or "").startswith(error)


def test_a_line_without_an_end_can_be_whole(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.jsonl", 3, is_cut=False)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert "cut off" not in str(end_of(path).remarks)


def test_a_conversation_is_dropped_by_its_last_message_not_by_its_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "MOST_CONVERSATIONS", 3)
    rows = [f'{{"dir":"c2s","conversation":{number},{NOTICE}}}' for number in [1, 2, 3, 1, 4, 1, 3, 2]]
    assert end_of(tmp_path / "a.jsonl", rows).compared == {"too many conversations": 1}


@rows("order", [(1, 2, 3, 1), (1, 2, 1)], ids=["dropped", "dropped by itself"])
def test_a_dropped_conversation_that_is_opened_again_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]
) -> None:
    monkeypatch.setattr(judging, "MOST_CONVERSATIONS", 2)
    rows = []
    for at, number in enumerate(order, 1):
        rows += [OPENING % number, f'{{"dir":"c2s","conversation":{number},{PING % at}}}']
    rows += [f'{{"dir":"c2s","conversation":1,{PING % ident}}}' for ident in (8, 9)]
    found = end_of(tmp_path / "a.jsonl", rows)
    assert (found.counts["ok"], found.compared) == (len(order) + 2, {})


def test_nothing_is_kept_of_a_conversation_that_has_ended(tmp_path: Path) -> None:
    """A row behind its end is not judged, until the conversation is opened again."""
    rows = ['{"event":"recording","version":1}']
    for number in range(1, 9):
        rows += [OPENING % number, f'{{"dir":"c2s","conversation":{number},{PING % 1}}}']
        rows += [json.dumps({"event": "release", "conversation": number})]
    late = f'{{"dir":"c2s","conversation":3,{PING % 2}}}'
    found = end_of(tmp_path / "a.jsonl", [*rows, late, late, OPENING % 3, late, '{"event":"close"}'])
    assert (found.counts["ok"], found.compared) == (9, {"its conversation had ended": 2})


@rows("row", ['{"event":"stopped","why":"x"}', '{"event":"recording"}'])
def test_remarks_about_places_are_bounded(tmp_path: Path, row: str) -> None:
    """A short row asks for a long remark: with all of them, memory and stderr would grow faster than the file."""
    rows = [f'{{"dir":"c2s","conversation":{number},{NOTICE}}}' for number in range(1, 30)]
    notes = end_of(tmp_path / "a.jsonl", [*rows, *[row] * 500]).remarks
    assert len(notes) == 101
    assert notes[-1] == "400 more remarks about places in it"


def _split(text: bytes) -> Iterable[bytes]:
    """Yield the lines of *text*, which end with a newline only."""
    parts = text.split(b"\n")
    yield from (each + b"\n" for each in parts[:-1])
    if parts[-1]:
        yield parts[-1]


@law(200)
@given(st.lists(st.binary(max_size=12), max_size=12), st.integers(2, 9), st.integers(1, 7))
def test_lines_are_split_as_a_file_splits_them(parts: list[bytes], longest: int, step: int) -> None:
    """A line with its newline has at most *longest* bytes, or is replaced. Blank lines may come as one item."""
    text = b"".join(parts)
    splitter = LineSplitter(longest)
    chunks = [text[at : at + step] for at in range(0, len(text), step)]
    items = [line for chunk in chunks for block in splitter.feed(chunk) for line in block]
    items += [rest] if (rest := splitter.rest()) else []
    lines = list(_split(text))
    note = b"(a line of %d bytes; at most %d are read)\n"
    wanted = [note % (len(line), longest) if len(line) > longest else line for line in lines]
    assert [line for item in items for line in (_split(item) if item.isspace() else [item])] == wanted
    assert list(numbered_lines(items)) == [(at, line) for at, line in enumerate(wanted, 1) if not line.isspace()]
    assert splitter.too_long == sum(len(line) > longest for line in lines)

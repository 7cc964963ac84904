"""Bytes into frames and back."""

import pytest

from assay.ladder.framing import Splitter, check, is_blank, write
from kit.rows import rows


def frames(chunks: list[bytes], limit: int = 10) -> list[bytes]:
    splitter = Splitter(limit)
    found = [frame for chunk in chunks for frame in splitter.feed(chunk)]
    tail = splitter.end()
    return found if tail is None else [*found, tail]


@rows(
    ("chunks", "expected"),
    [
        pytest.param([b"a\nb\n"], [b"a", b"b"], id="two-lines"),
        pytest.param([b"a", b"b", b"\n", b"c\n"], [b"ab", b"c"], id="in-pieces"),
        pytest.param([b"a\nb"], [b"a", b"b"], id="the-last-line-needs-no-newline"),
        pytest.param([b"a\r\n"], [b"a\r"], id="a-carriage-return-is-white-space-of-the-next-rung"),
        pytest.param([b"\n\n"], [b"", b""], id="blank-lines"),
        pytest.param([b"0123456789\n"], [b"0123456789"], id="just-at-the-limit"),
        pytest.param([b"0123456789AB\nc\n"], [b"0123456789A", b"c"], id="past-the-limit-in-one-chunk"),
        pytest.param([b"01234567", b"89AB", b"CD", b"E\nc\n"], [b"0123456789A", b"c"], id="past-it-in-pieces"),
        pytest.param([b"0123456789A"], [b"0123456789A"], id="past-it-without-a-newline"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_a_stream_is_cut_into_frames(chunks: list[bytes], expected: list[bytes]) -> None:
    assert frames(chunks) == expected


def test_a_line_without_an_end_keeps_memory_bounded() -> None:
    splitter = Splitter(1000)
    given = [frame for _ in range(10_000) for frame in splitter.feed(b"x" * 100)]
    assert [len(frame) for frame in given] == [1001]
    assert splitter._pieces == []
    assert list(splitter.feed(b"\nnext\n")) == [b"next"]


def test_the_limit_counts_bytes_without_the_newline() -> None:
    assert check(b"x" * 10, 10) is None
    assert check("é".encode() * 6, 10) is not None


def test_what_is_written_is_read() -> None:
    assert frames([write(b"abc"), write(b"d")]) == [b"abc", b"d"]


@rows(("frame", "blank"), [(b"", True), (b" \t\r\n", True), (b"\x0b", False), (b"0", False)])
def test_only_white_space_of_json_is_blank(frame: bytes, blank: bool) -> None:
    assert is_blank(frame) is blank


def test_of_very_many_lines_blank_ones_are_left_out_unless_everything_passes() -> None:
    """Each would be judged only to be skipped."""
    chunk = b"\n \r\n" * 5_000 + b"{}\n" + b"\n" * 5_000
    assert list(Splitter().feed(chunk)) == [b"{}"]
    assert len(list(Splitter(passing=True).feed(chunk))) == 15_001

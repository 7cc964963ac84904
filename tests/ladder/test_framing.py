"""Bytes into frames and back."""

from assay.ladder.framing import Splitter, is_blank
from kit.rows import rows


@rows(("frame", "blank"), [(b"", True), (b" \t\r\n", True), (b"\x0b", False), (b"0", False)])
def test_only_white_space_of_json_is_blank(frame: bytes, blank: bool) -> None:
    assert is_blank(frame) is blank


def test_of_very_many_lines_blank_ones_are_left_out_unless_everything_passes() -> None:
    """Each would be judged only to be skipped."""
    chunk = b"\n \r\n" * 5_000 + b"{}\n" + b"\n" * 5_000
    assert list(Splitter().feed(chunk)) == [b"{}"]
    assert len(list(Splitter(passing=True).feed(chunk))) == 15_001

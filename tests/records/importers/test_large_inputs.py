"""Files that cost more than they hold: compressed data that unpacks to far too much, and long runs of blank lines."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd
from renderings import QUIET, RENDERINGS, Rendering, check, expected, file, frame, judged, lines, native

from assay.records.journal.reading import Pages, entries
from kit.rows import rows

__all__ = ["file"]

PACKED = rows(("method", "compress"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
Compress = Callable[[bytes], bytes]

PING = lines({"dir": "c2s", "msg": frame(id=1, method="ping").decode()})
BAD = lines({"dir": "s2c", "msg": frame(id=1, result=None).decode()})


# ── compressed data ──────────────────────────────────────────────────────────────────────────────────────────────────


@PACKED
@rows("filler", [b"\n", b"x", b" "])
def test_data_that_unpacks_to_far_too_much_is_not_read_to_its_end(
    file: Path, method: str, compress: Compress, filler: bytes
) -> None:
    """Messages before the limit are judged."""
    checked = judged(file, compress(PING + BAD + filler * 50_000_000), "--revision", "2025-11-25")
    assert (checked.status, checked.rules) == (2, ["envelope/result"])
    assert f"the {method} data unpacks to more than 200 times its size, and is not read further" in checked.errors
    assert f"unpack it: {method} -dc FILE | assay check -" in checked.errors


@PACKED
def test_the_same_limit_holds_for_standard_input(method: str, compress: Compress) -> None:
    done = check("-", said=compress(PING + b"\n" * 40_000_000))
    assert (done.status, f"the {method} data unpacks to more than 200 times its size" in done.errors) == (2, True)


@PACKED
def test_one_message_of_equal_words_is_read(file: Path, method: str, compress: Compress) -> None:
    """It unpacks to far more than 200 times its size, but not to much."""
    said = frame(method="notifications/message", params={"level": "info", "data": "sea " * 1_000_000})
    file.write_bytes(compress(lines({"dir": "s2c", "msg": said.decode()})))
    assert file.stat().st_size < 10_000, method
    assert check(file, "--revision", "2025-11-25").status == 0


@PACKED
def test_a_recording_of_equal_calls_is_read(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    compress: Compress,
) -> None:
    """Without what any file may unpack to, as if it were a recording of a million lines."""
    monkeypatch.setattr("assay.records.unpacking._ALWAYS", 0)
    said = (
        {"dir": way, "msg": frame(id=each, **what).decode()}
        for each in range(5000)
        for way, what in (("c2s", {"method": "ping"}), ("s2c", {"result": {}}))
    )
    checked = judged(file, compress(lines(*said)), "--revision", "2025-11-25")
    assert (checked.faults, checked.status) == ([], 0), method


# ── blank lines ──────────────────────────────────────────────────────────────────────────────────────────────────────

BLANK = 300_000
LINES = [name for name, each in RENDERINGS.items() if each.write(QUIET).count(b"\n") > 4 and "har" not in name]
LINES.remove("inspector")


@rows("rendering", [pytest.param(RENDERINGS[name], id=name) for name in LINES])
@rows("blank", [b"\n", b"\r\n", b"  \n"])
def test_findings_behind_blank_lines_have_their_lines(file: Path, rendering: Rendering, blank: bytes) -> None:
    written = rendering.write()
    file.write_bytes(written)
    before = check(file, *rendering.options).lines
    first, _, rest = written.partition(b"\n")
    checked = judged(file, first + b"\n" + blank * 10_000 + rest, *rendering.options)
    assert checked.faults == expected(rendering)
    assert checked.lines == [each + 10_000 if each > 1 else each for each in before]


@rows("blank", [b"\n", b"\r\n", b" \t\n"])
def test_blank_lines_are_read_many_at_a_time(file: Path, blank: bytes) -> None:
    run = blank * BLANK
    file.write_bytes(run + PING + run + BAD + run + b" ")
    with Pages(str(file)) as pages:
        assert sum(1 for _ in pages) < 100
    with Pages(str(file)) as pages:
        assert [entry.number for entry in entries(pages)] == [BLANK + 1, 2 * BLANK + 2]
    assert check(file, "--revision", "2025-11-25", "--from", "assay").lines == [2 * BLANK + 2]


def test_blank_lines_of_a_large_recording_are_counted(file: Path) -> None:
    checked = judged(file, native(QUIET) + b"\n" * (40 << 20) + BAD, "--jobs", "2")
    assert checked.lines == [native(QUIET).count(b"\n") + (40 << 20) + 1]


def test_a_long_blank_line_is_one_line(file: Path) -> None:
    assert judged(file, PING + b" " * 3_000_000 + b"\n" + BAD, "--revision", "2025-11-25").lines == [3]

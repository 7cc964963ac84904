"""Large files: documents in pieces, data that unpacks to far too much, and long runs of blank lines."""

import gzip
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd
from renderings import (
    QUIET,
    RENDERINGS,
    Rendering,
    archive,
    check,
    expected,
    file,
    frame,
    har,
    inspector,
    inspector_network,
    judged,
    lines,
    modern,
    modern_entry,
    native,
)

from assay.records.importers.importer import ImportOptions
from assay.records.importers.importer_table import BY_NAME
from assay.records.importers.json_documents import Times, in_order
from assay.records.reading import Pages, entries
from kit.rows import rows

__all__ = ["file"]

DOCUMENTS = [name for name, each in RENDERINGS.items() if BY_NAME[each.source].is_document]


@rows("indent", [None, 2])
@rows("name", DOCUMENTS)
def test_a_document_is_judged_the_same_however_it_is_indented(file: Path, name: str, indent: int | None) -> None:
    written = json.dumps(json.loads(RENDERINGS[name].write()), indent=indent).encode()
    file.write_bytes(b"\xef\xbb\xbf" + written)
    checked = check(file)
    assert (checked.faults, checked.status) == (expected(RENDERINGS[name]), 1)


@rows("name", DOCUMENTS)
def test_pieces_of_any_size_give_the_same_rows(name: str) -> None:
    written, read = RENDERINGS[name].write(), BY_NAME[RENDERINGS[name].source].read
    whole = list(read([written], ImportOptions()))
    assert whole
    for size in (1, 2, 7, 30, 1000):
        pieces = [written[at : at + size] for at in range(0, len(written), size)]
        assert list(read(pieces, ImportOptions())) == whole


@rows(
    ("written", "reason"),
    [
        (har()[: len(har()) // 2], "it is cut off"),
        (inspector()[:-1], "it is cut off"),
        (inspector_network()[:-2], "it is cut off"),
        (har().replace(b'"startedDateTime"', b'"startedDateTime" oops', 1), "expected the JSON of HAR: "),
        (b'{"log": {"version": "1", "pages": [{"entries": []}]}}', "expected a list at log.entries in the JSON of HAR"),
        (b'{"log": {"entries": [], "entries": [{}]}}', "line 1: expected one log.entries in the JSON of HAR"),
        (b'{"log": {"entries": [{}], "entries": null}}', "line 1: expected one log.entries in the JSON of HAR"),
        (b'{"log": {"entries": []}, "log": {"entries": [{}]}}', "line 1: expected one log in the JSON of HAR"),
        (b'{"log": {"entries": []}, "l\\u006fg": 1}', "line 1: expected one log in the JSON of HAR"),
        (b'{"x": {"log": {"entries": [1]}}, "log": {"y": [{"entries": []}], "entries": []}}', "nothing to judge"),
    ],
)
def test_nothing_of_a_large_document_is_left_out_silently(file: Path, written: bytes, reason: str) -> None:
    options = () if written[:1] == b"[" else ("--from", "har")
    checked = judged(file, written, *options)
    assert (checked.status, reason in checked.errors) == (2, True)


def test_an_entry_that_is_too_large_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.records.importers.json_documents.LARGEST_DOCUMENT", 100)
    for write in (har, inspector, inspector_network):
        checked = judged(file, write())
        assert (checked.status, "expected an entry of at most 100 bytes" in checked.errors) == (2, True)


# ── the order of time ────────────────────────────────────────────────────────────────────────────────────────────────


@rows(("limit", "most", "size"), [("MOST_HELD", 20, 10), ("MOST_ITEMS", 4, 0)])
def test_no_more_is_held_than_allowed(monkeypatch: pytest.MonkeyPatch, limit: str, most: int, size: int) -> None:
    taken = itertools.count()
    begins = (each for each, _ in zip((3, 1, 2, 4, 6, 5, 8, 7), taken, strict=False))
    with monkeypatch.context() as patch:
        patch.setattr(f"assay.records.importers.json_documents.{limit}", most)
        for count, (number, is_end) in enumerate(in_order((Times(each, None, size), each) for each in begins)):
            assert (number, is_end) == (count // 2 + 1, count % 2 == 1)
            if count == 0:
                # Two are held, and one is on its way.
                assert next(taken) == 3


@rows("name", ["har", "inspector", "inspector-network"])
def test_a_file_in_order_needs_no_memory(file: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    file.write_bytes(RENDERINGS[name].write())
    before = check(file, "--messages")
    monkeypatch.setattr("assay.records.importers.json_documents.MOST_HELD", 5000)
    after = check(file, "--messages")
    assert (after.faults, after.status) == (before.faults, before.status)


# ── requests that stand alone ────────────────────────────────────────────────────────────────────────────────────────


def alone(count: int, *, answered: bool = True) -> bytes:
    """An archive of requests without sessions."""
    result = {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}
    made = []
    for number in range(count):
        reply = frame(id=number, result=result) if answered else b""
        made.append(modern_entry(modern(number, "tools/list"), {"Mcp-Method": "tools/list"}, reply, number))
    return archive(made)


def test_a_request_that_stands_alone_is_forgotten_after_its_answer(file: Path) -> None:
    """Ten thousand of them would take 370 MB."""
    gone: set[int] = set()
    for each in BY_NAME["har"].read([alone(20)], ImportOptions()):
        assert each.members["conversation"] not in gone
        if each.members.get("event") == "release":
            gone.add(each.members["conversation"])
    assert len(gone) == 20
    assert judged(file, alone(20)).faults == []
    assert judged(file, alone(3, answered=False)).rules.count("protocol/unanswered") == 3


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
    monkeypatch.setattr("assay.records.lines._ALWAYS", 0)
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

"""Documents that are too large to be read as a whole: cut into entries, sorted as they come, in bounded memory."""

import itertools
import json
from pathlib import Path

import pytest
from renderings import (
    RENDERINGS,
    archive,
    check,
    file,
    frame,
    har,
    inspector,
    inspector_network,
    judged,
    modern,
    modern_entry,
)

from assay.records.importers.importer import ImportOptions
from assay.records.importers.importer_table import BY_NAME
from assay.records.importers.time_sorting import in_order
from kit.rows import rows

__all__ = ["file"]

DOCUMENTS = [name for name, each in RENDERINGS.items() if BY_NAME[each.source].is_document]


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut every document into entries, and hold one at a time."""
    monkeypatch.setattr("assay.records.importers.json_documents.MOST_WHOLE", 0)


@rows("indent", [None, 2])
@rows("name", DOCUMENTS)
def test_a_document_is_judged_the_same_in_pieces(file: Path, name: str, indent: int | None) -> None:
    written = json.dumps(json.loads(RENDERINGS[name].write()), indent=indent).encode()
    file.write_bytes(b"\xef\xbb\xbf" + written)
    whole = check(file, "--messages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assay.records.importers.json_documents.MOST_WHOLE", 0)
        pieces = check(file, "--messages")
    assert (pieces.records, pieces.errors, pieces.status) == (whole.records, whole.errors, whole.status)
    assert whole.records


@pytest.mark.usefixtures("cut")
@rows("name", DOCUMENTS)
def test_pieces_of_any_size_give_the_same_rows(name: str) -> None:
    written, read = RENDERINGS[name].write(), BY_NAME[RENDERINGS[name].source].read
    whole = list(read([written], ImportOptions()))
    assert whole
    for size in (1, 2, 7, 30, 1000):
        pieces = [written[at : at + size] for at in range(0, len(written), size)]
        assert list(read(pieces, ImportOptions())) == whole


@pytest.mark.usefixtures("cut")
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


@pytest.mark.usefixtures("cut")
def test_an_entry_that_is_too_large_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.records.importers.json_documents.LARGEST_DOCUMENT", 100)
    for write in (har, inspector, inspector_network):
        checked = judged(file, write())
        assert (checked.status, "expected an entry of at most 100 bytes" in checked.errors) == (2, True)


# ── the order of time ────────────────────────────────────────────────────────────────────────────────────────────────


@rows(("limit", "most", "size"), [("MOST_HELD", 20, 10), ("MOST_ITEMS", 2, 0)])
def test_no_more_is_held_than_allowed(monkeypatch: pytest.MonkeyPatch, limit: str, most: int, size: int) -> None:
    taken = itertools.count()
    items = (each for each, _ in zip((3, 1, 2, 4, 6, 5, 8, 7), taken, strict=False))
    with monkeypatch.context() as patch:
        patch.setattr(f"assay.records.importers.time_sorting.{limit}", most)
        for count, number in enumerate(in_order(items, float, lambda _: size)):
            assert number == count + 1
            if count == 0:
                # Two are held, and one is on its way.
                assert next(taken) == 3


@rows("name", ["har", "inspector", "inspector-network"])
def test_a_file_in_order_needs_no_memory(file: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    file.write_bytes(RENDERINGS[name].write())
    before = check(file, "--messages")
    monkeypatch.setattr("assay.records.importers.time_sorting.MOST_HELD", 5000)
    monkeypatch.setattr("assay.records.importers.http_exchanges.MOST_HELD", 5000)
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

"""Documents that are too large to be read as a whole: cut into entries, sorted as they come, in bounded memory."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from renderings import RENDERINGS, STEPS, archive, entry, exchanges, har, inspector, inspector_network
from test_importers import check, file

from assay.records.importers.entry_cutter import CutEntry, EntryCutter
from assay.records.importers.importer import ImportOptions
from assay.records.importers.importer_table import BY_NAME
from assay.records.importers.time_sorting import in_order
from assay.records.transcript import TranscriptError
from kit.rows import rows

__all__ = ["file"]

DOCUMENTS = [name for name, each in RENDERINGS.items() if BY_NAME[each.source].is_document]


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut every document into entries, and hold one at a time."""
    monkeypatch.setattr("assay.records.importers.json_documents.MOST_WHOLE", 0)


@rows("indent", [None, 2])
@rows("name", DOCUMENTS)
def test_a_document_is_judged_the_same_in_pieces(
    file: Path, capsys: pytest.CaptureFixture[str], name: str, indent: int | None
) -> None:
    written = json.dumps(json.loads(RENDERINGS[name].write()), indent=indent).encode()
    file.write_bytes(b"\xef\xbb\xbf" + written)
    whole = check(capsys, file, "--messages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assay.records.importers.json_documents.MOST_WHOLE", 0)
        pieces = check(capsys, file, "--messages")
    assert (pieces.records, pieces.errors, pieces.status) == (whole.records, whole.errors, whole.status)
    assert whole.records


@pytest.mark.usefixtures("cut")
@rows("share", [0.1, 0.5, 0.9, 0.999])
@rows("write", [har, inspector, inspector_network])
def test_a_large_document_that_is_cut_off_never_passes(
    file: Path, capsys: pytest.CaptureFixture[str], write: Any, share: float
) -> None:
    written = write()
    file.write_bytes(written[: int(len(written) * share)])
    checked = check(capsys, file)
    assert checked.status == 2
    assert "it is cut off" in checked.errors


@pytest.mark.usefixtures("cut")
def test_what_is_not_json_ends_the_reading_of_a_large_document(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(har().replace(b'"startedDateTime"', b'"startedDateTime" oops', 1))
    checked = check(capsys, file)
    assert checked.status == 2
    assert "expected the JSON of HAR: " in checked.errors


@pytest.mark.usefixtures("cut")
def test_a_large_archive_without_entries_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(b'{"log": {"version": "1.2", "pages": [{"entries": []}], "comment": "entries"}}')
    checked = check(capsys, file, "--from", "har")
    assert checked.status == 2
    assert "expected a list at log.entries in the JSON of HAR" in checked.errors


REPEATED = {
    "log.entries": (b'{"log": {"entries": [], "entries": [{}]}}', b'{"log": {"entries": [{}], "entries": null}}'),
    "log": (b'{"log": {"entries": []}, "log": {"entries": [{}]}}', b'{"log": {"entries": []}, "l\\u006fg": 1}'),
}


@pytest.mark.usefixtures("cut")
@rows(("name", "written"), [(name, each) for name, listed in REPEATED.items() for each in listed])
def test_a_second_list_in_a_large_document_is_not_left_out(
    file: Path, capsys: pytest.CaptureFixture[str], name: str, written: bytes
) -> None:
    file.write_bytes(written)
    checked = check(capsys, file, "--from", "har")
    assert checked.status == 2
    assert f"line 1: expected one {name} in the JSON of HAR" in checked.errors


@pytest.mark.usefixtures("cut")
def test_equal_names_at_other_places_are_no_second_list(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = b'"x": {"log": {"entries": [1]}}, "y": [{"log": 1}, {"entries": []}]'
    file.write_bytes(b'{%b, "log": {%b, "entries": [], %b}, %b}' % (names, names, names, names))
    assert "nothing to judge" in check(capsys, file, "--from", "har").errors


@pytest.mark.usefixtures("cut")
def test_an_entry_that_is_too_large_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.records.importers.json_documents.LARGEST_DOCUMENT", 100)
    for write in (har, inspector, inspector_network):
        file.write_bytes(write())
        checked = check(capsys, file)
        assert checked.status == 2
        assert "expected an entry of at most 100 bytes" in checked.errors


# ── cutting ──────────────────────────────────────────────────────────────────────────────────────────────────────────

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('"\\{}[],: \nä\0entrieslog')),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["log", "entries", "a"]), inner),
    max_leaves=12,
)


def cuts(document: bytes, path: tuple[str, ...], sizes: list[int]) -> Iterator[CutEntry]:
    """The entries of a document that comes in pieces of these *sizes*, again and again."""
    cutter = EntryCutter("a test", path, 10_000_000)
    at, turn = 0, 0
    while at < len(document):
        size = sizes[turn % len(sizes)]
        yield from cutter.feed(document[at : at + size])
        at, turn = at + size, turn + 1
    yield from cutter.end()


@given(st.lists(VALUES), VALUES, st.lists(st.integers(1, 30), min_size=1), st.sampled_from([None, 1]))
@example([{"entries": [1]}], {"log": {"entries": [2]}}, [1], None)
def test_the_entries_of_a_document_are_cut_out(entries: list[Any], other: Any, sizes: list[int], indent: int) -> None:
    for path, document in (
        ((), entries),
        (("entries",), {"before": other, "entries": entries, "behind": other}),
        (("log", "entries"), {"entries": other, "log": {"a": other, "entries": entries, "b": other}, "c": other}),
    ):
        written = json.dumps(document, indent=indent).encode()
        found = list(cuts(written, path, sizes))
        assert [json.loads(each.text) for each in found] == entries
        for each in found:
            assert each.text.split(b"\n")[0] in written.split(b"\n")[each.line - 1]


@given(st.lists(VALUES, min_size=1), st.lists(st.integers(1, 30), min_size=1), st.data())
def test_of_a_document_that_is_cut_off_the_first_entries_are_found(
    entries: list[Any], sizes: list[int], data: st.DataObject
) -> None:
    written = json.dumps({"log": {"entries": entries}}).encode()
    part = written[: data.draw(st.integers(1, len(written) - 1))]
    found: list[Any] = []
    with pytest.raises(TranscriptError, match="it is cut off"):
        found.extend(json.loads(each.text) for each in cuts(part, ("log", "entries"), sizes))
    assert found == entries[: len(found)]


def test_a_long_string_is_not_looked_at_with_each_piece() -> None:
    """That would take minutes for a hundred megabytes."""
    looks = 0

    class Counted(EntryCutter):
        def _cut(self) -> Iterator[CutEntry]:
            nonlocal looks
            looks += 1
            return super()._cut()

    cutter = Counted("a test", (), 1 << 30)
    assert list(cutter.feed(b'["')) == []
    for _ in range(160):
        assert list(cutter.feed(b"x" * 65536)) == []
    assert [len(each.text) for each in cutter.feed(b'"]' + b" " * (11 << 20))] == [160 * 65536 + 2]
    assert looks < 40


# ── the order of time ────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.tuples(st.integers(0, 5), st.integers())))
def test_items_are_sorted_and_equal_ones_stay(items: list[tuple[int, int]]) -> None:
    found = in_order(items, lambda each: each[0], lambda _: 1)
    assert list(found) == sorted(items, key=lambda each: each[0])


@rows(("limit", "most", "size"), [("MOST_HELD", 20, 10), ("MOST_ITEMS", 2, 0)])
def test_no_more_is_held_than_allowed(limit: str, most: int, size: int) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in (3, 1, 2, 4, 6, 5, 8, 7):
            taken.append(number)
            yield number

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"assay.records.importers.time_sorting.{limit}", most)
        for count, number in enumerate(in_order(items(), float, lambda _: size)):
            assert (number, len(taken)) == (count + 1, min(count + 3, 8))


@rows("name", ["har", "inspector", "inspector-network"])
def test_a_file_in_order_needs_no_memory(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file.write_bytes(RENDERINGS[name].write())
    before = check(capsys, file, "--messages")
    monkeypatch.setattr("assay.records.importers.time_sorting.MOST_HELD", 5000)
    monkeypatch.setattr("assay.records.importers.http_exchanges.MOST_HELD", 5000)
    after = check(capsys, file, "--messages")
    assert (after.faults, after.status) == (before.faults, before.status)


# ── requests that stand alone ────────────────────────────────────────────────────────────────────────────────────────

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def alone(count: int, *, answered: bool = True) -> bytes:
    """An archive of requests without sessions."""
    step, begun, ended = next(exchanges(STEPS))
    made = []
    for number in range(count):
        asked = {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {"_meta": META}}
        result = {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}
        reply = {"jsonrpc": "2.0", "id": number, "result": result}
        said = (json.dumps(reply).encode(),) if answered else ()
        made.append(entry(step._replace(client=json.dumps(asked).encode(), server=said), begun, ended))
    return archive(made)


def test_a_request_that_stands_alone_is_forgotten_after_its_answer() -> None:
    """Ten thousand of them would take 370 MB."""
    rows = list(BY_NAME["har"].read([alone(20)], ImportOptions()))
    events = [each.members.get("event", "message") for each in rows]
    assert sorted(events) == ["message"] * 40 + ["open"] * 20 + ["release"] * 20
    gone: set[int] = set()
    for each in rows:
        assert each.members["conversation"] not in gone
        if each.members.get("event") == "release":
            gone.add(each.members["conversation"])


def test_a_request_that_stands_alone_without_an_answer_is_reported(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(alone(3, answered=False))
    checked = check(capsys, file)
    assert [rule for _, rule, _ in checked.faults].count("protocol/unanswered") == 3

"""Filter words: one table of cases for `assay top` and the API of the console, and for the page in JavaScript."""

import json
import subprocess
from shutil import which
from typing import Any

import pytest

from assay.console.console_rows import COLUMNS
from assay.console.console_state import ConsoleSource, ConsoleState
from assay.records.filter_words import FilterError, FilterWords, answered_requests
from assay.records.journal.events import RECORD, JournalItem
from kit.places import DATA, ROOT
from kit.rows import rows

WEB = ROOT / "src" / "assay" / "web"
TABLE = json.loads((DATA / "filter_cases.json").read_text(encoding="utf-8"))
CASES = TABLE["cases"]

_METADATA = ("kind", "party", "tool", "id", "session", "server", "principal", "mode", "passed")


def record(given: dict[str, Any]) -> dict[str, Any]:
    """The record of a row of the table."""
    rules, places = given.get("rules", []), given.get("at", [])
    faults = [{"rule": rule, "at": places[min(at, len(places) - 1)]} for at, rule in enumerate(rules)]
    error: dict[str, Any] | None = {"violations": faults} if given["status"] != "ok" else None
    if error is not None and given.get("quarantined"):
        error["quarantined"] = [{"kind": "tool", "name": "legacy"}]
    metadata = {name: given[name] for name in _METADATA if name in given}
    if given.get("repaired"):
        metadata["repairs"] = [{"op": "remove", "path": "/result/x"}]
    return {
        "ts": "2026-11-17T10:00:00.000000Z",
        "requestId": given["requestId"],
        "transport": "stdio",
        "route": "stdio",
        "method": given["method"],
        "status": given["status"],
        "durationMs": 2.0,
        "inputBytes": 1,
        "outputBytes": 1,
        "error": error,
        "metadata": metadata,
    }


RECORDS = [record(each) for each in TABLE["records"]]


@rows("case", CASES, ids=[each["filter"] for each in CASES])
def test_a_filter_chooses_records(case: dict[str, Any]) -> None:
    words, answered = FilterWords.parse(case["filter"]), answered_requests(RECORDS)
    found = [
        at for at, each in enumerate(RECORDS) if words.wants(each, is_open=each["requestId"] not in answered)
    ]  # fmt: skip
    assert found == case["matches"]


def test_the_page_chooses_the_same_rows() -> None:
    node = which("node")
    if node is None:
        pytest.skip("node is not installed: the page's filter is tested in the browser only")
    state = ConsoleState()
    for each in RECORDS:
        state.take(ConsoleSource("test", "journal"), JournalItem(RECORD, each), 0.0)
    given = {
        "columns": COLUMNS,
        "rows": [json.loads(row) for row in state.store.after(0)],
        "servers": state.servers(0.0),
        "filters": [each["filter"] for each in CASES],
    }
    command = [node, str(DATA / "filter_rows.mjs"), str(WEB)]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    matches = [[seq - 1 for seq in seqs] for seqs in json.loads(done.stdout)]
    different = [
        (case["filter"], found) for case, found in zip(CASES, matches, strict=True) if found != case["matches"]
    ]
    assert not different


def test_a_record_of_a_file_has_the_name_of_its_source() -> None:
    bare = record({**TABLE["records"][2], "server": ""})
    assert FilterWords.parse("server:talk").wants(bare, server="talk.jsonl")
    assert not FilterWords.parse("server:talk").wants(RECORDS[2], server="talk.jsonl")


def test_the_length_of_a_filter_is_bounded() -> None:
    assert len(FilterWords.parse("a " * 250).words) == 250
    with pytest.raises(FilterError, match="at most 500 characters"):
        FilterWords.parse("a " * 250 + "-principal:ann")


@rows(
    ("text", "said"),
    [
        ("tol:x", "tol: unknown word; did you mean tool?"),
        ("-verdct:ok", "did you mean verdict"),
        ("verdict:blockd", "did you mean blocked"),
        ("verdict:refused", "use ok, reported, repaired, blocked, failed"),
        ("verdict:zzz", "use ok, reported"),
        ("status:bad", "use ok, error, open"),
    ],
)
def test_a_mistyped_word_is_an_error(text: str, said: str) -> None:
    with pytest.raises(FilterError) as found:
        FilterWords.parse(text)
    assert said in str(found.value)

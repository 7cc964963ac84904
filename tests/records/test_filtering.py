"""Filter words: one table of cases for the API of the console, and for the page in JavaScript."""

from typing import Any

import pytest

from assay.records.filtering import FilterError, RecordFilter, answered_requests
from kit.filter_cases import CASES, RECORDS, TABLE, record
from kit.rows import rows


@rows("case", CASES, ids=[each["filter"] for each in CASES])
def test_a_filter_chooses_records(case: dict[str, Any]) -> None:
    words, answered = RecordFilter.parse(case["filter"]), answered_requests(RECORDS)
    found = [
        at for at, each in enumerate(RECORDS) if words.wants(each, is_open=each.request_id not in answered)
    ]  # fmt: skip
    assert found == case["matches"]


def test_a_record_of_a_file_has_the_name_of_its_source() -> None:
    bare = record({**TABLE["records"][2], "server": ""})
    assert RecordFilter.parse("server:talk").wants(bare, server="talk.jsonl")
    assert not RecordFilter.parse("server:talk").wants(RECORDS[2], server="talk.jsonl")


def test_the_length_of_a_filter_is_bounded() -> None:
    assert len(RecordFilter.parse("a " * 250).words) == 250
    with pytest.raises(FilterError, match="at most 500 characters"):
        RecordFilter.parse("a " * 250 + "-principal:ann")


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
        RecordFilter.parse(text)
    assert said in str(found.value)

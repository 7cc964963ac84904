"""What a report keeps of all messages: exact counts, a bounded number of rows, and the same however it was split."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_console_state import record, refused

from assay.console import report
from assay.console.report import ReportDigest, report_answers
from assay.records.digest import FindingGroups
from assay.records.judged_records import JudgedRecord
from assay.records.record import Record
from kit.laws import law

OVERVIEW: dict[str, Any] = {"tone": "ok", "sentence": "", "notes": [], "files": [], "made": None}


def exchange(number: int, *, is_bad: bool, **more: Any) -> list[Record]:
    """Return a call and its result."""
    asked = refused(number, "/params", passed=True, mode="audit", **more) if is_bad else record(number, **more)
    return [asked, record(number, kind="result", party="server", durationMs=2.0, **more)]


def digest_of(files: Iterable[tuple[str, list[Record]]]) -> tuple[ReportDigest, FindingGroups]:
    """Return the digest of files, each judged by itself, and their findings."""
    whole, groups = ReportDigest(), FindingGroups()
    for name, records in files:
        part = ReportDigest()
        for line, each in enumerate(records, 1):
            message = JudgedRecord(name, line, each, latency=each.duration_ms if each.is_answer else None)
            part.add(message)
            if message.findings:
                groups.add(message)
        whole.merge(part)
    return whole, groups


def answers_of(files: Iterable[tuple[str, list[Record]]]) -> dict[str, Any]:
    """Return the answers of a report."""
    digest, groups = digest_of(files)
    return report_answers(digest, groups, OVERVIEW, lambda rule: f"https://example.com/{rule}")


@law(25)
@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 6))
def test_counts_do_not_depend_on_the_rows_or_on_how_the_work_was_split(bad: list[bool], parts: int) -> None:
    messages = [each for number, is_bad in enumerate(bad) for each in exchange(number, is_bad=is_bad)]
    size = -(-len(messages) // parts)
    files = [("a.jsonl", messages[at : at + size]) for at in range(0, len(messages), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "MOST_FAULTY", 4)
        patch.setattr(report, "MOST_OTHERS", 4)
        answers = answers_of(files)
    [server] = answers["state"]["servers"]
    assert (server["name"], server["messages"]) == ("lib", 2 * len(bad))
    assert (server["findings"], server["wouldBlock"]) == (sum(bad), sum(bad))
    assert sum(each["count"] for each in answers["performance"]["lines"]) == len(bad)
    assert sum(each["count"] for each in answers["findings"]["groups"]) == sum(bad)
    # Each row brings at most its request or its answer along.
    assert len(answers["rows"]["rows"]) <= 16
    assert answers["state"]["dropped"]["rows"] == 2 * len(bad) - len(answers["rows"]["rows"])


def test_messages_with_findings_are_rows_however_late_they_come() -> None:
    good = [each for number in range(6000) for each in exchange(number, is_bad=False)]
    answers = answers_of([("a.jsonl", [*good, *exchange(7000, is_bad=True)])])
    [group] = answers["findings"]["groups"]
    [sample] = group["samples"]
    found = answers[f"messages/{sample}"]
    assert (found["file"], found["line"]) == ("a.jsonl", 12_001)
    assert [each["rule"] for each in found["violations"]] == [group["rule"]]
    assert answers["findings"]["rules"][group["rule"]]["page"] == f"https://example.com/{group['rule']}"


def test_the_request_of_a_failed_answer_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_OTHERS", 0)
    failed = record(1, kind="error", party="server", status="failed", error={"message": "no"})
    rows = answers_of([("a.jsonl", [record(1), record(2), failed])])["rows"]
    kinds = [row[rows["columns"].index("kind")] for row in rows["rows"]]
    assert kinds == ["request", "error"]
    assert [row[rows["columns"].index("of")] for row in rows["rows"]] == [1, 1]


def test_a_long_message_has_its_findings_and_no_text() -> None:
    long = refused(1, "/a", frame="x" * 200_000)
    answers = answers_of([("a.jsonl", [long, refused(2, "/b", frame="short")])])
    assert answers["messages/1"]["sent"]["text"] is None
    assert "too long for the report" in answers["messages/1"]["sent"]["why"]
    assert answers["messages/1"]["violations"]
    # Other reports of the same run still have it.
    assert long.metadata.frame is not None
    assert answers["messages/2"]["sent"]["text"] == "short"


def test_files_without_names_of_servers_are_shown_by_their_own() -> None:
    files = [(f"some/where/{name}", exchange(1, is_bad=False, server="")) for name in ("one.jsonl", "two.jsonl")]
    names = [each["name"] for each in answers_of(files)["state"]["servers"]]
    assert names == ["one.jsonl", "two.jsonl"]

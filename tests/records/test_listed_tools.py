"""`assay check` judges a call by any list of the same server: before or after it, anywhere in the evidence."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.base.verdict import Party
from assay.cli.main import main
from assay.core.conversation import Conversation, Facts
from assay.records.journal.writer import Journal
from kit.rows import rows
from kit.talk import call, frame_of, notification, request, result

Said = tuple[str, Any]

NUMBER = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
TEXT = {"type": "object", "properties": {"total": {"type": "string"}}, "required": ["total"]}
CALL: list[Said] = [
    ("c2s", call(1, "total", {})),
    ("s2c", result(1, {"content": [], "structuredContent": {"total": "many"}})),
]
REVISION = "2025-11-25"


def opening(revision: str = REVISION) -> list[Said]:
    """A handshake."""
    asked = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    welcome = {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    return [
        ("c2s", request(0, "initialize", asked)),
        ("s2c", result(0, welcome)),
        ("c2s", notification("notifications/initialized")),
    ]


def listing(output: dict[str, Any] = NUMBER) -> list[Said]:
    """A list with the one tool."""
    tool = {"name": "total", "inputSchema": {"type": "object"}, "outputSchema": output}
    return [("c2s", request(2, "tools/list")), ("s2c", result(2, {"tools": [tool]}))]


def recording(path: Path, *talks: tuple[str, Sequence[Said]]) -> str:
    """A recording of conversations one after the other, each with the name of its server."""
    lines: list[dict[str, Any]] = []
    for number, (server, said) in enumerate(talks, 1):
        lines.append({"event": "open", "conversation": number, "server": server})
        for side, message in said:
            lines.append({"dir": side, "conversation": number, "msg": frame_of(message).decode()})
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return str(path)


def found(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[str]]:
    """The exit status of a check, and the rules of its findings."""
    status = main(["check", "--format", "ndjson", *options])
    lines = capsys.readouterr().out.splitlines()
    return status, [each["rule"] for line in lines for each in json.loads(line)["violations"]]


def test_a_list_after_the_call_judges_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = recording(tmp_path / "a.jsonl", ("", [*opening(), *CALL, *listing()]))
    assert found(capsys, file) == (1, ["contract/output"])


def test_a_list_of_another_conversation_judges_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls, lists = ("shop", [*opening(), *CALL]), ("shop", [*opening(), *listing()])
    for talks in ((calls, lists), (lists, calls)):
        assert found(capsys, recording(tmp_path / "a.jsonl", *talks)) == (1, ["contract/output"])


def test_a_list_of_another_server_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = recording(tmp_path / "a.jsonl", ("shop", [*opening(), *listing()]), ("bank", [*opening(), *CALL]))
    assert found(capsys, file) == (1, ["contract/not-judged"])


def test_a_list_in_another_file_judges_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = recording(tmp_path / "a.jsonl", ("shop", [*opening(), *CALL]))
    recording(tmp_path / "b.jsonl", ("shop", [*opening(), *listing()]))
    assert found(capsys, one) == (1, ["contract/not-judged"])
    assert found(capsys, str(tmp_path)) == (1, ["contract/output"])


def test_a_server_without_a_name_is_that_of_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording(tmp_path / "a.jsonl", ("", [*opening(), *CALL]))
    recording(tmp_path / "b.jsonl", ("", [*opening(), *listing()]))
    assert found(capsys, str(tmp_path)) == (1, ["contract/not-judged"])


def test_the_next_list_of_the_conversation_counts_before_that_of_an_older_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server was changed in between."""
    older = ("shop", [*opening(), *listing(NUMBER)])
    file = recording(tmp_path / "a.jsonl", older, ("shop", [*opening(), *CALL, *listing(TEXT)]))
    assert found(capsys, file) == (0, [])


def test_the_last_list_before_a_call_counts_before_later_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = [("shop", [*opening(), *listing(each)]) for each in (NUMBER, TEXT, NUMBER)]
    file = recording(tmp_path / "a.jsonl", *lists[:2], ("shop", [*opening(), *CALL]), lists[2])
    assert found(capsys, file) == (0, [])


def test_output_schemas_count_only_in_revisions_that_have_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = recording(tmp_path / "a.jsonl", ("", [*opening("2025-03-26"), *CALL, *listing()]))
    assert found(capsys, file) == (0, [])


def test_lines_of_a_plain_log_are_judged_by_a_list_after_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [*opening(), *CALL, *listing()]
    (tmp_path / "a.log").write_bytes(b"".join(frame_of(message) + b"\n" for _, message in said))
    assert found(capsys, "--from", "messages", str(tmp_path / "a.log")) == (1, ["contract/output"])


def test_a_journal_is_judged_by_a_list_after_the_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = Journal.open(tmp_path, payloads=True, mode="audit")
    assert journal is not None
    for session, said in (("a", CALL), ("b", listing())):
        conversation = Conversation(mode="audit", revision=REVISION)
        for side, message in said:
            party = Party.CLIENT if side == "c2s" else Party.SERVER
            verdict = conversation.hear(party, frame_of(message), Facts("http"))
            moment = journal.moment("http", "/mcp", verdict.method, verdict.frame, session=session)
            journal.write(journal.line(verdict, moment, 0))
    journal.close()
    assert found(capsys, journal.path) == (1, ["contract/output"])
    # A comparison shows what the guard saw, which knew no list.
    assert main(["check", "--compare", journal.path]) == 0


@rows(("level", "status"), [("report", 1), ("refuse", 2), ("never", 0)])
def test_a_call_that_no_list_judges_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], level: str, status: int
) -> None:
    file = recording(tmp_path / "a.jsonl", ("", [*opening(), *CALL]))
    assert main(["check", "--fail-on", level, file]) == status
    out, errors = capsys.readouterr()
    assert "1 × contract/not-judged" in out
    assert "1 call not judged by a contract: no list of tools has the tool" in errors


def test_standard_input_is_judged_by_the_lists_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It can be read only once, so a later list on it is not known: the call is reported, and does not pass."""
    import os

    file = recording(tmp_path / "a.jsonl", ("", [*opening(), *CALL, *listing()]))
    descriptor, before = os.open(file, os.O_RDONLY), os.dup(0)
    try:
        os.dup2(descriptor, 0)
        assert found(capsys, "-") == (1, ["contract/not-judged"])
    finally:
        os.dup2(before, 0)
        os.close(descriptor)
        os.close(before)

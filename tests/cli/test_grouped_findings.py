"""Equal findings of a recording are shown once."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import main
from assay.records.digest import MOST_GROUPS
from kit.rows import rows
from kit.talk import call, request, result

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
HEAD = [
    request(0, "tools/list", {}),
    result(0, {"tools": [{"name": name, "inputSchema": SCHEMA} for name in ("add", "sub")]}),
]


def asked(ident: int, tool: str, n: Any) -> list[Any]:
    """A call of *tool*, answered."""
    return [call(ident, tool, {"n": n}), result(ident, {"content": []})]


def recording(directory: Path, *messages: Any) -> str:
    """A file with the list of tools, then *messages*; what has a method is the client's."""
    rows = [{"dir": "c2s" if "method" in each else "s2c", "msg": each} for each in (*HEAD, *messages)]
    path = directory / "recording.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The lines that `assay check` prints."""
    assert main(["check", "--revision", "2025-11-25", *arguments]) == 1
    return [line.strip() for line in capsys.readouterr().out.splitlines()]


def calls(number: int, tool: str = "add", n: Any = "many") -> list[Any]:
    """Calls with the same fault, each answered."""
    return [message for ident in range(1, number + 1) for message in asked(ident, tool, n)]


def test_fifty_equal_findings_are_a_few_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = checked(capsys, recording(tmp_path, *calls(50)))
    assert lines[1] == "3  ✗ client  tools/call add #1"
    assert "and 49 more like this, in lines 5, 7, 9, 11, 13 … 101" in lines
    assert "50 × contract/input" in lines
    assert len(lines) < 12


@rows("option", ["--all", "--messages"])
def test_each_can_be_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    lines = checked(capsys, option, recording(tmp_path, *calls(50)))
    assert sum("✗ client  tools/call add" in line for line in lines) == 50
    assert not any("more like this" in line for line in lines)


@rows(
    ("messages", "repeat"),
    [
        ([*calls(1), *asked(2, "add", "five")], None),
        ([*calls(1), *asked(2, "sub", "many")], None),
        ([*calls(1), *asked(2, "add", "tool2"), *asked(3, "add", "tool3")], None),
        (calls(2), "and 1 more like this, in line 5"),
        ([*asked(1, "add", "12"), *asked(2, "add", "13")], "and 1 more like this, in line 5"),
        ([result(ident, {"content": []}) for ident in (7, 8, 9)], "and 2 more like this, in lines 4, 5"),
    ],
    ids=["another value", "another tool", "another name", "the same", "another number", "another id"],
)
def test_what_differs_for_a_reader_is_not_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], messages: list[Any], repeat: str | None
) -> None:
    lines = checked(capsys, recording(tmp_path, *messages))
    assert [line for line in lines if "more like this" in line] == ([] if repeat is None else [repeat])


def test_requests_never_answered_are_named_by_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = [call(ident, tool, {"n": 1}) for ident, tool in enumerate(("add", "add", "sub"), 1)]
    lines = checked(capsys, recording(tmp_path, *calls))
    assert "end  E server  never answered: tools/call add #1" in lines
    assert "end  E server  never answered: tools/call sub #3" in lines
    assert "and 1 more like this" in lines
    assert "5 messages of MCP 2025-11-25: 5 ok; 3 requests never answered" in lines


def test_one_rule_stands_below_all_its_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = checked(capsys, recording(tmp_path, request(1, "tools/call", {"name": 1, "arguments": 2})))
    rules = [line for line in lines if line.startswith("protocol/params (")]
    assert (sum(line.startswith("at /params/") for line in lines), len(rules)) == (2, 1)


def test_findings_that_differ_are_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [message for ident in range(1, MOST_GROUPS + 4) for message in asked(ident, "add", f"n{ident}")]
    lines = checked(capsys, recording(tmp_path, *names))
    assert "and 3 other findings, which --all lists" in lines


@rows("options", [[], ["--format", "ndjson"]])
def test_a_recording_without_messages_cannot_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """A build whose recorder failed."""
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    assert main(["check", *options, str(empty)]) == 2
    done = capsys.readouterr()
    assert (done.out, done.err) == (
        "",
        f"assay check: {empty}: nothing to judge; assay guard --record FILE writes a recording\n",
    )

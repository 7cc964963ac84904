"""Equal findings of a recording are shown once."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import main
from assay.cli.terminal.groups import MOST_GROUPS
from kit.rows import rows

HEAD = [
    {"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {}},
    {
        "jsonrpc": "2.0",
        "id": 0,
        "result": {
            "tools": [
                {"name": name, "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
                for name in ("add", "sub")
            ]
        },
    },
]


def call(ident: int, tool: str, n: Any) -> dict[str, Any]:
    """A call of *tool*."""
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": {"name": tool, "arguments": {"n": n}}}


def answer(ident: int) -> dict[str, Any]:
    """A result of a call."""
    return {"jsonrpc": "2.0", "id": ident, "result": {"content": []}}


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
    return [message for ident in range(1, number + 1) for message in (call(ident, tool, n), answer(ident))]


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
        ([*calls(1), call(2, "add", "five"), answer(2)], None),
        ([*calls(1), call(2, "sub", "many"), answer(2)], None),
        ([*calls(1), call(2, "add", "tool2"), answer(2), call(3, "add", "tool3"), answer(3)], None),
        (calls(2), "and 1 more like this, in line 5"),
        ([call(1, "add", "12"), answer(1), call(2, "add", "13"), answer(2)], "and 1 more like this, in line 5"),
        ([answer(7), answer(8), answer(9)], "and 2 more like this, in lines 4, 5"),
    ],
    ids=["another value", "another tool", "another name", "the same", "another number", "another id"],
)
def test_what_differs_for_a_reader_is_not_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], messages: list[Any], repeat: str | None
) -> None:
    lines = checked(capsys, recording(tmp_path, *messages))
    assert [line for line in lines if "more like this" in line] == ([] if repeat is None else [repeat])


def test_requests_never_answered_are_named_by_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [call(1, "add", 1), call(2, "add", 1), call(3, "sub", 1)]
    lines = checked(capsys, recording(tmp_path, *asked))
    assert "end  E server  never answered: tools/call add #1" in lines
    assert "end  E server  never answered: tools/call sub #3" in lines
    assert "and 1 more like this" in lines


def test_a_request_never_answered_is_no_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = checked(capsys, recording(tmp_path, call(1, "add", 1), call(2, "sub", 1)))
    assert "4 messages of MCP 2025-11-25: 4 ok; 2 requests never answered" in lines


def test_one_rule_stands_below_all_its_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 1, "arguments": 2}}
    lines = checked(capsys, recording(tmp_path, broken))
    rules = [line for line in lines if line.startswith("protocol/params (")]
    assert (sum(line.startswith("/params/") for line in lines), len(rules)) == (2, 1)


def test_findings_that_differ_are_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [
        message for ident in range(1, MOST_GROUPS + 4) for message in (call(ident, "add", f"n{ident}"), answer(ident))
    ]
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


def test_files_are_separated_by_one_empty_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = recording(tmp_path, *calls(1))
    other = tmp_path / "other.jsonl"
    other.write_bytes(Path(one).read_bytes())
    assert main(["check", "--revision", "2025-11-25", one, str(other)]) == 1
    text = capsys.readouterr().out
    assert text.count("\n\n") == 1
    assert not text.endswith("\n\n")

"""`assay schemas`: what it prints, where, and how it exits."""

import json
import shlex
from pathlib import Path

import pytest

from assay.cli.main import main
from assay.spec.revisions import REVISIONS
from assay.spec.schema import protocol_schema
from kit.places import ROOT
from kit.rows import rows

DOCS = ROOT / "docs"


def run(line: str) -> int:
    """What `assay LINE` exits with."""
    return main(shlex.split(line))


def samples() -> list[tuple[str, str]]:
    """The commands of the page and what it says they print."""
    found = []
    for block in (DOCS / "explain.md").read_text(encoding="utf-8").split("```console\n$ assay schemas ")[1:]:
        command, _, output = block.split("```")[0].partition("\n")
        found.append((f"schemas {command}", output))
    return found


@rows(("command", "output"), samples())
def test_the_samples_of_the_page_are_what_the_command_prints(
    command: str, output: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = run(command)
    printed = capsys.readouterr()
    assert printed.out + printed.err == output
    assert code == (0 if printed.out else 2)


def test_show_prints_the_corrected_definition_unless_another_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for option in ("", "--literal"):
        assert run(f"schemas show 2026-07-28 JSONValue {option}") == 0
        shown.append(json.loads(capsys.readouterr().out)["anyOf"][-1]["type"])
    assert shown == [["string", "number", "boolean", "null"], ["string", "integer", "boolean"]]


def test_show_prints_a_document_that_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("schemas show 2025-11-25 Tool --closure") == 0
    assert json.loads(capsys.readouterr().out) == protocol_schema("2025-11-25").closure("Tool")


@rows("option", ["", "--literal"])
def test_export_writes_the_same_files_every_time(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = tmp_path / "a" / "b", tmp_path / "c"
    for directory in (one, other):
        assert run(f"schemas export {option} {directory}") == 0
    assert capsys.readouterr().out == ""
    for revision in REVISIONS:
        written = (one / f"{revision}.json").read_bytes()
        assert written == (other / f"{revision}.json").read_bytes()
        assert json.loads(written) == protocol_schema(revision, errata=not option).document()


def test_diff_prints_records_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("schemas diff 2025-03-26 2025-06-18 --format json --definition Tool") == 0
    report = json.loads(capsys.readouterr().out)
    assert run("schemas diff 2025-03-26 2025-06-18 --format markdown") == 0
    assert "| `CallToolResult` | `structuredContent` | new, optional: object | no |\n" in capsys.readouterr().out
    assert (report["old"], report["new"]) == ("2025-03-26", "2025-06-18")
    assert [change["field"] for change in report["changes"]] == ["_meta", "outputSchema", "title"]
    assert report["changes"][2] == {
        "definition": "Tool",
        "field": "title",
        "change": "added",
        "words": "new, optional: string",
        "breaking": False,
    }


@rows(
    ("command", "message"),
    [
        ("schemas list 2025-11-26", "there is no revision '2025-11-26'; there are 2024-11-05,"),
        ("schemas export /dev/null/x", "cannot write /dev/null/x: Not a directory"),
        (
            "schemas diff 2025-06-18 2025-11-25 --definition tool",
            "neither revision has a definition 'tool'; did you mean Tool?",
        ),
    ],
)
def test_an_unknown_name_exits_with_2_and_a_hint(
    command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"assay schemas: {message}")

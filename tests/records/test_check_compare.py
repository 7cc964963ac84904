"""`assay check --compare`, and `assay replay`, which is the same for one journal."""

import json
from pathlib import Path

import pytest

from assay.cli.main import main
from kit.places import GOLDEN

LINES = GOLDEN.read_bytes().splitlines(keepends=True)
SAME = "56 records: 54 the same; not replayable: 2 (secrets were redacted)"


def edited(path: Path, number: int = 10) -> Path:
    """A journal in which a refused call was recorded as accepted."""
    record = json.loads(LINES[number - 1])
    record["status"], record["error"] = "ok", None
    path.write_bytes(b"".join([*LINES[: number - 1], json.dumps(record).encode() + b"\n", *LINES[number:]]))
    return path


def test_both_commands_print_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, status in ((GOLDEN, 0), (edited(tmp_path / "edited.jsonl"), 1)):
        assert main(["replay", str(path)]) == status
        replayed = capsys.readouterr()
        assert main(["check", "--compare", str(path)]) == status
        assert capsys.readouterr() == replayed
        assert replayed.err == ""


def test_several_files_are_compared_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = edited(tmp_path / "edited.jsonl")
    assert main(["check", "--compare", str(GOLDEN), str(tmp_path)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[1] == SAME
    assert out[2:] == [
        str(path),
        "line 10: client tools/call find_books #4",
        "    recorded: ok",
        "    replayed: blocked, contract/input at /params/arguments/limit",
        "56 records: 53 the same, 1 different; not replayable: 2 (secrets were redacted)",
    ]


def test_findings_do_not_count_and_can_be_written_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.ndjson"
    assert main(["check", "--compare", "--output", f"ndjson={report}", str(GOLDEN)]) == 0
    assert capsys.readouterr() == (f"{SAME}\n", "")
    assert main(["check", "--format", "ndjson", str(GOLDEN)]) == 1
    assert capsys.readouterr().out == report.read_text()


def test_it_prints_text_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--compare", "--format", "json", str(GOLDEN)]) == 2
    assert "--compare prints text; --output json=FILE writes the findings" in capsys.readouterr().err


def test_a_file_without_verdicts_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "recording.jsonl").write_bytes(b'{"dir":"c2s","msg":"x"}\n')
    (tmp_path / "empty.jsonl").write_bytes(b"")
    assert main(["check", "--compare", str(GOLDEN), str(tmp_path)]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].endswith("empty.jsonl: nothing to replay")
    assert errors[1].endswith(
        "recording.jsonl: a recording, not a journal: it has no verdicts to compare; assay check judges it"
    )

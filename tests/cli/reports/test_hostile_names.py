"""Names of files that an attacker chose: no report, table or message lets a terminal, a log or a parser act on them."""

import json
import os
import re
from contextlib import suppress
from pathlib import Path

import pytest

from assay.cli.main import main
from assay.cli.reports.formats import FORMATS
from kit.check_formats import answer, call, outputs, parsed, recording, written
from kit.places import TESTS
from kit.rows import rows

NAMES = {
    "escape": b"\x1b[31mred\x1b]0;title\x07",
    "bell": b"a\x07b",
    "carriage return": b"good\rbad",
    "direction": "abc\u202edef".encode(),
    "line separator": "a\u2028b\u2029c".encode(),
    "invalid bytes": b"\xff\xfe",
    "workflow command": b"x\n::error::injected",
    "workflow command after a return": b"x\r::error::injected\r",
    "end of CDATA": b"]]><failure>",
    "markup": b"<b>&\"'| `x` ](y)",
}

ACTED_UPON = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def assert_inert(text: str, what: str) -> None:
    """Assert that a terminal or a log shows *text*, and does nothing else with it."""
    assert ACTED_UPON.search(text.replace("\n", "")) is None, what
    assert not any(line.startswith("::error::injected") for line in text.splitlines()), what


EVERY = rows("name", map(os.fsdecode, NAMES.values()), ids=NAMES)


@pytest.fixture(autouse=True)
def _work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("NO_COLOR", "1")


@EVERY
def test_no_format_of_a_check_acts_on_a_file_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(recording(tmp_path / "made", call(1, {"n": "x"}), answer(1))).rename(f"{name}.jsonl")
    (tmp_path / "broken").write_text("not a recording\n")
    (tmp_path / "broken").rename(f"{name}.broken")
    (tmp_path / "out").mkdir(exist_ok=True)
    files = [f"{name}.jsonl", f"{name}.broken", f"{name}.missing"]
    assert main(["check", *outputs(tmp_path / "out"), *files]) == 2
    said = capsys.readouterr()
    assert_inert(said.out + said.err, "terminal")
    for kind, text in written(tmp_path / "out").items():
        parsed(kind, text)
        assert_inert(text, kind)
    assert_inert((tmp_path / "summary").read_text(encoding="utf-8"), "summary")
    for kind in FORMATS:
        main(["check", "--format", kind, *files])
        said = capsys.readouterr()
        assert_inert(said.out + said.err, kind)


@EVERY
def test_no_other_command_acts_on_a_file_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = (TESTS / "data" / "golden.jsonl").read_bytes()
    Path(name).mkdir()
    (Path(name) / "20261116T180000Z-95de3302.jsonl").write_bytes(golden)
    Path(f"{name}.jsonl").write_bytes(golden)
    Path(f"{name}.toml").write_bytes(b"[guard\n")
    recording(tmp_path / "recording", call(1, {"n": "x"}), answer(1))
    missing = f"{name}.missing"
    for command in (
        ["journal", "list", name],
        ["journal", "list", "--format", "json", name],
        ["journal", "list", missing],
        ["journal", "show", name],
        ["journal", "show", f"{name}.jsonl"],
        ["journal", "show", missing],
        ["journal", "diff", f"{name}.jsonl", missing],
        ["replay", f"{name}.jsonl"],
        ["replay", missing],
        ["report", "recording", "-o", f"{name}.html"],
        ["report", missing],
        ["check", "recording", "--baseline", missing],
        ["check", "recording", "--config", f"{name}.toml"],
        ["check", "recording", "--output", f"html={name}/"],
        ["validate", missing],
        ["trust", "--show", missing],
        ["lock", "--check", "--lock", missing],
        ["schemas", "write", f"{name}.toml"],
        [f"--{name}"],
        ["check", f"--{name}"],
    ):
        with suppress(SystemExit):
            main(command)
        said = capsys.readouterr()
        assert_inert(said.out + said.err, " ".join(command[:2]))
        if command[:3] == ["journal", "list", "--format"]:
            assert len(json.loads(said.out)["runs"]) == 1

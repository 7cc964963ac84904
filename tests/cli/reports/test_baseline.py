"""Known findings: they are shown, and do not fail the check, as often as the baseline has them."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import main
from assay.cli.reports import baseline as module
from kit.check_formats import answer, call, outputs, parsed, recording, written
from kit.rows import rows


def wrong(*values: Any) -> list[Any]:
    """Calls whose argument is wrong, each answered."""
    return [each for ident, value in enumerate(values, 1) for each in (call(ident, {"n": value}), answer(ident))]


@pytest.fixture
def known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A baseline with two findings of one kind."""
    path = tmp_path / "known.json"
    file = recording(tmp_path / "first.jsonl", *wrong("x", "y"))
    assert main(["check", "--write-baseline", str(path), file]) == 0
    assert "2 findings ignored (in baseline)" in capsys.readouterr().out
    entry = {"rule": "contract/input", "party": "client", "method": "tools/call", "tool": "add", "count": 2}
    listed = json.loads(path.read_text())
    assert listed == {"assayBaseline": 1, "findings": [{**entry, "place": "/params/arguments/n"}]}
    return path


@rows(
    ("values", "status", "new"),
    [
        (["x", "y"], 0, 0),
        (["other"], 0, 0),
        (["x", "y", "z"], 1, 1),
        ([1], 0, 0),
    ],
    ids=["the same", "fewer", "more than are known", "none"],
)
def test_known_findings_do_not_fail_up_to_their_count(
    known: Path, tmp_path: Path, values: list[Any], status: int, new: int
) -> None:
    file = recording(tmp_path / "second.jsonl", *wrong(*values))
    assert main(["check", "--baseline", str(known), *outputs(tmp_path), file]) == status
    reports = written(tmp_path)
    found = json.loads(reports["json"])["findings"]
    assert sum(each["count"] for each in found if not each["known"]) == new


def test_another_place_rule_or_tool_is_not_known(known: Path, tmp_path: Path) -> None:
    for number, each in enumerate((call(1, {"list": ["a"]}), call(1, {}, "sub"), {"jsonrpc": "2.0", "method": 1})):
        file = recording(tmp_path / f"{number}.jsonl", each, answer(1))
        assert main(["check", "--baseline", str(known), file]) == 1


def test_every_format_shows_known_findings_as_known(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = recording(tmp_path / "second.jsonl", *wrong("x", "y"))
    assert main(["check", "--baseline", str(known), *outputs(tmp_path), file]) == 0
    reports = {name: (text, parsed(name, text)) for name, text in written(tmp_path).items()}
    assert "2 findings ignored (in baseline); --all shows them" in reports["text"][0]
    assert "/params/arguments/n" not in reports["text"][0]
    assert [each["violations"][0]["known"] for each in reports["ndjson"][1]] == [True, True]
    assert [(each["known"], each["count"]) for each in reports["json"][1]["findings"]] == [(True, 2)]
    [result] = reports["sarif"][1]["runs"][0]["results"]
    assert [each["kind"] for each in result["suppressions"]] == ["external"]
    assert len(list(reports["junit"][1].iter("skipped"))) == 1
    assert list(reports["junit"][1].iter("failure")) == []
    assert (reports["github"][0], reports["gitlab"][1]) == ("", [])
    assert "<summary>2 findings ignored (in baseline)</summary>" in reports["markdown"][0]
    capsys.readouterr()
    main(["check", "--all", "--baseline", str(known), file])
    assert capsys.readouterr().out.count("         ignored (in baseline)") == 2


def test_what_is_no_longer_found_is_reported(known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = recording(tmp_path / "good.jsonl", *wrong(1))
    line = f"assay check: {known}: no longer found: contract/input client tools/call add /params/arguments/n\n"
    assert main(["check", "--baseline", str(known), *outputs(tmp_path), good]) == 0
    assert capsys.readouterr().err == line
    reports = written(tmp_path)
    assert [each["rule"] for each in json.loads(reports["json"])["stale"]] == ["contract/input"]
    assert {name for name, text in reports.items() if "no longer found" in text} == {
        "sarif", "junit", "github", "markdown"
    }  # fmt: skip
    assert main(["check", "--baseline", str(known), "--fail-on-stale", good]) == 1


def test_reasons_are_kept_when_a_baseline_is_written_again(known: Path, tmp_path: Path) -> None:
    document = json.loads(known.read_text())
    document["findings"][0]["why"] = "the client of a partner"
    known.write_text(json.dumps(document))
    file = recording(tmp_path / "second.jsonl", *wrong("x"), call(9, {"list": ["a"]}), answer(9))
    assert main(["check", "--write-baseline", str(known), file]) == 0
    entries = json.loads(known.read_text())["findings"]
    assert [(each["place"], each["count"], each.get("why")) for each in entries] == [
        ("/params/arguments/list/*", 1, None),
        ("/params/arguments/n", 1, "the client of a partner"),
    ]


@rows(
    ("content", "message"),
    [
        ("missing", "No such file or directory"),
        ("", "not a baseline"),
        ("[]", "not a baseline"),
        ('{"assayBaseline": 2, "findings": []}', "a baseline of version 2; this Assay reads version 1"),
        ('{"assayBaseline": 1}', 'expected a list "findings"'),
        ('{"assayBaseline": 1, "findings": [1]}', "/findings/0: expected an object"),
        ('{"assayBaseline": 1, "findings": [{"rule": "contract/inptu"}]}', "unknown rule 'contract/inptu'"),
        ('{"assayBaseline": 1, "findings": [{"rule": "contract/input", "tol": "x"}]}', "unknown member 'tol'"),
        (
            '{"assayBaseline": 1, "findings": [{"rule": "contract/input", "tool": 1}]}',
            "/findings/0/tool: expected text",
        ),
        ('{"assayBaseline": 1, "findings": [{"rule": "contract/input", "count": 0}]}', "expected at least 1"),
        ('{"assayBaseline": 1, "findings": [{"rule": "syntax/json"}, {"rule": "syntax/json"}]}', "add the counts"),
    ],
)
def test_a_mistake_in_a_baseline_is_named(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "known.json"
    path.unlink(missing_ok=True)
    if content != "missing":
        path.write_text(content)
    assert main(["check", "--baseline", str(path), recording(tmp_path / "a.jsonl")]) == 2
    done = capsys.readouterr()
    assert (done.out, message in done.err) == ("", True), done.err


def test_a_baseline_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 2)
    path = tmp_path / "known.json"
    calls = [each for ident in range(1, 5) for each in (call(ident, {}, f"tool{ident}x"), answer(ident))]
    assert main(["check", "--write-baseline", str(path), recording(tmp_path / "a.jsonl", *calls)]) == 2
    assert "more than 2 different findings" in capsys.readouterr().err
    assert not path.exists()


def test_a_baseline_is_not_written_from_files_that_cannot_be_read(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = known.read_bytes()
    assert main(["check", "--write-baseline", str(known), str(tmp_path / "none.jsonl")]) == 2
    (tmp_path / "empty").mkdir()
    file = recording(tmp_path / "second.jsonl", *wrong("x"))
    assert main(["check", "--write-baseline", str(known), file, str(tmp_path / "empty")]) == 2
    assert known.read_bytes() == before
    assert capsys.readouterr().err.count("is not written: not all files could be read") == 2


def test_a_baseline_that_cannot_be_written_is_refused_before_anything_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise the findings would be shown as known, and be in no file."""
    file = recording(tmp_path / "first.jsonl", *wrong("x"))
    assert main(["check", "--write-baseline", str(tmp_path / "nowhere" / "known.json"), file]) == 2
    out, errors = capsys.readouterr()
    assert (out, "cannot write" in errors) == ("", True)

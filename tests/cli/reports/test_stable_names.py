"""Names in reports for CI services: the same in every run, whatever the recording is called and wherever it is."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import main
from kit.check_formats import answer, call, outputs, parsed, recording, written

CALLS = [call(1, {"n": "x"}), answer(1), call(2, {"n": "y"}), answer(2), {"jsonrpc": "2.0", "id": 3, "method": "nope"}]


def made(path: Path, server: str = "library") -> Path:
    """A recording of a guarded server, as the guard writes it."""
    bare = recording(path, *CALLS)
    opening = [
        {"event": "recording", "version": 1},
        {"event": "open", "conversation": 1, "server": server, "mode": "audit", "revision": None, "lines": True},
    ]
    rows = [*opening, *(json.loads(line) | {"conversation": 1} for line in Path(bare).read_text().splitlines())]
    path.write_text("".join(json.dumps(each) + "\n" for each in [*rows, {"event": "close"}]))
    return path


def names_in(reports: dict[str, str]) -> dict[str, Any]:
    """Everything by which a service recognizes a finding of an earlier run."""
    [run] = json.loads(reports["sarif"])["runs"]
    cases = parsed("junit", reports["junit"]).iter("testcase")
    return {
        "junit": [(each.attrib["classname"], each.attrib["name"], len(each)) for each in cases],
        "suites": [each.attrib["name"] for each in parsed("junit", reports["junit"])],
        "sarif": [(each["ruleId"], each["partialFingerprints"]) for each in run["results"]],
        "logical": [each["locations"][0]["logicalLocations"] for each in run["results"]],
        "gitlab": [(each["check_name"], each["fingerprint"]) for each in json.loads(reports["gitlab"])],
        "json": [each["fingerprint"] for each in json.loads(reports["json"])["findings"]],
    }


@pytest.fixture(autouse=True)
def _work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checkout").mkdir()
    monkeypatch.chdir(tmp_path / "checkout")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def checked(tmp_path: Path, *files: str) -> dict[str, str]:
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    (tmp_path / "out").mkdir()
    assert main(["check", *outputs(tmp_path / "out"), *files]) == 1
    return written(tmp_path / "out")


def test_two_runs_under_random_names_have_the_same_names(tmp_path: Path) -> None:
    one = checked(tmp_path, str(made(Path("20261116T180000Z-95de3302.jsonl"))))
    other = checked(tmp_path, str(made(Path("20261117T090000Z-5176ec8c.jsonl"))))
    outside = checked(tmp_path, str(made(tmp_path / "f9258d52.jsonl")))
    assert names_in(one) == names_in(other) == names_in(outside)
    assert ("library.add", "contract/input", 1) in names_in(one)["junit"]
    assert ("library.nope", "protocol/method", 1) in names_in(one)["junit"]
    assert "95de3302" not in json.dumps(names_in(one))


def test_several_recordings_of_a_server_are_one_suite_and_keep_their_fingerprints(tmp_path: Path) -> None:
    """GitLab counts entries with the same fingerprint once, so those of the second file differ."""
    both = [str(made(Path(name))) for name in ("a.jsonl", "b.jsonl")]
    again = [str(made(Path(name))) for name in ("c.jsonl", "d.jsonl")]
    found, alone = names_in(checked(tmp_path, *both)), names_in(checked(tmp_path, both[0]))
    assert found == names_in(checked(tmp_path, *again))
    assert found["suites"] == ["recordings", "library"]
    assert found["junit"] == alone["junit"]
    prints = [each for _, each in found["gitlab"]]
    assert len(set(prints)) == len(prints) == 2 * len(alone["gitlab"])
    assert {each for _, each in alone["gitlab"]} < set(prints)


def test_a_recording_outside_of_the_repository_has_no_place_in_it(tmp_path: Path) -> None:
    Path("below").mkdir()
    inside = checked(tmp_path, str(made(Path("below", "a.jsonl")).resolve()))
    outside = checked(tmp_path, str(made(tmp_path / "a.jsonl")))
    [run] = json.loads(inside["sarif"])["runs"]
    places = [each["physicalLocation"] for result in run["results"] for each in result["locations"]]
    assert {each["artifactLocation"]["uri"] for each in places} == {"below/a.jsonl"}
    assert "::error file=below/a.jsonl,line=" in inside["github"]
    assert {each["location"]["path"] for each in json.loads(inside["gitlab"])} == {"below/a.jsonl"}
    assert "physicalLocation" not in outside["sarif"]
    assert " file=" not in outside["github"]
    assert {each["location"]["path"] for each in json.loads(outside["gitlab"])} == {"a.jsonl"}
    for name in ("sarif", "github", "junit"):
        # A reader can still find the message.
        assert str(tmp_path / "a.jsonl") in outside[name], name


def test_a_tool_that_is_listed_with_a_fault_is_named(tmp_path: Path) -> None:
    tools = {"jsonrpc": "2.0", "id": "l", "result": {"tools": [{"name": "odd", "inputSchema": {"type": 5}}]}}
    recording(Path("a.jsonl"), {"jsonrpc": "2.0", "id": "l", "method": "tools/list"}, tools)
    found = names_in(checked(tmp_path, "a.jsonl"))
    assert ("server.odd", "contract/schema") in {each[:2] for each in found["junit"]}

"""A console for files: recordings are judged, journals are shown as written, and exports open again."""

import json
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from app_clients import PROGRESS, TOOLS, ServedConsole, call, console_of, journal

from assay.cli.console import NothingToShowError
from assay.console.rows import HOW_TO_RECORD
from assay.lock.lock_file import FILE, write
from assay.lock.locked import Locked
from assay.settings import load
from assay.settings.policy_settings import policy
from kit.check_formats import answer as good_answer
from kit.check_formats import recording
from kit.command import assay_text
from kit.rows import rows

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Return a recording with one finding and one secret."""
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping", "params": {"_meta": {"token": SECRET}}}
    return Path(recording(tmp_path / "talk.jsonl", ping, {"jsonrpc": "2.0", "id": 2, "result": []}, good_answer(2)))


def test_a_recording_is_judged_without_its_secrets(tmp_path: Path, recorded: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("no recording\n")
    served = console_of(recorded, broken, tmp_path / "none.jsonl")
    found = served.get("api/state")
    assert {Path(each["file"]).name for each in found["failed"]} == {"broken.jsonl", "none.jsonl"}
    [server] = found["servers"]
    assert (server["source"], server["label"], server["state"]) == ("file", str(recorded), "ended")
    shown = served.rows()
    assert [each["kind"] for each in shown[:3]] == ["request", "result", "notification"]
    assert (shown[6]["of"], shown[6]["rules"]) == (shown[5]["seq"], ["envelope/result"])
    assert [each["samples"] for each in served.get("api/findings")["groups"] if each["rule"] == "envelope/result"] == [
        [7]
    ]
    everything = [served.http.get(path).text for path in ("api/rows", "api/findings", "api/messages/6")]
    everything += [served.export(each).text for each in ("recording", "journal", "json")]
    assert not [each for each in everything if SECRET in each]
    assert served.get("api/messages/6")["redacted"]


def test_a_console_that_would_have_nothing_to_show_says_why(tmp_path: Path) -> None:
    (tmp_path / "bin.dat").write_bytes(bytes(range(256)))
    (tmp_path / "empty").mkdir()
    with pytest.raises(NothingToShowError) as caught:
        console_of(*(tmp_path / name for name in ("nope", "bin.dat", "empty")))
    reasons = dict(line.removeprefix(f"{tmp_path}/").split(": ", 1) for line in str(caught.value).splitlines())
    assert reasons["nope"] == "No such file or directory"
    assert reasons["bin.dat"].startswith("not a recording")
    assert set(reasons) == {"nope", "bin.dat", "empty"}


def test_a_journal_without_payloads_is_shown_as_written_and_says_how_to_record(tmp_path: Path) -> None:
    served = console_of(journal(tmp_path, call(1, "look", count="x"), payloads=False))
    shown = served.rows()
    assert (len(shown), shown[5]["verdict"], shown[5]["rules"]) == (7, "would block", ["contract/input"])
    message = served.get("api/messages/6")
    remedy = HOW_TO_RECORD
    assert (message["sent"]["text"], message["sent"]["why"]) == (None, f"the message is not recorded; {remedy}")
    assert "journal.payloads=true" in served.get("api/contracts")["contracts"][0]["why"]
    # Messages that are not there are not exported as a recording.
    refused = served.export("recording", "verdict:blocked")
    assert (refused.status_code, remedy in refused.json()["error"]["message"]) == (409, True)
    assert served.export("journal").status_code == 200


def test_a_stopped_message_is_shown_in_full_without_its_secrets(tmp_path: Path) -> None:
    said = call(1, "look", count="three", password="hunter22")  # noqa: S106 - a value to be masked
    served = console_of(journal(tmp_path, said, mode="enforce"))
    row = served.rows()[5]
    assert row["verdict"] == "blocked"
    message = served.get(f"api/messages/{row['seq']}")
    assert '"three"' in message["sent"]["text"]
    assert "hunter22" not in str(message)
    assert (message["redacted"], message["delivered"]["state"]) == (True, "not")
    violation, *_ = message["violations"]
    assert (violation["rule"], violation["at"]) == ("contract/input", "/params/arguments/count")
    assert violation["about"]["why"]
    assert violation["schema"] == {"type": "integer"}
    assert message["related"] == [row["seq"]]
    assert served.http.get(f"api/messages/{row['seq']}/curl").json()["error"]["code"] == "unreachable"


# ── exports ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a journal with payloads: two good calls and one with a wrong argument."""
    said = [*call(1, "look", count=1), *call(2, "look", count="x"), *call(3, "change")]
    return journal(tmp_path_factory.mktemp("journal"), said)


@pytest.fixture(scope="module")
def served(heard: Path) -> ServedConsole:
    return console_of(heard)


def check_of(path: Path, content: bytes, *options: str) -> tuple[int, Any]:
    """Return the status and the JSON of a check of an export."""
    path.write_bytes(content)
    done = assay_text("check", "--format", "json", *options, str(path))
    return done.returncode, json.loads(done.stdout)


def test_an_export_in_every_format_has_the_same_findings(served: ServedConsole, tmp_path: Path) -> None:
    for kind in served.get("api/state")["formats"]:
        found = served.export(kind)
        assert found.status_code == 200, kind
        assert b"contract/input" in found.content or kind == "recording"
    for kind in ("recording", "journal"):
        found = served.export(kind)
        assert found.headers["content-disposition"] == f'attachment; filename="assay-{kind}.jsonl"'
        assert "assay-left-out" not in found.headers
        _, report = check_of(tmp_path / "again.jsonl", found.content)
        assert [each["rule"] for each in report["findings"]] == ["contract/input"]
        assert report["files"][0]["messages"] == 11
    found = served.export("sarif")
    assert found.headers["content-type"] == "application/sarif+json"
    [result] = found.json()["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("assay-journal.jsonl", 8)


@rows("mode", ["audit", "enforce"])
def test_a_filtered_recording_is_judged_as_the_guard_judged_it(mode: str, tmp_path: Path) -> None:
    """Its rows come with what they need: the handshake, the list of tools, and the rest of their exchanges."""
    said = [each for ident, count in enumerate((1, "x", 2, "y")) for each in call(ident, "look", count=count)]
    # A finding that depends on an earlier message, which no filter below chooses.
    said += [*call(5, "change"), PROGRESS, *call(6, "look", count=3)]
    served = console_of(journal(tmp_path / mode, said, mode=mode))
    shown = served.rows()
    assert {rule for row in shown for rule in row["rules"]} == {"contract/input", "protocol/progress"}
    for words in (
        "verdict:blocked",
        "tool:look verdict:blocked kind:request",
        "kind:result tool:change",
        "verdict:reported",
    ):
        chosen = served.export("journal", words).content.splitlines()
        expected = sorted(
            (each["rule"], each["at"])
            for line in chosen
            for each in (json.loads(line)["error"] or {}).get("violations", ())
        )
        status, report = check_of(tmp_path / "few.jsonl", served.export("recording", words).content)
        found = sorted((each["rule"], place["at"]) for each in report["findings"] for place in each["places"])
        assert (found, status) == (expected, 1 if expected else 0), words
        assert report["files"][0]["messages"] < len(shown)


@rows("lost", ["tools/call", "tools/list"])
def test_messages_that_are_not_recorded_are_not_called_good(heard: Path, tmp_path: Path, lost: str) -> None:
    lines = [json.loads(line) for line in heard.read_bytes().splitlines() if b'"requestId"' in line]
    bare = [each for each in lines if each["method"] == lost and each["metadata"]["kind"] == "result"]
    for each in bare:
        del each["metadata"]["frame"]
    file = tmp_path / "20261116T180000Z-95de3302.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    served = console_of(file)
    answer, good = served.export("recording"), served.export("recording", "tool:change kind:request")
    assert answer.headers["assay-left-out"] == str(len(bare))
    status, report = check_of(tmp_path / "export.jsonl", answer.content, "--fail-on", "refuse")
    [about] = report["files"]
    assert (about["messages"], about["notJudged"], about["complete"]) == (len(lines) - len(bare), len(bare), False)
    assert any(each.endswith("not judged: no payload in the journal") for each in about["remarks"])
    # What the guard found by a list that is not recorded stays a finding.
    rules = [each["rule"] for each in report["findings"] if each["rule"] != "contract/not-judged"]
    assert (status, rules) == (1, ["contract/input"])
    status, report = check_of(tmp_path / "good.jsonl", good.content)
    assert {each["rule"] for each in report["findings"]} <= {"contract/not-judged"}
    assert (status, report["files"][0]["notJudged"]) == (1 if report["findings"] else 2, 1)


def test_only_rows_that_match_are_exported(served: ServedConsole) -> None:
    found = served.export("journal", "tool:look verdict:blocked").content
    assert [json.loads(line)["metadata"]["tool"] for line in found.splitlines()] == ["look"]
    excluded = served.export("journal", "tool:look -verdict:blocked status:ok").content.splitlines()
    assert {json.loads(line)["metadata"]["kind"] for line in excluded} == {"result"}
    both = {"format": "journal", "filter": "tool:look", "seqs": [1, 6, 99]}
    assert len(served.http.post("api/export", json=both).content.splitlines()) == 1
    wrong = served.export("journal", "tol:look")
    assert (wrong.status_code, wrong.json()["error"]["message"][:4]) == (400, "tol:")
    assert served.export("none").status_code == 400
    assert served.http.post("api/export", json={"format": "journal", "seqs": ["1"]}).status_code == 400


# ── exceptions and the lock ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_exception_lets_the_message_pass(served: ServedConsole, tmp_path: Path) -> None:
    wanted = {"rule": "contract/input", "tool": "look", "reason": 'it\'s "known" \\ here', "server": 1}
    found = served.http.post("api/exception", json=wanted).json()
    assert any("lib" in each for each in found["notes"])
    (tmp_path / "exceptions.toml").write_text(found["toml"], encoding="utf-8")
    settings = load({}, str(tmp_path), file=str(tmp_path / "exceptions.toml"))
    made = policy(settings.guard, f"{date.today()}")
    again = console_of(journal(tmp_path, call(1, "look", count="x"), mode="enforce", policy=made))
    assert [row["kind"] for row in again.rows() if row["tool"] == "look"] == ["request", "result"]
    assert "blocked" not in {row["verdict"] for row in again.rows()}


@rows("tool", [" look", "*", 'a" # b', "a\\", "'''", "[[guard]]", "a\u202eb", "\u00a0", "\x9b\u2028"])
def test_an_exception_is_for_the_named_tool_alone_and_hides_nothing(served: ServedConsole, tool: str) -> None:
    """Whatever a peer has called its tool; what cannot be seen is escaped."""
    text = served.http.post("api/exception", json={"rule": "contract/input", "tool": tool}).json()["toml"]
    [made] = tomllib.loads(text)["guard"]["exceptions"]
    assert (made["rule"], made["tool"], sorted(made)) == ("contract/input", tool, ["reason", "rule", "tool", "until"])
    assert text.replace("\n", "").isprintable()


@rows(
    "wrong",
    [
        {"rule": "contract/input", "tool": "x" * 501},
        {"rule": "contract/input", "tool": "a\x7fb"},
        {"rule": "contract/input", "tool": ["look"]},
        {"rule": "contract/inptu"},
        {},
        {"rule": "contract/input", "until": "2020-01-01"},
        {"rule": "contract/input", "until": "soon"},
        {"rule": "contract/input", "tool": 'a"\n[guard]\nmode = "audit"\n#'},
        {"rule": "contract/input", "reason": "a\nb"},
        {"rule": "contract/input", "action": "explode"},
        {"rule": 3},
    ],
)
def test_an_exception_that_the_guard_would_refuse_is_refused(served: ServedConsole, wrong: dict[str, Any]) -> None:
    found = served.http.post("api/exception", json=wrong)
    assert (found.status_code, found.json()["error"]["code"]) == (400, "invalid")


def test_the_lock_is_compared_with_what_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    look, change = TOOLS
    write(FILE, {"lib": Locked(command=("run",), listed={"tools": {each["name"]: (each,) for each in TOOLS}})})
    listed = [{**look, "description": "Look closely."}, {**change, "name": "other"}]
    [contract] = console_of(journal(tmp_path, [], tools=listed)).get("api/contracts")["contracts"]
    assert contract["lock"] == "locked"
    [tools] = contract["lists"]
    assert [(each["name"], each["lock"]) for each in tools["entries"]] == [("look", "changed"), ("other", "added")]
    assert tools["entries"][0]["changes"][0]["weight"] == "wording"
    assert tools["removed"] == ["change"]


def test_a_lock_that_cannot_be_read_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "bad.lock").write_text("no lock")
    for name, reason in (("none.lock", "No such file or directory"), ("bad.lock", "not a lock")):
        done = assay_text("console", "--no-browser", "--lock", str(tmp_path / name))
        assert (done.returncode, reason in done.stderr, done.stdout) == (2, True, "")

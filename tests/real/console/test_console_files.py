"""A console for files: recordings are judged, journals are shown as written, and exports open again."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.command import assay_text
from kit.consoles import HANDSHAKE, RunningConsole, console, http_guard, parsed, server_command, stdio_guard
from kit.places import TESTS

GOLDEN = TESTS / "data" / "golden.jsonl"

SECRET = "ghp_" + "a1B2" * 9

MESSAGES: list[tuple[str, dict[str, Any]]] = [
    ("c2s", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}),
    (
        "s2c",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "serverInfo": {"name": "s", "version": "1"},
            },
        },
    ),
    ("c2s", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ("c2s", {"jsonrpc": "2.0", "id": 2, "method": "ping", "params": {"_meta": {"token": SECRET}}}),
    ("s2c", {"jsonrpc": "2.0", "id": 2, "result": []}),
]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Return a recording with one finding and one secret."""
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(json.dumps({"dir": side, "msg": json.dumps(each)}) + "\n" for side, each in MESSAGES))
    return path


def loaded(running: RunningConsole) -> dict[str, Any]:
    """Return the state once all files are read."""
    found: dict[str, Any] = running.wait_for("api/state", lambda found: not found["loading"] and found["newest"])
    return found


def test_a_recording_is_judged_as_check_does(state: Path, recording: Path) -> None:
    with console(state, str(recording)) as running:
        found = loaded(running)
        [server] = found["servers"]
        assert (server["source"], server["label"], server["state"]) == ("file", str(recording), "ended")
        rows = running.rows()
        assert [each["kind"] for each in rows] == ["request", "result", "notification", "request", "result"]
        assert rows[4]["of"] == rows[3]["seq"]
        [group] = running.get("api/findings")["groups"]
        assert (group["rule"], group["samples"]) == ("envelope/result", [5])


def test_secrets_in_a_recording_are_masked_before_they_leave(state: Path, recording: Path) -> None:
    with console(state, str(recording)) as running:
        loaded(running)
        everything = [running.http.get(path).text for path in ("api/rows", "api/findings", "api/messages/4")]
        everything += [running.post("api/export", {"format": each}).text for each in ("recording", "journal", "json")]
        assert not [each for each in everything if SECRET in each]
        assert running.get("api/messages/4")["redacted"]


def test_a_file_that_cannot_be_read_is_named(state: Path, tmp_path: Path, recording: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("no recording\n")
    with console(state, str(recording), str(broken), str(tmp_path / "none.jsonl")) as running:
        found = running.wait_for("api/state", lambda found: not found["loading"] and len(found["failed"]) == 2)
        assert {Path(each["file"]).name for each in found["failed"]} == {"broken.jsonl", "none.jsonl"}
        assert found["newest"] == 5


def test_a_console_that_would_have_nothing_to_show_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "bin.dat").write_bytes(bytes(range(256)))
    (tmp_path / "empty").mkdir()
    done = assay_text("console", "--no-browser", "nope", "bin.dat", "empty", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    reasons = dict(line.removeprefix("assay console: ").split(": ", 1) for line in done.stderr.splitlines())
    assert reasons["nope"] == "No such file or directory"
    assert reasons["bin.dat"].startswith("not a recording")
    assert set(reasons) == {"nope", "bin.dat", "empty"}


def test_a_journal_without_payloads_is_shown_as_written(state: Path, tmp_path: Path) -> None:
    with stdio_guard(state, tmp_path, "--journal", str(tmp_path / "journal")) as guard:
        guard.open()
        guard.call("look", count="x")
    with console(state, str(tmp_path / "journal")) as running:
        loaded(running)
        rows = running.rows()
        assert len(rows) == 7
        assert rows[5]["verdict"] == "would block"
        assert rows[5]["rules"] == ["contract/input"]


@pytest.mark.timeout(240)  # It has much to do, and other tests run beside it.
def test_a_hundred_thousand_records_are_loaded_and_sent(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    lines = [line for line in GOLDEN.read_bytes().splitlines(keepends=True) if line.startswith(b'{"ts"')]
    path.write_bytes(b"".join(lines) * (100_500 // len(lines) + 1))
    # A client that does not read is cut off at some time, which must not be before the file is loaded.
    patient = ("--set", "http.send_seconds=600")
    with console(state, *patient, str(path)) as running, running.http.stream("GET", "api/events?after=0") as unread:
        found = loaded(running)
        answer = running.http.get("api/rows", headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
        rows = answer.json()["rows"]
        assert found["dropped"]["rows"] + len(rows) == found["newest"] > 100_000 >= len(rows) > 95_000
        assert [rows[0][0], rows[-1][0]] == [found["oldest"], found["newest"]]
        assert running.http.get("api/messages/1").json()["error"]["code"] == "dropped"
        few = running.get(f"api/rows?after={found['newest'] - 3}")["rows"]
        assert len(few) == 3
        assert len(running.get("api/rows?limit=7")["rows"]) == 7
        # A page that did not read meanwhile is asked to load everything again.
        assert [kind for kind, _, _ in parsed(unread.iter_lines())][-1] == "reset"


# ── exports ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def talked() -> Iterator[RunningConsole]:
    """Return a console for a journal with payloads: two good calls and one with a wrong argument."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with stdio_guard(place, place, "--set", "journal.payloads=true", "--journal", str(place / "journal")) as guard:
            guard.open()
            guard.call("look", count=1)
            guard.call("look", count="x")
            guard.call("change")
        with console(place, str(place / "journal")) as running:
            loaded(running)
            yield running


@pytest.mark.parametrize("kind", ["recording", "journal"])
def test_an_export_is_judged_again_with_the_same_findings(talked: RunningConsole, tmp_path: Path, kind: str) -> None:
    found = talked.post("api/export", {"format": kind})
    assert found.headers["content-disposition"] == f'attachment; filename="assay-{kind}.jsonl"'
    assert "assay-left-out" not in found.headers
    path = tmp_path / "again.jsonl"
    path.write_bytes(found.content)
    checked = json.loads(assay_text("check", "--format", "json", str(path)).stdout)
    assert [each["rule"] for each in checked["findings"]] == ["contract/input"]
    assert checked["files"][0]["messages"] == 11


def check_of(path: Path, content: bytes, *options: str) -> tuple[int, Any, str]:
    """Return the status, the JSON and the text of a check of an export."""
    path.write_bytes(content)
    done = assay_text("check", "--format", "json", *options, str(path))
    return done.returncode, json.loads(done.stdout), assay_text("check", *options, str(path)).stdout


FILTERS = ["verdict:blocked", "tool:look verdict:blocked kind:request", "kind:result tool:change", "verdict:reported"]


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_a_filtered_recording_is_judged_as_the_guard_judged_it(mode: str, tmp_path: Path, state: Path) -> None:
    """Its rows come with what they need: the handshake, the list of tools, and the rest of their exchanges."""
    options = ("--mode", mode, "--set", "journal.payloads=true", "--journal", str(tmp_path / "journal"))
    with stdio_guard(state, tmp_path, *options) as guard:
        guard.open()
        for count in (1, "x", 2, "y"):
            guard.call("look", count=count)
        guard.call("change")
        # A finding that depends on an earlier message, which no filter below chooses.
        guard.send(
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 9, "progress": 1}}
        )
        guard.call("look", count=3)
    with console(state, str(tmp_path / "journal")) as running:
        loaded(running)
        rows = running.rows()
        for words in FILTERS:
            chosen = running.post("api/export", {"format": "journal", "filter": words}).content.splitlines()
            expected = sorted(
                (each["rule"], each["at"])
                for line in chosen
                for each in (json.loads(line)["error"] or {}).get("violations", ())
            )
            answer = running.post("api/export", {"format": "recording", "filter": words})
            assert answer.status_code == 200, words
            status, report, text = check_of(tmp_path / "few.jsonl", answer.content)
            found = sorted((each["rule"], place["at"]) for each in report["findings"] for place in each["places"])
            assert found == expected, (words, text)
            assert status == (1 if expected else 0)
            assert report["files"][0]["messages"] < len(rows)
        assert "contract/input" in {rule for row in rows for rule in row["rules"]}
        assert "protocol/progress" in {rule for row in rows for rule in row["rules"]}


def test_a_filtered_recording_without_sessions_has_the_list_of_its_server(tmp_path: Path, state: Path) -> None:
    """Each request is a conversation of its own, and all share the tools of the server."""
    options = ("--lock", "off", "--set", "journal.payloads=true", "--journal", str(tmp_path / "journal"))
    with http_guard(state, tmp_path, *options) as url:
        for arguments in ('{"count": 1}', '{"count": "many"}'):
            assay_text("call", url, "look", arguments)
    with console(state, str(tmp_path / "journal")) as running:
        loaded(running)
        words = "tool:look verdict:blocked"
        answer = running.post("api/export", {"format": "recording", "filter": words})
        assert "contract/input" in {rule for row in running.rows() for rule in row["rules"]}
    _, report, text = check_of(tmp_path / "few.jsonl", answer.content)
    assert [each["rule"] for each in report["findings"]] == ["contract/input"], text


def test_a_recording_of_messages_that_are_not_recorded_is_refused(tmp_path: Path, state: Path) -> None:
    with stdio_guard(state, tmp_path, "--journal", str(tmp_path / "journal")) as guard:
        guard.open()
        guard.call("look", count="x")
    with console(state, str(tmp_path / "journal")) as running:
        loaded(running)
        answer = running.post("api/export", {"format": "recording", "filter": "verdict:blocked"})
        assert answer.status_code == 409
        assert "run the guard with --set journal.payloads=true" in answer.json()["error"]["message"]
        assert running.post("api/export", {"format": "journal"}).status_code == 200


@pytest.mark.parametrize("lost", ["tools/call", "tools/list"])
def test_messages_that_are_not_recorded_are_not_called_good(
    lost: str, talked: RunningConsole, tmp_path: Path, state: Path
) -> None:
    lines = [json.loads(line) for line in talked.post("api/export", {"format": "journal"}).content.splitlines()]
    bare = [each for each in lines if each["method"] == lost and each["metadata"]["kind"] == "result"]
    for each in bare:
        del each["metadata"]["frame"]
    file = tmp_path / "20261116T180000Z-95de3302.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    with console(state, str(file)) as running:
        loaded(running)
        answer = running.post("api/export", {"format": "recording"})
        good = running.post("api/export", {"format": "recording", "filter": "tool:change kind:request"})
    assert answer.headers["assay-left-out"] == str(len(bare))
    status, report, text = check_of(tmp_path / "export.jsonl", answer.content, "--fail-on", "refuse")
    [about] = report["files"]
    assert (about["messages"], about["notJudged"], about["complete"]) == (len(lines) - len(bare), len(bare), False)
    assert f"{len(bare)} message{'s' * (len(bare) > 1)} not judged" in text
    assert any(each.endswith("not judged: no payload in the journal") for each in about["remarks"])
    # What the guard found by a list that is not recorded stays a finding.
    rules = [each["rule"] for each in report["findings"] if each["rule"] != "contract/not-judged"]
    assert rules == ["contract/input"]
    assert status == 1
    status, report, _ = check_of(tmp_path / "good.jsonl", good.content)
    assert {each["rule"] for each in report["findings"]} <= {"contract/not-judged"}
    assert (status, report["files"][0]["notJudged"]) == (1 if report["findings"] else 2, 1)


def test_only_rows_that_match_are_exported(talked: RunningConsole) -> None:
    found = talked.post("api/export", {"format": "journal", "filter": "tool:look verdict:blocked"}).content
    assert [json.loads(line)["metadata"]["tool"] for line in found.splitlines()] == ["look"]
    excluded = talked.post(
        "api/export", {"format": "journal", "filter": "tool:look -verdict:blocked status:ok"}
    ).content
    assert excluded
    assert not [line for line in excluded.splitlines() if b'"kind":"result"' not in line]
    both = talked.post("api/export", {"format": "journal", "filter": "tool:look", "seqs": [1, 6, 99]}).content
    assert len(both.splitlines()) == 1
    wrong = talked.post("api/export", {"format": "journal", "filter": "tol:look"})
    assert (wrong.status_code, wrong.json()["error"]["message"][:4]) == (400, "tol:")
    assert talked.post("api/export", {"format": "none"}).status_code == 400
    assert talked.post("api/export", {"format": "journal", "seqs": ["1"]}).status_code == 400


def test_findings_are_exported_as_sarif(talked: RunningConsole) -> None:
    assert "sarif" in talked.get("api/state")["formats"]
    found = talked.post("api/export", {"format": "sarif"})
    assert found.headers["content-type"] == "application/sarif+json"
    [run] = found.json()["runs"]
    [result] = run["results"]
    assert result["ruleId"] == "contract/input"
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("assay-journal.jsonl", 8)


def test_every_format_is_written(talked: RunningConsole) -> None:
    for kind in talked.get("api/state")["formats"]:
        found = talked.post("api/export", {"format": kind})
        assert found.status_code == 200, kind
        assert b"contract/input" in found.content or kind == "recording"


# ── exceptions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_exception_is_accepted_by_the_guard_and_lets_the_message_pass(
    talked: RunningConsole, state: Path, tmp_path: Path
) -> None:
    wanted = {"rule": "contract/input", "tool": "look", "reason": 'it\'s "known" \\ here', "server": 1}
    found = talked.post("api/exception", wanted).json()
    assert any("lib" in each for each in found["notes"])
    settings = tmp_path / "exceptions.toml"
    settings.write_text(found["toml"], encoding="utf-8")
    with stdio_guard(state, tmp_path, "--mode", "enforce", "--config", str(settings)) as guard:
        guard.open()
        assert guard.call("look", count="x")["result"]["content"][0]["text"] == '{"count": "x"}'


@pytest.mark.parametrize(
    "wrong",
    [
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
def test_an_exception_that_the_guard_would_refuse_is_refused(talked: RunningConsole, wrong: dict[str, Any]) -> None:
    found = talked.post("api/exception", wrong)
    assert (found.status_code, found.json()["error"]["code"]) == (400, "invalid")


def test_the_lock_is_compared_with_what_is_listed(state: Path, tmp_path: Path) -> None:
    command = server_command(tmp_path)
    assert assay_text("lock", "--name", "lib", "--", *command, cwd=tmp_path).returncode == 0
    with stdio_guard(
        state, tmp_path, "--set", "journal.payloads=true", "--journal", str(tmp_path / "journal"), "--lock", "off"
    ) as guard:
        guard.open()
    journal = next((tmp_path / "journal").glob("*.jsonl"))
    listed = journal.read_text().replace('\\"change\\"', '\\"other\\"')
    journal.write_text(listed.replace("look <script>", "look closely <script>"))
    with console(state, str(journal), cwd=tmp_path) as running:
        loaded(running)
        [contract] = running.get("api/contracts")["contracts"]
        assert contract["lock"] == "locked"
        [tools] = contract["lists"]
        assert [(each["name"], each["lock"]) for each in tools["entries"]] == [("look", "changed"), ("other", "added")]
        assert tools["entries"][0]["changes"][0]["weight"] == "wording"
        assert tools["removed"] == ["change"]


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    program = "import sys; sys.modules['uvicorn'] = None; from assay.cli.main import main; sys.exit(main(['console']))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert "assay console needs" in done.stderr

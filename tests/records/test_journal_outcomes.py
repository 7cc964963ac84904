"""What became of a message in one of five words: the same in the journal, a check, the console and its exports."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from assay.console.rows import COLUMNS
from assay.console.servers import ConsoleSource
from assay.console.state import ConsoleState
from assay.judge.conversation import Conversation
from assay.model.limits import DEFAULT, Limits
from assay.model.verdict import Party
from assay.records.filtering import RecordFilter
from assay.records.outcomes import WORDS, outcome_of, recorded_outcome, recorded_title
from assay.records.outcomes import title as title_of
from assay.records.record import Record, read_record
from assay.records.recording import Recording
from assay.rules.policy import REPAIRED_RESULTS, Policy
from assay.settings.state_directory import server_folder
from kit.command import assay_text
from kit.records import open_journal, record_with, write_verdict
from kit.rows import rows
from kit.stateless_talk import asks
from kit.talk import HITS, SEARCH, call, error, frame_of, notification, request, result

BAD = {**SEARCH, "name": "bad", "inputSchema": {"type": "object", "properties": {"a": 1, "b": 2}, "required": True}}
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}}
PEER = {"name": "a", "version": "1"}
FAILED = {"content": [{"type": "text", "text": "x"}], "isError": True}

Said = list[tuple[Party, Any, str]]
SAID: Said = [
    (Party.CLIENT, request(1, "initialize", {**OPENING, "clientInfo": PEER}), "ok"),
    (Party.SERVER, result(1, {**OPENING, "capabilities": {"tools": {}}, "serverInfo": PEER}), "ok"),
    (Party.CLIENT, notification("notifications/initialized"), "ok"),
    (Party.CLIENT, request(2, "tools/list"), "ok"),
    (Party.SERVER, result(2, {"tools": [SEARCH, BAD]}), "reported"),
    (Party.CLIENT, call(3, "search", {}), "blocked"),
    (Party.CLIENT, call(4, "search", {"words": "sea"}), "ok"),
    (Party.SERVER, result(4, FAILED), "failed"),
    (Party.CLIENT, call(5, "search", {"words": "sea"}), "ok"),
    (Party.SERVER, error(5, -32603), "failed"),
    (Party.SERVER, b"starting", "blocked"),
]
"""A conversation, and the word for each message."""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state directory of the test's own."""
    monkeypatch.delenv("ASSAY_JOURNAL", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def recorded(mode: Any, said: Said = SAID) -> str:
    """Write the journal of a guard in this mode; return its path."""
    journal = open_journal(server_folder(os.environ, "demo") or "", server="demo", mode=mode, payloads=True)
    conversation = Conversation(mode=mode)
    for party, message, word in said:
        verdict = conversation.hear(party, frame_of(message))
        assert outcome_of(verdict).word == word
        write_verdict(journal, verdict)
    journal.close()
    return journal.path


def records_of(path: str) -> list[Record]:
    found = map(read_record, Path(path).read_bytes().splitlines())
    return [each for each in found if each is not None]


def printed(*arguments: str, **options: Any) -> str:
    """What a command prints that succeeds."""
    done = assay_text(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@rows(("mode", "blocked"), [("audit", "would block"), ("enforce", "blocked")])
def test_every_surface_has_the_same_word(mode: str, blocked: str) -> None:
    path = recorded(mode)
    words = [word for _, _, word in SAID]
    shown = [blocked if word == "blocked" else word for word in words]
    records = records_of(path)
    assert [recorded_outcome(each).word for each in records] == words
    console = ConsoleState()
    for each in records:
        console.take(ConsoleSource("test", "journal"), each, 0.0)
    assert [json.loads(row)[COLUMNS.index("verdict")] for row in console.store.after(0)] == shown
    table = printed("journal", "show", path).splitlines()
    assert f"11 records: 6 ok, 1 reported, 2 {blocked}, 2 failed" in table
    # An audit run does not claim to have blocked or quarantined anything.
    assert ("(audit: everything was forwarded)" in table) == (mode == "audit")
    assert f"    {'would be ' if mode == 'audit' else ''}quarantined: tool bad" in table
    checked = printed("check", "--fail-on", "never", path)
    assert "11 messages of MCP 2025-11-25: 6 ok, 1 reported, 2 blocked, 2 failed" in checked
    lines = printed("check", "--fail-on", "never", "--messages", "--format", "ndjson", path).splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == words
    # One word chooses the same messages in both modes: `blocked` also what audit mode forwarded.
    for word in WORDS:
        wanted = [at for at, each in enumerate(words) if each == word]
        chosen = printed("journal", "show", "--verdict", word, "--format", "json", path).splitlines()
        assert [read_record(line.encode()) for line in chosen] == [records[at] for at in wanted]
        filtered = RecordFilter.parse(f"verdict:{word}")
        assert [at for at, each in enumerate(records) if filtered.wants(each)] == wanted


def test_runs_of_both_modes_are_shown_apart() -> None:
    recorded("audit")
    recorded("enforce", SAID[:3])
    lines = printed("journal", "show", "--server", "demo", "--all").splitlines()
    assert lines[-1] == "(11 of 14 records are from audit mode: everything in them was forwarded)"
    listed = [line.split() for line in printed("journal", "list").splitlines()]
    assert (listed[0][2], {row[3] for row in listed[1:3]}) == ("mode", {"audit", "enforce"})
    found = json.loads(printed("journal", "list", "--format", "json"))["runs"]
    assert {row["mode"] for row in found} == {"audit", "enforce"}


def test_journals_of_earlier_versions_and_what_audit_could_not_forward(tmp_path: Path) -> None:
    """Records without a mode have that of what passed, and the status in a record keeps its four words."""
    text = Path(recorded("audit")).read_text()
    (tmp_path / "changed").write_text(text.replace('"passed":true,', "", 1))
    last = printed("journal", "show", "changed").splitlines()[-1]
    assert last == "(audit: everything was forwarded, except 1 blocked message)"
    (tmp_path / "old").write_text(text.replace(',"mode":"audit"', ""))
    assert "would block" in printed("journal", "show", "old")
    statuses = {"ok": "ok", "reported": "reported", "refused": "blocked", "failed": "failed", "odd": "reported"}
    assert {each: recorded_outcome(record_with(status=each)).shown for each in statuses} == statuses


def test_a_terminal_names_quarantined_entries_first_and_folds_what_is_long() -> None:
    def on_terminal(path: str, *options: str, columns: str = "80") -> str:
        return printed("journal", "show", path, *options, on_terminal=True, NO_COLOR="1", COLUMNS=columns)

    path = recorded("enforce")
    lines = on_terminal(path).splitlines()
    number = next(number for number, line in enumerate(lines) if "result of tools/list" in line)
    assert ("reported" in lines[number], lines[number + 1]) == (True, "    quarantined: tool bad")
    narrow = on_terminal(recorded("audit"), columns="40")
    assert ("    would be quarantined: tool bad" in narrow, "would block" in narrow) == (True, True)
    assert max(map(len, narrow.splitlines())) <= 40
    # Where a filter leaves few records their findings are not folded.
    for options, is_folded in (((), True), (("--quarantined",), False), (("--rule", "contract"), False)):
        assert (" more)" in " ".join(on_terminal(path, *options).split())) is is_folded


@rows(
    ("code", "asked", "word"),
    [(-32601, "server/discover", "ok"), (-32602, "server/discover", "ok"), (-32601, "tools/list", "failed")],
)
def test_a_server_that_does_not_know_the_probe_has_not_failed(code: int, asked: str, word: str) -> None:
    """Clients of several revisions ask `server/discover` first: in every session with a server of 2025."""
    said = [(Party.CLIENT, asks(0, asked), "ok"), (Party.SERVER, error(0, code), word)]
    path = recorded("enforce", said)
    assert records_of(path)[1].status == "failed"
    assert (" 2 ok" in printed("journal", "show", path)) == (word == "ok")


@rows(
    ("frame", "title"),
    [
        (b"library server 0.3 starting", "(not JSON)"),
        (b'{"jsonrpc":"2.0","id":1', "(not JSON)"),
        (b'{"a":1,"a":2}', "(not a message)"),
        (b" " * 2000, "(not a message)"),
        (b"5", "(not a message)"),
        (b"[5]", "a batch"),
    ],
)
def test_a_stray_line_is_called_what_it_is(frame: bytes, title: str) -> None:
    """In the journal, and by the guard and `assay check`."""
    verdict = Conversation(limits=Limits(frame_bytes=1000)).hear(Party.SERVER, frame)
    assert title_of(verdict) == title
    journal = open_journal("here")
    line = journal.line(verdict, journal.moment("stdio", "stdio", None, frame), 0)
    journal.close()
    found = read_record(line)
    assert found is not None
    assert recorded_title(found) == title


def test_a_recording_counts_failures_that_are_not_listed() -> None:
    """Messages without findings are only counted, in blocks; the answers of a server that failed are among them."""
    said = [*SAID[:4], (Party.SERVER, result(2, {"tools": [SEARCH]}), "")]
    for number in range(10, 60):
        said.append((Party.CLIENT, call(number, "search", {"words": "sea"}), ""))
        said.append((Party.SERVER, result(number, HITS if number % 5 else FAILED), ""))
    recording = Recording("r.jsonl", most=1 << 28, redactor=None, log=pytest.fail)
    conversation = recording.judge("demo")(mode="audit", limits=DEFAULT)
    for party, message, _ in said:
        conversation.hear(party, frame_of(message))
    recording.close()
    for options in ((), ("--messages",), ("--output", "html=page.html")):
        assert "105 messages of MCP 2025-11-25: 95 ok, 10 failed" in printed("check", *options, "r.jsonl")


def test_a_repaired_message_is_repaired_even_if_it_is_an_error() -> None:
    conversation = Conversation(mode="enforce", revision="2026-07-28", policy=Policy(repairs=REPAIRED_RESULTS))
    conversation.hear(Party.CLIENT, frame_of(asks(1, "resources/read", uri="a:b")))
    verdict = conversation.hear(Party.SERVER, frame_of(error(1, -32002)))
    assert verdict.repairs
    assert outcome_of(verdict).word == "repaired"

"""One of five words for what became of a message, the same in the journal, a check, the console and its exports."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from assay.base.verdict import Party
from assay.cli.main import main
from assay.console.console_rows import COLUMNS
from assay.console.console_state import ConsoleSource, ConsoleState
from assay.core.conversation import Conversation
from assay.core.policy import REPAIRED_RESULTS, Policy
from assay.records.filter_words import FilterWords
from assay.records.journal.events import RECORD, JournalItem
from assay.records.journal.writer import Journal
from assay.records.outcomes import WORDS, outcome_of, recorded_outcome
from assay.settings.state_directory import server_folder
from kit.rows import rows
from kit.talk import HITS, SEARCH, call, error, frame_of, notification, request, result

BAD = {**SEARCH, "name": "bad", "inputSchema": {"type": "object", "properties": {"a": 1}, "required": True}}
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}}
PEER = {"name": "a", "version": "1"}
CONTENT = {"content": [{"type": "text", "text": "x"}]}

SAID: list[tuple[Party, Any, str]] = [
    (Party.CLIENT, request(1, "initialize", {**OPENING, "clientInfo": PEER}), "ok"),
    (Party.SERVER, result(1, {**OPENING, "capabilities": {"tools": {}}, "serverInfo": PEER}), "ok"),
    (Party.CLIENT, notification("notifications/initialized"), "ok"),
    (Party.CLIENT, request(2, "tools/list"), "ok"),
    (Party.SERVER, result(2, {"tools": [SEARCH, BAD]}), "reported"),
    (Party.CLIENT, call(3, "search", {}), "blocked"),
    (Party.CLIENT, call(4, "search", {"words": "sea"}), "ok"),
    (Party.SERVER, result(4, {**CONTENT, "isError": True}), "failed"),
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


def recorded(mode: Any) -> str:
    """The journal of a guard in this mode."""
    journal = Journal.open(server_folder(os.environ, "demo") or "", server="demo", mode=mode, payloads=True)
    assert journal is not None
    conversation = Conversation(mode=mode)
    for party, message, word in SAID:
        verdict = conversation.hear(party, frame_of(message))
        assert outcome_of(verdict).word == word
        moment = journal.moment("stdio", "stdio", verdict.method, verdict.frame)
        journal.write(journal.line(verdict, moment, 0))
    journal.close()
    return journal.path


def records_of(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


@rows(("mode", "blocked"), [("audit", "would block"), ("enforce", "blocked")])
def test_every_surface_has_the_same_word(mode: str, blocked: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = recorded(mode)
    words = [word for _, _, word in SAID]
    shown = [blocked if word == "blocked" else word for word in words]
    records = records_of(path)
    assert [recorded_outcome(each).word for each in records] == words
    assert [recorded_outcome(each).shown for each in records] == shown
    console = ConsoleState()
    for each in records:
        console.take(ConsoleSource("test", "journal"), JournalItem(RECORD, each), 0.0)
    rows = [json.loads(row) for row in console.store.after(0)]
    assert [row[COLUMNS.index("verdict")] for row in rows] == shown
    assert main(["journal", "show", path]) == 0
    assert f"11 records: 6 ok, 1 reported, 2 {blocked}, 2 failed" in capsys.readouterr().out
    assert main(["check", "--fail-on", "never", path]) == 0
    assert "11 messages of MCP 2025-11-25: 6 ok, 1 reported, 2 blocked, 2 failed" in capsys.readouterr().out
    assert main(["check", "--fail-on", "never", "--messages", "--format", "ndjson", path]) == 0
    assert [json.loads(line)["verdict"] for line in capsys.readouterr().out.splitlines()] == words


@rows("mode", ["audit", "enforce"])
@rows("word", WORDS)
def test_one_word_chooses_the_same_messages_in_both_modes(
    mode: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`blocked` also chooses what audit mode forwarded, and nothing else does."""
    path = recorded(mode)
    wanted = [at for at, (_, _, each) in enumerate(SAID) if each == word]
    records = records_of(path)
    assert main(["journal", "show", "--verdict", word, "--format", "json", path]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found == [records[at] for at in wanted]
    words = FilterWords.parse(f"verdict:{word}")
    assert [at for at, each in enumerate(records) if words.wants(each)] == wanted


def test_a_recording_counts_failures_that_are_not_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Messages without findings are only counted, in blocks; the answers of a server that failed are among them."""
    lines = [b'{"event":"recording","version":1}']
    lines.append(b'{"event":"open","conversation":1,"server":"demo","mode":"audit","revision":null,"lines":true}')

    def row(party: Party, message: Any) -> bytes:
        side = "c2s" if party is Party.CLIENT else "s2c"
        return json.dumps(
            {"dir": side, "conversation": 1, "msg": frame_of(message).decode()}, separators=(",", ":")
        ).encode()

    lines += [row(party, message) for party, message, _ in SAID[:4]]
    lines.append(row(Party.SERVER, result(2, {"tools": [SEARCH]})))
    for number in range(10, 60):
        lines.append(row(Party.CLIENT, call(number, "search", {"words": "sea"})))
        failed = number % 5 == 0
        lines.append(row(Party.SERVER, result(number, {**CONTENT, "isError": True} if failed else HITS)))
    (tmp_path / "r.jsonl").write_bytes(b"\n".join([*lines, b'{"event":"close"}', b""]))
    for options in ((), ("--messages",), ("--output", "html=page.html")):
        assert main(["check", *options, "r.jsonl"]) == 0
        assert "105 messages of MCP 2025-11-25: 95 ok, 10 failed" in capsys.readouterr().out


def test_a_repaired_message_is_repaired_even_if_it_is_an_error() -> None:
    policy = Policy(repairs=REPAIRED_RESULTS)
    conversation = Conversation(mode="enforce", revision="2026-07-28", policy=policy)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    conversation.hear(Party.CLIENT, frame_of(request(1, "resources/read", {"uri": "a:b", "_meta": meta})))
    verdict = conversation.hear(Party.SERVER, frame_of(error(1, -32002)))
    assert verdict.repairs
    assert outcome_of(verdict).word == "repaired"


def test_journals_of_earlier_versions_are_readable() -> None:
    """The status in a record keeps its four words, which older journals have, and from which the word follows."""
    record: dict[str, Any] = {"method": "ping", "error": {"violations": []}, "metadata": {"kind": "request"}}
    statuses = ("ok", "reported", "refused", "failed", "odd")
    assert [recorded_outcome({**record, "status": each}).shown for each in statuses] == [
        *("ok", "reported", "blocked", "failed", "reported")
    ]

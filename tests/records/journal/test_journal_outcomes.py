"""What people see of a message in the journal: the mode, quarantined entries, and what is normal."""

import json
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay.base.limits import Limits
from assay.base.verdict import Party
from assay.cli.main import main
from assay.cli.terminal.journal_table import JournalTable, View
from assay.cli.terminal.journal_table import title as recorded_title
from assay.cli.terminal.style import Style
from assay.cli.terminal.verdicts import title as title_of
from assay.core.conversation import Conversation
from assay.records.journal.tally import mode_in
from assay.records.journal.writer import Journal
from assay.settings.state_directory import server_folder
from kit.outputs import Terminal
from kit.rows import rows
from kit.talk import SEARCH, call, error, frame_of, notification, request, result

BAD = {**SEARCH, "name": "bad", "inputSchema": {"type": "object", "properties": {"a": 1, "b": 2}, "required": True}}

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
INFORMATION = {"name": "a", "version": "1"}
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}}

SAID: list[tuple[Party, Any]] = [
    (Party.CLIENT, request(0, "server/discover", {"_meta": META})),
    (Party.SERVER, error(0, -32601)),
    (Party.CLIENT, request(1, "initialize", {**OPENING, "clientInfo": INFORMATION})),
    (Party.SERVER, result(1, {**OPENING, "capabilities": {"tools": {}}, "serverInfo": INFORMATION})),
    (Party.CLIENT, notification("notifications/initialized")),
    (Party.CLIENT, request(2, "tools/list")),
    (Party.SERVER, result(2, {"tools": [SEARCH, BAD]})),
    (Party.CLIENT, call(3, "search", {})),
    (Party.SERVER, b"starting"),
]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state directory of the test's own."""
    monkeypatch.delenv("ASSAY_JOURNAL", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def recorded(mode: Any, said: list[tuple[Party, Any]] = SAID, server: str = "demo") -> str:
    """Write the journal of a guard in this mode; return its path."""
    journal = Journal.open(server_folder(os.environ, server) or "", server=server, mode=mode)
    assert journal is not None
    conversation = Conversation(mode=mode)
    for party, message in said:
        verdict = conversation.hear(party, frame_of(message))
        moment = journal.moment("stdio", "stdio", verdict.method, verdict.frame)
        journal.write(journal.line(verdict, moment, 0))
    journal.close()
    return journal.path


def shown(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert main(["journal", "show", *options]) == 0
    return capsys.readouterr().out.splitlines()


def on_terminal(path: str, columns: str = "80", unfolded: int = 0, no_color: str = "1") -> str:
    """All records as a terminal shows them."""
    table = JournalTable(
        Style(Terminal(), {"COLUMNS": columns, "NO_COLOR": no_color}), View(utc=True, unfolded=unfolded)
    )
    records = map(orjson.loads, Path(path).read_bytes().splitlines())
    return "\n".join(line for record in records for line in table.lines(record))


def test_an_audit_run_does_not_claim_to_have_blocked_anything(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, recorded("audit"))
    assert [line.split()[-5:-3] for line in lines if "tools/call" in line or "(not" in line] == 2 * [["would", "block"]]
    assert "    would be quarantined: tool bad" in lines
    assert "9 records: 6 ok, 1 reported, 2 would block" in lines
    assert lines[-1] == "(audit: everything was forwarded)"


def test_an_enforce_run_has_blocked_messages_and_quarantined_tools(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, recorded("enforce"))
    assert [line.split()[-4] for line in lines if "tools/call" in line or "(not" in line] == 2 * ["blocked"]
    assert [line.split()[-4] for line in lines if "result of tools/list" in line] == ["reported"]
    assert "    quarantined: tool bad" in lines
    assert "9 records: 6 ok, 1 reported, 2 blocked" in lines
    assert "audit" not in "".join(lines)


def test_the_statuses_of_records_do_not_depend_on_the_mode() -> None:
    """Programs rely on them."""
    for mode in ("audit", "enforce"):
        records = [json.loads(line) for line in Path(recorded(mode)).read_text().splitlines()]
        assert [each["status"] for each in records if each["status"] != "ok"] == [
            *("failed", "reported", "refused", "refused")
        ]


def test_runs_of_both_modes_are_shown_apart(capsys: pytest.CaptureFixture[str]) -> None:
    recorded("audit")
    recorded("enforce", SAID[:3])
    lines = shown(capsys, "--server", "demo", "--all")
    assert lines[-1] == "(9 of 12 records are from audit mode: everything in them was forwarded)"
    assert main(["journal", "list"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0][2] == "mode"
    assert {row[3] for row in rows[1:3]} == {"audit", "enforce"}
    assert main(["journal", "list", "--format", "json"]) == 0
    assert {row["mode"] for row in json.loads(capsys.readouterr().out)["runs"]} == {"audit", "enforce"}


def test_what_audit_could_not_forward_is_counted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = Path(recorded("audit")).read_text().replace('"passed":true,', "", 1)
    (tmp_path / "changed").write_text(text)
    assert shown(capsys, "changed")[-1] == "(audit: everything was forwarded, except 1 blocked message)"


def test_the_mode_of_an_older_journal_is_known_by_what_passed(tmp_path: Path) -> None:
    """Its records have no mode."""
    text = Path(recorded("audit")).read_text().replace(',"mode":"audit"', "")
    (tmp_path / "old").write_text(text)
    (tmp_path / "good").write_text("".join(text.splitlines(keepends=True)[:3]))
    assert [mode_in(name) for name in ("old", "good")] == ["audit", ""]
    assert "would block" in on_terminal("old")


def test_a_terminal_names_quarantined_entries_first(capsys: pytest.CaptureFixture[str]) -> None:
    lines = on_terminal(recorded("enforce")).splitlines()
    number = next(number for number, line in enumerate(lines) if "result of tools/list" in line)
    assert "reported" in lines[number]
    assert lines[number + 1] == "    quarantined: tool bad"
    narrow = on_terminal(recorded("audit"), "40")
    assert "    would be quarantined: tool bad" in narrow
    assert max(map(len, narrow.splitlines())) <= 40
    assert "would block" in narrow


def test_findings_are_not_folded_where_a_filter_leaves_few_records(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = recorded("enforce")
    assert " more)" in on_terminal(path)
    assert " more)" not in on_terminal(path, unfolded=10)
    monkeypatch.setattr("sys.stdout", Terminal())
    for options, is_folded in (([], True), (["--quarantined"], False), (["--rule", "contract"], False)):
        monkeypatch.setattr("sys.stdout", out := Terminal())
        assert main(["journal", "show", path, *options]) == 0
        assert (" more)" in " ".join(out.getvalue().split())) is is_folded


@rows(
    ("code", "asked", "is_normal"),
    [(-32601, "server/discover", True), (-32602, "server/discover", True), (-32601, "tools/list", False)],
)
def test_a_server_that_does_not_know_the_probe_has_not_failed(code: int, asked: str, is_normal: bool) -> None:
    """Clients of several revisions ask `server/discover` first: in every session with a server of 2025."""
    path = recorded(
        "enforce",
        [
            (Party.CLIENT, request(0, asked, {"_meta": META})),
            (Party.SERVER, error(0, code)),
        ],
    )
    lines = on_terminal(path, no_color="")
    assert ("\x1b[35mfailed" in lines) is not is_normal
    assert lines.count("\x1b[32mok") == 1 + is_normal
    assert '"status":"failed"' in Path(path).read_text()


@rows(
    ("frame", "title"),
    [
        (b"library server 0.3 starting", "(not JSON)"),
        (b'{"jsonrpc":"2.0","id":1', "(not JSON)"),
        (b'{"a":1,"a":2}', "(not a message)"),
        (b"\xff\xfe", "(not a message)"),
        (b" " * 2000, "(not a message)"),
        (b"5", "(not a message)"),
        (b"[5]", "a batch"),
    ],
)
def test_a_stray_line_is_called_what_it_is(frame: bytes, title: str) -> None:
    """In the journal, and by the guard and `assay check`."""
    verdict = Conversation(limits=Limits(frame_bytes=1000)).hear(Party.SERVER, frame)
    assert title_of(verdict) == title
    journal = Journal.open("here")
    assert journal is not None
    line = journal.line(verdict, journal.moment("stdio", "stdio", None, frame), 0)
    journal.close()
    assert recorded_title(orjson.loads(line)) == title

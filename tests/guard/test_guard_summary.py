"""What a guard shows to people and keeps of a session that broke: counted, bounded, nothing forged, and no secrets."""

import json
import stat
from pathlib import Path
from typing import Any

from assay.cli.guard_plan import exit_status
from assay.guard.deliveries import End
from assay.guard.summary import FLIGHTS, KEPT, KEPT_BYTES, GuardSummary
from assay.judge.conversation import Conversation
from assay.judge.render import changes
from assay.model.verdict import Party
from assay.rules.policy import Policy
from assay.schema.drafts import DRAFT_7
from kit.command import assay_text
from kit.guard_process import call, frame_of, initialize, notification, request, result, tool
from kit.guarded_session import GuardedLines, opened_in
from kit.http_client import meta
from kit.rows import rows

SERVER = Party.SERVER
NOTE = notification("notifications/message", {"level": "info", "data": 1})

# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_server_prints_in_place_of_a_message_is_shown_as_such() -> None:
    """It cannot pass for a line of the guard, nor does it do anything to a terminal, nor is it endless."""
    guard = GuardedLines()
    told = [b"\x1b]0;gotcha\x07\x1b[2Kassay: all is well\r", b"x" * 100_000, b"password=hunter2 token: abc"]
    assert guard.server(*told, *[b"still here"] * 5000, b"gone") == [], "nothing of it reaches the client"
    summary = list(guard.watch.summary())
    shown = [line.removeprefix("assay: the server sent: ") for line in guard.printed]
    assert shown[0].endswith("assay: all is well")
    assert max(map(len, guard.printed)) < 1100
    again = [line for line in guard.printed if line.endswith(" × again: the server sent: still here")]
    assert sum(int(line.split()[1].replace(",", "")) for line in again) == 4999
    assert all(line.startswith("assay: the server sent: ") for line in guard.printed if line not in again)
    assert not {"\x1b", "\x07", "\r"} & set("".join(guard.printed))
    assert not any(secret in line for line in guard.printed for secret in ("hunter2", "abc"))
    assert [line for line in shown[3:] if line not in again] == ["still here", "gone"]
    assert "assay: 5,004 lines of the server's output went to stderr" in summary


def test_names_of_a_peer_do_nothing_to_a_terminal() -> None:
    evil = "\x1b[2J\x07evil\n"
    guard = GuardedLines("audit")
    guard.open({"name": evil, "inputSchema": 5})
    guard.client(request(1, evil), call(2, evil))
    log = "".join([*guard.log, *guard.watch.summary()])
    assert "evil" in log
    assert not {"\x1b", "\x07", "\n"} & set(log)


def test_findings_are_shown_without_secrets() -> None:
    """By the name that a value stands under, by its looks, and by what the settings say."""
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in ("password", "words", "customer")}}
    known = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    guard = GuardedLines("audit", redact=("^customer",))
    guard.open(tool("login", inputSchema=schema))
    guard.client(call(1, "login", password="hunter2"), call(2, "login", words=known))  # noqa: S106 - made up
    guard.client(call(3, "login", customer="Ahab"), request(4, f"tools/{known}"))
    log = "\n".join([*guard.log, *guard.watch.summary()])
    assert log.count("[contract/input]") == 3
    assert "`password` must be an integer, not [redacted], at /params/arguments/password [" in log
    assert not any(secret in log for secret in ("hunter2", "ghp_0123", "Ahab"))


@rows(("mode", "words"), [("enforce", "blocked"), ("audit", "would block")])
def test_findings_are_shown_as_they_come_and_counted_at_the_end(mode: Any, words: str) -> None:
    guard = GuardedLines(mode, name="files")
    guard.client(initialize())
    guard.server(result("open", opened_in()))
    assert guard.log == ["assay: files speaks MCP 2025-11-25"]
    guard.open(tool("bad", outputSchema={"type": "object", "properties": {"hits": {"type": "integer"}}}))
    for ident in (2, 3):
        guard.client(call(ident, "bad"))
        guard.server(result(ident, {"content": [], "structuredContent": {"hits": "3"}}))
    assert (
        f"assay: {words}: server result of tools/call bad #2: "
        '`hits` must be an integer, not "3", at /result/structuredContent/hits [contract/output]'
    ) in guard.log
    summary = list(guard.watch.summary())
    assert summary[0].startswith("assay: [files] 6 messages from the client, ")
    assert (" blocked" in summary[0]) is (mode == "enforce")
    assert "assay:      2 × contract/output in bad: reported once per conversation, 1 more like it" in summary


def test_the_revision_of_a_probe_that_the_server_refuses_is_not_shown() -> None:
    guard = GuardedLines("audit", name="files")
    guard.client(request(0, "server/discover", {"_meta": meta()}))
    guard.server({"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "no"}})
    guard.open(revision="2025-06-18")
    assert [line for line in guard.log if "speaks MCP" in line] == ["assay: files speaks MCP 2025-06-18"]


def test_a_flood_of_findings_is_counted_and_not_shown() -> None:
    guard = GuardedLines("audit")
    guard.open()
    guard.client(*(request(number, f"nope/{number}") for number in range(3000)))
    summary = list(guard.watch.summary())
    assert len(guard.log) + len(summary) < 150
    assert "assay: further findings are counted, not shown" in guard.log
    assert any("3,000 findings" in line for line in summary)


def test_a_finding_is_shown_once_for_each_conversation() -> None:
    lines: list[str] = []
    watch = GuardSummary(lines.append, lines.append, enforcing=True)
    judged = Conversation(revision="2026-07-28").hear(SERVER, json.dumps({**NOTE, "jsonrpc": "3"}).encode())
    for each in (watch.another(), watch.another(), watch.another(), watch):
        each.heard(judged, 0.0)
        each.heard(judged, 0.0)
    counts = list(watch.summary())
    assert len(lines) == 2
    assert lines[1].startswith("assay: 3 × again: ")
    count = "assay:      8 × envelope/jsonrpc in notifications/message: reported once per conversation, 4 more like it"
    assert count in counts


def test_only_the_first_answer_counts_for_how_long_a_request_took() -> None:
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    conversation = Conversation(revision="2025-11-25")
    for ident, answered in ((1, (5.0, 9.0)), (2, (0.1, 7.0))):
        watch.passed(conversation.hear(Party.CLIENT, frame_of(request(ident, "ping"))), 0.0)
        for moment in answered:
            watch.heard(conversation.hear(SERVER, frame_of(result(ident, {}))), moment)
    assert [line for line in watch.summary() if "slow" in line] == ["assay: slow: ping took 5.0 s"]


def test_each_change_of_a_repaired_result_is_named() -> None:
    old = {"$schema": "https://json-schema.org/draft-07/schema#", "type": "object"}
    guard = GuardedLines(policy=Policy(repairs=("protocol/*", "contract/unknown-dialect")))
    guard.client(request(1, "tools/list", {"_meta": meta()}))
    tools = [{"name": f"tool{number}", "inputSchema": old, "outputSchema": old} for number in range(4)]
    [answer] = guard.server(result(1, {"tools": [*tools, {"name": 5}]}))
    assert [each["inputSchema"]["$schema"] for each in answer["result"]["tools"]] == [DRAFT_7.uri] * 4
    assert "assay: quarantined 1 tool in tools/list #1: number 5" in guard.log
    assert (
        "assay:     added /result/resultType as complete, added /result/ttlMs as 0, "
        "added /result/cacheScope as private, "
        f"changed /result/tools/0/inputSchema/$schema to {DRAFT_7.uri}, "
        f"changed /result/tools/0/outputSchema/$schema to {DRAFT_7.uri}, and 6 more"
    ) in guard.log
    assert any(line.endswith("0 blocked, 11 repaired") for line in guard.watch.summary())


def test_changes_are_described_briefly_and_a_strange_record_does_no_harm() -> None:
    added = {"op": "add", "path": "/a", "value": 1}
    assert changes([added]) == "added /a as 1"
    assert (
        changes([added, 5, {"op": "move"}, {"op": "remove", "path": "/b"}]) == "added /a as 1, removed /b, and 2 more"
    )
    assert changes([added] * 7, 1) == "added /a as 1, and 6 more"


# ── exit statuses ────────────────────────────────────────────────────────────────────────────────────────────────────

PROGRESS = notification("notifications/progress", {"progressToken": "x", "progress": 1})
MASKED = {"content": [{"type": "text", "text": "password=swordfish"}], "isError": "yes"}
ARGUMENTS = {"words": {"type": "string"}, "limit": {"type": "integer"}}
LIMITED = tool("search", inputSchema={"type": "object", "properties": ARGUMENTS})
BAD_TOOL = {"name": "bad", "inputSchema": {"type": 7}}


@rows(
    ("tools", "asked", "answered", "statuses"),
    [
        ((LIMITED,), call(1), [result(1, {"content": []})], (0, 0, 0)),
        ((LIMITED,), call(1), [PROGRESS, result(1, {"content": []})], (4, 0, 0)),
        ((LIMITED,), call(1, limit="five"), [], (4, 4, 0)),
        ((LIMITED,), call(1), [result(1, MASKED)], (4, 4, 0)),
        ((LIMITED, BAD_TOOL), call(1), [], (4, 4, 0)),
    ],
)
@rows("mode", ["audit", "enforce"])
def test_a_guard_fails_on_what_was_found(mode: Any, tools: Any, asked: Any, answered: Any, statuses: Any) -> None:
    """Under audit, where nothing is stopped, what would be refused counts."""
    guard = GuardedLines(mode)
    guard.open(*tools)
    guard.client(asked)
    guard.server(*answered)
    for level, status in zip(("report", "refuse", "never"), statuses, strict=True):
        said: list[str] = []
        assert exit_status(level, guard.watch, 0, said.append) == status, level
        assert [line.startswith(f"assay: --fail-on {level}: ") for line in said] == [True] * (status == 4)


def test_a_crash_of_the_server_has_precedence_and_without_a_message_nothing_was_judged() -> None:
    guard = GuardedLines()
    said: list[str] = []
    assert exit_status("refuse", guard.watch, 0, said.append) == 2
    assert said == ["assay: nothing was judged: no message came through the guard"]
    guard.client(b"no message")
    assert exit_status("refuse", guard.watch, 3, said.append) == 3
    assert exit_status("refuse", guard.watch, 0, said.append) == 4
    assert said[1:] == ["assay: --fail-on refuse: 1 message refused or quarantined"]


# ── the last messages of a session that broke ────────────────────────────────────────────────────────────────────────

ENDED = End("it exited with status 1", ["password=swordfish was refused", "oh no"])


def flight_of(directory: Path, guard: GuardedLines) -> Path:
    """What is written when the server has ended."""
    guard.client(call("end"))
    guard.lost()
    path = guard.watch.flight(str(directory), (), ENDED)
    assert path is not None
    return Path(path)


def test_the_last_messages_can_be_checked_and_have_no_secrets(tmp_path: Path) -> None:
    """For the owner only; and with nothing wrong in it but what was."""
    guard = GuardedLines()
    guard.open(tool("search"))
    guard.client(call(1, password="swordfish", words="Bearer abcdefghijklmnop"))  # noqa: S106 - made up
    guard.server(result(1, MASKED))
    guard.client(b"\xff\xfe", call(2, words="x" * 2 * KEPT_BYTES))
    guard.server(result(2, MASKED))
    flight = flight_of(tmp_path, guard)
    assert stat.S_IMODE(flight.stat().st_mode) == 0o600
    text = flight.read_text()
    assert not any(secret in text for secret in ("swordfish", "abcdefghijklmnop"))
    rows_ = [json.loads(line) for line in text.splitlines()]
    assert [row["dir"] for row in rows_][:3] == ["c2s", "s2c", "c2s"]
    assert [row["base64"] for row in rows_ if "base64" in row] == ["//4="]
    assert [len(row["msg"]) for row in rows_ if row.get("cut")] == [KEPT_BYTES + 1]
    assert (rows_[-1]["event"], rows_[-1]["why"], rows_[-1]["stderr"][-1]) == ("end", ENDED.why, "oh no")
    checked = assay_text("check", str(flight), COLUMNS="120", NO_COLOR="1")
    assert checked.returncode == 1
    assert "never answered: tools/call" in checked.stdout
    assert "found none: the server exited with status 1" in checked.stdout
    found = assay_text("check", "--format", "ndjson", str(flight)).stdout.splitlines()
    broken = [each for each in map(json.loads, found) if each["violations"][0]["rule"] == "protocol/result"]
    assert [each.get("lacks") for each in broken] == ["secrets were redacted", "the request is not in the recording"]


def test_a_long_session_is_cut_where_it_can_still_be_judged(tmp_path: Path) -> None:
    """With the handshake, however long ago it was, and without answers whose requests are gone."""
    guard = GuardedLines()
    guard.open(tool("search"))
    for ident in range(2 * KEPT):
        guard.client(call(ident))
        guard.server(result(ident, {"content": []}))
    flight = flight_of(tmp_path, guard)
    lines = flight.read_text().splitlines()
    assert KEPT <= len(lines) <= KEPT + 3
    assert "initialize" in lines[0]
    checked = assay_text("check", str(flight), COLUMNS="120", NO_COLOR="1").stdout
    # The list of tools, if there was one, is not kept.
    assert {line.split()[-1] for line in checked.splitlines() if " × " in line} == {
        "protocol/unanswered", "contract/not-judged",
    }  # fmt: skip


def test_old_files_are_removed_and_those_of_others_stay(tmp_path: Path) -> None:
    for number in range(FLIGHTS + 5):
        (tmp_path / f"flight-2020{number:04}.jsonl").touch()
    (tmp_path / "mine.jsonl").touch()
    guard = GuardedLines()
    guard.open()
    flight_of(tmp_path, guard)
    assert len(list(tmp_path.glob("flight-*.jsonl"))) == FLIGHTS
    assert (tmp_path / "mine.jsonl").exists()


def test_a_place_that_cannot_be_written_is_a_line_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    guard = GuardedLines()
    guard.open()
    assert guard.watch.flight(str(tmp_path / "file"), (), ENDED) is None
    assert guard.log[-1].startswith("assay: no flight recorder: ")

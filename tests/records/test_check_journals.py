"""`assay check` on journals: the findings are those of the run, and what a journal lacks is said."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from assay.base.verdict import Party
from assay.cli.main import main
from assay.core.conversation import Conversation, Facts
from assay.core.policy import Policy
from assay.records.journal.record import PAYLOAD_BYTES
from assay.records.journal.writer import Journal
from kit.places import TESTS
from kit.rows import rows
from kit.talk import call, frame_of, request, result

GOLDEN = TESTS / "data" / "golden.jsonl"
SEARCH = {"name": "search", "inputSchema": {"type": "object", "required": ["words"]}}
LISTING: list[tuple[Party, Any]] = [
    (Party.CLIENT, request(1, "tools/list")),
    (Party.SERVER, result(1, {"tools": [SEARCH]})),
    (Party.CLIENT, call(2, "search", {})),
    (Party.SERVER, result(2, {"content": []})),
]


def journalled(directory: Path, said: list[tuple[Party, Any]], *, payloads: bool = True, **more: Any) -> Journal:
    """A journal of what is *said* in a conversation over HTTP that was opened before."""
    terms = {"mode": "audit", "revision": "2025-11-25", **more.pop("terms", {})}
    journal = Journal.open(directory, payloads=payloads, mode=str(terms["mode"]), **more)
    assert journal is not None
    conversation = Conversation(**terms)
    for party, message in said:
        verdict = conversation.hear(party, frame_of(message), Facts("http"))
        moment = journal.moment("http", "/mcp", verdict.method, verdict.frame, session="a")
        journal.write(journal.line(verdict, moment, 0))
    journal.close()
    return journal


def rules(out: str) -> list[str]:
    """The rules that a report in JSON names."""
    return [each["rule"] for line in out.splitlines() for each in json.loads(line)["violations"]]


def test_a_journal_is_judged_and_what_was_redacted_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--format", "ndjson", str(GOLDEN)]) == 1
    out, errors = capsys.readouterr()
    listed = [json.loads(line)["error"] or {} for line in GOLDEN.read_bytes().splitlines()]
    assert rules(out) == [each["rule"] for error in listed for each in error.get("violations", ())]
    assert errors == f"assay check: {GOLDEN}: 2 messages with the guard's own verdict: secrets were redacted\n"


def test_each_session_of_a_journal_is_a_conversation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = Journal.open(tmp_path, payloads=True, mode="audit")
    assert journal is not None
    talks = {name: Conversation(mode="audit", revision="2025-11-25") for name in "ab"}
    for party, message in LISTING:
        for name, conversation in talks.items():
            verdict = conversation.hear(party, frame_of(message), Facts("http"))
            moment = journal.moment("http", "/mcp", verdict.method, verdict.frame, session=name)
            journal.write(journal.line(verdict, moment, 0))
    journal.close()
    assert main(["check", "--all", str(tmp_path)]) == 1
    found = [line for line in capsys.readouterr().out.splitlines() if " tools/call search #2" in line]
    assert [line.rpartition("(")[2] for line in found] == ["conversation 1)", "conversation 2)"]


@rows("mode", ["audit", "enforce"])
def test_the_policy_that_was_in_force_is_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    terms = {"mode": mode, "policy": Policy({"contract/input": "pass"})}
    journalled(tmp_path, LISTING, terms=terms)
    assert main(["check", "--fail-on", "refuse", str(tmp_path)]) == 0
    assert "4 messages of MCP 2025-11-25: 3 ok, 1 reported" in capsys.readouterr().out


def test_a_directory_stands_for_all_files_of_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journalled(tmp_path, LISTING[:1])
    journalled(tmp_path, LISTING * 2, file_bytes=1000)
    assert len(list(tmp_path.glob("*.jsonl"))) > 4
    assert main(["check", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "1 message of MCP 2025-11-25" in out
    assert "8 messages of MCP 2025-11-25" in out


def test_the_rest_of_a_run_is_judged_after_its_first_file_was_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = journalled(tmp_path, LISTING * 2, file_bytes=1000)
    first, *rest = sorted(tmp_path.glob("*.jsonl"), key=lambda each: len(each.name))
    assert (str(first) in journal.path, len(rest) > 2) == (False, True)
    first.unlink()
    main(["check", str(tmp_path)])
    assert capsys.readouterr().out.count("messages of MCP") == 1


def test_a_directory_is_searched_for_recordings_and_journals_below_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = json.dumps({"dir": "c2s", "msg": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}).encode() + b"\n"
    good = row + row.replace(b"c2s", b"s2c").replace(b'"method": "ping"', b'"result": {}')
    (tmp_path / "session.jsonl").write_bytes(good)
    options = ["check", "--revision", "2025-11-25", str(tmp_path)]
    assert main(options) == 0
    journalled(tmp_path, LISTING)
    assert main(options) == 1
    assert "contract/input" in capsys.readouterr().out
    for run in tmp_path.glob("2*.jsonl"):
        run.unlink()
    below = tmp_path / "job" / "1"
    below.mkdir(parents=True)
    (below / "session.jsonl").write_bytes(b'{"dir":"s2c","msg":"broken"}\n')
    assert main(options) == 1
    assert str(below / "session.jsonl") in capsys.readouterr().out


def test_what_is_passed_over_in_a_directory_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, outside = tmp_path / "recordings", tmp_path / "outside"
    journalled(place, LISTING[:2])
    outside.mkdir()
    (place / "link").symlink_to(outside)
    os.mkfifo(place / "pipe.jsonl")
    deep = place.joinpath(*["a"] * 17)
    deep.mkdir(parents=True)
    assert main(["check", str(place)]) == 2
    errors = capsys.readouterr().err
    assert f"assay check: {place / 'link'}: a symbolic link to a directory is not followed\n" in errors
    assert f"assay check: {place / 'pipe.jsonl'}: not a regular file\n" in errors
    assert f"assay check: {deep}: more than 16 levels of directories\n" in errors


def test_a_journal_without_payloads_says_how_to_get_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = journalled(tmp_path, LISTING, payloads=False)
    assert main(["check", journal.path]) == 2
    out, errors = capsys.readouterr()
    remedy = "run the guard with --set journal.payloads=true, or with --record FILE"
    assert errors.splitlines()[-1] == (
        f"assay check: {journal.path}: nothing to judge; the journal has no payloads: {remedy}"
    )
    assert out == ""


def test_a_request_that_was_left_out_does_not_make_its_answer_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = {"_meta": {"a": "x" * PAYLOAD_BYTES}}
    said = [
        (Party.CLIENT, request(1, "ping", long)),
        (Party.SERVER, result(1, {})),
        (Party.CLIENT, request(2, "ping")),
        (Party.SERVER, result(2, long)),
        (Party.CLIENT, request(3, "ping")),
        (Party.SERVER, result(3, {})),
    ]
    journal = journalled(tmp_path, said)
    assert main(["check", journal.path]) == 0
    out, errors = capsys.readouterr()
    assert "6 messages of MCP 2025-11-25: 6 ok" in out
    assert "2 messages with the guard's own verdict: too large to record" in errors
    assert main(["replay", journal.path]) == 0
    assert "6 records: 3 the same; not replayable: 2 without payloads, 1 not judged" in capsys.readouterr().out


def test_requests_without_a_session_share_the_tools_of_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from assay.base.limits import DEFAULT
    from assay.contracts.tool_contracts import Tools

    journal = Journal.open(tmp_path, payloads=True, mode="audit")
    assert journal is not None
    tools = Tools(DEFAULT.tools)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    listed = {"tools": [SEARCH], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    calling = request(1, "tools/call", {"name": "search", "arguments": {}, "_meta": meta})
    for route, asked, answered in (
        ("/a/mcp", request(1, "tools/list", {"_meta": meta}), result(1, listed)),
        ("/a/mcp", calling, None),
        ("/b/mcp", calling, None),
    ):
        tools = tools if route == "/a/mcp" else Tools(DEFAULT.tools)
        conversation = Conversation(mode="audit", revision="2026-07-28", tools=tools)
        verdict = conversation.hear(Party.CLIENT, frame_of(asked), Facts("http", "2026-07-28"))
        moment = journal.moment("http", route, verdict.method, verdict.frame)
        journal.write(journal.line(verdict, moment, 0))
        if answered is not None:
            journal.write(journal.line(conversation.hear(Party.SERVER, frame_of(answered)), moment, 0))
    journal.close()
    main(["check", "--format", "ndjson", journal.path])
    # The other server has listed nothing.
    assert rules(capsys.readouterr().out) == ["contract/input", "contract/not-judged"]
    assert main(["replay", journal.path]) == 0
    assert capsys.readouterr().out == "4 records: 4 the same\n"


def test_replay_sends_a_recording_to_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "session.jsonl").write_bytes(b'{"dir":"c2s","msg":"x"}\n')
    assert main(["replay", str(tmp_path / "session.jsonl")]) == 2
    assert capsys.readouterr().err.endswith(
        "a recording, not a journal: it has no verdicts to compare; assay check judges it\n"
    )


def test_an_empty_directory_has_no_recordings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{tmp_path}/"]) == 2
    assert capsys.readouterr().err == f"assay check: no recordings (*.jsonl) in {tmp_path}/\n"


def test_a_journal_has_the_revision_of_its_handshake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The client asks for another revision than the server answers with."""
    info = {"name": "a", "version": "1"}
    opening = {"capabilities": {}, "clientInfo": info, "protocolVersion": "2025-11-25"}
    answer = {"capabilities": {}, "serverInfo": info, "protocolVersion": "2025-06-18"}
    said = [(Party.CLIENT, request(1, "initialize", opening)), (Party.SERVER, result(1, answer))]
    journalled(tmp_path, said, terms={"revision": None})
    main(["check", str(tmp_path)])
    assert "2 messages of MCP 2025-06-18" in capsys.readouterr().out


BROKEN = result(2, {"content": [{"type": "text", "text": "password=abc"}], "isError": "yes"})


def test_findings_in_redacted_messages_of_a_journal_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = journalled(
        tmp_path, [*LISTING[:2], (Party.CLIENT, call(2, "search", {"words": 1})), (Party.SERVER, BROKEN)]
    )
    assert main(["check", "--fail-on", "refuse", journal.path]) == 1
    out, errors = capsys.readouterr()
    assert "result of tools/call search #2  (as the guard judged it: secrets were redacted)" in out
    assert "/result/isError: expected" in out
    assert 'found the string "yes"' in out
    assert "1 message with the guard's own verdict: secrets were redacted" in errors


@rows("redacted", [False, True])
def test_a_journal_of_an_earlier_version_with_a_preview_of_drafts_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], redacted: bool
) -> None:
    journal = journalled(tmp_path / "now", LISTING[:2])
    lines = [json.loads(line) for line in Path(journal.path).read_text().splitlines()]
    found = {"rule": "draft/tag", "at": "/result/tag", "action": "report"}
    lines[-1] |= {"status": "reported", "error": {"violations": [found]}}
    for each in lines:
        each["metadata"] |= {"preview": True, "redacted": redacted}
    old = tmp_path / "old.jsonl"
    old.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert main(["check", str(old)]) == 0
    if not redacted:
        assert main(["replay", str(old)]) == 0
    assert "draft/" not in capsys.readouterr().out


def test_todays_policy_decides_about_recorded_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = journalled(
        tmp_path, [*LISTING[:2], (Party.CLIENT, call(2, "search", {"words": 1})), (Party.SERVER, BROKEN)]
    )
    config = tmp_path / "assay.toml"
    config.write_text('[guard.policy]\n"protocol/result" = "pass"\n')
    assert main(["check", "--policy", "--config", str(config), "--fail-on", "refuse", journal.path]) == 0
    assert "1 reported" in capsys.readouterr().out


def test_a_message_that_was_not_judged_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = journalled(tmp_path, LISTING[:2])
    with open(journal.path, "ab") as file:
        file.write(b'{"ts": broken}\n')
    assert main(["check", journal.path]) == 2
    assert "1 message not judged: not a journal record" in capsys.readouterr().err
    assert main(["check", "--fail-on", "refuse", journal.path]) == 2


def test_a_recording_of_an_earlier_version_with_a_preview_of_drafts_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"rule": "draft/tag", "at": "/result/tag", "action": "report"}
    rows: list[dict[str, Any]] = [
        {"event": "open", "conversation": 1, "mode": "audit", "revision": "2025-11-25", "preview": True},
        {"dir": "c2s", "conversation": 1, "msg": json.dumps(request(1, "tools/list"))},
        {"dir": "s2c", "conversation": 1, "redacted": True, "findings": [found], "msg": json.dumps(LISTING[1][1])},
    ]
    old = tmp_path / "old.jsonl"
    old.write_text("".join(json.dumps(each) + "\n" for each in rows))
    assert main(["check", str(old)]) == 0
    assert "2 ok" in capsys.readouterr().out

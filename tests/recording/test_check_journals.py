"""`assay check` on journals: the findings are those of the run, and what a journal lacks is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import main
from assay.conversation import Conversation, Facts
from assay.journal import Journal
from assay.journal.record import PAYLOAD_BYTES
from assay.policy import Policy
from assay.verdict import Party
from talk import call, frame_of, request, result

GOLDEN = Path(__file__).parents[1] / "journal" / "golden.jsonl"
SEARCH = {"name": "search", "inputSchema": {"type": "object", "required": ["words"]}}
LISTING: list[tuple[Party, Any]] = [
    (Party.CLIENT, request(1, "tools/list")),
    (Party.SERVER, result(1, {"tools": [SEARCH]})),
    (Party.CLIENT, call(2, "search", {})),
    (Party.SERVER, result(2, {"content": []})),
]


def journalled(directory: Path, said: list[tuple[Party, Any]], *, payloads: bool = True, **more: Any) -> Journal:
    """A journal of what is *said* in a conversation over HTTP that was opened elsewhere."""
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
    assert main(["check", "--format", "json", str(GOLDEN)]) == 1
    out, errors = capsys.readouterr()
    listed = [json.loads(line)["error"] or {} for line in GOLDEN.read_bytes().splitlines()]
    assert rules(out) == [each["rule"] for error in listed for each in error.get("violations", ())]
    assert errors == f"assay check: {GOLDEN}: 2 messages not judged: secrets were redacted\n"


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_the_policy_that_was_in_force_is_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    terms = {"mode": mode, "policy": Policy({"contract/input": "pass"})}
    journalled(tmp_path, LISTING, terms=terms)
    assert main(["check", "--fail-on", "refuse", str(tmp_path)]) == 0
    assert "4 messages of MCP 2025-11-25: 3 good, 1 with reports" in capsys.readouterr().out


def test_a_directory_stands_for_all_files_of_its_newest_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journalled(tmp_path, LISTING[:1])
    journalled(tmp_path, LISTING * 2, file_bytes=1000)
    assert len(list(tmp_path.glob("*.jsonl"))) > 4
    assert main(["check", str(tmp_path)]) == 1
    assert "8 messages of MCP 2025-11-25" in capsys.readouterr().out


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
    assert "3 messages of MCP 2025-11-25: 3 good" in out
    assert "2 messages not judged: no payload in the journal" in errors
    assert main(["replay", journal.path]) == 0
    assert "6 records: 3 the same; not replayable: 2 without payloads, 1 not judged" in capsys.readouterr().out


def test_requests_without_a_session_share_the_tools_of_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from assay.contracts.tools import Tools
    from assay.limits import DEFAULT

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
    main(["check", "--format", "json", journal.path])
    assert rules(capsys.readouterr().out) == ["contract/input"]


def test_replay_sends_a_recording_to_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "session.jsonl").write_bytes(b'{"dir":"c2s","msg":"x"}\n')
    assert main(["replay", str(tmp_path / "session.jsonl")]) == 2
    assert capsys.readouterr().err.endswith("a recording, not a journal; use assay check\n")


def test_a_line_that_is_not_a_record_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(GOLDEN.read_bytes() + b'{"ts": broken\n')
    main(["check", "--fail-on", "never", str(file)])
    assert "1 message not judged: not a journal record\n" in capsys.readouterr().err


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

"""`assay check` on journals: the findings are those of the run, and what a journal lacks is said."""

import json
import os
from pathlib import Path
from typing import Any

from assay.judge.conversation import Conversation, Facts
from assay.model.limits import DEFAULT
from assay.model.verdict import Party
from assay.records.journal import Journal
from assay.records.record import PAYLOAD_BYTES
from assay.rules.policy import Policy
from assay.schema.tool_contracts import Tools
from kit.command import assay_text
from kit.places import GOLDEN
from kit.records import FINDING, open_journal, write_verdict
from kit.rows import rows
from kit.stateless_talk import COMPLETE, HINTS, asks
from kit.talk import call, frame_of, request, result

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
    journal = open_journal(directory, payloads=payloads, mode=str(terms["mode"]), **more)
    conversation = Conversation(**terms)
    for party, message in said:
        verdict = conversation.hear(party, frame_of(message), Facts("http"))
        write_verdict(journal, verdict, "http", "/mcp", session="a")
    journal.close()
    return journal


def check(*arguments: str | Path) -> tuple[int, str, str]:
    """The exit status of a check, and what it prints."""
    done = assay_text("check", *map(str, arguments))
    return done.returncode, done.stdout, done.stderr


def rules(out: str) -> list[str]:
    """The rules that a report in JSON names."""
    return [each["rule"] for line in out.splitlines() for each in json.loads(line)["violations"]]


def test_a_journal_is_judged_and_what_was_redacted_is_counted() -> None:
    status, out, errors = check("--format", "ndjson", GOLDEN)
    assert status == 1
    listed = [json.loads(line)["error"] or {} for line in GOLDEN.read_bytes().splitlines()]
    assert rules(out) == [each["rule"] for error in listed for each in error.get("violations", ())]
    assert errors == f"assay check: {GOLDEN}: 2 messages with the guard's own verdict: secrets were redacted\n"


def test_each_session_of_a_journal_is_a_conversation(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, payloads=True, mode="audit")
    talks = {name: Conversation(mode="audit", revision="2025-11-25") for name in "ab"}
    for party, message in LISTING:
        for name, conversation in talks.items():
            verdict = conversation.hear(party, frame_of(message), Facts("http"))
            write_verdict(journal, verdict, "http", "/mcp", session=name)
    journal.close()
    found = [line for line in check("--all", tmp_path)[1].splitlines() if " tools/call search #2" in line]
    assert [line.rpartition("(")[2] for line in found] == ["conversation 1)", "conversation 2)"]


@rows("mode", ["audit", "enforce"])
def test_the_policy_that_was_in_force_is_followed(tmp_path: Path, mode: str) -> None:
    terms = {"mode": mode, "policy": Policy({"contract/input": "pass"})}
    journalled(tmp_path / mode, LISTING, terms=terms)
    status, out, _ = check("--fail-on", "refuse", tmp_path / mode)
    assert (status, "4 messages of MCP 2025-11-25: 3 ok, 1 reported" in out) == (0, True)


def test_a_directory_stands_for_all_files_of_its_runs(tmp_path: Path) -> None:
    journalled(tmp_path, LISTING[:1])
    journalled(tmp_path, LISTING * 2, file_bytes=1000)
    assert len(list(tmp_path.glob("*.jsonl"))) > 4
    status, out, _ = check(tmp_path)
    assert (status, "1 message of MCP 2025-11-25" in out, "8 messages of MCP 2025-11-25" in out) == (1, True, True)
    # The rest of a run is judged after its first file was removed.
    min(tmp_path.glob("*.0002.jsonl")).with_suffix("").with_suffix(".jsonl").unlink()
    assert check(tmp_path)[1].count(" of MCP ") == 2


def test_a_directory_without_recordings_is_an_error(tmp_path: Path) -> None:
    assert check(f"{tmp_path}/none/")[0] == 2
    (tmp_path / "none").mkdir()
    assert check(f"{tmp_path}/none/")[2] == f"assay check: no recordings (*.jsonl) in {tmp_path}/none/\n"


def test_what_is_passed_over_in_a_directory_is_reported(tmp_path: Path) -> None:
    place, outside = tmp_path / "recordings", tmp_path / "outside"
    journalled(place, LISTING[:2])
    outside.mkdir()
    (place / "link").symlink_to(outside)
    os.mkfifo(place / "pipe.jsonl")
    deep = place.joinpath(*["a"] * 17)
    deep.mkdir(parents=True)
    status, _, errors = check(place)
    assert status == 2
    assert f"assay check: {place / 'link'}: a symbolic link to a directory is not followed\n" in errors
    assert f"assay check: {place / 'pipe.jsonl'}: not a regular file\n" in errors
    assert f"assay check: {deep}: more than 16 levels of directories\n" in errors


def test_a_journal_without_payloads_says_how_to_get_them(tmp_path: Path) -> None:
    journal = journalled(tmp_path, LISTING, payloads=False)
    status, out, errors = check(journal.path)
    remedy = "run the guard with --set journal.payloads=true, or with --record FILE"
    assert errors.splitlines()[-1] == (
        f"assay check: {journal.path}: nothing to judge; the journal has no payloads: {remedy}"
    )
    assert (status, out) == (2, "")


def test_a_request_that_was_left_out_does_not_make_its_answer_wrong(tmp_path: Path) -> None:
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
    status, out, errors = check(journal.path)
    assert (status, "6 messages of MCP 2025-11-25: 6 ok" in out) == (0, True)
    assert "2 messages with the guard's own verdict: too large to record" in errors
    replayed = assay_text("replay", journal.path).stdout
    assert (
        "6 records: 3 the same; not replayable: 2 (too large to record), 1 (the request is not in the recording)"
        in replayed
    )


def test_requests_without_a_session_share_the_tools_of_the_server(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, payloads=True, mode="audit")
    tools = Tools(DEFAULT.tools)
    calling = asks(1, "tools/call", name="search", arguments={})
    for route, asked, answered in (
        ("/a/mcp", asks(1, "tools/list"), result(1, {"tools": [SEARCH], **COMPLETE, **HINTS})),
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
    # The other server has listed nothing.
    assert rules(check("--format", "ndjson", journal.path)[1]) == ["contract/input", "contract/not-judged"]
    assert assay_text("replay", journal.path).stdout == "4 records: 4 the same\n"


def test_a_journal_has_the_revision_of_its_handshake(tmp_path: Path) -> None:
    """The client asks for another revision than the server answers with."""
    info = {"name": "a", "version": "1"}
    opening = {"capabilities": {}, "clientInfo": info, "protocolVersion": "2025-11-25"}
    answer = {"capabilities": {}, "serverInfo": info, "protocolVersion": "2025-06-18"}
    said = [(Party.CLIENT, request(1, "initialize", opening)), (Party.SERVER, result(1, answer))]
    journalled(tmp_path, said, terms={"revision": None})
    assert "2 messages of MCP 2025-06-18" in check(tmp_path)[1]


BROKEN = result(2, {"content": [{"type": "text", "text": "password=abc"}], "isError": "yes"})


def test_findings_in_redacted_messages_of_a_journal_count(tmp_path: Path) -> None:
    journal = journalled(
        tmp_path, [*LISTING[:2], (Party.CLIENT, call(2, "search", {"words": 1})), (Party.SERVER, BROKEN)]
    )
    status, out, errors = check("--fail-on", "refuse", journal.path)
    assert status == 1
    assert "search #2  (conversation 1)  (as the guard judged it: secrets were redacted)" in out
    assert "at /result/isError" in out
    assert 'not "yes"' in out
    assert "1 message with the guard's own verdict: secrets were redacted" in errors
    # Today's policy decides about them.
    config = tmp_path / "assay.toml"
    config.write_text('[guard.policy]\n"protocol/result" = "pass"\n')
    status, out, _ = check("--policy", "--config", config, "--fail-on", "refuse", journal.path)
    assert (status, "1 reported" in out) == (0, True)


def test_a_message_that_was_not_judged_is_no_pass(tmp_path: Path) -> None:
    journal = journalled(tmp_path, LISTING[:2])
    with open(journal.path, "ab") as file:
        file.write(b'{"ts": broken}\n')
    for options in ((), ("--fail-on", "refuse")):
        status, _, errors = check(*options, journal.path)
        assert (status, "1 message not judged: not a journal record" in errors) == (2, True)


@rows("redacted", [False, True])
def test_evidence_of_an_earlier_version_with_a_preview_of_drafts_is_read(tmp_path: Path, redacted: bool) -> None:
    journal = journalled(tmp_path / "now", LISTING[:2])
    lines = [json.loads(line) for line in Path(journal.path).read_text().splitlines()]
    found = {**FINDING, "rule": "draft/tag", "at": "/result/tag", "action": "report"}
    no_error = dict.fromkeys(("code", "jsonrpcCode", "httpStatus", "message"))
    lines[-1] |= {"status": "reported", "error": {**no_error, "violations": [found]}}
    for each in lines:
        each["metadata"] |= {"preview": True, "redacted": redacted}
    recorded = [
        {"event": "open", "conversation": 1, "mode": "audit", "revision": "2025-11-25", "preview": True},
        {"dir": "c2s", "conversation": 1, "msg": json.dumps(LISTING[0][1])},
        {"dir": "s2c", "conversation": 1, "redacted": True, "findings": [found], "msg": json.dumps(LISTING[1][1])},
    ]
    for each in (lines, recorded):
        (tmp_path / "old.jsonl").write_text("".join(json.dumps(line) + "\n" for line in each))
        status, out, _ = check(tmp_path / "old.jsonl")
        assert (status, "2 ok" in out, "draft/" in out) == (0, True, False)


def test_a_journal_from_a_pipe_is_judged_beside_other_files() -> None:
    """As of `assay check a.jsonl <(zcat old.gz)`: what is there only once is read once."""
    reader, writer = os.pipe()
    # Less than a pipe holds.
    os.write(writer, GOLDEN.read_bytes())
    os.close(writer)
    both = assay_text("check", "--fail-on", "never", str(GOLDEN), f"/dev/fd/{reader}")
    os.close(reader)
    twice = assay_text("check", "--fail-on", "never", str(GOLDEN), str(GOLDEN))
    assert (both.returncode, twice.returncode) == (0, 0)
    assert both.stdout.replace(f"/dev/fd/{reader}", "tests/data/golden.jsonl") == twice.stdout

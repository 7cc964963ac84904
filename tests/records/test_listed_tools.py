"""`assay check` judges a call by any list of the same server: before or after it, anywhere in the evidence."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.judge.conversation import Conversation, Facts
from assay.model.verdict import Party
from kit.command import assay_text
from kit.records import open_journal, write_verdict
from kit.rows import rows
from kit.talk import call, frame_of, notification, request, result

Said = tuple[str, Any]
Talks = Sequence[tuple[str, Sequence[Said]]]

NUMBER = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
TEXT = {"type": "object", "properties": {"total": {"type": "string"}}, "required": ["total"]}
CALL: list[Said] = [
    ("c2s", call(1, "total", {})),
    ("s2c", result(1, {"content": [], "structuredContent": {"total": "many"}})),
]
INFO = {"name": "a", "version": "1"}


def opening(revision: str = "2025-11-25") -> list[Said]:
    """A handshake."""
    common = {"protocolVersion": revision}
    return [
        ("c2s", request(0, "initialize", {**common, "capabilities": {}, "clientInfo": INFO})),
        ("s2c", result(0, {**common, "capabilities": {"tools": {}}, "serverInfo": INFO})),
        ("c2s", notification("notifications/initialized")),
    ]


def listing(output: dict[str, Any] = NUMBER) -> list[Said]:
    """A list with the one tool."""
    tool = {"name": "total", "inputSchema": {"type": "object"}, "outputSchema": output}
    return [("c2s", request(2, "tools/list")), ("s2c", result(2, {"tools": [tool]}))]


CALLS, LISTS = [*opening(), *CALL], [*opening(), *listing()]


def recording(path: Path, *talks: tuple[str, Sequence[Said]]) -> str:
    """A recording of conversations one after the other, each with the name of its server."""
    lines: list[dict[str, Any]] = []
    for number, (server, said) in enumerate(talks, 1):
        lines.append({"event": "open", "conversation": number, "server": server})
        for side, message in said:
            lines.append({"dir": side, "conversation": number, "msg": frame_of(message).decode()})
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return str(path)


def found(*options: str, said: bytes = b"") -> tuple[int, list[str]]:
    """The exit status of a check, and the rules of its findings."""
    done = assay_text("check", "--format", "ndjson", *options, said=said)
    return done.returncode, [
        each["rule"] for line in done.stdout.splitlines() for each in json.loads(line)["violations"]
    ]


OUTPUT, NOT_JUDGED = (1, ["contract/output"]), (1, ["contract/not-judged"])


@rows(
    ("talks", "expected"),
    [
        # In the same conversation, after the call; in another one, before or after it; not of another server.
        ([("", [*CALLS, *listing()])], OUTPUT),
        ([("shop", CALLS), ("shop", LISTS)], OUTPUT),
        ([("shop", LISTS), ("shop", CALLS)], OUTPUT),
        ([("shop", LISTS), ("bank", CALLS)], NOT_JUDGED),
        # The next list of the conversation counts before that of an older one: the server was changed in between.
        ([("shop", LISTS), ("shop", [*CALLS, *listing(TEXT)])], (0, [])),
        # The last list before a call counts before earlier and later ones.
        ([("shop", LISTS), ("shop", [*opening(), *listing(TEXT)]), ("shop", CALLS), ("shop", LISTS)], (0, [])),
        # A revision without output schemas.
        ([("", [*opening("2025-03-26"), *CALL, *listing()])], (0, [])),
    ],
)
def test_a_call_is_judged_by_the_list_that_is_next_to_it(
    tmp_path: Path, talks: Talks, expected: tuple[int, list[str]]
) -> None:
    assert found(recording(tmp_path / "a.jsonl", *talks)) == expected


@rows(("server", "expected"), [("shop", OUTPUT), ("", NOT_JUDGED)])
def test_a_list_in_another_file_is_that_of_a_server_with_the_same_name(
    tmp_path: Path, server: str, expected: tuple[int, list[str]]
) -> None:
    one = recording(tmp_path / "a.jsonl", (server, CALLS))
    recording(tmp_path / "b.jsonl", (server, LISTS))
    assert found(one) == NOT_JUDGED
    assert found(str(tmp_path)) == expected


def test_lines_of_a_plain_log_are_judged_by_a_list_after_them_but_not_on_standard_input(tmp_path: Path) -> None:
    """That can be read only once: the call is reported, and does not pass."""
    lines = b"".join(frame_of(message) + b"\n" for _, message in [*CALLS, *listing()])
    (tmp_path / "a.log").write_bytes(lines)
    assert found("--from", "messages", str(tmp_path / "a.log")) == OUTPUT
    assert found("--from", "messages", "-", said=lines) == NOT_JUDGED


def test_a_journal_is_judged_by_a_list_after_the_call(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, payloads=True, mode="audit")
    for session, said in (("a", CALL), ("b", listing())):
        conversation = Conversation(mode="audit", revision="2025-11-25")
        for side, message in said:
            party = Party.CLIENT if side == "c2s" else Party.SERVER
            verdict = conversation.hear(party, frame_of(message), Facts("http"))
            write_verdict(journal, verdict, "http", "/mcp", session=session)
    journal.close()
    assert found(journal.path) == OUTPUT
    # A comparison shows what the guard saw, which knew no list.
    assert assay_text("check", "--compare", journal.path).returncode == 0


@rows(("level", "status"), [("report", 1), ("refuse", 2), ("never", 0)])
def test_a_call_that_no_list_judges_is_counted(tmp_path: Path, level: str, status: int) -> None:
    done = assay_text("check", "--fail-on", level, recording(tmp_path / "a.jsonl", ("", CALLS)))
    assert (done.returncode, "1 × contract/not-judged" in done.stdout) == (status, True)
    assert "1 call not judged by a contract: no list of tools has the tool" in done.stderr

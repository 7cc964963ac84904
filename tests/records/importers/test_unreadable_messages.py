"""A message of a log that cannot be read is a finding at its line, by its sender; the rest is judged as ever."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from renderings import START, claude_all, claude_server, frame, inspector, iso, lines, vscode
from test_importers import Checked, check, file
from test_other_files import QUIET

from kit.rows import rows

__all__ = ["file"]

PROSE = b"library server: 1 tool loaded"
BROKEN = b'{"jsonrpc":"2.0","id":7 "result":{}}'
HALF = rb'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"\ud83d"}}'
"""Half of a surrogate pair, which programs in JavaScript read and write."""


def in_vscode(message: bytes) -> bytes:
    """A line of the output of VS Code."""
    return b"2026-07-24 02:03:15.000 [debug] [server -> editor] " + message + b"\n"


def in_claude_server(message: bytes) -> bytes:
    """A line of the log of one server of Claude Desktop."""
    head = f"{iso(START)} [library] [info] Message from server: ".encode()
    return head + message + b" { metadata: undefined }\n"


def in_claude_all(message: bytes) -> bytes:
    """A line of the log of all servers of Claude Desktop."""
    return f"{iso(START)} [info] [library] Message from server: ".encode() + message + b"\n"


LOGS: dict[str, tuple[Callable[..., bytes], Callable[[bytes], bytes]]] = {
    "vscode": (vscode, in_vscode),
    "claude-server": (claude_server, in_claude_server),
    "claude-all": (claude_all, in_claude_all),
}


def placed(checked: Checked) -> list[tuple[int, str, str]]:
    """The findings: the line, the party and the rule."""
    return [(each["line"], each["party"], it["rule"]) for each in checked.records for it in each["violations"]]


@rows("message", [PROSE, BROKEN, HALF])
@rows("name", LOGS)
def test_a_message_of_a_log_that_is_not_json_is_found(
    file: Path, capsys: pytest.CaptureFixture[str], name: str, message: bytes
) -> None:
    write, logged = LOGS[name]
    log = write(QUIET)
    file.write_bytes(log + logged(message) + b"a line of the program\n")
    checked = check(capsys, file)
    rule = "syntax/surrogate" if message == HALF else "syntax/json"
    assert placed(checked) == [(log.count(b"\n") + 1, "server", rule)]
    assert checked.status == 1
    assert "not judged" not in checked.errors


def test_the_rest_of_a_log_is_judged_with_its_requests(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer behind the prose still belongs to its request."""
    asked, answer = frame(id=9, method="ping"), frame(id=9, result=None)
    sent = in_vscode(asked).replace(b"[server -> editor]", b"[editor -> server]")
    log = vscode(QUIET)
    file.write_bytes(log + sent + in_vscode(PROSE) + in_vscode(answer))
    first = log.count(b"\n") + 1
    assert placed(check(capsys, file)) == [
        (first + 1, "server", "syntax/json"),
        (first + 2, "server", "envelope/result"),
    ]


def test_a_last_line_of_vscode_that_is_cut_off_is_not_judged(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(vscode(QUIET) + in_vscode(frame(method="notifications/message"))[:-9])
    checked = check(capsys, file)
    assert (checked.faults, checked.status) == ([], 2)
    assert "1 message not judged: cut by the log" in checked.errors


# ── documents ────────────────────────────────────────────────────────────────────────────────────────────────────────


def entry(message: bytes, **more: str) -> bytes:
    """An entry of an export of MCP Inspector, on one line."""
    members = {"timestamp": iso(START.replace(minute=59)), "direction": "notification", "origin": "server", **more}
    return json.dumps(members).encode()[:-1] + b', "message": ' + message + b"}"


@rows(
    ("message", "rule"),
    [
        (json.dumps(PROSE.decode()).encode(), "syntax/json"),
        (PROSE.replace(b":", b""), "syntax/json"),
        (HALF, "syntax/surrogate"),
        (b'{"jsonrpc":"2.0","method":"notifications/message","params":1e999}', "syntax/number"),
    ],
)
@rows("is_cut", [False, True])
def test_a_message_of_mcp_inspector_that_is_not_json_is_found(
    file: Path, capsys: pytest.CaptureFixture[str], message: bytes, rule: str, is_cut: bool
) -> None:
    export = inspector(QUIET).rstrip(b"\n]")
    file.write_bytes(export + b",\n" + entry(message) + b"\n]\n")
    with pytest.MonkeyPatch.context() as patch:
        if is_cut:
            patch.setattr("assay.records.importers.json_documents.MOST_WHOLE", 0)
        checked = check(capsys, file)
    assert placed(checked) == [(export.count(b"\n") + 2, "server", rule)]
    assert checked.status == 1


def test_the_text_of_a_message_of_mcp_inspector_is_judged(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"direction": "request", "origin": "client"}
    texts = [frame(id=1, method="ping"), frame(id=1, result=None)]
    one, other = (json.dumps(each.decode()).encode() for each in texts)
    file.write_bytes(b"[" + entry(one, **asked)[:-1] + b', "response": ' + other + b"}]")
    checked = check(capsys, file, "--revision", "2025-11-25")
    assert checked.faults == [("server", "envelope/result", "/result")]


# ── any other program ────────────────────────────────────────────────────────────────────────────────────────────────

OPTIONS = ("--map", "dir=way,msg=log.body,c2s=in", "--revision", "2025-11-25")


def test_a_mapped_message_is_the_same_as_text_and_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON is judged to the byte, as text is: a key may be there twice."""
    answer = b'{"jsonrpc": "2.0", "id": 1, "result": {}, "result": {}}'
    asked = lines({"way": "in", "log": {"body": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}})
    for body in (answer, json.dumps(answer.decode()).encode()):
        file.write_bytes(asked + b'{"way": "out", "log": {"body": ' + body + b"}}\n")
        assert placed(check(capsys, file, *OPTIONS))[0] == (2, "server", "syntax/duplicate-key")


@rows(("body", "rule"), [(b'"oops"', "syntax/json"), (b"oops", "syntax/json"), (HALF, "syntax/surrogate")])
def test_a_mapped_message_that_is_not_json_is_found(
    file: Path, capsys: pytest.CaptureFixture[str], body: bytes, rule: str
) -> None:
    fine = lines({"way": "in", "log": {"body": {"jsonrpc": "2.0", "method": "notifications/initialized"}}})
    file.write_bytes(b"starting\n" + fine + b'{"way": "out", "log": {"body": ' + body + b"}}\n[1]\n" + fine)
    checked = check(capsys, file, *OPTIONS)
    assert (placed(checked), checked.status) == ([(3, "server", rule)], 1)


def test_a_mapped_line_without_a_readable_message_is_counted(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fine = lines({"way": "in", "log": {"body": {"jsonrpc": "2.0", "method": "notifications/initialized"}}})
    file.write_bytes(fine + b'{"way": "out", "log": {"bo\n' + fine)
    checked = check(capsys, file, *OPTIONS, "--messages")
    assert (checked.faults, checked.status, len(checked.records)) == ([], 2, 2)
    assert "1 message not judged: the line is not JSON" in checked.errors

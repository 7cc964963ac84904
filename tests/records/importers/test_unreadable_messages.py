"""A message of a log that cannot be read is a finding at its line, by its sender; the rest is judged as ever."""

import json
from collections.abc import Callable
from pathlib import Path

from renderings import (
    QUIET,
    START,
    Checked,
    check,
    claude_all,
    claude_server,
    file,
    frame,
    inspector,
    iso,
    judged,
    lines,
    vscode,
)

from kit.rows import rows

__all__ = ["file"]

PROSE = b"library server: 1 tool loaded"
BROKEN = b'{"jsonrpc":"2.0","id":7 "result":{}}'
HALF = rb'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"\ud83d"}}'
"""Half of a surrogate pair, which programs in JavaScript read and write."""


LOGS: dict[str, tuple[Callable[..., bytes], bytes]] = {
    "vscode": (vscode, b"2026-07-24 02:03:15.000 [debug] [server -> editor] %b\n"),
    "claude-server": (
        claude_server,
        iso(START).encode() + b" [library] [info] Message from server: %b { metadata: undefined }\n",
    ),
    "claude-all": (claude_all, iso(START).encode() + b" [info] [library] Message from server: %b\n"),
}
"""How a log is written, and a line of it with a message of the server."""


def placed(checked: Checked) -> list[tuple[int, str, str]]:
    """The findings: the line, the party and the rule."""
    return [(each["line"], each["party"], it["rule"]) for each in checked.records for it in each["violations"]]


@rows("message", [PROSE, BROKEN, HALF])
@rows("name", LOGS)
def test_a_message_of_a_log_that_is_not_json_is_found(file: Path, name: str, message: bytes) -> None:
    write, line = LOGS[name]
    log = write(QUIET)
    checked = judged(file, log + line % message + b"a line of the program\n")
    rule = "syntax/surrogate" if message == HALF else "syntax/json"
    assert placed(checked) == [(log.count(b"\n") + 1, "server", rule)]
    assert checked.status == 1
    assert "not judged" not in checked.errors


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
def test_a_message_of_mcp_inspector_that_is_not_json_is_found(file: Path, message: bytes, rule: str) -> None:
    export = inspector(QUIET).rstrip(b"\n]")
    file.write_bytes(export + b",\n" + entry(message) + b"\n]\n")
    checked = check(file)
    assert placed(checked) == [(export.count(b"\n") + 2, "server", rule)]
    assert checked.status == 1


def test_the_text_of_a_message_of_mcp_inspector_is_judged(file: Path) -> None:
    asked = {"direction": "request", "origin": "client"}
    texts = [frame(id=1, method="ping"), frame(id=1, result=None)]
    one, other = (json.dumps(each.decode()).encode() for each in texts)
    checked = judged(
        file, b"[" + entry(one, **asked)[:-1] + b', "response": ' + other + b"}]", "--revision", "2025-11-25"
    )
    assert checked.faults == [("server", "envelope/result", "/result")]


# ── any other program ────────────────────────────────────────────────────────────────────────────────────────────────

OPTIONS = ("--map", "dir=way,msg=log.body,c2s=in", "--revision", "2025-11-25")


def test_a_mapped_message_is_the_same_as_text_and_as_json(file: Path) -> None:
    """JSON is judged to the byte, as text is: a key may be there twice."""
    answer = b'{"jsonrpc": "2.0", "id": 1, "result": {}, "result": {}}'
    asked = lines({"way": "in", "log": {"body": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}})
    for body in (answer, json.dumps(answer.decode()).encode()):
        file.write_bytes(asked + b'{"way": "out", "log": {"body": ' + body + b"}}\n")
        assert placed(check(file, *OPTIONS))[0] == (2, "server", "syntax/duplicate-key")


@rows(
    ("line", "found", "status"),
    [
        (b'{"way": "out", "log": {"body": "oops"}}\n', ["syntax/json"], 1),
        (b'{"way": "out", "log": {"body": oops}}\n', ["syntax/json"], 1),
        (b'{"way": "out", "log": {"body": ' + HALF + b"}}\n", ["syntax/surrogate"], 1),
        (b'{"way": "out", "log": {"bo\n', [], 2),
    ],
)
def test_a_mapped_message_that_is_not_json_is_found_or_counted(
    file: Path, line: bytes, found: list[str], status: int
) -> None:
    fine = lines({"way": "in", "log": {"body": {"jsonrpc": "2.0", "method": "notifications/initialized"}}})
    checked = judged(file, b"starting\n" + fine + line + b"[1]\n" + fine, *OPTIONS)
    assert (placed(checked), checked.status) == ([(3, "server", rule) for rule in found], status)
    assert ("1 message not judged: the line is not JSON" in checked.errors) == (not found)

"""What an HTTP archive has beside messages: the headers of requests, other protocols, and entries without a date."""

import json
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from renderings import (
    QUIET,
    START,
    STEPS,
    URL,
    Step,
    archive,
    call,
    entry,
    exchanges,
    file,
    found,
    frame,
    inspector,
    iso,
    judged,
    modern,
    modern_entry,
)

from assay.judge.conversation import Conversation, Facts
from assay.model.verdict import Party
from kit.rows import rows

__all__ = ["file"]

# ── headers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

REGION = {"type": "string", "x-mcp-header": "Region"}
TOOL = {"name": "find_books", "inputSchema": {"type": "object", "properties": {"region": REGION}}}
LISTED = {"tools": [TOOL], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
DONE = {"content": [], "resultType": "complete"}
CALLED = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "find_books"}

HEADERS = [
    ("sea", {"Mcp-Param-Region": "sea"}),
    ("sea", {"Mcp-Param-Region": "land"}),
    ("sea", {"mcp-param-region": ""}),
    ("sea", {}),
    (None, {"Mcp-Param-Region": "sea"}),
    ("ü", {"Mcp-Param-Region": "=?base64?w7w=?="}),
    ("ü", {"Mcp-Param-Region": "ü"}),
    ("☃", {"Mcp-Param-Region": "☃"}),
    ("sea", {"Mcp-Param-Region": "sea", "Mcp-Name": "other"}),
    ("sea", {"Mcp-Param-Region": "sea", "Mcp-Method": "tools/list"}),
    ("sea", {"Mcp-Param-Region": "sea", "MCP-Protocol-Version": "2025-11-25"}),
    ("sea", {"Mcp-Param-Region": "sea", "MCP-Protocol-Version": "2030-01-01"}),
]
"""The value of an argument, and headers of its call."""


def live(step: Step, headers: dict[str, str]) -> list[tuple[str, str, str]]:
    """What the same call breaks in a conversation over HTTP: rule, expected and found."""
    judge = Conversation(mode="audit", revision="2026-07-28")
    asked = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
    judge.hear(Party.CLIENT, modern(1, "tools/list").client, facts(asked))
    judge.hear(Party.SERVER, frame(id=1, result=LISTED), Facts("http"))
    heard = judge.hear(Party.CLIENT, step.client, facts(headers))
    return [(each.rule, each.expected, each.found) for each in heard.violations]


def facts(headers: dict[str, str]) -> Facts:
    """What an HTTP server knows of a request. Headers beyond Latin-1 are UTF-8 on the wire."""
    sent = {name.lower().encode(): value.encode() for name, value in headers.items()}
    return Facts("http", headers.get("MCP-Protocol-Version"), sent)


@rows(("region", "headers"), HEADERS)
def test_the_headers_of_an_archive_give_the_findings_of_a_live_request(
    file: Path, region: str | None, headers: dict[str, str]
) -> None:
    step = modern(2, "tools/call", name="find_books", arguments={} if region is None else {"region": region})
    asked = modern_entry(modern(1, "tools/list"), {"Mcp-Method": "tools/list"}, frame(id=1, result=LISTED), 0)
    called = modern_entry(step, {**CALLED, **headers}, frame(id=2, result=DONE), 1)
    checked = judged(file, archive([asked, called]))
    shown = [(it["rule"], it["expected"], it["found"]) for each in checked.records for it in each["violations"]]
    # A recorder may show the byte of a letter as Latin-1 or as UTF-8.
    most = 2 if region == "ü" else 3
    assert [each[:most] for each in shown] == [each[:most] for each in live(step, {**CALLED, **headers})]


def test_a_header_without_a_name_or_a_value_is_no_header_of_mcp(file: Path) -> None:
    entries = [entry(*each) for each in exchanges(QUIET)]
    for each in entries:
        each["request"]["headers"] += [{"name": None, "value": "x"}, {"name": "x", "value": None}, None, {}]
    checked = judged(file, archive(entries))
    assert (checked.faults, checked.status) == ([], 0)


# ── other protocols ──────────────────────────────────────────────────────────────────────────────────────────────────


def rpc(url: str, method: str, params: Any, result: Any, *, version: str | None = "2.0") -> dict[str, Any]:
    """An exchange of another protocol of JSON-RPC."""
    named = {} if version is None else {"jsonrpc": version}
    asked = {**named, "id": 1, "method": method, "params": params}
    _, begun, ended = next(exchanges(STEPS))
    answer = json.dumps({**named, "id": 1, "result": result}).encode()
    made = entry(Step(json.dumps(asked).encode(), (answer,)), begun, ended)
    made["request"] |= {"url": url, "headers": []}
    made["response"]["headers"] = [{"name": "content-type", "value": "application/json"}]
    return made


LSP = {"processId": 12, "rootUri": None, "capabilities": {}, "clientInfo": {"name": "editor"}}
OTHERS = [
    rpc("https://eth.example/v2/key", "eth_call", [{"to": "0x1"}, "latest"], "0x"),
    rpc("https://eth.example/v2/key", "eth_blockNumber", [], "0x2"),
    rpc("http://127.0.0.1:8332/", "getblockcount", [], 7, version="1.0"),
    rpc("http://127.0.0.1:8332/", "ping", [], None, version="1.0"),
    rpc("http://127.0.0.1:1/lsp", "initialize", LSP, {"capabilities": {}}),
    rpc("http://127.0.0.1:1/lsp", "textDocument/hover", {}, None),
    rpc("http://127.0.0.1:2/a2a", "tasks/get", {"id": "t"}, {"status": "done"}),
    rpc("http://127.0.0.1:3/old", "system.listMethods", [], [], version=None),
    rpc("http://127.0.0.1:4/acp", "initialize", {"protocolVersion": 1, "clientCapabilities": {}}, {}),
]


def test_other_protocols_of_json_rpc_are_left_out(file: Path) -> None:
    """The archive has one more entry, of a page."""
    checked = judged(file, archive([*OTHERS, *(entry(*each) for each in exchanges((*QUIET, Step(call(9, "five")))))]))
    assert checked.rules == ["contract/input", "protocol/unanswered"]
    assert f"{file}: {len(OTHERS) + 1} entries of 7 other endpoints left out\n" in checked.errors


def test_an_archive_without_mcp_is_not_a_recording(file: Path) -> None:
    checked = judged(file, archive(OTHERS))
    assert (checked.status, checked.records) == (2, [])
    assert checked.errors == (
        f"assay check: {file}: not a recording: no MCP message or header in {len(OTHERS) + 1} entries; "
        "assay guard --record FILE -- COMMAND records them\n"
    )


EVIDENCE = [
    frame(id=1, method="tools/list"),
    frame(id=1, method="initialize", params={"capabilities": {}}),
    frame(id=1, method="initialize"),
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list",}',
    b"[" + frame(id=1, method="tools/list") + b"]",
    frame(method="notifications/anything", id=1).replace(b"anything", b"initialized"),
]


@rows("asked", EVIDENCE)
def test_one_message_of_mcp_is_enough_for_its_endpoint(file: Path, asked: bytes) -> None:
    """All other messages with that URL are judged as well, also those before it."""
    made = [rpc("http://127.0.0.1:5/rpc", "acme/anything", [], {}), rpc("http://127.0.0.1:5/rpc", "", {}, {})]
    made[1]["request"]["postData"]["text"] = asked.decode()
    checked = judged(file, archive(made), "--revision", "2025-11-25", "--messages")
    assert checked.records[0]["method"] == "acme/anything"
    assert checked.status == 1
    assert "1 entry of 1 other endpoint left out" in checked.errors


@rows("where", ["request", "response", "stream"])
def test_a_header_or_a_method_on_a_stream_is_enough_for_its_endpoint(file: Path, where: str) -> None:
    made = rpc("http://127.0.0.1:5/rpc", "acme/anything" if where == "stream" else "ping", [], None)
    if where == "stream":
        message = frame(method="notifications/message", params={"level": "loud", "data": 1})
        made["response"]["headers"] = [{"name": "content-type", "value": "text/event-stream"}]
        made["response"]["content"]["text"] = f"data: {message.decode()}\n\n"
    else:
        made[where]["headers"].append({"name": "Mcp-Session-Id", "value": "s1"})
    rule = "protocol/params" if where == "stream" else "envelope/result"
    assert rule in judged(file, archive([made]), "--revision", "2025-11-25").rules


# ── dates ────────────────────────────────────────────────────────────────────────────────────────────────────────────

DATES: list[Any] = [None, "yesterday", "2026-99-99T00:00:00Z", {}]
FULL = (*QUIET, Step(call(3, "five"), (found(3, 5),)), Step(frame(id=4, method="ping"), (frame(id=4, result={}),)))


@rows("date", DATES)
@rows("undated", [{0}, {2}, {1, 2}, {4, 5}, {0, 1, 2, 3, 4, 5}])
def test_entries_without_a_date_stay_between_their_neighbours(file: Path, undated: set[int], date: Any) -> None:
    entries = [entry(*each) for each in exchanges(FULL)]
    assert len(entries) == 6
    for number in undated:
        entries[number]["startedDateTime"] = date
        if date is None:
            del entries[number]["startedDateTime"]
    checked = judged(file, archive(entries), "--messages")
    assert checked.rules == ["contract/input"]
    assert len(checked.records) == 11


@rows("undated", [{0}, {2}, {4}, {0, 1, 2, 3, 4}])
def test_the_same_holds_for_mcp_inspector_and_for_a_backward_archive(file: Path, undated: set[int]) -> None:
    entries = json.loads(inspector(FULL[:-1]))
    for number in undated:
        del entries[number]["timestamp"]
    checked = judged(file, json.dumps(entries).encode(), "--messages")
    assert (checked.rules, len(checked.records)) == (["contract/input"], 9)
    backward = [entry(*each) for each in exchanges(FULL)][::-1]
    del backward[2]["startedDateTime"]
    assert judged(file, archive(backward)).rules == ["contract/input"]


@rows("is_backward", [False, True])
def test_a_response_comes_before_a_request_of_the_same_millisecond(file: Path, is_backward: bool) -> None:
    entries = [entry(*each) for each in exchanges(FULL)]
    for one, following in pairwise(entries):
        began = datetime.fromisoformat(one["startedDateTime"])
        one["time"] = (datetime.fromisoformat(following["startedDateTime"]) - began).total_seconds() * 1000
    checked = judged(file, archive(entries[::-1] if is_backward else entries), "--messages")
    assert checked.rules == ["contract/input"]
    assert [each["kind"] for each in checked.records][:5] == ["request", "result", "notification", "request", "result"]


def test_a_client_that_opens_hundreds_of_streams_is_judged_as_ever(file: Path) -> None:
    """The answers are on the first stream; the others have answers to requests that were never sent."""
    steps = (*QUIET, Step(call(3, "five"), (found(3, "5"),)))
    entries = [entry(Step(step.client), begun, ended) for step, begun, ended in exchanges(steps)]
    said = [each for step in steps for each in step.server]
    listening = [stream(said), *(stream([frame(id=f"x{number}", result={})]) for number in range(300))]
    checked = judged(file, archive([*listening, *entries]))
    assert checked.rules[:2] == ["contract/input", "contract/output"]
    assert checked.rules[2:] == ["protocol/unsolicited"] * 300


def stream(said: list[bytes]) -> dict[str, Any]:
    """A stream that a client listens to for a minute."""
    return {
        "startedDateTime": iso(START),
        "time": 60_000,
        "request": {"method": "GET", "url": URL, "headers": [{"name": "mcp-session-id", "value": "s1"}]},
        "response": {
            "status": 200,
            "headers": [{"name": "content-type", "value": "text/event-stream"}],
            "content": {"text": "".join(f"data: {each.decode()}\n\n" for each in said)},
        },
    }

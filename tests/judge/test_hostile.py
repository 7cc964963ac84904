"""
Peers that mean harm: nothing is raised, nothing grows without bound, no one is left without an answer.

Work is bounded by counting, not by the clock: what would take minutes or gigabytes makes these tests fail by
themselves.
"""

from typing import Any

import orjson

from assay.model.limits import Limits
from assay.model.verdict import Party
from kit.rows import rows
from kit.talk import ALL_SERVER, SEARCH, Talk, call, good, request, result, rules

ANY = {"type": "object"}
INFO = {"name": "a", "version": "1"}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def negotiated(capabilities: dict[str, Any]) -> Talk:
    """After the answer to initialize, before the client has said that it is ready."""
    talk = Talk()
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
    good(talk.client(request("i", "initialize", opening)))
    answer = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": INFO}
    good(talk.server(result("i", answer)))
    return talk


@rows(
    "ident", [b"1e-9999999999999999999999", b"1.00000000000000000000000000001", b"1e-400", b"1." + b"0" * 1000, b"0.5"]
)
def test_a_number_that_only_rounds_to_an_integer_is_no_id(ident: bytes) -> None:
    verdict = Talk().opened().client(b'{"jsonrpc":"2.0","id":' + ident + b',"method":"ping"}')
    assert rules(verdict) == ["envelope/id"]
    talk = Talk().opened()
    good(talk.client(request(1, "ping")))
    assert not talk.server(b'{"jsonrpc":"2.0","id":' + ident + b',"result":{}}').accepted


def test_a_result_is_judged_by_the_revision_its_request_was_made_in() -> None:
    talk = negotiated({"tools": {}})
    talk.client(request("l", "tools/list"))
    talk.server(result("l", {"tools": [{"name": "x", "inputSchema": ANY}]}))
    talk.client(call(1, "x", {}))
    talk.client(request(2, "tools/list", {"_meta": META}))
    assert talk.server(result(1, {"content": []})).accepted


def test_initialize_may_name_its_revision_twice() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2025-11-25"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO, "_meta": meta}
    good(Talk().client(request(1, "initialize", opening)))


@rows(
    "broken",
    [
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": "x", "result": {}},
        {"id": 1, "level": "info", "msg": "a log line that happens to be JSON"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
    ],
)
def test_what_a_server_says_by_mistake_is_no_question(broken: dict[str, Any]) -> None:
    """It fails the request whose id it has, and is not answered: the server would not know what to make of it."""
    talk = Talk().opened()
    good(talk.client(request(1, "ping")))
    verdict = talk.server(broken)
    assert verdict.back is None
    assert orjson.loads(verdict.onward or b"{}")["id"] == 1
    assert talk.conversation.open_requests(Party.CLIENT) == ()


def test_the_tools_that_are_remembered_are_bounded_whatever_the_pages_say() -> None:
    talk = Talk(limits=Limits(tools=100)).opened()
    for page in range(10):
        tools = [{"name": f"{page}-{index}", "inputSchema": ANY} for index in range(100)]
        talk.client(request(page, "tools/list"))
        talk.server(result(page, {"tools": tools, "nextCursor": "x"}))
    # What begins a new list is used beside the one before, which stays until the new one is whole.
    assert len(talk.conversation.tools.known) == 200


def test_answers_stay_small_whatever_the_keys_are() -> None:
    schema = {**ANY, "additionalProperties": {"items": {"type": "integer"}}}
    talk = Talk().opened("2025-06-18").listed({"name": "x", "inputSchema": schema})
    verdict = talk.client(call(1, "x", {"k" * 500_000: ["x"] * 50}))
    assert len(verdict.violations) == 20
    assert len(verdict.back or b"") < 100_000


@rows(
    "frame",
    [
        b'{"' + b"k" * 500_000 + b'":1,"' + b"k" * 500_000 + b'":2}',
        orjson.dumps(request(1, "x" * 900_000)),
        orjson.dumps(
            request(1, "tools/list", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "9" * 900_000}})
        ),
    ],
    ids=["repeated-key", "method", "revision"],
)
def test_no_answer_echoes_a_megabyte(frame: bytes) -> None:
    assert len(Talk().client(frame).back or b"") < 10_000


def test_what_an_open_request_keeps_is_small() -> None:
    talk = Talk().opened(client={"experimental": {"acme": {}}})
    talk.client(request(1, "acme/" + "x" * 900_000))
    talk.client(request(2, "tools/call", {"name": "y" * 900_000}))
    kept = talk.conversation.open_requests(Party.CLIENT)
    assert len(kept) == 2
    assert all(len(each.method) <= 100 and len(each.detail or "") <= 100 for each in kept)
    assert all(len(left.onward or b"") < 2000 for left in talk.conversation.end(Party.SERVER))


def test_a_server_that_calls_every_task_the_same_leaks_no_tokens() -> None:
    talk = Talk().opened(server={**ALL_SERVER, "tasks": {"requests": {"tools": {"call": {}}}}})
    task = {"taskId": "t", "status": "working", "createdAt": "now", "lastUpdatedAt": "now", "ttl": None}
    for ident in range(50):
        params = {"name": "x", "task": {}, "_meta": {"progressToken": ident}}
        good(talk.client(request(ident, "tools/call", params)))
        good(talk.server(result(ident, {"task": task})))
    assert len(talk.conversation._parties[Party.CLIENT].tokens) == 1


def test_under_audit_a_refused_message_changes_nothing_that_was_agreed() -> None:
    talk = Talk(mode="audit").opened().listed(SEARCH)
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
    assert not talk.client(request(8, "initialize", opening)).accepted
    talk.server({"jsonrpc": "2.0", "id": 8, "error": {"code": -32600, "message": "again?"}})
    good(talk.client(request(9, "tools/list")))
    talk.server(request(1, "tools/list"))
    talk.client(result(1, {"tools": []}))
    assert list(talk.conversation.tools.known) == ["search"]

"""
Peers that mean harm: nothing is raised, nothing grows without bound, no one is left without an answer.

Work is bounded by counting, not by the clock: what would take minutes or gigabytes makes these tests fail by
themselves.
"""

from typing import Any, Literal

import orjson

from assay.base.limits import Limits
from assay.base.verdict import Party
from assay.core.policy import Policy
from kit.rows import rows
from kit.talk import ALL_SERVER, SEARCH, Talk, call, good, notification, request, result, rules

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


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    "ident", [b"1e-9999999999999999999999", b"1.00000000000000000000000000001", b"1e-400", b"1." + b"0" * 1000, b"0.5"]
)
def test_a_number_that_only_rounds_to_an_integer_is_no_id(ident: bytes) -> None:
    verdict = Talk().opened().client(b'{"jsonrpc":"2.0","id":' + ident + b',"method":"ping"}')
    assert rules(verdict) == ["envelope/id"]
    talk = Talk().opened()
    good(talk.client(request(1, "ping")))
    assert not talk.server(b'{"jsonrpc":"2.0","id":' + ident + b',"result":{}}').accepted


# ── eras that mix ────────────────────────────────────────────────────────────────────────────────────────────────────


@rows("method", ["resources/subscribe", "logging/setLevel", "tasks/list"])
def test_a_stateless_request_in_the_middle_of_a_handshake_raises_nothing(method: str) -> None:
    verdict = negotiated({}).client(request(1, method, {"uri": "a:b", "level": "info", "_meta": META}))
    assert rules(verdict) == ["protocol/method"]


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


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


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


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_page_that_is_fetched_again_brings_the_newer_contracts() -> None:
    talk = Talk().opened()
    good(talk.client(request(1, "tools/list")))
    good(talk.server(result(1, {"tools": [{"name": "a", "inputSchema": ANY}], "nextCursor": "c"})))
    good(talk.client(request(2, "tools/list", {"cursor": "c"})))
    good(talk.server(result(2, {"tools": [SEARCH]})))
    good(talk.server(notification("notifications/tools/list_changed")))
    good(talk.client(request(3, "tools/list", {"cursor": "c"})))
    good(talk.server(result(3, {"tools": [{**SEARCH, "inputSchema": ANY}]})))
    good(talk.client(call(9, "search", {"q": 1})))


def test_the_tools_that_are_remembered_are_bounded_whatever_the_pages_say() -> None:
    talk = Talk(limits=Limits(tools=100)).opened()
    for page in range(10):
        tools = [{"name": f"{page}-{index}", "inputSchema": ANY} for index in range(100)]
        talk.client(request(page, "tools/list"))
        talk.server(result(page, {"tools": tools, "nextCursor": "x"}))
    # What begins a new list is used beside the one before, which stays until the new one is whole.
    assert len(talk.conversation.tools.known) == 200


def test_a_list_full_of_patterns_is_not_compiled_at_once() -> None:
    """A pattern of ten characters can compile to a megabyte; what is not compiled when listed is when called."""
    tools = [
        {
            "name": f"t{i}",
            "inputSchema": {**ANY, "properties": {"a": {"type": "string", "pattern": f"^.{{0,{500 + i}}}$"}}},
        }
        for i in range(300)
    ]
    talk = Talk().opened().listed(*tools)
    ready = sum(contract.ready for contract in talk.conversation.tools.known.values())
    # Each of them counts for many.
    assert ready == 2
    assert rules(talk.client(call(1, "t299", {"a": "x" * 2000}))) == ["contract/input"]
    good(talk.client(call(2, "t299", {"a": "x"})))


@rows("mode", ["enforce", "audit"])
def test_a_schema_that_proves_unusable_when_called_is_named_then_once(mode: Literal["enforce", "audit"]) -> None:
    fillers = [{"name": f"f{i}", "inputSchema": {**ANY, "description": "x" * 30_000}} for i in range(9)]
    odd = {"name": "odd", "inputSchema": {**ANY, "properties": {"a": {"$ref": "https://example.com/a"}}}}
    talk = Talk(mode=mode).opened().listed(*fillers, odd)
    verdict = talk.client(call(1, "odd", {"a": 1}))
    assert rules(verdict) == ["contract/remote-ref"]
    assert "inputSchema of odd" in verdict.violations[0].source
    assert verdict.onward is verdict.frame
    good(talk.client(call(2, "odd", {"a": 1})))
    strict = Talk(policy=Policy(strict=True)).opened().listed(*fillers, odd)
    assert rules(strict.client(call(1, "odd", {"a": 1}))) == ["contract/set-aside", "contract/remote-ref"]


def wide(levels: int) -> dict[str, Any]:
    """A schema of a kilobyte that looks at each item 2^levels times."""
    definitions: dict[str, Any] = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
    definitions[f"d{levels}"] = {"maximum": 5}
    return {**ANY, "$defs": definitions, "properties": {"a": {"items": {"$ref": "#/$defs/d0"}}}}


def test_a_value_that_is_too_large_for_its_schema_is_not_judged() -> None:
    talk = Talk().opened().listed({"name": "wide", "inputSchema": wide(10)})
    good(talk.client(call(1, "wide", {"a": [1, 2, 3]})))
    [wrong] = talk.client(call(2, "wide", {"a": [9]})).violations
    assert wrong.at == "/params/arguments/a/0"
    assert rules(talk.client(call(3, "wide", {"a": [1] * 490_000}))) == ["contract/unjudged"]


# ── what is kept, and what is said ───────────────────────────────────────────────────────────────────────────────────


def test_a_long_key_above_a_wide_object_is_not_multiplied() -> None:
    inside = b",".join(b'"%d":0' % index for index in range(20_000))
    frame = b'{"' + b"k" * 100_000 + b'":{' + inside + b'},"x":"\\u003c" }'
    assert rules(Talk().opened().client(frame))[0].startswith("envelope/")


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


def test_audit_remembers_no_more_open_requests_than_the_limit() -> None:
    talk = Talk(mode="audit", limits=Limits(open_requests=10)).opened()
    for ident in range(50):
        talk.client(request(ident, "ping"))
    assert len(talk.conversation.open_requests(Party.CLIENT)) == 10


def test_a_server_that_calls_every_task_the_same_leaks_no_tokens() -> None:
    talk = Talk().opened(server={**ALL_SERVER, "tasks": {"requests": {"tools": {"call": {}}}}})
    task = {"taskId": "t", "status": "working", "createdAt": "now", "lastUpdatedAt": "now", "ttl": None}
    for ident in range(50):
        params = {"name": "x", "task": {}, "_meta": {"progressToken": ident}}
        good(talk.client(request(ident, "tools/call", params)))
        good(talk.server(result(ident, {"task": task})))
    assert len(talk.conversation._sides[Party.CLIENT].tokens) == 1


# ── audit ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_under_audit_a_refused_message_changes_nothing_that_was_agreed() -> None:
    talk = Talk(mode="audit").opened().listed(SEARCH)
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
    assert not talk.client(request(8, "initialize", opening)).accepted
    talk.server({"jsonrpc": "2.0", "id": 8, "error": {"code": -32600, "message": "again?"}})
    good(talk.client(request(9, "tools/list")))
    talk.server(request(1, "tools/list"))
    talk.client(result(1, {"tools": []}))
    assert list(talk.conversation.tools.known) == ["search"]

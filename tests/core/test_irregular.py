"""Answers to requests that were refused and forwarded all the same, in audit mode: the answer is not to blame."""

from typing import Any

import pytest

from assay.base.limits import Limits
from assay.base.verdict import Verdict
from assay.spec.revisions import REVISIONS, handshake
from kit.rows import rows
from kit.talk import ALL_SERVER, HITS, SEARCH, Talk, call, error, good, notification, request, result, rules

INFORMATION = {"name": "a", "version": "1"}
LIST: dict[str, Any] = {"tools": []}


def audited(**options: Any) -> Talk:
    """A conversation under audit, after the handshake."""
    return Talk(mode="audit", **options).opened()


def asked(talk: Talk, *messages: Any) -> None:
    """The client says *messages*, and each of them is refused and forwarded."""
    for each in messages:
        verdict = talk.client(each)
        assert not verdict.accepted
        assert verdict.onward is verdict.frame


MALFORMED = [
    pytest.param({"id": 7, "method": "ping"}, 7, {}, id="no-version"),
    pytest.param({"jsonrpc": "1.0", "id": 7, "method": "tools/list"}, 7, LIST, id="other-version"),
    pytest.param({**request(7, "ping"), "Method": "ping"}, 7, {"content": []}, id="look-alike-key"),
    pytest.param({**request(7, "ping"), "result": {}}, 7, {}, id="method-and-result"),
    pytest.param({"jsonrpc": "2.0", "id": 7, "method": 5}, 7, {}, id="method-is-a-number"),
    pytest.param({"jsonrpc": "2.0", "id": 7}, 7, {}, id="nothing-but-an-id"),
    pytest.param(request(7, "ping", [1]), 7, {}, id="params-are-an-array"),
    pytest.param(request(None, "ping"), None, {}, id="id-null"),
    pytest.param(request(1.5, "tools/list"), 1.5, LIST, id="id-fraction"),
    pytest.param(request(True, "ping"), True, {}, id="id-boolean"),
    pytest.param(request([1], "ping"), [1], {}, id="id-array"),
    pytest.param(request("x" * 2000, "ping"), "x" * 2000, {}, id="id-too-long"),
    pytest.param(b'{"jsonrpc":"2.0","id":7,"method":"ping",}', 7, {}, id="no-json"),
    pytest.param(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}', 7, {}, id="nan"),
    pytest.param(b'{"method":"tools/list","params":{"a":1,"a":2},"jsonrpc":"2.0","id":7}', 7, LIST, id="repeated-key"),
    pytest.param(b'{"a":1,"a":2,"id":7,"method":"ping"}', 7, {}, id="repeated-key-first"),
    pytest.param(b'{"jsonrpc":"2.0","id":6,"id":7,"method":"ping"}', 6, {}, id="two-ids-first"),
    pytest.param(b'{"jsonrpc":"2.0","id":6,"id":7,"method":"ping"}', 7, {}, id="two-ids-last"),
    pytest.param(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"method":"ping"}', 7, {}, id="byte-order-mark"),
    pytest.param(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\xff"}}', 7, {}, id="not-utf8"),
    pytest.param(b'{"params":{"a":"\xff"},"id":7,"method":"ping","x":1}', 7, {}, id="id-in-the-middle"),
    pytest.param(request(7, "tools/run"), 7, {"anything": 1}, id="unknown-method"),
    pytest.param(request(7, "notifications/initialized"), 7, {}, id="notification-with-an-id"),
    pytest.param(request(7, "sampling/createMessage"), 7, {"anything": 1}, id="wrong-direction"),
]


@rows("revision", [revision for revision in REVISIONS if handshake(revision)])
@rows(("message", "ident", "answer"), MALFORMED)
def test_an_answer_to_a_refused_request_is_not_blamed(message: Any, ident: Any, answer: Any, revision: str) -> None:
    for outcome in (result(ident, answer), error(ident, -32600)):
        talk = Talk(mode="audit").opened(revision)
        asked(talk, message)
        good(talk.server(outcome))
        assert not talk.server(result(ident, answer)).accepted


@rows(("message", "ident", "answer"), [each for each in MALFORMED[:19] if each.id != "id-null"])
def test_an_error_without_an_id_may_answer_what_could_not_be_read(message: Any, ident: Any, answer: Any) -> None:
    """JSON-RPC 2.0, 5: the id is null if that of the request could not be detected."""
    talk = audited()
    asked(talk, message)
    good(talk.server(error(None, -32600)))
    assert rules(talk.server(error(None, -32600))) == ["envelope/null-id"]


@rows(
    ("message", "ident"),
    [
        pytest.param({"id": 7, "method": "tools/list"}, 7, id="no-version"),
        pytest.param(request(1.5, "tools/list"), 1.5, id="id-fraction"),
        pytest.param(request(None, "tools/list"), None, id="id-null"),
        pytest.param(b'{"jsonrpc":"2.0","id":7,"method":"tools/list",}', 7, id="no-json"),
        pytest.param([request(7, "tools/list")], 7, id="in-a-batch"),
    ],
)
def test_such_an_answer_is_judged_as_the_answer_to_that_request(message: Any, ident: Any) -> None:
    talk = audited()
    asked(talk, message)
    verdict = talk.server(result(ident, {"tools": [{"name": "a"}]}))
    assert rules(verdict) == ["protocol/result"]
    assert verdict.method == "tools/list"
    assert verdict.exchange is not None
    assert verdict.exchange.id == ident


def test_an_error_without_an_id_leaves_a_request_with_the_id_null_to_its_result() -> None:
    talk = audited()
    asked(talk, request(None, "tools/list"), b'{"jsonrpc":"2.0"')
    good(talk.server(error(None, -32700)))
    assert good(talk.server(result(None, LIST))).method == "tools/list"


def test_a_result_is_held_to_the_tool_although_the_call_was_refused() -> None:
    talk = audited().listed(SEARCH)
    asked(talk, {**call(7, "search", {"words": "a"}), "jsonrpc": "1.0"})
    assert rules(talk.server(result(7, {"content": [], "structuredContent": {}}))) == ["contract/output"]
    asked(talk, request(8, "tools/call", {"name": "search", "arguments": {"words": "a"}, "_meta": 1}))
    verdict = talk.server(result(8, {"content": [], "structuredContent": {}}))
    assert rules(verdict) == ["contract/output"]
    assert verdict.tool == "search"


def test_a_result_is_not_held_to_a_tool_whose_name_has_two_spellings() -> None:
    talk = audited().listed(SEARCH)
    asked(talk, request(7, "tools/call", {"name": "search", "Name": "other", "arguments": {"words": "a"}}))
    good(talk.server(result(7, {"content": []})))


def test_a_refused_request_that_runs_as_a_task_is_answered_with_a_task() -> None:
    tasks = {**ALL_SERVER, "tasks": {"requests": {"tools": {"call": {}}}}}
    talk = Talk(mode="audit").opened(server=tasks)
    asked(talk, request(7, "tools/call", {"name": "a", "task": {}, "arguments": 1}))
    started = {"taskId": "t", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "ttl": None}
    started["lastUpdatedAt"] = started["createdAt"]
    good(talk.server(result(7, {"task": started})))


@rows("order", [(0, 1), (1, 0)])
def test_two_requests_with_one_id_may_be_answered_in_any_order(order: tuple[int, int]) -> None:
    talk = audited().listed(SEARCH)
    good(talk.client(request(7, "tools/list")))
    asked(talk, call(7, "search", {"words": "a"}))
    answers = [LIST, HITS]
    for index in order:
        verdict = good(talk.server(result(7, answers[index])))
        assert verdict.method == ("tools/list", "tools/call")[index]
    assert rules(talk.server(result(7, {}))) == ["protocol/answered-twice"]


def test_two_calls_with_one_id_may_be_answered_so_that_no_one_can_say_which_is_which() -> None:
    """The first answer is good for both calls, the second only for the one that counts as answered."""
    loose = {"name": "loose", "inputSchema": {"type": "object"}}
    talk = audited().listed(SEARCH, loose)
    good(talk.client(call(7, "loose", {})))
    asked(talk, call(7, "search", {"words": "a"}))
    good(talk.server(result(7, HITS)))
    good(talk.server(result(7, {"content": []})))
    assert rules(talk.server(result(7, {"content": []}))) == ["protocol/answered-twice"]


def test_answers_to_more_requests_than_are_remembered_are_not_blamed() -> None:
    talk = audited(limits=Limits(open_requests=2))
    for ident in range(10):
        talk.client(request(ident, "tools/list"))
    for ident in reversed(range(10)):
        good(talk.server(result(ident, LIST)))
    assert not talk.server(result(99, LIST)).accepted


def test_what_is_kept_of_refused_requests_is_bounded() -> None:
    talk = audited(limits=Limits(open_requests=5))
    for ident in range(100):
        asked(talk, {"id": ident, "method": "ping"})
    waiting = talk.conversation._client.irregular
    assert (waiting.count, len(waiting.requests), waiting.unknown) == (5, 5, 95)


def test_a_request_that_is_too_long_may_be_answered() -> None:
    talk = audited(limits=Limits(frame_bytes=1000))
    asked(talk, request(7, "tools/list", {"cursor": "x" * 1000}))
    assert rules(talk.server(result(7, {"tools": 1}))) == ["protocol/result"]
    asked(talk, {"params": {"cursor": "x" * 1000}, **request("late", "tools/list"), "more": 1})
    good(talk.server(result("late", {"tools": 1})))


def test_a_refused_batch_may_be_answered_by_a_batch() -> None:
    talk = audited()
    asked(talk, [request(7, "tools/list"), request(8, "ping"), notification("notifications/roots/list_changed")])
    good_batch(talk.server([result(7, LIST), result(8, {})]))
    assert rules(talk.server([result(7, LIST)])) == ["envelope/batch"]


def test_a_refused_batch_may_be_answered_message_by_message_or_by_one_error() -> None:
    talk = audited()
    asked(talk, [request(7, "tools/list"), request(8, "ping")])
    good(talk.server(result(8, {})))
    good(talk.server(result(7, LIST)))
    asked(talk, [request(9, "ping")])
    good(talk.server(error(None, -32600)))


def good_batch(verdict: Verdict) -> None:
    assert verdict.violations == ()
    assert verdict.onward == verdict.frame


def test_a_refused_request_may_be_cancelled_and_have_progress() -> None:
    talk = audited()
    asked(talk, {"id": 7, "method": "tools/list", "params": {"_meta": {"progressToken": "t"}}})
    good(talk.server(notification("notifications/progress", {"progressToken": "t", "progress": 1})))
    good(talk.client(notification("notifications/cancelled", {"requestId": 7})))
    good(talk.server(result(7, LIST)))


OPENING = request(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": INFORMATION})
OPENED = result(1, {"protocolVersion": "2025-06-18", "capabilities": ALL_SERVER, "serverInfo": INFORMATION})


@rows(
    ("opening", "answered"),
    [
        ({**OPENING, "jsonrpc": "1.0"}, OPENED),
        ({**OPENING, "params": 5}, OPENED),
        ([OPENING], OPENED),
        ([OPENING], [OPENED]),
        (OPENING, {**OPENED, "jsonrpc": "1.0"}),
    ],
)
def test_a_malformed_handshake_still_opens_the_conversation(opening: Any, answered: Any) -> None:
    talk = Talk(mode="audit")
    talk.client(opening)
    assert rules(talk.server(answered)) == (["envelope/jsonrpc"] if opening is OPENING else [])
    good(talk.client(notification("notifications/initialized")))
    good(talk.client(request(2, "tools/list")))
    assert talk.conversation.revision == "2025-06-18"


def test_a_malformed_handshake_may_be_answered_or_tried_again() -> None:
    talk = Talk(mode="audit")
    asked(talk, {**OPENING, "Method": "initialize"})
    good(talk.server(OPENED))
    talk = Talk(mode="audit")
    asked(talk, {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}})
    talk.opened()


def test_a_request_of_an_unknown_revision_may_be_answered_in_any() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2030-01-01", "io.modelcontextprotocol/clientCapabilities": {}}
    talk = Talk(mode="audit")
    asked(talk, request(1, "tools/list", {"_meta": meta}))
    good(talk.server(result(1, {"anything": 1})))

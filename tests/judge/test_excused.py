"""Answers to requests that were refused and forwarded all the same, in audit mode: the answer is not to blame."""

from typing import Any

import orjson
import pytest

from assay.judge import render
from assay.model.limits import Limits
from assay.model.verdict import Party
from assay.spec.revisions import REVISIONS, handshake
from kit.rows import rows
from kit.talk import (
    ALL_SERVER,
    HITS,
    SEARCH,
    Talk,
    call,
    client,
    error,
    frame_of,
    good,
    notification,
    played,
    request,
    result,
    rules,
    server,
)

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
    pytest.param({**request(7, "tools/list"), "Method": "ping"}, 7, {}, id="two-methods"),
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
        ({"id": 7, "method": "tools/list"}, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/list",}', 7),
        ([request(7, "tools/list")], 7),
    ],
)
def test_such_an_answer_is_judged_as_the_answer_to_that_request(message: Any, ident: Any) -> None:
    talk = audited()
    asked(talk, message)
    verdict = talk.server(result(ident, {"tools": [{"name": "a"}]}))
    assert (rules(verdict), verdict.method) == (["protocol/result"], "tools/list")
    assert verdict.exchange is not None
    assert verdict.exchange.id == ident


LOOSE = {"name": "loose", "inputSchema": {"type": "object"}}
SEARCHES = call(7, "search", {"words": "a"})
TASKS = {**ALL_SERVER, "tasks": {"requests": {"tools": {"call": {}}}}}
TASK = {"taskId": "t", "status": "working", "createdAt": "now", "lastUpdatedAt": "now", "ttl": None}
CONVERSATIONS = {
    "an error without an id leaves a request with the id null to its result": [
        client(request(None, "tools/list"), "envelope/id"), client(b'{"jsonrpc":"2.0"', "syntax/json"),
        server(error(None, -32700)), server(result(None, LIST))],
    "a result is held to the tool although the call was refused": [
        client({**SEARCHES, "jsonrpc": "1.0"}, "envelope/jsonrpc"),
        server(result(7, {"content": [], "structuredContent": {}}), "contract/output"),
        client({**SEARCHES, "id": 8, "params": {**SEARCHES["params"], "_meta": 1}}, "protocol/params"),
        server(result(8, {"content": [], "structuredContent": {}}), "contract/output")],
    "a result is not held to a tool whose name has two spellings": [
        client({**SEARCHES, "params": {**SEARCHES["params"], "Name": "other"}}, "protocol/look-alike-key"),
        server(result(7, {"content": []}))],
    "a refused request that runs as a task is answered with a task": [
        client(request(7, "tools/call", {"name": "loose", "task": {}, "arguments": 1}), "protocol/params"),
        server(result(7, {"task": TASK}))],
    "two requests with one id": [
        client(request(7, "tools/list")), client(SEARCHES, "protocol/id-in-use"), server(result(7, LIST)),
        server(result(7, HITS)), server(result(7, {}), "protocol/answered-twice")],
    "two requests with one id, answered in the other order": [
        client(request(7, "tools/list")), client(SEARCHES, "protocol/id-in-use"), server(result(7, HITS)),
        server(result(7, LIST)), server(result(7, {}), "protocol/answered-twice")],
    # The first answer is good for both calls, the second only for the one that counts as answered.
    "two calls with one id, so that no one can say which answer is which": [
        client(call(7, "loose", {})), client(SEARCHES, "protocol/id-in-use"), server(result(7, HITS)),
        server(result(7, {"content": []})), server(result(7, {"content": []}), "protocol/answered-twice")],
    "a refused batch is answered message by message": [
        client([request(7, "tools/list"), request(8, "ping")], "envelope/batch"), server(result(8, {})),
        server(result(7, LIST))],
    "a refused batch is answered by one error": [
        client([request(9, "ping")], "envelope/batch"), server(error(None, -32600))],
    "a refused request is cancelled, and has progress": [
        client({"id": 7, "method": "tools/list", "params": {"_meta": {"progressToken": "t"}}}, "envelope/jsonrpc"),
        server(notification("notifications/progress", {"progressToken": "t", "progress": 1})),
        client(notification("notifications/cancelled", {"requestId": 7})), server(result(7, LIST))],
}  # fmt: skip


@rows("steps", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_what_follows_a_refused_request(steps: Any) -> None:
    played(Talk(mode="audit").opened(server=TASKS).listed(SEARCH, LOOSE), *steps)


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
    side = talk.conversation._parties[Party.CLIENT]
    assert (len(side.excused), side.unknown) == (5, 95)


def test_a_request_that_is_too_long_may_be_answered() -> None:
    talk = audited(limits=Limits(frame_bytes=1000))
    asked(talk, request(7, "tools/list", {"cursor": "x" * 1000}))
    assert rules(talk.server(result(7, {"tools": 1}))) == ["protocol/result"]
    asked(talk, {"params": {"cursor": "x" * 1000}, **request("late", "tools/list"), "more": 1})
    good(talk.server(result("late", {"tools": 1})))


def test_a_refused_batch_may_be_answered_by_a_batch() -> None:
    talk = audited()
    asked(talk, [request(7, "tools/list"), request(8, "ping"), notification("notifications/roots/list_changed")])
    verdict = talk.server([result(7, LIST), result(8, {})])
    assert (verdict.violations, verdict.onward) == ((), verdict.frame)
    assert rules(talk.server([result(7, LIST)])) == ["envelope/batch"]


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


def test_a_request_that_is_sent_again_correctly_is_judged_by_what_it_asks() -> None:
    """An error answers the invalid one of two with one id. If they ask different things, no one can say which."""
    tracked = {"_meta": {"progressToken": "t"}}
    for method, wrong in (("tools/list", ["protocol/result"]), ("ping", [])):
        talk = audited()
        asked(talk, {"id": 7, "method": method, "params": tracked})
        good(talk.client(request(7, "tools/list", tracked)))
        good(talk.server(error(7, -32600)))
        # The valid one is still waited for, unless no one can say which was answered.
        assert len(talk.conversation.open_requests(Party.CLIENT)) == len(wrong)
        assert rules(talk.server(result(7, {"tools": 1}))) == wrong
        assert not talk.server(result(7, LIST)).accepted


def test_an_error_about_an_invalid_handshake_does_not_end_the_valid_one() -> None:
    talk = Talk(mode="audit")
    asked(talk, {**OPENING, "jsonrpc": "1.0"})
    good(talk.client(OPENING))
    good(talk.server(error(1, -32600)))
    good(talk.server(OPENED))
    good(talk.client(notification("notifications/initialized")))
    good(talk.client(request(2, "tools/list")))


def test_an_error_without_an_id_answers_no_request_in_particular() -> None:
    talk = audited()
    asked(talk, {"id": 1, "method": "ping"}, b"hello", {"id": 2, "method": "ping"})
    good(talk.server(error(None, -32700)))
    good(talk.server(result(1, {})))
    good(talk.server(error(2, -32600)))
    good(talk.client(request(1, "ping")))


def test_invalid_requests_take_no_room_and_leave_no_tokens() -> None:
    talk = audited(limits=Limits(open_requests=5))
    for ident in range(20):
        asked(talk, {"id": ident, "method": "ping", "params": {"_meta": {"progressToken": ident}}})
    good(talk.client(request("a", "ping", {"_meta": {"progressToken": 3}})))
    talk.conversation.end(Party.SERVER)
    assert talk.conversation._parties[Party.CLIENT].tokens == {}


def test_a_missing_answer_to_an_excused_request_is_nothing_to_report() -> None:
    talk = audited()
    asked(talk, {"id": 7, "method": "ping"})
    assert talk.conversation.open_requests(Party.CLIENT) == ()
    assert talk.conversation.give_up(Party.CLIENT, 7) is None
    assert talk.conversation.end(Party.SERVER) == []
    assert rules(talk.server(result(7, {}))) == ["protocol/unsolicited"]


def test_a_request_whose_malformed_answer_made_the_guard_fail_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request was closed already, so that nothing would have answered it."""
    talk = Talk().opened()
    good(talk.client(request(1, "tools/list")))
    broken = frame_of({"jsonrpc": "2.0", "id": 1, "result": 5})

    def failing(*_: object, **__: object) -> bytes:
        raise ArithmeticError

    with monkeypatch.context() as patched:
        patched.setattr(render, "failure", failing)
        with pytest.raises(ArithmeticError):
            talk.conversation.hear(Party.SERVER, broken)
    verdict = talk.conversation.unjudged(Party.SERVER, broken, "ArithmeticError")
    assert orjson.loads(verdict.onward or b"{}")["id"] == 1

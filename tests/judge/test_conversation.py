"""What is concluded of what two parties say to each other."""

from array import array
from typing import Any, Literal

import pytest

from assay.judge.conversation import Conversation
from assay.model.limits import Limits
from assay.model.verdict import Party
from assay.spec.revisions import REVISIONS, handshake
from kit.rows import rows
from kit.talk import (
    HITS,
    SEARCH,
    Talk,
    answer,
    call,
    error,
    good,
    notification,
    replacement,
    request,
    result,
    rules,
)

HANDSHAKE = [revision for revision in REVISIONS if handshake(revision)]


@rows(("spelt", "answered"), [(b"1e2", b"100"), (b"-0", b"0"), (b"0.0", b"0"), (b"0e9", b"-0"), (b"5", b"5.0")])
def test_numbers_that_are_equal_are_one_id(spelt: bytes, answered: bytes) -> None:
    talk = Talk().opened()
    assert talk.client(b'{"jsonrpc":"2.0","id":' + spelt + b',"method":"ping"}').accepted
    good(talk.server(b'{"jsonrpc":"2.0","id":' + answered + b',"result":{}}'))


@rows(("revision", "has_null"), [(None, True), *((each, each < "2025-11-25") for each in HANDSHAKE)])
def test_where_no_id_can_be_read_the_revision_says_what_stands_for_it(revision: str | None, has_null: bool) -> None:
    """JSON-RPC says null; MCP from 2025-11-25 on says to leave it out."""
    talk = Talk() if revision is None else Talk().opened(revision)
    assert answer(talk.client(b"{")).get("id", "absent") == (None if has_null else "absent")


UNREAD = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}


def test_an_error_with_the_id_null_is_good_for_json_rpc_alone_and_refused_where_more_is_wrong_with_it() -> None:
    assert Talk().server(UNREAD).violations == ()
    broken = {**UNREAD, "error": {"code": "x", "message": "m"}}
    assert rules(Talk().opened().server(broken)) == ["envelope/error"]


WRONG_TEXT = {"content": [{"type": "text", "text": 5}]}


@rows(
    ("message", "expected"),
    [
        ({"id": 1, "result": WRONG_TEXT}, [("envelope/jsonrpc", ""), ("protocol/result", "/result/content/0/text")]),
        ({"id": 1, "result": {"content": [], "structuredContent": {"hits": "1"}}},
         [("envelope/jsonrpc", ""), ("contract/output", "/result/structuredContent/hits")]),
        ({"jsonrpc": "2.0", "id": 1, "result": WRONG_TEXT, "error": None},
         [("envelope/members", "/error"), ("envelope/error", "/error"), ("protocol/result", "/result/content/0/text")]),
        ({"jsonrpc": "2.0", "id": 1, "result": None, "error": {"code": -32601, "message": "no"}},
         [("envelope/members", "/error"), ("protocol/error-code", "/error/code")]),
        ({"id": 1, "result": HITS}, [("envelope/jsonrpc", "")]),
        ({"id": 9, "result": WRONG_TEXT}, [("envelope/jsonrpc", "")]),
        ({"id": 1, "result": 5}, [("envelope/jsonrpc", ""), ("envelope/result", "/result")]),
        ({"id": 1, "error": {"code": -32601}}, [("envelope/jsonrpc", ""), ("envelope/error", "/error")]),
        ({**result(1, WRONG_TEXT), "Result": {}}, [("envelope/look-alike-key", "/Result")]),
        ({**result(1, WRONG_TEXT), "error": {"code": 1, "message": "no"}}, [("envelope/members", "/error")]),
    ],
)  # fmt: skip
@rows("mode", ["enforce", "audit"])
def test_a_malformed_answer_shows_what_is_wrong_inside_it(mode: Any, message: Any, expected: Any) -> None:
    talk = Talk(mode=mode).opened().listed(SEARCH)
    good(talk.client(call(1, "search", {"words": "a"})))
    verdict = talk.server(message)
    assert [(each.rule, each.at) for each in verdict.violations] == expected
    answered = message["id"] == 1
    assert len(talk.conversation.open_requests(Party.CLIENT)) == (0 if answered else 1)
    if mode == "audit":
        assert verdict.onward is verdict.frame
    elif answered:
        assert replacement(verdict)["error"]["code"] == -31010
    else:
        assert verdict.onward is None


@rows(
    ("message", "expected"),
    [
        ({"id": 1, "method": "resources/read", "params": {}},
         [("envelope/jsonrpc", ""), ("protocol/params", "/params")]),
        ({**call(1, "search", {"words": 5}), "jsonrpc": 2},
         [("envelope/jsonrpc", "/jsonrpc"), ("contract/input", "/params/arguments/words")]),
        ({**request(1, "resources/read", {}), "result": None},
         [("envelope/members", "/result"), ("protocol/params", "/params")]),
        (request(True, "resources/read", {}), [("envelope/id", "/id"), ("protocol/params", "/params")]),
        ({"id": 1, "method": "acme/run", "params": {}}, [("envelope/jsonrpc", "")]),
        ({"id": 1, "method": "resources/read", "params": []},
         [("envelope/jsonrpc", ""), ("envelope/params", "/params")]),
        ({"method": "notifications/cancelled", "params": {"requestId": []}},
         [("envelope/jsonrpc", ""), ("protocol/params", "/params/requestId")]),
    ],
)  # fmt: skip
@rows("mode", ["enforce", "audit"])
def test_a_malformed_call_shows_what_is_wrong_inside_it(mode: Any, message: Any, expected: Any) -> None:
    """It is answered once, as one whose envelope is wrong."""
    verdict = Talk(mode=mode).opened().listed(SEARCH).client(message)
    assert [(each.rule, each.at) for each in verdict.violations] == expected
    if mode == "audit":
        assert verdict.onward is verdict.frame
    else:
        assert verdict.onward is None
        assert verdict.back is None if "id" not in message else answer(verdict)["error"]["code"] == -32600


def test_a_method_of_another_revision_says_which() -> None:
    verdict = Talk().opened("2025-03-26").server(request(1, "elicitation/create", {}))
    assert "2025-06-18" in verdict.violations[0].hint


def progress(token: Any, value: float) -> dict[str, Any]:
    return notification("notifications/progress", {"progressToken": token, "progress": value})


def test_the_token_of_a_refused_request_is_not_remembered() -> None:
    talk = Talk().opened()
    bad = request(1, "tools/call", {"name": 5, "_meta": {"progressToken": "t"}})
    assert not talk.client(bad).accepted
    assert rules(talk.server(progress("t", 1))) == ["protocol/progress"]


def test_initialize_is_not_batched() -> None:
    params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    verdict = Talk(revision="2025-03-26").client([request(1, "initialize", params)])
    assert "protocol/batched-initialize" in rules(verdict)


def test_of_a_mixed_batch_the_good_entries_go_on_and_the_others_are_answered() -> None:
    talk = Talk().opened("2025-03-26")
    verdict = talk.client(
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1e0,"method":"ping"},'
        b'{"jsonrpc":"2.0","id":3,"method":"no/such"},7,{"jsonrpc":"2.0","method":"notifications/x"}]'
    )
    assert verdict.onward == b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'
    assert [(each.rule, each.at) for each in verdict.violations] == [
        ("protocol/id-in-use", "/1/id"),
        ("protocol/method", "/2/method"),
        ("envelope/message", "/3"),
        ("protocol/method", "/4/method"),
    ]
    assert [each.get("id") for each in answer(verdict)] == [1, 3, None]


@rows(("mode", "found"), [("audit", []), ("enforce", ["protocol/unsolicited"])])
def test_a_refused_request_can_be_answered_where_the_server_has_seen_it(mode: Any, found: list[str]) -> None:
    talk = Talk(mode=mode).opened().listed(SEARCH)
    assert not talk.client(call(1, "search", {})).accepted
    assert rules(talk.server(error(1, -32602))) == found


def test_a_frame_over_the_limit_is_refused_before_it_is_read() -> None:
    talk = Talk(limits=Limits(frame_bytes=100), revision="2025-11-25")
    assert talk.client(b" " * 60 + b'{"jsonrpc":"2.0","id":1,"method":"ping"}').accepted
    verdict = talk.client(b" " * 61 + b'{"jsonrpc":"2.0","id":2,"method":"ping"}')
    assert rules(verdict) == ["framing/size"]
    assert answer(verdict)["error"]["code"] == -32600


def test_blank_lines_are_skipped_silently() -> None:
    for frame in (b"", b" ", b"\r", b"\t \r"):
        verdict = Talk().client(frame)
        assert verdict.kind == "blank"
        assert (verdict.violations, verdict.onward, verdict.back) == ((), None, None)


def test_garbage_is_answered_only_so_often_until_something_readable_comes() -> None:
    talk = Talk(limits=Limits(garbage_answers=3)).opened()
    answered = [talk.client(b"garbage").back is not None for _ in range(6)]
    assert answered == [True] * 3 + [False] * 3
    good(talk.client(request(1, "ping")))
    assert talk.client(b"garbage").back is not None


def test_a_server_is_never_answered_for_what_it_prints() -> None:
    verdict = Talk().opened().server(b"listening on port 80")
    assert (rules(verdict), verdict.back, verdict.onward) == (["syntax/json"], None, None)


def test_open_requests_are_bounded() -> None:
    talk = Talk(limits=Limits(open_requests=2)).opened()
    good(talk.client(request(1, "ping")))
    good(talk.client(request(2, "ping")))
    verdict = talk.client(request(3, "ping"))
    assert rules(verdict) == ["protocol/too-many-open"]
    good(talk.server(result(1, {})))
    good(talk.client(request(4, "ping")))


@rows(
    ("params", "at"),
    [
        ({"cursor": "x" * 70_000}, "/params/cursor"),
        ({"_meta": {"progressToken": "x" * 2000}}, "/params/_meta/progressToken"),
    ],
)
def test_tokens_and_cursors_are_bounded(params: dict[str, Any], at: str) -> None:
    verdict = Talk().opened().client(request(1, "tools/list", params))
    assert [(each.rule, each.at) for each in verdict.violations] == [("protocol/token-size", at)]


def test_a_million_faults_are_counted_not_listed() -> None:
    schema = {"type": "object", "properties": {"all": {"type": "array", "items": {"type": "string"}}}}
    talk = Talk().opened().listed({"name": "many", "inputSchema": schema})
    verdict = talk.client(call(1, "many", {"all": [0] * 490_000}))
    assert len(verdict.violations) == 20
    assert verdict.more > 1000
    assert len(verdict.back or b"") < 20_000


def test_an_error_never_echoes_a_payload() -> None:
    secret = "hunter2" * 1000
    talk = Talk().opened().listed(SEARCH)
    verdict = talk.client(call(1, "search", {"words": {"password": secret}, "limit": secret}))
    assert len(verdict.violations) == 2
    assert secret[:60].encode() not in (verdict.back or b"")


def test_a_broken_initialize_result_leaves_the_conversation_unopened() -> None:
    talk = Talk()
    info = {"name": "a", "version": "1"}
    opening = request(1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
    good(talk.client(opening))
    verdict = talk.server(result(1, {"protocolVersion": "2025-11-25"}))
    assert "protocol/result" in rules(verdict)
    assert talk.conversation.revision is None
    good(talk.client({**opening, "id": 2}))


def test_the_strict_profile_wants_string_ids_and_params() -> None:
    """specs/000."""
    talk = Talk(profile="strict", revision="2025-06-18")
    good(talk.client(request("a", "ping", {})))
    assert rules(talk.client(request(1, "ping", {}))) == ["envelope/id"]
    assert rules(talk.client(request("b", "ping"))) == ["envelope/params"]
    good(talk.client(notification("notifications/roots/list_changed")))
    assert rules(Talk(profile="strict", revision="2025-03-26").client([request("a", "ping", {})])) == ["envelope/batch"]


def test_the_known_slips_of_the_official_schema_do_not_block_good_traffic() -> None:
    """A fraction in an elicited form: refused by schema.json, allowed by schema.ts."""
    for errata, accepted in ((True, True), (False, False)):
        talk = Talk(errata=errata).opened()
        form = {"type": "object", "properties": {"share": {"type": "number"}}}
        good(talk.server(request(1, "elicitation/create", {"message": "?", "requestedSchema": form})))
        verdict = talk.client(result(1, {"action": "accept", "content": {"share": 3.14}}))
        assert verdict.accepted is accepted


@rows(
    ("make", "options"),
    [
        *((Talk, each) for each in ({"mode": "foo"}, {"profile": "jsonrpc"}, {"limits": None})),
        *((Limits, each) for each in ({"depth": 255}, {"depth": 0}, {"frame_bytes": -1})),
    ],
)
def test_options_that_cannot_be_kept_are_refused_at_once(make: Any, options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, AttributeError)):
        make(**options)


@rows("revision", ["2025-01-01", "latest", "", 2025])
def test_an_unknown_revision_is_a_value_error_that_names_the_known_ones(revision: Any) -> None:
    with pytest.raises(ValueError, match=r"there is no revision .*; there are 2024-11-05, .*2026-07-28"):
        Conversation(revision=revision)


@rows("kind", [str, bytes, bytearray, memoryview])
def test_a_frame_may_be_text_or_bytes(kind: Any) -> None:
    spelt = '{"jsonrpc":"2.0","id":"ä","method":"tools/list"}'
    verdict = Conversation(revision="2025-11-25").hear(Party.CLIENT, spelt if kind is str else kind(spelt.encode()))
    assert (verdict.accepted, verdict.frame, verdict.onward) == (True, spelt.encode(), spelt.encode())
    assert rules(Conversation().hear(Party.CLIENT, '{"a":"\ud800"}')) == ["syntax/utf8"]


@rows("frame", [None, 5, {"jsonrpc": "2.0"}, ["a"], array("b", b"{}")])
def test_what_is_neither_text_nor_bytes_is_a_type_error_that_says_what_is_taken(frame: Any) -> None:
    with pytest.raises(TypeError, match=f"str or bytes .*not {type(frame).__name__}"):
        Conversation().hear(Party.CLIENT, frame)


def test_a_conversation_shows_where_it_stands() -> None:
    conversation = Conversation(mode="audit")
    assert repr(conversation) == "<Conversation: audit, no revision yet, 0 open requests>"
    conversation = Conversation(revision="2025-11-25")
    conversation.hear(Party.CLIENT, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    assert repr(conversation) == "<Conversation: enforce, 2025-11-25, 1 open request>"


MORE = {"name": "more", "inputSchema": {"type": "object"}}


@rows("mode", ["enforce", "audit"])
def test_tools_past_the_limit_are_reported_once_and_can_be_called(mode: Literal["enforce", "audit"]) -> None:
    talk = Talk(limits=Limits(tools=1), mode=mode).opened()
    good(talk.client(request("list", "tools/list")))
    verdict = talk.server(result("list", {"tools": [SEARCH, MORE]}))
    assert [(each.rule, each.at, each.action) for each in verdict.violations] == [
        ("contract/schema-size", "/result/tools/1", "report")
    ]
    assert verdict.onward is verdict.frame
    good(talk.client(call(1, "more", {})))


def test_a_batch_has_a_bounded_number_of_entries() -> None:
    talk = Talk(limits=Limits(batch_entries=2), revision="2025-03-26")
    good_one = talk.client([request(1, "ping"), request(2, "ping")])
    assert good_one.accepted
    verdict = talk.client([request(each, "ping") for each in range(3, 6)])
    assert rules(verdict) == ["envelope/batch"]
    assert "1 to 2 messages" in verdict.violations[0].expected


@rows("unstarted", [True, False])
def test_a_server_that_never_started_is_data_and_not_read_from_the_reason(unstarted: bool) -> None:
    talk = Talk().opened()
    good(talk.client(request(9, "tools/list")))
    (missing,) = talk.conversation.end(Party.SERVER, "cannot start no: No such file", unstarted=unstarted)
    assert (missing.violations[0].hint.startswith("Check that the guard can run the server's command")) is unstarted
    assert (b'"detail":"the server could not be started: no: No such file"' in (missing.onward or b"")) is unstarted

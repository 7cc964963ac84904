"""specs/003, the validation middleware: between a transport and a router, in every mode."""

import itertools
import json
import logging
from typing import Any

import orjson
import pytest

from assay.api.exceptions import ValidationError
from assay.api.schema_validator import SchemaValidator, ValidationMiddleware
from assay.judge.conversation import Conversation
from assay.model.verdict import Party
from assay.rules.policy import Policy
from kit.rows import rows

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}'
GOOD = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
BAD = b'{"jsonrpc":"2.0","id":1,"result":{"content":"text"}}'
DONE = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class Router:
    """The handler behind the middleware: remembers what reached it, and gives the answer that it was made with."""

    def __init__(self, answer: bytes | None = None) -> None:
        self.answer = answer
        self.heard: list[bytes] = []

    def __call__(self, data: bytes) -> bytes | None:
        self.heard.append(data)
        return self.answer


def middleware(router: Router, revision: str = "2025-11-25", **modes: bool) -> ValidationMiddleware:
    return ValidationMiddleware(SchemaValidator(revision=revision), router, **modes)


def code_of(answer: bytes | None) -> int | None:
    code: int | None = None if answer is None else json.loads(answer)["error"]["code"]
    return code


@rows(
    "data",
    [
        pytest.param(CALL, id="request"),
        pytest.param(b' {"id" : 1e0, "jsonrpc":"2.0","method":"ping"}\r\n', id="odd-spelling"),
        pytest.param(DONE, id="notification"),
        pytest.param(GOOD, id="a-result-to-a-request-of-the-servers"),
        pytest.param(b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"?"}}', id="an-error-without-an-id"),
    ],
)
def test_a_good_message_reaches_the_handler_as_the_very_bytes_that_came(data: bytes) -> None:
    router = Router()
    assert middleware(router)(data) is None
    assert router.heard == [data]


def test_a_good_answer_comes_back_as_the_very_bytes_that_were_given() -> None:
    spelt = b'{ "result":{"content":[ ]},"id":1, "jsonrpc":"2.0"}'
    assert middleware(Router(spelt), strict_outgoing=True)(CALL) is spelt


@rows("data", [b"", b"\n", b" \t\r\n"])
def test_a_blank_line_is_skipped(data: bytes) -> None:
    router = Router()
    assert middleware(router)(data) is None
    assert router.heard == []


REFUSED = [
    (b"{", -32700, "syntax/json"),
    (b"[" * 129 + b"]" * 129, -32700, "syntax/depth"),
    (b'"' + b"x" * (16 << 20) + b'"', -32600, "framing/size"),
    (b"42", -32600, "envelope/message"),
    (b'{"id":1,"method":"ping"}', -32600, "envelope/jsonrpc"),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, "envelope/id"),
    (b"[" + CALL + b"]", -32600, "envelope/batch"),
    (b'{"jsonrpc":"2.0","id":1e2,"method":"tools/run"}', -32601, "protocol/method"),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602, "protocol/params"),
]


@rows(("data", "code", "rule"), REFUSED)
@rows("revision", ["2025-06-18", "2025-11-25"])
def test_a_bad_message_is_answered_at_once_or_logged_and_passed_on(
    data: bytes, code: int, rule: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Source: specs/003, Error Handling; the codes are those a `Conversation` gives."""
    router = Router(GOOD)
    answer = middleware(router, revision)(data)
    assert router.heard == []
    assert code_of(answer) == code
    assert answer is not None
    assert json.loads(answer)["error"]["data"]["violations"][0]["rule"] == rule
    assert len(answer) < 2000
    # The same bytes get the same verdict, but that a conversation that missed the handshake does not know all methods.
    verdict = Conversation(revision=revision, policy=Policy(strict=True)).hear(Party.CLIENT, data)
    assert verdict.violations[0].rule in {rule, "protocol/unheard-extension"}
    assert verdict.back is not None
    assert code_of(verdict.back) == code
    assert answer.partition(b'"error":')[0] == verdict.back.partition(b'"error":')[0], "the id, as it was spelt"
    caplog.clear()
    router = Router()
    assert middleware(router, strict=False)(data) is None
    assert router.heard == [data]
    assert f"[{rule}]" in caplog.text
    assert "passed on" in caplog.text


@rows(
    "data",
    [
        pytest.param(b'{"jsonrpc":"2.0","method":"notifications/unknown"}', id="unknown-notification"),
        pytest.param(b'{"jsonrpc":"1.0","method":"notifications/initialized"}', id="bad-envelope"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"result":5}', id="bad-result"),
    ],
)
def test_bad_notifications_and_bad_answers_stop_here_and_are_not_answered(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    router = Router(GOOD)
    assert middleware(router)(data) is None
    assert router.heard == []
    assert "refused" in caplog.text


@rows("data", [DONE, GOOD])
@rows(("outgoing", "strict_outgoing"), itertools.product([True, False], repeat=2))
def test_what_asks_for_no_answer_gets_none_whatever_the_handler_returns(
    data: bytes, outgoing: bool, strict_outgoing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    router = Router(GOOD)
    assert middleware(router, validate_outgoing=outgoing, strict_outgoing=strict_outgoing)(data) is None
    assert router.heard == [data]
    assert "dropped" in caplog.text


@rows(("strict", "validate_outgoing", "strict_outgoing"), itertools.product([True, False], repeat=3))
@rows("bad_call", [False, True])
def test_each_mode_does_its_own_part(
    strict: bool, validate_outgoing: bool, strict_outgoing: bool, bad_call: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    router = Router(BAD)
    judged = middleware(router, strict=strict, validate_outgoing=validate_outgoing, strict_outgoing=strict_outgoing)
    answer = judged(CALL.replace(b'"t"', b"1") if bad_call else CALL)
    assert answer is not None
    if bad_call and strict:
        assert (code_of(answer), router.heard) == (-32602, [])
        return
    assert len(router.heard) == 1
    if validate_outgoing and strict_outgoing:
        assert code_of(answer) == -32603
        assert json.loads(answer)["id"] == 1
    else:
        assert answer is BAD
    assert ("protocol/result" in caplog.text) is validate_outgoing


@rows(
    ("answer", "rule"),
    [
        pytest.param(b"{", "syntax/json", id="no-json"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"result":' + b" " * (16 << 20) + b"{}}", "framing/size", id="too-long"),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"result":{"content":[]}}', "protocol/unsolicited", id="another-id"),
        pytest.param(b'{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}', "protocol/unsolicited", id="no-id"),
        pytest.param(BAD, "protocol/result", id="off-the-schema"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', "envelope/members", id="a-request"),
    ],
)
def test_a_bad_answer_is_logged_and_replaced_where_that_is_asked_for(
    answer: bytes, rule: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Source: specs/002, a fallback error response is generated."""
    caplog.clear()
    assert middleware(Router(answer))(CALL) is answer
    assert f"[{rule}]" in caplog.text
    replaced = middleware(Router(answer), strict_outgoing=True)(CALL)
    assert code_of(replaced) == -32603
    assert replaced is not None
    assert json.loads(replaced)["id"] == 1


@rows(
    ("revision", "request_", "result", "good"),
    [
        ("2025-11-25", {"method": "tools/list"}, {}, False),
        # A call that is run as a task is answered by the task.
        (
            "2025-11-25",
            {"method": "tools/call", "params": {"name": "t", "task": {}}},
            {"task": {"taskId": "1", "status": "working", "createdAt": "now", "lastUpdatedAt": "now", "ttl": None}},
            True,
        ),
        ("2025-11-25", {"method": "tools/call", "params": {"name": "t", "task": {}}}, {"content": []}, False),
        # From 2026-07-28 on a result may ask for more input first.
        ("2026-07-28", {"method": "tools/call"}, {"resultType": "complete", "content": []}, True),
        ("2026-07-28", {"method": "tools/call"}, {"resultType": "input_required", "requestState": "s"}, True),
    ],
)
def test_a_result_is_judged_by_the_request_it_answers(
    revision: str, request_: dict[str, Any], result: Any, good: bool
) -> None:
    answer = orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": result})
    judged = middleware(Router(answer), revision, strict=False, strict_outgoing=True)
    got = judged(orjson.dumps({"jsonrpc": "2.0", "id": 1, **request_}))
    assert (got is answer) is good


def test_logs_say_where_and_by_which_rule_but_never_what(caplog: pytest.LogCaptureFixture) -> None:
    """Source: specs/003, InstanceLocation and KeywordLocation; house style, no payloads."""
    caplog.set_level(logging.DEBUG, "assay")
    data = b'{"jsonrpc":"2.0","id":"SECRET","method":"tools/call","params":{"name":["SECRET"],"arguments":"SECRET"}}'
    middleware(Router())(data)
    middleware(Router(), strict=False)(data)
    middleware(Router())(b'{"jsonrpc":"2.0","id":1,"method":"SECRET"}')
    middleware(Router())(b'{"SECRET')
    middleware(Router(b'{"jsonrpc":"2.0","id":"SECRET","result":{"content":"SECRET"}}'))(CALL)
    middleware(Router(b'{"jsonrpc":"2.0","id":1,"result":{"content":"SECRET"}}'))(CALL)
    assert "SECRET" not in caplog.text
    assert {record.name for record in caplog.records} == {"assay"}
    assert "'/params/name': expected a string [protocol/params]" in caplog.text
    assert "(schema #/$defs/CallToolRequestParams/properties/name/type)" in caplog.text
    assert "'/result/content'" in caplog.text


def test_keys_of_a_message_cannot_forge_lines_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    forged = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":[]}},"a\\nCRITICAL":1}'
    middleware(Router())(forged.replace('"id":1', '"a\\nCRITICAL":2,"id":1').encode())
    middleware(Router())(b'{"jsonrpc":"2.0","id":1,"' + b"x" * 100_000 + b'":1,"' + b"x" * 100_000 + b'":2}')
    assert all("\n" not in record.getMessage() and len(record.getMessage()) < 500 for record in caplog.records)


def test_the_log_is_as_bounded_as_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    """Source: hostile-input, a million faults in one message."""
    params = {"messages": [1] * 1000, "maxTokens": 1}
    message = {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": params}
    answer = middleware(Router())(orjson.dumps(message))
    assert answer is not None
    data = json.loads(answer)["error"]["data"]
    assert len(data["violations"]) == len(caplog.records) == 20
    assert data["more"] > 0


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Echo(Router):
    """Answers every request with an empty result."""

    def __call__(self, data: bytes) -> bytes | None:
        self.heard.append(data)
        message = json.loads(data)
        return orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}) if "id" in message else None


BEGIN = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
PING = b'{"jsonrpc":"2.0","id":1e0,"method":"ping"}'


@rows("strict", [True, False])
def test_in_2025_03_26_each_entry_of_a_batch_is_a_message_of_its_own(strict: bool) -> None:
    bad = b'{"jsonrpc":"2.0","id":"b","method":"tools/run"}'
    router = Echo()
    judged = middleware(router, "2025-03-26", strict=strict)
    answer = judged(b" [" + PING + b" , " + bad + b"," + DONE + b"]\n")
    assert answer is not None
    first, second = json.loads(answer)
    assert first == {"jsonrpc": "2.0", "id": 1.0, "result": {}}
    assert second["id"] == "b"
    assert router.heard == ([PING, DONE] if strict else [PING, bad, DONE])
    assert ("error" in second) is strict


def test_a_batch_of_notifications_is_not_answered() -> None:
    router = Echo()
    assert middleware(router, "2025-03-26")(b"[" + DONE + b"," + DONE + b"]") is None
    assert router.heard == [DONE, DONE]


@rows(
    ("entry", "rule"),
    [
        (b"[" + PING + b"]", "envelope/batch"),
        (b"1", "envelope/message"),
        (
            orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": BEGIN}),
            "protocol/batched-initialize",
        ),
    ],
)
def test_some_things_cannot_be_in_a_batch(entry: bytes, rule: str) -> None:
    router = Echo()
    answer = middleware(router, "2025-03-26")(b"[" + entry + b"," + PING + b"]")
    assert answer is not None
    refused, done = json.loads(answer)
    assert refused["error"]["code"] == -32600
    assert refused["error"]["data"]["violations"][0]["rule"] == rule
    assert "result" in done
    assert router.heard == [PING]


@rows("data", [b"[]", b"[" + b"1," * 20_000 + b"1]"])
def test_a_batch_of_nothing_or_of_too_many_gets_one_error(data: bytes) -> None:
    answer = middleware(Echo(), "2025-03-26")(data)
    assert code_of(answer) == -32600
    assert answer is not None
    assert len(answer) < 1000


# ── an operator's own schema ─────────────────────────────────────────────────────────────────────────────────────────


def test_an_override_decides_which_methods_there_are(tmp_path: Any) -> None:
    own = tmp_path / "own.json"
    method = {"method": {"const": "acme/search"}, "params": {"type": "object", "required": ["q"]}}
    own.write_bytes(orjson.dumps({"$defs": {"SearchRequest": {"type": "object", "properties": method}}}))
    router = Echo()
    judged = ValidationMiddleware(SchemaValidator(schema_override_uri=own), router)
    search = b'{"jsonrpc":"2.0","id":1,"method":"acme/search","params":{"q":1}}'
    assert judged(search) == b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert code_of(judged(search.replace(b'"q"', b'"p"'))) == -32602
    assert code_of(judged(PING)) == -32601
    assert judged(search.replace(b'"id":1,', b"")) is None
    assert router.heard == [search]


REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "acme/search", "params": {"q": 1}, "traceId": "a"}
SHAPE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "params": {"type": "object", "required": ["q"]},
        "traceId": {"type": "string"},
        "id": {"type": "integer", "minimum": 1},
        "jsonrpc": {"const": "2.0"},
        "method": {"type": "string", "pattern": "^acme/"},
    },
    "required": ["params", "traceId"],
    "additionalProperties": False,
}


def without(member: str) -> dict[str, Any]:
    return {key: each for key, each in REQUEST.items() if key != member}


@rows(
    ("message", "code"),
    [
        pytest.param(REQUEST, None, id="good"),
        pytest.param(without("traceId"), -32600, id="member-missing"),
        pytest.param({**REQUEST, "jsonrpc": "1.0"}, -32600, id="version"),
        pytest.param({**without("traceId"), "params": {}}, -32600, id="structure-and-params"),
        pytest.param({**REQUEST, "params": {}}, -32602, id="params-wrong"),
        pytest.param({**REQUEST, "params": {"q": 1, "n": 2}}, None, id="params-with-more"),
    ],
)
@rows("name", ["SearchRequest", "JSONRPCRequest"])
def test_structure_is_refused_with_32600_and_params_with_32602(
    tmp_path: Any, name: str, message: dict[str, Any], code: int | None
) -> None:
    """specs/003, Validation Middleware: -32600 for general structure, -32602 for specific parameter issues."""
    own = tmp_path / "own.json"
    shape = SHAPE if name == "JSONRPCRequest" else {
        **SHAPE, "properties": {**SHAPE["properties"], "method": {"const": "acme/search"}},
    }  # fmt: skip
    own.write_bytes(orjson.dumps({"$defs": {name: shape}}))
    router = Echo()
    answer = ValidationMiddleware(SchemaValidator(schema_override_uri=own), router)(orjson.dumps(message))
    assert (None if router.heard else code_of(answer)) == code


def test_a_response_that_breaks_the_structure_of_an_override_is_named_so(tmp_path: Any) -> None:
    own = tmp_path / "own.json"
    shape = {"type": "object", "required": ["traceId"], "properties": {"result": {"type": "object"}}}
    own.write_bytes(orjson.dumps({"$defs": {"JSONRPCRequest": {"type": "object"}, "JSONRPCResponse": shape}}))
    judged = SchemaValidator(schema_override_uri=own)
    with pytest.raises(ValidationError) as refused:
        judged.validate("response", b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert [each.rule for each in refused.value.violations] == ["envelope/schema"]

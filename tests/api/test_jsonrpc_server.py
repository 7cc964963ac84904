"""specs/002, both ends: a server that is handed text, a client that is given a transport."""

import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest

from assay.api.exceptions import JsonRpcError
from assay.api.jsonrpc import JsonRpcClient, JsonRpcServer
from kit.rows import rows


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


class Worker:
    """Handlers that take their params in every way, and fail in every way."""

    def __init__(self) -> None:
        self.noted: list[Any] = []

    def subtract(self, minuend: float, subtrahend: float = 0) -> float:
        return minuend - subtrahend

    def tell(self, *what: Any) -> None:
        self.noted.append(what)

    def fail(self) -> None:
        raise RuntimeError("the password is 1234")

    def refuse(self, code: Any = -32050, message: Any = "refused", data: Any = None) -> None:
        raise JsonRpcError(code, message, data)

    def leave(self) -> None:
        sys.exit(3)


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def server(worker: Worker) -> JsonRpcServer:
    made = JsonRpcServer("test")
    for name in ("subtract", "tell", "fail", "refuse", "leave"):
        made.register_method(name, getattr(worker, name))
    made.register_method("update", worker.tell)
    made.register_method("sum", worker.subtract)
    made.register_method("get_data", lambda: ["hello", 5])
    made.register_method("echo", lambda value: value)
    made.register_method("keywords", lambda **named: named)
    made.register_method("largest", max)
    return made


PARSE = {"code": -32700, "message": "Parse error"}
INVALID = {"code": -32600, "message": "Invalid MCP envelope"}
UNKNOWN = {"code": -32601, "message": "Method not found"}


def bare(answer: Any) -> Any:
    """*answer* without the data of its errors, which have tests of their own."""
    if isinstance(answer, list):
        return [bare(each) for each in answer]
    if "error" in answer:
        return answer | {"error": {name: answer["error"][name] for name in ("code", "message")}}
    return answer


@rows(
    ("text", "answer"),
    [
        (
            '{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}',
            {"jsonrpc": "2.0", "result": 19, "id": 1},
        ),
        (
            '{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}',
            {"jsonrpc": "2.0", "result": 19, "id": 3},
        ),
        ('{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}', None),
        ('{"jsonrpc": "2.0", "method": "foobar"}', None),
        ('{"jsonrpc": "2.0", "method": "foobar", "id": "1"}', {"jsonrpc": "2.0", "error": UNKNOWN, "id": "1"}),
        (
            '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
            {"jsonrpc": "2.0", "error": PARSE, "id": None},
        ),
        ('{"jsonrpc": "2.0", "method": 1, "params": "bar"}', {"jsonrpc": "2.0", "error": INVALID, "id": None}),
        (
            '[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method"]',
            {"jsonrpc": "2.0", "error": PARSE, "id": None},
        ),
        ("[]", {"jsonrpc": "2.0", "error": INVALID, "id": None}),
        ("[1]", [{"jsonrpc": "2.0", "error": INVALID, "id": None}]),
        ("[1,2,3]", [{"jsonrpc": "2.0", "error": INVALID, "id": None}] * 3),
        (
            """[
                {"jsonrpc": "2.0", "method": "sum", "params": [7, 4], "id": "1"},
                {"jsonrpc": "2.0", "method": "update", "params": [7]},
                {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
                {"foo": "boo"},
                {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
                {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
            ]""",
            [
                {"jsonrpc": "2.0", "result": 3, "id": "1"},
                {"jsonrpc": "2.0", "result": 19, "id": "2"},
                {"jsonrpc": "2.0", "error": INVALID, "id": None},
                {"jsonrpc": "2.0", "error": UNKNOWN, "id": "5"},
                {"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"},
            ],
        ),
        (
            """[{"jsonrpc": "2.0", "method": "update", "params": [1,2,4]},
                {"jsonrpc": "2.0", "method": "update", "params": [7]}]""",
            None,
        ),
    ],
)
def test_the_examples_of_json_rpc_get_the_answers_they_have_there(
    server: JsonRpcServer, text: str, answer: Any
) -> None:
    """Source: JSON-RPC 2.0, section 7; the message of -32600 is ours (specs/000)."""
    got = server.process_request(text)
    assert got == "" if answer is None else bare(json.loads(got)) == answer


@rows(
    ("text", "code"),
    [
        pytest.param("", -32700, id="empty"),
        pytest.param(b"\xff", -32700, id="not-utf8"),
        pytest.param("[" * 500_000, -32700, id="much-too-deep"),
        pytest.param('"' + "x" * (16 << 20) + '"', -32600, id="too-long"),
        pytest.param("[" + "1," * 20_000 + "1]", -32600, id="batch-of-too-many"),
        pytest.param(None, -32700, id="no-text"),
        pytest.param('{"jsonrpc":"2.0","id":null,"method":"none"}', -32601, id="null-id-is-an-id"),
    ],
)
def test_what_cannot_be_read_gets_one_error_with_a_null_id(server: JsonRpcServer, text: Any, code: int) -> None:
    answer = server.process_request(text)
    assert len(answer) < 2000
    assert json.loads(answer)["id"] is None
    assert json.loads(answer)["error"]["code"] == code


@rows("ident", ["-5", "-0", "1.5E-3", str(2**70), '"a"', '"\\u00e9"', "null"])
@rows("method", ["get_data", "none", "fail", ""])
def test_an_id_is_echoed_as_it_was_spelt(server: JsonRpcServer, ident: str, method: str) -> None:
    """Source: design, "Ids are echoed unchanged"; in strings, escapes may be resolved."""
    one = f'{{"jsonrpc":"2.0","id":{ident},"method":"{method}"}}'
    spelt = '"é"' if "u00e9" in ident else ident
    assert f'"id":{spelt},' in server.process_request(one)
    assert f'"id":{spelt},' in server.process_request(f"[ {one} ]")


@rows(
    ("call", "result"),
    [
        ('"method":"keywords"', {}),
        ('"method":"keywords","params":{"self":1,"not an identifier":2}', {"self": 1, "not an identifier": 2}),
        ('"method":"subtract","params":{"minuend":1}', 1),
        ('"method":"subtract","params":[5]', 5),
        ('"method":"largest","params":[1,3,2]', 3),
        ('"method":"echo","params":[1180591620717411303424]', 2**70),
        ('"method":"echo","params":{"value":null}', None),
    ],
)
def test_params_reach_the_function_by_name_or_by_position(server: JsonRpcServer, call: str, result: Any) -> None:
    assert json.loads(server.process_request(f'{{"jsonrpc":"2.0","id":1,{call}}}'))["result"] == result


@rows(
    "call",
    [
        pytest.param('"method":"subtract"', id="missing"),
        pytest.param('"method":"subtract","params":[1,2,3]', id="one-too-many"),
        pytest.param('"method":"subtract","params":{"minuend":1,"weight":2}', id="unknown"),
        pytest.param('"method":"subtract","params":{"minuend":1,"self":2}', id="not-even-self"),
        pytest.param('"method":"keywords","params":[1]', id="positions-where-there-are-none"),
        pytest.param('"method":"get_data","params":{"x":1}', id="none-are-taken"),
        pytest.param('"method":"largest","params":[]', id="of-a-function-without-a-signature"),
        pytest.param('"method":"get_data","params":{"' + "x" * 100_000 + '":1}', id="with-a-long-name"),
    ],
)
def test_params_that_do_not_fit_the_function_are_invalid(server: JsonRpcServer, call: str) -> None:
    answer = server.process_request(f'{{"jsonrpc":"2.0","id":1,{call}}}')
    error = json.loads(answer)["error"]
    assert (error["code"], error["message"]) == (-32602, "Invalid params")
    assert error["data"]["reason"]
    assert len(answer) < 400


@rows("method", ["fail", "leave"])
def test_a_handler_that_fails_is_an_internal_error_without_a_word_of_why(
    server: JsonRpcServer, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    answer = server.process_request(f'{{"jsonrpc":"2.0","id":1,"method":"{method}"}}')
    assert json.loads(answer) == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Internal error"}}
    # Whoever runs the server does learn why.
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("assay", logging.ERROR)
    assert record.exc_info


def test_a_notification_that_fails_is_not_answered(server: JsonRpcServer, worker: Worker) -> None:
    assert server.process_request('{"jsonrpc":"2.0","method":"fail"}') == ""
    assert server.process_request('{"jsonrpc":"2.0","method":"refuse"}') == ""
    assert server.process_request('{"jsonrpc":"2.0","method":"subtract"}') == ""
    assert server.process_request('{"jsonrpc":"2.0","method":"tell","params":7}') == ""
    assert worker.noted == []
    assert server.process_request('{"jsonrpc":"2.0","method":"tell","params":[7]}') == ""
    assert worker.noted == [(7,)]


@rows(
    "make",
    [
        *(object, circular, lambda: float("nan"), lambda: [float("inf")], lambda: {1, 2}, lambda: b"bytes"),
        *(lambda: 10**5000, lambda: 10**400, lambda: "\ud800", lambda: {1: "a", "1": "b"}, lambda: iter("ab")),
        *(lambda: nested(128), lambda: nested(100_000), lambda: "x" * (16 << 20)),
    ],
)
def test_a_result_that_cannot_be_sent_is_an_internal_error(
    make: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Source: specs/002, Error Handling: the error is logged and a fallback error response is generated."""
    caplog.clear()
    server = JsonRpcServer("test")
    server.register_method("make", make)
    answer = json.loads(server.process_request('{"jsonrpc":"2.0","id":"a","method":"make"}'))
    assert answer == {"jsonrpc": "2.0", "id": "a", "error": {"code": -32603, "message": "Internal error"}}
    assert len(caplog.records) == 1


@rows(
    ("params", "error"),
    [
        ([], {"code": -32050, "message": "refused"}),
        ([-1, "no", {"why": [1]}], {"code": -1, "message": "no", "data": {"why": [1]}}),
        ([True, "no"], {"code": -32603, "message": "Internal error"}),
    ],
)
def test_a_handler_chooses_its_error_within_the_rules(server: JsonRpcServer, params: Any, error: Any) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "refuse", "params": params})
    assert json.loads(server.process_request(text))["error"] == error


def test_data_of_an_error_that_cannot_be_sent_is_an_internal_error(server: JsonRpcServer) -> None:
    def fail() -> None:
        raise JsonRpcError(-1, "no", object())

    server.register_method("unsendable", fail)
    answer = json.loads(server.process_request('{"jsonrpc":"2.0","id":1,"method":"unsendable"}'))
    assert answer["error"]["code"] == -32603


async def later() -> int:
    return 1


class Later:
    async def __call__(self) -> int:
        return 1


@rows(
    ("name", "function", "error"),
    [
        ("", print, ValueError),
        (None, print, ValueError),
        ("x", 5, TypeError),
        ("x", later, TypeError),
        ("x", Later(), TypeError),
    ],
)
def test_only_a_plain_function_with_a_name_can_be_registered(name: Any, function: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        JsonRpcServer("test").register_method(name, function)


# ── the client ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def client(server: JsonRpcServer) -> JsonRpcClient:
    return JsonRpcClient("c", server.process_request)


def test_a_client_and_a_server_work_together(client: JsonRpcClient, worker: Worker) -> None:
    assert client.call("subtract", [42, 23]) == 19
    assert client.call("subtract", {"minuend": 1}) == 1
    assert client.call("echo", [2**70]) == 2**70
    assert client.call("get_data") == ["hello", 5]
    client.notify("tell", ["hello"])
    client.notify("none")
    assert worker.noted == [("hello",)]
    sent: list[Any] = []
    noting = JsonRpcClient("me", lambda text: sent.append(json.loads(text)["id"]))
    for _ in range(3):
        with pytest.raises(JsonRpcError):
            noting.call("m")
    assert sent == ["me-1", "me-2", "me-3"]


def test_a_batch_gives_each_call_its_own_outcome_in_order(client: JsonRpcClient) -> None:
    one, two, three, four = client.batch(
        [("subtract", [3, 1]), ("none", None), ("get_data", None), ("refuse", [7, "seven", [7]])]
    )
    assert (one, three) == (2, ["hello", 5])
    assert isinstance(two, JsonRpcError)
    assert (two.code, two.message) == (-32601, "Method not found")
    assert isinstance(four, JsonRpcError)
    assert (four.code, four.message, four.data) == (7, "seven", [7])


@rows(
    ("method", "params", "code"),
    [("none", None, -32601), ("subtract", {}, -32602), ("fail", None, -32603), ("refuse", None, -32050)],
)
def test_an_error_is_raised(client: JsonRpcClient, method: str, params: Any, code: int) -> None:
    with pytest.raises(JsonRpcError) as raised:
        client.call(method, params)
    assert raised.value.code == code


@rows(
    ("method", "params"),
    [
        pytest.param("", None, id="empty-method"),
        pytest.param("m", 5, id="number-params"),
        pytest.param("m", [object()], id="no-json"),
        pytest.param("m", [float("nan")], id="nan"),
        pytest.param("m", [nested(1000)], id="too-deep"),
        pytest.param("m", ["x" * (16 << 20)], id="too-long"),
    ],
)
def test_what_is_no_request_is_not_sent(method: Any, params: Any) -> None:
    sent: list[str] = []
    client = JsonRpcClient("c", sent.append)
    for attempt in (
        lambda: client.call(method, params),
        lambda: client.notify(method, params),
        lambda: client.batch([(method, params)]),
        lambda: client.batch([]),
    ):
        with pytest.raises(JsonRpcError) as raised:
            attempt()
        assert raised.value.code == -32600
        assert raised.value.data["violations"]
    assert sent == []


@rows(
    ("answer", "code"),
    [
        pytest.param(None, -31011, id="none"),
        pytest.param("", -31011, id="empty"),
        pytest.param("<html>", -31010, id="no-json"),
        pytest.param(b"\xff", -31010, id="not-utf8"),
        pytest.param("{}", -31010, id="empty-object"),
        pytest.param('{"jsonrpc":"2.0","result":1}', -31010, id="no-id"),
        pytest.param('{"jsonrpc":"2.0","id":"c-2","result":1}', -31010, id="another-id"),
        pytest.param('{"jsonrpc":"2.0","id":"c-1","result":1,"error":{}}', -31010, id="result-and-error"),
        pytest.param('{"jsonrpc":"2.0","id":"c-1","error":"no"}', -31010, id="error-as-text"),
        pytest.param('{"jsonrpc":"2.0","id":"c-9","error":{"code":-1,"message":"no"}}', -31010, id="anothers-error"),
        pytest.param('{"jsonrpc":"2.0","id":"c-1","error":{"code":-1,"message":"no"}}', -1, id="error"),
        pytest.param('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}', -32700, id="unread"),
        pytest.param('{"jsonrpc":"2.0","id":"c-1","method":"m"}', -31010, id="a-request"),
    ],
)
def test_an_answer_that_is_none_is_raised_as_one_error(answer: Any, code: int) -> None:
    with pytest.raises(JsonRpcError) as raised:
        JsonRpcClient("c", lambda _: answer).call("m")
    assert raised.value.code == code


def test_answers_to_a_batch_are_matched_by_id_whatever_their_order() -> None:
    def transport(text: str) -> str:
        answers: list[Any] = [
            {"jsonrpc": "2.0", "id": each["id"], "result": each["method"]} for each in json.loads(text)
        ]
        first, second, third, fourth, _ = answers
        third["id"] = True
        return json.dumps([5, fourth, {"jsonrpc": "2.0", "id": "c-99", "result": 1}, fourth, second, third, first])

    one, two, three, four, five = JsonRpcClient("c", transport).batch([(name, None) for name in "abcde"])
    assert (one, two) == ("a", "b")
    assert [each.code for each in (three, four, five)] == [-31011, -31010, -31011]


@rows(
    ("answer", "code"),
    [
        (None, -31011),
        ("{}", -31010),
        ("1", -31010),
        ('{"jsonrpc":"2.0","id":"c-1","result":1}', -31010),
        ('{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches"}}', -32600),
    ],
)
def test_one_answer_to_a_whole_batch_is_raised(answer: str | None, code: int) -> None:
    with pytest.raises(JsonRpcError) as raised:
        JsonRpcClient("c", lambda _: answer).batch([("a", None), ("b", None)])
    assert raised.value.code == code

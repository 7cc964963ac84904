"""specs/002: building and checking plain JSON-RPC 2.0."""

from typing import Any
from uuid import UUID

import pytest

from assay.api.jsonrpc import JsonRpc, JsonRpcValidator
from kit.rows import rows

NAN = float("nan")


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@rows(
    ("made", "message"),
    [
        (
            JsonRpc.create_request("tools/list", {"cursor": "c"}, "r-1"),
            {"jsonrpc": "2.0", "id": "r-1", "method": "tools/list", "params": {"cursor": "c"}},
        ),
        (JsonRpc.create_request("add", [1, 2], 0), {"jsonrpc": "2.0", "id": 0, "method": "add", "params": [1, 2]}),
        (JsonRpc.create_notification("ping"), {"jsonrpc": "2.0", "method": "ping"}),
        (JsonRpc.create_notification("log", {}), {"jsonrpc": "2.0", "method": "log", "params": {}}),
        (JsonRpc.create_response("r-1", None), {"jsonrpc": "2.0", "id": "r-1", "result": None}),
        (
            JsonRpc.create_error_response(None, -32700, "Parse error"),
            {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}},
        ),
        (
            JsonRpc.create_error_response(7, -32000, "no", {"why": 1}),
            {"jsonrpc": "2.0", "id": 7, "error": {"code": -32000, "message": "no", "data": {"why": 1}}},
        ),
    ],
)
def test_a_message_is_built_as_the_specification_writes_it(made: dict[str, Any], message: dict[str, Any]) -> None:
    assert made == message
    check = JsonRpc.validate_request if "method" in made else JsonRpc.validate_response
    assert check(made) == {"valid": True, "errors": []}


def test_a_request_without_an_id_of_its_own_gets_a_fresh_uuid() -> None:
    one, other = JsonRpc.create_request("a"), JsonRpc.create_request("a")
    assert str(UUID(one["id"])) == one["id"]
    assert one["id"] != other["id"]


REQUEST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "m"}
RESPONSE: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "result": {}}


@rows(
    ("request_", "rules"),
    [
        (REQUEST, []),
        (REQUEST | {"id": 1.5}, []),
        (REQUEST | {"id": None}, []),
        ({"jsonrpc": "2.0", "method": "m"}, []),
        (REQUEST | {"id": True}, ["envelope/id"]),
        (REQUEST | {"jsonrpc": "1.0"}, ["envelope/jsonrpc"]),
        ({"jsonrpc": "2.0", "id": 1}, ["envelope/method"]),
        (REQUEST | {"method": ""}, ["envelope/method"]),
        (REQUEST | {"params": None}, ["envelope/params"]),
        (REQUEST | {"result": 1}, ["envelope/members"]),
        (
            {"id": True, "method": 1, "params": 1},
            ["envelope/jsonrpc", "envelope/method", "envelope/id", "envelope/params"],
        ),
        (None, ["envelope/message"]),
        (object(), ["envelope/message"]),
    ],
)
def test_every_fault_of_a_request_is_listed(request_: Any, rules: list[str]) -> None:
    """Source: specs/002, Request Validation."""
    report = JsonRpc.validate_request(request_)
    assert report["valid"] is not bool(rules)
    assert [error[error.rindex("[") + 1 : -1] for error in report["errors"]] == rules


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
GOOD_DATA: list[Any] = [None, False, {"a": [1, 2.5, "ä", {"b": None}]}]
BAD_DATA = [{1}, b"x", object(), {"a": [{"b": {1}}]}, {(1, 2): 3}, NAN, CYCLE, nested(100_000), "\ud800"]


def failed(**error: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": error}


def test_what_is_no_json_value_is_named_by_its_type() -> None:
    message = JsonRpc.create_error_response(1, -1, "m", {"why": {1}})
    assert JsonRpc.validate_response(message)["errors"] == [
        "/error/data: expected a JSON value, found a Python set [envelope/error]"
    ]
    assert JsonRpc.validate_batch_response([message])["errors"][0].startswith("entry 0: /error/data")


@rows(
    ("response", "rules"),
    [
        (RESPONSE, []),
        (RESPONSE | {"result": None}, []),
        (RESPONSE | {"id": None}, []),
        ({"jsonrpc": "2.0", "result": 1}, ["envelope/id"]),
        ({"jsonrpc": "2.0", "id": 1}, ["envelope/members"]),
        (RESPONSE | {"error": {"code": 1, "message": "m"}}, ["envelope/members"]),
        (failed() | {"error": "no"}, ["envelope/error"]),
        (failed(), ["envelope/error"] * 2),
        (failed(code=1.5, message=2), ["envelope/error"] * 2),
        (RESPONSE | {"result": {1, 2}}, ["envelope/result"]),
        *((failed(code=1, message="m", data=data), []) for data in GOOD_DATA),
        *((failed(code=1, message="m", data=data), ["envelope/error"]) for data in BAD_DATA),
        (7, ["envelope/message"]),
    ],
)
def test_every_fault_of_a_response_is_listed(response: Any, rules: list[str]) -> None:
    """Source: specs/002, Response Validation."""
    report = JsonRpc.validate_response(response)
    assert report["valid"] is not bool(rules)
    assert [error[error.rindex("[") + 1 : -1] for error in report["errors"]] == rules


@rows("check", [JsonRpc.validate_batch_request, JsonRpc.validate_batch_response])
@rows("batch", [pytest.param([], id="empty"), pytest.param({}, id="object"), pytest.param(None, id="null")])
def test_a_batch_is_an_array_that_is_not_empty(check: Any, batch: Any) -> None:
    """Source: specs/002, Batch Request/Response Validation."""
    report = check(batch)
    assert not report["valid"]
    assert len(report["errors"]) == 1


def test_faults_in_a_batch_carry_the_index_of_their_entry() -> None:
    """Source: specs/002, Error Handling."""
    report = JsonRpc.validate_batch_request([REQUEST, {"jsonrpc": "2.0"}, REQUEST, 5])
    assert [error.split(":")[0] for error in report["errors"]] == ["entry 1", "entry 3"]
    report = JsonRpc.validate_batch_response([RESPONSE, RESPONSE | {"id": [], "jsonrpc": "1"}])
    assert [error.split(":")[0] for error in report["errors"]] == ["entry 1", "entry 1"]
    assert JsonRpcValidator.validate_batch_request([REQUEST])["valid"]
    assert JsonRpc.validate_batch_response([RESPONSE])["valid"]


SCHEMA = {
    "type": "object",
    "properties": {"limit": {"type": "integer"}, "sort": {"$ref": "#/$defs/order"}, "tags": {"type": "array"}},
    "required": ["limit"],
    "additionalProperties": False,
    "$defs": {"order": {"enum": ["up", "down"]}},
}


@rows(
    ("arguments", "places"),
    [
        pytest.param({"limit": 1}, [], id="least"),
        pytest.param({}, ["arguments"], id="missing"),
        pytest.param({"limit": "1"}, ["/limit"], id="wrong-type"),
        pytest.param({"limit": 1, "sort": "left"}, ["/sort"], id="behind-a-reference"),
        pytest.param({"limit": 1, "more": 1}, ["/more"], id="unknown"),
        pytest.param({"limit": NAN}, ["arguments"], id="nan"),
        pytest.param({"limit": object()}, ["arguments"], id="no-json"),
        pytest.param({"limit": 1, "tags": nested(100_000)}, ["arguments"], id="deep-enough-to-crash-the-engine"),
    ],
)
def test_tool_parameters_go_through_the_whole_of_json_schema(arguments: Any, places: list[str]) -> None:
    """Source: specs/002, Tool Parameter Validation; the design asks for the full engine."""
    report = JsonRpc.validate_tool_params("search", SCHEMA, arguments)
    assert report["valid"] is not bool(places)
    assert sorted(error.split(": ")[1] for error in report["errors"]) == places
    assert all(error.startswith("search: ") for error in report["errors"])


def circular() -> dict[str, Any]:
    schema: dict[str, Any] = {}
    schema["not"] = schema
    return schema


@rows(
    ("schema", "rule"),
    [
        pytest.param({"type": "strnig"}, "contract/schema", id="no-schema"),
        pytest.param({"$ref": "http://127.0.0.1:1/x"}, "contract/remote-ref", id="never-fetched"),
        pytest.param(circular(), "contract/schema-size", id="a-python-cycle"),
    ],
)
def test_a_schema_that_cannot_be_used_is_a_fault_and_no_exception(schema: Any, rule: str) -> None:
    report = JsonRpc.validate_tool_params("search", schema, {})
    assert not report["valid"]
    assert report["errors"][0].endswith(f"[{rule}]")


def test_of_very_many_faults_some_are_listed_and_the_rest_is_counted() -> None:
    """Source: hostile-input, a million faults in one message."""
    report = JsonRpc.validate_tool_params("t", {"items": {"type": "string"}}, list(range(5000)))
    assert len(report["errors"]) == 21
    assert "more" in report["errors"][-1]


@rows(
    ("uri", "valid"),
    [
        ("resource://weather/today", True),
        ("resource://weather", True),
        ("resource://", False),
        ("resource:///today", False),
        ("resource:// /today", False),
        ("resource:/weather", False),
        ("RESOURCE://weather", False),
        ("file:///etc/passwd", False),
        (None, False),
        (b"resource://weather", False),
    ],
)
def test_a_resource_uri_names_a_provider(uri: Any, valid: bool) -> None:
    """Source: specs/002, Resource URI Validation."""
    assert JsonRpc.validate_resource_uri(uri) is valid


@rows(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, null, true]}', {"a": [1, 2.5, None, True]}),
        ("null", None),
        (b'"\xc3\xa9"', "é"),
        (str(2**70), 2**70),
        ("[" * 128 + "]" * 128, None),
    ],
)
def test_json_text_is_read_exactly(text: str | bytes, value: Any) -> None:
    ok, read, error = JsonRpc.validate_json_string(text)
    assert (ok, error) == (True, None)
    assert type(read) is (list if value is None and text != "null" else type(value))
    assert read == value or value is None


@rows(
    ("text", "rule"),
    [
        pytest.param("", "syntax/json", id="empty"),
        pytest.param('"\ud800"', "syntax/utf8", id="half-a-pair-in-the-text"),
        pytest.param(b"\xff", "syntax/utf8", id="not-utf8"),
        pytest.param('"' + "x" * (16 << 20) + '"', "framing/size", id="too-long"),
        pytest.param('"' + "é" * (1 << 23) + '"', "framing/size", id="too-long-in-bytes"),
        pytest.param(None, "syntax/json", id="no-text"),
        pytest.param(10**12, "syntax/json", id="a-number-is-not-allocated"),
    ],
)
def test_text_that_is_no_json_is_refused_with_a_reason(text: Any, rule: str) -> None:
    ok, value, error = JsonRpc.validate_json_string(text)
    assert (ok, value) == (False, None)
    assert error is not None
    assert error.endswith(f"[{rule}]")
    assert len(error) < 300

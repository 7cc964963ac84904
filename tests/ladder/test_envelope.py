"""A JSON value into a JSON-RPC message, by each profile."""

from typing import Any

import pytest

from assay.ladder.envelope import JSONRPC, MCP, STRICT, STRICT_UUID, Profile, check, classify, read
from kit.rows import rows

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
DONE = {"jsonrpc": "2.0", "id": 1, "result": {}}
FAILED = {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}


@rows(
    ("value", "kind"),
    [
        (PING, "request"),
        ({**PING, "id": "a", "params": {}, "extra": 1}, "request"),
        ({"jsonrpc": "2.0", "method": "ping"}, "notification"),
        (DONE, "result"),
        (FAILED, "error"),
        ({**PING, "id": 1.0}, "request"),
    ],
)
def test_what_a_message_is(value: Any, kind: str) -> None:
    assert read(value) == (kind, ())
    assert classify(value) in {kind, None}


@rows(
    ("value", "rules"),
    [
        pytest.param(42, ["envelope/message"], id="number"),
        pytest.param(None, ["envelope/message"], id="null"),
        pytest.param({}, ["envelope/jsonrpc", "envelope/members", "envelope/id"], id="empty-object"),
        pytest.param({**PING, "jsonrpc": 2.0}, ["envelope/jsonrpc"], id="version-as-a-number"),
        pytest.param({**PING, "id": True}, ["envelope/id"], id="true"),
        pytest.param({**PING, "id": None}, ["envelope/id"], id="null-id"),
        pytest.param({**PING, "id": 1.5}, ["envelope/id"], id="fraction"),
        pytest.param({**PING, "id": "x" * 2000}, ["envelope/id"], id="long-id"),
        pytest.param({**PING, "method": 5}, ["envelope/method"], id="method-as-a-number"),
        pytest.param({**PING, "method": ""}, ["envelope/method"], id="empty-method"),
        pytest.param({**PING, "params": []}, ["envelope/params"], id="params-as-an-array"),
        pytest.param({**PING, "result": {}}, ["envelope/members"], id="method-and-result"),
        pytest.param({**PING, **FAILED, **DONE}, ["envelope/members", "envelope/members"], id="all-three"),
        pytest.param({**DONE, **FAILED}, ["envelope/members"], id="result-and-error"),
        pytest.param({**DONE, "result": "done"}, ["envelope/result"], id="result-as-a-string"),
        pytest.param({**DONE, "result": None}, ["envelope/result"], id="result-null"),
        pytest.param({**FAILED, "error": "no"}, ["envelope/error"], id="error-as-a-string"),
        pytest.param({**FAILED, "error": {"code": "1"}}, ["envelope/error", "envelope/error"], id="code-as-text"),
        pytest.param({**FAILED, "error": {"code": True, "message": ""}}, ["envelope/error"], id="code-true"),
        pytest.param({"jsonrpc": "2.0", "result": {}}, ["envelope/id"], id="result-without-id"),
    ],
)
def test_every_fault_of_an_envelope_is_listed(value: Any, rules: list[str]) -> None:
    assert classify(value) is None
    assert [each.rule for each in read(value)[1]] == rules


@rows(
    ("profile", "value", "good"),
    [
        (JSONRPC, {**PING, "id": None}, True),
        (JSONRPC, {**PING, "id": 1.5}, True),
        (JSONRPC, {**PING, "id": True}, False),
        (JSONRPC, {**PING, "params": [1]}, True),
        (JSONRPC, {**DONE, "result": "done"}, True),
        (MCP, {**PING, "id": None}, False),
        (MCP, PING, True),
        (STRICT, PING, False),
        (STRICT, {**PING, "id": "1"}, False),
        (STRICT, {**PING, "id": "1", "params": {}}, True),
        (STRICT_UUID, {**PING, "id": "1", "params": {}}, False),
        (STRICT_UUID, {**PING, "id": "8b3e5f6c-0a2f-4ed4-a3fb-9e0b2f8f8d3a", "params": {}}, True),
    ],
)
def test_the_profile_decides_what_an_envelope_may_hold(profile: Profile, value: Any, good: bool) -> None:
    assert (list(check(value, profile)) == []) is good


def test_an_error_may_lack_an_id_where_the_revision_says_so() -> None:
    unread = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}}
    assert [each.rule for each in check(unread)] == ["envelope/id"]
    assert list(check(unread, error_id=False)) == []

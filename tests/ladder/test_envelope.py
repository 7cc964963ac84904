"""A JSON value into a JSON-RPC message, by each profile."""

from typing import Any

from assay.ladder.envelope import JSONRPC, MCP, STRICT, STRICT_UUID, Profile, check
from kit.rows import rows

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
DONE = {"jsonrpc": "2.0", "id": 1, "result": {}}


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

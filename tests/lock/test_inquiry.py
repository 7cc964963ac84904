"""A client that only lists: its answers to the server's own requests."""

import json
import time
from collections import deque
from typing import Any

import pytest

from assay.edges.probe.capabilities import ALL_CAPABILITIES, NO_CAPABILITIES
from assay.edges.probe.server_probe import CLIENT, Inquiry
from assay.lock.locked import KINDS
from assay.model.limits import DEFAULT
from kit.locking import FIND, SECONDS
from kit.rows import rows

SELF = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "a", "version": "1"}}


class AskingServer:
    """A line to a server that answers initialize, and then sends one request of its own before its list."""

    status = None

    def close(self) -> tuple[bytes, ...]:
        """Nothing more comes."""
        return ()

    def __init__(self, method: str, params: Any) -> None:
        self.heard: list[dict[str, Any]] = []
        self._asked = {"jsonrpc": "2.0", "id": "s", "method": method, "params": params}
        self._frames: deque[bytes] = deque()

    def say(self, frame: bytes, *_: Any) -> None:
        """Take a message, and queue what comes in answer to it."""
        message = json.loads(frame)
        self.heard.append(message)
        if message.get("method") == "initialize":
            self._queue(message["id"], SELF)
        if message.get("method") == "tools/list":
            self._frames.append(json.dumps(self._asked).encode())
            self._queue(message["id"], {"tools": [FIND]})

    def hear(self, _: float) -> bytes:
        """Return the next frame."""
        return self._frames.popleft()

    def _queue(self, ident: Any, result: Any) -> None:
        self._frames.append(json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}).encode())


def asked_by_server(method: str, params: Any, capabilities: Any) -> tuple[dict[str, Any], list[str]]:
    """Our answer to a request of the server, and what was logged."""
    line, logged = AskingServer(method, params), list[str]()
    inquiry = Inquiry(line, logged.append, DEFAULT, time.monotonic() + SECONDS, CLIENT, capabilities)
    inquiry.initialize()
    assert list(inquiry.listed(KINDS[0])) == ["find_books"]
    [answered] = [each for each in line.heard if "method" not in each]
    assert answered["id"] == "s"
    return answered, logged


MESSAGE = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 9}
SIGN_IN = {"mode": "url", "message": "Sign in", "url": "https://a.example/", "elicitationId": "1"}
FORM = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}


@rows(
    ("method", "params", "answer"),
    [
        pytest.param("ping", {}, {}, id="ping"),
        pytest.param("roots/list", {}, {"roots": []}, id="roots"),
        pytest.param("elicitation/create", FORM, {"action": "decline"}, id="elicitation"),
        pytest.param("elicitation/create", SIGN_IN, {"action": "decline"}, id="elicitation-by-url"),
        pytest.param("sampling/createMessage", MESSAGE, -1, id="sampling"),
        pytest.param("elicitation/create", {**FORM, "task": {}}, -1, id="elicitation-as-a-task"),
        pytest.param("tasks/list", {}, {"tasks": []}, id="tasks"),
        pytest.param("tasks/get", {"taskId": "t"}, -32602, id="an-unknown-task"),
    ],
)
def test_a_client_with_all_capabilities_answers_what_the_server_asks(method: str, params: Any, answer: Any) -> None:
    """With a result, or with an error of that code."""
    answered, logged = asked_by_server(method, params, ALL_CAPABILITIES)
    assert (answered["result"] if "result" in answered else answered["error"]["code"]) == answer
    assert logged == []


@rows(
    ("method", "params"),
    [("roots/list", {}), ("sampling/createMessage", MESSAGE), ("elicitation/create", FORM), ("tasks/list", {})],
)
def test_a_client_without_capabilities_does_not_know_these_methods(method: str, params: Any) -> None:
    answered, logged = asked_by_server(method, params, NO_CAPABILITIES)
    assert answered["error"]["code"] == -32601
    assert "protocol/capability" in logged[0]

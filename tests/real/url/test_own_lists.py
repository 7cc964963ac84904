"""The guard's own request for the tools of a server at a URL: one for each page, and none that is not needed."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.http_client import BOTH, INITIALIZED, Service, call, initialize, notification, request
from kit.scripted_http import REVISION, TOOL, Liar, Peer, Received, guarding, lying, result

SESSION = "s1"
INFORMATION = {"name": "a", "version": "1"}
ANSWER: dict[str, Any] = {"content": [], "structuredContent": {"found": 1}}


@pytest.fixture
def where(tmp_path: Path) -> Iterator[tuple[Service, Liar]]:
    with lying() as liar, guarding(tmp_path, liar.url, "--mode", "enforce") as guard:
        liar.shows_lists = True
        yield guard, liar


def opened(guard: Service) -> dict[str, str]:
    """Return the headers of a session."""
    answer = guard.post(initialize(REVISION), BOTH)
    headers = {**BOTH, "mcp-session-id": answer.header("mcp-session-id") or ""}
    assert guard.post(INITIALIZED, headers).status == 202
    return headers


def serving(lists: Any) -> Any:
    """Return the script of a server that answers the guard's list by *lists*."""

    def script(received: Received, peer: Peer) -> None:
        if received.method != "POST":
            peer.head(405, content_length="0")
            return
        message = received.message
        method = message.get("method")
        if method == "initialize":
            told = {"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": INFORMATION}
            peer.json(result(message, told), mcp_session_id=SESSION)
        elif method == "tools/list":
            lists(message, peer)
        elif "id" in message:
            peer.json(result(message, ANSWER))
        else:
            peer.head(202, content_length="0")

    return script


@pytest.mark.parametrize("wrong", ["another-id", "no-json", "batch"])
def test_an_answer_that_is_not_that_of_the_list_is_not_asked_for_again(where: tuple[Service, Liar], wrong: str) -> None:
    guard, liar = where

    def lists(message: Any, peer: Peer) -> None:
        right = result(message, {"tools": [TOOL]})
        if wrong == "no-json":
            peer.head(200, content_type="text/html", content_length="2")
            peer.send(b"no")
        else:
            peer.json({**right, "id": "other"} if wrong == "another-id" else [right])

    liar.script = serving(lists)
    headers = opened(guard)
    assert "result" in guard.post(call(1, "search", {"words": "sea"}), headers).json()
    assert liar.asked().count("tools/list") == 1


def test_other_messages_before_the_list_are_passed_over(where: tuple[Service, Liar]) -> None:
    """One of them even has the id of the request in it."""
    guard, liar = where

    def lists(message: Any, peer: Peer) -> None:
        log = notification("notifications/message", {"level": "info", "data": f'"id":"{message["id"]}"'})
        peer.events(log, result(message, {"tools": [TOOL]}))

    liar.script = serving(lists)
    headers = opened(guard)
    answer = guard.post(call(1, "search", {"words": 5}), headers).json()
    assert answer["result"]["isError"] is True
    assert liar.asked().count("tools/call") == 0


def test_a_call_whose_client_has_gone_meanwhile_is_not_forwarded(where: tuple[Service, Liar]) -> None:
    guard, liar = where
    asked, go = threading.Event(), threading.Event()

    def lists(message: Any, peer: Peer) -> None:
        asked.set()
        assert go.wait(10)
        peer.json(result(message, {"tools": [TOOL]}))

    liar.script = serving(lists)
    headers = opened(guard)
    wire = guard.open()
    body = json.dumps(call(1, "search", {"words": "sea"})).encode()
    wire.say("POST", "/mcp", body, {**headers, "content-type": "application/json"})
    assert asked.wait(10)
    wire.socket.close()
    # The guard sees that the client has gone before it answers this.
    assert guard.post(request(2, "ping"), headers).status == 200
    go.set()
    assert "result" in guard.post(call(3, "search", {"words": "again"}), headers).json()
    called = [each.message for each in liar.seen if each.body and each.message.get("method") == "tools/call"]
    assert [each["params"]["arguments"] for each in called] == [{"words": "again"}]

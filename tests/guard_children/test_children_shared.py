"""Sessions that share a child: opened once, told apart, and each with what is its own."""

import json
from pathlib import Path
from typing import Any

import pytest
from guarded import result
from hosted import NEWEST, begun, hosting
from http_client import (
    BOTH,
    INITIALIZED,
    Service,
    call,
    events,
    frame_of,
    initialize,
    modern,
    notification,
    request,
    until,
)

from assay.edges.response_stream import ResponseStream
from assay.edges.stateless_requests import NoResponse
from assay.spec.revisions import LATEST

ASKS = {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
LISTENING = {"accept": "text/event-stream"}


def opened(
    service: Service, ident: Any = "open", revision: str = NEWEST, x_principal: str = "anonymous", **capabilities: Any
) -> dict[str, Any]:
    """The headers of a new session."""
    message = initialize(revision, ident)
    message["params"]["capabilities"] = capabilities
    answer = service.post(message, x_principal=x_principal)
    assert answer.status == 200, answer
    assert answer.json()["id"] == ident
    headers = {**BOTH, "mcp-session-id": answer.header("mcp-session-id") or "", "x-principal": x_principal}
    assert service.post(INITIALIZED, headers).status == 202
    return headers


def lines(path: Path) -> list[dict[str, Any]]:
    """The messages that all children have received so far."""
    return [json.loads(each) for each in path.read_text().split("\n") if each.startswith("{")]


def methods(path: Path) -> list[str]:
    """What they were asked and told."""
    return [each.get("method", "answer") for each in lines(path)]


def test_sessions_that_are_opened_in_the_same_way_share_a_child_that_is_opened_once(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with hosting(tmp_path, "--shared", received=str(received)) as service:
        sessions = [opened(service, ident) for ident in ("a", 1, 2)]
        for headers in sessions:
            answer = service.post(call(1, "search", {"words": "sea"}), headers)
            assert answer.json()["id"] == 1
        assert methods(received)[:2] == ["initialize", "notifications/initialized"]
        assert methods(received)[2:] == ["tools/call"] * 3
        assert len({each["id"] for each in lines(received)[2:]}) == 3
        opened(service, roots={})
        opened(service, revision="2025-06-18")
        assert methods(received).count("initialize") == 3


def test_who_comes_while_the_child_is_being_opened_waits_for_the_same_answer(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with hosting(tmp_path, "--shared", "--timeout", "6", on={"initialize": []}, received=str(received)) as service:
        wires = [begun(service, initialize(NEWEST, ident), BOTH) for ident in ("a", "b")]
        answers = [wire.answer() for wire in wires]
        assert [each.json()["id"] for each in answers] == ["a", "b"]
        assert [each.error()["code"] for each in answers] == [-31012, -31012]
        assert methods(received).count("initialize") == 1
        assert service.post(initialize(NEWEST)).error()["code"] == -31012
        until(lambda: methods(received).count("initialize") == 2)


def test_news_go_to_everybody_and_a_question_to_the_one_who_has_asked_something(tmp_path: Path) -> None:
    received = tmp_path / "received"
    on = {"tools/call": [["say", CHANGED], ["say", ASKS]], "answer": [["say", result(3, {"content": []})]]}
    with hosting(tmp_path, "--shared", on=on, received=str(received)) as service:
        one, other = opened(service, roots={}), opened(service, roots={})
        # The second request is that of the guard for the tools.
        listening = begun(service, None, {**other, **LISTENING}, "GET")
        listening.head()
        wire = begun(service, call("mine", "search", {"words": "a"}), one)
        wire.head()
        wire.until(b"roots/list")
        listening.until(b"list_changed")
        assert b"roots/list" not in listening.held
        answer = result(1, {"roots": []})
        assert service.post(answer, other).status == 202, "nobody has asked it"
        assert service.post(answer, one).status == 202
        assert b'"id":"mine"' in wire.until(b"content")
        assert methods(received).count("answer") == 1


def test_principals_never_share_a_child(tmp_path: Path) -> None:
    """News of a child go to every session that shares it, and one session can make it end."""
    received = tmp_path / "received"
    on = {"tools/call": [["say", CHANGED], ["good"]], "prompts/list": [["exit", 3]]}
    with hosting(tmp_path, "--shared", on=on, received=str(received)) as service:
        alice, again, bob = (opened(service, x_principal=who) for who in ("alice", "alice", "bob"))
        assert methods(received).count("initialize") == 2
        listening = begun(service, None, {**bob, **LISTENING}, "GET")
        listening.head()
        heard = begun(service, None, {**again, **LISTENING}, "GET")
        heard.head()
        service.post(call(1, "search", {"words": "a"}), alice)
        heard.until(b"list_changed")
        assert b"it exited with status 3" in service.post(request(2, "prompts/list"), alice).body
        assert service.post(request(3, "ping"), alice).status == 404
        assert service.post(request(3, "ping"), bob).status == 200
        assert service.ask("DELETE", headers=bob).status == 200
        assert b"list_changed" not in b"".join(iter(listening.chunk, b""))


def test_a_question_of_which_nobody_can_say_whose_it_is_is_answered_with_an_error(tmp_path: Path) -> None:
    received = tmp_path / "received"
    on = {"notifications/roots/list_changed": [["say", ASKS]]}
    with hosting(tmp_path, "--shared", on=on, received=str(received)) as service:
        headers = opened(service, roots={"listChanged": True})
        service.post(notification("notifications/roots/list_changed"), headers)
        until(lambda: methods(received)[-1] == "answer")
        assert lines(received)[-1]["error"]["code"] == -31011
        assert service.post(request(1, "ping"), headers).status == 200


def test_cancelling_is_for_ones_own_requests(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with hosting(tmp_path, "--shared", on={"tools/call": []}, received=str(received)) as service:
        one, other = opened(service), opened(service)
        begun(service, call(7, "search", {"words": "a"}), one).head()
        begun(service, call(7, "search", {"words": "b"}), other).head()
        calls = {
            each["params"]["arguments"]["words"]: each["id"] for each in lines(received) if "arguments" in str(each)
        }
        service.post(notification("notifications/cancelled", {"requestId": 7}), other)
        until(lambda: methods(received)[-1] == "notifications/cancelled")
        assert lines(received)[-1]["params"]["requestId"] == calls["b"]


def test_the_end_of_a_session_cancels_what_it_has_open_and_leaves_the_others(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with hosting(tmp_path, "--shared", on={"tools/call": []}, received=str(received)) as service:
        one, other = opened(service), opened(service)
        wire = begun(service, call(7, "search", {"words": "a"}), one)
        wire.head()
        service.ask("DELETE", headers=one)
        assert b"the session was ended" in b"".join(iter(wire.chunk, b""))
        until(lambda: methods(received)[-1] == "notifications/cancelled")
        assert service.post(request(1, "ping"), other).json()["id"] == 1


def test_when_a_shared_child_dies_every_session_is_gone_and_the_next_has_another(tmp_path: Path) -> None:
    flights = tmp_path / "flights"
    with hosting(tmp_path, "--shared", "--flights", str(flights), on={"tools/call": [["exit", 3]]}) as service:
        one, other = opened(service), opened(service)
        answer = service.post(call(1, "search", {"words": "a"}), one)
        assert b"it exited with status 3" in answer.body
        assert [service.post(request(1, "ping"), each).status for each in (one, other)] == [404, 404]
        until(lambda: service.post(initialize(NEWEST)).header("mcp-session-id") is not None)
    assert len(list(flights.iterdir())) == 2


LOGGED = {"io.modelcontextprotocol/logLevel": "info"}


@pytest.mark.parametrize("revision", [NEWEST, LATEST])
def test_a_client_that_does_not_read_gets_one_error_and_the_child_is_told(tmp_path: Path, revision: str) -> None:
    """Nobody else waits for it; when it reads at last, the error is what its response ends with."""
    received = tmp_path / "received"
    with hosting(tmp_path, "--shared", on={"tools/call": [["notes", 400, 60_000]]}, received=str(received)) as service:
        asking = call("mine", "search", {"words": "a"}, revision if revision == LATEST else "")
        if revision == LATEST:
            asking["params"]["_meta"] |= LOGGED
        headers = modern(asking) if revision == LATEST else opened(service)
        with service.open() as wire:
            wire.say("POST", "/mcp", frame_of(asking), headers)
            until(lambda: received.exists() and "notifications/cancelled" in methods(received))
            wire.head()
            last = json.loads(events(b"".join(iter(wire.chunk, b"")))[-1]["data"])
        assert (last["id"], last["error"]["code"]) == ("mine", -31011)
        assert "did not take what it was sent" in last["error"]["data"]["detail"]
        assert service.post(request(1, "ping"), opened(service)).status == 200


def test_what_is_cut_off_is_not_the_answer() -> None:
    post = ResponseStream(as_json=True, as_stream=True, due=(1,))
    for size in (2 << 20, 1):
        post.say(b"x" * size)
    post.answer(b"the answer", 1)
    post.cut()
    assert post.ended
    [only] = events(post.take())
    assert only["data"] == "the answer"


def test_late_answers_to_a_client_that_is_gone_are_not_kept() -> None:
    """Every request that is over shares this response, so what it kept would stay for ever."""
    gone = NoResponse()
    gone.say(b'{"jsonrpc":"2.0","method":"notifications/message"}')
    gone.answer(b'{"jsonrpc":"2.0","id":1,"result":{}}', 1)
    assert gone.waiting == 0


def test_an_answer_of_some_megabytes_comes_as_an_event(tmp_path: Path) -> None:
    long = ["long", '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"', 3 << 20, '"}]}}\n']
    with hosting(tmp_path, "--shared", on={"tools/call": [long]}) as service:
        headers = {**opened(service), **LISTENING}
        events = service.post(call(7, "search", {"words": "a"}), headers).events()
        assert [json.loads(each["data"])["id"] for each in events if each.get("data")] == [7]


def test_a_handshake_that_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    with hosting(tmp_path, "--shared") as service:
        message = json.dumps(initialize(NEWEST)).replace('"capabilities": {', '"capabilities": {"a": ' + "[" * 500)
        assert "[[[" in message
        deep = message.replace("[" * 500, "[" * 500 + "]" * 500, 1)
        assert service.post(deep.encode()).status == 400
        assert opened(service)

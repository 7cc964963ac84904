"""Sessions of the handshake revisions, each with a child of its own: opened, spoken in, broken, ended."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.guard_process import Watched, liar, result
from kit.hosted import NEWEST, begun, hosting
from kit.http_client import (
    BOTH,
    INITIALIZED,
    Service,
    Wire,
    call,
    command,
    events,
    initialize,
    modern,
    notification,
    request,
    until,
)

SESSIONS = [each for each in REVISIONS if handshake(each)]
ASKS = {"jsonrpc": "2.0", "id": "s1", "method": "roots/list"}
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}


def opened(service: Service, revision: str = NEWEST, **capabilities: Any) -> dict[str, Any]:
    """The headers of a new session."""
    message = initialize(revision)
    message["params"]["capabilities"] = capabilities
    answer = service.post(message)
    assert answer.status == 200, answer
    headers = {**BOTH, "mcp-session-id": answer.header("mcp-session-id") or ""}
    assert headers["mcp-session-id"]
    assert service.post(INITIALIZED, headers).status == 202
    return headers


def said(wire: Wire) -> list[dict[str, Any]]:
    """The messages of a response, JSON or events, without those that only give an id."""
    answer = wire.answer()
    assert answer.status == 200, answer
    if answer.header("content-type") == "application/json":
        return [answer.json()]
    return [json.loads(each["data"]) for each in answer.events() if each.get("data")]


# ── opened and ended ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", SESSIONS)
def test_a_session_is_opened_spoken_in_and_ended(tmp_path: Path, revision: str) -> None:
    with hosting(tmp_path) as service:
        headers = opened(service, revision)
        assert service.post(request(1, "tools/list"), headers).json()["result"]["tools"][0]["name"] == "search"
        assert service.post(call("1", "search", {"words": "sea"}), headers).json()["id"] == "1"
        assert service.ask("DELETE", headers=headers).status == 200
        assert service.post(request(2, "tools/list"), headers).status == 404


def test_every_session_has_a_child_of_its_own_which_ends_with_it(tmp_path: Path) -> None:
    with hosting(tmp_path, start=[["stubborn"], ["pid"]], received=str(tmp_path / "pids")) as service:
        first, second = opened(service), opened(service)
        pids = [line for line in (tmp_path / "pids").read_text().split("\n") if line.isdigit()]
        one, other = (Watched(int(each)) for each in pids)
        service.ask("DELETE", headers=first)
        until(lambda: not one.is_alive())
        assert other.is_alive()
        assert service.post(request(1, "ping"), second).status == 200
        service.signal(signal.SIGTERM)
        until(lambda: not other.is_alive())


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_somebody_elses_session_is_none(tmp_path: Path, mode: str) -> None:
    """Whatever is asked of it, in whatever revision: 404, as for one that never was."""
    with hosting(tmp_path, "--mode", mode) as service:
        sessions = {each: opened(service, each) for each in SESSIONS}
        for revision, headers in sessions.items():
            theirs = {**headers, "x-principal": "mallory", "mcp-protocol-version": revision}
            asks = [request(1, "ping"), call(2, "search", {"words": "a"}), notification("notifications/cancelled", {})]
            statuses = [service.post(each, theirs).status for each in [*asks, result(5, {}), initialize(revision)]]
            listens = {**theirs, "accept": "text/event-stream"}
            statuses += [
                service.ask("GET", headers=each).status for each in (listens, {**listens, "last-event-id": "1-0"})
            ]
            statuses.append(service.ask("DELETE", headers=theirs).status)
            assert statuses == [404] * 8, revision
        for headers in sessions.values():
            assert service.post(request(1, "ping"), headers).status == 200


def test_in_the_era_without_sessions_the_id_of_one_leads_nowhere(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with hosting(tmp_path, start=[["pid"]], received=str(received)) as service:
        mine = {"mcp-session-id": opened(service)["mcp-session-id"], "mcp-protocol-version": LATEST}
        message = request(1, "tools/list", {}, LATEST)
        assert service.post(message, {**modern(message), **mine, "x-principal": "mallory"}).status == 200
        assert len([each for each in received.read_text().split("\n") if each.isdigit()]) == 2, "not that child"
        assert [service.ask(each, headers={**BOTH, **mine}).status for each in ("GET", "DELETE")] == [405, 405]
        assert service.post(request(2, "ping"), {**BOTH, "mcp-session-id": mine["mcp-session-id"]}).status == 200


@pytest.mark.parametrize(
    ("message", "headers", "status", "code"),
    [
        pytest.param(request(1, "tools/list"), {}, 400, -32600, id="no-session"),
        pytest.param(request(1, "tools/list"), {"mcp-session-id": "none"}, 404, -32601, id="unknown-session"),
        pytest.param(initialize("2025-11-25") | {"id": None}, {}, 400, -32600, id="bad-initialize"),
        pytest.param(b"{", {}, 400, -32700, id="no-json"),
        pytest.param(b"[]", {}, 400, -32600, id="empty-batch"),
        pytest.param(b" ", {}, 400, -32700, id="blank"),
    ],
)
def test_what_opens_no_session_starts_no_child(
    tmp_path: Path, message: Any, headers: dict[str, str], status: int, code: int
) -> None:
    with hosting(tmp_path, received=str(tmp_path / "received")) as service:
        answer = service.post(message, {**BOTH, **headers})
        assert (answer.status, answer.error()["code"]) == (status, code)
        assert answer.header("mcp-session-id") is None
    assert not (tmp_path / "received").exists()


def test_an_unknown_revision_in_a_session_is_refused(tmp_path: Path) -> None:
    with hosting(tmp_path) as service:
        answer = service.post(request(1, "ping"), opened(service), mcp_protocol_version="1999-01-01")
        assert (answer.status, answer.error()["code"]) == (400, -32022)


def test_a_session_that_nobody_uses_ends_with_its_child(tmp_path: Path) -> None:
    pipe, received = tmp_path / "go", tmp_path / "pids"
    os.mkfifo(pipe)
    start = [["pid"], ["await", str(pipe)]]
    with hosting(tmp_path, "--set", "session_seconds=0.3", start=start, received=str(received)) as service:
        wire = begun(service, initialize(NEWEST), BOTH)
        until(lambda: received.exists() and "\n" in received.read_text())
        child = Watched(int(received.read_text()))
        # A session does not end while a request is open, however long it takes to get here.
        pipe.write_bytes(b"")
        session = wire.answer().header("mcp-session-id") or ""
        until(lambda: not child.is_alive())
        assert service.post(request(1, "ping"), {**BOTH, "mcp-session-id": session}).status == 404


# ── what the server says meanwhile ───────────────────────────────────────────────────────────────────────────────────


def test_what_comes_before_the_answer_makes_it_a_stream(tmp_path: Path) -> None:
    progress = {"method": "notifications/progress", "params": {"progressToken": "p", "progress": 1}}
    on = {"tools/call": [["say", {"jsonrpc": "2.0", **progress}], ["good"]]}
    with hosting(tmp_path, on=on) as service:
        headers = opened(service)
        message = call(1, "search", {"words": "sea"})
        message["params"]["_meta"] = {"progressToken": "p"}
        answer = service.post(message, headers)
        first, *rest = answer.events()
        assert first["id"].endswith("-0")
        assert (first["data"], first["retry"]) == ("", "1000")
        assert [json.loads(each["data"]).get("method", "answer") for each in rest] == [progress["method"], "answer"]


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "*/*"])
def test_a_client_gets_what_it_takes(tmp_path: Path, accept: str) -> None:
    with hosting(tmp_path, on={"tools/call": [["say", NOTE], ["good"]]}) as service:
        headers = {**opened(service), "accept": accept}
        answer = service.post(call(1, "search", {"words": "sea"}), headers)
        kind = "application/json" if accept == "application/json" else "text/event-stream"
        assert answer.header("content-type") == kind
        if accept == "application/json":
            assert answer.json()["id"] == 1
            listening = begun(service, None, {**headers, "accept": "text/event-stream"}, "GET")
            listening.head()
            assert b'"notifications/message"' in listening.until(b'"data":"x"')


def test_what_the_server_asks_during_a_call_is_asked_and_answered(tmp_path: Path) -> None:
    on = {"tools/call": [["say", ASKS]], "answer": [["say", result(7, {"content": []})]]}
    with hosting(tmp_path, on=on, tools=[{"name": "any", "inputSchema": {"type": "object"}}]) as service:
        headers = opened(service, roots={})
        wire = begun(service, call(7, "any", {}), headers)
        wire.head()
        asked = json.loads(wire.until(b'roots/list"}').partition(b"data: {")[2].join([b"{", b""]))
        assert asked["id"] == "s1"
        assert service.post(result("s1", {"roots": []}), headers).status == 202
        assert b'"id":7' in wire.until(b"content")


def test_what_nobody_listens_to_is_kept_and_told_to_who_listens_later(tmp_path: Path) -> None:
    with hosting(tmp_path, on={"notifications/initialized": [["say", NOTE], ["say", ASKS]]}) as service:
        headers = opened(service, roots={})
        wire = begun(service, None, {**headers, "accept": "text/event-stream"}, "GET")
        assert wire.head().status == 200
        wire.until(b'"notifications/message"')
        wire.until(b'"roots/list"')


def test_a_stream_is_kept_alive(tmp_path: Path) -> None:
    with hosting(tmp_path, "--set", "ping_seconds=0.05") as service:
        wire = begun(service, None, {**opened(service), "accept": "text/event-stream"}, "GET")
        wire.head()
        for _ in range(3):
            wire.until(b":\r\n\r\n")


def test_of_two_calls_each_gets_its_own_answer_in_whatever_order(tmp_path: Path) -> None:
    pipe = tmp_path / "go"
    os.mkfifo(pipe)
    on = {"tools/call:slow": [["await", str(pipe)], ["good"]]}
    tools = [{"name": each, "inputSchema": {"type": "object"}} for each in ("slow", "quick")]
    with hosting(tmp_path, on=on, tools=tools) as service:
        headers = opened(service)
        slow = begun(service, call(1, "slow", {}), headers)
        assert slow.head().header("content-type") == "text/event-stream"
        quick = begun(service, call("1", "quick", {}), headers)
        with open(pipe, "wb"):
            pass
        assert b'"id":1,' in slow.until(b"structuredContent")
        assert said(quick)[0]["id"] == "1"


# ── coming back ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_loses_the_connection_gets_the_answer_all_the_same(tmp_path: Path) -> None:
    pipe = tmp_path / "go"
    os.mkfifo(pipe)
    with hosting(tmp_path, on={"tools/call": [["await", str(pipe)], ["good"]]}) as service:
        headers = opened(service)
        wire = begun(service, call(1, "search", {"words": "sea"}), headers)
        wire.head()
        last = events(wire.until(b"data: \r\n\r\n").partition(b"\r\n")[2])[0]["id"]
        wire.socket.close()
        back = begun(service, None, {**headers, "accept": "text/event-stream", "last-event-id": last}, "GET")
        back.head()
        with open(pipe, "wb"):
            pass
        assert b'"id":1,' in back.until(b"structuredContent")
        again = begun(service, None, {**headers, "accept": "text/event-stream", "last-event-id": last}, "GET")
        assert [each["id"] for each in said(again)] == [1]


def test_who_comes_back_while_the_last_connection_seems_to_be_open_gets_the_answer(tmp_path: Path) -> None:
    pipe = tmp_path / "go"
    os.mkfifo(pipe)
    with hosting(tmp_path, on={"tools/call": [["await", str(pipe)], ["good"]]}) as service:
        headers = opened(service)
        wire = begun(service, call(1, "search", {"words": "sea"}), headers)
        wire.head()
        last = events(wire.until(b"data: \r\n\r\n").partition(b"\r\n")[2])[0]["id"]
        wire.socket.close()
        again = {**headers, "accept": "text/event-stream", "last-event-id": last}
        begun(service, None, again, "GET").until(b":\r\n\r\n")
        back = begun(service, None, again, "GET")
        back.until(b":\r\n\r\n")
        with open(pipe, "wb"):
            pass
        assert b'"id":1,' in back.until(b"structuredContent")


def test_who_listens_anew_while_the_last_connection_seems_to_be_open_is_told_everything(tmp_path: Path) -> None:
    with hosting(tmp_path, on={"resources/read": [["say", NOTE], ["good"]]}) as service:
        headers = opened(service)
        listens = {**headers, "accept": "text/event-stream"}
        wire = begun(service, None, listens, "GET")
        last = events(wire.until(b"data: \r\n\r\n").rpartition(b"\r\n20\r\n")[2])[0]["id"]
        wire.socket.close()
        again = {**listens, "last-event-id": last}
        begun(service, None, again, "GET").until(b":\r\n\r\n")
        back = begun(service, None, again, "GET")
        back.until(b":\r\n\r\n")
        for number in range(3):
            message = request(number, "resources/read", {"uri": "file:///a"})
            assert service.post(message, {**headers, "accept": "application/json"}).status == 200
            back.until(b'"notifications/message"')


def test_an_event_id_that_is_none_of_the_session_is_refused(tmp_path: Path) -> None:
    with hosting(tmp_path) as service:
        headers = {**opened(service), "accept": "text/event-stream", "last-event-id": "99-1"}
        assert service.ask("GET", headers=headers).status == 400


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_command_that_cannot_be_run_is_told_at_once_and_not_tried_again_too_soon(tmp_path: Path) -> None:
    with hosting(tmp_path, command=["./nowhere"]) as service:
        for _ in range(3):
            answer = service.post(initialize(NEWEST))
            assert answer.header("mcp-session-id") is None
            assert answer.error()["code"] == -31011
            assert "cannot start ./nowhere" in answer.error()["data"]["violations"][0]["found"]
            told = "the server could not be started: ./nowhere: No such file or directory"
            assert answer.error()["data"]["detail"] == told
            hint = answer.error()["data"]["violations"][0]["hint"]
            assert "can run the server's command" in hint, "and not: answer it"


@pytest.mark.parametrize(
    ("actions", "found"),
    [
        pytest.param([["log", "oh no\n"], ["exit", 7]], "it exited with status 7", id="exits"),
        pytest.param([["log", "oh no\n"], ["die"]], "it was ended by SIGKILL", id="killed"),
        pytest.param([["log", "oh no\n"], ["close", "stdout"], ["stay"]], "it closed its output", id="closes-output"),
    ],
)
@pytest.mark.parametrize("mode", ["enforce", "audit"])
def test_a_child_that_ends_fails_what_is_open_once_and_its_session_is_gone(
    tmp_path: Path, mode: str, actions: Any, found: str
) -> None:
    tools = [{"name": each, "inputSchema": {"type": "object"}} for each in ("mute", "end")]
    on = {"tools/call:mute": [], "tools/call:end": actions}
    flights = tmp_path / "flights"
    with hosting(tmp_path, "--mode", mode, "--flights", str(flights), on=on, tools=tools) as service:
        other = opened(service)
        headers = opened(service)
        waits = begun(service, call(1, "mute", {}), headers)
        waits.head()
        ends = begun(service, call(2, "end", {}), headers)
        for ident, wire in ((1, waits), (2, ends)):
            text = wire.rest() if wire is waits else wire.answer().body
            assert text.count(b"-31011") == 1
            assert b'"id":%d,' % ident in text
            assert found.encode() in text
            assert b"oh no" not in text
        assert service.post(request(3, "ping"), headers).status == 404
        assert service.post(request(3, "ping"), other).status == 200
    (flight,) = flights.iterdir()
    kept = flight.read_text()
    assert kept.count("initialize") == 2, "its own handshake, and nobody else's"
    assert "[python] oh no" in service.log.whole()


@pytest.mark.parametrize(("action", "found"), [(["exit", 7], b"it exited with status 7"), (["die"], b"SIGKILL")])
def test_the_end_of_a_child_is_noticed_where_processes_are_no_descriptors(
    tmp_path: Path, action: list[Any], found: bytes
) -> None:
    """As on macOS. What the child started keeps its output open, so that only its own end shows that it is over."""
    tools = [{"name": "end", "inputSchema": {"type": "object"}}]
    on = {"tools/call:end": [["spawn"], action]}
    with hosting(tmp_path, "--without-pidfd", received=str(tmp_path / "received"), on=on, tools=tools) as service:
        headers = opened(service)
        text = begun(service, call(1, "end", {}), headers).answer().body
        assert found in text
        assert service.post(request(2, "ping"), headers).status == 404


def test_a_child_that_dies_before_it_is_opened_makes_the_next_wait(tmp_path: Path) -> None:
    on = {"initialize": [["log", "no key\n"], ["exit", 1]]}
    with hosting(tmp_path, "--first-pause", "600", on=on) as service:
        first = service.post(initialize(NEWEST))
        assert b"no key" not in first.body
        assert first.header("mcp-session-id") is None
        again = service.post(initialize(NEWEST))
        assert again.error()["code"] == -31011
        assert again.error()["data"]["violations"][0]["found"] == "none: it exited with status 1"
        assert again.error()["message"] == "No answer came: the server exited with status 1"
        assert b"no key" not in again.body


def test_where_that_is_allowed_a_session_reads_the_stderr_of_its_own_child_without_secrets(tmp_path: Path) -> None:
    on = {"initialize": [["log", "no key\nAPI_KEY=s3cret\n"], ["exit", 1]]}
    with hosting(tmp_path, "--stderr-in-errors", "--first-pause", "600", on=on) as service:
        error = service.post(initialize(NEWEST)).error()
        first = error["data"]
        assert first["stderr"][0] == "no key"
        assert error["message"].startswith("No answer came: the server exited with status 1: API_KEY=")
        assert "s3cret" not in error["message"]
        assert "s3cret" not in str(first)
        assert "stderr" not in service.post(initialize(NEWEST)).error()["data"], "it is of another session"


def test_one_principal_cannot_keep_another_from_starting_a_child(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    command = ["/bin/sh", "-c", f'test -e "{flag}" && exec "$@"; touch "{flag}"; exit 1', "sh", *liar()]
    with hosting(tmp_path, "--first-pause", "600", command=command) as service:
        assert service.post(initialize(NEWEST), x_principal="bob").error()["code"] == -31011
        assert service.post(initialize(NEWEST), x_principal="bob").error()["code"] == -31011, "too early"
        assert service.post(initialize(NEWEST), x_principal="alice").header("mcp-session-id")


def test_an_answer_that_never_comes_is_given_up(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with hosting(tmp_path, "--timeout", "6", on={"tools/call": []}, received=str(received)) as service:
        headers = opened(service)
        answer = said(begun(service, call(5, "search", {"words": "sea"}), headers))
        assert [(each["id"], each["error"]["code"]) for each in answer] == [(5, -31012)]
        assert answer[0]["error"]["message"] == "No answer came within 6 s"
        until(lambda: "notifications/cancelled" in received.read_text())
        assert service.post(request(6, "ping"), headers).status == 200


def test_what_a_server_prints_and_answers_twice_reaches_nobody(tmp_path: Path) -> None:
    on = {"tools/call": [["raw", "Loading...\n"], ["good"], ["good"], ["raw", '{"id":1'], ["raw", "\n"]]}
    with hosting(tmp_path, on=on) as service:
        headers = opened(service)
        assert [each["id"] for each in said(begun(service, call(1, "search", {"words": "a"}), headers))] == [1]
        assert service.post(request(2, "ping"), headers).json()["id"] == 2
    assert any("Loading..." in each for each in service.log.whole())
    assert any("protocol/answered-twice" in each for each in service.log.whole())


def test_a_bad_answer_fails_its_request_and_audit_passes_it(tmp_path: Path) -> None:
    for mode in ("enforce", "audit"):
        with hosting(tmp_path, "--mode", mode, on={"tools/call": [["result", {"content": 1}]]}) as service:
            answer = said(begun(service, call(1, "search", {"words": "a"}), opened(service)))[0]
            assert ("isError" in answer["result"]) == (mode == "enforce")


def test_an_answer_that_is_too_long_fails_by_the_id_at_its_end(tmp_path: Path) -> None:
    """As the TypeScript SDK writes it: the result first."""
    on = {
        "tools/call": [
            ["long", '{"result":{"content":[{"type":"text","text":"', 300_000, '"}]},"jsonrpc":"2.0","id":4}\n']
        ]
    }
    with hosting(tmp_path, "--frame-bytes", "100000", on=on) as service:
        answer = said(begun(service, call(4, "search", {"words": "a"}), opened(service)))
        assert [(each["id"], each["error"]["code"]) for each in answer] == [(4, -31010)]


def test_a_message_over_several_lines_is_one_line_for_the_server(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with hosting(tmp_path, received=str(received)) as service:
        headers = opened(service)
        message = json.dumps(call(1, "search", {"words": "a\nb"}), indent=2).encode()
        assert service.post(message, headers).json()["id"] == 1
    assert '"words": "a\\nb"' in received.read_text().split("\n")[2]


def test_nothing_in_a_message_is_a_line_of_its_own_for_the_server(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with hosting(
        tmp_path, received=str(received), tools=[{"name": "any", "inputSchema": {"type": "object"}}]
    ) as service:
        headers = opened(service)
        inner = json.dumps(call(1, "other", {"number": 1.50}))
        outer = json.dumps(call(1, "any", {"inner": "?"})).replace('"?"', f"\r{inner}\r")
        assert service.post(outer.encode(), headers).json()["id"] == 1
    text = received.read_bytes()
    assert b"\r" not in text
    assert len(text.splitlines()) == 3


def test_an_answer_with_a_carriage_return_in_it_is_one_event(tmp_path: Path) -> None:
    answer = '{"jsonrpc":"2.0",\r\r"id":1,"result":{"content":[]}}\n'
    with hosting(tmp_path, on={"tools/call": [["raw", answer]]}, tools=[]) as service:
        headers = {**opened(service), "accept": "text/event-stream"}
        body = service.post(call(1, "any", {}), headers).body
        assert b'data: {"jsonrpc":"2.0",  "id":1,' in body
        assert body.count(b"\r") == body.count(b"\r\n")


BREAKS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""The characters beside CR and LF at which `str.splitlines` splits."""


def test_no_character_of_an_answer_ends_a_line_of_its_event(tmp_path: Path) -> None:
    """httpx-sse before 0.4.2 splits events with `str.splitlines`."""
    text = "a\x85b\u2028id: 9-9\u2029retry: 1\u2028\u2028c \\"
    answer = f'{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":{json_text(text)}}}]}}}}\n'
    with hosting(tmp_path, on={"tools/call": [["raw", as_bytes(answer)]]}, tools=[]) as service:
        body = service.post(call(1, "any", {}), {**opened(service), "accept": "text/event-stream"}).body
    lines = [line for line in body.decode().splitlines() if line.startswith("data: {")]
    assert body.decode().splitlines() == body.decode().split("\r\n")[:-1]
    assert json.loads(lines[-1].removeprefix("data: "))["result"]["content"][0]["text"] == text


def test_under_audit_no_character_of_an_invalid_answer_ends_a_line_of_its_event(tmp_path: Path) -> None:
    answer = f'{{"jsonrpc":"2.0","id":1,"result":{{"content":"{BREAKS}"}}}}\n'
    with hosting(tmp_path, "--mode", "audit", on={"tools/call": [["raw", as_bytes(answer)]]}, tools=[]) as service:
        body = service.post(call(1, "any", {}), {**opened(service), "accept": "text/event-stream"}).body
    assert body.decode().splitlines() == body.decode().split("\r\n")[:-1]
    assert b'"id":1,"result"' in body


def as_bytes(text: str) -> str:
    """Return what the lying server writes as the bytes of *text*."""
    return text.encode().decode("latin-1")


def json_text(text: str) -> str:
    """Return *text* as JSON in which only a backslash is escaped."""
    return '"' + text.replace("\\", "\\\\") + '"'


def test_a_server_that_does_not_read_holds_up_nobody(tmp_path: Path) -> None:
    with hosting(tmp_path, "--frame-bytes", "200000", "--timeout", "6", on={"tools/call": [["stay"]]}) as service:
        headers = opened(service)
        wires = [begun(service, call(n, "search", {"words": "x" * 150_000}), headers) for n in range(20)]
        answers = [wire.answer() for wire in wires]
        statuses = [each.status for each in answers]
        assert set(statuses) == {200, 503}
        assert all(b"-31012" in each.body for each in answers if each.status == 200)
        assert opened(service)


def test_a_server_that_floods_a_client_that_does_not_read_has_to_wait(tmp_path: Path) -> None:
    with hosting(tmp_path, on={"tools/call": [["notes", 3000, 10_000], ["good"]]}) as service:
        headers = opened(service)
        wire = begun(service, call(1, "search", {"words": "a"}), headers)
        wire.head()
        before = service.resident()
        assert service.post(request(2, "ping"), opened(service)).status == 200
        assert service.resident() - before < 40 << 20
        text = b"".join(iter(wire.chunk, b""))
        assert text.count(b"notifications/message") == 3000
        assert b'"id":1,' in text


@pytest.mark.parametrize("accept", [BOTH["accept"], "application/json", "text/event-stream"])
def test_after_an_answer_of_some_megabytes_the_session_goes_on(tmp_path: Path, accept: str) -> None:
    long = ["long", '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"', 3 << 20, '"}]}}\n']
    with hosting(tmp_path, on={"tools/call": [long]}) as service:
        headers = {**opened(service), "accept": accept}
        assert len(said(begun(service, call(1, "search", {"words": "a"}), headers))[0]["result"]["content"]) == 1
        assert said(begun(service, request(2, "ping"), headers)) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]


def test_a_flood_for_a_client_that_has_gone_before_it_began_holds_up_nobody(tmp_path: Path) -> None:
    pipe, received = tmp_path / "go", tmp_path / "received"
    os.mkfifo(pipe)
    on = {
        "tools/call": [["tell", "called"], ["await", str(pipe)], ["notes", 300, 10_000], ["tell", "flooded"], ["good"]]
    }
    with hosting(tmp_path, on=on, received=str(received)) as service:
        headers = opened(service, "2025-06-18")
        wire = begun(service, call(1, "search", {"words": "a"}), headers)
        until(lambda: "called" in received.read_text())
        wire.socket.close()
        # Whoever asks next is behind the one who has gone.
        again = {**headers, "last-event-id": "9-9", "accept": "text/event-stream"}
        assert service.ask("GET", headers=again).status == 400
        with open(pipe, "wb"):
            pass
        until(lambda: "flooded" in received.read_text())
        assert said(begun(service, request(2, "ping"), headers))[-1]["id"] == 2


def test_what_a_session_says_after_its_end_is_told_and_its_child_is_gone(tmp_path: Path) -> None:
    with hosting(tmp_path, on={"tools/call": []}) as service:
        headers = opened(service)
        wire = begun(service, call(1, "search", {"words": "a"}), headers)
        wire.head()
        service.ask("DELETE", headers=headers)
        assert b"the session was ended" in b"".join(iter(wire.chunk, b""))


@pytest.mark.parametrize("mode", ["enforce", "audit"])
@pytest.mark.parametrize("listed", [True, False], ids=["listed", "not listed"])
def test_a_call_that_is_cancelled_ends_without_an_answer(tmp_path: Path, mode: str, *, listed: bool) -> None:
    """The cancellation is accepted, whether the guard knows the contract of the cancelled call or not."""
    answered = [["say", result(1, {"content": [], "structuredContent": {"hits": 1}})]]
    with hosting(tmp_path, "--mode", mode, on={"tools/call": [], "notifications/cancelled": answered}) as service:
        headers = opened(service)
        if listed:
            assert "result" in service.post(request(0, "tools/list"), headers).json()
        wire = begun(service, call(1, "search", {"words": "a"}), headers)
        wire.head()
        assert service.post(notification("notifications/cancelled", {"requestId": 1}), headers).status == 202
        assert b'"id":1' in b"".join(iter(wire.chunk, b"")), "a server may still answer, and this one does"


def test_many_clients_with_the_same_ids_get_their_own_answers(tmp_path: Path) -> None:
    with hosting(tmp_path) as service:
        wrong: list[Any] = []

        def talk(number: int) -> None:
            headers = opened(service)
            for ident in range(20):
                words = "x" * (number + 1)
                answer = said(begun(service, call(ident, "search", {"words": words}), headers))[-1]
                expected = {"hits": len(str({"words": words}))}
                if (answer["id"], answer["result"]["structuredContent"]) != (ident, expected):
                    wrong.append(answer)

        threads = [threading.Thread(target=talk, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
        assert wrong == []
        assert not any(each.is_alive() for each in threads)


@pytest.mark.parametrize("accept", ["application/json", "application/json, text/event-stream"])
def test_a_batch_with_a_call_of_an_unlisted_tool_is_judged_by_the_list(tmp_path: Path, accept: str) -> None:
    """The guard requests the list first; the refused call and the others are answered in one response."""
    received = tmp_path / "received"
    with hosting(tmp_path, received=str(received)) as service:
        headers = {**opened(service, "2025-03-26"), "accept": accept}
        batch = [call(1, "search", {"words": 5}), call(2, "search", {"words": "sea"}), request(3, "ping")]
        answer = service.post(batch, headers)
        assert answer.status == 200
        assert {each["id"]: "error" in each for each in answer.json()} == {1: True, 2: False, 3: False}
    assert b'"words":5' not in received.read_bytes()


def test_a_batch_is_answered_as_one(tmp_path: Path) -> None:
    """2025-03-26, the one revision that has batches."""
    with hosting(tmp_path, command=command()) as service:
        headers = {**opened(service, "2025-03-26"), "accept": "application/json"}
        answer = service.post([request(1, "ping"), request(2, "nope/nope"), request(3, "tools/list")], headers)
        assert sorted(each["id"] for each in answer.json()) == [1, 2, 3]
        assert [each["id"] for each in answer.json() if "error" in each] == [2]


def test_under_audit_an_answer_that_cannot_be_read_passes_to_who_waits_for_it(tmp_path: Path) -> None:
    text = '{"jsonrpc":"2.0","id":1,"result":{"content":['
    with hosting(tmp_path, "--mode", "audit", on={"tools/call": [["raw", text + "\n"]]}) as service:
        assert text.encode() in service.post(call(1, "search", {"words": "a"}), opened(service)).body


@pytest.mark.parametrize("mode", ["audit", "enforce"])
@pytest.mark.parametrize("more", [{}, {"method": "tools/call", "result": {}}], ids=["neither", "both"])
def test_an_answer_that_is_one_only_by_its_id_ends_its_request(tmp_path: Path, mode: str, more: dict[str, Any]) -> None:
    """Nothing else comes for it: what it is not told by this, nobody will tell it."""
    broken = {"jsonrpc": "2.0", "id": "$id", **more}
    with hosting(tmp_path, "--mode", mode, on={"tools/call": [["say", broken]]}) as service:
        headers = opened(service)
        [answer] = said(begun(service, call(1, "search", {"words": "sea"}), headers))
        if mode == "audit":
            assert answer == {**broken, "id": 1}
        else:
            assert (answer["id"], answer["error"]["code"]) == (1, -31010)
        assert said(begun(service, request(2, "ping"), headers)) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]

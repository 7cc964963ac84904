"""Requests without a session (2026-07-28): one child for all, ids that do not collide, streams that are left."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import LATEST
from kit.guard_process import Watched
from kit.hosted import begun, hosting
from kit.http_client import (
    BOTH,
    REVISION_KEY,
    SECONDS,
    Service,
    Wire,
    call,
    frame_of,
    initialize,
    listen,
    meta,
    modern,
    notification,
    request,
    until,
)

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
ANY = {"name": "any", "inputSchema": {"type": "object"}}


def asked(service: Service, message: Any, **more: str | bytes) -> Wire:
    """A request that is sent, whose answer is yet to be read."""
    return begun(service, message, modern(message, **more))


def lines(path: Path) -> list[dict[str, Any]]:
    """The messages that the server has received so far."""
    return [json.loads(each) for each in path.read_text().split("\n") if each.startswith("{")]


def test_all_requests_go_to_one_child_which_is_none_of_a_session(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with hosting(tmp_path, start=[["pid"]], received=str(received)) as service:
        for ident in (1, "1", 1):
            answer = asked(service, call(ident, "search", {"words": "sea"}, LATEST)).answer()
            assert (answer.status, answer.json()["id"]) == (200, ident)
            assert answer.header("mcp-session-id") is None
        assert service.post(initialize("2025-11-25"), BOTH).status == 200
        told = received.read_text().split("\n")
        assert len([each for each in told if each.isdigit()]) == 2, "one for all requests, one for the session"


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_no_handshake_reaches_the_child_that_all_share(tmp_path: Path, mode: str) -> None:
    """Many servers settle their era with it, also if it names a revision that has none."""
    received = tmp_path / "received"
    on = {"initialize": [["good"], ["exit", 0]]}
    with hosting(tmp_path, "--mode", mode, start=[["pid"]], on=on, received=str(received)) as service:
        good = call(1, "search", {"words": "sea"}, LATEST)
        assert asked(service, good).answer().status == 200
        opening = initialize("2025-11-25")
        stamped = {**opening, "params": {**opening["params"], "_meta": meta()}}
        for each in (opening, stamped):
            answer = asked(service, each).answer()
            assert (answer.status, answer.error()["code"]) == (404, -32601)
        assert asked(service, good).answer().status == 200
        assert len([each for each in received.read_text().split("\n") if each.isdigit()]) == 1


@pytest.mark.parametrize(
    "ident", [b"1", b'"1"', b"1.0", b"-0", b"1e2", b'"\\u0061"', b"123456789012345678901234567890"]
)
def test_an_answer_has_the_id_as_it_was_spelt(tmp_path: Path, ident: bytes) -> None:
    """And no other byte of a request is changed."""
    received = tmp_path / "received"
    frame = frame_of(call("$", "search", {"words": "é\u2028"}, LATEST)).replace(b'"id":"$"', b'"id" :  ' + ident)
    with hosting(tmp_path, received=str(received)) as service:
        answer = asked(service, frame).answer()
        assert b'"id":' + ident + b"," in answer.body
    sent = received.read_bytes().split(b"\n")[0]
    # The first request was that of the guard for the tools.
    assert sent == frame.replace(b'"id" :  ' + ident, b'"id" :  2')


def test_many_clients_at_once_with_the_same_ids_and_tokens_get_their_own(tmp_path: Path) -> None:
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "$id", "progress": 1}}
    on = {"tools/call": [["say", progress], ["good"]]}
    with hosting(tmp_path, on=on) as service:
        wrong: list[Any] = []

        def talk(number: int) -> None:
            for ident in range(10):
                message = call(ident, "search", {"words": "x" * (number + 1)}, LATEST)
                message["params"]["_meta"]["progressToken"] = "mine"
                answer = asked(service, message).answer()
                first, last = (json.loads(each["data"]) for each in answer.events() if each.get("data"))
                hits = len(str({"words": "x" * (number + 1)}))
                good = first["params"]["progressToken"] == "mine" and last["id"] == ident
                if not good or last["result"]["structuredContent"]["hits"] != hits:
                    wrong.append((first, last))

        threads = [threading.Thread(target=talk, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
        assert wrong == []
        assert not any(each.is_alive() for each in threads)


def test_news_of_a_subscription_go_to_whoever_has_it(tmp_path: Path) -> None:
    def note(method: str) -> dict[str, Any]:
        params: dict[str, Any] = {"_meta": {SUBSCRIPTION: "$id"}}
        if method == ACKNOWLEDGED:
            params["notifications"] = {"toolsListChanged": True}
        return {"jsonrpc": "2.0", "method": method, "params": params}

    on = {"subscriptions/listen": [["say", note(ACKNOWLEDGED)], ["say", note("notifications/tools/list_changed")]]}
    with hosting(tmp_path, on=on) as service:
        wires = [asked(service, listen("mine")) for _ in range(2)]
        for wire in wires:
            assert wire.head().header("content-type") == "text/event-stream"
            wire.until(b"tools/list_changed")
            assert wire.until(b"\r\n").count(b'"mine"') == 1
            assert wire.silent() or b"tools/list_changed" not in wire.held


@pytest.mark.parametrize("method", ["subscriptions/listen", "tools/call"])
def test_who_leaves_cancels_what_it_has_asked_and_nothing_else(tmp_path: Path, method: str) -> None:
    received = tmp_path / "received"
    with hosting(tmp_path, on={"subscriptions/listen": [], "tools/call:mute": []}, received=str(received)) as service:
        asked(service, request(1, "tools/list", {}, LATEST)).answer()
        mute = call(7, "mute", {}, LATEST)
        other = asked(service, mute)
        wire = asked(service, listen(7) if method == "subscriptions/listen" else mute)
        until(lambda: received.exists() and len(lines(received)) == 2)
        wire.socket.close()
        until(lambda: len(lines(received)) == 3)
        first, second, cancelled = lines(received)
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == second["id"] != first["id"]
        assert other.silent()


def test_a_cancelled_request_is_known_by_principal_and_id(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with hosting(tmp_path, on={"tools/call": []}, received=str(received)) as service:
        wires = [asked(service, call(7, "mute", {}, LATEST), x_principal=who) for who in ("ann", "bob")]
        until(lambda: received.exists() and len(lines(received)) == 2)
        cancelled = notification("notifications/cancelled", {"requestId": 7, "_meta": meta()})
        for who in ("anonymous", "carl", "bob"):
            assert asked(service, cancelled, x_principal=who).answer().status == 202
        until(lambda: len(lines(received)) == 3)
        assert lines(received)[2]["params"]["requestId"] == 2
        assert all(wire.silent() for wire in wires)


@pytest.mark.parametrize(
    ("actions", "found"),
    [
        pytest.param([["log", "oh no\n"], ["exit", 7]], "it exited with status 7", id="exits"),
        pytest.param([["log", "oh no\n"], ["die"]], "it was ended by SIGKILL", id="killed"),
    ],
)
def test_when_the_child_ends_everybody_is_told_and_another_one_starts(tmp_path: Path, actions: Any, found: str) -> None:
    on = {"tools/call:mute": [], "tools/call:end": actions}
    received = tmp_path / "received"
    flights = tmp_path / "flights"
    with hosting(tmp_path, "--flights", str(flights), on=on, received=str(received)) as service:
        waiting = [asked(service, call(1, "mute", {}, LATEST)) for _ in range(3)]
        until(lambda: received.exists() and len(lines(received)) == 3)
        ends = asked(service, call(1, "end", {}, LATEST))
        for wire in [*waiting, ends]:
            answer = wire.answer()
            assert (answer.status, answer.json()["id"], answer.error()["code"]) == (502, 1, -31011)
            assert answer.error()["data"]["violations"][0]["found"] == f"none: {found}"
            assert answer.error()["message"] == f"No answer came: the server {found.removeprefix('it ')}"
            assert "oh no" not in answer.body.decode(), "it may be about another client"
        good = call(1, "search", {"words": "sea"}, LATEST)
        until(lambda: asked(service, good).answer().status == 200)
    assert len(list(flights.iterdir())) == 1
    assert "[python] oh no" in service.log.whole()


@pytest.mark.parametrize("options", [(), ("--stderr-in-errors",)], ids=["default", "allowed"])
def test_nobody_reads_the_stderr_of_a_child_that_others_use(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Neither those who wait when it ends, nor those who come in the pause before the next start."""
    on = {"tools/call:mute": [], "tools/call:end": [["log", "API_KEY=s3cret\n"], ["exit", 1]]}
    received = tmp_path / "received"
    with hosting(tmp_path, *options, "--first-pause", "600", on=on, received=str(received)) as service:
        waits = asked(service, call(1, "mute", {}, LATEST), x_principal="alice")
        until(lambda: received.exists() and len(lines(received)) == 1)
        first = asked(service, call(1, "end", {}, LATEST), x_principal="bob").answer()
        in_pause = asked(service, call(1, "mute", {}, LATEST), x_principal="bob").answer()
        for answer in (first, waits.answer(), in_pause):
            assert "it exited with status 1" in answer.error()["data"]["violations"][0]["found"]
            assert "s3cret" not in answer.body.decode()
            assert "stderr" not in answer.error()["data"]


def test_a_command_that_cannot_be_run_fails_every_request(tmp_path: Path) -> None:
    with hosting(tmp_path, command=["./nowhere"]) as service:
        for _ in range(3):
            answer = asked(service, call(1, "search", {}, LATEST)).answer()
            assert (answer.status, answer.error()["code"]) == (502, -31011)
            assert "cannot start" in answer.error()["data"]["violations"][0]["found"]


def test_kill_in_the_middle_of_many_calls_fails_each_once(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with hosting(tmp_path, start=[["pid"]], on={"tools/call": []}, received=str(received)) as service:
        wires = [asked(service, call(number % 3, "mute", {}, LATEST)) for number in range(30)]
        until(lambda: received.exists() and len(lines(received)) == 30)
        os.kill(int(received.read_text().split("\n")[0]), signal.SIGKILL)
        answers = [wire.answer() for wire in wires]
        assert [each.json()["id"] for each in answers] == [number % 3 for number in range(30)]
        assert {each.error()["code"] for each in answers} == {-31011}


def test_calls_are_held_to_the_tools_of_a_child_that_was_lost(tmp_path: Path) -> None:
    """Until the next one lists its own: nobody gets a bad call just because somebody has died."""
    with hosting(tmp_path, on={"prompts/list": [["exit", 1]]}) as service:
        assert asked(service, request(1, "tools/list", {}, LATEST)).answer().json()["result"]["tools"]
        assert asked(service, request(2, "prompts/list", {}, LATEST)).answer().error()["code"] == -31011
        refused = asked(service, call(3, "search", {"words": 5}, LATEST)).answer().json()["result"]
        assert refused["isError"]
        assert "/params/arguments/words: expected a string, found 5" in refused["content"][0]["text"]


def test_an_answer_that_never_comes_is_given_up_and_a_late_one_reaches_nobody(tmp_path: Path) -> None:
    on = {
        "tools/call:mute": [],
        "notifications/cancelled": [
            ["raw", '{"jsonrpc":"2.0","id":2,"result":{"content":[],"resultType":"complete"}}\n']
        ],
    }
    with hosting(tmp_path, "--timeout", "6", on=on) as service:
        answer = asked(service, call(5, "mute", {}, LATEST)).answer()
        assert (answer.status, answer.error()["code"], answer.json()["id"]) == (504, -31012, 5)
        assert asked(service, call(5, "search", {"words": "a"}, LATEST)).answer().json()["id"] == 5
    assert any("tools/call" in each and "protocol/answered-twice" in each for each in service.log.whole())


def test_what_is_for_nobody_reaches_nobody(tmp_path: Path) -> None:
    on = {"tools/call": [["raw", "Loading...\n"], ["say", {"jsonrpc": "2.0", "id": 999, "result": {}}], ["good"]]}
    with hosting(tmp_path, on=on) as service:
        answer = asked(service, call(5, "search", {"words": "a"}, LATEST)).answer()
        assert answer.json()["id"] == 5
    log = service.log.whole()
    assert any("Loading" in each for each in log)
    assert any("protocol/unsolicited" in each for each in log)


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_broken_answer_fails_the_request_that_it_shows(tmp_path: Path, place: str) -> None:
    """Its number is ours, and what is said of it has the client's own id."""
    text = (
        '{"jsonrpc":"2.0","id":2,"result":{"content":[' if place == "first" else '{"result":[}],"jsonrpc":"2.0","id":2}'
    )
    with hosting(tmp_path, on={"tools/call": [["raw", text + "\n"]]}) as service:
        answer = asked(service, call("mine", "search", {"words": "a"}, LATEST)).answer()
        assert (answer.status, answer.json()["id"], answer.error()["code"]) == (502, "mine", -31010)


LOGS = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "secret"}}


def logging(message: dict[str, Any]) -> dict[str, Any]:
    """A request that asks for logs."""
    message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "debug"
    return message


def test_logs_go_to_a_request_that_asks_for_them_if_no_other_is_open(tmp_path: Path) -> None:
    received = tmp_path / "received"
    on = {"tools/call:mute": [], "tools/call:logs": [["say", LOGS], ["good"]]}
    with hosting(tmp_path, on=on, received=str(received)) as service:
        assert b"secret" in asked(service, logging(call(1, "logs", {}, LATEST))).answer().body
        assert b"secret" not in asked(service, call(1, "logs", {}, LATEST)).answer().body
        other = asked(service, call(1, "mute", {}, LATEST))
        until(lambda: len(lines(received)) == 3)
        assert b"secret" not in asked(service, logging(call(1, "logs", {}, LATEST))).answer().body
        assert other.silent()


def test_nobody_hears_what_the_child_logs_about_the_calls_of_others(tmp_path: Path) -> None:
    """Neither while their request is open, nor after it was answered or cancelled: servers log late."""
    received = tmp_path / "received"
    on = {
        "tools/call:logs": [["say", LOGS], ["good"], ["say", LOGS]],
        "tools/call:leaves": [["tell", "begun"]],
        "notifications/cancelled": [["say", LOGS], ["tell", "cancelled"]],
        "subscriptions/listen": [],
    }
    with hosting(tmp_path, on=on, received=str(received)) as service:
        bob = asked(service, logging(listen("b")), x_principal="bob")
        until(lambda: received.exists() and len(lines(received)) == 1)
        assert asked(service, call(1, "logs", {}, LATEST), x_principal="alice").answer().status == 200
        with asked(service, call(2, "leaves", {}, LATEST), x_principal="alice"):
            until(lambda: "begun" in received.read_text())
        until(lambda: "cancelled\n" in received.read_text())
        # Whatever was said before this answer has been handled when it comes.
        assert asked(service, call(3, "search", {"words": "a"}, LATEST), x_principal="alice").answer().status == 200
        assert bob.silent()


def test_a_child_that_nobody_needs_ends_and_another_one_starts(tmp_path: Path) -> None:
    pipe, received = tmp_path / "go", tmp_path / "received"
    os.mkfifo(pipe)
    start = [["pid"], ["await", str(pipe)]]
    good = call(1, "search", {"words": "a"}, LATEST)
    with hosting(tmp_path, "--set", "session_seconds=0.3", start=start, received=str(received)) as service:
        wire = asked(service, good)
        until(lambda: received.exists() and "\n" in received.read_text())
        child = Watched(int(received.read_text()))
        pipe.write_bytes(b"")
        assert wire.answer().status == 200
        until(lambda: not child.is_alive())
        wire = asked(service, good)
        pipe.write_bytes(b"")
        assert wire.answer().status == 200


CITY = {"type": "string", "x-mcp-header": "City"}
MARKED = {"name": "marked", "inputSchema": {"type": "object", "properties": {"city": CITY}}}
MARKS = call(1, "marked", {"city": "Oslo"}, LATEST)
NO_META = request(1, "tools/list", {})

REFUSED: dict[str, tuple[Any, dict[str, str | bytes], int, int | None]] = {
    "name": (call(1, "any", {}, LATEST), {"mcp-name": "other"}, 400, -32020),
    "encoding": (call(1, "any", {}, LATEST), {"mcp-name": "=?base64?????="}, 400, -32020),
    "method": (request(1, "tools/list", {}, LATEST), {"mcp-method": "tools/call"}, 400, -32020),
    "version": (request(1, "tools/list", {}, LATEST), {"mcp-protocol-version": "2031-01-01"}, 400, -32020),
    "argument": (MARKS, {"mcp-param-city": "Rome"}, 400, -32020),
    "no-argument": (MARKS, {}, 400, -32020),
    "no-meta": (NO_META, {}, 400, -32602),
    "no-params": ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {}, 400, -32602),
    "no-revision": (request(1, "tools/list", {"_meta": {"progressToken": 1}}), {}, 400, -32602),
    "odd-revision": (
        request(1, "tools/list", {"_meta": meta() | {REVISION_KEY: 5}}), {"mcp-protocol-version": LATEST}, 400, -32602,
    ),
    "old-revision": (
        request(1, "tools/list", {"_meta": meta("2025-11-25")}), {"mcp-protocol-version": LATEST}, 400, -32020,
    ),
    "unknown-header": (NO_META, {"mcp-protocol-version": "2031-01-01"}, 400, -32022),
    "unknown-method": (request(1, "acme/search", {}), {}, 400, -32602),
    "removed-method": (request(1, "ping", {}), {}, 404, -32601),
    "with-a-session": (NO_META, {"mcp-session-id": "some"}, 400, -32602),
    "no-json": (b"{", {}, 400, -32700),
    "no-json-rpc": ({"id": 1, "method": "tools/list", "params": {}}, {}, 400, -32600),
    "no-object": (b"5", {}, 400, -32600),
    "batch": ([NO_META, request(2, "tools/list", {}, LATEST)], {}, 400, -32600),
    "notification": (notification("notifications/initialized"), {}, 202, None),
    "unknown-notification": (notification("acme/changed", {}), {}, 202, None),
    "answer": ({"jsonrpc": "2.0", "id": 1, "result": {}}, {}, 202, None),
    "notification-of-another-method": (
        notification("notifications/cancelled", {"requestId": 1}), {"mcp-method": "tools/call"}, 400, -32020,
    ),
}  # fmt: skip
"""Messages that an HTTP server of this era does not act upon, with headers that differ, the status and the code."""


@pytest.mark.parametrize("policy", [(), ("--pass", "protocol/params")], ids=["table", "policy"])
@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_what_an_http_server_refuses_reaches_no_child_in_either_mode(
    tmp_path: Path, mode: str, policy: tuple[str, ...]
) -> None:
    """A child settles its era by its first message, and sees no header: nobody behind the guard could refuse these."""
    received, tools = tmp_path / "received", [ANY, MARKED]
    listing, good = request(1, "tools/list", {}, LATEST), call(1, "any", {}, LATEST)
    with hosting(tmp_path, "--mode", mode, *policy, received=str(received), tools=tools, quiet=False) as service:
        for name in [each for each in REFUSED if "argument" not in each]:
            _is_refused(service, name)
        assert not received.exists()
        assert asked(service, listing).answer().status == 200
        for name in REFUSED:
            _is_refused(service, name)
        assert asked(service, good).answer().status == 200
        assert [each["method"] for each in lines(received)] == ["tools/list", "tools/call"]


def _is_refused(service: Service, name: str) -> None:
    message, more, status, code = REFUSED[name]
    answer = begun(service, message, {**modern(message), **more}).answer()
    found = answer.error()["code"] if answer.body else None
    assert (answer.status, found) == (status, code), (name, answer)


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_a_removed_method_and_an_unknown_revision_reach_the_child_under_audit_only(tmp_path: Path, mode: str) -> None:
    received = tmp_path / "received"
    later = request(1, "tools/list", {"_meta": meta("2031-01-01")})
    with hosting(tmp_path, "--mode", mode, received=str(received)) as service:
        statuses = [asked(service, each).answer().status for each in (request(1, "ping", {}, LATEST), later)]
        assert statuses == ([200, 200] if mode == "audit" else [404, 400])
        assert received.exists() == (mode == "audit")


@pytest.mark.parametrize(("named", "status"), [("2031-01-01", 200), ("2032-01-01", 400)])
def test_a_revision_that_the_child_does_not_declare_never_reaches_it(tmp_path: Path, named: str, status: int) -> None:
    """A child that has settled its era need not look at the revision of each message; one may be newer than we are."""
    received = tmp_path / "received"
    speaks = {"resultType": "complete", "supportedVersions": [LATEST, "2031-01-01"], "capabilities": {"tools": {}}}
    on = {"server/discover": [["result", {**speaks, "ttlMs": 0, "cacheScope": "private"}]]}
    with hosting(tmp_path, "--mode", "audit", received=str(received), on=on, quiet=False) as service:
        assert asked(service, request(1, "server/discover", {}, LATEST)).answer().status == 200
        answer = asked(service, request(2, "tools/list", {"_meta": meta(named)})).answer()
        assert answer.status == status
        assert status == 200 or answer.error()["code"] == -32022
        assert [each["method"] for each in lines(received)] == ["server/discover", "tools/list"][
            : 2 if status == 200 else 1
        ]


def test_what_stops_under_audit_is_reported_as_stopped(tmp_path: Path) -> None:
    with hosting(tmp_path, "--mode", "audit") as service:
        for name in ("no-meta", "name", "unknown-notification"):
            _is_refused(service, name)
        service.signal(signal.SIGTERM)
        told = service.log.whole()
    assert len([each for each in told if each.startswith("assay: blocked: client ")]) == 3


def test_the_methods_of_sessions_are_not_allowed(tmp_path: Path) -> None:
    with hosting(tmp_path) as service:
        headers = {"accept": "text/event-stream", "mcp-protocol-version": LATEST}
        assert [service.ask(each, headers=headers).status for each in ("GET", "DELETE")] == [405, 405]


def test_at_the_end_streams_end_and_the_child_with_them(tmp_path: Path) -> None:
    received = tmp_path / "received"
    script: dict[str, Any] = {"start": [["stubborn"], ["pid"], ["spawn"]], "on": {"subscriptions/listen": []}}
    with hosting(tmp_path, **script, received=str(received)) as service:
        wire = asked(service, listen(1))
        until(lambda: received.exists() and len(received.read_text().split("\n")) > 3)
        processes = [Watched(int(each)) for each in received.read_text().split("\n")[:2]]
        service.signal(signal.SIGTERM)
        wire.rest()
        service.process.wait(SECONDS)
        until(lambda: not any(each.is_alive() for each in processes))


def test_a_second_answer_is_nobody_elses(tmp_path: Path) -> None:
    """The conversation of the first request serves another one, with the same id, when the second answer comes."""
    pipe = tmp_path / "go"
    os.mkfifo(pipe)
    again = {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "resultType": "complete"}}
    on = {"tools/call:next": [["say", again], ["await", str(pipe)], ["good"]]}
    with hosting(tmp_path, on=on) as service:
        assert asked(service, call(1, "first", {}, LATEST)).answer().status == 200
        wire = asked(service, call(1, "next", {"words": "a"}, LATEST))
        with open(pipe, "wb"):
            pass
        answer = wire.answer().json()
        assert (answer["id"], answer["result"]["structuredContent"]["hits"]) == (1, len(str({"words": "a"})))


@pytest.mark.parametrize("mode", ["enforce", "audit"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"jsonrpc":"2.0","id":2,"result":{"content":[', id="cut-off"),
        pytest.param('{"jsonrpc":"2.0","id":2,"result":' + "[" * 600 + "]" * 600 + "}", id="deep"),
        pytest.param('{"jsonrpc":"2.0","id":2,"result":{},"result":{}}', id="repeated-key"),
    ],
)
def test_an_answer_that_cannot_be_read_ends_the_request(tmp_path: Path, mode: str, text: str) -> None:
    with hosting(tmp_path, "--mode", mode, on={"tools/call": [["raw", text + "\n"]]}) as service:
        asked(service, request(1, "tools/list", {}, LATEST)).answer()
        answer = asked(service, call("mine", "search", {"words": "a"}, LATEST)).answer()
        expected = text.replace('"id":2', '"id":"mine"').encode() if mode == "audit" else b"-31010"
        assert expected in answer.body
        assert b'"mine"' in answer.body


@pytest.mark.parametrize("mode", ["audit", "enforce"])
@pytest.mark.parametrize("more", [{}, {"method": "tools/call", "result": {}}], ids=["neither", "both"])
def test_an_answer_that_is_one_only_by_its_id_ends_its_request(tmp_path: Path, mode: str, more: dict[str, Any]) -> None:
    """Nothing else comes for it: what it is not told by this, nobody will tell it."""
    broken = {"jsonrpc": "2.0", "id": "$id", **more}
    with hosting(tmp_path, "--mode", mode, on={"tools/call": [["say", broken]]}) as service:
        answer = asked(service, call("a", "search", {"words": "sea"}, LATEST)).answer().json()
        if mode == "audit":
            assert answer == {**broken, "id": "a"}
        else:
            assert (answer["id"], answer["error"]["code"]) == ("a", -31010)
        assert asked(service, request("b", "tools/list", {}, LATEST)).answer().json()["id"] == "b"

"""A client on standard streams and a server at a URL: sessions, streams, order, and bytes as they came."""

import json
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from stdio_to_url import GUARD, INITIALIZE, INITIALIZED, META, call, enforcing, modern, notification, remotely, request
from url_server import OPENED, SECONDS, Line, Said, elsewhere, result

Script = Callable[[Line, Said], None]

LOG = notification("notifications/message", level="info", data="so far, so good")
ASKED = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "elicitation/create",
    "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}},
}


def test_everything_in_a_session_has_its_id_and_its_revision(tmp_path: Path) -> None:
    """2025-11-25, basic/transports: both headers on all subsequent requests, and a DELETE at the end."""
    with elsewhere() as server:
        with enforcing(tmp_path, server.url) as guard:
            guard.open()
            assert guard.ask(request(1, "tools/list"))["result"]["tools"]
            server.heard("GET")
            assert guard.rest() == []
            assert guard.ended() == 0
        first, *others = server.heard(count=5)
        assert first.what == "initialize"
        assert not {"mcp-session-id", "mcp-protocol-version"} & first.headers.keys()
        assert {each.what for each in others} == {"notifications/initialized", "tools/list", "GET", "DELETE"}
        for each in others:
            assert each.headers["mcp-session-id"] == "a-session"
            assert each.headers["mcp-protocol-version"] == "2025-11-25"
        for each in server.heard():
            if each.verb == "POST":
                assert each.headers["accept"] == "application/json, text/event-stream"
                assert each.headers["content-type"] == "application/json"
        assert server.heard("GET")[0].headers["accept"] == "text/event-stream"


def test_without_a_session_nothing_is_ended_and_nothing_listened_to(tmp_path: Path) -> None:
    """2026-07-28, basic/transports."""
    with elsewhere() as server:
        with enforcing(tmp_path, server.url) as guard:
            assert guard.ask(modern(1, "tools/list"))["result"]["tools"]
            assert guard.rest() == []
        (only,) = server.heard()
        assert only.headers["mcp-protocol-version"] == "2026-07-28"
        assert only.headers["mcp-method"] == "tools/list"
        assert "mcp-session-id" not in only.headers


def marking(tool: str) -> dict[str, Script]:
    """A server with *tool*, whose arguments are repeated in headers."""
    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "limit": {"type": "integer", "x-mcp-header": "Limit"},
        },
    }
    return {
        "tools/list": lambda line, said: line.result(said, {"tools": [{"name": tool, "inputSchema": schema}]}),
        "tools/call": lambda line, said: line.result(said, {"content": []}),
    }


def test_the_name_and_marked_arguments_stand_in_headers(tmp_path: Path) -> None:
    """2026-07-28, basic/transports: Mcp-Name and Mcp-Param-…, in Base64 where no header could carry the value."""
    with elsewhere(marking("suche")) as server, enforcing(tmp_path, server.url) as guard:
        assert guard.ask(modern(1, "tools/list"))["result"]["tools"]
        assert "result" in guard.ask(modern(2, "tools/call", name="suche", arguments={"region": "süd", "limit": 7}))
        (called,) = server.heard("tools/call")
        assert called.headers["mcp-name"] == "suche"
        assert called.headers["mcp-param-region"] == "=?base64?c8O8ZA==?="
        assert called.headers["mcp-param-limit"] == "7"


def test_headers_repeat_the_arguments_as_they_are_sent_after_a_repair(tmp_path: Path) -> None:
    with elsewhere(marking("find")) as server, enforcing(tmp_path, server.url) as guard:
        assert guard.ask(modern(1, "tools/list"))["result"]["tools"]
        slips: list[Any] = ['{"limit": "7"}', {"limit": "7", "region": None}]
        for ident, arguments in enumerate(slips, 2):
            assert "result" in guard.ask(modern(ident, "tools/call", name="find", arguments=arguments))
        for called in server.heard("tools/call"):
            assert called.json["params"]["arguments"] == {"limit": 7}
            assert called.headers["mcp-param-limit"] == "7"
            assert "mcp-param-region" not in called.headers


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_the_server_says_before_its_answer_comes_before_it(tmp_path: Path) -> None:
    """2025-11-25, basic/transports: a POST may be answered by a stream, with requests of the server in it."""
    answered = threading.Event()

    def streamed(line: Line, said: Said) -> None:
        line.begin()
        line.event(LOG)
        line.event(ASKED)
        assert answered.wait(SECONDS)
        line.event(result(said, {"content": []}))
        line.close()

    def taken(line: Line, said: Said) -> None:
        line.reply(202)
        answered.set()

    with elsewhere({"tools/call": streamed, "answer": taken}) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        assert guard.ask(call(5)) == LOG
        assert guard.answer() == ASKED
        guard.say({"jsonrpc": "2.0", "id": 1, "result": {"action": "decline"}})
        assert guard.answer()["id"] == 5
        assert server.heard("answer")[0].json["result"] == {"action": "decline"}


def test_what_the_server_says_unasked_comes_by_the_stream_of_the_session(tmp_path: Path) -> None:
    """2025-11-25, basic/transports, listening: after a break with Last-Event-ID, and after `retry`."""
    opened: list[Said] = []

    def stream(line: Line, said: Said) -> None:
        opened.append(said)
        line.begin()
        line.send(b"retry: 10\n\n")
        line.event({**LOG, "params": {"level": "info", "data": len(opened)}}, ident=f"event-{len(opened)}")
        if len(opened) > 2:
            line.hold()
        line.close()

    with elsewhere({"GET": stream}) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        assert [guard.answer()["params"]["data"] for _ in range(3)] == [1, 2, 3]
        assert [each.headers.get("last-event-id") for each in server.heard("GET", 3)] == [None, "event-1", "event-2"]


@pytest.mark.parametrize("broken", ["ends", "is-reset"])
def test_a_stream_with_the_answer_that_breaks_off_is_resumed(tmp_path: Path, broken: str) -> None:
    """2025-11-25, basic/transports, resumability."""
    waiting: list[Said] = []
    arrived = Event()

    def begun(line: Line, said: Said) -> None:
        waiting.append(said)
        line.begin()
        line.send(b"id: 1\nretry: 10\ndata:\n\n")
        line.event(LOG, ident="2")
        # A reset takes away what has not been read yet.
        assert arrived.wait(SECONDS)
        (line.close if broken == "ends" else line.reset)()

    def rest(line: Line, said: Said) -> None:
        if "last-event-id" not in said.headers:
            line.reply(405)
            return
        line.begin()
        line.event(result(waiting[0], {"content": []}), ident="3")
        line.close()

    with elsewhere({"tools/call": begun, "GET": rest}) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        guard.say(call(5))
        assert guard.answer() == LOG
        arrived.set()
        assert guard.answer()["result"] == {"content": []}
        resumed = [each for each in server.heard("GET") if "last-event-id" in each.headers]
        assert resumed[0].headers["last-event-id"] in ("1", "2")
        assert resumed[0].headers["mcp-session-id"] == "a-session"


def test_a_stream_that_cannot_be_resumed_fails_the_request(tmp_path: Path) -> None:
    """Ours."""

    def begun(line: Line, said: Said) -> None:
        line.begin()
        line.send(b"id: 1\nretry: 10\ndata:\n\n")
        line.close()

    with elsewhere({"tools/call": begun}) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        error = guard.ask(call(5))["error"]
        assert error["code"] == -31011
        assert "its stream ended without the answer, and could not be resumed: it answered 405" in str(error["data"])


def test_a_subscription_stays_open_and_is_ended_by_closing_it(tmp_path: Path) -> None:
    """2026-07-28, basic/utilities/cancellation: over HTTP, closing the stream is what cancels a request."""
    closed = threading.Event()

    def subscribed(line: Line, said: Said) -> None:
        line.begin()
        meta = {"io.modelcontextprotocol/subscriptionId": said.json["id"]}
        line.event(notification("notifications/subscriptions/acknowledged", notifications={}, _meta=meta))
        line.hold()
        closed.set()

    with elsewhere({"subscriptions/listen": subscribed}) as server, enforcing(tmp_path, server.url) as guard:
        guard.say(modern("sub", "subscriptions/listen", notifications={"toolsListChanged": True}))
        assert guard.answer()["method"] == "notifications/subscriptions/acknowledged"
        assert guard.ask(modern(2, "tools/list"))["result"]["tools"]
        assert not closed.is_set()
        guard.say(notification("notifications/cancelled", requestId="sub"))
        assert closed.wait(SECONDS)
        assert guard.rest() == []
        assert guard.ended() == 0
        assert server.order() == ["subscriptions/listen", "tools/list"]


def test_in_a_session_a_cancellation_is_passed_on_and_its_answer_may_cross_it(tmp_path: Path) -> None:
    """2025-11-25, basic/utilities/cancellation: a disconnect is no cancellation; the notification is."""
    cancelled = threading.Event()

    def crossing(line: Line, said: Said) -> None:
        assert cancelled.wait(SECONDS)
        line.result(said, {"content": []})

    def told(line: Line, said: Said) -> None:
        line.reply(202)
        cancelled.set()

    scripts = {"tools/call": crossing, "notifications/cancelled": told}
    with elsewhere(scripts) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        guard.say(call(5))
        server.heard("tools/call")
        guard.say(notification("notifications/cancelled", requestId=5))
        assert guard.answer()["id"] == 5
        assert server.heard("notifications/cancelled")[0].json["params"] == {"requestId": 5}


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_notification_is_taken_before_the_next_message_goes(tmp_path: Path) -> None:
    """Ours: over HTTP nothing else keeps messages in their order."""
    overtaken: list[bool] = []
    with elsewhere() as server:

        def slowly(line: Line, said: Said) -> None:
            overtaken.append(server.comes("tools/list", 0.3))
            line.reply(202)

        server.on("notifications/initialized", slowly)
        with enforcing(tmp_path, server.url) as guard:
            guard.say(INITIALIZE, INITIALIZED, request(1, "tools/list"))
            assert [each["id"] for each in guard.rest()] == ["open", 1]
        assert overtaken == [False]


def test_nothing_is_sent_before_initialize_is_answered(tmp_path: Path) -> None:
    """2025-11-25, basic/lifecycle: and before that, nobody knows the session."""
    overtaken: list[bool] = []
    with elsewhere() as server:

        def slowly(line: Line, said: Said) -> None:
            overtaken.append(server.comes("notifications/initialized", 0.3))
            line.result(said, OPENED, Mcp_Session_Id="late")

        server.on("initialize", slowly)
        with enforcing(tmp_path, server.url) as guard:
            guard.say(INITIALIZE, INITIALIZED, request(1, "tools/list"))
            assert [each["id"] for each in guard.rest()] == ["open", 1]
        assert overtaken == [False]
        assert server.heard("tools/list")[0].headers["mcp-session-id"] == "late"


def test_requests_go_in_their_order_and_do_not_wait_for_each_others_answers(tmp_path: Path) -> None:
    """Ours."""
    count = 20
    arrived = threading.Barrier(count)

    def together(line: Line, said: Said) -> None:
        arrived.wait(SECONDS)
        line.result(said, {"content": []})

    with elsewhere({"tools/call": together}) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        guard.say(*(call(ident) for ident in range(count)))
        assert sorted(guard.answer()["id"] for _ in range(count)) == list(range(count))
        assert server.heard("tools/call", count)


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", ["json", "events"])
@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_a_frame_passes_as_the_very_bytes_that_came(tmp_path: Path, form: str, mode: str) -> None:
    """The law of the guard: either way, and in either form that HTTP has."""
    spelt = '{ "id":1.0 , "jsonrpc":"2.0","result":{"tools":[], "x":-0, "y":1234567890123456789012,"z":"\\u00e9é"} }'

    def answered(line: Line, said: Said) -> None:
        if form == "json":
            line.json(spelt.encode())
            return
        line.begin()
        line.event(spelt.encode())
        line.close()

    asked = '{ "method":"tools/list", "id" :1, "jsonrpc":"2.0", "params": {"x": 1e2, "é":"\\u00e9"} }'
    with elsewhere({"tools/list": answered}) as server, remotely(tmp_path, server.url, "--mode", mode) as guard:
        guard.open()
        guard.say(asked.encode() + b"\n")
        assert guard.next() == spelt.encode()
        assert server.heard("tools/list")[0].body == asked.encode()


@pytest.mark.parametrize("form", ["json", "events"])
def test_a_frame_of_several_lines_is_spelt_on_one(tmp_path: Path, form: str) -> None:
    """2025-11-25, basic/transports, stdio: messages must not contain embedded newlines."""

    def answered(line: Line, said: Said) -> None:
        text = json.dumps(result(said, {"tools": [], "n": 12345678901234567890123}), indent=1).encode()
        if form == "json":
            line.json(text)
            return
        line.begin()
        line.send(b"".join(b"data: %b\n" % each for each in text.splitlines()) + b"\n")
        line.close()

    with elsewhere({"tools/list": answered}) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        guard.say(request(1, "tools/list"))
        line = guard.next()
        assert b"\r" not in line
        assert json.loads(line)["result"] == {"tools": [], "n": 12345678901234567890123}


def test_what_breaks_the_contract_stops_in_both_directions(tmp_path: Path) -> None:
    """The guard's own work, over HTTP as over pipes."""
    scripts: dict[str, Script] = {"tools/call": lambda line, said: line.result(said, {"content": [{"type": "text"}]})}
    with elsewhere(scripts) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        assert guard.ask(call(1))["result"]["isError"] is True
        assert guard.ask(request(2, "tools/list", {"cursor": 7}))["error"]["code"] == -32602
        guard.say(b"no JSON\n")
        assert guard.answer()["error"]["code"] == -32700
        assert guard.rest() == []
        assert server.order().count("tools/list") == 0
        assert "[protocol/result]" in guard.log


def test_a_refused_request_of_the_server_is_answered_to_the_server(tmp_path: Path) -> None:
    """The guard's own work, over HTTP."""

    def asking(line: Line, said: Said) -> None:
        line.begin()
        line.event({"jsonrpc": "2.0", "id": "mine", "method": "nonsense/ask"})
        line.event(result(said, {"content": []}))
        line.close()

    with elsewhere({"tools/call": asking}) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        assert guard.ask(call(1))["id"] == 1
        refusal = server.heard("answer")[0].json
        assert (refusal["id"], refusal["error"]["code"]) == ("mine", -32601)


def test_a_message_that_is_too_long_is_refused_under_audit_too(tmp_path: Path) -> None:
    """Ours: a body is sent whole or not at all."""
    with elsewhere() as server, remotely(tmp_path, server.url, "--set", "guard.frame_bytes=4096") as guard:
        answer = guard.ask(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": "y" * 9000, "_meta": META}}
        )
        assert (answer["id"], answer["error"]["code"]) == (1, -32600)
        assert guard.ask(modern(2, "tools/list"))["result"]["tools"]
        assert server.order() == ["tools/list"]


def test_an_id_that_is_open_already_passes_under_audit(tmp_path: Path) -> None:
    """The law of audit: everything passes."""
    with elsewhere() as server:

        def later(line: Line, said: Said) -> None:
            server.heard("tools/call", 2)
            line.result(said, {"content": []})

        server.on("tools/call", later)
        with remotely(tmp_path, server.url) as guard:
            guard.open()
            guard.say(call(1), call(1))
            assert [guard.answer()["id"], guard.answer()["id"]] == [1, 1]
            assert guard.rest() == []


# ── the client ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_client_that_does_not_read_holds_up_the_server_and_loses_nothing(tmp_path: Path) -> None:
    """Ours: what waits is bounded, and comes in its order once the client reads."""
    count, data = 200, "x" * 100_000
    written: list[int] = []

    def flood(line: Line, said: Said) -> None:
        line.begin()
        for number in range(count):
            line.event(notification("notifications/message", level="info", data=[number, data]))
            written.append(number)
        line.event(result(said, {"content": []}))
        line.close()

    with elsewhere({"tools/call": flood}) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        guard.say(call(1))
        server.heard("tools/call")
        before = -1
        while not written or len(written) != before:
            # Until nobody takes any more: the pipe, the guard and the connection are full.
            before = len(written)
            threading.Event().wait(0.5)
        assert 0 < before < count
        assert [guard.answer()["params"]["data"][0] for _ in range(count)] == list(range(count))
        assert guard.answer()["id"] == 1
        peak = int(Path(f"/proc/{guard.process.pid}/status").read_text().partition("VmHWM:")[2].split()[0])
        assert peak < 150_000, "kilobytes, of which most is the program"


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_answers_what_is_open_and_ends_the_session(tmp_path: Path, sign: signal.Signals) -> None:
    """Ours."""
    with elsewhere({"tools/call": lambda line, _: line.hold()}) as server:
        with enforcing(tmp_path, server.url) as guard:
            guard.open()
            guard.say(call(1))
            server.heard("tools/call")
            guard.process.send_signal(sign)
            answer = guard.answer()
            assert (answer["id"], answer["error"]["code"]) == (1, -31011)
            assert guard.ended() == 0
        assert server.heard("DELETE")[0].headers["mcp-session-id"] == "a-session"


def test_a_client_that_reads_no_more_ends_the_guard(tmp_path: Path) -> None:
    """Ours: answers that nobody reads are not waited for."""
    with elsewhere({"tools/call": lambda line, _: line.hold()}) as server:
        with enforcing(tmp_path, server.url) as guard:
            guard.open()
            guard.say(call(1))
            server.heard("tools/call")
            assert guard.process.stdout is not None
            guard.process.stdout.close()
            assert guard.ended() == 0
        assert server.heard("DELETE")


def test_files_will_do_for_standard_streams(tmp_path: Path) -> None:
    """Ours: a script has a file of requests, and wants one of answers."""
    asked, answers = tmp_path / "asked", tmp_path / "answers"
    asked.write_bytes(
        b"".join(json.dumps(each).encode() + b"\n" for each in (modern(1, "tools/list"), modern(2, "x/y")))
    )
    with elsewhere() as server, asked.open("rb") as source, answers.open("wb") as sink:
        done = subprocess.run(
            [*GUARD, "--target", server.url, "--quiet"],
            stdin=source,
            stdout=sink,
            cwd=tmp_path,
            timeout=SECONDS,
            check=True,
        )
        assert done.returncode == 0
    got: list[Any] = [json.loads(each) for each in answers.read_bytes().splitlines()]
    assert {each["id"] for each in got} == {1, 2}

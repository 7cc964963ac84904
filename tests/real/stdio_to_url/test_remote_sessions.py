"""A client on standard streams and a server at a URL: sessions, streams, order, and bytes as they came."""

import json
import signal
import threading
from pathlib import Path
from typing import Any

from guarded_url import INITIALIZE, enforcing, guarded_url, modern

from kit.guard_process import INITIALIZED, SECONDS, call, notification, request
from kit.journals import records
from kit.rows import rows
from kit.scripted_http import FOUND, OPENED, SESSION, Received, Script, WirePeer, by_method, result, scripted

LOG = notification("notifications/message", {"level": "info", "data": "so far, so good"})
ASKED = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "elicitation/create",
    "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}},
}
TOKEN = "tok-4711-secret"  # noqa: S105 - made up

# ── headers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_everything_in_a_session_has_its_headers_and_secrets_reach_the_server_alone(tmp_path: Path) -> None:
    """
    2025-11-25, basic/transports: both headers on all subsequent requests, and a DELETE at the end.

    Ours: neither people nor the journal see a secret, whatever fails.
    """
    options: tuple[str, ...] = ("--header", "X-Key: Bearer env:BOOKS_TOKEN", "--header", "X-Tenant: süd")
    options += ("--journal", "records", "--set", "journal.payloads=true")
    with scripted(by_method({"prompts/list": lambda _, peer: peer.reply(401, b"who?")})) as server:
        url = server.url.replace("//", f"//me:{TOKEN}@") + f"?key={TOKEN}"
        with enforcing(tmp_path, url, *options, BOOKS_TOKEN=TOKEN) as guard:
            # What was said before the end is sent, and answered, with and without a newline.
            guard.say(INITIALIZE, INITIALIZED, request(1, "prompts/list"))
            guard.write(b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}')
            answers = [guard.answer(), guard.answer()]
            server.heard("GET")
            answers += guard.rest()
            assert guard.ended() == 0
        assert sorted(each["id"] for each in answers[1:]) == [1, 2]
        first, *others = server.heard(count=6)
        assert first.what == "initialize"
        assert [first.header(name) for name in ("mcp-session-id", "mcp-protocol-version")] == [None, None]
        posted = {"notifications/initialized", "prompts/list", "tools/list"}
        assert {each.what for each in others} == {*posted, "GET", "DELETE"}
        assert server.asked()[-1] == "DELETE"
        for each in others:
            assert each.header("mcp-session-id") == SESSION
            assert each.header("mcp-protocol-version") == "2025-11-25"
        for each in server.heard():
            assert each.header("x-key") == f"Bearer {TOKEN}"
            assert each.header("x-tenant") == "süd".encode().decode("latin-1")
            if each.method == "POST":
                assert each.header("accept") == "application/json, text/event-stream"
                assert each.header("content-type") == "application/json"
        assert server.heard("GET")[0].header("accept") == "text/event-stream"
    assert f"assay: guarding {server.url.split('/')[2]} (enforce), journal {tmp_path}/records\n" in guard.shown
    assert "it answered 401" in guard.shown
    written = records(tmp_path / "records")
    assert [each["requestId"] for each in written if each["metadata"]["id"] == 2] == 2 * [written[-1]["requestId"]]
    journal = (tmp_path / "records" / ".latest").read_text(encoding="utf-8")
    assert not any(TOKEN in text for text in (json.dumps(answers), guard.shown, journal))


SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "limit": {"type": "integer", "x-mcp-header": "Limit"},
    },
}


def test_without_a_session_headers_repeat_the_message_and_nothing_is_ended(tmp_path: Path) -> None:
    """2026-07-28, basic/transports: Mcp-Name and Mcp-Param-…, of the arguments as they are sent after a repair."""
    scripts: dict[str, Script] = {
        "tools/list": lambda said, peer: peer.answer(said, {"tools": [{"name": "find", "inputSchema": SCHEMA}]}),
        "tools/call": lambda said, peer: peer.answer(said, FOUND),
    }
    with scripted(by_method(scripts)) as server:
        with enforcing(tmp_path, server.url) as guard:
            assert guard.ask(modern(1, "tools/list"))["result"]["tools"]
            given: list[Any] = [{"region": "süd", "limit": 7}, '{"limit": "7"}', {"limit": "7", "region": None}]
            for ident, arguments in enumerate(given, 2):
                assert "result" in guard.ask(modern(ident, "tools/call", name="find", arguments=arguments))
            assert guard.rest() == []
        listed, called, *repaired = server.heard()
        assert {each.what for each in repaired} == {"tools/call"}, "neither GET nor DELETE"
        assert listed.header("mcp-protocol-version") == "2026-07-28"
        assert listed.header("mcp-method") == "tools/list"
        assert listed.header("mcp-session-id") is None
        assert called.header("mcp-name") == "find"
        assert called.header("mcp-param-region") == "=?base64?c8O8ZA==?="
        assert called.header("mcp-param-limit") == "7"
        for each in repaired:
            assert each.message["params"]["arguments"] == {"limit": 7}
            assert each.header("mcp-param-limit") == "7"
            assert each.header("mcp-param-region") is None


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_the_server_says_before_its_answer_and_unasked_reaches_the_client(tmp_path: Path) -> None:
    """2025-11-25, basic/transports: in the stream of a POST, and in that of the session, which is opened again."""
    answered, listened = threading.Event(), threading.Event()
    opened: list[Received] = []

    def streamed(said: Received, peer: WirePeer) -> None:
        peer.events(LOG, ASKED)
        assert answered.wait(SECONDS)
        peer.event(result(said.message, FOUND))

    def taken(said: Received, peer: WirePeer) -> None:
        peer.reply(202)
        answered.set()

    def stream(said: Received, peer: WirePeer) -> None:
        assert listened.wait(SECONDS)
        opened.append(said)
        peer.events(f"retry: 10\nid: event-{len(opened)}\n".encode())
        peer.event({**LOG, "params": {"level": "info", "data": len(opened)}})
        if len(opened) > 2:
            peer.gone()

    scripts: dict[str, Script] = {"tools/call": streamed, "answer": taken, "GET": stream}
    with scripted(by_method(scripts)) as server, enforcing(tmp_path, server.url) as guard:
        guard.begin()
        assert guard.ask(call(5)) == LOG
        assert guard.answer() == ASKED
        guard.say({"jsonrpc": "2.0", "id": 1, "result": {"action": "decline"}})
        assert guard.answer()["id"] == 5
        assert server.heard("answer")[0].message["result"] == {"action": "decline"}
        listened.set()
        assert [guard.answer()["params"]["data"] for _ in range(3)] == [1, 2, 3]
        assert [each.header("last-event-id") for each in server.heard("GET", 3)] == [None, "event-1", "event-2"]


def test_a_stream_with_the_answer_that_breaks_off_is_resumed_or_fails_the_request(tmp_path: Path) -> None:
    """2025-11-25, basic/transports, resumability."""
    waiting: dict[str, Received] = {}
    arrived = threading.Event()

    def begun(said: Received, peer: WirePeer) -> None:
        how = said.message["id"]
        waiting[f"{how}-1"] = said
        peer.events(f"id: {how}-1\nretry: 10\ndata:\n\n".encode())
        if how == "reset":
            peer.event(LOG)
            # A reset takes away what has not been read yet.
            assert arrived.wait(SECONDS)
            peer.reset()

    def rest(said: Received, peer: WirePeer) -> None:
        last = said.header("last-event-id")
        if last in (None, "gone-1"):
            peer.reply(405)
            return
        assert said.header("mcp-session-id") == SESSION
        peer.events(result(waiting[str(last)].message, FOUND))

    with scripted(by_method({"tools/call": begun, "GET": rest})) as server, enforcing(tmp_path, server.url) as guard:
        guard.begin()
        assert guard.ask(call("ends"))["result"] == FOUND
        assert guard.ask(call("reset")) == LOG
        arrived.set()
        assert guard.answer()["result"] == FOUND
        error = guard.ask(call("gone"))["error"]
        assert error["code"] == -31011
        assert "stream ended without the answer, and could not be resumed: it answered 405" in str(error["data"])


def test_a_request_is_cancelled_by_closing_its_response_or_in_a_session_by_the_notification(tmp_path: Path) -> None:
    """basic/utilities/cancellation: 2026-07-28 closes; 2025-11-25 says so, and the answer may cross that."""
    closed, cancelled = threading.Event(), threading.Event()

    def subscribed(said: Received, peer: WirePeer) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": said.message["id"]}
        peer.events(notification("notifications/subscriptions/acknowledged", {"notifications": {}, "_meta": meta}))
        peer.gone()
        closed.set()

    def crossing(said: Received, peer: WirePeer) -> None:
        assert cancelled.wait(SECONDS)
        peer.answer(said, FOUND)

    def taken(said: Received, peer: WirePeer) -> None:
        peer.reply(202)
        cancelled.set()

    with scripted(by_method({"subscriptions/listen": subscribed})) as server, enforcing(tmp_path, server.url) as guard:
        guard.say(modern("sub", "subscriptions/listen", notifications={"toolsListChanged": True}))
        assert guard.answer()["method"] == "notifications/subscriptions/acknowledged"
        assert guard.ask(modern(2, "tools/list"))["result"]["tools"]
        assert not closed.is_set()
        guard.say(notification("notifications/cancelled", {"requestId": "sub"}))
        assert closed.wait(SECONDS)
        assert guard.rest() == []
        assert guard.ended() == 0
        assert server.asked() == ["subscriptions/listen", "tools/list"]
    scripts: dict[str, Script] = {"tools/call": crossing, "notifications/cancelled": taken}
    with scripted(by_method(scripts)) as server, enforcing(tmp_path, server.url) as guard:
        guard.begin()
        guard.say(call(5))
        server.heard("tools/call")
        guard.say(notification("notifications/cancelled", {"requestId": 5}))
        assert guard.answer()["id"] == 5
        assert server.heard("notifications/cancelled")[0].message["params"] == {"requestId": 5}


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_messages_go_in_their_order_and_requests_do_not_wait_for_each_others_answers(tmp_path: Path) -> None:
    """
    Ours: over HTTP nothing else keeps messages in their order. A notification is taken before the next one goes.

    2025-11-25, basic/lifecycle: nothing is sent before initialize is answered, and the session is known.
    """
    count = 20
    changed = [notification("notifications/roots/list_changed", {"_meta": {"n": each}}) for each in range(count)]
    said = [INITIALIZE, INITIALIZED, *(each for ident in range(count) for each in (changed[ident], call(ident)))]
    together = threading.Barrier(count)
    overtaking: list[Any] = []

    def in_order(received: Received, peer: WirePeer) -> None:
        """Nothing that was said later has come by now. An earlier request may be on its way."""
        later = said[said.index(received.message) + 1 :]
        overtaking.extend(each.message for each in server.heard() if each.method == "POST" and each.message in later)
        if received.what == "initialize":
            peer.answer(received, OPENED, mcp_session_id="late")
        else:
            peer.reply(202)

    def answered(received: Received, peer: WirePeer) -> None:
        together.wait(SECONDS)
        peer.answer(received, FOUND)

    waits = ("initialize", "notifications/initialized", "notifications/roots/list_changed")
    scripts: dict[str, Script] = {**dict.fromkeys(waits, in_order), "tools/call": answered}
    with scripted(by_method(scripts)) as server, guarded_url(tmp_path, server.url) as guard:
        guard.say(*said)
        assert sorted(each["id"] for each in guard.rest() if each["id"] != "open") == list(range(count))
        heard = [each for each in server.heard() if each.method == "POST"]
        assert len(heard) == len(said)
        assert {each.header("mcp-session-id") for each in heard[1:]} == {"late"}
        assert overtaking == []


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

SPELT = '{ "id":%s , "jsonrpc":"2.0","result":{"tools":[], "x":-0, "y":1234567890123456789012,"z":"\\u00e9é"} }'
LINES = '{\n "jsonrpc": "2.0",\n "id": %s,\n "result": {\n  "tools": [],\n  "n": 12345678901234567890123\n }\n}'


@rows("mode", ["audit", "enforce"])
def test_a_frame_passes_as_the_very_bytes_that_came(tmp_path: Path, mode: str) -> None:
    """In either form that HTTP has. Only a frame of several lines is spelt on one: STDIO has no other way."""

    def answered(said: Received, peer: WirePeer) -> None:
        form, spelling = said.message["params"]["form"], said.message["params"]["spelling"]
        text = (SPELT if spelling == "odd" else LINES) % f"{said.message['id']}.0"
        if form == "json":
            peer.json(text.encode())
            return
        peer.events("".join(f"data: {each}\n" for each in text.splitlines()).encode() + b"\n")

    with (
        scripted(by_method({"tools/list": answered})) as server,
        guarded_url(tmp_path, server.url, "--mode", mode) as guard,
    ):
        guard.begin()
        for ident, form in ((1, "json"), (2, "events")):
            asked = f'{{ "method":"tools/list", "id" :{ident}, "jsonrpc":"2.0", "params": {{"x": 1e2, "é":"\\u00e9",'
            asked += f'"form":"{form}","spelling":"odd"}} }}'
            guard.write(asked.encode() + b"\n")
            assert guard.out.next() == (SPELT % f"{ident}.0").encode()
            assert server.heard("tools/list", 2 * ident - 1)[-1].body == asked.encode()
            guard.say(request(ident, "tools/list", {"form": form, "spelling": "lines"}))
            line = guard.out.next()
            assert b"\r" not in line
            assert json.loads(line)["result"] == {"tools": [], "n": 12345678901234567890123}


# ── the client ───────────────────────────────────────────────────────────────────────────────────────────────────────


@rows("how", [signal.SIGTERM, signal.SIGINT, "gone"])
def test_a_signal_or_a_client_that_is_gone_ends_the_guard_and_the_session(
    tmp_path: Path, how: signal.Signals | str
) -> None:
    """Ours: what is open is answered; answers that cannot be read are not waited for."""
    with scripted(by_method({"tools/call": lambda _, peer: peer.gone()})) as server:
        with enforcing(tmp_path, server.url) as guard:
            guard.begin()
            guard.say(call(1))
            server.heard("tools/call")
            if isinstance(how, signal.Signals):
                guard.process.send_signal(how)
                answer = guard.answer()
                assert (answer["id"], answer["error"]["code"]) == (1, -31011)
            else:
                assert guard.process.stdout is not None
                guard.process.stdout.close()
            assert guard.ended() == 0
            assert "] 3 messages from the client, " in guard.shown
        assert server.heard("DELETE")[0].header("mcp-session-id") == SESSION

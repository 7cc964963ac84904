"""A server at a URL that fails, in every way that HTTP has: each request gets one answer, and the next one is sent."""

import gzip
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from stdio_to_url import INITIALIZE, INITIALIZED, call, enforcing, modern, remotely, request
from url_server import OPENED, SECONDS, Line, Said, closed_port, elsewhere, result

from assay.edges.stdio_url import REFUSED_AT_ONCE
from kit.journals import records

LOST, INVALID, LATE = -31011, -31010, -31012
LIMIT = 65536

Script = Callable[[Line, Said], None]


def html(status: int) -> Script:
    page = b"\n\n<html>The <b>gateway</b> is down</html>\n<p>Sorry</p>" + b"x" * 100_000
    return lambda line, _: line.reply(status, page, "text/html; charset=utf-8")


def truncated(line: Line, said: Said) -> None:
    line.begin(length=1000, type_="application/json")
    line.send(b'{"jsonrpc":"2.0","id":1,"res')
    line.close()


def ends(line: Line, said: Said) -> None:
    line.begin()
    line.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}})
    line.close()


def breaks(line: Line, said: Said) -> None:
    line.begin()
    line.send(b"data: {")
    line.reset()


def endless_body(line: Line, said: Said) -> None:
    line.begin(type_="application/json")
    while True:
        line.send(b'"' + b"x" * 65536)


def endless_event(line: Line, said: Said) -> None:
    line.begin()
    for _ in range(64):
        line.send(b"data: " + b"x" * 65536)
    line.close()


def zipped(line: Line, said: Said) -> None:
    line.reply(200, gzip.compress(b"{}"), "application/json", Content_Encoding="gzip")


def babble(line: Line, said: Said) -> None:
    line.send(b"SSH-2.0-x\r\n")
    line.close()


def barred(status: int) -> Script:
    wants = 'Bearer realm="books", resource_metadata="https://books.example/.well-known"'
    return lambda line, _: line.reply(status, b"not you", "text/plain", WWW_Authenticate=wants)


def reason_of(answer: Any) -> str:
    """Why a request got no answer, or was refused by a status."""
    data = answer["error"]["data"]
    return str(data["detail"] if "detail" in data else data["violations"][0]["found"])


FAILURES: list[tuple[str, Script, int, str]] = [
    ("unauthorized", barred(401), LOST, 'it answered 401 Some Reason; it asks for Bearer realm="books"'),
    ("forbidden", barred(403), LOST, "it answered 403 Some Reason; it asks for Bearer"),
    ("not-found", html(404), LOST, "it answered 404 Some Reason: <html>The <b>gateway</b> is down</html>"),
    ("not-allowed", lambda line, _: line.reply(405), LOST, "it answered 405 Some Reason"),
    (
        "media-type",
        lambda line, _: line.reply(415, b'{"detail":"no"}', "application/json"),
        LOST,
        '415 Some Reason: {"d',
    ),
    ("html-500", html(500), LOST, "it answered 500 Some Reason: <html>The <b>gateway</b> is down</html>"),
    ("html-503", html(503), LOST, "it answered 503 Some Reason: <html>"),
    ("html-200", html(200), INVALID, "it answered 200 Some Reason with the content type text/html: <html>The"),
    ("no-type", lambda line, _: line.reply(200, b"{}"), INVALID, "with no content type: {}"),
    ("accepted", lambda line, _: line.reply(202), INVALID, "it answered 202 Some Reason, and nothing else"),
    ("empty", lambda line, _: line.reply(200, b"", "application/json"), INVALID, "with an empty body"),
    ("no-json", lambda line, _: line.json(b'{"jsonrpc":"2.0","id'), INVALID, 'not JSON: {"jsonrpc":"2.0","id'),
    (
        "other-id",
        lambda line, said: line.json({**result(said), "id": 77}),
        INVALID,
        "its answer does not belong to this request",
    ),
    ("no-message", lambda line, _: line.json(b'{"detail":"no"}'), INVALID, 'belong to this request: {"detail":"no"}'),
    ("truncated", truncated, LOST, "it closed the connection, or its answer is not HTTP"),
    ("stream-ends", ends, LOST, "its stream ended without the answer"),
    ("stream-breaks", breaks, LOST, "the connection broke off: Connection reset by peer"),
    ("endless-body", endless_body, INVALID, f"its answer has more than {LIMIT:,} bytes"),
    ("endless-event", endless_event, LOST, "its stream ended without the answer"),
    ("compressed", zipped, INVALID, "its answer is compressed, although that was not requested"),
    (
        "redirect",
        lambda line, _: line.reply(307, Location="https://me:secret@books.example/mcp?token=secret"),
        LOST,
        "it redirects to https://books.example/mcp (307 Some Reason), which is not followed",
    ),
    ("reset", lambda line, _: line.reset(), LOST, "the connection broke off: Connection reset by peer"),
    ("closed", lambda line, _: line.close(), LOST, "it closed the connection, or its answer is not HTTP"),
    ("no-http", babble, LOST, "it closed the connection, or its answer is not HTTP"),
]


@pytest.mark.parametrize("mode", ["audit", "enforce"])
@pytest.mark.parametrize(("script", "code", "words"), [pytest.param(*row[1:], id=row[0]) for row in FAILURES])
def test_a_request_that_fails_gets_one_error_and_the_next_is_answered(
    tmp_path: Path, script: Script, code: int, words: str, mode: str
) -> None:
    """Ours: over HTTP it is the guard that loses an answer, and nobody else could say so; under audit as well."""
    options = ("--mode", mode, "--set", f"guard.frame_bytes={LIMIT}")
    with elsewhere({"prompts/list": script}) as server, remotely(tmp_path, server.url, *options) as guard:
        guard.say(modern(1, "prompts/list"))
        answer = guard.answer()
        while "id" not in answer or answer["id"] == 77:
            # What came before is passed on.
            answer = guard.answer()
        assert answer["id"] == 1
        assert answer["error"]["code"] == code, answer
        found = reason_of(answer)
        assert words in found
        assert len(found) < 600
        assert "secret" not in found
        guard.say(modern(2, "tools/list"))
        assert guard.answer()["result"]["tools"]
        assert guard.rest() == []
        assert guard.ended() == 0
        assert words in guard.log
        assert "Traceback" not in guard.log
        assert "secret" not in guard.log


UNUSABLE = "No usable answer came: the server answered "

REFUSALS: dict[str, tuple[bytes, int, Any]] = {
    "no-id": (b'{"jsonrpc":"2.0","error":{"code":-32001,"message":"Gone","data":[1]}}', -32001, "Gone"),
    "null-id": (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad","data":[1]}}', -32000, "Bad"),
    "other-id": (
        b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"No","data":[1]}}',
        -32600,
        "No",
    ),
    "oauth": (b'{"error":"invalid_token","error_description":"Expired"}', LOST, UNUSABLE),
    "text": (b"not you", LOST, UNUSABLE),
}


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_a_refusal_keeps_its_reason_and_is_no_finding(tmp_path: Path, mode: str) -> None:
    """2025-11-25, basic/transports: the body "MAY comprise a JSON-RPC error response that has no id"."""
    body = b""
    status = 400

    def refuses(line: Line, _: Said) -> None:
        line.reply(status, body, "application/json" if body.startswith(b"{") else "text/plain")

    with elsewhere({"prompts/list": refuses}) as server, remotely(tmp_path, server.url, "--mode", mode) as guard:
        for status in (400, 401, 403, 404, 405, 406, 409, 415, 429):
            for body, code, message in REFUSALS.values():
                answer = guard.ask(modern(1, "prompts/list"))
                assert (answer["id"], answer["error"]["code"]) == (1, code)
                assert answer["error"]["message"].startswith(f"{message}{status}" if code == LOST else message)
                assert answer["error"]["data"] == [1] or answer["error"]["data"]["status"] == status
                assert code != LOST or body.decode()[-8:-3] in reason_of(answer)
        assert guard.rest() == []
        assert guard.ended() == 0
        assert ", 0 findings" in guard.log


def test_who_is_not_let_in_is_told_what_the_server_asks_for(tmp_path: Path) -> None:
    """Ours."""
    with elsewhere({"tools/list": barred(401)}) as server, enforcing(tmp_path, server.url) as guard:
        data = guard.ask(modern(1, "tools/list"))["error"]["data"]
        assert data["status"] == 401
        assert data["wwwAuthenticate"].startswith('Bearer realm="books"')
        assert guard.rest() == []
        assert 'it asks for Bearer realm="books"' in guard.log


NO_CONNECTION = "cannot connect to 127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("http://127.0.0.1:{port}/mcp", f"{NO_CONNECTION}: Connection refused", id="refused"),
        pytest.param("http://nowhere.invalid/mcp", "the server's name could not be resolved: ", id="no-such-name"),
    ],
)
def test_a_server_that_is_not_there_fails_each_request_by_itself(tmp_path: Path, url: str, words: str) -> None:
    """Ours."""
    with closed_port() as port, remotely(tmp_path, url.format(port=port)) as guard:
        for ident in (1, 2):
            answer = guard.ask(modern(ident, "tools/list"))
            assert answer["id"] == ident
            assert answer["error"]["code"] == LOST
            assert answer["error"]["message"].startswith(f"No answer came: {words.format(port=port)}")
        assert guard.rest() == []
        assert guard.ended() == 0


def test_a_server_without_tls_is_told_apart_from_one_that_is_not_there(tmp_path: Path) -> None:
    """Ours."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS)
        with remotely(tmp_path, f"https://127.0.0.1:{listener.getsockname()[1]}/mcp") as guard:
            guard.say(modern(1, "tools/list"))
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                answer = guard.answer()
        assert "no secure connection: " in answer["error"]["data"]["violations"][0]["found"]


def test_an_error_of_json_rpc_is_passed_on_as_it_is_whatever_its_status(tmp_path: Path) -> None:
    """2026-07-28, basic/transports: an unknown method has the status 404."""
    spelt = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such thing"}}'
    scripts: dict[str, Script] = {"prompts/list": lambda line, _: line.json(spelt, 404)}
    with elsewhere(scripts) as server, enforcing(tmp_path, server.url) as guard:
        guard.say(modern(1, "prompts/list"))
        assert guard.next() == spelt


def test_an_error_without_the_id_is_still_the_answer_to_what_was_sent(tmp_path: Path) -> None:
    """Ours: servers of the handshake era refuse `server/discover` so, and a client falls back by that code."""
    refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Server not initialized"}}
    scripts: dict[str, Script] = {"server/discover": lambda line, _: line.json(refusal, 400)}
    with elsewhere(scripts) as server, enforcing(tmp_path, server.url) as guard:
        answer = guard.ask(modern("probe", "server/discover"))
        assert answer == {**refusal, "id": "probe"}
        assert guard.ask(INITIALIZE)["result"]["protocolVersion"] == "2025-11-25"


def test_a_server_of_the_first_revision_is_suspected_where_initialize_is_not_allowed(tmp_path: Path) -> None:
    """Ours: HTTP+SSE of 2024-11-05 answers a POST to its stream with 405."""
    scripts: dict[str, Script] = {"initialize": lambda line, _: line.reply(405)}
    with elsewhere(scripts) as server, enforcing(tmp_path, server.url) as guard:
        found = reason_of(guard.ask(INITIALIZE))
        assert "this may be a server of 2024-11-05 (HTTP+SSE)" in found


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def silent(line: Line, said: Said) -> None:
    line.hold()


def test_without_a_session_a_request_that_waits_too_long_has_its_connection_closed(tmp_path: Path) -> None:
    """2026-07-28, basic/utilities/cancellation: closing the stream cancels; no notification is sent."""
    closed: SimpleQueue[str] = SimpleQueue()

    def until_closed(line: Line, said: Said) -> None:
        line.hold()
        closed.put(said.what)

    with elsewhere({"prompts/list": until_closed}) as server:
        with enforcing(tmp_path, server.url, "--timeout", "6") as guard:
            assert guard.ask(modern(1, "prompts/list"))["error"]["code"] == LATE
            assert guard.ask(modern(2, "tools/list"))["result"]
            assert guard.rest() == []
            assert guard.ended() == 0
        assert closed.get(timeout=SECONDS) == "prompts/list"
        assert closed.empty()
        assert server.order() == ["prompts/list", "tools/list"]


def test_in_a_session_the_server_is_told_that_nobody_waits_any_more(tmp_path: Path) -> None:
    """2025-11-25, basic/utilities/cancellation."""
    with elsewhere({"tools/call": silent}) as server, enforcing(tmp_path, server.url, "--timeout", "6") as guard:
        guard.open()
        assert guard.ask(call(7))["error"]["code"] == LATE
        told = server.heard("notifications/cancelled")[0]
        assert told.json["params"]["requestId"] == 7
        assert told.headers["mcp-session-id"] == "a-session"
        assert guard.ask(request(8, "tools/list"))["result"]["tools"]


def test_a_server_that_never_takes_a_notification_holds_nothing_up_for_ever(tmp_path: Path) -> None:
    """Ours."""
    with elsewhere({"notifications/initialized": silent}) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        assert guard.ask(request(1, "tools/list"))["result"]["tools"]


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_a_notification_that_is_never_taken_is_given_up_and_told(tmp_path: Path, mode: str) -> None:
    """Ours: its connection would be held for as long as the guard runs."""
    closed = threading.Event()

    def until_closed(line: Line, _: Said) -> None:
        line.hold()
        closed.set()

    options = ("--mode", mode, "--timeout", "6")
    script = {"notifications/initialized": until_closed}
    with elsewhere(script) as server, remotely(tmp_path, server.url, *options) as guard:
        guard.open()
        assert closed.wait(SECONDS)
        assert guard.ask(request(1, "tools/list"))["result"]["tools"]
        assert guard.rest() == []
        guard.ended()
        assert "the server did not take 'notifications/initialized': not within 6 s" in guard.log


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_when_the_client_says_no_more_answers_are_waited_for_only_so_long(tmp_path: Path, mode: str) -> None:
    """Ours: as with a child process, but under audit too."""
    options = ("--mode", mode, "--timeout", "6")
    with elsewhere({"prompts/list": silent}) as server, remotely(tmp_path, server.url, *options) as guard:
        guard.say(modern(1, "prompts/list"))
        server.heard("prompts/list")
        assert [each["id"] for each in guard.rest()] == [1]
        assert guard.ended() == (0 if mode == "enforce" else 3)


def test_what_was_asked_with_the_last_word_waits_too_long_like_everything_else(tmp_path: Path) -> None:
    """Ours: its time and that of a client that has left end together."""
    with elsewhere({"tools/call": silent}) as server, enforcing(tmp_path, server.url, "--timeout", "6") as guard:
        guard.open()
        # So that there are connections for what follows, which must not take any time to be sent.
        guard.say(*(request(ident, "tools/list") for ident in "abc"))
        assert {guard.answer()["id"] for _ in "abc"} == {*"abc"}
        guard.say(call(1))
        server.heard("tools/call")
        guard.say(call(2))
        assert [each["error"]["code"] for each in guard.rest()] == [LATE, LATE]
        assert guard.ended() == 0


def test_too_many_requests_at_once_fail_and_none_is_held_up(tmp_path: Path) -> None:
    """Ours: each has a connection of its own."""
    with elsewhere({"prompts/list": silent}) as server, enforcing(tmp_path, server.url) as guard:
        guard.say(*(modern(ident, "prompts/list") for ident in range(1, 202)))
        answer = guard.answer()
        assert answer["id"] == 201
        assert "200 requests are open already" in answer["error"]["data"]["violations"][0]["found"]


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Forgetful:
    """A server that forgets its first session when it is first asked to call a tool."""

    def __init__(self, **again: object) -> None:
        self._again = again
        self._sessions = 0

    def initialize(self, line: Line, said: Said) -> None:
        self._sessions += 1
        answer = OPENED if self._sessions == 1 else {**OPENED, **self._again}
        line.result(said, answer, Mcp_Session_Id=f"session-{self._sessions}")

    def call(self, line: Line, said: Said) -> None:
        if said.headers["mcp-session-id"] == "session-1":
            line.json({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}}, 404)
        else:
            line.result(said, {"content": []})

    @property
    def scripts(self) -> dict[str, Script]:
        return {"initialize": self.initialize, "tools/call": self.call}


def test_a_session_that_the_server_forgot_is_begun_anew_as_the_client_began_it(tmp_path: Path) -> None:
    """2025-11-25, basic/transports, session management: 404, then a new InitializeRequest without a session id."""
    with elsewhere(Forgetful().scripts) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        answer = guard.ask(call(1))
        assert answer["error"]["code"] == LOST
        assert "its session is gone: it answered 404" in reason_of(answer)
        assert "Session not found" in reason_of(answer)
        assert guard.ask(call(2))["result"] == {"content": []}
        first, second = server.heard("initialize", 2)
        assert first.body == second.body
        assert "mcp-session-id" not in second.headers
        assert [each.headers["mcp-session-id"] for each in server.heard("notifications/initialized", 2)] == [
            "session-1",
            "session-2",
        ]
        assert guard.rest() == []
        assert guard.ended() == 0
        assert server.heard("DELETE")[0].headers["mcp-session-id"] == "session-2"
        assert ", 0 findings" in guard.log


@pytest.mark.parametrize(
    ("again", "words"),
    [
        pytest.param(
            {"capabilities": {}}, "it answered initialize with other capabilities than before", id="capabilities"
        ),
        pytest.param(
            {"protocolVersion": "2025-06-18"}, "it answered initialize with another revision than before", id="revision"
        ),
    ],
)
def test_a_server_that_came_back_as_another_one_is_lost(tmp_path: Path, again: dict[str, object], words: str) -> None:
    """Ours: the client was told otherwise, and nobody can tell it now."""
    with elsewhere(Forgetful(**again).scripts) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        assert guard.ask(call(1))["error"]["code"] == LOST
        assert guard.ended() == 3
        assert words in guard.log


def test_a_session_that_cannot_be_begun_anew_ends_the_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    forgetful = Forgetful()
    with elsewhere(forgetful.scripts) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        server.on("initialize", html(503))
        assert guard.ask(call(1))["error"]["code"] == LOST
        assert guard.ended() == 3
        assert "no other could be begun: it answered 503" in guard.log
        [flight] = tmp_path.glob("assay/servers/127.0.0.1-*/flights/*")
        assert '\\"method\\":\\"initialize\\"' in flight.read_text()


SETTLED: dict[str, Any] = {"tools": {"listChanged": True}, "logging": {}, "resources": {"subscribe": True}}


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_a_new_session_gets_the_settings_of_the_client_and_is_recorded(tmp_path: Path, mode: str) -> None:
    """Ours: as for a child that is restarted."""
    sessions = iter(("session-1", "session-2"))

    def initialize(line: Line, said: Said) -> None:
        line.result(said, {**OPENED, "capabilities": SETTLED}, Mcp_Session_Id=next(sessions))

    empty = {
        each: lambda line, said: line.result(said, {"_meta": {}})
        for each in ("logging/setLevel", "resources/subscribe")
    }
    scripts = {**Forgetful().scripts, **empty, "initialize": initialize}
    journal = tmp_path / "journal"
    options = ("--mode", mode, "--journal", str(journal))
    with elsewhere(scripts) as server, remotely(tmp_path, server.url, *options) as guard:
        guard.open()
        assert "result" in guard.ask(request(1, "logging/setLevel", {"level": "error"}))
        assert "result" in guard.ask(request(2, "resources/subscribe", {"uri": "a:b"}))
        assert guard.ask(call(3))["error"]["code"] == LOST
        assert guard.answer()["method"] == "notifications/tools/list_changed"
        assert guard.ask(call(4))["result"] == {"content": []}
        for method, member in (("logging/setLevel", {"level": "error"}), ("resources/subscribe", {"uri": "a:b"})):
            first, again = server.heard(method, 2)
            assert [each.headers["mcp-session-id"] for each in (first, again)] == ["session-1", "session-2"]
            assert again.json["params"] == member
        assert guard.rest() == []
        assert guard.ended() == 0
    recorded = [each.get("method") for each in records(journal) if "session" in each["metadata"]]
    assert {"initialize", "notifications/initialized", "logging/setLevel", "resources/subscribe"} <= set(recorded)


def test_a_session_that_is_gone_at_once_is_not_opened_without_end(tmp_path: Path) -> None:
    """Ours: a server that forgets every session is lost."""
    gone = {"notifications/initialized": lambda line, _: line.reply(404)}
    with elsewhere(gone) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        assert guard.ended() == 3
        assert "no other could be begun: it answered 404" in guard.log
        assert len(server.heard("initialize")) == 2


def test_what_is_open_when_the_session_is_gone_fails_too(tmp_path: Path) -> None:
    """Ours."""
    scripts = {**Forgetful().scripts, "prompts/list": silent}
    with elsewhere(scripts) as server, remotely(tmp_path, server.url) as guard:
        guard.open()
        guard.say(request(1, "prompts/list"))
        server.heard("prompts/list")
        guard.say(call(2))
        assert {guard.answer()["id"], guard.answer()["id"]} == {1, 2}
        assert guard.ask(call(3))["result"] == {"content": []}
        assert guard.rest() == []


def test_the_end_of_input_and_initialized_are_not_lost(tmp_path: Path) -> None:
    """Ours: everything that was said before the end is sent, and answered."""
    with elsewhere() as server, enforcing(tmp_path, server.url) as guard:
        guard.say(INITIALIZE, INITIALIZED, request(1, "tools/list"), b'{"jsonrpc":"2.0","id":2,"method":"ping"}')
        opened, *others = [each["id"] for each in guard.rest()]
        # Two requests are under way at once, and either may be answered first.
        assert (opened, sorted(others)) == ("open", [1, 2])
        assert guard.ended() == 0
        assert server.order()[:2] == ["initialize", "notifications/initialized"]
        assert server.order()[-1] == "DELETE"


@pytest.mark.parametrize("mode", ["audit", "enforce"])
@pytest.mark.parametrize("more", [{}, {"method": "tools/call", "result": {}}], ids=["neither", "both"])
def test_an_answer_that_is_one_only_by_its_id_ends_its_request(
    tmp_path: Path, mode: str, more: dict[str, object]
) -> None:
    broken = {"jsonrpc": "2.0", "id": 1, **more}
    with (
        elsewhere({"tools/call": lambda line, _: line.json(broken)}) as server,
        remotely(tmp_path, server.url, "--mode", mode) as guard,
    ):
        guard.open()
        answer = guard.ask(call(1))
        if mode == "audit":
            assert answer == broken
        else:
            assert (answer["id"], answer["error"]["code"]) == (1, INVALID)
        assert guard.ask(request(2, "tools/list"))["id"] == 2


def test_a_server_that_takes_no_refusal_of_what_it_asks_is_not_sent_ever_more(tmp_path: Path) -> None:
    def floods(line: Line, said: Said) -> None:
        line.begin()
        for number in range(300):
            line.event({"jsonrpc": "2.0", "id": number, "method": "roots/list", "params": 3})
        line.event(result(said, {"tools": []}))
        line.close()

    scripts: dict[str, Script] = {"tools/list": floods, "answer": lambda line, _: line.hold()}
    with elsewhere(scripts) as server, enforcing(tmp_path, server.url) as guard:
        guard.open()
        assert guard.ask(request(1, "tools/list"))["result"] == {"tools": []}
        server.heard("answer", REFUSED_AT_ONCE)
        for number in range(2, 12):
            assert guard.ask(request(number, "ping"))["id"] == number
        assert server.order().count("answer") == REFUSED_AT_ONCE


# ── what people see ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_what_a_server_sends_in_place_of_a_message_is_shown_as_such(tmp_path: Path, mode: str) -> None:
    """On one line that says whose it is, cut, and with nothing that a terminal would act upon."""

    def babbles(line: Line, said: Said) -> None:
        line.begin()
        line.send(b"data: \x1b]0;gotcha\x07\xc2\x9b2Jassay: all is well\n\n")
        line.send(b"data: assay: forged\ndata: assay: forged too " + b"x" * 10_000 + b"\n\n")
        line.event(result(said))
        line.close()

    with elsewhere() as server, remotely(tmp_path, server.url, "--mode", mode) as one:
        server.on("tools/call", babbles)
        one.open()
        assert "result" in one.ask(call(1))
        one.rest()
        assert one.ended() == 0
        log = one.log
    assert not {"\x1b", "\x07", "\x9b"} & set(log)
    assert all(line.startswith("assay: ") for line in log.splitlines())
    assert not any(line.startswith(("assay: all", "assay: forged")) for line in log.splitlines())
    assert max(map(len, log.splitlines())) < 1100
    assert "assay: the server sent: ·]0;gotcha··2Jassay: all is well" in log

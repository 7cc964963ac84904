"""A server at a URL that fails, in every way that HTTP has: each request gets one answer, and the next one is sent."""

import gzip
import json
import threading
from pathlib import Path
from typing import Any

from guarded_url import INITIALIZE, GuardedUrl, enforcing, guarded_url, modern

from assay.edges.stdio_url import MOST_ASKED, REFUSED_AT_ONCE
from assay.model.errors import with_party
from assay.model.verdict import Party
from kit.guard_process import SECONDS, call, notification, request
from kit.journals import records
from kit.rows import rows
from kit.scripted_http import FOUND, OPENED, Received, Script, WirePeer, answering, by_method, result, scripted

LOST, INVALID, LATE = -31011, -31010, -31012
LIMIT = 65536


def html(status: int) -> Script:
    page = b"\n\n<html>The <b>gateway</b> is down</html>\n<p>Sorry</p>" + b"x" * 100_000
    return replies(status, page, "text/html; charset=utf-8")


def truncated(said: Received, peer: WirePeer) -> None:
    peer.head(content_type="application/json", content_length="1000")
    peer.send(b'{"jsonrpc":"2.0","id":1,"res')


def ends(said: Received, peer: WirePeer) -> None:
    peer.events(notification("notifications/message", {"level": "info", "data": 1}))


def breaks(said: Received, peer: WirePeer) -> None:
    peer.events(b"data: {")
    peer.reset()


def endless_body(said: Received, peer: WirePeer) -> None:
    peer.head(content_type="application/json")
    while True:
        peer.send(b'"' + b"x" * 65536)


def endless_event(said: Received, peer: WirePeer) -> None:
    peer.events()
    for _ in range(8):
        peer.send(b"data: " + b"x" * 65536)


def replies(status: int, body: bytes = b"", kind: str = "", **headers: str) -> Script:
    typed = {"content_type": kind} if kind else {}
    return lambda _, peer: peer.reply(status, body, **typed, **headers)


def barred(status: int) -> Script:
    wants = 'Bearer realm="books", resource_metadata="https://books.example/.well-known"'
    return replies(status, b"not you", "text/plain", www_authenticate=wants)


NO_HTTP = "it closed the connection, or its answer is not HTTP"
RESET = "the connection broke off: Connection reset by peer"
MOVED = "https://me:secret@books.example/mcp?token=secret"
FAILURES: list[tuple[Script, int, str]] = [
    (barred(401), LOST, 'it answered 401 Something; it asks for Bearer realm="books"'),
    (barred(403), LOST, "it answered 403 Something; it asks for Bearer"),
    (html(404), LOST, "it answered 404 Something: <html>The <b>gateway</b> is down</html>"),
    (replies(405), LOST, "it answered 405 Something"),
    (replies(415, b'{"detail":"no"}', "application/json"), LOST, '415 Something: {"d'),
    (html(500), LOST, "it answered 500 Something: <html>The <b>gateway</b> is down</html>"),
    (html(200), INVALID, "it answered 200 Something with the content type text/html: <html>The"),
    (replies(200, b"{}"), INVALID, "with no content type: {}"),
    (replies(202), INVALID, "it answered 202 Something, and nothing else"),
    (replies(200, b"", "application/json"), INVALID, "with an empty body"),
    (replies(200, b'{"jsonrpc":"2.0","id', "application/json"), INVALID, 'not JSON: {"jsonrpc":"2.0","id'),
    (replies(200, b'{"jsonrpc":"2.0","id":77,"result":{}}', "application/json"), INVALID, "not belong to this request"),
    (replies(200, b'{"detail":"no"}', "application/json"), INVALID, 'belong to this request: {"detail":"no"}'),
    (truncated, LOST, NO_HTTP),
    (ends, LOST, "its stream ended without the answer"),
    (breaks, LOST, RESET),
    (endless_body, INVALID, f"its answer has more than {LIMIT:,} bytes"),
    (endless_event, LOST, "its stream ended without the answer"),
    (replies(200, gzip.compress(b"{}"), "application/json", content_encoding="gzip"), INVALID, "answer is compressed"),
    (replies(307, location=MOVED), LOST, "it redirects to https://books.example/mcp (307 Something), which is not"),
    (lambda _, peer: peer.reset(), LOST, RESET),
    (lambda *_: None, LOST, NO_HTTP),
    (lambda _, peer: peer.send(b"SSH-2.0-x\r\n"), LOST, NO_HTTP),
]


def reason_of(answer: Any) -> str:
    """Why a request got no answer, or was refused by a status."""
    data = answer["error"]["data"]
    return str(data["detail"] if "detail" in data else data["violations"][0]["found"])


def is_in(words: str, text: str) -> bool:
    """Whether *text* has the reason *words*, in which it may name the server."""
    return words in text or with_party(words, Party.SERVER) in text


@rows("mode", ["audit", "enforce"])
def test_a_request_that_fails_gets_one_error_and_the_next_is_answered(tmp_path: Path, mode: str) -> None:
    """Ours: over HTTP it is the guard that loses an answer, and only it could say so; under audit as well."""
    options = ("--mode", mode, "--set", f"guard.frame_bytes={LIMIT}")
    with scripted() as server, guarded_url(tmp_path, server.url, *options) as guard:
        for number, (script, code, words) in enumerate(FAILURES):
            server.script = answering(script, "prompts/list")
            answer = guard.ask(modern(number, "prompts/list"))
            while answer.get("id") in {None, 77}:
                # What came before is passed on.
                answer = guard.answer()
            assert (answer["id"], answer["error"]["code"]) == (number, code), words
            found = reason_of(answer)
            assert is_in(words, found)
            assert len(found) < 600
            assert "secret" not in found
            assert guard.ask(modern("next", "tools/list"))["result"]["tools"]
        assert guard.rest() == []
        assert guard.ended() == 0
        assert [words for _, _, words in FAILURES if not is_in(words, guard.shown)] == []
        assert "Traceback" not in guard.shown
        assert "secret" not in guard.shown


UNUSABLE = "No usable answer came: the server answered "
REFUSALS: list[tuple[bytes, int, str]] = [
    (b'{"jsonrpc":"2.0","error":{"code":-32001,"message":"Gone","data":[1]}}', -32001, "Gone"),
    (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad","data":[1]}}', -32000, "Bad"),
    (b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"No","data":[1]}}', -32600, "No"),
    (b'{"error":"invalid_token","error_description":"Expired"}', LOST, UNUSABLE),
    (b"not you", LOST, UNUSABLE),
]
SPELT = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such thing"}}'


@rows("mode", ["audit", "enforce"])
def test_a_refusal_keeps_its_reason_and_is_no_finding(tmp_path: Path, mode: str) -> None:
    """2025-11-25, basic/transports: the body "MAY comprise a JSON-RPC error response that has no id"."""
    with scripted() as server, guarded_url(tmp_path, server.url, "--mode", mode) as guard:
        for status in (400, 401, 404, 429):
            for body, code, message in REFUSALS:
                type_ = "application/json" if body.startswith(b"{") else "text/plain"
                server.script = answering(replies(status, body, type_), "prompts/list")
                answer = guard.ask(modern(1, "prompts/list"))
                assert (answer["id"], answer["error"]["code"]) == (1, code)
                assert answer["error"]["message"].startswith(f"{message}{status}" if code == LOST else message)
                assert answer["error"]["data"] == [1] or answer["error"]["data"]["status"] == status
                assert code != LOST or body.decode()[-8:-3] in reason_of(answer)
        # 2026-07-28: an unknown method has the status 404, and its error is passed on as it is.
        server.script = answering(replies(404, SPELT, "application/json"), "prompts/list")
        guard.say(modern(1, "prompts/list"))
        assert guard.out.next() == SPELT
        server.script = answering(barred(401), "prompts/list")
        assert guard.ask(modern(1, "prompts/list"))["error"]["data"]["wwwAuthenticate"].startswith('Bearer realm="bo')
        # HTTP+SSE of 2024-11-05 answers a POST to its stream with 405.
        server.script = answering(replies(405), "initialize")
        assert "this may be a server of 2024-11-05 (HTTP+SSE)" in reason_of(guard.ask(INITIALIZE))
        assert guard.rest() == []
        assert guard.ended() == 0
        assert ", 0 findings" in guard.shown
        assert 'it asks for Bearer realm="books"' in guard.shown


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_the_server_does_not_answer_or_take_in_time_is_given_up(tmp_path: Path) -> None:
    """
    2026-07-28, basic/utilities/cancellation: closing the stream cancels; no notification is sent.

    Ours: a message that is not taken would hold its connection for as long as the guard runs; under audit too.
    """
    closed = threading.Semaphore(0)

    def until_closed(said: Received, peer: WirePeer) -> None:
        peer.gone()
        closed.release()

    held: dict[str, Script] = dict.fromkeys(("notifications/roots/list_changed", "prompts/list"), until_closed)
    with scripted(by_method(held)) as server, enforcing(tmp_path, server.url, "--timeout", "0.5") as guard:
        assert guard.ask(modern(1, "prompts/list"))["error"]["code"] == LATE
        assert closed.acquire(timeout=SECONDS)
        # When the client sends no more, what it asked last waits as long as everything else.
        guard.say(modern(2, "prompts/list"))
        assert [(each["id"], each["error"]["code"]) for each in guard.rest()] == [(2, LATE)]
        assert guard.ended() == 0
        assert set(server.asked()) == {"prompts/list"}
    with scripted(by_method(held)) as server, guarded_url(tmp_path, server.url, "--timeout", "0.1") as guard:
        guard.say(notification("notifications/roots/list_changed"))
        assert closed.acquire(timeout=SECONDS)
        assert guard.ask(modern(1, "tools/list"))["result"]["tools"]
        guard.say(modern(2, "prompts/list"))
        server.heard("prompts/list")
        assert [each["id"] for each in guard.rest()] == [2]
        assert guard.ended() == 3
        assert "the server did not take 'notifications/roots/list_changed': not within 0.1 s" in guard.shown


def test_what_waits_for_a_server_is_bounded(tmp_path: Path) -> None:
    """Ours: requests at once, of which each has a connection, and refusals of what the server asks."""

    def floods(said: Received, peer: WirePeer) -> None:
        peer.events(*(request(number, "roots/list", 3) for number in range(5 * REFUSED_AT_ONCE)))
        peer.event(result(said.message, {"resources": []}))

    scripts: dict[str, Script] = {
        "prompts/list": lambda _, peer: peer.gone(),
        "resources/list": floods,
        "answer": lambda _, peer: peer.gone(),
    }
    with scripted(by_method(scripts)) as server, enforcing(tmp_path, server.url) as guard:
        guard.begin()
        assert guard.ask(request(1, "resources/list"))["result"] == {"resources": []}
        server.heard("answer", REFUSED_AT_ONCE)
        for number in range(2, 12):
            assert guard.ask(request(number, "ping"))["id"] == number
        assert server.asked().count("answer") == REFUSED_AT_ONCE
        guard.say(*(request(ident, "prompts/list") for ident in range(100, 101 + MOST_ASKED)))
        answer = guard.answer()
        assert answer["id"] == 100 + MOST_ASKED
        assert f"{MOST_ASKED} requests are open already" in reason_of(answer)


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────

SETTLED: dict[str, Any] = {
    "tools": {"listChanged": True},
    "logging": {},
    "resources": {"subscribe": True},
    "prompts": {},
}
GONE = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}}


class Forgetful:
    """A server that forgets its first session when it is first asked to call a tool."""

    def __init__(self, **again: object) -> None:
        self._again = again
        self._sessions = 0

    def initialize(self, said: Received, peer: WirePeer) -> None:
        self._sessions += 1
        answer = {**OPENED, "capabilities": SETTLED, **(self._again if self._sessions > 1 else {})}
        peer.answer(said, answer, mcp_session_id=f"session-{self._sessions}")

    def call(self, said: Received, peer: WirePeer) -> None:
        if said.header("mcp-session-id") == "session-1":
            peer.json(GONE, 404)
        else:
            peer.answer(said, FOUND)

    @property
    def scripts(self) -> dict[str, Script]:
        taken: Script = lambda said, peer: peer.answer(said, {"_meta": {}})  # noqa: E731 - one of three
        silent: Script = lambda _, peer: peer.gone()  # noqa: E731 - another one
        return {
            "initialize": self.initialize,
            "tools/call": self.call,
            "prompts/list": silent,
            **dict.fromkeys(("logging/setLevel", "resources/subscribe"), taken),
        }


@rows("mode", ["audit", "enforce"])
def test_a_session_that_the_server_forgot_is_begun_anew_as_the_client_began_it(tmp_path: Path, mode: str) -> None:
    """2025-11-25, basic/transports, session management: 404, then a new InitializeRequest without a session id."""
    journal = tmp_path / mode
    options = ("--mode", mode, "--journal", str(journal))
    both = ["session-1", "session-2"]
    settings = {"logging/setLevel": {"level": "error"}, "resources/subscribe": {"uri": "a:b"}}
    with scripted(by_method(Forgetful().scripts)) as server, guarded_url(tmp_path, server.url, *options) as guard:
        guard.begin()
        for ident, (method, params) in enumerate(settings.items()):
            assert "result" in guard.ask(request(ident, method, params))
        guard.say(request(2, "prompts/list"))
        server.heard("prompts/list")
        guard.say(call(3))
        lost = {each["id"]: each for each in (guard.answer(), guard.answer())}
        assert {ident: each["error"]["code"] for ident, each in lost.items()} == {2: LOST, 3: LOST}
        assert "session is gone: it answered 404" in reason_of(lost[3])
        assert "Session not found" in reason_of(lost[3])
        assert guard.answer()["method"] == "notifications/tools/list_changed"
        assert guard.ask(call(4))["result"] == FOUND
        first, second = server.heard("initialize", 2)
        assert first.body == second.body
        assert second.header("mcp-session-id") is None
        for method, params in settings.items():
            again = server.heard(method, 2)
            assert [each.header("mcp-session-id") for each in again] == both
            assert again[1].message["params"] == params
        initialized = server.heard("notifications/initialized", 2)
        assert [each.header("mcp-session-id") for each in initialized] == both
        assert guard.rest() == []
        assert guard.ended() == 0
        assert server.heard("DELETE")[0].header("mcp-session-id") == "session-2"
        assert mode == "audit" or ", 0 findings" in guard.shown
    recorded = {each.get("method") for each in records(journal) if "session" in each["metadata"]}
    assert {"initialize", "notifications/initialized", *settings} <= recorded


def broken_off(guard: GuardedUrl) -> str:
    """What is shown of a guard whose server is lost."""
    assert guard.ask(call(1))["error"]["code"] == LOST
    assert guard.ended() == 3
    return guard.shown


def test_a_server_that_does_not_come_back_as_it_was_is_lost(tmp_path: Path) -> None:
    """Ours: the client knows another one. A server that forgets every session is not asked without end."""
    with scripted(by_method(Forgetful(capabilities={}).scripts)) as server, enforcing(tmp_path, server.url) as guard:
        guard.begin()
        assert "it answered initialize with other capabilities than before" in broken_off(guard)
    state = {"XDG_STATE_HOME": str(tmp_path)}
    with scripted(by_method(Forgetful().scripts)) as server, enforcing(tmp_path, server.url, **state) as guard:
        guard.begin()
        server.script = answering(html(503), "initialize", server.script)
        assert "no other could be begun: it answered 503" in broken_off(guard)
    [flight] = tmp_path.glob("assay/servers/127.0.0.1-*/flights/*")
    assert json.loads(flight.read_text().splitlines()[0])["msg"] == json.dumps(INITIALIZE, separators=(",", ":"))
    gone = {"notifications/initialized": replies(404)}
    with scripted(by_method(gone)) as server, enforcing(tmp_path, server.url) as guard:
        guard.begin()
        assert guard.ended() == 3
        assert "no other could be begun: it answered 404" in guard.shown
        assert len(server.heard("initialize")) == 2

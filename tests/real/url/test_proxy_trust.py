"""
What gets past the judge, and into the sessions of others: a guard in front of a hostile server, and between clients
who do not trust each other. Each test is an attack that fails.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from assay.base.limits import DEFAULT
from assay.base.verdict import Party
from assay.core.conversation import Facts
from assay.edges.auth.api_keys import new_key, written_hash
from assay.edges.judged_exchange import JudgedExchange
from assay.edges.url_sessions import REMEMBERED_BY_ALL, Stream, UrlSessions, Who
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.settings.http_section import Http
from assay.spec.revisions import LATEST
from kit.http_client import BOTH, Answer, Service, call, frame_of, initialize, modern, notification, request, until
from kit.scripted_http import REVISION, SESSION, Liar, Peer, Received, good, guarding, lying, result

CALL = call(7, "search", {"words": "sea"})
ANSWER = {"content": [], "structuredContent": {"found": 1}}
FORGED = frame_of({"jsonrpc": "2.0", "id": 99, "method": "sampling/createMessage", "params": {"messages": "bad"}})
NOTE = notification("notifications/message", {"level": "info", "data": "soon"})

Where = tuple[Service, Liar]


@pytest.fixture(scope="module")
def _enforcing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Where]:
    with lying() as liar, guarding(tmp_path_factory.mktemp("guard"), liar.url, "--mode", "enforce") as guard:
        yield guard, liar


@pytest.fixture
def enforcing(_enforcing: Where) -> Iterator[Where]:
    """A guard that stops what is wrong."""
    _enforcing[1].forget()
    yield _enforcing
    _enforcing[1].forget()


@pytest.fixture(scope="module", params=["enforce", "audit"])
def _gated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Where, Any]]:
    directory = tmp_path_factory.mktemp("guard")
    keys = {name: new_key() for name in ("alice", "bob")}
    file = directory / "settings.toml"
    file.write_text("".join(f'[auth.keys.{name}]\nhash = "{written_hash(keys[name].encode())}"\n' for name in keys))
    options = ("--config", str(file), "--mode", request.param)
    with lying() as liar, guarding(directory, liar.url, *options) as guard:
        yield (guard, liar), {name: {"authorization": f"Bearer {key}"} for name, key in keys.items()}


@pytest.fixture
def gated(_gated: tuple[Where, Any]) -> Iterator[tuple[Where, Any]]:
    """A guard in either mode that knows alice and bob by their keys."""
    _gated[0][1].forget()
    yield _gated
    _gated[0][1].forget()


def answering(script: Any, method: str = "tools/call") -> Any:
    """A good server, but for one method, or for GET, which *script* answers."""

    def scripted(received: Received, peer: Peer) -> None:
        named = received.message.get("method") if received.body else received.method
        (script if named == method else good)(received, peer)

    return scripted


def sent_raw(guard: Service, method: str, lines: list[tuple[bytes, bytes]], body: bytes = b"") -> Answer:
    """The answer to a request whose headers are these very lines, repeated ones and odd ones included."""
    with guard.open() as wire:
        given = [(b"host", wire.name.encode()), (b"content-length", b"%d" % len(body)), *lines]
        first = b"%b /mcp HTTP/1.1" % method.encode()
        wire.send(b"\r\n".join([first, *(b"%b: %b" % pair for pair in given), b"", b""]) + body)
        return wire.answer()


def lines_of(headers: dict[str, Any]) -> list[tuple[bytes, bytes]]:
    """Headers as lines."""
    return [(name.encode(), value if isinstance(value, bytes) else value.encode()) for name, value in headers.items()]


# ── answers: only what was judged reaches a client ───────────────────────────────────────────────────────────────────

UNJUDGED = {
    "another-name": b"event: other\ndata: " + FORGED + b"\n\n",
    "a-name-with-a-blank": b"event: message \ndata: " + FORGED + b"\n\n",
    "a-name-with-an-id": b"event: other\nid: 5-5\ndata: " + FORGED + b"\n\n",
    "a-carriage-return-in-data": b"data: \r" + FORGED + b"\n\n",
    "a-message-on-one-of-two-lines": b'data: {"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":'
    b'{"found":1},"_meta":{"a":\ndata: ' + FORGED + b"\ndata: }}}\n\n",
    "fields-of-its-own": b"message: " + FORGED + b"\n\n",
    "a-comment": b": " + FORGED + b"\n\n",
}


@pytest.mark.parametrize("event", UNJUDGED)
def test_what_is_no_judged_message_never_stands_on_a_line_of_its_own(enforcing: Where, event: str) -> None:
    """Readers of streams differ: some split at LF only, some take any name for a message, some take line by line."""
    guard, liar = enforcing
    headers = guard.session(REVISION)
    liar.script = answering(lambda _, peer: peer.events(UNJUDGED[event], NOTE, result(CALL, ANSWER)))
    body = guard.post(CALL, headers).body
    for line in body.replace(b"\r", b"\n").split(b"\n"):
        assert not line.removeprefix(b"data:").strip().startswith(FORGED), line
    assert b"soon" in body


def test_an_event_that_was_not_judged_is_not_known_again_as_a_message(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    first = b"event: other\nid: 5-5\ndata: " + FORGED + b"\n\n"
    then = b"id: 5-5\ndata: " + FORGED + b"\n\n"
    liar.script = answering(lambda _, peer: peer.events(first, then, result(CALL, ANSWER)))
    assert b"sampling" not in guard.post(CALL, headers).body
    liar.script = answering(lambda _, peer: peer.events(then), "GET")
    assert b"sampling" not in guard.ask("GET", headers=headers).body
    assert b"sampling" not in guard.ask("GET", headers={**headers, "last-event-id": "5-4"}).body


def test_an_event_whose_name_has_blanks_around_it_is_judged_as_a_message(enforcing: Where) -> None:
    """Some clients take no notice of them: what they would read must be judged, and good answers must arrive."""
    guard, liar = enforcing
    headers = guard.session(REVISION)
    named = b"event:  message \ndata: " + frame_of(result(CALL, ANSWER)) + b"\n\n"
    liar.script = answering(lambda _, peer: peer.events(named))
    [event] = guard.post(CALL, headers).events()
    assert json.loads(event["data"]) == result(CALL, ANSWER)
    assert event["event"] == "message"


def test_a_judged_event_comes_again_only_to_who_asks_for_it_again(enforcing: Where) -> None:
    """On any other stream the same answer is a second one."""
    guard, liar = enforcing
    headers = guard.session(REVISION)
    event = b"id: 6-1\ndata: " + frame_of(result(CALL, ANSWER)) + b"\n\n"
    liar.script = answering(lambda _, peer: peer.events(event))
    assert b'"found":1' in guard.post(CALL, headers).body
    liar.script = answering(lambda _, peer: peer.events(event), "GET")
    assert b'"found":1' not in guard.ask("GET", headers=headers).body
    assert b'"found":1' in guard.ask("GET", headers={**headers, "last-event-id": "6-0"}).body


ELSEWHERE = "http://127.0.0.1:9/past-the-guard"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 300, 399])
def test_a_redirect_leads_nobody_past_the_guard(enforcing: Where, status: int) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    liar.script = answering(lambda _, peer: peer.json(result(CALL, ANSWER), status, location=ELSEWHERE))
    answer = guard.post(CALL, headers)
    assert (answer.status, answer.error()["code"], answer.header("location")) == (200, -31011, None)


def test_with_keys_of_the_guard_a_redirect_leads_nobody_past_it_in_either_mode(gated: tuple[Where, Any]) -> None:
    (guard, liar), keys = gated
    headers = guard.session(REVISION, **keys["alice"])
    liar.script = answering(lambda _, peer: peer.json(result(CALL, ANSWER), 307, location=ELSEWHERE))
    assert guard.post(CALL, headers).header("location") is None


@pytest.mark.parametrize(
    "name", ["location", "refresh", "alt-svc", "set-cookie", "link", "x-anything", "clear-site-data"]
)
@pytest.mark.parametrize("status", [200, 404])
def test_no_header_of_the_server_leads_a_client_anywhere(enforcing: Where, name: str, status: int) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)

    def leads(received: Received, peer: Peer) -> None:
        peer.json(result(received.message, ANSWER), status, **{name.replace("-", "_"): ELSEWHERE})

    liar.script = answering(leads)
    assert guard.post(CALL, headers).header(name) is None


@pytest.mark.parametrize(
    "twice",
    [
        ("content-encoding: gzip", "content-encoding: identity"),
        ("content-type: application/json", "content-type: text/event-stream"),
        ("content-type: application/json; charset=utf-16",),
        ("content-type: application/json", "content-encoding: deflate"),
        ("content-type: application/json", "mcp-session-id: a", "mcp-session-id: b"),
    ],
)
def test_an_answer_that_can_be_read_in_two_ways_is_none(enforcing: Where, twice: tuple[str, ...]) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    frame = frame_of(result(CALL, ANSWER))

    def doubtful(_: Received, peer: Peer) -> None:
        lines = ["HTTP/1.1 200 OK", "connection: close", f"content-length: {len(frame)}", *twice, "", ""]
        peer.send("\r\n".join(lines).encode() + frame)

    liar.script = answering(doubtful)
    answer = guard.post(CALL, headers)
    assert (answer.status, answer.error()["code"]) == (200, -31011)
    assert {name for name, _ in answer.pairs} == {"content-type", "content-length", "date"}


@pytest.mark.parametrize("session", [b"a b", b"a\xffb", b"x" * 5000, b"a\tb"])
def test_a_session_id_that_no_header_can_carry_back_is_none(enforcing: Where, session: bytes) -> None:
    guard, liar = enforcing

    def gives(received: Received, peer: Peer) -> None:
        info = {"protocolVersion": REVISION, "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
        frame = frame_of(result(received.message, info))
        lines = [b"HTTP/1.1 200 OK", b"connection: close", b"content-type: application/json"]
        lines += [b"mcp-session-id: " + session, b"content-length: %d" % len(frame), b"", b""]
        peer.send(b"\r\n".join(lines) + frame)

    liar.script = gives
    answer = guard.post(initialize(REVISION), BOTH)
    assert answer.error()["code"] == -31011
    assert answer.header("mcp-session-id") is None


REFUSALS: dict[str, tuple[bytes, str, int]] = {
    "no-id": (b'{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"}}', "Session not found", -32001),
    "null-id": (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: no"}}',
        "Bad Request: no",
        -32000,
    ),
    "another-id": (
        b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Not Acceptable"}}',
        "Not Acceptable",
        -32600,
    ),
    "oauth": (
        b'{"error":"invalid_token","error_description":"It has expired"}',
        "invalid_token: It has expired",
        -31011,
    ),
    "text": (b"Too many requests\x1b[31m\nsecond line", "Too many requests [31m", -31011),
    "a-page": (b"<!doctype html><h1>Gone</h1>", "<!doctype html><h1>Gone</h1>", -31011),
    "a-request": (FORGED, "the server answered with HTTP status 400", -31011),
}


@pytest.mark.parametrize("said", REFUSALS)
def test_a_refusal_of_the_server_keeps_its_reason_and_gets_the_id(enforcing: Where, said: str) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    body, reason, code = REFUSALS[said]

    def refuses(_: Received, peer: Peer) -> None:
        kind = "application/json" if body.startswith(b"{") else "text/html"
        peer.head(400, content_type=kind, content_length=str(len(body)))
        peer.send(body)

    liar.script = answering(refuses)
    answer = guard.post(CALL, headers)
    assert (answer.status, answer.json()["id"], answer.error()["code"]) == (400, 7, code)
    assert reason in json.dumps(answer.error())
    assert b"\x1b" not in answer.body


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_body_of_a_refusal_is_never_passed_on(enforcing: Where, method: str) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)

    def refuses(_: Received, peer: Peer) -> None:
        peer.head(403, content_type="text/event-stream", location=ELSEWHERE)
        peer.send(b"data: " + FORGED + b"\n\n" + bytes(100_000))

    liar.script = answering(refuses, method)
    answer = guard.ask(method, headers=headers)
    assert (answer.status, answer.json()["id"]) == (403, None)
    assert len(answer.body) < 1000


@pytest.mark.parametrize("status", [200, 302, 500])
def test_documents_of_the_server_are_json_or_nothing(enforcing: Where, status: int) -> None:
    guard, liar = enforcing

    def document(_: Received, peer: Peer) -> None:
        peer.head(status, content_type="text/html", location=ELSEWHERE, set_cookie="a=b")
        peer.send(b"<script>")

    liar.script = document
    answer = guard.ask("GET", "/.well-known/oauth-protected-resource")
    assert answer.status == 502
    assert (answer.header("location"), answer.header("set-cookie")) == (None, None)


def test_headers_that_an_operator_lists_go_on(tmp_path: Path) -> None:
    listed = ("--set", "http.forward_headers=X-Tenant, x-more", "--set", "http.forward_response_headers=x-quota")

    def quota(received: Received, peer: Peer) -> None:
        peer.json(result(received.message, ANSWER), x_quota="5", x_other="6")

    with lying(answering(quota)) as liar, guarding(tmp_path, liar.url, "--mode", "enforce", *listed) as guard:
        message = call(1, "search", {"words": "sea"}, LATEST)
        answer = guard.post(message, modern(message, x_tenant="blue", x_other="red", x_figma_api_key="mine"))
        received = liar.next("tools/call")
        assert (received.header("x-tenant"), received.header("x-other")) == ("blue", None)
        assert received.header("x-figma-api-key") == "mine"
        assert (answer.header("x-quota"), answer.header("x-other")) == ("5", None)
        until(lambda: "the header X-Other of clients is not forwarded" in guard.log.so_far())


# ── requests: read once, written anew ────────────────────────────────────────────────────────────────────────────────


ODD: dict[str, tuple[list[tuple[bytes, bytes]], int]] = {
    "utf-7": ([(b"content-type", b"application/json; charset=utf-7")], 415),
    "utf-16": ([(b"content-type", b'application/json;charset="UTF-16"')], 415),
    "two-charsets": ([(b"content-type", b"application/json; charset=utf-8; charset=utf-7")], 415),
    "two-types": ([(b"content-type", b"application/json"), (b"content-type", b"application/json")], 415),
    "packed": ([(b"content-type", b"application/json"), (b"content-encoding", b"deflate")], 415),
    "packed-twice": ([(b"content-encoding", b"identity"), (b"content-encoding", b"gzip")], 400),
    "session-for-one-hop": ([(b"connection", b"mcp-session-id")], 400),
    "version-for-one-hop": ([(b"connection", b"keep-alive, MCP-Protocol-Version , x")], 400),
    "name-for-one-hop": ([(b"connection", b"close"), (b"connection", b"mcp-name")], 400),
    "token-for-one-hop": ([(b"connection", b"authorization")], 400),
    "type-for-one-hop": ([(b"connection", b"content-type")], 400),
    "underscores": ([(b"mcp_session_id", b"another")], 400),
    "an-underscore": ([(b"mcp-session_id", b"another")], 400),
    "underscored-type": ([(b"content_type", b"text/plain")], 400),
    "two-sessions": ([(b"mcp-session-id", b"another")], 400),
    "two-versions": ([(b"mcp-protocol-version", b"2025-06-18")], 400),
    "two-tokens": ([(b"authorization", b"a"), (b"authorization", b"b")], 400),
    "an-odd-token": ([(b"authorization", b"Bearer \xff")], 400),
    "an-event-with-a-blank": ([(b"last-event-id", b"1 2")], 400),
    "not-ascii": ([(b"last-event-id", b"\xe9")], 400),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_head_that_can_be_read_in_two_ways_is_refused(enforcing: Where, odd: str) -> None:
    guard, liar = enforcing
    headers = lines_of(guard.session(REVISION))
    liar.forget()
    more, status = ODD[odd]
    replaces = more[0][0] == b"content-type"
    kept = [pair for pair in headers if not (replaces and pair[0] == b"content-type")]
    answer = sent_raw(guard, "POST", [*kept, *more], frame_of(CALL))
    assert answer.status == status
    assert answer.error()["data"]["detail"]
    assert liar.seen == []


def test_the_server_gets_one_plain_content_type(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = {**guard.session(REVISION), "content-type": "Application/JSON ; Charset=UTF-8"}
    guard.post(CALL, headers)
    assert liar.next("tools/call").header("content-type") == "application/json"


def test_headers_that_change_the_meaning_of_a_request_do_not_go_on(enforcing: Where) -> None:
    guard, liar = enforcing
    odd = {
        "x-http-method-override": "DELETE",
        "x-forwarded-for": "10.0.0.1",
        "x-original-url": "/admin",
        "cookie": "a=b",
    }
    guard.post(CALL, {**guard.session(REVISION), **odd})
    received = liar.next("tools/call")
    assert [received.header(name) for name in odd] == [None] * len(odd)


@pytest.mark.parametrize("query", ["tenant=bob", "access_token=x", "a"])
def test_no_query_of_a_client_goes_on_under_enforce(enforcing: Where, query: str) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    liar.forget()
    assert guard.ask("POST", f"/mcp?{query}", CALL, headers).status == 400
    assert liar.seen == []


def test_no_query_of_a_client_stands_behind_that_of_the_operator(tmp_path: Path) -> None:
    with lying() as liar, guarding(tmp_path, f"{liar.url}?tenant=alice") as guard:
        message = request(1, "tools/list", {}, LATEST)
        assert guard.ask("POST", "/mcp?tenant=bob", message, modern(message)).status == 400
        guard.post(message, modern(message))
        assert liar.next().path == "/mcp?tenant=alice"


# ── whose session it is ──────────────────────────────────────────────────────────────────────────────────────────────

SPELLINGS = {"a-blank": b"%b ", "a-tab": b"%b\t", "before": b"  %b", "both": b"\t%b \t", "plain": b"%b"}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("version", [None, REVISION, "2025-03-26", LATEST, "2099-01-01"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_nobody_enters_the_session_of_another(
    gated: tuple[Where, Any], method: str, version: str | None, spelling: str
) -> None:
    """However its id is spelt, and whichever revision is named: the server never gets it from anybody else."""
    (guard, liar), keys = gated
    hers = guard.session(REVISION, **keys["alice"])
    liar.forget()
    session = SPELLINGS[spelling] % str(hers["mcp-session-id"]).encode()
    lines = [*lines_of({**BOTH, **keys["bob"]}), (b"mcp-session-id", session)]
    if version is not None:
        lines.append((b"mcp-protocol-version", version.encode()))
    answer = sent_raw(guard, method, lines, frame_of(request(1, "ping")) if method == "POST" else b"")
    assert answer.status in {200, 400, 404, 405}
    assert [each for each in liar.seen if each.header("mcp-session-id") is not None] == []
    assert guard.post(request(2, "ping"), hers).status == 200, "hers goes on"


def test_with_keys_an_unknown_session_is_gone_in_either_mode(gated: tuple[Where, Any]) -> None:
    """Of a session that was opened before the guard was started nobody knows whose it is."""
    (guard, liar), keys = gated
    headers = {**BOTH, **keys["bob"], "mcp-session-id": "opened-before", "mcp-protocol-version": REVISION}
    for method in ("POST", "GET", "DELETE"):
        body = frame_of(request(1, "ping")) if method == "POST" else b""
        assert guard.ask(method, body=body, headers=headers).status == 404
    assert liar.seen == []


def test_a_blank_behind_ones_own_session_id_changes_nothing(enforcing: Where) -> None:
    """The tools that it was told of count as before."""
    guard, _ = enforcing
    headers = guard.session(REVISION)
    guard.post(request(1, "tools/list"), headers)
    bad = call(2, "search", {"words": 5})
    lines = [pair for pair in lines_of(headers) if pair[0] != b"mcp-session-id"]
    answer = sent_raw(guard, "POST", [*lines, (b"mcp-session-id", b"%b \t" % SESSION.encode())], frame_of(bad))
    assert answer.json()["result"]["isError"]


def test_a_principal_has_a_share_of_the_sessions(tmp_path: Path) -> None:
    """Bob's many sessions push out his own, not hers."""
    keys = {name: new_key() for name in ("alice", "bob")}
    file = tmp_path / "settings.toml"
    hashes = "".join(f'[auth.keys.{name}]\nhash = "{written_hash(keys[name].encode())}"\n' for name in keys)
    file.write_text(f"[http]\nsessions = 4\nsessions_each = 2\n{hashes}")
    count = iter(range(100))

    def numbered(received: Received, peer: Peer) -> None:
        if received.body and received.message.get("method") == "initialize":
            info = {"protocolVersion": REVISION, "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
            peer.json(result(received.message, info), mcp_session_id=f"number-{next(count)}")
        else:
            good(received, peer)

    with lying(numbered) as liar, guarding(tmp_path, liar.url, "--config", str(file)) as guard:
        hers = guard.session(REVISION, authorization=f"Bearer {keys['alice']}")
        his = [guard.session(REVISION, authorization=f"Bearer {keys['bob']}") for _ in range(10)]
        assert guard.post(request(1, "ping"), hers).status == 200
        assert [guard.post(request(1, "ping"), each).status for each in his] == [404] * 8 + [200] * 2


def test_true_is_not_the_answer_to_request_one(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    asks = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    def one(_: Received, peer: Peer) -> None:
        peer.events(asks)
        peer.wait()
        peer.event(result(CALL, ANSWER))

    liar.script = answering(one)
    with guard.open() as wire:
        wire.say("POST", "/mcp", frame_of(CALL), headers)
        wire.until(b"ping")
        assert guard.post({"jsonrpc": "2.0", "id": True, "result": {}}, headers).status == 400
        assert guard.post({"jsonrpc": "2.0", "id": 1, "result": {}}, headers).status == 202
        liar.released.set()
        wire.until(b'"found":1')


def test_a_preflight_echoes_names_and_nothing_else(enforcing: Where) -> None:
    guard, _ = enforcing
    friend = (b"origin", b"http://localhost:6274")
    asked = b"access-control-request-headers"
    answer = sent_raw(guard, "OPTIONS", [friend, (asked, b"mcp-method"), (asked, b"x-a")])
    assert (answer.status, answer.header("access-control-allow-headers")) == (204, "mcp-method, x-a")
    assert sent_raw(guard, "OPTIONS", [friend, (asked, b"a(b)\xff")]).status == 400


def test_a_name_with_underscores_does_not_stand_beside_a_header_of_the_operator(tmp_path: Path) -> None:
    """To servers behind WSGI both are one header."""
    with lying() as liar, guarding(tmp_path, liar.url, "--header", "X-Tenant: operator") as guard:
        message = request(1, "tools/list", {}, LATEST)
        guard.post(message, {**modern(message), "X_Tenant": "evil", "x_other": "mine"})
        received = liar.next()
        assert [value for name, value in received.pairs if "tenant" in name] == ["operator"]
        assert received.header("x_other") == "mine"


def test_only_so_many_documents_are_asked_for_at_once(tmp_path: Path) -> None:
    """Nobody has shown who it is yet."""

    def waits(_: Received, peer: Peer) -> None:
        peer.wait()
        peer.json({"resource": "a"})

    with lying(waits) as liar, guarding(tmp_path, liar.url) as guard, ExitStack() as stack:
        path = "/.well-known/oauth-protected-resource"
        for _ in range(16):
            stack.enter_context(guard.open()).say("GET", path)
        for _ in range(16):
            liar.next()
        assert guard.ask("GET", path).status == 503
        liar.released.set()


def test_without_sessions_every_request_may_have_the_same_id() -> None:
    """The conversation of one request serves that of another client next."""
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    talks = UrlSessions(SessionFactory(Terms("enforce", DEFAULT, 60.0), Sinks(), watch), Http(), lambda: 0.0)
    used = set()
    for _ in range(3):
        talk = talks.alone(Who("anonymous", b""), "2025-11-25")
        hear = talk.session.conversation.hear
        assert hear(Party.CLIENT, b'{"jsonrpc":"2.0","id":1,"method":"ping"}').violations == ()
        assert hear(Party.SERVER, b'{"jsonrpc":"2.0","id":1,"result":{}}').violations == ()
        talks.admit(talk)
        talks.done(talk)
        used.add(talk.session)
    assert len(used) == 1


@pytest.mark.parametrize("body", [b"", b"no", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no"}}'])
def test_a_request_that_was_sent_away_may_come_again_with_its_id(body: bytes) -> None:
    """Clients do so once they have signed in; a refusal with an error of JSON-RPC is heard as an answer."""
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    talks = UrlSessions(SessionFactory(Terms("enforce", DEFAULT, 60.0), Sinks(), watch), Http(), lambda: 0.0)
    talk = talks.alone(Who("anonymous", b""), "2025-11-25")
    for _ in range(2):
        turn = JudgedExchange(talk, patient=True, enforcing=True)
        turn.hear(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Facts("http"))
        assert turn.verdict is not None
        assert turn.verdict.violations == ()
        assert turn.refused(body, 401).status == 401


def test_beyond_the_limit_an_own_idle_session_is_dropped_before_those_of_others() -> None:
    """A request whose client has disconnected does not keep its session."""
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    factory = SessionFactory(Terms("enforce", DEFAULT, 60.0), Sinks(), watch)
    talks = UrlSessions(factory, Http(sessions=3, sessions_each=3), lambda: 0.0, gated=True)

    def begin(name: str) -> None:
        talk = talks.opening(Who(name[0], b""))
        talks.keep(talk, name.encode())
        if name == "a1":
            talk.session.conversation.hear(Party.CLIENT, frame_of(initialize(REVISION)))
            talk.hands = 1

    def left() -> list[bytes | None]:
        return [each.ident for each in talks]

    for name in ("b1", "a1", "a2", "a3"):
        begin(name)
    assert left() == [b"b1", b"a1", b"a3"], "a1 has an open request"
    begin("c1")
    assert left() == [b"a1", b"a3", b"c1"]
    next(iter(talks)).hands = 0
    begin("a4")
    assert left() == [b"a3", b"c1", b"a4"]


def test_one_bound_for_the_events_of_all_sessions() -> None:
    """Ours: a hundred sessions with long ids of events held 83 MB."""
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    talks = UrlSessions(SessionFactory(Terms("enforce", DEFAULT, 60.0), Sinks(), watch), Http(), lambda: 0.0)
    made = []
    for number in range(80):
        talk = talks.opening(Who("a", b""))
        talks.keep(talk, b"session-%d" % number)
        for event in range(20):
            talk.remember(b"%d" % event, b"data", b"x" * 60_000, Stream())
        made.append(talk)
    held = sum(each.remembered for each in made)
    assert held <= REMEMBERED_BY_ALL
    assert made[0].remembered == 0, "the one used longest ago"
    assert made[-1].known(b"19", b"data") is not None
    talks.drop(made[-1])
    assert made[-1].remembered == 0

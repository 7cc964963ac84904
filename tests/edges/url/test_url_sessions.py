"""Sessions and streams of a server at a URL: requests of the server, coming back to a stream, who gets what."""

import json
from typing import Any

from assay.edges.judged_exchange import JudgedExchange
from assay.edges.url_sessions import REMEMBERED, REMEMBERED_BY_ALL, Stream, UrlSessions, Who
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.judge.conversation import Facts
from assay.judge.events import event
from assay.model.limits import DEFAULT
from assay.model.verdict import Party
from assay.settings.http_section import Http
from assay.spec.revisions import LATEST
from kit.http_client import BOTH, INITIALIZED, Answer, call, events, frame_of, initialize, modern, notification, request
from kit.memory_http import settled
from kit.rows import rows
from kit.scripted_http import OPENED, REVISION, SESSION, TOOL, Peer, Received, answering, good, result
from kit.url_guard import MemoryPeer, UrlGuard, holding

CALL = call(7, "search", {"words": "sea"})
BAD_CALL = call(8, "search", {"words": 5})
NOTE = notification("notifications/message", {"level": "info", "data": "soon"})
ANSWER: dict[str, Any] = {"content": [], "structuredContent": {"found": 1}}
ROOTS = request("r1", "roots/list")
EVERYTHING: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {}}


def numbered(ident: str, value: Any) -> bytes:
    """The answer to the call as an event with an id."""
    return f"id: {ident}\ndata: ".encode() + frame_of(result(CALL, value)) + b"\n\n"


GOOD_EVENT = numbered("9-1", ANSWER)
JUDGED = event(frame_of(result(CALL, ANSWER)), b"9-1")


def resumed(guard: UrlGuard, headers: Any, *given: bytes, last: str = "9-0") -> Answer:
    """What a client gets that comes back to a stream on which the server sends these events."""
    guard.server.script = answering(lambda _, peer: peer.events(*given), "GET")
    return guard.ask("GET", headers={**headers, **({"last-event-id": last} if last else {})})


# ── live streams ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_true_is_not_the_answer_to_request_one() -> None:
    async def scenario() -> list[int]:
        stream = await guard.begun("POST", body=CALL, headers=headers)
        await stream.until(b"ping")
        answers = [result({"id": ident}, {}) for ident in (True, 1)]
        return [(await guard.asked("POST", body=each, headers=headers)).status for each in answers]

    with UrlGuard("enforce", answering(holding(request(1, "ping")))) as guard:
        headers = guard.session(REVISION)
        assert guard.run(scenario()) == [400, 202]


def test_a_bad_request_of_the_server_is_answered_to_it() -> None:
    bad = request("r2", "sampling/createMessage", {"messages": "none"})
    with UrlGuard("enforce", answering(lambda _, peer: peer.events(bad, result(CALL, ANSWER)))) as guard:
        [only] = guard.post(CALL, guard.session(REVISION, EVERYTHING)).events()
        assert json.loads(only["data"])["id"] == 7
        [back] = [each for each in guard.server.seen if each.body and each.message.get("id") == "r2"]
    assert (back.message["error"]["code"], back.header("mcp-session-id")) == (-32602, SESSION)


def test_the_stream_of_a_session_is_judged_and_ends_with_the_guard() -> None:
    async def scenario() -> None:
        stream = await guard.begun("GET", headers=headers)
        assert b"nope/nope" not in await stream.until(b"roots/list")
        assert (await guard.asked("POST", body=result(ROOTS, {"roots": []}), headers=headers)).status == 202
        guard.front.stop()
        assert (await stream.answer()).header("content-type") == "text/event-stream"

    with UrlGuard("enforce", answering(holding(notification("nope/nope"), NOTE, ROOTS), "GET")) as guard:
        headers = guard.session(REVISION, EVERYTHING)
        guard.run(scenario())


@rows("mode", ["enforce", "audit"])
def test_a_client_that_does_not_read_holds_up_the_server(mode: Any) -> None:
    """While the client takes nothing, the guard takes no more than one event from the server."""
    note = notification("notifications/message", {"level": "info", "data": "x" * 1000})
    sent = 0

    async def floods(_: Received, peer: MemoryPeer) -> None:
        nonlocal sent
        peer.events()
        while sent < 500:
            peer.event(note)
            sent += 1
            await peer.taken()

    async def scenario() -> None:
        exchange = await guard.begun("POST", body=CALL, headers=headers)
        await exchange.until(b"xxx")
        exchange.reads.clear()
        before = sent
        for _ in range(100):
            await settled()
        assert sent <= before + 2 < 500
        await exchange.leave()

    with UrlGuard(mode, answering(floods)) as guard:
        headers = guard.session(REVISION)
        guard.run(scenario())


# ── coming back to a stream ──────────────────────────────────────────────────────────────────────────────────────────


@rows("mode", ["enforce", "audit"])
def test_a_stream_that_can_be_resumed_ends_as_the_server_ends_it(mode: Any) -> None:
    first = b"id: 9-0\nretry: 10\ndata: \n\n"
    with UrlGuard(mode, answering(lambda _, peer: peer.events(first))) as guard:
        headers = guard.session(REVISION)
        assert guard.post(CALL, headers).events() == events(first)
        for _ in range(3):
            [again] = resumed(guard, headers, GOOD_EVENT).events()
            assert (again["id"], json.loads(again["data"])) == ("9-1", result(CALL, ANSWER))
        assert {each.header("last-event-id") for each in guard.server.seen if each.method == "GET"} == {"9-0"}


def test_a_judged_event_comes_again_only_to_who_asks_for_it_again_and_once() -> None:
    """On any other stream the same answer is a second one; and with something else in it the event is judged."""
    forged = numbered("9-1", {**ANSWER, "isError": True})
    with UrlGuard("enforce", answering(lambda _, peer: peer.events(GOOD_EVENT, GOOD_EVENT))) as guard:
        headers = guard.session(REVISION)
        assert guard.post(CALL, headers).body == JUDGED
        assert b'"found":1' not in resumed(guard, headers, GOOD_EVENT, last="").body
        assert resumed(guard, headers, GOOD_EVENT, GOOD_EVENT).body == JUDGED
        assert resumed(guard, headers, forged, GOOD_EVENT).body == JUDGED


def test_what_was_put_in_place_of_an_event_comes_again_too() -> None:
    bad = numbered("9-1", {"content": 5})
    with UrlGuard("enforce", answering(lambda _, peer: peer.events(bad))) as guard:
        headers = guard.session(REVISION)
        first = guard.post(CALL, headers).events()
        assert "[protocol/result]" in first[0]["data"]
        assert resumed(guard, headers, bad).events() == first


def test_an_answer_that_comes_again_and_is_not_remembered_is_an_error() -> None:
    """The client may not have got it, and would wait."""
    notes = b"".join(b"id: 9-%d\ndata: %b\n\n" % (number, frame_of(NOTE)) for number in range(2, REMEMBERED + 3))
    with UrlGuard("enforce", answering(lambda _, peer: peer.events(GOOD_EVENT + notes))) as guard:
        headers = guard.session(REVISION)
        assert guard.post(CALL, headers).status == 200
        [again] = resumed(guard, headers, GOOD_EVENT).events()
    answer = json.loads(again["data"])
    assert (again["id"], answer["id"], answer["error"]["code"]) == ("9-1", 7, -31011)
    assert "could not be kept until the client resumed" in answer["error"]["message"]


# ── whose conversation it is ─────────────────────────────────────────────────────────────────────────────────────────


def test_tools_of_one_client_are_not_anothers() -> None:
    """The tool takes numbers from the second client."""
    listing, bad = request(1, "tools/list", {}, LATEST), call(2, "search", {"words": 5}, LATEST)
    any_words = {**TOOL, "inputSchema": {"type": "object", "properties": {"words": {}}}}

    def lists(received: Received, peer: Peer) -> None:
        complete: dict[str, Any] = {"resultType": "complete"}
        if received.message["method"] == "tools/list":
            tool = any_words if received.header("authorization") == "Bearer b" else TOOL
            listed = {"tools": [tool], "ttlMs": 0, "cacheScope": "private", **complete}
            peer.json(result(received.message, listed))
        else:
            peer.json(result(bad, {**ANSWER, **complete}))

    with UrlGuard("enforce", lists) as guard:
        guard.server.shows_lists = True
        assert "result" in guard.post(listing, modern(listing, authorization="Bearer a")).json()
        assert guard.post(bad, modern(bad, authorization="Bearer b")).json()["result"].get("isError") is None
        assert guard.post(bad, modern(bad, authorization="Bearer a")).json()["result"]["isError"]


@rows("renewed", [{"authorization": "Bearer new"}, {"authorization": "Bearer old", "x-api-key": "mine"}])
def test_a_session_goes_on_with_credentials_that_are_shown_anew(renewed: dict[str, str]) -> None:
    """Its tools are known at once, and what was asked before is answered on a stream that is come back to."""
    first = b"id: 9-0\ndata: \n\n"

    def script(received: Received, peer: Peer) -> None:
        if received.method == "GET":
            peer.events(GOOD_EVENT)
        elif received.message.get("id") == CALL["id"]:
            peer.events(first)
        elif received.header("authorization") == "Bearer forged":
            peer.head(404, content_length="0")
        else:
            good(received, peer)

    with UrlGuard("enforce", script) as guard:
        opened_with = guard.session(REVISION, authorization="Bearer old")
        anew = {**opened_with, **renewed}
        assert guard.post(request(1, "tools/list"), opened_with).json()["result"]["tools"] == [TOOL]
        assert guard.post(CALL, opened_with).events() == events(first)
        assert guard.post(request(2, "ping"), {**opened_with, "authorization": "Bearer forged"}).status == 404
        before = len(guard.server.seen)
        assert guard.post(BAD_CALL, anew).json()["result"]["isError"], "with the first message already"
        assert guard.ask("GET", headers={**anew, "last-event-id": "9-0"}).body == JUDGED
        assert guard.post(BAD_CALL, anew).json()["result"]["isError"]
        assert guard.post(BAD_CALL, opened_with).json()["result"]["isError"]
        assert len(guard.server.seen) == before + 1


@rows("mode", ["enforce", "audit"])
def test_a_server_without_sessions_is_guarded_as_well(mode: Any) -> None:
    opens = answering(lambda received, peer: peer.json(result(received.message, OPENED)), "initialize")
    with UrlGuard(mode, opens) as guard:
        assert guard.post(initialize(REVISION), BOTH).header("mcp-session-id") is None
        headers = {**BOTH, "mcp-protocol-version": REVISION}
        assert guard.post(INITIALIZED, headers).status == 202
        for ident in range(3):
            assert guard.post(request(ident, "tools/list"), headers).json()["result"]["tools"] == [TOOL]


# ── the table of sessions ────────────────────────────────────────────────────────────────────────────────────────────


def table(http: Http | None = None, *, gated: bool = False, clock: Any = lambda: 0.0) -> UrlSessions:
    """An empty one."""
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    factory = SessionFactory(Terms("enforce", DEFAULT, 60.0), Sinks(), watch)
    return UrlSessions(factory, http or Http(), clock, gated=gated)


@rows("body", [b"", b"no", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no"}}'])
def test_a_request_that_was_sent_away_may_come_again_with_its_id(body: bytes) -> None:
    """Clients do so once they have signed in; a refusal with an error of JSON-RPC is heard as an answer."""
    talk = table().alone(Who("anonymous", b""), "2025-11-25")
    for _ in range(2):
        turn = JudgedExchange(talk, patient=True, enforcing=True)
        turn.hear(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Facts("http"))
        assert turn.verdict is not None
        assert turn.verdict.violations == ()
        assert turn.refused(body, 401).status == 401


def test_beyond_the_limit_an_own_idle_session_is_dropped_before_those_of_others() -> None:
    """A request whose client has disconnected does not keep its session."""
    talks = table(Http(sessions=3, sessions_each=3), gated=True)

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


def test_no_more_sessions_are_kept_than_may_be_and_none_for_ever() -> None:
    now = [1000.0]
    talks = table(Http(sessions=2, session_seconds=10.0), clock=lambda: now[0])
    for number in range(4):
        talks.keep(talks.opening(Who("a", b"")), b"s%d" % number)
    assert [each.ident for each in talks] == [b"s2", b"s3"]
    now[0] += 11
    talks.sweep()
    assert len(talks) == 0


def test_one_bound_for_the_events_of_all_sessions() -> None:
    """Ours: a hundred sessions with long ids of events held 83 MB."""
    talks, made = table(), []
    for number in range(80):
        talk = talks.opening(Who("a", b""))
        talks.keep(talk, b"session-%d" % number)
        for ident in range(20):
            talk.remember(b"%d" % ident, b"data", b"x" * 60_000, Stream())
        made.append(talk)
    assert sum(each.remembered for each in made) <= REMEMBERED_BY_ALL
    assert made[0].remembered == 0, "the one used longest ago"
    assert made[-1].known(b"19", b"data") is not None
    talks.drop(made[-1])
    assert made[-1].remembered == 0

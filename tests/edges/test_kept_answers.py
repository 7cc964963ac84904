"""An answer, or a request of the server, that cannot be kept for a client is never dropped without an answer."""

import asyncio
import json
from typing import Any

import pytest

from assay.base.limits import DEFAULT
from assay.edges.backend import HttpRequest
from assay.edges.child_backend import ChildBackend
from assay.edges.client_http import HttpClient, HttpPort, SessionAnswer
from assay.edges.http import sessions
from assay.edges.http.heads import RequestHead, read_head
from assay.edges.http.sessions import DROPPED, HttpSession, Sessions
from assay.edges.response_stream import ResponseStream
from assay.guard.deliveries import ClientTraits, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.settings.http_section import Http
from kit.hosted import NEWEST
from kit.http_client import request
from kit.rows import rows

LOST = -31011


# ── the bounds ───────────────────────────────────────────────────────────────────────────────────────────────────────


def session_of(every: Sessions[None], principal: str = "alice") -> HttpSession[None]:
    """Return a new session."""
    found = every.begin(principal, None)
    assert found is not None
    return found


def kept(session: HttpSession[None], stream: int) -> list[Any]:
    """Return what a client gets that resumes *stream* from its beginning."""
    return [json.loads(data) for _, data in session.after(b"%d-0" % stream) or []]


def all_sessions() -> Sessions[None]:
    return Sessions(Http(), lambda: 0.0)


def test_every_dropped_answer_leaves_an_error_and_notifications_leave_nothing() -> None:
    session = session_of(all_sessions())
    for number in range(1, 201):
        stream = session.new_stream()
        session.keep(stream, 1, b'{"note":1}')
        session.keep(stream, 2, b'{"id":%d,"result":{}}' % number, answers=(number,))
    for stream in range(1, 201):
        last = kept(session, stream)[-1]
        assert last["id"] == stream
        assert ("result" in last) is (stream > 200 - sessions.REPLAYED // 2)


def test_an_answer_to_a_batch_leaves_an_error_for_each_request() -> None:
    session = session_of(all_sessions())
    session.keep(session.new_stream(), 1, b"x" * (sessions.REPLAYED_BYTES + 1), answers=(1, "a"))
    [batch] = kept(session, 1)
    assert [(each["id"], each["error"]["code"]) for each in batch] == [(1, LOST), ("a", LOST)]


def test_a_request_of_the_server_outlives_later_messages() -> None:
    session = session_of(all_sessions())
    stream = session.new_stream()
    session.keep(stream, 1, b'{"id":"s1","method":"roots/list"}', asked="roots/list")
    for number in range(2, 300):
        session.keep(stream, number, b'{"note":1}')
    assert kept(session, stream)[0]["id"] == "s1"
    assert len(kept(session, stream)) == 1 + sessions.REPLAYED


def test_errors_in_place_of_answers_are_bounded_and_what_is_lost_is_known() -> None:
    session = session_of(all_sessions())
    large = b"x" * (sessions.REPLAYED_BYTES + 1)
    for ident in range(1, 2001):
        session.keep(session.new_stream(), 1, large, answers=(ident,))
    assert session._held <= sessions.REMAINS_BYTES
    remaining = [stream for stream in range(1, 2001) if kept(session, stream)]
    assert remaining == list(range(2001 - len(remaining), 2001))
    assert len(remaining) == sessions.REMAINS
    assert all(session.has_lost(b"%d-0" % stream) is (stream not in remaining) for stream in range(1, 2001))


def test_what_all_sessions_keep_is_bounded_and_dropped_answers_leave_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "REPLAYED_BY_ALL", 100_000)
    every = all_sessions()
    alice, *bobs = (session_of(every, who) for who in ("alice", *["bob"] * 30))
    for session in (alice, *bobs):
        session.keep(session.new_stream(), 1, b'{"id":7,"result":"%s"}' % (b"x" * 9_000), answers=(7,))
    assert every._kept_by_all <= 100_000
    assert "result" in kept(alice, 1)[0]
    answers = [kept(each, 1)[0] for each in bobs]
    assert all(each["id"] == 7 for each in answers)
    assert 0 < len([each for each in answers if "result" in each]) < 12


def test_where_even_the_errors_have_no_room_the_client_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "REPLAYED_BY_ALL", 2_000)
    every = all_sessions()
    several = [session_of(every) for _ in range(20)]
    for session in several:
        session.keep(session.new_stream(), 1, b"x" * 1_500, answers=(7,))
    assert every._kept_by_all <= 2_000
    assert all(bool(kept_or_lost(each)) for each in several)


def kept_or_lost(session: HttpSession[None]) -> Any:
    return session.after(b"1-0") or session.has_lost(b"1-0")


def test_a_client_whose_answer_is_lost_altogether_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets a status, and not an empty stream."""
    monkeypatch.setattr(sessions, "LONGEST_REMAINS", 10)
    monkeypatch.setattr(sessions, "REPLAYED_BYTES", 10)

    async def run() -> tuple[int, bytes]:
        backend = ChildBackend(factory(), ["true"])
        client = client_of()
        session = backend._sessions.begin("anonymous", client)
        assert session is not None
        client.http_session = session
        session.keep(session.new_stream(), 1, b"x" * 20, answers=(1,))
        head = read_head("GET", [(b"accept", b"text/event-stream"), (b"last-event-id", b"1-0")])
        assert isinstance(head, RequestHead)
        sent: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        await backend._listen(session, HttpRequest(head, b"", b"", "anonymous"), receive, send)
        await backend.close()
        return sent[0]["status"], sent[1]["body"]

    status, body = asyncio.run(run())
    assert status == 410
    assert json.loads(body)["error"]["data"]["detail"] == DROPPED


# ── requests of the server ───────────────────────────────────────────────────────────────────────────────────────────

ASKS = b'{"jsonrpc":"2.0","id":"s1","method":"roots/list"}'


class Link:
    """The way to a server, which keeps what is sent."""

    def __init__(self) -> None:
        self.said: list[bytes] = []

    def has_room(self, _: int) -> bool:
        return True

    def send(self, frame: bytes, _: Any = None) -> None:
        self.said.append(frame)

    def leave(self) -> None: ...

    def slow(self, _: ResponseStream) -> None: ...


def factory() -> SessionFactory:
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=False)
    return SessionFactory(Terms("audit", DEFAULT, 60.0), Sinks(), watch)


def client_of(link: Link | None = None) -> HttpClient:
    """Return the client of a session."""
    session = factory().open(ClientTraits("http"), ServerTraits("child"), revision=NEWEST)
    return HttpClient(session, link or Link())


def answered(link: Link) -> list[Any]:
    """Return the ids of the errors that the server got."""
    return [each["id"] for each in map(json.loads, link.said) if "error" in each]


def test_a_request_on_a_stream_that_is_cut_off_is_answered() -> None:
    link = Link()
    client = client_of(link)
    stream = client.listen()
    client.from_server(ASKS)
    client.cut(stream)
    assert answered(link) == ["s1"]


@rows("listens", [True, False])
def test_a_request_on_a_response_whose_client_has_gone_waits_for_a_listener(listens: bool) -> None:
    link = Link()
    client = client_of(link)
    message = json.dumps(request(1, "ping")).encode()
    response = client.ask(message, as_json=True, as_stream=True)
    assert isinstance(response, ResponseStream)
    client.from_server(ASKS)
    head = read_head("POST", [])
    assert isinstance(head, RequestHead)
    listener = client.listen() if listens else None
    answer = SessionAnswer(HttpPort(Http(), lambda: None), head, response, client, lambda _: None, opens=False)
    answer.finish()
    client.from_server(ASKS.replace(b"s1", b"s2"))
    listener = listener or client.listen()
    said = listener.take()
    assert b'"s1"' in said
    assert b'"s2"' in said
    assert answered(link) == []


def test_a_stream_with_an_answer_to_come_can_be_resumed_however_many_others_were_left() -> None:
    client = client_of()
    client.http_session = session_of(all_sessions())  # type: ignore[assignment]
    response = client.ask(json.dumps(request(1, "ping")).encode(), as_json=False, as_stream=True)
    assert isinstance(response, ResponseStream)

    def leave(stream: ResponseStream) -> int:
        stream._begin()
        client.left(stream)
        assert stream.number is not None
        return stream.number

    number = leave(response)
    others = [leave(client.listen()) for _ in range(40)]
    assert client.resume(number) is response
    assert client.resume(others[0]) is None
    assert client.resume(others[-1]) is not None


def test_a_request_of_the_server_that_no_client_gets_any_more_is_answered() -> None:
    """It came while no connection carried the stream, and is too long to stay: the server must not wait for ever."""
    every: Sessions[None] = Sessions(Http(), lambda: 0.0)
    session = session_of(every)
    unclaimed: list[str] = []
    session.unclaimed = unclaimed.append
    stream = session.new_stream()
    long_question = b'{"id":"s1","method":"roots/list","x":"%b"}' % (b"x" * 10_000)
    session.keep(stream, 1, long_question, asked="unread", unread=True)
    session.keep(stream, 2, long_question, asked="read")
    for number in range(3, 80):
        session.keep(stream, number, b'{"method":"notifications/message"}')
    assert unclaimed == ["unread"]


def test_a_request_of_the_server_that_a_client_got_by_resuming_is_its_own() -> None:
    every: Sessions[None] = Sessions(Http(), lambda: 0.0)
    session = session_of(every)
    unclaimed: list[str] = []
    session.unclaimed = unclaimed.append
    stream = session.new_stream()
    session.keep(stream, 1, b'{"id":"s1","method":"roots/list","x":"%b"}' % (b"x" * 10_000), asked="s1", unread=True)
    assert session.after(b"%d-0" % stream)
    for number in range(2, 80):
        session.keep(stream, number, b'{"method":"notifications/message"}')
    assert unclaimed == []


def test_a_stream_keeps_no_second_copy_of_its_answers() -> None:
    every: Sessions[None] = Sessions(Http(), lambda: 0.0)
    response = ResponseStream(session_of(every), due=((False, 1), (False, 2)))
    response.answer(b"{}", (False, 1))
    response._begin()
    response.answer(b"{}", (False, 2))
    assert response._answers == []

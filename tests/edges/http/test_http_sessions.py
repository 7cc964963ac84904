"""The sessions that a guard holds over HTTP: whose they are, when they end, and what is kept to be sent again."""

import json
from typing import Any

import pytest

from assay.edges.backend import HttpRequest
from assay.edges.child_backend import ChildBackend
from assay.edges.client_http import HttpClient, HttpPort, SessionAnswer
from assay.edges.http import sessions
from assay.edges.http.heads import RequestHead, read_head
from assay.edges.http.sessions import DROPPED, REPLAYED, REPLAYED_BYTES, HttpSession, Sessions
from assay.edges.response_stream import ResponseStream
from assay.guard.deliveries import ClientTraits, Loss, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.model.limits import DEFAULT
from assay.settings.http_section import Http
from kit.hosted import NEWEST
from kit.http_client import events, frame_of, notification, request
from kit.kept_link import KeptLink
from kit.memory_http import answer_of
from kit.rows import rows

LOST = -31011


class Table:
    """The sessions of a guard, and their clock."""

    def __init__(self, *, idle: bool = False, **limits: Any) -> None:
        self.now = 1000.0
        self.every: Sessions[Any] = Sessions(Http(**limits), lambda: self.now, is_idle=lambda _: idle)

    def begin(self, principal: str = "ada") -> HttpSession[Any]:
        """A new session."""
        found = self.every.begin(principal, None)
        assert found is not None
        return found

    def has(self, session: HttpSession[Any]) -> bool:
        """Whether *session* can be used."""
        return self.every.find(session.ident.encode(), session.principal) is session

    def sweep(self, seconds: float) -> None:
        """The time goes on, and the guard looks at it."""
        self.now += seconds
        self.every.sweep()


def kept(session: HttpSession[Any], stream: int = 1) -> list[Any]:
    """What a client gets that resumes *stream* from its beginning."""
    return [json.loads(data) for _, data in session.after(b"%d-0" % stream) or []]


# ── whose they are, and when they end ────────────────────────────────────────────────────────────────────────────────


def test_a_session_is_found_by_its_own_principal_alone_and_the_limits_are_exact() -> None:
    table = Table()
    session = table.begin("ada")
    assert table.has(session)
    assert table.every.find(session.ident.encode(), "bob") is None
    assert table.every.find(b"another", "ada") is None
    for limited, names in ((Table(sessions=2), ("ada", "bob", "cid")), (Table(sessions_each=1), ("ada", "bob", "ada"))):
        assert [limited.every.begin(name, None) is not None for name in names] == [True, True, False]


def test_a_session_that_no_client_uses_ends_and_one_with_a_listener_does_not() -> None:
    """And when the stream breaks off, its client has time to come back."""
    table = Table(session_seconds=100.0)
    used, listened, unused = table.begin(), table.begin(), table.begin()

    def close() -> None:
        """What would end the stream."""

    listened.open_streams.add(close)
    for _ in range(5):
        table.sweep(99)
        assert table.has(used)
    assert (len(table.every), table.has(unused)) == (2, False)
    listened.open_streams.discard(close)
    table.sweep(40)
    assert table.has(listened)
    table.now += 101
    assert not table.has(used)
    table.sweep(0)
    assert len(table.every) == 0


# ── what is kept to be sent again ────────────────────────────────────────────────────────────────────────────────────


def test_a_client_that_resumes_gets_what_came_after_its_last_event_within_bounds() -> None:
    session = Table().begin()
    stream = session.new_stream()
    idents = [session.keep(stream, number, b"event %d" % number) for number in (1, 2, 3)]
    assert session.after(idents[0]) == [(idents[1], b"event 2"), (idents[2], b"event 3")]
    assert session.after(idents[2]) == []
    for number in range(4, 200):
        session.keep(stream, number, b"x" * 1000)
    assert len(session.after(idents[0]) or []) == REPLAYED
    session.keep(session.new_stream(), 1, b"x" * REPLAYED_BYTES)
    assert session.after(idents[0]) == []
    assert [len(data) for _, data in session.after(b"2-0") or []] == [REPLAYED_BYTES]
    session.keep(session.new_stream(), 1, b"x" * (REPLAYED_BYTES + 1))
    assert session.after(b"3-0") == []


@rows("last", [b"", b"1", b"0-0", b"9-0", b"99999999999999999999-0", b"1-x", b"-1-0", b"1--1", b"1-0-0", b"x" * 5000])
def test_an_event_id_that_was_never_given_is_unknown(last: bytes) -> None:
    session = Table().begin()
    session.keep(session.new_stream(), 1, b"x")
    assert session.after(last) is None


def test_every_dropped_answer_leaves_an_error_and_notifications_leave_nothing() -> None:
    session = Table().begin()
    for number in range(1, 201):
        stream = session.new_stream()
        session.keep(stream, 1, b'{"note":1}')
        session.keep(stream, 2, b'{"id":%d,"result":{}}' % number, answers=(number,))
    for stream in range(1, 201):
        last = kept(session, stream)[-1]
        assert (last["id"], "result" in last) == (stream, stream > 200 - REPLAYED // 2)
    session = Table().begin()
    session.keep(session.new_stream(), 1, b"x" * (REPLAYED_BYTES + 1), answers=(1, "a"))
    [batch] = kept(session)
    assert [(each["id"], each["error"]["code"]) for each in batch] == [(1, LOST), ("a", LOST)]


def test_errors_in_place_of_answers_are_bounded_and_what_is_lost_is_known() -> None:
    session = Table().begin()
    large = b"x" * (REPLAYED_BYTES + 1)
    for ident in range(1, 2001):
        session.keep(session.new_stream(), 1, large, answers=(ident,))
    assert session._held <= sessions.REMAINS_BYTES
    remaining = [stream for stream in range(1, 2001) if kept(session, stream)]
    assert remaining == list(range(2001 - sessions.REMAINS, 2001))
    assert all(session.has_lost(b"%d-0" % stream) is (stream not in remaining) for stream in range(1, 2001))


def test_what_all_sessions_keep_is_bounded_and_a_principal_with_much_loses_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those used longest ago lose theirs first; a dropped answer leaves an error; an end gives back what it had."""
    monkeypatch.setattr(sessions, "REPLAYED_BY_ALL", 10_000)
    table = Table()
    several = [table.begin(who) for who in ("alice", *["bob"] * 20)]
    for session in several:
        session.keep(session.new_stream(), 1, b'{"id":7,"result":"%b"}' % (b"x" * 880), answers=(7,))
    whole = ["result" in kept(each)[0] for each in several if kept(each)]
    assert (len(whole), whole[0], whole[1]) == (21, True, False)
    assert whole[2:] == sorted(whole[2:])
    assert 1 < whole.count(True) < 12
    assert table.every._kept_by_all <= 10_000
    table.every.drop(several[-1])
    table.begin().keep(1, 1, b"x" * 900)
    assert ["result" in kept(each)[0] for each in several[:-1]] == whole[:-1]


def test_where_even_the_errors_have_no_room_the_client_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "REPLAYED_BY_ALL", 2_000)
    table = Table()
    several = [table.begin() for _ in range(20)]
    for session in several:
        session.keep(session.new_stream(), 1, b"x" * 1_500, answers=(7,))
    assert table.every._kept_by_all <= 2_000
    assert all(each.after(b"1-0") or each.has_lost(b"1-0") for each in several)


def test_a_client_whose_answer_is_lost_altogether_gets_a_status_and_not_an_empty_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "LONGEST_REMAINS", 10)
    monkeypatch.setattr(sessions, "REPLAYED_BYTES", 10)
    head = read_head("GET", [(b"accept", b"text/event-stream"), (b"last-event-id", b"1-0")])
    assert isinstance(head, RequestHead)

    async def listening(receive: Any, send: Any) -> None:
        backend = ChildBackend(factory(), ["true"])
        client = client_of(KeptLink())
        session = client.http_session = backend._sessions.begin("anonymous", client)
        assert session is not None
        session.keep(session.new_stream(), 1, b"x" * 20, answers=(1,))
        await backend._listen(session, HttpRequest(head, b"", b"", "anonymous"), receive, send)
        await backend.close()

    answer = answer_of(listening)
    assert (answer.status, answer.error()["data"]["detail"]) == (410, DROPPED)


COUNT = 1000


@rows("answered", [0, 1, COUNT - 1, COUNT])
def test_every_answer_to_a_batch_is_delivered_and_at_the_end_nothing_of_it_is_kept(answered: int) -> None:
    """Whether all of it is answered, or the session ends meanwhile."""
    client = client_of(KeptLink(), revision="2025-03-26")
    batch = [request(number, "ping", {"_meta": {"progressToken": f"t{number}"}}) for number in range(COUNT)]
    post = client.ask(frame_of(batch), as_json=True, as_stream=True)
    assert isinstance(post, ResponseStream)
    client.from_server(frame_of(notification("notifications/progress", {"progressToken": "t5", "progress": 1})))
    assert client.stream_for("t5") is client.stream_for(None) is post
    for ident in range(answered):
        client.from_server(frame_of({"jsonrpc": "2.0", "id": ident, "result": {}}))
    assert post.ended is (answered == COUNT)
    if answered < COUNT:
        assert sum(client._streaming.values()) == COUNT - answered, "the rest is still due on the same stream"
        client.close(Loss("stopped", "the session was ended"))
    assert (post.ended, client._tokens, sum(client._streaming.values()), client._waiting) == (True, {}, 0, {})
    got = [json.loads(each["data"]) for each in events(post.take()) if each["data"]]
    assert sorted(each["id"] for each in got if "id" in each) == list(range(COUNT))


# ── requests of the server ───────────────────────────────────────────────────────────────────────────────────────────

ASKS = b'{"jsonrpc":"2.0","id":"s1","method":"roots/list"}'


def test_a_request_of_the_server_outlives_later_messages_and_is_answered_if_no_client_gets_it() -> None:
    """It came while no connection carried the stream, and is too long to stay: the server must not wait for ever."""
    long = ASKS[:-1] + b',"x":"%b"}' % (b"x" * 10_000)
    for message, is_read, given_up in ((ASKS, False, []), (long, False, ["unread"]), (long, True, [])):
        session = Table().begin()
        unclaimed: list[str] = []
        session.unclaimed = unclaimed.append
        stream = session.new_stream()
        session.keep(stream, 1, message, asked="unread", unread=True)
        session.keep(stream, 2, long, asked="read")
        if is_read:
            assert session.after(b"%d-0" % stream), "a client that has got it by resuming has it"
        for number in range(3, 300):
            session.keep(stream, number, b'{"method":"notifications/message"}')
        assert unclaimed == given_up
        if message is ASKS:
            assert (kept(session, stream)[0]["id"], len(kept(session, stream))) == ("s1", 1 + REPLAYED)


def factory() -> SessionFactory:
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=False)
    return SessionFactory(Terms("audit", DEFAULT, 60.0), Sinks(), watch)


def client_of(link: KeptLink, revision: str = NEWEST) -> HttpClient:
    """The client of a session."""
    return HttpClient(factory().open(ClientTraits("http"), ServerTraits("child"), revision=revision), link)


def asked(client: HttpClient) -> ResponseStream:
    """The response to a request that the server has not answered."""
    response = client.ask(frame_of(request(1, "ping")), as_json=True, as_stream=True)
    assert isinstance(response, ResponseStream)
    return response


def test_a_request_on_a_stream_that_is_cut_off_is_answered() -> None:
    link = KeptLink()
    client = client_of(link)
    stream = client.listen()
    client.from_server(ASKS)
    client.cut(stream)
    assert link.refused == ["s1"]


@rows("listens", [True, False])
def test_a_request_on_a_response_whose_client_has_gone_waits_for_a_listener(listens: bool) -> None:
    link = KeptLink()
    client = client_of(link)
    response = asked(client)
    client.from_server(ASKS)
    head = read_head("POST", [])
    assert isinstance(head, RequestHead)
    listener = client.listen() if listens else None
    SessionAnswer(HttpPort(Http(), lambda: None), head, response, client, lambda _: None, opens=False).finish()
    client.from_server(ASKS.replace(b"s1", b"s2"))
    said = (listener or client.listen()).take()
    assert (b'"s1"' in said, b'"s2"' in said, link.refused) == (True, True, [])


def test_a_stream_with_an_answer_to_come_can_be_resumed_however_many_others_were_left() -> None:
    client = client_of(KeptLink())
    client.http_session = Table().begin()

    def leave(stream: ResponseStream) -> int:
        stream._begin()
        client.left(stream)
        assert stream.number is not None
        return stream.number

    response = asked(client)
    number = leave(response)
    others = [leave(client.listen()) for _ in range(40)]
    assert client.resume(number) is response
    assert [client.resume(each) is not None for each in (others[0], others[-1])] == [False, True]

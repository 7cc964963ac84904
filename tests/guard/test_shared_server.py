"""Who gets what of a server that many clients share: without processes, message by message."""

from dataclasses import dataclass

import pytest

from assay.guard.shared_server import Addressed, Mishandled, SharedServer
from kit.rows import rows

LOG = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'


@dataclass(eq=False)
class Client:
    """A client of the server."""

    owner: str = "us"
    wants_logs: bool = False


def asked(ident: bytes, method: bytes = b"tools/list") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b"}' % (ident, method)


def answered(ident: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":{}}' % ident


@pytest.fixture
def server() -> SharedServer[Client]:
    return SharedServer()


def test_the_entries_of_a_batch_are_sent_and_routed_one_by_one(server: SharedServer[Client]) -> None:
    one = Client()
    assert server.send(one, b"[%b,%b]" % (asked(b"7"), asked(b"8"))) == [asked(b"1"), asked(b"2")]
    batch = b"[%b,%b]" % (answered(b"2"), answered(b"1"))
    assert list(server.route(batch)) == [Addressed(one, answered(b"8")), Addressed(one, answered(b"7"))]


@rows("frame", [b"7", b'"text"', answered(b"5")], ids=["number", "text", "answer-to-nothing"])
def test_what_the_server_has_not_asked_for_is_not_sent(server: SharedServer[Client], frame: bytes) -> None:
    assert server.send(Client(), frame) == ()


def test_only_the_client_that_asked_can_cancel(server: SharedServer[Client]) -> None:
    cancelled = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}'
    one, other = Client(), Client()
    server.send(one, asked(b'"a"'))
    assert server.send(other, cancelled % b'"a"') == ()
    assert server.send(one, b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}') == ()
    assert server.send(one, cancelled % b'"a"') == (cancelled % b"1",)
    assert server.send(one, cancelled % b'"a"') == ()
    # Its answer may have crossed with the cancellation.
    assert server.route(answered(b"1")) == (Addressed(one, answered(b'"a"')),)


def test_the_requests_of_a_client_that_leaves_are_cancelled(server: SharedServer[Client]) -> None:
    one, other = Client(), Client()
    server.send(one, asked(b"1"))
    server.send(other, asked(b"1"))
    [frame] = server.leave(one)
    assert b'"requestId":1,' in frame
    assert server.everybody == [other]
    assert server.route(answered(b"1")) == (Addressed(None, answered(b"1")),)


def test_the_end_of_a_frame_that_is_too_long_has_the_id_too(server: SharedServer[Client]) -> None:
    one = Client()
    server.send(one, asked(b'"a"'))
    assert server.route(b'{"jsonrpc":"2.0","result":{"x":"xxx', b'xxx"},"id":1}') == (
        Addressed(one, b'{"jsonrpc":"2.0","result":{"x":"xxx', b'xxx"},"id":"a"}'),
    )


def test_a_message_that_could_not_be_routed_fails_the_request_it_answers(server: SharedServer[Client]) -> None:
    one = Client()
    for ident in (b'"a"', b'"b"', b'"c"'):
        server.send(one, asked(ident))
    assert list(server.mishandled(answered(b"1"))) == [Mishandled(one, "a")]
    assert list(server.mishandled(b"[%b]" % answered(b"2"))) == [Mishandled(one, "b")]
    assert list(server.mishandled(b'{"id":3,"result":{', b"")) == [Mishandled(one, "c")]
    assert list(server.mishandled(answered(b"9"))) == []
    assert list(server.mishandled(LOG)) == []
    assert list(server.mishandled(asked(b"4", b"ping"))) == [Mishandled(None, 4)]

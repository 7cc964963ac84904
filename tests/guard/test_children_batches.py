"""A large batch through a session: what is remembered of it is let go of, whatever comes first."""

import json
from typing import Any

from assay.base.limits import DEFAULT
from assay.edges.client_http import HttpClient
from assay.edges.response_stream import ResponseStream
from assay.guard.deliveries import ClientTraits, Loss, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from kit.rows import rows

REVISION = "2025-03-26"
COUNT = 1000


class Wire:
    """What leads to a server: it keeps what it is given."""

    def __init__(self) -> None:
        self.said: list[bytes] = []

    def has_room(self, _: int) -> bool:
        """There always is."""
        return True

    def send(self, frame: bytes, _: Any = None) -> None:
        """One message."""
        self.said.append(frame)

    def leave(self) -> None:
        """The session is over."""

    def slow(self, _: ResponseStream) -> None:
        """No client is."""


def asked() -> tuple[HttpClient, ResponseStream]:
    """A session in which a batch of calls waits, each with a progress token."""
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    factory = SessionFactory(Terms("enforce", DEFAULT, 60.0), Sinks(), watch)
    session = factory.open(ClientTraits("http"), ServerTraits("child"), revision=REVISION)
    client = HttpClient(session, Wire())
    batch = [
        {"jsonrpc": "2.0", "id": n, "method": "ping", "params": {"_meta": {"progressToken": f"t{n}"}}}
        for n in range(COUNT)
    ]
    post = client.ask(json.dumps(batch).encode(), as_json=True, as_stream=True)
    assert isinstance(post, ResponseStream)
    return client, post


def answer(ident: int) -> bytes:
    """The answer to a ping."""
    return b'{"jsonrpc":"2.0","id":%d,"result":{}}' % ident


def test_every_answer_is_delivered_and_nothing_is_left() -> None:
    client, post = asked()
    assert (len(client._tokens), list(client._streaming.values())) == (COUNT, [COUNT])
    for ident in range(COUNT):
        client.from_server(answer(ident))
    assert post.ended
    found: Any = json.loads(post.whole or b"")
    assert sorted(each["id"] for each in found) == list(range(COUNT))
    assert (client._tokens, client._streaming, client._waiting) == ({}, {}, {})


@rows("answered", [0, 1, COUNT - 1])
def test_a_session_that_ends_meanwhile_leaves_nothing(answered: int) -> None:
    client, post = asked()
    for ident in range(answered):
        client.from_server(answer(ident))
    assert len(client._tokens) == COUNT, "the rest is still due on the same stream"
    client.close(Loss("stopped", "the session was ended"))
    assert post.ended
    assert (client._tokens, client._streaming, client._waiting) == ({}, {}, {})


def test_what_the_server_says_goes_to_the_one_that_waits() -> None:
    client, post = asked()
    note = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t5","progress":1}}'
    client.from_server(note)
    assert client.stream_for("t5") is post
    assert client.stream_for(None) is post
    assert not post.ended

"""A large batch through a session: what is remembered of it is let go of, whatever comes first."""

import json
from typing import Any

import pytest

from assay.base.limits import DEFAULT
from assay.edges.guard.http_to_child.childtalk import Talk
from assay.edges.guard.http_to_child.outflow import Post, Stream
from assay.edges.guard.overseer import Oversight
from assay.edges.recorder import Recorder, Records
from assay.guard.terms import Terms
from assay.guard.watch import Watch

REVISION = "2025-03-26"
COUNT = 1000


class Wire:
    """What leads to a server: it keeps what it is given."""

    def __init__(self) -> None:
        self.said: list[bytes] = []

    def has_room(self, _: int) -> bool:
        """There always is."""
        return True

    def say(self, frame: bytes) -> None:
        """One message."""
        self.said.append(frame)

    def leave(self) -> None:
        """The session is over."""

    def slow(self, _: Stream) -> None:
        """Nobody is."""


def asked() -> tuple[Talk, Post]:
    """A session in which a batch of calls waits, each with a progress token."""
    watch = Watch(lambda _: None, lambda _: None, enforcing=True)
    oversight = Oversight(Terms("enforce", DEFAULT, 60.0), Recorder("http", "/mcp", Records(None)), watch)
    talk = Talk(oversight.begin(revision=REVISION), Wire())
    batch = [
        {"jsonrpc": "2.0", "id": n, "method": "ping", "params": {"_meta": {"progressToken": f"t{n}"}}}
        for n in range(COUNT)
    ]
    post = talk.hear(json.dumps(batch).encode(), as_json=True, as_stream=True)
    assert isinstance(post, Post)
    return talk, post


def answer(ident: int) -> bytes:
    """The answer to a ping."""
    return b'{"jsonrpc":"2.0","id":%d,"result":{}}' % ident


def test_every_answer_is_delivered_and_nothing_is_left() -> None:
    talk, post = asked()
    assert (len(talk._tokens), list(talk._streaming.values())) == (COUNT, [COUNT])
    for ident in range(COUNT):
        talk.from_server(answer(ident))
    assert post.ended
    found: Any = json.loads(post.whole or b"")
    assert sorted(each["id"] for each in found) == list(range(COUNT))
    assert (talk._tokens, talk._streaming, talk._posts) == ({}, {}, {})


@pytest.mark.parametrize("answered", [0, 1, COUNT - 1])
def test_a_session_that_ends_meanwhile_leaves_nothing(answered: int) -> None:
    talk, post = asked()
    for ident in range(answered):
        talk.from_server(answer(ident))
    assert len(talk._tokens) == COUNT, "the rest is still due on the same stream"
    talk.drop("the session was ended")
    assert post.ended
    assert (talk._tokens, talk._streaming, talk._posts) == ({}, {}, {})


def test_what_the_server_says_goes_to_the_one_that_waits() -> None:
    talk, post = asked()
    note = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t5","progress":1}}'
    talk.from_server(note)
    assert talk._stream_for("t5") is post
    assert talk._stream_for(None) is post
    assert not post.ended

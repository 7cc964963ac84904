"""A large batch through a session: what is remembered of it is let go of, whatever comes first."""

import json

from assay.base.limits import DEFAULT
from assay.edges.client_http import HttpClient
from assay.edges.response_stream import ResponseStream
from assay.guard.deliveries import ClientTraits, Loss, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from kit.http_client import events, request
from kit.kept_link import KeptLink
from kit.rows import rows

REVISION = "2025-03-26"
COUNT = 1000


def asked() -> tuple[HttpClient, ResponseStream]:
    """A session in which a batch of calls waits, each with a progress token."""
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    factory = SessionFactory(Terms("enforce", DEFAULT, 60.0), Sinks(), watch)
    session = factory.open(ClientTraits("http"), ServerTraits("child"), revision=REVISION)
    client = HttpClient(session, KeptLink())
    batch = [request(number, "ping", {"_meta": {"progressToken": f"t{number}"}}) for number in range(COUNT)]
    post = client.ask(json.dumps(batch).encode(), as_json=True, as_stream=True)
    assert isinstance(post, ResponseStream)
    return client, post


def answer(ident: int) -> bytes:
    """The answer to a ping."""
    return b'{"jsonrpc":"2.0","id":%d,"result":{}}' % ident


def held(client: HttpClient) -> tuple[int, int, int]:
    """How much it remembers of tokens, of streams, and of requests that wait."""
    return len(client._tokens), sum(client._streaming.values()), len(client._waiting)


@rows("answered", [0, 1, COUNT - 1, COUNT])
def test_every_answer_is_delivered_and_at_the_end_nothing_is_left_of_a_batch(answered: int) -> None:
    """Whether all of it is answered, or the session ends meanwhile."""
    client, post = asked()
    note = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t5","progress":1}}'
    client.from_server(note)
    assert client.stream_for("t5") is client.stream_for(None) is post
    for ident in range(answered):
        client.from_server(answer(ident))
    assert post.ended is (answered == COUNT)
    if answered < COUNT:
        assert held(client)[:2] == (COUNT, COUNT - answered), "the rest is still due on the same stream"
        client.close(Loss("stopped", "the session was ended"))
    assert (post.ended, held(client)) == (True, (0, 0, 0))
    got = [json.loads(each["data"]) for each in events(post.take()) if each["data"]]
    assert sorted(each["id"] for each in got if "id" in each) == list(range(COUNT))

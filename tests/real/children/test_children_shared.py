"""The child that all requests without a session share: a slow client holds up no other."""

import json
from pathlib import Path

from assay.edges.response_stream import ResponseStream
from assay.edges.stateless_requests import NoResponse
from assay.spec.revisions import LATEST
from kit.hosted import hosting
from kit.http_client import (
    call,
    events,
    frame_of,
    modern,
    request,
    until,
)

LOGGED = {"io.modelcontextprotocol/logLevel": "info"}


def methods(path: Path) -> list[str]:
    """What the child was asked and told."""
    lines = [json.loads(each) for each in path.read_text().split("\n") if each.startswith("{")]
    return [each.get("method", "answer") for each in lines]


def test_a_client_that_does_not_read_gets_one_error_and_the_child_is_told(tmp_path: Path) -> None:
    """Nobody else waits for it; when it reads at last, the error is what its response ends with."""
    received = tmp_path / "received"
    with hosting(tmp_path, on={"tools/call": [["notes", 400, 60_000]]}, received=str(received)) as service:
        asking = call("mine", "search", {"words": "a"}, LATEST)
        asking["params"]["_meta"] |= LOGGED
        headers = modern(asking)
        with service.open() as wire:
            wire.say("POST", "/mcp", frame_of(asking), headers)
            until(lambda: received.exists() and "notifications/cancelled" in methods(received))
            wire.head()
            last = json.loads(events(b"".join(iter(wire.chunk, b"")))[-1]["data"])
        assert (last["id"], last["error"]["code"]) == ("mine", -31011)
        assert "did not take what it was sent" in last["error"]["data"]["detail"]
        again = request(1, "tools/list", {}, LATEST)
        assert service.post(again, modern(again)).status == 200


def test_what_is_cut_off_is_not_the_answer() -> None:
    post = ResponseStream(as_json=True, as_stream=True, due=(1,))
    for size in (2 << 20, 1):
        post.say(b"x" * size)
    post.answer(b"the answer", 1)
    post.cut()
    assert post.ended
    [only] = events(post.take())
    assert only["data"] == "the answer"


def test_late_answers_to_a_client_that_is_gone_are_not_kept() -> None:
    """Every request that is over shares this response, so what it kept would stay for ever."""
    gone = NoResponse()
    gone.say(b'{"jsonrpc":"2.0","method":"notifications/message"}')
    gone.answer(b'{"jsonrpc":"2.0","id":1,"result":{}}', 1)
    assert gone.waiting == 0

"""Where a server at a URL refuses a request, its reason reaches the client in either mode, and it is not blamed."""

import json
from typing import Any

from assay.spec.revisions import LATEST
from kit.http_client import BOTH, INITIALIZED, Answer, Headers, call, frame_of, initialize, modern
from kit.rows import rows
from kit.scripted_http import REVISION, Peer, Received, answering, good
from kit.url_guard import UrlGuard

STATUSES = (400, 401, 403, 404, 405, 406, 409, 415, 429)
HOWS = ("in-a-session", "without-one", "opening", "a-notification")
ERROR = {"code": -32001, "message": "Session not found", "data": {"a": 1}}
MODES: Any = ("enforce", "audit")
FORGED = frame_of({"jsonrpc": "2.0", "id": 99, "method": "sampling/createMessage", "params": {"messages": "bad"}})


def spelt(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members, "error": ERROR}).encode()


def refusing(status: int, body: bytes) -> Any:
    """A server that refuses whatever it is asked."""
    kind = "application/json" if body.startswith(b"{") else "text/plain"
    headers = {"www_authenticate": 'Bearer error="invalid_token"', "retry_after": "5", "etag": "old"}

    def refuses(_: Received, peer: Peer) -> None:
        peer.head(status, content_type=kind, content_length=str(len(body)), **headers)
        peer.send(body)

    return refuses


def asked(guard: UrlGuard, how: str, status: int, body: bytes) -> Answer:
    """What a client gets that asks in that way."""
    guard.server.script = good
    message = call(7, "search", {"words": "sea"}, LATEST if how == "without-one" else "")
    headers: Headers = BOTH
    if how == "without-one":
        headers = modern(message)
    elif how == "opening":
        message = initialize(REVISION, 7)
    else:
        headers = guard.session(REVISION)
        message = INITIALIZED if how == "a-notification" else message
    guard.server.script = refusing(status, body)
    return guard.post(message, headers)


OWN_ERRORS = [
    spelt(id=7),
    spelt(id=None),
    spelt(),
    spelt(id="server-error"),
    json.dumps({"id": 7, "error": ERROR}).encode(),
    spelt(id=7, result={}),
]
OTHER_REASONS = {
    b'{"error":"invalid_token","error_description":"It has expired","scope":"a b"}': "a b",
    b"Too many requests\x1b[31m\nTry again at noon": "Too many requests [31m",
    b"<!doctype html><h1>Gone</h1>": "<!doctype html><h1>Gone</h1>",
    FORGED: "the server answered with HTTP status ",
    b"x " * 30_000 + b"at last": "at last",
    b'{"title":"Not Found","detail":"No such tenant"}': "No such tenant",
}


@rows("mode", MODES)
@rows("said", [*OWN_ERRORS, *OTHER_REASONS])
def test_the_reason_of_the_server_reaches_the_client_and_an_error_keeps_its_code_message_and_data(
    said: bytes, mode: Any
) -> None:
    """JSON-RPC 2.0, 5, and 2025-11-25, basic/transports: "a JSON-RPC error response that has no id"."""
    with UrlGuard(mode) as guard:
        for how, status in [("in-a-session", each) for each in STATUSES] + [(each, 401) for each in HOWS]:
            answer = asked(guard, how, status, said)
            assert (answer.status, answer.header("retry-after")) == (status, "5")
            assert 'error="invalid_token"' in (answer.header("www-authenticate") or "")
            if mode == "audit":
                assert answer.body == said
            else:
                assert answer.json()["id"] == (None if how == "a-notification" else 7)
                assert answer.header("etag") is None
                assert b"\x1b" not in answer.body
                found = answer.error()
                assert OTHER_REASONS[said] in json.dumps(found["data"]) if said in OTHER_REASONS else found == ERROR
    assert guard.log == [], "there is no finding"


def test_an_error_with_a_5xx_that_lacks_the_id_keeps_its_reason_too() -> None:
    """The official TypeScript SDK writes `id: null` where it fails."""
    for mode, ident in zip(MODES, (7, None), strict=True):
        with UrlGuard(mode) as guard:
            answer = asked(guard, "in-a-session", 500, spelt(id=None))
        assert (answer.status, answer.error(), answer.json()["id"]) == (500, ERROR, ident)


@rows("status", [404, 405])
def test_a_server_that_takes_no_request_may_be_one_of_the_first_revision(status: int) -> None:
    """HTTP+SSE of 2024-11-05 answers a POST to its stream with 405. The log says so once."""
    for mode in MODES:
        with UrlGuard(mode) as guard:
            for _ in range(2):
                asked(guard, "opening", status, b"")
        [line] = guard.log
        assert line.startswith(f"assay: the server answers what clients ask first with {status}; ")
        assert "this may be a server of 2024-11-05 (HTTP+SSE)" in line


@rows("method", ["GET", "DELETE"])
def test_the_body_of_a_refusal_of_get_and_delete_is_never_passed_on(method: str) -> None:
    def refuses(_: Received, peer: Peer) -> None:
        peer.head(403, content_type="text/event-stream", location="http://127.0.0.1:9/")
        peer.send(b"data: " + FORGED + b"\n\n" + bytes(100_000))

    with UrlGuard("enforce", answering(refuses, method)) as guard:
        answer = guard.ask(method, headers=guard.session(REVISION))
    assert (answer.status, answer.json()["id"]) == (403, None)
    assert len(answer.body) < 1000

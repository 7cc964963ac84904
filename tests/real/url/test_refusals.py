"""What a server says where it refuses a request: it reaches the client in either mode, and is held against nobody."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from assay.spec.revisions import LATEST
from kit.http_client import BOTH, INITIALIZED, Answer, Headers, Service, call, initialize, modern, until
from kit.scripted_http import REVISION, Liar, Peer, Received, good, guarding, lying

STATUSES = (400, 401, 403, 404, 405, 406, 409, 415, 429)
ERROR = {"code": -32001, "message": "Session not found", "data": {"a": 1}}


def spelt(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members, "error": ERROR}).encode()


ERRORS = {
    "its-id": spelt(id=7),
    "null": spelt(id=None),
    "no-id": spelt(),
    "another-id": spelt(id="server-error"),
    "no-jsonrpc": json.dumps({"id": 7, "error": ERROR}).encode(),
    "with-a-result": spelt(id=7, result={}),
}
WORDS = {
    "oauth": (b'{"error":"invalid_token","error_description":"It has expired","scope":"a b"}', "a b"),
    "text": (b"Too many requests\nTry again at noon", "at noon"),
    "long-text": (b"x " * 30_000 + b"at last", "at last"),
    "problem": (b'{"title":"Not Found","detail":"No such tenant"}', "No such tenant"),
}

Where = tuple[Service, Liar, str]


@pytest.fixture(scope="module", params=["enforce", "audit"])
def where(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Where]:
    """A guard in either mode, which has found nothing wrong in the end."""
    with lying() as liar, guarding(tmp_path_factory.mktemp("guard"), liar.url, "--mode", request.param) as guard:
        yield guard, liar, request.param
        found = [line for line in guard.log.so_far().splitlines() if "[contract/not-judged]" not in line]
        assert not any(line.startswith(("assay: reported", "assay: would block", "assay: blocked")) for line in found)
        assert "never answered" not in guard.log.so_far()


def refusing(status: int, body: bytes) -> Any:
    def refuses(_: Received, peer: Peer) -> None:
        kind = "application/json" if body.startswith(b"{") else "text/plain"
        challenge, length = 'Bearer error="invalid_token"', str(len(body))
        peer.head(
            status, content_type=kind, content_length=length, www_authenticate=challenge, retry_after="5", etag="old"
        )
        peer.send(body)

    return refuses


def asked(guard: Service, liar: Liar, how: str, status: int, body: bytes) -> Answer:
    """What a client gets that asks in that way."""
    liar.script = good
    message = call(7, "search", {"words": "sea"}, LATEST if how == "without-one" else "")
    headers: Headers = BOTH
    if how == "without-one":
        headers = modern(message)
    elif how == "opening":
        message = initialize(REVISION, 7)
    else:
        headers = guard.session(REVISION)
        message = INITIALIZED if how == "telling" else message
    liar.script = refusing(status, body)
    return guard.post(message, headers)


@pytest.mark.parametrize("how", ["in-a-session", "without-one", "opening", "telling"])
@pytest.mark.parametrize("said", ERRORS)
def test_an_error_of_the_server_keeps_its_code_message_and_data(where: Where, how: str, said: str) -> None:
    """JSON-RPC 2.0, 5, and 2025-11-25, basic/transports: "a JSON-RPC error response that has no id"."""
    guard, liar, mode = where
    for status in STATUSES if how == "in-a-session" else (400, 401):
        answer = asked(guard, liar, how, status, ERRORS[said])
        assert answer.status == status
        assert answer.error() == ERROR
        assert answer.header("retry-after") == "5"
        assert 'error="invalid_token"' in (answer.header("www-authenticate") or "")
        if mode == "audit":
            assert answer.body == ERRORS[said]
        else:
            assert answer.json()["id"] == (None if how == "telling" else 7)
            assert answer.header("etag") is None


@pytest.mark.parametrize("how", ["in-a-session", "without-one", "opening", "telling"])
@pytest.mark.parametrize("said", WORDS)
def test_any_other_reason_reaches_the_client(where: Where, how: str, said: str) -> None:
    guard, liar, mode = where
    body, words = WORDS[said]
    for status in STATUSES if how == "in-a-session" else (400, 401):
        answer = asked(guard, liar, how, status, body)
        assert answer.status == status
        if mode == "audit":
            assert answer.body == body
        else:
            assert answer.json()["id"] == (None if how == "telling" else 7)
            assert words in json.dumps(answer.error()["data"])


def test_an_error_with_a_5xx_that_lacks_the_id_keeps_its_reason_too(where: Where) -> None:
    """The official TypeScript SDK writes `id: null` where it fails."""
    guard, liar, mode = where
    answer = asked(guard, liar, "in-a-session", 500, ERRORS["null"])
    assert (answer.status, answer.error()) == (500, ERROR)
    assert answer.json()["id"] == (None if mode == "audit" else 7)


@pytest.mark.parametrize("status", [404, 405])
def test_a_server_that_takes_no_request_may_be_one_of_the_first_revision(where: Where, status: int) -> None:
    """HTTP+SSE of 2024-11-05 answers a POST to its stream with 405. The log says so once."""
    guard, liar, _ = where
    for _ in range(2):
        asked(guard, liar, "opening", status, b"")
    guard.log.line("assay: the server answers what clients ask first with ")
    until(lambda: "this may be a server of 2024-11-05 (HTTP+SSE)" in guard.log.so_far())
    assert guard.log.so_far().count("this may be a server of 2024-11-05 (HTTP+SSE)") == 1

"""A server at a URL that is down, late, or lies: the client gets one answer, and the guard goes on."""

import json
import os
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from assay.base.server_names import folder_of, name_of_url
from assay.spec.revisions import LATEST
from kit.http_client import (
    BOTH,
    SECONDS,
    Answer,
    Service,
    call,
    frame_of,
    initialize,
    modern,
    notification,
    request,
    until,
)
from kit.scripted_http import REVISION, Liar, Peer, Received, good, guarding, lying, result

Where = tuple[Service, Liar]


@pytest.fixture(scope="module")
def _enforcing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Where]:
    with lying() as liar, guarding(tmp_path_factory.mktemp("guard"), liar.url, "--mode", "enforce") as guard:
        yield guard, liar


@pytest.fixture(scope="module")
def _auditing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Where]:
    with lying() as liar, guarding(tmp_path_factory.mktemp("guard"), liar.url) as guard:
        yield guard, liar


@pytest.fixture
def enforcing(_enforcing: Where) -> Iterator[Where]:
    """A guard that stops what is wrong, in front of a server whose script the test sets."""
    _enforcing[1].forget()
    yield _enforcing
    _enforcing[1].forget()


@pytest.fixture
def auditing(_auditing: Where) -> Iterator[Where]:
    """A guard that only tells."""
    _auditing[1].forget()
    yield _auditing
    _auditing[1].forget()


def ask(guard: Service, message: Any, headers: Any = None) -> Answer:
    """What comes of a request of 2026-07-28, or of one with these *headers*."""
    return guard.post(message, modern(message) if headers is None else headers)


CALL = call(7, "search", {"words": "sea"}, LATEST)
MODERN_RESULT = {"content": [], "structuredContent": {"found": 1}, "resultType": "complete"}


def modern_good(received: Received, peer: Peer) -> None:
    peer.json(result(received.message, MODERN_RESULT))


def closes(_: Received, __: Peer) -> None:
    """Says nothing at all."""


def garbage(_: Received, peer: Peer) -> None:
    peer.send(b"220 ready for mail\r\n\r\n")


def half_a_head(_: Received, peer: Peer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\ncontent-ty")


def half_a_body(_: Received, peer: Peer) -> None:
    peer.head(200, content_type="application/json", content_length="1000")
    peer.send(b'{"jsonrpc":"2.0","id":7,')


def no_json(_: Received, peer: Peer) -> None:
    peer.head(200, content_type="application/json")
    peer.send(b"oops, no JSON")


def no_message(_: Received, peer: Peer) -> None:
    peer.json({"ok": True})


def another_id(_: Received, peer: Peer) -> None:
    peer.json({"jsonrpc": "2.0", "id": 8, "result": MODERN_RESULT})


def page(_: Received, peer: Peer) -> None:
    peer.head(200, content_type="text/html")
    peer.send(b"<html>Sign in</html>")


def nothing(_: Received, peer: Peer) -> None:
    peer.head(200, content_length="0")


def taken(_: Received, peer: Peer) -> None:
    peer.head(202, content_type="application/json", content_length="0")


def broken(_: Received, peer: Peer) -> None:
    peer.head(503, content_type="text/html")
    peer.send(b"<html>Down for maintenance</html>")


def squeezed(_: Received, peer: Peer) -> None:
    peer.head(200, content_type="application/json", content_encoding="gzip")
    peer.send(b"\x1f\x8b\x08")


def elsewhere(_: Received, peer: Peer) -> None:
    peer.head(307, location="http://elsewhere.example/mcp/", content_length="0")


def no_status(_: Received, peer: Peer) -> None:
    peer.json({"jsonrpc": "2.0", "id": 7, "result": MODERN_RESULT}, 999)


def ending_stream(_: Received, peer: Peer) -> None:
    peer.events(notification("notifications/message", {"level": "info", "data": "soon"}))


def half_an_event(received: Received, peer: Peer) -> None:
    peer.events(b'data: {"jsonrpc":"2.0","id":7')


SILENT = [
    *(closes, garbage, half_a_head, half_a_body, no_json, no_message, another_id, page, nothing, taken, broken),
    *(squeezed, elsewhere, no_status),
]
BROKEN_STREAMS = [ending_stream, half_an_event]


@pytest.mark.parametrize("script", SILENT, ids=lambda each: each.__name__)
def test_a_request_without_an_answer_fails_with_its_id(enforcing: Where, script: Any) -> None:
    guard, liar = enforcing
    liar.script = script
    answer = ask(guard, CALL)
    assert answer.status == 502
    assert answer.json()["id"] == 7
    assert answer.error()["code"] in {-31010, -31011}
    liar.script = modern_good
    assert ask(guard, CALL).json()["result"] == MODERN_RESULT


@pytest.mark.parametrize("script", SILENT, ids=lambda each: each.__name__)
def test_in_a_session_it_fails_with_200(enforcing: Where, script: Any) -> None:
    """The libraries of that era never look into the body of anything else."""
    guard, liar = enforcing
    headers = guard.session(REVISION)
    liar.script = script
    answer = guard.post(call(7, "search", {"words": "sea"}), headers)
    assert answer.status == 200
    assert answer.json()["id"] == 7
    assert answer.error()["code"] in {-31010, -31011}


def test_of_a_session_whose_server_is_lost_the_last_messages_are_kept_once(enforcing: Where) -> None:
    guard, liar = enforcing
    flights = Path(os.environ["XDG_STATE_HOME"]) / "assay" / "servers" / folder_of(name_of_url(liar.url)) / "flights"
    before = set(flights.iterdir()) if flights.exists() else set()
    headers = guard.session(REVISION)
    for script in (page, closes, half_a_body):
        liar.script = script
        guard.post(call(7, "search", {"words": "sea"}), headers)
    [flight] = set(flights.iterdir()) - before
    rows = [json.loads(line) for line in flight.read_text().splitlines()]
    said = [json.loads(row["msg"]) for row in rows if "msg" in row]
    assert [each.get("method") for each in said] == [
        *("initialize", None, "notifications/initialized", "tools/call", "tools/call")
    ]


@pytest.mark.parametrize("script", BROKEN_STREAMS, ids=lambda each: each.__name__)
def test_a_stream_that_ends_without_the_answer_ends_with_an_error(enforcing: Where, script: Any) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    liar.script = script
    answer = guard.post(call(7, "search", {"words": "sea"}), headers)
    [last] = [each for each in answer.events() if '"id"' in each["data"]]
    assert '"id":7,"error":{"code":-31011' in last["data"]


@pytest.mark.parametrize(
    ("script", "status"),
    [(no_json, 200), (no_message, 200), (another_id, 200), (page, 200), (nothing, 200), (taken, 202), (broken, 503),
     (squeezed, 200), (elsewhere, 307)],
    ids=lambda each: getattr(each, "__name__", None),
)  # fmt: skip
def test_under_audit_what_the_server_says_comes_as_it_is(auditing: Where, script: Any, status: int) -> None:
    guard, liar = auditing
    liar.script = script
    answer = ask(guard, CALL)
    assert answer.status == status
    sent: list[bytes] = []

    class Noted(Peer):
        def send(self, data: bytes) -> None:
            sent.append(data)

    script(Received("POST", "/mcp", [], b""), Noted.__new__(Noted))
    assert answer.body == b"".join(sent).partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("script", [closes, garbage, half_a_head], ids=lambda each: each.__name__)
def test_under_audit_too_a_client_is_told_that_there_is_no_answer(auditing: Where, script: Any) -> None:
    guard, liar = auditing
    liar.script = script
    answer = ask(guard, CALL)
    assert (answer.status, answer.json()["id"], answer.error()["code"]) == (502, 7, -31011)


def test_a_server_that_is_not_there_is_no_reason_to_end(tmp_path: Any) -> None:
    with lying() as liar:
        url = liar.url
    with guarding(tmp_path, url, "--mode", "enforce") as guard:
        for ident in (1, "two"):
            answer = ask(guard, request(ident, "tools/list", {}, LATEST))
            assert (answer.status, answer.json()["id"]) == (502, ident)
            assert answer.error()["message"] == "No answer came: cannot connect to the server: Connection refused"
        assert ask(guard, notification("notifications/cancelled", {"requestId": 1})).status == 502
        assert guard.ask("GET", "/healthz").status == 200


def test_a_connection_that_is_reset_as_soon_as_it_is_made_is_no_fault_of_the_guard(tmp_path: Any) -> None:
    """When exactly it is, in the making or after, is a matter of luck: so many times."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:

        def refuse() -> None:
            with suppress(OSError):
                while True:
                    sock, _ = listening.accept()
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    sock.close()

        threading.Thread(target=refuse, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        with guarding(tmp_path, url, "--mode", "enforce", "--quiet") as guard, ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda _: ask(guard, CALL), range(200)))
            assert {(each.status, each.error()["code"]) for each in answers} == {(502, -31011)}
        listening.shutdown(socket.SHUT_RDWR)


def test_an_answer_that_comes_too_late_is_an_error_and_the_server_is_told(tmp_path: Any) -> None:
    def slow(received: Received, peer: Peer) -> None:
        if received.message.get("method") == "tools/call":
            peer.gone()
        else:
            good(received, peer)

    with lying(slow) as liar, guarding(tmp_path, liar.url, "--mode", "enforce", "--timeout", "6") as guard:
        answer = ask(guard, CALL)
        assert (answer.status, answer.error()["code"], answer.json()["id"]) == (504, -31012, 7)
        assert answer.error()["message"] == "No answer came within 6 s"
        headers = guard.session(REVISION)
        answer = guard.post(call("a", "search", {"words": "sea"}), headers)
        assert (answer.status, answer.error()["code"], answer.json()["id"]) == (200, -31012, "a")
        told = liar.next("notifications/cancelled")
        assert told.message["params"]["requestId"] == "a"
        assert told.header("mcp-session-id") == headers["mcp-session-id"]


def test_progress_gives_a_server_more_time(tmp_path: Any) -> None:
    def steady(received: Received, peer: Peer) -> None:
        message = received.message
        if message.get("method") != "tools/call":
            good(received, peer)
            return
        peer.events()
        wait = threading.Event()
        for step in range(10):
            # Together longer than the time that one may take.
            wait.wait(0.7)
            peer.event(notification("notifications/progress", {"progressToken": "t", "progress": step}))
        peer.event(result(message, {"content": []}))

    with lying(steady) as liar, guarding(tmp_path, liar.url, "--mode", "enforce", "--timeout", "6") as guard:
        headers = guard.session(REVISION)
        params = {"name": "search", "arguments": {"words": "sea"}, "_meta": {"progressToken": "t"}}
        answer = guard.post(request(1, "tools/call", params), headers)
        assert '"result"' in answer.events()[-1]["data"]
        assert len(answer.events()) == 11


def test_a_body_without_end_is_not_read_to_it(tmp_path: Any) -> None:
    def endless(received: Received, peer: Peer) -> None:
        peer.head(200, content_type="application/json")
        peer.send(b'{"jsonrpc":"2.0","id":7,"result":{"content":[],"text":"')
        while True:
            peer.send(b"x" * 65536)

    settings = ("--mode", "enforce", "--set", "guard.frame_bytes=100000")
    with lying(endless) as liar, guarding(tmp_path, liar.url, *settings) as guard:
        # The first one loads what requests need.
        ask(guard, CALL)
        before = guard.resident()
        answer = ask(guard, CALL)
        assert (answer.status, answer.json()["id"], answer.error()["code"]) == (502, 7, -31010)
        assert guard.resident() < before + (8 << 20)


def test_an_event_without_end_fails_what_it_answers(tmp_path: Any) -> None:
    def endless(received: Received, peer: Peer) -> None:
        if received.message.get("method") != "tools/call":
            good(received, peer)
            return
        peer.events(b'data: {"jsonrpc":"2.0","id":7,"result":{"content":[],"text":"')
        for _ in range(20):
            peer.send(b"x" * 65536)
        peer.send(b'"}}\n\n')
        peer.event(notification("notifications/message", {"level": "info", "data": "after"}))

    settings = ("--mode", "enforce", "--set", "guard.frame_bytes=100000")
    with lying(endless) as liar, guarding(tmp_path, liar.url, *settings) as guard:
        headers = guard.session(REVISION)
        answer = guard.post(call(7, "search", {"words": "sea"}), headers)
        assert '"id":7,"error":{"code":-31010' in answer.events()[0]["data"]
        assert len(answer.body) < 10_000


def test_a_client_that_goes_takes_its_request_with_it(enforcing: Where) -> None:
    guard, liar = enforcing
    gone = threading.Event()

    def patient(received: Received, peer: Peer) -> None:
        if peer.gone():
            gone.set()

    liar.script = patient
    with guard.open() as wire:
        wire.say("POST", "/mcp", frame_of(CALL), modern(CALL))
        liar.next("tools/call")
    assert gone.wait(SECONDS)


def test_a_client_that_does_not_read_holds_up_the_server(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    sent = []

    def floods(received: Received, peer: Peer) -> None:
        peer.events()
        peer.socket.settimeout(1.0)
        note = notification("notifications/message", {"level": "info", "data": "x" * 60_000})
        try:
            for count in range(2000):
                peer.event(note)
                sent.append(count)
        except TimeoutError:
            sent.append(-1)

    liar.script = floods
    with guard.open() as wire:
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.say("POST", "/mcp", frame_of(call(7, "search", {"words": "sea"})), headers)
        until(lambda: sent[-1:] == [-1])
    assert len(sent) < 500


def test_a_bad_request_never_reaches_the_server(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    guard.post(request("list", "tools/list"), headers)
    answer = guard.post(call(1, "search", {"words": 5}), headers)
    assert (answer.status, answer.json()["result"]["isError"]) == (200, True)
    answer = guard.post(request(2, "nope/nope"), headers)
    assert (answer.status, answer.error()["code"]) == (200, -32601)
    assert guard.post(b"{", headers).status == 400
    assert guard.post(b"", headers).status == 400
    answer = ask(guard, request(3, "ping", {}, LATEST))
    assert (answer.status, answer.json()["id"]) == (404, 3)
    mismatched = modern(CALL, mcp_name="another")
    assert ask(guard, CALL, mismatched).error()["code"] == -32020
    for ignored in (notification("nope/nope"), {"jsonrpc": "2.0", "id": 99, "result": {}}):
        answer = guard.post(ignored, headers)
        assert (answer.status, answer.body) == (202, b"")
    assert guard.post(notification("notifications/progress", {"progress": "much"}), headers).status == 400
    assert set(liar.asked()) == {"initialize", "notifications/initialized", "tools/list"}


def test_what_is_too_long_is_refused_with_413(tmp_path: Any) -> None:
    for mode in ("enforce", "audit"):
        settings = ("--mode", mode, "--set", "guard.frame_bytes=1000")
        with lying() as liar, guarding(tmp_path, liar.url, *settings) as guard:
            answer = guard.post(initialize(REVISION, "x" * 2000), BOTH)
            assert answer.status == 413
            assert liar.seen == []


def test_who_comes_back_for_an_answer_waits_no_longer_than_for_any_other(tmp_path: Any) -> None:
    def breaks_off(received: Received, peer: Peer) -> None:
        if received.method == "GET":
            peer.events(b"id: 1-1\ndata:\n\n")
            peer.gone()
        elif received.message.get("method") == "tools/call":
            peer.events(b"id: 1-0\ndata:\n\n")
        else:
            good(received, peer)

    with lying(breaks_off) as liar, guarding(tmp_path, liar.url, "--mode", "enforce", "--timeout", "6") as guard:
        headers = guard.session(REVISION)
        assert len(guard.post(call(7, "search", {"words": "sea"}), headers).events()) == 1
        answer = guard.ask("GET", headers={**headers, "last-event-id": "1-0"})
        assert '"id":7,"error":{"code":-31012' in answer.events()[-1]["data"]


def test_what_nobody_comes_back_for_is_given_up(tmp_path: Any) -> None:
    def breaks_off(received: Received, peer: Peer) -> None:
        if received.message.get("method") == "tools/call":
            peer.events(b"id: 1-0\ndata:\n\n")
        else:
            good(received, peer)

    with lying(breaks_off) as liar, guarding(tmp_path, liar.url, "--mode", "enforce", "--timeout", "6") as guard:
        guard.post(call(7, "search", {"words": "sea"}), guard.session(REVISION))
        assert "tools/call search #7" in guard.log.line("assay: server never answered: ")


def test_how_long_a_client_takes_to_read_does_not_count(tmp_path: Any) -> None:
    text = "x" * (12 << 20)

    def long(received: Received, peer: Peer) -> None:
        peer.json(result(received.message, {**MODERN_RESULT, "content": [{"type": "text", "text": text}]}))

    with lying(long) as liar, guarding(tmp_path, liar.url, "--mode", "enforce", "--timeout", "6") as guard:
        with guard.open() as wire:
            wire.say("POST", "/mcp", frame_of(CALL), modern(CALL))
            left = int(wire.head().header("content-length") or 0)
            assert left > len(text)
            # Together longer than the server would have had.
            for step in range(12, 0, -1):
                threading.Event().wait(0.6)
                left -= len(wire.exactly(left // step))
        assert left == 0
        assert "failed" not in guard.log.so_far()


def half_a_page(_: Received, peer: Peer) -> None:
    peer.head(200, content_type="text/html", content_length="1000")
    peer.send(b"<html>half")


def half_a_refusal(_: Received, peer: Peer) -> None:
    peer.head(403, content_type="text/plain", content_length="1000")
    peer.send(b"half")


def half_a_stream(_: Received, peer: Peer) -> None:
    peer.head(200, content_type="text/event-stream", transfer_encoding="chunked")
    peer.send(b"7\r\n: half\n\r\n")


def half_a_message(_: Received, peer: Peer) -> None:
    peer.head(200, content_type="application/json", content_length="1000")
    peer.send(b'{"half":')


HALVES = [half_a_page, half_a_refusal, half_a_stream, half_a_message]


@pytest.mark.parametrize("script", HALVES, ids=lambda each: each.__name__)
def test_under_audit_half_an_answer_is_no_whole_one(auditing: Where, script: Any) -> None:
    guard, liar = auditing
    liar.script = script
    _breaks_off(guard)


def test_under_enforce_half_a_refusal_is_a_whole_one_of_the_guard(enforcing: Where) -> None:
    """The status is known, and what the body says of it is written anew, as far as it came."""
    guard, liar = enforcing
    liar.script = half_a_refusal
    answer = guard.post(CALL, modern(CALL))
    assert (answer.status, answer.json()["id"]) == (403, CALL["id"])
    assert answer.error()["data"]["detail"] == "the server answered with HTTP status 403: half"


def _breaks_off(guard: Service) -> None:
    before = guard.log.so_far().count("broke off, and so did")
    with guard.open() as wire:
        wire.say("POST", "/mcp", frame_of(CALL), modern(CALL))
        assert wire.head().header("transfer-encoding") == "chunked"
        rest = wire.rest()
    assert b"half" in rest
    assert not rest.endswith(b"0\r\n\r\n"), "that is the end of a whole one"
    until(lambda: guard.log.so_far().count("broke off, and so did") > before)

"""A server at a URL whose connections break, or that is late: the client gets one answer, and the guard goes on."""

import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from assay.spec.revisions import LATEST
from kit.http_client import BOTH, Service, call, frame_of, initialize, modern, notification, until
from kit.rows import rows
from kit.scripted_http import (
    REVISION,
    Received,
    ScriptedServer,
    WirePeer,
    answering,
    good,
    guarding,
    guarding_in_both_modes,
    result,
    scripted,
)

Guards = tuple[ScriptedServer, dict[str, Service]]

CALL = call(7, "search", {"words": "sea"})
MODERN_CALL = call(7, "search", {"words": "sea"}, LATEST)
LIMIT = 100_000
MODERN_RESULT = {"content": [], "structuredContent": {"found": 1}, "resultType": "complete"}


@pytest.fixture(scope="module")
def guards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guards]:
    limit = ("--set", f"guard.frame_bytes={LIMIT}")
    with guarding_in_both_modes(tmp_path_factory.mktemp("guards"), *limit) as found:
        yield found


def sends(data: bytes) -> Any:
    """A server that sends these bytes, and closes the connection."""
    return lambda _, peer: peer.send(data)


@rows(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"220 ready for mail\r\n\r\n", id="another-protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-ty", id="half-a-head"),
    ],
)
def test_a_connection_without_an_answer_fails_the_request_by_its_id(guards: Guards, said: bytes) -> None:
    server, both = guards
    for guard in both.values():
        server.script = sends(said)
        answer = guard.post(MODERN_CALL, modern(MODERN_CALL))
        assert (answer.status, answer.json()["id"], answer.error()["code"]) == (502, 7, -31011)
        server.script = good
        headers = guard.session(REVISION)
        server.script = answering(sends(said))
        answer = guard.post(CALL, headers)
        assert (answer.status, answer.json()["id"], answer.error()["code"]) == (200, 7, -31011)
        server.script = lambda received, peer: peer.json(result(received.message, MODERN_RESULT))
        assert guard.post(MODERN_CALL, modern(MODERN_CALL)).json()["result"] == MODERN_RESULT


def half(status: int, kind: str, *, chunked: bool = False) -> Any:
    """A server whose answer breaks off."""

    def script(_: Received, peer: WirePeer) -> None:
        sized = {"transfer_encoding": "chunked"} if chunked else {"content_length": "1000"}
        peer.head(status, content_type=kind, **sized)
        peer.send(b"7\r\n: half\n\r\n" if chunked else b'{"half":')

    return script


@rows(
    "script",
    [
        pytest.param(half(200, "text/html"), id="page"),
        pytest.param(half(403, "text/plain"), id="refusal"),
        pytest.param(half(200, "application/json"), id="message"),
        pytest.param(half(200, "text/event-stream", chunked=True), id="stream"),
    ],
)
def test_under_audit_half_an_answer_is_no_whole_one(guards: Guards, script: Any) -> None:
    server, both = guards
    server.script = script
    guard = both["audit"]
    before = guard.log.so_far().count("broke off, and so did")
    with guard.open() as wire:
        wire.say("POST", "/mcp", frame_of(MODERN_CALL), modern(MODERN_CALL))
        assert wire.head().header("transfer-encoding") == "chunked"
        rest = wire.rest()
    assert b"half" in rest
    assert not rest.endswith(b"0\r\n\r\n"), "that is the end of a whole one"
    until(lambda: guard.log.so_far().count("broke off, and so did") > before)


def test_a_server_that_is_down_or_resets_connections_is_no_reason_to_end(tmp_path: Path) -> None:
    """When exactly a connection is reset, in the making or after, is a matter of luck: so there are many."""
    with scripted() as server:
        url = server.url
    with guarding(tmp_path, url, "--mode", "enforce", "--quiet") as guard, ThreadPoolExecutor(20) as pool:
        answer = guard.post(MODERN_CALL, modern(MODERN_CALL))
        assert (answer.status, answer.json()["id"]) == (502, 7)
        assert answer.error()["message"] == "No answer came: cannot connect to the server: Connection refused"
        cancelled = notification("notifications/cancelled", {"requestId": 1})
        assert guard.post(cancelled, modern(cancelled)).status == 502
        with socket.create_server(("127.0.0.1", urlsplit(url).port or 0), backlog=100) as listening:

            def reset() -> None:
                with suppress(OSError):
                    while True:
                        sock, _ = listening.accept()
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        sock.close()

            threading.Thread(target=reset, daemon=True).start()
            answers = list(pool.map(lambda _: guard.post(MODERN_CALL, modern(MODERN_CALL)), range(60)))
            listening.shutdown(socket.SHUT_RDWR)
        assert {(each.status, each.error()["code"]) for each in answers} == {(502, -31011)}
        assert guard.ask("GET", "/healthz").status == 200


def test_a_late_answer_is_an_error_and_in_a_session_it_is_cancelled(tmp_path: Path) -> None:
    with (
        scripted(answering(lambda _, peer: peer.gone())) as server,
        guarding(tmp_path, server.url, "--mode", "enforce", "--timeout", "0.2") as guard,
    ):
        answer = guard.post(MODERN_CALL, modern(MODERN_CALL))
        assert (answer.status, answer.error()["code"], answer.json()["id"]) == (504, -31012, 7)
        assert answer.error()["message"] == "No answer came within 0.2 s"
        headers = guard.session(REVISION)
        answer = guard.post(call("a", "search", {"words": "sea"}), headers)
        assert (answer.status, answer.error()["code"], answer.json()["id"]) == (200, -31012, "a")
        cancelled = server.next("notifications/cancelled")
        assert cancelled.message["params"]["requestId"] == "a"
        assert cancelled.header("mcp-session-id") == headers["mcp-session-id"]


def test_what_is_too_long_is_not_read_to_its_end_either_way(guards: Guards) -> None:
    """The server can send what the buffers of two sockets take, and no more."""
    sent: list[int] = []

    def endless(_: Received, peer: WirePeer) -> None:
        peer.head(200, content_type="application/json")
        peer.send(b'{"jsonrpc":"2.0","id":7,"result":{"content":[],"text":"')
        while len(sent) < 4000:
            peer.send(b"x" * 65536)
            sent.append(1)

    server, both = guards
    server.script = answering(endless)
    answer = both["enforce"].post(MODERN_CALL, modern(MODERN_CALL))
    assert (answer.status, answer.json()["id"], answer.error()["code"]) == (502, 7, -31010)
    assert both["enforce"].post(initialize(REVISION, "x" * (2 * LIMIT)), BOTH).status == 413
    assert len(sent) < 2000

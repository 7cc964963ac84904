"""A server at a URL whose connections break, or that is late: the client gets one answer, and the guard goes on."""

import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from assay.spec.revisions import LATEST
from kit.http_client import call, frame_of, modern, notification
from kit.scripted_http import (
    Received,
    WirePeer,
    guarding,
    scripted,
)

MODERN_CALL = call(7, "search", {"words": "sea"}, LATEST)


def half(status: int, kind: str, *, chunked: bool = False) -> Any:
    """A server whose answer breaks off."""

    def script(_: Received, peer: WirePeer) -> None:
        sized = {"transfer_encoding": "chunked"} if chunked else {"content_length": "1000"}
        peer.head(status, content_type=kind, **sized)
        peer.send(b"7\r\n: half\n\r\n" if chunked else b'{"half":')

    return script


HALVES = [
    half(200, "text/html"),
    half(403, "text/plain"),
    half(200, "application/json"),
    half(200, "text/event-stream", chunked=True),
]


def test_under_audit_half_an_answer_is_no_whole_one(tmp_path: Path) -> None:
    with scripted() as server, guarding(tmp_path, server.url) as guard:
        for count, server.script in enumerate(HALVES, 1):
            with guard.open() as wire:
                wire.say("POST", "/mcp", frame_of(MODERN_CALL), modern(MODERN_CALL))
                assert wire.head().header("transfer-encoding") == "chunked"
                rest = wire.rest()
            assert b"half" in rest
            assert not rest.endswith(b"0\r\n\r\n"), "that is the end of a whole one"
            guard.log.until(lambda log, count=count: log.count("broke off, and so did") == count)  # type: ignore[misc]  # of now


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

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
from kit.http_client import Service, call, frame_of, modern, notification, until
from kit.rows import rows
from kit.scripted_http import (
    Received,
    ScriptedServer,
    WirePeer,
    guarding,
    guarding_in_both_modes,
    scripted,
)

Guards = tuple[ScriptedServer, dict[str, Service]]

MODERN_CALL = call(7, "search", {"words": "sea"}, LATEST)
LIMIT = 100_000


@pytest.fixture(scope="module")
def guards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guards]:
    limit = ("--set", f"guard.frame_bytes={LIMIT}")
    with guarding_in_both_modes(tmp_path_factory.mktemp("guards"), *limit) as found:
        yield found


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

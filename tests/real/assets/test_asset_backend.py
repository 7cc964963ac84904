"""`populate_backend` against real services: the reference backend, and small ones that misbehave."""

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.assets import store_backend
from assay.assets.store_backend import StoreBackend
from kit.catalogues import answer, bundled
from kit.outputs import SECONDS, read_until
from kit.places import ROOT
from kit.rows import rows

httpx = pytest.importorskip("httpx", reason="httpx is not installed")

ASSET = {"name": "Tap", "haptic": {"name": "Tap", "pulses": [{"intensity": 1, "milliseconds": 20}]}}


# ── the reference backend ────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def reference_backend(database: Path) -> Iterator[str]:
    """Its address, while it runs in a process of its own."""
    command = [sys.executable, str(ROOT / "examples" / "backend" / "server.py"), "--port", "0", "--db", str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            address = read_until(process.stdout.fileno(), b"\n").decode().strip()
            assert address.startswith("http://127.0.0.1:")
            yield address
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


def stored(database: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(database)) as connection:
        return {name: json.loads(asset) for name, asset in connection.execute("SELECT id, asset FROM assets")}


def test_an_asset_is_stored_where_the_variables_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the reference backend, to the last digit, and with no other settings."""
    goes_where_the_variables_say(monkeypatch)
    database = tmp_path / "assets.db"
    asset = {**ASSET, "$schemaRef": "jsonschema/synesthetic-asset.schema.json", "description": "Größe \u2028"}
    with reference_backend(database) as address:
        catalogue = bundled(SYN_BACKEND_URL=f"{address}/")
        result = answer(catalogue, "populate_backend", asset=asset)
        assert result == {"ok": True, "asset_id": result["asset_id"], "backend_url": address}
        assert stored(database) == {result["asset_id"]: asset}
        assert httpx.get(f"{address}/synesthetic-assets/{result['asset_id']}", trust_env=False).json() == asset
        # No retries and no keys: twice is two assets.
        assert answer(catalogue, "populate_backend", asset=asset)["asset_id"] != result["asset_id"]
        # What it does not take is its own answer.
        failed = {"ok": False, "reason": "backend_error"}
        assert answer(catalogue, "populate_backend", asset=2**70, validate_first=False) == {
            **failed, "status": 422, "detail": "an asset is an object",
        }  # fmt: skip
        other = bundled(SYN_BACKEND_URL=address, SYN_BACKEND_ASSETS_PATH="other")
        assert answer(other, "populate_backend", asset=ASSET) == {
            **failed, "status": 404, "detail": "assets are posted to /synesthetic-assets/",
        }  # fmt: skip
        # Integers are kept to the last digit.
        exact = {"name": "n", "numbers": [2**63, 2**64, 2**70 + 1, -(2**70) - 1, 10**300 + 1]}
        kept = answer(catalogue, "populate_backend", asset=exact, validate_first=False)
        assert stored(database)[kept["asset_id"]] == exact
        for head, body, status in REFUSED:
            host, _, port = address.removeprefix("http://").partition(":")
            with socket.create_connection((host, int(port)), timeout=SECONDS) as connection:
                connection.sendall(head + b"\r\nHost: x\r\n\r\n" + body)
                assert connection.recv(4096).startswith(f"HTTP/1.1 {status} ".encode())


REFUSED = [
    (b"POST /synesthetic-assets/ HTTP/1.1\r\nContent-Length: 5", b"{nope", 400),
    (b"POST /synesthetic-assets/ HTTP/1.1\r\nContent-Length: 2", b"[]", 422),
    (b"POST /synesthetic-assets/ HTTP/1.1", b"", 411),
    (b"POST /synesthetic-assets/ HTTP/1.1\r\nContent-Length: 99999999999999999999", b"", 413),
    (b"GET /synesthetic-assets/none HTTP/1.1", b"", 404),
    (b"GET /../../etc/passwd HTTP/1.1", b"", 404),
]
"""What the reference backend cannot store or find."""


# ── backends that misbehave ──────────────────────────────────────────────────────────────────────────────────────────


Behaviour = Callable[[socket.socket, threading.Event], None]


@contextmanager
def loopback(behaviour: Behaviour) -> Iterator[tuple[str, list[bytes]]]:
    """A service on a free port that reads each request and then does this: its address, and what it was sent."""
    over = threading.Event()
    heard: list[bytes] = []

    def serve() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(SECONDS)
                try:
                    heard.append(_request(connection))
                    behaviour(connection, over)
                except OSError:
                    continue  # the other side has gone

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS)
        worker = threading.Thread(target=serve)
        worker.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
        finally:
            over.set()
            # Closing a socket does not wake who waits in `accept`.
            with closing(socket.create_connection(listener.getsockname(), timeout=SECONDS)) as last:
                last.shutdown(socket.SHUT_WR)
            worker.join(SECONDS)
            assert not worker.is_alive()


def _request(connection: socket.socket) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request:
        part = connection.recv(65536)
        if not part:
            return request
        request += part
    head, _, body = request.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length and (part := connection.recv(65536)):
        body += part
    return head + b"\r\n\r\n" + body


def says(status: str, body: bytes = b"", *headers: str) -> Behaviour:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return lambda connection, _: connection.sendall("\r\n".join(lines).encode() + body)


def waits(_: socket.socket, over: threading.Event) -> None:
    over.wait(SECONDS)


def drips(head: bytes) -> Behaviour:
    """Never pauses as long as a time-out, and never ends."""

    def behaviour(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(head)
        while not over.wait(0.02):
            connection.sendall(b"x")

    return behaviour


def sends(data: bytes) -> Behaviour:
    return lambda connection, _: connection.sendall(data)


NO_ID = "the backend answered 200 without a usable id"
NO_HTTP = "the backend sent no HTTP response"
GONE = "network_unreachable"


@rows(
    ("behaviour", "status", "detail", "timeout", "overall"),
    [
        (says("400 Bad", b"no name", "Content-Type: text/plain"), 400, "no name", 20, 20),
        (says("500 Oh no", b"x" * 1_000_000), 500, "internal server error", 20, 20),
        (says("200 OK", b'{"id": "a"}' + b" " * 65536), 502, NO_ID, 20, 20),
        (says("200 OK", b"\x1f\x8b", "Content-Encoding: gzip"), 502, NO_ID, 20, 20),
        (says("307 Over there", b"", "Location: /"), 307, "redirects", 20, 20),
        (sends(b"SSH-2.0-x\r\n\r\n"), 502, NO_HTTP, 20, 20),
        (says("200 OK", b"", "Content-Length: 9"), 502, NO_ID, 20, 20),
        # specs/001 §6: a network error is 503.
        (sends(b"HTTP/1.1 200"), 503, GONE, 20, 20),
        (sends(b"HTTP/1.1 200 OK\r\nContent-Ty"), 503, GONE, 20, 20),
        (sends(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), 503, GONE, 20, 20),
        (sends(b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), 503, GONE, 20, 20),
        (lambda connection, _: connection.close(), 503, GONE, 20, 20),
        # No backend is waited for without end.
        (waits, 503, GONE, 0.1, SECONDS),
        (waits, 503, GONE, SECONDS, 0.1),
        (drips(b"HTTP/1.1 200 OK\r\nX: "), 503, GONE, SECONDS, 0.2),
        (drips(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n"), 503, GONE, SECONDS, 0.2),
    ],
)
def test_a_backend_that_fails_is_asked_once_and_is_an_error(
    behaviour: Behaviour, status: int, detail: str, timeout: float, overall: float
) -> None:
    with loopback(behaviour) as (address, heard):
        backend = StoreBackend(address, store_backend.ASSETS_PATH, timeout, overall)
        result = answer(replace(bundled(), backend=backend), "populate_backend", asset=ASSET)
        assert len(heard) == 1  # no retries, no redirects
    assert {**result, "detail": detail in result["detail"]} == {
        "ok": False, "reason": "backend_error", "status": status, "detail": True,
    }  # fmt: skip


def test_a_backend_that_never_ends_is_left() -> None:
    """Otherwise each such call would leave a thread and a connection behind."""
    left = threading.Event()

    def dripping(connection: socket.socket, over: threading.Event) -> None:
        with suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n")
            while not over.wait(0.02):
                connection.sendall(b"x")
        left.set()

    with loopback(dripping) as (address, _):
        backend = StoreBackend(address, store_backend.ASSETS_PATH, SECONDS, 0.1)
        answer(replace(bundled(), backend=backend), "populate_backend", asset=ASSET)
        assert left.wait(SECONDS)


def goes_where_the_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies of the environment are left alone; a password is used, but never shown."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with loopback(says("200 OK", b'{"id": "a"}')) as (address, heard):
        backend = StoreBackend(address.replace("http://", "http://user:secret@"), "/x/?für=a b")
        result = answer(replace(bundled(), backend=backend), "populate_backend", asset=ASSET)
        assert result == {"ok": True, "asset_id": "a", "backend_url": address}
    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /x/?f%C3%BCr=a%20b HTTP/1.1\r\n")
    assert b"content-type: application/json" in head.lower()
    assert b"authorization: basic" in head.lower()
    assert json.loads(body) == ASSET
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # not listening
        refused = bundled(SYN_BACKEND_URL=f"http://127.0.0.1:{bound.getsockname()[1]}")
        assert answer(refused, "populate_backend", asset=ASSET)["detail"] == GONE

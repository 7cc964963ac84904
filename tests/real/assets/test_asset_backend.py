"""`populate_backend` against real services: the reference backend, and small ones that misbehave."""

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.assets import store_backend
from assay.assets.asset_server import AssetServer
from assay.assets.asset_sources import Catalogue
from assay.assets.mcp_methods import Methods
from assay.assets.store_backend import StoreBackend
from assay.spec.revisions import REVISIONS
from kit.asset_requests import call, opened, request, said
from kit.catalogues import answer, bundled
from kit.places import ROOT

pytest.importorskip("aiohttp", reason="populate_backend needs aiohttp")
httpx = pytest.importorskip("httpx")

SECONDS = 60
"""What anything here may take; it takes a fraction of a second."""

ASSET = {"name": "Tap", "haptic": {"name": "Tap", "pulses": [{"intensity": 1, "milliseconds": 20}]}}
UNREACHABLE = {"ok": False, "reason": "backend_error", "status": 503, "detail": "network_unreachable"}


# ── the reference backend ────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def reference_backend(database: Path) -> Iterator[str]:
    """Its address, while it runs in a process of its own."""
    command = [sys.executable, str(ROOT / "examples" / "backend" / "server.py"), "--port", "0", "--db", str(database)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watchdog = threading.Timer(SECONDS, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        yield address
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
        assert process.returncode == 0
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate(timeout=SECONDS)


def rows(database: Path) -> list[tuple[str, Any]]:
    with closing(sqlite3.connect(database)) as connection:
        return [(name, json.loads(asset)) for name, asset in connection.execute("SELECT id, asset FROM assets")]


def test_an_asset_is_stored_by_the_reference_backend(tmp_path: Path) -> None:
    database = tmp_path / "assets.db"
    asset = {**ASSET, "$schemaRef": "jsonschema/synesthetic-asset.schema.json", "description": "Größe \u2028"}
    with reference_backend(database) as address:
        catalogue = bundled(SYN_BACKEND_URL=f"{address}/")
        result = answer(catalogue, "populate_backend", asset=asset)
        assert result == {"ok": True, "asset_id": result["asset_id"], "backend_url": address}
        assert rows(database) == [(result["asset_id"], asset)]
        assert httpx.get(f"{address}/synesthetic-assets/{result['asset_id']}", trust_env=False).json() == asset
        # No retries and no keys: twice is two assets.
        assert answer(catalogue, "populate_backend", asset=asset)["asset_id"] != result["asset_id"]


def test_nothing_invalid_is_sent_unless_told_to(tmp_path: Path) -> None:
    """specs/001 §1: assets must be validated before persistence; `validate_first` is how a caller takes that over."""
    database = tmp_path / "assets.db"
    with reference_backend(database) as address:
        catalogue = bundled(SYN_BACKEND_URL=address)
        refused = answer(catalogue, "populate_backend", asset={"name": "x"})
        assert (refused["ok"], refused["reason"]) == (False, "validation_failed")
        assert (
            refused["errors"]
            == answer(catalogue, "validate_asset", asset={"name": "x"}, schema="synesthetic-asset")["errors"]
        )
        assert answer(catalogue, "populate_backend", asset={"name": "x"}, validate_first=True) == refused
        unknown = answer(catalogue, "populate_backend", asset={**ASSET, "$schemaRef": "other.schema.json"})
        assert "unknown schema `other`" in unknown["errors"][0]["msg"]
        assert rows(database) == []
        assert answer(catalogue, "populate_backend", asset={"name": "x"}, validate_first=False)["ok"] is True
        assert answer(catalogue, "populate_backend", asset=2**70, validate_first=False) == {
            "ok": False, "reason": "backend_error", "status": 422, "detail": "an asset is an object",
        }  # fmt: skip
        assert [asset for _, asset in rows(database)] == [{"name": "x"}]


@pytest.mark.parametrize("revision", ["", *REVISIONS])
def test_integers_are_stored_to_the_last_digit(tmp_path: Path, revision: str) -> None:
    """From a frame to the database, through either door: what was sent is what is kept."""
    asset = {"name": "n", "numbers": [2**63, 2**64, 2**70 + 1, -(2**70) - 1, 10**300 + 1]}
    arguments = {"asset": asset, "validate_first": False}
    message = call(1, "populate_backend", arguments, revision)
    database = tmp_path / "assets.db"
    with reference_backend(database) as address:
        methods = Methods(bundled(SYN_BACKEND_URL=address))
        server = opened(methods, revision) if revision else AssetServer(methods)
        [found] = said(server, message if revision else request(1, "populate_backend", arguments))
    result = found["result"]
    stored = json.loads(result["content"][0]["text"])["data"] if revision else result
    assert rows(database) == [(stored["asset_id"], asset)]


def test_another_path_is_posted_to_if_a_variable_says_so(tmp_path: Path) -> None:
    with reference_backend(tmp_path / "assets.db") as address:
        catalogue = bundled(SYN_BACKEND_URL=address, SYN_BACKEND_ASSETS_PATH="elsewhere")
        assert answer(catalogue, "populate_backend", asset=ASSET) == {
            "ok": False,
            "reason": "backend_error",
            "status": 404,
            "detail": "assets are posted to /synesthetic-assets/",
        }


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        (b"POST /synesthetic-assets/ HTTP/1.1\r\nContent-Length: 5", b"{nope", 400),
        (b"POST /synesthetic-assets/ HTTP/1.1\r\nContent-Length: 2", b"[]", 422),
        (b"POST /synesthetic-assets/ HTTP/1.1", b"", 411),
        (b"POST /synesthetic-assets/ HTTP/1.1\r\nContent-Length: 99999999999999999999", b"", 413),
        (b"GET /synesthetic-assets/none HTTP/1.1", b"", 404),
        (b"GET /../../etc/passwd HTTP/1.1", b"", 404),
    ],
)
def test_the_reference_backend_refuses_what_it_cannot_store(
    head: bytes, body: bytes, status: int, tmp_path: Path
) -> None:
    with reference_backend(tmp_path / "assets.db") as address:
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=SECONDS) as connection:
            connection.sendall(head + b"\r\nHost: x\r\n\r\n" + body)
            assert connection.recv(4096).startswith(f"HTTP/1.1 {status} ".encode())


# ── backends that misbehave ──────────────────────────────────────────────────────────────────────────────────────────


Behaviour = Callable[[socket.socket, threading.Event], None]


@contextmanager
def loopback(behaviour: Behaviour) -> Iterator[tuple[str, list[bytes]]]:
    """A service on a free port that reads each request and then does as told: its address, and what it was sent."""
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


def against(
    address: str, *, path: str = store_backend.ASSETS_PATH, timeout: float = 20, overall: float = 20
) -> Catalogue:
    """The bundled catalogue with a backend there, and time-outs that a test can choose."""
    return replace(bundled(), backend=StoreBackend(address, path, timeout, overall))


@pytest.mark.parametrize(
    ("behaviour", "status", "detail"),
    [
        pytest.param(says("400 Bad Request", b'{"detail": "no name"}'), 400, "no name", id="400"),
        pytest.param(says("409 Conflict", b'{"error": "exists"}'), 409, "exists", id="409"),
        pytest.param(says("404 Not Found", b"<html>"), 404, "not found", id="404-html"),
        pytest.param(says("500 Oh no", b'{"message": "internal error"}'), 500, "internal error", id="500"),
        pytest.param(says("500 Oh no", b'{"detail": {"trace": 1}}'), 500, "internal server error", id="no-sentence"),
        pytest.param(says("409 Conflict", b"exists\n already"), 409, "exists already", id="text"),
        pytest.param(says("400 Bad", b"no name", "Content-Type: text/plain"), 400, "no name", id="plain"),
        pytest.param(says("400 Bad", b'"no name"'), 400, "no name", id="json-string"),
        pytest.param(says("400 Bad", b"no", "Content-Type: text/html"), 400, "bad request", id="html-type"),
        pytest.param(says("400 Bad", b"\xff\xfe"), 400, "bad request", id="bytes"),
        pytest.param(says("400 Bad", b" \n"), 400, "bad request", id="blank"),
        pytest.param(says("400 Bad", b"word " * 999), 400, ("word " * 40).strip(), id="text-cut"),
        pytest.param(says("400 Bad", b'{"error": "E", "message": "M"}'), 400, "M", id="message-before-error"),
        pytest.param(says("400 Bad", b'{"error": {"code": 1, "message": "deep"}}'), 400, "deep", id="in-an-object"),
        pytest.param(says("422 No", b'{"detail": [{"loc": [], "msg": "missing"}]}'), 422, "missing", id="in-a-list"),
        pytest.param(says("503 Busy"), 503, "service unavailable", id="503"),
        pytest.param(says("599 Odd"), 599, "unknown error", id="599"),
        pytest.param(
            says("500 Oh no", json.dumps({"detail": "a\n\x1b[31m" + "x" * 999}).encode()), 500, "a [31m" + "x" * 194,
            id="cut-and-printable",
        ),
        pytest.param(says("500 Oh no", b"x" * 1_000_000), 500, "internal server error", id="500-huge"),
        pytest.param(says("201 Created", b"stored!"), 502, "answered 201 without a usable id", id="no-json"),
        pytest.param(says("204 No Content"), 502, "answered 204 without a usable id", id="no-content"),
        pytest.param(says("200 OK", b"{}"), 502, "without a usable id", id="no-id"),
        pytest.param(says("200 OK", b"[1]"), 502, "without a usable id", id="array"),
        pytest.param(says("200 OK", b'{"id": null}'), 502, "without a usable id", id="null-id"),
        pytest.param(says("200 OK", b'{"id": true}'), 502, "without a usable id", id="bool-id"),
        pytest.param(says("200 OK", b'{"id": ""}'), 502, "without a usable id", id="empty-id"),
        pytest.param(says("200 OK", b'{"id": "a", "id": "b"}'), 502, "without a usable id", id="two-ids"),
        pytest.param(says("200 OK", b'{"id": "%s"}' % (b"x" * 1025)), 502, "without a usable id", id="long-id"),
        pytest.param(says("200 OK", b'{"id": "a"}' + b" " * 65536), 502, "without a usable id", id="huge"),
        pytest.param(says("200 OK", b"\x1f\x8b", "Content-Encoding: gzip"), 502, "without a usable id", id="gzip"),
        pytest.param(says("302 Found", b"", "Location: http://127.0.0.1:1/"), 302, "redirects", id="redirect"),
        pytest.param(says("307 Over there", b"", "Location: /"), 307, "redirects", id="redirect-to-itself"),
        pytest.param(lambda one, _: one.sendall(b"SSH-2.0-x\r\n\r\n"), 502, "no HTTP response", id="no-http"),
        pytest.param(says("200 OK", b"", "Content-Length: 9"), 502, "no HTTP response", id="two-lengths"),
    ],
)  # fmt: skip
def test_a_backend_that_fails_is_told_from_one_that_stores(behaviour: Behaviour, status: int, detail: str) -> None:
    with loopback(behaviour) as (address, heard):
        result = answer(against(address), "populate_backend", asset=ASSET)
        assert len(heard) == 1  # no retries, no redirects
    assert (result["ok"], result["reason"], result["status"]) == (False, "backend_error", status)
    assert detail in result["detail"]
    assert set(result) == {"ok", "reason", "status", "detail"}


@pytest.mark.parametrize(("name", "told"), [(b'"a-1"', "a-1"), (b"17", "17"), (b'"\xc3\xa4"', "ä")])
def test_the_id_is_the_backends_own(name: bytes, told: str) -> None:
    with loopback(says("200 OK", b'{"id": %s, "more": []}' % name)) as (address, heard):
        result = answer(against(address, path="/x/"), "populate_backend", asset=ASSET)
        assert result == {"ok": True, "asset_id": told, "backend_url": address}
    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /x/ HTTP/1.1\r\n")
    assert b"content-type: application/json" in head.lower()
    assert json.loads(body) == ASSET


def test_numbers_are_sent_as_they_are() -> None:
    with loopback(says("200 OK", b'{"id": 1}')) as (address, heard):
        answer(against(address), "populate_backend", asset={"n": [2**70, 1.0, 0.1]}, validate_first=False)
    assert heard[0].endswith(b'{"n":[1180591620717411303424,1.0,0.1]}')


def waits(_: socket.socket, over: threading.Event) -> None:
    over.wait(SECONDS)


def drips(head: bytes) -> Behaviour:
    """Never pauses as long as a time-out, and never ends."""

    def behaviour(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(head)
        while not over.wait(0.02):
            connection.sendall(b"x")

    return behaviour


@pytest.mark.parametrize(
    ("behaviour", "timeout", "overall"),
    [
        pytest.param(waits, 0.2, SECONDS, id="no-answer"),
        pytest.param(waits, SECONDS, 0.2, id="no-answer-in-all"),
        pytest.param(drips(b"HTTP/1.1 200 OK\r\nX: "), SECONDS, 0.3, id="endless-header"),
        pytest.param(drips(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n"), SECONDS, 0.3, id="endless-body"),
    ],
)
def test_no_backend_is_waited_for_without_end(behaviour: Behaviour, timeout: float, overall: float) -> None:
    with loopback(behaviour) as (address, _):
        assert (
            answer(against(address, timeout=timeout, overall=overall), "populate_backend", asset=ASSET) == UNREACHABLE
        )


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(lambda one, _: one.sendall(b"HTTP/1.1 200"), id="in-the-status-line"),
        pytest.param(lambda one, _: one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), id="in-the-body"),
        pytest.param(
            lambda one, _: one.sendall(b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), id="in-a-chunk"
        ),
        pytest.param(lambda one, _: one.close(), id="hangs-up"),
    ],
)
def test_a_connection_that_breaks_off_is_unreachable(behaviour: Behaviour) -> None:
    """specs/001 §6: a network error is 503."""
    with loopback(behaviour) as (address, _):
        assert answer(against(address), "populate_backend", asset=ASSET) == UNREACHABLE


def test_a_refused_connection_is_unreachable() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # not listening
        address = f"http://127.0.0.1:{bound.getsockname()[1]}"
        assert answer(against(address), "populate_backend", asset=ASSET) == UNREACHABLE


# ── configuration ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_time_out_is_that_of_the_specification() -> None:
    """specs/001 §2: 5 s."""
    found = StoreBackend.read({"SYN_BACKEND_URL": "http://b.example"})
    assert found == StoreBackend("http://b.example", "/synesthetic-assets/", 5.0, 15.0)
    assert (store_backend.TIMEOUT, store_backend.OVERALL) == (5.0, 15.0)


@pytest.mark.parametrize("environ", [{}, {"SYN_BACKEND_URL": ""}, {"SYN_BACKEND_ASSETS_PATH": "/x"}])
def test_without_a_url_there_is_no_backend(environ: dict[str, str]) -> None:
    assert answer(bundled(**environ), "populate_backend", asset=ASSET) == {
        "ok": False, "reason": "unsupported", "detail": "SYN_BACKEND_URL is not set",
    }  # fmt: skip


@pytest.mark.parametrize(
    "url",
    [
        "b.example",
        "ftp://b.example",
        "http://",
        "http://[b",
        "http://b:port",
        "file:///x",
        "http://b/?a=1",
        "http://b/#c",
    ],
)
def test_a_url_that_is_none_is_an_operators_mistake(url: str) -> None:
    result = answer(bundled(SYN_BACKEND_URL=url), "populate_backend", asset=ASSET)
    assert (result["reason"], result["detail"]) == (
        "unsupported",
        "SYN_BACKEND_URL must be an http or https URL without a query or a fragment",
    )


def test_a_password_in_the_url_is_used_but_never_told() -> None:
    with loopback(says("200 OK", b'{"id": "a"}')) as (address, heard):
        with_password = address.replace("http://", "http://user:secret@")
        catalogue = against(with_password)
        assert answer(catalogue, "populate_backend", asset=ASSET)["backend_url"] == address
    assert b"authorization: basic" in heard[0].lower()
    assert "secret" not in repr(catalogue)


def test_the_environments_proxies_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: what specs/001 lists decides where an asset goes, nothing else."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with loopback(says("200 OK", b'{"id": "a"}')) as (address, _):
        assert answer(against(address), "populate_backend", asset=ASSET)["ok"] is True


def test_without_aiohttp_the_tool_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for ours in ("assay.edges.upstream_client", "assay.edges.upstream_errors"):
        monkeypatch.delitem(sys.modules, ours, raising=False)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    result = answer(bundled(SYN_BACKEND_URL="http://127.0.0.1:1"), "populate_backend", asset=ASSET)
    assert (result["reason"], result["detail"]) == (
        "unsupported", "populate_backend needs aiohttp, which is not installed",
    )  # fmt: skip


@pytest.mark.parametrize("asset", [float("nan"), {"a": float("inf")}, {1: 2}, "\ud800"])
def test_what_is_no_json_is_never_sent(asset: Any) -> None:
    from assay.assets.asset_tools import populate_backend

    catalogue = bundled(SYN_BACKEND_URL="http://127.0.0.1:1")
    result = populate_backend(catalogue, asset, validate_first=False)
    assert (result["ok"], result["reason"]) == (False, "validation_failed")

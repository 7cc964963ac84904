"""HTTP itself: statuses, limits, slow clients, and connections that are used again."""

import json
import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from assay.spec.revisions import LATEST
from kit.http_client import (
    JSON,
    SECONDS,
    STORE,
    Answer,
    Headers,
    Service,
    Wire,
    call,
    frame_of,
    head,
    late_backend,
    modern,
    of,
    request,
    serving,
)
from kit.rows import rows

ASKED = frame_of(request(1, "list_schemas"))
STATELESS_LIST = request(1, "tools/list", {}, LATEST)
LIMIT = 4000
MEBIBYTE = 1 << 20
CHUNKED = head("POST", "/mcp", {"host": "localhost", **JSON, "transfer-encoding": "chunked"})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that takes little, and fails at nothing that is done here."""
    with serving(tmp_path_factory.mktemp("manners"), f"limits.frame_bytes={LIMIT}") as running:
        yield running
        log = running.log.so_far()
    assert "Traceback" not in log, log


def good(answer: Answer) -> bool:
    return answer.status == 200 and "result" in answer.json()


def length_of(count: int, **more: str) -> bytes:
    """The head of a request with a body of this length."""
    return head("POST", "/mcp", {"host": "localhost", **JSON, "content-length": str(count), **more})


# ── what is asked for ────────────────────────────────────────────────────────────────────────────────────────────────

STREAM = {"accept": "text/event-stream"}
IN_SESSION = {**STREAM, "mcp-session-id": "x"}


@rows(
    ("method", "path", "headers", "expected"),
    [
        *(("POST", path, JSON, 200) for path in ("/mcp", "/mcp?a=b", "/%6dcp", "/mcp/?a=b")),
        *(("POST", path, JSON, 404) for path in ("/", "/MCP", "/mcp/x", "//mcp", "/healthz/x")),
        ("POST", "/mcp", {}, 200),
        ("POST", "/mcp", {"content-type": "text/plain"}, 415),
        ("POST", "/mcp", {**JSON, **STREAM}, 406),
        ("POST", "/mcp", {**JSON, "Mcp_Session_Id": "a"}, 400),
        *((method, "/mcp", IN_SESSION, 405) for method in ("GET", "DELETE", "PUT", "HEAD", "PROPFIND")),
        *((method, path, {}, 200) for method in ("GET", "HEAD") for path in ("/healthz", "/readyz", "/metrics")),
        *(("POST", path, {}, 405) for path in ("/healthz", "/readyz", "/metrics")),
    ],
)
def test_a_request_has_the_status_of_its_path_method_and_headers(
    service: Service, method: str, path: str, headers: dict[str, str], expected: int
) -> None:
    """2025-11-25, basic/transports: a server without streams and sessions answers GET and DELETE with 405."""
    body = ASKED if method == "POST" else b""
    with service.open() as wire:
        wire.say(method, path, body, headers)
        found = wire.answer(bodiless=method == "HEAD")
        assert found.status == expected
        if method == "HEAD" and expected == 200:
            assert int(found.header("content-length") or 0) > 0
        if expected == 405:
            assert ("POST" if path == "/mcp" else "GET") in (found.header("allow") or "")
        if expected in {404, 415}:
            assert found.error()["code"] == (-32601 if expected == 404 else -32600)
        if method == "POST" and expected == 200:
            assert good(found)
        if found.header("connection") != "close":
            wire.say("POST", "/mcp", ASKED, JSON)
            assert good(wire.answer())


# ── too much ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def sized(length: int) -> bytes:
    """A good request of *length* bytes."""
    begin, end = b'{"jsonrpc":"2.0","id":1,"method":"diff_assets","params":{"base":"', b'","new":1}}'
    return begin + b"x" * (length - len(begin) - len(end)) + end


def cut_off(wire: Wire, piece: bytes, times: int) -> bool:
    """Whether the other side closes while *piece* is sent so many times."""
    try:
        for _ in range(times):
            wire.send(piece)
    except (ConnectionResetError, BrokenPipeError):
        return True
    return False


def last_answer(service: Service, sent: bytes) -> Answer:
    """The only answer to what is *sent*; the connection ends behind it."""
    with service.open() as wire:
        wire.send(sent)
        found = wire.answer()
        assert found.header("connection") == "close"
        assert wire.rest() == b""
        return found


LONG_HEADS = [
    b"X: %b\r\n" % (b"x" * 100_000),
    b"".join(b"X-%d: %b\r\n" % (number, b"x" * 100) for number in range(1000)),
    b"X" * 100_000 + b": y\r\n",
    b"X: " + b"x" * 100_000,
]
"""One long, many, a long name, and one without an end."""


def test_a_head_and_a_body_are_refused_as_soon_as_they_are_too_long(service: Service) -> None:
    # A head is at most 64 KiB, however it comes.
    for lines in LONG_HEADS:
        assert last_answer(service, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + lines).status == 431, lines[:20]
    assert last_answer(service, b"GET /" + b"x" * 100_000).status in {400, 414, 431}
    long = length_of(len(ASKED), x="x" * (64 << 10))
    for cut in (0, 50_000):
        with service.open() as wire:
            wire.send(length_of(len(ASKED)) + ASKED + long[:cut])
            assert good(wire.answer())
            wire.send(long[cut:] + ASKED)
            assert wire.answer().status == 431
    assert good(service.post(ASKED, x="x" * 65_000))
    # A body has the limit of a message; a length that is over it is enough.
    assert good(service.post(sized(LIMIT)))
    found = service.post(sized(LIMIT + 1))
    assert (found.status, found.error()["code"], found.header("connection")) == (413, -32600, "close")
    for length in (LIMIT + 1, 2**63):
        assert last_answer(service, length_of(length)).status == 413
        assert last_answer(service, length_of(length, expect="100-continue")).status == 413
    for size in (LIMIT + 1, 3):
        pieces = (b"%x\r\n%b\r\n" % (size, b"x" * size)) * (LIMIT // size + 1)
        with service.open() as wire:
            wire.send(CHUNKED + pieces)
            assert wire.answer().status == 413
    with service.open() as wire:
        wire.send(CHUNKED)
        assert cut_off(wire, b"%x\r\n%b\r\n" % (MEBIBYTE, b"x" * MEBIBYTE), 100)
    # In pieces, with extensions and a trailer, the end of a body is found.
    with service.open() as wire:
        pieces = b"".join(b"%x;ext=1\r\n%b\r\n" % (len(p), p) for p in (ASKED[:7], ASKED[7:20], ASKED[20:]))
        wire.send(CHUNKED + pieces + b"0\r\nTrailer: x\r\n\r\n")
        assert good(wire.answer())
        wire.say("POST", "/mcp", ASKED, JSON)
        assert good(wire.answer())
    # The rest of a body that was refused early is no head of another request.
    with service.open() as wire:
        wire.send(head("POST", "/nope", {"host": "localhost", **JSON, "content-length": "200000"}))
        assert wire.answer().status == 404
        wire.send(b"x" * 200_000)
        wire.say("GET", "/healthz")
        assert wire.answer().status == 200


# ── too slow ─────────────────────────────────────────────────────────────────────────────────────────────────────────


ANSWERS = 50
"""Of a mebibyte each: more than the buffers of both sides hold."""

ROUNDS = 30
"""Enough for any machine; one or two are usual."""


def is_closed_unused(service: Service) -> None:
    """Use a connection once, and wait until the server closes it."""
    with service.open() as unused:
        unused.say("POST", "/mcp", ASKED, JSON)
        assert good(unused.answer())
        assert unused.rest() == b""


def unread_connection(service: Service) -> socket.socket:
    """A connection whose buffer is small: its size counts only if it is set before."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(SECONDS)
    connection.connect(service.address)
    return connection


def test_a_client_that_is_too_slow_is_cut_off_and_holds_up_no_other(tmp_path: Path) -> None:
    """Each of them waits for its own end, all at the same time."""
    (tmp_path / "long").mkdir()
    (tmp_path / "long" / "long.schema.json").write_text(json.dumps({"description": "x" * MEBIBYTE}))
    waits = ("http.body_seconds=0.3", "http.header_seconds=1", "http.idle_seconds=0.3", "http.send_seconds=0.3")
    with serving(tmp_path, *waits, env={"SYN_SCHEMAS_DIR": str(tmp_path / "long")}) as running:
        is_closed_unused(running)
        before = running.open_files()
        bodies = [length_of(100), length_of(len(ASKED)) + ASKED[:10], CHUNKED + b"%x\r\n%b\r\n" % (len(ASKED), ASKED)]
        heads = [b"", b"PO", b"POST /mcp HTTP/1.1\r\nHost: local", length_of(len(ASKED)) + ASKED + b"POST /mcp HTT"]
        without_body, without_head = ([(running.open(), sent) for sent in every] for every in (bodies, heads))
        for wire, sent in (*without_body, *without_head):
            wire.send(sent)
        dripping, unread = running.open(), unread_connection(running)
        dripping.send(length_of(1000))
        asked = frame_of(request(1, "get_schema", {"name": "long"}))
        unread.sendall((length_of(len(asked)) + asked) * ANSWERS)
        assert good(running.post(ASKED))
        # A byte now and then is no body, either.
        while not select.select([dripping.socket], [], [], 0.02)[0]:
            dripping.send(b" ")
        assert dripping.answer().status == 408
        for wire, _ in without_body:
            found = wire.answer()
            assert (found.status, found.header("connection"), wire.rest()) == (408, "close", b"")
        for wire, sent in without_head:
            if ASKED in sent:
                assert good(wire.answer())
            ending = wire.rest()
            assert ending == b"" or ending.startswith(b"HTTP/1.1 408 ")
        # Connections that are not used are closed, one after the other, until the one that reads nothing is gone, too.
        for _ in range(ROUNDS):
            is_closed_unused(running)
            if running.open_files() <= before:
                break
        assert running.open_files() <= before
        # What is left is what the kernels still had.
        left = 0
        with suppress(ConnectionResetError):
            while chunk := unread.recv(1 << 16):
                left += len(chunk)
        assert left < ANSWERS * MEBIBYTE
        unread.close()
        assert good(running.post(ASKED))
        assert running.log.so_far().count("\n") == 0


# ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────────

UPGRADES: list[Headers] = [
    {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMAAABkAAQCAAAAAAIAAAAA"},
    {"connection": "upgrade", "upgrade": "websocket"},
]


def test_a_connection_is_used_again_and_answered_in_order(service: Service) -> None:
    with service.open() as wire:
        for number in range(20):
            wire.say("POST", "/mcp", frame_of(request(number, "list_examples")), JSON)
            assert wire.answer().json()["id"] == number
        # RFC 9110, 7.8. Java's client offers h2c with the first request to every server without TLS.
        for upgrade in UPGRADES:
            wire.say("POST", "/mcp", ASKED, {**JSON, **upgrade})
            assert good(wire.answer())
        # RFC 9110, 10.1.1: a client that waits for it gets to know that it may go on.
        wire.send(length_of(len(ASKED), expect="100-Continue"))
        assert wire.head().status == 100
        wire.send(ASKED)
        assert good(wire.answer())
        said = [request(number, ("list_schemas", "list_examples", "nope")[number % 3]) for number in range(60)]
        wire.send(b"".join(length_of(len(each)) + each for each in map(frame_of, said)))
        assert [wire.answer().json()["id"] for _ in said] == list(range(60))
        wire.send(head("POST", "/mcp", {"host": "localhost", "content-type": "text/plain", "expect": "100-continue",
                                        "content-length": "5"}))  # fmt: skip
        assert wire.head().status == 415
    # The last request of a connection is answered before it ends.
    whole = length_of(len(ASKED)) + ASKED
    for sent in (whole.replace(b"HTTP/1.1", b"HTTP/1.0"), whole + b"garbage\r\n\r\n", whole):
        with service.open() as wire:
            wire.send(sent)
            if sent is whole:
                # As `nc` does it.
                wire.socket.shutdown(socket.SHUT_WR)
            assert good(wire.answer())
            assert wire.rest() == b""


# ── a backend that is slow ───────────────────────────────────────────────────────────────────────────────────────────


def test_requests_that_wait_hold_up_nothing_else_and_are_bounded(tmp_path: Path) -> None:
    slow, stateless = request("slow", "populate_backend", STORE), call(7, "populate_backend", STORE, LATEST)
    with (
        late_backend() as (backend, variable),
        serving(tmp_path, "http.requests=2", env=variable) as running,
        running.open() as one,
        running.open() as two,
    ):
        one.say("POST", "/mcp", frame_of(slow), JSON)
        one.say("POST", "/mcp", ASKED, JSON)
        backend.was_asked()
        # Others go on, with the same id, too: no request knows of another one.
        assert running.post({**STATELESS_LIST, "id": "slow"}, modern(STATELESS_LIST)).json()["id"] == "slow"
        two.say("POST", "/mcp", frame_of(stateless), modern(stateless))
        backend.was_asked()
        found = running.post(request(7, "ping"), of("2025-11-25"))
        assert (found.status, found.error()["code"]) == (503, -31016)
        assert int(found.header("retry-after") or 0) > 0
        assert running.ask("GET", "/healthz").status == 200
        assert one.silent()
        backend.allowed.set()
        assert [one.answer().json()["id"], one.answer().json()["id"]] == ["slow", 1]
        assert two.answer().json()["result"]["structuredContent"]["data"]["asset_id"] == "stored"
        batch = [call(1, "populate_backend", STORE), request(2, "ping")]
        assert [each["id"] for each in running.post(batch, of("2025-03-26")).json()] == [1, 2]
        # All of it was counted.
        assert [running.ask("GET", path).body for path in ("/healthz", "/readyz")] == [b"ok\n", b"ready\n"]
        counted = running.ask("GET", "/metrics")
        assert counted.header("content-type") == "text/plain; version=0.0.4; charset=utf-8"
        of_calls = 'assay_messages_total{transport="http",party="client",method="tools/call",status="ok"}'
        assert f"{of_calls} 2\n" in counted.body.decode()
        # What comes behind a request in hand is bounded, too.
        backend.allowed.clear()
        one.say("POST", "/mcp", frame_of(slow), JSON)
        one.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")
        lines = b"".join(b"X-%d: %b\r\n" % (number, b"x" * 1000) for number in range(1000))
        assert cut_off(one, lines, 32)

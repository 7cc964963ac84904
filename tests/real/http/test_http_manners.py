"""HTTP itself: statuses, limits, slow and broken clients, connections that are used again."""

import json
import random
import re
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import LATEST
from kit.http_client import (
    BOTH,
    INITIALIZED,
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
    listen,
    modern,
    notification,
    of,
    request,
    serving,
    until,
)

ASKED = frame_of(request(1, "list_schemas"))
LIMIT = 4000
MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("manners")) as running:
        yield running
        log = running.log.so_far()
    assert "Traceback" not in log, log


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One that takes little."""
    with serving(tmp_path_factory.mktemp("small"), f"limits.frame_bytes={LIMIT}") as running:
        yield running
        log = running.log.so_far()
    assert "Traceback" not in log, log


def hasty(setting: str, made: pytest.TempPathFactory) -> Iterator[Service]:
    """One with one *setting*, which waits for all else as long as usual."""
    with serving(made.mktemp("hasty"), setting) as running:
        yield running
        log = running.log.so_far()
    assert "Traceback" not in log, log


@pytest.fixture(scope="module")
def bodies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One that does not wait for bodies."""
    yield from hasty("http.body_seconds=0.5", tmp_path_factory)


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One that does not wait long for heads; but the first one comes in the time between two calls of the system."""
    yield from hasty("http.header_seconds=2", tmp_path_factory)


@pytest.fixture(scope="module")
def unused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One that does not wait for the next request."""
    yield from hasty("http.idle_seconds=0.5", tmp_path_factory)


def sized(length: int) -> bytes:
    """A good request of *length* bytes."""
    begin, end = b'{"jsonrpc":"2.0","id":1,"method":"diff_assets","params":{"base":"', b'","new":1}}'
    return begin + b"x" * (length - len(begin) - len(end)) + end


def good(answer: Answer) -> bool:
    return answer.status == 200 and "result" in answer.json()


def cut_off(wire: Wire, piece: bytes, times: int) -> bool:
    """Whether the other side closes while *piece* is sent so many times."""
    try:
        for _ in range(times):
            wire.send(piece)
    except (ConnectionResetError, BrokenPipeError):
        return True
    return False


def still_serves(service: Service) -> None:
    assert good(service.post(ASKED))


# ── what is asked for ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "kind",
    [
        "application/json", "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"',
        "application/json ; x=y",
    ],
)  # fmt: skip
def test_json_is_taken_however_it_is_spelt(service: Service, kind: str) -> None:
    assert good(service.post(ASKED, {"content-type": kind}))


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain", "text/json", "multipart/form-data", "json", "application", "text/plain; application/json",
        "text/plain, application/json", "application/json-seq", "application/jsonl", "application/json-patch+json",
    ],
)  # fmt: skip
def test_anything_else_is_415(service: Service, kind: str) -> None:
    found = service.post(ASKED, {"content-type": kind})
    assert found.status == 415
    assert found.error()["code"] == -32600


@pytest.mark.parametrize("kind", [None, "", "application/x-www-form-urlencoded"])
def test_curl_need_not_say_what_it_sends_and_a_page_has_to(service: Service, kind: str | None) -> None:
    """A page may send a form anywhere without asking first; it cannot leave out its origin."""
    given = {} if kind is None else {"content-type": kind}
    assert good(service.post(ASKED, given))
    assert service.post(ASKED, given, origin="http://localhost").status == 415


@pytest.mark.parametrize(
    "accept",
    [
        *(None, "*/*", "application/json", "APPLICATION/JSON;q=0.5", "application/*", "text/html, application/json"),
        *("application/json, text/event-stream", "text/event-stream, application/json"),
        "*/*;q=0, application/json; q=0.001",
    ],
)
def test_an_answer_is_json(service: Service, accept: str | None) -> None:
    """2025-11-25, basic/transports: either is right where both are listed."""
    found = service.post(ASKED, {**JSON, **({} if accept is None else {"accept": accept})})
    assert (found.status, found.header("content-type")) == (200, "application/json")


@pytest.mark.parametrize(
    "accept",
    [
        *("text/event-stream", "text/*", "text/html", "application/xml, image/*", ""),
        *("application/json;q=0, */*;q=0.1", "application/json ; Q=0.000", "*/*;q=0"),
    ],
)
def test_a_client_that_does_not_accept_json_is_406(service: Service, accept: str) -> None:
    """2025-11-25, basic/transports: a client MUST list both application/json and text/event-stream."""
    assert service.post(ASKED, {**JSON, "accept": accept}).status == 406


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD", "PROPFIND"])
@pytest.mark.parametrize("version", [None, "2025-11-25", LATEST])
def test_other_methods_are_405_and_told_which_there_is(service: Service, method: str, version: str | None) -> None:
    """2025-11-25, basic/transports: a server without streams and sessions answers GET and DELETE with 405."""
    given = {} if version is None else {"mcp-protocol-version": version, "mcp-session-id": "x"}
    found = service.ask(method, "/mcp", headers={"accept": "text/event-stream", **given})
    assert (found.status, found.header("allow")) == (405, "POST")


@pytest.mark.parametrize("path", ["/", "/mcp//", "/MCP", "/mcp/x", "//mcp", "/nope", "/healthz/x", "/sse"])
def test_there_is_nothing_anywhere_else(service: Service, path: str) -> None:
    found = service.ask("POST", path, ASKED, JSON)
    assert (found.status, found.error()["code"]) == (404, -32601)


@pytest.mark.parametrize("path", ["/mcp?", "/mcp?a=b", "/%6dcp", "/mcp/", "/mcp/?a=b"])
def test_the_endpoint_is_known_by_its_path(service: Service, path: str) -> None:
    assert good(service.ask("POST", path, ASKED, JSON))


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_head_is_get_without_the_body(service: Service, path: str) -> None:
    with service.open() as wire:
        wire.say("HEAD", path)
        found = wire.answer(bodiless=True)
        assert found.status == 200
        assert int(found.header("content-length") or 0) > 0
        wire.say("GET", "/healthz")
        assert wire.answer().body == b"ok\n"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT"])
def test_what_can_only_be_looked_at_is_405_for_other_methods(service: Service, method: str, path: str) -> None:
    found = service.ask(method, path)
    assert found.status == 405
    assert "GET" in (found.header("allow") or "")


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_message_may_take_several_lines(service: Service) -> None:
    pretty = json.dumps(request(1, "list_schemas"), indent=2).replace("\n", "\r\n").encode()
    assert service.post(b"\r\n " + pretty + b"\n\n").json() == service.post(ASKED).json()


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_notification_is_accepted_without_a_body(service: Service, revision: str) -> None:
    found = service.post(notification("notifications/cancelled", {"requestId": 1}), of(revision))
    assert (found.status, found.body) == (202, b"")
    assert found.header("content-type") is None


def test_a_notification_without_a_revision_is_accepted_too(service: Service) -> None:
    assert service.post(INITIALIZED, BOTH).status == 202


def test_a_malformed_notification_is_400(service: Service) -> None:
    """2025-11-25, basic/transports: an HTTP error status code, and an error that has no id if there is a body."""
    said = notification("notifications/cancelled", {"requestId": []})
    found = service.post(said, of("2025-11-25"))
    assert found.status == 400
    assert found.json().get("id") is None


@pytest.mark.parametrize(
    "said",
    [
        notification("notifications/nope"), notification("tools/list"), {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "no"}},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_well_formed_and_means_nothing_here_is_ignored(service: Service, said: Any) -> None:
    """JSON-RPC 2.0, 4.1: nobody answers a notification. The official TypeScript client throws on any other status."""
    found = service.post(said, of("2025-11-25"))
    assert (found.status, found.body) == (202, b"")


# ── too much ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_body_of_the_limit_is_served_and_one_byte_more_is_413(small: Service) -> None:
    assert good(small.post(sized(LIMIT)))
    found = small.post(sized(LIMIT + 1))
    assert (found.status, found.error()["code"], found.header("connection")) == (413, -32600, "close")


def test_a_mebibyte_is_served_and_one_byte_more_is_413(service: Service) -> None:
    """specs/001 §3."""
    assert good(service.post(sized(MEBIBYTE)))
    assert service.post(sized(MEBIBYTE + 1)).status == 413


@pytest.mark.parametrize("length", [LIMIT + 1, 10**9, 10**15, 2**63])
@pytest.mark.parametrize("expect", [{}, {"expect": "100-continue"}], ids=["", "expect"])
def test_a_length_over_the_limit_is_413_before_anything_is_sent(
    small: Service, length: int, expect: dict[str, str]
) -> None:
    with small.open() as wire:
        wire.send(head("POST", "/mcp", {"host": "localhost", **JSON, **expect, "content-length": str(length)}))
        found = wire.answer()
        assert (found.status, found.header("connection")) == (413, "close")
        assert wire.rest() == b""


@pytest.mark.parametrize("size", [LIMIT + 1, 3])
def test_a_body_without_length_is_413_as_soon_as_it_is_too_long(small: Service, size: int) -> None:
    with small.open() as wire:
        wire.send(head("POST", "/mcp", {"host": "localhost", **JSON, "transfer-encoding": "chunked"}))
        for _ in range(LIMIT // size + 1):
            wire.send(b"%x\r\n%b\r\n" % (size, b"x" * size))
        found = wire.answer()
        assert (found.status, found.header("connection")) == (413, "close")


def test_an_endless_body_takes_no_memory(service: Service) -> None:
    still_serves(service)
    before = service.resident()
    with service.open() as wire:
        wire.send(head("POST", "/mcp", {"host": "localhost", **JSON, "transfer-encoding": "chunked"}))
        piece = b"%x\r\n%b\r\n" % (MEBIBYTE, b"x" * MEBIBYTE)
        assert cut_off(wire, piece, 100)
    assert service.resident() - before < 16 * MEBIBYTE
    still_serves(service)


def test_a_body_in_pieces_is_served(small: Service) -> None:
    with small.open() as wire:
        wire.send(head("POST", "/mcp", {"host": "localhost", **JSON, "transfer-encoding": "chunked"}))
        for begin in range(0, len(ASKED), 7):
            piece = ASKED[begin : begin + 7]
            wire.send(b"%x;ext=1\r\n%b\r\n" % (len(piece), piece))
        wire.send(b"0\r\nTrailer: x\r\n\r\n")
        assert good(wire.answer())
        # And the connection is where it should be.
        wire.say("POST", "/mcp", ASKED, JSON)
        assert good(wire.answer())


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([b"X: %b\r\n" % (b"x" * 100_000)], id="one-long-header"),
        pytest.param([b"X-%d: %b\r\n" % (number, b"x" * 100) for number in range(1000)], id="many-headers"),
        pytest.param([b"X" * 100_000 + b": y\r\n"], id="long-name"),
        pytest.param([b"X: " + b"x" * 100_000], id="without-end"),
    ],
)
def test_a_head_that_is_too_long_is_431(service: Service, lines: list[bytes]) -> None:
    with service.open() as wire:
        wire.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + b"".join(lines))
        found = wire.answer()
        assert (found.status, found.header("connection")) == (431, "close")
        assert wire.rest() == b""


@pytest.mark.parametrize("cut", [0, 50_000], ids=["in-one-piece", "begun-behind-a-body"])
def test_a_head_of_more_than_64_kib_is_too_long_however_it_comes(service: Service, cut: int) -> None:
    headers = {"host": "localhost", **JSON, "content-length": str(len(ASKED))}
    long = head("POST", "/mcp", {**headers, "x": "x" * (64 << 10)})
    with service.open() as wire:
        wire.send(head("POST", "/mcp", headers) + ASKED + long[:cut])
        assert good(wire.answer())
        wire.send(long[cut:] + ASKED)
        found = wire.answer()
        assert (found.status, found.header("connection")) == (431, "close")
        assert wire.rest() == b""
    assert good(service.post(ASKED, x="x" * 65_000))


ODD = {
    "underscores": {"Mcp_Session_Id": "a"},
    "an-underscore": {"mcp-session_id": "a"},
    "underscored-type": {"content_type": "text/plain"},
    "two-words": {"last-event-id": "a b"},
    "two-methods": {"mcp-method": "ping pong"},
    "token": {"authorization": b"Bearer \xe4"},
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_header_that_can_be_read_in_two_ways_is_refused(service: Service, odd: dict[str, Any]) -> None:
    with service.open() as wire:
        wire.say("POST", "/mcp", ASKED, {**JSON, **odd})
        assert wire.answer().status == 400


def test_an_underscore_in_a_header_that_nobody_decides_by_is_fine(service: Service) -> None:
    with service.open() as wire:
        wire.say("POST", "/mcp", ASKED, {**JSON, "x_forwarded_for": "a"})
        assert good(wire.answer())


def test_an_address_that_is_too_long_is_refused(service: Service) -> None:
    with service.open() as wire:
        wire.send(b"GET /" + b"x" * 100_000)
        assert wire.answer().status in {400, 414, 431}


def test_a_head_may_be_long(service: Service) -> None:
    assert good(service.post(ASKED, x="x" * 50_000))


@pytest.mark.parametrize("path", ["/nope", "/mcp"])
def test_after_an_early_refusal_the_rest_of_the_body_is_no_head(service: Service, path: str) -> None:
    """Else the next request on the connection would be answered with a 431 that is not meant for it."""
    with service.open() as wire:
        headers = {"host": "evil.example", **JSON, "content-length": "200000"}
        wire.send(head("POST", path, headers))
        assert wire.answer().status in {403, 404}
        wire.send(b"x" * 200_000)
        wire.say("GET", "/healthz")
        assert wire.answer().status == 200


def test_a_head_behind_a_request_in_hand_is_bounded_too(tmp_path: Path) -> None:
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running, running.open() as wire:
        wire.say("POST", "/mcp", frame_of(request("slow", "populate_backend", STORE)), JSON)
        backend.was_asked()
        before = running.resident()
        lines = b"".join(b"X-%d: %b\r\n" % (number, b"x" * 1000) for number in range(1000))
        wire.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")
        assert cut_off(wire, lines, 32)
        assert running.resident() - before < 8 * MEBIBYTE


# ── too slow ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def dripped(wire: Wire, text: bytes) -> None:
    """Sends *text* byte by byte, slowly, until something comes back or all is sent."""
    for byte in text:
        if select.select([wire.socket], [], [], 0.05)[0]:
            return
        wire.send(bytes([byte]))


@pytest.mark.parametrize("sent", [b"", ASKED[:10]], ids=["nothing", "a-part"])
def test_a_body_that_does_not_come_is_408(bodies: Service, sent: bytes) -> None:
    with bodies.open() as wire:
        wire.send(head("POST", "/mcp", {"host": "localhost", **JSON, "content-length": str(len(ASKED))}) + sent)
        found = wire.answer()
        assert (found.status, found.header("connection")) == (408, "close")
        assert wire.rest() == b""


def test_a_body_that_comes_byte_by_byte_is_408(bodies: Service) -> None:
    with bodies.open() as wire:
        wire.send(head("POST", "/mcp", {"host": "localhost", **JSON, "content-length": "1000"}))
        dripped(wire, b" " * 1000)
        assert wire.answer().status == 408


def test_a_chunked_body_that_does_not_end_is_408(bodies: Service) -> None:
    with bodies.open() as wire:
        wire.send(head("POST", "/mcp", {"host": "localhost", **JSON, "transfer-encoding": "chunked"}))
        wire.send(b"%x\r\n%b\r\n" % (len(ASKED), ASKED))
        assert wire.answer().status == 408


@pytest.mark.parametrize("sent", [b"", b"PO", b"POST /mcp HTTP/1.1\r\nHost: local"], ids=["nothing", "word", "half"])
def test_a_head_that_does_not_come_ends_the_connection(heads: Service, sent: bytes) -> None:
    with heads.open() as wire:
        wire.send(sent)
        ending = wire.rest()
        assert ending == b"" or ending.startswith(b"HTTP/1.1 408 ")


def test_a_head_that_comes_byte_by_byte_ends_the_connection(heads: Service) -> None:
    with heads.open() as wire:
        wire.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")
        dripped(wire, b"X: " + b"x" * 1000)
        ending = wire.rest()
        assert ending == b"" or ending.startswith(b"HTTP/1.1 408 ")


def test_a_second_head_that_does_not_come_ends_the_connection(heads: Service) -> None:
    with heads.open() as wire:
        wire.say("POST", "/mcp", ASKED, JSON)
        assert good(wire.answer())
        wire.send(b"POST /mcp HTT")
        ending = wire.rest()
        assert ending == b"" or ending.startswith(b"HTTP/1.1 408 ")


def test_a_connection_that_is_not_used_is_closed(unused: Service) -> None:
    with unused.open() as wire:
        wire.say("POST", "/mcp", ASKED, JSON)
        assert good(wire.answer())
        assert wire.rest() == b""


def test_garbage_behind_a_request_does_not_replace_its_response(service: Service) -> None:
    with service.open() as wire:
        head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        wire.send(head + b"Content-Length: %d\r\n\r\n" % len(ASKED) + ASKED + b"garbage\r\n\r\n")
        assert good(wire.answer())
        assert wire.rest() == b""


def test_a_slow_client_holds_up_nobody(small: Service) -> None:
    with small.open() as wire:
        wire.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n")
        still_serves(small)


@pytest.fixture(scope="module")
def unread(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that has had a client who asked for much, read nothing, and was cut off."""
    directory = tmp_path_factory.mktemp("unread")
    (directory / "long").mkdir()
    (directory / "long" / "long.schema.json").write_text(json.dumps({"description": "x" * MEBIBYTE}))
    asked = frame_of(request(1, "get_schema", {"name": "long"}))
    with serving(directory, "http.send_seconds=0.5", env={"SYN_SCHEMAS_DIR": str(directory / "long")}) as running:
        still_serves(running)
        before, files = running.resident(), running.open_files()
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(SECONDS)
            slow.connect(running.address)
            headers = head("POST", "/mcp", {"host": "localhost", **JSON, "content-length": str(len(asked))})
            slow.sendall((headers + asked) * 50)
            still_serves(running)
            assert running.resident() - before < 16 * MEBIBYTE
            until(lambda: running.open_files() <= files)
        yield running


def test_a_client_that_does_not_read_is_cut_off(unread: Service) -> None:
    """Nothing else waits for it meanwhile, and what it has coming takes bounded memory."""
    still_serves(unread)


def test_a_client_that_does_not_read_is_no_failure_of_ours(unread: Service) -> None:
    still_serves(unread)
    assert unread.log.so_far().count("\n") == 0


# ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_connection_is_used_again(service: Service) -> None:
    with service.open() as wire:
        for number in range(100):
            wire.say("POST", "/mcp", frame_of(request(number, "list_examples")), JSON)
            assert wire.answer().json()["id"] == number


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("POST", "/nope", JSON), ("PUT", "/mcp", JSON),
        ("POST", "/mcp", {**JSON, "accept": "text/html"}), ("POST", "/mcp", {**JSON, "origin": "null"}),
    ],
)  # fmt: skip
def test_a_connection_goes_on_after_a_refusal(
    service: Service, method: str, path: str, headers: dict[str, str]
) -> None:
    with service.open() as wire:
        wire.say(method, path, ASKED, headers)
        assert 400 <= wire.answer().status < 500
        wire.say("POST", "/mcp", ASKED, JSON)
        assert good(wire.answer())


def test_requests_that_come_together_are_answered_in_their_order(service: Service) -> None:
    said = [request(number, ("list_schemas", "list_examples", "nope")[number % 3]) for number in range(60)]
    with service.open() as wire:
        headers = {"host": "localhost", **JSON}
        sent = [(head("POST", "/mcp", {**headers, "content-length": str(len(f))}), f) for f in map(frame_of, said)]
        wire.send(b"".join(first + body for first, body in sent))
        assert [wire.answer().json()["id"] for _ in said] == list(range(60))


def test_a_slow_request_is_answered_before_what_comes_behind_it(tmp_path: Path) -> None:
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running, running.open() as wire:
        wire.say("POST", "/mcp", frame_of(request("slow", "populate_backend", STORE)), JSON)
        wire.say("POST", "/mcp", frame_of(request("quick", "list_schemas")), JSON)
        backend.was_asked()
        # Others do not wait for it.
        still_serves(running)
        assert wire.silent()
        backend.allowed.set()
        assert [wire.answer().json()["id"], wire.answer().json()["id"]] == ["slow", "quick"]


@pytest.mark.parametrize("value", ["100-continue", "100-CONTINUE"])
def test_a_client_that_waits_to_be_told_to_go_on_is_told(service: Service, value: str) -> None:
    with service.open() as wire:
        headers = {"host": "localhost", **JSON, "expect": value, "content-length": str(len(ASKED))}
        wire.send(head("POST", "/mcp", headers))
        assert wire.head().status == 100
        wire.send(ASKED)
        assert good(wire.answer())


def test_a_client_that_is_refused_is_not_told_to_go_on(service: Service) -> None:
    with service.open() as wire:
        headers = {"host": "localhost", "content-type": "text/plain", "expect": "100-continue", "content-length": "5"}
        wire.send(head("POST", "/mcp", headers))
        assert wire.head().status == 415


@pytest.mark.parametrize(
    "garbage",
    [
        b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64, b"\x00" * 100,
        b"GET\r\n\r\n", b"GET /mcp HTTP/9.9\r\n\r\n", b"GET /mcp HTTP/1.1 x\r\n\r\n",
        b"GET mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", b"get /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', b"GET /mcp HTTP/1.1\nHost: localhost\n\n",
    ],
    ids=ascii,
)  # fmt: skip
def test_what_is_no_http_is_400_and_the_end_of_the_connection(service: Service, garbage: bytes) -> None:
    with service.open() as wire:
        wire.send(garbage)
        found = wire.answer()
        assert (found.status, found.header("connection")) == (400, "close")
        assert wire.rest() == b""
    still_serves(service)


def test_http_1_0_is_answered_and_the_connection_closed(service: Service) -> None:
    with service.open() as wire:
        wire.send(head("POST", "/mcp", {"host": "localhost", **JSON, "content-length": str(len(ASKED))}).replace(
            b"HTTP/1.1", b"HTTP/1.0"
        ) + ASKED)  # fmt: skip
        assert good(wire.answer())
        assert wire.rest() == b""


def test_a_client_that_says_no_more_is_answered(service: Service) -> None:
    """As `nc` does it: half of the connection is closed behind the request."""
    with service.open() as wire:
        wire.say("POST", "/mcp", ASKED, JSON)
        wire.socket.shutdown(socket.SHUT_WR)
        assert good(wire.answer())
        assert wire.rest() == b""


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HT", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"], ids=len)
@pytest.mark.parametrize("how", ["half", "whole", "reset"])
def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(service: Service, sent: bytes, how: str) -> None:
    with service.open() as wire:
        wire.send(
            sent + (b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{" if sent[-1:] == b"\n" else b"")
        )
        if how == "half":
            wire.socket.shutdown(socket.SHUT_WR)
            assert wire.rest() == b""
        elif how == "reset":
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    still_serves(service)


def test_many_clients_at_once_get_each_their_own(service: Service) -> None:
    """Of every era, on forty connections, a dozen requests in each."""
    new = call("", "get_schema", {"name": "tone"}, LATEST)
    kinds: list[tuple[dict[str, Any], Headers]] = [
        (request("", "list_schemas"), JSON),
        (request("", "tools/list"), of("2025-06-18")),
        (request("", "tools/list"), BOTH),
        (new, modern(new)),
    ]
    asked = [[(f"{wire}-{number}", *kinds[(wire + number) % 4]) for number in range(12)] for wire in range(40)]
    wires = [service.open() for _ in asked]
    for wire, every in zip(wires, asked, strict=True):
        for ident, said, headers in every:
            wire.say("POST", "/mcp", frame_of({**said, "id": ident}), headers)
    for wire, every in zip(wires, asked, strict=True):
        for ident, said, _ in every:
            answer = wire.answer().json()
            assert answer["id"] == ident
            assert {"list_schemas": "schemas", "tools/list": "tools"}.get(said["method"], "content") in answer["result"]
        wire.socket.close()


def test_nothing_that_is_sent_breaks_it(service: Service) -> None:
    """Good requests with bytes changed, cut out, doubled and put in. The log has nothing to tell, as with all else."""
    said: list[tuple[Any, Headers]] = [
        (request(1, "list_schemas"), JSON), (call(2, "get_schema", {"name": "tone"}), of("2025-11-25")),
        (listen(5), modern(listen(5))), ([request(1, "ping")], of("2025-03-26")),
    ]  # fmt: skip
    good = [head("GET", "/mcp", {"host": "localhost", **of("2025-11-25"), "last-event-id": "1-0"})]
    for message, headers in said:
        body = frame_of(message)
        good.append(head("POST", "/mcp", {"host": "localhost", **headers, "content-length": str(len(body))}) + body)
        chunked = head("POST", "/mcp", {"host": "localhost", **headers, "transfer-encoding": "chunked"})
        good.append(chunked + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
    chance = random.Random(7)  # noqa: S311 - the same every time
    for _ in range(500):
        with service.open() as wire:
            wire.send(mutated(chance.choice(good), chance))
            wire.socket.shutdown(socket.SHUT_WR)
            assert not wire.rest().startswith(b"HTTP/1.1 5")
    still_serves(service)


def mutated(request: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.choice([1, 1, 2, 4])):
        at, length = chance.randrange(len(request) + 1), chance.randrange(1, 20)
        begin, middle, end = request[:at], request[at : at + length], request[at + length :]
        changes = (begin + chance.randbytes(length) + end, begin + end, begin + middle * 2 + end, begin, request * 2)
        request = chance.choice(changes)
    return request


UPGRADE = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMAAABkAAQCAAAAAAIAAAAA"}


@pytest.mark.parametrize("upgrade", [UPGRADE, {"connection": "upgrade", "upgrade": "websocket"}], ids=["h2c", "ws"])
def test_an_offer_to_speak_something_else_is_ignored(service: Service, upgrade: dict[str, str]) -> None:
    """RFC 9110, 7.8. Java's client sends h2c with the first request to every server without TLS."""
    with service.open() as wire:
        for _ in range(2):
            wire.say("POST", "/mcp", ASKED, {**JSON, **upgrade})
            assert good(wire.answer())


# ── beside the protocol ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_server_that_runs_is_healthy_and_ready(service: Service) -> None:
    assert (service.ask("GET", "/healthz").status, service.ask("GET", "/healthz").body) == (200, b"ok\n")
    assert (service.ask("GET", "/readyz").status, service.ask("GET", "/readyz").body) == (200, b"ready\n")


SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)')


def metrics(service: Service) -> dict[str, dict[str, float]]:
    """Every sample, by family and labels; the text is well-formed."""
    found = service.ask("GET", "/metrics")
    assert found.status == 200
    assert found.header("content-type") == "text/plain; version=0.0.4; charset=utf-8"
    families: dict[str, str] = {}
    samples: dict[str, dict[str, float]] = {}
    for line in found.body.decode().removesuffix("\n").split("\n"):
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in families
            families[name] = kind
        elif not line.startswith("# HELP "):
            parts = SAMPLE.fullmatch(line)
            assert parts is not None, line
            name, labels, value = parts.groups(default="")
            family = re.sub("_(bucket|sum|count)$", "", name)
            assert name in families or families[family] == "histogram"
            assert labels not in samples.setdefault(name, {}), line
            samples[name][labels] = float(value)
    return samples


def test_what_passes_is_counted(service: Service) -> None:
    before = metrics(service)
    for ident in (901, 902, 903):
        assert good(service.post(call(ident, "list_examples", {}), of("2025-11-25")))
    assert service.post(frame_of({"jsonrpc": "2.0", "id": None, "method": "ping"})).status == 400
    after = metrics(service)
    label = 'transport="http",party="client",method="tools/call",status="ok"'
    assert after["assay_messages_total"][label] == before.get("assay_messages_total", {}).get(label, 0) + 3
    rule = 'rule="envelope/id"'
    assert after["assay_violations_total"][rule] == before.get("assay_violations_total", {}).get(rule, 0) + 1
    for labels, total in after["assay_request_duration_seconds_count"].items():
        buckets = [v for each, v in after["assay_request_duration_seconds_bucket"].items() if each.startswith(labels)]
        assert buckets == sorted(buckets)
        assert buckets[-1] == total
    [build] = after["assay_build_info"].values()
    assert build == 1


def test_methods_that_are_made_up_make_up_no_series(service: Service) -> None:
    before = metrics(service)
    for number in range(20):
        service.post(request(1, f'made/up{number}"\n'))
    assert len(metrics(service)["assay_messages_total"]) <= len(before["assay_messages_total"]) + 1


# ── too many at once ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_beyond_the_requests_it_takes_it_is_503(tmp_path: Path) -> None:
    with (
        late_backend() as (backend, variable),
        serving(tmp_path, "http.requests=2", env=variable) as running,
        running.open() as one,
        running.open() as two,
    ):
        for wire in (one, two):
            wire.say("POST", "/mcp", frame_of(request(1, "populate_backend", STORE)), JSON)
            backend.was_asked()
        found = running.post(ASKED)
        assert (found.status, found.error()["code"]) == (503, -31016)
        assert int(found.header("retry-after") or 0) > 0
        assert running.ask("GET", "/healthz").status == 200
        assert running.ask("GET", "/metrics").status == 200
        backend.allowed.set()
        assert good(one.answer())
        assert good(two.answer())
        still_serves(running)

"""Who may speak to the server over HTTP: names and origins, bytes that are no HTTP, requests that are two in one."""

import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.http_client import (
    JSON,
    Headers,
    Service,
    call,
    frame_of,
    head,
    initialize,
    listen,
    modern,
    of,
    request,
    run,
    serving,
)

ASKED = frame_of(request(1, "list_schemas"))
PAGE = "https://app.example.com"
ENDPOINTS = [
    *(("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("OPTIONS", "/mcp"), ("PUT", "/mcp"), ("GET", "/metrics")),
    *(("GET", "/.well-known/oauth-protected-resource"), ("GET", "/.well-known/oauth-protected-resource/mcp")),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that serves another name, and pages of another site."""
    names = ("http.hosts=assay.example", f"http.origins={PAGE}")
    with serving(tmp_path_factory.mktemp("safety"), *names) as running:
        yield running
        log = running.log.so_far()
    assert "Traceback" not in log, log


def posted(service: Service, lines: bytes) -> tuple[int, bytes]:
    """The status of a POST with these *lines* in its head beside the usual ones, and all that came."""
    with service.open() as wire:
        usual = b"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(ASKED)
        wire.send(usual + lines + b"Connection: close\r\n\r\n" + ASKED)
        found = wire.answer()
        return found.status, found.body + wire.rest()


# ── names and pages ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_this_machine_and_what_is_configured_may_speak(service: Service) -> None:
    """2025-11-25, basic/transports, Security Warning. Which names and origins these are is decided without a socket."""
    for host in (b"localhost", b"127.0.0.1:80", b"  [::1]:80  ", b"ASSAY.example:80"):
        assert posted(service, b"Host: %b\r\n" % host)[0] == 200
    for origin in (b"http://localhost:3000", PAGE.encode()):
        assert posted(service, b"Host: localhost\r\nOrigin: %b\r\n" % origin)[0] == 200
    for lines in (b"", b"Host:\r\n", b"Host: evil.example\r\n", b"Host: localhost\r\nOrigin: null\r\n"):
        status, body = posted(service, lines)
        assert (status, b"-31014" in body, b"list_schemas" in body) == (403, True, False)
    for method, path in ENDPOINTS:
        assert service.ask(method, path, host="evil.example").status == 403
        assert service.ask(method, path, headers={"origin": "https://evil.example"}).status == 403
        # RFC 9112, 3.2: of two, a proxy may believe the other.
        for hosts in ((b"localhost", b"evil.example"), (b"evil.example", b"localhost"), (b"localhost", b"localhost")):
            with service.open() as wire:
                wire.send(b"%b %b HTTP/1.1\r\nHost: %b\r\nHost: %b\r\n\r\n" % (method.encode(), path.encode(), *hosts))
                assert wire.answer().status in {400, 403}
    for lines in (b"Origin: http://localhost\r\nOrigin: null\r\n", b"Origin: http://local\r\nOrigin: host\r\n"):
        assert posted(service, b"Host: localhost\r\n" + lines)[0] in {400, 403}
    # A host that no header can hold is no HTTP.
    for host in (b"a\x00b", b"a\x7fb", b"a\x01"):
        assert posted(service, b"Host: localhost%b\r\n" % host)[0] in {400, 403}
    assert "--set http.hosts=evil.example" in service.log.so_far()


def test_a_page_is_granted_what_it_asks_and_can_read_every_answer(service: Service) -> None:
    names = "authorization,content-type,mcp-protocol-version,mcp-session-id"
    asked = {"access-control-request-method": "POST", "access-control-request-headers": names}
    found = service.ask("OPTIONS", "/mcp", headers={"origin": PAGE, **asked})
    assert (found.status, found.body) == (204, b"")
    assert found.header("access-control-allow-origin") == PAGE
    assert found.header("access-control-allow-headers") == names
    assert {"POST", "GET", "DELETE"} <= set((found.header("access-control-allow-methods") or "").split(", "))
    assert found.header("vary") == "origin"
    for origin in ("https://evil.example", "null"):
        found = service.ask("OPTIONS", "/mcp", headers={"origin": origin, **asked})
        assert (found.status, found.header("access-control-allow-origin")) == (403, None)
    for said in (request(1, "list_schemas"), initialize("2025-11-25"), {"jsonrpc": "2.0"}, b"{"):
        found = service.post(said, origin=PAGE)
        assert found.header("access-control-allow-origin") == PAGE
        assert "www-authenticate" in (found.header("access-control-expose-headers") or "").split(", ")
        assert "origin" in (found.header("vary") or "")
    refusals: list[tuple[str, Headers, int]] = [
        ("POST", {"content-type": "text/plain"}, 415), ("POST", {**JSON, "accept": "text/html"}, 406), ("GET", {}, 405),
    ]  # fmt: skip
    for method, headers, status in refusals:
        found = service.ask(method, "/mcp", ASKED if method == "POST" else b"", {**headers, "origin": PAGE})
        assert (found.status, found.header("access-control-allow-origin")) == (status, PAGE)
    # Nothing is shared with a client that is no page.
    assert not [name for name, _ in service.post(ASKED).pairs if name.startswith("access-control")]


# ── bytes that are no HTTP, and two requests in one ──────────────────────────────────────────────────────────────────

GARBAGE = [
    b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64,
    b"GET /mcp HTTP/9.9\r\n\r\n", b"GET mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"get /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', b"GET /mcp HTTP/1.1\nHost: localhost\n\n",
]  # fmt: skip

HIDDEN = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNK = b"%x\r\n%b\r\n0\r\n\r\n" % (len(ASKED), ASKED)
LENGTH = b"Content-Length: %d\r\n" % len(ASKED)
TE = b"Transfer-Encoding: chunked\r\n"

AMBIGUOUS = [
    (LENGTH + TE, b"0\r\n\r\n" + ASKED),
    (TE + LENGTH, b"0\r\n\r\n" + ASKED),
    (LENGTH + LENGTH, ASKED),
    (LENGTH + b"Content-Length: 5\r\n", ASKED),
    *(
        (b"Content-Length: %b\r\n" % length, ASKED)
        for length in (b"5, 5", b"+5", b"-1", b"0x10", b"99999999999999999999999")
    ),
    (b"Content-Length : 5\r\n", ASKED),
    (b"Transfer-Encoding : chunked\r\n", CHUNK),
    *(
        (b"Transfer-Encoding: %b\r\n" % coding, CHUNK)
        for coding in (b"xchunked", b"\x0bchunked", b"chunked, identity", b"gzip")
    ),
    (b"Transfer-Encoding: identity\r\n" + LENGTH, ASKED),
    (TE + TE, CHUNK),
    *(
        (TE, start + ASKED + end)
        for start, end in (
            *((b"0x%x\r\n" % len(ASKED), b"\r\n0\r\n\r\n"), (b"-1\r\n", b""), (b"fffffffffffffffff\r\n", b"")),
            *((b"%x\n" % len(ASKED), b"\r\n0\r\n\r\n"), (b"%x\r\n" % len(ASKED), b"XX0\r\n\r\n")),
        )
    ),
    # Folded, ended by half a line end, with a null, and without a name.
    *(
        (lines + LENGTH, ASKED)
        for lines in (b"X: a\r\n b\r\n", b"X: a\nContent-Length: 3\n", b"X: a\rb\r\n", b"X\x00: a\r\n", b": a\r\n")
    ),
]
"""Lines of a head, and a body."""

BEGIN = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_what_is_no_http_or_can_be_read_as_two_requests_is_refused_and_ends_the_connection(service: Service) -> None:
    """RFC 9112, 6.1 and 11.2: nothing that hides behind it is answered."""
    sent = [(each, {400}) for each in GARBAGE]
    sent += [(BEGIN + lines + b"\r\n" + body + HIDDEN, {400, 413}) for lines, body in AMBIGUOUS]
    for data, statuses in sent:
        with service.open() as wire:
            wire.send(data)
            found = wire.answer()
            assert (found.status in statuses, found.header("connection"), wire.rest()) == (True, "close", b""), data

    # Headers that come twice; RFC 9110, 5.3: lists may.
    said = call(1, "list_schemas", {}, "2026-07-28")
    twice: list[tuple[bytes, Any, Headers, int]] = [
        (b"Mcp-Session-Id: a\r\nMcp-Session-Id: a\r\n", ASKED, JSON, 400),
        (b"MCP-Protocol-Version: 2026-07-28\r\n", said, modern(said), 400),
        (b"Mcp-Name: other\r\n", said, modern(said), 400),
        (b"Content-Type: text/plain\r\n", ASKED, JSON, 415),
        (b"Accept: text/html\r\nAccept: application/json\r\n", ASKED, JSON, 200),
    ]
    for lines, message, headers, status in twice:
        body = frame_of(message)
        with service.open() as wire:
            first = head("POST", "/mcp", {"host": "localhost", **headers, "content-length": str(len(body))})
            wire.send(first[:-2] + lines + b"\r\n" + body)
            found = wire.answer()
            assert found.status == status, lines
            assert status != 400 or message is ASKED or found.error()["code"] == -32020
    leave_in_the_middle(service)
    send_mutated(service)
    assert service.post(ASKED).status == 200


def leave_in_the_middle(service: Service) -> None:
    """Connect, say a part of a request, and go, in every way."""
    for sent in (b"", b"POST /mcp HT", BEGIN, BEGIN + b"Content-Length: 100\r\n\r\n{"):
        for how in ("half", "whole", "reset"):
            with service.open() as wire:
                wire.send(sent)
                if how == "half":
                    wire.socket.shutdown(socket.SHUT_WR)
                    assert wire.rest() == b""
                elif how == "reset":
                    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


def send_mutated(service: Service) -> None:
    """Send good requests with bytes changed, cut out, doubled and put in."""
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
    for _ in range(300):
        with service.open() as wire:
            wire.send(mutated(chance.choice(good), chance))
            wire.socket.shutdown(socket.SHUT_WR)
            assert not wire.rest().startswith(b"HTTP/1.1 5")


def mutated(request: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.choice([1, 1, 2, 4])):
        at, length = chance.randrange(len(request) + 1), chance.randrange(1, 20)
        begin, middle, end = request[:at], request[at : at + length], request[at + length :]
        changes = (begin + chance.randbytes(length) + end, begin + end, begin + middle * 2 + end, begin, request * 2)
        request = chance.choice(changes)
    return request


# ── where it listens ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_address_that_others_can_reach_needs_a_gate_or_a_word_of_the_operator(
    service: Service, tmp_path: Path
) -> None:
    done = run(tmp_path, "--http", "[::]:0")
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert "[::]:0" in line
    assert "[auth]" in line
    assert "http.open = true" in line
    assert not (tmp_path / "ready").exists()
    with serving(tmp_path, "http.open=true", address="0.0.0.0:0") as running:
        running.address = "127.0.0.1", running.address[1]
        assert running.post(ASKED).status == 200
        assert running.ask("POST", "/mcp", ASKED, JSON, "evil.example").status == 403
    done = run(tmp_path, "--http", f"127.0.0.1:{service.address[1]}")
    assert (done.returncode, "in use" in done.stderr, "Traceback" in done.stderr) == (2, True, False)
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    with serving(tmp_path, address="[::1]:0") as running:
        assert running.address[0] == "::1"
        assert running.post(ASKED).status == 200

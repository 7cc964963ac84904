"""Many clients at once, most of them bad: the others are served, memory stays bounded, and nothing is left behind."""

import json
import resource
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest
from stress_server import MEBIBYTE, Connection, Server, call, head, http, initialize, post, request, serving

from kit.http_client import CATALOGUE, frame_of, listen, until

IMPATIENT = ("http.header_seconds=5", "http.body_seconds=5", "http.send_seconds=5")
BOUND = 300 * MEBIBYTE
"""What the server may ever take; at rest it takes 40."""

LISTEN = frame_of(listen())
CHUNKED = head("POST", "/mcp", "Content-Type: application/json", "Transfer-Encoding: chunked")
BODY = head("POST", "/mcp", "Content-Type: application/json", f"Content-Length: {MEBIBYTE}") + b" " * (MEBIBYTE - 1)
BATCH = b"[%b]" % b",".join(request(number, "tools/list") for number in range(1000))


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """A connection is a file here too."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 4096:
        pytest.skip("too few files may be open at once here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 4096), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def waiting(server: Server) -> Connection:
    """A connection with a request that waits for the backend, which says nothing."""
    before = server.metric("assay_requests_in_flight")
    connection = server.connect()
    connection.send(post(call("waits", "populate_backend", {"asset": {}, "validate_first": False})))
    until(lambda: server.metric("assay_requests_in_flight") > before)
    return connection


def is_served(server: Server) -> None:
    """Somebody who comes now is."""
    with server.connect() as connection:
        assert connection.ask(call("now")) == "now"


def is_at_rest(server: Server) -> None:
    """It serves, has nobody's request, and has said nothing but that it is ready."""
    is_served(server)
    until(lambda: not server.metric("assay_requests_in_flight"))
    # An origin that is not served is named once, and of all that garbage names only some are.
    log = [line for line in server.log() if not line.startswith("assay: a request got 403: ")]
    assert len(log) == 1, log


# ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_slow_clients_are_in_nobodys_way_and_are_cut_off(tmp_path: Path) -> None:
    """A thousand connections, half of them slow in every way there is."""
    schemas = tmp_path / "schemas"
    shutil.copytree(CATALOGUE / "jsonschema", schemas)
    (schemas / "long.schema.json").write_text(json.dumps({"description": "x" * MEBIBYTE}))
    variables = {"SYN_SCHEMAS_DIR": str(schemas)}
    # It has to see by itself that it may have more files open than it is given.
    few = ["sh", "-c", 'ulimit -S -n 256 && exec "$@"', "sh"]
    with serving(tmp_path, *http(*IMPATIENT), variables=variables, wrapper=few) as server, ExitStack() as stack:
        alone = server.sockets()

        def connections(number: int, sent: bytes = b"", window: int = 0) -> list[Connection]:
            found = []
            for _ in range(number):
                found.append(stack.enter_context(server.connect(window)))
                found[-1].offer(sent)
            return found

        whole = post(call("slow", "validate_asset", {"asset": {"x": "y" * 10_000}}))
        connections(100)
        connections(50, whole[:60])
        connections(100, whole[:6000])
        connections(100, BODY)
        dripping = [(connections(50, whole[:1]), iter(whole[1:])), (connections(50, whole[:400]), iter(whole[400:]))]
        # More than the system takes on behalf of a client that does not read.
        connections(50, 8 * post(call("slow", "get_schema", {"name": "long"})), window=4096)
        good = connections(500, post(call("first")))
        assert {each.result() for each in good} == {"first"}

        def drip() -> None:
            for slow, drops in dripping:
                drop = bytes([next(drops)])
                for each in slow:
                    each.offer(drop)

        def are_good(turn: str) -> None:
            for each in good:
                each.send(post(call(turn)))
            drip()
            assert {each.result() for each in good} == {turn}

        for turn in range(4):
            are_good(f"during {turn}")
        assert server.memory("VmHWM") < BOUND

        def are_gone() -> bool:
            drip()
            return server.sockets() == alone + len(good)

        until(are_gone)
        are_good("after")
        assert server.memory("VmHWM") < BOUND
        for each in good:
            each.socket.close()
        until(lambda: server.sockets() == alone)
        is_at_rest(server)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        variables = {"SYN_BACKEND_URL": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        with serving(tmp_path_factory.mktemp("service"), *http(), variables=variables) as running:
            yield running


@pytest.mark.parametrize(
    ("sent", "number"),
    [
        pytest.param(BODY, 400, id="bodies-without-end"),
        # 3.7 MB each.
        pytest.param(2 * post(BATCH, "Mcp-Protocol-Version: 2025-03-26"), 40, id="answers-that-nobody-reads"),
    ],
)
def test_what_slow_clients_make_it_hold_is_bounded(service: Server, sent: bytes, number: int) -> None:
    """Beyond that those that have been slow for longest are cut off."""
    alone = service.sockets()
    with ExitStack() as stack:
        for _ in range(number):
            # Those before it may have been cut off, not this one.
            stack.enter_context(service.connect(4096)).send(sent)
        is_served(service)
        assert service.memory("VmHWM") < BOUND
    until(lambda: service.sockets() <= alone)
    is_at_rest(service)


HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("begin", "behind_another"),
    [
        pytest.param(HEAD, False, id="head"),
        pytest.param(HEAD, True, id="head-behind-a-request"),
        pytest.param(CHUNKED + b"0\r\n", False, id="trailer"),
    ],
)
@pytest.mark.parametrize("between", [b"", b"\r\nX: "], ids=["one-line", "many-lines"])
def test_a_head_without_end_takes_no_memory(
    service: Server, begin: bytes, behind_another: bool, between: bytes
) -> None:
    is_served(service)
    before = service.memory()
    with waiting(service) if behind_another else service.connect() as connection:
        connection.send(begin + b"X: ")
        piece = between + b"x" * (MEBIBYTE - len(between))
        assert not all(connection.offer(piece) for _ in range(100))
    assert service.memory() - before < 16 * MEBIBYTE
    is_at_rest(service)


def test_what_is_behind_a_body_is_no_header(service: Server) -> None:
    """RFC 9110, 6.5.1."""
    frame = call(1)
    with service.connect() as connection:
        connection.send(CHUNKED + b"%x\r\n%b\r\n0\r\nMcp-Protocol-Version: nope\r\n\r\n" % (len(frame), frame))
        assert connection.result() == 1
        assert connection.ask(call(2)) == 2


def test_a_client_that_leaves_with_a_request_behind_another_leaves_nothing(service: Server) -> None:
    for _ in range(20):
        with waiting(service) as connection:
            connection.send(post(call(1)))
    is_at_rest(service)


def test_a_server_that_may_open_no_more_files_goes_on(tmp_path: Path) -> None:
    if not hasattr(resource, "prlimit"):
        pytest.skip("nobody can limit another process here")
    with serving(tmp_path, *http()) as server, ExitStack() as stack:
        alone = server.sockets()
        is_served(server)
        until(lambda: server.sockets() == alone)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (64, 64))
        clients = [stack.enter_context(server.connect()) for _ in range(300)]
        assert sum(each.offer(post(call(1))) and b"200 OK" in each.first() for each in clients) >= 32
        stack.close()
        # Those who wait to be let in are still to come, and to be seen to have gone.
        until(lambda: server.sockets() == alone)
        is_at_rest(server)


# ── garbage ──────────────────────────────────────────────────────────────────────────────────────────────────────────

GARBAGE = 2000

REQUESTS = (
    post(call(1)), post(initialize(1)), post(call(1)) * 3, post(BATCH[:3000], "Mcp-Protocol-Version: 2025-03-26"),
    post(LISTEN, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: subscriptions/listen"),
    post(call(1), "Expect: 100-continue"), post(call(1), "Connection: Upgrade", "Upgrade: h2c"),
    post(request(1, "ping"), "Mcp-Session-Id: x", "Authorization: Bearer x", "Origin: http://localhost"),
    CHUNKED + b"8\r\n" + request(1, "ping")[:8] + b"\r\n0\r\nX: y\r\n\r\n",
    head("GET", "/mcp", "Mcp-Session-Id: x", "Last-Event-ID: 1-1"), head("DELETE", "/mcp", "Mcp-Session-Id: x"),
    head("OPTIONS", "/mcp", "Access-Control-Request-Headers: x", "Origin: http://localhost"),
    head("GET", "/metrics") + head("GET", "/healthz"), head("HEAD", "/readyz"),
)  # fmt: skip


def garbage(random: Random) -> bytes:
    """Bytes of no kind, or a request that is broken in a few places."""
    if not random.randrange(4):
        return random.randbytes(random.randrange(1, 2000))
    data = bytearray(random.choice(REQUESTS))
    for _ in range(random.randrange(1, 6)):
        at = random.randrange(len(data) + 1)
        to = min(len(data), at + random.choice((0, 1, 1, 8, 64)))
        data[at:to] = random.choice(
            (b"", random.randbytes(1), random.randbytes(4), b"\r\n", b"\0", b":", data[at:to] * 3)
        )
    return bytes(data)


def test_garbage_is_survived_without_a_word(service: Server) -> None:
    """The same garbage each time: what it has found once it finds again."""
    random = Random(20260728)  # noqa: S311 - no secret
    alone = service.sockets()
    for _ in range(GARBAGE // 50):
        with ExitStack() as stack:
            connections = [stack.enter_context(service.connect()) for _ in range(50)]
            for number, connection in enumerate(connections):
                data = garbage(random)
                at = random.randrange(len(data) + 1)
                # It may be sent away before it has said all.
                if connection.offer(data[:at]) and connection.offer(data[at:]) and number % 2:
                    connection.finish()
            for connection in connections[1::2]:
                connection.rest()
    until(lambda: service.sockets() <= alone)
    is_at_rest(service)

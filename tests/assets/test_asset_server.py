"""The asset server's two doors, and the process that opens them."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay.assets.methods import Methods
from assay.assets.server import AssetServer
from assay.assets.sources import Catalogue
from assay.limits import Limits
from assay.spec.revisions import REVISIONS, handshake

ROOT = Path(__file__).parents[2]
BUNDLED = {
    "SYN_SCHEMAS_DIR": str(ROOT / "examples" / "catalogue" / "jsonschema"),
    "SYN_EXAMPLES_DIR": str(ROOT / "examples" / "catalogue" / "examples"),
}
SECONDS = 30
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
TOO_LARGE = {"ok": False, "reason": "validation_failed", "errors": [{"path": "", "msg": "payload_too_large"}]}


@pytest.fixture(scope="module")
def methods() -> Methods:
    return Methods(Catalogue.read(BUNDLED, ROOT))


@pytest.fixture
def server(methods: Methods) -> AssetServer:
    return AssetServer(methods)


def said(server: AssetServer, message: Any) -> list[Any]:
    frame = message if isinstance(message, bytes) else orjson.dumps({"jsonrpc": "2.0", **message})
    return [orjson.loads(each) for each in server.respond(frame)]


def opened(server: AssetServer, revision: str) -> AssetServer:
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    [answer] = said(server, {"id": 0, "method": "initialize", "params": params})
    assert answer["result"]["protocolVersion"] == revision
    assert said(server, {"method": "notifications/initialized"}) == []
    return server


# ── the bare door (specs/001) ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ident", [b"1", b'"a"', b"1.5", b"1e2", b"-0"])
def test_a_bare_method_is_answered_with_its_bare_result_and_its_id(server: AssetServer, ident: bytes) -> None:
    [answer] = server.respond(b'{"jsonrpc":"2.0","id":' + ident + b',"method":"list_schemas","params":{}}')
    assert answer.startswith(b'{"jsonrpc":"2.0","id":' + ident + b',"result":{"ok":true,"schemas":[')
    assert b"\n" not in answer


def test_the_same_request_gets_the_same_bytes(methods: Methods) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"method":"list_examples"}'
    assert list(AssetServer(methods).respond(frame)) == list(AssetServer(methods).respond(frame))


@pytest.mark.parametrize(
    ("frame", "answer"),
    [
        pytest.param(
            b'{"jsonrpc":"2.0","id":1,"method":"render","params":{}}',
            {"id": 1, "result": {"ok": False, "reason": "unsupported", "detail": "tool not implemented"}},
            id="no-tool",
        ),
        pytest.param(b"x" * 300, {"id": None, "result": TOO_LARGE}, id="too-large"),
        pytest.param(b"{", {"id": None, "error": -32700}, id="no-json"),
        pytest.param(b'[{"jsonrpc":"2.0","id":1,"method":"list_schemas"}]', {"id": None, "error": -32600}, id="batch"),
        pytest.param(b'{"id":1,"method":"list_schemas"}', {"id": 1, "error": -32600}, id="no-version"),
        pytest.param(b'{"jsonrpc":"2.0","id":true,"method":"list_schemas"}', {"id": None, "error": -32600}, id="true"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"get_schema"}', {"id": 1, "error": -32602}, id="no-name"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', {"id": 1, "error": -32600}, id="mcp-too-early"),
    ],
)
def test_bad_input_gets_one_clear_answer_and_the_next_line_is_served(
    methods: Methods, frame: bytes, answer: dict[str, Any]
) -> None:
    server = AssetServer(methods, limits=Limits(frame_bytes=200))
    [found] = said(server, frame)
    assert found["id"] == answer["id"]
    assert found.get("result") == answer.get("result")
    assert found.get("error", {}).get("code") == answer.get("error")
    assert said(server, {"id": 2, "method": "list_schemas"})[0]["result"]["ok"]


@pytest.mark.parametrize("frame", [b"", b"  \r", b'{"jsonrpc":"2.0","method":"list_schemas"}'])
def test_blank_lines_and_notifications_are_not_answered(server: AssetServer, frame: bytes) -> None:
    assert list(server.respond(frame)) == []


# ── MCP ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", [each for each in REVISIONS if handshake(each)])
def test_a_client_of_the_handshake_era_is_served(server: AssetServer, revision: str) -> None:
    opened(server, revision)
    [tools] = said(server, {"id": 1, "method": "tools/list"})
    assert len(tools["result"]["tools"]) == 7
    [called] = said(server, {"id": 2, "method": "tools/call", "params": {"name": "list_schemas", "arguments": {}}})
    assert called["result"]["isError"] is False
    [unknown] = said(server, {"id": 3, "method": "list_schemas"})
    assert unknown["error"]["code"] == -32601


def test_a_client_of_the_stateless_era_is_served(server: AssetServer) -> None:
    [found] = said(server, {"id": 1, "method": "server/discover", "params": {"_meta": META}})
    assert "2026-07-28" in found["result"]["supportedVersions"]
    params = {"_meta": META, "name": "list_schemas", "arguments": {}}
    [called] = said(server, {"id": 2, "method": "tools/call", "params": params})
    assert called["result"]["resultType"] == "complete"
    listen = {"_meta": META, "notifications": {"toolsListChanged": True}}
    [acknowledged] = said(server, {"id": 3, "method": "subscriptions/listen", "params": listen})
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert said(server, {"method": "notifications/cancelled", "params": {"requestId": 3}}) == []


@pytest.mark.parametrize(("revision", "code"), [("2025-06-18", -32602), ("2025-11-25", None)])
def test_arguments_are_held_to_the_contract_before_the_tool_sees_them(
    server: AssetServer, revision: str, code: int | None
) -> None:
    opened(server, revision)
    [answer] = said(server, {"id": 1, "method": "tools/call", "params": {"name": "get_schema", "arguments": {}}})
    assert answer.get("error", {}).get("code") == code
    assert code is not None or answer["result"]["isError"] is True


def test_an_unknown_tool_is_invalid_params(server: AssetServer) -> None:
    opened(server, "2025-11-25")
    [answer] = said(server, {"id": 1, "method": "tools/call", "params": {"name": "nope", "arguments": {}}})
    assert answer["error"]["code"] == -32602


# ── the process ──────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def process(tmp_path: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, **BUNDLED, "MCP_READY_FILE": str(tmp_path / "ready"), **environment}
    with subprocess.Popen(
        [sys.executable, "-m", "assay", "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
    ) as running:
        try:
            assert running.stderr is not None
            assert line(running.stderr) == b"mcp:ready mode=stdio\n"
            yield running
        finally:
            running.kill()


def line(stream: Any) -> bytes:
    """The next line of *stream*, within bounded time."""
    assert select.select([stream], [], [], SECONDS)[0], "nothing came"
    return bytes(stream.readline())


def ask(running: subprocess.Popen[bytes], method: str, params: Any = None) -> None:
    assert running.stdin is not None
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    running.stdin.write(orjson.dumps(message) + b"\n")
    running.stdin.flush()


def test_the_ready_file_is_there_while_the_server_is(tmp_path: Path) -> None:
    with process(tmp_path) as running:
        pid, _, stamp = (tmp_path / "ready").read_text().partition(" ")
        assert int(pid) == running.pid
        assert stamp.endswith("\n")
        assert "T" in stamp
        ask(running, "list_schemas")
        assert b'"ok":true' in line(running.stdout)
        assert running.stdin is not None
        running.stdin.close()
        assert running.wait(SECONDS) == 0
        assert not (tmp_path / "ready").exists()


@pytest.mark.parametrize("wanted", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_cleanly(tmp_path: Path, wanted: signal.Signals) -> None:
    with process(tmp_path) as running:
        ask(running, "list_schemas")
        line(running.stdout)
        running.send_signal(wanted)
        assert running.wait(SECONDS) == 0
        assert not (tmp_path / "ready").exists()


def test_a_signal_lets_the_request_in_hand_finish(tmp_path: Path) -> None:
    """A backend that does not answer until the signal has been sent."""
    asked, signalled = threading.Event(), threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.set()
            signalled.wait(SECONDS)
            self.send_response(201)
            self.end_headers()
            self.wfile.write(b'{"id":"stored"}')

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Slow) as backend:
        thread = threading.Thread(target=backend.handle_request)
        thread.start()
        with process(tmp_path, SYN_BACKEND_URL=f"http://127.0.0.1:{backend.server_port}") as running:
            ask(running, "populate_backend", {"asset": {}, "validate_first": False})
            assert asked.wait(SECONDS)
            running.send_signal(signal.SIGTERM)
            signalled.set()
            assert b'"asset_id":"stored"' in line(running.stdout)
            assert running.wait(SECONDS) == 0
        thread.join(SECONDS)
    assert not (tmp_path / "ready").exists()


def test_a_mebibyte_is_served_and_one_byte_more_is_not(tmp_path: Path) -> None:
    begin, end = b'{"jsonrpc":"2.0","id":1,"method":"diff_assets","params":{"base":"', b'","new":1}}'
    fill = (1 << 20) - len(begin) - len(end)
    with process(tmp_path) as running:
        assert running.stdin is not None
        for extra, expected in ((0, b'"ok":true'), (1, b"payload_too_large")):
            running.stdin.write(begin + b"x" * (fill + extra) + end + b"\n")
            running.stdin.flush()
            assert expected in line(running.stdout)


def test_a_hundred_mebibytes_without_a_newline_keep_memory_flat(tmp_path: Path) -> None:
    with process(tmp_path) as running:
        assert running.stdin is not None
        ask(running, "list_schemas")
        line(running.stdout)
        before = resident(running.pid)
        for _ in range(100):
            running.stdin.write(b"x" * (1 << 20))
        running.stdin.write(b"\n")
        ask(running, "list_schemas")
        assert b"payload_too_large" in line(running.stdout)
        assert b'"ok":true' in line(running.stdout)
        assert resident(running.pid) - before < 8 << 20


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    status = Path(f"/proc/{pid}/statm")
    if not status.exists():
        pytest.skip("no /proc here to read the memory of a process from")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

"""`assay lock` on real servers: processes, ours and on the official SDK, and what is at an address."""

import json
import os
import re
import select
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from assay.edges.probe.capabilities import ALL_CAPABILITIES
from assay.lock.lock_file import read
from kit.command import ASSAY
from kit.locking import FIND, SECONDS, Strange, answering, assay_here, offer
from kit.places import ROOT

SDK = ROOT / ".venvs" / "sdk" / "bin" / "python"


def fixture_server(*arguments: str) -> list[str]:
    """Return the command of the server on the official SDK; skip the test where that is not installed."""
    if not SDK.exists():
        pytest.skip("the official SDK is not installed")
    return [str(SDK), str(ROOT / "tests" / "real" / "conformance" / "fixture_server.py"), *arguments]


# ── processes ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_signal_ends_the_server_and_what_it_has_started(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*ASSAY, "lock", "--", *offer(tmp_path, on={"tools/list": "spawn"}, tools=[])],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        assert b"syntax/json" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 130
    assert has_ended(int((tmp_path / "spawned").read_text()))
    assert not (tmp_path / "assay.lock").exists()


def has_ended(pid: int) -> bool:
    """Whether a process has ended, which a signal takes a moment for."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ended = bool(select.select([descriptor], [], [], SECONDS / 2)[0])
    os.close(descriptor)
    return ended


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def served(directory: Path, *command: str) -> Iterator[str]:
    """The address of a server over HTTP, which says on stderr where it is."""
    env = {**os.environ, "MCP_READY_FILE": str(directory / "ready")}
    with subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, env=env) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                found = re.search(rb"url=(\S+)", line)
                if found:
                    yield found[1].decode()
                    break
        finally:
            process.kill()


def test_a_server_over_http_is_locked(tmp_path: Path) -> None:
    with served(tmp_path, *fixture_server("--http", "127.0.0.1:0")) as url:
        done = assay_here(tmp_path, "lock", "--name", "far", "--target", url)
        counts = "35 tools, 1 resource template, 5 prompts"
        assert done.stdout == f"assay.lock: far: {counts}, in MCP 2026-07-28\n", done.stderr
        [entry] = read(tmp_path / "assay.lock").values()
        assert (entry.url, entry.command) == (url, ())
        assert assay_here(tmp_path, "lock", "--check", "--yes").returncode == 0
    done = assay_here(tmp_path, "lock", "--check", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert "refused" in done.stderr


SELF = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}


class Sessions(Strange):
    """
    A server over HTTP that knows nothing but sessions, wants a token, and answers with streams that it leaves open.

    It lists its tools only after the client has answered a request within the same stream.
    """

    ended: list[str | None]
    answered: list[Any]
    declared: list[Any]
    settled: threading.Event

    def do_POST(self) -> None:  # noqa: N802 - http.server calls it by this name
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = message.get("method")
        opened = self.headers["mcp-session-id"] == "s1" and self.headers["mcp-protocol-version"] == "2025-06-18"
        if self.headers.get_all("authorization") != ["Bearer hunter2"]:
            self.answer(401, "text/plain", b"")
        elif method != "initialize" and not opened:
            self.answer(400, "text/plain", b"no session")
        elif method is None:
            self.answered.append(message)
            self.settled.set()
            self.answer(202, "text/plain", b"")
        elif "id" not in message:
            self.answer(202, "text/plain", b"")
        elif method == "initialize":
            self.declared.append(message["params"]["capabilities"])
            self.answer(200, "text/event-stream", event(message["id"], SELF), more=100)
        else:
            asks = b'data: {"jsonrpc":"2.0","id":"s","method":"ping"}\r\n\r\n'
            listed = event(message["id"], {"tools": [FIND]})
            self.answer(200, "text/event-stream", asks, more=len(listed) + 100)
            assert self.settled.wait(SECONDS)
            self.wfile.write(listed)
            self.wfile.flush()

    def do_DELETE(self) -> None:  # noqa: N802 - http.server calls it by this name
        self.ended.append(self.headers["mcp-session-id"])
        self.answer(204, "text/plain", b"")

    def answer(self, status: int, kind: str, body: bytes, more: int = 0) -> None:
        """An answer, of which *more* bytes are announced than come now."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body) + more))
        self.send_header("mcp-session-id", "s1")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def event(ident: Any, result: Any) -> bytes:
    """An answer as an event of many lines."""
    frame = json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}, indent=1)
    return (
        ": hello\r\nevent: message\r\n" + "".join(f"data: {line}\r\n" for line in frame.splitlines()) + "\r\n"
    ).encode()


def test_a_server_with_sessions_streams_and_a_token_is_locked_without_the_token(tmp_path: Path) -> None:
    seen: Any = type("Seen", (Sessions,), {"ended": [], "answered": [], "declared": [], "settled": threading.Event()})
    with answering(seen) as url:
        refused = assay_here(tmp_path, "lock", "--target", url)
        assert refused.returncode == 2
        assert "HTTP 401: the server rejects this client; give a token with --header" in refused.stderr
        header = ("--header", "Authorization: Bearer env:FAR_TOKEN")
        done = assay_here(tmp_path, "lock", "--target", url, *header, **TOKEN)
        assert (done.stdout, done.stderr) == ("assay.lock: old: 1 tool, in MCP 2025-06-18\n", "")
        entry = {"url": url, "headers": {"Authorization": "Bearer ${FAR_TOKEN}"}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"away": entry}}))
        assert assay_here(tmp_path, "lock", "--config", "mcp.json", **TOKEN).returncode == 0
    assert read(tmp_path / "assay.lock").keys() == {"old", "away"}
    assert "hunter2" not in (tmp_path / "assay.lock").read_text()
    assert seen.answered[0] == {"jsonrpc": "2.0", "id": "s", "result": {}}
    assert [bool(each) for each in seen.declared[:2]] == [False, True]
    assert seen.declared[1].keys() <= ALL_CAPABILITIES.keys()
    assert set(seen.ended) == {"s1"}


TOKEN = {"FAR_TOKEN": "hunter2"}

NAMELESS = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: no"}}'
"""What SDKs answer to a request that they take for one without a session."""

NO_SERVERS: dict[tuple[int, str, bytes], str] = {
    (404, "text/html", b"nothing"): "HTTP 404",
    (400, "application/json", NAMELESS): "initialize was refused: -32000 Bad Request: no",
    (302, "text/html", b""): "HTTP 302",
    (200, "text/html", b"hello"): "no answer came",
    (200, "application/json", b'{"detail":"x"}'): "no answer came",
    (200, "text/event-stream", b"data: x\n\n"): "no answer came",
    (200, "application/json", b"x" * 2000): "more than 1,000 bytes",
}
"""Why what gives an answer of this status, kind and body is no server."""


def test_what_is_no_server_over_http_is_not_locked(tmp_path: Path) -> None:
    class Handler(Strange):
        """Answers as it is set."""

    with answering(Handler) as url:
        for (status, kind, body), reason in NO_SERVERS.items():
            Handler.status, Handler.kind, Handler.body = status, kind, body
            done = assay_here(tmp_path, "lock", "--target", url, "--set", "guard.frame_bytes=1000")
            assert (done.returncode, done.stdout) == (2, "")
            assert reason in done.stderr
    for url in ("ftp://a.example", "127.0.0.1:80", "http://127.0.0.1:1/mcp", "http://[", ""):
        done = assay_here(tmp_path, "lock", "--target", url)
        assert (done.returncode, done.stdout) == (2, "")
    done = assay_here(tmp_path, "lock", "--target", "http://me:hunter2@127.0.0.1:1/mcp?key=hunter2")
    assert "http://[redacted]@127.0.0.1:1/mcp?key=[redacted]: " in done.stderr
    assert "hunter2" not in done.stderr

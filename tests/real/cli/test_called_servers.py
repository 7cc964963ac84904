"""`assay call` on real servers: processes, a guard, and what is at an address."""

import json
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from assay.edges.auth.challenges import denied, expired_key
from kit.locking import answering, assay_here
from kit.places import ROOT

DEMO = [sys.executable, str(ROOT / "src" / "assay" / "cli" / "demonstration" / "demo_server.py")]


def test_a_process_is_listed_called_and_named_with_its_last_words_where_it_ends(tmp_path: Path) -> None:
    listed = assay_here(tmp_path, "call", "--", *DEMO)
    assert listed.returncode == 1
    assert listed.stdout.startswith("demo 1.0.0, MCP 2025-11-25, 2 tools\n")
    sunny = assay_here(tmp_path, "call", "weather", '{"city": "Oslo"}', "--", *DEMO)
    assert (sunny.returncode, sunny.stdout) == (1, "Sunny in Oslo, 21 °C.\n"), "a line that is not JSON counts"
    ended = assay_here(tmp_path, "call", "report", "--", *DEMO)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "assay call: demo_server: the server ended: it exited with status 1\n" in ended.stderr
    assert ended.stderr.endswith("    RuntimeError: database is gone\n")
    missing = assay_here(tmp_path, "call", "--", "/nowhere/server")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == "assay call: nowhere: cannot start /nowhere/server: No such file or directory\n"


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────

OPENED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
RESULTS: dict[str, Any] = {
    "initialize": OPENED,
    "tools/list": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}


class TwoAnswers(BaseHTTPRequestHandler):
    """A server that answers every call twice, on one stream."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, ident = asked["method"], asked.get("id")
        answer = {"jsonrpc": "2.0", "id": ident, "result": RESULTS.get(method)}
        if method not in RESULTS:
            answer = {"jsonrpc": "2.0", "id": ident, "error": {"code": -32601, "message": "Method not found"}}
        self.send_response(202 if ident is None else 200)
        if ident is not None:
            self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        if ident is not None:
            self.wfile.write(f"data: {json.dumps(answer)}\n\n".encode() * (2 if method == "tools/call" else 1))

    def log_message(self, *_: Any) -> None:
        pass


class Expired(TwoAnswers):
    """A guard whose client has a key that is no longer valid."""

    def do_POST(self) -> None:
        refused = denied(expired_key("2026-01-31"))
        self.send_response(refused.status)
        self.send_header("WWW-Authenticate", refused.challenge.decode())
        self.end_headers()


def test_a_server_at_an_address_is_listed_and_called_or_named_with_the_reason(tmp_path: Path) -> None:
    with answering(TwoAnswers) as url:
        assert assay_here(tmp_path, "call", url).returncode == 0
        twice = assay_here(tmp_path, "call", url, "work")
    assert (twice.returncode, twice.stdout) == (1, "done\n")
    assert "protocol/answered-twice" in twice.stderr
    with answering(Expired) as url:
        refused = assay_here(tmp_path, "call", "--header", "Authorization: Bearer x", url)
    assert (refused.returncode, refused.stderr) == (2, f"assay call: {url}: HTTP 401: the key expired on 2026-01-31\n")
    nothing = assay_here(tmp_path, "call", "http://127.0.0.1:1/mcp")
    assert nothing.returncode == 2
    assert "cannot connect to the server: Connection refused" in nothing.stderr

"""Guards of every kind as processes, their traffic, and their journals. Every wait is bounded."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from kit.guard_process import INITIALIZED, SECONDS, Guarded, Lines, frame_of, initialize, request
from kit.places import ROOT

ASSAY = [sys.executable, "-m", "assay"]
CATALOGUE = ROOT / "examples" / "catalogue"
ASSETS = [*ASSAY, "serve"]


def variables(state: Path, **more: str) -> dict[str, str]:
    """The environment of a process that keeps its state at *state*, with a journal."""
    given = {name: value for name, value in os.environ.items() if name != "ASSAY_JOURNAL"}
    return {
        **given,
        "XDG_STATE_HOME": str(state),
        "HOME": str(state),
        "MCP_READY_FILE": str(state / "ready"),
        "SYN_SCHEMAS_DIR": str(CATALOGUE / "jsonschema"),
        "SYN_EXAMPLES_DIR": str(CATALOGUE / "examples"),
        **more,
    }


def folder(state: Path) -> Path:
    """The directory with a folder for each server."""
    if sys.platform == "darwin":
        return state / "Library" / "Application Support" / "assay" / "servers"
    return state / "assay" / "servers"


def lines(state: Path, *, server: str = "*") -> list[dict[str, Any]]:
    """All lines of the only journal of *server*, which are written before a client is answered."""
    [path] = folder(state).glob(f"{server}/*.jsonl")
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def events(state: Path, *, server: str = "*") -> list[dict[str, Any]]:
    """The lines that are no records."""
    return [each for each in lines(state, server=server) if "event" in each]


@contextmanager
def started(*command: str, state: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with pipes, which is killed in the end."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=variables(state, **more), cwd=state
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def guard(*options: str, state: Path, **more: str) -> Iterator[Guarded]:
    """A guard on standard streams."""
    with started(*ASSAY, "guard", *options, state=state, **more) as process:
        yield Guarded(process, Lines(-1))


def address(process: subprocess.Popen[bytes]) -> str:
    """The URL that a process over HTTP announces on stderr."""
    assert process.stderr is not None
    log = Lines(process.stderr.fileno())
    while True:
        line = log.next().decode()
        if "http://" in line:
            return "http://" + line.rpartition("http://")[2].split()[0]


class HttpTalk:
    """A conversation of the handshake era over HTTP, in a session if the server begins one."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._path = parts.path
        self._connection = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=SECONDS)
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def open(self) -> None:
        """The handshake."""
        opening = initialize()
        status, headers, _ = self.post(opening)
        assert status == 200
        self.headers["MCP-Protocol-Version"] = opening["params"]["protocolVersion"]
        if "mcp-session-id" in headers:
            self.headers["Mcp-Session-Id"] = headers["mcp-session-id"]
        assert self.post(INITIALIZED)[0] == 202

    def post(self, message: Any, **more: str) -> tuple[int, dict[str, str], bytes]:
        """The status, the headers and the body of the response; *more* are headers too (`_` stands for `-`)."""
        given = {name.replace("_", "-"): value for name, value in more.items()}
        self._connection.request("POST", self._path, frame_of(message), self.headers | given)
        answer = self._connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def ask(self, message: Any) -> bytes:
        """The body of a good response."""
        status, _, body = self.post(message)
        assert status == 200, body
        return body

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


DYING = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        params = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "d", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": params}), flush=True)
    elif message["method"] == "tools/list":
        print("giving up, token=ghp_" + "a1B2" * 9, file=sys.stderr, flush=True)
        sys.exit(3)
"""
"""A server that ends when its tools are listed, with a secret in its last line."""


LISTING = request("list", "tools/list")


def list_schemas(number: int) -> dict[str, Any]:
    """A call of the asset server."""
    return request(number, "tools/call", {"name": "list_schemas", "arguments": {}})

"""A real console, a real guard and a real server, for tests: each is a process, and every wait has a limit."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import IO, Any

import httpx

from kit.guard_process import hurried

SECONDS = 60.0

PACES = {"console.sources:PAUSE": 0.02, "console.events:PACE": 0.02}
"""How long a console waits between two looks at journals, and between two events."""

SERVER = """# warm start
import json, sys
TOOLS = [
    {"name": "look", "description": "look <script>alert(1)</script>", "annotations": {"readOnlyHint": True},
     "inputSchema": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}},
    {"name": "change", "inputSchema": {"type": "object"}},
]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    head = {"jsonrpc": "2.0", "id": message["id"]}
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        head["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                          "serverInfo": {"name": "lib", "version": "1"}}
    elif method == "tools/list":
        head["result"] = {"tools": TOOLS}
    elif method == "tools/call":
        if params["name"] == "wait":
            continue
        text = json.dumps(params.get("arguments"), ensure_ascii=False)
        head["result"] = {"content": [{"type": "text", "text": text}]}
    else:
        head["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(head, ensure_ascii=False), flush=True)
"""

HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {}},
    "clientInfo": {"name": "tester", "version": "7"},
}


def environment(state: Path) -> dict[str, str]:
    """Return our environment with *state* as the directory of guards and journals."""
    return {**os.environ, "XDG_STATE_HOME": str(state), "ASSAY_JOURNAL": ""}


class RunningConsole:
    """A console, and a client with its token."""

    def __init__(self, process: "subprocess.Popen[str]", address: str) -> None:
        self.process = process
        self.address = address
        self.base, _, self.token = address.partition("?token=")
        self.http = httpx.Client(
            base_url=self.base, headers={"Authorization": f"Bearer {self.token}"}, timeout=SECONDS, trust_env=False
        )

    def get(self, path: str) -> Any:
        """Return the JSON of a good answer."""
        found = self.http.get(path)
        assert found.status_code == 200, found.text
        return found.json()

    def post(self, path: str, value: Any) -> httpx.Response:
        """Send a POST."""
        return self.http.post(path, json=value)

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows by column."""
        found = self.get("api/rows")
        return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]

    def events(self, after: int | None = 0, last: str = "") -> Iterator[tuple[str, Any, str]]:
        """Yield the events from now on: kind and data; and ``place`` with each id to resume at."""
        path = "api/events" if after is None else f"api/events?after={after}"
        with self.http.stream("GET", path, headers={"Last-Event-ID": last} if last else {}) as stream:
            assert stream.headers["content-type"] == "text/event-stream"
            yield from parsed(stream.iter_lines())

    def wait(self, ready: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Return the rows once *ready* says so."""
        for _ in self._reasons():
            rows = self.rows()
            if ready(rows):
                return rows
        raise AssertionError("the console has ended")

    def _reasons(self) -> Iterator[None]:
        """Yield whenever something may have changed: at the beginning, and after each line of the stream."""
        due = monotonic() + SECONDS
        while monotonic() < due:
            with self.http.stream("GET", "api/events") as stream:
                # The stream ends early for a reader that is far behind.
                for _ in stream.iter_lines():
                    yield

    def wait_for(self, path: str, ready: Callable[[Any], bool]) -> Any:
        """Return the answer of *path* once *ready* says so."""
        for _ in self._reasons():
            found = self.get(path)
            if ready(found):
                return found
        raise AssertionError("the console has ended")


def parsed(lines: Iterator[str]) -> Iterator[tuple[str, Any, str]]:
    """Yield the events of a stream, and the ids to resume at."""
    event: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if name:
            event[name] = value.removeprefix(" ")
        elif not colon and "event" in event:
            yield event["event"], json.loads(event["data"]), ""
            event = {}
        elif not colon:
            if "id" in event:
                yield "place", None, event["id"]
            event = {}


@contextmanager
def console(state: Path, *arguments: str, stdin: IO[bytes] | None = None) -> Iterator[RunningConsole]:
    """Run `assay console` with *arguments*, in a directory without a journal; it must end cleanly."""
    command = [*hurried(PACES, "console"), "--no-browser", *arguments]
    with subprocess.Popen(
        command,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(state),
        cwd=state,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), process.communicate(timeout=SECONDS)
        running = RunningConsole(process, address)
        try:
            yield running
        finally:
            running.http.close()
            process.terminate()
            _, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors, errors


class StdioGuard:
    """A guard for a client on its standard streams, and that client."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._number = 0

    def ask(self, method: str, params: Any = None) -> Any:
        """Send a request and return the response."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, **({"params": params} if params else {})})
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def send(self, message: Any) -> None:
        """Send a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def open(self) -> None:
        """Open the conversation and list the tools."""
        self.ask("initialize", HANDSHAKE)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask("tools/list")

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})


def server_command(folder: Path) -> list[str]:
    """Return the command of a server whose program is in *folder*."""
    path = folder / "lib_server.py"
    path.write_text(SERVER, encoding="utf-8")
    return [sys.executable, str(path)]


@contextmanager
def stdio_guard(state: Path, folder: Path, *options: str) -> Iterator[StdioGuard]:
    """Run a guard with the name `lib` in front of a server."""
    command = [sys.executable, "-m", "assay", "guard", "--name", "lib", *options, "--", *server_command(folder)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(state),
        cwd=folder,
        text=True,
    ) as process:
        yield StdioGuard(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(SECONDS)


@contextmanager
def http_guard(state: Path, folder: Path, *options: str) -> Iterator[str]:
    """Run a guard over HTTP; yield its URL."""
    command = [sys.executable, "-m", "assay", "guard", "--name", "lib", *options]
    command += ["--listen", "127.0.0.1:0", "--", *server_command(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(state), cwd=folder, text=True
    ) as process:
        assert process.stderr is not None
        url = next(filter(None, (re.search(r"http://[^\s,]+", line) for line in process.stderr)), None)
        assert url is not None, process.wait(SECONDS)
        yield url[0]
        process.terminate()
        _, errors = process.communicate(timeout=SECONDS)
        assert (process.returncode, "Traceback" in errors) == (0, False), errors

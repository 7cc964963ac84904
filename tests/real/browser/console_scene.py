"""A library behind guards, for the page of the console: good and bad calls, and hostile text."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page

from kit.consoles import HANDSHAKE, SECONDS, StdioGuard, environment

PAYLOADS = ("--set", "journal.payloads=true", "--lock", "off")

TOOLS: list[dict[str, Any]] = [
    {
        "name": "search", "title": "Search books", "description": "Search the library.",
        "annotations": {"readOnlyHint": True},
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words of the title."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50},
                "exact": {"type": "boolean"},
                "order": {"enum": ["year", "title"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "range": {
                    "type": "object",
                    "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}},
                    "required": ["from"],
                },
                "extra": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            },
            "required": ["query"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"books": {"type": "array", "items": {
                "type": "object", "properties": {"title": {"type": "string"}, "year": {"type": "integer"}}}}},
            "required": ["books"],
        },
    },
    {"name": "lend", "description": "Lend a book.", "inputSchema": {
        "type": "object", "properties": {"book": {"type": "integer"}, "days": {"type": "integer"}}}},
    {"name": "broken", "inputSchema": {"type": "object", "properties": {"words": "string"}}},
]  # fmt: skip

SERVER = """# warm start
import json, sys
TOOLS = json.loads({tools!r})
TEXT = json.loads({text!r})
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    head = {{"jsonrpc": "2.0", "id": message["id"]}}
    method, params = message["method"], message.get("params") or {{}}
    arguments = params.get("arguments") or {{}}
    if method == "initialize":
        print("library: ready " + TEXT, file=sys.stderr, flush=True)
        head["result"] = {{"protocolVersion": params["protocolVersion"], "capabilities": {{"tools": {{}}}},
                           "serverInfo": {{"name": "library" + TEXT, "version": "2" + TEXT}}}}
    elif method == "tools/list":
        head["result"] = {{"tools": TOOLS}}
    elif method == "tools/call" and "query" in arguments:
        year = "1987" if arguments["query"] == "wrong" else 1987
        found = {{"books": [{{"title": "The Sea" + TEXT, "year": year}}]}}
        head["result"] = {{"content": [{{"type": "text", "text": json.dumps(found)}}], "structuredContent": found}}
    elif method == "tools/call":
        head["result"] = {{"content": [{{"type": "text", "text": "done" + TEXT}}]}}
    else:
        head["error"] = {{"code": -32601, "message": "Method not found" + TEXT}}
    print(json.dumps(head), flush=True)
"""


def program(folder: Path, tools: list[dict[str, Any]] | None = None, text: str = "") -> list[str]:
    """Return the command of a server with *tools*, which has *text* in all that it writes."""
    path = folder / "library_server.py"
    path.write_text(SERVER.format(tools=json.dumps(tools or TOOLS), text=json.dumps(text)), encoding="utf-8")
    return [sys.executable, str(path)]


@contextmanager
def library(state: Path, name: str, command: list[str], *options: str) -> Iterator[StdioGuard]:
    """Run a guard in front of the library, for a client on its standard streams."""
    words = [sys.executable, "-m", "assay", "guard", "--name", name, *PAYLOADS, *options, "--", *command]
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=none, env=environment(state), text=True) as process:
        yield StdioGuard(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(SECONDS)


class HttpClient:
    """A client over HTTP, with one session."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(timeout=SECONDS, trust_env=False)
        self.url = url
        self._number = 0
        self._headers = {"Accept": "application/json, text/event-stream"}

    def ask(self, method: str, params: Any = None, *, answered: bool = True) -> httpx.Response:
        """Send a request, or a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}
        if answered:
            self._number += 1
            message["id"] = self._number
        return self.http.post(self.url, json=message, headers=self._headers)

    def open(self) -> None:
        """Open the session and list the tools."""
        welcome = self.ask("initialize", HANDSHAKE)
        self._headers["Mcp-Session-Id"] = welcome.headers["mcp-session-id"]
        self._headers["Mcp-Protocol-Version"] = str(HANDSHAKE["protocolVersion"])
        self.ask("notifications/initialized", answered=False)
        self.ask("tools/list")

    def call(self, tool: str, **arguments: Any) -> httpx.Response:
        """Call a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})


@contextmanager
def served_library(state: Path, name: str, command: list[str], *options: str) -> Iterator[HttpClient]:
    """Run a guard in front of the library, for clients over HTTP; yield one that has opened a session."""
    words = [sys.executable, "-m", "assay", "guard", "--name", name, *PAYLOADS, *options]
    words += ["--listen", "127.0.0.1:0", "--", *command]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(state), text=True
    ) as process:
        assert process.stderr is not None
        url = next(found[0] for line in process.stderr if (found := re.search(r"http://[^\s,;]+", line)))
        client = HttpClient(url)
        with client.http:
            client.open()
            yield client
        process.terminate()
        process.communicate(timeout=SECONDS)


def show(page: Page, fragment: str) -> None:
    """Go to the screen with this address, and wait until the page has gone there."""
    page.evaluate(
        """each => new Promise((done) => {
            const before = location.href;
            addEventListener("hashchange", done, { once: true });
            location.hash = each;
            if (location.href === before) done();
        })""",
        fragment,
    )
    name, _, options = fragment.removeprefix("#/").partition("?")
    page.locator(f"main[data-screen={name}]").wait_for()
    if (number := re.search(r"message=(\d+)", options)) is not None:
        page.locator(f".message-panel[data-seq='{number[1]}']").wait_for()


def message(seq: int) -> str:
    """Return the address of a message."""
    return f"#/stream?all=1&message={seq}"


def usual_calls(client: StdioGuard | HttpClient) -> None:
    """Make good calls, one with a wrong argument, and one whose result breaks its schema."""
    for word in ("sea", "river", "lake"):
        client.call("search", query=word, limit=5)
    client.call("search", query="sea", limit="five hundred")
    client.call("search", query="wrong")
    client.call("lend", book=7, days=14)

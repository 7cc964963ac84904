"""A console in this process, and clients that reach its application without a socket."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx

from assay.cli.console import file_pump, locks, report_exporters
from assay.cli.main import parser
from assay.console.access import ConsoleAccess
from assay.console.app import ConsoleApp
from assay.console.state import ConsoleState
from assay.judge.conversation import Conversation
from assay.model.verdict import Party
from assay.settings import Settings
from kit import talk
from kit.consoles import HANDSHAKE
from kit.records import open_journal
from kit.talk import frame_of, notification, request, result

PORT = 9
ORIGIN = f"http://127.0.0.1:{PORT}"


class Application(httpx.BaseTransport):
    """Hands each request to an application, and reads its answer to the end."""

    def __init__(self, app: Any) -> None:
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=True)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer."""
        return asyncio.run(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        found = await self._transport.handle_async_request(request)
        content = b"".join([part async for part in found.stream])  # type: ignore[union-attr]  # that of the transport
        return httpx.Response(found.status_code, headers=found.headers, content=content)


class ServedConsole:
    """A console and a client with its token."""

    def __init__(self, state: ConsoleState | None = None) -> None:
        self.state = state or ConsoleState(lock_of=locks("auto"))
        self.access = ConsoleAccess(PORT)
        self.app = ConsoleApp(self.state, self.access, report_exporters(), epoch="0badcafe")
        self.http = self.client(Authorization=f"Bearer {self.access.token}")

    def client(self, **headers: str) -> httpx.Client:
        """Return a client with cookies of its own."""
        return httpx.Client(transport=Application(self.app), base_url=ORIGIN, headers=headers)

    def get(self, path: str) -> Any:
        """Return the JSON of a good answer."""
        found = self.http.get(path)
        assert found.status_code == 200, found.text
        return found.json()

    def export(self, kind: str, words: str = "") -> httpx.Response:
        """Return the rows that the filter *words* chooses in a format."""
        return self.http.post("api/export", json={"format": kind, "filter": words})

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows by column."""
        found = self.get("api/rows")
        return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def console_of(*files: Path) -> ServedConsole:
    """Return a console that has read *files*, as `assay console FILE…`."""
    made = ServedConsole()
    args = parser("console").parse_args(["console", *map(str, files)])
    asyncio.run(file_pump(args, Settings(), made.state, lambda: None).run())
    return made


# ── what a guard writes ──────────────────────────────────────────────────────────────────────────────────────────────

TOOLS: list[dict[str, Any]] = [
    {
        "name": "look",
        "description": "Look.",
        "annotations": {"readOnlyHint": True},
        "inputSchema": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]},
    },
    {"name": "change", "inputSchema": {"type": "object"}},
]
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
PROGRESS = notification("notifications/progress", {"progressToken": 9, "progress": 1})


def call(ident: int, tool: str, **arguments: Any) -> list[dict[str, Any]]:
    """Return a call and its answer."""
    answer = {"content": [{"type": "text", "text": str(arguments)}]}
    return [talk.call(ident, tool, arguments), result(ident, answer)]


def opening(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages that open a conversation and list *tools*."""
    return [
        request("i", "initialize", HANDSHAKE),
        result("i", {**OPENING, "serverInfo": {"name": "lib", "version": "1"}}),
        notification("notifications/initialized"),
        request("l", "tools/list"),
        result("l", {"tools": tools}),
    ]


def journal(
    folder: Path, messages: Iterable[dict[str, Any]], *, mode: Any = "audit", payloads: bool = True, **terms: Any
) -> Path:
    """Write the journal of a guard that has heard an opening and *messages*; a stopped call has no answer."""
    made = open_journal(folder, payloads=payloads, server="lib", mode=mode)
    conversation = Conversation(mode=mode, policy=terms.get("policy"))
    moments: dict[Any, Any] = {}
    stopped = set()
    for each in (*opening(terms.get("tools", TOOLS)), *messages):
        if "method" not in each and each["id"] in stopped:
            continue
        party, frame = Party.CLIENT if "method" in each else Party.SERVER, frame_of(each)
        verdict = conversation.hear(party, frame)
        moment = moments.get(each.get("id")) or made.moment("stdio", "stdio", verdict.method, frame, session="s")
        moments[each.get("id", len(moments))] = moment
        if verdict.onward is None and "method" in each:
            stopped.add(each.get("id"))
        made.write(made.line(verdict, moment, len(verdict.onward or b"") + len(verdict.back or b"")))
    made.close()
    return Path(made.path)

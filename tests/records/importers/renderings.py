"""One conversation with several faults, written in every format that `assay check` reads."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kit.command import assay_text
from kit.rows import rows
from kit.stateless_talk import META

SCHEMA = {"type": "object", "properties": {"limit": {"type": "integer"}}}
TOOL = {"name": "find_books", "inputSchema": SCHEMA, "outputSchema": {**SCHEMA, "required": ["limit"]}}
INFO = {"name": "library", "version": "0.3"}
STRAY = b"library server 0.3 starting, 1 tool loaded"
START = datetime(2026, 7, 24, 2, 3, 14, 89000, tzinfo=UTC)
URL = "http://127.0.0.1:8765/mcp"


def frame(**members: Any) -> bytes:
    """A message as JSON."""
    return json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":")).encode()


def call(ident: int, limit: Any) -> bytes:
    """A call of the tool."""
    return frame(id=ident, method="tools/call", params={"name": "find_books", "arguments": {"limit": limit}})


def found(ident: int, limit: Any) -> bytes:
    """A result of the tool."""
    content = [{"type": "text", "text": "1 book"}]
    return frame(id=ident, result={"content": content, "structuredContent": {"limit": limit}})


class Step(NamedTuple):
    """A message of the client, and what the server sends before the next one."""

    client: bytes
    server: tuple[bytes, ...] = ()


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
WELCOME = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}

STEPS = (
    Step(frame(id=0, method="initialize", params=HELLO), (STRAY, frame(id=0, result=WELCOME))),
    Step(frame(method="notifications/initialized")),
    Step(frame(id=1, method="tools/list"), (frame(id=1, result={"tools": [TOOL]}),)),
    Step(call(2, "five"), (found(2, 5),)),
    Step(call(3, 5), (found(3, "5"),)),
    Step(call(4, 5), (frame(id=4, result={"content": "none"}),)),
    Step(frame(id=5, method="ping"), (b'{"jsonrpc":"2.0","id":5,"result":{},"result":{}}',)),
    Step(frame(id=6, method="ping"), (frame(id=99, result={}),)),
    Step(frame(id=7, method="ping"), (frame(id=7, result={}),)),
)

FAULTS = [
    ("server", "syntax/json", ""),
    ("client", "contract/input", "/params/arguments/limit"),
    ("server", "contract/output", "/result/structuredContent/limit"),
    ("server", "protocol/result", "/result/content"),
    ("server", "syntax/duplicate-key", "/result"),
    ("server", "protocol/unsolicited", "/id"),
    ("server", "protocol/unanswered", ""),
]
"""The findings in the conversation, if everything of it was recorded."""

IN_CONSEQUENCE = {"syntax/duplicate-key": ("server", "protocol/unanswered", "")}
"""The further finding at the end because of an answer that cannot be read."""


def timed(steps: tuple[Step, ...] = STEPS) -> Iterator[tuple[str, bytes, datetime]]:
    """Yield the direction, the message and its time."""
    at = START
    for step in steps:
        yield "c2s", step.client, at
        for each in step.server:
            at += timedelta(milliseconds=12)
            yield "s2c", each, at
        at += timedelta(milliseconds=30)


def iso(at: datetime) -> str:
    """A time as JavaScript writes it."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rewritten(message: bytes) -> bytes:
    """A message as a program writes it that has parsed it."""
    return json.dumps(json.loads(message), separators=(",", ":")).encode()


def lines(*rows: Any) -> bytes:
    """One JSON object a line."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def native(steps: tuple[Step, ...] = STEPS) -> bytes:
    """Our own format."""
    return lines(*({"dir": way, "msg": message.decode()} for way, message, _ in timed(steps)))


def plain(steps: tuple[Step, ...] = STEPS) -> bytes:
    """Messages alone."""
    return b"".join(message + b"\n" for _, message, _ in timed(steps))


def inspector(steps: tuple[Step, ...] = STEPS) -> bytes:
    """An export of the tab Protocol."""
    entries: list[dict[str, Any]] = []
    for way, message, at in timed(steps):
        if message == STRAY:
            continue
        value = json.loads(message)
        open_ones = [each for each in entries if each["direction"] == "request" and "response" not in each]
        asked = next((each for each in open_ones if each["message"]["id"] == value.get("id")), None)
        if way == "s2c" and asked is not None:
            begun = datetime.fromisoformat(asked["timestamp"])
            asked |= {"response": value, "duration": round((at - begun).total_seconds() * 1000)}
            continue
        kind = ("request" if "id" in value else "notification") if "method" in value else "response"
        origin = "client" if way == "c2s" else "server"
        entries.append(
            {"id": f"m{len(entries)}", "timestamp": iso(at), "direction": kind, "origin": origin, "message": value}
        )
    return json.dumps(entries, indent=2).encode()


def exchanges(steps: tuple[Step, ...] = STEPS) -> Iterator[tuple[Step, datetime, datetime]]:
    """Yield the steps with the time of the request and of the response."""
    at = START
    for step in steps:
        begun = at
        at += timedelta(milliseconds=12)
        yield Step(step.client, tuple(each for each in step.server if each != STRAY)), begun, at
        at += timedelta(milliseconds=30)


def headers(message: bytes) -> dict[str, str]:
    """The headers of a request."""
    usual = {"content-type": "application/json", "authorization": "Bearer abc"}
    later = {"mcp-session-id": "s1", "MCP-Protocol-Version": "2025-11-25"}
    return usual if b'"initialize"' in message else usual | later


def inspector_network(steps: tuple[Step, ...] = STEPS) -> bytes:
    """An export of the tab Network."""
    entries: list[dict[str, Any]] = [{"method": "POST", "url": "http://127.0.0.1/token", "category": "auth"}]
    for step, begun, ended in exchanges(steps):
        entries.append(
            {
                "id": str(len(entries)),
                "timestamp": iso(begun),
                "method": "POST",
                "url": URL,
                "requestHeaders": headers(step.client),
                "requestBody": rewritten(step.client).decode(),
                "responseStatus": 200 if step.server else 202,
                "responseHeaders": {"content-type": "application/json", "mcp-session-id": "s1"},
                "responseBody": b"".join(map(rewritten, step.server)).decode(),
                "duration": round((ended - begun).total_seconds() * 1000),
                "category": "transport",
            }
        )
    return json.dumps(entries).encode()


def archive(entries: list[dict[str, Any]]) -> bytes:
    """A HAR with these entries, and with one of a page."""
    page = {
        "startedDateTime": iso(START),
        "time": 1,
        "request": {"method": "GET", "url": "http://127.0.0.1/index.html", "headers": []},
        "response": {"status": 200, "headers": [], "content": {"mimeType": "text/html", "text": "<p>"}},
    }
    made = {"version": "1.2", "creator": {"name": "test", "version": "1"}, "entries": [page, *entries]}
    return json.dumps({"log": made}, indent=1).encode()


def entry(step: Step, begun: datetime, ended: datetime, **more: Any) -> dict[str, Any]:
    """One request of a HAR."""
    pairs = [{"name": name, "value": value} for name, value in headers(step.client).items()]
    answered = [{"name": "Content-Type", "value": "application/json"}, {"name": "Mcp-Session-Id", "value": "s1"}]
    text = b"".join(step.server).decode()
    return {
        "startedDateTime": iso(begun),
        "time": (ended - begun).total_seconds() * 1000,
        "request": {"method": "POST", "url": URL, "headers": pairs, "postData": {"text": step.client.decode()}},
        "response": {
            "status": 200 if step.server else 202,
            "headers": answered,
            "content": {"mimeType": "application/json", "text": text},
            **more,
        },
    }


def har(steps: tuple[Step, ...] = STEPS) -> bytes:
    """A HAR whose responses are JSON."""
    return archive([entry(*each) for each in exchanges(steps)])


def har_streams(steps: tuple[Step, ...] = STEPS) -> bytes:
    """A HAR whose responses are streams of events, in Base64; the entries are out of order."""
    from base64 import b64encode

    entries = []
    for step, begun, ended in exchanges(steps):
        body = b": hello\r\n\r\n" + b"".join(b"event: message\ndata: %b\n\n" % each for each in step.server)
        streamed = {
            "headers": [
                {"name": "content-type", "value": "text/event-stream"},
                {"name": "mcp-session-id", "value": "s1"},
            ],
            "content": {"text": b64encode(body).decode(), "encoding": "base64"},
        }
        entries.append(entry(step, begun, ended, **(streamed if step.server else {})))
    return archive(entries[::-1])


def logged(message: bytes) -> bytes | None:
    """A message as a program logs it that has parsed it; None if it is not JSON."""
    return None if message == STRAY else rewritten(message)


NOT_VALID = b"Unexpected token 'l', \"library se\"... is not valid JSON"


def claude_server(steps: tuple[Step, ...] = STEPS) -> bytes:
    """The log of one server of Claude Desktop."""
    written = [f"{iso(START)} [library] [info] Initializing server... {{ metadata: undefined }}\n".encode()]
    for way, message, at in timed(steps):
        head = f"{iso(at)} [library] ".encode()
        text = logged(message)
        who = b"client" if way == "c2s" else b"server"
        if text is None:
            written.append(head + b"[error] " + NOT_VALID + b" { metadata: { context: 'connection' } }\n")
        else:
            written.append(head + b"[info] Message from " + who + b": " + text + b" { metadata: undefined }\n")
    return b"INFO a line of stderr, without a time\n".join(written)


def claude_all(steps: tuple[Step, ...] = STEPS) -> bytes:
    """The log of all servers of Claude Desktop, of an earlier version."""
    written = []
    for way, message, at in timed(steps):
        text = logged(message)
        who = b"client" if way == "c2s" else b"server"
        said = (
            b"[error] [library] " + NOT_VALID
            if text is None
            else b"[info] [library] Message from " + who + b": " + text
        )
        written.append(f"{iso(at)} ".encode() + said + b"\n")
    return b"".join(written)


def vscode(steps: tuple[Step, ...] = STEPS) -> bytes:
    """The output of VS Code."""
    written = [b"2026-07-24 02:03:13.000 [info] Starting server library\n"]
    for way, message, at in timed(steps):
        head = at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3].encode()
        text = logged(message)
        if text is None:
            written.append(
                head + b" [warning] Failed to parse message: " + json.dumps(message.decode()).encode() + b"\n"
            )
        else:
            who = b"[editor -> server]" if way == "c2s" else b"[server -> editor]"
            written.append(head + b" [debug] " + who + b" " + text + b"\n")
    return b"".join(written)


def mapped(steps: tuple[Step, ...] = STEPS) -> bytes:
    """A log of some program, with messages in members of an object."""
    ways = {"c2s": "fromClient", "s2c": "other"}
    rows = ({"log": {"way": ways[way], "body": message.decode()}, "when": iso(at)} for way, message, at in timed(steps))
    return lines({"log": {"way": "none"}}, *rows)


class Rendering(NamedTuple):
    """A format, and what of the conversation it hides."""

    write: Callable[..., bytes]
    source: str
    """The name for ``--from``."""
    hides: tuple[str, ...] = ()
    """The rules whose faults are not visible in it."""
    options: tuple[str, ...] = ()
    """Options of the command line that it needs."""


DUPLICATES = "syntax/duplicate-key"
STRAYS = "syntax/json"

RENDERINGS = {
    "native": Rendering(native, "assay"),
    "messages": Rendering(plain, "messages"),
    "inspector": Rendering(inspector, "inspector", (DUPLICATES, STRAYS)),
    "inspector-network": Rendering(inspector_network, "inspector-network", (DUPLICATES, STRAYS)),
    "claude-server": Rendering(claude_server, "claude-desktop", (DUPLICATES,)),
    "claude-all": Rendering(claude_all, "claude-desktop", (DUPLICATES,)),
    "vscode": Rendering(vscode, "vscode", (DUPLICATES,)),
    "har": Rendering(har, "har", (STRAYS,)),
    "har-streams": Rendering(har_streams, "har", (STRAYS,)),
    "map": Rendering(mapped, "map", (), ("--map", "dir=log.way,msg=log.body,c2s=fromClient,ts=when")),
}

EVERY = rows("rendering", [pytest.param(each, id=name) for name, each in RENDERINGS.items()])

QUIET = (Step(STEPS[0].client, STEPS[0].server[1:]), *STEPS[1:3], Step(call(2, 5), (found(2, 5),)))
"""A conversation without faults."""


class Checked(NamedTuple):
    """What `assay check` says of a file."""

    status: int
    errors: str
    records: list[dict[str, Any]]

    @property
    def faults(self) -> list[tuple[str, str, str]]:
        """The findings: the party, the rule and the place."""
        return [(each["party"], it["rule"], it["at"]) for each in self.records for it in each["violations"]]

    @property
    def rules(self) -> list[str]:
        """The rules that are broken."""
        return [rule for _, rule, _ in self.faults]

    @property
    def lines(self) -> list[int]:
        """The lines of the findings."""
        return [each["line"] for each in self.records]


def check(file: Path | str, *options: str, said: bytes = b"") -> Checked:
    """Run `assay check`."""
    done = assay_text("check", "--format", "ndjson", *options, str(file), said=said)
    return Checked(done.returncode, done.stderr, [json.loads(line) for line in done.stdout.splitlines()])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file without a name that would give its format away."""
    return tmp_path / "recording"


def judged(file: Path, content: bytes, *options: str) -> Checked:
    """Write a file and run `assay check` on it."""
    file.write_bytes(content)
    return check(file, *options)


def expected(rendering: Rendering) -> list[tuple[str, str, str]]:
    """The findings that are visible in a format."""
    further = [each for rule, each in IN_CONSEQUENCE.items() if rule not in rendering.hides]
    return [each for each in FAULTS if each[1] not in rendering.hides] + further


# ── without a handshake ──────────────────────────────────────────────────────────────────────────────────────────────


def modern(ident: int, method: str, **params: Any) -> Step:
    """A request of a revision without a handshake."""
    return Step(frame(id=ident, method=method, params={**params, "_meta": META}))


def modern_entry(step: Step, headers: dict[str, str], answer: bytes, at: int) -> dict[str, Any]:
    """The request of a HAR."""
    begun = START + timedelta(seconds=at)
    made = entry(Step(step.client, (answer,)), begun, begun + timedelta(milliseconds=5))
    version = {"MCP-Protocol-Version": "2026-07-28"}
    made["request"]["headers"] = [{"name": name, "value": value} for name, value in {**version, **headers}.items()]
    made["response"]["headers"] = [{"name": "content-type", "value": "application/json"}]
    return made

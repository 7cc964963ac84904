"""
Every rule, and what breaks it: messages of a server, and of a client.

A case is a list of turns: what the client sends at once, before it waits for all that comes of it. What the server does
is a script of `scripted_server.py`; where that says nothing, it does well.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from kit.guard_process import INITIALIZED, call, initialize, notification, request, result
from kit.talk import error

LATEST = "2026-07-28"
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": LATEST,
    "io.modelcontextprotocol/clientCapabilities": {"roots": {}, "sampling": {}, "elicitation": {}},
}

Outcome = int | str
"""What becomes of a request: "result", "isError" for a result that says so, or the code of an error."""


class Case(NamedTuple):
    """One way to break a rule."""

    rule: str
    turns: list[list[Any]]
    """What the client sends."""
    gets: list[tuple[Any, Outcome]]
    """Every answer that the client is to get under enforce, by its id."""
    on: Mapping[str, Any] = {}
    """What the server does, by what it receives."""
    tools: list[dict[str, Any]] | None = None
    """What it lists."""
    listed: int | None = None
    """How many of the tools the client is to see."""
    action: str | None = None
    """What is done about the message, where that is not what the rule does by itself."""
    revision: str = "2025-11-25"
    opened: bool = True
    """Whether the handshake, or the first list, comes before the first turn."""
    lists: bool = True
    """Whether the tools are listed then."""
    settings: tuple[str, ...] = ()
    """Settings of the guard."""
    capabilities: Mapping[str, Any] = {}
    """What the client declares in place of the usual."""
    survives: bool = True
    """Whether there is a server afterwards."""
    audited: bool = True
    """Whether the rule is broken under audit, too."""
    locked: Mapping[str, Any] | None = None
    """The script of the server when it was locked, if it was."""


def tool(name: str = "search", **more: Any) -> dict[str, Any]:
    """A tool that takes anything, and promises nothing."""
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def taking(schema: dict[str, Any]) -> dict[str, Any]:
    """A tool that takes a value of *schema*."""
    return tool("odd", inputSchema={"type": "object", "properties": {"value": schema}})


def modern(ident: Any, method: str, **params: Any) -> dict[str, Any]:
    """A request of the revision without a handshake."""
    return request(ident, method, {**params, "_meta": META})


# ── in place of an answer ────────────────────────────────────────────────────────────────────────────────────────────

TEXT = [{"type": "text", "text": "x"}]
STRUCTURED = {"structuredContent": {"hits": 1}}
HITS = {"content": TEXT, **STRUCTURED}


def answering(rule: str, *actions: Any, gets: Outcome = -31010, **more: Any) -> Case:
    """The server does this in place of an answer to a call."""
    return Case(rule, [[call(1)]], [(1, gets)], on={"tools/call": list(actions)}, **more)


def raw(rule: str, before: str, after: str = "") -> list[Case]:
    """A result with something unreadable in it; the id before it, and behind it."""
    first = '{"jsonrpc":"2.0","id":$id,"result":{"content":[],"x":' + before + "}}\n"
    last = '{"result":{"content":[],"x":' + before + '},"jsonrpc":"2.0","id":$id}\n'
    return [answering(rule, ["raw", after + first]), answering(rule, ["raw", after + last])]


SHORT: dict[str, Any] = {"settings": ("guard.frame_bytes=65536",)}

FRAMES = [
    answering(
        "framing/size",
        ["long", '{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"', 300_000, '"}]}}\n'],
        **SHORT,
    ),
    answering(
        "framing/size",
        ["long", '{"result":{"content":[{"type":"text","text":"', 300_000, '"}]},"id":$id,"jsonrpc":"2.0"}\n'],
        **SHORT,
    ),
    Case("framing/size", [[call(1, words="x" * 300_000)]], [(1, -32600)], **SHORT),
    *raw("framing/carriage-return", "\r{}\r"),
    *raw("syntax/utf8", '"\xff"'),
    *raw("syntax/bom", "1", after="\xef\xbb\xbf"),
    *raw("syntax/json", "[1,]"),
    *raw("syntax/number", "NaN"),
    *raw("syntax/number", "1e400"),
    *raw("syntax/surrogate", '"\\ud800"'),
    *raw("syntax/duplicate-key", '{"a":1,"\\u0061":2}'),
    *raw("syntax/depth", "[" * 200 + "]" * 200),
    answering(
        "syntax/values",
        ["raw", '{"jsonrpc":"2.0","id":$id,"result":{"content":[],"x":[' + "1," * 2_000 + "1]}}\n"],
        settings=("limits.values=1000",),
    ),
    Case("syntax/values", [[call(1, words=[1] * 2_000)]], [(1, -32600)], settings=("limits.values=1000",)),
    answering("syntax/json", ["raw", "library 0.3 starting\n"], ["good"], gets="result"),
    answering("syntax/json", ["raw", '{"jsonrpc":"2.0","id":$id,"result":{"con\n']),
    Case("syntax/json", [[b'{"jsonrpc":"2.0","id":1,"method":"ping",}']], [(1, -32700)]),
    Case("syntax/utf8", [[b'{"jsonrpc":"2.0","id":1,"method":"\xff"}']], [(1, -32700)]),
    Case("syntax/bom", [[b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}']], [(1, -32700)]),
    Case(
        "syntax/duplicate-key", [[b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}']], [(1, -32700)]
    ),
]

ENVELOPES = [
    answering("envelope/message", ["raw", '42\n"done"\nnull\n'], ["good"], gets="result"),
    Case("envelope/message", [[b"42"]], [(None, -32600)]),
    answering("envelope/batch", ["say", [result("$id", HITS)]]),
    answering("envelope/batch", ["raw", "[]\n"], ["good"], gets="result"),
    Case("envelope/batch", [[[call(1)]]], [(None, -32600)]),
    answering("envelope/jsonrpc", ["say", {"id": "$id", "result": HITS}]),
    Case("envelope/jsonrpc", [[{"id": 1, "method": "ping"}]], [(1, -32600)]),
    answering("envelope/id", ["say", result(None, HITS)], ["good"], gets="result"),
    answering("envelope/id", ["say", {"jsonrpc": "2.0", "result": HITS}], ["good"], gets="result"),
    answering("envelope/id", ["say", request("x" * 2000, "ping")], ["good"], gets="result"),
    Case("envelope/id", [[request(None, "ping")]], [(None, -32600)]),
    Case("envelope/id", [[request(True, "ping")]], [(None, -32600)]),
    Case(
        "envelope/null-id",
        [[call(1)]],
        [(None, -32700), (1, "result")],
        on={"tools/call": [["say", error(None, -32700)], ["good"]]},
    ),
    Case("envelope/null-id", [[error(None, -32700), call(1)]], [(1, "result")]),
    Case("envelope/null-id", [[error(None, -32700), call(1)]], [(1, "result")], revision="2025-06-18"),
    answering("envelope/method", ["say", {"jsonrpc": "2.0", "id": "s", "method": 5}], ["good"], gets="result"),
    answering("envelope/method", ["say", {"jsonrpc": "2.0", "method": ""}], ["good"], gets="result"),
    Case("envelope/method", [[request(1, "")]], [(1, -32600)]),
    answering("envelope/params", ["say", notification("notifications/message", [1])], ["good"], gets="result"),
    answering("envelope/params", ["say", request("s", "roots/list", [])], ["good"], gets="result"),
    Case("envelope/params", [[request(1, "ping", [])]], [(1, -32600)]),
    answering("envelope/members", ["say", {**result("$id", HITS), "error": {"code": 1, "message": "no"}}]),
    answering("envelope/members", ["say", {"jsonrpc": "2.0", "id": "$id"}]),
    answering("envelope/members", ["say", {**result("$id", HITS), "method": "tools/call"}]),
    answering("envelope/look-alike-key", ["say", {**result("$id", HITS), "Result": HITS}]),
    answering("envelope/look-alike-key", ["say", {**result("$id", HITS), "id\0": 7}]),
    answering(
        "envelope/look-alike-key",
        ["say", {"jsonrpc": "2.0", "id": "$id", "error": {"code": 1, "message": "no", "Message": "yes"}}],
    ),
    Case("envelope/look-alike-key", [[{**call(1), "Method": "ping"}]], [(1, -32600)]),
    Case("envelope/look-alike-key", [[{**call(1), "param\u017f": {}}]], [(1, -32600)]),
    Case("envelope/look-alike-key", [[{**notification("notifications/cancelled"), "ID": 1}]], []),
    answering("envelope/error", ["say", {"jsonrpc": "2.0", "id": "$id", "error": "it failed"}]),
    answering("envelope/error", ["say", {"jsonrpc": "2.0", "id": "$id", "error": {"code": "1", "message": "no"}}]),
    answering("envelope/result", ["result", "done"]),
    answering("envelope/result", ["result", None]),
]

# ── the protocol ─────────────────────────────────────────────────────────────────────────────────────────────────────

SLOW: dict[str, Any] = {
    "tools/call:slow": [],
    "notifications/roots/list_changed": [["say", result("a", HITS)], ["say", result("b", HITS)]],
}
AGAIN = {**initialize(), "id": "again"}
BARE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "scripted", "version": "1"},
}
RUNS: dict[str, Any] = {"requests": {"tools": {"call": {}}}}
TASKING = {**BARE, "capabilities": {"tools": {}, "tasks": RUNS}}
REF = {"type": "ref/prompt", "name": "a"}
FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {"age": {"type": "integer"}}}}
NOTE = notification("notifications/message", {"level": "info", "data": 1})
CALLED = {"name": "search", "arguments": {"words": "sea"}}
UPPER = next(iter(META)).upper()
PROGRESS = {"name": "search", "arguments": {"words": "sea"}, "_meta": {"progressToken": "p"}}


def progress(token: str, done: float) -> list[Any]:
    """The server reports progress."""
    return ["say", notification("notifications/progress", {"progressToken": token, "progress": done})]


OWN: dict[str, Any] = {"experimental": {"acme": {}}}
UNKNOWN = {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32601, "message": "Unknown tool"}}

METHODS = [
    Case("protocol/method", [[request(1, "tools/run")]], [(1, -32601)]),
    Case("protocol/method", [[notification("notifications/nope")]], []),
    answering("protocol/method", ["say", request("s", "client/nope")], ["good"], gets="result"),
    answering("protocol/method", ["say", notification("notifications/nope")], ["good"], gets="result"),
    Case("protocol/extension", [[request(1, "acme/search")]], [(1, "result")], capabilities=OWN),
    Case("protocol/unheard-extension", [[modern(1, "acme/search")]], [(1, "result")], revision=LATEST),
    answering("protocol/direction", ["say", request("s", "tools/list")], ["good"], gets="result"),
    answering("protocol/direction", ["say", INITIALIZED], ["good"], gets="result"),
    Case("protocol/direction", [[request(1, "roots/list")]], [(1, -32601)]),
    Case("protocol/params", [[request(1, "tools/call", {"arguments": {}})]], [(1, -32602)]),
    answering("protocol/params", ["say", request("s", "sampling/createMessage", {})], ["good"], gets="result"),
    answering(
        "protocol/params",
        ["say", notification("notifications/message", {"level": "loud", "data": 1})],
        ["good"],
        gets="result",
    ),
    Case("protocol/look-alike-key", [[request(1, "tools/call", {**CALLED, "Name": "delete"})]], [(1, -32602)]),
    Case("protocol/look-alike-key", [[request(1, "tools/call", {**CALLED, "\uff4eame": "x"})]], [(1, -32602)]),
    Case("protocol/look-alike-key", [[request(1, "tools/call", {**CALLED, "_META": {}})]], [(1, -32602)]),
    Case(
        "protocol/look-alike-key",
        [[request(1, "tools/call", {**CALLED, "_meta": {"ProgressToken": 1}})]],
        [(1, -32602)],
    ),
    Case(
        "protocol/look-alike-key",
        [[modern(1, "tools/call", **CALLED), request(2, "tools/call", {**CALLED, "_meta": {**META, UPPER: "x"}})]],
        [(1, "result"), (2, -32602)],
        revision=LATEST,
    ),
    answering("protocol/look-alike-key", ["result", {**HITS, "IsError": True}], gets="isError"),
    answering(
        "protocol/look-alike-key",
        ["say", notification("notifications/message", {"level": "info", "data": 1, "Data": 2})],
        ["good"],
        gets="result",
    ),
    answering("protocol/result", ["result", {"contents": TEXT}], gets="isError"),
    answering("protocol/result", ["result", {"content": [{"type": "text"}]}], gets="isError"),
    answering("protocol/result", ["result", {"contents": TEXT}], revision="2025-06-18"),
    Case(
        "protocol/result",
        [[request(1, "tools/list")]],
        [(1, "result")],
        tools=[tool(), {"name": "bare"}, tool("last")],
        listed=2,
        action="quarantine",
    ),
    Case(
        # The client breaks it: what the server asked fails, and what the client asked does not.
        "protocol/result",
        [[call(1)], [result("s", {"roots": "none"})]],
        [(1, "result")],
        on={"tools/call": [["say", request("s", "roots/list")], ["good"]]},
    ),
    answering("protocol/error", ["say", {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32042, "message": "go"}}]),
    Case(
        "protocol/format",
        [[request(1, "resources/read", {"uri": "readme.md"})]],
        [(1, "result")],
        on={"resources/read": [["result", {"contents": []}]]},
    ),
    answering(
        "protocol/base64",
        ["result", {"content": [{"type": "image", "data": "iVBORw0KGgo", "mimeType": "image/png"}], **STRUCTURED}],
        gets="result",
    ),
    answering("protocol/unsolicited", ["say", result("unasked", HITS)], ["good"], gets="result"),
    answering("protocol/unsolicited", ["raw", '{"jsonrpc":"2.0","id":"1","result":{}}\n'], ["good"], gets="result"),
    Case("protocol/unsolicited", [[result("unasked", {})]], []),
    answering("protocol/answered-twice", ["good"], ["good"], gets="result"),
    Case(
        "protocol/answered-twice",
        [[call(1)], [result("s", {"roots": []}), result("s", {"roots": []})]],
        [(1, "result")],
        on={"tools/call": [["say", request("s", "roots/list")], ["good"]]},
    ),
    Case(
        "protocol/id-in-use",
        [[call("a", "slow"), call("b", "slow"), call("a", "slow"), notification("notifications/roots/list_changed")]],
        [("a", -32600), ("a", "result"), ("b", "result")],
        on=SLOW,
    ),
    # The id of the list that every case begins with.
    Case("protocol/id-reused", [[request("list", "ping")]], [("list", "result")]),
    Case(
        "protocol/retry-id",
        [[modern(1, "tools/call", **CALLED)], [modern(1, "tools/call", **CALLED, requestState="a")]],
        [(1, "result"), (1, "result")],
        on={"tools/call": [["result", {"resultType": "input_required", "requestState": "a"}]]},
        revision=LATEST,
    ),
    Case(
        "protocol/progress-token",
        [
            [
                request("a", "tools/call", {**PROGRESS, "name": "slow"}),
                request("b", "tools/call", {**PROGRESS, "name": "slow"}),
                notification("notifications/roots/list_changed"),
            ]
        ],
        [("a", "result"), ("b", "result")],
        on=SLOW,
    ),
    Case(
        "protocol/too-many-open",
        [[call("a", "slow"), call("b", "slow"), call("c"), notification("notifications/roots/list_changed")]],
        [("a", "result"), ("b", "result"), ("c", -31016)],
        on=SLOW,
        settings=("limits.open_requests=2",),
    ),
    Case(
        "protocol/token-size",
        [[request(1, "tools/call", {**PROGRESS, "_meta": {"progressToken": "x" * 2000}})]],
        [(1, -32602)],
    ),
    Case("protocol/token-size", [[request(1, "resources/list", {"cursor": "x" * 70_000})]], [(1, -32602)]),
    Case(
        "protocol/result-type",
        [[modern(1, "tools/call", name="search", arguments={"words": "sea"})]],
        [(1, "isError")],
        on={"tools/call": [["result", {**HITS, "resultType": "partial"}]]},
        revision=LATEST,
    ),
    Case(
        "protocol/progress",
        [[request(1, "tools/call", PROGRESS)]],
        [(1, "result")],
        on={"tools/call": [progress("p", 2), progress("p", 1), ["good"]]},
    ),
    answering("protocol/progress", progress("unknown", 1), ["good"], gets="result"),
    Case("protocol/cancel", [[notification("notifications/cancelled", {"requestId": 77})]], []),
    answering(
        "protocol/cancel", ["say", notification("notifications/cancelled", {"requestId": 77})], ["good"], gets="result"
    ),
    Case(
        "protocol/cancel-other",
        [[modern(1, "tools/call", name="search", arguments={"words": "sea"})]],
        [(1, "result")],
        on={"tools/call": [["say", notification("notifications/cancelled", {"requestId": "$id"})], ["good"]]},
        revision=LATEST,
    ),
    answering("protocol/error-code", ["say", UNKNOWN], gets=-32601),
    Case(
        "protocol/error-code",
        [[request(1, "prompts/list")]],
        [(1, -32601)],
        on={"prompts/list": [["say", {**UNKNOWN, "error": {"code": -32601, "message": "Method not found"}}]]},
    ),
    Case(
        "protocol/completion-values",
        [[request(1, "completion/complete", {"ref": REF, "argument": {"name": "a", "value": ""}})]],
        [(1, "result")],
        on={"completion/complete": [["result", {"completion": {"values": ["x"] * 101}}]]},
    ),
    Case(
        "protocol/root",
        [[call(1)], [result("s", {"roots": [{"uri": "https://example.com/project"}]})]],
        [(1, "result")],
        on={"tools/call": [["say", request("s", "roots/list")], ["good"]]},
    ),
    Case(
        "protocol/related-task",
        [[request(1, "tasks/result", {"taskId": "t"})]],
        [(1, "result")],
        on={"initialize": [["result", TASKING]], "tasks/result": [["result", {"content": TEXT}]]},
    ),
    answering("protocol/unanswered", ["log", "no more\n"], ["exit", 5], gets=-31011, survives=False),
]

# ── without a handshake ──────────────────────────────────────────────────────────────────────────────────────────────


def stateless(rule: str, *actions: Any, gets: Outcome = "result", **more: Any) -> Case:
    """The server of 2026-07-28 does this in place of an answer to a call."""
    calls = [[modern(1, "tools/call", **CALLED)]]
    return Case(rule, calls, [(1, gets)], on={"tools/call": list(actions)}, revision=LATEST, **more)


SUBSCRIBED = {"_meta": {"io.modelcontextprotocol/subscriptionId": "$id"}}
ACKNOWLEDGED = notification("notifications/subscriptions/acknowledged", {"notifications": {}, **SUBSCRIBED})


def subscribed(rule: str, *said: Any) -> Case:
    """The server says this on a subscription, and ends it."""
    actions = [*(["say", each] for each in said), ["result", {"resultType": "complete", **SUBSCRIBED}]]
    asked = [[modern(1, "subscriptions/listen", notifications={})]]
    return Case(rule, asked, [(1, "result")], on={"subscriptions/listen": actions}, revision=LATEST)


def prompts(scope: str, **more: Any) -> list[Any]:
    """A page of a list."""
    return ["result", {"prompts": [], "resultType": "complete", "ttlMs": 0, "cacheScope": scope, **more}]


STATE = "round-1/7c9e6679-7425"
ASKS_BACK: dict[str, Any] = {
    "resultType": "input_required",
    "requestState": STATE,
    "inputRequests": {"where": {"method": "roots/list"}},
}
ROOTS_ANSWER: dict[str, Any] = {"where": {"roots": []}}
DECLINED = {"action": "decline"}


def retried(rule: str, method: str = "tools/call", **params: Any) -> Case:
    """The client sends this after the server has asked for its roots."""
    first = modern(1, "tools/call", **CALLED)
    again = modern(2, method, **(CALLED if method == "tools/call" else {}), **params)
    answers = {
        "tools/call": [["result", ASKS_BACK]],
        "prompts/get": [["result", {"messages": [], "resultType": "complete"}]],
    }
    return Case(rule, [[first], [again]], [(1, "result"), (2, "result")], on=answers, revision=LATEST)


STATELESS = [
    stateless("protocol/log", ["say", NOTE], ["good"]),
    subscribed("protocol/subscription", ACKNOWLEDGED, notification("notifications/tools/list_changed", SUBSCRIBED)),
    Case(
        # The first message lists the tools, and the third shows that all goes on.
        "protocol/cache-scope",
        [[modern(1, "prompts/list")], [modern(2, "prompts/list", cursor="more")]],
        [(1, "result"), (2, "result")],
        on={"#2": [prompts("private", nextCursor="more")], "#4": [prompts("public")]},
        revision=LATEST,
    ),
    stateless(
        "protocol/error-code",
        ["say", {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32042, "message": "go"}}],
        gets=-32042,
    ),
    stateless("protocol/result-type-missing", ["result", HITS]),
    stateless("protocol/input-required", ["result", {"resultType": "input_required"}], gets="isError"),
    retried("protocol/request-state", requestState=STATE.upper(), inputResponses=ROOTS_ANSWER),
    retried("protocol/request-state", inputResponses=ROOTS_ANSWER),
    retried("protocol/retry-target", method="prompts/get", name="a", requestState=STATE),
    retried("protocol/input-responses", requestState=STATE),
    retried("protocol/input-responses", requestState=STATE, inputResponses={**ROOTS_ANSWER, "who": DECLINED}),
    retried("protocol/input-kind", requestState=STATE, inputResponses={"where": DECLINED}),
    Case(
        "protocol/cache-hints",
        [[modern(1, "prompts/list")]],
        [(1, "result")],
        on={"prompts/list": [["result", {"prompts": [], "resultType": "complete"}]]},
        revision=LATEST,
    ),
]

# ── extensions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def declaring(ident: Any, method: str, extensions: dict[str, Any], **params: Any) -> dict[str, Any]:
    """A request that declares extensions."""
    capabilities = {**META["io.modelcontextprotocol/clientCapabilities"], "extensions": extensions}
    return request(
        ident, method, {**params, "_meta": {**META, "io.modelcontextprotocol/clientCapabilities": capabilities}}
    )


def declared(rule: str, extensions: dict[str, Any]) -> Case:
    """The client declares these extensions."""
    return Case(rule, [[declaring(1, "tools/list", extensions)]], [(1, "result")], revision=LATEST)


def discovered(rule: str, **capabilities: Any) -> Case:
    """The server declares this."""
    answer = {
        "resultType": "complete",
        "supportedVersions": [LATEST],
        "capabilities": {"tools": {}, **capabilities},
        "ttlMs": 0,
        "cacheScope": "public",
    }
    on = {"server/discover": [["result", answer]]}
    return Case(rule, [[modern(1, "server/discover")]], [(1, "result")], on=on, revision=LATEST)


TASKS: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}}
TASK: dict[str, Any] = {
    "resultType": "complete",
    "taskId": "t1",
    "status": "working",
    "createdAt": "2026-08-01T10:00:00Z",
    "lastUpdatedAt": "2026-08-01T10:00:00Z",
    "ttlMs": None,
}
HANDLE: dict[str, Any] = {**TASK, "resultType": "task"}
NOT_FOUND = {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32602, "message": "no such task"}}


def asking(text: str) -> dict[str, Any]:
    """A task that asks for something."""
    question = {"method": "elicitation/create", "params": {"message": text, "requestedSchema": FORM["requestedSchema"]}}
    return {**TASK, "status": "input_required", "inputRequests": {"who": question}}


def started(rule: str, *polls: dict[str, Any], **more: Any) -> Case:
    """The server answers a call with a task, and then polls of it with these."""
    turns = [[declaring(1, "tools/call", TASKS, **CALLED)]]
    turns += [[declaring(number, "tasks/get", TASKS, taskId="t1")] for number in range(2, len(polls) + 2)]
    # The first message lists the tools, and after each turn there is one that shows that all goes on.
    answers = {f"#{2 * number}": [["result", each]] for number, each in enumerate((HANDLE, *polls), 1)}
    gets: list[tuple[Any, Outcome]] = [(number, "result") for number in range(1, len(polls) + 2)]
    return Case(rule, turns, gets, on=answers, revision=LATEST, **more)


EXTENSIONS = [
    declared("extension/identifier", {"search": {}}),
    declared("extension/reserved", {"io.modelcontextprotocol/task": {}}),
    declared("extension/settings", {"io.modelcontextprotocol/tasks": {"list": {}}}),
    declared("extension/revision", {"io.modelcontextprotocol/tasks": {"revision": "2"}}),
    discovered("extension/revision", extensions={"io.modelcontextprotocol/tasks": {"revision": "2"}}),
    discovered("extension/identifier", extensions={"search": {}}),
    discovered("tasks/legacy", tasks={"cancel": {}}),
    Case(
        "protocol/method",
        [[modern(1, "server/discover")], [declaring(2, "acme/search", TASKS)]],
        [(1, "result"), (2, -32601)],
        on=discovered("tasks/legacy").on,
        revision=LATEST,
    ),
    Case(
        "protocol/extension",
        [[declaring(1, "acme/search", {"com.example/acme": {}})]],
        [(1, "result")],
        revision=LATEST,
    ),
    stateless("protocol/result-type", ["result", HANDLE], gets="isError"),
    Case(
        "tasks/undeclared",
        [[modern(1, "tasks/get", taskId="t1")]],
        [(1, "result")],
        on={"tasks/get": [["result", TASK]]},
        revision=LATEST,
    ),
    Case(
        "tasks/handle",
        [[declaring(1, "tools/call", TASKS, **CALLED)]],
        [(1, "result")],
        on={"tools/call": [["result", {**HANDLE, "status": "completed", "result": HITS}]]},
        revision=LATEST,
    ),
    started("tasks/identity", {**TASK, "taskId": "t2"}),
    started("tasks/status", {**TASK, "status": "cancelled"}, TASK),
    started("tasks/time", {**TASK, "lastUpdatedAt": "2026-07-01T10:00:00Z"}),
    started("tasks/input-requests", {**TASK, "status": "input_required", "inputRequests": {}}),
    started("tasks/input-key", asking("Delete a?"), asking("Delete b?")),
    started("tasks/failed", {**TASK, "status": "failed", "error": {"code": -32603, "message": "no"}}),
    started(
        "tasks/related-task",
        {
            **TASK,
            "status": "completed",
            "result": {**HITS, "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}},
        },
    ),
    started("contract/output", {**TASK, "status": "completed", "result": {"content": TEXT}})._replace(
        gets=[(1, "result"), (2, -31010)]
    ),
    started("tasks/not-found", TASK)._replace(
        gets=[(1, "result"), (2, -32602)],
        on={"tools/call": [["result", HANDLE]], "tasks/get": [["say", NOT_FOUND]]},
    ),
    Case(
        "tasks/input-responses",
        [
            [declaring(1, "tools/call", TASKS, **CALLED)],
            [declaring(2, "tasks/update", TASKS, taskId="t1", inputResponses={"who": DECLINED})],
        ],
        [(1, "result"), (2, "result")],
        on={"tools/call": [["result", HANDLE]]},
        revision=LATEST,
    ),
]

LIFECYCLE = [
    Case(
        "protocol/era-fallback",
        [[modern(1, "server/discover")], [initialize()]],
        [(1, "result"), ("open", "result")],
        on=discovered("protocol/era-fallback").on,
        revision=LATEST,
        opened=False,
    ),
    Case(
        "protocol/era-fallback",
        [[modern(1, "server/discover")], [initialize()]],
        [(1, -32022), ("open", "result")],
        on={
            "server/discover": [
                ["say", error("$id", -32022, data={"supported": ["2027-01-01"], "requested": LATEST})],
            ]
        },
        revision=LATEST,
        opened=False,
    ),
    Case("protocol/before-initialize", [[request(1, "tools/list")]], [(1, -32600)], opened=False),
    Case(
        "protocol/before-initialized",
        [[initialize()], [request(1, "tools/list")]],
        [("open", "result"), (1, "result")],
        opened=False,
    ),
    Case("protocol/initialize-again", [[AGAIN]], [("again", -32600)]),
    Case(
        "protocol/unsupported-revision",
        [[request(1, "tools/list", {"_meta": {**META, next(iter(META)): "2030-01-01"}})]],
        [(1, -32022)],
        opened=False,
    ),
    Case(
        "protocol/unknown-revision",
        [[initialize(), INITIALIZED]],
        [("open", "result")],
        on={"initialize": [["result", {**BARE, "protocolVersion": "1.0"}]]},
        opened=False,
    ),
    Case(
        "protocol/capability",
        [[call(1)]],
        [(1, "result")],
        on={"initialize": [["result", BARE]], "tools/call": [["say", NOTE], ["good"]]},
    ),
    Case(
        "protocol/capability",
        [[request(1, "prompts/list")]],
        [(1, "result")],
        on={"initialize": [["result", BARE]], "prompts/list": [["result", {"prompts": []}]]},
    ),
    Case("protocol/batched-initialize", [[[AGAIN]]], [("again", -32600)], revision="2025-03-26"),
]

# ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def setting_aside(rule: str, *wrong: dict[str, Any], listed: int = 2, **more: Any) -> Case:
    """A list with something *wrong* between two good tools, which are left."""
    return Case(
        rule,
        [[request(1, "tools/list")], [call(2), call(3, "last")]],
        [(1, "result"), (2, "result"), (3, "result")],
        tools=[tool(), *wrong, tool("last")],
        listed=listed,
        **more,
    )


def reporting(rule: str, *odd: dict[str, Any], **more: Any) -> Case:
    """A list with something *odd* between two good tools: all of them are handed on."""
    return setting_aside(rule, *odd, listed=2 + len(odd), **more)


def doubling(levels: int) -> dict[str, Any]:
    """A schema whose judging takes twice as long with every level."""
    twice = {str(level): {"allOf": [{"$ref": f"#/$defs/{level + 1}"}] * 2} for level in range(levels)}
    return {"$ref": "#/$defs/0", "$defs": {**twice, str(levels): {"type": "object"}}}


STRICT: dict[str, Any] = {"settings": ("guard.strict=true",), "action": "refuse"}
UNLISTED: dict[str, Any] = {"lists": False, "audited": False}
"""The guard lists the tools itself, and judges by that; under audit it adds nothing."""
NO_LIST: dict[str, Any] = {"lists": False, "on": {"tools/list": [["say", error("$id", -32603)]]}}

NO_SCHEMA = taking({"type": "strnig"})
WIDE = {**taking({"anyOf": [{"items": {"maximum": 5}}] * 200}), "name": "search"}
"""A tool whose schema is cheap to compile, and dear on a long list."""

HINTS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}

CONTRACTS = [
    Case("contract/look-alike-key", [[call(1, words="sea", Words="land")]], [(1, "isError")]),
    Case("contract/look-alike-key", [[call(1, words="sea", LIMIT=0)]], [(1, -32602)], revision="2025-06-18"),
    Case("contract/input", [[call(1, words=5)]], [(1, "isError")]),
    Case("contract/input", [[call(1, limit=0)]], [(1, -32602)], revision="2025-06-18"),
    answering("contract/output", ["result", {"content": TEXT, "structuredContent": {"hits": "3"}}], gets="isError"),
    answering("contract/output", ["result", {"content": TEXT}], gets="isError"),
    answering(
        "contract/error-structured",
        ["result", {"content": TEXT, "structuredContent": {"hits": "3"}, "isError": True}],
        gets="isError",
    ),
    Case(
        "contract/elicitation",
        [[call(1)], [result("s", {"action": "accept", "content": {"age": "ten"}})]],
        [(1, "result")],
        on={"tools/call": [["say", request("s", "elicitation/create", FORM)], ["good"]]},
        capabilities={"elicitation": {}},
    ),
    Case(
        "contract/task-support",
        [[call(1)]],
        [(1, "result")],
        on={"initialize": [["result", TASKING]]},
        tools=[tool(execution={"taskSupport": "required"})],
    ),
    Case("contract/unknown-tool", [[call(1, "serach")]], [(1, "result")]),
    Case("contract/unknown-argument", [[call(1, words="sea", limits=3)]], [(1, "result")]),
    Case("contract/unknown-argument", [[call(1, words="sea", limits=3)]], [(1, "isError")], **STRICT),
    Case("contract/input", [[call(1, words=5)]], [(1, "isError")], **UNLISTED),
    Case(
        "contract/input",
        [[modern(1, "tools/call", name="search", arguments={"words": 5})]],
        [(1, "isError")],
        revision=LATEST,
        **UNLISTED,
    ),
    answering(
        "contract/output",
        ["result", {"content": TEXT, "structuredContent": {"hits": "3"}}],
        gets="isError",
        **UNLISTED,
    ),
    Case("contract/set-aside", [[call(2, "odd")]], [(2, -32602)], tools=[tool(), NO_SCHEMA], **UNLISTED),
    Case("contract/not-judged", [[call(1, words=5)]], [(1, "result")], **NO_LIST),
    Case("contract/not-judged", [[call(1)]], [(1, -32602)], **NO_LIST, **STRICT),
    reporting("protocol/tool-name", tool("list files")),
    Case(
        "protocol/list-order",
        [[modern(1, "tools/list")]],
        [(1, "result")],
        on={"#2": [["result", {"tools": [tool("b"), tool("a")], **HINTS}]]},
        tools=[tool("a"), tool("b")],
        revision=LATEST,
    ),
    setting_aside("contract/duplicate-tool", tool(), listed=2),
    setting_aside("contract/schema", NO_SCHEMA),
    setting_aside("contract/schema", taking({"$ref": "#/$defs/nowhere"})),
    reporting("contract/remote-ref", taking({"$ref": "https://example.com/schema.json"})),
    reporting("contract/remote-ref", taking({"$ref": "file:///etc/passwd"})),
    reporting(
        "contract/unknown-dialect",
        tool("odd", inputSchema={"type": "object", "$schema": "https://example.com/mine"}),
    ),
    Case(
        # Beyond what is compiled of one list: that waits until it is called, and then a part of it is left out.
        "contract/pattern",
        [[request(1, "tools/list")], [call(2, "odd")]],
        [(1, "result"), (2, "result")],
        tools=[tool(), taking({"pattern": "a\\Z", "description": "x" * 200_000})],
        listed=2,
    ),
    Case(
        "contract/set-aside",
        [[request(1, "tools/list")], [call(2, "odd")]],
        [(1, "result"), (2, -32602)],
        tools=[tool(), NO_SCHEMA],
        listed=1,
        # There, nothing is set aside.
        audited=False,
    ),
    reporting("contract/schema-size", taking({"enum": ["x" * 300_000]})),
    reporting("contract/schema-size", taking({"properties": {str(n): {} for n in range(6000)}})),
    reporting("contract/schema-cost", taking(doubling(40)) | {"inputSchema": {"type": "object", **doubling(40)}}),
    setting_aside("contract/schema-cycle", tool("odd", inputSchema={"type": "object", "$ref": "#"})),
    reporting("contract/pattern", taking({"pattern": "[^]"})),
    setting_aside("contract/pattern", taking({"pattern": "[^]"}), **{**STRICT, "action": "quarantine"}),
    Case("contract/unjudged", [[call(1, value=[1] * 490_000)]], [(1, "result")], tools=[WIDE]),
    Case("contract/unjudged", [[call(1, value=[1] * 490_000)]], [(1, -32602)], tools=[WIDE], **STRICT),
    Case(
        "contract/header",
        [[modern(1, "tools/list")]],
        [(1, "result")],
        tools=[tool(), taking({"type": "number", "x-mcp-header": "Value"}), tool("last")],
        # Over STDIO there are no headers.
        listed=3,
        action="report",
        revision=LATEST,
    ),
]

# ── what was locked ──────────────────────────────────────────────────────────────────────────────────────────────────

BOTH_TOOLS = [tool(), tool("last")]


def changing(rule: str, tools: list[dict[str, Any]], listed: int) -> Case:
    """The server lists other tools than those it was locked with."""
    return Case(
        rule, [[request(1, "tools/list")]], [(1, "result")], tools=tools, listed=listed, locked={"tools": BOTH_TOOLS}
    )


LOCKED = [
    changing("lock/added", [*BOTH_TOOLS, tool("more")], 2),
    changing("lock/changed", [tool(), tool("last", description="Send it all letters first.")], 1),
    changing("lock/removed", [tool()], 1),
    Case(
        "lock/server",
        [[initialize()]],
        [("open", -31010)],
        on={"initialize": [["result", {**BARE, "serverInfo": {"name": "libary", "version": "1"}}]]},
        locked={},
        opened=False,
    ),
]

# ── skills, and pages of tools ───────────────────────────────────────────────────────────────────────────────────────

SKILL_TEXT = "---\nname: pdf\ndescription: Reads PDF files.\n---\n"
SKILL_URI = "skill://pdf/SKILL.md"
SKILL_FILE: dict[str, Any] = {
    "uri": SKILL_URI,
    "digest": f"sha256:{sha256(SKILL_TEXT.encode()).hexdigest()}",
    "size": len(SKILL_TEXT),
}
SKILL: dict[str, Any] = {
    "uri": SKILL_URI,
    "frontmatter": {"name": "pdf", "description": "Reads PDF files."},
    "resources": [SKILL_FILE],
}
PAGE = "ui://view.html"
DYNAMIC = {"resources": "dynamic"}


def having(rule: str, *steps: tuple[str, dict[str, Any], Any]) -> Case:
    """The client asks for these, one after the other, and gets these results, or an error with this code."""
    # The first message lists the tools, and after each turn there is one that shows that all goes on.
    turns = [[modern(number, method, **params)] for number, (method, params, _) in enumerate(steps, 1)]
    answers = {f"#{2 * number}": [_answer(answer)] for number, (*_, answer) in enumerate(steps, 1)}
    gets: list[tuple[Any, Outcome]] = [
        (number, answer if isinstance(answer, int) else "result") for number, (*_, answer) in enumerate(steps, 1)
    ]
    return Case(rule, turns, gets, on=answers, revision=LATEST)


def _answer(answer: Any) -> list[Any]:
    if isinstance(answer, int):
        return ["say", {"jsonrpc": "2.0", "id": "$id", "error": {"code": answer, "message": "no"}}]
    return ["result", {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **answer}]


def listing(skill: dict[str, Any]) -> tuple[str, dict[str, Any], Any]:
    """The server lists this skill."""
    return "skills/list", {}, {"skills": [skill]}


def reading(uri: str, **content: Any) -> tuple[str, dict[str, Any], Any]:
    """The server returns this content."""
    return "resources/read", {"uri": uri}, {"contents": [{"uri": uri, **content}]}


def wrong_skill(rule: str, **members: Any) -> Case:
    """The server lists a skill with these members."""
    return having(rule, listing({**SKILL, **members}))


def paged(rule: str, meta: dict[str, Any]) -> Case:
    """The server lists a tool with this `_meta`."""
    return Case(rule, [[call(1)]], [(1, "result")], tools=[tool(_meta=meta)], listed=1)


WITH_SKILLS: dict[str, Any] = {"tools": {}, "extensions": {"io.modelcontextprotocol/skills": {}}}
OTHER = {"name": "pdf", "description": "Another."}

SKILLS_AND_APPS = [
    Case(
        "skills/resources",
        [[call(1)]],
        [(1, "result")],
        on={"initialize": [["result", {**BARE, "capabilities": WITH_SKILLS}]]},
    ),
    wrong_skill("skills/uri", uri="skill://pdfs/SKILL.md", resources="dynamic"),
    having("skills/name", listing({"uri": "skill://PDF/SKILL.md", "frontmatter": {**OTHER, "name": "PDF"}, **DYNAMIC})),
    wrong_skill("skills/digest", resources=[{**SKILL_FILE, "digest": "sha256:0"}]),
    wrong_skill("skills/manifest", resources=[]),
    wrong_skill("skills/size", resources=[{**SKILL_FILE, "size": 1 << 30}]),
    wrong_skill("skills/metadata", frontmatter={**OTHER, "metadata": {"io.modelcontextprotocol/a": 1}}),
    having("skills/verification", listing(SKILL), reading(SKILL_URI, text="forged", mimeType="text/markdown")),
    paged("apps/meta", {"ui": {"visibility": "app"}}),
    paged("apps/resource-uri", {"ui": {"resourceUri": "https://example.com"}}),
    paged("apps/flat-key", {"ui/resourceUri": PAGE}),
    having("apps/mime-type", reading(PAGE, text="<html>", mimeType="text/html")),
    having("apps/listed-mime-type", ("resources/list", {}, {"resources": [{"uri": PAGE, "name": "x"}]})),
    having(
        "apps/csp",
        reading(
            PAGE,
            text="<html>",
            mimeType="text/html;profile=mcp-app",
            _meta={"ui": {"csp": {"connectDomains": ["https://a.example; script-src *"]}}},
        ),
    ),
    having("apps/not-found", ("resources/read", {"uri": PAGE}, -32602))._replace(
        tools=[tool(_meta={"ui": {"resourceUri": PAGE}})]
    ),
    answering(
        "apps/content",
        ["result", {"content": []}],
        gets="result",
        tools=[tool(_meta={"ui": {"resourceUri": PAGE}})],
    ),
]

GROUPS = {
    "frames": FRAMES, "envelopes": ENVELOPES, "methods": METHODS, "stateless": STATELESS, "extensions": EXTENSIONS,
    "skills and apps": SKILLS_AND_APPS, "lifecycle": LIFECYCLE, "contracts": CONTRACTS, "locked": LOCKED,
}  # fmt: skip
CASES = [case for group in GROUPS.values() for case in group]

_HTTP_ONLY = "there are headers over HTTP only: tests/ladder/test_headers.py, tests/edges/children/test_shared_child.py"
WITHOUT_CASE = {
    "envelope/schema": "only an operator's own schema for SchemaValidator has it: tests/api/test_middleware.py",
    "protocol/header-missing": _HTTP_ONLY,
    "protocol/header-mismatch": _HTTP_ONLY,
    "protocol/header-encoding": _HTTP_ONLY,
    "guard/failure": "no message is known to break it, only a fault of our own: tests/guard/test_guard_failure.py",
}
"""Rules that no message breaks here, and the files that test them."""


def named(cases: list[Case]) -> list[str]:
    """A name for each of *cases*: its rule, and the number where there are more."""
    return [f"{case.rule}-{sum(each.rule == case.rule for each in cases[:at])}" for at, case in enumerate(cases)]


def script(case: Case) -> dict[str, Any]:
    """The script of the server of *case*."""
    return {"on": dict(case.on), **({} if case.tools is None else {"tools": case.tools})}


def frames(case: Case) -> list[list[bytes]]:
    """The turns of *case* as frames."""
    return [
        [each if isinstance(each, bytes) else json.dumps(each, separators=(",", ":")).encode() for each in turn]
        for turn in case.turns
    ]

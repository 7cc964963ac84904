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
from kit.stateless_talk import CAPABILITIES_KEY, COMPLETE, META, REVISION, asks
from kit.talk import error

LATEST = REVISION

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


# ── in place of an answer ────────────────────────────────────────────────────────────────────────────────────────────

CALLED: dict[str, Any] = {"name": "search", "arguments": {"words": "sea"}}
HINTS = {**COMPLETE, "ttlMs": 0, "cacheScope": "public"}
TEXT = [{"type": "text", "text": "x"}]
HITS = {"content": TEXT, "structuredContent": {"hits": 1}}
WRONG_HITS = {"content": TEXT, "structuredContent": {"hits": "3"}}


def asked(rule: str, message: Any, *actions: Any, gets: Outcome = "result", opening: Any = None, **more: Any) -> Case:
    """The server does this in place of an answer to *message*; *opening* is its answer to `initialize`."""
    on = {message["method"]: list(actions)} if actions else {}
    if opening is not None:
        on["initialize"] = [["result", opening]]
    return Case(rule, [[message]], [(message["id"], gets)], on=on, **more)


def answering(rule: str, *actions: Any, gets: Outcome = -31010, **more: Any) -> Case:
    """The server does this in place of an answer to a call."""
    return asked(rule, call(1), *actions, gets=gets, **more)


def stateless(rule: str, *actions: Any, gets: Outcome = "result", **more: Any) -> Case:
    """The server of 2026-07-28 does this in place of an answer to a call."""
    return asked(rule, asks(1, "tools/call", **CALLED), *actions, gets=gets, revision=LATEST, **more)


def beside(rule: str, message: Any) -> Case:
    """The server says *message* before its answer to a call, which is good."""
    return answering(rule, ["say", message], ["good"], gets="result")


def replied(rule: str, question: Any, *replies: Any, **more: Any) -> Case:
    """The server asks the client during a call, which gives these replies."""
    turns = [[call(1)], list(replies)]
    return Case(rule, turns, [(1, "result")], on={"tools/call": [["say", question], ["good"]]}, **more)


def raw(rule: str, before: str, after: str = "") -> list[Case]:
    """A result with something unreadable in it; the id before it, and behind it."""
    first = '{"jsonrpc":"2.0","id":$id,"result":{"content":[],"x":' + before + "}}\n"
    last = '{"result":{"content":[],"x":' + before + '},"jsonrpc":"2.0","id":$id}\n'
    return [answering(rule, ["raw", after + first]), answering(rule, ["raw", after + last])]


SHORT: dict[str, Any] = {"settings": ("guard.frame_bytes=65536",)}
FEW: dict[str, Any] = {"settings": ("limits.values=1000",)}
HUGE = 300_000

FRAMES = [
    answering(
        "framing/size", ["long", '{"jsonrpc":"2.0","id":$id,"result":{"content":[],"x":"', HUGE, '"}}\n'], **SHORT
    ),
    answering(
        "framing/size", ["long", '{"result":{"content":[],"x":"', HUGE, '"},"id":$id,"jsonrpc":"2.0"}\n'], **SHORT
    ),
    Case("framing/size", [[call(1, words="x" * HUGE)]], [(1, -32600)], **SHORT),
    *raw("framing/carriage-return", "\r{}\r"),
    *raw("syntax/utf8", '"\xff"'),
    *raw("syntax/bom", "1", after="\xef\xbb\xbf"),
    *raw("syntax/json", "[1,]"),
    *raw("syntax/number", "NaN"),
    *raw("syntax/number", "1e400"),
    *raw("syntax/surrogate", '"\\ud800"'),
    *raw("syntax/duplicate-key", '{"a":1,"\\u0061":2}'),
    *raw("syntax/depth", "[" * 200 + "]" * 200),
    answering("syntax/values", ["result", {"content": [], "x": [1] * 2_000}], **FEW),
    Case("syntax/values", [[call(1, words=[1] * 2_000)]], [(1, -32600)], **FEW),
    answering("syntax/json", ["raw", "library 0.3 starting\n"], ["good"], gets="result"),
    answering("syntax/json", ["raw", '{"jsonrpc":"2.0","id":$id,"result":{"con\n']),
    Case("syntax/json", [[b'{"jsonrpc":"2.0","id":1,"method":"ping",}']], [(1, -32700)]),
    Case("syntax/utf8", [[b'{"jsonrpc":"2.0","id":1,"method":"\xff"}']], [(1, -32700)]),
    Case("syntax/bom", [[b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}']], [(1, -32700)]),
    Case("syntax/duplicate-key", [[b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}']], [(1, -32700)]),
]

ENVELOPES = [
    answering("envelope/message", ["raw", '42\n"done"\nnull\n'], ["good"], gets="result"),
    Case("envelope/message", [[b"42"]], [(None, -32600)]),
    answering("envelope/batch", ["say", [result("$id", HITS)]]),
    answering("envelope/batch", ["raw", "[]\n"], ["good"], gets="result"),
    Case("envelope/batch", [[[call(1)]]], [(None, -32600)]),
    answering("envelope/jsonrpc", ["say", {"id": "$id", "result": HITS}]),
    Case("envelope/jsonrpc", [[{"id": 1, "method": "ping"}]], [(1, -32600)]),
    beside("envelope/id", result(None, HITS)),
    beside("envelope/id", {"jsonrpc": "2.0", "result": HITS}),
    beside("envelope/id", request("x" * 2000, "ping")),
    Case("envelope/id", [[request(None, "ping")]], [(None, -32600)]),
    Case("envelope/id", [[request(True, "ping")]], [(None, -32600)]),
    beside("envelope/null-id", error(None, -32700))._replace(gets=[(None, -32700), (1, "result")]),
    Case("envelope/null-id", [[error(None, -32700), call(1)]], [(1, "result")]),
    Case("envelope/null-id", [[error(None, -32700), call(1)]], [(1, "result")], revision="2025-06-18"),
    beside("envelope/method", {"jsonrpc": "2.0", "id": "s", "method": 5}),
    beside("envelope/method", {"jsonrpc": "2.0", "method": ""}),
    Case("envelope/method", [[request(1, "")]], [(1, -32600)]),
    beside("envelope/params", notification("notifications/message", [1])),
    beside("envelope/params", request("s", "roots/list", [])),
    Case("envelope/params", [[request(1, "ping", [])]], [(1, -32600)]),
    answering("envelope/members", ["say", {**result("$id", HITS), "error": {"code": 1, "message": "no"}}]),
    answering("envelope/members", ["say", {"jsonrpc": "2.0", "id": "$id"}]),
    answering("envelope/members", ["say", {**result("$id", HITS), "method": "tools/call"}]),
    answering("envelope/look-alike-key", ["say", {**result("$id", HITS), "Result": HITS}]),
    answering("envelope/look-alike-key", ["say", {**result("$id", HITS), "id\0": 7}]),
    answering("envelope/look-alike-key", ["say", error("$id", 1, Message="yes")]),
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
IMAGE = {"type": "image", "data": "iVBORw0KGgo", "mimeType": "image/png"}
UPPER = next(iter(META)).upper()
PROGRESS = {**CALLED, "_meta": {"progressToken": "p"}}


def progress(token: str, done: float) -> list[Any]:
    """The server reports progress."""
    return ["say", notification("notifications/progress", {"progressToken": token, "progress": done})]


OWN: dict[str, Any] = {"experimental": {"acme": {}}}


def slowly(rule: str, *messages: Any, gets: list[tuple[Any, Outcome]], **more: Any) -> Case:
    """The client sends these, of which calls of `slow` are answered at the end."""
    return Case(rule, [[*messages, notification("notifications/roots/list_changed")]], gets, on=SLOW, **more)


def called(**params: Any) -> dict[str, Any]:
    """A call with other *params* beside the usual ones."""
    return request(1, "tools/call", {**CALLED, **params})


METHODS = [
    Case("protocol/method", [[request(1, "tools/run")]], [(1, -32601)]),
    Case("protocol/method", [[notification("notifications/nope")]], []),
    beside("protocol/method", request("s", "client/nope")),
    beside("protocol/method", notification("notifications/nope")),
    Case("protocol/extension", [[request(1, "acme/search")]], [(1, "result")], capabilities=OWN),
    Case("protocol/unheard-extension", [[asks(1, "acme/search")]], [(1, "result")], revision=LATEST),
    beside("protocol/direction", request("s", "tools/list")),
    beside("protocol/direction", INITIALIZED),
    Case("protocol/direction", [[request(1, "roots/list")]], [(1, -32601)]),
    Case("protocol/params", [[request(1, "tools/call", {"arguments": {}})]], [(1, -32602)]),
    beside("protocol/params", request("s", "sampling/createMessage", {})),
    beside("protocol/params", notification("notifications/message", {"level": "loud", "data": 1})),
    asked("protocol/look-alike-key", called(Name="delete"), gets=-32602),
    asked("protocol/look-alike-key", request(1, "tools/call", {**CALLED, "\uff4eame": "x"}), gets=-32602),
    asked("protocol/look-alike-key", called(_META={}), gets=-32602),
    asked("protocol/look-alike-key", called(_meta={"ProgressToken": 1}), gets=-32602),
    Case(
        "protocol/look-alike-key",
        [[asks(1, "tools/call", **CALLED), asks(2, "tools/call", {UPPER: "x"}, **CALLED)]],
        [(1, "result"), (2, -32602)],
        revision=LATEST,
    ),
    answering("protocol/look-alike-key", ["result", {**HITS, "IsError": True}], gets="isError"),
    beside("protocol/look-alike-key", notification("notifications/message", {"level": "info", "data": 1, "Data": 2})),
    answering("protocol/result", ["result", {"contents": TEXT}], gets="isError"),
    answering("protocol/result", ["result", {"content": [{"type": "text"}]}], gets="isError"),
    answering("protocol/result", ["result", {"contents": TEXT}], revision="2025-06-18"),
    asked(
        "protocol/result",
        request(1, "tools/list"),
        tools=[tool(), {"name": "bare"}, tool("last")],
        listed=2,
        action="quarantine",
    ),
    # The client breaks it: what the server asked fails, and what the client asked does not.
    replied("protocol/result", request("s", "roots/list"), result("s", {"roots": "none"})),
    answering("protocol/error", ["say", error("$id", -32042)]),
    asked("protocol/format", request(1, "resources/read", {"uri": "readme.md"}), ["result", {"contents": []}]),
    answering("protocol/base64", ["result", {**HITS, "content": [IMAGE]}], gets="result"),
    beside("protocol/unsolicited", result("unasked", HITS)),
    beside("protocol/unsolicited", result("1", {})),
    Case("protocol/unsolicited", [[result("unasked", {})]], []),
    answering("protocol/answered-twice", ["good"], ["good"], gets="result"),
    replied("protocol/answered-twice", request("s", "roots/list"), *[result("s", {"roots": []})] * 2),
    slowly(
        "protocol/id-in-use",
        *(call("a", "slow"), call("b", "slow"), call("a", "slow")),
        gets=[("a", -32600), ("a", "result"), ("b", "result")],
    ),
    # The id of the list that every case begins with.
    Case("protocol/id-reused", [[request("list", "ping")]], [("list", "result")]),
    Case(
        "protocol/retry-id",
        [[asks(1, "tools/call", **CALLED)], [asks(1, "tools/call", **CALLED, requestState="a")]],
        [(1, "result"), (1, "result")],
        on={"tools/call": [["result", {"resultType": "input_required", "requestState": "a"}]]},
        revision=LATEST,
    ),
    slowly(
        "protocol/progress-token",
        *(request(ident, "tools/call", {**PROGRESS, "name": "slow"}) for ident in "ab"),
        gets=[("a", "result"), ("b", "result")],
    ),
    slowly(
        "protocol/too-many-open",
        *(call("a", "slow"), call("b", "slow"), call("c")),
        gets=[("a", "result"), ("b", "result"), ("c", -31016)],
        settings=("limits.open_requests=2",),
    ),
    asked("protocol/token-size", called(_meta={"progressToken": "x" * 2000}), gets=-32602),
    asked("protocol/token-size", request(1, "resources/list", {"cursor": "x" * 70_000}), gets=-32602),
    stateless("protocol/result-type", ["result", {**HITS, "resultType": "partial"}], gets="isError"),
    asked("protocol/progress", called(**PROGRESS), progress("p", 2), progress("p", 1), ["good"]),
    answering("protocol/progress", progress("unknown", 1), ["good"], gets="result"),
    Case("protocol/cancel", [[notification("notifications/cancelled", {"requestId": 77})]], []),
    beside("protocol/cancel", notification("notifications/cancelled", {"requestId": 77})),
    stateless(
        "protocol/cancel-other", ["say", notification("notifications/cancelled", {"requestId": "$id"})], ["good"]
    ),
    answering("protocol/error-code", ["say", error("$id", -32601, "Unknown tool")], gets=-32601),
    asked("protocol/error-code", request(1, "prompts/list"), ["say", error("$id", -32601)], gets=-32601),
    asked(
        "protocol/completion-values",
        request(1, "completion/complete", {"ref": REF, "argument": {"name": "a", "value": ""}}),
        ["result", {"completion": {"values": ["x"] * 101}}],
    ),
    replied(
        "protocol/root", request("s", "roots/list"), result("s", {"roots": [{"uri": "https://example.com/project"}]})
    ),
    asked(
        "protocol/related-task",
        request(1, "tasks/result", {"taskId": "t"}),
        ["result", {"content": TEXT}],
        opening=TASKING,
    ),
    answering("protocol/unanswered", ["log", "no more\n"], ["exit", 5], gets=-31011, survives=False),
]

# ── without a handshake ──────────────────────────────────────────────────────────────────────────────────────────────


SUBSCRIBED = {"_meta": {"io.modelcontextprotocol/subscriptionId": "$id"}}
ACKNOWLEDGED = notification("notifications/subscriptions/acknowledged", {"notifications": {}, **SUBSCRIBED})


def subscribed(rule: str, *said: Any) -> Case:
    """The server says this on a subscription, and ends it."""
    end = ["result", {"resultType": "complete", **SUBSCRIBED}]
    message = asks(1, "subscriptions/listen", notifications={})
    return asked(rule, message, *(["say", each] for each in said), end, revision=LATEST)


def prompts(scope: str, **more: Any) -> list[Any]:
    """A page of a list."""
    return ["result", {"prompts": [], **HINTS, "cacheScope": scope, **more}]


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
    first = asks(1, "tools/call", **CALLED)
    again = asks(2, method, **(CALLED if method == "tools/call" else {}), **params)
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
        [[asks(1, "prompts/list")], [asks(2, "prompts/list", cursor="more")]],
        [(1, "result"), (2, "result")],
        on={"#2": [prompts("private", nextCursor="more")], "#4": [prompts("public")]},
        revision=LATEST,
    ),
    stateless("protocol/error-code", ["say", error("$id", -32042)], gets=-32042),
    stateless("protocol/result-type-missing", ["result", HITS]),
    stateless("protocol/input-required", ["result", {"resultType": "input_required"}], gets="isError"),
    retried("protocol/request-state", requestState=STATE.upper(), inputResponses=ROOTS_ANSWER),
    retried("protocol/request-state", inputResponses=ROOTS_ANSWER),
    retried("protocol/retry-target", method="prompts/get", name="a", requestState=STATE),
    retried("protocol/input-responses", requestState=STATE),
    retried("protocol/input-responses", requestState=STATE, inputResponses={**ROOTS_ANSWER, "who": DECLINED}),
    retried("protocol/input-kind", requestState=STATE, inputResponses={"where": DECLINED}),
    asked("protocol/cache-hints", asks(1, "prompts/list"), ["result", {"prompts": [], **COMPLETE}], revision=LATEST),
]

# ── extensions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def declaring(ident: Any, method: str, extensions: dict[str, Any], **params: Any) -> dict[str, Any]:
    """A request that declares extensions."""
    return asks(ident, method, {CAPABILITIES_KEY: {**META[CAPABILITIES_KEY], "extensions": extensions}}, **params)


def declared(rule: str, extensions: dict[str, Any], method: str = "tools/list") -> Case:
    """The client declares these extensions."""
    return asked(rule, declaring(1, method, extensions), revision=LATEST)


def discovered(rule: str, **capabilities: Any) -> Case:
    """The server declares this."""
    answer = {**HINTS, "supportedVersions": [LATEST], "capabilities": {"tools": {}, **capabilities}}
    return asked(rule, asks(1, "server/discover"), ["result", answer], revision=LATEST)


TASKS: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}}
TASK: dict[str, Any] = {
    "resultType": "complete",
    "taskId": "t1",
    "status": "working",
    "createdAt": "2026-08-01T10:00:00Z",
    "lastUpdatedAt": "2026-08-01T10:00:00Z",
    "ttlMs": None,
}
RELATED: dict[str, Any] = {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}
HANDLE: dict[str, Any] = {**TASK, "resultType": "task"}
NOT_FOUND = {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32602, "message": "no such task"}}


def asking(text: str) -> dict[str, Any]:
    """A task that asks for something."""
    question = {"method": "elicitation/create", "params": {"message": text, "requestedSchema": FORM["requestedSchema"]}}
    return {**TASK, "status": "input_required", "inputRequests": {"who": question}}


def started(rule: str, *polls: dict[str, Any], gets: Outcome = "result") -> Case:
    """The server answers a call with a task, and then polls of it with these; the last one *gets* this."""
    turns = [[declaring(1, "tools/call", TASKS, **CALLED)]]
    turns += [[declaring(number, "tasks/get", TASKS, taskId="t1")] for number in range(2, len(polls) + 2)]
    # The first message lists the tools, and after each turn there is one that shows that all goes on.
    answers = {f"#{2 * number}": [["result", each]] for number, each in enumerate((HANDLE, *polls), 1)}
    before: list[tuple[Any, Outcome]] = [(number, "result") for number in range(1, len(polls) + 1)]
    return Case(rule, turns, [*before, (len(polls) + 1, gets)], on=answers, revision=LATEST)


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
        [[asks(1, "server/discover")], [declaring(2, "acme/search", TASKS)]],
        [(1, "result"), (2, -32601)],
        on=discovered("tasks/legacy").on,
        revision=LATEST,
    ),
    declared("protocol/extension", {"com.example/acme": {}}, "acme/search"),
    stateless("protocol/result-type", ["result", HANDLE], gets="isError"),
    asked("tasks/undeclared", asks(1, "tasks/get", taskId="t1"), ["result", TASK], revision=LATEST),
    asked(
        "tasks/handle",
        declaring(1, "tools/call", TASKS, **CALLED),
        ["result", {**HANDLE, "status": "completed", "result": HITS}],
        revision=LATEST,
    ),
    started("tasks/identity", {**TASK, "taskId": "t2"}),
    started("tasks/status", {**TASK, "status": "cancelled"}, TASK),
    started("tasks/time", {**TASK, "lastUpdatedAt": "2026-07-01T10:00:00Z"}),
    started("tasks/input-requests", {**TASK, "status": "input_required", "inputRequests": {}}),
    started("tasks/input-key", asking("Delete a?"), asking("Delete b?")),
    started("tasks/failed", {**TASK, "status": "failed", "error": {"code": -32603, "message": "no"}}),
    started("tasks/related-task", {**TASK, "status": "completed", "result": {**HITS, "_meta": RELATED}}),
    started("contract/output", {**TASK, "status": "completed", "result": {"content": TEXT}}, gets=-31010),
    started("tasks/not-found", TASK, gets=-32602)._replace(
        on={"tools/call": [["result", HANDLE]], "tasks/get": [["say", error("$id", -32602)]]}
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

OTHER_REVISION = {"supported": ["2027-01-01"], "requested": LATEST}

LIFECYCLE = [
    *(
        Case(
            "protocol/era-fallback",
            [[asks(1, "server/discover")], [initialize()]],
            [(1, gets), ("open", "result")],
            on=on,
            revision=LATEST,
            opened=False,
        )
        for gets, on in (
            ("result", discovered("protocol/era-fallback").on),
            (-32022, {"server/discover": [["say", error("$id", -32022, data=OTHER_REVISION)]]}),
        )
    ),
    asked("protocol/before-initialize", request(1, "tools/list"), gets=-32600, opened=False),
    Case(
        "protocol/before-initialized",
        [[initialize()], [request(1, "tools/list")]],
        [("open", "result"), (1, "result")],
        opened=False,
    ),
    Case("protocol/initialize-again", [[AGAIN]], [("again", -32600)]),
    asked(
        "protocol/unsupported-revision",
        asks(1, "tools/list", {next(iter(META)): "2030-01-01"}),
        gets=-32022,
        opened=False,
    ),
    Case(
        "protocol/unknown-revision",
        [[initialize(), INITIALIZED]],
        [("open", "result")],
        on={"initialize": [["result", {**BARE, "protocolVersion": "1.0"}]]},
        opened=False,
    ),
    asked("protocol/capability", call(1), ["say", NOTE], ["good"], opening=BARE),
    asked("protocol/capability", request(1, "prompts/list"), ["result", {"prompts": []}], opening=BARE),
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


CONTRACTS = [
    Case("contract/look-alike-key", [[call(1, words="sea", Words="land")]], [(1, "isError")]),
    Case("contract/look-alike-key", [[call(1, words="sea", LIMIT=0)]], [(1, -32602)], revision="2025-06-18"),
    Case("contract/input", [[call(1, words=5)]], [(1, "isError")]),
    Case("contract/input", [[call(1, limit=0)]], [(1, -32602)], revision="2025-06-18"),
    answering("contract/output", ["result", WRONG_HITS], gets="isError"),
    answering("contract/output", ["result", {"content": TEXT}], gets="isError"),
    answering("contract/error-structured", ["result", {**WRONG_HITS, "isError": True}], gets="isError"),
    replied(
        "contract/elicitation",
        request("s", "elicitation/create", FORM),
        result("s", {"action": "accept", "content": {"age": "ten"}}),
        capabilities={"elicitation": {}},
    ),
    asked("contract/task-support", call(1), opening=TASKING, tools=[tool(execution={"taskSupport": "required"})]),
    Case("contract/unknown-tool", [[call(1, "serach")]], [(1, "result")]),
    Case("contract/unknown-argument", [[call(1, words="sea", limits=3)]], [(1, "result")]),
    Case("contract/unknown-argument", [[call(1, words="sea", limits=3)]], [(1, "isError")], **STRICT),
    Case("contract/input", [[call(1, words=5)]], [(1, "isError")], **UNLISTED),
    asked(
        "contract/input",
        asks(1, "tools/call", name="search", arguments={"words": 5}),
        gets="isError",
        revision=LATEST,
        **UNLISTED,
    ),
    answering("contract/output", ["result", WRONG_HITS], gets="isError", **UNLISTED),
    Case("contract/set-aside", [[call(2, "odd")]], [(2, -32602)], tools=[tool(), NO_SCHEMA], **UNLISTED),
    Case("contract/not-judged", [[call(1, words=5)]], [(1, "result")], **NO_LIST),
    Case("contract/not-judged", [[call(1)]], [(1, -32602)], **NO_LIST, **STRICT),
    reporting("protocol/tool-name", tool("list files")),
    Case(
        "protocol/list-order",
        [[asks(1, "tools/list")]],
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
    reporting("contract/unknown-dialect", tool("odd", inputSchema={"type": "object", "$schema": "urn:mine"})),
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
        [[asks(1, "tools/list")]],
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
    return asked(rule, request(1, "tools/list"), tools=tools, listed=listed, locked={"tools": BOTH_TOOLS})


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
WITH_PAGE = tool(_meta={"ui": {"resourceUri": PAGE}})
CSP = {"connectDomains": ["https://a.example; script-src *"]}
DYNAMIC = {"resources": "dynamic"}


def having(rule: str, *steps: tuple[str, dict[str, Any], Any]) -> Case:
    """The client asks for these, one after the other, and gets these results, or an error with this code."""
    # The first message lists the tools, and after each turn there is one that shows that all goes on.
    turns = [[asks(number, method, **params)] for number, (method, params, _) in enumerate(steps, 1)]
    answers = {f"#{2 * number}": [_answer(answer)] for number, (*_, answer) in enumerate(steps, 1)}
    gets: list[tuple[Any, Outcome]] = [
        (number, answer if isinstance(answer, int) else "result") for number, (*_, answer) in enumerate(steps, 1)
    ]
    return Case(rule, turns, gets, on=answers, revision=LATEST)


def _answer(answer: Any) -> list[Any]:
    if isinstance(answer, int):
        return ["say", error("$id", answer)]
    return ["result", {**HINTS, **answer}]


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
    asked("skills/resources", call(1), opening={**BARE, "capabilities": WITH_SKILLS}),
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
    having("apps/csp", reading(PAGE, text="<html>", mimeType="text/html;profile=mcp-app", _meta={"ui": {"csp": CSP}})),
    having("apps/not-found", ("resources/read", {"uri": PAGE}, -32602))._replace(tools=[WITH_PAGE]),
    answering("apps/content", ["result", {"content": []}], gets="result", tools=[WITH_PAGE]),
]

GROUPS = {
    "frames": FRAMES, "envelopes": ENVELOPES, "methods": METHODS, "stateless": STATELESS, "extensions": EXTENSIONS,
    "skills and apps": SKILLS_AND_APPS, "lifecycle": LIFECYCLE, "contracts": CONTRACTS, "locked": LOCKED,
}  # fmt: skip
CASES = [case for group in GROUPS.values() for case in group]

_HTTP_ONLY = "there are headers over HTTP only: tests/judge/test_headers.py, tests/edges/children/test_shared_child.py"
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

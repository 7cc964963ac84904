"""
What the specification allows and what it forbids, in our words.

What is legal may not be refused, changed or blamed. What is not is found at the message that is wrong, and nothing
else is blamed.
"""

from typing import Any, Final

from saying import (
    ALL,
    CLIENT,
    HANDSHAKE,
    INFORMATION,
    SERVER,
    STATELESS,
    Row,
    Rows,
    answers,
    ask,
    bad,
    bare,
    declines,
    fails,
    gives,
    heard,
    opened,
    over_http,
    says,
    sent,
    shaken,
    since,
    tells,
    wants,
)

TEXT: Final = {"content": [{"type": "text", "text": "x"}]}
PLAIN: Final = {"name": "plain", "inputSchema": {"type": "object"}}
ADD: Final = {
    "name": "add",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a"],
    },
}
COUNT: Final = {
    "name": "count",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
FORM: Final = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
STAMP: Final = "2026-01-01T00:00:00Z"
TASK: Final[dict[str, Any]] = {
    "taskId": "t1",
    "status": "working",
    "createdAt": STAMP,
    "lastUpdatedAt": STAMP,
    "ttl": 60_000,
}
TASKS_SERVER: Final = {**SERVER, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
TASKS_CLIENT: Final = {
    **CLIENT,
    "tasks": {"list": {}, "cancel": {}, "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}}},
}
RELATED: Final = {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}}
SLOW: Final = {**PLAIN, "name": "slow", "execution": {"taskSupport": "optional"}}
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
MESSAGES: Final = [{"role": "user", "content": {"type": "text", "text": "x"}}]
MODEL: Final = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "x"}, "stopReason": "endTurn"}


def listing(*tools: Any) -> list[Any]:
    """The server lists its tools."""
    return [ask("list", "tools/list"), gives("list", "tools/list", {"tools": list(tools)})]


def calling(ident: Any = 1, tool: str = "plain", **more: Any) -> Any:
    """The client calls a tool."""
    return ask(ident, "tools/call", name=tool, **more)


def called(ident: Any = 1, value: Any = TEXT) -> Any:
    """The server answers such a call."""
    return gives(ident, "tools/call", value)


def initialize(revision: str, ident: Any = 1, **more: Any) -> Any:
    """The client begins."""
    return ask(ident, "initialize", protocolVersion=revision, capabilities={}, clientInfo=INFORMATION, **more)


def initialized(revision: str, ident: Any = 1, **more: Any) -> Any:
    """The server agrees."""
    return gives(
        ident, "initialize", {"protocolVersion": revision, "capabilities": {}, "serverInfo": INFORMATION, **more}
    )


LIFECYCLE: Final[Rows] = [
    Row("nothing but the opening", "basic/lifecycle", HANDSHAKE, [opened()]),
    Row("a client asks for an unknown revision and takes the server's", "basic/lifecycle", ("2025-11-25",),
        [initialize("2031-01-01"), initialized("2025-11-25"), tells("notifications/initialized")]),
    Row("a server answers with an older revision", "basic/lifecycle", ("2024-11-05",),
        [initialize("2025-11-25"), initialized("2024-11-05"), tells("notifications/initialized"), ask(2, "ping"),
         gives(2, "ping")]),
    Row("a server answers with a newer revision", "basic/lifecycle", ("2025-06-18",),
        [initialize("2024-11-05"), initialized("2025-06-18"), tells("notifications/initialized")]),
    Row("a server refuses the revision, and the client tries another", "basic/lifecycle", ("2025-06-18",),
        [initialize("2031-01-01"), fails(1, -32602, data={"supported": ["2025-06-18"], "requested": "2031-01-01"}),
         initialize("2025-06-18", 2), initialized("2025-06-18", 2), tells("notifications/initialized")]),
    Row("the client pings before its initialize is answered", "basic/lifecycle", ("2025-06-18",),
        [initialize("2025-06-18"), ask(2, "ping"), gives(2, "ping"), initialized("2025-06-18")]),
    Row("the server pings before the client is ready", "basic/lifecycle", ("2025-03-26",),
        [initialize("2025-03-26"), wants(1, "ping"), answers(1), initialized("2025-03-26"), wants(2, "ping"), answers(2),
         tells("notifications/initialized")]),
    Row("the server logs before the client is ready", "basic/lifecycle", ("2025-11-25",),
        [*shaken("2025-11-25", CLIENT, SERVER)[:2], says("notifications/message", level="info", data="up"),
         tells("notifications/initialized")]),
    Row("no one declares anything", "basic/lifecycle", ALL, [opened(client={}, server={})]),
    Row("experimental capabilities", "basic/lifecycle", ALL,
        [opened(client={"experimental": {"acme": {}}}, server={"experimental": {"acme": {"deep": {}}}})]),
]  # fmt: skip

MESSAGES_ROWS: Final[Rows] = [
    Row("answers come in another order", "basic", ALL,
        [opened(), *listing(PLAIN), calling(1), calling(2), calling(3), called(3), called(1), called(2)]),
    Row("an error has data", "basic", ALL, [opened(), calling(), fails(1, -32603, data={"why": ["x"]})]),
    Row("an error has a code of the application", "basic", ALL, [opened(), calling(), fails(1, 42)]),
    Row("an error has a code of the server's own range", "basic", since("2024-11-05", "2025-11-25"),
        [opened(), calling(), fails(1, -32050)]),
    Row("an error has empty data and message", "basic", ALL,
        [opened(), calling(), bare(heard({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "", "data": None}}))]),
    Row("an error without an id", "basic", since("2025-11-25"),
        [opened(), heard({"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}})]),
    Row("a client pings and is pinged", "basic/utilities/ping", HANDSHAKE,
        [opened(), ask(1, "ping"), gives(1, "ping"), wants(7, "ping"), answers(7)]),
    Row("a batch of requests and its answers", "basic", ("2025-03-26",),
        [opened(), sent([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]),
         heard([{"jsonrpc": "2.0", "id": 2, "result": {"tools": []}}, {"jsonrpc": "2.0", "id": 1, "result": {}}])]),
    Row("a batch of notifications", "basic", ("2025-03-26",),
        [opened(), sent([{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}])]),
    Row("a server batches", "basic", ("2025-03-26",),
        [opened(), heard([{"jsonrpc": "2.0", "id": 5, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]),
         answers(5)]),
    Row("a batch is answered one by one", "basic", ("2025-03-26",),
        [opened(), sent([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}]),
         gives(2, "ping"), gives(1, "ping")]),
]  # fmt: skip

PROGRESS: Final[Rows] = [
    Row("progress rises", "basic/utilities/progress", ALL,
        [opened(), calling(meta={"progressToken": "p"}), says("notifications/progress", progressToken="p", progress=1),
         says("notifications/progress", progressToken="p", progress=2.5, total=10), called()]),
    Row("progress has a message", "basic/utilities/progress", since("2025-03-26"),
        [opened(), calling(meta={"progressToken": 7}),
         says("notifications/progress", progressToken=7, progress=1, message="half"), called()]),
    Row("a token is used again after the answer", "basic/utilities/progress", ALL,
        [opened(), calling(1, meta={"progressToken": 7}), called(1), calling(2, meta={"progressToken": 7}),
         says("notifications/progress", progressToken=7, progress=1), called(2)]),
    Row("the client tells progress", "basic/utilities/progress", HANDSHAKE,
        [opened(), wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=1, _meta={"progressToken": "s"}),
         tells("notifications/progress", progressToken="s", progress=1), answers(1, MODEL)]),
    Row("a request is cancelled and not answered", "basic/utilities/cancellation", ALL,
        [opened(), calling(), tells("notifications/cancelled", requestId=1, reason="enough")]),
    Row("a cancellation and its answer cross", "basic/utilities/cancellation", ALL,
        [opened(), calling(), tells("notifications/cancelled", requestId=1), called()]),
    Row("a cancellation and progress cross", "basic/utilities/cancellation", ALL,
        [opened(), calling(meta={"progressToken": "p"}), tells("notifications/cancelled", requestId=1),
         says("notifications/progress", progressToken="p", progress=1)]),
    Row("a request is cancelled that was just answered", "basic/utilities/cancellation", ALL,
        [opened(), calling(), called(), tells("notifications/cancelled", requestId=1)]),
    Row("a server cancels its own request", "basic/utilities/cancellation", HANDSHAKE,
        [opened(), wants(1, "roots/list"), says("notifications/cancelled", requestId=1)]),
]  # fmt: skip

TOOLS: Final[Rows] = [
    Row("tools in pages", "server/tools", ALL,
        [opened(), ask(1, "tools/list"), gives(1, "tools/list", {"tools": [PLAIN], "nextCursor": "2"}),
         ask(2, "tools/list", cursor="2"), gives(2, "tools/list", {"tools": [ADD]}), calling(3, "add", arguments={"a": 1}),
         called(3)]),
    Row("a page has no entries", "server/utilities/pagination", ALL,
        [opened(), ask(1, "tools/list"), gives(1, "tools/list", {"tools": [], "nextCursor": "2"}),
         ask(2, "tools/list", cursor="2"), gives(2, "tools/list", {"tools": [PLAIN]})]),
    Row("a cursor is not valid", "server/utilities/pagination", ALL,
        [opened(), ask(1, "tools/list", cursor="gone"), fails(1, -32602)]),
    Row("a tool is called without having been listed", "server/tools", ALL, [opened(), calling(), called()]),
    Row("a call without arguments", "server/tools", ALL, [opened(), *listing(PLAIN), calling(), called()]),
    Row("structured content as promised", "server/tools", since("2025-06-18"),
        [opened(), *listing(COUNT), calling(tool="count"), called(value={**TEXT, "structuredContent": {"n": 3}})]),
    Row("structured content that no one promised", "server/tools", since("2025-06-18"),
        [opened(), *listing(PLAIN), calling(), called(value={**TEXT, "structuredContent": {"any": 1}})]),
    Row("a failure needs no structured content", "server/tools", since("2025-06-18"),
        [opened(), *listing(COUNT), calling(tool="count"), called(value={**TEXT, "isError": True})]),
    Row("a tool that promises content fails with it", "server/tools", since("2025-06-18"),
        [opened(), *listing(COUNT), calling(tool="count"),
         called(value={**TEXT, "structuredContent": {"n": 3}, "isError": True})]),
    Row("structured content that is a list", "server/tools", STATELESS,
        [opened(), *listing({**PLAIN, "outputSchema": {"type": "array", "items": {"type": "integer"}}}), calling(),
         called(value={**TEXT, "structuredContent": [1, 2]})]),
    Row("structured content that is null", "server/tools", STATELESS,
        [opened(), *listing({**PLAIN, "outputSchema": {"type": ["null", "string"]}}), calling(),
         called(value={**TEXT, "structuredContent": None})]),
    Row("an unknown tool", "server/tools", ALL, [opened(), calling(tool="nope"), fails(1, -32602)]),
    Row("the list changes", "server/tools", HANDSHAKE,
        [opened(), *listing(PLAIN), says("notifications/tools/list_changed"), ask(2, "tools/list"),
         gives(2, "tools/list", {"tools": [ADD]}), calling(3, "add", arguments={"a": 1}), called(3)]),
    Row("a name with dots and dashes", "server/tools", ALL, [opened(), *listing({**PLAIN, "name": "a.b-c_D.1"})]),
]  # fmt: skip

RESOURCES: Final[Rows] = [
    Row("a template with a query", "server/resources", ALL,
        [opened(), ask(1, "resources/templates/list"),
         gives(1, "resources/templates/list", {"resourceTemplates": [{"uriTemplate": "acme://s{?q,page*}", "name": "f"}]})]),
    Row("a resource that is not there", "server/resources", HANDSHAKE,
        [opened(), ask(1, "resources/read", uri="file:///nope"), fails(1, -32002, data={"uri": "file:///nope"})]),
    Row("a resource that is not there, in the newest revision", "server/resources", STATELESS,
        [opened(), ask(1, "resources/read", uri="file:///nope"), fails(1, -32602, data={"uri": "file:///nope"})]),
    Row("a scheme of one's own", "server/resources", ALL,
        [opened(), ask(1, "resources/read", uri="note+x.y://a"),
         gives(1, "resources/read", {"contents": [{"uri": "note+x.y://a", "text": "1"}]})]),
    Row("subscribing and unsubscribing", "server/resources", HANDSHAKE,
        [opened(), ask(1, "resources/subscribe", uri="file:///a"), gives(1, "resources/subscribe"),
         says("notifications/resources/updated", uri="file:///a"), ask(2, "resources/unsubscribe", uri="file:///a"),
         gives(2, "resources/unsubscribe")]),
    Row("the list of resources changes", "server/resources", HANDSHAKE,
        [opened(), says("notifications/resources/list_changed")]),
]  # fmt: skip

PROMPTS: Final[Rows] = [
    Row("an unknown prompt", "server/prompts", ALL, [opened(), ask(1, "prompts/get", name="nope"), fails(1, -32602)]),
    Row("the list of prompts changes", "server/prompts", HANDSHAKE, [opened(), says("notifications/prompts/list_changed")]),
]  # fmt: skip

PROMPT: Final = {"type": "ref/prompt", "name": "p"}
COMPLETION: Final[Rows] = [
    Row("a hundred values", "server/utilities/completion", ALL,
        [opened(), ask(1, "completion/complete", ref=PROMPT, argument={"name": "a", "value": "x"}),
         gives(1, "completion/complete", {"completion": {"values": [str(n) for n in range(100)], "hasMore": True}})]),
]  # fmt: skip

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
LOGGING: Final[Rows] = [
    *(Row(f"a log message of level {level}", "server/utilities/logging", HANDSHAKE,
          [opened(), says("notifications/message", level=level, data={"n": [1]}, logger="l")]) for level in LEVELS),
    Row("a level is set", "server/utilities/logging", HANDSHAKE,
        [opened(), ask(1, "logging/setLevel", level="error"), gives(1, "logging/setLevel"),
         says("notifications/message", level="error", data="x")]),
    Row("an invalid level is refused", "server/utilities/logging", HANDSHAKE,
        [opened(), ask(1, "logging/setLevel", level="info"), fails(1, -32602)]),
    Row("a server that logs need not know logging/setLevel", "server/utilities/logging", HANDSHAKE,
        [opened(), ask(1, "logging/setLevel", level="info"), fails(1, -32601)]),
    Row("a server with resources need not know templates", "server/resources", ALL,
        [opened(), ask(1, "resources/templates/list"), fails(1, -32601)]),
    Row("a server with subscriptions need not know how to end one", "server/resources", HANDSHAKE,
        [opened(), ask(1, "resources/unsubscribe", uri="file:///a"), fails(1, -32601)]),
]  # fmt: skip

ROOTS: Final[Rows] = [
    Row("roots", "client/roots", HANDSHAKE,
        [opened(), wants(1, "roots/list"), answers(1, {"roots": [{"uri": "file:///home/a", "name": "A"}, {"uri": "file:///b"}]})]),
    Row("roots change", "client/roots", HANDSHAKE,
        [opened(), tells("notifications/roots/list_changed"), wants(1, "roots/list"), answers(1, {"roots": []})]),
    Row("an error of the client", "client/roots", HANDSHAKE, [opened(), wants(1, "roots/list"), declines(1, -32603)]),
]  # fmt: skip

TOOLED: Final = {**CLIENT, "sampling": {"tools": {}, "context": {}}}
SAMPLING: Final[Rows] = [
    Row("a model is asked", "client/sampling", HANDSHAKE,
        [opened(), wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=100), answers(1, MODEL)]),
    Row("the user says no", "client/sampling", HANDSHAKE,
        [opened(), wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=1), declines(1, -1)]),
    Row("the model may use tools", "client/sampling", ("2025-11-25",),
        [opened(client=TOOLED), wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=1, tools=[PLAIN],
                                      toolChoice={"mode": "auto"}),
         answers(1, {**MODEL, "content": [{"type": "tool_use", "id": "u", "name": "plain", "input": {}}], "stopReason": "toolUse"})]),
    Row("results of tools go to the model", "client/sampling", ("2025-11-25",),
        [opened(client=TOOLED), wants(1, "sampling/createMessage", maxTokens=1, tools=[PLAIN], messages=[
            *MESSAGES, {"role": "assistant", "content": [{"type": "tool_use", "id": "u", "name": "plain", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "toolUseId": "u", "content": TEXT["content"]}]}]),
         answers(1, MODEL)]),
]  # fmt: skip


def eliciting(schema: Any, content: Any) -> list[Any]:
    """A form is asked for, and filled in."""
    asked = wants(1, "elicitation/create", message="?", requestedSchema=schema)
    return [opened(), asked, answers(1, {"action": "accept", "content": content})]


def form(**properties: Any) -> dict[str, Any]:
    """A form of these fields."""
    return {"type": "object", "properties": properties}


MODERN: Final = ("2025-11-25",)
ASKING: Final = ("2025-06-18", "2025-11-25")
ELICITATION: Final[Rows] = [
    Row("a form is filled in", "client/elicitation", ASKING, eliciting(FORM, {"name": "Ada"})),
    *(Row(f"a form is answered with {action}", "client/elicitation", ASKING,
          [opened(), wants(1, "elicitation/create", message="?", requestedSchema=FORM), answers(1, {"action": action})])
      for action in ("decline", "cancel")),
    Row("a field is left out", "client/elicitation", ASKING, eliciting(form(a={"type": "string"}), {})),
    Row("a form without required fields is accepted as it is", "client/elicitation", ASKING,
        [opened(), wants(1, "elicitation/create", message="?", requestedSchema=form(a={"type": "string"})), answers(1, {"action": "accept"})]),
    Row("a page to visit", "client/elicitation", MODERN,
        [opened(client={**CLIENT, "elicitation": {"form": {}, "url": {}}}),
         wants(1, "elicitation/create", mode="url", message="?", url="https://example.com/x", elicitationId="e"),
         answers(1, {"action": "accept"}), says("notifications/elicitation/complete", elicitationId="e")]),
    Row("a page must be visited first", "client/elicitation", MODERN,
        [opened(client={**CLIENT, "elicitation": {"url": {}}}), calling(),
         fails(1, -32042, data={"elicitations": [{"mode": "url", "elicitationId": "e", "message": "?", "url": "https://example.com"}]})]),
]  # fmt: skip

TASKS: Final[Rows] = [
    Row("a call becomes a task", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing(SLOW), calling(tool="slow", task={"ttl": 60_000}), called(value={"task": TASK}),
         ask(2, "tasks/get", taskId="t1"), gives(2, "tasks/get", {**TASK, "status": "completed", "pollInterval": 5}),
         ask(3, "tasks/result", taskId="t1"), gives(3, "tasks/result", {**TEXT, **RELATED})]),
    Row("the same tool is called without a task", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing(SLOW), calling(tool="slow"), called()]),
    Row("a task is cancelled", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing(SLOW), calling(tool="slow", task={}), called(value={"task": TASK}),
         ask(2, "tasks/cancel", taskId="t1"), gives(2, "tasks/cancel", {**TASK, "status": "cancelled"})]),
    Row("tasks are listed", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), ask(2, "tasks/list"), gives(2, "tasks/list", {"tasks": [TASK], "nextCursor": "n"}),
         ask(3, "tasks/list", cursor="n"), gives(3, "tasks/list", {"tasks": []})]),
    Row("the status of a task is sent", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing(SLOW), calling(tool="slow", task={}), called(value={"task": TASK}),
         says("notifications/tasks/status", **{**TASK, "status": "failed", "statusMessage": "no"})]),
    Row("progress of a task goes on after its handle", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing(SLOW), calling(tool="slow", task={}, meta={"progressToken": 1}),
         called(value={"task": TASK}), says("notifications/progress", progressToken=1, progress=1)]),
    Row("an unknown task", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), ask(2, "tasks/get", taskId="nope"), fails(2, -32602)]),
    Row("a model is asked as a task", "basic/utilities/tasks", MODERN,
        [opened(client=TASKS_CLIENT), wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=1, task={}),
         answers(1, {"task": TASK}), wants(2, "tasks/get", taskId="t1"), answers(2, {**TASK, "status": "completed"}),
         wants(3, "tasks/result", taskId="t1"), answers(3, {**MODEL, **RELATED})]),
]  # fmt: skip

NOTED: Final = {"_meta": {SUBSCRIPTION: 9}}
LISTENING: Final[list[Any]] = [
    opened(),
    ask(9, "subscriptions/listen", notifications={"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}),
    says("notifications/subscriptions/acknowledged",
         notifications={"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}, **NOTED),
]  # fmt: skip
ASK_NAME: Final = {
    "name": {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": FORM}}
}
ANSWER_NAME: Final[dict[str, Any]] = {"name": {"action": "accept", "content": {"name": "Ada"}}}
EXTENDED: Final = {**CLIENT, "extensions": {"io.modelcontextprotocol/tasks": {}}}
PROBE: Final = bare(
    ask(
        1,
        "server/discover",
        _meta={
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    )
)
"""How a client of both eras asks which one the server has."""
DISCOVERED: Final = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {},
    "ttlMs": 0,
    "cacheScope": "private",
}
NEWEST: Final[Rows] = [
    Row("no discovery at all", "basic/versioning", STATELESS, [*listing(PLAIN), calling(), called()]),
    Row("discovery twice", "basic/versioning", STATELESS, [opened(), opened()]),
    Row("a client that is refused falls back to the handshake", "basic/versioning", ("2025-11-25",),
        [PROBE, fails(1, -32601), *shaken("2025-11-25", CLIENT, SERVER)]),
    *(Row(f"a client falls back to the handshake after {what}", "basic/transports/stdio", ("2025-11-25",),
          [PROBE, answer, *shaken("2025-11-25", CLIENT, SERVER)])
      for what, answer in (
          ("invalid params", fails(1, -32602)),
          ("an error of the server's own", fails(1, -32000)),
          ("a list of handshake revisions", fails(1, -32022, data={"supported": ["2025-11-25"], "requested": "2026-07-28"})),
          ("a list of both eras", heard({"jsonrpc": "2.0", "id": 1, "result": {**DISCOVERED, "supportedVersions": ["2026-07-28", "2025-11-25"]}})),
      )),
    Row("a client falls back to the handshake before the probe is answered", "basic/transports/stdio", ("2025-11-25",),
        [PROBE, shaken("2025-11-25", CLIENT, SERVER)[0], heard({"jsonrpc": "2.0", "id": 1, "result": DISCOVERED}),
         *shaken("2025-11-25", CLIENT, SERVER)[1:]]),
    Row("a client gives the probe up and falls back to the handshake", "basic/transports/stdio", ("2025-11-25",),
        [PROBE, tells("notifications/cancelled", requestId=1), heard({"jsonrpc": "2.0", "id": 1, "result": DISCOVERED}),
         *shaken("2025-11-25", CLIENT, SERVER)]),
    Row("a client tries another revision of the server's list", "basic/versioning", STATELESS,
        [ask(1, "server/discover"), fails(1, -32022, data={"supported": ["2027-01-01", "2026-07-28"], "requested": "2026-07-28"}),
         *listing(PLAIN)]),
    Row("the client says who it is", "basic", STATELESS,
        [opened(), calling(meta={"io.modelcontextprotocol/clientInfo": INFORMATION}), called()]),
    Row("a revision is not supported", "basic/versioning", STATELESS,
        [ask(1, "tools/list"), fails(1, -32022, data={"supported": ["2025-11-25"], "requested": "2026-07-28"})]),
    Row("a capability is missing", "basic", STATELESS,
        [opened(), calling(declares={}), fails(1, -32021, data={"requiredCapabilities": {"elicitation": {}}})]),
    Row("a prompt asks for roots", "basic/patterns/mrtr", STATELESS,
        [opened(), ask(1, "prompts/get", name="p"),
         gives(1, "prompts/get", {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}),
         ask(2, "prompts/get", name="p", inputResponses={"r": {"roots": [{"uri": "file:///a"}]}}),
         gives(2, "prompts/get", {"messages": []})]),
    Row("a resource asks for a model", "basic/patterns/mrtr", STATELESS,
        [opened(), ask(1, "resources/read", uri="file:///a"),
         gives(1, "resources/read", {"resultType": "input_required", "inputRequests": {
             "m": {"method": "sampling/createMessage", "params": {"messages": MESSAGES, "maxTokens": 1}}}})]),
    Row("a subscription is ended by the server", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING, gives(9, "subscriptions/listen", {"_meta": {SUBSCRIPTION: 9}})]),
    Row("tasks of the extension", "extensions/tasks", STATELESS,
        [opened(server={**SERVER, "extensions": {"io.modelcontextprotocol/tasks": {}}}), calling(declares=EXTENDED),
         called(value={"resultType": "complete", **TEXT})]),
    Row("headers repeat the body", "basic/transports/streamable-http", STATELESS, [over_http(calling()), called()]),
    Row("headers of a method without a name", "basic/transports/streamable-http", STATELESS,
        [over_http(ask(1, "tools/list")), gives(1, "tools/list", {"tools": []})]),
    Row("a name in Base64", "basic/transports/streamable-http", STATELESS,
        [over_http(calling(tool="é"), mcp_name="=?base64?w6k=?="), called()]),
]  # fmt: skip

LEGAL: Final[Rows] = [
    *LIFECYCLE, *MESSAGES_ROWS, *PROGRESS, *TOOLS, *RESOURCES, *PROMPTS, *COMPLETION, *LOGGING, *ROOTS, *SAMPLING,
    *ELICITATION, *TASKS, *NEWEST,
]  # fmt: skip

# ── what is not ──────────────────────────────────────────────────────────────────────────────────────────────────────


def without(what: dict[str, Any], *names: str) -> dict[str, Any]:
    """*what* without some of its members."""
    return {name: value for name, value in what.items() if name not in names}


BAD_FRAMES: Final[Rows] = [
    *(Row(f"a frame that is {words}", "basic/transports", ALL, [opened(), bad(rule, sent(frame))]) for words, rule, frame in (
        ("no JSON", "syntax/json", b"hello"),
        ("cut off", "syntax/json", b'{"jsonrpc":"2.0","id":1'),
        ("two values", "syntax/json", b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}'),
        ("no UTF-8", "syntax/utf8", b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}'),
        ("marked with a BOM", "syntax/bom", b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}'),
        ("JSON with NaN", "syntax/number", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}'),
        ("half a surrogate pair", "syntax/surrogate", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800"}}'),
        ("a name twice", "syntax/duplicate-key", b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'),
        ("nested without end", "syntax/depth", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 600 + b"]" * 600 + b"}}"),
        ("a number", "envelope/message", b"42"),
        ("a text", "envelope/message", b'"ping"'),
        ("null", "envelope/message", b"null"),
    )),
    Row("a log line on the server's output", "basic/transports", HANDSHAKE, [opened(), bad("syntax/json", heard(b"Server started"))]),
]  # fmt: skip

PING: Final = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
BAD_ENVELOPE: Final[Rows] = [
    *(Row(f"a request with {words}", "basic", HANDSHAKE, [opened(), bad(rule, sent(message))]) for words, rule, message in (
        ("no jsonrpc", "envelope/jsonrpc", without(PING, "jsonrpc")),
        ("another jsonrpc", "envelope/jsonrpc", {**PING, "jsonrpc": "1.0"}),
        ("a number for jsonrpc", "envelope/jsonrpc", {**PING, "jsonrpc": 2.0}),
        ("an id that is null", "envelope/id", {**PING, "id": None}),
        ("an id that is true", "envelope/id", {**PING, "id": True}),
        ("an id with a fraction", "envelope/id", {**PING, "id": 1.5}),
        ("an id that is an object", "envelope/id", {**PING, "id": {}}),
        ("a method that is a number", "envelope/method", {**PING, "method": 5}),
        ("params that are a list", "envelope/params", {**PING, "params": [1]}),
        ("params that are null", "envelope/params", {**PING, "params": None}),
        ("a result as well", "envelope/members", {**PING, "result": {}}),
        ("an error as well", "envelope/members", {**PING, "error": {"code": 1, "message": "x"}}),
    )),
    *(Row(f"an answer with {words}", "basic", ALL, [opened(), calling(), bad(rule, heard(message))]) for words, rule, message in (
        ("neither result nor error", "envelope/members", {"jsonrpc": "2.0", "id": 1}),
        ("both result and error", "envelope/members", {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}}),
        ("a result that is text", "envelope/result", {"jsonrpc": "2.0", "id": 1, "result": "ok"}),
        ("a result that is null", "envelope/result", {"jsonrpc": "2.0", "id": 1, "result": None}),
        ("an error that is text", "envelope/error", {"jsonrpc": "2.0", "id": 1, "error": "no"}),
        ("an error without a code", "envelope/error", {"jsonrpc": "2.0", "id": 1, "error": {"message": "x"}}),
        ("an error without a message", "envelope/error", {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}),
        ("a code that is text", "envelope/error", {"jsonrpc": "2.0", "id": 1, "error": {"code": "1", "message": "x"}}),
        ("a code with a fraction", "envelope/error", {"jsonrpc": "2.0", "id": 1, "error": {"code": 1.5, "message": "x"}}),
        ("a message that is a number", "envelope/error", {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": 5}}),
    )),
    Row("a batch where there is none", "basic", ("2024-11-05", "2025-06-18", "2025-11-25"), [opened(), bad("envelope/batch", sent([PING]))]),
    Row("an empty batch", "basic", ("2025-03-26",), [opened(), bad("envelope/batch", sent([]))]),
    Row("initialize in a batch", "basic/lifecycle", ("2025-03-26",),
        [opened(), bad("protocol/initialize-again", sent([initialize("2025-03-26", 9).message]))]),
    Row("an error with an id that is null", "basic", ALL,
        [opened(), bad("envelope/null-id", heard({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}}))]),
]  # fmt: skip

BAD_LIFECYCLE: Final[Rows] = [
    Row("a request before initialize", "basic/lifecycle", HANDSHAKE, [bad("protocol/before-initialize", bare(ask(1, "tools/list")))]),
    Row("a notification before initialize", "basic/lifecycle", HANDSHAKE,
        [bad("protocol/before-initialize", tells("notifications/roots/list_changed"))]),
    Row("a server that speaks first", "basic/lifecycle", HANDSHAKE, [bad("protocol/before-initialize", wants(1, "roots/list"))]),
    Row("a request before the client has said that it is ready", "basic/lifecycle", ("2025-06-18",),
        [initialize("2025-06-18"), initialized("2025-06-18"), bad("protocol/before-initialized", ask(2, "tools/list"))]),
    Row("a server asks before the client is ready", "basic/lifecycle", ("2025-06-18",),
        [*shaken("2025-06-18", CLIENT, SERVER)[:2], bad("protocol/before-initialized", wants(2, "roots/list"))]),
    Row("initialize twice", "basic/lifecycle", ("2025-11-25",), [opened(), bad("protocol/initialize-again", initialize("2025-11-25"))]),
    Row("initialize without a revision", "basic/lifecycle", ("2025-11-25",),
        [bad("protocol/params", ask(1, "initialize", capabilities={}, clientInfo=INFORMATION))]),
    Row("an answer to initialize without a revision", "basic/lifecycle", ("2025-11-25",),
        [initialize("2025-11-25"), bad("protocol/result", gives(1, "initialize", {"capabilities": {}, "serverInfo": INFORMATION}))]),
    Row("initialize is cancelled", "basic/utilities/cancellation", ("2025-06-18",),
        [initialize("2025-06-18"), bad("protocol/cancel", tells("notifications/cancelled", requestId=1))]),
]  # fmt: skip

BAD_METHODS: Final[Rows] = [
    Row("a method that no one knows", "basic", ALL, [opened(), bad("protocol/method", ask(1, "tools/run"))]),
    Row("a notification that no one knows", "basic", ALL, [opened(), bad("protocol/method", tells("notifications/nope"))]),
    Row("a notification of the server that no one knows", "basic", ALL, [opened(), bad("protocol/method", says("notifications/nope"))]),
    Row("a method of a later revision", "client/elicitation", ("2024-11-05", "2025-03-26"),
        [opened(), bad("protocol/method", wants(1, "elicitation/create", message="?", requestedSchema=FORM))]),
    Row("tasks before there were any", "basic/utilities/tasks", since("2024-11-05", "2025-06-18"),
        [opened(), bad("protocol/method", ask(1, "tasks/get", taskId="t"))]),
    *(Row(f"{method}, which is gone", "schema", STATELESS, [opened(), bad("protocol/method", ask(1, method, **params))])
      for method, params in (("ping", {}), ("logging/setLevel", {"level": "info"}), ("resources/subscribe", {"uri": "file:///a"}),
                             ("resources/unsubscribe", {"uri": "file:///a"}), ("initialize", {}))),
    Row("a server asks where servers ask nothing", "basic", STATELESS,
        [opened(), bad("protocol/method", wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=1))]),
    Row("a client asks what only servers ask", "schema", HANDSHAKE, [opened(), bad("protocol/direction", ask(1, "roots/list"))]),
    Row("a server asks what only clients ask", "schema", HANDSHAKE, [opened(), bad("protocol/direction", wants(1, "tools/list"))]),
    Row("a client tells what only servers tell", "schema", ALL,
        [opened(), bad("protocol/direction", tells("notifications/tools/list_changed"))]),
    Row("a server says that it is initialized", "schema", HANDSHAKE, [opened(), bad("protocol/direction", says("notifications/initialized"))]),
    Row("a request without an id", "schema", HANDSHAKE, [opened(), bad("protocol/method", tells("tools/list"))]),
    Row("a notification with an id", "schema", HANDSHAKE, [opened(), bad("protocol/method", ask(1, "notifications/roots/list_changed"))]),
]  # fmt: skip

BAD_IDS: Final[Rows] = [
    Row("an answer to nothing", "basic", ALL, [opened(), bad("protocol/unsolicited", gives(99, ""))]),
    Row("an answer with the id as text", "basic", ALL, [opened(), calling(), bad("protocol/unsolicited", called("1"))]),
    Row("an error to nothing", "basic", ALL, [opened(), bad("protocol/unsolicited", fails(99, -32603))]),
    Row("two answers", "basic", ALL, [opened(), calling(), called(), bad("protocol/answered-twice", called())]),
    Row("a result after an error", "basic", ALL, [opened(), calling(), fails(1, -32603), bad("protocol/answered-twice", called())]),
    Row("the id of an open request", "basic", ALL, [opened(), calling(), bad("protocol/id-in-use", calling())]),
    Row("a client answers what no one asked", "basic", ALL, [opened(), bad("protocol/unsolicited", answers(4))]),
]  # fmt: skip

BAD_PROGRESS: Final[Rows] = [
    Row("progress of nothing", "basic/utilities/progress", ALL,
        [opened(), bad("protocol/progress", says("notifications/progress", progressToken="?", progress=1))]),
    Row("progress after the answer", "basic/utilities/progress", ALL,
        [opened(), calling(meta={"progressToken": 1}), called(),
         bad("protocol/progress", says("notifications/progress", progressToken=1, progress=1))]),
    Row("progress that does not rise", "basic/utilities/progress", ALL,
        [opened(), calling(meta={"progressToken": 1}), says("notifications/progress", progressToken=1, progress=5),
         bad("protocol/progress", says("notifications/progress", progressToken=1, progress=5))]),
    Row("progress that falls", "basic/utilities/progress", ALL,
        [opened(), calling(meta={"progressToken": 1}), says("notifications/progress", progressToken=1, progress=5),
         bad("protocol/progress", says("notifications/progress", progressToken=1, progress=4.5))]),
    Row("cancelling nothing", "basic/utilities/cancellation", ALL,
        [opened(), bad("protocol/cancel", tells("notifications/cancelled", requestId=77))]),
    Row("cancelling the other party's request", "basic/utilities/cancellation", HANDSHAKE,
        [opened(), wants(5, "roots/list"), bad("protocol/cancel", tells("notifications/cancelled", requestId=5))]),
    Row("a server cancels a call", "basic/utilities/cancellation", STATELESS,
        [opened(), calling(), bad("protocol/cancel-other", says("notifications/cancelled", requestId=1))]),
]  # fmt: skip


def listed(*tools: Any) -> Any:
    """The server answers a list."""
    return gives(1, "tools/list", {"tools": list(tools)})


BAD_TOOLS: Final[Rows] = [
    *(Row(f"a list with {words}", "server/tools", ALL, [opened(), ask(1, "tools/list"), bad(rule, listed(*tools))])
      for words, rule, tools in (
        ("a tool without a name", "protocol/result", [without(PLAIN, "name")]),
        ("a tool without inputSchema", "protocol/result", [without(PLAIN, "inputSchema")]),
        ("an inputSchema that is no object's", "protocol/result", [{**PLAIN, "inputSchema": {"type": "string"}}]),
        ("a tool that is text", "protocol/result", ["plain"]),
        ("two tools of one name", "contract/duplicate-tool", [PLAIN, PLAIN]),
      )),
    Row("a list without tools", "server/tools", ALL, [opened(), ask(1, "tools/list"), bad("protocol/result", gives(1, "tools/list", {}))]),
    Row("a call without a name", "server/tools", ALL, [opened(), bad("protocol/params", ask(1, "tools/call", arguments={}))]),
    Row("an argument is missing", "server/tools", ALL,
        [opened(), *listing(ADD), bad("contract/input", calling(tool="add", arguments={"b": 1}))]),
    Row("an argument of the wrong type", "server/tools", ALL,
        [opened(), *listing(ADD), bad("contract/input", calling(tool="add", arguments={"a": "one"}))]),
    Row("a tool that was not listed", "server/tools", ALL, [opened(), *listing(ADD), bad("contract/unknown-tool", calling(tool="sub"))]),
    *(Row(f"a result with {words}", "server/tools", ALL, [opened(), calling(), bad("protocol/result", called(value=value))])
      for words, value in (
        ("no content", {"isError": False}),
        ("text without text", {"content": [{"type": "text"}]}),
        ("content of a type that no one knows", {"content": [{"type": "video", "data": "AA==", "mimeType": "video/mp4"}]}),
      )),
    Row("sound before there was any", "server/tools", ("2024-11-05",),
        [opened(), calling(), bad("protocol/result", called(value={"content": [{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}]}))]),
    Row("a link before there were any", "server/tools", ("2024-11-05", "2025-03-26"),
        [opened(), calling(), bad("protocol/result", called(value={"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]}))]),
    Row("structured content that is a list, too early", "server/tools", ASKING,
        [opened(), calling(), bad("protocol/result", called(value={**TEXT, "structuredContent": [1]}))]),
    Row("structured content that is missing", "server/tools", since("2025-06-18"),
        [opened(), *listing(COUNT), calling(tool="count"), bad("contract/output", called())]),
    Row("structured content other than promised", "server/tools", since("2025-06-18"),
        [opened(), *listing(COUNT), calling(tool="count"), bad("contract/output", called(value={**TEXT, "structuredContent": {"n": "3"}}))]),
    Row("a failure with structured content other than promised", "server/tools", since("2025-06-18"),
        [opened(), *listing(COUNT), calling(tool="count"),
         bad("contract/error-structured", called(value={**TEXT, "structuredContent": {"n": "3"}, "isError": True}))]),
    Row("a capability that was not declared", "server/tools", ALL,
        [opened(server={}), bad("protocol/capability", ask(1, "tools/list"))]),
    Row("a change of a list that was not declared", "server/tools", HANDSHAKE,
        [opened(server={"tools": {}}), bad("protocol/capability", says("notifications/tools/list_changed"))]),
    Row("ping is unknown to a server", "basic/utilities/ping", HANDSHAKE,
        [opened(), ask(1, "ping"), bad("protocol/error-code", fails(1, -32601))]),
    Row("ping is unknown to a client", "basic/utilities/ping", HANDSHAKE,
        [opened(), wants(1, "ping"), bad("protocol/error-code", declines(1, -32601))]),
    Row("tools/list is unknown to a server with tools", "server/tools", ALL,
        [opened(), ask(1, "tools/list"), bad("protocol/error-code", fails(1, -32601))]),
    Row("tools/call is unknown to a server with tools", "server/tools", ALL,
        [opened(), calling(), bad("protocol/error-code", fails(1, -32601))]),
]  # fmt: skip


def reading(value: Any) -> Any:
    """A resource is read."""
    return gives(1, "resources/read", value)


BAD_RESOURCES: Final[Rows] = [
    Row("a place that is no URI", "server/resources", ALL,
        [opened(), ask(1, "resources/list"), bad("protocol/format", gives(1, "resources/list", {"resources": [{"uri": "a b", "name": "a"}]}))]),
    Row("reading what is no URI", "server/resources", ALL, [opened(), bad("protocol/format", ask(1, "resources/read", uri="readme.md"))]),
    Row("subscribing without the capability", "server/resources", HANDSHAKE,
        [opened(server={"resources": {}}), bad("protocol/capability", ask(1, "resources/subscribe", uri="file:///a"))]),
    Row("prompts without the capability", "server/prompts", ALL, [opened(server={"tools": {}}), bad("protocol/capability", ask(1, "prompts/list"))]),
    Row("more than a hundred values", "server/utilities/completion", HANDSHAKE,
        [opened(), ask(1, "completion/complete", ref=PROMPT, argument={"name": "a", "value": ""}),
         bad("protocol/completion-values", gives(1, "completion/complete", {"completion": {"values": ["x"] * 101}}))]),
    Row("more than a hundred values, in the newest revision", "server/utilities/completion", STATELESS,
        [opened(), ask(1, "completion/complete", ref=PROMPT, argument={"name": "a", "value": ""}),
         bad("protocol/result", gives(1, "completion/complete", {"completion": {"values": ["x"] * 101}}))]),
]  # fmt: skip

BAD_CLIENTS: Final[Rows] = [
    Row("logs without the capability", "server/utilities/logging", HANDSHAKE,
        [opened(server={}), bad("protocol/capability", says("notifications/message", level="info", data="x"))]),
    Row("roots without the capability", "client/roots", HANDSHAKE, [opened(client={}), bad("protocol/capability", wants(1, "roots/list"))]),
    Row("a root that is no file", "client/roots", HANDSHAKE,
        [opened(), wants(1, "roots/list"), bad("protocol/root", answers(1, {"roots": [{"uri": "https://example.com/"}]}))]),
    Row("a model without the capability", "client/sampling", HANDSHAKE,
        [opened(client={}), bad("protocol/capability", wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=1))]),
    Row("a page is required of a client that has only forms", "client/elicitation", MODERN,
        [opened(), calling(), bad("protocol/capability", fails(1, -32042, data={"elicitations": [
            {"mode": "url", "message": "?", "url": "https://example.com", "elicitationId": "e"}]}))]),
    *(Row(f"a client that declared all of {name} does not know it", "basic", MODERN,
          [opened(client={**CLIENT, name: modes}), wants(1, method, **params), bad("protocol/error-code", declines(1, -32601))])
      for name, modes, method, params in (
          ("elicitation", {"form": {}, "url": {}}, "elicitation/create", {"message": "?", "requestedSchema": FORM}),
          ("sampling", {"tools": {}}, "sampling/createMessage", {"messages": MESSAGES, "maxTokens": 1}))),
    Row("a form without the capability", "client/elicitation", ASKING,
        [opened(client={}), bad("protocol/capability", wants(1, "elicitation/create", message="?", requestedSchema=FORM))]),
    Row("a form in a form", "client/elicitation", ASKING,
        [opened(), bad("protocol/params", wants(1, "elicitation/create", message="?", requestedSchema=form(a={"type": "object"})))]),
]  # fmt: skip

BAD_TASKS: Final[Rows] = [
    Row("a task for a server that has none", "basic/utilities/tasks", MODERN,
        [opened(), *listing(PLAIN), bad("protocol/capability", calling(task={}))]),
    Row("a task of a tool that forbids it", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing({**PLAIN, "execution": {"taskSupport": "forbidden"}}), bad("contract/task-support", calling(task={}))]),
    Row("a tool that needs a task is called without", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing({**PLAIN, "execution": {"taskSupport": "required"}}), bad("contract/task-support", calling())]),
    Row("a task that is no task", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing(SLOW), calling(tool="slow", task={}), bad("protocol/result", called())]),
    Row("the result of a task breaks the schema", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing(SLOW), calling(tool="slow", task={}), called(value={"task": TASK}),
         ask(2, "tasks/result", taskId="t1"), bad("protocol/result", gives(2, "tasks/result", {"content": "x", **RELATED}))]),
    Row("tasks are not declared", "basic/utilities/tasks", MODERN, [opened(), bad("protocol/capability", ask(1, "tasks/list"))]),
]  # fmt: skip

BAD_NEWEST: Final[Rows] = [
    Row("a revision that no one knows", "basic/versioning", STATELESS,
        [opened(), bad("protocol/unsupported-revision", bare(ask(1, "tools/list", _meta={
            "io.modelcontextprotocol/protocolVersion": "2031-01-01", "io.modelcontextprotocol/clientCapabilities": {}})))]),
    Row("input as an answer of its own", "basic/patterns", STATELESS,
        [opened(), calling(), called(value={"resultType": "input_required", "inputRequests": ASK_NAME}),
         bad("protocol/unsolicited", answers("name", ANSWER_NAME["name"]))]),
    *(Row(f"an error {code} without its data", "basic", STATELESS, [opened(), calling(), bad("protocol/error", fails(1, code))])
      for code in (-32021, -32022)),
    Row("a subscription is ended with another id", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING, bad("protocol/subscription", gives(9, "subscriptions/listen", {"_meta": {SUBSCRIPTION: 77}}))]),
    Row("headers without the method", "basic/transports/streamable-http", STATELESS,
        [bad("protocol/header-missing", over_http(calling(), mcp_method="none"))]),
    Row("headers without the name", "basic/transports/streamable-http", STATELESS,
        [bad("protocol/header-missing", over_http(calling(), mcp_name="none"))]),
    Row("a header that names another tool", "basic/transports/streamable-http", STATELESS,
        [bad("protocol/header-mismatch", over_http(calling(), mcp_name="other"))]),
    Row("a header that names another method", "basic/transports/streamable-http", STATELESS,
        [bad("protocol/header-mismatch", over_http(calling(), mcp_method="tools/list"))]),
    Row("a header in broken Base64", "basic/transports/streamable-http", STATELESS,
        [bad("protocol/header-encoding", over_http(calling(tool="é"), mcp_name="=?base64?w6k?="))]),
]  # fmt: skip

ILLEGAL: Final[Rows] = [
    *BAD_FRAMES, *BAD_ENVELOPE, *BAD_LIFECYCLE, *BAD_METHODS, *BAD_IDS, *BAD_PROGRESS, *BAD_TOOLS, *BAD_RESOURCES, *BAD_CLIENTS, *BAD_TASKS, *BAD_NEWEST,
]  # fmt: skip

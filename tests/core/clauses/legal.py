"""What the specification allows, in our words: nobody may refuse, change or blame any of it."""

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
IMAGE: Final = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
AUDIO: Final = {"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"}
EMBEDDED: Final = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "x", "mimeType": "text/plain"}}
LINK: Final = {"type": "resource_link", "uri": "file:///a.txt", "name": "a"}
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
    Row("the server gives instructions", "basic/lifecycle", ("2025-06-18",),
        [initialize("2025-06-18"), initialized("2025-06-18", instructions="Be brief."), tells("notifications/initialized")]),
    Row("nobody declares anything", "basic/lifecycle", ALL, [opened(client={}, server={})]),
    Row("both declare what nobody knows", "basic/lifecycle", HANDSHAKE,
        [opened(client={"acme": {"x": 1}}, server={"acme": True})]),
    Row("experimental capabilities", "basic/lifecycle", ALL,
        [opened(client={"experimental": {"acme": {}}}, server={"experimental": {"acme": {"deep": {}}}})]),
    Row("notifications/initialized has params", "basic/lifecycle", ("2025-11-25",),
        [*shaken("2025-11-25", CLIENT, SERVER)[:2], tells("notifications/initialized", _meta={"a": 1})]),
    Row("the client tells its title", "basic/lifecycle", ("2025-06-18",),
        [ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={**INFORMATION, "title": "A"}),
         initialized("2025-06-18")]),
    Row("icons and a web site", "basic/lifecycle", ("2025-11-25",),
        [ask(1, "initialize", protocolVersion="2025-11-25", capabilities={},
             clientInfo={**INFORMATION, "websiteUrl": "https://example.com", "icons": [{"src": "https://example.com/i.png"}]}),
         initialized("2025-11-25")]),
]  # fmt: skip

MESSAGES_ROWS: Final[Rows] = [
    Row("ids are strings", "basic", ALL, [opened(), ask("a-1", "tools/list"), gives("a-1", "tools/list", {"tools": []})]),
    Row("an id is 0", "basic", ALL, [opened(), ask(0, "tools/list"), gives(0, "tools/list", {"tools": []})]),
    Row("an id is negative", "basic", ALL, [opened(), ask(-5, "tools/list"), gives(-5, "tools/list", {"tools": []})]),
    Row("an id is large", "basic", ALL,
        [opened(), ask(2**53 - 1, "tools/list"), gives(2**53 - 1, "tools/list", {"tools": []})]),
    Row("an id is empty text", "basic", ALL, [opened(), ask("", "tools/list"), gives("", "tools/list", {"tools": []})]),
    Row("1 and \"1\" are two ids", "basic", ALL,
        [opened(), ask(1, "tools/list"), ask("1", "tools/list"), gives("1", "tools/list", {"tools": []}),
         gives(1, "tools/list", {"tools": []})]),
    Row("both parties use one id at a time", "basic", HANDSHAKE,
        [opened(), ask(1, "tools/list"), wants(1, "ping"), gives(1, "tools/list", {"tools": []}), answers(1)]),
    Row("answers come in another order", "basic", ALL,
        [opened(), *listing(PLAIN), calling(1), calling(2), calling(3), called(3), called(1), called(2)]),
    Row("a result has more than the schema names", "basic", ALL,
        [opened(), calling(), called(value={**TEXT, "acme": [1]})]),
    Row("params have more than the schema names", "basic", ALL,
        [opened(), ask(1, "tools/list", acme=True), gives(1, "tools/list", {"tools": []})]),
    Row("results have _meta", "basic", ALL, [opened(), calling(), called(value={**TEXT, "_meta": {"example.com/a": 1}})]),
    Row("requests have _meta", "basic", ALL, [opened(), calling(meta={"example.com/trace": "x"}), called()]),
    Row("trace context in _meta", "basic", STATELESS,
        [opened(), calling(meta={"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}), called()]),
    Row("an error has data", "basic", ALL, [opened(), calling(), fails(1, -32603, data={"why": ["x"]})]),
    Row("an error has a code of the application", "basic", ALL, [opened(), calling(), fails(1, 42)]),
    Row("an error has a code of the server's own range", "basic", since("2024-11-05", "2025-11-25"),
        [opened(), calling(), fails(1, -32050)]),
    Row("an error has a legacy code", "basic", STATELESS, [opened(), calling(), fails(1, -32001)]),
    Row("an error has empty data and message", "basic", ALL,
        [opened(), calling(), bare(heard({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "", "data": None}}))]),
    Row("an error without an id", "basic", since("2025-11-25"),
        [opened(), heard({"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}})]),
    Row("a client pings and is pinged", "basic/utilities/ping", HANDSHAKE,
        [opened(), ask(1, "ping"), gives(1, "ping"), wants(7, "ping"), answers(7)]),
    Row("a ping has empty params", "basic/utilities/ping", HANDSHAKE,
        [opened(), sent({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}), gives(1, "ping")]),
    Row("white space around a message", "basic/transports", ("2025-11-25",),
        [opened(), sent(b'  {"jsonrpc": "2.0", "id": 1, "method": "ping"} '), gives(1, "ping")]),
    Row("characters as escapes", "basic/transports", ("2025-06-18",),
        [opened(), sent(b'{"jsonrpc":"2.0","id":"\\u00e9","method":"ping"}'), heard(b'{"jsonrpc":"2.0","id":"\xc3\xa9","result":{}}')]),
    Row("members in any order", "basic", ("2025-06-18",),
        [opened(), sent(b'{"method":"ping","id":1,"jsonrpc":"2.0"}'), heard(b'{"result":{},"jsonrpc":"2.0","id":1}')]),
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
    Row("a token is a number", "basic/utilities/progress", ALL,
        [opened(), calling(meta={"progressToken": 7}), says("notifications/progress", progressToken=7, progress=0), called()]),
    Row("progress has a message", "basic/utilities/progress", since("2025-03-26"),
        [opened(), calling(meta={"progressToken": 7}),
         says("notifications/progress", progressToken=7, progress=1, message="half"), called()]),
    Row("a token is used again after the answer", "basic/utilities/progress", ALL,
        [opened(), calling(1, meta={"progressToken": 7}), called(1), calling(2, meta={"progressToken": 7}),
         says("notifications/progress", progressToken=7, progress=1), called(2)]),
    Row("two requests with a token each", "basic/utilities/progress", ALL,
        [opened(), calling(1, meta={"progressToken": "a"}), calling(2, meta={"progressToken": "b"}),
         says("notifications/progress", progressToken="b", progress=5),
         says("notifications/progress", progressToken="a", progress=1), called(1), called(2)]),
    Row("nobody tells progress", "basic/utilities/progress", ALL, [opened(), calling(meta={"progressToken": 1}), called()]),
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
    Row("no tools", "server/tools", ALL, [opened(), *listing()]),
    Row("tools in pages", "server/tools", ALL,
        [opened(), ask(1, "tools/list"), gives(1, "tools/list", {"tools": [PLAIN], "nextCursor": "2"}),
         ask(2, "tools/list", cursor="2"), gives(2, "tools/list", {"tools": [ADD]}), calling(3, "add", arguments={"a": 1}),
         called(3)]),
    Row("a page has no entries", "server/utilities/pagination", ALL,
        [opened(), ask(1, "tools/list"), gives(1, "tools/list", {"tools": [], "nextCursor": "2"}),
         ask(2, "tools/list", cursor="2"), gives(2, "tools/list", {"tools": [PLAIN]})]),
    Row("a cursor is empty text", "server/utilities/pagination", ALL,
        [opened(), ask(1, "tools/list"), gives(1, "tools/list", {"tools": [], "nextCursor": ""}),
         ask(2, "tools/list", cursor=""), gives(2, "tools/list", {"tools": []})]),
    Row("a cursor is not valid", "server/utilities/pagination", ALL,
        [opened(), ask(1, "tools/list", cursor="gone"), fails(1, -32602)]),
    Row("a tool is called without having been listed", "server/tools", ALL, [opened(), calling(), called()]),
    Row("a call without arguments", "server/tools", ALL, [opened(), *listing(PLAIN), calling(), called()]),
    Row("arguments that the schema allows beside those it names", "server/tools", ALL,
        [opened(), *listing({"name": "more", "inputSchema": {"type": "object", "additionalProperties": True}}),
         calling(tool="more", arguments={"a": 1, "c": "x"}), called()]),
    Row("a number that is whole is an integer", "server/tools", ALL,
        [opened(), *listing({"name": "n", "inputSchema": {"type": "object", "properties": {"i": {"type": "integer"}}}}),
         calling(tool="n", arguments={"i": 1.0}), called()]),
    Row("no content", "server/tools", ALL, [opened(), calling(), called(value={"content": []})]),
    Row("a tool fails", "server/tools", ALL, [opened(), calling(), called(value={**TEXT, "isError": True})]),
    Row("an image", "server/tools", ALL, [opened(), calling(), called(value={"content": [IMAGE]})]),
    Row("sound", "server/tools", since("2025-03-26"), [opened(), calling(), called(value={"content": [AUDIO]})]),
    Row("an embedded resource", "server/tools", ALL, [opened(), calling(), called(value={"content": [EMBEDDED]})]),
    Row("an embedded blob", "server/tools", ALL,
        [opened(), calling(),
         called(value={"content": [{"type": "resource", "resource": {"uri": "acme://x/1", "blob": "AAEC"}}]})]),
    Row("a link to a resource", "server/tools", since("2025-06-18"), [opened(), calling(), called(value={"content": [LINK]})]),
    Row("content of every kind", "server/tools", since("2025-06-18"),
        [opened(), calling(), called(value={"content": [*TEXT["content"], IMAGE, AUDIO, EMBEDDED, LINK]})]),
    Row("content has annotations", "server/tools", ALL,
        [opened(), calling(),
         called(value={"content": [{"type": "text", "text": "x", "annotations": {"audience": ["user"], "priority": 1}}]})]),
    Row("structured content as promised", "server/tools", since("2025-06-18"),
        [opened(), *listing(COUNT), calling(tool="count"), called(value={**TEXT, "structuredContent": {"n": 3}})]),
    Row("structured content that nobody promised", "server/tools", since("2025-06-18"),
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
    Row("annotations of a tool", "server/tools", since("2025-03-26"),
        [opened(), *listing({**PLAIN, "annotations": {"title": "P", "readOnlyHint": True, "openWorldHint": False}})]),
    Row("a tool has a title", "server/tools", since("2025-06-18"), [opened(), *listing({**PLAIN, "title": "Plain"})]),
    Row("a tool has icons", "server/tools", since("2025-11-25"),
        [opened(), *listing({**PLAIN, "icons": [{"src": "data:image/png;base64,AA==", "sizes": ["48x48"], "theme": "dark"}]})]),
    Row("a name with dots and dashes", "server/tools", ALL, [opened(), *listing({**PLAIN, "name": "a.b-c_D.1"})]),
    Row("a schema of draft 7", "server/tools", ALL,
        [opened(), *listing({"name": "seven", "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"a": {"$ref": "#/definitions/A"}},
            "definitions": {"A": {"type": "string"}}}}), calling(tool="seven", arguments={"a": "x"}), called()]),
    Row("a schema of 2020-12 with $defs", "server/tools", ALL,
        [opened(), *listing({"name": "new", "inputSchema": {
            "type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": ["string", "null"]}}}}),
         calling(tool="new", arguments={"a": None}), called()]),
    Row("a schema that takes no arguments", "server/tools", ALL,
        [opened(), *listing({"name": "none", "inputSchema": {"type": "object", "additionalProperties": False}}),
         calling(tool="none", arguments={}), called()]),
    Row("a pattern that looks ahead", "server/tools", ALL,
        [opened(), *listing({"name": "d", "inputSchema": {
            "type": "object", "properties": {"d": {"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"}}}}),
         calling(tool="d", arguments={"d": "1.50"}), called()]),
    Row("a pattern that refers back", "server/tools", ALL,
        [opened(), *listing({"name": "q", "inputSchema": {
            "type": "object", "properties": {"q": {"type": "string", "pattern": r"^(['\"]).*\1$"}}}}),
         calling(tool="q", arguments={"q": "'a'"}), called()]),
    Row("a tool with unknown keywords", "server/tools", ALL,
        [opened(), *listing({"name": "k", "inputSchema": {"type": "object", "x-order": 1, "properties": {"a": {"example": 3}}}}),
         calling(tool="k", arguments={"a": 1}), called()]),
]  # fmt: skip

RESOURCES: Final[Rows] = [
    Row("resources in pages", "server/resources", ALL,
        [opened(), ask(1, "resources/list"),
         gives(1, "resources/list", {"resources": [{"uri": "file:///a", "name": "a"}], "nextCursor": "n"}),
         ask(2, "resources/list", cursor="n"), gives(2, "resources/list", {"resources": []})]),
    Row("a resource has everything", "server/resources", ALL,
        [opened(), ask(1, "resources/list"),
         gives(1, "resources/list", {"resources": [{"uri": "https://example.com/a", "name": "a", "description": "d", "size": 0,
                                                    "mimeType": "text/plain", "annotations": {"priority": 0.5}}]})]),
    Row("when a resource was last changed", "server/resources", since("2025-06-18"),
        [opened(), ask(1, "resources/list"),
         gives(1, "resources/list", {"resources": [{"uri": "git://r/a", "name": "a", "annotations": {"lastModified": STAMP}}]})]),
    Row("templates", "server/resources", ALL,
        [opened(), ask(1, "resources/templates/list"),
         gives(1, "resources/templates/list", {"resourceTemplates": [{"uriTemplate": "file:///{path}", "name": "f"}]})]),
    Row("a template with a query", "server/resources", ALL,
        [opened(), ask(1, "resources/templates/list"),
         gives(1, "resources/templates/list", {"resourceTemplates": [{"uriTemplate": "acme://s{?q,page*}", "name": "f"}]})]),
    Row("text is read", "server/resources", ALL,
        [opened(), ask(1, "resources/read", uri="file:///a.txt"),
         gives(1, "resources/read", {"contents": [{"uri": "file:///a.txt", "text": ""}]})]),
    Row("bytes are read", "server/resources", ALL,
        [opened(), ask(1, "resources/read", uri="file:///a.bin"),
         gives(1, "resources/read", {"contents": [{"uri": "file:///a.bin", "blob": "AAEC", "mimeType": "application/x"}]})]),
    Row("no bytes are read", "server/resources", ALL,
        [opened(), ask(1, "resources/read", uri="file:///empty"),
         gives(1, "resources/read", {"contents": [{"uri": "file:///empty", "blob": ""}]})]),
    Row("a directory is read", "server/resources", ALL,
        [opened(), ask(1, "resources/read", uri="file:///d"),
         gives(1, "resources/read", {"contents": [{"uri": "file:///d/1", "text": "1"}, {"uri": "file:///d/2", "text": "2"}]})]),
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
    Row("prompts in pages", "server/prompts", ALL,
        [opened(), ask(1, "prompts/list"),
         gives(1, "prompts/list", {"prompts": [{"name": "p", "arguments": [{"name": "a", "required": True}]}], "nextCursor": "n"}),
         ask(2, "prompts/list", cursor="n"), gives(2, "prompts/list", {"prompts": []})]),
    Row("a prompt with arguments", "server/prompts", ALL,
        [opened(), ask(1, "prompts/get", name="p", arguments={"a": "x"}),
         gives(1, "prompts/get", {"messages": MESSAGES, "description": "d"})]),
    Row("a prompt without messages", "server/prompts", ALL,
        [opened(), ask(1, "prompts/get", name="p"), gives(1, "prompts/get", {"messages": []})]),
    Row("an image in a prompt", "server/prompts", ALL,
        [opened(), ask(1, "prompts/get", name="p"), gives(1, "prompts/get", {"messages": [{"role": "user", "content": IMAGE}]})]),
    Row("sound in a prompt", "server/prompts", since("2025-03-26"),
        [opened(), ask(1, "prompts/get", name="p"), gives(1, "prompts/get", {"messages": [{"role": "user", "content": AUDIO}]})]),
    Row("a resource in a prompt", "server/prompts", ALL,
        [opened(), ask(1, "prompts/get", name="p"),
         gives(1, "prompts/get", {"messages": [{"role": "assistant", "content": EMBEDDED}]})]),
    Row("a link in a prompt", "server/prompts", since("2025-06-18"),
        [opened(), ask(1, "prompts/get", name="p"), gives(1, "prompts/get", {"messages": [{"role": "user", "content": LINK}]})]),
    Row("an unknown prompt", "server/prompts", ALL, [opened(), ask(1, "prompts/get", name="nope"), fails(1, -32602)]),
    Row("the list of prompts changes", "server/prompts", HANDSHAKE, [opened(), says("notifications/prompts/list_changed")]),
]  # fmt: skip

PROMPT: Final = {"type": "ref/prompt", "name": "p"}
COMPLETION: Final[Rows] = [
    Row("an argument of a prompt is completed", "server/utilities/completion", ALL,
        [opened(), ask(1, "completion/complete", ref=PROMPT, argument={"name": "a", "value": "x"}),
         gives(1, "completion/complete", {"completion": {"values": ["xa", "xb"], "total": 2, "hasMore": False}})]),
    Row("a template is completed", "server/utilities/completion", ALL,
        [opened(), ask(1, "completion/complete", ref={"type": "ref/resource", "uri": "file:///{path}"},
                       argument={"name": "path", "value": ""}),
         gives(1, "completion/complete", {"completion": {"values": []}})]),
    Row("a hundred values", "server/utilities/completion", ALL,
        [opened(), ask(1, "completion/complete", ref=PROMPT, argument={"name": "a", "value": "x"}),
         gives(1, "completion/complete", {"completion": {"values": [str(n) for n in range(100)], "hasMore": True}})]),
    Row("what was chosen before", "server/utilities/completion", since("2025-06-18"),
        [opened(), ask(1, "completion/complete", ref=PROMPT, argument={"name": "b", "value": ""},
                       context={"arguments": {"a": "1"}}),
         gives(1, "completion/complete", {"completion": {"values": ["x"]}})]),
    Row("nothing is known to complete", "server/utilities/completion", ALL,
        [opened(), ask(1, "completion/complete", ref=PROMPT, argument={"name": "no", "value": ""}), fails(1, -32602)]),
]  # fmt: skip

ANYTHING: Final[tuple[Any, ...]] = ("x", 1, None, [], {}, True)
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
    Row("data of a log message is anything", "server/utilities/logging", HANDSHAKE,
        [opened(), *(says("notifications/message", level="info", data=each) for each in ANYTHING)]),
]  # fmt: skip

ROOTS: Final[Rows] = [
    Row("roots", "client/roots", HANDSHAKE,
        [opened(), wants(1, "roots/list"), answers(1, {"roots": [{"uri": "file:///home/a", "name": "A"}, {"uri": "file:///b"}]})]),
    Row("no roots", "client/roots", HANDSHAKE, [opened(), wants(1, "roots/list"), answers(1, {"roots": []})]),
    Row("roots change", "client/roots", HANDSHAKE,
        [opened(), tells("notifications/roots/list_changed"), wants(1, "roots/list"), answers(1, {"roots": []})]),
    Row("an error of the client", "client/roots", HANDSHAKE, [opened(), wants(1, "roots/list"), declines(1, -32603)]),
]  # fmt: skip

TOOLED: Final = {**CLIENT, "sampling": {"tools": {}, "context": {}}}
SAMPLING: Final[Rows] = [
    Row("a model is asked", "client/sampling", HANDSHAKE,
        [opened(), wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=100), answers(1, MODEL)]),
    Row("with everything", "client/sampling", HANDSHAKE,
        [opened(), wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=100, systemPrompt="s", temperature=0.5,
                         stopSequences=["."], metadata={"a": 1}, includeContext="none",
                         modelPreferences={"hints": [{"name": "m"}], "costPriority": 0, "speedPriority": 1}), answers(1, MODEL)]),
    Row("an image is shown to it", "client/sampling", HANDSHAKE,
        [opened(), wants(1, "sampling/createMessage", messages=[{"role": "user", "content": IMAGE}], maxTokens=1), answers(1, MODEL)]),
    Row("the user says no", "client/sampling", HANDSHAKE,
        [opened(), wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=1), declines(1, -1)]),
    Row("no messages", "client/sampling", HANDSHAKE,
        [opened(), wants(1, "sampling/createMessage", messages=[], maxTokens=1), answers(1, MODEL)]),
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
    Row("numbers", "client/elicitation", ASKING,
        eliciting(form(i={"type": "integer", "minimum": 1}, n={"type": "number"}), {"i": 5, "n": 0.5})),
    Row("a boolean", "client/elicitation", ASKING, eliciting(form(b={"type": "boolean", "default": True}), {"b": False})),
    Row("a choice", "client/elicitation", ASKING,
        eliciting(form(c={"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}), {"c": "b"})),
    Row("a date and an address", "client/elicitation", ASKING,
        eliciting(form(d={"type": "string", "format": "date"}, m={"type": "string", "format": "email"}),
                  {"d": "2026-01-31", "m": "a@example.com"})),
    Row("a field is left out", "client/elicitation", ASKING, eliciting(form(a={"type": "string"}), {})),
    Row("a form without required fields is accepted as it is", "client/elicitation", ASKING,
        [opened(), wants(1, "elicitation/create", message="?", requestedSchema=form(a={"type": "string"})), answers(1, {"action": "accept"})]),
    Row("a titled choice", "client/elicitation", MODERN,
        eliciting(form(c={"type": "string", "oneOf": [{"const": "a", "title": "A"}]}), {"c": "a"})),
    Row("several choices", "client/elicitation", MODERN,
        eliciting(form(c={"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 2}), {"c": ["a", "b"]})),
    Row("a mode is named", "client/elicitation", MODERN,
        [opened(), wants(1, "elicitation/create", mode="form", message="?", requestedSchema=FORM), answers(1, {"action": "cancel"})]),
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
    Row("the status of a task is told", "basic/utilities/tasks", MODERN,
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
ASK_ALL: Final[dict[str, Any]] = {
    **ASK_NAME,
    "where": {"method": "roots/list"},
    "what": {"method": "sampling/createMessage", "params": {"messages": MESSAGES, "maxTokens": 1}},
}
ANSWER_NAME: Final[dict[str, Any]] = {"name": {"action": "accept", "content": {"name": "Ada"}}}
ALL_ANSWERS: Final[dict[str, Any]] = {
    **ANSWER_NAME,
    "where": {"roots": [{"uri": "file:///a"}]},
    "what": MODEL,
}
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
    Row("instructions", "server/discover", STATELESS,
        [ask(1, "server/discover"),
         gives(1, "server/discover", {"supportedVersions": ["2026-07-28", "2027-01-01"], "capabilities": {}, "instructions": "x",
                                      "_meta": {"io.modelcontextprotocol/serverInfo": INFORMATION}})]),
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
    Row("a result asks for input, and gets it", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(), called(value={"resultType": "input_required", "inputRequests": ASK_NAME, "requestState": "s"}),
         calling(2, inputResponses={"name": {"action": "accept", "content": {"name": "Ada"}}}, requestState="s"), called(2)]),
    Row("a result asks for all kinds of input", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(), called(value={"resultType": "input_required", "inputRequests": ASK_ALL, "requestState": "s"}),
         calling(2, inputResponses=ALL_ANSWERS, requestState="s"), called(2)]),
    Row("a result asks twice", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(), called(value={"resultType": "input_required", "inputRequests": ASK_NAME, "requestState": "s"}),
         calling(2, inputResponses=ANSWER_NAME, requestState="s"),
         called(2, value={"resultType": "input_required", "inputRequests": ASK_NAME}), calling(3, inputResponses=ANSWER_NAME),
         called(3)]),
    Row("a result asks, and the client asks for something else", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(), called(value={"resultType": "input_required", "inputRequests": ASK_NAME, "requestState": "s"}),
         calling(2, arguments={"x": 1}), called(2), ask(3, "prompts/get", name="p"), gives(3, "prompts/get", {"messages": []})]),
    Row("a state that was given elsewhere", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(requestState="elsewhere", inputResponses=ANSWER_NAME), called()]),
    Row("two calls ask at once", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(), calling(2, arguments={"x": 1}),
         called(value={"resultType": "input_required", "inputRequests": ASK_NAME, "requestState": "a"}),
         called(2, value={"resultType": "input_required", "inputRequests": ASK_NAME, "requestState": "b"}),
         calling(3, arguments={"x": 1}, inputResponses=ANSWER_NAME, requestState="b"),
         calling(4, inputResponses=ANSWER_NAME, requestState="a"), called(4), called(3)]),
    Row("a result has state only", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(), called(value={"resultType": "input_required", "requestState": "s"}), calling(2, requestState="s"),
         called(2)]),
    Row("a prompt asks for roots", "basic/patterns/mrtr", STATELESS,
        [opened(), ask(1, "prompts/get", name="p"),
         gives(1, "prompts/get", {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}),
         ask(2, "prompts/get", name="p", inputResponses={"r": {"roots": [{"uri": "file:///a"}]}}),
         gives(2, "prompts/get", {"messages": []})]),
    Row("a resource asks for a model", "basic/patterns/mrtr", STATELESS,
        [opened(), ask(1, "resources/read", uri="file:///a"),
         gives(1, "resources/read", {"resultType": "input_required", "inputRequests": {
             "m": {"method": "sampling/createMessage", "params": {"messages": MESSAGES, "maxTokens": 1}}}})]),
    Row("a subscription", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING, says("notifications/tools/list_changed", **NOTED),
         says("notifications/resources/updated", uri="file:///a", **NOTED)]),
    Row("a subscription is ended by the server", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING, gives(9, "subscriptions/listen", {"_meta": {SUBSCRIPTION: 9}})]),
    Row("a subscription is cancelled by the client", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING, tells("notifications/cancelled", requestId=9)]),
    Row("a subscription is cancelled by the server", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING, says("notifications/cancelled", requestId=9)]),
    Row("a part of what was asked is acknowledged", "basic/patterns/subscriptions", STATELESS,
        [opened(), ask(9, "subscriptions/listen", notifications={"toolsListChanged": True, "promptsListChanged": True}),
         says("notifications/subscriptions/acknowledged", notifications={"toolsListChanged": True}, **NOTED),
         says("notifications/tools/list_changed", **NOTED)]),
    Row("two subscriptions", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING, ask("b", "subscriptions/listen", notifications={"promptsListChanged": True}),
         says("notifications/subscriptions/acknowledged", notifications={"promptsListChanged": True}, _meta={SUBSCRIPTION: "b"}),
         says("notifications/prompts/list_changed", _meta={SUBSCRIPTION: "b"}),
         says("notifications/tools/list_changed", **NOTED)]),
    Row("a log that was asked for", "server/utilities/logging", STATELESS,
        [opened(), calling(meta={"io.modelcontextprotocol/logLevel": "info"}),
         says("notifications/message", level="info", data="x"), says("notifications/message", level="alert", data="x"), called()]),
    Row("an answer may be cached by anybody", "server/utilities/caching", STATELESS,
        [opened(), ask(1, "tools/list"), gives(1, "tools/list", {"tools": [], "ttlMs": 60_000, "cacheScope": "public"})]),
    Row("tasks of the extension", "extensions/tasks", STATELESS,
        [opened(server={**SERVER, "extensions": {"io.modelcontextprotocol/tasks": {}}}), calling(declares=EXTENDED),
         called(value={"resultType": "complete", **TEXT})]),
    Row("headers repeat the body", "basic/transports/streamable-http", STATELESS, [over_http(calling()), called()]),
    Row("headers of a method without a name", "basic/transports/streamable-http", STATELESS,
        [over_http(ask(1, "tools/list")), gives(1, "tools/list", {"tools": []})]),
    Row("a name in Base64", "basic/transports/streamable-http", STATELESS,
        [over_http(calling(tool="é"), mcp_name="=?base64?w6k=?="), called()]),
]  # fmt: skip

ROWS: Final[Rows] = [
    *LIFECYCLE, *MESSAGES_ROWS, *PROGRESS, *TOOLS, *RESOURCES, *PROMPTS, *COMPLETION, *LOGGING, *ROOTS, *SAMPLING,
    *ELICITATION, *TASKS, *NEWEST,
]  # fmt: skip

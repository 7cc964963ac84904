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
    Row("no one declares anything", "basic/lifecycle", ALL, [opened(client={}, server={})]),
    Row("both declare what no one knows", "basic/lifecycle", HANDSHAKE,
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
    Row("no one tells progress", "basic/utilities/progress", ALL, [opened(), calling(meta={"progressToken": 1}), called()]),
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
ASK_ALL: Final[dict[str, Any]] = {
    **ASK_NAME,
    "where": {"method": "roots/list"},
    "what": {"method": "sampling/createMessage", "params": {"messages": MESSAGES, "maxTokens": 1}},
}
ANSWER_NAME: Final[dict[str, Any]] = {"name": {"action": "accept", "content": {"name": "Ada"}}}
ALL_ANSWERS: Final[dict[str, Any]] = {**ANSWER_NAME, "where": {"roots": [{"uri": "file:///a"}]}, "what": MODEL}
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
    Row("a state of another conversation", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(requestState="other", inputResponses=ANSWER_NAME), called()]),
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
    Row("an error without an id, too early", "basic", since("2024-11-05", "2025-06-18"),
        [opened(), bad("envelope/id", heard({"jsonrpc": "2.0", "error": {"code": -32700, "message": "x"}}))]),
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
    Row("initialize to a server of the new era", "basic/transports/stdio", ("2025-11-25",),
        [PROBE, heard({"jsonrpc": "2.0", "id": 1, "result": DISCOVERED}), bad("protocol/era-fallback", initialize("2025-11-25", 2))]),
    Row("initialize to a server that lists only revisions of the new era", "basic/transports/stdio", ("2025-11-25",),
        [PROBE, fails(1, -32022, data={"supported": ["2027-01-01"], "requested": "2026-07-28"}),
         bad("protocol/era-fallback", initialize("2025-11-25", 2))]),
    Row("initialize without a revision", "basic/lifecycle", ("2025-11-25",),
        [bad("protocol/params", ask(1, "initialize", capabilities={}, clientInfo=INFORMATION))]),
    Row("initialize without capabilities", "basic/lifecycle", ("2025-11-25",),
        [bad("protocol/params", ask(1, "initialize", protocolVersion="2025-11-25", clientInfo=INFORMATION))]),
    Row("initialize without who asks", "basic/lifecycle", ("2025-06-18",),
        [bad("protocol/params", ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}))]),
    Row("a client without a version", "basic/lifecycle", ("2025-03-26",),
        [bad("protocol/params", ask(1, "initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={"name": "a"}))]),
    Row("an answer to initialize without a revision", "basic/lifecycle", ("2025-11-25",),
        [initialize("2025-11-25"), bad("protocol/result", gives(1, "initialize", {"capabilities": {}, "serverInfo": INFORMATION}))]),
    Row("an answer to initialize without the server's name", "basic/lifecycle", ("2025-11-25",),
        [initialize("2025-11-25"), bad("protocol/result", gives(1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}))]),
    Row("a revision that no one knows in the answer", "basic/lifecycle", ("2025-11-25",),
        [initialize("2025-11-25"), bad("protocol/unknown-revision", initialized("1.0"))]),
    Row("capabilities that are a list", "basic/lifecycle", ("2025-11-25",),
        [bad("protocol/params", ask(1, "initialize", protocolVersion="2025-11-25", capabilities=[], clientInfo=INFORMATION))]),
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
    Row("the id of an answered request", "basic", HANDSHAKE, [opened(), calling(), called(), bad("protocol/id-reused", calling())]),
    Row("a server uses an id again", "basic", HANDSHAKE,
        [opened(), wants(1, "ping"), answers(1), bad("protocol/id-reused", wants(1, "ping"))]),
    Row("a client answers what no one asked", "basic", ALL, [opened(), bad("protocol/unsolicited", answers(4))]),
    Row("a retry with the id of the first round", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(), called(value={"resultType": "input_required", "requestState": "s"}),
         bad("protocol/retry-id", calling(requestState="s"))]),
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
    Row("progress without a value", "basic/utilities/progress", ALL,
        [opened(), calling(meta={"progressToken": 1}), bad("protocol/params", says("notifications/progress", progressToken=1))]),
    Row("one token for two requests", "basic/utilities/progress", ALL,
        [opened(), calling(1, meta={"progressToken": 1}), bad("protocol/progress-token", calling(2, meta={"progressToken": 1}))]),
    Row("a token that is null", "basic/utilities/progress", ALL, [opened(), bad("protocol/params", calling(meta={"progressToken": None}))]),
    Row("cancelling nothing", "basic/utilities/cancellation", ALL,
        [opened(), bad("protocol/cancel", tells("notifications/cancelled", requestId=77))]),
    Row("cancelling the other party's request", "basic/utilities/cancellation", HANDSHAKE,
        [opened(), wants(5, "roots/list"), bad("protocol/cancel", tells("notifications/cancelled", requestId=5))]),
    Row("a server cancels a call", "basic/utilities/cancellation", STATELESS,
        [opened(), calling(), bad("protocol/cancel-other", says("notifications/cancelled", requestId=1))]),
    Row("a reason that is a number", "basic/utilities/cancellation", ALL,
        [opened(), calling(), bad("protocol/params", tells("notifications/cancelled", requestId=1, reason=5))]),
]  # fmt: skip


def listed(*tools: Any) -> Any:
    """The server answers a list."""
    return gives(1, "tools/list", {"tools": list(tools)})


def schemed(schema: Any) -> dict[str, Any]:
    """A tool with that schema of one argument."""
    return {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": schema}}}


BAD_TOOLS: Final[Rows] = [
    *(Row(f"a list with {words}", "server/tools", ALL, [opened(), ask(1, "tools/list"), bad(rule, listed(*tools))])
      for words, rule, tools in (
        ("a tool without a name", "protocol/result", [without(PLAIN, "name")]),
        ("a name that is a number", "protocol/result", [{**PLAIN, "name": 5}]),
        ("a tool without inputSchema", "protocol/result", [without(PLAIN, "inputSchema")]),
        ("an inputSchema that is no object's", "protocol/result", [{**PLAIN, "inputSchema": {"type": "string"}}]),
        ("an inputSchema without type", "protocol/result", [{**PLAIN, "inputSchema": {}}]),
        ("an inputSchema that is null", "protocol/result", [{**PLAIN, "inputSchema": None}]),
        ("a description that is a list", "protocol/result", [{**PLAIN, "description": []}]),
        ("a tool that is text", "protocol/result", ["plain"]),
        ("two tools of one name", "contract/duplicate-tool", [PLAIN, PLAIN]),
        ("a type that does not exist", "contract/schema", [schemed({"type": "strnig"})]),
        ("a reference to nothing", "contract/schema", [schemed({"$ref": "#/$defs/nope"})]),
        ("a schema that only refers to itself", "contract/schema-cycle",
         [{"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}}}]),
        ("a reference to another place", "contract/remote-ref", [schemed({"$ref": "https://example.com/s.json"})]),
        ("a minimum that is text", "contract/schema", [schemed({"minimum": "1"})]),
      )),
    Row("a list without tools", "server/tools", ALL, [opened(), ask(1, "tools/list"), bad("protocol/result", gives(1, "tools/list", {}))]),
    Row("tools that are an object", "server/tools", ALL,
        [opened(), ask(1, "tools/list"), bad("protocol/result", gives(1, "tools/list", {"tools": {}}))]),
    Row("a cursor that is a number", "server/utilities/pagination", ALL,
        [opened(), ask(1, "tools/list"), bad("protocol/result", gives(1, "tools/list", {"tools": [], "nextCursor": 5}))]),
    Row("a cursor that is null", "server/utilities/pagination", ALL,
        [opened(), ask(1, "tools/list"), bad("protocol/result", gives(1, "tools/list", {"tools": [], "nextCursor": None}))]),
    Row("asking with a cursor that is a number", "server/utilities/pagination", ALL,
        [opened(), bad("protocol/params", ask(1, "tools/list", cursor=5))]),
    Row("annotations that are text", "server/tools", since("2025-03-26"),
        [opened(), ask(1, "tools/list"), bad("protocol/result", listed({**PLAIN, "annotations": {"readOnlyHint": "yes"}}))]),
    Row("a call without a name", "server/tools", ALL, [opened(), bad("protocol/params", ask(1, "tools/call", arguments={}))]),
    Row("arguments that are a list", "server/tools", ALL, [opened(), bad("protocol/params", calling(arguments=[1]))]),
    Row("arguments that are text", "server/tools", ALL, [opened(), bad("protocol/params", calling(arguments='{"a":1}'))]),
    Row("an argument is missing", "server/tools", ALL,
        [opened(), *listing(ADD), bad("contract/input", calling(tool="add", arguments={"b": 1}))]),
    Row("an argument of the wrong type", "server/tools", ALL,
        [opened(), *listing(ADD), bad("contract/input", calling(tool="add", arguments={"a": "one"}))]),
    Row("a tool that was not listed", "server/tools", ALL, [opened(), *listing(ADD), bad("contract/unknown-tool", calling(tool="sub"))]),
    *(Row(f"a result with {words}", "server/tools", ALL, [opened(), calling(), bad("protocol/result", called(value=value))])
      for words, value in (
        ("no content", {"isError": False}),
        ("content that is text", {"content": "x"}),
        ("text without text", {"content": [{"type": "text"}]}),
        ("content of no type", {"content": [{"text": "x"}]}),
        ("content of a type that no one knows", {"content": [{"type": "video", "data": "AA==", "mimeType": "video/mp4"}]}),
        ("an image without its type", {"content": [without(IMAGE, "mimeType")]}),
        ("isError that is text", {**TEXT, "isError": "no"}),
        ("a resource without a place", {"content": [{"type": "resource", "resource": {"text": "x"}}]}),
        ("a priority above 1", {"content": [{"type": "text", "text": "x", "annotations": {"priority": 2}}]}),
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
    Row("an image that is no Base64", "server/tools", ALL,
        [opened(), calling(), bad("protocol/base64", called(value={"content": [{**IMAGE, "data": "not base64!"}]}))]),
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
    *(Row(f"{method} without {member}", page, ALL, [opened(), ask(1, method), bad("protocol/result", gives(1, method, {}))])
      for method, member, page in (("resources/list", "resources", "server/resources"), ("prompts/list", "prompts", "server/prompts"),
                                   ("resources/templates/list", "resourceTemplates", "server/resources"))),
    *(Row(f"{method} is unknown to a server that declares it", page, ALL,
          [opened(), ask(1, method, **params), bad("protocol/error-code", fails(1, -32601))])
      for method, params, page in (
          ("resources/list", {}, "server/resources"), ("resources/read", {"uri": "file:///a"}, "server/resources"),
          ("prompts/list", {}, "server/prompts"), ("prompts/get", {"name": "p"}, "server/prompts"))),
    Row("completion is unknown to a server that declares it", "server/utilities/completion", since("2025-03-26"),
        [opened(), ask(1, "completion/complete", ref=PROMPT, argument={"name": "a", "value": ""}), bad("protocol/error-code", fails(1, -32601))]),
    Row("resources/subscribe is unknown although it was declared", "server/resources", HANDSHAKE,
        [opened(), ask(1, "resources/subscribe", uri="file:///a"), bad("protocol/error-code", fails(1, -32601))]),
    Row("a resource without a name", "server/resources", ALL,
        [opened(), ask(1, "resources/list"), bad("protocol/result", gives(1, "resources/list", {"resources": [{"uri": "file:///a"}]}))]),
    Row("a resource without a place", "server/resources", ALL,
        [opened(), ask(1, "resources/list"), bad("protocol/result", gives(1, "resources/list", {"resources": [{"name": "a"}]}))]),
    Row("a place that is no URI", "server/resources", ALL,
        [opened(), ask(1, "resources/list"), bad("protocol/format", gives(1, "resources/list", {"resources": [{"uri": "a b", "name": "a"}]}))]),
    Row("a size that is text", "server/resources", ALL,
        [opened(), ask(1, "resources/list"),
         bad("protocol/result", gives(1, "resources/list", {"resources": [{"uri": "file:///a", "name": "a", "size": "1"}]}))]),
    Row("reading nothing", "server/resources", ALL, [opened(), bad("protocol/params", ask(1, "resources/read"))]),
    Row("reading what is no URI", "server/resources", ALL, [opened(), bad("protocol/format", ask(1, "resources/read", uri="readme.md"))]),
    Row("contents that are one object", "server/resources", ALL,
        [opened(), ask(1, "resources/read", uri="file:///a"), bad("protocol/result", reading({"contents": {"uri": "file:///a", "text": "x"}}))]),
    Row("contents without text or blob", "server/resources", ALL,
        [opened(), ask(1, "resources/read", uri="file:///a"), bad("protocol/result", reading({"contents": [{"uri": "file:///a"}]}))]),
    Row("a blob that is no Base64", "server/resources", ALL,
        [opened(), ask(1, "resources/read", uri="file:///a"), bad("protocol/base64", reading({"contents": [{"uri": "file:///a", "blob": "%%%"}]}))]),
    Row("subscribing without the capability", "server/resources", HANDSHAKE,
        [opened(server={"resources": {}}), bad("protocol/capability", ask(1, "resources/subscribe", uri="file:///a"))]),
    Row("an update without a place", "server/resources", HANDSHAKE, [opened(), bad("protocol/params", says("notifications/resources/updated"))]),
    Row("prompts without the capability", "server/prompts", ALL, [opened(server={"tools": {}}), bad("protocol/capability", ask(1, "prompts/list"))]),
    Row("a prompt without a name", "server/prompts", ALL, [opened(), bad("protocol/params", ask(1, "prompts/get"))]),
    Row("an argument of a prompt that is a number", "server/prompts", ALL,
        [opened(), bad("protocol/params", ask(1, "prompts/get", name="p", arguments={"a": 1}))]),
    Row("a prompt of another role", "server/prompts", ALL,
        [opened(), ask(1, "prompts/get", name="p"),
         bad("protocol/result", gives(1, "prompts/get", {"messages": [{"role": "system", "content": {"type": "text", "text": "x"}}]}))]),
    Row("a prompt whose content is text", "server/prompts", ALL,
        [opened(), ask(1, "prompts/get", name="p"), bad("protocol/result", gives(1, "prompts/get", {"messages": [{"role": "user", "content": "x"}]}))]),
    Row("more than a hundred values", "server/utilities/completion", HANDSHAKE,
        [opened(), ask(1, "completion/complete", ref=PROMPT, argument={"name": "a", "value": ""}),
         bad("protocol/completion-values", gives(1, "completion/complete", {"completion": {"values": ["x"] * 101}}))]),
    Row("more than a hundred values, in the newest revision", "server/utilities/completion", STATELESS,
        [opened(), ask(1, "completion/complete", ref=PROMPT, argument={"name": "a", "value": ""}),
         bad("protocol/result", gives(1, "completion/complete", {"completion": {"values": ["x"] * 101}}))]),
    Row("values that are numbers", "server/utilities/completion", ALL,
        [opened(), ask(1, "completion/complete", ref=PROMPT, argument={"name": "a", "value": ""}),
         bad("protocol/result", gives(1, "completion/complete", {"completion": {"values": [1]}}))]),
    Row("completing nothing", "server/utilities/completion", ALL,
        [opened(), bad("protocol/params", ask(1, "completion/complete", argument={"name": "a", "value": ""}))]),
    Row("a reference of another type", "server/utilities/completion", ALL,
        [opened(), bad("protocol/params", ask(1, "completion/complete", ref={"type": "ref/tool", "name": "p"}, argument={"name": "a", "value": ""}))]),
]  # fmt: skip

BAD_CLIENTS: Final[Rows] = [
    Row("a log of a level that no one knows", "server/utilities/logging", HANDSHAKE,
        [opened(), bad("protocol/params", says("notifications/message", level="loud", data="x"))]),
    Row("a log without data", "server/utilities/logging", HANDSHAKE, [opened(), bad("protocol/params", says("notifications/message", level="info"))]),
    Row("logs without the capability", "server/utilities/logging", HANDSHAKE,
        [opened(server={}), bad("protocol/capability", says("notifications/message", level="info", data="x"))]),
    Row("a level that no one knows is set", "server/utilities/logging", HANDSHAKE,
        [opened(), bad("protocol/params", ask(1, "logging/setLevel", level="verbose"))]),
    Row("roots without the capability", "client/roots", HANDSHAKE, [opened(client={}), bad("protocol/capability", wants(1, "roots/list"))]),
    Row("roots that are text", "client/roots", HANDSHAKE, [opened(), wants(1, "roots/list"), bad("protocol/result", answers(1, {"roots": ["/a"]}))]),
    Row("a root that is no file", "client/roots", HANDSHAKE,
        [opened(), wants(1, "roots/list"), bad("protocol/root", answers(1, {"roots": [{"uri": "https://example.com/"}]}))]),
    Row("no list of roots", "client/roots", HANDSHAKE, [opened(), wants(1, "roots/list"), bad("protocol/result", answers(1, {}))]),
    Row("a model without the capability", "client/sampling", HANDSHAKE,
        [opened(client={}), bad("protocol/capability", wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=1))]),
    Row("a model without a limit", "client/sampling", HANDSHAKE,
        [opened(), bad("protocol/params", wants(1, "sampling/createMessage", messages=MESSAGES))]),
    Row("a model without messages", "client/sampling", HANDSHAKE, [opened(), bad("protocol/params", wants(1, "sampling/createMessage", maxTokens=1))]),
    Row("a model's answer without the model", "client/sampling", HANDSHAKE,
        [opened(), wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=1), bad("protocol/result", answers(1, without(MODEL, "model")))]),
    Row("a model's answer without a role", "client/sampling", HANDSHAKE,
        [opened(), wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=1), bad("protocol/result", answers(1, without(MODEL, "role")))]),
    Row("tools for a model that takes none", "client/sampling", MODERN,
        [opened(), bad("protocol/capability", wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=1, tools=[PLAIN]))]),
    Row("a choice of tools for a model that takes none", "client/sampling", MODERN,
        [opened(), bad("protocol/capability", wants(1, "sampling/createMessage", messages=MESSAGES, maxTokens=1, toolChoice={"mode": "auto"}))]),
    Row("a form is accepted without its content", "client/elicitation", ASKING,
        [opened(), wants(1, "elicitation/create", message="?", requestedSchema=FORM), bad("contract/elicitation", answers(1, {"action": "accept"}))]),
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
    Row("a form without a message", "client/elicitation", ASKING, [opened(), bad("protocol/params", wants(1, "elicitation/create", requestedSchema=FORM))]),
    Row("an action that no one knows", "client/elicitation", ASKING,
        [opened(), wants(1, "elicitation/create", message="?", requestedSchema=FORM), bad("protocol/result", answers(1, {"action": "ok"}))]),
    Row("a page for a client that has only forms", "client/elicitation", MODERN,
        [opened(), bad("protocol/capability", wants(1, "elicitation/create", mode="url", message="?", url="https://example.com", elicitationId="e"))]),
    Row("a form for a client that has only pages", "client/elicitation", MODERN,
        [opened(client={**CLIENT, "elicitation": {"url": {}}}), bad("protocol/capability", wants(1, "elicitation/create", message="?", requestedSchema=FORM))]),
    *(Row(f"a form is filled in with {words}", "client/elicitation", ASKING,
          [*eliciting(schema, content)[:-1], bad("contract/elicitation", eliciting(schema, content)[-1])])
      for words, schema, content in (
        ("a field missing", FORM, {}),
        ("a number for text", FORM, {"name": 5}),
        ("a choice that was not offered", form(c={"type": "string", "enum": ["a"]}), {"c": "b"}),
        ("a number that is too small", form(n={"type": "integer", "minimum": 3}), {"n": 1}),
      )),
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
    Row("a task without a status", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing(SLOW), calling(tool="slow", task={}), bad("protocol/result", called(value={"task": without(TASK, "status")}))]),
    Row("a status that no one knows", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), ask(2, "tasks/get", taskId="t1"), bad("protocol/result", gives(2, "tasks/get", {**TASK, "status": "done"}))]),
    Row("a task is cancelled as a request", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing(SLOW), calling(tool="slow", task={}), called(value={"task": TASK}),
         bad("protocol/cancel", tells("notifications/cancelled", requestId=1))]),
    Row("the result of a task does not name it", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing(SLOW), calling(tool="slow", task={}), called(value={"task": TASK}),
         ask(2, "tasks/result", taskId="t1"), bad("protocol/related-task", gives(2, "tasks/result", TEXT))]),
    Row("the result of a task names another", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), ask(2, "tasks/result", taskId="t1"), bad("protocol/related-task", gives(2, "tasks/result",
            {**TEXT, "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t2"}}}))]),
    Row("progress after the result of a task was fetched", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing(SLOW), calling(tool="slow", task={}, meta={"progressToken": 7}),
         called(value={"task": TASK}), ask(2, "tasks/result", taskId="t1"), gives(2, "tasks/result", {**TEXT, **RELATED}),
         bad("protocol/progress", says("notifications/progress", progressToken=7, progress=2))]),
    Row("the result of a task breaks the schema", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), *listing(SLOW), calling(tool="slow", task={}), called(value={"task": TASK}),
         ask(2, "tasks/result", taskId="t1"), bad("protocol/result", gives(2, "tasks/result", {"content": "x", **RELATED}))]),
    Row("tasks are not declared", "basic/utilities/tasks", MODERN, [opened(), bad("protocol/capability", ask(1, "tasks/list"))]),
    Row("tasks/get is unknown to a server that declares tasks", "basic/utilities/tasks", MODERN,
        [opened(server=TASKS_SERVER), ask(1, "tasks/get", taskId="t"), bad("protocol/error-code", fails(1, -32601))]),
]  # fmt: skip

LEVEL: Final = "io.modelcontextprotocol/logLevel"
REVISED: Final = {**CLIENT, "extensions": {"io.modelcontextprotocol/tasks": {"revision": "2"}}}
BAD_NEWEST: Final[Rows] = [
    Row("a request without _meta", "basic", STATELESS,
        [opened(), bad("protocol/params", bare(ask(1, "tools/list")))]),
    Row("a request without capabilities", "basic", STATELESS,
        [opened(), bad("protocol/params", bare(ask(1, "tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"})))]),
    Row("a revision that no one knows", "basic/versioning", STATELESS,
        [opened(), bad("protocol/unsupported-revision", bare(ask(1, "tools/list", _meta={
            "io.modelcontextprotocol/protocolVersion": "2031-01-01", "io.modelcontextprotocol/clientCapabilities": {}})))]),
    Row("a result without resultType", "basic", STATELESS,
        [opened(), calling(), bad("protocol/result-type-missing", heard({"jsonrpc": "2.0", "id": 1, "result": TEXT}))]),
    Row("a list without cache hints", "server/utilities/caching", STATELESS,
        [opened(), ask(1, "tools/list"),
         bad("protocol/cache-hints", heard({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": []}}))]),
    Row("a time to live below 0", "server/utilities/caching", STATELESS,
        [opened(), ask(1, "tools/list"), bad("protocol/cache-hints", gives(1, "tools/list", {"tools": [], "ttlMs": -1}))]),
    Row("a cache scope that no one knows", "server/utilities/caching", STATELESS,
        [opened(), ask(1, "tools/list"), bad("protocol/result", gives(1, "tools/list", {"tools": [], "cacheScope": "mine"}))]),
    Row("a cache scope that changes between pages", "server/utilities/caching", STATELESS,
        [opened(), ask(1, "tools/list"), gives(1, "tools/list", {"tools": [], "nextCursor": "n", "cacheScope": "public"}),
         ask(2, "tools/list", cursor="n"), bad("protocol/cache-scope", gives(2, "tools/list", {"tools": [], "cacheScope": "private"}))]),
    Row("a result of a type that no one declared", "basic", STATELESS,
        [opened(), calling(), bad("protocol/result-type", called(value={"resultType": "task", **TEXT}))]),
    Row("a list that asks back", "basic/patterns/mrtr", STATELESS,
        [opened(), ask(1, "tools/list"), bad("protocol/result-type", gives(1, "tools/list", {"resultType": "input_required", "requestState": "s"}))]),
    Row("asking back for nothing", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(), bad("protocol/input-required", called(value={"resultType": "input_required"}))]),
    *(Row(f"a request is repeated with {what}", "basic/patterns/mrtr", STATELESS,
          [opened(), calling(), called(value={"resultType": "input_required", "inputRequests": ASK_NAME, "requestState": "s"}),
           bad(rule, again)])
      for what, rule, again in (
          ("another state", "protocol/request-state", calling(2, requestState="S", inputResponses=ANSWER_NAME)),
          ("no state", "protocol/request-state", calling(2, inputResponses=ANSWER_NAME)),
          ("no answers", "protocol/input-responses", calling(2, requestState="s")),
          ("another answer", "protocol/input-responses", calling(2, requestState="s", inputResponses=ANSWER_NAME | {"n": ANSWER_NAME["name"]})),
          ("another tool", "protocol/retry-target", calling(2, tool="other", requestState="s", inputResponses=ANSWER_NAME)),
          ("another method", "protocol/retry-target", ask(2, "prompts/get", name="p", requestState="s")),
          ("other arguments", "protocol/retry-target", calling(2, arguments={"x": 1}, requestState="s", inputResponses=ANSWER_NAME)))),
    Row("a state that the server did not give", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(), called(value={"resultType": "input_required", "inputRequests": ASK_NAME}),
         bad("protocol/request-state", calling(2, requestState="s", inputResponses=ANSWER_NAME))]),
    Row("an answer after the server has asked back", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(), called(value={"resultType": "input_required", "requestState": "s"}),
         bad("protocol/answered-twice", called())]),
    Row("input as an answer of its own", "basic/patterns", STATELESS,
        [opened(), calling(), called(value={"resultType": "input_required", "inputRequests": ASK_NAME}),
         bad("protocol/unsolicited", answers("name", ANSWER_NAME["name"]))]),
    Row("discovery that asks back", "basic/patterns/mrtr", STATELESS,
        [ask(1, "server/discover"),
         bad("protocol/result-type", gives(1, "server/discover", {"supportedVersions": ["2026-07-28"], "capabilities": {},
                                                                  "resultType": "input_required", "requestState": "s"}))]),
    *(Row(f"an answer of another kind: {kind}", "basic/patterns/mrtr", STATELESS,
          [opened(), calling(), called(value={"resultType": "input_required", "inputRequests": ASK_ALL, "requestState": "s"}),
           bad("protocol/input-kind", calling(2, requestState="s", inputResponses=ALL_ANSWERS | wrong))])
      for kind, wrong in (("roots for a form", {"name": ALL_ANSWERS["where"]}), ("a form for roots", {"where": ALL_ANSWERS["name"]}),
                          ("a form for a model", {"what": ALL_ANSWERS["name"]}), ("a model for a form", {"name": ALL_ANSWERS["what"]}))),
    Row("asking back for what the client cannot give", "basic/patterns/mrtr", STATELESS,
        [opened(), calling(declares={}), bad("protocol/capability", called(value={"resultType": "input_required", "inputRequests": ASK_NAME}))]),
    *(Row(f"an error with the code {code}", "basic", STATELESS, [opened(), calling(), bad("protocol/error-code", fails(1, code))])
      for code in (-32002, -32042, -32023, -32050, -32099)),
    *(Row(f"an error {code} without its data", "basic", STATELESS, [opened(), calling(), bad("protocol/error", fails(1, code))])
      for code in (-32021, -32022)),
    Row("an extension of an unknown revision, whose messages are then anything", "SEP-3392", STATELESS,
        [opened(), bad("extension/revision", calling(declares=REVISED)),
         gives(1, "tools/call", {"resultType": "task", "handle": 5}),
         ask(2, "tasks/get", declares=REVISED, handle=5), gives(2, "tasks/get", {"done": True})]),
    Row("a log that no one asked for", "server/utilities/logging", STATELESS,
        [opened(), calling(), bad("protocol/log", says("notifications/message", level="info", data="x"))]),
    Row("a log below the level", "server/utilities/logging", STATELESS,
        [opened(), calling(meta={LEVEL: "warning"}), bad("protocol/log", says("notifications/message", level="info", data="x"))]),
    Row("a log level that no one knows", "server/utilities/logging", STATELESS, [opened(), bad("protocol/params", calling(meta={LEVEL: "loud"}))]),
    Row("a subscription without a filter", "basic/patterns/subscriptions", STATELESS, [opened(), bad("protocol/params", ask(9, "subscriptions/listen"))]),
    Row("a subscription is ended with another id", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING, bad("protocol/subscription", gives(9, "subscriptions/listen", {"_meta": {SUBSCRIPTION: 77}}))]),
    Row("a change that was not asked for", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING, bad("protocol/subscription", says("notifications/prompts/list_changed", **NOTED))]),
    Row("an update of another resource", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING, bad("protocol/subscription", says("notifications/resources/updated", uri="file:///b", **NOTED))]),
    Row("a change without a subscription id", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING, bad("protocol/subscription", says("notifications/tools/list_changed"))]),
    Row("a change with an unknown subscription id", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING, bad("protocol/subscription", says("notifications/tools/list_changed", _meta={SUBSCRIPTION: 77}))]),
    Row("a change before the acknowledgement", "basic/patterns/subscriptions", STATELESS,
        [*LISTENING[:2], bad("protocol/subscription", says("notifications/tools/list_changed", **NOTED))]),
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

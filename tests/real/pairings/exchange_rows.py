"""
Exchanges, and what the guard makes of each: the same for every pair of transports unless a row gives the reason.

In the lines of a row ID stands for the id of the client's request, which is the name of the row.
"""
# ruff: noqa: UP031 - JSON is full of braces

from typing import Any, NamedTuple

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
M = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'

Item = int | str
"""
What the client gets: the number of a line of the server, unchanged; a negative number, an error with that code and the
id of the row; `isError`, a result that reports the broken contract; `null CODE`, an error without an id; else the text.
"""


class Expected(NamedTuple):
    """What comes of an exchange."""

    gets: tuple[Item, ...] = ()
    reaches: bool = True
    """Whether the server gets the client's line, unchanged."""
    back: tuple[str, ...] = ()
    """What the guard itself sends to the server: `error CODE` to a request of the server, or a method."""
    found: tuple[str, ...] = ()
    """The findings in the journal, as `party rule`; `(reported)` is added if the message was not refused."""


class Unlike(NamedTuple):
    """How one pairing differs, and why."""

    pairing: str
    mode: str
    expected: Expected
    why: str


class Row(NamedTuple):
    """One exchange."""

    name: str
    client: str
    server: tuple[str, ...]
    """What the server says to the client's line, one line each."""
    enforce: Expected
    audit: Expected | None = None
    """None if the row is left out under audit, where it would change what later rows mean."""
    unlike: tuple[Unlike, ...] = ()
    reply: str = ""
    """What the client answers to a request of the server."""

    def expected(self, pairing: str, mode: str) -> Expected:
        """What comes of it through *pairing*."""
        for each in self.unlike:
            if each.pairing == pairing and each.mode == mode:
                return each.expected
        expected = self.enforce if mode == "enforce" else self.audit
        assert expected is not None
        return expected


# ── why pairings differ ──────────────────────────────────────────────────────────────────────────────────────────────

LINE = "A child reads lines, and a body that is not JSON may not be one line."
BLANK_HTTP = "Every HTTP request gets a response, so an empty body is an error."
BLANK_URL = "A URL server gets messages, and a blank line is not one."
CR_URL = "A URL server gets a body, in which a carriage return ends nothing."
CR_CHILD = "HTTP brought the carriage return; the guard writes a space for it, since it could end the line of a child."
NO_RESPONSE = "No HTTP response is open that this message could belong to."
LOG = "Output that is not a message goes to the log."
BLANK_OUT = "Blank lines mean nothing outside of a stream of lines."
ERA = "A message that does not name its revision would switch a child that is shared to another era."
WHOSE = "Many clients share this child, so the guard itself answers what the child asks."
LOGS = "Many clients share this child, and none of them asked for log messages."

# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def req(method: str, params: str = "") -> str:
    """A request."""
    return '{"jsonrpc":"2.0","id":ID,"method":"%s"%s}' % (method, f',"params":{params}' if params else "")


def call(arguments: str = '{"words":"sea"}') -> str:
    """A call of the tool."""
    return req("tools/call", '{"name":"search","arguments":%s}' % arguments)


def scall(arguments: str = '{"words":"ROW"}') -> str:
    """A call of the tool in the stateless era."""
    return req("tools/call", '{"name":"search","arguments":%s,%s}' % (arguments, M))


def res(result: str) -> str:
    """A result."""
    return '{"jsonrpc":"2.0","id":ID,"result":%s}' % result


def sres(members: str = "") -> str:
    """A result of the stateless era."""
    return res('{"resultType":"complete"%s}' % (f",{members}" if members else ""))


def note(method: str, params: str = "") -> str:
    """A notification."""
    return '{"jsonrpc":"2.0","method":"%s"%s}' % (method, f',"params":{params}' if params else "")


P = req("ping")
PONG = res("{}")
HITS = res('{"content":[],"structuredContent":{"hits":1}}')
SH = sres('"content":[],"structuredContent":{"hits":1}')


def row(name: str, client: str, *server: str, **expected: Any) -> Row:
    """One row."""
    return Row(name, client, server, **expected)


# ── the tables ───────────────────────────────────────────────────────────────────────────────────────────────────────

HANDSHAKE_ROWS = [
    row(
        "call",
        call(),
        HITS,
        enforce=Expected((0,)),
        audit=Expected((0,)),
    ),
    row(
        "call-bad-arguments",
        call('{"words":5}'),
        HITS,
        enforce=Expected(("isError",), reaches=False, found=("client contract/input",)),
        audit=Expected((0,), found=("client contract/input",)),
    ),
    row(
        "call-unknown-tool",
        req("tools/call", '{"name":"nope","arguments":{}}'),
        HITS,
        enforce=Expected((0,), found=("client contract/unknown-tool (reported)",)),
        audit=Expected((0,), found=("client contract/unknown-tool (reported)",)),
    ),
    row(
        "unknown-method",
        req("tools/nope"),
        PONG,
        enforce=Expected((-32601,), reaches=False, found=("client protocol/method",)),
        audit=Expected((0,), found=("client protocol/method",)),
    ),
    row(
        "params-array",
        req("tools/call", "[]"),
        PONG,
        enforce=Expected((-32600,), reaches=False, found=("client envelope/params",)),
        audit=Expected((0,), found=("client envelope/params", "server protocol/result")),
    ),
    row(
        "duplicate-key",
        '{"jsonrpc":"2.0","id":ID,"method":"ping","method":"ping"}',
        PONG,
        enforce=Expected((-32700,), reaches=False, found=("client syntax/duplicate-key",)),
        audit=Expected((0,), found=("client syntax/duplicate-key",)),
        unlike=(
            Unlike(
                "http-child", "audit", Expected((-32700,), reaches=False, found=("client syntax/duplicate-key",)), LINE
            ),
        ),
    ),
    row(
        "number-too-large",
        req("ping", '{"x":1e999}'),
        PONG,
        enforce=Expected((-32700,), reaches=False, found=("client syntax/number",)),
        audit=Expected((0,), found=("client syntax/number",)),
        unlike=(
            Unlike("http-child", "audit", Expected((-32700,), reaches=False, found=("client syntax/number",)), LINE),
        ),
    ),
    row(
        "lone-surrogate",
        '{"params":{"x":"\\ud800"},"method":"ping","jsonrpc":"2.0","id":ID}',
        PONG,
        enforce=Expected((-32700,), reaches=False, found=("client syntax/surrogate",)),
        audit=Expected((0,), found=("client syntax/surrogate",)),
        unlike=(
            Unlike("http-child", "audit", Expected((-32700,), reaches=False, found=("client syntax/surrogate",)), LINE),
        ),
    ),
    row(
        "no-jsonrpc",
        '{"id":ID,"method":"ping"}',
        PONG,
        enforce=Expected((-32600,), reaches=False, found=("client envelope/jsonrpc",)),
        audit=Expected((0,), found=("client envelope/jsonrpc",)),
    ),
    row(
        "not-json",
        "hello, ID?",
        enforce=Expected(("null -32700",), reaches=False, found=("client syntax/json",)),
        audit=Expected(found=("client syntax/json",)),
        unlike=(
            Unlike(
                "http-child", "audit", Expected(("null -32700",), reaches=False, found=("client syntax/json",)), LINE
            ),
        ),
    ),
    row(
        "half-json",
        '{"jsonrpc":"2.0","id":ID,"method":"ping"',
        PONG,
        enforce=Expected(("null -32700",), reaches=False, found=("client syntax/json",)),
    ),
    row(
        "empty-batch",
        "[]",
        enforce=Expected(("null -32600",), reaches=False, found=("client envelope/batch",)),
        audit=Expected(found=("client envelope/batch",)),
    ),
    row(
        "batch",
        '[{"jsonrpc":"2.0","id":ID,"method":"ping"}]',
        enforce=Expected(("null -32600",), reaches=False, found=("client envelope/batch",)),
        audit=Expected(found=("client envelope/batch",)),
    ),
    row(
        "unknown-notification",
        note("notifications/nope", '{"name":ID}'),
        enforce=Expected(reaches=False, found=("client protocol/method",)),
        audit=Expected(found=("client protocol/method",)),
    ),
    row(
        "answer-to-nothing",
        '{"jsonrpc":"2.0","id":ID,"result":{}}',
        enforce=Expected(reaches=False, found=("client protocol/unsolicited",)),
        audit=Expected(found=("client protocol/unsolicited",)),
    ),
    row(
        "blank-line",
        "   ",
        enforce=Expected(reaches=False),
        audit=Expected(),
        unlike=(
            Unlike("http-child", "enforce", Expected(("null -32700",), reaches=False), BLANK_HTTP),
            Unlike("http-http", "enforce", Expected(("null -32700",), reaches=False), BLANK_HTTP),
            Unlike("stdio-http", "audit", Expected(reaches=False), BLANK_URL),
            Unlike("http-child", "audit", Expected(("null -32700",), reaches=False), BLANK_HTTP),
        ),
    ),
    row(
        "second-initialize",
        req("initialize", '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}'),
        PONG,
        enforce=Expected((-32600,), reaches=False, found=("client protocol/initialize-again",)),
    ),
    row(
        "carriage-return",
        '{"jsonrpc":"2.0",\r"id":ID,"method":"ping"}',
        PONG,
        enforce=Expected((-32700,), reaches=False, found=("client framing/carriage-return",)),
        audit=Expected((0,), found=("client framing/carriage-return",)),
        unlike=(
            Unlike("stdio-http", "enforce", Expected((0,)), CR_URL),
            Unlike("http-child", "enforce", Expected((0,), reaches=False), CR_CHILD),
            Unlike("http-http", "enforce", Expected((0,)), CR_URL),
            Unlike("stdio-http", "audit", Expected((0,)), CR_URL),
            Unlike("http-child", "audit", Expected((0,), reaches=False), CR_CHILD),
            Unlike("http-http", "audit", Expected((0,)), CR_URL),
        ),
    ),
    row(
        "cancel-unknown",
        note("notifications/cancelled", '{"requestId":"nothing","reason":ID}'),
        enforce=Expected(found=("client protocol/cancel (reported)",)),
        audit=Expected(found=("client protocol/cancel (reported)",)),
    ),
    row(
        "call-bad-hits",
        call(),
        res('{"content":[],"structuredContent":{"hits":"one"}}'),
        enforce=Expected(("isError",), found=("server contract/output",)),
        audit=Expected((0,), found=("server contract/output",)),
    ),
    row(
        "call-without-structure",
        call(),
        res('{"content":[]}'),
        enforce=Expected(("isError",), found=("server contract/output",)),
        audit=Expected((0,), found=("server contract/output",)),
    ),
    row(
        "call-own-error",
        call(),
        res('{"content":[{"type":"text","text":"no"}],"isError":true}'),
        enforce=Expected((0,)),
        audit=Expected((0,)),
    ),
    row(
        "server-error",
        call(),
        '{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no"}}',
        enforce=Expected((0,)),
        audit=Expected((0,)),
    ),
    row(
        "result-not-a-number",
        P,
        '{"jsonrpc":"2.0","id":ID,"result":{"x":NaN}}',
        enforce=Expected((-31010,), found=("server syntax/number", "server protocol/unanswered")),
        audit=Expected((0,), found=("server syntax/number",)),
    ),
    row(
        "result-duplicate-key",
        P,
        '{"jsonrpc":"2.0","id":ID,"result":{"a":1,"a":2}}',
        enforce=Expected((-31010,), found=("server syntax/duplicate-key", "server protocol/unanswered")),
        audit=Expected((0,), found=("server syntax/duplicate-key",)),
    ),
    row(
        "neither-result-nor-error",
        P,
        '{"jsonrpc":"2.0","id":ID}',
        enforce=Expected((-31010,), found=("server envelope/members",)),
        audit=Expected((0,), found=("server envelope/members",)),
    ),
    row(
        "result-and-error",
        P,
        '{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":""}}',
        enforce=Expected((-31010,), found=("server envelope/members",)),
        audit=Expected((0,), found=("server envelope/members",)),
    ),
    row(
        "error-code-text",
        P,
        '{"jsonrpc":"2.0","id":ID,"error":{"code":"1","message":"no"}}',
        enforce=Expected((-31010,), found=("server envelope/error",)),
        audit=Expected((0,), found=("server envelope/error",)),
    ),
    row(
        "result-array",
        P,
        res("[]"),
        enforce=Expected((-31010,), found=("server envelope/result",)),
        audit=Expected((0,), found=("server envelope/result",)),
    ),
    row(
        "answer-in-a-batch",
        P,
        "[%s]" % PONG,
        enforce=Expected((-31010,), found=("server envelope/batch", "server protocol/unanswered")),
        audit=Expected((0,)),
    ),
    row(
        "answer-without-jsonrpc",
        P,
        '{"id":ID,"result":{}}',
        enforce=Expected((-31010,), found=("server envelope/jsonrpc",)),
        audit=Expected((0,), found=("server envelope/jsonrpc",)),
    ),
    row(
        "answer-to-another-first",
        P,
        '{"jsonrpc":"2.0","id":"nothing asked this","result":{}}',
        PONG,
        enforce=Expected((1,), found=("server protocol/unsolicited",)),
        audit=Expected((0, 1), found=("server protocol/unsolicited",)),
        unlike=(Unlike("http-child", "audit", Expected((1,), found=("server protocol/unsolicited",)), NO_RESPONSE),),
    ),
    row(
        "answer-twice",
        P,
        PONG,
        PONG,
        enforce=Expected((0,), found=("server protocol/answered-twice",)),
        audit=Expected((0, 0), found=("server protocol/answered-twice",)),
        unlike=(Unlike("http-child", "audit", Expected((0,), found=("server protocol/answered-twice",)), NO_RESPONSE),),
    ),
    row(
        "log-line-first",
        P,
        "a line of a log",
        PONG,
        enforce=Expected((1,), found=("server syntax/json",)),
        audit=Expected((0, 1), found=("server syntax/json",)),
        unlike=(
            Unlike("stdio-http", "audit", Expected((1,), found=("server syntax/json",)), LOG),
            Unlike("http-child", "audit", Expected((1,), found=("server syntax/json",)), LOG),
        ),
    ),
    row(
        "json-log-first",
        P,
        '{"level":"info"}',
        PONG,
        enforce=Expected((1,), found=("server envelope/jsonrpc", "server envelope/members", "server envelope/id")),
        audit=Expected((0, 1), found=("server envelope/jsonrpc", "server envelope/members", "server envelope/id")),
        unlike=(
            Unlike(
                "stdio-http",
                "audit",
                Expected((1,), found=("server envelope/jsonrpc", "server envelope/members", "server envelope/id")),
                LOG,
            ),
            Unlike(
                "http-child",
                "audit",
                Expected((1,), found=("server envelope/jsonrpc", "server envelope/members", "server envelope/id")),
                LOG,
            ),
        ),
    ),
    row(
        "blank-lines-first",
        P,
        "",
        "  ",
        PONG,
        enforce=Expected((2,)),
        audit=Expected((0, 1, 2)),
        unlike=(
            Unlike("stdio-http", "audit", Expected((2,)), BLANK_OUT),
            Unlike("http-child", "audit", Expected((2,)), BLANK_OUT),
            Unlike("http-http", "audit", Expected((2,)), BLANK_OUT),
        ),
    ),
    row(
        "log-message",
        P,
        note("notifications/message", '{"level":"info","data":ID}'),
        PONG,
        enforce=Expected((0, 1)),
        audit=Expected((0, 1)),
    ),
    row(
        "log-message-bad-level",
        P,
        note("notifications/message", '{"level":"loud","data":ID}'),
        PONG,
        enforce=Expected((1,), found=("server protocol/params",)),
        audit=Expected((0, 1), found=("server protocol/params",)),
    ),
    row(
        "progress",
        req("ping", '{"_meta":{"progressToken":ID}}'),
        note("notifications/progress", '{"progressToken":ID,"progress":1}'),
        PONG,
        enforce=Expected((0, 1)),
        audit=Expected((0, 1)),
    ),
    row(
        "progress-unknown-token",
        P,
        note("notifications/progress", '{"progressToken":"nothing","progress":1}'),
        PONG,
        enforce=Expected((0, 1), found=("server protocol/progress (reported)",)),
        audit=Expected((0, 1), found=("server protocol/progress (reported)",)),
    ),
    row(
        "list-changed",
        P,
        note("notifications/tools/list_changed", '{"_meta":{"name":ID}}'),
        PONG,
        enforce=Expected((0, 1)),
        audit=Expected((0, 1)),
    ),
    row(
        "server-asks-roots",
        P,
        '{"jsonrpc":"2.0","id":"ask ROW","method":"roots/list"}',
        PONG,
        enforce=Expected((0, 1)),
        audit=Expected((0, 1)),
        reply='{"jsonrpc":"2.0","id":"ask ROW","result":{"roots":[]}}',
    ),
    row(
        "server-asks-wrong-reply",
        P,
        '{"jsonrpc":"2.0","id":"ask ROW","method":"roots/list"}',
        PONG,
        enforce=Expected((0, 1), back=("error -31010",), found=("client protocol/result",)),
        audit=Expected((0, 1), found=("client protocol/result",)),
        reply='{"jsonrpc":"2.0","id":"ask ROW","result":{"roots":5}}',
    ),
    row(
        "server-asks-for-tools",
        P,
        '{"jsonrpc":"2.0","id":"ask ROW","method":"tools/list"}',
        PONG,
        enforce=Expected((1,), back=("error -32601",), found=("server protocol/direction",)),
        audit=Expected((0, 1), found=("server protocol/direction",)),
    ),
    row(
        "server-asks-badly",
        P,
        '{"jsonrpc":"2.0","id":"ask ROW","method":"sampling/createMessage","params":{}}',
        PONG,
        enforce=Expected((1,), back=("error -32602",), found=("server protocol/params", "server protocol/params")),
        audit=Expected((0, 1), found=("server protocol/params", "server protocol/params")),
    ),
    row(
        "broken-tool-in-list",
        req("tools/list"),
        res('{"tools":[TOOL,{"name":"broken","inputSchema":5}]}'),
        enforce=Expected(
            ("tools search",), found=("server protocol/result (reported)", "server contract/schema (reported)")
        ),
        audit=Expected((0,), found=("server protocol/result (reported)", "server contract/schema (reported)")),
    ),
    row(
        "schema-not-valid-in-list",
        req("tools/list"),
        res('{"tools":[TOOL,{"name":"broken","inputSchema":{"type":"object","properties":{"a":{"type":"nope"}}}}]}'),
        enforce=Expected(("tools search",), found=("server contract/schema (reported)",)),
        audit=Expected((0,), found=("server contract/schema (reported)",)),
    ),
    row(
        "resource",
        req("resources/read", '{"uri":"a:b"}'),
        res('{"contents":[{"uri":"a:b","text":"x"}]}'),
        enforce=Expected((0,)),
        audit=Expected((0,)),
    ),
    row(
        "resource-broken",
        req("resources/read", '{"uri":"a:b"}'),
        res('{"contents":[{"uri":5}]}'),
        enforce=Expected((-31010,), found=("server protocol/result",)),
        audit=Expected((0,), found=("server protocol/result",)),
    ),
    row(
        "set-level",
        req("logging/setLevel", '{"level":"debug"}'),
        PONG,
        enforce=Expected((0,)),
        audit=Expected((0,)),
    ),
]

STATELESS_ROWS = [
    row(
        "stateless-call",
        scall(),
        SH,
        enforce=Expected((0,)),
        audit=Expected((0,)),
    ),
    row(
        "stateless-bad-arguments",
        scall('{"words":5}'),
        SH,
        enforce=Expected(("isError",), reaches=False, found=("client contract/input",)),
        audit=Expected((0,), found=("client contract/input",)),
    ),
    row(
        "stateless-no-meta",
        req("tools/call", '{"name":"search","arguments":{"words":"ROW"}}'),
        SH,
        enforce=Expected((-32602,), reaches=False, found=("client protocol/params",)),
        audit=Expected((0,), found=("client protocol/params",)),
        unlike=(
            Unlike("http-child", "audit", Expected((-32602,), reaches=False, found=("client protocol/params",)), ERA),
        ),
    ),
    row(
        "stateless-unknown-method",
        req("tools/nope", "{%s}" % M),
        sres(),
        enforce=Expected((0,), found=("client protocol/unheard-extension (reported)",)),
        audit=Expected((0,), found=("client protocol/unheard-extension (reported)",)),
    ),
    row(
        "stateless-initialize",
        req(
            "initialize",
            '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"},%s}' % M,
        ),
        sres(),
        enforce=Expected((-32601,), reaches=False, found=("client protocol/method",)),
    ),
    row(
        "stateless-other-revision",
        req("tools/call", '{"name":"search","arguments":{"words":"ROW"},%s}' % M.replace("2026-07-28", "2031-01-01")),
        SH,
        enforce=Expected((-32022,), reaches=False, found=("client protocol/unsupported-revision",)),
        audit=Expected((0,), found=("client protocol/unsupported-revision",)),
    ),
    row(
        "stateless-bad-hits",
        scall(),
        sres('"content":[],"structuredContent":{"hits":"one"}'),
        enforce=Expected(("isError",), found=("server contract/output",)),
        audit=Expected((0,), found=("server contract/output",)),
    ),
    row(
        "stateless-no-result-type",
        scall(),
        HITS,
        enforce=Expected((0,), found=("server protocol/result-type-missing (reported)",)),
        audit=Expected((0,), found=("server protocol/result-type-missing (reported)",)),
    ),
    row(
        "stateless-server-error",
        scall(),
        '{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no"}}',
        enforce=Expected((0,)),
        audit=Expected((0,)),
    ),
    row(
        "stateless-server-asks",
        scall(),
        '{"jsonrpc":"2.0","id":"ask ROW","method":"roots/list"}',
        SH,
        enforce=Expected((1,), back=("error -32601",), found=("server protocol/method",)),
        audit=Expected((0, 1), found=("server protocol/method",)),
        unlike=(
            Unlike(
                "http-child",
                "audit",
                Expected((1,), back=("error -31011",), found=("server protocol/method", "client protocol/unanswered")),
                WHOSE,
            ),
        ),
    ),
    row(
        "stateless-log-unasked",
        scall(),
        note("notifications/message", '{"level":"info","data":"ROW"}'),
        SH,
        enforce=Expected((0, 1), found=("server protocol/log (reported)",)),
        audit=Expected((0, 1), found=("server protocol/log (reported)",)),
        unlike=(
            Unlike("http-child", "enforce", Expected((1,), found=("server protocol/log (reported)",)), LOGS),
            Unlike("http-child", "audit", Expected((1,), found=("server protocol/log (reported)",)), LOGS),
        ),
    ),
    row(
        "stateless-not-a-number",
        scall(),
        '{"jsonrpc":"2.0","id":ID,"result":{"x":NaN}}',
        enforce=Expected((-31010,), found=("server syntax/number", "server protocol/unanswered")),
        audit=Expected((0,), found=("server syntax/number",)),
    ),
    row(
        "stateless-duplicate-key",
        '{"jsonrpc":"2.0","id":ID,"method":"tools/list","method":"tools/list","params":{%s}}' % M,
        sres(),
        enforce=Expected((-32700,), reaches=False, found=("client syntax/duplicate-key",)),
        audit=Expected((0,), found=("client syntax/duplicate-key",)),
        unlike=(
            Unlike(
                "http-child", "audit", Expected((-32700,), reaches=False, found=("client syntax/duplicate-key",)), LINE
            ),
        ),
    ),
]

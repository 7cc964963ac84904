"""
Exchanges, and what the guard makes of each: the same for every pair of transports unless a row gives the reason.

In the lines of a row ID stands for the id of the client's request, which is the name of the row, and ROW for that name.
"""
# ruff: noqa: UP031 - JSON is full of braces

from typing import Any, NamedTuple

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
M = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
FRAME_BYTES = 20_000
"""How long a message may be."""

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
    why: str
    changes: dict[str, Any]


class Row(NamedTuple):
    """One exchange."""

    name: str
    client: str
    server: tuple[str, ...]
    """What the server says to the client's line, one line each."""
    enforce: Expected
    audit: Expected | None
    """None if the row is left out under audit, where it would change what later rows mean."""
    unlike: tuple[Unlike, ...]
    reply: str
    """What the client answers to a request of the server."""

    def expected(self, pairing: str, mode: str) -> Expected:
        """What comes of it through *pairing*."""
        expected = self.enforce if mode == "enforce" else self.audit
        assert expected is not None
        for each in self.unlike:
            if each.pairing == pairing and each.mode == mode:
                return expected._replace(**each.changes)
        return expected


def row(
    name: str,
    client: str,
    *server: str,
    gets: tuple[Item, ...] | None = None,
    stops: bool = False,
    back: tuple[str, ...] = (),
    found: tuple[str, ...] = (),
    enforced: tuple[str, ...] = (),
    audited: bool = True,
    unlike: tuple[Unlike, ...] = (),
    reply: str = "",
) -> Row:
    """
    One row. Under audit all passes; under enforce the client *gets* less, and the line *stops* before the server.

    *found* is found in both modes, *enforced* only under enforce.
    """
    everything = tuple(map(server.index, server))
    passing = Expected(everything, found=found)
    kept = Expected(everything if gets is None else gets, not stops, back, found + enforced)
    return Row(name, client, server, kept, passing if audited else None, unlike, reply)


def refused(name: str, client: str, *server: str, gets: Item, found: str, **more: Any) -> Row:
    """A message of the client that the guard answers itself under enforce."""
    return row(name, client, *server, gets=(gets,), stops=True, found=(f"client {found}",), **more)


def dropped(name: str, client: str, found: str) -> Row:
    """A message of the client that is not answered, and does not reach the server under enforce."""
    return row(name, client, gets=(), stops=True, found=(f"client {found}",))


def withheld(name: str, client: str, server: str, gets: Item, *found: str, **more: Any) -> Row:
    """An answer in place of which the client gets that of the guard under enforce."""
    return row(name, client, server, gets=(gets,), found=tuple(f"server {each}" for each in found), **more)


def beside(name: str, noise: str, *found: str, **more: Any) -> Row:
    """A line before a good answer, which the client does not get under enforce."""
    return row(name, P, noise, PONG, gets=(1,), found=tuple(f"server {each}" for each in found), **more)


def reported(name: str, client: str, *server: str, found: str, **more: Any) -> Row:
    """An exchange that passes, and is reported."""
    return row(name, client, *server, found=(f"{found} (reported)",), **more)


def unlike(pairing: str, mode: str, why: str, **changes: Any) -> Unlike:
    """How *pairing* differs."""
    return Unlike(pairing, mode, why, changes)


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
SHARED_CHILD = "Many clients share this child, so the guard itself answers what the child asks."
LENGTH = "The guard would have to hold all of it before it could pass it on."
LOGS = "Many clients share this child, and none of them asked for log messages."


def no_line(code: Item) -> tuple[Unlike, ...]:
    """Under audit a child gets no body that is not JSON."""
    return (unlike("http-child", "audit", LINE, gets=(code,), reaches=False),)


def too_long(gets: Item, *pairings: str, **changes: Any) -> tuple[Unlike, ...]:
    """Under audit a message that is longer than allowed passes only where it can be passed on in pieces."""
    return tuple(unlike(each, "audit", LENGTH, gets=(gets,), **changes) for each in pairings)


def not_for(mode: str, why: str, gets: tuple[Item, ...], *pairings: str) -> tuple[Unlike, ...]:
    """Clients of *pairings* get only this."""
    return tuple(unlike(each, mode, why, gets=gets) for each in pairings)


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def req(method: str, params: str = "") -> str:
    """A request."""
    return '{"jsonrpc":"2.0","id":ID,"method":"%s"%s}' % (method, f',"params":{params}' if params else "")


def call(arguments: str = '{"words":"sea"}') -> str:
    """A call of the tool."""
    return req("tools/call", '{"name":"search","arguments":%s}' % arguments)


def scall(arguments: str = '{"words":"ROW"}', meta: str = M) -> str:
    """A call of the tool in the stateless era."""
    return req("tools/call", '{"name":"search","arguments":%s,%s}' % (arguments, meta))


def res(result: str) -> str:
    """A result."""
    return '{"jsonrpc":"2.0","id":ID,"result":%s}' % result


def sres(members: str = "") -> str:
    """A result of the stateless era."""
    return res('{"resultType":"complete"%s}' % (f",{members}" if members else ""))


def note(method: str, params: str = "") -> str:
    """A notification."""
    return '{"jsonrpc":"2.0","method":"%s"%s}' % (method, f',"params":{params}' if params else "")


def asking(method: str, more: str = "") -> str:
    """A request of the server."""
    return '{"jsonrpc":"2.0","id":"ask ROW","method":"%s"%s}' % (method, more)


P = req("ping")
PONG = res("{}")
HITS = res('{"content":[],"structuredContent":{"hits":1}}')
SH = sres('"content":[],"structuredContent":{"hits":1}')
FAILS = '{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no"}}'
NOT_A_NUMBER = '{"jsonrpc":"2.0","id":ID,"result":{"x":NaN}}'
INITIALIZE = '"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}'
LONG = "x" * (FRAME_BYTES + 1000)
UNANSWERED = ("server protocol/unanswered",)
CACHED = '"ttlMs":0,"cacheScope":"private"'

# ── the tables ───────────────────────────────────────────────────────────────────────────────────────────────────────

HANDSHAKE_ROWS = [
    row("call", call(), HITS),
    refused("call-bad-arguments", call('{"words":5}'), HITS, gets="isError", found="contract/input"),
    reported(
        "call-unknown-tool",
        req("tools/call", '{"name":"nope","arguments":{}}'),
        HITS,
        found="client contract/unknown-tool",
    ),
    refused(
        "duplicate-key",
        '{"jsonrpc":"2.0","id":ID,"method":"ping","method":"ping"}',
        PONG,
        gets=-32700,
        found="syntax/duplicate-key",
        unlike=no_line(-32700),
    ),
    refused("not-json", "hello, ID?", gets="null -32700", found="syntax/json", unlike=no_line("null -32700")),
    refused("batch", '[{"jsonrpc":"2.0","id":ID,"method":"ping"}]', gets="null -32600", found="envelope/batch"),
    refused(
        "too-long",
        req("ping", '{"x":"%s"}' % LONG),
        PONG,
        gets=-32600,
        found="framing/size",
        unlike=too_long(-32600, "stdio-http", "http-child", "http-http", reaches=False),
    ),
    dropped("unknown-notification", note("notifications/nope", '{"name":ID}'), "protocol/method"),
    row(
        "blank-line",
        "   ",
        stops=True,
        unlike=(
            *not_for("enforce", BLANK_HTTP, ("null -32700",), "http-child", "http-http"),
            unlike("stdio-http", "audit", BLANK_URL, reaches=False),
            unlike("http-child", "audit", BLANK_HTTP, gets=("null -32700",), reaches=False),
        ),
    ),
    refused(
        "second-initialize",
        req("initialize", "{%s}" % INITIALIZE),
        PONG,
        gets=-32600,
        found="protocol/initialize-again",
        audited=False,
    ),
    refused(
        "carriage-return",
        '{"jsonrpc":"2.0",\r"id":ID,"method":"ping"}',
        PONG,
        gets=-32700,
        found="framing/carriage-return",
        unlike=tuple(
            unlike(pairing, mode, why, gets=(0,), reaches=why is CR_URL, found=())
            for mode in ("enforce", "audit")
            for pairing, why in (("stdio-http", CR_URL), ("http-child", CR_CHILD), ("http-http", CR_URL))
        ),
    ),
    withheld(
        "call-bad-hits", call(), res('{"content":[],"structuredContent":{"hits":"one"}}'), "isError", "contract/output"
    ),
    row("server-error", call(), FAILS),
    withheld("result-not-a-number", P, NOT_A_NUMBER, -31010, "syntax/number", enforced=UNANSWERED),
    withheld(
        "result-too-long",
        P,
        res('{"x":"%s"}' % LONG),
        -31010,
        "framing/size",
        enforced=UNANSWERED,
        unlike=too_long(-31010, "stdio-http", "http-child"),
    ),
    row(
        "answer-in-a-batch",
        P,
        f"[{PONG}]",
        gets=(-31010,),
        enforced=("server envelope/batch", "server protocol/unanswered"),
    ),
    beside(
        "answer-to-another-first",
        '{"jsonrpc":"2.0","id":"nothing asked this","result":{}}',
        "protocol/unsolicited",
        unlike=not_for("audit", NO_RESPONSE, (1,), "http-child"),
    ),
    row(
        "answer-twice",
        P,
        PONG,
        PONG,
        gets=(0,),
        found=("server protocol/answered-twice",),
        unlike=(unlike("http-child", "audit", NO_RESPONSE, gets=(0,)),),
    ),
    beside(
        "log-line-first",
        "a line of a log",
        "syntax/json",
        unlike=not_for("audit", LOG, (1,), "stdio-http", "http-child"),
    ),
    row(
        "blank-lines-first",
        P,
        "",
        "  ",
        PONG,
        gets=(2,),
        unlike=not_for("audit", BLANK_OUT, (2,), "stdio-http", "http-child", "http-http"),
    ),
    row("log-message", P, note("notifications/message", '{"level":"info","data":ID}'), PONG),
    row(
        "progress",
        req("ping", '{"_meta":{"progressToken":ID}}'),
        note("notifications/progress", '{"progressToken":ID,"progress":1}'),
        PONG,
    ),
    row(
        "server-asks-roots",
        P,
        asking("roots/list"),
        PONG,
        reply='{"jsonrpc":"2.0","id":"ask ROW","result":{"roots":[]}}',
    ),
    row(
        "server-asks-wrong-reply",
        P,
        asking("roots/list"),
        PONG,
        back=("error -31010",),
        found=("client protocol/result",),
        reply='{"jsonrpc":"2.0","id":"ask ROW","result":{"roots":5}}',
    ),
    beside("server-asks-for-tools", asking("tools/list"), "protocol/direction", back=("error -32601",)),
    withheld(
        "schema-not-valid-in-list",
        req("tools/list"),
        res('{"tools":[TOOL,{"name":"odd","inputSchema":{"type":"object","properties":{"a":{"type":"nope"}}}}]}'),
        "tools search",
        "contract/schema (reported)",
        "lock/added (reported)",
    ),
]

OTHER_REVISION = M.replace("2026-07-28", "2031-01-01")
ODD_EXTENSION = M.replace(":{}}", ':{"extensions":{"search":{}}}}')
SKILL = '"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf","description":"x"},"resources":[]'
TASK = (
    '"taskId":"t","status":"working","createdAt":"2026-08-01T10:00:00Z","lastUpdatedAt":"2026-08-01T10:00:00Z",'
    '"ttlMs":null'
)

STATELESS_ROWS = [
    row("stateless-call", scall(), SH),
    refused(
        "stateless-no-meta",
        req("tools/call", '{"name":"search","arguments":{"words":"ROW"}}'),
        SH,
        gets=-32602,
        found="protocol/params",
        unlike=(unlike("http-child", "audit", ERA, gets=(-32602,), reaches=False),),
    ),
    refused(
        "stateless-other-revision", scall(meta=OTHER_REVISION), SH, gets=-32022, found="protocol/unsupported-revision"
    ),
    reported("stateless-no-result-type", scall(), HITS, found="server protocol/result-type-missing"),
    row(
        "stateless-server-asks",
        scall(),
        asking("roots/list"),
        SH,
        gets=(1,),
        back=("error -32601",),
        found=("server protocol/method",),
        unlike=(
            unlike(
                "http-child",
                "audit",
                SHARED_CHILD,
                gets=(1,),
                back=("error -31011",),
                found=("server protocol/method", "client protocol/unanswered"),
            ),
        ),
    ),
    reported(
        "stateless-log-unasked",
        scall(),
        note("notifications/message", '{"level":"info","data":"ROW"}'),
        SH,
        found="server protocol/log",
        unlike=tuple(unlike("http-child", mode, LOGS, gets=(1,)) for mode in ("enforce", "audit")),
    ),
    reported("extension", scall(meta=ODD_EXTENSION), SH, found="client extension/identifier"),
    row(
        "task",
        req("tasks/get", '{"taskId":"t",%s}' % M),
        sres(TASK),
        found=("client protocol/capability (reported)", "server tasks/undeclared (reported)"),
    ),
    reported(
        "skill",
        req("skills/list", "{%s}" % M),
        sres(f'"skills":[{{{SKILL}}}],{CACHED}'),
        found="server skills/manifest",
    ),
    reported(
        "app",
        req("resources/read", '{"uri":"ui://view.html",%s}' % M),
        sres('"contents":[{"uri":"ui://view.html","text":"<html>","mimeType":"text/html"}],' + CACHED),
        found="server apps/mime-type",
    ),
]

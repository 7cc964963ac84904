"""
Map requests to OpenTelemetry's semantic conventions for MCP: names and attributes, as short strings.

From https://github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/mcp.md, at commit 0393513c908b
(status: development). Our own attributes have the prefix `assay.`. No frame, no arguments, no place or value of a
violation. Does not import OpenTelemetry.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import orjson

from assay.base.errors import CanonicalError
from assay.base.verdict import Verdict
from assay.contracts.own_tools import TOOLS
from assay.records.metrics import METHODS
from assay.records.record import session_digest
from assay.rules import RULES

DURATION: Final = "mcp.server.operation.duration"
DURATION_TEXT: Final = (
    "MCP request or notification duration as observed on the receiver from the time it was received until the result"
    " or ack is sent."
)
DURATION_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)

LONGEST: Final = 256
"""Maximal characters of a name, an id or a URI: enough to recognize it, and 2048 of each are half a megabyte."""

Attributes = dict[str, str | tuple[str, ...]]

_STATUS: Final = "rpc.response.status_code"
_RULES: Final = "assay.rules"
_TOOL_ERROR: Final = "tool_error"
_OTHER: Final = "_OTHER"
"""The value of the conventions for an unknown one."""

_NETWORK: Final[dict[str, Attributes]] = {
    "stdio": {"network.transport": "pipe"},
    "http": {"network.transport": "tcp", "network.protocol.name": "http"},
}
_TOOL: Final = "gen_ai.tool.name"
_TARGETS: Final = {"tools/call": _TOOL, "prompts/get": "gen_ai.prompt.name"} | dict.fromkeys(TOOLS, _TOOL)
"""The attribute for the target of each method that has one; the methods of specs/001 are tools themselves."""

_WITH_URI: Final = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})
_CODES: Final = frozenset(CanonicalError.codes())


class Asked(NamedTuple):
    """What is exported of a request when it comes."""

    method: str
    common: Attributes
    """Attributes of the span and of the duration: no values that a peer could invent."""
    alone: Attributes
    """Attributes of the span alone, the target among them."""
    target: str | None
    """The tool or the prompt."""
    attribute: str
    """The attribute for the target."""
    listed: bool
    """Whether the server has listed the target; otherwise its name is only what a client sent."""


class Outcome(NamedTuple):
    """How a request ended."""

    common: Attributes
    """Attributes of the span and of the duration; empty without an error."""
    alone: Attributes
    """Attributes of the span alone."""
    text: str | None = None
    """The message of the error response."""


def asked(request: Verdict, transport: str, session: str | None, redacted: Callable[[str], str]) -> Asked:
    """Return the attributes of *request*, with the URI of a resource *redacted*."""
    message, params = _object(request.value), _object(_object(request.value).get("params"))
    method = request.method if request.method in METHODS and request.method is not None else _OTHER
    common: Attributes = {"mcp.method.name": method, **_NETWORK.get(transport, {})}
    if _TARGETS.get(method) == _TOOL:
        common["gen_ai.operation.name"] = "execute_tool"
    if request.revision is not None:
        common["mcp.protocol.version"] = request.revision
    alone: Attributes = {"assay.party": request.party}
    attribute, target = _TARGETS.get(method, ""), None
    if attribute and type(name := method if method in TOOLS else params.get("name")) is str:
        alone[attribute] = target = name[:LONGEST]
    listed = method in TOOLS or (request.exchange is not None and request.exchange.contract is not None)
    if method in _WITH_URI and type(uri := params.get("uri")) is str:
        # Without user, query and fragment, which may hold secrets.
        plain = re.sub(r"(?<=://)[^/?#]*@", "[redacted]@", re.split("[?#]", uri, maxsplit=1)[0])
        alone["mcp.resource.uri"] = redacted(plain[:LONGEST])
    if session:
        alone["mcp.session.id"] = session_digest(session)
    ident = message.get("id")
    if type(ident) is float and request.exchange is not None:
        # A large number may have been parsed inexactly; the exchange has the exact one.
        ident = request.exchange.id
    if type(ident) in {str, int, float}:
        alone["jsonrpc.request.id"] = str(ident)[:LONGEST]
    if type(version := message.get("jsonrpc")) is str and version != "2.0":
        alone["jsonrpc.protocol.version"] = version[:LONGEST]
    return Asked(method, common, alone, target, attribute, listed)


def trace_context(request: Verdict) -> dict[str, str]:
    """Return the `traceparent` and the `tracestate` of the message, unless they are too long."""
    meta = _object(_object(_object(request.value).get("params")).get("_meta"))
    # W3C requires that 512 characters of a tracestate are forwarded.
    most = {"traceparent": LONGEST, "tracestate": 512}
    return {name: text for name in most if type(text := meta.get(name)) is str and len(text) <= most[name]}


def refused(request: Verdict, code: str | None = None, *, failed: bool = False) -> Outcome:
    """Return the outcome of *request* by its own verdict, or by the *code* of its response."""
    if code is None and request.back is not None:
        code = next((RULES[each.rule].code for each in request.violations if each.stops), None)
    if code is None and failed:
        code = _failure(request)
    return _outcome(code, request.back, (each.rule for each in request.violations))


def answered(answer: Verdict, before: Outcome) -> Outcome:
    """Return the outcome of a request by its *answer*; *before* is the one by its own verdict."""
    code, reply = None, None
    message = _object(answer.value)
    if answer.kind == "missing":
        is_late = answer.exchange is not None and answer.exchange.state == "timed-out"
        code = "TIMEOUT" if is_late else "UPSTREAM_FAILURE"
    elif not answer.accepted and answer.onward is not answer.frame:
        code, reply = "UPSTREAM_INVALID", answer.onward
    elif message.get("error") is not None:
        number = _object(message["error"]).get("code")
        code = str(number) if type(number) is int else _OTHER
    elif _object(message.get("result")).get("isError") is True:
        code = _failure(answer)
    return _outcome(code, reply, (*before.alone.get(_RULES, ()), *(each.rule for each in answer.violations)))


def _outcome(code: str | None, reply: bytes | None, rules: Iterable[str]) -> Outcome:
    """Return the outcome for an error *code*; *reply* is the guard's own answer, if it gave one."""
    broken = tuple(dict.fromkeys(rules))
    alone: Attributes = {_RULES: broken} if broken else {}
    if code is None:
        return Outcome({}, alone)
    if code not in _CODES:
        if len(code) <= 12 and code.removeprefix("-").isdecimal():
            # A server's own error. Not for durations, because a server could invent any number of them.
            alone[_STATUS] = code
        return Outcome({"error.type": code if code == _TOOL_ERROR else _OTHER}, alone)
    # The canonical error is more specific than its JSON-RPC code.
    common: Attributes = {"error.type": code}
    error = CanonicalError.to_jsonrpc_error(code)
    # A call can be refused with a failed result (2025-11-25 and later), which has no code.
    if reply is None or "result" not in orjson.loads(reply):
        common[_STATUS] = str(error["code"])
    return Outcome(common, alone, str(error["message"]))


def _failure(message: Verdict) -> str:
    """Return the `error.type` of a result that reports a failure."""
    return _TOOL_ERROR if _TARGETS.get(message.method or "") == _TOOL else _OTHER


def _object(value: Any) -> dict[str, Any]:
    """Return *value* if it is an object, else an empty one."""
    return value if type(value) is dict else {}

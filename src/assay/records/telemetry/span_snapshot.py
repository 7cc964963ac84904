"""
The part of a request that telemetry keeps: short strings, so that the queue stays small whatever was sent.

No frame, no arguments, no place or value of a violation. Does not import OpenTelemetry.
"""

import re
from typing import Any, Final, NamedTuple

import orjson

from assay.base.verdict import Verdict
from assay.contracts.own_tools import TOOLS
from assay.records.journal.record import session_digest
from assay.records.metrics import METHODS
from assay.rules import RULES

LONGEST: Final = 256
"""Maximal characters of a name, an id or a URI: enough to recognize it, and 2048 of each are half a megabyte."""

OTHER: Final = "_OTHER"
"""The value of the conventions for an unknown one."""

_TRACESTATE: Final = 512
"""Characters of a tracestate that W3C requires to be forwarded; a longer one is dropped."""

_USER: Final = re.compile(r"(?<=://)[^/?#]*@")
"""User name and password in a URI."""

_WITH_URI: Final = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})


class Seen(NamedTuple):
    """One request that was answered or refused."""

    method: str
    """A known method, else `_OTHER`."""
    tool: str | None
    listed: bool
    """Whether the server has listed the tool; otherwise its name is only what a client sent."""
    prompt: str | None
    uri: str | None
    """Without user, query and fragment, which may hold secrets."""
    ident: str | None
    jsonrpc: str | None
    """The version of JSON-RPC, where it is not 2.0."""
    revision: str | None
    party: str
    """The sender of the request."""
    rules: tuple[str, ...]
    """The rules that the request breaks, each once."""
    code: str | None
    """The canonical error of the response; None without an error."""
    refused_by_result: bool
    """Whether it was refused with a failed result (2025-11-25 and later) instead of an error."""
    failed: bool
    began_ns: int
    ended_ns: int
    transport: str
    session: str | None
    """A digest of its id, the same as in the journal."""
    traceparent: str | None
    """The traceparent of the message."""
    tracestate: str | None
    outer: str | None
    """The traceparent of the HTTP request."""


def seen(
    request: Verdict,
    *,
    code: str | None,
    failed: bool,
    began_ns: int,
    ended_ns: int,
    transport: str,
    session: str | None,
    traceparent: str | None,
) -> Seen:
    """Return the part of *request* to keep."""
    message = request.value if type(request.value) is dict else {}
    params = message.get("params")
    if type(params) is not dict:
        params = {}
    meta = params.get("_meta")
    if type(meta) is not dict:
        meta = {}
    method = request.method
    exchange = request.exchange
    rules: tuple[str, ...] = ()
    by_result = False
    if request.findings is not None:
        rules = tuple(dict.fromkeys(each.rule for each in request.violations))
        if code is None and request.back is not None:
            code = next((RULES[each.rule].code for each in request.violations if each.stops), None)
        by_result = request.back is not None and "result" in orjson.loads(request.back)
    tool, listed = None, False
    if method == "tools/call":
        tool, listed = _short(params.get("name")), exchange is not None and exchange.contract is not None
    elif method in TOOLS:
        tool, listed = method, True
    state = meta.get("tracestate")
    return Seen(
        method if method in METHODS and method is not None else OTHER,
        tool,
        listed,
        _short(params.get("name")) if method == "prompts/get" else None,
        _short(_discreet(params.get("uri"))) if method in _WITH_URI else None,
        _ident(request, message.get("id")),
        None if message.get("jsonrpc") == "2.0" else _short(message.get("jsonrpc")),
        request.revision,
        request.party,
        rules,
        code,
        by_result,
        failed,
        began_ns,
        ended_ns,
        transport,
        session_digest(session) if session else None,
        _short(meta.get("traceparent")),
        state if type(state) is str and len(state) <= _TRACESTATE else None,
        _short(traceparent),
    )


def answered(begun: Seen, answer: Verdict, ended_ns: int) -> Seen:
    """Return *begun*, a request to a server, with its outcome."""
    rules = tuple(dict.fromkeys((*begun.rules, *(each.rule for each in answer.violations))))
    code, by_result, failed = _outcome(answer)
    return begun._replace(
        rules=rules, code=code, refused_by_result=by_result, failed=failed, ended_ns=max(ended_ns, begun.began_ns)
    )


def _outcome(answer: Verdict) -> tuple[str | None, bool, bool]:
    """Return the error for the sender, whether it is a failed result, and whether a tool reports a failure."""
    if answer.kind == "missing":
        late = answer.exchange is not None and answer.exchange.state == "timed-out"
        return "TIMEOUT" if late else "UPSTREAM_FAILURE", False, False
    if not answer.accepted and answer.onward is not answer.frame:
        return "UPSTREAM_INVALID", answer.onward is not None and "result" in orjson.loads(answer.onward), False
    message = answer.value if type(answer.value) is dict else {}
    error, result = message.get("error"), message.get("result")
    code = error.get("code") if type(error) is dict else None
    if error is not None:
        return str(code) if type(code) is int else OTHER, False, False
    return None, False, type(result) is dict and result.get("isError") is True


def _short(value: Any) -> str | None:
    return value[:LONGEST] if type(value) is str else None


def _discreet(uri: Any) -> Any:
    """Return *uri* without query, fragment, user name and password."""
    if type(uri) is not str:
        return None
    return _USER.sub("[redacted]@", re.split("[?#]", uri, maxsplit=1)[0])


def _ident(request: Verdict, ident: Any) -> str | None:
    """Return the id as a string. A large number may have been parsed inexactly; the exchange has the exact one."""
    if type(ident) is str:
        return ident[:LONGEST]
    if type(ident) is int:
        return str(ident)
    if type(ident) is float:
        return str(request.exchange.id if request.exchange else ident)
    return None

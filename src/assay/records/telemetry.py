"""
Spans and durations of requests for an OpenTelemetry collector, in the terms of the semantic conventions for MCP.

The conventions are https://github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/mcp.md, at commit
0393513c908b (status: development). Our own attributes have the prefix `assay.`. No frame, no arguments, no place or
value of a violation. OpenTelemetry is imported only if a collector is configured.
"""

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from assay.judge.redaction import Redactor
from assay.model.errors import CanonicalError
from assay.model.limits import ASSET_TOOLS
from assay.model.verdict import Verdict
from assay.records.metrics import METHODS
from assay.records.record import session_digest
from assay.rules import RULES
from assay.settings import Log, TelemetrySettings
from assay.settings.extras import missing

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from assay.records.telemetry_export import Exporting

LONGEST: Final = 256
"""Maximal characters of a name, an id or a URI: enough to recognize it, and 2048 of each are half a megabyte."""

Attributes = dict[str, str | tuple[str, ...]]

_STATUS: Final = "rpc.response.status_code"
_RULES: Final = "assay.rules"
_TOOL_ERROR: Final = "tool_error"
_OTHER: Final = "_OTHER"
"""The value of the conventions for an unknown one."""

MOST_TARGETS: Final = 1000
"""Maximal names of tools and prompts in use. The largest server we know lists under 300 tools."""

_NETWORK: Final[dict[str, Attributes]] = {
    "stdio": {"network.transport": "pipe"},
    "http": {"network.transport": "tcp", "network.protocol.name": "http"},
}
_TOOL: Final = "gen_ai.tool.name"
_TARGETS: Final = {"tools/call": _TOOL, "prompts/get": "gen_ai.prompt.name"} | dict.fromkeys(ASSET_TOOLS, _TOOL)
"""The attribute for the target of each method that has one; the methods of specs/001 are tools themselves."""

_WITH_URI: Final = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})
_CODES: Final = frozenset(CanonicalError.codes())


class Outcome(NamedTuple):
    """How a request ended."""

    common: Attributes
    """Attributes of the span and of the duration; empty without an error."""
    alone: Attributes
    """Attributes of the span alone."""
    text: str | None = None
    """The message of the error response."""


class _Begun(NamedTuple):
    """What is kept of a request until it is answered: no frame, and nothing long."""

    span: "Span"
    began_ns: int
    method: str
    common: Attributes
    """Attributes of the span and of the duration: no values that a peer could invent."""
    target: str | None
    """The tool or the prompt."""
    is_listed: bool
    """Whether the server has listed the target; otherwise its name is only what a client sent."""
    refused: Outcome
    """The outcome by the request's own verdict."""


class Telemetry:
    """
    Spans and durations of requests, sent to a collector in the background.

    One thread, that of the traffic, calls all methods. They neither wait for the collector nor raise: a bug loses
    telemetry, never a response.
    """

    @classmethod
    def open(cls, section: TelemetrySettings, *, log: Log, redact: Sequence[str] = ()) -> "Telemetry | None":
        """
        Return telemetry as configured by *section* and the `OTEL_*` variables; None if it is not configured.

        Matches of *redact* are hidden in the URIs of resources, in addition to what looks like a secret.
        Also None if telemetry cannot be set up; the reason goes to *log*.
        """
        places = {signal: place for signal in ("traces", "metrics") if (place := _place(section, signal))}
        if places and _variable("OTEL_SDK_DISABLED").lower() == "true":
            log("telemetry: off, because OTEL_SDK_DISABLED is true")
            return None
        places = {signal: place for signal, place in places.items() if _is_wanted(signal, log)}
        if not places:
            return None
        try:
            from assay.records.telemetry_export import Exporting  # noqa: PLC0415 - an extra, which takes 0.2 s
        except ImportError as error:
            log(f"telemetry: off: it needs {missing(error, 'telemetry')}")
            return None
        try:
            return cls(Exporting(section, places, log), log, redact)
        except Exception as error:
            log(f"telemetry: off: cannot be set up: {error}")
            return None

    def __init__(self, exporting: "Exporting", log: Log, redact: Sequence[str]) -> None:
        self._exporting = exporting
        self._log = log
        self._redactor = Redactor(redact)
        self._targets: set[str] = set()
        self._failed = 0
        self._is_closed = False

    def exchange(
        self,
        request: Verdict,
        *,
        code: str | None,
        failed: bool,
        began_ns: int,
        ended_ns: int,
        transport: str,
        session: str | None,
        traceparent: str | None,
    ) -> None:
        """
        Record a *request* that was answered or refused.

        *code* is the canonical error of the response, or the code of a server's own error. *failed* without a code
        means that the result reports a failure of the tool. Times are `time.time_ns()`; *traceparent* is the HTTP
        header of that name.
        """
        try:
            begun = self._begin(request, began_ns, transport, session, traceparent)
            self._end(begun, _refused(request, code, failed=failed), ended_ns)
        except Exception:
            self._failed += 1

    def begun(self, request: Verdict, *, began_ns: int, transport: str, session: str | None) -> _Begun | None:
        """Return what to keep of *request* until the server has answered it."""
        try:
            return self._begin(request, began_ns, transport, session, None)
        except Exception:
            self._failed += 1
            return None

    def ended(self, begun: _Begun, answer: Verdict | None, *, ended_ns: int) -> None:
        """Record a request that was *begun*, with its *answer*; None if it was refused."""
        try:
            self._end(begun, begun.refused if answer is None else _answered(answer, begun.refused), ended_ns)
        except Exception:
            self._failed += 1

    def close(self, timeout: float) -> None:
        """Export what waits, for at most *timeout* seconds. Later requests are ignored."""
        if self._is_closed:
            return
        self._is_closed = True
        lost = self._exporting.close(timeout) + self._failed
        if lost:
            self._log(f"telemetry: {lost} requests were not exported")

    def _begin(
        self, request: Verdict, began_ns: int, transport: str, session: str | None, traceparent: str | None
    ) -> _Begun:
        method = request.method if request.method in METHODS and request.method is not None else _OTHER
        common: Attributes = {"mcp.method.name": method, **_NETWORK.get(transport, {})}
        attribute = _TARGETS.get(method, "")
        if attribute == _TOOL:
            common["gen_ai.operation.name"] = "execute_tool"
        if request.revision is not None:
            common["mcp.protocol.version"] = request.revision
        alone = self._alone(request, method, session)
        target = method if method in ASSET_TOOLS else _params(request).get("name")
        target = target[:LONGEST] if attribute and type(target) is str else None
        if target is not None:
            alone[attribute] = target
        is_listed = method in ASSET_TOOLS or (request.exchange is not None and request.exchange.contract is not None)
        header = {"traceparent": traceparent} if traceparent and len(traceparent) <= LONGEST else {}
        span = self._exporting.begin(method, common | alone, began_ns, header, _trace_context(request))
        return _Begun(span, began_ns, method, common, target, is_listed, _refused(request))

    def _alone(self, request: Verdict, method: str, session: str | None) -> Attributes:
        """Return the attributes of the span alone, but for the target."""
        message = _object(request.value)
        alone: Attributes = {"assay.party": request.party}
        if method in _WITH_URI and type(uri := _params(request).get("uri")) is str:
            # Without user, query and fragment, which may hold secrets.
            plain = re.sub(r"(?<=://)[^/?#]*@", "[redacted]@", re.split("[?#]", uri, maxsplit=1)[0])
            alone["mcp.resource.uri"] = self._redactor.text(plain[:LONGEST])
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
        return alone

    def _end(self, begun: _Begun, outcome: Outcome, ended_ns: int) -> None:
        """End the span of a request, and record its duration."""
        if self._is_closed:
            return
        span, began_ns, method, common, target, is_listed, _ = begun
        common, name = common | outcome.common, None
        # Each name creates a series that never goes away, so clients must not be able to invent names: a name is used
        # in span names and durations once its server has listed it or answered it without an error.
        is_vouched_for = (is_listed or not outcome.common) and len(self._targets) < MOST_TARGETS
        if target is not None and (is_vouched_for or target in self._targets):
            self._targets.add(target)
            common[_TARGETS[method]] = target
            name = None if target == method else f"{method} {target}"
        # If the clock was set back, the end must not be before the start.
        self._exporting.end(span, name, outcome, common, began_ns, max(began_ns, ended_ns))


def _trace_context(request: Verdict) -> dict[str, str]:
    """Return the `traceparent` and the `tracestate` of the message, unless they are too long."""
    meta = _object(_params(request).get("_meta"))
    # W3C requires that 512 characters of a tracestate are forwarded.
    most = {"traceparent": LONGEST, "tracestate": 512}
    return {name: text for name in most if type(text := meta.get(name)) is str and len(text) <= most[name]}


def _refused(request: Verdict, code: str | None = None, *, failed: bool = False) -> Outcome:
    """Return the outcome of *request* by its own verdict, or by the *code* of its response."""
    if code is None and request.back is not None:
        code = next((RULES[each.rule].code for each in request.violations if each.stops), None)
    if code is None and failed:
        code = _failure(request)
    return _outcome(code, request.back, (each.rule for each in request.violations))


def _answered(answer: Verdict, before: Outcome) -> Outcome:
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


def _params(request: Verdict) -> dict[str, Any]:
    return _object(_object(request.value).get("params"))


# ── variables ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _place(section: TelemetrySettings, signal: str) -> str | None:
    """Return the URL for *signal*, if one is configured. Our settings win over the variables."""
    own = _variable(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    if own and not section.endpoint:
        return own
    base = section.endpoint or _variable("OTEL_EXPORTER_OTLP_ENDPOINT")
    return f"{base.rstrip('/')}/v1/{signal}" if base else None


def _is_wanted(signal: str, log: Log) -> bool:
    """Whether the variables let *signal* be exported. Values that we do not support go to *log*."""
    name = signal.upper()
    exporters = {each.strip() for each in os.environ.get(f"OTEL_{name}_EXPORTER", "otlp").split(",")}
    if "otlp" not in exporters:
        if exporters != {"none"}:
            log(f"telemetry: no {signal}, because OTEL_{name}_EXPORTER is not otlp")
        return False
    protocol = _variable(f"OTEL_EXPORTER_OTLP_{name}_PROTOCOL") or _variable("OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol not in ("", "http/protobuf"):
        log(f"telemetry: {signal} are sent as http/protobuf; {protocol} is not supported")
    return True


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()

"""
Make a journal record from a verdict. The writer has a faster way for good messages; a test compares both.

No I/O and no clock: the time is a parameter.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

import orjson

from assay.base import large_frames
from assay.base.errors import CanonicalError
from assay.base.verdict import Party, Verdict
from assay.core.redaction import Redactor
from assay.guard.connection_name import principal_in, session_in
from assay.records.journal.http_notes import HttpMoment
from assay.records.journal.record_ids import Moment
from assay.rules import RULES

SCHEMA_VERSION: Final = "1"
"""Version of the record. It changes when a field changes its meaning, not when one is added."""

Status = Literal["ok", "reported", "refused", "failed"]

ID_LENGTH: Final = 64
"""Maximal characters of an id: a UUID has 36."""

NAME_LENGTH: Final = 100
"""Maximal characters of a method or a tool: peers choose the names, which may have a megabyte."""

PRINCIPAL_LENGTH: Final = 256
"""Maximal characters of a principal, as in a token."""

_MOST_PRINCIPALS: Final = 1024
"""Principals whose redacted names are remembered."""

ROUTE_LENGTH: Final = 200
_TEXT_LENGTH: Final = 200

# Codes with a fixed meaning: those of JSON-RPC, and those that MCP defines.
_BY_NUMBER: Final = {
    CanonicalError.to_jsonrpc_error(code)["code"]: code
    for code in (
        "PARSE_ERROR", "INVALID_ENVELOPE", "METHOD_NOT_FOUND", "INVALID_PARAMS", "INTERNAL_ERROR",
        "HEADER_MISMATCH", "MISSING_CAPABILITY", "UNSUPPORTED_REVISION", "RESOURCE_NOT_FOUND",
    )
}  # fmt: skip


class RunIdentity:
    """The common parts of all records of a run."""

    __slots__ = (
        "_principals",
        "_redactor",
        "_sessions",
        "deterministic",
        "frame_bytes",
        "mode",
        "payloads",
        "restarts",
        "server",
        "servers",
    )

    def __init__(
        self,
        *,
        deterministic: bool,
        payloads: bool,
        server: str,
        patterns: Sequence[str],
        mode: str = "",
        frame_bytes: int = 0,
    ) -> None:
        """
        *mode* is that of a guard, "" for a server.

        *frame_bytes* is the limit for a replay, if not the default.
        """
        self.mode = mode
        self.frame_bytes = frame_bytes
        self.deterministic = deterministic
        self.payloads = payloads
        self.server = server
        self.servers: dict[str, str] = {}
        """The names of servers by route, if the journal has several."""
        self.restarts = 0
        """The number of restarts of the server so far."""
        # Compiling the patterns takes some milliseconds, and most runs never need them.
        self._redactor = _redactor(patterns) if patterns else None
        self._sessions: dict[str, str] = {}
        self._principals: dict[str, str] = {}

    @property
    def redactor(self) -> "Redactor":
        """The redactor for payloads."""
        if self._redactor is None:
            self._redactor = _redactor(())
        return self._redactor

    def server_of(self, route: str) -> str:
        """Return the name of the server at *route*; "" if it has none."""
        return self.servers.get(route, self.server)

    def connection(self, name: str) -> dict[str, str]:
        """Return the members of a record for the connection *name*: its session and its principal, if it has them."""
        members = {"session": self.session_name(name), "principal": self._principal(principal_in(name))}
        return {member: value for member, value in members.items() if value}

    def _principal(self, principal: str) -> str:
        """Return the name of a principal without secrets: that of a token may be anything, such as an address."""
        if not principal:
            return ""
        found = self._principals.get(principal)
        if found is None:
            if len(self._principals) >= _MOST_PRINCIPALS:
                self._principals.clear()
            found = self._principals[principal] = cut(self.redactor.text(principal), PRINCIPAL_LENGTH)
        return found

    def session_name(self, name: str) -> str:
        """
        Return the name of the session of a connection. It must not let readers of the journal take over the session.

        Session ids are random; in a deterministic run sessions are numbered.
        """
        session = session_in(name)
        if not session:
            return ""
        if self.deterministic:
            return self._sessions.setdefault(session, f"{len(self._sessions) + 1:012x}")
        return session_digest(session)


def session_digest(session: str) -> str:
    """Return the digest of a session id for records. With the id itself readers could take over the session."""
    return sha256(session.encode(errors="replace")).hexdigest()[:12]


def _redactor(patterns: Sequence[str]) -> "Redactor":
    return Redactor(patterns)


class RecordContext(NamedTuple):
    """What the writer knows about one message."""

    ts: str
    duration: str
    """Milliseconds, as JSON."""
    sent: int
    failed: bool = False
    code: str | None = None
    repeated: int = 0
    """The number of messages in this record, if not one."""
    came: int = 0
    """Bytes of all of these messages."""


def status_of(verdict: Verdict, *, failed: bool = False) -> Status:
    """Return the status of a message in one word; *failed* if it is known to report a failure."""
    if not verdict.accepted:
        return "refused"
    if failed or verdict.kind in {"error", "missing"} or is_failed_result(verdict.kind, verdict.value):
        return "failed"
    return "reported" if verdict.violations else "ok"


def record(verdict: Verdict, moment: Moment, context: RecordContext, run: RunIdentity) -> dict[str, Any]:
    """Return the record of *verdict*, with its members in order."""
    status = status_of(verdict, failed=context.failed or context.code is not None)
    return {
        "ts": context.ts,
        "requestId": moment.request_id,
        "traceId": moment.trace_id,
        "spanId": moment.span_id,
        "transport": moment.transport,
        "route": cut(moment.route, ROUTE_LENGTH),
        "method": name_of(verdict.method if verdict.method is not None else moment.method),
        "status": status,
        "durationMs": orjson.Fragment(context.duration),
        # We never retry a message.
        "attempt": 1,
        "inputBytes": context.came if context.repeated else len(verdict.frame),
        "outputBytes": context.sent,
        "error": None if status == "ok" else _error(verdict, status, context.code, run),
        "metadata": _metadata(verdict, moment, context, run),
    }


def _metadata(verdict: Verdict, moment: Moment, context: RecordContext, run: RunIdentity) -> dict[str, Any]:
    found: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "deterministic": run.deterministic,
        "revision": verdict.revision,
        "tool": name_of(verdict.tool),
        "party": verdict.party.value,
        "kind": verdict.kind,
    }
    server = run.server_of(moment.route)
    if server:
        found["server"] = server
    found["id"] = _id(verdict)
    if moment.session:
        found |= run.connection(moment.session)
    if run.restarts:
        found["restarts"] = run.restarts
    if not verdict.accepted and verdict.onward is verdict.frame:
        found["passed"] = True
    if verdict.repairs:
        found["repairs"] = [run.redactor.repair(each) for each in verdict.repairs]
    if context.repeated:
        found["repeated"] = context.repeated
    if run.mode:
        found["mode"] = run.mode
    if run.payloads:
        if run.frame_bytes:
            found["frameBytes"] = run.frame_bytes
        if isinstance(moment, HttpMoment) and (http := moment.http.members(verdict, run)):
            found["http"] = http
        found |= payload(verdict, run.redactor)
    return found


def name_of(given: str | None) -> str | None:
    """Return a method or a tool, shortened, as valid Unicode."""
    return None if given is None else cut(given, NAME_LENGTH)


def cut(text: str, most: int) -> str:
    """Return at most *most* characters of *text*, as valid Unicode."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    # Text from a frame has no lone surrogates; an argument may have some.
    return short if short.isascii() else short.encode(errors="replace").decode()


def id_text(ident: object) -> str:
    """Return an id as JSON, shortened; null for an invalid one."""
    if type(ident) is str:
        return orjson.dumps(cut(ident, ID_LENGTH)).decode()
    if type(ident) is int or type(ident) is float:
        return repr(ident)
    return "null"


def _id(verdict: Verdict) -> orjson.Fragment:
    value, exchange = verdict.value, verdict.exchange
    if isinstance(value, dict) and "id" in value:
        return orjson.Fragment(id_text(value["id"]))
    answers = verdict.kind in {"result", "error", "missing"}
    return orjson.Fragment(id_text(exchange.id if exchange is not None and answers else None))


PAYLOAD_BYTES: Final = 4 << 20
PAYLOAD_VALUES: Final = 50_000
"""Maximal size of a recorded frame: every value is searched for secrets, and nothing else is served meanwhile."""


def payload(verdict: Verdict, redactor: "Redactor") -> dict[str, Any]:
    """Return the frame without secrets: as text, or as base64 if it is not UTF-8. A large frame is left out."""
    if len(verdict.frame) > PAYLOAD_BYTES or large_frames.more_than(verdict.frame, PAYLOAD_VALUES):
        return {"omitted": True}
    try:
        text = verdict.frame.decode()
    except UnicodeDecodeError:
        return _unreadable_payload(verdict.frame, redactor)
    shown = redactor.frame(text, verdict.value)
    return {"frame": shown} if shown is text else {"frame": shown, "redacted": True}


def _unreadable_payload(frame: bytes, redactor: "Redactor") -> dict[str, Any]:
    # Latin-1 decodes any bytes, and the patterns need only ASCII.
    text = frame.decode("latin-1")
    shown = redactor.unreadable(text)
    encoded = b64encode(shown.encode("latin-1")).decode()
    return {"frameBase64": encoded} if shown is text else {"frameBase64": encoded, "redacted": True}


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _error(verdict: Verdict, status: Status, code: str | None, run: RunIdentity) -> dict[str, Any]:
    """Return the error. If there are only reports it has no code, because no error is sent."""
    said = _said(verdict)
    code = code or _code(verdict, status, said)
    row = CanonicalError.to_jsonrpc_error(code) if code is not None else {"code": None, "message": None}
    number, message = said.get("code"), said.get("message")
    found: dict[str, Any] = {
        "code": code,
        "jsonrpcCode": number if type(number) is int and abs(number) < 2**63 else row["code"],
        "httpStatus": CanonicalError.to_http_status(code) if code is not None else None,
        "message": _shown(message, run) if isinstance(message, str) else row["message"],
        "violations": [run.redactor.violation(each) for each in verdict.violations],
    }
    if verdict.more:
        found["more"] = verdict.more
    if verdict.quarantined:
        found["quarantined"] = [run.redactor.entry(each) for each in verdict.quarantined]
    return found


def _shown(message: str, run: RunIdentity) -> str:
    """Return the message of a peer's error, shortened."""
    # Redact first, then cut: part of a secret is not recognized.
    return cut(run.redactor.text(message[: 10 * _TEXT_LENGTH]), _TEXT_LENGTH)


def _said(verdict: Verdict) -> dict[str, Any]:
    """Return the error in an accepted error response."""
    value = verdict.value
    if verdict.kind != "error" or not verdict.accepted or not isinstance(value, dict):
        return {}
    error = value.get("error")
    return error if isinstance(error, dict) else {}


def _code(verdict: Verdict, status: Status, said: dict[str, Any]) -> str | None:
    """Return the canonical error that is sent for it; None if no error is sent, or it has no canonical name."""
    if status == "refused":
        if verdict.party is Party.SERVER and verdict.onward is not None and verdict.onward is not verdict.frame:
            return "UPSTREAM_INVALID"
        return next(RULES[each.rule].code for each in verdict.violations if each.stops)
    if verdict.kind == "missing":
        return RULES[verdict.violations[0].rule].code if verdict.violations else "UPSTREAM_FAILURE"
    number = said.get("code")
    return _BY_NUMBER.get(number) if type(number) is int else None


def is_failed_result(kind: str, value: Any) -> bool:
    """Whether a message of this *kind* is a tool's result that reports a failure."""
    result = value.get("result") if kind == "result" and isinstance(value, dict) else None
    return isinstance(result, dict) and result.get("isError") is True

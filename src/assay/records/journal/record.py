"""
A verdict as a record, the plain way. The writer has a quicker one for good messages; a test holds them together.

No I/O and no clock: what time it is, whoever writes the record knows.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import orjson

from assay.base import value_count
from assay.base.errors import CanonicalError
from assay.base.verdict import Party, Verdict
from assay.records.journal.record_ids import Moment
from assay.rules import RULES

if TYPE_CHECKING:
    from assay.core.redaction import Redactor

SCHEMA_VERSION: Final = "1"
"""Of the record. A field that is added leaves it, one that changes its meaning does not."""

Status = Literal["ok", "reported", "refused", "failed"]
STATUSES: Final[tuple[Status, ...]] = ("ok", "reported", "refused", "failed")

ID_LENGTH: Final = 64
"""Characters of an id that are written: a UUID has 36."""

NAME_LENGTH: Final = 100
"""Characters of a method or a tool that are written: names are the peer's, and may be a megabyte."""

ROUTE_LENGTH: Final = 200
_TEXT_LENGTH: Final = 200

# Codes that mean the same whoever uses them: JSON-RPC's own, and those that MCP defines.
_BY_NUMBER: Final = {
    CanonicalError.to_jsonrpc_error(code)["code"]: code
    for code in (
        "PARSE_ERROR", "INVALID_ENVELOPE", "METHOD_NOT_FOUND", "INVALID_PARAMS", "INTERNAL_ERROR",
        "HEADER_MISMATCH", "MISSING_CAPABILITY", "UNSUPPORTED_REVISION", "RESOURCE_NOT_FOUND",
    )
}  # fmt: skip


class RunIdentity:
    """What is the same in all records of a run."""

    __slots__ = (
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
        """*mode* is that of a guard, "" for a server; *frame_bytes* is what a replay has to know if it is not usual."""
        self.mode = mode
        self.frame_bytes = frame_bytes
        self.deterministic = deterministic
        self.payloads = payloads
        self.server = server
        self.servers: dict[str, str] = {}
        """The names of servers by route, where one journal has several."""
        self.restarts = 0
        """How often the server was restarted by now."""
        # Compiling what it looks for takes some milliseconds, and most runs never need it.
        self._redactor = _redactor(patterns) if patterns else None
        self._sessions: dict[str, str] = {}

    @property
    def redactor(self) -> "Redactor":
        """What hides secrets."""
        if self._redactor is None:
            self._redactor = _redactor(())
        return self._redactor

    def server_of(self, route: str) -> str:
        """Return the name of the server that answers at *route*; "" if it has none."""
        return self.servers.get(route, self.server)

    def session_name(self, session: str) -> str:
        """
        What a connection is called: whoever reads the journal must not be able to go on with the session.

        Sessions get their ids by chance; in a deterministic run they are numbered.
        """
        if self.deterministic:
            return self._sessions.setdefault(session, f"{len(self._sessions) + 1:012x}")
        return session_digest(session)


def session_digest(session: str) -> str:
    """What stands for a session in records that others may read: with its id they could go on with it."""
    from hashlib import sha256  # noqa: PLC0415 - not where there is one connection only

    return sha256(session.encode(errors="replace")).hexdigest()[:12]


def _redactor(patterns: Sequence[str]) -> "Redactor":
    from assay.core.redaction import Redactor  # noqa: PLC0415 - as above

    return Redactor(patterns)


class RecordContext(NamedTuple):
    """What whoever writes a record says of one message."""

    ts: str
    duration: str
    """Milliseconds, as JSON."""
    sent: int
    failed: bool = False
    code: str | None = None
    repeated: int = 0
    """How many messages it stands for, if that is not one alone."""
    came: int = 0
    """Bytes of all of those."""


def status_of(verdict: Verdict, *, failed: bool = False) -> Status:
    """In one word what became of a message; *failed* if it is known to say that something failed."""
    if not verdict.accepted:
        return "refused"
    if failed or verdict.kind in {"error", "missing"} or _is_failed_result(verdict):
        return "failed"
    return "reported" if verdict.violations else "ok"


def record(verdict: Verdict, moment: Moment, told: RecordContext, run: RunIdentity) -> dict[str, Any]:
    """The record of *verdict*, its members in order."""
    status = status_of(verdict, failed=told.failed or told.code is not None)
    return {
        "ts": told.ts,
        "requestId": moment.request_id,
        "traceId": moment.trace_id,
        "spanId": moment.span_id,
        "transport": moment.transport,
        "route": cut(moment.route, ROUTE_LENGTH),
        "method": name_of(verdict.method if verdict.method is not None else moment.method),
        "status": status,
        "durationMs": orjson.Fragment(told.duration),
        # Nothing that passes here is tried again by us.
        "attempt": 1,
        "inputBytes": told.came if told.repeated else len(verdict.frame),
        "outputBytes": told.sent,
        "error": None if status == "ok" else _error(verdict, status, told.code, run),
        "metadata": _metadata(verdict, moment, told, run),
    }


def _metadata(verdict: Verdict, moment: Moment, told: RecordContext, run: RunIdentity) -> dict[str, Any]:
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
        found["session"] = run.session_name(moment.session)
    if run.restarts:
        found["restarts"] = run.restarts
    if not verdict.accepted and verdict.onward is verdict.frame:
        found["passed"] = True
    if told.repeated:
        found["repeated"] = told.repeated
    if run.mode:
        found["mode"] = run.mode
    if run.payloads:
        if run.frame_bytes:
            found["frameBytes"] = run.frame_bytes
        found |= payload(verdict, run.redactor)
    return found


def name_of(given: str | None) -> str | None:
    """A method or a tool, cut short, and as text that can be written."""
    return None if given is None else cut(given, NAME_LENGTH)


def cut(text: str, most: int) -> str:
    """At most so many characters of *text*, as text that can be written."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    # What was read from a frame has no half characters; what a caller hands in may.
    return short if short.isascii() else short.encode(errors="replace").decode()


def id_text(ident: object) -> str:
    """An id as JSON, cut short; null for what can be none."""
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
"""What of a frame is written at most: every value is looked at for secrets, and nothing else is served meanwhile."""


def payload(verdict: Verdict, redactor: "Redactor") -> dict[str, Any]:
    """The frame, without its secrets: as text, or as base64 where it is none. One that is too large is left out."""
    if len(verdict.frame) > PAYLOAD_BYTES or value_count.more_than(verdict.frame, PAYLOAD_VALUES):
        return {"omitted": True}
    try:
        text = verdict.frame.decode()
    except UnicodeDecodeError:
        return _unreadable_payload(verdict.frame, redactor)
    shown = redactor.frame(text, verdict.value)
    return {"frame": shown} if shown is text else {"frame": shown, "redacted": True}


def _unreadable_payload(frame: bytes, redactor: "Redactor") -> dict[str, Any]:
    from base64 import b64encode  # noqa: PLC0415 - for bytes that are no text

    # Every byte is a character in Latin-1, and that is all the patterns need.
    text = frame.decode("latin-1")
    shown = redactor.unreadable(text)
    encoded = b64encode(shown.encode("latin-1")).decode()
    return {"frameBase64": encoded} if shown is text else {"frameBase64": encoded, "redacted": True}


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _error(verdict: Verdict, status: Status, code: str | None, run: RunIdentity) -> dict[str, Any]:
    """What went wrong. Where a message only carries reports there is no code: nobody gets an error for it."""
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
    """What a peer says of its error, in short."""
    # First without secrets, then cut: half a secret looks like nothing.
    return cut(run.redactor.text(message[: 10 * _TEXT_LENGTH]), _TEXT_LENGTH)


def _said(verdict: Verdict) -> dict[str, Any]:
    """The error that an accepted error response tells."""
    value = verdict.value
    if verdict.kind != "error" or not verdict.accepted or not isinstance(value, dict):
        return {}
    error = value.get("error")
    return error if isinstance(error, dict) else {}


def _code(verdict: Verdict, status: Status, said: dict[str, Any]) -> str | None:
    """The canonical error that somebody gets for it; None if nobody does, or it has none of our names."""
    if status == "refused":
        if verdict.party is Party.SERVER and verdict.onward is not None and verdict.onward is not verdict.frame:
            return "UPSTREAM_INVALID"
        return next(RULES[each.rule].code for each in verdict.violations if each.stops)
    if verdict.kind == "missing" and verdict.violations:
        return RULES[verdict.violations[0].rule].code
    number = said.get("code")
    return _BY_NUMBER.get(number) if type(number) is int else None


def _is_failed_result(verdict: Verdict) -> bool:
    """Whether it is the result of a tool that says of itself that it failed."""
    if verdict.kind != "result" or not isinstance(verdict.value, dict):
        return False
    result = verdict.value.get("result")
    return isinstance(result, dict) and result.get("isError") is True

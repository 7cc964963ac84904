"""
A judged message as a typed value: one line of a journal, and what every report, table and page is made of.

`record_of` makes it from a verdict, `read_line` from a line. The writer of a journal has a faster way for good
messages; a test compares both. No I/O and no clock: the time is a parameter.
"""

import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from shlex import join
from time import time_ns
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec
import orjson

from assay import __version__
from assay.guard.connection_name import principal_in, session_in
from assay.judge.masking import masked_command, masked_url
from assay.judge.redaction import Redactor
from assay.model import large_frames
from assay.model.errors import CanonicalError
from assay.model.verdict import Action, ListEntry, Party, Verdict, Violation
from assay.records.moments import Moment, shown_time
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
_EVENT_LENGTH: Final = 500
"""Maximal characters of a text in an event."""

_PLACE_LENGTH: Final = 1000
_FOUND_LENGTH: Final = 500
"""Maximal characters of a place, and of a text about it: peers choose parts of both."""

# Codes with a fixed meaning: those of JSON-RPC, and those that MCP defines.
_BY_NUMBER: Final = {
    CanonicalError.to_jsonrpc_error(code)["code"]: code
    for code in (
        "PARSE_ERROR", "INVALID_ENVELOPE", "METHOD_NOT_FOUND", "INVALID_PARAMS", "INTERNAL_ERROR",
        "HEADER_MISMATCH", "MISSING_CAPABILITY", "UNSUPPORTED_REVISION", "RESOURCE_NOT_FOUND",
    )
}  # fmt: skip

Ident = str | int | float | None


# ── the line ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class NamedEntry(msgspec.Struct, frozen=True):
    """An entry of a list that a server offers, such as a tool."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Finding(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """A broken rule at a place of a message, without secrets."""

    rule: str
    at: str
    expected: str
    found: str
    source: str
    hint: str
    schema_at: str | None = None
    action: str | None = None
    """What was done; None for the default action of the rule."""
    reason: str | None = None
    """Why the policy chose another action."""
    entry: NamedEntry | None = None

    @property
    def done(self) -> str:
        """What was done about it; "" if it is not known."""
        return self.action or (RULES[self.rule].action if self.rule in RULES else "")

    @property
    def place(self) -> str:
        """The place for people: ``/result/tools/0/inputSchema (tool search)``."""
        place = self.at or "the message"
        return place if self.entry is None else f"{place} ({self.entry})"

    @property
    def stops(self) -> bool:
        """Whether the message is stopped because of it."""
        return self.done in ("refuse", "drop")

    @property
    def general_place(self) -> str:
        """The JSON Pointer with ``*`` in place of every index, the same for equal findings."""
        return "/".join("*" if each.isdecimal() else each for each in self.at.split("/"))


class RecordError(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """The error of a message that is not good: its findings, and what was sent for it."""

    code: str | None
    """The canonical name; None if no error was sent, or it has no such name."""
    jsonrpc_code: int | None
    http_status: int | None
    message: str | None
    violations: list[Finding]
    more: int = 0
    """Findings beyond those that are listed."""
    quarantined: list[NamedEntry] = []


class Metadata(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """What the specification of the journal has no field for."""

    schema_version: str
    deterministic: bool
    revision: str | None
    tool: str | None
    party: Party
    kind: str
    server: str = ""
    id: Ident
    session: str = ""
    principal: str = ""
    restarts: int = 0
    passed: bool = False
    """Whether a rule refuses the message, and audit mode forwarded it."""
    repairs: list[dict[str, Any]] = []
    repeated: int = 0
    """The number of messages that the record stands for, if there are several."""
    mode: str = ""
    """The mode of a guard; "" for a server."""
    frame_bytes: int = 0
    http: dict[str, Any] | None = None
    frame: str | None = None
    frame_base64: str | None = None
    omitted: bool = False
    """Whether the frame is too large to record."""
    redacted: bool = False
    lacks: str = ""
    """Why the verdict is the one that the guard recorded, and not a new one; "" for a message that was judged."""


class Record(msgspec.Struct, rename="camel", kw_only=True):
    """One judged message."""

    ts: str
    request_id: str
    """A request and its answer share it."""
    trace_id: str = ""
    span_id: str = ""
    transport: str
    route: str
    method: str | None
    """The method of the message, or of the request that it answers."""
    status: str
    duration_ms: float
    attempt: int = 1
    input_bytes: int
    output_bytes: int
    error: RecordError | None
    metadata: Metadata

    @property
    def findings(self) -> list[Finding]:
        """The broken rules that are listed."""
        return self.error.violations if self.error is not None else []

    @property
    def more(self) -> int:
        """Findings beyond those that are listed."""
        return self.error.more if self.error is not None else 0

    @property
    def quarantined(self) -> list[NamedEntry]:
        """The entries of a list that were quarantined, or would be under enforce."""
        return self.error.quarantined if self.error is not None else []

    @property
    def is_answer(self) -> bool:
        """Whether it ends a request: a result, an error, or that no answer came."""
        return self.metadata.kind in ANSWERS

    @property
    def is_audited(self) -> bool:
        """Whether the message went on whatever its verdict was: in audit mode, or before it was judged."""
        return self.metadata.mode == "audit" or self.transport == "recording"

    @property
    def frame(self) -> bytes | None:
        """The message; None if it is not recorded."""
        metadata = self.metadata
        if metadata.frame is not None:
            return metadata.frame.encode()
        try:
            return b64decode(metadata.frame_base64, validate=True) if metadata.frame_base64 is not None else None
        except ValueError:
            return None

    @property
    def has_payload(self) -> bool:
        """Whether it has its frame, or a note that the frame was left out."""
        metadata = self.metadata
        return metadata.frame is not None or metadata.frame_base64 is not None or metadata.omitted


ANSWERS: Final = frozenset({"result", "error", "missing"})


class Event(msgspec.Struct):
    """What a journal says about a server or a session; the members of other events are empty."""

    event: Literal["server", "session", "restart", "state", "tools"]
    """A reader ignores others."""
    ts: str
    server: str = ""
    transport: str = ""
    route: str = ""
    address: str = ""
    mode: str = ""
    payloads: bool = False
    lock: str = ""
    what: str = ""
    """The masked command or URL."""
    session: str = ""
    principal: str = ""
    state: str = ""
    why: str = ""
    stderr: str = ""
    revision: str | None = None
    client: dict[str, Any] = {}
    restarts: int = 0
    count: int | None = None
    bytes: int | None = None


_records: Final = msgspec.json.Decoder(Record)
_events: Final = msgspec.json.Decoder(Event)
encoder: Final = msgspec.json.Encoder()
"""What writes records, and parts of them."""
_UNREADABLE: Final = (ValueError, RecursionError)
"""What a line raises that is not JSON, or not such a value."""


def read_record(line: bytes) -> Record | None:
    """Return the record in a *line*; None for any other line."""
    try:
        return _records.decode(line)
    except _UNREADABLE:
        return None


def read_line(line: bytes) -> Record | Event | None:
    """Return the record or the event in a *line*; None for any other line."""
    try:
        return _records.decode(line)
    except _UNREADABLE:
        pass
    try:
        return _events.decode(line)
    except _UNREADABLE:
        return None


def written_record(record: Record) -> bytes:
    """Return the line of *record*, without a newline."""
    return encoder.encode(record)


def seconds_of(ts: str, now: float) -> float:
    """Return a time of a journal in seconds since 1970; *now* if it is not a time."""
    try:
        return datetime.fromisoformat(ts).timestamp()
    except (ValueError, OverflowError, OSError):
        return now


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(kw_only=True)
class RunIdentity:
    """The common parts of all records of a run. Raises `ValueError` for an invalid pattern of secrets."""

    deterministic: bool = False
    payloads: bool = False
    server: str = ""
    patterns: InitVar[Sequence[str]] = ()
    mode: str = ""
    """The mode of a guard; "" for a server."""
    frame_bytes: int = 0
    """The guard's limit for a message, for a replay; 0 for the default."""
    servers: dict[str, str] = field(default_factory=dict)
    """The names of servers by route, if the journal has several."""
    restarts: int = 0
    """The number of restarts of the server so far."""

    def __post_init__(self, patterns: Sequence[str]) -> None:
        # Compiling the patterns takes some milliseconds, and most runs never need them.
        self._redactor = Redactor(patterns) if patterns else None
        self._sessions: dict[str, str] = {}
        self._masked = lru_cache(_MOST_PRINCIPALS)(lambda each: cut(self.redactor.text(each), PRINCIPAL_LENGTH))

    @property
    def redactor(self) -> Redactor:
        """The redactor for payloads."""
        if self._redactor is None:
            self._redactor = Redactor(())
        return self._redactor

    def server_of(self, route: str) -> str:
        """Return the name of the server at *route*; "" if it has none."""
        return self.servers.get(route, self.server)

    def connection(self, name: str) -> dict[str, str]:
        """Return the members of a record for the connection *name*: its session and its principal, if it has them."""
        members = {"session": self.session_name(name), "principal": self.principal_name(name)}
        return {member: value for member, value in members.items() if value}

    def principal_name(self, name: str) -> str:
        """Return the principal of a connection without secrets: that of a token may be anything, such as an address."""
        principal = principal_in(name)
        return self._masked(principal) if principal else ""

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


# ── making records ───────────────────────────────────────────────────────────────────────────────────────────────────


def status_of(verdict: Verdict, *, failed: bool = False) -> Status:
    """Return the status of a message in one word; *failed* if it is known to report a failure."""
    if not verdict.accepted:
        return "refused"
    value = verdict.value
    result = value.get("result") if verdict.kind == "result" and isinstance(value, dict) else None
    # A tool's result may report a failure, too.
    is_failed_tool = isinstance(result, dict) and result.get("isError") is True
    if failed or is_failed_tool or verdict.kind in {"error", "missing"}:
        return "failed"
    return "reported" if verdict.violations else "ok"


def record_of(
    verdict: Verdict,
    moment: Moment,
    run: RunIdentity,
    *,
    ts: str,
    milliseconds: float,
    sent: int,
    failed: bool = False,
    code: str | None = None,
    repeated: int = 0,
    came: int = 0,
) -> Record:
    """
    Return the record of *verdict*.

    *sent* are the bytes that were sent for it. *failed* marks a result that reports a failure, where it has not been
    parsed; *code* is the canonical error of the answer, where that is known. A record that stands for several messages
    has their number in *repeated*, and their bytes in *came*.
    """
    status = status_of(verdict, failed=failed or code is not None)
    value, exchange = verdict.value, verdict.exchange
    asked = exchange.id if exchange is not None and verdict.kind in ANSWERS else None
    metadata = Metadata(
        schema_version=SCHEMA_VERSION,
        deterministic=run.deterministic,
        revision=verdict.revision,
        tool=name_of(verdict.tool),
        party=verdict.party,
        kind=verdict.kind,
        server=run.server_of(moment.route),
        id=short_id(value["id"] if isinstance(value, dict) and "id" in value else asked),
        restarts=run.restarts,
        passed=not verdict.accepted and verdict.onward is verdict.frame,
        repairs=[run.redactor.repair(each) for each in verdict.repairs],
        repeated=repeated,
        mode=run.mode,
    )
    if moment.session:
        metadata.session = run.session_name(moment.session)
        metadata.principal = run.principal_name(moment.session)
    if run.payloads:
        metadata.frame_bytes = run.frame_bytes
        if moment.http is not None:
            metadata.http = moment.http.members(verdict, run) or None
        for name, value in payload(verdict, run.redactor).items():
            setattr(metadata, name, value)
    return Record(
        ts=ts,
        request_id=moment.request_id,
        trace_id=moment.trace_id,
        span_id=moment.span_id,
        transport=moment.transport,
        route=cut(moment.route, ROUTE_LENGTH),
        method=name_of(verdict.method if verdict.method is not None else moment.method),
        status=status,
        duration_ms=round(milliseconds, 3),
        # We never retry a message.
        attempt=1,
        input_bytes=came if repeated else len(verdict.frame),
        output_bytes=sent,
        error=None if status == "ok" else _error(verdict, status, code, run.redactor),
        metadata=metadata,
    )


def name_of(given: str | None) -> str | None:
    """Return a method or a tool, shortened, as valid Unicode."""
    return None if given is None else cut(given, NAME_LENGTH)


def cut(text: str, most: int) -> str:
    """Return at most *most* characters of *text*, as valid Unicode."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    # Text from a frame has no lone surrogates; an argument may have some.
    return short if short.isascii() else short.encode(errors="replace").decode()


def short_id(ident: object) -> Ident:
    """Return an id, shortened; None for an invalid one."""
    if type(ident) is str:
        return cut(ident, ID_LENGTH)
    return ident if type(ident) is int or type(ident) is float else None


PAYLOAD_BYTES: Final = 4 << 20
PAYLOAD_VALUES: Final = 50_000
"""Maximal size of a recorded frame: every value is searched for secrets, and nothing else is served meanwhile."""


def payload(verdict: Verdict, redactor: Redactor) -> dict[str, Any]:
    """Return the frame without secrets: as text, or as base64 if it is not UTF-8. A large frame is left out."""
    if len(verdict.frame) > PAYLOAD_BYTES or large_frames.more_than(verdict.frame, PAYLOAD_VALUES):
        return {"omitted": True}
    try:
        text = verdict.frame.decode()
        shown = redactor.frame(text, verdict.value)
        found: dict[str, Any] = {"frame": shown}
    except UnicodeDecodeError:
        # Latin-1 decodes any bytes, and the patterns need only ASCII.
        text = verdict.frame.decode("latin-1")
        shown = redactor.unreadable(text)
        found = {"frame_base64": b64encode(shown.encode("latin-1")).decode()}
    return found if shown is text else {**found, "redacted": True}


def finding_of(violation: Violation, redactor: Redactor) -> Finding:
    """Return a violation without secrets: peers choose parts of its place, its texts and the name of its entry."""
    text = redactor.text
    short = replace(violation, at=cut(violation.at, _PLACE_LENGTH), found=cut(violation.found, _FOUND_LENGTH))
    found, entry = redactor.found(short), violation.entry
    return Finding(
        rule=violation.rule,
        at=text(short.at),
        expected=text(cut(violation.expected, _FOUND_LENGTH)),
        found=found,
        source=cut(violation.source, _FOUND_LENGTH),
        hint=text(cut(redactor.hint(short, found), _FOUND_LENGTH)),
        schema_at=None if violation.schema_at is None else text(cut(violation.schema_at, _PLACE_LENGTH)),
        action=violation.action if violation.action != RULES[violation.rule].action else None,
        reason=violation.reason,
        entry=None if entry is None else NamedEntry(entry.kind, text(cut(entry.name, _TEXT_LENGTH))),
    )


def violation_of(finding: Finding) -> Violation:
    """Return the violation that *finding* was made from, without what was hidden."""
    entry = finding.entry
    return Violation(
        finding.rule,
        finding.at,
        finding.expected,
        finding.found,
        finding.source,
        finding.hint,
        cast("Action", finding.done or "report"),
        finding.schema_at,
        finding.reason,
        entry=None if entry is None else ListEntry(entry.kind, entry.name),
    )


def _error(verdict: Verdict, status: Status, code: str | None, redactor: Redactor) -> RecordError:
    """Return the error. If there are only reports it has no code, because no error is sent."""
    value = verdict.value if verdict.kind == "error" and verdict.accepted else None
    said = value.get("error") if isinstance(value, dict) else None
    said = said if isinstance(said, dict) else {}
    code = code or _code(verdict, status, said)
    row: dict[str, Any] = {} if code is None else {**CanonicalError.to_jsonrpc_error(code)}
    number, message = said.get("code"), said.get("message")
    return RecordError(
        code=code,
        jsonrpc_code=number if type(number) is int and abs(number) < 2**63 else row.get("code"),
        http_status=CanonicalError.to_http_status(code) if code is not None else None,
        # Redact first, then cut: part of a secret is not recognized.
        message=cut(redactor.text(message[: 10 * _TEXT_LENGTH]), _TEXT_LENGTH)
        if isinstance(message, str)
        else row.get("message"),
        violations=[finding_of(each, redactor) for each in verdict.violations],
        more=verdict.more,
        quarantined=[NamedEntry(each.kind, redactor.text(each.name)) for each in verdict.quarantined],
    )


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


# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class ServerPlace(NamedTuple):
    """Where a guarded server is, for the event ``server``."""

    command: Sequence[str] = ()
    url: str = ""
    address: str = ""
    """Where clients connect to, over HTTP."""
    locked: bool = False


def event_line(kind: str, route: str, run: RunIdentity, members: dict[str, Any]) -> bytes:
    """
    Return the line of an event of the server at *route*, without secrets.

    Empty in a deterministic run: events say when and where a run was.
    """
    if run.deterministic:
        return b""
    whole = {"ts": shown_time(time_ns()), "event": kind, "server": run.server_of(route), **_shown(members, run)}
    return orjson.dumps(whole, option=orjson.OPT_APPEND_NEWLINE)


def server_line(transport: str, route: str, run: RunIdentity, place: ServerPlace) -> bytes:
    """
    Return the event ``server``: what is guarded, and how.

    Every file of a run begins with that of each server, so that a reader of its end knows them.
    """
    members = {
        "transport": transport,
        "route": route,
        "address": place.address,
        "mode": run.mode,
        "payloads": run.payloads,
        "lock": "locked" if place.locked else "none",
        "what": masked_url(place.url) if place.url else join(masked_command(place.command)),
        "pid": os.getpid(),
        "assay": __version__,
    }
    return event_line("server", route, run, members)


def _shown(value: Any, run: RunIdentity) -> Any:
    """Return *value*, whose texts may be those of peers, without secrets, cut."""
    if isinstance(value, str):
        # Redact first, then cut: part of a secret is not recognized.
        return cut(run.redactor.text(value[: 4 * _EVENT_LENGTH]), _EVENT_LENGTH) if value else value
    if isinstance(value, dict):
        return {name: _shown(each, run) for name, each in value.items()}
    return [_shown(each, run) for each in value] if isinstance(value, list) else value

"""The values of a judgement: party, violation, verdict, exchange. No rules, no transports, no JSON Schema."""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from assay.base.message import Message
    from assay.spec.revisions import Features


class Party(StrEnum):
    """One of the two sides of a conversation."""

    CLIENT = "client"
    SERVER = "server"

    @property
    def other(self) -> "Party":
        """The other side."""
        return Party.SERVER if self is Party.CLIENT else Party.CLIENT


Action = Literal["refuse", "quarantine", "report", "drop", "repair"]
"""
The effect of a violation: refuse stops the message, quarantine removes one entry of a list, report only reports, drop
stops the message without an error, and repair corrects the message and forwards it.
"""


class ListEntry(NamedTuple):
    """One entry of a list in a message: its kind and its name, short and printable."""

    kind: str
    """``tool``, ``prompt``, ``resource``, ``resource template``, ``root`` or ``task``."""
    name: str
    """The name; else the URI, else the index in the list."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule, at one place."""

    rule: str
    """Stable identifier, public API: ``syntax/duplicate-key``."""
    at: str
    """JSON Pointer from the root of the message, "" for the whole."""
    expected: str
    found: str
    """A short description: never more of the payload than needed to recognize it."""
    source: str
    """The source of the rule: revision and page, or another document."""
    hint: str
    """The fix."""
    action: Action = "refuse"
    schema_at: str | None = None
    """The place in the schema, as a URI fragment, if a schema refused it."""
    reason: str | None = None
    """The operator's reason, if an exception decided."""
    wrong_type: bool = False
    """Whether a schema refused it and no value of its JSON type would be valid."""
    entry: ListEntry | None = None
    """The entry of a list that it concerns, if any."""

    @property
    def stops(self) -> bool:
        """Whether it stops the message."""
        return self.action in ("refuse", "drop")

    def under(self, prefix: str) -> "Violation":
        """Return the same violation in a message that contains this one at *prefix*."""
        return replace(self, at=prefix + self.at)

    @property
    def place(self) -> str:
        """The place for messages: ``/result/tools/0/inputSchema (tool search)``."""
        place = self.at or "the message"
        return place if self.entry is None else f"{place} ({self.entry})"

    def __str__(self) -> str:
        return f"{self.place}: expected {self.expected}, found {self.found} [{self.rule}]"


Kind = Literal["request", "notification", "result", "error", "batch", "blank", "unreadable", "missing"]
"""The kind of a frame; ``missing`` stands for a response that never came."""


UNNAMED = "?"
"""The method of a request whose `method` is not a string, for its response."""


class Findings(NamedTuple):
    """The violations of a message, and what to send because of them."""

    violations: tuple[Violation, ...]
    more: int = 0
    """The least number of further violations."""
    onward: bytes | None = None
    back: bytes | None = None
    parts: "tuple[Verdict, ...]" = ()
    quarantined: tuple[ListEntry, ...] = ()


class Verdict:
    """
    The result of judging one frame. It must not be changed.

    It is not a frozen dataclass: one is made for every message, and `verdict`, which fills in the slots, takes a fifth
    of the time.
    """

    __slots__ = ("exchange", "findings", "frame", "kind", "party", "revision", "value")

    party: Party
    frame: bytes
    kind: Kind
    value: Any
    """The JSON value in the frame; None if it is unreadable or blank."""
    exchange: "Exchange | None"
    """The exchange that this message opens, answers or refers to."""
    revision: str | None
    """The protocol revision it was judged by, None before one is known."""
    findings: Findings | None
    """None if the message has no findings; it is forwarded unchanged."""

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The violations of the message."""
        return self.findings.violations if self.findings else ()

    @property
    def more(self) -> int:
        """The least number of further violations."""
        return self.findings.more if self.findings else 0

    @property
    def onward(self) -> bytes | None:
        """What to send to the other party: the same frame, a replacement, or nothing."""
        return self.findings.onward if self.findings else self.frame

    @property
    def back(self) -> bytes | None:
        """What to send to the sender: the response to a refused request, or nothing."""
        return self.findings.back if self.findings else None

    @property
    def parts(self) -> "tuple[Verdict, ...]":
        """A verdict for each entry of a batch."""
        return self.findings.parts if self.findings else ()

    @property
    def quarantined(self) -> tuple[ListEntry, ...]:
        """All entries of a list that are quarantined, or would be under enforce."""
        return self.findings.quarantined if self.findings else ()

    @property
    def accepted(self) -> bool:
        """Whether no rule stops the message; it may still have reports."""
        return not any(violation.stops for violation in self.violations)

    @property
    def message(self) -> "Message | None":
        """The message as a JSON-RPC value; None if it is not a valid message."""
        from assay.base.message import message_of  # noqa: PLC0415 - six milliseconds of dataclasses that judging never needs

        return message_of(self.kind, self.value)

    @property
    def method(self) -> str | None:
        """The method of the message, or of the request it answers."""
        if self.kind in {"request", "notification"}:
            method = self.value.get("method")
            return method if isinstance(method, str) else None
        return self.exchange.method if self.exchange else None

    @property
    def tool(self) -> str | None:
        """The tool that is called, or whose result this is."""
        known = self.exchange.tool if self.exchange else None
        if known is not None or self.kind != "request" or self.value.get("method") != "tools/call":
            return known
        # The call was refused before its tool was read.
        params = self.value.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        return name if isinstance(name, str) else None

    def __repr__(self) -> str:
        what = f"{self.kind} {self.method or ''}".strip()
        rules = ", ".join(violation.rule for violation in self.violations)
        return f"Verdict({self.party}: {what}: {rules or 'good'})"


def verdict(
    party: Party,
    frame: bytes,
    kind: Kind,
    value: Any,
    exchange: "Exchange | None",
    revision: str | None,
    findings: Findings | None = None,
) -> Verdict:
    """Return a verdict with these fields."""
    made = Verdict()
    made.party, made.frame, made.kind, made.value = party, frame, kind, value
    made.exchange, made.revision, made.findings = exchange, revision, findings
    return made


class Exchange:
    """
    A request, with what is needed to judge its response.

    It keeps no payload: a thousand open requests must not keep a thousand frames in memory. Rare attributes are defaults
    of the class, because one object is made for every request.
    """

    entry: Any
    """The method for this sender, with the definition that judges the response."""
    id: str | int
    spelling: bytes | None = None
    """The id as it was written, if it has several spellings: `1e2`, `-0`."""
    contract: Any = None
    """The tool's contract at the time of the call: a later list does not change it."""
    token: str | int | None = None
    """The progress token of the request."""
    detail: Any = None
    """Details of the request for its response: the called tool, whether a list continues, the task."""
    declared: frozenset[str] | None = None
    """The capabilities in the request (2026-07-28)."""
    level: int | None = None
    """The rank of the log level in the request (2026-07-28)."""
    scope: str | None = None
    """The cacheScope of the previous page, if it is known (2026-07-28)."""
    alone: bool = False
    """Whether this conversation has only this request: over HTTP without a session (2026-07-28)."""
    over_http: bool = False
    """Whether it came over HTTP."""
    as_task: bool = False
    """Whether it runs as a task, so that its result is a task."""
    state: Literal["open", "answered", "cancelled", "timed-out"] = "open"
    reusable: bool = False
    """Whether its id may be used again: it came before the session, or never reached the other party."""
    moment: Any = None
    """The ids of the request in the records, which its response shares."""
    span: Any = None
    """The part of the request that telemetry keeps until the response."""
    asked_at: float = inf
    """The time of the request, for reports of slow responses."""

    @classmethod
    def of(cls, entry: Any, ident: str | int) -> "Exchange":
        """Return the exchange of a new request."""
        made = cls()
        made.entry, made.id = entry, ident
        return made

    @property
    def asker(self) -> Party:
        """The sender of the request."""
        return self.entry.party  # type: ignore[no-any-return]  # an Entry, which this module does not know

    @property
    def method(self) -> str:
        """The method of the request."""
        return self.entry.name  # type: ignore[no-any-return]  # as above

    @property
    def revision(self) -> str:
        """The revision of the request."""
        return self.entry.revision  # type: ignore[no-any-return]  # as above

    @property
    def features(self) -> "Features":
        """The features of that revision."""
        return self.entry.features  # type: ignore[no-any-return]  # as above

    @property
    def tool(self) -> str | None:
        """The tool it calls."""
        if self.method != "tools/call":
            return None
        name: str | None = self.contract.name if self.contract else self.detail
        return name

    def __repr__(self) -> str:
        return f"Exchange({self.asker} asked {self.method} as {self.id!r}: {self.state})"

"""The values of a verdict: the party, the violations, what is forwarded. No rules, no transports, no JSON Schema."""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from assay.model.message import Message
    from assay.spec.revisions import Features


class Party(StrEnum):
    """One of the two parties of a conversation."""

    CLIENT = "client"
    SERVER = "server"

    @property
    def other(self) -> "Party":
        """The other party."""
        return Party.SERVER if self is Party.CLIENT else Party.CLIENT


Action = Literal["refuse", "quarantine", "report", "drop", "repair"]
"""
What happens because of a violation. `refuse`: the message is stopped, and its sender gets an error. `quarantine`: only
the entry of a list is removed. `report`: the message is forwarded. `drop`: the message is stopped without an error.
`repair`: the fault is corrected, and the message is forwarded.
"""


class ListEntry(NamedTuple):
    """One entry of a list that a party sends, as it is shown to people: short and printable."""

    kind: str
    """``tool``, ``prompt``, ``resource``, ``resource template``, ``root`` or ``task``."""
    name: str
    """Its name; otherwise its URI, otherwise its number in the list."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule, at one place."""

    rule: str
    """The stable identifier, public API: ``syntax/duplicate-key``."""
    at: str
    """A JSON Pointer from the root of the message, "" for the whole message."""
    expected: str
    found: str
    """Short: no more of the payload than is needed to recognise it."""
    source: str
    """The revision and the page, or the document that the rule comes from."""
    hint: str
    """What the author of the message can do."""
    action: Action = "refuse"
    schema_at: str | None = None
    """The place in the schema as a URI fragment, if a schema refused it."""
    reason: str | None = None
    """Why the action differs from that of other messages, in the operator's words."""
    wrong_type: bool = False
    """A schema refused it, and no value of its JSON type would fit, whatever its content."""
    entry: ListEntry | None = None
    """The entry of a list that it is about, if any."""

    @property
    def stops(self) -> bool:
        """Whether the message is stopped because of it."""
        return self.action in ("refuse", "drop")

    def under(self, prefix: str) -> "Violation":
        """Return the same violation in a message that has this one at *prefix*."""
        return replace(self, at=prefix + self.at)

    @property
    def place(self) -> str:
        """The place for people: ``/result/tools/0/inputSchema (tool search)``."""
        place = self.at or "the message"
        return place if self.entry is None else f"{place} ({self.entry})"

    def __str__(self) -> str:
        return f"{self.place}: expected {self.expected}, found {self.found} [{self.rule}]"


class Repair(NamedTuple):
    """One change that the guard made in a frame, as an operation of JSON Patch (RFC 6902) for the records."""

    op: Literal["add", "replace", "remove"]
    path: str
    """A JSON Pointer from the root of the message."""
    value: str | int | None = None
    """The new value, if it is a constant of the guard; None if it comes from the message, or is removed."""
    was: int | None = None
    """The value before, if it is a constant of the specification."""

    def under(self, prefix: str) -> "Repair":
        """Return the same change in a message that has this one at *prefix*."""
        return self._replace(path=prefix + self.path)

    @property
    def written(self) -> dict[str, Any]:
        """The operation as JSON, without what is not recorded."""
        return {name: each for name, each in self._asdict().items() if each is not None}


Kind = Literal["request", "notification", "result", "error", "batch", "blank", "unreadable", "missing"]
"""What a frame contains; ``missing`` stands for an answer that never came."""


UNNAMED = "?"
"""The method of a request whose `method` is not a string, for the answer to it."""


class Findings(NamedTuple):
    """The violations of a message, and what is sent to each party because of them."""

    violations: tuple[Violation, ...]
    more: int = 0
    """At least how many violations there are beyond those listed."""
    onward: bytes | None = None
    back: bytes | None = None
    parts: "tuple[Verdict, ...]" = ()
    quarantined: tuple[ListEntry, ...] = ()
    repairs: tuple[Repair, ...] = ()


class Verdict:
    """
    The judgement of one frame. It is not changed once it is made.

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
    """The exchange that this message opens, answers or concerns."""
    revision: str | None
    """The protocol revision that it was judged by; None before one is known."""
    findings: Findings | None
    """None if the message has no findings; it is forwarded unchanged."""

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The rules that the message breaks."""
        return self.findings.violations if self.findings else ()

    @property
    def more(self) -> int:
        """At least how many violations there are beyond those listed."""
        return self.findings.more if self.findings else 0

    @property
    def onward(self) -> bytes | None:
        """What the other party gets: the frame itself, a replacement, or nothing."""
        return self.findings.onward if self.findings else self.frame

    @property
    def back(self) -> bytes | None:
        """What the sender gets: the answer to a refused request, or nothing."""
        return self.findings.back if self.findings else None

    @property
    def parts(self) -> "tuple[Verdict, ...]":
        """A verdict for each entry of a batch."""
        return self.findings.parts if self.findings else ()

    @property
    def quarantined(self) -> tuple[ListEntry, ...]:
        """The entries of a list that are quarantined, or would be if the mode enforced it."""
        return self.findings.quarantined if self.findings else ()

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """The changes that the guard made in the forwarded frame, in order."""
        return self.findings.repairs if self.findings else ()

    @property
    def accepted(self) -> bool:
        """Whether no rule stops the message; it may still have reports."""
        return not any(violation.stops for violation in self.violations)

    @property
    def message(self) -> "Message | None":
        """The message as a value of `message`; None if it is not a message."""
        # Few programs ask for it, and its classes take 2 ms to make.
        from assay.model.message import message_of  # noqa: PLC0415

        return message_of(self.kind, self.value)

    @property
    def method(self) -> str | None:
        """The method of the message, or of the request that it answers."""
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
        # The call was refused before its tool was looked up.
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
    """Return a verdict with all of its parts."""
    made = Verdict()
    # One statement each: together they build a tuple and take it apart.
    made.party = party
    made.frame = frame
    made.kind = kind
    made.value = value
    made.exchange = exchange
    made.revision = revision
    made.findings = findings
    return made


class Exchange:
    """
    A request and what its answer will need.

    It keeps no payload: a thousand open requests must not hold a thousand frames in memory. Attributes that most
    requests do not have are defaults of the class, because one of these is made for every request. Those that every
    answer needs have none: it takes longer to read an attribute that the class has, too.
    """

    entry: Any
    """The method, as its sender may use it, with the judge of the answer."""
    id: str | int
    contract: Any
    """The contract of the tool when the call was made: a later list does not change it. None for other requests."""
    as_task: bool
    """Whether it asks to run as a task, so that a task answers it."""
    spelling: bytes | None = None
    """The id as it was written, if there are several spellings: `1e2`, `-0`."""
    token: str | int | None = None
    """The progress token of the request."""
    detail: Any = None
    """What the answer needs of the request: the tool, whether a list continues, the task."""
    declared: frozenset[str] | None = None
    """The capabilities of the client, if each request declares them (2026-07-28)."""
    level: int | None = None
    """The log level that the request asks for, as a rank, if each request does (2026-07-28)."""
    scope: str | None = None
    """The cacheScope of the page before the requested one, if it is known (2026-07-28)."""
    subject: int | None = None
    """A digest of the prompt or the resource that is asked for, if the answer may ask for input (2026-07-28)."""
    arguments: int | None = None
    """A digest of the arguments, if the answer may ask for input and it was taken (2026-07-28)."""
    retries: Any = None
    """The round that the request continues with input, if it is known (2026-07-28)."""
    alone: bool = False
    """Whether its conversation has all messages about it and no others: over HTTP without a session (2026-07-28)."""
    over_http: bool = False
    """Whether it was sent over HTTP."""
    beyond: Any = None
    """What an extension keeps of the request until it is answered."""
    state: Literal["open", "answered", "cancelled", "timed-out"] = "open"
    excused: bool = False
    """Whether it is malformed, and was forwarded all the same: a missing answer is no violation."""
    cancelled: bool = False
    """Whether it was cancelled, although an answer may have come later."""
    reusable: bool = False
    """Whether its id may be used again: it was sent before the session, or the other party never got it."""
    moment: Any = None
    """The ids of the request in the records, so that its answer gets the same ones."""
    span: Any = None
    """What telemetry keeps of the request until it is answered."""
    asked_at: float = inf
    """When it was sent, by the clock of the summary."""

    @classmethod
    def of(cls, entry: Any, ident: str | int) -> "Exchange":
        """Return a new request."""
        made = cls()
        made.entry, made.id, made.contract, made.as_task = entry, ident, None, False
        return made

    @property
    def asker(self) -> Party:
        """The party that sent the request."""
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
        """The tool that it calls."""
        if self.method != "tools/call":
            return None
        name: str | None = self.contract.name if self.contract else self.detail
        return name

    def __repr__(self) -> str:
        return f"Exchange({self.asker} asked {self.method} as {self.id!r}: {self.state})"

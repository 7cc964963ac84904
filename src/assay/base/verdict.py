"""The nouns: who spoke, what was wrong, what follows. They know nothing of rules, transports or JSON Schema."""

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
        """The side that hears what this one says."""
        return Party.SERVER if self is Party.CLIENT else Party.CLIENT


Action = Literal["refuse", "quarantine", "report", "drop", "repair"]
"""
What comes of a violation: the message stops, or only the entry that it names is set aside, or it is only told; the
message stops without a word to whoever sent it; or what is wrong is mended, and the message goes on.
"""


class ListEntry(NamedTuple):
    """One entry of a list that a party sends, as people know it: short and printable, whatever the peer called it."""

    kind: str
    """``tool``, ``prompt``, ``resource``, ``resource template``, ``root`` or ``task``."""
    name: str
    """Its name; else its URI, else its number in the list."""

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
    """Short: never more of the payload than it takes to recognise it."""
    source: str
    """Revision and page, or the document the rule comes from."""
    hint: str
    """What to do about it."""
    action: Action = "refuse"
    schema_at: str | None = None
    """Where in the schema, as a URI fragment, if a schema refused it."""
    reason: str | None = None
    """Why it is treated otherwise than others, in the words of whoever has said so."""
    wrong_type: bool = False
    """A schema refused it, and no value of its JSON type would fit, whatever its content."""
    entry: ListEntry | None = None
    """The entry of a list that it is about, if it is about one."""

    @property
    def stops(self) -> bool:
        """Whether the message goes no further for it."""
        return self.action in ("refuse", "drop")

    def under(self, prefix: str) -> "Violation":
        """The same violation in a message that holds this one at *prefix*."""
        return replace(self, at=prefix + self.at)

    @property
    def place(self) -> str:
        """Where it is, for people: ``/result/tools/0/inputSchema (tool search)``."""
        place = self.at or "the message"
        return place if self.entry is None else f"{place} ({self.entry})"

    def __str__(self) -> str:
        return f"{self.place}: expected {self.expected}, found {self.found} [{self.rule}]"


Kind = Literal["request", "notification", "result", "error", "batch", "blank", "unreadable", "missing"]
"""What a frame holds; ``missing`` stands for an answer that never came."""


UNNAMED = "?"
"""The method of a request whose `method` is no text, for the answer to it."""


class Findings(NamedTuple):
    """What is wrong with a message, and what becomes of it for that."""

    violations: tuple[Violation, ...]
    more: int = 0
    """At least how many violations there are beyond those listed."""
    onward: bytes | None = None
    back: bytes | None = None
    parts: "tuple[Verdict, ...]" = ()
    quarantined: tuple[ListEntry, ...] = ()


class Verdict:
    """
    What the judge says of one frame. Not to be changed once it is made.

    It has no constructor, and is no frozen dataclass: one is made for every message, and filling in the slots takes a
    tenth of the time (0.1 µs against 1). `verdict` makes one where that does not matter.
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
    """The protocol revision it was judged by, None before one is known."""
    findings: Findings | None
    """None for a message that nothing is to be said of: it goes on as it came."""

    @property
    def violations(self) -> tuple[Violation, ...]:
        """What is wrong with it."""
        return self.findings.violations if self.findings else ()

    @property
    def more(self) -> int:
        """At least how many violations there are beyond those listed."""
        return self.findings.more if self.findings else 0

    @property
    def onward(self) -> bytes | None:
        """What the other party is to get: the very frame, something in its place, or nothing."""
        return self.findings.onward if self.findings else self.frame

    @property
    def back(self) -> bytes | None:
        """What the speaker is to get: the answer to a refused request, or nothing."""
        return self.findings.back if self.findings else None

    @property
    def parts(self) -> "tuple[Verdict, ...]":
        """A verdict for each entry of a batch."""
        return self.findings.parts if self.findings else ()

    @property
    def quarantined(self) -> tuple[ListEntry, ...]:
        """The entries of a list that are quarantined, or would be where nothing is enforced: all of them."""
        return self.findings.quarantined if self.findings else ()

    @property
    def accepted(self) -> bool:
        """Whether no rule stops the message; it may still carry reports."""
        return not any(violation.stops for violation in self.violations)

    @property
    def message(self) -> "Message | None":
        """The message as one of the nouns of JSON-RPC, None if it is none."""
        from assay.base.message import message_of  # noqa: PLC0415 - six milliseconds of dataclasses that judging never needs

        return message_of(self.kind, self.value)

    @property
    def method(self) -> str | None:
        """The method it names, or the one of the request it answers."""
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
        # A call that was refused before its tool was looked at.
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
    """A verdict with all of its parts."""
    made = Verdict()
    made.party, made.frame, made.kind, made.value = party, frame, kind, value
    made.exchange, made.revision, made.findings = exchange, revision, findings
    return made


class Exchange:
    """
    A request and what is known of its answer.

    Keeps no payload: a thousand open requests must not hold a thousand frames in memory. What most requests do not have
    is left to the class: one of these is made for every request too.
    """

    entry: Any
    """The method, as the party that asks may use it, with what judges the answer."""
    id: str | int
    spelling: bytes | None = None
    """The id as it was written, where that is not the only way to write it: `1e2`, `-0`."""
    contract: Any = None
    """The tool's contract as it was when the call was made: a later list does not change it."""
    token: str | int | None = None
    """The progress token it carries."""
    detail: Any = None
    """What an answer needs of the request: the tool called, whether a list goes on, the task asked about."""
    declared: frozenset[str] | None = None
    """What the client can do, where each request says so (2026-07-28)."""
    level: int | None = None
    """The rank of the log messages that it asks for, where each request says so (2026-07-28)."""
    scope: str | None = None
    """The cacheScope of the page before the one that it asks for, if that is known (2026-07-28)."""
    alone: bool = False
    """Whether all that is said about it, and nothing else, is heard here: over HTTP without a session (2026-07-28)."""
    over_http: bool = False
    """Whether it was asked over HTTP."""
    as_task: bool = False
    """Whether it asks to be run as a task, and so is answered by one."""
    state: Literal["open", "answered", "cancelled", "timed-out"] = "open"
    reusable: bool = False
    """Whether its id may be used again: it was asked before the session, or the other party never got it."""
    moment: Any = None
    """What the records know the request by, so that its answer is found beside it."""
    span: Any = None
    """What telemetry keeps of the request until it is answered."""
    asked_at: float = inf
    """When it was asked, by the clock of whoever tells people how long it took."""

    @classmethod
    def of(cls, entry: Any, ident: str | int) -> "Exchange":
        """A request that has just been made."""
        made = cls()
        made.entry, made.id = entry, ident
        return made

    @property
    def asker(self) -> Party:
        """Who asked."""
        return self.entry.party  # type: ignore[no-any-return]  # an Entry, which this module does not know

    @property
    def method(self) -> str:
        """What was asked."""
        return self.entry.name  # type: ignore[no-any-return]  # as above

    @property
    def revision(self) -> str:
        """The revision it was asked in."""
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

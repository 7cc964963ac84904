"""One conversation of a recording: how it was opened, and which of its requests are open or left out. No I/O."""

from dataclasses import replace
from typing import Literal, NamedTuple

from assay.base.errors import CanonicalError
from assay.base.limits import DEFAULT, Limits
from assay.base.verdict import Exchange, Party, Verdict
from assay.contracts.tool_contracts import Tools
from assay.core.conversation import Conversation
from assay.records.recording.rows import Effect
from assay.records.transcript import TranscriptRow, party_of

Ident = str | int


class RecordingOpening(NamedTuple):
    """The start of a conversation."""

    server: str = ""
    mode: Literal["audit", "enforce"] = "audit"
    revision: str | None = None
    """The revision of a conversation that was opened elsewhere; None otherwise."""
    lines: bool = False
    frame_bytes: int | None = None
    """The guard's limit for a message in bytes; None if it is unknown."""
    tools: Tools | None = None
    """The tools it shares with another conversation; None if they are its own."""
    effect: Effect | None = None
    """The actions of the guard; None if the recording is not from a guard."""

    def limited(self, limits: Limits) -> Limits:
        """Return *limits* with the recorder's limit for a message, unless the settings have another one."""
        if self.frame_bytes in {None, limits.frame_bytes} or limits.frame_bytes != DEFAULT.frame_bytes:
            return limits
        return replace(limits, frame_bytes=self.frame_bytes or limits.frame_bytes)


class JudgedTalk:
    """One conversation of a recording."""

    __slots__ = ("blind", "conversation", "is_met", "number", "opening", "touched", "unheard")

    def __init__(self, number: int, conversation: Conversation, opening: RecordingOpening, line: int) -> None:
        self.number = number
        self.conversation = conversation
        self.opening = opening
        self.unheard: set[tuple[Party, Ident]] = set()
        """Requests that are not in the recording: their responses cannot be judged."""
        self.blind: frozenset[str] = frozenset()
        """Rules that cannot be judged any more, because messages are missing."""
        self.touched = line
        """The line of its last message, or of its start."""
        self.is_met = False
        """Whether a message was judged."""

    def give_up(self, row: TranscriptRow) -> Verdict | None:
        """Return the verdict on a missing response; None if the request was no longer open."""
        ident, code, why = row.members.get("id"), str(row.members.get("code") or "TIMEOUT"), row.members.get("why")
        if not isinstance(ident, str | int):
            return None
        if code not in CanonicalError.codes():
            # A later version of the guard may have others.
            code = "UPSTREAM_FAILURE"
        unstarted = row.members.get("unstarted") is True
        missing = self.conversation.give_up(party_of(row).other, ident, code, str(why or ""), unstarted=unstarted)
        # A guard records a reason for each one, except for a timeout.
        reported = (why or code == "TIMEOUT") and row.members.get("excused") is not True
        return missing if reported else None

    def answers(self, party: Party, verdict: Verdict) -> bool:
        """Whether a message is the response to a request that is not in the recording."""
        ident = verdict.value.get("id") if isinstance(verdict.value, dict) else None
        known = (party.other, ident)
        if verdict.kind not in {"result", "error"} or not isinstance(ident, str | int) or known not in self.unheard:
            return False
        self.unheard.discard(known)
        return True

    def let_go(self, party: Party, ident: Ident) -> Exchange | None:
        """Close and return the request of a response of *party* that is left out."""
        self.unheard.discard((party.other, ident))
        missing = self.conversation.give_up(party.other, ident)
        return None if missing is None else missing.exchange

    def settle(self, heard: Verdict, found: Verdict) -> None:
        """Forget a request that the guard refused but that is accepted with a mask in place of a secret."""
        enforced = self.opening.mode == "enforce" and heard.kind == "request"
        if enforced and heard.accepted and not found.accepted and heard.exchange is not None:
            self.conversation.give_up(heard.party, heard.exchange.id)

"""One conversation of a recording: how it was opened, and which of its requests are open or left out. No I/O."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

from assay.base.errors import CanonicalError
from assay.base.limits import DEFAULT, Limits
from assay.base.verdict import Exchange, Party, Verdict
from assay.contracts.tool_contracts import Tools
from assay.core.conversation import Conversation
from assay.records.recording.beginnings import Beginning
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

    __slots__ = (
        "_begin", "_conversation", "beginning", "blind", "heads", "is_met", "number", "opening", "touched", "unheard",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        begin: Callable[[RecordingOpening], Conversation],
        opening: RecordingOpening,
        line: int,
        beginning: Beginning | None = None,
    ) -> None:
        """*begin* creates the conversation. With *beginning* that is done for the first message that differs."""
        self.number = number
        self.opening = opening
        self._begin = begin
        self._conversation = begin(opening) if beginning is None else None
        self.beginning = beginning
        """Its messages so far, if other conversations may begin in the same way."""
        self.unheard: set[tuple[Party, Ident]] = set()
        """Requests that are not in the recording: their responses cannot be judged."""
        self.blind: frozenset[str] = frozenset()
        """Rules that cannot be judged any more, because messages are missing."""
        self.touched = line
        """The line of its last message, or of its start."""
        self.heads: list[bytes] = []
        """The heads of its rows that need no second look."""
        self.is_met = False
        """Whether a message was judged."""

    @property
    def conversation(self) -> Conversation:
        """The conversation, for whatever happens in it. After that it counts as different from all others."""
        made = self.hearing()
        self.beginning = None
        return made

    def hearing(self) -> Conversation:
        """Return the conversation for a message that others may have, too."""
        if self._conversation is None:
            before = self.beginning or Beginning()
            self._conversation = before.conversation(partial(self._begin, self.opening), self.opening.effect)
        return self._conversation

    @property
    def is_waiting(self) -> bool:
        """Whether all of its messages are known, so that there is no conversation yet."""
        return self._conversation is None

    @property
    def revision(self) -> str | None:
        """The revision of the conversation, if it is known."""
        if self._conversation is not None:
            return self._conversation.revision
        return None if self.beginning is None else self.beginning.revision

    @property
    def is_plain(self) -> bool:
        """Whether a row that only has a message is judged by that message alone."""
        return not self.unheard and (self.opening.effect is None or self.opening.effect.is_empty)

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

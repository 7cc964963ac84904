"""
A conversation that records what it hears, and everything else that affects its verdicts. It opens no file.

A recording is the log of these calls, so repeating the calls gives the same verdicts.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from assay.base.verdict import Party, Verdict
from assay.contracts.tool_contracts import Tools
from assay.core.conversation import NO_FACTS, Conversation, Facts
from assay.core.party_state import Id
from assay.guard.internal_errors import log_once
from assay.ladder.framing import Text
from assay.records.recording.rows import DIRECTIONS, spelt_facts

if TYPE_CHECKING:
    from assay.records.recording.recording_file import Recording


class RecordedConversation(Conversation):
    """One conversation of a recording."""

    def __init__(self, recording: "Recording", server: str, *, tools: Tools | None = None, **terms: Any) -> None:
        """*server* is the name of the guarded server, *tools* and *terms* are those of `Conversation`."""
        super().__init__(tools=tools, **terms)
        self._recording = recording
        self._server_name = server
        self._hearing = False
        self._number = recording.number()
        self._write(
            {
                "event": "open",
                "server": server,
                "mode": self.mode,
                "revision": terms.get("revision"),
                "lines": bool(terms.get("lines")),
                "frameBytes": self.limits.frame_bytes,
                **recording.tools_of(self.tools, self._number),
            }
        )

    def hear(self, party: Party, frame: Text, facts: Facts = NO_FACTS) -> Verdict:
        """Judge and record *frame*; return the verdict."""
        if self._hearing:
            # Judging a large frame calls this method again.
            return super().hear(party, frame, facts)
        self._hearing = True
        try:
            verdict = super().hear(party, frame, facts)
        finally:
            self._hearing = False
        if verdict.kind != "blank":
            self._record(verdict, facts)
        return verdict

    def unjudged(self, party: Party, frame: bytes, why: str, heard: Verdict | None = None) -> Verdict:
        """Return the verdict on a frame after an internal error, and record it unless it is already recorded."""
        verdict = super().unjudged(party, frame, why, heard)
        if heard is None:
            self._record(verdict, NO_FACTS, failed=why)
        return verdict

    def give_up(
        self,
        asker: Party,
        ident: Id,
        code: str = "TIMEOUT",
        why: str = "",
        data: Mapping[str, Any] | None = None,
        *,
        unstarted: bool = False,
        excused: bool = False,
    ) -> Verdict | None:
        """Fail one request without a response, and record it."""
        missing = super().give_up(asker, ident, code, why, data, unstarted=unstarted, excused=excused)
        if missing is not None:
            row = {"event": "unanswered", "dir": DIRECTIONS[asker.other], "id": ident, "code": code, "why": why}
            self._write({**row, **_marks(unstarted=unstarted, excused=excused)})
        return missing

    def end(
        self,
        party: Party,
        why: str = "",
        data: Mapping[str, Any] | None = None,
        *,
        unstarted: bool = False,
        excused: bool = False,
    ) -> list[Verdict]:
        """Fail every request that *party* has not answered, and record the end of its messages."""
        left = super().end(party, why, data, unstarted=unstarted, excused=excused)
        row = {"event": "end", "dir": DIRECTIONS[party], "why": why}
        self._write({**row, **_marks(unstarted=unstarted, excused=excused)})
        return left

    def beside(self, revision: str) -> Conversation:
        """Return a conversation of the guard itself with the same server, which is recorded as well."""
        return RecordedConversation(
            self._recording, self._server_name, tools=self.tools, revision=revision, **self._terms
        )

    def renew(self) -> None:
        """Record that the server was restarted."""
        super().renew()
        self._write({"event": "restart"})

    def forget_settled(self) -> None:
        """Record that the next requests come from another client."""
        super().forget_settled()
        self._write({"event": "forget"})

    def release(self) -> None:
        """Record the end of the conversation."""
        super().release()
        self._write({"event": "release"})

    def _record(self, verdict: Verdict, facts: Facts, *, failed: str = "") -> None:
        try:
            members: dict[str, Any] = {"failed": failed} if failed else {}
            if self._is_decided(verdict):
                members["actions"] = list(_actions(verdict))
            self._recording.message(self._number, verdict, {**spelt_facts(facts), **members})
        except Exception as error:
            # After any error the message is still judged and forwarded.
            log_once(error, "a message could not be written to the recording")

    def _is_decided(self, verdict: Verdict) -> bool:
        """Whether an action differs from the default in the table of rules."""
        policy = self._policy
        if policy is None or not verdict.violations:
            return False
        return policy.decides or any(each.action == "repair" for each in verdict.violations)

    def _write(self, row: dict[str, Any]) -> None:
        try:
            self._recording.event(self._number, row)
        except Exception as error:
            log_once(error, "an event could not be written to the recording")


def _marks(**marks: bool) -> dict[str, bool]:
    """Return the members of an event that are true."""
    return {name: True for name, value in marks.items() if value}


def _actions(verdict: Verdict) -> Iterator[dict[str, str]]:
    """Return the action for each violation; places in a batch are relative to their message."""
    for part in verdict.parts or (verdict,):
        for each in part.violations:
            yield {"rule": each.rule, "at": each.at, "action": each.action}

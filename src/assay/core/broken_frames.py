"""Judges frames that are not valid messages: unreadable, malformed, or a batch where none is allowed. No I/O."""

from collections.abc import Sequence
from typing import Any

from assay.base.verdict import Findings, Kind, Party, Verdict, Violation, verdict
from assay.core import render, state_rules
from assay.core.answer_judge import AnswerJudge
from assay.core.history import irregular
from assay.core.judge_base import CLIENT, SERVER, Facts


class BrokenFrames(AnswerJudge):
    """Judges what cannot be read as a message."""

    def _garbled(self, party: Party, frame: bytes, why: Violation | None) -> Verdict:
        """Return the verdict on a frame that is too long, or is not JSON."""
        if not self._enforcing and why is not None:
            irregular.take_unreadable(self._memory, party, frame, why.rule)
        return self._unreadable(party, frame, why)

    def _unreadable(self, party: Party, frame: bytes, why: Violation | None, *, stops: bool | None = None) -> Verdict:
        """
        Return the verdict on a frame that cannot be read.

        A client gets an error, up to a limit. A server gets none: a line that it prints by mistake is not a request.
        """
        side = self._sides[party]
        side.garbage += 1
        violations = tuple(self._decided([why] if why is not None else []))
        back = None
        answered = party is CLIENT and not any(each.action == "drop" for each in violations)
        stops = self._enforcing if stops is None else stops
        if stops and answered and side.garbage <= self.limits.garbage_answers:
            back = render.refusal(None, violations, 0, self.revision)
        findings = Findings(violations, 0, None if stops else frame, back)
        return verdict(party, frame, "unreadable", None, None, self.revision, findings)

    def _malformed(
        self, party: Party, frame: bytes, kind: Kind, value: Any, faults: Sequence[Violation], facts: Facts
    ) -> Verdict:
        """Return the verdict on a malformed message: a request is answered, an answer fails the request of its id."""
        asker = self._sides[party.other]
        faults = self._decided(list(faults))
        if kind in {"result", "error"}:
            faults = state_rules.answers_nothing(faults, value, asker)
        listed, more = self._listed(faults, 0)
        ident = render.usable_id(frame, value)
        exchange, onward, back = None, None, None
        stops = self._enforcing or self._stops(value, faults, facts)
        if kind in {"result", "error"} or (party is SERVER and not _asks(value)):
            exchange = asker.open.get(ident) if ident is not None else None
            if exchange is not None:
                asker.close(exchange, "answered")
                if self._enforcing:
                    onward = self._failed(frame, value, exchange, faults, 0)
                else:
                    irregular.take_answer(self._memory, exchange, value)
        elif not stops:
            irregular.take_malformed(self._memory, party, frame, value, faults)
        elif ident is not None:
            back = render.refusal(render.id_token(frame, value["id"]), listed, more, self.revision)
        elif kind != "notification":
            back = self._unreadable(party, frame, listed[0], stops=True).back
        findings = Findings(listed, more, onward, back) if stops else Findings(listed, more, frame)
        return verdict(party, frame, kind, value, exchange, self.revision, findings)

    def _no_batch(self, party: Party, frame: bytes, values: list[Any], allowed: bool, facts: Facts) -> Verdict:
        wrong = state_rules.no_batch(len(values), self.limits, self.revision, allowed=allowed)
        stops = self._enforcing or facts.served
        if not stops:
            irregular.take_batch(self._memory, party, render.entries(frame), values, self.limits.batch_entries)
        refused = self._unreadable(party, frame, wrong, stops=stops)
        return verdict(party, frame, "batch", values, None, self.revision, refused.findings)


def _asks(value: Any) -> bool:
    """Return whether a malformed message of a server is a request, so that the server waits for an answer."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("method"), str)
        and "result" not in value
        and "error" not in value
    )

"""Judges frames that are not valid messages: unreadable, malformed, or a batch where none is allowed. No I/O."""

from collections.abc import Sequence
from typing import Any, Final

from assay.base.verdict import Exchange, Findings, Kind, Party, Verdict, Violation, verdict
from assay.core import render, state_rules
from assay.core.answer_judge import AnswerJudge
from assay.core.history import irregular
from assay.core.judge_base import CLIENT, SERVER, Facts, is_refused
from assay.ladder import contract
from assay.ladder.envelope import kind_of

_LEGIBLE: Final = frozenset({"envelope/jsonrpc", "envelope/id", "envelope/members"})
"""Rules that a message may break and still show what it is."""


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
        ident = render.usable_id(frame, value)
        onward, back = None, None
        stops = self._enforcing or self._stops(value, faults, facts)
        answers = kind in {"result", "error"} or (party is SERVER and not _asks(value))
        exchange = asker.open.get(ident) if answers and ident is not None else None
        within, more = self._within(party, value, faults, exchange, facts)
        listed, more = self._listed([*faults, *within], more)
        if answers:
            if exchange is not None:
                asker.close(exchange, "answered")
                if self._enforcing:
                    onward = self._failed(frame, value, exchange, listed, more)
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

    def _within(
        self, party: Party, value: Any, faults: Sequence[Violation], exchange: Exchange | None, facts: Facts
    ) -> tuple[list[Violation], int]:
        """
        Return the violations inside a malformed message, and at least how many more. It changes no state.

        Its author then learns of all mistakes at once. What it is must be clear: only one of method, result and error
        may have a value.
        """
        if not all(each.rule in _LEGIBLE or _is_null_error(each, value) for each in faults):
            return [], 0
        read = {name: each for name, each in value.items() if name not in _OUTCOMES or each is not None}
        read["jsonrpc"] = "2.0"
        if len(read.keys() & {"method", *_OUTCOMES}) != 1:
            return [], 0
        if "method" in read:
            return self._within_call(party, read, facts)
        if exchange is None or not isinstance(read.get("result", {}), dict):
            return [], 0
        found: list[Violation] = []
        as_task = exchange.as_task
        more = self._memory.check_answer(exchange, {**read, "id": exchange.id}, kind_of(read), found, self._budget)
        exchange.as_task = as_task
        return self._decided_answer(exchange, read, found), more

    def _within_call(self, party: Party, message: dict[str, Any], facts: Facts) -> tuple[list[Violation], int]:
        """Return the same for a request or a notification, by its definition and by the contract of its tool."""
        method = message["method"]
        lifecycle = self._memory.lifecycle
        if "id" in message:
            judge, early = lifecycle.place_request(party, message, facts.revision)
        else:
            judge, early = lifecycle.place_notification(party, method)
        entry = self._entry(judge, party, kind_of(message), message)
        if entry is None or any(each.rule == "protocol/unsupported-revision" for each in early):
            return [], 0
        found, more = judge.check_params(entry, message, self._budget)
        known = self._called(message) if method == "tools/call" else None
        if known is not None and not is_refused(found):
            wrong, further = contract.check_input(known, message["params"], judge.revision, self._budget)
            found, more = found + wrong, more + further
        return self._decided(found, None if known is None else known.name), more

    def _no_batch(self, party: Party, frame: bytes, values: list[Any], allowed: bool, facts: Facts) -> Verdict:
        wrong = state_rules.no_batch(len(values), self.limits, self.revision, allowed=allowed)
        stops = self._enforcing or facts.served
        if not stops:
            irregular.take_batch(self._memory, party, render.entries(frame), values, self.limits.batch_entries)
        refused = self._unreadable(party, frame, wrong, stops=stops)
        return verdict(party, frame, "batch", values, None, self.revision, refused.findings)


_OUTCOMES: Final = ("result", "error")


def _is_null_error(fault: Violation, value: Any) -> bool:
    """Return whether *fault* is about an error that is null: some servers send one beside the result."""
    return fault.rule == "envelope/error" and "result" in value and value.get("error") is None


def _asks(value: Any) -> bool:
    """Return whether a malformed message of a server is a request, so that the server waits for an answer."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("method"), str)
        and "result" not in value
        and "error" not in value
    )

"""Judges answers: results and errors, matched with the request that they answer; repairs those of servers. No I/O."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from assay.base.verdict import Exchange, Findings, Kind, Party, Repair, Verdict, Violation, verdict
from assay.core import list_filter, render, result_repair, state_rules
from assay.core.history import absent, irregular
from assay.core.judge_base import JudgeBase, is_refused
from assay.core.party_state import Id
from assay.core.policy import REPAIRED_RESULTS
from assay.engine.budget import Budget


class HeardAnswer(NamedTuple):
    """An answer as it came, or repaired, and what was found in it."""

    frame: bytes
    message: dict[str, Any]
    found: list[Violation]
    """What is wrong; first what was repaired."""
    more: int
    repairs: tuple[Repair, ...] = ()


class AnswerJudge(JudgeBase):
    """Judges messages that have a result or an error."""

    def _answer(self, party: Party, frame: bytes, message: dict[str, Any], kind: Kind, ident: Id | None) -> Verdict:
        self._sides[party].garbage = 0
        if ident is None:
            return self._unread(party, frame, message)
        asker = self._sides[party.other]
        if ident in asker.irregular.requests:
            budget = Budget(frame, 1)
            irregular.promote(self._memory, asker, ident, lambda each: self._fits(each, message, kind, budget))
        exchange = asker.open.get(ident) or asker.settled.get(ident)
        if exchange is None or exchange.state not in {"open", "cancelled"}:
            return self._unsolicited(party, frame, message, kind, exchange)
        heard = HeardAnswer(frame, message, *self._judged_answer(exchange, message, kind))
        further: list[Violation] = []
        if self._lock is not None and kind == "result":
            # By what the server sent: the lock was made from that, not from a repaired list.
            further += self._decided_answer(exchange, message, self._lock.check(exchange, message["result"]))
        sent = heard if is_refused(further) else self._repaired_answer(heard, exchange, kind)
        self._closing = exchange
        asker.close(exchange, "answered")
        if not self._enforcing or not is_refused([*sent.found, *further]):
            # The entries of a list may break rules themselves.
            learned: list[Violation] = []
            self._memory.answered(exchange, sent.message, learned)
            further += self._decided_answer(exchange, sent.message, learned)
        if sent.repairs and is_refused(further):
            # The list is useless all the same, and none of it is forwarded.
            sent = heard
        found, more, onward = [*sent.found, *further], sent.more, sent.frame
        if found:
            found = list_filter.named(exchange, sent.message, self._memory.extensions.once(found))
        if self._enforcing and found and kind == "result":
            onward = self._forwarded_answer(sent.frame, sent.message, exchange, found, more)
        elif self._enforcing and is_refused(found):
            onward = self._failed(sent.frame, sent.message, exchange, found, more)
        listed, more = self._listed(found, more)
        aside = () if is_refused(found) else list_filter.quarantined(found)
        findings = Findings(listed, more, onward, quarantined=aside, repairs=sent.repairs) if found else None
        self._closing = None
        return verdict(party, frame, kind, message, exchange, exchange.revision, findings)

    def _judged_answer(self, exchange: Exchange, message: dict[str, Any], kind: Kind) -> tuple[list[Violation], int]:
        """Return the violations of an answer by its request, and at least how many more; it changes no state."""
        found: list[Violation] = []
        more = self._memory.check_answer(exchange, message, kind, found, self._budget)
        found = self._decided_answer(exchange, message, found)
        if found and kind == "result" and exchange.method in list_filter.LISTS:
            read = absent.filled(exchange, exchange.entry.result, message["result"])
            found = list_filter.limited(exchange, read, found)
        return found, more

    def _repaired_answer(self, heard: HeardAnswer, exchange: Exchange, kind: Kind) -> HeardAnswer:
        """Return an answer after repair; itself if it is not to be repaired, or would be refused all the same."""
        rules = self._policy.repairs if self._policy is not None and self._enforcing else frozenset()
        if rules.isdisjoint(REPAIRED_RESULTS):
            return heard

        plan = result_repair.planned(exchange, heard.message, heard.found, rules)
        made = result_repair.made(heard.frame, plan.repairs, self.limits) if plan is not None else None
        if plan is None or made is None:
            return heard
        found, more = self._judged_answer(exchange, made.message, kind)
        return heard if is_refused(found) else HeardAnswer(*made, [*plan.done, *found], more, plan.repairs)

    def _fits(self, exchange: Exchange, message: dict[str, Any], kind: Kind, budget: Budget) -> bool:
        """Return whether *message* is a valid answer to *exchange*."""
        found: list[Violation] = []
        return not self._memory.check_answer(exchange, message, kind, found, budget) and not found

    def _excused(
        self, party: Party, frame: bytes, value: dict[str, Any], ident: Any, faults: tuple[Violation, ...]
    ) -> tuple[Any, tuple[Violation, ...]]:
        """Return the id and the faults of an answer, without a wrong id that only repeats that of the request."""
        forwarded = self._sides[party.other].irregular
        known = irregular.key(frame, value, self._id_bytes)
        waiting = len(forwarded.requests.get(known, ())) if "id" in value else 0
        blank = "error" in value and value.get("id") is None
        if waiting and not (blank and forwarded.unreadable > waiting):
            ident = known
        elif not blank or "id" in value or not forwarded.answers_unreadable():
            # Null is the id that JSON-RPC has for an answer to an unreadable message: `_unread` looks for one.
            return ident, faults
        return ident, tuple(each for each in faults if each.rule != "envelope/id")

    def _unread(self, party: Party, frame: bytes, message: dict[str, Any]) -> Verdict:
        """Return the verdict on an error without an id, about an unreadable message. It is forwarded."""
        revision = self.revision
        # Before a revision is agreed only JSON-RPC applies, which requires null.
        odd = "id" in message and revision is not None
        if odd and not self._enforcing:
            odd = not self._sides[party.other].irregular.answers_unreadable()
        found = self._decided([state_rules.null_id(str(revision))]) if odd else []
        if found:
            found = state_rules.answers_nothing(found, message, self._sides[party.other])
        forwarded = not self._enforcing or not is_refused(found)
        findings = Findings(tuple(found), 0, frame if forwarded else None) if found else None
        return verdict(party, frame, "error", message, None, revision, findings)

    def _unsolicited(
        self, party: Party, frame: bytes, message: dict[str, Any], kind: Kind, exchange: Exchange | None
    ) -> Verdict:
        """Return the verdict on an answer without an open request; it is delivered only if it may have one."""
        asker = self._sides[party.other]
        if not self._enforcing and asker.irregular.answers_unknown():
            return verdict(party, frame, kind, message, None, self.revision)
        wrong = self._decided([state_rules.unsolicited(message["id"], exchange, asker, self.revision)])
        findings = Findings(tuple(wrong), 0, None if self._enforcing else frame)
        return verdict(party, frame, kind, message, exchange, self.revision, findings)

    def _decided_answer(self, exchange: Exchange, message: dict[str, Any], found: list[Violation]) -> list[Violation]:
        if self._policy is None or exchange.method != "tools/list":
            return self._decided(found, exchange.tool)
        return [self._policy.decide(each, list_filter.tool_at(each, message.get("result"))) for each in found]

    def _forwarded_answer(
        self, frame: bytes, message: dict[str, Any], exchange: Exchange, found: Sequence[Violation], more: int
    ) -> bytes:
        """Return what the client gets for a result: the frame itself, a list without invalid entries, or an error."""
        numbers = list_filter.entries(exchange, found)
        if numbers and exchange.method == "tools/list":
            self._tools.forget(message["result"]["tools"], numbers)
        if is_refused(found):
            return self._failed(frame, message, exchange, found, more, result=True)
        return list_filter.without(frame, message, exchange.method, numbers) if numbers else frame

    def _failed(
        self,
        frame: bytes,
        message: dict[str, Any],
        exchange: Exchange,
        found: Sequence[Violation],
        more: int,
        *,
        result: bool = False,
    ) -> bytes:
        """Return the frame that replaces an invalid answer; *result* is true if the answer is a result."""
        if exchange.method == "initialize":
            self._memory.refused()
        listed, more = self._listed(found, more)
        ident = render.id_token(frame, message["id"])
        if result and exchange.tool is not None and not exchange.as_task:
            return render.withheld(ident, exchange.tool, listed, more, exchange.revision)
        return render.failure(ident, "UPSTREAM_INVALID", listed, more, exchange.revision)

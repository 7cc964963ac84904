"""Judges requests and notifications, and repairs calls where the policy asks for it. No I/O."""

from collections.abc import Callable
from typing import Any

from assay.base.meta import named_revision
from assay.base.verdict import Exchange, Findings, Party, Verdict, Violation, verdict
from assay.core import list_filter, render, repair, state_rules
from assay.core.history import irregular, reuse
from assay.core.judge_base import Facts, JudgeBase, is_refused, repeated_headers
from assay.core.party_state import Id, Side
from assay.ladder import contract, serving
from assay.ladder.headers import check_headers

JudgeCall = Callable[[bytes, dict[str, Any]], Verdict]
"""Judges a frame and the message in it."""


class RequestJudge(JudgeBase):
    """Judges messages that have a method."""

    def _request(
        self,
        party: Party,
        frame: bytes,
        message: dict[str, Any],
        facts: Facts,
        batched: bool,
        ident: Id,
        *,
        repairing: bool = True,
    ) -> Verdict:
        self._memory.catch_up()
        side = self._sides[party]
        method = message["method"]
        judge, early = self._memory.lifecycle.place_request(party, message, facts.revision)
        found = list(early)
        entry = self._entry(judge, party, "request", message)
        if entry is None:
            found.append(self._no_such_method(judge, party, "request", message))
            entry = judge.stranger(party, method)
        if method == "tools/call" and self._tools.elsewhere is not None:
            self._tools.recall(_tool_named(message), outputs=judge.features.output_schemas)
        if facts.headers is not None:
            # First of all: a body that names another revision than its header is refused for that.
            known = self._called(message) if method == "tools/call" else None
            unusable = (
                contract.check_usable(self._tools, known, judge.revision, over_http=True) if known is not None else []
            )
            # An extension that is not judged may name something else, or nothing, in its header.
            named = entry.params is not None or method not in judge.extensions.methods(judge.revision)
            params = repeated_headers(known)
            wrong = list(check_headers(message, facts.headers, judge.revision, params, named=named))
            found = wrong + [each for each in found if each not in wrong] + unusable
        faults, more = judge.check_params(entry, message, self._budget)
        found += faults
        if ident in side.open or len(side.open) >= self._most_open:
            found.append(state_rules.no_room(side, ident, self.limits, judge.revision))
        elif ident in side.settled:
            found += reuse.check_id(side, ident, method, judge.revision)
        if judge is side.judge and method in side.undeclared:
            found.append(state_rules.undeclared(self._sides, side.party, method, judge.revision))
        if batched and method == "initialize":
            found.append(state_rules.batched_initialize(judge.revision))
        exchange = Exchange.of(entry, ident)
        exchange.alone = facts.transport == "http" and entry.stateless
        exchange.over_http = facts.transport == "http"
        if type(ident) is int and (ident is not message["id"] or ident == 0):
            exchange.spelling = render.id_token(frame, message["id"])
        called = _tool_named(message)
        found = self._decided(found, called)
        if facts.served:
            found += serving.check_alone(message, found, judge.revision)
        if "params" in message and not is_refused(found):
            more += self._memory.take_params(side, exchange, message["params"], found, self._budget)
            found = self._decided(found, called)
            # The arguments of a call that is repaired are compared once they are repaired.
            if not self._enforcing or not is_refused(found):
                more += self._memory.check_retry(exchange, message["params"], found, self._budget)
                found = self._decided(found, called)
        elif not self._enforcing and is_refused(found):
            irregular.take_request(self._memory, side, exchange, message, found)
        useless = self._called(message) if any(each.action == "quarantine" for each in found) else None
        if useless is not None and self._enforcing:
            # The schemas of the tool were compiled for this call only, and cannot be used.
            self._tools.quarantine(useless.name)
            found.append(state_rules.quarantined(useless.name, judge.revision))
        if useless is not None:
            found = list_filter.about(useless.name, found)
        side.garbage = 0
        # Under audit nothing is repaired: the call is forwarded unchanged, and its progress is still tracked.
        if repairing and self._enforcing and self._policy is not None and method == "tools/call" and is_refused(found):
            side.forget_token(exchange)

            def again(spelt: bytes, value: dict[str, Any]) -> Verdict:
                return self._request(party, spelt, value, facts, batched, ident, repairing=False)

            repaired = self._repaired(frame, message, found, again)
            if repaired is not None:
                return repaired
        return self._heard_request(side, frame, message, exchange, found, more, facts)

    def _repaired(
        self, frame: bytes, message: dict[str, Any], found: list[Violation], judge: JudgeCall
    ) -> Verdict | None:
        """Return the verdict on a call after repair; None if it is not to be repaired, or is refused all the same."""
        rules = self._policy.repairs if self._policy is not None and self._enforcing else ()
        if not rules:
            return None
        known = self._called(message)
        schema = known.input.schema if known is not None and known.input is not None else None
        wanted = repair.WantedType(rules, schema, self._depth, self.limits.violations)
        repaired = repair.repaired(frame, message, found, wanted, judge)
        if repaired is None:
            return None
        again = repaired.verdict
        listed, more = self._listed([*repaired.done, *again.violations], again.more)
        findings = Findings(listed, more, again.frame, repairs=repaired.repairs)
        return verdict(again.party, frame, "request", message, again.exchange, again.revision, findings)

    def _heard_request(
        self,
        side: Side,
        frame: bytes,
        message: dict[str, Any],
        exchange: Exchange,
        found: list[Violation],
        more: int,
        facts: Facts,
    ) -> Verdict:
        """Return the verdict on a request: it is forwarded unless it is refused and the mode enforces that."""
        found = self._memory.once(found) if found else found
        forwarded = not self._stops(message, found, facts)
        listed, more = self._listed(found, more)
        back = None
        if forwarded:
            # Under audit the id may be in use already, or there are more open requests than the limit.
            if len(side.open) < self._most_open and side.open.setdefault(exchange.id, exchange) is exchange:
                self._memory.asked(exchange, message)
            else:
                side.irregular.add(exchange)
        else:
            side.forget_token(exchange)
            ident = exchange.spelling or render.id_token(frame, message["id"])
            requested = named_revision(message) or facts.revision
            back = render.refusal(ident, listed, more, exchange.revision, requested=requested, spoken=facts.spoken)
        aside = list_filter.quarantined(found) if found else ()
        findings = Findings(listed, more, frame if forwarded else None, back, (), aside) if found else None
        return verdict(side.party, frame, "request", message, exchange, exchange.revision, findings)

    def _notification(self, party: Party, frame: bytes, message: dict[str, Any], facts: Facts) -> Verdict:
        self._memory.catch_up()
        side = self._sides[party]
        method = message["method"]
        judge, early = self._memory.lifecycle.place_notification(party, method)
        found = list(early)
        if facts.headers is not None:
            found += check_headers(message, facts.headers, judge.revision)
        more = 0
        entry = self._entry(judge, party, "notification", message)
        if entry is None:
            found.append(self._no_such_method(judge, party, "notification", message))
        else:
            faults, more = judge.check_params(entry, message, self._budget)
            found += faults
        if judge is side.judge and method in side.undeclared:
            found.append(state_rules.undeclared(self._sides, side.party, method, judge.revision))
        found = self._decided(found)
        if found:
            found = self._memory.once(found)
        if facts.served:
            found += serving.check_alone(message, found, judge.revision)
        if not self._enforcing or not is_refused(found):
            found += self._decided(self._memory.check_note(side, method, message.get("params", {}), judge))
        side.garbage = 0
        forwarded = not self._stops(message, found, facts)
        exchange = self._memory.noted(side, method, message.get("params", {}), judge) if forwarded else None
        listed, more = self._listed(found, more)
        findings = Findings(listed, more, frame if forwarded else None) if found else None
        return verdict(party, frame, "notification", message, exchange, judge.revision, findings)


def _tool_named(message: dict[str, Any]) -> str | None:
    """Return the tool that a request calls; None for other requests."""
    params = message.get("params")
    name = params.get("name") if type(params) is dict and message["method"] == "tools/call" else None
    return name if type(name) is str else None

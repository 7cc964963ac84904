"""
Every rule, broken by a server or a client of the table, with a guarded session between them, in both modes.

Under enforce the client is served: every request gets its one answer, the next good one works, and the broken rule is
named. Under audit every byte passes as it came, and the same rule is named.
"""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from exchange_rows import HANDSHAKE_ROWS, STATELESS_ROWS

from assay.guard.terms import Mode
from assay.rules import RULES
from assay.rules.sentences import sentence
from kit.broken_rules import CASES, GROUPS, LATEST, WITHOUT_CASE, Case, Outcome, frames, named, script
from kit.guard_process import INITIALIZED, frame_of, initialize, request
from kit.guarded_session import ScriptedSession
from kit.places import ROOT
from kit.rows import rows
from kit.stateless_talk import asks

WORDS = {"refuse": ["blocked: "], "quarantine": ["quarantined "], "report": ["reported: ", "failed: "]}
"""What is logged of a message that breaks a rule, by what the rule does under enforce."""

GENERAL_TOO = {"apps/mime-type", "contract/schema", "envelope/error", "envelope/id", "envelope/params"}
"""Rules with a sentence of their own for one kind of violation only."""


class Conversation:
    """One case from beginning to end; after each turn a good request shows that all goes on."""

    def __init__(self, case: Case, mode: Mode) -> None:
        self.case = case
        self.one = ScriptedSession(script(case), mode, case.settings, case.locked)
        self.served: list[tuple[Any, Outcome]] = []
        """What comes of the good requests."""
        if case.opened:
            self._open()
        for number, turn in enumerate(frames(case)):
            self.one.converse(*turn)
            if case.survives:
                self._ask(f"sync {number}", "ping")
        self.one.leave()

    def _open(self) -> None:
        """The handshake, where there is one, and the list of tools."""
        if self.case.revision != LATEST:
            self.one.converse(frame_of(initialize(self.case.revision, **self.case.capabilities)))
            self.one.converse(frame_of(INITIALIZED))
            self.served.append(("open", "result"))
        if self.case.lists:
            self._ask("list", "tools/list")

    def _ask(self, ident: str, method: str) -> None:
        stateless = self.case.revision == LATEST
        self.one.converse(frame_of(asks(ident, "tools/list") if stateless else request(ident, method)))
        self.served.append((ident, "result"))

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The answers that the client got, batches taken apart."""
        values = [json.loads(line) for line in self.one.received.splitlines()]
        every = [each for value in values for each in (value if isinstance(value, list) else [value])]
        return [each for each in every if "method" not in each]

    @property
    def names_the_rule(self) -> bool:
        """Whether the broken rule is recorded and logged."""
        rule = self.case.rule
        logged = any(f"[{rule}]" in line or f"× {rule}" in line for line in self.one.log)
        assert logged is (rule in self.one.records.rules), (self.one.records.rules, self.one.log)
        assert not logged or self._has_its_own_sentence(), self.one.records.violations
        return logged

    def _has_its_own_sentence(self) -> bool:
        """Whether a sentence of the rule, if it has any, fits one of the violations."""
        found = [each for each in self.one.records.violations if each.rule == self.case.rule]
        plain = [sentence(replace(each, rule="no/such-rule")) for each in found]
        if self.case.rule in GENERAL_TOO or not RULES[self.case.rule].says:
            return True
        return [sentence(each) for each in found] != plain


def outcome(message: dict[str, Any]) -> Outcome:
    """What an answer says."""
    if "error" in message:
        return int(message["error"]["code"])
    return "isError" if message["result"].get("isError") else "result"


def check_enforced(case: Case) -> None:
    made = Conversation(case, "enforce")
    one, answers = made.one, made.answers
    assert Counter((each.get("id"), outcome(each)) for each in answers) == Counter(case.gets + made.served)
    assert made.names_the_rule
    if case.listed is not None:
        assert {len(each["result"]["tools"]) for each in answers if "tools" in each.get("result", {})} == {case.listed}
    if case.survives:
        action = case.action or RULES[case.rule].action
        assert any(line.startswith(f"assay: {word}") for line in one.log for word in WORDS[action]), one.log
        stopped = Counter(one.sent.splitlines()) - Counter(one.scripted.got.splitlines())
        # What the guard asks for itself is answered to the guard.
        answered = [line for line in one.scripted.said.splitlines() if b'"assay-list-' not in line]
        stopped += Counter(answered) - Counter(one.received.splitlines())
        assert bool(stopped) is (action != "report")


def check_audited(case: Case) -> None:
    made = Conversation(case, "audit")
    one = made.one
    assert one.scripted.got == one.sent
    assert one.received == one.scripted.said
    assert made.names_the_rule is case.audited, one.records.rules
    assert not any("blocked: " in line for line in one.log)


@pytest.mark.parametrize("group", GROUPS)
def test_under_enforce_the_client_is_served_and_what_a_rule_refuses_does_not_arrive(group: str) -> None:
    rows("case", GROUPS[group], ids=named(GROUPS[group]))(check_enforced)()


@pytest.mark.parametrize("group", GROUPS)
def test_under_audit_every_byte_passes_and_the_broken_rule_is_named(group: str) -> None:
    rows("case", GROUPS[group], ids=named(GROUPS[group]))(check_audited)()


def test_every_rule_has_a_case_or_a_file_that_tests_it() -> None:
    broken = {case.rule for case in CASES}
    assert broken.isdisjoint(WITHOUT_CASE)
    assert broken | WITHOUT_CASE.keys() == RULES.keys()
    for reason in WITHOUT_CASE.values():
        files = [ROOT / each for each in reason.partition(": ")[2].split(", ")]
        assert files
        assert all(each.is_file() for each in files)


def test_each_rung_has_an_exchange_that_goes_through_every_kind_of_guard() -> None:
    found = [each.split()[1] for row in (*HANDSHAKE_ROWS, *STATELESS_ROWS) for each in row.enforce.found]
    assert {RULES[each].rung for each in found} == {rule.rung for rule in RULES.values()} - {"guard"}

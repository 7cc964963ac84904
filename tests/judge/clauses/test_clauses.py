"""Short conversations, written from the specification: what is legal is never touched, what is not is never missed."""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from legal_and_illegal import ILLEGAL, LEGAL
from saying import Row, played

from assay.judge.conversation import Conversation
from assay.model.verdict import Verdict
from assay.rules import RULES
from assay.rules.policy import Policy
from assay.spec.revisions import REVISIONS
from kit.rows import rows
from kit.talk import rules

MODES = ("enforce", "audit")


def named(row: Row) -> str:
    return row.says.replace(" ", "-")


class Judged(NamedTuple):
    """One message of a row, and what was made of it."""

    revision: str
    mode: str
    breaks: str | None
    """The rule that it is said to break."""
    verdict: Verdict

    @property
    def found(self) -> set[str]:
        return set(rules(self.verdict))

    def __str__(self) -> str:
        return f"{self.revision}, {self.mode}: {self.verdict.frame!r}: {self.found or 'nothing'}"


def judged(row: Row) -> Iterator[Judged]:
    """Every message of the row, in every revision that it names."""
    for revision, mode in product(row.revisions, MODES):
        conversation = Conversation(mode=mode)  # type: ignore[arg-type]  # a mode of the table
        for step in played(row, revision):
            verdict = conversation.hear(step.party, step.frame(revision), step.facts)
            yield Judged(revision, mode, step.breaks, verdict)


@rows("row", LEGAL, ids=named)
def test_what_is_legal_goes_on_as_it_came_and_nothing_is_said_of_it(row: Row) -> None:
    touched = [
        each
        for each in judged(row)
        if each.found or each.verdict.onward is not each.verdict.frame or each.verdict.back is not None
    ]
    assert not touched, "\n".join(map(str, touched))


@rows("row", ILLEGAL, ids=named)
def test_what_is_not_is_found_where_it_is_and_nothing_else_is_blamed(row: Row) -> None:
    wrong = [each for each in judged(row) if (each.breaks not in each.found if each.breaks else bool(each.found))]
    assert not wrong, "\n".join(map(str, wrong))


@rows("row", ILLEGAL, ids=named)
def test_a_strict_policy_does_what_the_rule_says(row: Row) -> None:
    """An entry of a list that breaks a rule is set aside, and the list is forwarded without it."""
    conversation = Conversation(policy=Policy({"contract/not-judged": "pass"}, strict=True))
    for step in played(row, row.revisions[-1]):
        verdict = conversation.hear(step.party, step.frame(row.revisions[-1]), step.facts)
        if step.breaks is not None:
            actions = {each.action for each in verdict.violations if each.rule == step.breaks}
            assert actions <= {RULES[step.breaks].severest, "quarantine"}
            stopped = bool(actions & {"refuse", "drop"})
            assert verdict.accepted is not stopped
            break


def test_the_tables_are_large_and_name_every_conversation_once() -> None:
    for table in (LEGAL, ILLEGAL):
        assert len(table) >= 150
        assert max(Counter(row.says for row in table).values()) == 1
        assert {revision for row in table for revision in row.revisions} == set(REVISIONS)

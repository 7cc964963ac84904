"""Short conversations, written from the specification: what is legal is never touched, what is not is never missed."""

from collections import Counter

import illegal
import legal
import pytest
from saying import Row, played

from assay.base.verdict import Verdict
from assay.core.conversation import Conversation
from assay.spec.revisions import REVISIONS

MODES = ("enforce", "audit")


def each(rows: list[Row]) -> list[object]:
    """Every row in every revision that it names."""
    return [
        pytest.param(row, revision, id=f"{revision}-{row.says.replace(' ', '-')}")
        for row in rows
        for revision in row.revisions
    ]


def judged(row: Row, revision: str, mode: str, *, preview: bool = False) -> list[tuple[str | None, Verdict]]:
    """The rule that each message is said to break, and the verdict on it."""
    conversation = Conversation(mode=mode, preview=preview)  # type: ignore[arg-type]  # a parameter of the test
    return [
        (step.breaks, conversation.hear(step.party, step.frame(revision), step.facts)) for step in played(row, revision)
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("row", "revision"), each(legal.ROWS))
def test_what_is_legal_goes_on_as_it_came_and_nothing_is_said_of_it(row: Row, revision: str, mode: str) -> None:
    """Not of a draft either, whether drafts are judged or not."""
    for _, verdict in [*judged(row, revision, mode), *judged(row, revision, mode, preview=True)]:
        assert verdict.violations == (), (verdict.frame, verdict.violations)
        assert verdict.onward is verdict.frame
        assert verdict.back is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("row", "revision"), each(illegal.ROWS))
def test_what_is_not_is_found_where_it_is_and_nothing_else_is_blamed(row: Row, revision: str, mode: str) -> None:
    previews = (True,) if row in illegal.DRAFTS else (False, True)
    for breaks, verdict in [each for preview in previews for each in judged(row, revision, mode, preview=preview)]:
        found = {each.rule for each in verdict.violations}
        assert (breaks in found) if breaks else not found, (verdict.frame, verdict.violations)


@pytest.mark.parametrize(("row", "revision"), each(illegal.DRAFTS))
def test_what_only_a_draft_forbids_is_legal_without_a_preview(row: Row, revision: str) -> None:
    assert not any(verdict.violations for _, verdict in judged(row, revision, "enforce"))


def test_the_tables_are_large_and_name_every_conversation_once() -> None:
    for rows in (legal.ROWS, illegal.ROWS):
        assert len(rows) >= 150
        assert max(Counter(row.says for row in rows).values()) == 1
        assert {revision for row in rows for revision in row.revisions} == set(REVISIONS)

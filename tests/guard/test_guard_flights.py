"""How much is kept of guarded conversations for the case that they break: bounded for all of them together."""

import json
import tracemalloc
from pathlib import Path

from assay.base.verdict import Party
from assay.core.conversation import Conversation
from assay.guard.recent_messages import TOTAL_BYTES, WRITTEN_BYTES
from assay.guard.summary import KEPT, KEPT_BYTES, GuardSummary
from kit.guard_process import call, frame_of, initialize

LONG = "x" * (KEPT_BYTES - 200)


def spoken(watch: GuardSummary, number: int, messages: int = KEPT, words: str = LONG) -> None:
    """A conversation in which the client says something long, so many times."""
    conversation = Conversation()
    watch.passed(conversation.hear(Party.CLIENT, frame_of(initialize())), float(number))
    for ident in range(messages):
        watch.heard(conversation.hear(Party.CLIENT, frame_of(call(ident, words=words))), float(number))


def held(watch: GuardSummary, conversations: int) -> int:
    """Bytes that so many conversations of a guard keep, all of which go on."""
    tracemalloc.start()
    try:
        going_on = [watch.another() for _ in range(conversations)]
        for number, each in enumerate(going_on):
            spoken(each, number)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def unseen(_: str) -> None:
    pass


def test_all_conversations_together_keep_only_so_much() -> None:
    assert held(GuardSummary(unseen, unseen, enforcing=True), 60) < TOTAL_BYTES + (8 << 20)


def test_nothing_is_kept_where_it_would_not_be_written(tmp_path: Path) -> None:
    watch = GuardSummary(unseen, unseen, enforcing=True, keeping=False)
    assert held(watch, 5) < 1 << 20
    assert watch.flight(str(tmp_path / "flights")) is None
    assert not (tmp_path / "flights").exists()


def test_the_conversation_that_was_silent_longest_is_forgotten_first(tmp_path: Path) -> None:
    said: list[str] = []
    first = GuardSummary(said.append, unseen, enforcing=False)
    going_on = [first, *(first.another() for _ in range(30))]
    for number, each in enumerate(going_on):
        spoken(each, number)
    assert first.flight(str(tmp_path)) is None
    assert said[-1] == "assay: no flight recorder: nothing is kept of this session"
    path = going_on[-1].flight(str(tmp_path))
    assert path is not None
    rows = Path(path).read_text().splitlines()
    assert len(rows) == KEPT + 1
    assert "initialize" in rows[0]


def test_long_names_of_tools_are_not_kept() -> None:
    """A frame is cut, and what is known of its request has the name of the tool, whole."""
    watch = GuardSummary(unseen, unseen, enforcing=False)
    tracemalloc.start()
    try:
        conversation = Conversation()
        watch.passed(conversation.hear(Party.CLIENT, frame_of(initialize())), 0.0)
        for ident in range(2 * KEPT):
            verdict = conversation.hear(Party.CLIENT, frame_of(call(ident, "x" * (1 << 20))))
            watch.heard(verdict, 1.0)
            conversation.give_up(Party.CLIENT, ident)
        assert tracemalloc.get_traced_memory()[0] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_file_of_last_messages_has_a_bounded_size_and_short_ones_stay_whole(tmp_path: Path) -> None:
    """To look for secrets in all that is kept would take so long that other clients notice."""
    watch = GuardSummary(unseen, unseen, enforcing=False)
    conversation = Conversation()
    watch.passed(conversation.hear(Party.CLIENT, frame_of(initialize())), 0.0)
    for ident in range(KEPT - 1):
        watch.heard(conversation.hear(Party.CLIENT, frame_of(call(ident, words=LONG if ident % 2 else "short"))), 1.0)
    path = watch.flight(str(tmp_path))
    assert path is not None
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert len(rows) == KEPT
    assert sum(len(row["msg"]) for row in rows) <= WRITTEN_BYTES + KEPT
    cut = [row for row in rows if row.get("cut")]
    assert len(cut) == (KEPT - 1) // 2
    assert min(len(row["msg"]) for row in cut) > WRITTEN_BYTES // KEPT
    assert all(json.loads(row["msg"]) for row in rows if row not in cut)

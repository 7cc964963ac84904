"""How much is kept of guarded conversations for the case that they break: bounded for all of them together."""

import json
from pathlib import Path

import pytest

from assay.guard import recent_messages
from assay.guard.recent_messages import WRITTEN_BYTES
from assay.guard.summary import KEPT, KEPT_BYTES, GuardSummary
from assay.judge.conversation import Conversation
from assay.model.verdict import Party
from kit.guard_process import call, frame_of, initialize
from kit.kept import kept_bytes

LONG = "x" * (KEPT_BYTES - 200)


def unseen(_: str) -> None:
    pass


def spoken(watch: GuardSummary, moment: float, *said: str, tool: str = "search") -> None:
    """A conversation in which the client calls a tool with each of these words."""
    conversation = Conversation()
    watch.passed(conversation.hear(Party.CLIENT, frame_of(initialize())), moment)
    for ident, words in enumerate(said):
        watch.heard(conversation.hear(Party.CLIENT, frame_of(call(ident, tool, words=words))), moment)
        conversation.give_up(Party.CLIENT, ident)


def test_all_conversations_together_keep_only_so_much_and_the_most_silent_one_is_forgotten_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(recent_messages, "TOTAL_BYTES", 1 << 20)
    monkeypatch.setattr(recent_messages, "_UNWEIGHED", 1 << 17)
    said: list[str] = []
    first = GuardSummary(said.append, unseen, enforcing=False)
    going_on = [first, *(first.another() for _ in range(60))]
    for number, each in enumerate(going_on):
        spoken(each, number, *["x" * 1000] * KEPT)
    assert 1 << 19 < sum(each._flight.size for each in going_on) <= 1 << 20
    assert first.flight(str(tmp_path)) is None
    assert said[-1] == "assay: no flight recorder: nothing is kept of this session"
    path = going_on[-1].flight(str(tmp_path))
    assert path is not None
    lines = Path(path).read_text().splitlines()
    assert (len(lines), "initialize" in lines[0]) == (KEPT + 1, True)


def test_nothing_is_kept_where_it_would_not_be_written(tmp_path: Path) -> None:
    watch = GuardSummary(unseen, unseen, enforcing=True, keeping=False)
    spoken(watch, 0.0, LONG, LONG)
    assert watch._flight.size == 0
    assert watch.flight(str(tmp_path / "flights")) is None
    assert not (tmp_path / "flights").exists()


def test_long_names_of_tools_are_not_kept() -> None:
    """A frame is cut, and what is known of its request has the name of the tool, whole."""
    watch = GuardSummary(unseen, unseen, enforcing=False)
    spoken(watch, 1.0, *["sea"] * 2 * KEPT, tool="x" * (1 << 18))
    assert KEPT << 15 < kept_bytes(watch._flight) < KEPT << 17


def test_a_file_of_last_messages_has_a_bounded_size_and_short_ones_stay_whole(tmp_path: Path) -> None:
    """To look for secrets in all that is kept would take so long that other clients notice."""
    watch = GuardSummary(unseen, unseen, enforcing=False)
    spoken(watch, 1.0, *(LONG if number % 2 else "short" for number in range(KEPT - 1)))
    path = watch.flight(str(tmp_path))
    assert path is not None
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert len(rows) == KEPT
    assert sum(len(row["msg"]) for row in rows) <= WRITTEN_BYTES + KEPT
    cut = [row for row in rows if row.get("cut")]
    assert len(cut) == (KEPT - 1) // 2
    assert min(len(row["msg"]) for row in cut) > WRITTEN_BYTES // KEPT
    assert all(json.loads(row["msg"]) for row in rows if row not in cut)

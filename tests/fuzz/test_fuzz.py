"""A short run of everything that `make fuzz` and `make soak` run for long, the same each time; and every kept seed."""

from pathlib import Path
from random import Random

import pytest
from fuzzing import at_random, seeds_of
from mutations import frame, seeds
from soak import TARGETS, soak
from targets import targets

INPUTS = {"syntax": 3000, "events": 3000, "headers": 1000, "answers": 500, "conversation": 500}
"""How many for each target: about a second."""


@pytest.mark.parametrize("name", targets())
def test_every_kept_seed_holds(name: str) -> None:
    kept = seeds_of(name)
    assert kept
    for data in kept:
        targets()[name](data)


@pytest.mark.parametrize("name", targets())
def test_nothing_is_found_at_random(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("fuzzing.KEPT", tmp_path)
    assert at_random(name, 60.0, Random(f"{name} 1"), INPUTS[name]) == (INPUTS[name], 0)


def test_the_same_seed_gives_the_same_frames() -> None:
    made = [[frame(random, seeds(), str(each)) for each in range(100)] for random in (Random(7), Random(7))]
    assert made[0] == made[1]


@pytest.mark.parametrize("name", TARGETS)
def test_no_changed_message_ends_a_process_or_stays_without_an_answer(name: str) -> None:
    soak(name, 1000 if name.startswith(("serve-stdio", "sc")) else 200, 1, seeds())

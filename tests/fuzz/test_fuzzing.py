"""A short run of everything that `make fuzz` runs for long, the same each time; and every kept seed."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import fuzzing
import pytest
import soak as soaking
from fuzzing import at_random, seeds_of
from mutations import frame, seeds
from targets import targets

from kit.rows import rows

INPUTS = {"syntax": 1000, "events": 500, "headers": 400, "answers": 60, "conversation": 80, "importers": 80}
"""How many for each target: a second or two in all. `make fuzz` looks for longer."""


@rows("name", targets())
def test_every_kept_seed_holds(name: str) -> None:
    kept = seeds_of(name)
    assert kept
    for data in kept:
        targets()[name](data)


@rows("name", targets())
def test_nothing_is_found_at_random(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("fuzzing.KEPT", tmp_path)
    assert at_random(name, 60.0, Random(f"{name} 1"), INPUTS[name]) == (INPUTS[name], 0)


def test_the_same_seed_gives_the_same_frames() -> None:
    made = [[frame(random, seeds(), str(each)) for each in range(100)] for random in (Random(7), Random(7))]
    assert made[0] == made[1]


@rows(
    ("run", "arguments", "told"),
    [
        (soaking.run, ["abc"], "soak: FRAMES is a whole number of 1 or more, found 'abc'\n"),
        (soaking.run, ["0"], "soak: FRAMES is a whole number of 1 or more, found '0'\n"),
        (soaking.run, [], "soak: FRAMES is a whole number of 1 or more, found ''\n"),
        (soaking.run, ["1", "xx"], "soak: 'xx' is no target; there are serve-stdio, "),
        (fuzzing.run, ["abc"], "fuzz: TIME is a number of seconds above 0, found 'abc'\n"),
        (fuzzing.run, ["1", "xx"], "fuzz: 'xx' is no target; there are syntax"),
    ],
)
def test_a_slip_on_the_command_line_is_one_line(
    run: Callable[[list[str]], int], arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    found = capsys.readouterr()
    assert found.err.startswith(told)
    assert (found.err.count("\n"), found.out) == (1, "")

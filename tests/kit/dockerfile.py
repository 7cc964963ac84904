"""The Dockerfile, read as far as ours goes."""

import json
import re
from typing import NamedTuple

from kit.places import ROOT


class Instruction(NamedTuple):
    """One instruction: ``RUN``, and the rest of its line."""

    name: str
    rest: str


def instructions() -> list[Instruction]:
    """All instructions, with the defaults of their build arguments filled in."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = [Instruction(*line.split(maxsplit=1)) for line in lines]
    values = dict(each.rest.split("=", 1) for each in found if each.name == "ARG")
    return [Instruction(name, re.sub(r"\$\{(\w+)\}", lambda one: values[one[1]], rest)) for name, rest in found]


def rests_of(name: str) -> list[str]:
    """What follows each instruction called *name*."""
    return [each.rest for each in instructions() if each.name == name]


def words_of(name: str) -> list[str]:
    """The words of the only instruction called *name*, which is written as JSON."""
    (rest,) = rests_of(name)
    words: list[str] = json.loads(rest)
    return words


def copied() -> list[str]:
    """What is copied into the image from the checkout."""
    return [name for rest in rests_of("COPY") if "--from" not in rest for name in rest.split()[:-1]]

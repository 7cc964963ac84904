"""What a section can ask of a field beyond its type. Without it, any value of the type will do."""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any


def word(default: str | tuple[str, ...] | None, words: Callable[[], Sequence[str]]) -> Any:
    """A field that is one of *words*, or an array of them."""
    return field(default=default, metadata={"words": words})


def table(*, keys: Callable[[], Sequence[str]] | None = None, words: Callable[[], Sequence[str]] | None = None) -> Any:
    """A field that is a table, empty by default. Without *keys* it takes any, without *words* any value of its type."""
    return field(default_factory=dict, metadata={"keys": keys, "words": words})


def secret() -> Any:
    """A field whose value no message repeats: what is wrong with it may be that it is a secret."""
    return field(default="", repr=False, metadata={"secret": True})


def moment() -> Any:
    """A field that is a date, or a date and time, as text (ISO 8601)."""
    return field(default=None, metadata={"moment": True})

"""Constraints on a field beyond its type."""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any


def word(default: str | tuple[str, ...] | None, words: Callable[[], Sequence[str]]) -> Any:
    """Return a field that is one of *words*, or an array of them."""
    return field(default=default, metadata={"words": words})


def table(*, keys: Callable[[], Sequence[str]] | None = None, words: Callable[[], Sequence[str]] | None = None) -> Any:
    """Return a field that is a table, empty by default. Without *keys* any key is valid, without *words* any value."""
    return field(default_factory=dict, metadata={"keys": keys, "words": words})


def secret() -> Any:
    """Return a field whose value is never shown in a message: it may be a secret."""
    return field(default="", repr=False, metadata={"secret": True})


def moment() -> Any:
    """Return a field that is a date, or a date and time, as text (ISO 8601)."""
    return field(default=None, metadata={"moment": True})

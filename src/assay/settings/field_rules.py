"""
Constraints on a field beyond its type, and whether a change of it weakens the guard.

A setting weakens the guard if any message that is refused, reported, recorded or authenticated without it is not with
it. A field that says nothing weakens the guard by every change, upwards and downwards: a lower limit stops a list of
tools, and the calls of these tools are then not judged by their schemas. A field that states otherwise has its proof in
`tests/settings/test_untrusted_settings.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

Weaker = Callable[[Any, Any], bool]
"""Function that returns whether a value is weaker than the one that applies without it."""


def changed(value: Any, base: Any) -> bool:
    """Any other value is weaker."""
    return bool(value != base)


def unless(strictest: Any) -> Mapping[str, Any]:
    """Return the metadata of a field that weakens the guard by any change except to *strictest*."""
    return {"weaker": lambda value, base: value not in (base, strictest)}


def by_effect(value: Any, base: Any) -> bool:
    """A value of the policy: the effect on each rule is compared (`assay.settings.weakening`), not the text."""
    raise NotImplementedError


BY_EFFECT: Final[Mapping[str, Any]] = {"weaker": by_effect}
"""The metadata of a field of the policy."""

WHOLE: Final[Mapping[str, Any]] = {"weaker": changed}
"""The metadata of a table whose keys are valid only together: it counts as a whole or not at all."""


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

"""Errors in settings: the place, what is wrong, and a suggestion."""

from collections.abc import Iterable
from typing import Any, NoReturn

from assay.base.errors import SettingsError
from assay.engine.wording import found
from assay.spec.schema import suggestion


def object_to(place: str, expected: str, value: Any, near: str = "", *, quiet: bool = False) -> NoReturn:
    """Raise `SettingsError` for *value*, which is left out if *quiet*; *near* ends the message."""
    found = ("a string" if isinstance(value, str) else "a value of another type") if quiet else _shown(value)
    raise SettingsError(f"{place}: expected {expected}, found {found}{near}")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a table"
    return found(value) if isinstance(value, str | int | float | list) else f"the {type(value).__name__} {value}"


def meant(name: str, names: Iterable[str]) -> str:
    """Return a suggestion for *name* among *names*, as the end of a message; empty if none is similar."""
    return suggestion(name[:80], names)

"""What is said about an operator's slip: where it stands, what is wrong, and what was probably meant."""

from collections.abc import Iterable
from typing import Any, NoReturn


class SettingsError(Exception):
    """An operator's slip, in one line: where it stands, what is wrong, and the likely remedy."""


def object_to(place: str, expected: str, value: Any, near: str = "", *, quiet: bool = False) -> NoReturn:
    """Raises `SettingsError` for *value*, which it does not repeat if it is to be *quiet*; *near* ends the message."""
    found = ("a string" if isinstance(value, str) else "a value of another type") if quiet else _shown(value)
    raise SettingsError(f"{place}: expected {expected}, found {found}{near}")


def _shown(value: Any) -> str:
    from assay.engine.wording import found  # noqa: PLC0415 - only a slip needs words

    if isinstance(value, dict):
        return "a table"
    return found(value) if isinstance(value, str | int | float | list) else f"the {type(value).__name__} {value}"


def meant(name: str, names: Iterable[str]) -> str:
    """The one of *names* that *name* was probably meant to be, as the end of a message; nothing if none is near."""
    from assay.spec.schema import suggestion  # noqa: PLC0415 - only a slip needs it

    return suggestion(name[:80], names)

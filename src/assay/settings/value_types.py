"""The types of settings: their names in messages, how each is read from text, and which TOML values are valid."""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, NamedTuple


class ValueKind(NamedTuple):
    """A type of setting: its name, how to read it from a variable, and the TOML types that it accepts."""

    noun: str
    parsed: Callable[[str], Any]
    taken: Callable[[Any], Any]
    """Return the value for the dataclass. Raises `ValueError` for an invalid one."""


def _exactly(*types: type) -> Callable[[Any], Any]:
    def taken(value: Any) -> Any:
        # Not isinstance: a bool is an int in Python, but `depth = true` is not a number.
        if type(value) not in types:
            raise ValueError
        return value

    return taken


def _finite(value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value):
        raise ValueError
    return float(value)


def _strings(value: Any) -> tuple[str, ...]:
    if type(value) is not list or any(type(one) is not str for one in value):
        raise ValueError
    return tuple(value)


def _iso(value: Any) -> str:
    from datetime import datetime  # noqa: PLC0415 - only who has a date needs it

    # TOML has dates, but people often write them as strings.
    text = value if type(value) is str else getattr(value, "isoformat", str)()
    return datetime.fromisoformat(text).isoformat()


_DAY_LENGTH: Final = len("YYYY-MM-DD")


def _day(value: Any) -> str:
    text = _iso(value)
    # A time of day would be dropped silently.
    if len(value if type(value) is str else value.isoformat()) > _DAY_LENGTH:
        raise ValueError
    return text.partition("T")[0]


def _switch(text: str) -> bool:
    if text.lower() not in _SWITCHES:
        raise ValueError
    return _SWITCHES[text.lower()]


_SWITCHES: Final = {"true": True, "1": True, "false": False, "0": False}

KINDS: Final[Mapping[Any, ValueKind]] = {
    bool: ValueKind("true or false", _switch, _exactly(bool)),
    int: ValueKind("an integer", int, _exactly(int)),
    float: ValueKind("a number", float, _finite),
    str: ValueKind("a string", str, _exactly(str)),
    tuple[str, ...]: ValueKind("an array of strings", lambda text: [one.strip() for one in text.split(",")], _strings),
}

MOMENT: Final = ValueKind("a date such as 2027-01-01", str, _iso)

DAY: Final = ValueKind("a date such as 2027-01-01, without a time", str, _day)


class Setting(NamedTuple):
    """One setting: its type, and the allowed words if it has a list of them."""

    kind: ValueKind
    words: tuple[str, ...] = ()
    secret: bool = False

    @property
    def expected(self) -> str:
        """The description of valid values."""
        choice = f"one of {', '.join(self.words)}"
        if self.kind is KINDS[tuple[str, ...]]:
            return f"{self.kind.noun}, each {choice}" if self.words else self.kind.noun
        return choice if self.words else self.kind.noun

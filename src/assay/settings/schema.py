"""The settings there are, by path, and the type and rules of each value. Reads no file."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from math import isfinite
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, get_args, get_origin

from assay.base.errors import SettingsError
from assay.engine.wording import found
from assay.settings.field_rules import Weaker, changed
from assay.settings.locations import PREFIX
from assay.spec.schema import suggestion

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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
    weaker: Weaker = changed
    """Whether a value weakens the guard, compared with the value that applies without it."""
    within: int = 0
    """Number of keys at the end of the path that belong to a table which counts only as a whole."""

    @property
    def expected(self) -> str:
        """The description of valid values."""
        choice = f"one of {', '.join(self.words)}"
        if self.kind is KINDS[tuple[str, ...]]:
            return f"{self.kind.noun}, each {choice}" if self.words else self.kind.noun
        return choice if self.words else self.kind.noun


Path = tuple[str, ...]
"""Section and key, as in ``("limits", "depth")``."""

ANY: Final = "*"
"""Placeholder in a path for any key of a table."""

EACH: Final = "#"
"""Placeholder in a path for the index of a table in an array, from 1."""

FREE: Final = frozenset({ANY, EACH})

Rows = Mapping[Path, Setting]
"""The result of `known`."""


def known(section: "type[DataclassInstance]") -> dict[Path, Setting]:
    """Return every setting in and below *section*, by its path."""
    return {
        (one.name, *path): setting for one in fields(section) for path, setting in _rows(one.type, one.metadata).items()
    }


def _rows(kind: Any, metadata: Mapping[str, Any]) -> dict[Path, Setting]:
    kind = when_given(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        below = known(kind)
        short = getattr(kind, "SHORT", None)
        if "weaker" in metadata:
            below = {path: each._replace(weaker=metadata["weaker"], within=len(path)) for path, each in below.items()}
        # One of its keys may stand for the whole table.
        return below if short is None else {(): below[short,], **below}
    if is_array(kind):
        return {(EACH, *path): setting for path, setting in _rows(get_args(kind)[0], metadata).items()}
    if get_origin(kind) is Mapping:
        keys = metadata.get("keys")
        below = _rows(get_args(kind)[1], {**metadata, "keys": None})
        return {(key, *path): setting for key in (keys() if keys else [ANY]) for path, setting in below.items()}
    words = metadata.get("words")
    value = DAY if metadata.get("day") else MOMENT if metadata.get("moment") else KINDS[kind]
    choice, weaker = tuple(words()) if words else (), metadata.get("weaker", changed)
    return {(): Setting(value, choice, metadata.get("secret", False), weaker)}


def is_array(kind: Any) -> bool:
    """Whether the type is an array of tables."""
    return get_origin(kind) is tuple and is_dataclass(get_args(kind)[0])


def when_given(kind: Any) -> Any:
    """Return *kind* without None: None means not set, and TOML has no null."""
    return next(one for one in get_args(kind) if one is not type(None)) if isinstance(kind, UnionType) else kind


def fits(row: Path, path: Path) -> bool:
    """Whether *row* starts with *path*, where a placeholder matches any key."""
    return len(row) >= len(path) and all(map(_stands_for, row, path))


def _stands_for(one: str, part: str) -> bool:
    return one in (part, ANY) or (one == EACH and part.isdecimal())


def setting_at(rows: Rows, path: Path) -> Setting | None:
    """Return the setting at *path*, which may contain operator-chosen names."""
    exact = rows.get(path)
    return exact or next((rows[each] for each in rows if len(each) == len(path) and fits(each, path)), None)


def variable(path: Path) -> str:
    """Return the name of the environment variable for a setting."""
    return PREFIX + "_".join(path).upper()


def dotted(path: Path) -> str:
    """Return *path* with dots, on one line; a placeholder is shown as such."""
    name = ".".join({ANY: "NAME", EACH: "NUMBER"}.get(part, part) for part in path)
    return name if name.isprintable() else ascii(name)


def fixed_part(path: Path) -> Path:
    """Return *path* up to the first placeholder."""
    return path[: next((at for at, part in enumerate(path) if part in FREE), len(path))]


def remedy(rows: Rows, path: Path) -> str:
    """Return a suggestion for *path*: a similar key beside it, the same key elsewhere, else all known keys."""
    level = len(path) - 1
    beside = sorted({each[level] for each in rows if len(each) > level and fits(each, path[:level])} - FREE)
    elsewhere = [dotted(each) for each in rows if each[-1] == path[-1]]
    near = meant(path[-1], beside) or (f"; did you mean {elsewhere[0]}?" if elsewhere else "")
    return near or (f"; known keys: {', '.join(beside)}" if beside else "")

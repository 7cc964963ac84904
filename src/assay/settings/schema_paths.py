"""The table of all settings by path, derived from the dataclasses of the sections. Reads no file."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

from assay.settings.locations import PREFIX
from assay.settings.setting_errors import meant
from assay.settings.value_types import DAY, KINDS, MOMENT, Setting

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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
        # One of its keys may stand for the whole table.
        return below if short is None else {(): below[short,], **below}
    if is_array(kind):
        return {(EACH, *path): setting for path, setting in _rows(get_args(kind)[0], {}).items()}
    if get_origin(kind) is Mapping:
        keys = metadata.get("keys")
        below = _rows(get_args(kind)[1], {**metadata, "keys": None})
        return {(key, *path): setting for key in (keys() if keys else [ANY]) for path, setting in below.items()}
    words = metadata.get("words")
    value = DAY if metadata.get("day") else MOMENT if metadata.get("moment") else KINDS[kind]
    return {(): Setting(value, tuple(words()) if words else (), metadata.get("secret", False))}


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

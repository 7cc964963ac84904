"""
Read each source of settings: the table of a file, environment variables, command-line options.

Each source yields values with their places, checked one by one. `merging` combines them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from assay.base.errors import SettingsError
from assay.base.removed import SETTINGS, removed_setting
from assay.settings.locations import Log
from assay.settings.schema import (
    EACH,
    FREE,
    Path,
    Rows,
    Setting,
    dotted,
    fits,
    fixed_part,
    meant,
    object_to,
    remedy,
    setting_at,
    variable,
)


class Given(NamedTuple):
    """One value, and its place for messages."""

    path: Path
    value: Any
    place: str


def in_table(rows: Rows, given: Any, place: str, above: Path = ()) -> Iterator[Given]:
    """Yield the settings of a table, at any depth."""
    if not isinstance(given, dict):
        quiet = bool(above) and any(setting.secret for each, setting in rows.items() if fits(each, above))
        object_to((place + dotted(above)).rstrip("."), "a table", given, quiet=quiet)
    for key, value in given.items():
        path = (*above, key)
        setting, where = setting_at(rows, path), place + dotted(path)
        if any(each[: len(path) + 1] == (*path, EACH) for each in rows):
            yield from _in_array(rows, value, place, path)
        elif setting is not None and not (isinstance(value, dict) and _has_more(rows, path)):
            yield Given(path, _taken(setting, value, where), where)
        elif any(fits(each, path) for each in rows):
            # An empty table can have a meaning.
            yield Given(path, None, where)
            yield from in_table(rows, value, place, path)
        else:
            raise SettingsError(f"{place}{dotted(path)}: {_unknown(rows, path)}")


def _in_array(rows: Rows, given: Any, place: str, above: Path) -> Iterator[Given]:
    """Yield the settings of an array of tables."""
    if not isinstance(given, list):
        object_to(place + dotted(above), "an array of tables", given)
    for number, value in enumerate(given, 1):
        path = (*above, str(number))
        yield Given(path, None, place + dotted(path))
        yield from in_table(rows, value, place, path)


def _has_more(rows: Rows, path: Path) -> bool:
    """Whether a setting can also be a table."""
    return any(len(each) > len(path) and fits(each, path) for each in rows)


def in_variables(rows: Rows, variables: Mapping[str, str], log: Log) -> Iterator[Given]:
    """
    Yield the settings of the environment.

    An unknown name with the prefix of one of our sections is an error. Any other unknown name may belong to another
    program, so it is only reported.
    """
    names = {variable(path): path for path in rows if FREE.isdisjoint(path)}
    sections = tuple({variable((path[0], "")) for path in rows})
    for name in sorted(variables):
        path = names.get(name)
        if path is not None:
            yield Given(path, _read(rows[path], variables[name], name), name)
            continue
        unknown = f"{name}: {_removed_variable(name) or f'unknown setting{meant(name, names)}'}"
        free = next((each for each in rows if fixed_part(each) != each and _begins(name, fixed_part(each))), None)
        if free is not None:
            raise SettingsError(f"{name}: no variable can set {dotted(free)}; use a file of settings")
        if name.startswith(sections):
            raise SettingsError(unknown)
        log(f"{unknown} (ignored)")


def _unknown(rows: Rows, path: Path) -> str:
    """Return what is wrong with a key that no setting has."""
    return removed_setting(dotted(path)) or f"unknown key{remedy(rows, path)}"


def _removed_variable(name: str) -> str:
    """Return what to use in place of a variable that an earlier version had; empty for any other."""
    keys = (each for each in SETTINGS if "." in each and variable(tuple(each.split("."))) == name)
    return next(map(removed_setting, keys), "")


def _begins(name: str, path: Path) -> bool:
    return name == variable(path) or name.startswith(variable((*path, "")))


def in_flags(rows: Rows, flags: Sequence[str]) -> Iterator[Given]:
    """Yield the settings of the command line."""
    for flag in flags:
        name, sign, text = flag.partition("=")
        path = _path_of(name.strip())
        place = f"--set {dotted(path)}"
        if not sign:
            raise SettingsError(f"{place}: expected SECTION.KEY=VALUE")
        setting = setting_at(rows, path)
        if setting is None:
            below = next((each for each in rows if fits(each, path)), None)
            raise SettingsError(
                f"{place}: expected one of its keys, such as {dotted(below)}"
                if below
                else f"{place}: {_unknown(rows, path)}"
            )
        yield Given(path, _read(setting, text.strip(), place), place)


_QUOTED: Final = re.compile(r'"([^"]*)"(?=\.|$)')
"""A key in quotes, as in a file of settings; it may have dots in it."""


def _path_of(name: str) -> Path:
    """Return the keys of a dotted *name*, with or without quotes."""
    parts: list[str] = []
    at = 0
    while at <= len(name):
        quoted = _QUOTED.match(name, at)
        end = quoted.end() if quoted is not None else (name.find(".", at) + 1 or len(name) + 1) - 1
        parts.append(quoted[1] if quoted is not None else name[at:end])
        at = end + 1
    return tuple(parts)


def _read(setting: Setting, text: str, place: str) -> Any:
    """Parse the value in *text*, for sources that have only text."""
    try:
        value = setting.kind.parsed(text)
    except ValueError:
        object_to(place, setting.expected, text, quiet=setting.secret)
    return _taken(setting, value, place)


def _taken(setting: Setting, value: Any, place: str) -> Any:
    try:
        taken = setting.kind.taken(value)
    except ValueError:
        object_to(place, setting.expected, value, quiet=setting.secret)
    for one in taken if isinstance(taken, tuple) else (taken,):
        if setting.words and one not in setting.words:
            object_to(place, setting.expected, one, meant(str(one), setting.words))
    return taken

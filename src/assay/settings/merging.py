"""Merge the values of all sources: the later source wins. An error of a section names the source of the value."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from assay.base.errors import SettingsError
from assay.settings.locations import FoundSettings, Log
from assay.settings.schema import Path, is_array, known, when_given
from assay.settings.setting_sources import Given, in_flags, in_table, in_variables

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Section = TypeVar("Section", bound=DataclassInstance)
else:
    Section = TypeVar("Section")


def merged(
    kind: type[Section],
    found: FoundSettings | None,
    variables: Mapping[str, str],
    flags: Sequence[str],
    log: Log,
    defaults: "Mapping[str, DataclassInstance] | None" = None,
) -> Section:
    """Return *kind* with all given values, and *defaults* for the rest. Raises `SettingsError`."""
    rows = known(kind)
    return made(
        kind,
        chain(
            _as_given(defaults or {}),
            in_table(rows, found.table, found.place) if found else (),
            in_variables(rows, variables, log),
            in_flags(rows, flags),
        ),
    )


def _as_given(defaults: "Mapping[str, DataclassInstance]") -> Iterable[Given]:
    for name, section in defaults.items():
        for one in fields(section):
            # Without a place: the operator did not write it, so no message refers to it.
            yield Given((name, one.name), getattr(section, one.name), "")


def made(kind: type[Section], layers: Iterable[Given]) -> Section:
    """Return *kind* with the values of *layers*, the later first. An error names the place of the value."""
    given = {one.path: one for one in layers}
    try:
        return _built(kind, {path: one.value for path, one in given.items()})
    except ValueError as error:
        alone = (one.place for one in given.values() if _refusal(kind, {one.path: one.value}) == str(error))
        # Values that are valid alone but not together have no single place.
        sections = ", ".join(f"[{name}]" for name in sorted({path[0] for path, one in given.items() if one.place}))
        raise SettingsError(f"{next(alone, sections)}: {error}") from None


def _refusal(kind: type[Section], values: Mapping[Path, Any]) -> str:
    try:
        _built(kind, values)
    except ValueError as error:
        return str(error)
    return ""


def _built(kind: type[Section], values: Mapping[Path, Any]) -> Section:
    given: dict[str, Any] = {}
    below = _by_name(values)
    for one in fields(kind):
        if one.name in below or is_dataclass(one.type):
            given[one.name] = _value(when_given(one.type), below.get(one.name, {}))
    return kind(**given)


def _by_name(values: Mapping[Path, Any]) -> dict[str, dict[Path, Any]]:
    """Group the values by name in one pass: a table or an array can have thousands of entries."""
    below: dict[str, dict[Path, Any]] = {}
    for path, value in values.items():
        if path:
            below.setdefault(path[0], {})[path[1:]] = value
    return below


def _value(kind: Any, values: Mapping[Path, Any]) -> Any:
    """Return the merged value of one field."""
    if is_dataclass(kind) and isinstance(kind, type):
        short = getattr(kind, "SHORT", None)
        whole: dict[Path, Any] = {(short,): values[()]} if short is not None and values.get(()) is not None else {}
        return _built(kind, {**whole, **{path: value for path, value in values.items() if path}})
    below = _by_name(values)
    if is_array(kind):
        return tuple(_value(get_args(kind)[0], below[number]) for number in sorted(below, key=int))
    if get_origin(kind) is not Mapping:
        return values[()]
    return MappingProxyType({name: _value(get_args(kind)[1], one) for name, one in below.items()})

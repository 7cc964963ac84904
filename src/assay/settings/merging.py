"""What all sources make together: the later wins, and what a section objects to is told where it stands."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from assay.settings.known import Path, is_array, known, when_given
from assay.settings.places import Found, Log
from assay.settings.slips import SettingsError
from assay.settings.sources import Given, in_flags, in_table, in_variables

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Section = TypeVar("Section", bound=DataclassInstance)
else:
    Section = TypeVar("Section")


def merged(
    kind: type[Section], found: Found | None, variables: Mapping[str, str], flags: Sequence[str], log: Log
) -> Section:
    """*kind* with all that is set; raises `SettingsError` for a slip."""
    rows = known(kind)
    layers = chain(
        in_table(rows, *found) if found else (),
        in_variables(rows, variables, log),
        in_flags(rows, flags),
    )
    return _made(kind, {given.path: given for given in layers})


def _made(kind: type[Section], given: Mapping[Path, Given]) -> Section:
    """*kind* with all that was *given*. What a dataclass itself objects to is told where the value stands."""
    try:
        return _built(kind, {path: one.value for path, one in given.items()})
    except ValueError as error:
        alone = (one.place for one in given.values() if _refusal(kind, {one.path: one.value}) == str(error))
        # Values that are good alone, and not together, have no one place.
        sections = ", ".join(f"[{name}]" for name in sorted({path[0] for path in given}))
        raise SettingsError(f"{next(alone, sections)}: {error}") from None


def _refusal(kind: type[Section], values: Mapping[Path, Any]) -> str:
    try:
        _built(kind, values)
    except ValueError as error:
        return str(error)
    return ""


def _built(kind: type[Section], values: Mapping[Path, Any]) -> Section:
    given: dict[str, Any] = {}
    for one in fields(kind):
        below = {path[1:]: value for path, value in values.items() if path[:1] == (one.name,)}
        if below or is_dataclass(one.type):
            given[one.name] = _value(when_given(one.type), below)
    return kind(**given)


def _value(kind: Any, values: Mapping[Path, Any]) -> Any:
    """What *values*, which are those of one field, make together."""
    if is_dataclass(kind) and isinstance(kind, type):
        short = getattr(kind, "SHORT", None)
        whole: dict[Path, Any] = {(short,): values[()]} if short is not None and values.get(()) is not None else {}
        return _built(kind, {**whole, **{path: value for path, value in values.items() if path}})
    if is_array(kind):
        numbers = sorted({int(path[0]) for path in values if path})
        items = ({path[1:]: value for path, value in values.items() if path[:1] == (str(one),)} for one in numbers)
        return tuple(_value(get_args(kind)[0], below) for below in items)
    if get_origin(kind) is not Mapping:
        return values[()]
    names = dict.fromkeys(path[0] for path in values if path)
    each = {name: {path[1:]: value for path, value in values.items() if path[:1] == (name,)} for name in names}
    return MappingProxyType({name: _value(get_args(kind)[1], below) for name, below in each.items()})

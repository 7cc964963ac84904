"""
Load all settings: values of a file, of variables and of options become one `Settings`; the later source wins.

`load` is for commands that a person starts, `load_cautiously` for those that a client starts in any directory. There a
file in the working directory may make the guard stricter, and any other setting counts only if the operator named the
file or accepted its content.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from itertools import takewhile
from shlex import quote
from time import gmtime, strftime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from assay.model.errors import SettingsError
from assay.model.limits import DEFAULT, Limits
from assay.settings.fields import ANY, ARRAY, EACH, Key, Path, dotted, key_of
from assay.settings.sections import Settings
from assay.settings.settings_files import CONFIG, FoundSettings, Log, found_file, standing
from assay.spec.schema import suggestion

if TYPE_CHECKING:
    from assay.settings.weakening import Weakening

PREFIX: Final = "ASSAY_"
"""The prefix of the variables of all settings."""

RESERVED: Final = frozenset({CONFIG, "ASSAY_DETERMINISTIC", "ASSAY_JOURNAL", "ASSAY_SHARED"})
"""Other variables with our prefix: neither settings nor mistyped names. The last one is the data of our tests."""

REMOVED: Final[Mapping[str, str]] = {
    "guard.shared": "leave it out: each session has a child of its own, and requests without a session share one",
    "guard.draft_revisions": "leave it out: a revision is judged once its schema is frozen",
    "extensions": "leave it out: messages of extensions that are not official pass, and are reported",
    "guard.feed": "leave it out: assay console follows the journal",
    "auth.console": "leave it out: assay console shows the journals of its own user",
    "guard.preview": "leave it out: a draft is judged once it is part of a revision",
}
"""Keys that earlier versions had, and what to do; a section stands for all of its keys."""

_NAMED: Final = 8
"""Maximal ignored settings to list in a message; an untrusted file can have thousands."""


@cache
def keys() -> Key:
    """Return the key of all settings, with every key below it."""
    return key_of(Settings, {})


def load(
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str],
    *,
    file: str | None = None,
    flags: Sequence[str] = (),
    log: Log = lambda _: None,
    limits: Limits = DEFAULT,
) -> Settings:
    """
    Return the settings of *file*, *environ* and *flags* (``limits.depth=64``); the later source wins. Raises
    `SettingsError` for an error in any of them.

    Without *file* the source is the file in `ASSAY_CONFIG`, else `assay.toml` in *cwd*, else `[tool.assay]` in
    `pyproject.toml` there, else nothing. *log* gets a line with the path of that file, and one for each ignored
    source. *limits* are the default limits.
    """
    found = found_file(environ, cwd, file, log)
    given = [*in_file(found), *_in_variables(environ, log), *in_flags(flags)]
    if not given:
        return Settings(limits=limits)
    # Without a place: the operator did not write them, so no message refers to them.
    usual = [Given(("limits", each.name), getattr(limits, each.name), "") for each in fields(limits)]
    settings = made([*usual, *given])
    if found is not None and found.table:
        log(f"settings from {found.path}")
    return settings


class Cautious(NamedTuple):
    """Settings, and the ignored settings of a found file."""

    settings: Settings
    ignored: "tuple[Weakening, ...]" = ()


def load_cautiously(
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str],
    *,
    file: str | None = None,
    flags: Sequence[str] = (),
    log: Log = lambda _: None,
) -> Cautious:
    """
    Load as `load` does, without `pyproject.toml`, and without settings of a found file that weaken the guard.

    *log* gets a line with the path of the file, and one with the ignored settings. Raises `SettingsError`.
    """
    found = found_file(environ, cwd, file, log, shared=False)
    mine = in_file(found)
    rest = [*_in_variables(environ, log), *in_flags(flags)]
    if not mine and not rest:
        # Most guards have no settings, and start half a millisecond earlier.
        return Cautious(Settings())
    # Errors are reported in ignored settings, too.
    settings = made([*mine, *rest])
    if found is None or not mine:
        return Cautious(settings)
    log(f"settings from {found.path}")
    if found.named:
        return Cautious(settings)

    from assay.settings.weakening import weakenings  # noqa: PLC0415 - it needs the rules, and only a found file it

    weak: tuple[Weakening, ...] = ()
    mixed: SettingsError | None = None
    try:
        weak = tuple(weakenings(mine, rest, settings, strftime("%Y-%m-%d", gmtime())))
        if not weak:
            return Cautious(settings)
        dropped = {each.path for each in weak}
        kept = [each for each in mine if dropped.isdisjoint(each.path[:end] for end in range(len(each.path) + 1))]
        counting = made([*kept, *rest])
    except SettingsError as error:
        # The variables and options are valid only together with the file, so the whole file must count.
        mixed = error
    state = standing(environ, found.path, found.content)
    if state == "trusted":
        return Cautious(settings)
    if mixed is not None:
        raise mixed
    named = ", ".join(map(str, weak[:_NAMED])) + (f" and {len(weak) - _NAMED} more" if len(weak) > _NAMED else "")
    why = "this assay.toml has changed since it was trusted"
    if state == "unknown":
        why = "this assay.toml is not trusted yet"
    log(f"{named} ignored: {why}; run assay trust {quote(found.path)}")
    return Cautious(counting, weak)


# ── sources ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Given(NamedTuple):
    """One value of a source, checked by itself."""

    path: Path
    """The path of the key, as the source has it."""
    value: Any
    """The value; None for a table, which can have a meaning although it is empty."""
    place: str
    """The place for messages."""


def in_file(found: FoundSettings | None) -> list[Given]:
    """Return the settings of a file, which are checked one by one. Raises `SettingsError`."""
    return [] if found is None else list(_in_table(keys(), found.table, found.place, ()))


def _in_table(key: Key, given: Any, place: str, path: Path) -> Iterator[Given]:
    """Yield the values in *given*, what a file has for *key*: a value, a table or an array of tables."""
    where = place + dotted(path) if path else place.rstrip(".")
    # A section may have a value in place of its table.
    if not (key.is_table or (key.section and isinstance(given, dict))):
        yield Given(path, key.taken(given, where), where)
        return
    if key.is_table:
        key.taken(given, where)
    if path:
        yield Given(path, None, where)
    entries = (
        given.items() if isinstance(given, dict) else ((str(number), each) for number, each in enumerate(given, 1))
    )
    for name, each in entries:
        below = key.at(name)
        if below is None:
            raise SettingsError(f"{place}{dotted((*path, name))}: {_unknown((*path, name))}")
        yield from _in_table(below, each, place, (*path, name))


def _in_variables(environ: Mapping[str, str], log: Log) -> Iterator[Given]:
    """
    Yield the settings of the environment.

    An unknown name with the prefix of one of our sections is an error. Any other unknown name may belong to another
    program, so it is only reported.
    """
    # An empty variable counts as not set, as in specs/001.
    mine = sorted(name for name, text in environ.items() if text and name.startswith(PREFIX) and name not in RESERVED)
    if not mine:
        return
    fixed = {variable(each.path): each for each in keys().values() if not {ANY, EACH}.intersection(each.path)}
    free = [each.path for each in keys().values() if {ANY, EACH}.intersection(each.path)]
    for name in mine:
        if name in fixed:
            yield Given(fixed[name].path, fixed[name].taken(environ[name], name, is_text=True), name)
            continue
        for path in free:
            # Up to the first name that the operator chooses.
            above = variable(tuple(takewhile(lambda part: part not in (ANY, EACH), path)))
            if name == above or name.startswith(f"{above}_"):
                raise SettingsError(f"{name}: no variable can set {dotted(path)}; use a file of settings")
        gone = _removed(name.removeprefix(PREFIX).lower().replace("_", ".", 1))
        unknown = f"{name}: {gone or f'unknown setting{suggestion(name[:80], fixed)}'}"
        if name.startswith(tuple(variable((section, "")) for section in keys().below)):
            raise SettingsError(unknown)
        log(f"{unknown} (ignored)")


def variable(path: Path) -> str:
    """Return the name of the environment variable for a setting."""
    return PREFIX + "_".join(path).upper()


def in_flags(flags: Sequence[str]) -> Iterator[Given]:
    """Yield the settings of the command line."""
    for flag in flags:
        name, sign, text = flag.partition("=")
        # A key in quotes may have dots in it, as in a file of settings.
        parts = re.split(r'\.(?=(?:[^"]*"[^"]*")*[^"]*$)', name.strip())
        path = tuple(part[1:-1] if re.fullmatch(r'"[^"]*"', part) else part for part in parts)
        place = f"--set {dotted(path)}"
        if not sign:
            raise SettingsError(f"{place}: expected SECTION.KEY=VALUE")
        key = key_at(path)
        if key is None:
            raise SettingsError(f"{place}: {_unknown(path)}")
        if key.is_table:
            first = next(key.values())
            raise SettingsError(f"{place}: expected one of its keys, such as {dotted(first.path)}")
        yield Given(path, key.taken(text.strip(), place, is_text=True), place)


def key_at(path: Path) -> Key | None:
    """Return the key at *path*, which may contain names that the operator has chosen; None if there is none."""
    key: Key | None = keys()
    for part in path:
        key = key and key.at(part)
    return key


def _unknown(path: Path) -> str:
    """
    Return the message for a key that no setting has.

    It suggests what an earlier version has had there, a similar key beside it, the same key elsewhere, or all keys.
    """
    above = key_at(path[:-1])
    beside = sorted(above.below) if above else []
    elsewhere = [dotted(each.path) for each in keys().values() if each.path[-1] == path[-1]]
    near = suggestion(path[-1][:80], beside) or (f"; did you mean {elsewhere[0]}?" if elsewhere else "")
    near = near or (f"; known keys: {', '.join(beside)}" if beside else "")
    return _removed(dotted(path)) or f"unknown key{near}"


def _removed(key: str) -> str:
    """Return "removed: …" for a *key* that an earlier version had, such as ``guard.feed``; empty for any other."""
    parts = key.split(".")
    above = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((f"removed: {REMOVED[each]}" for each in above if each in REMOVED), "")


# ── from values to sections ──────────────────────────────────────────────────────────────────────────────────────────


def made(layers: Iterable[Given]) -> Settings:
    """
    Return the settings with the values of *layers*, of which the later win.

    Raises `SettingsError` with the place of the value that is refused.
    """
    given = {}
    for each in layers:
        key = key_at(each.path)
        # A value in place of a table stands for one key of it.
        short = (key.short,) if key and key.short and each.value is not None else ()
        given[each.path + short] = each
    values = {path: each.value for path, each in given.items()}
    try:
        return _built(values)
    except ValueError as error:
        for path, one in given.items():
            try:
                _built({path: one.value})
            except ValueError as alone:
                if str(alone) == str(error):
                    raise SettingsError(f"{one.place}: {error}") from None
        # Values that are valid alone but not together have no single place.
        sections = ", ".join(f"[{name}]" for name in sorted({path[0] for path, one in given.items() if one.place}))
        raise SettingsError(f"{sections}: {error}") from None


def _built(values: Mapping[Path, Any]) -> Settings:
    """Return the settings with *values*. Raises `ValueError`."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        table = tree
        for part in path[:-1]:
            table = table.setdefault(part, {})
        if value is not None:
            table[path[-1]] = value
        else:
            table.setdefault(path[-1], {})
    settings: Settings = _converted(keys(), tree)
    return settings


def _converted(key: Key, value: Any) -> Any:
    """Return the value of the dataclass field for a merged value."""
    if key.section is None and not key.is_table:
        return value
    entries = {name: _converted(below, each) for name, each in value.items() if (below := key.at(name))}
    if key.section is not None:
        return key.section(**entries)
    if key.kind is ARRAY:
        return tuple(entries[number] for number in sorted(entries, key=int))
    return MappingProxyType(entries)

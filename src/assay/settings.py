"""
The configuration of everything: one TOML file, environment variables, options of the command line; the later wins.

A section is a frozen dataclass, all of whose fields have defaults, and a field of `Settings`. What may be written in a
file, which variables there are, what is checked and what is said about a slip all follow from the dataclasses. Reads
that one file and nothing else; knows no command.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import chain
from math import isfinite
from types import MappingProxyType, UnionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar, get_args, get_origin

from assay.limits import Limits

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Section = TypeVar("Section", bound=DataclassInstance)
else:
    Section = TypeVar("Section")

FILE: Final = "assay.toml"
SHARED_FILE: Final = "pyproject.toml"
"""Where `[tool.assay]` is read if there is no file of our own."""

PREFIX: Final = "ASSAY_"

CONFIG: Final = "ASSAY_CONFIG"
"""The variable that names another file."""

RESERVED: Final = frozenset({CONFIG, "ASSAY_DETERMINISTIC", "ASSAY_JOURNAL", "ASSAY_SHARED"})
"""Variables with a meaning of their own: no settings, and no slips either. The last is where our tests have data."""

Log = Callable[[str], None]


class SettingsError(Exception):
    """An operator's slip, in one line: where it stands, what is wrong, and the likely remedy."""


def _tiers() -> Sequence[str]:
    from assay.response.codes import TIERS  # noqa: PLC0415 - not needed where nothing is configured

    return TIERS


def _tools() -> Sequence[str]:
    from assay.contracts.assets import TOOLS  # noqa: PLC0415 - as above

    return tuple(TOOLS)


# ── the sections ─────────────────────────────────────────────────────────────────────────────────────────────────────


def word(default: str, words: Callable[[], Sequence[str]]) -> Any:
    """A field that is one of *words*."""
    return field(default=default, metadata={"words": words})


def table(*, keys: Callable[[], Sequence[str]] | None = None, words: Callable[[], Sequence[str]] | None = None) -> Any:
    """A field that is a table, empty by default. Without *keys* it takes any, without *words* any value of its type."""
    return field(default_factory=dict, metadata={"keys": keys, "words": words})


@dataclass(frozen=True, slots=True)
class TierSettings:
    """Who may use what."""

    tier: str = word("community", _tiers)
    """The tier of callers of whom nothing else is known."""

    features: Mapping[str, str] = table(keys=_tools, words=_tiers)
    """The least tier that has a feature; one that is not listed is in all of them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Every section. A new one is a line here."""

    limits: Limits = field(default_factory=Limits)
    tiers: TierSettings = field(default_factory=TierSettings)


# ── what a value may be ──────────────────────────────────────────────────────────────────────────────────────────────


class Kind(NamedTuple):
    """What values of one type are called, how one is read from a variable, and which of TOML's values are some."""

    noun: str
    parsed: Callable[[str], Any]
    taken: Callable[[Any], Any]
    """The value for the dataclass; raises `ValueError` for what is none."""


def _exactly(*types: type) -> Callable[[Any], Any]:
    def taken(value: Any) -> Any:
        # Not isinstance: a bool is an int in Python, and `depth = true` no number.
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


def _switch(text: str) -> bool:
    if text.lower() not in _SWITCHES:
        raise ValueError
    return _SWITCHES[text.lower()]


_SWITCHES: Final = {"true": True, "1": True, "false": False, "0": False}

_KINDS: Final[Mapping[Any, Kind]] = {
    bool: Kind("true or false", _switch, _exactly(bool)),
    int: Kind("an integer", int, _exactly(int)),
    float: Kind("a number", float, _finite),
    str: Kind("a string", str, _exactly(str)),
    tuple[str, ...]: Kind("an array of strings", lambda text: [one.strip() for one in text.split(",")], _strings),
}


class Setting(NamedTuple):
    """One setting: what it takes, and its only values if they are words of a list."""

    kind: Kind
    words: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """What it takes, in words."""
        return f"one of {', '.join(self.words)}" if self.words else self.kind.noun


Path = tuple[str, ...]
"""Section and key, as in ``("limits", "depth")``."""

ANY: Final = "*"
"""The last part of the path of a table that takes any key."""

Rows = Mapping[Path, Setting]


def known(section: "type[DataclassInstance]") -> dict[Path, Setting]:
    """Every setting in and below *section*, by its path."""
    return {
        (one.name, *path): setting for one in fields(section) for path, setting in _rows(one.type, one.metadata).items()
    }


def _rows(kind: Any, metadata: Mapping[str, Any]) -> dict[Path, Setting]:
    if is_dataclass(kind) and isinstance(kind, type):
        return known(kind)
    words = metadata.get("words")
    allowed = tuple(words()) if words else ()
    if get_origin(kind) is Mapping:
        keys = metadata.get("keys")
        setting = Setting(_KINDS[get_args(kind)[1]], allowed)
        return {(key,): setting for key in (keys() if keys else [ANY])}
    if isinstance(kind, UnionType):
        # None is what a setting is before it is given; TOML has no word for it.
        kind = next(one for one in get_args(kind) if one is not type(None))
    return {(): Setting(_KINDS[kind], allowed)}


def variable(path: Path) -> str:
    """The name of the environment variable for a setting."""
    return PREFIX + "_".join(path).upper()


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def load(
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str],
    *,
    file: str | None = None,
    flags: Sequence[str] = (),
    log: Log = lambda _: None,
) -> Settings:
    """
    What *file*, *environ* and *flags* (``limits.depth=64``) say, each winning over those before it; raises
    `SettingsError` for a slip in any of them.

    Without *file* it is the one that `ASSAY_CONFIG` names, else `assay.toml` in *cwd*, else `[tool.assay]` in
    `pyproject.toml` there, else none. What is ignored on purpose gets a line to *log*.
    """
    return load_as(Settings, environ, cwd, file=file, flags=flags, log=log)


def load_as(
    kind: type[Section],
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str],
    *,
    file: str | None = None,
    flags: Sequence[str] = (),
    log: Log = lambda _: None,
) -> Section:
    """The same for sections of one's own: *kind* is a dataclass of them."""
    found = _found(environ, cwd, file, log)
    # A variable that is set to nothing is not set, as with those of specs/001.
    variables = {
        name: text for name, text in environ.items() if text and name.startswith(PREFIX) and name not in RESERVED
    }
    if found is None and not variables and not flags:
        return kind()
    rows = known(kind)
    layers = chain(
        _in_table(rows, found.table, found.place, ()) if found else (),
        _in_variables(rows, variables, log),
        _in_flags(rows, flags),
    )
    return _merged(kind, {given.path: given for given in layers})


class _Found(NamedTuple):
    """A file's table of settings, and what goes before a key where a message names its place."""

    table: Any
    place: str


class _Given(NamedTuple):
    path: Path
    value: Any
    place: str


def _found(environ: Mapping[str, str], cwd: str | os.PathLike[str], file: str | None, log: Log) -> _Found | None:
    named = file or environ.get(CONFIG)
    if named:
        return _parsed(named, _content(cwd, named, asked_by="--config" if file else CONFIG) or b"")
    own, shared = _content(cwd, FILE), _content(cwd, SHARED_FILE)
    if own is not None:
        if shared is not None and b"tool.assay" in shared:
            log(f"{SHARED_FILE}: [tool.assay] is not used, since there is {FILE}")
        return _parsed(FILE, own)
    # Somebody else's file, most of the time: without our name in it there is nothing to read and nothing to object to.
    return _parsed(SHARED_FILE, shared) if shared is not None and b"assay" in shared else None


def _content(cwd: str | os.PathLike[str], name: str, *, asked_by: str = "") -> bytes | None:
    """What the file holds; None if it is not there, unless somebody asked for it."""
    try:
        with open(os.path.join(cwd, name), "rb") as file:
            return file.read()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not asked_by:
            return None
        raise SettingsError(f"{asked_by} {name}: {error.strerror}".lstrip()) from None


def _parsed(name: str, content: bytes) -> _Found:
    import tomllib  # noqa: PLC0415 - some ten milliseconds that only a file costs

    try:
        document = tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise SettingsError(f"{name}: expected UTF-8") from None
    except ValueError as error:
        # Mostly a TOMLDecodeError; a number of thousands of digits is the plain one.
        raise SettingsError(f"{name}: no TOML: {error}") from None
    if os.path.basename(name) != SHARED_FILE:
        return _Found(document, f"{name}: ")
    tools = document.get("tool")
    return _Found(tools.get("assay", {}) if isinstance(tools, dict) else {}, f"{name}: tool.assay.")


def _in_table(rows: Rows, given: Any, place: str, above: Path) -> Iterator[_Given]:
    """The settings of a table, at any depth."""
    if not isinstance(given, dict):
        _object_to((place + _dotted(above)).rstrip("."), "a table", given)
    for key, value in given.items():
        path = (*above, key)
        setting = rows.get(path) or rows.get((*above, ANY))
        if setting is not None:
            where = place + _dotted(path)
            yield _Given(path, _taken(setting, value, where), where)
        elif any(each[: len(path)] == path for each in rows):
            yield from _in_table(rows, value, place, path)
        else:
            raise SettingsError(f"{place}{_dotted(path)}: unknown key{_remedy(rows, path)}")


def _in_variables(rows: Rows, variables: Mapping[str, str], log: Log) -> Iterator[_Given]:
    """
    The settings of the environment.

    A name that begins like one of our sections is ours, and a slip. Any other may be somebody else's: it breaks
    nothing, but is not passed over in silence.
    """
    names = {variable(path): path for path in rows if ANY not in path}
    sections = tuple({variable((path[0], "")) for path in rows})
    for name in sorted(variables):
        path = names.get(name)
        if path is not None:
            yield _Given(path, _read(rows[path], variables[name], name), name)
            continue
        unknown = f"{name}: unknown setting{_near(name, names)}"
        if name.startswith(sections):
            raise SettingsError(unknown)
        log(f"{unknown} (ignored)")


def _in_flags(rows: Rows, flags: Sequence[str]) -> Iterator[_Given]:
    for flag in flags:
        name, sign, text = flag.partition("=")
        path = tuple(name.strip().split("."))
        place = f"--set {_dotted(path)}"
        if not sign:
            raise SettingsError(f"{place}: expected SECTION.KEY=VALUE")
        setting = rows.get(path) or rows.get((*path[:-1], ANY))
        if setting is None:
            below = next((each for each in rows if each[: len(path)] == path), None)
            raise SettingsError(
                f"{place}: expected one of its keys, such as {_dotted(below)}"
                if below
                else f"{place}: unknown key{_remedy(rows, path)}"
            )
        yield _Given(path, _read(setting, text.strip(), place), place)


def _read(setting: Setting, text: str, place: str) -> Any:
    """The value in *text*, from where there is nothing but text."""
    try:
        value = setting.kind.parsed(text)
    except ValueError:
        _object_to(place, setting.expected, text)
    return _taken(setting, value, place)


def _taken(setting: Setting, value: Any, place: str) -> Any:
    try:
        taken = setting.kind.taken(value)
    except ValueError:
        _object_to(place, setting.expected, value)
    if setting.words and taken not in setting.words:
        _object_to(place, setting.expected, value, _near(str(taken), setting.words))
    return taken


def _merged(kind: type[Section], given: Mapping[Path, _Given]) -> Section:
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
        below = {path[1:]: value for path, value in values.items() if path[0] == one.name}
        if () in below:
            given[one.name] = below[()]
        elif is_dataclass(one.type) and isinstance(one.type, type):
            given[one.name] = _built(one.type, below)
        elif below:
            given[one.name] = MappingProxyType({path[0]: value for path, value in below.items()})
    return kind(**given)


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _object_to(place: str, expected: str, value: Any, near: str = "") -> NoReturn:
    raise SettingsError(f"{place}: expected {expected}, found {_shown(value)}{near}")


def _shown(value: Any) -> str:
    from assay.engine.wording import found  # noqa: PLC0415 - only a slip needs words

    if isinstance(value, dict):
        return "a table"
    return found(value) if isinstance(value, str | int | float | list) else f"the {type(value).__name__} {value}"


def _dotted(path: Path) -> str:
    """*path* as it is written, on one line whatever is in it."""
    name = ".".join(path)
    return name if name.isprintable() else ascii(name)


def _remedy(rows: Rows, path: Path) -> str:
    """What *path* was probably meant to be: a key beside it, the same key elsewhere, else all that there are."""
    level = len(path) - 1
    beside = sorted({each[level] for each in rows if len(each) > level and each[:level] == path[:level]} - {ANY})
    elsewhere = [_dotted(each) for each in rows if each[-1] == path[-1]]
    near = _near(path[-1], beside) or (f"; did you mean {elsewhere[0]}?" if elsewhere else "")
    return near or (f"; there are {', '.join(beside)}" if beside else "")


def _near(name: str, names: Iterable[str]) -> str:
    from assay.spec.schema import suggestion  # noqa: PLC0415 - only a slip needs it

    return suggestion(name[:80], names)

"""
The configuration of everything: one TOML file, environment variables, options of the command line; the later wins.

A section is a frozen dataclass, all of whose fields have defaults, and a field of `Settings`. Its fields can be such
dataclasses in turn, or tables of them by names that the operator chooses; one that may be None is made if its table is
there, however empty. What may be written in a file, which variables there are, what is checked and what is said about a
slip all follow from the dataclasses. Reads that one file and nothing else; knows no command.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import chain
from math import isfinite
from types import MappingProxyType, UnionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar, get_args, get_origin

from assay.edges.http.section import Http
from assay.guard.section import GuardSettings
from assay.limits import Limits
from assay.tiers import TIERS

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
    return TIERS


def _tools() -> Sequence[str]:
    from assay.contracts.assets import TOOLS  # noqa: PLC0415 - not needed where nothing is configured

    return tuple(TOOLS)


# ── the sections ─────────────────────────────────────────────────────────────────────────────────────────────────────


def word(default: str | tuple[str, ...] | None, words: Callable[[], Sequence[str]]) -> Any:
    """A field that is one of *words*, or an array of them."""
    return field(default=default, metadata={"words": words})


def table(*, keys: Callable[[], Sequence[str]] | None = None, words: Callable[[], Sequence[str]] | None = None) -> Any:
    """A field that is a table, empty by default. Without *keys* it takes any, without *words* any value of its type."""
    return field(default_factory=dict, metadata={"keys": keys, "words": words})


def secret() -> Any:
    """A field whose value no message repeats: what is wrong with it may be that it is a secret."""
    return field(default="", repr=False, metadata={"secret": True})


def moment() -> Any:
    """A field that is a date, or a date and time, as text (ISO 8601)."""
    return field(default=None, metadata={"kind": lambda: _MOMENT})


@dataclass(frozen=True, slots=True)
class TierSettings:
    """Who may use what."""

    tier: str = word("community", _tiers)
    """The tier of callers of whom nothing else is known."""

    features: Mapping[str, str] = table(keys=_tools, words=_tiers)
    """The least tier that has a feature; one that is not listed is in all of them."""


ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""What tokens may be signed with. Not ``none``, and no HS256: who can check its signatures can make them."""

_HASH: Final = re.compile(r"sha256:[0-9A-Fa-f]{64}")

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""RFC 6749 §3.3. A scope goes into a header, between quotation marks."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key that lets its holder in, by the name of its table."""

    hash: str = secret()
    """``sha256:`` and the digest of the key in hexadecimal."""

    tier: str | None = word(None, _tiers)
    """The tier of its holder; if there is none, that of callers of whom nothing else is known."""

    expires: str | None = moment()
    """From when on it lets nobody in; UTC unless it says otherwise."""

    def __post_init__(self) -> None:
        if not self.hash:
            raise ValueError("a key needs a hash; `assay keys new` makes both")
        if not _HASH.fullmatch(self.hash):
            raise ValueError(
                'expected "sha256:" and 64 hexadecimal digits; '
                "a key has no place here, only its hash, which `assay keys hash` prints"
            )


@dataclass(frozen=True, slots=True)
class Jwt:
    """Tokens that somebody else signs."""

    jwks: str = ""
    """The public keys they are signed with, a JSON Web Key Set: a file, or an https URL (http on this machine only)."""

    audience: tuple[str, ...] | None = None
    """One of these must be in ``aud``. An empty array says that tokens for anybody will do."""

    issuer: str | None = None
    """What ``iss`` must be. If it is a URL, clients without a token are sent there."""

    algorithms: tuple[str, ...] = word(("RS256", "ES256", "EdDSA"), lambda: ALGORITHMS)
    """What they may be signed with. The default is what the common issuers use, one for each kind of key."""

    required_scopes: tuple[str, ...] = ()
    """What a token must allow (``scope`` or ``scp``), all of it."""

    principal_claim: str = "sub"
    """The claim that says who it is."""

    tier_claim: str = "tier"
    """The claim that ``tiers`` looks up; a string, or an array of them, of which the highest tier counts."""

    tiers: Mapping[str, str] = table(words=_tiers)
    """The tier for each value of that claim. A value that is not listed gives nothing."""

    leeway: int = 30
    """Seconds by which the issuer's clock may differ from ours; five minutes at most (RFC 7519 §4.1.4: a few)."""

    require_exp: bool = True
    """Whether a token without an end is refused."""

    def __post_init__(self) -> None:
        if not 0 <= self.leeway <= 300:
            raise ValueError("leeway is at least 0 and at most 300 seconds")
        if not self.algorithms:
            raise ValueError("algorithms needs at least one")
        if not all(_SCOPE.fullmatch(scope) for scope in self.required_scopes):
            raise ValueError("a scope has no spaces, quotation marks, backslashes, and nothing beyond ASCII")
        if "://" in self.jwks:
            _check_address(self.jwks)
        if not self.jwks:
            raise ValueError("jwt needs jwks, the file or URL with the keys that tokens are signed with")
        if self.audience is None:
            raise ValueError("jwt needs audience, whom tokens are meant for, such as the URL of this server")


def _check_address(url: str) -> None:
    """Raises `ValueError` for a URL that keys should not come from. Says nothing of what is in it."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - not needed where nothing is configured

    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("jwks is no URL") from None
    if parts.scheme not in ("https", "http") or not host or parts.fragment:
        raise ValueError("jwks is a file or an https URL")
    if "@" in parts.netloc:
        raise ValueError("jwks is a URL without name and password")
    if parts.scheme == "http" and not (host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host)):
        raise ValueError("jwks is an https URL: over http, anybody on the way could put in keys of their own")


@dataclass(frozen=True, slots=True)
class Auth:
    """Who is let in over HTTP: holders of a key, of a token, or of either. Without the section, everyone."""

    keys: Mapping[str, ApiKey] = table()
    """The keys, by the names of those who hold them."""

    jwt: Jwt | None = None
    """Which tokens are good, if any."""

    def __post_init__(self) -> None:
        holders: dict[str, str] = {}
        for name, key in self.keys.items():
            if not (0 < len(name) <= 64 and name.isprintable()):
                raise ValueError("the name of a key has 1 to 64 characters, all of them printable")
            if holders.setdefault(key.hash.lower(), name) != name:
                raise ValueError(f"the keys {holders[key.hash.lower()]} and {name} have the same hash")
        # Who removes the last key does not mean to open the door.
        if not self.keys and self.jwt is None:
            raise ValueError("there is no key and no jwt, so nobody could come in; without [auth], everyone can")


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """Where verdicts are written down, and what of a message is."""

    directory: str = "runs/mcp_server/envelope_validation"
    """Below it there is a file for each run (specs/000); ``off`` for no journal."""

    keep: int = 50
    """Runs that are left when a new one begins; those that are still written are never removed."""

    payloads: bool = False
    """Whether the frames are written too, without what looks like a secret."""

    redact: tuple[str, ...] = ()
    """Regular expressions of what else is a secret: the name of a member, or something in a string."""

    def __post_init__(self) -> None:
        if not self.directory:
            raise ValueError("a journal needs a directory; off is for none")
        if self.keep < 1:
            raise ValueError("at least 1 run is kept")
        if self.redact:
            from assay.journal.redaction import Redactor  # noqa: PLC0415 - most have no patterns of their own

            Redactor(self.redact)


_COLLECTOR: Final = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?", re.IGNORECASE)
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"([\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?)?")


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Where spans and durations of requests go. What is not set here is as the ``OTEL_*`` variables say."""

    endpoint: str = ""
    """The collector, such as ``http://localhost:4318``; ``/v1/traces`` and ``/v1/metrics`` are put behind it."""

    service_name: str = ""
    """What this server is called there; ``assay`` if nothing else says."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request to the collector, such as a key that it wants."""

    def __post_init__(self) -> None:
        # Neither says what was found: it may be a secret.
        if self.endpoint and not _COLLECTOR.fullmatch(self.endpoint):
            raise ValueError("endpoint is an http or https URL, without name and password, query and fragment")
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise ValueError("a header has a name without spaces, and printable ASCII as its value")


@dataclass(frozen=True, slots=True)
class Settings:
    """Every section. A new one is a line here."""

    limits: Limits = field(default_factory=Limits)
    tiers: TierSettings = field(default_factory=TierSettings)
    journal: JournalSettings = field(default_factory=JournalSettings)
    http: Http = field(default_factory=Http)
    guard: GuardSettings = field(default_factory=GuardSettings)
    auth: Auth | None = None
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)


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


def _iso(value: Any) -> str:
    from datetime import datetime  # noqa: PLC0415 - only who has a date needs it

    # TOML has dates of its own, and people quote them all the same.
    text = value if type(value) is str else getattr(value, "isoformat", str)()
    return datetime.fromisoformat(text).isoformat()


def _day(value: Any) -> str:
    text = _iso(value)
    # A time of day would be lost without a word.
    if len(value if type(value) is str else value.isoformat()) > len("2027-01-01"):
        raise ValueError
    return text.partition("T")[0]


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

_MOMENT: Final = Kind("a date such as 2027-01-01", str, _iso)

_DAY: Final = Kind("a date such as 2027-01-01, without a time", str, _day)


class Setting(NamedTuple):
    """One setting: what it takes, and its only values if they are words of a list."""

    kind: Kind
    words: tuple[str, ...] = ()
    secret: bool = False

    @property
    def expected(self) -> str:
        """What it takes, in words."""
        choice = f"one of {', '.join(self.words)}"
        if self.kind is _KINDS[tuple[str, ...]]:
            return f"{self.kind.noun}, each {choice}" if self.words else self.kind.noun
        return choice if self.words else self.kind.noun


Path = tuple[str, ...]
"""Section and key, as in ``("limits", "depth")``."""

ANY: Final = "*"
"""Stands in a path for whatever key a table is given."""

EACH: Final = "#"
"""Stands in a path for the number of a table in an array of them, from 1 on."""

_FREE: Final = frozenset({ANY, EACH})

Rows = Mapping[Path, Setting]


def known(section: "type[DataclassInstance]") -> dict[Path, Setting]:
    """Every setting in and below *section*, by its path."""
    return {
        (one.name, *path): setting for one in fields(section) for path, setting in _rows(one.type, one.metadata).items()
    }


def _rows(kind: Any, metadata: Mapping[str, Any]) -> dict[Path, Setting]:
    kind = _when_given(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        below = known(kind)
        short = getattr(kind, "SHORT", None)
        # One of its keys may stand for the whole table.
        return below if short is None else {(): below[short,], **below}
    if _is_array(kind):
        return {(EACH, *path): setting for path, setting in _rows(get_args(kind)[0], {}).items()}
    if get_origin(kind) is Mapping:
        keys = metadata.get("keys")
        below = _rows(get_args(kind)[1], {**metadata, "keys": None})
        return {(key, *path): setting for key in (keys() if keys else [ANY]) for path, setting in below.items()}
    words, special = metadata.get("words"), metadata.get("kind")
    value = _DAY if metadata.get("day") else special() if special else _KINDS[kind]
    return {(): Setting(value, tuple(words()) if words else (), metadata.get("secret", False))}


def _is_array(kind: Any) -> bool:
    """Whether it is an array of tables."""
    return get_origin(kind) is tuple and is_dataclass(get_args(kind)[0])


def _when_given(kind: Any) -> Any:
    """*kind* without None, which is what a setting is before it is given; TOML has no word for it."""
    return next(one for one in get_args(kind) if one is not type(None)) if isinstance(kind, UnionType) else kind


def _fits(row: Path, path: Path) -> bool:
    """Whether *row* begins like *path*, or with something free in its place."""
    return len(row) >= len(path) and all(map(_stands_for, row, path))


def _stands_for(one: str, part: str) -> bool:
    return one in (part, ANY) or (one == EACH and part.isdecimal())


def _setting(rows: Rows, path: Path) -> Setting | None:
    exact = rows.get(path)
    return exact or next((rows[each] for each in rows if len(each) == len(path) and _fits(each, path)), None)


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
        quiet = bool(above) and any(setting.secret for each, setting in rows.items() if _fits(each, above))
        _object_to((place + _dotted(above)).rstrip("."), "a table", given, quiet=quiet)
    for key, value in given.items():
        path = (*above, key)
        setting, where = _setting(rows, path), place + _dotted(path)
        if any(each[: len(path) + 1] == (*path, EACH) for each in rows):
            yield from _in_array(rows, value, place, path)
        elif setting is not None and not (isinstance(value, dict) and _has_more(rows, path)):
            yield _Given(path, _taken(setting, value, where), where)
        elif any(_fits(each, path) for each in rows):
            # That the table is there may mean something, even if nothing is in it.
            yield _Given(path, None, where)
            yield from _in_table(rows, value, place, path)
        else:
            raise SettingsError(f"{place}{_dotted(path)}: unknown key{_remedy(rows, path)}")


def _in_array(rows: Rows, given: Any, place: str, above: Path) -> Iterator[_Given]:
    """The settings of an array of tables."""
    if not isinstance(given, list):
        _object_to(place + _dotted(above), "an array of tables", given)
    for number, value in enumerate(given, 1):
        path = (*above, str(number))
        yield _Given(path, None, place + _dotted(path))
        yield from _in_table(rows, value, place, path)


def _has_more(rows: Rows, path: Path) -> bool:
    """Whether a setting may be a table too."""
    return any(len(each) > len(path) and _fits(each, path) for each in rows)


def _in_variables(rows: Rows, variables: Mapping[str, str], log: Log) -> Iterator[_Given]:
    """
    The settings of the environment.

    A name that begins like one of our sections is ours, and a slip. Any other may be somebody else's: it breaks
    nothing, but is not passed over in silence.
    """
    names = {variable(path): path for path in rows if _FREE.isdisjoint(path)}
    sections = tuple({variable((path[0], "")) for path in rows})
    for name in sorted(variables):
        path = names.get(name)
        if path is not None:
            yield _Given(path, _read(rows[path], variables[name], name), name)
            continue
        unknown = f"{name}: unknown setting{_near(name, names)}"
        free = next((each for each in rows if _named(each) != each and _begins(name, _named(each))), None)
        if free is not None:
            raise SettingsError(f"{name}: {_dotted(free)} has no variable; it goes into a file")
        if name.startswith(sections):
            raise SettingsError(unknown)
        log(f"{unknown} (ignored)")


def _begins(name: str, path: Path) -> bool:
    return name == variable(path) or name.startswith(variable((*path, "")))


def _in_flags(rows: Rows, flags: Sequence[str]) -> Iterator[_Given]:
    for flag in flags:
        name, sign, text = flag.partition("=")
        path = tuple(name.strip().split("."))
        place = f"--set {_dotted(path)}"
        if not sign:
            raise SettingsError(f"{place}: expected SECTION.KEY=VALUE")
        setting = _setting(rows, path)
        if setting is None:
            below = next((each for each in rows if _fits(each, path)), None)
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
        _object_to(place, setting.expected, text, quiet=setting.secret)
    return _taken(setting, value, place)


def _taken(setting: Setting, value: Any, place: str) -> Any:
    try:
        taken = setting.kind.taken(value)
    except ValueError:
        _object_to(place, setting.expected, value, quiet=setting.secret)
    for one in taken if isinstance(taken, tuple) else (taken,):
        if setting.words and one not in setting.words:
            _object_to(place, setting.expected, one, _near(str(one), setting.words))
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
        below = {path[1:]: value for path, value in values.items() if path[:1] == (one.name,)}
        if below or is_dataclass(one.type):
            given[one.name] = _value(_when_given(one.type), below)
    return kind(**given)


def _value(kind: Any, values: Mapping[Path, Any]) -> Any:
    """What *values*, which are those of one field, make together."""
    if is_dataclass(kind) and isinstance(kind, type):
        short = getattr(kind, "SHORT", None)
        whole: dict[Path, Any] = {(short,): values[()]} if short is not None and values.get(()) is not None else {}
        return _built(kind, {**whole, **{path: value for path, value in values.items() if path}})
    if _is_array(kind):
        numbers = sorted({int(path[0]) for path in values if path})
        items = ({path[1:]: value for path, value in values.items() if path[:1] == (str(one),)} for one in numbers)
        return tuple(_value(get_args(kind)[0], below) for below in items)
    if get_origin(kind) is not Mapping:
        return values[()]
    names = dict.fromkeys(path[0] for path in values if path)
    each = {name: {path[1:]: value for path, value in values.items() if path[:1] == (name,)} for name in names}
    return MappingProxyType({name: _value(get_args(kind)[1], below) for name, below in each.items()})


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _object_to(place: str, expected: str, value: Any, near: str = "", *, quiet: bool = False) -> NoReturn:
    found = ("a string" if isinstance(value, str) else "something else") if quiet else _shown(value)
    raise SettingsError(f"{place}: expected {expected}, found {found}{near}")


def _shown(value: Any) -> str:
    from assay.engine.wording import found  # noqa: PLC0415 - only a slip needs words

    if isinstance(value, dict):
        return "a table"
    return found(value) if isinstance(value, str | int | float | list) else f"the {type(value).__name__} {value}"


def _dotted(path: Path) -> str:
    """*path* as it is written, on one line whatever is in it; a free name in it is shown as such."""
    name = ".".join({ANY: "NAME", EACH: "NUMBER"}.get(part, part) for part in path)
    return name if name.isprintable() else ascii(name)


def _named(path: Path) -> Path:
    """*path* up to the first name that is free."""
    return path[: next((at for at, part in enumerate(path) if part in _FREE), len(path))]


def _remedy(rows: Rows, path: Path) -> str:
    """What *path* was probably meant to be: a key beside it, the same key elsewhere, else all that there are."""
    level = len(path) - 1
    beside = sorted({each[level] for each in rows if len(each) > level and _fits(each, path[:level])} - _FREE)
    elsewhere = [_dotted(each) for each in rows if each[-1] == path[-1]]
    near = _near(path[-1], beside) or (f"; did you mean {elsewhere[0]}?" if elsewhere else "")
    return near or (f"; there are {', '.join(beside)}" if beside else "")


def _near(name: str, names: Iterable[str]) -> str:
    from assay.spec.schema import suggestion  # noqa: PLC0415 - only a slip needs it

    return suggestion(name[:80], names)

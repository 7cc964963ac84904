"""
What a field of a section says of itself beyond its type and default: constraints, and whether a change is weaker.

A setting weakens the guard if any message that is refused, reported, recorded or authenticated without it is not with
it. A field that says nothing weakens the guard by every change, upwards and downwards: a lower limit stops a list of
tools, and the calls of these tools are then not judged by their schemas. A field that states otherwise has its proof in
`tests/settings/test_untrusted_settings.py`.

`key_of` makes the tree of keys from the fields; everything that reads or shows settings follows this tree. No I/O.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from math import isfinite
from types import UnionType
from typing import Any, Final, NamedTuple, get_args, get_origin

from assay.model.errors import SettingsError
from assay.schema.wording import found
from assay.spec.schema import suggestion

# ── what a field says ────────────────────────────────────────────────────────────────────────────────────────────────

Weaker = Callable[[Any, Any], bool]
"""Function that returns whether a value is weaker than the one that applies without it."""


def changed(value: Any, base: Any) -> bool:
    """Any other value is weaker."""
    return bool(value != base)


def unless(strictest: Any) -> Weaker:
    """Any change is weaker, except to *strictest*."""
    return lambda value, base: value not in (base, strictest)


def by_effect(value: Any, base: Any) -> bool:
    """A value of the policy: the effect on each rule is compared (`assay.settings.weakening`), not the text."""
    raise NotImplementedError


def setting(
    default: Any,
    *,
    kind: "ValueKind | None" = None,
    words: Sequence[str] = (),
    names: Sequence[str] = (),
    secret: bool = False,
    weaker: Weaker | None = None,
) -> Any:
    """
    Return a field of a section that says more than its type and its default.

    *kind* is for a value that its type does not describe, *words* are the only valid values, or those of an array or
    a table, and *names* the only valid names in a table. The value of a *secret* is never shown in a message. A table
    that states *weaker* counts only as a whole, because its keys need each other.
    """
    said = {"kind": kind, "words": words, "names": names, "secret": secret, "weaker": weaker}
    if isinstance(default, dict):
        return field(default_factory=dict, repr=not secret, metadata=said)
    return field(default=default, repr=not secret, metadata=said)


# ── kinds of values ──────────────────────────────────────────────────────────────────────────────────────────────────


class ValueKind(NamedTuple):
    """A type of setting. Both functions raise `ValueError` for an invalid value."""

    noun: str
    parsed: Callable[[str], Any]
    """Return the TOML value for the text of a variable or an option."""
    taken: Callable[[Any], Any]
    """Return the value for the dataclass."""


def _of(kind: type) -> Callable[[Any], Any]:
    def taken(value: Any) -> Any:
        if kind is float and type(value) is int:
            value = float(value)
        # Not isinstance: a bool is an int in Python, but `depth = true` is not a number.
        if type(value) is not kind or (isinstance(value, float) and not isfinite(value)):
            raise ValueError
        return value

    return taken


def _strings(value: Any) -> tuple[str, ...]:
    if type(value) is not list or any(type(one) is not str for one in value):
        raise ValueError
    return tuple(value)


def _moment(value: Any) -> str:
    # TOML has dates, but people often write them as strings.
    text = value if type(value) is str else getattr(value, "isoformat", str)()
    return datetime.fromisoformat(text).isoformat()


def _day(value: Any) -> str:
    # A time of day would be dropped silently.
    if len(str(value)) > len("YYYY-MM-DD"):
        raise ValueError
    return _moment(value).partition("T")[0]


def _switch(text: str) -> bool:
    if text.lower() not in ("true", "1", "false", "0"):
        raise ValueError
    return text.lower() in ("true", "1")


KINDS: Final[Mapping[Any, ValueKind]] = {
    bool: ValueKind("true or false", _switch, _of(bool)),
    int: ValueKind("an integer", int, _of(int)),
    float: ValueKind("a number", float, _of(float)),
    str: ValueKind("a string", str, _of(str)),
    tuple[str, ...]: ValueKind("an array of strings", lambda text: [one.strip() for one in text.split(",")], _strings),
}

MOMENT: Final = ValueKind("a date such as 2027-01-01", str, _moment)

DAY: Final = ValueKind("a date such as 2027-01-01, without a time", str, _day)

TABLE: Final = ValueKind("a table", str, _of(dict))
"""Not a value: its keys have values. No text is a table."""

ARRAY: Final = ValueKind("an array of tables", str, _of(list))


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

Path = tuple[str, ...]
"""Section and key, as in ``("limits", "depth")``."""

ANY: Final = "NAME"
"""Placeholder in the path of a key for a name that the operator chooses."""

EACH: Final = "NUMBER"
"""Placeholder in the path of a key for the index of a table in an array, from 1."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the settings: of a value, a section, a table with names of the operator's, or an array of tables."""

    path: Path
    kind: ValueKind = TABLE
    """The type of its value. A section with another kind than `TABLE` is a table or such a value."""
    words: tuple[str, ...] = ()
    """The valid values; empty if any of the type is valid."""
    secret: bool = False
    """Whether its value, or one below it, may be a secret."""
    weaker: Weaker = changed
    """Whether a value weakens the guard, compared with the value that applies without it."""
    whole: bool = False
    """Whether the table counts only as a whole."""
    section: Any = None
    """The dataclass that is made of the table; None for other tables."""
    short: str = ""
    """The key that a value in place of the table stands for; empty if only a table is valid."""
    below: Mapping[str, "Key"] = field(default_factory=dict)
    free: "Key | None" = None
    """The key of each entry, if the operator chooses the names, or numbers them."""

    @property
    def is_table(self) -> bool:
        """Whether only a table, or an array of tables, is valid."""
        return self.kind in (TABLE, ARRAY)

    def at(self, name: str) -> "Key | None":
        """Return the key called *name* in this table; None if there is no such key."""
        is_entry = self.kind is not ARRAY or (name.isascii() and name.isdecimal() and name[0] != "0")
        return self.below.get(name) or (self.free if is_entry else None)

    def values(self) -> Iterator["Key"]:
        """Yield this key and those below it that have a value of their own."""
        if not self.is_table:
            yield self
        for each in (*self.below.values(), *([self.free] if self.free else [])):
            yield from each.values()

    def taken(self, value: Any, place: str, *, is_text: bool = False) -> Any:
        """
        Return *value*, as TOML has it, for the dataclass. Raises `SettingsError`.

        With *is_text* it comes from a source that has only text.
        """
        expected = self.kind.noun
        if self.words:
            choice = f"one of {', '.join(self.words)}"
            expected = f"{expected}, each {choice}" if self.kind is KINDS[tuple[str, ...]] else choice
        try:
            value = self.kind.parsed(value) if is_text else value
            taken = self.kind.taken(value)
        except ValueError:
            raise SettingsError(f"{place}: expected {expected}, found {self._shown(value)}") from None
        for one in (taken if isinstance(taken, tuple) else (taken,)) if self.words else ():
            if one not in self.words:
                near = suggestion(str(one)[:80], self.words)
                raise SettingsError(f"{place}: expected {expected}, found {found(one)}{near}")
        return taken

    def _shown(self, value: Any) -> str:
        if self.secret:
            return "a string" if isinstance(value, str) else "a value of another type"
        if isinstance(value, dict):
            return "a table"
        return found(value) if isinstance(value, str | int | float | list) else f"the {type(value).__name__} {value}"


def key_of(kind: Any, said: Mapping[str, Any], path: Path = ()) -> Key:
    """Return the key of a value of this type, with all keys below it; *said* is the metadata of its field."""
    weaker = said.get("weaker")
    if isinstance(kind, UnionType):  # None means not set: TOML has no null
        kind = next(one for one in get_args(kind) if one is not type(None))
    if is_dataclass(kind):
        handed = {"weaker": weaker} if weaker else {}
        below = {one.name: key_of(one.type, {**one.metadata, **handed}, (*path, one.name)) for one in fields(kind)}
        # A value in place of the table stands for one of its keys.
        short = getattr(kind, "SHORT", "")
        stands = below.get(short, Key(path))
        hidden = bool(path) and any(each.secret for each in below.values())
        aim = weaker or stands.weaker
        return Key(path, stands.kind, stands.words, hidden, aim, weaker is not None, kind, short, below)
    if get_origin(kind) is Mapping:
        of, inner = get_args(kind)[1], {**said, "names": ()}
        if said.get("names"):
            return Key(path, below={name: key_of(of, inner, (*path, name)) for name in said["names"]})
        entry = key_of(of, inner, (*path, ANY))
        return Key(path, secret=entry.secret, free=entry)
    if get_origin(kind) is tuple and is_dataclass(get_args(kind)[0]):
        return Key(path, ARRAY, free=key_of(get_args(kind)[0], said, (*path, EACH)))
    value = said.get("kind") or KINDS[kind]
    return Key(path, value, tuple(said.get("words", ())), said.get("secret", False), weaker or changed)


def dotted(path: Path) -> str:
    """Return *path* with dots, on one line."""
    name = ".".join(path)
    return name if name.isprintable() else ascii(name)

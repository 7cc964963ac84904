"""
Parse TOML into nodes with positions, so that a value can be replaced in place. No I/O.

`tomllib` decides what is valid and what a value is; this reader only adds positions. A file in which the two differ is
refused, so that a bug here cannot damage a configuration.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from assay.cli.clients.jsonc import Array, ConfigError, Document, Member, Node, Object, Scalar, Table, plain

_MARK: Final = "\ufeff"
_BLANK: Final = re.compile(r"[ \t]+")
_LINES: Final = re.compile(r"[ \t\r\n]+")
_COMMENT: Final = re.compile(r"#[^\r\n]*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRINGS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        # One or two quotes before the closing ones may belong to the text.
        r'"""(?:[^"\\]++|\\[\s\S]|"(?!""))*+"""(?:"{0,2})',
        r"'''(?:[^']++|'(?!''))*+'''(?:'{0,2})",
        r'"(?:[^"\\\r\n]++|\\.)*+"',
        r"'[^'\r\n]*+'",
    )
)
# A date and its time may have a space between them (RFC 3339, 5.6).
_WORD: Final = re.compile(r"\d{4}-\d\d-\d\d [0-9:.Z+-]+|[^\s,\]}#]+")


_UNSAFE: Final = "its TOML has a form that assay cannot edit safely"


# Planning, showing and checking a change read the same texts.
@lru_cache(maxsize=4)
def read(text: str) -> Document:
    """Parse *text* into a value with positions. Raises `ConfigError`."""
    expected = _loads(text.removeprefix(_MARK))
    reader = _TomlReader(text)
    try:
        root = reader.document().frozen()
    except (IndexError, RecursionError, StopIteration):
        raise ConfigError(_UNSAFE) from None
    if _comparable(plain(root)) != _comparable(expected):
        raise ConfigError(_UNSAFE)
    return Document(root, tuple(reader.comments), tuple(reader.tables))


def _loads(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError("not valid TOML: nested too deeply") from None


def _comparable(value: Any) -> str:
    # Compared as text, because `nan` is not equal to itself and a date has no JSON.
    return json.dumps(value, default=str, sort_keys=True)


@dataclass(slots=True)
class _Table:
    """A table that is being read: more of it may follow anywhere in the text."""

    start: int
    end: int
    members: dict[str, tuple[Scalar, _Value]] = field(default_factory=dict)

    def below(self, keys: list[Scalar]) -> _Table:
        """Return the table at *keys*, created if it is missing; of an array of tables, the last one."""
        table = self
        for key in keys:
            _, found = table.members.setdefault(key.value, (key, _Table(key.start, key.end)))
            last = found[-1] if isinstance(found, list) else found
            if not isinstance(last, _Table):
                raise ConfigError(_UNSAFE)
            table = last
        return table

    def frozen(self) -> Object:
        members = tuple(Member(key, _frozen(value)) for key, value in self.members.values())
        return Object(self.start, self.end, members)


_Value = Node | _Table | list[_Table]


def _frozen(value: _Value) -> Node:
    if isinstance(value, _Table):
        return value.frozen()
    if isinstance(value, list):
        items = tuple(each.frozen() for each in value)
        return Array(items[0].start, items[-1].end, items, items[-1].end)
    return value


class _TomlReader:
    """A reader of valid TOML from left to right. Each method moves `at` past what it has read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 1 if text.startswith(_MARK) else 0
        self.comments: list[tuple[int, int]] = []
        self.tables: list[Table] = []

    def document(self) -> _Table:
        root = _Table(self.at, len(self._text))
        table = root
        while self._skip(_LINES) < len(self._text):
            if self._text[self.at] == "[":
                table = self._header(root)
            else:
                end = self._pair(table)
                table.end = max(table.end, end)
                if self.tables:
                    self.tables[-1] = self.tables[-1]._replace(end=end)
        return root

    def value(self) -> _Value:
        opening = self._text[self.at]
        if opening == "[":
            return self._array()
        if opening == "{":
            return self._inline()
        start = self.at
        if opening in "\"'":
            self.at = self._string().end()
        else:
            self.at = self._matched(_WORD).end()
        return Scalar(start, self.at, _loads(f"x = {self._text[start : self.at]}")["x"])

    def _header(self, root: _Table) -> _Table:
        start = self.at
        brackets = 2 if self._text.startswith("[[", start) else 1
        self.at += brackets
        keys = self._keys()
        self.at += brackets
        table = root.below(keys[:-1])
        if brackets > 1:
            _, found = table.members.setdefault(keys[-1].value, (keys[-1], []))
            if not isinstance(found, list):
                raise ConfigError(_UNSAFE)
            found.append(_Table(start, self.at))
        table = table.below(keys[-1:])
        table.start, table.end = start, self.at
        self.tables.append(Table(tuple(key.value for key in keys), start, self.at, brackets > 1))
        return table

    def _pair(self, table: _Table) -> int:
        """Add one ``key = value`` to *table*; return the end of the value."""
        keys = self._keys()
        self.at += 1  # the equals sign
        self._skip(_BLANK)
        table.below(keys[:-1]).members[keys[-1].value] = (keys[-1], self.value())
        return self.at

    def _keys(self) -> list[Scalar]:
        """Return the parts of a dotted key, and move `at` past the white space after it."""
        keys = []
        while True:
            self._skip(_BLANK)
            start = self.at
            if self._text[start] in "\"'":
                self.at = self._string().end()
                keys.append(Scalar(start, self.at, _loads(f"x = {self._text[start : self.at]}")["x"]))
            else:
                self.at = self._matched(_BARE).end()
                keys.append(Scalar(start, self.at, self._text[start : self.at]))
            self._skip(_BLANK)
            if self._text[self.at] != ".":
                return keys
            self.at += 1

    def _array(self) -> Array:
        start = self.at
        self.at += 1
        items: list[Node] = []
        tail = self.at
        while self._text[self._skip(_LINES)] != "]":
            items.append(_frozen(self.value()))
            tail = self.at
            if self._text[self._skip(_LINES)] == ",":
                self.at += 1
                tail = self.at
        self.at += 1
        return Array(start, self.at, tuple(items), tail)

    def _inline(self) -> _Table:
        table = _Table(self.at, self.at)
        self.at += 1
        while self._text[self._skip(_LINES)] != "}":
            self._pair(table)
            if self._text[self._skip(_LINES)] == ",":
                self.at += 1
        self.at += 1
        table.end = self.at
        return table

    def _skip(self, blank: re.Pattern[str]) -> int:
        """Skip what *blank* matches, and comments where line breaks are allowed; return the position."""
        while True:
            if found := blank.match(self._text, self.at):
                self.at = found.end()
            elif blank is _LINES and (found := _COMMENT.match(self._text, self.at)):
                self.comments.append(found.span())
                self.at = found.end()
            else:
                return self.at

    def _string(self) -> re.Match[str]:
        return next(found for pattern in _STRINGS if (found := pattern.match(self._text, self.at)))

    def _matched(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self.at)
        if found is None:
            raise ConfigError(_UNSAFE)
        return found

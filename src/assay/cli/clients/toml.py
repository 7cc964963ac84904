"""
Parse TOML into nodes with positions, so that a value can be replaced in place. No I/O.

`tomllib` decides what is valid, and has the better messages. tomlkit reads the text once more: its tree has no
positions, but its parser knows where it is.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tomlkit.exceptions import TOMLKitError
from tomlkit.parser import Parser

from assay.cli.clients.dialect import ConfigError
from assay.cli.clients.jsonc import Array, Document, Member, Node, Object, Scalar, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tomlkit import items

_INDENT: Final = re.compile(r"[ \t]*")
_HEADER: Final = re.compile(r"""\[\[?(?:"(?:[^"\\]|\\.)*+"|'[^']*+'|[^"'\]])*+\]\]?""")
_TAIL: Final = re.compile(r"(?:(?:[ \t\r\n]|#[^\r\n]*+)*+,)?")
_STRING_OR_COMMENT: Final = re.compile(
    # One or two quotes before the closing ones may belong to the text.
    r'"""(?:[^"\\]++|\\[\s\S]|"(?!""))*+"""(?:"{0,2})'
    r"|'''(?:[^']++|'(?!''))*+'''(?:'{0,2})"
    r'|"(?:[^"\\\r\n]++|\\.)*+"'
    r"|'[^'\r\n]*+'"
    r"|(#[^\r\n]*+)"
)


# Planning, showing and checking a change read the same texts.
@lru_cache(maxsize=4)
def read(text: str) -> Document:
    """Parse *text* into a value with positions. Raises `ConfigError`."""
    # A space in place of a byte order mark, which no parser accepts, keeps the positions.
    text = re.sub("^\ufeff", " ", text)
    try:
        tomllib.loads(text)
        reader = _Reader(text)
        reader.parse()
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError("not valid TOML: nested too deeply") from None
    except TOMLKitError:
        raise ConfigError("its TOML has a form that assay cannot edit safely") from None
    comments = tuple(found.span() for found in _STRING_OR_COMMENT.finditer(text) if found[1])
    return Document(reader.root.object(), comments, tuple(reader.tables))


@dataclass(slots=True)
class _Branch:
    """A table that is being read: more of it may follow anywhere in the text."""

    start: int
    end: int
    members: dict[str, tuple[Scalar, Node | _Branch]] = field(default_factory=dict)

    def below(self, keys: Iterable[str], start: int, end: int) -> _Branch:
        """Return the table at *keys*, created at the given place if it is missing."""
        table = self
        for key in keys:
            found = table.members.setdefault(key, (Scalar(start, end, key), _Branch(start, end)))[1]
            if not isinstance(found, _Branch):
                raise TOMLKitError
            table = found
        return table

    def object(self) -> Object:
        members = self.members.values()
        return Object(
            self.start,
            self.end,
            tuple(Member(key, value.object() if isinstance(value, _Branch) else value) for key, value in members),
        )


class _Reader(Parser):
    """The parser of tomlkit. It calls these methods for each table, each key with its value, and each value."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = text
        self.root = self._table = _Branch(0, len(text))
        self.tables: list[Table] = []
        self._items: list[Node] = []
        """The values that were read inside the innermost array."""

    def _parse_table(self, *parents: Any, **named: Any) -> tuple[items.Key, items.Table | items.AoT]:
        start, found = self._idx, _HEADER.match(self._text, self._idx)
        if found is None:
            raise TOMLKitError
        is_array, key = self._peek_table()
        path = tuple(part.key for part in key)
        # The items of an array of tables are numbered: only their secrets matter here.
        below = (*path, str(len(self.tables))) if is_array else path
        self._table = self.root.below(below, start, found.end())
        self._table.start, self._table.end = start, found.end()
        self.tables.append(Table(path, start, found.end(), is_array))
        return super()._parse_table(*parents, **named)

    def _parse_key_value(self, parse_comment: bool = False) -> tuple[items.Key, items.Item]:
        start = _INDENT.match(self._text, self._idx).end()  # type: ignore[union-attr] # it matches everywhere
        key, item = super()._parse_key_value(parse_comment)
        *above, name = (part.key for part in key)
        value, end = self._items.pop(), start + len(key.as_string().strip())
        self._table.below(above, start, end).members[name] = (Scalar(start, end, name), value)
        if parse_comment:
            self._table.end = max(self._table.end, value.end)
            self.tables[-1:] = [table._replace(end=value.end) for table in self.tables[-1:]]
        return key, item

    def _parse_value(self) -> items.Item:
        start, opening = self._idx, self._current
        before, self._items = self._items, []
        table = self._table
        if opening == "{":
            self._table = _Branch(start, start)
        try:
            item = super()._parse_value()
        except TOMLKitError:
            # Before tomlkit 0.15 the parser tried to read a value after the last comma, too.
            self._items, self._table = before, table
            raise
        end = self._idx
        node: Node
        if opening == "{":
            self._table.end = end
            node, self._table = self._table.object(), table
        elif opening == "[":
            last = self._items[-1].end if self._items else start + 1
            node = Array(start, end, tuple(self._items), _TAIL.match(self._text, last).end())  # type: ignore[union-attr]
        else:
            node = Scalar(start, end, item.unwrap())
        self._items = before
        self._items.append(node)
        return item

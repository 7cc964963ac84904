"""
Parse JSON with comments, or TOML, into nodes with positions. No I/O.

This is for files that people write and we edit in place: with positions a value can be replaced while everything else
stays as it was, white space included. JSON may have comments, trailing commas and a byte order mark; otherwise the
reader is strict: only RFC 8259, and no duplicate keys. For TOML, `tomllib` decides what is valid and what a value is,
and the reader only adds positions. A file in which the two differ is refused, so that a bug here cannot damage it.
"""

import json
import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from assay.model.limits import DEFAULT

MARK: Final = "\ufeff"
"""The byte order mark, which some editors write."""

_JSON_SPACE: Final = re.compile(r"[ \t\r\n]+|(//[^\r\n]*|/\*.*?\*/)", re.DOTALL)
_JSON_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_WORD: Final = re.compile(r"[\w+.-]+")
_WORDS: Final = {"true": True, "false": False, "null": None}
_LINE: Final = re.compile(r"\r\n|\r|\n")

_DIGITS: Final = 4000
"""Maximal digits of an integer: Python reads up to 4,300. A longer one becomes a double, as in every client."""

_TOML_SPACE: Final = re.compile(r"[ \t\r\n]+|(#[^\r\n]*)")
# One or two quotes before the closing three may belong to the text.
_TOML_STRING: Final = (
    r'"""(?:[^"\\]++|\\[\s\S]|"(?!""))*+"""(?:"{0,2})|'
    r"'''(?:[^']++|'(?!''))*+'''(?:'{0,2})|"
    r'"(?:[^"\\\r\n]++|\\.)*+"|'
    r"'[^'\r\n]*+'"
)
_TOML_KEY: Final = re.compile(rf"{_TOML_STRING}|[A-Za-z0-9_-]+")
# A date and its time may have a space between them (RFC 3339, 5.6).
_TOML_SCALAR: Final = re.compile(rf"{_TOML_STRING}|\d{{4}}-\d\d-\d\d [0-9:.Z+-]+|[^\s,\]}}#]+")


class ConfigError(ValueError):
    """A file cannot be used as the configuration of a client, or cannot be read or replaced."""


@dataclass(slots=True)
class Node:
    """A value and where it is: a scalar, a list of nodes, or a dictionary of members."""

    start: int
    end: int
    value: Any
    tail: int = 0
    """In an array, the end of its last item, including a trailing comma."""

    @property
    def items(self) -> list["Node"]:
        """The items of an array; empty for any other value."""
        return self.value if isinstance(self.value, list) else []

    @property
    def members(self) -> dict[str, "Member"]:
        """The members of an object by key, in the order of the text; empty for any other value."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def plain(self) -> Any:
        """The value as `json.loads` returns it."""
        if isinstance(self.value, list):
            return [item.plain for item in self.items]
        if isinstance(self.value, dict):
            return {name: member.value.plain for name, member in self.members.items()}
        return self.value


class Member(NamedTuple):
    """A key and its value."""

    key: Node
    value: Node


class Table(NamedTuple):
    """A ``[table]`` or ``[[table]]`` of TOML. Its node ends with the last value below this header."""

    path: tuple[str, ...]
    node: Node


class Document(NamedTuple):
    """A parsed text: one value, the positions of the comments, and the tables of TOML in the order of the text."""

    root: Node
    comments: list[tuple[int, int]]
    tables: list[Table]


# Planning, showing and checking a change read the same texts.
@lru_cache(maxsize=4)
def read_json(text: str) -> Document:
    """Parse *text* into a value with positions. Raises `ConfigError`."""
    reader = _Reader(text)
    root = reader.value(DEFAULT.depth)
    if reader.next():
        raise reader.error("the end of the file")
    return Document(root, reader.comments, [])


@lru_cache(maxsize=4)
def read_toml(text: str) -> Document:
    """Parse *text* into a table with positions. Raises `ConfigError`."""
    try:
        expected = tomllib.loads(text.removeprefix(MARK))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError("not valid TOML: nested too deeply") from None
    reader = _TomlReader(text)
    try:
        root = reader.document()
        # Compared as text, because `nan` is not equal to itself and a date has no JSON.
        found, wanted = (json.dumps(each, default=str, sort_keys=True) for each in (root.plain, expected))
    except (ValueError, RecursionError):
        found, wanted = "", "what tomllib reads"
    if found != wanted:
        raise ConfigError("its TOML has a form that assay cannot edit safely")
    return Document(root, reader.comments, reader.tables)


def lines(text: str) -> list[str]:
    """Split *text* into lines as an editor does; `str.splitlines` splits at more characters."""
    return _LINE.split(text)


class _Reader:
    """A reader of JSON from left to right. Each method moves `at` past what it has read."""

    space = _JSON_SPACE
    """White space or a comment, which is in a group."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith(MARK) else 0
        self.comments: list[tuple[int, int]] = []

    def next(self, skipped: int = 0) -> str:
        """Skip *skipped* characters, white space and comments; return the next character, empty at the end."""
        self.at += skipped
        while found := self.space.match(self.text, self.at):
            self.at = found.end()
            if found[1]:
                self.comments.append(found.span())
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Node:
        """Read one value with at most *depth* levels."""
        opening, start = self.next(), self.at
        if opening not in {"{", "["}:
            return self.scalar()
        if not depth:
            raise self._malformed(start, f"nested deeper than {DEFAULT.depth} levels")
        node, closing = (Node(start, 0, {}), "}") if opening == "{" else (Node(start, 0, [], start + 1), "]")
        found = self.next(1)
        while found != closing:
            if opening == "{":
                self.pair(node, depth - 1)
            else:
                node.items.append(self.value(depth - 1))
            node.tail = self.at
            found = self.next()
            if found == ",":
                node.tail = self.at + 1
                found = self.next(1)
            elif found != closing:
                raise self.error(f"a comma or {closing}")
        self.at += 1
        node.end = self.at
        return node

    def pair(self, node: Node, depth: int) -> None:
        """Read a key and its value into *node*."""
        key = self._string("a key in double quotes" if node.members else "a key in double quotes, or }")
        if key.value in node.members:
            raise self._malformed(key.start, f"the key {json.dumps(key.value)[:60]} is repeated")
        if self.next() != ":":
            raise self.error("a colon")
        self.at += 1
        node.members[key.value] = Member(key, self.value(depth))

    def scalar(self) -> Node:
        """Read a value without values inside."""
        if self.text.startswith('"', self.at):
            return self._string("a string")
        start, found = self.at, _WORD.match(self.text, self.at)
        word = found[0] if found else ""
        if word not in _WORDS and not _NUMBER.fullmatch(word):
            raise self.error("a value")
        self.at += len(word)
        if word in _WORDS:
            return Node(start, self.at, _WORDS[word])
        is_integer = len(word) < _DIGITS and re.fullmatch(r"-?[0-9]+", word)
        return Node(start, self.at, int(word) if is_integer else float(word))

    def error(self, expected: str) -> ConfigError:
        """Return the error that something else was *expected* here."""
        if self.text.startswith("/*", self.at):
            return self._malformed(self.at, "an unterminated comment")
        found = repr(self.text[self.at]) if self.at < len(self.text) else "the end of the file"
        return self._malformed(self.at, f"expected {expected}, found {found}")

    def _malformed(self, at: int, what: str) -> ConfigError:
        before = lines(self.text[:at])
        return ConfigError(f"not valid JSON: line {len(before)}, column {len(before[-1]) + 1}: {what}")

    def _string(self, expected: str) -> Node:
        start, found = self.at, _JSON_STRING.match(self.text, self.at)
        if found is None:
            if self.text.startswith('"', start):
                raise self._malformed(start, "a string that is not terminated on its line, or has an invalid escape")
            raise self.error(expected)
        self.at = found.end()
        return Node(start, self.at, json.loads(found[0]))


class _TomlReader(_Reader):
    """A reader of valid TOML. Values with values inside are read as in JSON."""

    space = _TOML_SPACE

    def document(self) -> Node:
        """Read the whole text."""
        self.tables: list[Table] = []
        root = table = Node(self.at, len(self.text), {})
        while opening := self.next():
            if opening == "[":
                table = self._header(root)
            else:
                self.pair(table, DEFAULT.depth)
                table.end = self.at
        return root

    def pair(self, node: Node, depth: int) -> None:
        """Read a key, which may be dotted, and its value into *node*."""
        *path, key = self._keys()
        self.at += 1  # the equals sign
        self._below(node, path).members[key.value] = Member(key, self.value(depth))

    def scalar(self) -> Node:
        """Read a value without values inside."""
        start, text = self.at, self._matched(_TOML_SCALAR)
        return Node(start, self.at, tomllib.loads(f"x = {text}")["x"])

    def _header(self, root: Node) -> Node:
        """Read a header; return its table."""
        start, brackets = self.at, 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        path = self._keys()
        self.at += brackets
        if brackets == 2:
            tables = Member(path[-1], Node(start, self.at, []))
            tables = self._below(root, path[:-1]).members.setdefault(path[-1].value, tables)
            tables.value.items.append(Node(start, self.at, {}))
        table = self._below(root, path)
        table.start, table.end = start, self.at
        self.tables.append(Table(tuple(key.value for key in path), table))
        return table

    def _keys(self) -> list[Node]:
        """Return the parts of a dotted key, and skip the white space after it."""
        keys: list[Node] = []
        while not keys or self.text.startswith(".", self.at):
            self.next(1 if keys else 0)
            start, text = self.at, self._matched(_TOML_KEY)
            [name] = tomllib.loads(f"{text} = 0")
            keys.append(Node(start, self.at, name))
            self.next()
        return keys

    def _below(self, table: Node, keys: list[Node]) -> Node:
        """Return the table at *keys*, created if it is missing; of an array of tables, the last one."""
        for key in keys:
            table = table.members.setdefault(key.value, Member(key, Node(key.start, key.end, {}))).value
            table = table.items[-1] if table.items else table
        return table

    def _matched(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise self.error("")
        self.at = found.end()
        return found[0]

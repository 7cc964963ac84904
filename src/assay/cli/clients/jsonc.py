"""
Parse JSON with comments and trailing commas into nodes with positions. No I/O.

This is for files that people write and we edit in place: with positions a value can be replaced while everything else
stays as it was, white space included. Otherwise it is strict: no duplicate keys, only RFC 8259 plus comments, trailing
commas and a byte order mark.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from assay.base.limits import DEFAULT

LONGEST: Final = 8 << 20
"""Maximal size of a file in bytes. The largest we know, with a client's history, has three million."""

_BLANK: Final = re.compile(r"[ \t\r\n]+")
_COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_WORD: Final = re.compile(r"[\w+.-]+")
_WORDS: Final = {"true": True, "false": False, "null": None}
_LINE: Final = re.compile(r"\r\n|\r|\n")

_DIGITS: Final = 4000
"""Maximal digits of an integer: Python reads up to 4,300. A longer one becomes a double, as in every client."""


class ConfigError(ValueError):
    """A file cannot be used as the configuration of a client."""


class JsoncError(ValueError):
    """A text is not valid JSON with comments; the message has the position."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, a number, a boolean or null."""

    start: int
    end: int
    value: Any


@dataclass(frozen=True, slots=True)
class Array:
    """An array. *tail* is the end of its last item, including a trailing comma."""

    start: int
    end: int
    items: tuple[Node, ...]
    tail: int


@dataclass(frozen=True, slots=True)
class Object:
    """An object, with members in the order of the text."""

    start: int
    end: int
    members: tuple[Member, ...]

    def get(self, name: str) -> Member | None:
        """Return the member called *name*; None if it is missing."""
        return next((member for member in self.members if member.key.value == name), None)


class Member(NamedTuple):
    """A key and its value."""

    key: Scalar
    value: Node


Node = Scalar | Array | Object


class Table(NamedTuple):
    """One ``[table]`` or ``[[table]]`` of TOML: its path, its start, and the end of its last value."""

    path: tuple[str, ...]
    start: int
    end: int
    is_array: bool


class Document(NamedTuple):
    """A parsed text: one value, the positions of the comments, and the tables of TOML in the order of the text."""

    root: Node
    comments: tuple[tuple[int, int], ...]
    tables: tuple[Table, ...] = ()


# Planning, showing and checking a change read the same texts.
@lru_cache(maxsize=4)
def read(text: str) -> Document:
    """Parse *text* into a value with positions. Raises `JsoncError`."""
    reader = _JsoncReader(text)
    reader.skip()
    root = reader.value(DEFAULT.depth)
    reader.skip()
    if reader.at < len(text):
        raise reader.error("the end of the file")
    return Document(root, tuple(reader.comments))


def members(node: Node) -> tuple[Member, ...]:
    """Return the members of an object; empty for any other value."""
    return node.members if isinstance(node, Object) else ()


def plain(node: Node) -> Any:
    """Return the value of *node* as `json.loads` would."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Array):
        return [plain(item) for item in node.items]
    return {member.key.value: plain(member.value) for member in node.members}


def lines(text: str) -> list[str]:
    """Split *text* into lines as an editor does; `str.splitlines` splits at more characters."""
    return _LINE.split(text)


class _JsoncReader:
    """A reader from left to right. Each method moves `at` past what it has read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 1 if text.startswith("\ufeff") else 0
        self.comments: list[tuple[int, int]] = []

    def skip(self) -> None:
        """Skip white space and comments."""
        while True:
            if blank := _BLANK.match(self._text, self.at):
                self.at = blank.end()
            elif comment := _COMMENT.match(self._text, self.at):
                self.comments.append(comment.span())
                self.at = comment.end()
            else:
                return

    def value(self, depth: int) -> Node:
        """Read one value with at most *depth* levels."""
        opening = self._text[self.at : self.at + 1]
        if opening in {"{", "["}:
            if not depth:
                raise self._error_at(self.at, f"nested deeper than {DEFAULT.depth} levels")
            return self._object(depth) if opening == "{" else self._array(depth)
        if opening == '"':
            return self._string("a string")
        return self._number_or_word()

    def error(self, expected: str) -> JsoncError:
        """Return the error that something else was expected here."""
        if self._text.startswith("/*", self.at):
            return self._error_at(self.at, "an unterminated comment")
        found = repr(self._text[self.at]) if self.at < len(self._text) else "the end of the file"
        return self._error_at(self.at, f"expected {expected}, found {found}")

    def _object(self, depth: int) -> Object:
        start = self._step()
        members: list[Member] = []
        seen: set[str] = set()
        while not self._text.startswith("}", self.at):
            key = self._string("a key in double quotes" if members else "a key in double quotes, or }")
            if key.value in seen:
                raise self._error_at(key.start, f"the key {json.dumps(key.value)[:60]} is repeated")
            seen.add(key.value)
            self.skip()
            if not self._text.startswith(":", self.at):
                raise self.error("a colon")
            self._step()
            members.append(Member(key, self.value(depth - 1)))
            self._comma("}")
        self.at += 1
        return Object(start, self.at, tuple(members))

    def _array(self, depth: int) -> Array:
        start = self._step()
        items: list[Node] = []
        tail = start + 1
        while not self._text.startswith("]", self.at):
            items.append(self.value(depth - 1))
            tail = self._comma("]")
        self.at += 1
        return Array(start, self.at, tuple(items), tail)

    def _step(self) -> int:
        """Skip one character and the white space after it; return the position of the character."""
        at = self.at
        self.at += 1
        self.skip()
        return at

    def _comma(self, closing: str) -> int:
        """Move to the next item or the *closing* bracket; return the end of the item or its comma."""
        end = self.at
        self.skip()
        if self._text.startswith(",", self.at):
            return self._step() + 1
        if not self._text.startswith(closing, self.at):
            raise self.error(f"a comma or {closing}")
        return end

    def _string(self, expected: str) -> Scalar:
        found = _STRING.match(self._text, self.at)
        if found is None:
            if self._text.startswith('"', self.at):
                raise self._error_at(self.at, "a string that is not terminated on its line, or has an invalid escape")
            raise self.error(expected)
        self.at = found.end()
        return Scalar(found.start(), found.end(), json.loads(found[0]))

    def _number_or_word(self) -> Scalar:
        start = self.at
        word = _WORD.match(self._text, start)
        if word is None or not (word[0] in _WORDS or _NUMBER.fullmatch(word[0])):
            raise self.error("a value")
        self.at = word.end()
        return Scalar(start, self.at, _WORDS[word[0]] if word[0] in _WORDS else _number(word[0]))

    def _error_at(self, at: int, what: str) -> JsoncError:
        before = _LINE.split(self._text[:at])
        return JsoncError(f"line {len(before)}, column {len(before[-1]) + 1}: {what}")


def _number(token: str) -> int | float:
    return int(token) if len(token) < _DIGITS and re.fullmatch(r"-?[0-9]+", token) else float(token)

"""
JSON with comments and trailing commas into nodes that know where in the text they stand. No I/O.

It is for files that people write and we change in place: whoever knows where a value begins and ends can replace it,
and leave everything else as it was to the last space. Other than that it is strict: no repeated keys, nothing but RFC
8259 apart from comments, trailing commas and a byte order mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from assay.base.limits import DEFAULT

LONGEST: Final = 8 << 20
"""Bytes of a file. The largest we know, with the history of a client in it, has three million."""

_BLANK: Final = re.compile(r"[ \t\r\n]+")
_COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_WORD: Final = re.compile(r"[\w+.-]+")
_WORDS: Final = {"true": True, "false": False, "null": None}
_LINE: Final = re.compile(r"\r\n|\r|\n")

_DIGITS: Final = 4000
"""Of an integer. Python reads none of more than 4,300; what is longer becomes a double, as it does in every client."""


class JsoncError(ValueError):
    """Why a text is no JSON with comments, and where."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, a number, a boolean or null."""

    start: int
    end: int
    value: Any


@dataclass(frozen=True, slots=True)
class Array:
    """An array. *tail* is where its last item ends, with the comma after it if there is one."""

    start: int
    end: int
    items: tuple[Node, ...]
    tail: int


@dataclass(frozen=True, slots=True)
class Object:
    """An object. Its members are in the order of the text."""

    start: int
    end: int
    members: tuple[Member, ...]

    def get(self, name: str) -> Member | None:
        """The member called *name*."""
        return next((member for member in self.members if member.key.value == name), None)


class Member(NamedTuple):
    """A key and its value."""

    key: Scalar
    value: Node


Node = Scalar | Array | Object


class Document(NamedTuple):
    """What a text has in it: one value, and comments by where they start and end."""

    root: Node
    comments: tuple[tuple[int, int], ...]


class Edit(NamedTuple):
    """Another text for what is between two places."""

    start: int
    end: int
    text: str


def read(text: str) -> Document:
    """The value in *text*, with the place of everything in it. Raises `JsoncError`."""
    reader = _JsoncReader(text)
    reader.skip()
    root = reader.value(DEFAULT.depth)
    reader.skip()
    if reader.at < len(text):
        raise reader.error("the end of the file")
    return Document(root, tuple(reader.comments))


def edited(text: str, edits: Iterable[Edit]) -> str:
    """*text* with *edits*, none of which reaches into another."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        parts += text[at : edit.start], edit.text
        at = edit.end
    return "".join([*parts, text[at:]])


def plain(node: Node) -> Any:
    """The value of *node*, as `json.loads` gives it."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Array):
        return [plain(item) for item in node.items]
    return {member.key.value: plain(member.value) for member in node.members}


def lines(text: str) -> list[str]:
    """The lines of *text*, without their ends: what an editor shows, other than `str.splitlines`."""
    return _LINE.split(text)


class _JsoncReader:
    """Reads from the left to the right. Each method leaves `at` behind what it has read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 1 if text.startswith("\ufeff") else 0
        self.comments: list[tuple[int, int]] = []

    def skip(self) -> None:
        """White space and comments."""
        while True:
            if blank := _BLANK.match(self._text, self.at):
                self.at = blank.end()
            elif comment := _COMMENT.match(self._text, self.at):
                self.comments.append(comment.span())
                self.at = comment.end()
            else:
                return

    def value(self, depth: int) -> Node:
        """One value, with at most *depth* levels in it."""
        opening = self._text[self.at : self.at + 1]
        if opening in {"{", "["}:
            if not depth:
                raise self._error_at(self.at, f"nested deeper than {DEFAULT.depth} levels")
            return self._object(depth) if opening == "{" else self._array(depth)
        if opening == '"':
            return self._string("a string")
        return self._number_or_word()

    def error(self, expected: str) -> JsoncError:
        """That something else was expected here."""
        if self._text.startswith("/*", self.at):
            return self._error_at(self.at, "a comment that has no end")
        found = repr(self._text[self.at]) if self.at < len(self._text) else "the end of the file"
        return self._error_at(self.at, f"expected {expected}, found {found}")

    def _object(self, depth: int) -> Object:
        start = self._step()
        members: list[Member] = []
        seen: set[str] = set()
        while not self._text.startswith("}", self.at):
            key = self._string("a key in double quotes" if members else "a key in double quotes, or }")
            if key.value in seen:
                raise self._error_at(key.start, f"the key {json.dumps(key.value)[:60]} is there twice")
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
        """Past one character and what may stand between two tokens; where the character is."""
        at = self.at
        self.at += 1
        self.skip()
        return at

    def _comma(self, closing: str) -> int:
        """Up to the next item or the *closing* bracket; where the item or its comma ends."""
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
                raise self._error_at(self.at, "a string that does not end on its line, or has a bad escape in it")
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

r"""
Read many rows of a recording in a few calls of the parser: the strings of their messages, then the messages. No I/O.

A batch is either proved to be what its rows are one by one, or not used at all; then each row is read alone. Three
things have to be proved, because rows may be hostile:

* Each row is a head, ``"msg":``, one JSON string, and ``}``. The strings are parsed as one array with a newline before
  each comma. No string spans a newline, so if as many strings come out as rows went in, and nothing else, each row has
  exactly one: brackets would make another value, and a row without a string a syntax error.
* Each message is one value. The messages are parsed as one array too, with a mark between two of them that none of them
  contains. If every second element is a mark, and there are as many as were put in, what is between two marks is one
  value, and it is the message.
* No key is repeated, and nothing is nested too deeply, as `assay.ladder.syntax` proves it for one message: the values,
  written again, are the same text, or have as many keys. The array is put into others until the writer refuses values
  that are too deep.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from assay.base.limits import Limits
from assay.engine.budget import LARGE
from assay.ladder import syntax
from assay.records.recording.plain_rows import CLOSING, MESSAGE

LONGEST: Final = LARGE // 2
"""Maximal bytes of a row in a batch. A longer one is worth a call of its own, and a batch stays small."""

_MARK: Final = "\x7f"
"""The mark between messages. It is rare in text, and may be in a string as it is."""

_BETWEEN: Final = f',"{_MARK}",'

_ESCAPED: Final = "\\u007"
"""How an escaped mark begins."""

_OTHER: Final = b'"0"'
"""What stands for the string of a row that is not plain. It is read as the message 0, which no batch vouches for."""

_loads: Final = orjson.loads


class RowBatch(NamedTuple):
    """Rows that were read together."""

    heads: list[bytes]
    """The text of each row before its message; all of the row if it has none."""
    messages: list[str]
    """The text of each message."""
    values: list[Any]
    """The value in each message. One that is not an object says nothing: its row may be of another kind."""


class BatchReader:
    """Reads the messages of many rows at a time, nested at most some levels deep."""

    __slots__ = ("_after", "_before", "_depth", "_wraps")

    def __init__(self, depth: int) -> None:
        """*depth* is the maximal levels of a message, less than `syntax.DEEPEST_DUMP`."""
        self._depth, self._wraps = depth, syntax.DEEPEST_DUMP - 1 - depth
        self._before, self._after = "[" * (self._wraps + 1), "]" * (self._wraps + 1)

    @classmethod
    def of(cls, limits: Limits) -> "BatchReader | None":
        """Return a reader for messages within *limits*; None if their depth could not be proved."""
        return cls(limits.depth) if limits.depth < syntax.DEEPEST_DUMP else None

    def fits(self, limits: Limits) -> bool:
        """Return whether every message of a batch is within *limits*, as far as they are checked before judging."""
        return self._depth == limits.depth and min(limits.frame_bytes, limits.values) >= LONGEST

    def read(self, lines: Sequence[bytes], known: Mapping[bytes, object] | None = None) -> RowBatch | None:
        """
        Return the rows in *lines*, with their newlines; None if they have to be read one by one.

        The messages of rows whose head is () in *known* are not needed, and not parsed.
        """
        if max(map(len, lines)) > LONGEST:
            return None
        parts = [line.partition(MESSAGE) for line in lines]
        if known is not None:
            parts = [(head, _, b"" if known.get(head) == () else tail) for head, _, tail in parts]
        strings = [tail[:-2] if tail.endswith(CLOSING) else _OTHER for _, _, tail in parts]
        try:
            messages = _loads(b"[" + b"\n,".join(strings) + b"]")
        except orjson.JSONDecodeError:
            return None
        if len(messages) != len(lines):
            return None
        values = self._values(messages)
        return None if values is None else RowBatch([head for head, _, _ in parts], messages, values)

    def _values(self, messages: list[str]) -> list[Any] | None:
        """Return the value in each of *messages*; None if one of them has to be looked at alone."""
        try:
            plain = "".join(messages)
        except TypeError:
            # Something else than a string.
            return None
        # A line break in a frame is judged before it is parsed.
        if _MARK in plain or "\r" in plain:
            return None
        text = f"{self._before}{_BETWEEN.join(messages)}{self._after}".encode()
        try:
            values: list[Any] = _loads(text)
            again = orjson.dumps(values)
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            return None
        for _ in range(self._wraps):
            if len(values) != 1:
                return None
            values = values[0]
        marks = len(messages) - 1
        if len(values) != len(messages) + marks or values[1::2].count(_MARK) != marks:
            return None
        # The writer never escapes the mark, so text that is the same has it nowhere else.
        if again == text or (_ESCAPED not in plain and syntax.has_every_key(text, again)):
            return values[::2]
        return None

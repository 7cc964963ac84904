"""
Read many rows of a recording in a few calls of the parser: the text of their messages, then the messages. No I/O.

A batch is either proved to be what its rows are one by one, or not used at all; then each row is read alone. Three
things have to be proved, because rows may be hostile:

* Each row is a head, perhaps a time, ``"msg":``, one JSON string, and ``}``. What is between the quotes of all rows is
  put between two quotes, with a mark between the messages, and parsed as one string. A quote that is not escaped would
  end that string, and a backslash at the end of a row would escape a comma, so each row has exactly one string.
* Each message is one value. The text that comes out is parsed as one array, in which the marks are numbers. A mark is
  random, so no message contains it. If every second element is a mark, and there are as many as were put in, what is
  between two marks is one value, and it is the message.
* No key is repeated, and nothing is nested too deeply, as `assay.ladder.syntax` proves it for one message: the values,
  written again, are the same text, or have as many keys. The array is written inside so many others that the writer
  refuses values that are too deep.
"""

import re
from collections.abc import Mapping, Sequence
from secrets import randbelow
from typing import Any, Final, NamedTuple

import orjson

from assay.base.limits import Limits
from assay.engine.budget import LARGE
from assay.ladder import syntax
from assay.records.recording.plain_rows import CLOSING, DIGITS, MESSAGE, TIME, untimed
from assay.records.transcript import seconds_of

LONGEST: Final = LARGE
"""Maximal bytes of the rows in a batch. Larger rows are worth a call of their own."""

_OPENING: Final = MESSAGE + b'"'
"""What is before the text of a message."""

_STAMPED: Final = re.compile(rb"[1-9][0-9]{%d},%b" % (DIGITS - 1, _OPENING))
"""What is between the name of the time and the text of a message."""

_TIMED: Final = re.compile(b"(?:" + _STAMPED.pattern + b")*")
"""The same for any number of rows."""

_STAMP: Final = DIGITS + len(b"," + _OPENING)
"""Bytes of one of them, the first of which are the time."""

_OTHER: Final = b"0"
"""What stands for the text of a row that is not plain. It is read as the message 0, which no batch vouches for."""

_MARKS: Final = 9 * 10**17
"""How many marks there are, of 18 digits: a file that has one by chance, or by a guess, is not to be expected."""

_loads: Final = orjson.loads


def _is_timed(lines: Sequence[bytes]) -> bool:
    """Return whether the first row with a message has a time."""
    first = next((line for line in lines if _OPENING in line), b"")
    return untimed(first.partition(_OPENING)[0])[1] != b""


class RowBatch(NamedTuple):
    """Rows that were read together."""

    rows: list[tuple[bytes, bytes, bytes]]
    """Each row: its head, which is all of a row without a message, what separates them, and the rest."""
    values: list[Any]
    """The value in each message. One that is not an object says nothing: its row may be of another kind."""
    start: int
    """Where the text of a message begins in the rest of its row: it may be preceded by the time."""

    def message(self, rest: bytes) -> tuple[bytes, float | None]:
        """Return the message in the *rest* of a row for which the batch vouches, and its time, if it has one."""
        text: str = _loads(b'"' + rest[self.start : -2])
        return text.encode(), seconds_of(int(rest[:DIGITS])) if self.start else None


class BatchReader:
    """Reads the messages of many rows at a time, nested at most some levels deep."""

    __slots__ = ("_between", "_depth", "_innermost", "_mark", "_outermost", "_wraps")

    def __init__(self, depth: int) -> None:
        """*depth* is the maximal levels of a message, less than `syntax.DEEPEST_DUMP`."""
        self._depth, self._wraps = depth, syntax.DEEPEST_DUMP - 1 - depth
        self._innermost: list[Any] = []
        self._outermost = self._innermost
        for _ in range(self._wraps - 1):
            self._outermost = [self._outermost]
        self._mark = _MARKS // 9 + randbelow(_MARKS)
        self._between = f",{self._mark},".encode()

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
        start = _STAMP if _is_timed(lines) else 0
        opening = TIME if start else _OPENING
        rows = [line.partition(opening) for line in lines]
        if start and _TIMED.fullmatch(b"".join([rest[:_STAMP] for _, _, rest in rows])) is None:
            # Some have no message, or something else is called a time.
            rows = [row if _STAMPED.match(row[2]) else (line, b"", b"") for row, line in zip(rows, lines, strict=True)]
        if known is not None:
            rows = [(head, found, b"" if known.get(head) == () else rest) for head, found, rest in rows]
        text = None
        if lines[-1].endswith(b"\n") and not start:
            # Half of the work of the other way. A row with something else keeps its newline, which no string may have.
            text = self._text([rest.removesuffix(CLOSING) or _OTHER for _, _, rest in rows])
        if text is None:
            text = self._text([(rest.endswith(CLOSING) and rest[start:-3]) or _OTHER for _, _, rest in rows])
        # A line break in a frame is judged before it is parsed.
        if text is None or "\r" in text:
            return None
        values = self._values(text.encode(), len(lines))
        return None if values is None else RowBatch(rows, values, start)

    def _text(self, messages: list[bytes]) -> str | None:
        """Return the array of *messages*, each of which is the text of a JSON string; None if one of them is not."""
        # Copied once, with what is around them.
        messages[0] = b'"[' + messages[0]
        messages[-1] += b']"'
        text = self._between.join(messages)
        if len(text) > LONGEST:
            return None
        try:
            array: str = _loads(text)
        except orjson.JSONDecodeError:
            return None
        return array

    def _values(self, text: bytes, count: int) -> list[Any] | None:
        """Return the values of *count* messages in *text*; None if one of them has to be looked at alone."""
        try:
            values: list[Any] = _loads(text)
            again = self._written(values)
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            return None
        if len(values) != 2 * count - 1 or values[1::2].count(self._mark) != count - 1:
            return None
        # Compared where it is: most of the time there is no need to copy it out of the brackets.
        wraps = self._wraps
        is_same = len(again) == len(text) + 2 * wraps and again.startswith(text, wraps)
        return values[::2] if is_same or syntax.has_every_key(text, again[wraps : len(again) - wraps]) else None

    def _written(self, values: list[Any]) -> bytes:
        """Return *values* as text, in brackets. Raises `orjson.JSONEncodeError` if one is nested too deeply."""
        if not self._wraps:
            return orjson.dumps(values)
        self._innermost.append(values)
        try:
            return orjson.dumps(self._outermost)
        finally:
            self._innermost.clear()

r"""
Read and judge recorded conversations: one JSON object a line, with the sender and the raw frame. No clock.

    {"dir": "c2s", "msg": "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"}

`dir` is c2s or s2c (or `party`: client or server). `msg` is the line as it was seen, without its newline: not
necessarily JSON. An object instead of a string stands for its compact JSON. Bytes that are not UTF-8 are recorded as
`base64` in place of `msg`. `time` is the time of the message, in microseconds since 1970. A recording of `assay guard`
has more, see `assay.records.recording.rows`.
"""

import re
from base64 import b64decode
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from assay.base.verdict import Party, Verdict, Violation
from assay.ladder import syntax
from assay.records.line_blocks import numbered_lines

if TYPE_CHECKING:
    from assay.core.conversation import Conversation

PARTIES = {"c2s": Party.CLIENT, "s2c": Party.SERVER, "client": Party.CLIENT, "server": Party.SERVER}

ROW_DEPTH = 200
"""Maximal levels of a row. It contains a message one level down, whose own depth is judged later."""

_TIMES = range(10**15, 10**16)
"""Times in microseconds since 1970: those of 16 digits, from 2001 to 2286."""


class TranscriptError(ValueError):
    """A file is not a recorded conversation."""


class TranscriptRow(NamedTuple):
    """One message or event of a recording."""

    line: int
    members: dict[str, Any]
    """The members, not yet checked. Empty for a last line that was cut off. `msg` may also be the bytes of a frame."""
    lacks: str = ""
    """Why the message is not there in full and cannot be judged; "" if it can."""
    blind: Collection[str] = ()
    """The rules that this row cannot prove, because of how it was recorded; their findings are dropped."""
    mask: re.Pattern[str] | None = None
    """The text that the recorder put in place of secrets; findings about such values are dropped."""
    time: float | None = None
    """The time in seconds since 1970; None if the recording does not have it."""


class Judged(NamedTuple):
    """A verdict and its place in a recording."""

    line: int
    """The line of the recording; 0 for a request that was still open at the end."""
    verdict: Verdict
    conversation: int = 0
    """The number of the conversation; 0 if the recording has only one."""
    server: str = ""
    """The name of the guarded server, if the recording has it."""
    lacks: str = ""
    """Why the verdict is the one that the guard recorded, and not a new one; "" for a message that was judged."""
    time: float | None = None
    """The time of the message in seconds since 1970; None if the recording does not have it."""
    recording: int = 0
    """The line with which its recording begins, as a file may have several, with the same numbers; 0 without one."""


class Meeting(NamedTuple):
    """The first message of a conversation that is judged. It comes before the verdict on that message."""

    conversation: int
    server: str


def read(lines: Iterable[bytes]) -> Iterator[TranscriptRow]:
    """Yield the rows of a recording, in order. Raises `TranscriptError` for a line that is not a JSON object."""
    for number, line in numbered_lines(lines):
        members = _members_of(number, line)
        time = members.get("time")
        yield TranscriptRow(number, members, time=time / 1e6 if type(time) is int and time in _TIMES else None)


def judge(lines: Iterable[bytes], conversation: "Conversation") -> Iterator[Judged]:
    """Yield a verdict on each frame of a recorded conversation, then on each request without a response."""
    from assay.records.recording.judging import Judging  # noqa: PLC0415 - it needs this module

    return Judging(lambda _: conversation).judge(lines)


def _members_of(number: int, line: bytes) -> dict[str, Any]:
    """Return the members of a row; empty for a last line that was cut off. Raises `TranscriptError`."""
    # As strictly as a message: a duplicate key would be dropped silently, and with it the message to judge.
    row = syntax.read(line, ROW_DEPTH)
    if row and isinstance(row, dict):
        return row
    if number > 1 and not line.endswith(b"\n"):
        # The recorder was killed. The first line must be complete: otherwise any file would be a recording.
        return {}
    if isinstance(row, Violation):
        raise TranscriptError(f"line {number}: expected {row.expected}, found {row.found} [{row.rule}]")
    raise TranscriptError(f"line {number}: expected an object with dir and msg")


def party_of(row: TranscriptRow) -> Party:
    """Return the sender. Raises `TranscriptError`."""
    members = row.members
    party = PARTIES.get(str(members.get("dir", members.get("party"))))
    if party is None:
        raise TranscriptError(f'line {row.line}: expected "dir": "c2s" or "s2c"')
    return party


def conversation_of(members: dict[str, Any]) -> int:
    """Return the number of the conversation that a row belongs to; 0 for a row without one."""
    number = members.get("conversation")
    return number if type(number) is int else 0


def frame_of(row: TranscriptRow) -> bytes:
    """Return the frame. Raises `TranscriptError`."""
    members = row.members
    if "base64" in members:
        try:
            return b64decode(members["base64"], validate=True)
        except (TypeError, ValueError):
            raise TranscriptError(f"line {row.line}: expected base64 of the frame") from None
    if "msg" not in members:
        raise TranscriptError(f'line {row.line}: expected "msg", the frame')
    message = members["msg"]
    if isinstance(message, bytes):
        return message
    return message.encode() if isinstance(message, str) else syntax.write(message)

r"""
Recorded conversations: one JSON object a line, who spoke and the raw frame. Reading and judging them; no clock.

    {"dir": "c2s", "msg": "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"}

`dir` is c2s or s2c (or `party`: client or server). `msg` is the line as it was seen, without its newline: not
necessarily JSON. An object instead of a string stands for its compact spelling. Bytes that are no UTF-8 are recorded as
`base64` in place of `msg`.
"""

from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from assay.conversation import Conversation
from assay.ladder import syntax
from assay.verdict import Party, Verdict, Violation

_PARTIES = {"c2s": Party.CLIENT, "s2c": Party.SERVER, "client": Party.CLIENT, "server": Party.SERVER}

# A row holds a message one level down; what the message itself may have is for its verdict to say.
_ROW_DEPTH = 200


class TranscriptError(ValueError):
    """A file is no recorded conversation."""


class Spoken(NamedTuple):
    """One frame of a recording."""

    line: int
    party: Party
    frame: bytes


class Judged(NamedTuple):
    """A verdict, and the line of the recording that it is about; 0 for what was still open at the end."""

    line: int
    verdict: Verdict


def read(lines: Iterable[bytes]) -> Iterator[Spoken]:
    """The frames of a recording, in order; raises `TranscriptError` for a line that is none."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield Spoken(number, *_spoken(number, line))


def judge(lines: Iterable[bytes], conversation: Conversation) -> Iterator[Judged]:
    """A verdict on each frame of a recording, then on each request that was never answered."""
    for spoken in read(lines):
        yield Judged(spoken.line, conversation.hear(spoken.party, spoken.frame))
    for party in (Party.SERVER, Party.CLIENT):
        for left in conversation.end(party):
            yield Judged(0, left)


def _spoken(number: int, line: bytes) -> tuple[Party, bytes]:
    # As strictly as a message: a repeated key would be lost without a word, and with it what was to be judged.
    row = syntax.read(line, _ROW_DEPTH)
    if isinstance(row, Violation):
        raise TranscriptError(f"line {number}: expected {row.expected}, found {row.found} [{row.rule}]")
    if not isinstance(row, dict):
        raise TranscriptError(f"line {number}: expected an object with dir and msg")
    party = _PARTIES.get(str(row.get("dir", row.get("party"))))
    if party is None:
        journal = "; this is a journal, which is for assay replay or assay journal show" if "traceId" in row else ""
        raise TranscriptError(f'line {number}: expected "dir": "c2s" or "s2c"{journal}')
    return party, _frame(number, row)


def _frame(number: int, row: dict[str, Any]) -> bytes:
    if "base64" in row:
        try:
            return b64decode(row["base64"], validate=True)
        except (TypeError, ValueError):
            raise TranscriptError(f"line {number}: expected base64 of the frame") from None
    if "msg" not in row:
        raise TranscriptError(f'line {number}: expected "msg", the frame')
    message = row["msg"]
    return message.encode() if isinstance(message, str) else syntax.write(message)

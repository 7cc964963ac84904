"""
Lines with messages: plain ones, and JSON objects with a message in a member, which ``--map`` names.

Plain lines may be of both sides, or the output of one side as `tee` writes it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from assay.model.verdict import Party
from assay.records.importers.conversations import Conversations
from assay.records.importers.importer import Head, ImportOptions, loosely, numbered, seconds
from assay.records.importers.json_documents import members_of, value_of
from assay.records.rows import TranscriptError, TranscriptRow
from assay.schema.wording import shown

_VALUES: Final = frozenset({"id", "method", "result", "error"})

_FIELDS: Final = ("msg", "dir", "c2s", "s2c", "ts", "conversation")
"""The names that ``--map`` takes: message, direction, its two values, time, and what differs between conversations."""

_GUESSES: Final = {
    Party.CLIENT: {"c2s", "client", "clienttoserver", "clienttomcp", "fromclient", "toserver"},
    Party.SERVER: {"s2c", "server", "servertoclient", "mcptoclient", "fromserver", "toclient"},
}
"""
Values that mean a direction in every program, however the words are joined, such as ``client->server``.

What `in`, `out`, `sent` and `received` mean depends on the recorder.
"""

_NOT_JSON: Final = "the line is not JSON"


def is_plain(head: Head) -> bool:
    """Return whether the first JSON object is a message itself."""
    return "jsonrpc" in head.first and not _VALUES.isdisjoint(head.first)


def read_plain(lines: Iterable[bytes], options: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield a row for each line: what is not JSON is stray output of the server."""
    conversations = Conversations(is_one_sided=options.party is not None)
    for number, line, _ in numbered(lines):
        yield from conversations.rows(number, options.party or conversations.sender(loosely(line)), line)


def mapping_of(text: str) -> dict[str, str]:
    """Return the names in the value of ``--map``: ``dir=direction,msg=payload``. Raises `ValueError`."""
    found: dict[str, str] = {}
    for pair in text.split(","):
        name, is_given, value = pair.partition("=")
        if name not in _FIELDS or not is_given or not value:
            raise ValueError(f"{pair}: expected NAME=VALUE, with one of the names {', '.join(_FIELDS)}")
        found[name] = value
    if "msg" not in found:
        raise ValueError("expected msg=NAME, the member with the message")
    return found


def read_mapped(lines: Iterable[bytes], options: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of the lines that have one."""
    conversations, fields = Conversations(is_one_sided=options.party is not None), options.fields
    for number, text, is_ended in numbered(lines):
        if not text.startswith(b"{"):
            # A log of the program, not a record.
            continue
        is_broken = loosely(text) is None
        if is_broken and not is_ended and number > 1:
            # The recorder was killed, or still writes.
            yield TranscriptRow(number, {})
            continue
        members = members_of(text)
        frame = _frame(_at(members, fields.get("msg", "msg")))
        key = str(_value(members, fields.get("conversation")) or "")
        time = seconds(_value(members, fields.get("ts")))
        if frame is None and is_broken:
            yield from conversations.rows(number, Party.SERVER, b"", key=key, lacks=_NOT_JSON, time=time)
        elif frame is not None and frame != b"null":
            party = options.party or _party(number, members, fields) or conversations.sender(loosely(frame), key)
            yield from conversations.rows(number, party, frame, key=key, time=time)


def _party(number: int, members: Mapping[str, bytes], fields: Mapping[str, str]) -> Party | None:
    """Return the sender by the direction; None without a member for it."""
    if "dir" not in fields:
        return None
    found = _value(members, fields["dir"])
    parties = {"c2s": Party.CLIENT, "s2c": Party.SERVER}
    named = {fields[name]: party for name, party in parties.items() if name in fields}
    if str(found) in named:
        return named[str(found)]
    if len(named) == 1:
        return next(iter(named.values())).other
    joined = re.sub(r"[ _-]", "", str(found).lower().replace("->", "to"))
    for party, guesses in _GUESSES.items():
        if joined in guesses:
            return party
    raise TranscriptError(f"line {number}: unknown direction {shown(found)}; say which one it is: --map c2s=VALUE")


def _at(members: Mapping[str, bytes], path: str) -> bytes | None:
    """Return the JSON at *path*, names of members with dots between; None without it."""
    name, _, rest = path.partition(".")
    inner = members.get(name, b"")
    if path in members or not rest:
        return members.get(path)
    return _at(members_of(inner), rest) if inner.startswith(b"{") else None


def _value(members: Mapping[str, bytes], path: str | None) -> Any:
    """Return the value at *path*: in a line that is not JSON, a member may be text."""
    found = _at(members, path) if path else None
    value = None if found is None else value_of(found)
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _frame(text: bytes | None) -> bytes | None:
    """Return the message of a member, to the byte: JSON as it is there, or the text in a string."""
    if text is None or not text.startswith(b'"'):
        return text
    try:
        return str(orjson.loads(text)).encode()
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        # A string that is not UTF-8, or has half of a surrogate pair: its text as it is written.
        return text[1:-1]

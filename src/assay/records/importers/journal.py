"""
A journal as a recording: the row of each record, with the guard's own verdict. No I/O.

Each connection is a conversation of its own. A message is judged again if the journal has its payload. Redacted
messages are judged, too, because later ones depend on them, but the verdict is the recorded one.
"""

import re
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final

from assay.model.limits import REQUESTS
from assay.model.verdict import Party
from assay.records.judging import MOST_CONVERSATIONS
from assay.records.lines import numbered_lines
from assay.records.record import ID_LENGTH, Event, Record, read_line, seconds_of
from assay.records.rows import DIRECTIONS, TranscriptRow
from assay.rules import RULES
from assay.spec.revisions import handshake, is_known

NOT_A_RECORD: Final = "not a journal record"

_BEGINNING: Final = re.compile(rb'\s*\{\s*"ts":')
"""How every line of a journal begins. Records of other programs may begin with a time, too."""

_INDEX: Final = re.compile(r"^/?[^/]*")
"""The first part of a place."""

_LIST: Final = "tools/list"
_TOO_EARLY: Final = "protocol/before-initialize"


def is_journal(head: bytes) -> bool:
    """Return whether a file that begins with *head* is a journal; its first line may be cut off."""
    if _BEGINNING.match(head) is None:
        return False
    line, newline, _ = head.lstrip().partition(b"\n")
    return b'"metadata"' in line or read_line(line) is not None or (not newline and b'"requestId"' in line)


def read(lines: Iterable[bytes]) -> Iterator[TranscriptRow]:
    """Yield the rows of a journal."""
    rows = RecordRows(is_whole=True)
    yield TranscriptRow(1, {"event": "recording"})
    for number, line in numbered_lines(lines):
        found = read_line(line)
        if isinstance(found, Event):
            continue
        if found is None:
            yield TranscriptRow(number, {"event": "unread", "why": NOT_A_RECORD})
            continue
        time = seconds_of(found.ts, 0.0)
        for members in rows.add(found):
            yield TranscriptRow(number, members, time=time if time > 0 else None, record=found)
    yield TranscriptRow(0, {"event": "close"})


class _Opened:
    """A conversation that has begun."""

    __slots__ = ("has_gap", "is_listed", "lacks_list", "number", "omits", "restarts")

    def __init__(self, number: int, restarts: int) -> None:
        self.number, self.restarts = number, restarts
        self.has_gap = False
        """Whether records of it are left out, and its rows say so."""
        self.omits = False
        """Whether a message was too large to record: its request or answer cannot be judged."""
        self.is_listed = self.lacks_list = False
        """Whether its list of tools is among the rows, and whether one came without its payload."""


class RecordRows:
    """The rows of a recording, made from records one after the other. Records may be left out between them. Bounded."""

    def __init__(self, *, is_whole: bool = False) -> None:
        """With *is_whole* the first record is the first one of its run."""
        self._is_whole = is_whole
        self._opened: dict[Hashable, _Opened] = {}
        self._count = 0
        self._owners: dict[Hashable, _Opened] = {}
        """The first conversation of each server: without sessions all share its tools."""
        self._passed_over: set[Hashable] = set()

    def pass_over(self, record: Record) -> None:
        """Note that *record* is left out."""
        self._passed_over.add(conversation_key(record))

    def add(self, record: Record) -> Iterator[dict[str, Any]]:
        """Yield the rows of *record*."""
        metadata, key = record.metadata, conversation_key(record)
        one = self._opened.get(key)
        if one is None:
            # The only conversation over STDIO has no number.
            self._count += bool(key[1] or self._opened)
            if len(self._opened) >= MOST_CONVERSATIONS:
                del self._opened[next(iter(self._opened))]
            one = self._opened[key] = _Opened(self._count, metadata.restarts)
            yield self._opening(record, one)
        if key in self._passed_over and not one.has_gap:
            one.has_gap = True
            yield {"event": "gap", "conversation": one.number}
        if metadata.restarts != one.restarts:
            one.restarts = metadata.restarts
            yield {"event": "restart", "conversation": one.number}
        if metadata.kind == "missing":
            ident, error = metadata.id, record.error
            if type(ident) is int or (isinstance(ident, str) and len(ident) < ID_LENGTH):
                code = "TIMEOUT" if error is not None and error.code == "TIMEOUT" else "UPSTREAM_FAILURE"
                why = record.findings[0].found.partition(": ")[2] if record.findings else ""
                row = {
                    "event": "unanswered",
                    "conversation": one.number,
                    "dir": DIRECTIONS[metadata.party],
                    "id": ident,
                }
                yield {**row, "code": code, "why": why, **({} if record.findings else {"excused": True})}
        else:
            yield {"dir": DIRECTIONS[metadata.party], "conversation": one.number, **self._message(record, one)}
        if is_stateless(record) and record.is_answer and metadata.party is Party.SERVER:
            # A request without a session is a conversation of its own, and this was its end.
            del self._opened[key]
            yield {"event": "release", "conversation": one.number}

    def _opening(self, record: Record, one: _Opened) -> dict[str, Any]:
        metadata, stateless, revision = record.metadata, is_stateless(record), record.metadata.revision
        # Without its handshake a conversation does not show its revision. Over STDIO a run has it, if it is whole.
        is_late = record.method != "initialize" and all(each.rule != _TOO_EARLY for each in record.findings)
        is_late = is_late and is_known(revision) and not (self._is_whole and record.transport == "stdio")
        # Only a guard writes a mode; its server may have any name.
        is_assets = metadata.server == "assets" and not metadata.mode
        row: dict[str, Any] = {
            "event": "open",
            "conversation": one.number,
            "server": metadata.server,
            # Lists of tools are those of the same server: without a name it is known by its route.
            "place": metadata.server or record.route,
            "mode": metadata.mode or "enforce",
            "revision": revision if is_late and revision is not None and (stateless or handshake(revision)) else None,
            "lines": record.transport == "stdio",
        }
        size = metadata.frame_bytes or (REQUESTS.frame_bytes if is_assets else 0)
        if size:
            row["frameBytes"] = size
        if is_assets:
            row["assets"] = True
        owner = self._owner(record, one)
        if owner is not one:
            row["tools"] = owner.number
        return row

    def _owner(self, record: Record, one: _Opened) -> _Opened:
        """Return the conversation whose list of tools *record* is judged by: without a session, that of its server."""
        if not is_stateless(record):
            return one
        if len(self._owners) >= MOST_CONVERSATIONS:
            self._owners.clear()
        return self._owners.setdefault(place_key(record), one)

    def _message(self, record: Record, one: _Opened) -> dict[str, Any]:
        """Return the members of a row that has the message, or says why it has not."""
        metadata, findings = record.metadata, record.findings
        # What the guard has done is repeated.
        actions = [
            {"rule": each.rule, "at": each.at, "expected": each.expected, "found": each.found, "action": each.done}
            for each in findings
        ]
        rules = {each.rule for each in findings}
        is_list, owner = metadata.kind == "result" and record.method == _LIST, self._owner(record, one)
        if metadata.frame is None and metadata.frame_base64 is None:
            owner.lacks_list = owner.lacks_list or is_list
            row: dict[str, Any] = {"kind": metadata.kind, "id": metadata.id}
            # A verdict without its message is not evidence: such a message is not judged.
            if not metadata.omitted:
                return {**row, "unrecorded": True}
            one.omits = True
            return {**row, "omitted": True, "findings": actions}
        if any(rule in RULES and RULES[rule].code == "HEADER_MISMATCH" for rule in rules):
            # The headers are not in the journal. The message was refused because of them, and had no effect.
            return {"kind": metadata.kind, "id": metadata.id, "blocked": True, "findings": actions}
        row = {"base64": metadata.frame_base64} if metadata.frame is None else {"msg": metadata.frame}
        if "guard/failure" in rules:
            return {**row, "failed": next(each.found for each in findings if each.rule == "guard/failure")}
        # Whether the list of tools by which the guard judged it is left out, or has no payload.
        is_unlisted = not owner.is_listed and record.method != _LIST and (owner.lacks_list or self._passed_over)
        if metadata.redacted:
            row |= {"redacted": True, "findings": actions}
        elif is_unlisted and any(rule.startswith("contract/") for rule in rules):
            row |= {"partial": True, "findings": actions}
        elif any(rule.startswith("lock/") for rule in rules):
            row |= {"locked": True, "findings": actions}
        elif one.has_gap or one.omits:
            row |= {"actions": actions, "findings": actions}
        elif actions:
            row["actions"] = actions
        if metadata.kind == "batch" and actions:
            # A policy judges each message of a batch, and places in it do not start with its index.
            row["actions"] = actions + [{**each, "at": _INDEX.sub("", each["at"])} for each in actions]
        if record.transport == "http":
            row["http"] = {"revision": metadata.revision} if metadata.party is Party.CLIENT else {}
        owner.is_listed = owner.is_listed or is_list
        return row


def place_key(record: Record) -> Hashable:
    """Return the server of *record*: without sessions, all of its requests share its tools."""
    return record.transport, record.metadata.server, record.route


def conversation_key(record: Record) -> tuple[Hashable, str]:
    """Return the conversation of *record*: its server, and its session; over HTTP without one, the request."""
    session = record.metadata.session or (record.request_id if record.transport == "http" else "")
    return place_key(record), session


def is_stateless(record: Record) -> bool:
    """Whether *record* is of a request without a session."""
    return record.transport == "http" and not record.metadata.session

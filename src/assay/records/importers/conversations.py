"""
Tell the conversations of a file apart, and create the rows of their messages. No I/O.

A log has several runs of a server, whose ids start again. Two processes may even write into one log under one name.
"""

import re
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal, NamedTuple

import orjson

from assay.judge.partial_frame import outline
from assay.model.verdict import Party
from assay.records.rows import DIRECTIONS, TranscriptRow
from assay.spec.methods import methods
from assay.spec.revisions import REVISIONS

Id = str | int

_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER

_MOST_OPEN: Final = 10_000
"""Open requests of a run to remember, as many as a guard has at most."""

_LIVE: Final = 8
"""Runs of one server that may still go on. More processes than that rarely share one log."""

_MOST_SERVERS: Final = 10_000
"""Servers of one file to remember, as many as conversations are judged at a time."""


class Shape(NamedTuple):
    """What decides to which conversation a message belongs."""

    kind: Literal["request", "notification", "answer", "other"] = "other"
    id: Id | None = None
    """The id; a request always has one."""
    method: str = ""


_UNKNOWN: Final = Shape()


def shape_of(frame: bytes) -> Shape:
    """Return the shape of a message, also of one that is cut in the middle."""
    try:
        message = orjson.loads(frame)
    except orjson.JSONDecodeError:
        known = outline(frame, frame)
        if known.asks:
            return Shape("request" if known.id is not None else "notification", known.id, known.method or "")
        return Shape("answer", known.id) if known.answers else Shape()
    return shape_of_value(message)


def shape_of_value(message: Any) -> Shape:
    """Return the shape of a message that is parsed."""
    if not isinstance(message, dict):
        return Shape()
    ident, method = message.get("id"), message.get("method")
    known = ident if isinstance(ident, str | int) and not isinstance(ident, bool) else None
    if isinstance(method, str):
        return Shape("notification" if known is None else "request", known, method)
    return Shape("answer", known) if "result" in message or "error" in message else Shape()


@cache
def method_senders() -> Mapping[str, frozenset[Party]]:
    """Return the parties that may send each method, in any revision."""
    found: dict[str, set[Party]] = {}
    for revision in REVISIONS:
        for name, method in methods(revision).items():
            found.setdefault(name, set()).update(map(Party, method.senders))
    return {name: frozenset(parties) for name, parties in found.items()}


class _Run:
    """One run of a server: the requests that are open in it, and the last ids."""

    __slots__ = ("last", "number", "open", "waits")

    def __init__(self, number: int) -> None:
        self.number = number
        self.open: OrderedDict[tuple[Party, Id | None], int] = OrderedDict()
        """The open requests by their party and id, with the number of the message."""
        self.last: dict[Party, Id | None] = {_CLIENT: None, _SERVER: None}
        self.waits = False
        """Whether the handshake still lacks notifications/initialized."""

    def hear(self, party: Party, shape: Shape, now: int) -> None:
        """Follow a message of this run."""
        if shape.kind == "request":
            self.open[party, shape.id] = now
            if len(self.open) > _MOST_OPEN:
                self.open.popitem(last=False)
            self.last[party] = shape.id
            self.waits = self.waits or shape.method == "initialize"
        elif shape.kind == "answer":
            self.open.pop((party.other, shape.id), None)
        elif shape.method == "notifications/initialized":
            self.waits = False

    def expects(self, party: Party, ident: Id | None) -> bool:
        """Return whether *ident* is the next one after the last request of *party*."""
        last = self.last[party]
        return isinstance(last, int) and ident == last + 1


def _continued(runs: list[_Run], party: Party, shape: Shape) -> _Run | None:
    """Return the one of *runs*, the most recently active last, that a message belongs to; None for a new run."""
    if not runs:
        return None
    latest, ident = runs[-1], shape.id
    if shape.kind == "request":
        last = latest.last[party]
        if shape.method == "initialize" and party is _CLIENT:
            # Ids that go on belong to a client that repeats its handshake, which is a finding.
            again = isinstance(last, int) and isinstance(ident, int) and ident > last
            return latest if again or last is None else None
        newest = runs[::-1]
        following = (each for each in newest if each.expects(party, ident))
        free = (each for each in newest if (party, ident) not in each.open)
        return next(following, None) or next(free, latest)
    if shape.kind == "answer":
        asked = (party.other, ident)
        return min((each for each in runs if asked in each.open), key=lambda each: each.open[asked], default=latest)
    if shape.method == "notifications/initialized":
        return next((each for each in runs if each.waits), latest)
    return latest


class Conversations:
    """Numbers the conversations of a log from 1 on, and creates their rows."""

    def __init__(self, *, is_one_sided: bool = False) -> None:
        """In a one-sided file each conversation has a gap after its start."""
        self._is_one_sided = is_one_sided
        self._runs: OrderedDict[str, list[_Run]] = OrderedDict()
        """The runs of each server that may still go on, the most recently active last."""
        self._count = self._now = 0

    def rows(
        self,
        line: int,
        party: Party,
        frame: bytes,
        *,
        server: str = "",
        key: str = "",
        shape: Shape | None = None,
        **more: Any,
    ) -> Iterator[TranscriptRow]:
        """
        Yield the row of a message, after the row that opens its conversation if it is the first one there.

        *server* or *key* tells apart what never shares a conversation. *shape* is for a *frame* that does not show it,
        and *more* is as in `row`.
        """
        shape = shape or shape_of(frame)
        if (server or key) not in self._runs and len(self._runs) >= _MOST_SERVERS:
            self._runs.popitem(last=False)
        runs = self._runs.setdefault(server or key, [])
        run = _continued(runs, party, shape)
        if run is not None:
            runs.remove(run)
        else:
            self._count += 1
            run = _Run(self._count)
            yield opened(line, run.number, server)
            if self._is_one_sided:
                yield TranscriptRow(line, {"event": "gap", "conversation": run.number})
        runs.append(run)
        del runs[:-_LIVE]
        self._now += 1
        run.hear(party, shape, self._now)
        yield row(line, run.number, party, frame, shape=shape, **more)

    def sender(self, message: Any, key: str = "") -> Party:
        """Return the party that most likely sent *message*: by its method, or by the open requests."""
        if isinstance(message, list) and message:
            message = message[0]
        shape, runs = shape_of_value(message), self._runs.get(key, [])
        senders = method_senders().get(shape.method, frozenset())
        if len(senders) == 1:
            return next(iter(senders))
        if shape.kind == "request":
            # The ids of a client differ, and usually rise.
            last = runs[-1].last[_CLIENT] if runs else None
            falls = isinstance(last, int) and isinstance(shape.id, int) and shape.id <= last
            return _SERVER if falls or _is_open(runs, _CLIENT, shape.id) else _CLIENT
        ident = shape.id
        is_cancelled = shape.method == "notifications/cancelled"
        if is_cancelled:
            params = message.get("params")
            ident = params.get("requestId") if isinstance(params, dict) else None
        by_server = _is_open(runs, _SERVER, ident) and not _is_open(runs, _CLIENT, ident)
        # Who has asked cancels, and the other one answers. Without a request clients cancel, and servers do the rest.
        return _SERVER if by_server == is_cancelled else _CLIENT


def _is_open(runs: list[_Run], party: Party, ident: Any) -> bool:
    """Return whether *ident* is that of an open request of *party*."""
    return isinstance(ident, str | int) and any((party, ident) in run.open for run in runs)


def opened(line: int, number: int, server: str, **more: Any) -> TranscriptRow:
    """Return the row that opens a conversation."""
    return TranscriptRow(line, {"event": "open", "conversation": number, "server": server, **more})


def row(
    line: int,
    number: int,
    party: Party,
    frame: bytes,
    *,
    shape: Shape = _UNKNOWN,
    lacks: str = "",
    time: float | None = None,
    http: Mapping[str, Any] | None = None,
    blind: Collection[str] = (),
    mask: re.Pattern[str] | None = None,
) -> TranscriptRow:
    """Return the row of a message. One that *lacks* something cannot be judged, and only its *shape* counts."""
    members: dict[str, Any] = {"dir": DIRECTIONS[party], "conversation": number}
    if lacks:
        members["kind"] = {"answer": "result", "other": "unreadable"}.get(shape.kind, shape.kind)
        members |= {} if shape.id is None else {"id": shape.id}
        return TranscriptRow(line, members, lacks, time=time)
    members |= {"msg": frame} if http is None else {"msg": frame, "http": http}
    return TranscriptRow(line, members, "", blind, mask, time)

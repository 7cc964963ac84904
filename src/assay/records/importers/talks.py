"""
Tell the conversations of a file apart, and create their rows. No I/O.

A log has several runs of a server, whose ids start again. Two processes may even write into one log under one name.
"""

import re
from collections import OrderedDict
from collections.abc import Collection, Iterator
from typing import Any, Final, Literal, NamedTuple

import orjson

from assay.base.verdict import Party
from assay.ladder.partial_frame import outline
from assay.records.rows import DIRECTIONS, TranscriptRow

Id = str | int

_MOST_OPEN: Final = 10_000
"""Open requests of a run to remember, as many as a guard has at most."""

_LIVE: Final = 8
"""Runs of one server that may still go on. More processes than that rarely share one log."""

_MOST_SERVERS: Final = 10_000
"""Servers or sessions of one file to remember, as many as conversations are judged at a time."""


class Shape(NamedTuple):
    """What decides to which conversation a message belongs."""

    kind: Literal["request", "notification", "answer", "other"] = "other"
    id: Id | None = None
    method: str = ""

    @property
    def left_out(self) -> dict[str, Any]:
        """The members of a row for a message that is left out."""
        kind = {"answer": "result", "other": "unreadable"}.get(self.kind, self.kind)
        return {"kind": kind} if self.id is None else {"kind": kind, "id": self.id}


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


class _Run:
    """One run of a server: the requests that are open in it, and the last ids."""

    __slots__ = ("last", "number", "open", "waits")

    def __init__(self, number: int) -> None:
        self.number = number
        self.open: dict[Party, OrderedDict[Id, int]] = {Party.CLIENT: OrderedDict(), Party.SERVER: OrderedDict()}
        """The open requests of each party, with the time at which they were asked."""
        self.last: dict[Party, Id | None] = {Party.CLIENT: None, Party.SERVER: None}
        self.waits = False
        """Whether the handshake still lacks notifications/initialized."""

    def hear(self, party: Party, shape: Shape, now: int) -> None:
        """Follow a message of this run."""
        if shape.kind == "request" and shape.id is not None:
            asked = self.open[party]
            asked[shape.id] = now
            if len(asked) > _MOST_OPEN:
                asked.popitem(last=False)
            self.last[party] = shape.id
            self.waits = self.waits or shape.method == "initialize"
        elif shape.kind == "answer" and shape.id is not None:
            self.open[party.other].pop(shape.id, None)
        elif shape.method == "notifications/initialized":
            self.waits = False

    def expects(self, party: Party, ident: Id) -> bool:
        """Return whether *ident* is the next one after the last request of *party*."""
        last = self.last[party]
        return isinstance(last, int) and ident == last + 1


class _Runs:
    """The runs of one server in a file, the most recently active last."""

    def __init__(self) -> None:
        self.live: list[_Run] = []
        self._now = 0

    def place(self, party: Party, shape: Shape, fresh: int) -> _Run:
        """Return the run of a message; a new one has the number *fresh*."""
        self._now += 1
        run = self._find(party, shape)
        if run is None:
            run = _Run(fresh)
        else:
            self.live.remove(run)
        self.live.append(run)
        del self.live[:-_LIVE]
        run.hear(party, shape, self._now)
        return run

    def _find(self, party: Party, shape: Shape) -> _Run | None:
        if not self.live:
            return None
        latest = self.live[-1]
        if shape.method == "initialize" and shape.kind == "request" and party is Party.CLIENT:
            last = latest.last[party]
            # Ids that go on belong to a client that repeats its handshake, which is a finding.
            again = isinstance(last, int) and isinstance(shape.id, int) and shape.id > last
            return latest if again or latest.last[party] is None else None
        if shape.kind == "answer" and shape.id is not None:
            waiting = [each for each in self.live if shape.id in each.open[party.other]]
            ident = shape.id
            return min(waiting, key=lambda each: each.open[party.other][ident], default=latest)
        if shape.kind == "request" and shape.id is not None:
            return self._asked(party, shape.id)
        if shape.method == "notifications/initialized":
            return next((each for each in self.live if each.waits), latest)
        return latest

    def _asked(self, party: Party, ident: Id) -> _Run:
        """Return the run whose ids continue with *ident*; otherwise the latest one that does not have it open."""
        newest = list(reversed(self.live))
        following = (each for each in newest if each.expects(party, ident))
        free = (each for each in newest if ident not in each.open[party])
        return next(following, None) or next(free, newest[0])


class Talks:
    """Numbers the conversations of a file from 1 on, and creates their rows."""

    def __init__(self) -> None:
        self.count = 0
        """The number of conversations so far, which is the number of the latest one."""
        self._runs: OrderedDict[str, _Runs] = OrderedDict()

    def fresh(self) -> int:
        """Return the number of a new conversation."""
        self.count += 1
        return self.count

    def rows(
        self,
        line: int,
        party: Party,
        frame: bytes,
        *,
        server: str = "",
        key: str = "",
        lacks: str = "",
        shape: Shape | None = None,
        **more: Any,
    ) -> Iterator[TranscriptRow]:
        """
        Yield the row of a message, after the row that opens its conversation if it is the first one there.

        *server* and *key* tell apart what never shares a conversation. With *lacks* the message is left out, and only
        its *shape* counts. *more* is as in `row`.
        """
        shape = shape or shape_of(frame)
        before = self.count
        run = self._of(f"{server}\0{key}").place(party, shape, self.count + 1)
        self.count = max(self.count, run.number)
        if self.count > before:
            yield opened(line, run.number, server)
        if lacks:
            yield left_out(line, run.number, party, shape, lacks, more.get("time"))
        else:
            yield row(line, run.number, party, frame, **more)

    def is_open(self, party: Party, ident: Any, *, server: str = "", key: str = "") -> bool:
        """Return whether *ident* is that of an open request of *party*, in a run that may still go on."""
        return isinstance(ident, str | int) and any(ident in run.open[party] for run in self._live(server, key))

    def last(self, party: Party, *, server: str = "", key: str = "") -> Id | None:
        """Return the id of the last request of *party* in the latest run."""
        live = self._live(server, key)
        return live[-1].last[party] if live else None

    def _live(self, server: str, key: str) -> list[_Run]:
        runs = self._runs.get(f"{server}\0{key}")
        return runs.live if runs is not None else []

    def _of(self, key: str) -> _Runs:
        if key not in self._runs and len(self._runs) >= _MOST_SERVERS:
            self._runs.popitem(last=False)
        return self._runs.setdefault(key, _Runs())


def opened(line: int, number: int, server: str, **more: Any) -> TranscriptRow:
    """Return the row that opens a conversation."""
    return TranscriptRow(line, {"event": "open", "conversation": number, "server": server, **more})


def row(
    line: int,
    number: int,
    party: Party,
    frame: bytes,
    *,
    time: float | None = None,
    http: dict[str, Any] | None = None,
    blind: Collection[str] = (),
    mask: re.Pattern[str] | None = None,
) -> TranscriptRow:
    """Return the row of a message."""
    members: dict[str, Any] = {"dir": DIRECTIONS[party], "conversation": number, "msg": frame}
    if http is not None:
        members["http"] = http
    return TranscriptRow(line, members, "", blind, mask, time)


def left_out(
    line: int, number: int, party: Party, shape: Shape, lacks: str, time: float | None = None
) -> TranscriptRow:
    """Return the row of a message that cannot be judged, because of what it *lacks*."""
    members = {"dir": DIRECTIONS[party], "conversation": number, **shape.left_out}
    return TranscriptRow(line, members, lacks, time=time)

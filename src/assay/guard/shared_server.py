"""
One server that all requests without a session share: find the receiver of each message, and use its ids. No I/O.

`IdMap` makes unique ids for the server. The session of the receiver judges the message.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from assay.guard.id_map import IdMap
from assay.judge import render, syntax
from assay.judge.partial_frame import outline
from assay.model.large_frames import loaded

FAILED: Final = "the guard failed; its log says why"

_CANCELLED: Final = (
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"the client has gone"}}'
)


class Sharer(Protocol):
    """A session, or a request without one, that shares a server."""

    @property
    def owner(self) -> str:
        """The principal that it belongs to."""

    @property
    def wants_logs(self) -> bool:
        """Whether it gets the log messages of the server."""


S = TypeVar("S", bound=Sharer)


class Addressed(NamedTuple, Generic[S]):
    """A message of the server, with the ids of the session that it is for."""

    to: S | None
    """The receiver; None for the guard's own session: the message does not show its receiver."""
    frame: bytes
    rest: bytes = b""
    """The end of an over-long frame."""
    is_delivered: bool = True
    """False if it is only judged in that session."""


class Mishandled(NamedTuple, Generic[S]):
    """A message of the server that could not be routed: the request that it answers fails."""

    to: S | None
    ident: Any
    """The id of the request, as the session knows it, or of the server's own request."""


class SharedServer(Generic[S]):
    """One run of a server, and the requests without a session that share it."""

    def __init__(self) -> None:
        self.ids: IdMap[S] = IdMap()
        self._owners: set[str] = set()
        """The first two principals that have used this run."""

    @property
    def everybody(self) -> list[S]:
        """Return all that have an open request."""
        return self.ids.everybody()

    def send(self, sender: S, frame: bytes, value: Any = None) -> Sequence[bytes]:
        """Return the frames for the server; *value* is the message, if it is already parsed."""
        if len(self._owners) < 2:
            self._owners.add(sender.owner)
        value = loaded(frame) if value is None else value
        if isinstance(value, list):
            return [one for entry in render.entries(frame) for one in self.send(sender, entry)]
        return self._send(sender, frame, value) if isinstance(value, dict) else ()

    def _send(self, sender: S, frame: bytes, value: dict[str, Any]) -> Sequence[bytes]:
        # A server without sessions sends no requests, so nothing answers one.
        sent: bytes | None = frame if "method" in value else None
        if "method" in value and "id" in value:
            sent = self.ids.ask(sender, frame, value)[1]
        elif value.get("method") == "notifications/cancelled":
            sent = self.ids.cancel(sender, frame)
        return (sent,) if sent is not None else ()

    def leave(self, member: S) -> list[bytes]:
        """Forget a client; return the notifications that cancel its requests."""
        return [_CANCELLED % number for number in self.ids.leave(member)]

    # ── from the server ──────────────────────────────────────────────────────────────────────────────────────────────

    def route(self, frame: bytes, rest: bytes = b"") -> Iterable[Addressed[S]]:
        """Return the receivers of a message of the server."""
        # Parsed as by the judge: a message that it refuses, such as one nested too deep, is not searched.
        value = None if rest else syntax.read(frame)
        if isinstance(value, dict):
            return self._route(frame, value)
        if isinstance(value, list):
            return [one for entry in render.entries(frame) for one in self.route(entry)]
        routed, rest = self.ids.unreadable(frame, rest)
        return (Addressed(routed.owner, routed.frame, rest),)

    def _route(self, frame: bytes, value: dict[str, Any]) -> Iterable[Addressed[S]]:
        if _is_answer(value):
            routed = self.ids.answer(frame, value)
        elif "id" not in value:
            routed = self.ids.notified(frame)
        else:
            routed = None
        if routed is not None and routed.owner is not None:
            return (Addressed(routed.owner, routed.frame),)
        return self._claimed(frame, value) or self._overheard(frame, value) or (Addressed(None, frame),)

    def _claimed(self, frame: bytes, value: dict[str, Any]) -> tuple[Addressed[S], ...]:
        """
        Address a log message to the one open request, if it set a log level.

        A log message does not name its request, so it may be about any that is open. It may also be about one that
        was answered or cancelled before: so once two principals have used this run of the child, neither gets any.
        """
        if value.get("method") != "notifications/message" or len(self._owners) > 1:
            return ()
        waiting = self.ids.everybody()
        return (Addressed(waiting[0], frame),) if len(waiting) == 1 and waiting[0].wants_logs else ()

    def _overheard(self, frame: bytes, value: dict[str, Any]) -> tuple[Addressed[S], ...]:
        """
        Judge a log message that no open request wanted.

        No client gets it: its request is unknown, only that no open request wanted it.
        """
        if value.get("method") != "notifications/message":
            return ()
        waiting = self.ids.everybody()
        if not waiting or any(each.wants_logs for each in self.ids.known()):
            return ()
        return (Addressed(waiting[0], frame, is_delivered=False),)

    def mishandled(self, frame: bytes, rest: bytes = b"") -> Iterator[Mishandled[S]]:
        """Yield the requests that fail because a message of the server could not be routed, after an internal error."""
        value = None if rest else syntax.read(frame)
        for each in value if isinstance(value, list) else [value]:
            answered, ident = _subject(each, frame, rest)
            asked = self.ids.taken(ident) if answered and type(ident) is int else None
            if asked is not None:
                yield Mishandled(asked.owner, asked.key[1])
            elif not answered and ident is not None:
                yield Mishandled(None, ident)


def _is_answer(value: dict[str, Any]) -> bool:
    """Return whether *value* is a response, or would be one without its `method`."""
    return "method" not in value or ("id" in value and ("result" in value or "error" in value))


def _subject(value: Any, frame: bytes, rest: bytes) -> tuple[bool, Any]:
    """Return whether a message of the server is an answer, and the id that it has."""
    if isinstance(value, dict):
        return _is_answer(value), value.get("id")
    found = outline(frame, rest or frame)
    return found.answers, found.id if found.answers or found.asks else None

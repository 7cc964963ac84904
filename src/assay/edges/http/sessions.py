"""HTTP sessions: owners, expiry, and events to resend. No I/O; the clock is a parameter."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import partial
from secrets import token_urlsafe
from typing import Any, Final, Generic, NamedTuple, TypeVar

from assay.edges.http.quotas import to_end
from assay.judge import render, syntax
from assay.settings.http_section import Http

REPLAYED: Final = 64
"""Maximal events of a session that are kept whole for a client that resumes."""

REPLAYED_BYTES: Final = 1 << 20
"""Maximal bytes of these events."""

REMAINS: Final = 256
"""Maximal small events that are kept in place of others: an error for each answer that was dropped."""

REMAINS_BYTES: Final = 128 << 10
"""Maximal bytes of these. An error has 300 bytes and the id of its request."""

LONGEST_REMAINS: Final = 8 << 10
"""Maximal bytes of one of them: a request of the server stays as it is if it is that short."""

REPLAYED_BY_ALL: Final = 64 << 20
"""Maximal bytes of kept events of all sessions: a thousand full sessions would take a gigabyte."""

DROPPED: Final = (
    "its answer could not be kept until the client resumed; the request was carried out, so repeat it only if that is "
    "safe"
)


class KeptEvent(NamedTuple):
    """An event that can be sent again."""

    stream: int
    number: int
    data: bytes
    answers: tuple[Any, ...] = ()
    """The ids of the requests that it answers."""
    asked: Any = None
    """The request of the server that it is; None for any other message."""
    unread: bool = False
    """Whether no client has got it yet."""

    def remains(self) -> bytes | None:
        """Return what is kept in its place, so that neither side waits forever; None for a notification."""
        if self.asked is not None:
            return self.data
        errors = [render.plain_error(syntax.write(each), _LOST, DROPPED, why=DROPPED) for each in self.answers]
        return render.array(errors) if len(errors) > 1 else next(iter(errors), None)


_LOST: Final = "UPSTREAM_FAILURE"

S = TypeVar("S")


def _ignored(_: Any) -> None:
    pass


class HttpSession(Generic[S]):
    """One client's conversation, from `initialize` on."""

    __slots__ = (
        "_bytes", "_count", "_events", "_lost", "_remains", "_remains_bytes", "_streams", "ended", "ident",
        "open_streams", "principal", "server", "unclaimed", "used",
    )  # fmt: skip

    def __init__(self, ident: str, principal: str, server: S, now: float, count: Callable[[int], None]) -> None:
        """*count* gets the change of the number of kept bytes."""
        self.ident = ident
        self.principal = principal
        self.server = server
        self.used = now
        self.ended = False
        self.open_streams: set[Callable[[], None]] = set()
        """The futures that end the open streams."""
        self.unclaimed: Callable[[Any], None] = _ignored
        """Gets each request of the server that no client gets any more, so that the server does not wait for it."""
        self._events: deque[KeptEvent] = deque()
        self._bytes = 0
        self._remains: deque[KeptEvent] = deque()
        self._remains_bytes = 0
        self._lost = 0
        """The last stream of which an answer, or a request of the server, is lost altogether."""
        self._count = count
        self._streams = 0

    def new_stream(self) -> int:
        """Return the number of a new stream, which is the first part of its event ids."""
        self._streams += 1
        return self._streams

    def keep(
        self,
        stream: int,
        number: int,
        data: bytes,
        *,
        answers: tuple[Any, ...] = (),
        asked: Any = None,
        unread: bool = False,
    ) -> bytes:
        """
        Keep an event for clients that resume; return its id.

        *answers* are the ids of the requests that it answers; *asked* is the request of the server that it is. Neither
        is dropped without a trace: see `KeptEvent.remains`, and `unclaimed` for one that is still *unread*.
        """
        if not self.ended:
            before = self._held
            made = KeptEvent(stream, number, data, answers, asked, unread)
            if len(data) > REPLAYED_BYTES:
                # It would push out all others.
                self._reduce(made)
            else:
                self._events.append(made)
                self._bytes += len(data)
            while len(self._events) > REPLAYED or self._bytes > REPLAYED_BYTES:
                self._drop_first()
            self._count(self._held - before)
        return b"%d-%d" % (stream, number)

    def _drop_first(self) -> None:
        first = self._events.popleft()
        self._bytes -= len(first.data)
        self._reduce(first)

    def _reduce(self, event: KeptEvent) -> None:
        """Keep what remains of a dropped *event*; beyond the limit, only note that something of its stream is lost."""
        left = event.remains()
        if left is None:
            return
        if len(left) > LONGEST_REMAINS:
            self._lose(event)
            return
        self._remains.append(event._replace(data=left))
        self._remains_bytes += len(left)
        while len(self._remains) > REMAINS or self._remains_bytes > REMAINS_BYTES:
            oldest = self._remains.popleft()
            self._remains_bytes -= len(oldest.data)
            self._lose(oldest)

    def _lose(self, event: KeptEvent) -> None:
        """Note that nothing of *event* is left."""
        self._lost = max(self._lost, event.stream)
        if event.asked is not None and event.unread:
            self.unclaimed(event.asked)

    def after(self, last: bytes) -> list[tuple[bytes, bytes]] | None:
        """Return the events after *last* on its stream, with their ids; None if *last* is unknown."""
        stream, _, number = last.partition(b"-")
        if not (stream.isdigit() and number.isdigit() and len(last) <= 30) or not 0 < int(stream) <= self._streams:
            return None
        for kept in (self._events, self._remains):
            for index, each in enumerate(kept):
                if each.unread and each.stream == int(stream):
                    kept[index] = each._replace(unread=False)
        found = [
            each for each in (*self._remains, *self._events) if each.stream == int(stream) and each.number > int(number)
        ]
        return [(b"%d-%d" % (stream_, count), data) for stream_, count, data, *_ in sorted(found, key=_place)]

    def has_lost(self, last: bytes) -> bool:
        """Whether an answer after *last*, a known event, may be lost: its stream is old, and keeps no answer."""
        stream, number = map(int, last.split(b"-"))
        kept = (each for each in (*self._remains, *self._events) if each.stream == stream and each.number > number)
        return stream <= self._lost and not any(each.answers for each in kept)

    @property
    def _held(self) -> int:
        return self._bytes + self._remains_bytes

    @property
    def keeps(self) -> bool:
        """Whether whole events of the session are kept."""
        return self._bytes > 0

    @property
    def keeps_any(self) -> bool:
        """Whether anything of its events is kept."""
        return self._held > 0

    def reduce(self) -> None:
        """Keep only an error in place of each answer."""
        before = self._held
        while self._events:
            self._drop_first()
        self._count(self._held - before)

    def forget(self) -> None:
        """Drop everything that is kept. A client that resumes is refused, if an answer may be lost."""
        freed = self._held
        if self._events or self._remains:
            self._lost = self._streams
        dropped = [each.asked for each in (*self._remains, *self._events) if each.asked is not None and each.unread]
        self._events.clear()
        self._remains.clear()
        self._bytes = self._remains_bytes = 0
        self._count(-freed)
        for each in dropped:
            self.unclaimed(each)

    def end(self) -> None:
        """End all its streams."""
        self.ended = True
        self.forget()
        for close in list(self.open_streams):
            close()


class Sessions(Generic[S]):
    """All sessions, the least recently used first."""

    __slots__ = ("_by_id", "_clock", "_dropped", "_each", "_http", "_is_idle", "_kept", "_kept_by_all")

    def __init__(
        self,
        http: Http,
        clock: Callable[[], float],
        dropped: Callable[["HttpSession[S]"], None] | None = None,
        *,
        is_idle: Callable[[S], bool] = lambda _: True,
    ) -> None:
        """*dropped* gets each session before its streams end. At the limit only a session that *is_idle* may end."""
        self._http = http
        self._clock = clock
        self._dropped = dropped
        self._is_idle = is_idle
        self._by_id: OrderedDict[str, HttpSession[S]] = OrderedDict()
        self._each: dict[str, int] = {}
        self._kept: dict[str, int] = {}
        """Bytes of kept events by principal."""
        self._kept_by_all = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[HttpSession[S]]:
        return iter(self._by_id.values())

    def begin(self, principal: str, server: S) -> HttpSession[S] | None:
        """Return a new session, ending an idle one at the limit; None if no session may end for *principal*."""
        self.sweep()
        if self.is_full(principal):
            idle = (each for each in self._by_id.values() if self._is_idle(each.server))
            last = to_end(idle, principal, own_only=self.has_share(principal))
            if last is None:
                return None
            self.drop(last)
        # 256 random bits cannot be guessed.
        session = HttpSession(token_urlsafe(32), principal, server, self._clock(), partial(self._count, principal))
        self._by_id[session.ident] = session
        self._each[principal] = self._each.get(principal, 0) + 1
        return session

    def is_full(self, principal: str) -> bool:
        """Whether another session has to end before *principal* can open one."""
        return len(self._by_id) >= self._http.sessions or self.has_share(principal)

    def has_share(self, principal: str) -> bool:
        """Whether *principal* has used its share of sessions."""
        return self._each.get(principal, 0) >= self._http.sessions_each

    def find(self, ident: bytes, principal: str) -> HttpSession[S] | None:
        """Return the session *ident* of *principal*; None for that of another one, so that guessing reveals nothing."""
        try:
            session = self._by_id.get(ident.decode("ascii"))
        except UnicodeDecodeError:
            return None
        if session is None or session.principal != principal:
            return None
        now = self._clock()
        if not session.open_streams and now - session.used > self._http.session_seconds:
            self.drop(session)
            return None
        session.used = now
        self._by_id.move_to_end(session.ident)
        return session

    def touch(self, session: HttpSession[S]) -> None:
        """Mark *session* as used now: the duration of a request is not idle time."""
        if session.ident in self._by_id:
            session.used = self._clock()
            self._by_id.move_to_end(session.ident)

    def drop(self, session: HttpSession[S]) -> None:
        """End *session*."""
        if self._by_id.pop(session.ident, None) is None:
            return
        left = self._each[session.principal] - 1
        if left:
            self._each[session.principal] = left
        else:
            del self._each[session.principal]
        if self._dropped is not None:
            self._dropped(session)
        session.end()

    def sweep(self) -> None:
        """End sessions that were idle too long. A session with a stream is not idle."""
        now = self._clock()
        for session in list(self._by_id.values()):
            # Checked after half of the time, so that a client with a broken stream has the other half to reconnect.
            if now - session.used < self._http.session_seconds / 2:
                break
            if session.open_streams:
                session.used = now
                self._by_id.move_to_end(session.ident)
            elif now - session.used > self._http.session_seconds:
                self.drop(session)

    def _count(self, principal: str, more: int) -> None:
        """Limit the kept bytes of all sessions: the principal with the most loses some, not the others."""
        self._kept_by_all += more
        kept = self._kept.pop(principal, 0) + more
        if kept:
            self._kept[principal] = kept
        while more > 0 and self._kept_by_all > REPLAYED_BY_ALL:
            most = max(self._kept, key=self._kept.__getitem__)
            # The least recently used first.
            own = (each for each in self._by_id.values() if each.principal == most)
            whole = next((each for each in own if each.keeps), None)
            if whole is not None:
                whole.reduce()
                continue
            own = (each for each in self._by_id.values() if each.principal == most)
            found = next((each for each in own if each.keeps_any), None)
            if found is None:
                return
            found.forget()


def _place(event: KeptEvent) -> int:
    return event.number

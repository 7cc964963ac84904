"""HTTP sessions: owners, expiry, and events to resend. No I/O; the clock is a parameter."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import partial
from secrets import token_urlsafe
from typing import Final, Generic, TypeVar

from assay.edges.http.quotas import Idleness, to_end
from assay.settings.http_section import Http

REPLAYED: Final = 64
"""Maximal events of a session that are kept for a client that resumes."""

REPLAYED_BYTES: Final = 1 << 20
"""Maximal bytes of these events; a longer event is not kept."""

REPLAYED_BY_ALL: Final = 64 << 20
"""Maximal bytes of kept events of all sessions: a thousand full sessions would take a gigabyte."""


S = TypeVar("S")


def _ignored(_: int) -> None:
    pass


class HttpSession(Generic[S]):
    """One client's conversation, from `initialize` on."""

    __slots__ = (
        "_bytes", "_count", "_events", "_streams", "ended", "ident", "note_streams", "open_streams", "principal",
        "server", "used",
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
        self.note_streams: Callable[[int], None] = _ignored
        """Gets the change of the number of streams that a connection carries."""
        self._events: deque[tuple[int, int, bytes]] = deque()
        self._bytes = 0
        self._count = count
        self._streams = 0

    def new_stream(self) -> int:
        """Return the number of a new stream, which is the first part of its event ids."""
        self._streams += 1
        return self._streams

    def keep(self, stream: int, number: int, data: bytes) -> bytes:
        """Keep an event for clients that resume; return its id."""
        if len(data) <= REPLAYED_BYTES and not self.ended:
            before = self._bytes
            self._events.append((stream, number, data))
            self._bytes += len(data)
            while len(self._events) > REPLAYED or self._bytes > REPLAYED_BYTES:
                self._bytes -= len(self._events.popleft()[2])
            self._count(self._bytes - before)
        return b"%d-%d" % (stream, number)

    def after(self, last: bytes) -> list[tuple[bytes, bytes]] | None:
        """Return the events after *last* on its stream, with their ids; None if *last* is unknown."""
        stream, _, number = last.partition(b"-")
        if not (stream.isdigit() and number.isdigit() and len(last) <= 30) or not 0 < int(stream) <= self._streams:
            return None
        return [
            (b"%d-%d" % (one, count), data)
            for one, count, data in self._events
            if one == int(stream) and count > int(number)
        ]

    @property
    def idleness(self) -> Idleness:
        """The idleness of the session, by its streams alone."""
        return Idleness.LISTENS if self.open_streams else Idleness.IDLE

    @property
    def keeps(self) -> bool:
        """Whether events of the session are kept."""
        return self._bytes > 0

    def forget(self) -> None:
        """Drop the kept events."""
        self._events.clear()
        freed, self._bytes = self._bytes, 0
        self._count(-freed)

    def end(self) -> None:
        """End all its streams."""
        self.ended = True
        self.forget()
        for close in list(self.open_streams):
            close()


class Sessions(Generic[S]):
    """All sessions, the least recently used first."""

    __slots__ = ("_by_id", "_clock", "_dropped", "_each", "_http", "_idleness", "_kept", "_kept_by_all")

    def __init__(
        self,
        http: Http,
        clock: Callable[[], float],
        dropped: Callable[["HttpSession[S]"], None] | None = None,
        *,
        idleness: Callable[["HttpSession[S]"], Idleness] | None = None,
    ) -> None:
        """*dropped* gets each session before its streams end; *idleness* decides which session may end."""
        self._http = http
        self._clock = clock
        self._dropped = dropped
        self._idleness = idleness or _by_streams
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
            own = self.has_share(principal)
            last = to_end(self._by_id.values(), self._idleness, principal, own_only=own)
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
            found = next((each for each in self._by_id.values() if each.principal == most and each.keeps), None)
            if found is None:
                return
            found.forget()


def _by_streams(session: HttpSession[S]) -> Idleness:
    return session.idleness

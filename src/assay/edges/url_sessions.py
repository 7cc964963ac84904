"""
The conversations of a guard with a server at a URL: which request belongs to which, and for how long. No I/O; the clock
is a parameter.

In the handshake revisions a session is one conversation: that of the client that opened it, with any token that the
server has accepted since. Without a session each request is one, because the ids of different clients coincide; the
requests of one client share the tools that the server has listed.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from assay.edges.http.held_bytes import HeldBytes
from assay.edges.http.quotas import to_end
from assay.guard.deliveries import ClientTraits, ServerTraits
from assay.guard.factory import ContractScope, SessionFactory
from assay.guard.session import GuardedSession
from assay.model.json_values import Id
from assay.model.verdict import Exchange, Party
from assay.settings.http_section import Http

REMEMBERED: Final = 1000
"""Maximal remembered events of a session, to recognize them when they are resent. Servers keep fewer."""

LONGEST_ID: Final = 1024
"""Maximal bytes of a remembered event id."""

REMEMBERED_BYTES: Final = 64 << 10
"""Maximal bytes of a remembered replacement of an event; nearly all are errors of a kilobyte."""

REMEMBERED_BY_ALL: Final = 64 << 20
"""Maximal bytes of remembered events of all sessions: the client that has most of them loses those of a session."""

CLIENTS: Final = 1000
"""Maximal clients without sessions, by their authorization, whose tools are remembered; the most recent ones."""

RENEWED: Final = 16
"""Maximal remembered tokens of a session; each is valid for an hour or so."""

ASKED: Final = 2000
"""Maximal open requests of servers, for all clients: people answer most of them."""


class Who(NamedTuple):
    """The identity of a client."""

    principal: str
    digest: bytes
    """The digest of its credentials for the server, with the names of the headers; empty without any."""


class Known(NamedTuple):
    """An event that was seen before."""

    digest: bytes | None
    """The digest of its data: the same id with other data is another event. None without a judged message."""
    sent: bytes | None
    """The replacement that the client got; None if the message was forwarded unchanged."""
    stream: "Stream"


class Stream:
    """The requests of one HTTP request, which may be answered on several streams if the first breaks."""

    __slots__ = ("due", "resumable")

    def __init__(self, due: tuple[Exchange, ...] = ()) -> None:
        self.due = due
        self.resumable = False
        """Whether an event had an id, so that a client can resume."""

    def open(self) -> list[Exchange]:
        """The open requests."""
        return [each for each in self.due if each.state == "open"]


class UrlSession:
    """One conversation."""

    __slots__ = (
        "_count", "_known", "broken", "found", "hands", "ident", "origin", "remembered", "renewed", "scope", "session",
        "used", "who",
    )  # fmt: skip

    def __init__(
        self,
        session: GuardedSession,
        who: Who,
        ident: bytes | None,
        now: float,
        count: "Callable[[UrlSession], None]",
    ) -> None:
        """*count* is called when the bytes of remembered events have changed."""
        self.session = session
        self.who = who
        self.ident = ident
        """The session id."""
        self.used = now
        self.found = False
        """Whether one of its messages has a finding."""
        self.hands = 0
        """The number of requests and streams in progress."""
        self.broken = False
        """Whether its last messages are already written to a file."""
        self.renewed: OrderedDict[Who, None] = OrderedDict()
        """Other tokens that the server has accepted for the session, the latest last."""
        self.origin: UrlSession | None = None
        """The conversation of the session, if this one is of a client that has not proved to belong to it."""
        self.scope: ContractScope | None = None
        """The state shared with other requests without a session."""
        self.remembered = 0
        """Bytes of its remembered events."""
        self._count = count
        self._known: OrderedDict[bytes, Known] = OrderedDict()

    @property
    def principal(self) -> str:
        """The owner."""
        return self.who.principal

    @property
    def is_idle(self) -> bool:
        """Whether no request of a connected client is open: one that has disconnected may never resume."""
        return not (self.hands and self.session.conversation.open_requests(Party.CLIENT))

    def joined(self, who: Who, now: float) -> "UrlSession":
        """Return the same conversation for a client that has not proved to belong to it, and may only listen."""
        made = UrlSession(self.session, who, self.ident, now, lambda _: None)
        made._known = self._known
        made.origin = self
        return made

    def known(self, ident: bytes | None, data: bytes) -> Known | None:
        """Return the event with this id, if it had the same judged message."""
        found = self._known.get(ident) if ident else None
        return found if found is not None and found.digest == _digest(data) else None

    def stream_of(self, ident: bytes | None) -> Stream | None:
        """Return the stream of the event with this id."""
        found = self._known.get(ident) if ident else None
        return found.stream if found is not None else None

    def remember(self, ident: bytes | None, data: bytes, sent: bytes | None, stream: Stream) -> None:
        """Remember the result of an event with a judged message, in case a client resumes."""
        if len(sent or b"") <= REMEMBERED_BYTES:
            self._remember(ident, Known(_digest(data), sent, stream))

    def place(self, ident: bytes | None, stream: Stream) -> None:
        """Remember the stream of an event without a message, so that a client can resume after it."""
        self._remember(ident, Known(None, None, stream))

    def _remember(self, ident: bytes | None, known: Known) -> None:
        if self.ident is None or not ident or len(ident) > LONGEST_ID:
            return
        before = self._known.get(ident)
        if before is not None and before.digest is not None:
            # The same id with other data: a client may have seen the first.
            return
        if self.origin is not None:
            # Events of the session are remembered and counted there.
            self.origin._remember(ident, known)
            return
        more = _weight(ident, known)
        if before is not None:
            more -= _weight(ident, before)
        self._known[ident] = known
        if len(self._known) > REMEMBERED:
            more -= _weight(*self._known.popitem(last=False))
        self.remembered += more
        self._count(self)

    def forget_events(self) -> None:
        """Forget its events."""
        self._known.clear()
        self.remembered = 0
        self._count(self)


def _weight(ident: bytes, known: Known) -> int:
    return 300 + len(ident) + len(known.sent or b"")


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _client(who: Who) -> ClientTraits:
    return ClientTraits("http", carries_raw=True, owner=who.principal)


_IN_SESSION: Final = ServerTraits("url")
_ALONE: Final = ServerTraits("url", cancels_by="closing")
"""Traits of a server without sessions: a request is cancelled by closing its response."""


class UrlSessions:
    """All conversations with one server."""

    def __init__(self, factory: SessionFactory, http: Http, clock: Callable[[], float], *, gated: bool = False) -> None:
        """*gated* if the guard authenticates principals: then each has a share of the sessions."""
        self._factory = factory
        self._http = http
        self._clock = clock
        self._share = http.sessions_each if gated else http.sessions
        self._each: dict[str, int] = {}
        """The number of sessions of each principal."""
        self._sessions: OrderedDict[tuple[bytes, Who], UrlSession] = OrderedDict()
        self._renewed: dict[tuple[bytes, Who], UrlSession] = {}
        self._named: dict[bytes, dict[UrlSession, None]] = {}
        """Sessions by id: more than one only if a server gives the same id to several clients."""
        self._scopes: OrderedDict[tuple[Who, str], ContractScope] = OrderedDict()
        """The shared state of requests without a session, by client and revision."""
        self._unproved: WeakValueDictionary[tuple[Who, str], ContractScope] = WeakValueDictionary()
        """Clients whose token the server has not accepted yet: anyone can invent a token."""
        self._asked: OrderedDict[tuple[str, bytes, Id], UrlSession] = OrderedDict()
        self._remembered: HeldBytes[UrlSession] = HeldBytes(REMEMBERED_BY_ALL)

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[UrlSession]:
        return iter(self._sessions.values())

    # ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def find(self, ident: bytes, who: Who) -> UrlSession | None:
        """Return the conversation of a session of this client, otherwise None."""
        talk = self._sessions.get((ident, who)) or self._renewed.get((ident, who))
        if talk is not None:
            talk.used = self._clock()
            self._sessions.move_to_end((ident, talk.who))
        return talk

    def is_anothers(self, ident: bytes, principal: str) -> bool:
        """Whether the session is known and belongs to another principal."""
        named = self._named.get(ident)
        return named is not None and all(each.who.principal != principal for each in named)

    def knows(self, ident: bytes, principal: str) -> bool:
        """Whether the session belongs to *principal*."""
        return any(each.who.principal == principal for each in self._named.get(ident, ()))

    def opening(self, who: Who) -> UrlSession:
        """Return a new conversation for `initialize`."""
        return UrlSession(self._factory.open(_client(who), _IN_SESSION), who, None, self._clock(), self._count)

    def adopted(self, ident: bytes, who: Who, revision: str, *, listens: bool = False) -> UrlSession:
        """
        Return the conversation of a session that was opened elsewhere, with another token, or long ago.

        Tokens are renewed during a session. Only the server knows whether this one is valid: until it has accepted it,
        the request is a separate conversation with the tools of the session; a client that only *listens* uses the
        conversation of the session.
        """
        mine = [each for each in self._named.get(ident, ()) if each.who.principal == who.principal]
        origin = mine[0] if len(mine) == 1 else None
        if origin is not None and listens:
            return origin.joined(who, self._clock())
        known = origin.session.conversation if origin is not None else None
        tools = known.tools if known is not None else None
        opened = known.revision if known is not None else None
        session = self._factory.open(
            _client(who), _IN_SESSION, name=ident.decode("latin-1"), revision=opened or revision, tools=tools
        )
        talk = UrlSession(session, who, ident, self._clock(), self._count)
        talk.origin = origin
        return talk

    def keep(self, talk: UrlSession, ident: bytes) -> None:
        """
        Make *talk* the conversation of the session *ident*, or add its client to that session.

        Beyond the limit the least recently used idle session is dropped, one of the same principal first.
        """
        if talk.origin is not None and self._sessions.get((ident, talk.origin.who)) is talk.origin:
            self._renew(talk.origin, ident, talk.who)
            return
        if talk.ident is None:
            talk.ident = ident
            talk.session.rename(ident.decode("latin-1"))
        before = self._sessions.get((ident, talk.who))
        if before is talk:
            return
        if before is not None:
            self.drop(before)
        self._sessions[ident, talk.who] = talk
        self._named.setdefault(ident, {})[talk] = None
        principal = talk.who.principal
        self._each[principal] = self._each.get(principal, 0) + 1
        self._push_out(talk, principal)

    def _push_out(self, newest: UrlSession, principal: str) -> None:
        """
        Drop idle sessions down to the limit.

        Busy sessions stay: the limit of requests bounds them.
        """
        while (own := self._each[principal] > self._share) or len(self._sessions) > self._http.sessions:
            idle = (each for each in self._sessions.values() if each is not newest and each.is_idle)
            last = to_end(idle, principal, own_only=own)
            if last is None:
                return
            self.drop(last)

    def drop(self, talk: UrlSession) -> None:
        """End its session."""
        if talk.ident is None or self._sessions.get((talk.ident, talk.who)) is not talk:
            return
        del self._sessions[talk.ident, talk.who]
        self._unname(talk, talk.ident)
        talk.forget_events()
        left = self._each[talk.who.principal] - 1
        if left:
            self._each[talk.who.principal] = left
        else:
            del self._each[talk.who.principal]
        for key in [key for key, each in self._asked.items() if each is talk]:
            del self._asked[key]

    def _renew(self, talk: UrlSession, ident: bytes, who: Who) -> None:
        """Note that the server has accepted *who* in the session of *talk*."""
        talk.renewed[who] = None
        self._renewed[ident, who] = talk
        if len(talk.renewed) > RENEWED:
            oldest, _ = talk.renewed.popitem(last=False)
            self._renewed.pop((ident, oldest), None)

    def _unname(self, talk: UrlSession, ident: bytes) -> None:
        named = self._named.get(ident, {})
        named.pop(talk, None)
        if not named:
            self._named.pop(ident, None)
        for who in talk.renewed:
            self._renewed.pop((ident, who), None)
        talk.renewed.clear()

    def sweep(self) -> None:
        """Drop sessions that were unused for long, and fail requests whose client has not resumed."""
        now = self._clock()
        for talk in list(self._sessions.values()):
            if not talk.hands:
                # A request in progress has its own time limit.
                talk.session.tick()
        for talk in list(self._sessions.values()):
            if now - talk.used < self._http.session_seconds:
                return
            if talk.hands:
                talk.used = now
                self._sessions.move_to_end((talk.ident or b"", talk.who))
            else:
                self.drop(talk)

    # ── without sessions ─────────────────────────────────────────────────────────────────────────────────────────────

    def alone(self, who: Who, revision: str) -> UrlSession:
        """Return a conversation of one request."""
        scope = self._scope(who, revision)
        talk = UrlSession(self._factory.borrow(scope, _client(who), _ALONE, revision), who, None, 0.0, self._count)
        talk.scope = scope
        return talk

    def admit(self, talk: UrlSession) -> None:
        """Note that the server has accepted the client of *talk*: its tools are kept from now on."""
        revision = talk.session.conversation.revision
        if talk.scope is None or revision is None or (talk.who, revision) in self._scopes:
            return
        self._scopes[talk.who, revision] = talk.scope
        if len(self._scopes) > CLIENTS:
            self._scopes.popitem(last=False)

    def done(self, talk: UrlSession) -> None:
        """Release the conversation of one request for the next one."""
        revision = talk.session.conversation.revision
        if talk.scope is None or talk.hands or revision is None:
            return
        if self._scopes.get((talk.who, revision)) is talk.scope:
            self._factory.give_back(talk.scope, talk.session, clean=not talk.found)

    def _scope(self, who: Who, revision: str) -> ContractScope:
        key = who, revision
        scope = self._scopes.get(key)
        if scope is not None:
            self._scopes.move_to_end(key)
            return scope
        scope = self._unproved.get(key)
        if scope is None:
            scope = self._unproved[key] = self._factory.scope(owner=key[0].principal)
        return scope

    def _count(self, talk: UrlSession) -> None:
        """Limit the remembered events of all sessions."""
        for each in self._remembered.hold(talk, talk.who, talk.remembered):
            each.forget_events()

    # ── what servers ask ─────────────────────────────────────────────────────────────────────────────────────────────

    def asks(self, talk: UrlSession, ident: Id) -> None:
        """Remember a request of the server in *talk*. Its response comes separately, perhaps with a new token."""
        self._asked[_scope(talk.who, talk.ident, ident)] = talk
        if len(self._asked) > ASKED:
            # The principal with the most loses its oldest.
            most = Counter(key[0] for key in self._asked).most_common(1)[0][0]
            del self._asked[next(key for key in self._asked if key[0] == most)]

    @property
    def awaits(self) -> bool:
        """Whether a request of a server is open."""
        return bool(self._asked)

    def asker(self, who: Who, session: bytes | None, ident: Id) -> UrlSession | None:
        """Return the conversation of the server's request that is answered now."""
        return self._asked.pop(_scope(who, session, ident), None)


def _scope(who: Who, session: bytes | None, ident: Id) -> tuple[str, bytes, Id]:
    return (who.principal, who.digest, ident) if session is None else (who.principal, b"session " + session, ident)

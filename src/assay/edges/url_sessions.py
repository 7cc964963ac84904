"""
The conversations that a guard hears over HTTP: which request belongs to which, and for how long. No I/O; the clock is
given.

In the handshake revisions a session is one conversation: that of whoever has opened it, with whatever the server has
taken from it since then to let it in. Without a session each request is one, since the ids of
different clients coincide; what they share are the tools that the server has listed to the same client.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from assay.base.verdict import Exchange, Party
from assay.core.party_state import Id
from assay.edges.http.idleness import Idleness, to_end
from assay.guard.deliveries import ClientTraits, ServerTraits
from assay.guard.factory import ContractScope, SessionFactory
from assay.guard.session import GuardedSession
from assay.settings.http_section import Http

REMEMBERED: Final = 1000
"""Events of a session that are known again when they come again. Servers keep fewer, or keep them for minutes."""

LONGEST_ID: Final = 1024
"""Bytes of an event's id, to be remembered."""

REMEMBERED_BYTES: Final = 64 << 10
"""Of what was sent in place of an event, to be remembered; nearly all are errors of a kilobyte."""

REMEMBERED_BY_ALL: Final = 64 << 20
"""Bytes of events that are remembered, of all sessions together: those used longest ago are forgotten first."""

CLIENTS: Final = 1000
"""Clients without sessions, told apart by their authorization, whose tools are remembered; the last ones that asked."""

RENEWED: Final = 16
"""Further tokens of a session that are remembered, the last ones: each is good for an hour or so."""

ASKED: Final = 2000
"""Requests of servers whose answers are awaited, all clients together: people answer most of them."""


class Who(NamedTuple):
    """A client, as far as it can be told from another."""

    principal: str
    digest: bytes
    """Of what it has shown to be let in by the server, by the names of the headers; empty if nothing."""


class Known(NamedTuple):
    """An event that came before."""

    digest: bytes | None
    """Of what it carried: the same id with something else is something else. None if it was not a judged message."""
    sent: bytes | None
    """What went to the client in place of a judged message; None if the message went as it was."""
    stream: "Stream"


class Stream:
    """What was asked in one request, and may be answered on more than one stream, should the first break off."""

    __slots__ = ("due", "resumable")

    def __init__(self, due: tuple[Exchange, ...] = ()) -> None:
        self.due = due
        self.resumable = False
        """Whether an event had an id, so that a client can come back for the rest."""

    def open(self) -> list[Exchange]:
        """What is still to be answered."""
        return [each for each in self.due if each.state == "open"]


class UrlSession:
    """One conversation."""

    __slots__ = (
        "_count", "_known", "broken", "found", "hands", "ident", "origin", "remembered", "renewed", "scope", "session",
        "used", "who",
    )  # fmt: skip

    def __init__(
        self, session: GuardedSession, who: Who, ident: bytes | None, now: float, count: Callable[[int], None]
    ) -> None:
        """*count* is told how many bytes more, or fewer, are remembered of its events."""
        self.session = session
        self.who = who
        self.ident = ident
        """Of its session."""
        self.used = now
        self.found = False
        """Whether one of its messages has a finding."""
        self.hands = 0
        """Requests and streams of it that are in hand."""
        self.broken = False
        """Whether what was last said in it is written down already."""
        self.renewed: OrderedDict[Who, None] = OrderedDict()
        """Whom else the server has let in to its session, the last one last: the same client with another token."""
        self.origin: UrlSession | None = None
        """The conversation of the session, where this is one of somebody of whom that is not known yet."""
        self.scope: ContractScope | None = None
        """What this request shares with others that have no session either."""
        self.remembered = 0
        """Bytes that are remembered of its events."""
        self._count = count
        self._known: OrderedDict[bytes, Known] = OrderedDict()

    @property
    def principal(self) -> str:
        """Whose it is."""
        return self.who.principal

    @property
    def idleness(self) -> Idleness:
        """How little would be lost with it. An open request that its client has left keeps no session alive."""
        conversation = self.session.conversation
        if self.hands and conversation.open_requests(Party.CLIENT):
            return Idleness.BUSY
        if any(map(conversation.open_requests, Party)):
            return Idleness.ASKED
        return Idleness.LISTENS if self.hands else Idleness.IDLE

    def joined(self, who: Who, now: float) -> "UrlSession":
        """The same conversation, for somebody who may prove to be of it, and only listens until then."""
        made = UrlSession(self.session, who, self.ident, now, lambda _: None)
        made._known = self._known
        made.origin = self
        return made

    def known(self, ident: bytes | None, data: bytes) -> Known | None:
        """The event of that id, if it carried the same message and that was judged."""
        found = self._known.get(ident) if ident else None
        return found if found is not None and found.digest == _digest(data) else None

    def stream_of(self, ident: bytes | None) -> Stream | None:
        """The stream that the event of that id was on."""
        found = self._known.get(ident) if ident else None
        return found.stream if found is not None else None

    def remember(self, ident: bytes | None, data: bytes, sent: bytes | None, stream: Stream) -> None:
        """Remember what became of an event with a judged message, should a client ask for it again."""
        if len(sent or b"") <= REMEMBERED_BYTES:
            self._remember(ident, Known(_digest(data), sent, stream))

    def place(self, ident: bytes | None, stream: Stream) -> None:
        """Remember which stream an event without a message was on, so that a client can resume after it."""
        self._remember(ident, Known(None, None, stream))

    def _remember(self, ident: bytes | None, known: Known) -> None:
        if self.ident is None or not ident or len(ident) > LONGEST_ID:
            return
        before = self._known.get(ident)
        if before is not None and before.digest is not None:
            # The same id with something else: what came first is what a client may have seen.
            return
        if self.origin is not None:
            # What belongs to the session is remembered, and counted, there.
            self.origin._remember(ident, known)
            return
        more = _weight(ident, known)
        if before is not None:
            more -= _weight(ident, before)
        self._known[ident] = known
        if len(self._known) > REMEMBERED:
            more -= _weight(*self._known.popitem(last=False))
        self.remembered += more
        self._count(more)

    def forget_events(self) -> None:
        """Remember none of its events any longer."""
        self._known.clear()
        freed, self.remembered = self.remembered, 0
        self._count(-freed)


def _weight(ident: bytes, known: Known) -> int:
    return 300 + len(ident) + len(known.sent or b"")


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _client(who: Who) -> ClientTraits:
    return ClientTraits("http", carries_raw=True, owner=who.principal)


_IN_SESSION: Final = ServerTraits("url")
_ALONE: Final = ServerTraits("url", cancels_by="closing")
"""A server without sessions learns by the end of its response that the client does not wait any more."""


class UrlSessions:
    """All conversations with one server."""

    def __init__(self, factory: SessionFactory, http: Http, clock: Callable[[], float], *, gated: bool = False) -> None:
        """*gated* if the guard itself tells principals apart: then each has its share of the sessions."""
        self._factory = factory
        self._http = http
        self._clock = clock
        self._share = http.sessions_each if gated else http.sessions
        self._each: dict[str, int] = {}
        """How many sessions each principal has."""
        self._sessions: OrderedDict[tuple[bytes, Who], UrlSession] = OrderedDict()
        self._renewed: dict[tuple[bytes, Who], UrlSession] = {}
        self._named: dict[bytes, dict[UrlSession, None]] = {}
        """Those of one id: more than one only where a server gives the same to several clients."""
        self._scopes: OrderedDict[tuple[Who, str], ContractScope] = OrderedDict()
        """What the requests without a session of one client share, by its revision."""
        self._unproved: WeakValueDictionary[tuple[Who, str], ContractScope] = WeakValueDictionary()
        """Those whom the server has not let in yet, while they ask: anybody can make up a token."""
        self._asked: OrderedDict[tuple[str, bytes, Id], UrlSession] = OrderedDict()
        self._remembered = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[UrlSession]:
        return iter(self._sessions.values())

    # ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def find(self, ident: bytes, who: Who) -> UrlSession | None:
        """The conversation of a session; somebody else's is none."""
        talk = self._sessions.get((ident, who)) or self._renewed.get((ident, who))
        if talk is not None:
            talk.used = self._clock()
            self._sessions.move_to_end((ident, talk.who))
        return talk

    def is_anothers(self, ident: bytes, principal: str) -> bool:
        """Whether that session is known, and not as one of *principal*."""
        named = self._named.get(ident)
        return named is not None and all(each.who.principal != principal for each in named)

    def knows(self, ident: bytes, principal: str) -> bool:
        """Whether that session is known as one of *principal*."""
        return any(each.who.principal == principal for each in self._named.get(ident, ()))

    def opening(self, who: Who) -> UrlSession:
        """A conversation that is about to open with `initialize`."""
        return UrlSession(self._factory.open(_client(who), _IN_SESSION), who, None, self._clock(), self._count)

    def adopted(self, ident: bytes, who: Who, revision: str, *, listens: bool = False) -> UrlSession:
        """
        The conversation of a session that was opened elsewhere, or with another token, or long ago.

        Tokens are renewed in the middle of a session. Whether this one is good the server knows: until it has said so,
        what is asked with it is a conversation of its own, which knows the tools of the session; who only *listens* to
        what the server says in that session hears it as it is.
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
        From now on *talk* is that of the session *ident*, or whoever speaks in it is one of those of that session.

        One too many pushes out the one that was idle longest.
        """
        if talk.origin is not None and self._sessions.get((ident, talk.origin.who)) is talk.origin:
            self._renew(talk.origin, ident, talk.who)
            return
        if talk.ident is None:
            talk.ident = ident
            talk.session.name = ident.decode("latin-1")
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
        Drop idle sessions until no more are left than there may be.

        Where all are busy they stay: there are no more of those than requests at once.
        """
        while (own := self._each[principal] > self._share) or len(self._sessions) > self._http.sessions:
            others = [each for each in self._sessions.values() if each is not newest]
            last = to_end(others, lambda each: each.idleness, principal, own_only=own)
            if last is None:
                return
            self.drop(last)

    def drop(self, talk: UrlSession) -> None:
        """Its session is over."""
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
        """The server has let *who* in to the session of *talk*."""
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
        """Drops the sessions that nobody has used for long, and gives up what nobody has come back for."""
        now = self._clock()
        for talk in list(self._sessions.values()):
            if not talk.hands:
                # Whoever waits keeps the time for itself.
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
        """A conversation of one request."""
        scope = self._scope(who, revision)
        talk = UrlSession(self._factory.borrow(scope, _client(who), _ALONE, revision), who, None, 0.0, self._count)
        talk.scope = scope
        return talk

    def admit(self, talk: UrlSession) -> None:
        """The server has let the client of *talk* in: what it has listed to that client is kept from now on."""
        revision = talk.session.conversation.revision
        if talk.scope is None or revision is None or (talk.who, revision) in self._scopes:
            return
        self._scopes[talk.who, revision] = talk.scope
        if len(self._scopes) > CLIENTS:
            self._scopes.popitem(last=False)

    def done(self, talk: UrlSession) -> None:
        """The one request of a conversation is over: the next one may use its session."""
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
            scope = self._unproved[key] = self._factory.scope()
        return scope

    def _count(self, more: int) -> None:
        """Bound what is remembered of events, of all sessions together."""
        self._remembered += more
        if more > 0 and self._remembered > REMEMBERED_BY_ALL:
            for talk in list(self._sessions.values()):
                talk.forget_events()
                if self._remembered <= REMEMBERED_BY_ALL // 2:
                    return

    # ── what servers ask ─────────────────────────────────────────────────────────────────────────────────────────────

    def asks(self, talk: UrlSession, ident: Id) -> None:
        """The server has asked something in *talk*. The answer comes by itself, perhaps with a new token."""
        self._asked[_scope(talk.who, talk.ident, ident)] = talk
        if len(self._asked) > ASKED:
            self._asked.popitem(last=False)

    @property
    def awaits(self) -> bool:
        """Whether a server waits for any answer."""
        return bool(self._asked)

    def asker(self, who: Who, session: bytes | None, ident: Id) -> UrlSession | None:
        """The conversation in which the server has asked what is answered now."""
        return self._asked.pop(_scope(who, session, ident), None)


def _scope(who: Who, session: bytes | None, ident: Id) -> tuple[str, bytes, Id]:
    return (who.principal, who.digest, ident) if session is None else (who.principal, b"session " + session, ident)

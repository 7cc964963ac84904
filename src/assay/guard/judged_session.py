"""
The messages of one guarded conversation: judged, timed, recorded, and turned into deliveries.

No I/O; the clock is given. `GuardedSession` adds what else can happen: servers and clients that come and go, time.
"""

from collections.abc import Callable, Iterable
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from assay.guard.connection_name import connection_name
from assay.guard.deadlines import ENDLESS, Deadlines
from assay.guard.deliveries import EMPTY, ClientTraits, Delivery, Failed, Loss, Outcome, ServerTraits, State, joined
from assay.guard.internal_errors import failed, log_once
from assay.guard.outgoing import answered, deliveries, is_message, requests, sent_bytes, unread
from assay.guard.restore import LASTING, SessionRestore, SessionState
from assay.guard.routing import Move, Router
from assay.guard.sinks import Sinks
from assay.guard.tool_listing import LISTED_AGAIN, ToolListing
from assay.judge.conversation import NO_FACTS, Conversation, Facts
from assay.model.json_values import params_of
from assay.model.verdict import Exchange, Party, Verdict
from assay.schema.tool_contract import Contract

if TYPE_CHECKING:
    from assay.guard.backoff import Backoff
    from assay.guard.summary import GuardSummary

FULL: Final = 1 << 20
"""Bytes that are kept, from which on the client is not read: as many as wait for a pipe."""

CROWDED: Final = FULL // 2
"""Bytes that are kept, from which on requests fail at once."""


class Backlog:
    """The deliveries that the next server gets, in their order, within bounds."""

    __slots__ = ("_kept", "size")

    def __init__(self) -> None:
        self._kept: list[Delivery] = []
        self.size = 0
        """Bytes that are kept."""

    @property
    def full(self) -> bool:
        """Whether the client is not to be read until the next server has taken what is kept."""
        return self.size >= FULL

    @property
    def crowded(self) -> bool:
        """Whether further requests fail at once."""
        return self.size >= CROWDED

    def add(self, deliveries: tuple[Delivery, ...]) -> None:
        """Keep *deliveries*."""
        self._kept += deliveries
        self.size += sum(len(each.frame) + 1 for each in deliveries)

    def drop(self, exchange: Exchange) -> bool:
        """Drop the message that is this request alone; False if it is not kept, or kept in a batch with others."""
        for number, each in enumerate(self._kept):
            if each.verdict is not None and each.verdict.exchange is exchange and each.verdict.kind == "request":
                del self._kept[number]
                self.size -= len(each.frame) + 1
                return True
        return False

    def requests(self) -> set[Exchange]:
        """Return the requests that are kept."""
        return {each for kept in self._kept if kept.verdict is not None for each in requests(kept.verdict) if each}

    def take(self) -> tuple[Delivery, ...]:
        """Return what was kept, and keep nothing."""
        kept, self._kept, self.size = tuple(self._kept), [], 0
        return kept


_LONGEST: Final = 100
"""Maximal characters of a name or a version: clients choose them."""

_MOST: Final = 20
"""Maximal capabilities to keep; a revision has fewer than ten."""


class ClientIdentity(NamedTuple):
    """The name of a client, its version, and the names of its capabilities."""

    name: str = ""
    version: str = ""
    capabilities: tuple[str, ...] = ()


def identity_of(message: Any) -> ClientIdentity:
    """Return the identity in *message*, an `initialize` request; what is missing or invalid is left empty."""
    params = params_of(message)
    info, capabilities = params.get("clientInfo"), params.get("capabilities")
    said = info if isinstance(info, dict) else {}
    names = list(capabilities)[:_MOST] if isinstance(capabilities, dict) else ()
    return ClientIdentity(_text(said.get("name")), _text(said.get("version")), tuple(name[:_LONGEST] for name in names))


def _text(value: Any) -> str:
    return value[:_LONGEST] if isinstance(value, str) else ""


_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER

CROWD: Final = 1000
"""Requests that fail at once, from which on each error has the last line of stderr only: 10,000 may wait."""

HANDSHAKE: Final = 60.0
"""Seconds that the next server has to answer `initialize`: as long as the clients of the official SDKs give it."""

TOOLS_LIST: Final = "tools/list"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"

LEFT: Final = Loss("closed", "the client left", failed=False)
CALM: Final = frozenset({State.NEW, State.OPENING, State.OPEN})
HOLDING: Final = frozenset({State.AWAY, State.RESTORING})


class HeldCall(NamedTuple):
    """A message of the client that waits for the list of tools: a call, a batch with one, or a cancellation."""

    frame: bytes
    facts: Facts
    message: Any

    @property
    def messages(self) -> list[Any]:
        """The message, or the entries of the batch."""
        return self.message if isinstance(self.message, list) else [self.message]


class Timing(NamedTuple):
    """How long a session waits, in seconds."""

    timeout: float = 0.0
    """For an answer of the server, counted anew with each progress; 0 for no limit. Under audit there is no limit."""
    drain: float = 0.0
    """For answers after the client's last message; 0 for no limit."""
    handshake: float = HANDSHAKE
    """For the next server to answer the repeated `initialize`."""
    clock: Callable[[], float] = perf_counter


class JudgedSession:
    """The messages between one client and one server."""

    __slots__ = (
        "__weakref__", "_backoff", "_began", "_blocked_at", "_clock", "_deadlines", "_drain", "_handshake", "_hear",
        "_held_bytes", "_held_calls", "_holds", "_identity", "_is_compiled", "_listing", "_listing_due",
        "_lost_listings", "_phase_due", "_restore", "_router", "_since", "_state", "_suspended", "_timeout", "backlog",
        "calm", "client", "compile_first", "conversation", "deadline", "enforcing", "lost", "may_wait", "memory",
        "name", "now", "on_listed", "records", "restarts", "seen_tools", "seen_whole", "server", "watch",
    )  # fmt: skip

    def __init__(
        self,
        conversation: Conversation,
        records: Sinks,
        client: ClientTraits,
        server: ServerTraits,
        *,
        timing: Timing = Timing(),  # noqa: B008 - a value that cannot change
        name: str = "",
        backoff: "Backoff | None" = None,
        watch: "GuardSummary | None" = None,
    ) -> None:
        """*name* is the id of the session, "" without one. Without *backoff* no other server follows a lost one."""
        self.conversation = conversation
        self.records = records
        self.client = client
        self.server = server
        self.name = connection_name(name, client.owner)
        self.watch = watch
        """The summary of this session, which is one of the sinks, and keeps its recent messages."""
        self.enforcing = conversation.mode == "enforce"
        self.deadline = inf
        """When to call `tick`, by the session's clock. May be early, is never late."""
        self.backlog = Backlog()
        """What the next server gets; a port does not read the client while it is full."""
        self.lost = 0
        """Settings of the client that the next server did not take: a log level, subscriptions."""
        self.restarts = 0
        """How often another server, or another session of it, took the place of a lost one."""
        self.memory = SessionState() if server.restorable else None
        self._identity = ClientIdentity()
        self._hear = conversation.hear
        self._router = Router(conversation)
        self._timeout = timing.timeout if self.enforcing else 0.0
        self._deadlines = Deadlines(self._timeout)
        self._since = self._deadlines.since
        self._drain = timing.drain
        self._handshake = timing.handshake
        self._clock = timing.clock
        self._backoff = backoff
        self._began = self.now = timing.clock()
        """When the last event came, by the session's clock."""
        self._phase_due = inf
        self._blocked_at: float | None = None
        self._restore: SessionRestore | None = None
        self._suspended = False
        self._holds = self.enforcing and not (client.transport == "http" and server.transport == "url")
        """Whether calls of unknown tools wait here for the list. A port to a URL requests the list itself."""
        self._listing: ToolListing | None = None
        self._listing_due = inf
        self._is_compiled = False
        self._lost_listings = 0
        self.compile_first: Callable[[list[Contract]], None] | None = None
        """Gets contracts that calls which have waited need, and is followed by `release`; None to compile them here."""
        self.on_listed: Callable[[], None] | None = None
        """Called when another session has listed the tools that this one waits for, and is followed by `release`."""
        self._held_calls: list[HeldCall] = []
        self._held_bytes = 0
        self._enter(State.OPEN if conversation.revision is not None else State.NEW)

    def rename(self, session: str) -> None:
        """Use the id *session* in the records from now on."""
        self.name = connection_name(session, self.client.owner)

    @property
    def state(self) -> State:
        """Where the session stands."""
        return self._state

    @property
    def owed(self) -> bool:
        """Whether the client waits for an answer that can be expected to come."""
        waits = any(each.method != ENDLESS for each in self.conversation.open_requests(_CLIENT))
        return waits or bool(self._held_calls)

    @property
    def has_held_calls(self) -> bool:
        """Whether calls wait for the list of tools, so that the server still has to be sent something."""
        return bool(self._held_calls)

    @property
    def held_bytes(self) -> int:
        """The bytes of these calls."""
        return self._held_bytes

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def judge(self, party: Party, frame: bytes, facts: Facts = NO_FACTS) -> Verdict:
        """
        Return the verdict on a frame. While the session is `calm`, one without findings is forwarded as it came.

        It is in the records then. All others go to `outcome`.
        """
        now = self.now = self._clock()
        verdict = None
        try:
            verdict = self._hear(party, frame, facts)
            exchange = verdict.exchange
            if exchange is None or exchange.contract is None or exchange.token is not None:
                self._note(verdict, now)
            elif self._timeout:
                # The call of a tool or its answer, as nearly all are.
                if exchange.state != "open":
                    self._since.pop(exchange.id, None)
                elif verdict.findings is None and verdict.kind == "request":
                    self._since[exchange.id] = now
                    due = now + self._timeout
                    self.deadline = min(self.deadline, due)
                else:
                    self._note(verdict, now)
        except Exception as error:
            verdict = self._unjudged(party, frame, error, verdict)
        if verdict.findings is None and self.calm:
            for passed in self.records.passes:
                try:
                    passed(verdict, now, self.name)
                except Exception as error:
                    self.records.skipped(error)
        return verdict

    def outcome(self, verdict: Verdict, rest: bytes | None = None) -> Outcome:
        """
        Return what goes where for a judged frame.

        *rest* is the end of an over-long frame; None if its rest follows by `more`.
        """
        try:
            return self._outcome(verdict, rest)
        except Exception as error:
            return self._fail_frame(verdict, error)

    def _outcome(self, verdict: Verdict, rest: bytes | None) -> Outcome:
        move = _passing(verdict)
        raw = None
        if verdict.findings is not None:
            if verdict.party is _SERVER and not self.enforcing and not is_message(verdict):
                raw = unread(verdict, rest or b"", self.conversation)
            move = self._router.act(verdict) if rest is None else self._router.whole(verdict, rest)
        elif self.calm:
            return self._drained(deliveries(verdict, move))
        if self._state in HOLDING and self.backlog.crowded and any(requests(verdict)):
            return self._turn_away(verdict)
        if verdict.party is _CLIENT and verdict.method == "tools/call":
            self.refresh()
        self._record(verdict, sent_bytes(move))
        made = deliveries(verdict, move, None if self.client.carries_raw else raw)
        for each in made.stray:
            self.records.event("stray", each, self.name)
        return self._drained(self._held(joined(made, self._settled(move))))

    def _record(self, verdict: Verdict, sent: int) -> None:
        if verdict.kind == "blank":
            return
        if verdict.findings is None and sent == len(verdict.frame):
            self.records.passed(verdict, self.now, self.name)
        else:
            self.records.found(verdict, self.now, self.name, sent)

    def _settled(self, move: Move) -> Outcome:
        """Record what a move says beside its frames; return the answers to the requests that fail for it."""
        if move.aside is not None:
            self.records.event("stray", move.aside, self.name)
        stray = () if move.aside is None else (move.aside,)
        return self._answers(move.settled)._replace(stray=stray)

    def _answers(self, left: Iterable[Failed]) -> Outcome:
        """Record requests that the guard answers itself; return the answers."""
        made = tuple(left)
        for each in made:
            self.records.found(each.verdict, self.now, self.name, len(each.answer))
            if each.exchange is not None:
                self._deadlines.forget(each.exchange)
                self._note_opening(each.verdict)
        return Outcome(to_client=answered(made), failed=made) if made else EMPTY

    def _held(self, made: Outcome) -> Outcome:
        """Return *made* without the frames for a server that is away: they are kept, except answers to it."""
        if self._state not in HOLDING or not made.to_server or made.to_server[0].replies:
            return made
        self.backlog.add(made.to_server)
        return made._replace(to_server=())

    def _drained(self, made: Outcome) -> Outcome:
        """Return *made*, closed if the client has left and no answer is due."""
        if self._state is not State.DRAINING or self.owed:
            return made
        return made._replace(closed=LEFT)

    def _turn_away(self, verdict: Verdict) -> Outcome:
        """Fail the requests in a message, because too much is kept for the next server already."""
        self.records.found(verdict, self.now, self.name, 0)
        why = Loss("broken", "too much waits for the next server already")
        refused = deliveries(verdict, Move(verdict.back))
        return joined(refused, self.exchange_lost([each for each in requests(verdict) if each is not None], why))

    def exchange_lost(self, exchanges: Iterable[Exchange], why: Loss) -> Outcome:
        """Fail requests whose HTTP request failed, while the server goes on; those that are not open are left out."""
        left = [self._given_up(each, why) for each in exchanges]
        return self._drained(self._answers(each for each in left if each is not None))

    def _given_up(self, exchange: Exchange, why: Loss) -> Failed | None:
        self.now = self._clock()
        if not self.conversation.is_open(exchange):
            return None
        self.backlog.drop(exchange)
        unstarted = why.reason == "unstartable"
        missing = self.conversation.give_up(
            _CLIENT, exchange.id, why.code, why.detail, why.data, unstarted=unstarted, excused=why.excuses
        )
        if missing is None:
            return None
        return Failed(missing, b"" if self._is_seen else missing.onward or b"", why.code)

    @property
    def _is_seen(self) -> bool:
        return self.client.sees_loss and not self.enforcing

    def _note(self, verdict: Verdict, now: float) -> None:
        if self._timeout:
            self._deadlines.note(verdict, now)
            self.deadline = min(self.deadline, self._deadlines.due)
        exchange = verdict.exchange
        if exchange is None or exchange.entry.name in LASTING:
            if self.memory is not None:
                self.memory.note(verdict)
            if exchange is not None:
                self._note_opening(verdict)
            elif verdict.kind == "notification" and verdict.method == TOOLS_CHANGED:
                self.refresh()
        elif verdict.kind == "result" and exchange.entry.name == TOOLS_LIST:
            self._note_listed()
            self.refresh()

    def _note_opening(self, verdict: Verdict) -> None:
        if verdict.kind == "request" and verdict.method == "initialize":
            self._identity = identity_of(verdict.value)
        if verdict.exchange is not None and verdict.exchange.method == "initialize" and self._state in CALM:
            self._enter(self._phase())
            if self._state is State.OPEN and verdict.kind == "result":
                opened = {"client": self._identity._asdict(), "revision": self.conversation.revision}
                self.records.event("opened", orjson.dumps(opened), self.name)

    def _note_listed(self) -> None:
        tools = self.conversation.tools
        self.records.event("listed", b'{"count":%d,"bytes":%d}' % (len(tools.known), tools.size), self.name)

    def _phase(self) -> State:
        if self.conversation.revision is not None:
            return State.OPEN
        opening = any(each.method == "initialize" for each in self.conversation.open_requests(_CLIENT))
        return State.OPENING if opening else State.NEW

    def _enter(self, state: State, due: float = inf) -> None:
        self._state = state
        self._phase_due = due
        self.deadline = min(self.deadline, due)
        self.refresh()

    def refresh(self) -> None:
        """Decide anew how much is to be looked at. To be called when the tools may have changed elsewhere."""
        tools = self.conversation.tools
        self.seen_tools, self.seen_whole = tools.known, tools.complete
        """What was known of the tools then."""
        self.may_wait = tools.is_late or (self.enforcing and not tools.complete)
        """Whether a call may have to wait for the list of tools, or for its contract to be compiled."""
        self.calm = self._state in CALM and self._restore is None and not self._looks_at_calls
        """Whether messages without findings are forwarded as they came, with nothing else to be looked at."""

    @property
    def _looks_at_calls(self) -> bool:
        """Whether the next call may be one of an unknown tool, and have to wait for the list of tools."""
        tools = self.conversation.tools
        if not self._holds or (tools.complete and self._listing is None):
            return False
        return tools.listed_at is None or bool(self._held_calls) or self.now - tools.listed_at >= LISTED_AGAIN

    def _unjudged(self, party: Party, frame: bytes, error: Exception, heard: Verdict | None) -> Verdict:
        """Return the verdict on a frame after an internal error, so that every request in it gets one answer."""
        verdict = failed(self.conversation, party, frame, error, heard)
        try:
            self._deadlines.note(verdict, self.now)
        except Exception as another:
            log_once(another)
        return verdict

    def _fail_frame(self, heard: Verdict, error: Exception) -> Outcome:
        """Return what goes where for a frame after an internal error; nothing was sent for it yet."""
        verdict = self._unjudged(heard.party, heard.frame, error, heard)
        try:
            move = self._router.act(verdict)
        except Exception as another:
            log_once(another)
            back, onward = verdict.back, verdict.onward
            move = Move(back, onward) if heard.party is _CLIENT else Move(onward, back)
        self.records.found(verdict, self.now, self.name, sent_bytes(move))
        return self._held(deliveries(verdict, move))


def _passing(verdict: Verdict) -> Move:
    return Move(to_server=verdict.frame) if verdict.party is _CLIENT else Move(to_client=verdict.frame)

"""Makes the guarded sessions of one server. No I/O."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from assay.guard.deliveries import ClientTraits, ServerTraits
from assay.guard.session import HANDSHAKE, GuardedSession, Timing
from assay.guard.sinks import Sinks
from assay.guard.terms import Terms
from assay.judge.conversation import Conversation, Facts
from assay.lock.inspection import Inspection
from assay.lock.locked import Locked
from assay.model.limits import Limits
from assay.model.verdict import Party
from assay.schema.tool_contracts import Tools

if TYPE_CHECKING:
    from assay.guard.backoff import Backoff
    from assay.guard.summary import GuardSummary
    from assay.records.http_notes import HttpNotes
    from assay.records.recording import Recording

MOST_SPARE: Final = 64
"""Sessions of one scope that are kept for the next request, some 10 kB each."""


class ContractScope:
    """What sessions that are one to their client share: the tools, the lock, the recent messages, known revisions."""

    __slots__ = ("__weakref__", "known", "lock", "spare", "tools", "watch")

    def __init__(self, tools: Tools, lock: "Inspection | None", watch: "GuardSummary") -> None:
        self.tools = tools
        self.lock = lock
        self.watch = watch
        self.known: Collection[str] | None = None
        """The revisions that the server has said it speaks."""
        self.spare: list[GuardedSession] = []


class SessionFactory:
    """How the sessions of one server are guarded."""

    __slots__ = ("_clock", "_judge", "_locked", "_recording", "_terms", "_watch", "http", "records")

    def __init__(
        self,
        terms: Terms,
        records: Sinks,
        watch: "GuardSummary",
        locked: "Locked | None" = None,
        *,
        recording: "Recording | None" = None,
        server: str = "",
        http: "HttpNotes | None" = None,
    ) -> None:
        """
        *records* are the sinks that all sessions share; each has a summary of its own beside them, after *watch*.

        *locked* is the server's entry in the lock, if it has one. With *recording* every message is written to that,
        under the name of the *server*. *http* gets each request of clients over HTTP.
        """
        self.http = http
        """Where an edge notes the HTTP request that it judges; None if records do not have it."""
        self._recording = recording
        self._judge: Callable[..., Conversation] = Conversation if recording is None else recording.judge(server)
        self._terms = terms
        self._locked = locked
        self._watch = watch
        self._clock = Timing().clock
        self.records = records
        """The sinks that all sessions share. A client port calls their `commit` before it writes."""

    @property
    def enforcing(self) -> bool:
        """Whether refused messages are stopped."""
        return self._terms.enforcing

    @property
    def timeout(self) -> float | None:
        """Seconds that a server has for an answer; None for no limit, as under audit."""
        return self._terms.timeout if self._terms.timeout and self.enforcing else None

    def now(self) -> float:
        """Return the time by the clock of the sessions, to which their deadlines refer."""
        return self._clock()

    @property
    def limits(self) -> Limits:
        """The limits of each conversation."""
        return self._terms.limits

    @property
    def frame_bytes(self) -> int:
        """How long a message may be."""
        return self._terms.limits.frame_bytes

    def open(
        self,
        client: ClientTraits,
        server: ServerTraits,
        *,
        scope: ContractScope | None = None,
        revision: str | None = None,
        name: str = "",
        watch: "GuardSummary | None" = None,
        backoff: "Backoff | None" = None,
        tools: Tools | None = None,
        drain: float = 0.0,
    ) -> GuardedSession:
        """
        Return a new session.

        With *revision* it is open already. With *scope* it shares that with others, otherwise it has a lock inspection
        and a summary of its own, unless *watch* is given. *tools* are those that it begins with. *drain* is how many
        seconds answers are waited for after the client's last message; 0 for no limit.
        """
        if scope is not None:
            tools, lock, watch = scope.tools, scope.lock, scope.watch if watch is None else watch
        else:
            lock = self.inspection()
            tools = self._tools(client.owner) if tools is None else tools
        watch = self._watch.another() if watch is None else watch
        conversation = self._judge(
            mode=self._terms.mode,
            limits=self._terms.limits,
            revision=revision,
            tools=tools,
            lock=lock,
            policy=self._terms.policy,
            lines=_line_peers(client, server),
        )
        timeout = self._terms.timeout
        timing = Timing(timeout, drain, min(timeout or HANDSHAKE, HANDSHAKE), self._clock)
        records = self.records.beside(watch)
        return GuardedSession(
            conversation, records, client, server, timing=timing, name=name, backoff=backoff, watch=watch
        )

    def scope(self, before: ContractScope | None = None, owner: str = "") -> ContractScope:
        """
        Return a new scope, of *owner* if it is that of one principal.

        After the scope *before* of a server that was lost, it begins with the same tools.
        """
        if before is None:
            tools = self._tools(owner)
        else:
            known = before.tools
            tools = known.handed_down() if self._recording is None else self._recording.hand_down(known)
        return ContractScope(tools, self.inspection(), self._watch.another())

    def _tools(self, owner: str) -> Tools:
        """Return the tools of a server that has not listed any: those that were locked."""
        made = Tools(self._terms.limits.tools, self._terms.limits.contract_bytes, owner)
        if self._locked is not None:
            made.expect(self._locked.contracts)
        return made

    def borrow(self, scope: ContractScope, client: ClientTraits, server: ServerTraits, revision: str) -> GuardedSession:
        """Return a session of *scope* for one request: a spare one, or a new one."""
        if not scope.spare:
            return self.open(client, server, scope=scope, revision=revision)
        made, tools = scope.spare.pop(), scope.tools
        # Another session may have learned the tools meanwhile.
        if made.seen_tools is not tools.known or made.seen_whole is not tools.complete:
            made.refresh()
        return made

    def give_back(self, scope: ContractScope, session: GuardedSession, *, clean: bool) -> None:
        """Keep a session for the next request if it is *clean*, without findings, and without open requests."""
        conversation = session.conversation
        used = conversation.open_requests(Party.CLIENT) or conversation.open_requests(Party.SERVER)
        if clean and not used and conversation.tools is scope.tools and len(scope.spare) < MOST_SPARE:
            conversation.forget_settled()
            scope.spare.append(session)

    def inspection(self) -> "Inspection | None":
        """Return what a session is compared with by the lock, if there is one."""
        if self._locked is None:
            return None

        return Inspection(self._locked)

    def passes(self, frame: bytes) -> bool:
        """Return whether the first message of a client goes on to a server. Nothing of it is recorded."""
        terms = self._terms
        conversation = Conversation(mode=terms.mode, limits=terms.limits, policy=terms.policy)
        return conversation.hear(Party.CLIENT, frame, Facts("http")).onward is not None


def _line_peers(client: ClientTraits, server: ServerTraits) -> bool:
    """Return whether both peers send lines: then a carriage return inside a message is refused."""
    return client.transport == "stdio" and server.transport == "child"

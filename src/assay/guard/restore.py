"""
What a client has agreed with its server for the whole session, and how the next server gets the same. No I/O, no clock.

The handshake, the log level, subscriptions to resources. All else that a server knew of its client is lost with it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from assay.guard.routing import Router
from assay.judge import syntax
from assay.judge.conversation import Conversation
from assay.judge.framing import Rest
from assay.judge.topics.capabilities import has_capability
from assay.model.limits import Limits
from assay.model.verdict import Exchange, Party, Verdict
from assay.rules.sentences import located

MOST_SUBSCRIPTIONS: Final = 1000
_URI_LENGTH: Final = 2048
"""Subscriptions that are repeated, and characters of an address: browsers and proxies do not go further either."""

_INITIALIZED: Final = "notifications/initialized"
LASTING: Final = frozenset({"initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Requests whose effect lasts as long as the session."""

_ANSWERS: Final = frozenset({"result", "error", "missing"})
_LISTS: Final = ("tools", "resources", "prompts")

_MARK: Final = b'"assay-again-'
"""How the ids of the guard's own requests begin. A client is free in its ids, and hardly uses such."""


class SessionState:
    """
    The state that one client has set at its server, as far as the server accepted it.

    The lists of the server are not part of it: the client gets notifications that they have changed.
    """

    __slots__ = ("_asked", "_level", "_subscriptions", "answer", "forgotten", "initialize", "initialized")

    def __init__(self) -> None:
        self._asked: dict[Exchange, bytes | str] = {}
        """Requests without an answer yet, with what is kept of each."""
        self.initialize: bytes | None = None
        """The client's `initialize`, once the server has answered it."""
        self.initialized: bytes | None = None
        self.answer: Mapping[str, Any] = {}
        """The result of `initialize`."""
        self._level: str | None = None
        self._subscriptions: dict[str, None] = {}
        self.forgotten = 0
        """Subscriptions that were too many to be remembered."""

    def restore(self, limits: Limits) -> "SessionRestore | None":
        """Return the conversation that brings the next server to this state; None if there was no handshake."""
        return SessionRestore(self, self.initialize, limits) if self.initialize is not None else None

    def lists_changed(self) -> Iterator[bytes]:
        """Yield the notifications that the client gets about a new server's lists, as far as it was promised any."""
        declared = self.answer.get("capabilities", {})
        for each in _LISTS if self.initialized is not None else ():
            if has_capability(declared, f"{each}.listChanged"):
                yield b'{"jsonrpc":"2.0","method":"notifications/%b/list_changed"}' % each.encode()

    def second_half(self) -> Iterator[bytes]:
        """Yield what the next server gets once it has answered `initialize`: that the client is ready, its settings."""
        if self.initialized is None:
            return
        yield self.initialized
        asked = [("logging/setLevel", "level", self._level)] if self._level is not None else []
        asked += [("resources/subscribe", "uri", each) for each in self._subscriptions]
        for number, (method, name, value) in enumerate(asked):
            params = b'{"%b":%b}' % (name.encode(), syntax.write(value))
            yield b'{"jsonrpc":"2.0","id":%b%d","method":"%b","params":%b}' % (_MARK, number, method.encode(), params)

    def note(self, verdict: Verdict) -> None:
        """Remember what lasts of a message that was judged."""
        for part in verdict.parts:
            self.note(part)
        exchange = verdict.exchange
        if verdict.kind == "notification":
            opened = verdict.party is Party.CLIENT and verdict.method == _INITIALIZED and verdict.accepted
            if opened and self.initialize is not None and self.initialized is None:
                self.initialized = verdict.frame
        elif exchange is None or exchange.asker is not Party.CLIENT or exchange.method not in LASTING:
            return
        elif verdict.kind == "request":
            if exchange.state == "open" and verdict.accepted:
                self._keep(exchange, verdict)
        elif verdict.kind == "result" and verdict.accepted and exchange in self._asked:
            self._agreed(exchange.method, self._asked.pop(exchange), verdict)
        else:
            self._asked.pop(exchange, None)

    def _keep(self, exchange: Exchange, verdict: Verdict) -> None:
        if len(self._asked) >= MOST_SUBSCRIPTIONS:
            # Those that were given up have not been heard of again.
            self._asked = {each: kept for each, kept in self._asked.items() if each.state == "open"}
        if exchange.method == "initialize":
            self._asked[exchange] = verdict.frame
            return
        params = verdict.value.get("params")
        kept = params.get("level" if exchange.method == "logging/setLevel" else "uri") if type(params) is dict else None
        if type(kept) is str and len(kept) <= _URI_LENGTH and len(self._asked) < MOST_SUBSCRIPTIONS:
            self._asked[exchange] = kept
        elif exchange.method == "resources/subscribe":
            self.forgotten += 1

    def _agreed(self, method: str, kept: bytes | str, verdict: Verdict) -> None:
        if isinstance(kept, bytes):
            self.initialize, self.initialized, self.answer = kept, None, verdict.value["result"]
        elif method == "logging/setLevel":
            self._level = kept
        elif method == "resources/unsubscribe":
            self._subscriptions.pop(kept, None)
        elif kept in self._subscriptions or len(self._subscriptions) < MOST_SUBSCRIPTIONS:
            self._subscriptions[kept] = None
        else:
            self.forgotten += 1


class SessionRestore:
    """
    The client's handshake with the next server, of which the client gets nothing.

    A judged conversation of its own, in which the guard repeats what the client has said.
    """

    __slots__ = (
        "_before", "_conversation", "_open", "_router", "_second_half", "forgotten", "initialize", "lists_changed",
        "lost", "opened", "refusal",
    )  # fmt: skip

    def __init__(self, state: SessionState, initialize: bytes, limits: Limits) -> None:
        self._before = state.answer
        # What the client says from now on reaches the server by itself.
        self._second_half = list(state.second_half())
        self.lists_changed = list(state.lists_changed())
        """What the client gets once the server is open."""
        self._conversation = Conversation(mode="enforce", limits=limits)
        self._router = Router(self._conversation)
        self.initialize = self._conversation.hear(Party.CLIENT, initialize)
        """What the server gets first."""
        self.opened = False
        """Whether the server has agreed to what the one before had agreed to."""
        self.refusal = ""
        """Why it cannot take the place of the one before, if it cannot."""
        self.forgotten = state.forgotten
        """Subscriptions that the next server does not get."""
        self.lost = 0
        """Settings that the next server has refused."""
        self._open = {self.initialize.exchange}

    @property
    def over(self) -> bool:
        """Whether everything is answered."""
        return self.opened and not self._open

    def hear(self, frame: bytes) -> Verdict | None:
        """Return the verdict on a frame of the server; None if the frame is not part of this handshake."""
        if self.opened and _MARK not in frame:
            return None
        for verdict in self._verdicts(frame):
            if verdict.kind in _ANSWERS and verdict.exchange in self._open:
                self._open.discard(verdict.exchange)
                if verdict.exchange is self.initialize.exchange:
                    self.refusal = self._objection(verdict)
                    self.opened = not self.refusal
                elif verdict.kind != "result":
                    self.lost += 1
                return verdict
        return None

    def second_half(self) -> Iterator[Verdict]:
        """Yield what the server gets once it is open, in that order."""
        for frame in self._second_half:
            verdict = self._conversation.hear(Party.CLIENT, frame)
            if verdict.accepted:
                if verdict.exchange is not None:
                    self._open.add(verdict.exchange)
                yield verdict

    def _verdicts(self, frame: bytes) -> Iterator[Verdict]:
        """Yield the verdict on *frame*, and on the missing answer if it cannot be read."""
        if type(frame) is Rest:
            settled = self._router.rest(Party.SERVER, frame).settled
        else:
            verdict = self._conversation.hear(Party.SERVER, frame)
            yield verdict
            settled = () if verdict.findings is None else self._router.act(verdict).settled
        for each in settled:
            yield each.verdict

    def _objection(self, verdict: Verdict) -> str:
        """Return why a client that has spoken to the server before cannot go on with this one; "" if it can."""
        if verdict.kind == "missing":
            return "its answer to initialize could not be read"
        if not verdict.accepted:
            return f"its answer to initialize broke the contract: {located(verdict.violations[0])}"
        if verdict.kind == "error":
            return f"it refused initialize: error {verdict.value['error']['code']}"
        result, before = verdict.value["result"], self._before
        if result.get("protocolVersion") != before.get("protocolVersion"):
            return "it answered initialize with another revision than before"
        if result.get("capabilities") != before.get("capabilities"):
            return "it answered initialize with other capabilities than before"
        return ""

"""
What a client has told its server for good, and how the next server is told the same. No I/O, no clock.

The handshake, the log level, subscriptions to resources. All else that a server knew of its client went with it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from assay.base.limits import Limits
from assay.base.verdict import Exchange, Party, Verdict
from assay.core.party_state import has_capability
from assay.guard.guard import Guard
from assay.ladder import syntax
from assay.ladder.framing import Rest

MOST_SUBSCRIPTIONS: Final = 1000
_URI_LENGTH: Final = 2048
"""Subscriptions that are made again, and characters of an address: browsers and proxies do not go further either."""

_INITIALIZED: Final = "notifications/initialized"
_STANDING: Final = frozenset({"initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
_ANSWERS: Final = frozenset({"result", "error", "missing"})
_LISTS: Final = ("tools", "resources", "prompts")

_MARK: Final = b'"assay-again-'
"""How the ids of our own requests begin. Those of the client are its own affair, and are hardly like that."""


class Hear(Protocol):
    """How a frame is judged."""

    def __call__(self, party: Party, frame: bytes) -> Verdict:
        """The verdict on *frame*."""


class Standing:
    """
    What one client has told its servers so far, as far as they have agreed.

    What a list of the server before says is not standing: whoever cares is told that lists have changed.
    """

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._asked: dict[Exchange, bytes | str] = {}
        """Requests that nobody has answered yet, with what is kept of them."""
        self.initialize: bytes | None = None
        """The client's `initialize`, once it was answered."""
        self.initialized: bytes | None = None
        self.answer: Mapping[str, Any] = {}
        """The result of it."""
        self._level: str | None = None
        self._subscriptions: dict[str, None] = {}
        self.forgotten = 0
        """Subscriptions that were too many to be remembered."""

    def hear(self, party: Party, frame: bytes) -> Verdict:
        """The verdict on *frame*, of which is kept what stands."""
        verdict = self._hear(party, frame)
        exchange = verdict.exchange
        if exchange is None or exchange.entry.name in _STANDING:
            self._note(verdict)
        return verdict

    def reopening(self, limits: Limits) -> "Reopening | None":
        """How the next server is told what stands now; None where there was no handshake."""
        return Reopening(self, self.initialize, limits) if self.initialize is not None else None

    def lists_changed(self) -> Iterator[bytes]:
        """The notifications that a client gets of a new server's lists: those that it was promised."""
        declared = self.answer.get("capabilities", {})
        for each in _LISTS if self.initialized is not None else ():
            if has_capability(declared, f"{each}.listChanged"):
                yield b'{"jsonrpc":"2.0","method":"notifications/%b/list_changed"}' % each.encode()

    def second_half(self) -> Iterator[bytes]:
        """What the next server is told once it has answered `initialize`: that the client is ready, and what it set."""
        if self.initialized is None:
            return
        yield self.initialized
        asked = [("logging/setLevel", "level", self._level)] if self._level is not None else []
        asked += [("resources/subscribe", "uri", each) for each in self._subscriptions]
        for number, (method, name, value) in enumerate(asked):
            params = b'{"%b":%b}' % (name.encode(), syntax.write(value))
            yield b'{"jsonrpc":"2.0","id":%b%d","method":"%b","params":%b}' % (_MARK, number, method.encode(), params)

    def _note(self, verdict: Verdict) -> None:
        for part in verdict.parts:
            self._note(part)
        exchange = verdict.exchange
        if verdict.kind == "notification":
            opened = verdict.party is Party.CLIENT and verdict.method == _INITIALIZED and verdict.accepted
            if opened and self.initialize is not None and self.initialized is None:
                self.initialized = verdict.frame
        elif exchange is None or exchange.asker is not Party.CLIENT or exchange.method not in _STANDING:
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


class Reopening:
    """
    The client's handshake with the next server, which the client never hears of.

    A conversation of its own, in which we say what the client has said.
    """

    def __init__(self, standing: Standing, initialize: bytes, limits: Limits) -> None:
        self._before = standing.answer
        # What the client says from now on reaches the server by itself.
        self._second_half = list(standing.second_half())
        self.lists_changed = list(standing.lists_changed())
        """What the client is told once the server is open."""
        self._guard = Guard(mode="enforce", limits=limits, clock=float)
        self.initialize = self._guard.hear(Party.CLIENT, initialize)
        """What the server is told first."""
        self.opened = False
        """Whether the server has agreed to what the one before had agreed to."""
        self.refusal = ""
        """Why it is no good in place of the one before, if it is not."""
        self.forgotten = standing.forgotten
        """Subscriptions that it is not told of."""
        self._open = {self.initialize.exchange}

    @property
    def over(self) -> bool:
        """Whether all that was asked is answered."""
        return self.opened and not self._open

    def hear(self, frame: bytes) -> Verdict | None:
        """The verdict on *frame*, which the server has said; None if it is none of ours."""
        if self.opened and _MARK not in frame:
            return None
        for verdict in self._verdicts(frame):
            if verdict.kind in _ANSWERS and verdict.exchange in self._open:
                self._open.discard(verdict.exchange)
                if verdict.exchange is self.initialize.exchange:
                    self.refusal = self._objection(verdict)
                    self.opened = not self.refusal
                return verdict
        return None

    def second_half(self) -> Iterator[Verdict]:
        """What the server is told once it is open, in that order."""
        for frame in self._second_half:
            verdict = self._guard.hear(Party.CLIENT, frame)
            if verdict.accepted:
                if verdict.exchange is not None:
                    self._open.add(verdict.exchange)
                yield verdict

    def _verdicts(self, frame: bytes) -> Iterator[Verdict]:
        """On *frame*, and on what it was meant to answer if it cannot be read."""
        if type(frame) is Rest:
            settled = self._guard.rest(Party.SERVER, frame).settled
        else:
            verdict = self._guard.hear(Party.SERVER, frame)
            yield verdict
            settled = () if verdict.findings is None else self._guard.act(verdict).settled
        for each in settled:
            yield each.verdict

    def _objection(self, verdict: Verdict) -> str:
        """Why a client that has spoken to the server before cannot go on with this one."""
        if verdict.kind == "missing":
            return "its answer to initialize could not be read"
        if not verdict.accepted:
            return f"its answer to initialize broke the contract: {verdict.violations[0]}"
        if verdict.kind == "error":
            return f"it refused initialize: error {verdict.value['error']['code']}"
        result, before = verdict.value["result"], self._before
        if result.get("protocolVersion") != before.get("protocolVersion"):
            return "it answered initialize with another revision than before"
        if result.get("capabilities") != before.get("capabilities"):
            return "it answered initialize with other capabilities than before"
        return ""

"""The state of one party: its open requests, its progress tokens, its capabilities. No judging, no I/O."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from assay.judge.revision_rules import Entry, RevisionRules
from assay.model.bounded import Bounded
from assay.model.json_values import Id
from assay.model.limits import Limits
from assay.model.verdict import Exchange, Kind, Party
from assay.spec.revisions import handshake

_MOST_SHARED: Final = 1000
"""The most shared progress tokens that are remembered per party. Each one is a mistake, so real clients have none."""

_BROKEN_OFF: Final = frozenset({"cancelled", "timed-out"})


class PartyState:
    """The state of one party."""

    __slots__ = (
        "_most_settled", "call", "capabilities", "excused", "garbage", "open", "party", "rules", "settled", "shared",
        "stateless", "tokens", "undeclared", "unknown", "unreadable",
    )  # fmt: skip

    def __init__(self, party: Party, limits: Limits, rules: RevisionRules) -> None:
        self.party = party
        self.open: dict[Id, Exchange] = {}
        """The requests of this party that are not answered. Each party has ids of its own, so ids may coincide."""
        self.excused: dict[Id, Exchange] = {}
        """Its malformed requests that were forwarded all the same, under audit: a missing answer is no violation."""
        self.settled: dict[Id, Exchange] = {}
        """The last requests that were answered, cancelled or given up, oldest first; at most twice the limit."""
        self.tokens: dict[Id, float | None] = {}
        """The progress tokens of its open requests, with the last progress of each."""
        self.shared: Bounded[Id, None] = Bounded(_MOST_SHARED)
        """Progress tokens that two open requests had at the same time, oldest first."""
        self.capabilities: Mapping[str, Any] | None = None
        """The capabilities that it declared; None until it does."""
        self.undeclared: frozenset[str] = frozenset()
        """Methods that it may not send, because the capability was not declared."""
        self.garbage = 0
        """The number of unreadable frames in a row."""
        self.call: Entry | None = None
        """The entry of `tools/call`, once the handshake has fixed how this party may use it."""
        self.unknown = 0
        """The number of forwarded requests that are not among the open ones: their id is unknown, or in use."""
        self.unreadable = 0
        """The number of forwarded messages that may be answered only with an error without an id, or as a batch."""
        self._most_settled = limits.settled
        self.use(rules)

    def use(self, rules: RevisionRules) -> None:
        """Judge this party by *rules* from now on."""
        self.rules = rules
        self.stateless = not handshake(rules.revision)
        self.call = None

    def close(self, exchange: Exchange, state: Literal["answered", "cancelled", "timed-out"]) -> None:
        """Close an open request of this party."""
        ident = exchange.id
        self.open.pop(ident, None)
        # Checked here as well: most requests have no token, and every answer comes here.
        if self.tokens:
            self.forget_token(exchange)
        exchange.state = state
        if state == "cancelled":
            exchange.cancelled = True
        settled = self.settled
        # Remove and insert again, so that the order is that of settling and the first ones are the oldest.
        if ident in settled:
            del settled[ident]
        settled[ident] = exchange
        if len(settled) > 2 * self._most_settled:
            self.settled = dict(list(settled.items())[-self._most_settled :])

    def answers_unknown(self) -> bool:
        """Return whether an answer without an open request may be that to an unknown one, and uncount that one."""
        if not self.unknown:
            return False
        self.unknown -= 1
        return True

    def answers_unreadable(self) -> bool:
        """Return whether an error without an id, or a batch, may answer such a message, and uncount that one."""
        if not self.unreadable:
            return self.answers_unknown()
        self.unreadable -= 1
        return True

    def awaited(self, ident: Id, kind: Kind) -> Exchange | None:
        """Return the open or excused request that an answer belongs to. If there are both, an error is the latter's."""
        exchange, invalid = self.open.get(ident), self.excused.get(ident)
        return invalid if invalid is not None and (exchange is None or kind == "error") else exchange

    def close_excused(self, exchange: Exchange) -> None:
        """Close an excused request. Its id is free again, and its token too unless an open request has the same."""
        self.excused.pop(exchange.id, None)
        exchange.state = "answered"
        if exchange.token is not None and all(each.token != exchange.token for each in self.open.values()):
            self.forget_token(exchange)

    def forget_excused(self) -> None:
        """Forget what invalid messages may still be answered."""
        # Not one by one: each would look through the open requests, and there may be ten thousand of both.
        used = {each.token for each in self.open.values()}
        for exchange in self.excused.values():
            if exchange.token not in used:
                self.forget_token(exchange)
        self.excused.clear()
        self.unknown = self.unreadable = 0

    def make_unclear(self, ident: Id) -> None:
        """Note that another request has the id of an open one: no one can say which of them an answer belongs to."""
        exchange = self.open[ident]
        exchange.detail, exchange.contract = exchange.tool, None
        exchange.entry = exchange.entry.rules.stranger(self.party, exchange.method)
        self.unknown += 1

    def may_have(self, ident: Id) -> bool:
        """Return whether a request with that id is, or may be, open."""
        return self.unknown > 0 or ident in self.open or ident in self.excused

    def forget_token(self, exchange: Exchange) -> None:
        """Forget the progress token of a request."""
        if exchange.token is not None:
            self.tokens.pop(exchange.token, None)

    def broke_off(self, token: Id) -> bool:
        """Return whether a request with this progress token was cancelled or given up, which its receiver may miss."""
        return any(each.token == token and each.state in _BROKEN_OFF for each in self.settled.values())

"""What is remembered of one party: its open requests, its progress tokens, what it has declared. No judging, no I/O."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from assay.base.limits import Limits
from assay.base.verdict import Exchange, Party
from assay.ladder.protocol import Entry, Judge
from assay.spec.methods import methods
from assay.spec.revisions import handshake

Id = str | int

_BROKEN_OFF: Final = frozenset({"cancelled", "timed-out"})


class Irregular:
    """
    Refused requests of one party that were forwarded all the same, until they are answered.

    They do not count as open requests: a missing answer to them is no violation.
    """

    __slots__ = ("_most", "batches", "count", "opening", "requests", "unknown", "unreadable")

    def __init__(self, most: int) -> None:
        """*most* is how many requests are kept; the others are only counted."""
        self._most = most
        self.clear()

    def clear(self) -> None:
        """Forget all of them."""
        self.requests: dict[Id, list[Exchange]] = {}
        """By id, oldest first."""
        self.count = 0
        self.unknown = 0
        """How many requests there may be beside these: unreadable ones, and those that there was no room for."""
        self.unreadable = 0
        """How many messages may be answered with an error that has no id."""
        self.batches = 0
        """How many refused batches may be answered with a batch."""
        self.opening: Any = None
        """The last malformed initialize."""

    def add(self, exchange: Exchange) -> bool:
        """Keep a request, or only count it if there are too many. Returns whether it is kept."""
        if self.count >= self._most:
            self.unknown += 1
            return False
        self.count += 1
        self.requests.setdefault(exchange.id, []).append(exchange)
        return True

    def remove(self, exchange: Exchange) -> None:
        """Forget a request that is kept."""
        waiting = self.requests[exchange.id]
        waiting.remove(exchange)
        self.count -= 1
        if not waiting:
            del self.requests[exchange.id]

    def may_have(self, ident: Id) -> bool:
        """Whether there is, or may be, a request of that id."""
        return self.unknown > 0 or ident in self.requests

    def answers_unknown(self) -> bool:
        """Whether an answer to nothing that is known may answer a request that only was counted; it counts then."""
        if not self.unknown:
            return False
        self.unknown -= 1
        return True

    def answers_unreadable(self) -> bool:
        """Whether an error without an id may answer a message that could not be read; it counts then."""
        if not self.unreadable:
            return False
        self.unreadable -= 1
        return True

    def answers_batch(self) -> bool:
        """Whether a batch of answers may answer a refused batch; it counts then."""
        if not self.batches:
            return False
        self.batches -= 1
        return True


class Side:
    """One party, as far as it has been heard."""

    __slots__ = (
        "_most_settled", "call", "capabilities", "garbage", "irregular", "judge", "open", "party",
        "settled", "shared", "stateless", "tokens", "undeclared",
    )  # fmt: skip

    def __init__(self, party: Party, limits: Limits, judge: Judge) -> None:
        self.party = party
        self.open: dict[Id, Exchange] = {}
        """Requests this party has made that are not answered. Each side counts for itself: ids may coincide."""
        self.settled: dict[Id, Exchange] = {}
        """The last of its requests that were answered, cancelled or given up, oldest first; at most twice the limit."""
        self.tokens: dict[Id, float | None] = {}
        """The progress tokens of its open requests, with the progress last told."""
        self.shared: dict[Id, None] = {}
        """Progress tokens that two open requests had at the same time, oldest first."""
        self.capabilities: Mapping[str, Any] | None = None
        """What it has declared; None until it has."""
        self.undeclared: frozenset[str] = frozenset()
        """Methods it may not use, because the capability was not declared."""
        self.garbage = 0
        """Unreadable frames in a row."""
        self.call: Entry | None = None
        """tools/call, once nothing can change any more about how this party may use it."""
        self.irregular = Irregular(limits.open_requests)
        """Its refused requests that were forwarded all the same, in audit mode."""
        self._most_settled = limits.settled
        self.use(judge)

    def use(self, judge: Judge) -> None:
        """From now on this party speaks the revision of *judge*."""
        self.judge = judge
        self.stateless = not handshake(judge.revision)
        self.call = None

    def close(self, exchange: Exchange, state: Literal["answered", "cancelled", "timed-out"]) -> None:
        """A request of this party is no longer open."""
        ident = exchange.id
        self.open.pop(ident, None)
        # Looked at here as well: most requests have no token, and every answer comes this way.
        if exchange.token is not None:
            self.forget_token(exchange)
        exchange.state = state
        settled = self.settled
        # Out and in again: the order is that of settling, so that the first ones are the oldest.
        if ident in settled:
            del settled[ident]
        settled[ident] = exchange
        if len(settled) > 2 * self._most_settled:
            self.settled = dict(list(settled.items())[-self._most_settled :])

    def forget_token(self, exchange: Exchange) -> None:
        """No more progress is due for a request of this party."""
        if exchange.token is not None:
            self.tokens.pop(exchange.token, None)

    def broke_off(self, token: Id) -> bool:
        """Whether a request with this progress token was cancelled or given up: who works on it may not know yet."""
        return any(each.token == token and each.state in _BROKEN_OFF for each in self.settled.values())


def undeclared(party: Party, revision: str, declared: Mapping[Party, Mapping[str, Any] | None]) -> frozenset[str]:
    """The methods that *party* may not send by what was declared; none while that is unknown."""
    if all(each is None for each in declared.values()):
        # So it is whenever a conversation begins, and without sessions each request begins one.
        return frozenset()
    return frozenset(
        name for name in methods(revision) if missing_capability(name, party, revision, declared) is not None
    )


def missing_capability(
    method: str, party: Party, revision: str, declared: Mapping[Party, Mapping[str, Any] | None]
) -> tuple[Party, str] | None:
    """Who has not declared which capability, so that *party* may not send *method*; None if it may."""
    known = methods(revision)[method]
    needed = known.needs(party.value) if party in known.senders else None
    if needed is None:
        return None
    owner, path = Party(needed[0]), needed[1]
    capabilities = declared[owner]
    return None if capabilities is None or has_capability(capabilities, path) else (owner, path)


def has_capability(capabilities: Mapping[str, Any], path: str) -> bool:
    """Whether *path* was declared: an object of that name, or a flag that is true."""
    here: Any = capabilities
    for step in path.split("."):
        here = here.get(step) if isinstance(here, Mapping) else None
        if here is None or here is False:
            return False
    return True

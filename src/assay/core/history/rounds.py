"""
Requests that were answered with "input required", and are sent again with the input (2026-07-28). No I/O, no clock.

Only the method, the tool and the state that the server gave show which round a request belongs to. So only what is
certain is judged, and only with one client: over HTTP the ids, and even the states, of different clients coincide.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from assay.base.verdict import Exchange, Violation
from assay.core.history.answer_rules import check_roots
from assay.core.history.input_requests import AskedInput, check_responses, kept
from assay.core.party_state import Id
from assay.core.render import shown_id
from assay.engine.budget import Budget
from assay.engine.pointers import escaped
from assay.rules import violation

_MOST: Final = 64
"""The most rounds that are remembered. A client sends the request again as soon as its user has answered."""


class Round(NamedTuple):
    """What the next request of a round is compared with."""

    key: int
    """A digest of the method, the tool and the state."""
    asked: Mapping[str, AskedInput]
    """What the server asked for, by the keys of the input requests."""


class Rounds:
    """The last rounds of one conversation, by the id of the request that was answered."""

    __slots__ = ("_rounds",)

    def __init__(self) -> None:
        self._rounds: dict[Id, Round] = {}

    def clear(self) -> None:
        """Forget all rounds."""
        self._rounds.clear()

    def asked_back(self, exchange: Exchange, result: dict[str, Any]) -> None:
        """Note that a request was answered with "input required"."""
        self._rounds.pop(exchange.id, None)
        self._rounds[exchange.id] = Round(_key(exchange, result), kept(result.get("inputRequests")))
        if len(self._rounds) > _MOST:
            del self._rounds[next(iter(self._rounds))]

    def check(self, exchange: Exchange, params: dict[str, Any], found: list[Violation], budget: Budget) -> int:
        """
        Judge a request that may be sent again with the requested input.

        Return at least how many violations there are beyond those in *found*.
        """
        if "inputResponses" not in params and "requestState" not in params:
            return 0
        key = _key(exchange, params)
        same = self._rounds.get(exchange.id)
        if same is not None and same.key == key:
            found.append(_same_id(exchange))
        return self._check_responses(exchange, params.get("inputResponses"), key, found, budget)

    def _check_responses(
        self, exchange: Exchange, responses: Any, key: int, found: list[Violation], budget: Budget
    ) -> int:
        if not isinstance(responses, dict):
            return 0
        asked = self._asked_by(key)
        for name, response in responses.items():
            if name not in asked and isinstance(response, dict):
                at = f"/params/inputResponses/{escaped(name)}"
                found += check_roots(response, at, exchange.revision, budget.violations)
        judge = exchange.entry.judge
        return check_responses(asked, responses, "/params/inputResponses", exchange.revision, judge, found, budget)

    def _asked_by(self, key: int) -> Mapping[str, AskedInput]:
        """Return what the round asked for; nothing if two rounds look the same and asked for different input."""
        known = [each.asked for each in self._rounds.values() if each.key == key]
        return known[0] if known and all(each == known[0] for each in known) else {}


def _key(exchange: Exchange, said: dict[str, Any]) -> int:
    state = said.get("requestState")
    return hash((exchange.method, exchange.tool, state if isinstance(state, str) else None))


def _same_id(exchange: Exchange) -> Violation:
    return violation(
        "protocol/retry-id",
        "/id",
        expected="a new id",
        found=f"{shown_id(exchange.id)}, which is that of the request it repeats",
        revision=exchange.revision,
    )

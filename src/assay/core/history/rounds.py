"""
Requests that were answered with "input required", and are sent again with the input (2026-07-28). No I/O, no clock.

Only the method, the tool and the state that the server gave show which round a request belongs to. So only what is
certain is judged, and only with one client: over HTTP the ids, and even the states, of different clients coincide.
"""

from typing import Any, Final, NamedTuple

from assay.base.verdict import Exchange, Violation
from assay.core.history.answer_rules import check_roots
from assay.core.history.forms import LARGEST, check_content, form_of
from assay.core.party_state import Id
from assay.core.render import shown_id
from assay.engine.budget import Budget
from assay.engine.pointers import escaped
from assay.rules import violation

_MOST: Final = 64
"""The most rounds that are remembered. A client sends the request again as soon as its user has answered."""

_MOST_FORMS: Final = 16
"""The most forms of one round that are remembered: all rounds have at most 4 MiB, and in practice a few kilobytes."""


class Round(NamedTuple):
    """What the next request of a round is compared with."""

    key: int
    """A digest of the method, the tool and the state."""
    forms: dict[str, bytes]
    """The forms to fill in, by the keys of the input requests."""


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
        self._rounds[exchange.id] = Round(_key(exchange, result), _forms(result.get("inputRequests")))
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
        forms = self._forms_of(key)
        more = 0
        for name, response in responses.items():
            at = f"/params/inputResponses/{escaped(name)}"
            if isinstance(response, dict):
                found += check_roots(response, at, exchange.revision, budget.violations)
            if name in forms:
                more += check_content(forms[name], response, at, exchange.revision, found, budget)
        return more

    def _forms_of(self, key: int) -> dict[str, bytes]:
        """Return the forms of the round; none if two rounds look the same and have different forms."""
        known = [each.forms for each in self._rounds.values() if each.key == key]
        return known[0] if known and all(each == known[0] for each in known) else {}


def _key(exchange: Exchange, said: dict[str, Any]) -> int:
    state = said.get("requestState")
    return hash((exchange.method, exchange.tool, state if isinstance(state, str) else None))


def _forms(requests: Any) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, each in (requests if isinstance(requests, dict) else {}).items():
        elicits = isinstance(each, dict) and each.get("method") == "elicitation/create"
        text = form_of(each.get("params")) if elicits and len(found) < _MOST_FORMS else None
        if text is not None and len(text) <= LARGEST // _MOST_FORMS and len(name) <= LARGEST // _MOST_FORMS:
            found[name] = text
    return found


def _same_id(exchange: Exchange) -> Violation:
    return violation(
        "protocol/retry-id",
        "/id",
        expected="a new id",
        found=f"{shown_id(exchange.id)}, which is that of the request it repeats",
        revision=exchange.revision,
    )

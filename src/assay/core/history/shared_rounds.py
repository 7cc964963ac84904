"""
Rounds of all clients of one server, over HTTP, where each request is a conversation of its own. No I/O, no clock.

Ids, and even states, of different clients coincide. So a round is found by its state alone, and nothing is judged that
depends on who sends the request: not its id, not its arguments, and not whether the state is the right one.
"""

from typing import Any, Final

from assay.base.verdict import Exchange, Violation
from assay.core import state_rules
from assay.core.history import retries
from assay.core.history.retries import DISTINCT, Round
from assay.engine.budget import Budget

_MOST: Final = 1000
"""The most states that are remembered: as many as users who answer a question at the same time."""

_MOST_ALIKE: Final = 8
"""The most rounds with one state that are compared. A state with more is a constant, and shows nothing."""

_MOST_BYTES: Final = 4 << 20
"""The most bytes of keys and forms; all states have a few kilobytes in practice."""


class SharedRounds:
    """The last rounds by their state, least recently given first."""

    __slots__ = ("_by_state", "_bytes", "_is_cut")

    def __init__(self) -> None:
        self._by_state: dict[int, list[Round] | None] = {}
        """None for a state with too many different rounds. It stays known, so that it is never judged by some."""
        self._bytes = 0
        self._is_cut = False
        """Whether a state was forgotten."""

    def asked_back(self, exchange: Exchange, result: dict[str, Any]) -> None:
        """Note that a request was answered with "input required"."""
        made = Round.of(exchange, result)
        # Another guard in front of the same server may have seen a short state with other requests.
        if made is None or made.state is None or len(result["requestState"]) < DISTINCT:
            return
        alike = self._by_state.pop(made.state, [])
        if alike is not None and not any(_is_same(made, each) for each in alike):
            alike.append(made)
            self._bytes += _size(made)
        self._by_state[made.state] = self._unless_too_many(alike)
        while self._bytes > _MOST_BYTES or len(self._by_state) > _MOST:
            self._is_cut = True
            self._bytes -= sum(map(_size, self._by_state.pop(next(iter(self._by_state))) or ()))

    def _unless_too_many(self, alike: list[Round] | None) -> list[Round] | None:
        if alike is None or len(alike) <= _MOST_ALIKE:
            return alike
        self._bytes -= sum(map(_size, alike))
        return None

    def check(self, exchange: Exchange, params: dict[str, Any], found: list[Violation], budget: Budget) -> int:
        """
        Judge a request that has a state or answers.

        Return at least how many violations there are beyond those in *found*.
        """
        state = params.get("requestState")
        if self._is_cut and isinstance(state, str) and hash(state) not in self._by_state:
            found.append(state_rules.forgotten("a requestState", "/params/requestState", exchange.revision))
        given = (self._by_state.get(hash(state)) if isinstance(state, str) else None) or []
        among = [each for each in given if each.is_about(exchange)]
        if given and not among:
            found.append(retries.other_target(given, exchange))
        return retries.check_answers(among, exchange, params, found, budget)


def _is_same(one: Round, other: Round) -> bool:
    """Return whether nothing that is judged here distinguishes two rounds."""
    return (one.method, one.subject, one.whole) == (
        other.method,
        other.subject,
        other.whole,
    ) and one.asked == other.asked


def _size(one: Round) -> int:
    """Return at most the bytes of its keys and forms."""
    return sum(4 * len(key) + len(each.form or b"") for key, each in one.asked.items())

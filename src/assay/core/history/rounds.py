"""
Requests that were answered with "input required", and are sent again with the input (2026-07-28). No I/O, no clock.

This is what is remembered with one client, over STDIO; `shared_rounds` has what several clients share. No id connects a
repeated request with the first one. Its `requestState` does, if it has one; otherwise its method, what it is about, and
the keys of its answers. If several rounds look the same, only that is judged in which they agree.
"""

from typing import Any, Final

from assay.base.verdict import Exchange, Violation
from assay.core import state_rules
from assay.core.history import retries
from assay.core.history.retries import DISTINCT, Round, subject_of
from assay.engine.budget import Budget

_MOST: Final = 64
"""
The most rounds that are remembered. A client sends the request again as soon as its user has answered. All of them
have at most 4 MiB of keys and forms, and in practice a few kilobytes.
"""

_MOST_STATES: Final = 1000
"""The most states that are remembered as given, as digests: about 64 KB. A user answers one question at a time."""


class Rounds:
    """The last rounds of one conversation with one client, oldest first."""

    __slots__ = ("_complete", "_is_cut", "_rounds", "_states")

    def __init__(self, *, whole: bool) -> None:
        """*whole* is whether the conversation is judged from its first message on."""
        self._rounds: list[Round] = []
        self._states: set[int] = set()
        """Digests of all states that the server gave."""
        self._complete = whole
        """Whether every state, and every round that is not repeated yet, is known."""
        self._is_cut = False
        """Whether a round or a state was forgotten."""

    def clear(self) -> None:
        """Forget all rounds."""
        self._rounds.clear()
        self._states.clear()
        self._complete = False

    def asked_back(self, exchange: Exchange, result: dict[str, Any]) -> None:
        """Note that a request was answered with "input required"."""
        made = Round.of(exchange, result)
        if made is None or len(self._states) >= _MOST_STATES:
            self._complete = False
        if made is None:
            return
        self._is_cut = self._is_cut or len(self._states) >= _MOST_STATES
        self._rounds.append(made)
        if made.state is not None and len(self._states) < _MOST_STATES:
            self._states.add(made.state)
        if len(self._rounds) > _MOST:
            self._forget_one()

    def _forget_one(self) -> None:
        """Forget the oldest round that was repeated already; without such a round, the oldest one."""
        done = next((each for each in self._rounds if not each.open), None)
        self._complete = self._complete and done is not None
        self._is_cut = True
        self._rounds.remove(self._rounds[0] if done is None else done)

    def ended(self, exchange: Exchange) -> None:
        """Note that a repeated request was answered by a task: the state and the keys of its round have ended."""
        if exchange.retries in self._rounds:
            self._rounds.remove(exchange.retries)

    def check(self, exchange: Exchange, params: dict[str, Any], found: list[Violation], budget: Budget) -> int:
        """
        Judge a request that has a state or answers.

        Return at least how many violations there are beyond those in *found*.
        """
        before = len(found)
        among = retries.likely(self._repeated(exchange, params, found), exchange, params)
        if self._is_cut and not among and len(found) == before:
            found.append(state_rules.forgotten("a request for input", "/params", exchange.revision))
        if among and all(retries.is_alike(each, among[-1]) for each in among):
            exchange.retries = among[-1]
            found += retries.check_id(among[-1], exchange)
        found += retries.check_arguments(among, exchange)
        return retries.check_answers(among, exchange, params, found, budget)

    def _repeated(self, exchange: Exchange, params: dict[str, Any], found: list[Violation]) -> list[Round]:
        """Return the rounds that the request may belong to, and judge its state."""
        state = params.get("requestState")
        if not isinstance(state, str):
            return self._by_keys(exchange, params, None, found)
        given = [each for each in self._rounds if each.state == hash(state)]
        if not given:
            return self._by_keys(exchange, params, hash(state), found)
        mine = [each for each in given if each.is_about(exchange)]
        if not mine and (self._complete or len(state) >= DISTINCT):
            found.append(retries.other_target(given, exchange))
        return mine

    def _by_keys(
        self, exchange: Exchange, params: dict[str, Any], state: int | None, found: list[Violation]
    ) -> list[Round]:
        """
        Return the rounds that the request belongs to by its answers, and judge its *state*, which no round has.

        An unknown state alone is not a violation: another guard, or an earlier conversation, may have seen it. It is
        one only if this conversation is known from its beginning, so that the server gave the state to no other
        client; if it did not give the state here; and if the answers are exactly those that a round of the same
        request still waits for. Then the client has changed the state, or made it up.
        """
        responses = params.get("inputResponses")
        if not isinstance(responses, dict) or subject_of(exchange) is None:
            return []
        waiting = [
            each
            for each in self._rounds
            if each.open and each.is_about(exchange) and not each.asked.keys().isdisjoint(responses)
        ]
        if state is not None:
            exact = [each for each in waiting if each.whole and each.asked.keys() == responses.keys()]
            if exact and self._complete and state not in self._states:
                found.append(retries.other_state(exact[-1], exchange))
            return []
        stateless = [each for each in waiting if each.state is None]
        if waiting and not stateless and self._complete:
            found.append(retries.no_state(exchange))
        return stateless or waiting

"""
One round, from the result that asks for input to the request that is sent again; and what the two must agree in.

For 2026-07-28. Each function gets the rounds that the request may belong to, and judges what all of them agree in. No
I/O, no clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import orjson

from assay.base.verdict import Exchange, Violation
from assay.core.history.answer_rules import check_roots
from assay.core.history.input_requests import AskedInput, check_responses, kept
from assay.core.party_state import Id
from assay.core.render import shown_id
from assay.engine.budget import Budget
from assay.engine.pointers import escaped
from assay.engine.wording import listed, name
from assay.ladder.protocol import MAY_ASK_BACK
from assay.rules import violation

DISTINCT: Final = 16
"""
The characters from which on a state is unlikely to be given twice: it contains a token, or a record of the request. A
shorter one may be the name of a step, such as "step-2", which other requests get as well.
"""

_SUBJECTS: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The member of the params that has what a request is about."""

_SHOWN: Final = 3
"""The keys of missing answers that are named."""

_AT: Final = "/params/inputResponses"


@dataclass(eq=False, slots=True)
class Round:
    """What is kept of a request that was answered with "input required". No payload: only digests and forms."""

    id: Id
    method: str
    subject: int
    """A digest of the tool, the prompt or the resource."""
    state: int | None
    """A digest of the state; None if the server gave none."""
    arguments: int | None
    """A digest of the arguments, if it was taken."""
    asked: Mapping[str, AskedInput]
    whole: bool
    """Whether *asked* has all requests for input."""
    open: bool = True
    """Whether the request was not sent again yet. With several clients that is not known."""

    @classmethod
    def of(cls, exchange: Exchange, result: dict[str, Any]) -> "Round | None":
        """Return the round that *result* begins; None if it is not known what the request was about."""
        subject = subject_of(exchange)
        if subject is None:
            return None
        requests, state = result.get("inputRequests", {}), result.get("requestState")
        asked = kept(requests)
        return cls(
            exchange.id,
            exchange.method,
            subject,
            hash(state) if isinstance(state, str) else None,
            exchange.arguments,
            asked,
            isinstance(requests, dict) and len(asked) == len(requests),
        )

    def is_about(self, exchange: Exchange) -> bool:
        """Return whether *exchange* has the same method, and calls, gets or reads the same."""
        return self.method == exchange.method and self.subject == subject_of(exchange)


def subject_of(exchange: Exchange) -> int | None:
    """Return a digest of the tool, the prompt or the resource of a request; None if it has none that is known."""
    tool = exchange.tool
    # A tool that was not listed when it was called is known by the first 100 characters of its name.
    return exchange.subject if tool is None else hash(tool[:100])


def take_subject(exchange: Exchange, params: Mapping[str, Any]) -> None:
    """
    Keep of a request what the same request with input will be compared with.

    The arguments of the first call of a listed tool are not kept, because that would cost every call. Once the tool has
    asked for input, those of its later calls are.
    """
    subject = params.get(_SUBJECTS[exchange.method])
    if isinstance(subject, str) and exchange.method != "tools/call":
        exchange.subject = hash(subject)
    contract = exchange.contract
    if exchange.over_http or not (contract is None or contract.asks_back or is_retry(params)):
        return
    try:
        # An absent object is an empty one.
        exchange.arguments = hash(orjson.dumps(params.get("arguments") or {}, option=orjson.OPT_SORT_KEYS))
    except orjson.JSONEncodeError:
        # An integer beyond 64 bits.
        return


def is_retry(params: Mapping[str, Any]) -> bool:
    """Return whether a request has a state or answers."""
    return "requestState" in params or "inputResponses" in params


def likely(among: list[Round], exchange: Exchange, params: Mapping[str, Any]) -> list[Round]:
    """
    Return the rounds among these that the request most likely continues, oldest first.

    A request is repeated once, as a rule. Of several that look the same, those are meant that the request fits.
    """
    answers = params.get("inputResponses")
    keys = answers.keys() if isinstance(answers, dict) else frozenset()
    among = [each for each in among if each.open] or among
    among = [each for each in among if each.asked.keys() == keys] or among
    return [each for each in among if each.arguments == exchange.arguments] or among


def is_alike(one: Round, other: Round) -> bool:
    """Return whether two rounds ask the same, as far as that is known: then it does not matter which is continued."""
    return one.asked == other.asked and one.arguments == other.arguments


# ── what a repeated request must agree in ────────────────────────────────────────────────────────────────────────────


def check_id(before: Round, exchange: Exchange) -> list[Violation]:
    """Return the violation of a repeated request with the id of the first one."""
    if before.id != exchange.id:
        return []
    shown = f"{shown_id(exchange.id)}, which is that of the request it repeats"
    return [_wrong("protocol/retry-id", "/id", "a new id", shown, exchange)]


def check_arguments(among: Sequence[Round], exchange: Exchange) -> list[Violation]:
    """Return the violation of a repeated request with other arguments; none if they are not known."""
    known = {each.arguments for each in among}
    if len(known) != 1 or None in known or exchange.arguments is None or exchange.arguments in known:
        return []
    expected = "the arguments of the repeated request"
    return [_wrong("protocol/retry-target", "/params/arguments", expected, "other arguments", exchange)]


def check_answers(
    among: Sequence[Round], exchange: Exchange, params: dict[str, Any], found: list[Violation], budget: Budget
) -> int:
    """
    Judge the answers of a repeated request: whether they are there, and whether they fit.

    Return at least how many violations there are beyond those in *found*.
    """
    given = params.get("inputResponses", {})
    responses: dict[str, Any] = given if isinstance(given, dict) else {}
    if among and all(each.whole for each in among):
        found += _check_keys(among, responses, params, exchange, budget.violations)
    asked = _agreed(among)
    if exchange.method in MAY_ASK_BACK:
        found += _check_other_roots(asked, responses, exchange, budget.violations)
    whole = all(each.whole for each in among)
    judge = exchange.entry.judge
    return check_responses(asked, responses, _AT, exchange.revision, judge, found, budget, whole=whole)


def _agreed(among: Sequence[Round]) -> Mapping[str, AskedInput]:
    """Return what all rounds asked for in the same words."""
    first, *others = [each.asked for each in among] or [{}]
    return {key: asked for key, asked in first.items() if all(each.get(key) == asked for each in others)}


def _check_keys(
    among: Sequence[Round], responses: dict[str, Any], params: dict[str, Any], exchange: Exchange, most: int
) -> list[Violation]:
    """Return the violations of answers that every round lacks, and of those that no round asked for."""
    needed = [key for key in among[0].asked if key not in responses and all(key in each.asked for each in among)]
    extra = [key for key in responses if not any(key in each.asked for each in among)]
    found = []
    if needed:
        missing = listed([name(key) for key in needed[:_SHOWN]], len(needed))
        shown = "none to " + missing if responses else "none"
        at = _AT if "inputResponses" in params else "/params"
        expected = "an answer to each request for input" if responses else f"answers to {missing}"
        found.append(_wrong("protocol/input-responses", at, expected, shown, exchange))
    for key in extra[:most]:
        expected, shown = "the key of a request for input", f"{name(key)}, which the server did not ask for"
        found.append(_wrong("protocol/input-responses", f"{_AT}/{escaped(key)}", expected, shown, exchange))
    return found


def _check_other_roots(
    asked: Mapping[str, AskedInput], responses: dict[str, Any], exchange: Exchange, most: int
) -> list[Violation]:
    """Return the violations of roots in answers whose request is not known, at most *most*."""
    found = (
        wrong
        for key, response in responses.items()
        if key not in asked and isinstance(response, dict)
        for wrong in check_roots(response, f"{_AT}/{escaped(key)}", exchange.revision, most)
    )
    return list(islice(found, most))


def other_target(given: Sequence[Round], exchange: Exchange) -> Violation:
    """Return the violation of a request with a state that the server gave for other requests."""
    methods = {each.method for each in given}
    if exchange.method not in methods:
        expected = f"{listed(sorted(methods), joint='or')}, for which the server gave the requestState"
        return _wrong("protocol/retry-target", "/method", expected, exchange.method, exchange)
    member = _SUBJECTS[exchange.method]
    expected = f"the {member} of the request for which the server gave the requestState"
    return _wrong("protocol/retry-target", f"/params/{member}", expected, "another", exchange)


def other_state(before: Round, exchange: Exchange) -> Violation:
    """Return the violation of a state that the server did not give."""
    expected = "no requestState, because the server gave none" if before.state is None else _UNCHANGED
    shown = "one" if before.state is None else "another value"
    return _wrong("protocol/request-state", "/params/requestState", expected, shown, exchange)


def no_state(exchange: Exchange) -> Violation:
    """Return the violation of a repeated request without the state that the server gave."""
    return _wrong("protocol/request-state", "/params", _UNCHANGED, "no requestState", exchange)


_UNCHANGED: Final = "the requestState that the server gave, unchanged"


def _wrong(rule: str, at: str, expected: str, found: str, exchange: Exchange) -> Violation:
    return violation(rule, at, expected=expected, found=found, revision=exchange.revision)

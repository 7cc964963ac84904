"""
Requests that were answered with "input required", and are sent again with the input (2026-07-28).

No id connects a repeated request with the first one: its `requestState` does, and what it is about. If several rounds
look the same, only that is judged in which they agree.

Over HTTP each request is a conversation of its own, and all clients of a server share its rounds. Ids, and even states,
of different clients coincide: so nothing is judged there that depends on who sends the request: not its id, not its
arguments, and not whether the state is the right one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import orjson

from assay.judge.render import shown_id
from assay.judge.revision_rules import MAY_ASK_BACK
from assay.judge.topics.capabilities import check_input_requests
from assay.judge.topics.inputs import AskedInput, check_responses, kept
from assay.judge.topics.roots import report_roots
from assay.judge.topics.table import on
from assay.model.bounded import BoundedSizes
from assay.model.json_values import Id, obj
from assay.model.verdict import Exchange
from assay.rules.report import Report
from assay.schema.pointers import escaped
from assay.schema.wording import listed, name

if TYPE_CHECKING:
    from assay.judge.state import State

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

_MOST_STATES: Final = 1000
"""The most states that are remembered, as digests: about 64 KB. A user answers one question at a time."""

_MOST_ALIKE: Final = 8
"""The most different rounds with one state that are compared. A state with more is a constant, and shows nothing."""

_MOST_BYTES: Final = 4 << 20
"""The most bytes of keys and forms that are kept; all states have a few kilobytes in practice."""


@dataclass(eq=False, slots=True)
class Round:
    """What is kept of a request that was answered with "input required". No payload: only digests and forms."""

    id: Id
    method: str
    subject: int
    """A digest of the tool, the prompt or the resource."""
    key: int
    """A digest of the state; if the server gave none, of what the request is about."""
    has_state: bool
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
        subject = _subject_of(exchange)
        if subject is None:
            return None
        requests, state = result.get("inputRequests", {}), result.get("requestState")
        asked = kept(requests)
        return cls(
            exchange.id,
            exchange.method,
            subject,
            _key(state, exchange.method, subject),
            isinstance(state, str),
            exchange.arguments,
            asked,
            isinstance(requests, dict) and len(asked) == len(requests),
        )

    def is_about(self, exchange: Exchange) -> bool:
        """Return whether *exchange* has the same method, and calls, gets or reads the same."""
        return self.method == exchange.method and self.subject == _subject_of(exchange)

    @property
    def distinction(self) -> tuple[Any, ...]:
        """What distinguishes it from other rounds with its state, beside the id."""
        return self.method, self.subject, self.arguments, self.whole, self.asked

    @property
    def size(self) -> int:
        """At most the bytes of its keys and forms."""
        return sum(4 * len(key) + len(each.form or b"") for key, each in self.asked.items())


class SharedRounds:
    """The last rounds of all clients of one server by their state, least recently given first."""

    # A server without sessions has what it needs in the state itself, and a new process continues.
    OUTLIVES_SERVER = True

    def __init__(self, _: object) -> None:
        self.by_state: BoundedSizes[int, list[Round] | None] = BoundedSizes(_MOST_STATES, _MOST_BYTES)
        """None for a state with too many different rounds. It stays known, so that it is never judged by some."""
        self.is_whole = False
        """Whether every state that the server gave to this client was known: with several clients that is not known."""

    def add(self, made: Round) -> None:
        """Keep a round, in place of one that nothing but its id distinguishes from it."""
        alike = self.by_state.get(made.key, [])
        # It is given anew, and so the last to be forgotten.
        self.by_state.take(made.key)
        if alike is not None:
            alike = [*(each for each in alike if each.distinction != made.distinction), made]
        self._put(made.key, alike if alike is not None and len(alike) <= _MOST_ALIKE else None)

    def remove(self, made: Round) -> None:
        """Forget a round, but not its state."""
        alike = self.by_state.get(made.key)
        if alike is not None:
            self._put(made.key, [each for each in alike if each is not made])

    def _put(self, key: int, alike: list[Round] | None) -> None:
        self.by_state.put(key, alike, sum(each.size for each in alike or ()))

    def waiting(self, exchange: Exchange, responses: Mapping[str, Any]) -> Round | None:
        """Return a round that waits for just these answers to the request of *exchange*; None without one."""
        every = (each for alike in self.by_state.values() for each in alike or ())
        fitting = (
            each
            for each in every
            if each.open and each.whole and each.is_about(exchange) and each.asked.keys() == responses.keys()
        )
        return next(fitting, None)


class Rounds(SharedRounds):
    """The last rounds of one conversation with one client."""

    OUTLIVES_SERVER = False

    def __init__(self, state: "State") -> None:
        super().__init__(state)
        self.is_whole = state.whole

    def forget_client(self) -> None:
        """Forget all rounds: the next requests come from another client."""
        for key in list(self.by_state):
            self.by_state.take(key)
        self.is_whole = False


def _key(state: Any, method: str, subject: int | None) -> int:
    """Return a digest of *state*; if it is none, of what the request is about."""
    return hash(state) if isinstance(state, str) else hash((method, subject))


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _subject_of(exchange: Exchange) -> int | None:
    """Return a digest of the tool, the prompt or the resource of a request; None if it has none that is known."""
    tool = exchange.tool
    # A tool that was not listed when it was called is known by the first 100 characters of its name.
    return exchange.subject if tool is None else hash(tool[:100])


@on("request", *MAY_ASK_BACK)
def take_subject(_: "State", exchange: Exchange, params: dict[str, Any], __: Report) -> None:
    """
    Keep of a request what the same request with input will be compared with.

    The arguments of the first call of a listed tool are not kept, because that would cost every call. Once the tool has
    asked for input, those of its later calls are.
    """
    if not exchange.entry.stateless:
        return
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


@on("forwarded", *MAY_ASK_BACK)
def close_round(_: "State", exchange: Exchange, __: dict[str, Any]) -> None:
    """Note that a request was sent again."""
    if exchange.retries is not None:
        exchange.retries.open = False


@on("answered", *MAY_ASK_BACK)
def take_round(state: "State", exchange: Exchange, result: dict[str, Any], _: Report) -> None:
    """Note that a request was not answered yet, but by asking for input, or by a task."""
    kind = result.get("resultType")
    if not exchange.entry.stateless or exchange.as_task:
        return
    if kind == "task" and exchange.retries is not None:
        # The state and the keys of the round have ended.
        state.own(Rounds).remove(exchange.retries)
    elif kind == "input_required":
        _keep(state, exchange, result)


def _keep(state: "State", exchange: Exchange, result: dict[str, Any]) -> None:
    """Keep the round that *result* begins."""
    made, own = Round.of(exchange, result), state.own(Rounds)
    own.is_whole = own.is_whole and made is not None
    if made is None:
        return
    if not exchange.over_http:
        own.add(made)
        if state.whole and exchange.contract is not None:
            state.tools.asked_back(exchange.contract)
    elif made.has_state and len(result["requestState"]) >= DISTINCT:
        state.shared(SharedRounds).add(made)


@on("result", *MAY_ASK_BACK)
def check_request_for_input(_: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report a result that asks back for nothing, or for what the client does not support."""
    if exchange.features.handshake or result.get("resultType") != "input_required":
        return
    if "inputRequests" not in result and "requestState" not in result:
        expected = "inputRequests, requestState or both"
        report.add("protocol/input-required", "/result", expected=expected, found="neither")
        return
    if exchange.declared is not None:
        check_input_requests(result.get("inputRequests"), "/result/inputRequests", exchange.declared, report)


# ── what a repeated request must agree in ────────────────────────────────────────────────────────────────────────────


def is_retry(params: Mapping[str, Any]) -> bool:
    """Return whether a request has a state or answers."""
    return "requestState" in params or "inputResponses" in params


def check_retry(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Report the violations of a request with the input that the answer to an earlier one asked for."""
    # A method of an unknown extension may use these members in its own way.
    if not exchange.entry.stateless or exchange.entry.params is None or not is_retry(params):
        return
    given = params.get("requestState")
    known = state.shared(SharedRounds) if exchange.over_http else state.own(Rounds)
    key = _key(given, exchange.method, _subject_of(exchange))
    alike = known.by_state.get(key) or []
    among = [each for each in alike if each.is_about(exchange)]
    if alike and not among:
        # Another guard in front of the same server may have seen a short state with other requests.
        if exchange.over_http or known.is_whole or len(str(given)) >= DISTINCT:
            _report_other_target(alike, exchange, report)
    # Over HTTP a round without a state is not kept.
    elif key not in known.by_state and (isinstance(given, str) or not exchange.over_http):
        _check_unknown(known, exchange, params, report)
    if not exchange.over_http:
        among = _likely(among, exchange, params)
        _check_repeated(among, exchange, report)
    _check_answers(among, exchange, params, report)


def _check_unknown(known: SharedRounds, exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """
    Report a state that the server did not give, or a missing one, of a request that no known round fits.

    An unknown state alone is not a violation: another guard, or an earlier conversation, may have seen it. It is one
    only if this conversation is known from its beginning, so that the server gave the state to no other client, and if
    the answers are exactly those that a round of the same request still waits for. Then the client has changed the
    state, or made it up.
    """
    if known.by_state.is_cut:
        report.add_forgotten("a request for input", "/params")
        return
    is_answered = known.is_whole and "inputResponses" in params
    waiting = known.waiting(exchange, obj(params["inputResponses"])) if is_answered else None
    if waiting is None:
        return
    at, expected, found = "/params/requestState", "the requestState that the server gave, unchanged", "another value"
    if "requestState" not in params:
        at, found = "/params", "no requestState"
    elif not waiting.has_state:
        expected, found = "no requestState, because the server gave none", "one"
    report.add("protocol/request-state", at, expected=expected, found=found)


def _check_repeated(among: Sequence[Round], exchange: Exchange, report: Report) -> None:
    """Report a wrong id or other arguments of a request that repeats one of these."""
    # If all ask the same, it does not matter which is continued.
    last = among[-1] if among else None
    if last is not None and all((each.asked, each.arguments) == (last.asked, last.arguments) for each in among):
        exchange.retries = last
        if last.id == exchange.id:
            shown = f"{shown_id(exchange.id)}, which is that of the request it repeats"
            report.add("protocol/retry-id", "/id", expected="a new id", found=shown)
    arguments = {each.arguments for each in among}
    if len(arguments) == 1 and None not in arguments and exchange.arguments not in {None, *arguments}:
        expected, found = "the arguments of the repeated request", "other arguments"
        report.add("protocol/retry-target", "/params/arguments", expected=expected, found=found)


def _likely(among: list[Round], exchange: Exchange, params: Mapping[str, Any]) -> list[Round]:
    """
    Return the rounds among these that the request most likely continues, oldest first.

    A request is repeated once, as a rule. Of several that look the same, those are meant that the request fits.
    """
    keys = obj(params.get("inputResponses")).keys()
    among = [each for each in among if each.open] or among
    among = [each for each in among if each.asked.keys() == keys] or among
    return [each for each in among if each.arguments == exchange.arguments] or among


def _check_answers(among: Sequence[Round], exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Report answers of a repeated request that are missing, or do not fit."""
    responses = obj(params.get("inputResponses", {}))
    whole = all(each.whole for each in among)
    if among and whole:
        _check_keys(among, responses, params, report)
    # What all rounds asked for in the same words.
    first, *others = [each.asked for each in among] or [{}]
    asked = {key: each for key, each in first.items() if all(other.get(key) == each for other in others)}
    if exchange.method in MAY_ASK_BACK:
        unknown = report.apart(report.most)
        for key, response in responses.items():
            if key not in asked and not unknown.is_full:
                report_roots(response, f"{_AT}/{escaped(key)}", unknown)
        report.found += unknown.found
    check_responses(asked, responses, _AT, exchange.entry.rules, report, whole=whole)


def _check_keys(among: Sequence[Round], responses: dict[str, Any], params: dict[str, Any], report: Report) -> None:
    """Report answers that every round lacks, and those that no round asked for."""
    needed = [key for key in among[0].asked if key not in responses and all(key in each.asked for each in among)]
    if needed:
        missing = listed([name(key) for key in needed[:_SHOWN]], len(needed))
        found = "none to " + missing if responses else "none"
        at = _AT if "inputResponses" in params else "/params"
        expected = "an answer to each request for input" if responses else f"answers to {missing}"
        report.add("protocol/input-responses", at, expected=expected, found=found)
    extra = (key for key in responses if not any(key in each.asked for each in among))
    for key in islice(extra, report.most):
        expected, found = "the key of a request for input", f"{name(key)}, which the server did not ask for"
        report.add("protocol/input-responses", f"{_AT}/{escaped(key)}", expected=expected, found=found)


def _report_other_target(given: Sequence[Round], exchange: Exchange, report: Report) -> None:
    """Report a request with a state that the server gave for other requests."""
    methods = {each.method for each in given}
    if exchange.method not in methods:
        expected = f"{listed(sorted(methods), joint='or')}, for which the server gave the requestState"
        report.add("protocol/retry-target", "/method", expected=expected, found=exchange.method)
        return
    member = _SUBJECTS[exchange.method]
    expected = f"the {member} of the request for which the server gave the requestState"
    report.add("protocol/retry-target", f"/params/{member}", expected=expected, found="another")

"""
Requests that were answered with "input required", and are sent again with the input (2026-07-28).

No id connects a repeated request with the first one. Its `requestState` does, if it has one; otherwise its method, what
it is about, and the keys of its answers. If several rounds look the same, only that is judged in which they agree.

Over HTTP each request is a conversation of its own, and all clients of a server share its rounds. Ids, and even states,
of different clients coincide: a round is found by its state alone, and nothing is judged that depends on who sends the
request: not its id, not its arguments, and not whether the state is the right one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import orjson

from assay.base.json_values import Id, obj
from assay.base.limits import Limits
from assay.base.verdict import Exchange, Party
from assay.core.render import shown_id
from assay.core.topics.capabilities import lacking, report_lack
from assay.core.topics.inputs import AskedInput, check_responses, kept
from assay.core.topics.results import report_roots
from assay.core.topics.table import on
from assay.core.topics.unjudged import forgotten
from assay.engine.pointers import escaped
from assay.engine.wording import listed, name
from assay.ladder.protocol import MAY_ASK_BACK
from assay.rules.report import Report

if TYPE_CHECKING:
    from assay.core.state import State

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

_MOST: Final = 64
"""
The most rounds of one client that are remembered. A client sends the request again as soon as its user has answered.
All of them have at most 4 MiB of keys and forms, and in practice a few kilobytes.
"""

_MOST_STATES: Final = 1000
"""The most states that are remembered, as digests: about 64 KB. A user answers one question at a time."""

_MOST_ALIKE: Final = 8
"""The most rounds with one state that are compared. A state with more is a constant, and shows nothing."""

_MOST_BYTES: Final = 4 << 20
"""The most bytes of keys and forms that clients share; all states have a few kilobytes in practice."""


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
        subject = _subject_of(exchange)
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
        return self.method == exchange.method and self.subject == _subject_of(exchange)

    def is_same(self, other: "Round") -> bool:
        """Return whether nothing that is judged without an id distinguishes two rounds."""
        mine, others = (self.method, self.subject, self.whole), (other.method, other.subject, other.whole)
        return mine == others and self.asked == other.asked

    @property
    def size(self) -> int:
        """At most the bytes of its keys and forms."""
        return sum(4 * len(key) + len(each.form or b"") for key, each in self.asked.items())


class Rounds:
    """The last rounds of one conversation with one client, oldest first."""

    __slots__ = ("complete", "is_cut", "rounds", "states")

    def __init__(self, state: "State") -> None:
        self.rounds: list[Round] = []
        self.states: set[int] = set()
        """Digests of all states that the server gave."""
        self.complete = state.whole
        """Whether every state, and every round that is not repeated yet, is known."""
        self.is_cut = False
        """Whether a round or a state was forgotten."""

    def forget_client(self) -> None:
        """Forget all rounds: the next requests come from another client."""
        self.rounds.clear()
        self.states.clear()
        self.complete = False

    def add(self, made: Round | None) -> None:
        """Keep a round; None for one that is not known."""
        is_full = len(self.states) >= _MOST_STATES
        self.complete = self.complete and made is not None and not is_full
        if made is None:
            return
        self.is_cut = self.is_cut or is_full
        self.rounds.append(made)
        if made.state is not None and not is_full:
            self.states.add(made.state)
        if len(self.rounds) > _MOST:
            # One that was repeated already goes first.
            done = next((each for each in self.rounds if not each.open), None)
            self.complete = self.complete and done is not None
            self.is_cut = True
            self.rounds.remove(self.rounds[0] if done is None else done)


class SharedRounds:
    """The last rounds of all clients of one server by their state, least recently given first."""

    __slots__ = ("by_state", "bytes", "is_cut")

    # A server without sessions has what it needs in the state itself, and a new process continues.
    OUTLIVES_SERVER = True

    def __init__(self, _: Limits) -> None:
        self.by_state: dict[int, list[Round] | None] = {}
        """None for a state with too many different rounds. It stays known, so that it is never judged by some."""
        self.bytes = 0
        self.is_cut = False
        """Whether a state was forgotten."""

    def add(self, made: Round, state: int) -> None:
        """Keep a round by its *state*."""
        alike = self.by_state.pop(state, [])
        if alike is not None and not any(made.is_same(each) for each in alike):
            alike.append(made)
            self.bytes += made.size
        if alike is not None and len(alike) > _MOST_ALIKE:
            self._let_go(alike)
            alike = None
        self.by_state[state] = alike
        while self.bytes > _MOST_BYTES or len(self.by_state) > _MOST_STATES:
            self.is_cut = True
            self._let_go(self.by_state.pop(next(iter(self.by_state))) or [])

    def _let_go(self, rounds: list[Round]) -> None:
        self.bytes -= sum(each.size for each in rounds)


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
    rounds = state.own(Rounds)
    if kind == "task" and exchange.retries in rounds.rounds:
        # The state and the keys of the round have ended.
        rounds.rounds.remove(exchange.retries)
    elif kind == "input_required":
        made = Round.of(exchange, result)
        rounds.add(made)
        if not exchange.over_http and state.whole:
            if exchange.contract is not None:
                state.tools.asked_back(exchange.contract)
        # Another guard in front of the same server may have seen a short state with other requests.
        elif made is not None and made.state is not None and len(result["requestState"]) >= DISTINCT:
            state.shared(SharedRounds).add(made, made.state)


@on("result", *MAY_ASK_BACK)
def check_request_for_input(_: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report a result that asks back for nothing, or for what the client does not support."""
    if exchange.features.handshake or result.get("resultType") != "input_required":
        return
    if "inputRequests" not in result and "requestState" not in result:
        expected = "inputRequests, requestState or both"
        report.add("protocol/input-required", "/result", expected=expected, found="neither")
        return
    if exchange.declared is None:
        return
    # A result may have a hundred thousand requests.
    lacks = (
        (f"/result/inputRequests/{escaped(key)}{at}", path)
        for key, request in obj(result.get("inputRequests")).items()
        if isinstance(request, dict)
        for at, path in lacking(str(request.get("method")), obj(request.get("params")), exchange.declared)
    )
    for at, path in islice(lacks, report.most):
        report_lack(at, Party.CLIENT, path, report)


# ── what a repeated request must agree in ────────────────────────────────────────────────────────────────────────────


def is_retry(params: Mapping[str, Any]) -> bool:
    """Return whether a request has a state or answers."""
    return "requestState" in params or "inputResponses" in params


def check_retry(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Report the violations of a request with the input that the answer to an earlier one asked for."""
    # A method of an unknown extension may use these members in its own way.
    if not exchange.entry.stateless or exchange.entry.params is None or not is_retry(params):
        return
    if exchange.over_http:
        among = _shared_rounds(state.shared(SharedRounds), exchange, params, report)
    else:
        among = _own_rounds(state.own(Rounds), exchange, params, report)
    _check_answers(among, exchange, params, report)


def _shared_rounds(known: SharedRounds, exchange: Exchange, params: dict[str, Any], report: Report) -> list[Round]:
    """Return the rounds of any client that the request may belong to, and judge its state."""
    state = params.get("requestState")
    if not isinstance(state, str):
        return []
    if known.is_cut and hash(state) not in known.by_state:
        forgotten("a requestState", "/params/requestState", report)
    given = known.by_state.get(hash(state)) or []
    among = [each for each in given if each.is_about(exchange)]
    if given and not among:
        _report_other_target(given, exchange, report)
    return among


def _own_rounds(known: Rounds, exchange: Exchange, params: dict[str, Any], report: Report) -> list[Round]:
    """Return the rounds of the client that the request may belong to, and judge its state, id and arguments."""
    before = len(report.found)
    among = _likely(_repeated(known, exchange, params, report), exchange, params)
    if known.is_cut and not among and len(report.found) == before:
        forgotten("a request for input", "/params", report)
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
    return among


def _repeated(known: Rounds, exchange: Exchange, params: dict[str, Any], report: Report) -> list[Round]:
    """Return the rounds with the state of the request, or else with its keys; and judge its state."""
    state = params.get("requestState")
    if not isinstance(state, str):
        return _by_keys(known, exchange, params, None, report)
    given = [each for each in known.rounds if each.state == hash(state)]
    if not given:
        return _by_keys(known, exchange, params, hash(state), report)
    mine = [each for each in given if each.is_about(exchange)]
    if not mine and (known.complete or len(state) >= DISTINCT):
        _report_other_target(given, exchange, report)
    return mine


def _by_keys(
    known: Rounds, exchange: Exchange, params: dict[str, Any], state: int | None, report: Report
) -> list[Round]:
    """
    Return the rounds that the request belongs to by its answers, and judge its *state*, which no round has.

    An unknown state alone is not a violation: another guard, or an earlier conversation, may have seen it. It is one
    only if this conversation is known from its beginning, so that the server gave the state to no other client; if it
    did not give the state here; and if the answers are exactly those that a round of the same request still waits for.
    Then the client has changed the state, or made it up.
    """
    responses = params.get("inputResponses")
    if not isinstance(responses, dict) or _subject_of(exchange) is None:
        return []
    waiting = [
        each
        for each in known.rounds
        if each.open and each.is_about(exchange) and not each.asked.keys().isdisjoint(responses)
    ]
    if state is not None:
        exact = [each for each in waiting if each.whole and each.asked.keys() == responses.keys()]
        if exact and known.complete and state not in known.states:
            has_state = exact[-1].state is not None
            expected = _UNCHANGED if has_state else "no requestState, because the server gave none"
            found = "another value" if has_state else "one"
            report.add("protocol/request-state", "/params/requestState", expected=expected, found=found)
        return []
    stateless = [each for each in waiting if each.state is None]
    if waiting and not stateless and known.complete:
        report.add("protocol/request-state", "/params", expected=_UNCHANGED, found="no requestState")
    return stateless or waiting


_UNCHANGED: Final = "the requestState that the server gave, unchanged"


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
    check_responses(asked, responses, _AT, exchange.entry.judge, report, whole=whole)


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

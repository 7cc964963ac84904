"""
Requests that run as tasks (2025-11-25), and what their payload must be.

A task outlives the answer to the request that started it, so what that request needs is remembered here.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from assay.base.bounded import Bounded
from assay.base.json_values import obj
from assay.base.verdict import Exchange, Party
from assay.core.party_state import has_capability
from assay.core.topics import forms
from assay.core.topics.lists import check_length
from assay.core.topics.table import on
from assay.core.topics.unjudged import forgotten
from assay.engine.pointers import escaped
from assay.ladder import contract
from assay.ladder.revision_rules import Definition
from assay.rules.report import Report

if TYPE_CHECKING:
    from assay.core.state import State

TASK_CAPABILITIES: Final = {
    "tools/call": "tasks.requests.tools.call",
    "sampling/createMessage": "tasks.requests.sampling.createMessage",
    "elicitation/create": "tasks.requests.elicitation.create",
}
"""The capability of the receiver for each request that may run as a task."""

_ABOUT_TASKS: Final = ("tasks/get", "tasks/result", "tasks/cancel")

_MOST_TASKS: Final = 1000
"""The most tasks that are remembered so that their payload can be judged by their request."""

_MOST_PAST: Final = 10_000
"""The most tasks before those, of which only the needs of their payload are remembered: some 300 bytes each."""

_PAYLOADS: Final = {
    Party.CLIENT: ("CallToolResult",),
    Party.SERVER: ("CreateMessageResult", "ElicitResult"),
}
"""The requests that a task can belong to, by the party that sent them: an unknown task has one of these."""

_RELATED: Final = "io.modelcontextprotocol/related-task"


class Tasks:
    """The tasks of one conversation, of both parties."""

    __slots__ = ("_id_bytes", "_past", "_sides", "_started")

    def __init__(self, state: "State") -> None:
        self._sides = state.sides
        self._id_bytes = state.limits.id_bytes
        self._started: dict[tuple[Party, str], Exchange] = {}
        self._past: Bounded[tuple[Party, bytes], Exchange] = Bounded(_MOST_PAST)

    def runs(self, exchange: Exchange) -> bool:
        """Return whether the receiver runs such a request as a task; otherwise it ignores the member `task`."""
        path = TASK_CAPABILITIES.get(exchange.method)
        declared = self._sides[exchange.asker.other].capabilities
        return exchange.features.tasks and path is not None and declared is not None and has_capability(declared, path)

    def has(self, exchange: Exchange | None) -> bool:
        """Return whether a request is a task: not answered yet, or answered with one."""
        if exchange is None or not exchange.as_task:
            return False
        return exchange.state == "open" or any(each is exchange for each in self._started.values())

    def started(self, exchange: Exchange, result: dict[str, Any]) -> None:
        """Note that a request was answered with a task."""
        name = _task_id(result.get("task"))
        if name is None or len(name) > self._id_bytes:
            return
        self._end(exchange.asker, name)
        self._past.pop((exchange.asker, _digest(name)), None)
        self._started[exchange.asker, name] = exchange
        # A task outlives the answer to the request that started it, and continues to report progress.
        if exchange.token is not None:
            self._sides[exchange.asker].tokens[exchange.token] = None
        if len(self._started) > _MOST_TASKS:
            self._set_by(*next(iter(self._started)))

    def request_of(self, exchange: Exchange) -> Exchange | None:
        """Return the request that started the task which *exchange* asks about; None if it is not known."""
        name = exchange.detail
        if not isinstance(name, str):
            return None
        return self._started.get((exchange.asker, name)) or self._past.get((exchange.asker, _digest(name)))

    def fetched(self, exchange: Exchange) -> None:
        """Note that the payload of a task was forwarded. It may be fetched again, and is judged the same way."""
        started = self._started.get((exchange.asker, exchange.detail))
        if started is not None:
            self._sides[exchange.asker].forget_token(started)

    def renew(self) -> None:
        """Forget the tasks of the server before."""
        for asker, name in list(self._started):
            self._end(asker, name)
        self._past.clear()

    def _set_by(self, asker: Party, name: str) -> None:
        """Keep of a task only what its payload needs."""
        exchange = self._started[asker, name]
        self._end(asker, name)
        self._past[asker, _digest(name)] = exchange

    def _end(self, asker: Party, name: str) -> None:
        exchange = self._started.pop((asker, name), None)
        if exchange is not None:
            self._sides[asker].forget_token(exchange)


@on("request", *TASK_CAPABILITIES, *_ABOUT_TASKS)
def take_task(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Keep whether a request runs as a task, or which task it asks about."""
    exchange.as_task = "task" in params and state.own(Tasks).runs(exchange)
    task = params.get("taskId")
    if exchange.features.tasks and exchange.method in _ABOUT_TASKS and isinstance(task, str):
        fits = check_length("/params/taskId", task, state.limits.id_bytes, report)
        exchange.detail = task if fits else None


def is_task(exchange: Exchange, result: Mapping[str, Any]) -> bool:
    """
    Return whether the *result* of a request that asks to run as a task must be a task.

    A server should refuse to run a tool as a task if the tool forbids that, but it may run the tool at once.
    """
    forbidden = exchange.contract is not None and not exchange.contract.runs(as_task=True)
    return "task" in result or not forbidden


@on("result", *TASK_CAPABILITIES)
def check_started(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report a task whose id is too long: it is kept as long as the task."""
    name = _task_id(result.get("task")) if exchange.as_task else None
    if name is not None:
        check_length("/result/task/taskId", name, state.limits.id_bytes, report)


@on("answered", *TASK_CAPABILITIES)
def note_started(state: "State", exchange: Exchange, result: dict[str, Any], _: Report) -> None:
    """Keep a task that was started."""
    if exchange.as_task:
        state.own(Tasks).started(exchange, result)


@on("result", "tasks/result")
def check_payload(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report the violations of the payload of a task, which is the answer to the request that started it."""
    before = len(report.found)
    started = state.own(Tasks).request_of(exchange)
    if started is None:
        _check_unknown(exchange, result, report)
    else:
        definition: Definition = started.entry.result
        if definition.check("protocol/result", result, "/result", report) and started.contract is not None:
            contract.check_output(started.contract, result, report)
    if len(report.found) == before:
        _check_related(exchange, result, report)
        if started is None:
            forgotten("a task", "/result", report)
    forms.check_answer(state, started, result, report)


def _check_unknown(exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report the payload of an unknown task if it is not a result that some task can have."""
    known: list[Definition] = [exchange.entry.rules.definition(name) for name in _PAYLOADS[exchange.asker]]
    if not any(each.is_valid(result) for each in known):
        known[0].check("protocol/result", result, "/result", report)


def _check_related(exchange: Exchange, result: Mapping[str, Any], report: Report) -> None:
    """Report a payload whose `_meta` does not name its task: nothing else in it does."""
    name = _task_id(obj(result.get("_meta")).get(_RELATED))
    if name is not None and (name == exchange.detail or not isinstance(exchange.detail, str)):
        return
    at, found = f"/result/_meta/{escaped(_RELATED)}", "nothing" if name is None else f'"{name[:60]}"'
    report.add("protocol/related-task", at, expected="the taskId that was asked for", found=found)


@on("answered", "tasks/result")
def note_fetched(state: "State", exchange: Exchange, _: dict[str, Any], __: Report) -> None:
    """Note that the payload of a task was forwarded."""
    state.own(Tasks).fetched(exchange)


def _task_id(value: Any) -> str | None:
    name = obj(value).get("taskId")
    return name if isinstance(name, str) else None


def _digest(name: str) -> bytes:
    """Return a digest of an id, which may have a thousand characters."""
    return blake2b(name.encode(errors="replace"), digest_size=16).digest()

"""
Requests that run as tasks (2025-11-25), and what their payload must be. No I/O, no clock.

A task outlives the answer to the request that started it, so what that request needs is remembered here.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from assay.base.limits import Limits
from assay.base.verdict import Exchange, Party, Violation
from assay.core import state_rules
from assay.core.party_state import Side, has_capability
from assay.engine.budget import Budget
from assay.ladder import contract
from assay.ladder.protocol import Definition

TASK_CAPABILITIES: Final = {
    "tools/call": "tasks.requests.tools.call",
    "sampling/createMessage": "tasks.requests.sampling.createMessage",
    "elicitation/create": "tasks.requests.elicitation.create",
}
"""The capability of the receiver for each request that may run as a task."""

# The most tasks that are remembered so that their payload can be judged by their request.
_MOST_TASKS: Final = 1000

# The most tasks before those, of which only the needs of their payload are remembered: some 300 bytes each.
_MOST_PAST: Final = 10_000

# The requests that a task can belong to, by the party that sent them: an unknown task has one of these.
_PAYLOADS: Final = {
    Party.CLIENT: ("CallToolResult",),
    Party.SERVER: ("CreateMessageResult", "ElicitResult"),
}


_RELATED: Final = "io.modelcontextprotocol/related-task"


class Tasks:
    """The tasks of one conversation, of both parties."""

    __slots__ = ("_limits", "_past", "_sides", "_started")

    def __init__(self, sides: Mapping[Party, Side], limits: Limits) -> None:
        self._sides = sides
        self._limits = limits
        self._started: dict[tuple[Party, str], Exchange] = {}
        self._past: dict[tuple[Party, bytes], Exchange] = {}

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

    def check_started(self, result: dict[str, Any]) -> list[Violation]:
        """Return the violation of a task that a request was answered with: its id is kept as long as the task."""
        ident = _task_id(result.get("task"))
        if ident is None or len(ident) <= self._limits.id_bytes:
            return []
        return [state_rules.too_long("/result/task/taskId", ident, self._limits.id_bytes)]

    def check_asked(self, params: Mapping[str, Any]) -> list[Violation]:
        """Return the violation of the id of a requested task."""
        ident = _task_id(params)
        if ident is None or len(ident) <= self._limits.id_bytes:
            return []
        return [state_rules.too_long("/params/taskId", ident, self._limits.id_bytes)]

    def started(self, exchange: Exchange, result: dict[str, Any]) -> None:
        """Note that a request was answered with a task."""
        ident = _task_id(result.get("task"))
        if ident is not None and len(ident) <= self._limits.id_bytes:
            self._ended(exchange.asker, ident)
            self._past.pop((exchange.asker, _digest(ident)), None)
            self._started[exchange.asker, ident] = exchange
            # A task outlives the answer to the request that started it, and continues to report progress.
            if exchange.token is not None:
                self._sides[exchange.asker].tokens[exchange.token] = None
            if len(self._started) > _MOST_TASKS:
                self._set_by(*next(iter(self._started)))

    def check_payload(self, exchange: Exchange, result: dict[str, Any], found: list[Violation], budget: Budget) -> int:
        """
        Judge the payload of a task as the answer to the request that started it.

        Return at least how many violations there are beyond those in *found*.
        """
        before = len(found)
        more = self._check_promised(exchange, result, found, budget)
        if len(found) == before:
            found += _check_related(exchange, result)
            if self.request_of(exchange) is None:
                found.append(state_rules.forgotten("a task", "/result", exchange.revision))
        return more

    def _check_promised(
        self, exchange: Exchange, result: dict[str, Any], found: list[Violation], budget: Budget
    ) -> int:
        started = self.request_of(exchange)
        if started is None:
            return self._check_unknown(exchange, result, found, budget)
        definition: Definition = started.entry.result
        faults, more = definition.check("protocol/result", result, "/result", started.revision, budget)
        found += faults
        if not faults and started.contract is not None:
            faults, more = contract.check_output(started.contract, result, started.revision, budget)
            found += faults
        return more

    def request_of(self, exchange: Exchange) -> Exchange | None:
        """Return the request that started the task which *exchange* asks about; None if it is not known."""
        ident = exchange.detail
        if not isinstance(ident, str):
            return None
        return self._started.get((exchange.asker, ident)) or self._past.get((exchange.asker, _digest(ident)))

    def _check_unknown(self, exchange: Exchange, result: dict[str, Any], found: list[Violation], budget: Budget) -> int:
        """Judge the payload of an unknown task as a result that some task can have."""
        known: list[Definition] = [exchange.entry.judge.definition(name) for name in _PAYLOADS[exchange.asker]]
        if any(each.is_valid(result) for each in known):
            return 0
        faults, more = known[0].check("protocol/result", result, "/result", exchange.revision, budget)
        found += faults
        return more

    def fetched(self, exchange: Exchange) -> None:
        """Note that the payload of a task was forwarded. It may be fetched again, and is judged the same way."""
        started = self._started.get((exchange.asker, exchange.detail))
        if started is not None:
            self._sides[exchange.asker].forget_token(started)

    def renew(self) -> None:
        """Forget the tasks of the server before."""
        for asker, ident in list(self._started):
            self._ended(asker, ident)
        self._past.clear()

    def _set_by(self, asker: Party, ident: str) -> None:
        """Keep of a task only what its payload needs."""
        exchange = self._started[asker, ident]
        self._ended(asker, ident)
        self._past[asker, _digest(ident)] = exchange
        if len(self._past) > _MOST_PAST:
            del self._past[next(iter(self._past))]

    def _ended(self, asker: Party, ident: str) -> None:
        exchange = self._started.pop((asker, ident), None)
        if exchange is not None:
            self._sides[asker].forget_token(exchange)


def is_task(exchange: Exchange, result: Mapping[str, Any]) -> bool:
    """
    Return whether the *result* of a request that asks to run as a task must be a task.

    A server should refuse to run a tool as a task if the tool forbids that, but it may run the tool at once.
    """
    forbidden = exchange.contract is not None and not exchange.contract.runs(as_task=True)
    return "task" in result or not forbidden


def _check_related(exchange: Exchange, result: Mapping[str, Any]) -> list[Violation]:
    """Return the violation of a payload whose `_meta` does not name its task: nothing else in it does."""
    meta = result.get("_meta")
    ident = _task_id(meta.get(_RELATED)) if isinstance(meta, Mapping) else None
    if ident is not None and (ident == exchange.detail or not isinstance(exchange.detail, str)):
        return []
    return [state_rules.unrelated(_RELATED, ident, exchange.revision)]


def _task_id(value: Any) -> str | None:
    ident = value.get("taskId") if isinstance(value, Mapping) else None
    return ident if isinstance(ident, str) else None


def _digest(ident: str) -> bytes:
    """Return a digest of an id, which may have a thousand characters."""
    return blake2b(ident.encode(errors="replace"), digest_size=16).digest()

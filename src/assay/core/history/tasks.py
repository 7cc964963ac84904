"""
Requests that are run as tasks (2025-11-25): which of them, and what their payload is held to. No I/O, no clock.

A task outlives the answer to the request that started it: what that request was promised is remembered here.
"""

from collections.abc import Mapping
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
"""What the receiver must have declared for a request to be run as a task."""

# Tasks that are remembered so that their payload can be judged by the request that started them.
_MOST_TASKS: Final = 1000

# Tasks before those, of which only what their payload is held to is remembered: some 300 bytes each.
_MOST_PAST: Final = 10_000

# What a task can be the result of, by who asked: the payload of a task that is not known is one of these.
_PAYLOADS: Final = {
    Party.CLIENT: ("CallToolResult",),
    Party.SERVER: ("CreateMessageResult", "ElicitResult"),
}


_RELATED: Final = "io.modelcontextprotocol/related-task"


class Tasks:
    """The tasks of one conversation, of either side."""

    __slots__ = ("_limits", "_past", "_sides", "_started")

    def __init__(self, sides: Mapping[Party, Side], limits: Limits) -> None:
        self._sides = sides
        self._limits = limits
        self._started: dict[tuple[Party, str], Exchange] = {}
        self._past: dict[tuple[Party, bytes], Exchange] = {}

    def runs(self, exchange: Exchange) -> bool:
        """Whether the receiver has said that it runs such a request as a task; otherwise it is to take no notice."""
        path = TASK_CAPABILITIES.get(exchange.method)
        declared = self._sides[exchange.asker.other].capabilities
        return exchange.features.tasks and path is not None and declared is not None and has_capability(declared, path)

    def has(self, exchange: Exchange | None) -> bool:
        """Whether a request is to be run as a task, or is: it has not been answered yet, or was answered with one."""
        if exchange is None or not exchange.as_task:
            return False
        return exchange.state == "open" or any(each is exchange for each in self._started.values())

    def check_started(self, result: dict[str, Any]) -> list[Violation]:
        """What is wrong with the task that a request was answered with: its id is kept as long as the task."""
        ident = _task_id(result.get("task"))
        if ident is None or len(ident) <= self._limits.id_bytes:
            return []
        return [state_rules.too_long("/result/task/taskId", ident, self._limits.id_bytes)]

    def check_asked(self, params: Mapping[str, Any]) -> list[Violation]:
        """What is wrong with the id of a task that is asked about."""
        ident = _task_id(params)
        if ident is None or len(ident) <= self._limits.id_bytes:
            return []
        return [state_rules.too_long("/params/taskId", ident, self._limits.id_bytes)]

    def started(self, exchange: Exchange, result: dict[str, Any]) -> None:
        """A request was answered with a task."""
        ident = _task_id(result.get("task"))
        if ident is not None and len(ident) <= self._limits.id_bytes:
            self._ended(exchange.asker, ident)
            self._past.pop((exchange.asker, _digest(ident)), None)
            self._started[exchange.asker, ident] = exchange
            # A task outlives the answer to the request that started it, and goes on telling its progress.
            if exchange.token is not None:
                self._sides[exchange.asker].tokens[exchange.token] = None
            if len(self._started) > _MOST_TASKS:
                self._set_by(*next(iter(self._started)))

    def check_payload(self, exchange: Exchange, result: dict[str, Any], found: list[Violation], budget: Budget) -> int:
        """
        A task's payload is what the request that started it would have been answered with.

        Returns at least how many violations there are beyond those found.
        """
        before = len(found)
        more = self._check_promised(exchange, result, found, budget)
        if len(found) == before:
            found += _check_related(exchange, result)
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
        """The request that started the task which *exchange* asks about; None if it is not known."""
        ident = exchange.detail
        if not isinstance(ident, str):
            return None
        return self._started.get((exchange.asker, ident)) or self._past.get((exchange.asker, _digest(ident)))

    def _check_unknown(self, exchange: Exchange, result: dict[str, Any], found: list[Violation], budget: Budget) -> int:
        """The payload of a task that is not known is at least a result that some task can have."""
        known: list[Definition] = [exchange.entry.judge.definition(name) for name in _PAYLOADS[exchange.asker]]
        if any(each.is_valid(result) for each in known):
            return 0
        faults, more = known[0].check("protocol/result", result, "/result", exchange.revision, budget)
        found += faults
        return more

    def fetched(self, exchange: Exchange) -> None:
        """The payload of a task has passed. It may be fetched again, and is held to the same promise."""
        started = self._started.get((exchange.asker, exchange.detail))
        if started is not None:
            self._sides[exchange.asker].forget_token(started)

    def renew(self) -> None:
        """Another server is there, which knows none of them."""
        for asker, ident in list(self._started):
            self._ended(asker, ident)
        self._past.clear()

    def _set_by(self, asker: Party, ident: str) -> None:
        """Remembers of a task only what its payload is held to."""
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
    Return whether the *result* of a request that asks to be run as a task is held to be one.

    A server should refuse to run a tool as a task if the tool forbids that, but it may run the tool at once.
    """
    forbidden = exchange.contract is not None and not exchange.contract.runs(as_task=True)
    return "task" in result or not forbidden


def _check_related(exchange: Exchange, result: Mapping[str, Any]) -> list[Violation]:
    """Which task a payload belongs to stands in its `_meta`: nothing else in it says so."""
    meta = result.get("_meta")
    ident = _task_id(meta.get(_RELATED)) if isinstance(meta, Mapping) else None
    if ident is not None and (ident == exchange.detail or not isinstance(exchange.detail, str)):
        return []
    return [state_rules.unrelated(_RELATED, ident, exchange.revision)]


def _task_id(value: Any) -> str | None:
    ident = value.get("taskId") if isinstance(value, Mapping) else None
    return ident if isinstance(ident, str) else None


def _digest(ident: str) -> bytes:
    """An id in few bytes: it may have a thousand."""
    from hashlib import blake2b  # noqa: PLC0415 - only where there are tasks

    return blake2b(ident.encode(errors="replace"), digest_size=16).digest()

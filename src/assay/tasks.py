"""
Requests that are run as tasks (2025-11-25): which of them, and what their payload is held to. No I/O, no clock.

A task outlives the answer to the request that started it: what that request was promised is remembered here.
"""

from collections.abc import Mapping
from typing import Any, Final

from assay.ladder import contract
from assay.ladder.protocol import Definition
from assay.limits import Limits
from assay.side import Side, has_capability
from assay.verdict import Exchange, Party, Violation

TASK_CAPABILITIES: Final = {
    "tools/call": "tasks.requests.tools.call",
    "sampling/createMessage": "tasks.requests.sampling.createMessage",
    "elicitation/create": "tasks.requests.elicitation.create",
}
"""What the receiver must have declared for a request to be run as a task."""

# Tasks that are remembered so that their payload can be judged by the request that started them.
_MOST_TASKS: Final = 1000


class Tasks:
    """The tasks of one conversation, of either side."""

    __slots__ = ("_limits", "_sides", "_started")

    def __init__(self, sides: Mapping[Party, Side], limits: Limits) -> None:
        self._sides = sides
        self._limits = limits
        self._started: dict[tuple[Party, str], Exchange] = {}

    def runs(self, exchange: Exchange) -> bool:
        """Whether the receiver has said that it runs such a request as a task; otherwise it is to take no notice."""
        path = TASK_CAPABILITIES.get(exchange.method)
        declared = self._sides[exchange.asker.other].capabilities
        return (
            exchange.revision == "2025-11-25"
            and path is not None
            and declared is not None
            and has_capability(declared, path)
        )

    def started(self, exchange: Exchange, result: dict[str, Any]) -> None:
        """A request was answered with a task."""
        task = result.get("task")
        ident = task.get("taskId") if isinstance(task, dict) else None
        if isinstance(ident, str) and len(ident) <= self._limits.id_bytes:
            self._ended(exchange.asker, ident)
            self._started[exchange.asker, ident] = exchange
            # A task outlives the answer to the request that started it, and goes on telling its progress.
            if exchange.token is not None:
                self._sides[exchange.asker].tokens[exchange.token] = None
            if len(self._started) > _MOST_TASKS:
                self._ended(*next(iter(self._started)))

    def check_payload(self, exchange: Exchange, result: dict[str, Any], found: list[Violation]) -> int:
        """
        A task's payload is what the request that started it would have been answered with.

        Returns at least how many violations there are beyond those found.
        """
        started = self._started.get((exchange.asker, exchange.detail))
        if started is None:
            return 0
        definition: Definition = started.entry.result
        most = self._limits.violations
        faults, more = definition.check("protocol/result", result, "/result", started.revision, most)
        found += faults
        if not faults and started.contract is not None:
            faults, more = contract.check_output(started.contract, result, started.revision, most)
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

    def _ended(self, asker: Party, ident: str) -> None:
        exchange = self._started.pop((asker, ident), None)
        if exchange is not None:
            self._sides[asker].forget_token(exchange)

"""
Parts of a request that are declared one by one: modes of elicitation, tools in sampling, running as a task.

No state, no I/O. If the declarations of a party are unknown, nothing is a violation.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from assay.base.verdict import Exchange, Party, Violation
from assay.core import state_rules
from assay.core.history import asking_back
from assay.core.history.tasks import TASK_CAPABILITIES
from assay.core.party_state import Side, has_capability
from assay.rules import violation

_URL: Final = "elicitation.url"
_URL_REQUIRED: Final = -32042
"""The error that asks the user to open a URL first."""


def check_features(exchange: Exchange, params: Mapping[str, Any], sides: Mapping[Party, Side]) -> list[Violation]:
    """Return the violations of a request that its receiver did not declare, or the tool does not allow."""
    receiver = sides[exchange.asker.other]
    declared = receiver.capabilities
    if declared is None or not _declares_modes(exchange):
        return []
    wanted = [*_wanted(exchange.method, params, declared)]
    if "task" in params and exchange.method in TASK_CAPABILITIES:
        wanted.append(("/params/task", TASK_CAPABILITIES[exchange.method]))
    found = [
        state_rules.lacks(at, receiver.party, path, exchange.revision)
        for at, path in wanted
        if not has_capability(declared, path)
    ]
    return found or _check_task_support(exchange, params, declared)


def check_error(exchange: Exchange, code: int, sides: Mapping[Party, Side]) -> list[Violation]:
    """Return the violation of an error that asks its receiver for something it did not declare."""
    declared = sides[exchange.asker].capabilities
    if code != _URL_REQUIRED or declared is None or not _declares_modes(exchange) or has_capability(declared, _URL):
        return []
    return [state_rules.lacks("/error/code", exchange.asker, _URL, exchange.revision)]


def _declares_modes(exchange: Exchange) -> bool:
    """Return whether both parties declared these parts before the request; later each request declares them."""
    return exchange.features.handshake and exchange.features.capability_modes


def _wanted(method: str, params: Mapping[str, Any], declared: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the place and the path of each capability that a request needs besides that of its method."""
    for at, path in asking_back.lacking(method, params, asking_back.declared_in(declared)):
        # Whether the method itself may be used is judged for every method.
        if "." in path:
            yield at, path


def _check_task_support(exchange: Exchange, params: Mapping[str, Any], declared: Mapping[str, Any]) -> list[Violation]:
    """Return the violation of a task that the tool forbids, or of a call without the task that it requires."""
    as_task = "task" in params
    contract = exchange.contract
    if (
        contract is None
        or contract.runs(as_task=as_task)
        or not has_capability(declared, TASK_CAPABILITIES["tools/call"])
    ):
        return []
    hint = "Leave params.task out." if as_task else "Add params.task, and fetch the result with tasks/result."
    return [
        violation(
            "contract/task-support",
            "/params/task" if as_task else "/params",
            expected="no task" if as_task else "a task",
            found=f'{"a task" if as_task else "none"}; execution.taskSupport is "{contract.task_support}"',
            revision=exchange.revision,
            hint=hint,
            detail=f"execution of {contract.name}",
        )
    ]

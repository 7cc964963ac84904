"""The codes of errors: those that contradict the request, and those that a server of 2026-07-28 must not use."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from assay.base.verdict import Exchange
from assay.core.party_state import has_capability
from assay.core.topics.extensions import goes_beyond
from assay.core.topics.table import on
from assay.core.topics.tasks import TASK_CAPABILITIES
from assay.rules.report import Report
from assay.spec.methods import methods

if TYPE_CHECKING:
    from assay.core.state import State

NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602

NO_RESOURCE: Final = -32002
"""The code of older revisions for a resource that is not there; from 2026-07-28 on that is -32602."""

_MODES: Final = {
    "sampling/createMessage": ("sampling.tools",),
    "elicitation/create": ("elicitation.form", "elicitation.url"),
}
"""Modes that are declared one by one from 2025-11-25 on: -32601 may be about an undeclared one."""

_UNPROMISED: Final = frozenset({"resources/templates/list", "resources/unsubscribe", "logging/setLevel"})
"""
Methods that need a capability which does not promise them.

No clause asks a server with resources for templates. `resources.subscribe` is about subscribing alone, and a server
declares `logging` because it sends log messages.
"""

_DEFINED: Final = frozenset({-32020, -32021, -32022})
"""
The codes that the specification has defined of those that belong to it, -32020 to -32099.

-32000 to -32019 are legacy: any server may use them, with any meaning.
"""

_WITHDRAWN: Final[Mapping[int, str]] = {
    NO_RESOURCE: "Answer with -32602 (invalid params): a resource that is not there has no code of its own any more.",
    -32042: 'Ask for the URL in a result with the resultType "input_required".',
}
"""Codes of older revisions, and their replacements."""


@on("error")
def check_code(state: "State", exchange: Exchange, error: dict[str, Any], report: Report) -> None:
    """Report an error whose code contradicts the request."""
    code = error["code"]
    declared = state.sides[exchange.asker.other].capabilities
    if code == NOT_FOUND:
        _check_not_found(state, exchange, declared or {}, report)
        return
    is_unknown = exchange.entry.result is None and declared is not None
    # With extensions that are unknown here, the other party may know the method.
    if code == INVALID_PARAMS and is_unknown and not goes_beyond(state):
        hint = "Answer with -32601 (method not found): the params of an unknown method cannot be judged."
        report_code("-32601, because the method is unknown", "-32602", hint, report)


def _check_not_found(state: "State", exchange: Exchange, declared: Mapping[str, Any], report: Report) -> None:
    if exchange.method == "tools/call":
        tasks = exchange.features.tasks and has_capability(declared, TASK_CAPABILITIES["tools/call"])
        contract = exchange.contract
        # The error may mean that the call had to be a task, or must not be one.
        wrong_kind = tasks and contract is not None and not contract.runs(as_task=exchange.as_task)
        if ("tools" in declared or state.tools.known) and not wrong_kind:
            hint = "Answer with -32602 (invalid params) and name the tool."
            report_code("-32602 for an unknown tool", "-32601", hint, report)
        return
    if exchange.method == "ping" and exchange.entry.result is not None:
        hint = "Answer every ping with an empty result."
        report_code("an empty result, because ping needs no capability", "-32601", hint, report)
        return
    path = _declared_path(exchange, declared)
    modes = _MODES.get(exchange.method, ()) if exchange.features.capability_modes else ()
    if path is not None and all(has_capability(declared, mode) for mode in modes):
        report_not_implemented(exchange, path, report)


def _declared_path(exchange: Exchange, declared: Mapping[str, Any]) -> str | None:
    """Return the declared capability that obliges the receiver to know the method; None without one."""
    known = methods(exchange.revision).get(exchange.method) if exchange.method not in _UNPROMISED else None
    needed = known.needs(exchange.asker.value) if known is not None else None
    if needed is None or needed[0] != exchange.asker.other.value or not has_capability(declared, needed[1]):
        return None
    return needed[1]


@on("error")
def check_reserved(_: "State", exchange: Exchange, error: dict[str, Any], report: Report) -> None:
    """
    Report a code that a server of 2026-07-28 must not use.

    A client sends `server/discover` to find out whether a server is of an older revision: such a server answers with a
    code of its own revision.
    """
    code = error["code"]
    if exchange.features.handshake or exchange.method == "server/discover":
        return
    if code in _WITHDRAWN or (code not in _DEFINED and -32099 <= code <= -32020):
        found = f"{code:.0f}, {'which is withdrawn' if code in _WITHDRAWN else 'which is reserved'}"
        hint = _WITHDRAWN.get(code, "Use a code outside -32768 to -32000 for an error of your own.")
        report_code(f"a code that servers may use in {exchange.revision}", found, hint, report)


def report_not_implemented(exchange: Exchange, path: str, report: Report) -> None:
    """Report -32601 to a method that the declared capability *path* promises."""
    hint = f"Implement {exchange.method}, or do not declare {path}."
    report_code(f"a response to {exchange.method}, because {path} was declared", "-32601", hint, report)


def report_no_resource(code: int, report: Report) -> None:
    """Report a *code* for a missing resource, where only -32602 may be used."""
    hint = "Answer with -32602 (invalid params) and name the URI."
    report_code("-32602 for an unknown URI", f"{code}", hint, report)


def report_code(expected: str, found: str, hint: str, report: Report) -> None:
    """Report a wrong code of an error."""
    report.add("protocol/error-code", "/error/code", expected=expected, found=found, hint=hint)

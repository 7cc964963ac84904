"""The codes of errors: those that contradict the request, and those that a server of 2026-07-28 must not use."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from assay.judge.topics import extensions
from assay.judge.topics.capabilities import TASK_CAPABILITIES, has_capability
from assay.judge.topics.table import on
from assay.model.verdict import Exchange, Party
from assay.rules.report import Report
from assay.spec.extensions import SKILLS
from assay.spec.methods import methods

if TYPE_CHECKING:
    from assay.judge.state import State

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
    """Report an error whose code contradicts the request, or that a server must not use."""
    code = error["code"]
    declared = state.parties[exchange.asker.other].capabilities
    if exchange.entry.extension is not None:
        _check_of_extension(state, exchange, code, report)
    elif code == NOT_FOUND:
        _check_not_found(state, exchange, declared or {}, report)
    # With extensions that are unknown here, the other party may know the method.
    elif (
        code == INVALID_PARAMS
        and exchange.entry.result is None
        # The method of one of two requests with one id is known, although its answer is not judged by it.
        and exchange.method not in exchange.entry.rules.calls[exchange.asker, "request"]
        and declared is not None
        and not extensions.goes_beyond(state)
    ):
        hint = "Answer with -32601 (method not found): the params of an unknown method cannot be judged."
        _report("-32601, because the method is unknown", "-32602", hint, report)
    _check_reserved(exchange, code, report)


def _check_of_extension(state: "State", exchange: Exchange, code: Any, report: Report) -> None:
    """Report an error that answers a method of a known extension."""
    extension = exchange.entry.extension
    if code == NOT_FOUND and extensions.missing(state, exchange) is None:
        if state.parties[Party.SERVER].capabilities is not None:
            _report_not_implemented(exchange, f"extensions.{extension.identifier}", report)
    elif code == NO_RESOURCE and extension is SKILLS and exchange.features.handshake:
        # Without a handshake the code is withdrawn for every method.
        _report("-32602 for an unknown URI", f"{code}", "Answer with -32602 (invalid params) and name the URI.", report)


def _check_not_found(state: "State", exchange: Exchange, declared: Mapping[str, Any], report: Report) -> None:
    if exchange.method == "tools/call":
        tasks = exchange.features.tasks and has_capability(declared, TASK_CAPABILITIES["tools/call"])
        contract = exchange.contract
        # The error may mean that the call had to be a task, or must not be one.
        wrong_kind = tasks and contract is not None and not contract.runs(as_task=exchange.as_task)
        if ("tools" in declared or state.tools.known) and not wrong_kind:
            hint = "Answer with -32602 (invalid params) and name the tool."
            _report("-32602 for an unknown tool", "-32601", hint, report)
    elif exchange.method == "ping" and exchange.entry.result is not None:
        hint = "Answer every ping with an empty result."
        _report("an empty result, because ping needs no capability", "-32601", hint, report)
    else:
        path = _declared_path(exchange, declared)
        modes = _MODES.get(exchange.method, ()) if exchange.features.capability_modes else ()
        if path is not None and all(has_capability(declared, mode) for mode in modes):
            _report_not_implemented(exchange, path, report)


def _declared_path(exchange: Exchange, declared: Mapping[str, Any]) -> str | None:
    """Return the declared capability that obliges the receiver to know the method; None without one."""
    known = methods(exchange.revision).get(exchange.method) if exchange.method not in _UNPROMISED else None
    needed = known.needs(exchange.asker.value) if known is not None else None
    if needed is None or needed[0] != exchange.asker.other.value or not has_capability(declared, needed[1]):
        return None
    return needed[1]


def _check_reserved(exchange: Exchange, code: Any, report: Report) -> None:
    """
    Report a code that a server of 2026-07-28 must not use.

    A client sends `server/discover` to find out whether a server is of an older revision: such a server answers with a
    code of its own revision.
    """
    if exchange.features.handshake or exchange.method == "server/discover":
        return
    if code in _WITHDRAWN or (code not in _DEFINED and -32099 <= code <= -32020):
        found = f"{code:.0f}, {'which is withdrawn' if code in _WITHDRAWN else 'which is reserved'}"
        hint = _WITHDRAWN.get(code, "Use a code outside -32768 to -32000 for an error of your own.")
        _report(f"a code that servers may use in {exchange.revision}", found, hint, report)


def _report_not_implemented(exchange: Exchange, path: str, report: Report) -> None:
    """Report -32601 to a method that the declared capability *path* promises."""
    hint = f"Implement {exchange.method}, or do not declare {path}."
    _report(f"a response to {exchange.method}, because {path} was declared", "-32601", hint, report)


def _report(expected: str, found: str, hint: str, report: Report) -> None:
    report.add("protocol/error-code", "/error/code", expected=expected, found=found, hint=hint)

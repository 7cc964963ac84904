"""
Rules for answers beyond their schema: the code of an error, the number of values, the place of roots.

No state, no I/O. Each function returns violations; the schema was checked before.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from assay.base.verdict import Exchange, Party, Violation
from assay.core.history.tasks import TASK_CAPABILITIES
from assay.core.party_state import Side, has_capability
from assay.rules import violation
from assay.spec.methods import methods

NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602

_MOST_VALUES: Final = 100
"""The most completion values of one answer, by the specification of every revision."""

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

# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_code(
    exchange: Exchange, code: int, sides: Mapping[Party, Side], *, listed: bool, extended: bool
) -> list[Violation]:
    """
    Return the violation of an error whose code contradicts the request.

    *listed* means that the server has listed tools, *extended* that a party declared extensions: then the other party
    may know a method that is unknown here.
    """
    receiver = sides[exchange.asker.other]
    if code == NOT_FOUND:
        return _check_not_found(exchange, receiver.capabilities, listed=listed)
    unknown = exchange.entry.result is None
    if code == INVALID_PARAMS and unknown and not extended and receiver.capabilities is not None:
        return [
            _wrong_code(
                exchange,
                "-32601, because the method is unknown",
                "-32602",
                "Answer with -32601 (method not found): the params of an unknown method cannot be judged.",
            )
        ]
    return []


def _check_not_found(exchange: Exchange, declared: Mapping[str, Any] | None, *, listed: bool) -> list[Violation]:
    if exchange.method == "tools/call":
        return _check_tool_not_found(exchange, declared or {}, listed=listed)
    if exchange.method == "ping" and exchange.entry.result is not None:
        hint = "Answer every ping with an empty result."
        return [_wrong_code(exchange, "an empty result, because ping needs no capability", "-32601", hint)]
    path = _declared_path(exchange, declared or {})
    if path is None or not _has_modes(exchange, declared or {}):
        return []
    return [not_implemented(exchange, path)]


def not_implemented(exchange: Exchange, path: str) -> Violation:
    """Return the violation of -32601 to a method that the declared capability *path* promises."""
    hint = f"Implement {exchange.method}, or do not declare {path}."
    return _wrong_code(exchange, f"a response to {exchange.method}, because {path} was declared", "-32601", hint)


def not_found(exchange: Exchange, code: int) -> Violation:
    """Return the violation of a *code* for a missing resource, where only -32602 may be used."""
    hint = "Answer with -32602 (invalid params) and name the URI."
    return _wrong_code(exchange, "-32602 for an unknown URI", f"{code}", hint)


def _check_tool_not_found(exchange: Exchange, declared: Mapping[str, Any], *, listed: bool) -> list[Violation]:
    if "tools" not in declared and not listed:
        return []
    tasks = exchange.features.tasks and has_capability(declared, TASK_CAPABILITIES["tools/call"])
    if tasks and exchange.contract is not None and not exchange.contract.runs(as_task=exchange.as_task):
        # The error means that the call had to be a task, or must not be one.
        return []
    hint = "Answer with -32602 (invalid params) and name the tool."
    return [_wrong_code(exchange, "-32602 for an unknown tool", "-32601", hint)]


def _has_modes(exchange: Exchange, declared: Mapping[str, Any]) -> bool:
    """Return whether the receiver declared all modes that the method has in this revision."""
    modes = _MODES.get(exchange.method, ()) if exchange.features.capability_modes else ()
    return all(has_capability(declared, mode) for mode in modes)


def _declared_path(exchange: Exchange, declared: Mapping[str, Any]) -> str | None:
    """Return the declared capability that obliges the receiver to know the method; None without one."""
    known = methods(exchange.revision).get(exchange.method) if exchange.method not in _UNPROMISED else None
    needed = known.needs(exchange.asker.value) if known is not None else None
    if needed is None or needed[0] != exchange.asker.other.value or not has_capability(declared, needed[1]):
        return None
    return needed[1]


def _wrong_code(exchange: Exchange, expected: str, found: str, hint: str) -> Violation:
    return violation(
        "protocol/error-code", "/error/code", expected=expected, found=found, revision=exchange.revision, hint=hint
    )


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_result(exchange: Exchange, result: Mapping[str, Any], most: int) -> list[Violation]:
    """Return what is wrong with a *result* that fits its schema, at most *most* violations."""
    check = _CHECKED.get(exchange.method)
    return check(result, "/result", exchange.revision, most) if check is not None else []


def check_roots(result: Mapping[str, Any], at: str, revision: str, most: int) -> list[Violation]:
    """Return a violation for each root whose URI does not begin with `file://`."""
    roots = result.get("roots")
    uris = [each.get("uri") if isinstance(each, dict) else None for each in roots] if isinstance(roots, list) else []
    wrong = [(number, uri) for number, uri in enumerate(uris) if isinstance(uri, str) and not uri.startswith("file://")]
    return [
        violation(
            "protocol/root",
            f"{at}/roots/{number}/uri",
            expected="a URI that begins with file://",
            found=f'"{uri[:60]}"',
            revision=revision,
        )
        for number, uri in wrong[:most]
    ]


def _check_completion(result: Mapping[str, Any], at: str, revision: str, _: int) -> list[Violation]:
    completion = result.get("completion")
    values = completion.get("values") if isinstance(completion, dict) else None
    if not isinstance(values, list) or len(values) <= _MOST_VALUES:
        return []
    return [
        violation(
            "protocol/completion-values",
            f"{at}/completion/values",
            expected=f"at most {_MOST_VALUES} values",
            found=f"{len(values):,}",
            revision=revision,
        )
    ]


_CHECKED: Final[Mapping[str, Callable[[Mapping[str, Any], str, str, int], list[Violation]]]] = {
    "completion/complete": _check_completion,
    "roots/list": check_roots,
}
"""The checks of a result, by the method that it answers."""

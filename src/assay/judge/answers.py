"""How an answer is judged by its request: by the definition of its method or type, and by the topics. No I/O."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from assay.judge.revision_rules import Definition, RevisionRules
from assay.judge.state import State
from assay.judge.topics import extensions, handshake
from assay.judge.topics.tasks import is_task
from assay.model.verdict import Exchange, Kind, Violation
from assay.rules.report import Report
from assay.schema.wording import found as found_words
from assay.spec.revisions import handshake as has_handshake


def check_answer(state: State, exchange: Exchange, message: dict[str, Any], kind: Kind, report: Report) -> None:
    """Report the violations of an answer; nothing changes but whether *exchange* runs as a task."""
    rules: RevisionRules = exchange.entry.rules
    definition: Definition | None = exchange.entry.result
    if kind == "error":
        rules.check_error(message, report)
        state.check("error", exchange, message["error"], report)
        return
    result = message["result"]
    if definition is None:
        return
    exchange.as_task = exchange.as_task and is_task(exchange, result)
    if exchange.method == "initialize":
        rules, early = state.lifecycle.place_initialize_result(result)
        report.revision, definition = rules.revision, rules.definition("InitializeResult")
        report.take(early)
    elif exchange.method == handshake.DISCOVER and not handshake.is_discovery(result):
        definition.check_look_alikes(result, "/result", report)
        handshake.report_no_discovery(result, report)
        return
    elif exchange.as_task or rules.features.result_types:
        definition = _result_definition(state, exchange, result, rules, report)
        _check_defaults(exchange, definition, result, report)
    if result:
        definition.check_look_alikes(result, "/result", report)
    read = filled(exchange, definition, result)
    before = len(report.found)
    if not definition.check("protocol/result", read, "/result", report) and read is not result:
        report.found[before:] = _described(report.found[before:], result)
    if not any(each.stops for each in report.found[before:]):
        state.check("result", exchange, result, report)
    # A list is forwarded without its invalid entries, so the others are judged all the same.
    state.check("entries", exchange, result, report)


def _result_definition(
    state: State, exchange: Exchange, result: dict[str, Any], rules: RevisionRules, report: Report
) -> Definition:
    """Return what a result is judged by, according to its type, which may be that of a declared extension."""
    kind = result.get("resultType")
    form = rules.result_form(exchange.method, kind) if isinstance(kind, str) and kind != "complete" else None
    if form is not None and extensions.leaves_out(state, form[0]):
        return rules.definition("Result")
    if form is not None and form[0].identifier in (exchange.declared or ()):
        return form[1]
    wrong = rules.wrong_result_type(exchange.method, result)
    if wrong is not None and form is not None:
        hint = f'Send it only to a request that declares "{form[0].identifier}" in its clientCapabilities.'
        report.take((replace(wrong, hint=hint),))
    elif wrong is not None and kind != "input_required" and extensions.goes_beyond(state):
        # It may be that of an extension; asking for input is not: the specification defines it, for three methods.
        report.add("protocol/extension", wrong.at, expected="a result of the specification", found=wrong.found)
    elif wrong is not None:
        report.take((wrong,))
    name = rules.result_definition(exchange.method, result, as_task=exchange.as_task)
    definition: Definition = exchange.entry.result
    return definition if name is None else rules.definition(name)


# ── members with defaults ────────────────────────────────────────────────────────────────────────────────────────────
#
# A result of 2026-07-28 must have members for which a client has a default: by the specification an absent `resultType`
# is `"complete"`, and an absent or negative `ttlMs` is 0. A cache without a scope must not share its content. So such a
# result can be used, and only the defect is reported; the rest of it is judged with the defaults in place.

DEFAULTS: Final[Mapping[str, str | int]] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""The value that a client reads for each member that is absent."""

_RESULT_TYPE: Final = "resultType"
_HINTS: Final = ("ttlMs", "cacheScope")


def filled(exchange: Exchange, definition: Definition, result: dict[str, Any]) -> dict[str, Any]:
    """Return *result* as a client reads it: itself, or a copy with the defaults of what is absent."""
    if has_handshake(exchange.revision):
        return result
    absent = {name: DEFAULTS[name] for name in _wrong(definition, result)}
    return {**result, **absent} if absent else result


def _described(faults: Iterable[Violation], result: dict[str, Any]) -> list[Violation]:
    """Return the *faults* of a result with defaults filled in, so that they describe *result* as it was sent."""
    return [replace(each, found=found_words(result)) if each.at == "/result" else each for each in faults]


def _check_defaults(exchange: Exchange, definition: Definition, result: dict[str, Any], report: Report) -> None:
    """Report each member of *result* that a client reads a default for."""
    for name in () if has_handshake(exchange.revision) else _wrong(definition, result):
        if name == _RESULT_TYPE:
            report.add("protocol/result-type-missing", "/result", expected=name, found="nothing")
        elif name in result:
            expected, found = "an integer of at least 0", f"{result[name]:.0f}"
            report.add("protocol/cache-hints", f"/result/{name}", expected=expected, found=found)
        else:
            report.add("protocol/cache-hints", "/result", expected=name, found="nothing")


def _wrong(definition: Definition, result: dict[str, Any]) -> list[str]:
    """Yield the members for which a default is used. Only cacheable results have cache hints."""
    wrong = [] if _RESULT_TYPE in result else [_RESULT_TYPE]
    if definition.defines("cacheScope"):
        wrong += [name for name in _HINTS if name not in result or (name == "ttlMs" and _is_negative(result[name]))]
    return wrong


def _is_negative(ttl: Any) -> bool:
    """Return whether *ttl* is a negative integer, also as -1.0. Other invalid values have no default."""
    return type(ttl) in (int, float) and ttl < 0 and ttl == int(ttl)

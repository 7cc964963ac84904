"""How an answer is judged by its request: by the definition of its method or type, and by the topics. No I/O."""

from dataclasses import replace
from typing import Any

from assay.base.verdict import Exchange, Kind
from assay.core import defaults
from assay.core.state import State
from assay.core.topics import extensions, handshake
from assay.core.topics.tasks import is_task
from assay.ladder.revision_rules import Definition, RevisionRules
from assay.rules.report import Report


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
        defaults.check(exchange, definition, result, report)
    if result:
        definition.check_look_alikes(result, "/result", report)
    read = defaults.filled(exchange, definition, result)
    before = len(report.found)
    if not definition.check("protocol/result", read, "/result", report) and read is not result:
        report.found[before:] = defaults.described(report.found[before:], result)
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

"""The fifth rung: arguments and structured results against the tool's own schemas. No I/O."""

from collections.abc import Iterator
from typing import Any

from assay.judge import syntax
from assay.model.verdict import Violation
from assay.rules import broken
from assay.rules.report import Report
from assay.schema.compiled import Compiled
from assay.schema.fault import Fault, Faults
from assay.schema.pointers import looked_up
from assay.schema.tool_contract import Contract
from assay.schema.tool_contracts import Tools, schema_faults
from assay.schema.wording import shown

_NO_ARGUMENTS: dict[str, Any] = {}
_UNJUDGED = {"cost": "contract/unjudged"}
_FAILED = "contract/error-structured"


def check_usable(tools: Tools, contract: Contract, report: Report, *, over_http: bool) -> None:
    """Compile a contract of *tools*, and report the schemas that cannot be used, once."""
    revision = str(report.revision)
    for member, refusal in tools.unusable(contract):
        detail = f"{member} of {contract.name}"
        report.take(schema_faults(refusal, "/params/name", revision, over_http=over_http, detail=detail))


def check_input(contract: Contract, params: dict[str, Any], report: Report) -> None:
    """Report the violations of the arguments of a call. Absent ones are an empty object."""
    _check_arguments(contract, params.get("arguments", _NO_ARGUMENTS), "/params/arguments", report)


def check_bare_input(contract: Contract, params: dict[str, Any], report: Report) -> None:
    """Report the violations of a request whose params are the arguments of a tool (specs/001)."""
    _check_arguments(contract, params, "/params", report)


def _check_arguments(contract: Contract, arguments: Any, at: str, report: Report) -> None:
    contract.prepare()
    if contract.arguments is not None and isinstance(arguments, dict):
        contract.arguments.check(arguments, at, report)
    _check("contract/input", contract.input, arguments, at, contract.name, report)


def check_output(contract: Contract, result: dict[str, Any], report: Report) -> None:
    """Report the violations of the structured content of a result."""
    contract.prepare()
    failed = result.get("isError") is True
    if contract.output is None or (failed and "structuredContent" not in result):
        return
    if "structuredContent" not in result:
        report.add(
            "contract/output",
            "/result",
            expected="structuredContent, which the outputSchema requires",
            found="nothing",
            detail=f"outputSchema of {contract.name}",
        )
        return
    rule = _FAILED if failed else "contract/output"
    content = result["structuredContent"]
    _check(rule, contract.output, content, "/result/structuredContent", contract.name, report)


def _check(rule: str, schema: Compiled | None, instance: Any, at: str, tool: str, report: Report) -> None:
    if schema is None:
        return
    faults, unjudged = _faults(schema, instance, at, report)
    listed = Faults((*faults.listed, *unjudged), faults.more)
    detail = f"{'inputSchema' if rule == 'contract/input' else 'outputSchema'} of {tool[:60]}"
    found = _violations(rule, listed, (instance, at), detail, report.revision)
    # A failure promises nothing, so it may stay unjudged.
    report.take((each for each in found if rule != _FAILED or each.rule == _FAILED), faults.more)


def _faults(schema: Compiled, instance: Any, at: str, report: Report) -> tuple[Faults, tuple[Fault, ...]]:
    """Return the faults of *instance*, and those about parts that were not judged."""
    budget = report.budget
    if not budget.affords(schema, instance):
        return schema.too_dear(at), ()
    judging, pattern = schema.judging(instance, budget)
    unjudged = () if pattern is None else (schema.undecided(pattern, at),)
    if judging is None or judging.fits(instance):
        return Faults(()), unjudged
    return judging.explained(instance, budget, at=at), unjudged


def _violations(
    rule: str, faults: Faults, judged: tuple[Any, str], detail: str, revision: str | None
) -> Iterator[Violation]:
    instance, at = judged
    for fault in faults.distinct():
        value = looked_up(instance, fault.at.removeprefix(at)) if fault.keyword == "type" else None
        slip = _slip(rule, value, fault.expected) if fault.keyword == "type" else None
        # A value that is too large for its schema was not judged, so nothing else is known of it.
        yield broken(_UNJUDGED.get(fault.keyword, rule), fault, revision=revision, detail=detail, hint=slip)


def _slip(rule: str, value: Any, expected: str) -> str | None:
    """Return a hint for the likely mistake, if there is one: most mistakes of models are of these kinds."""
    if value is None:
        what = "argument" if rule == "contract/input" else "property"
        return f"Leave an optional {what} out instead of sending null."
    if not isinstance(value, str) or len(value) > _LONGEST_SLIP:
        return None
    meant = syntax.read((value.lower() if value.lower() in _FLAGS else value).encode(errors="replace"))
    if isinstance(meant, dict | list):
        fits = ("an object" if isinstance(meant, dict) else "an array") in expected
        return "Send the JSON value itself, not JSON inside a string." if fits else None
    if isinstance(meant, bool):
        fits = "a boolean" in expected
    elif isinstance(meant, int | float):
        fits = "a number" in expected or ("an integer" in expected and (isinstance(meant, int) or meant.is_integer()))
    else:
        fits = False
    return f"Send the value itself, not as text: {shown(meant)}, not {shown(value)}." if fits else None


_FLAGS = frozenset({"true", "false"})

_LONGEST_SLIP = 4096
"""The length of a text that is searched for the value it was meant to be, in characters."""

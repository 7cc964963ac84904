"""The fifth rung: arguments and structured results against the tool's own schemas. No I/O."""

from collections.abc import Iterator
from typing import Any

from assay.base.verdict import Violation
from assay.contracts.tool_contract import Contract
from assay.contracts.tool_contracts import Tools, concerns, over_stdio, refused
from assay.engine.budget import Budget
from assay.engine.compiled import Compiled
from assay.engine.fault import Fault, Faults
from assay.engine.pointers import looked_up
from assay.engine.wording import shown
from assay.ladder import syntax
from assay.rules import broken, violation

_NO_ARGUMENTS: dict[str, Any] = {}
_UNJUDGED = {"cost": "contract/unjudged"}
_FAILED = "contract/error-structured"


def check_usable(tools: Tools, contract: Contract, revision: str, *, over_http: bool) -> list[Violation]:
    """Compile a contract of *tools*. Return the violations of schemas that cannot be used, once."""
    found = [
        refused(refusal, "/params/name", revision, detail=f"{member} of {contract.name}")
        for member, refusal in tools.unusable(contract)
        if concerns(refusal, revision)
    ]
    return found if over_http else [over_stdio(each) for each in found]


def check_input(
    contract: Contract, params: dict[str, Any], revision: str, budget: Budget
) -> tuple[list[Violation], int]:
    """Return the violations of the arguments of a call, and at least how many more. Absent ones are an empty object."""
    contract.prepare()
    arguments = params.get("arguments", _NO_ARGUMENTS)
    at = "/params/arguments"
    found = _names(contract, arguments, at, budget, revision)
    wrong, more = _checked("contract/input", contract.input, arguments, at, contract.name, revision, budget)
    return found + wrong, more


def check_bare_input(contract: Contract, params: dict[str, Any], budget: Budget) -> tuple[list[Violation], int]:
    """Return the same for a request whose params are the arguments of a tool (specs/001)."""
    contract.prepare()
    found = _names(contract, params, "/params", budget, None)
    wrong, more = _checked("contract/input", contract.input, params, "/params", contract.name, None, budget)
    return found + wrong, more


def _names(contract: Contract, arguments: Any, at: str, budget: Budget, revision: str | None) -> list[Violation]:
    return contract.check_names(arguments, at, budget.violations, revision) if isinstance(arguments, dict) else []


def check_output(
    contract: Contract, result: dict[str, Any], revision: str, budget: Budget
) -> tuple[list[Violation], int]:
    """Return the violations of the structured content of a result, and at least how many more."""
    contract.prepare()
    failed = result.get("isError") is True
    if contract.output is None or (failed and "structuredContent" not in result):
        return [], 0
    if "structuredContent" not in result:
        missing = violation(
            "contract/output",
            "/result",
            expected="structuredContent, which the outputSchema requires",
            found="nothing",
            revision=revision,
            detail=f"outputSchema of {contract.name}",
        )
        return [missing], 0
    content = result["structuredContent"]
    at = "/result/structuredContent"
    if failed:
        found, more = _checked(_FAILED, contract.output, content, at, contract.name, revision, budget)
        # A failure promises nothing, so it may stay unjudged.
        return [each for each in found if each.rule == _FAILED], more
    return _checked("contract/output", contract.output, content, at, contract.name, revision, budget)


def _checked(
    rule: str, schema: Compiled | None, instance: Any, at: str, tool: str, revision: str | None, budget: Budget
) -> tuple[list[Violation], int]:
    if schema is None:
        return [], 0
    member = "inputSchema" if rule == "contract/input" else "outputSchema"
    faults, unjudged = _faults(schema, instance, at, budget)
    listed = [*faults.listed, *unjudged]
    found = list(
        _violations(rule, Faults(tuple(listed), faults.more), (instance, at), f"{member} of {tool[:60]}", revision)
    )
    return found, faults.more


def _faults(schema: Compiled, instance: Any, at: str, budget: Budget) -> tuple[Faults, tuple[Fault, ...]]:
    """Return the violations of *instance*, and reports about parts that were not judged."""
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

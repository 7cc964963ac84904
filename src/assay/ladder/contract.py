"""The fifth rung: arguments and structured results against the tool's own schemas. No I/O."""

from collections.abc import Iterator
from typing import Any

from assay.contracts.tools import Contract, concerns, refused
from assay.engine.compiled import Compiled
from assay.engine.fault import Faults
from assay.rules import broken, violation
from assay.verdict import Violation

_NO_ARGUMENTS: dict[str, Any] = {}
_UNJUDGED = {"cost": "contract/unjudged"}


def keeps_input(contract: Contract, params: dict[str, Any]) -> bool:
    """Whether the arguments of a call keep to the contract. Absent arguments are an empty object."""
    return contract.valid_input(params.get("arguments", _NO_ARGUMENTS))


def keeps_output(contract: Contract, result: dict[str, Any]) -> bool:
    """Whether a result keeps to the contract. A result that reports a failure (`isError`) owes nothing."""
    if contract.output is None or result.get("isError") is True:
        return True
    return "structuredContent" in result and contract.valid_output(result["structuredContent"])


def check_usable(contract: Contract, revision: str) -> list[Violation]:
    """Compiles a contract that has not been compiled yet; what of it cannot be used."""
    return [
        refused(refusal, "/params/name", revision, detail=f"{member} of {contract.name}")
        for member, refusal in contract.prepare()
        if concerns(refusal, revision)
    ]


def check_input(contract: Contract, params: dict[str, Any], revision: str, most: int) -> tuple[list[Violation], int]:
    """What is wrong with the arguments of a call, and at least how much more."""
    arguments = params.get("arguments", _NO_ARGUMENTS)
    found = _look_alikes(contract, arguments, "/params/arguments", most, revision)
    if contract.input is None or keeps_input(contract, params):
        return found, 0
    wrong, more = _explained(
        "contract/input", contract.input, arguments, "/params/arguments", contract.name, revision, most
    )
    return found + wrong, more


def check_bare_input(contract: Contract, params: dict[str, Any], most: int) -> tuple[list[Violation], int]:
    """The same where the params of a request are the arguments of a tool (specs/001)."""
    contract.prepare()
    found = _look_alikes(contract, params, "/params", most, None)
    if contract.input is None or contract.valid_input(params):
        return found, 0
    wrong, more = _explained("contract/input", contract.input, params, "/params", contract.name, None, most)
    return found + wrong, more


def _look_alikes(contract: Contract, arguments: Any, at: str, most: int, revision: str | None) -> list[Violation]:
    return contract.look_alikes(arguments, at, most, revision) if isinstance(arguments, dict) else []


def check_output(contract: Contract, result: dict[str, Any], revision: str, most: int) -> tuple[list[Violation], int]:
    """What is wrong with the structured content of a result, and at least how much more."""
    if contract.output is None or keeps_output(contract, result):
        return [], 0
    if "structuredContent" not in result:
        missing = violation(
            "contract/output",
            "/result",
            expected="structuredContent, because the tool has an outputSchema",
            found="nothing",
            revision=revision,
            detail=f"outputSchema of {contract.name}",
        )
        return [missing], 0
    content = result["structuredContent"]
    at = "/result/structuredContent"
    return _explained("contract/output", contract.output, content, at, contract.name, revision, most)


def _explained(
    rule: str, schema: Compiled, instance: Any, at: str, tool: str, revision: str | None, most: int
) -> tuple[list[Violation], int]:
    faults = schema.faults(instance, at=at, most=most)
    member = "inputSchema" if rule == "contract/input" else "outputSchema"
    return list(_violations(rule, faults, f"{member} of {tool[:60]}", revision)), faults.more


def _violations(rule: str, faults: Faults, detail: str, revision: str | None) -> Iterator[Violation]:
    for fault in faults.distinct():
        slip = _slip(fault.keyword, fault.expected, fault.found)
        # What is too large for its schema was not looked at, so nothing is known of it but that.
        yield broken(_UNJUDGED.get(fault.keyword, rule), fault, revision=revision, detail=detail, hint=slip)


def _slip(keyword: str, expected: str, found: str) -> str | None:
    """The likely slip, where one stands out: these three make up most of what models get wrong."""
    if keyword != "type":
        return None
    if found == "null":
        return "Leave an optional argument out instead of sending null."
    if found.startswith(('the string "{', 'the string "[')) and ("object" in expected or "array" in expected):
        return "Send the JSON value itself, not JSON inside a string."
    if found.startswith("the string") and any(kind in expected for kind in ("integer", "number", "boolean")):
        return 'Send the value itself, not as text: 5, not "5".'
    return None

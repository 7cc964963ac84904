"""
Members that a result of 2026-07-28 must have, and for which a client has a default. No I/O.

By the specification an absent `resultType` is `"complete"`, and an absent or negative `ttlMs` is 0. A cache without a
scope must not share its content. So such a result can be used, and only the defect is reported; the rest of the result
is judged with the defaults in place.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from assay.base.verdict import Exchange, Violation
from assay.engine.wording import found as found_words
from assay.ladder.revision_rules import Definition
from assay.rules.report import Report
from assay.spec.revisions import handshake

DEFAULTS: Final[Mapping[str, str | int]] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""The value that a client reads for each member that is absent."""

_RESULT_TYPE: Final = "resultType"
_HINTS: Final = ("ttlMs", "cacheScope")


def filled(exchange: Exchange, definition: Definition, result: dict[str, Any]) -> dict[str, Any]:
    """Return *result* as a client reads it: itself, or a copy with the defaults of what is absent."""
    if handshake(exchange.revision):
        return result
    absent = {name: DEFAULTS[name] for name in _wrong(definition, result)}
    return {**result, **absent} if absent else result


def described(faults: Iterable[Violation], result: dict[str, Any]) -> list[Violation]:
    """Return the *faults* of a result with defaults filled in, so that they describe *result* as it was sent."""
    return [replace(each, found=found_words(result)) if each.at == "/result" else each for each in faults]


def check(exchange: Exchange, definition: Definition, result: dict[str, Any], report: Report) -> None:
    """Report each member of *result* that a client reads a default for."""
    for name in () if handshake(exchange.revision) else _wrong(definition, result):
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

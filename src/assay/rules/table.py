"""Every rule in one table, in the order in which they apply to a message, and violations made from it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from assay.base.verdict import Violation
from assay.rules import (
    contract,
    envelope,
    extensions,
    frames,
    lock_and_guard,
    protocol,
    skills_and_apps,
)
from assay.rules.rule import Rule
from assay.spec.revisions import handshake

if TYPE_CHECKING:
    from assay.engine.fault import Fault

_FAMILIES: Final = (
    frames,
    envelope,
    protocol,
    extensions,
    skills_and_apps,
    contract,
    lock_and_guard,
)

RULES: Final[Mapping[str, Rule]] = {rule.id: rule for family in _FAMILIES for rule in family.ROWS}


_MOVED: Final = (
    ("basic/lifecycle", "basic/versioning"),
    ("basic/utilities/cancellation", "basic/patterns/cancellation"),
    ("basic/utilities/progress", "basic/patterns/progress"),
)
"""Pages of the specification that are at another place in revisions without a handshake."""


def violation(
    rule: str,
    at: str = "",
    *,
    expected: str,
    found: str,
    revision: str | None = None,
    hint: str | None = None,
    schema_at: str | None = None,
    detail: str = "",
    page: str | None = None,
    wrong_type: bool = False,
) -> Violation:
    """
    Return a violation of *rule*, with source, hint and action from the table.

    *detail* is added to the source, for example the definition in the schema; *page* replaces the source.
    """
    row = RULES[rule]
    source = (page or row.source).replace("{revision}", revision or "(every revision)")
    if revision is not None and not handshake(revision):
        source = _moved(source)
    if detail:
        source += f": {_cut(detail, 100)}"
    where = None if schema_at is None else _cut(schema_at, _LONGEST)
    return Violation(
        rule,
        _cut(at, _LONGEST),
        _cut(expected, 400),
        _cut(found, 200),
        source,
        hint or row.fix,
        row.action,
        where,
        wrong_type=wrong_type,
    )


def _moved(source: str) -> str:
    for before, now in _MOVED:
        source = source.replace(before, now)
    return source


def broken(
    rule: str,
    fault: "Fault",
    *,
    revision: str | None = None,
    detail: str = "",
    hint: str | None = None,
    page: str | None = None,
) -> Violation:
    """Return a violation of *rule* for a fault that the JSON Schema engine found."""
    return violation(
        rule,
        fault.at,
        expected=fault.expected,
        found=fault.found,
        revision=revision,
        hint=hint,
        schema_at=fault.schema_at,
        detail=detail,
        page=page,
        wrong_type=fault.wrong_type,
    )


# The longest pointer, in characters. The peer chose the keys: one of a megabyte, in twenty violations, would make an
# answer of twenty.
_LONGEST: Final = 1000


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"

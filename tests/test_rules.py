"""The table of rules, and everything that is made from it."""

from pathlib import Path

import pytest
from generated_pages import PAGES

from assay.base.errors import CanonicalError
from assay.base.removed import RULES as REMOVED
from assay.rules import RULES, violation

ROOT = Path(__file__).parents[1]
RUNGS = {
    "framing", "syntax", "envelope", "protocol", "extension", "tasks", "skills", "apps", "contract", "lock", "guard",
}  # fmt: skip
# But for the table itself, and the command that shows it.
SOURCES = "\n".join(
    path.read_text()
    for path in (ROOT / "src" / "assay").rglob("*.py")
    if path.parent.name != "rules" and path.name != "rules.py"
)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_says_all_that_a_person_needs(rule: object) -> None:
    from assay.rules import Rule

    assert isinstance(rule, Rule)
    assert rule.rung in RUNGS
    for text in (rule.asks, rule.why, rule.fix):
        assert text.endswith(".")
    assert rule.source
    assert rule.example
    assert rule.code in CanonicalError.codes()


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_enforced_somewhere(rule: str) -> None:
    """By its identifier, or by `envelope/` and `contract/` and the name of the member."""
    named = f'"{rule}"' in SOURCES
    by_member = rule in {f"envelope/{member}" for member in ("jsonrpc", "id", "method", "params", "result")}
    by_direction = rule in {"contract/input", "contract/output"}
    assert named or by_member or by_direction


def test_an_identifier_of_a_removed_rule_is_never_used_again() -> None:
    assert REMOVED.isdisjoint(RULES)


def test_a_violation_takes_source_and_hint_from_the_table() -> None:
    found = violation("protocol/params", "/params", expected="x", found="y", revision="2025-06-18", detail="Tool")
    assert found.source == "MCP 2025-06-18, schema: Tool"
    assert found.hint == RULES["protocol/params"].fix
    assert found.action == "refuse"
    assert str(found) == "/params: expected x, found y [protocol/params]"


def test_an_unknown_rule_is_our_mistake() -> None:
    with pytest.raises(KeyError):
        violation("syntax/none", expected="", found="")


@pytest.mark.parametrize("name", PAGES)
def test_the_generated_pages_are_fresh(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == PAGES[name](), "run `make docs`"

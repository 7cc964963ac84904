"""The table of rules, and everything that is made from it."""

import pytest
from generated_pages import PAGES

from assay.model.errors import CanonicalError
from assay.rules import RULES, violation
from assay.rules.table import REMOVED
from kit.places import ROOT

RUNGS = {
    "framing", "syntax", "envelope", "protocol", "extension", "tasks", "skills", "apps", "contract", "lock", "guard",
}  # fmt: skip
ACTIONS = {("refuse", None), ("quarantine", None), ("report", None), ("report", "refuse"), ("report", "quarantine")}
# But for the table itself, and the command that shows it.
SOURCES = "\n".join(
    path.read_text()
    for path in (ROOT / "src" / "assay").rglob("*.py")
    if path.parent.name != "rules" and path.name != "rules.py"
)


def test_each_rule_has_what_a_person_needs() -> None:
    for rule in RULES.values():
        assert rule.rung in RUNGS, rule.id
        assert [text for text in (rule.asks, rule.why, rule.fix) if not text.endswith(".")] == [], rule.id
        assert rule.source, rule.id
        assert rule.example, rule.id
        assert rule.code in CanonicalError.codes(), rule.id
        assert (rule.action, rule.strict) in ACTIONS, rule.id


def test_every_rule_is_enforced_somewhere() -> None:
    """By its identifier, or by `envelope/` and `contract/` and the name of the member."""
    by_member = {f"envelope/{member}" for member in ("jsonrpc", "id", "method", "params", "result")}
    composed = {*by_member, "contract/input", "contract/output"}
    assert [rule for rule in RULES if f'"{rule}"' not in SOURCES and rule not in composed] == []


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

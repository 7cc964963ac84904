"""The policy as an operator writes it, and a guard that carries it out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.rules.policy import REPAIRABLE
from assay.settings import SettingsError, load
from assay.settings.guard_section import GuardSettings, RuleException
from assay.settings.policy_settings import policy, warnings
from kit.places import ROOT
from kit.rows import rows

ALL_BUT_ONE = ", ".join(REPAIRABLE[:-1])
EXCEPTION = '[[guard.exceptions]]\nrule = "contract/output"\ntool = "search"\nreason = "bug 123"\nuntil = 2026-12-31\n'


def written(directory: Path, toml: str, *flags: str) -> GuardSettings:
    (directory / "assay.toml").write_text(toml)
    return load({}, directory, flags=flags).guard


def objection(directory: Path, toml: str, *flags: str) -> str:
    with pytest.raises(SettingsError) as caught:
        written(directory, toml, *flags)
    [line] = str(caught.value).splitlines()
    return line


# ── as it is written ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_rule_has_an_action_or_a_table(tmp_path: Path) -> None:
    found = written(
        tmp_path,
        '[guard.policy]\n"protocol/progress" = "refuse"\n"contract/output" = { action = "pass" }\n'
        '"contract/input" = { repair = true }\n',
        "guard.policy.syntax/*=drop",
        "guard.policy.contract/input.action=pass",
    ).policy
    assert {rule: (ruling.action, ruling.repair) for rule, ruling in found.items()} == {
        "protocol/progress": ("refuse", None),
        "contract/output": ("pass", None),
        "contract/input": ("pass", True),
        "syntax/*": ("drop", None),
    }


def test_the_later_source_wins_in_either_spelling_of_an_action(tmp_path: Path) -> None:
    flag = "guard.policy.contract/input"
    for line, option in (('{ action = "pass" }', f"{flag}=refuse"), ('"pass"', f"{flag}.action=refuse")):
        found = written(tmp_path, f'[guard.policy]\n"contract/input" = {line}\n', option).policy
        assert found["contract/input"].action == "refuse"


def test_exceptions_are_tables_of_an_array(tmp_path: Path) -> None:
    other = EXCEPTION.replace('tool = "search"\n', 'action = "refuse"\n').replace("2026-12-31", '"2026-12-31"')
    found = written(tmp_path, EXCEPTION + other)
    assert found.exceptions == (
        RuleException("contract/output", "search", "pass", "bug 123", "2026-12-31"),
        RuleException("contract/output", None, "refuse", "bug 123", "2026-12-31"),
    )


@rows(
    ("line", "said"),
    [
        ('"contract/ouput" = "pass"', "contract/ouput: no such rule; did you mean contract/output?"),
        ('"json" = "drop"', "json: no such rule; did you mean syntax/json?"),
        ('"tools/*" = "drop"', "tools/*: no such rule; assay rules lists them all"),
        (
            '"contract/output" = "ignore"',
            "contract/output: expected one of pass, refuse, quarantine, drop, found ignore",
        ),
        ('"contract/output" = true', "contract/output: expected a string, found true"),
        ('"contract/output" = { acton = "pass" }', "contract/output.acton: unknown key; did you mean action?"),
        ('"syntax/*" = "pass"', "syntax/*: cannot be pass; use refuse or drop"),
        (
            '"protocol/unanswered" = "refuse"',
            "protocol/unanswered: cannot be refuse; use pass",
        ),
        (
            '"contract/output" = { repair = true }',
            f"contract/output.repair: only {ALL_BUT_ONE} and {REPAIRABLE[-1]} can be repaired",
        ),
    ],
)
def test_a_slip_in_a_rule_is_named_with_its_place_and_the_likely_remedy(tmp_path: Path, line: str, said: str) -> None:
    assert objection(tmp_path, f"[guard.policy]\n{line}\n") == f"assay.toml: guard.policy.{said}"


NO_DATE = "assay.toml: guard.exceptions.1.until: expected a date such as 2027-01-01, without a time, found the "


@rows(
    ("old", "new", "said"),
    [
        ("bug 123", " ", "assay.toml: guard.exceptions.1.rule: the exception for contract/output needs a reason"),
        ("until", "#", "[guard]: the exception for contract/output needs until, its last day"),
        ("2026-12-31", "2026-12-31T12:00:00", NO_DATE + "datetime 2026-12-31 12:00:00"),
        ("2026-12-31", '"soon"', NO_DATE + 'string "soon"'),
        ("/output", "/outputs", "contract/outputs: no such rule; did you mean contract/output?"),
        ("rule", "#", "assay.toml: guard.exceptions.1: an exception needs a rule"),
        (EXCEPTION, "[guard.exceptions]", "assay.toml: guard.exceptions: expected an array of tables, found a table"),
        (EXCEPTION, "[guard]\nexceptions = [5]", "assay.toml: guard.exceptions.1: expected a table, found 5"),
    ],
)
def test_a_slip_in_an_exception_is_named_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert objection(tmp_path, EXCEPTION.replace(old, new)).endswith(said)
    for number in ("first", "0", "#", "٣"):
        unnumbered = objection(tmp_path, "", f"guard.exceptions.{number}.rule=contract/output")
        assert unnumbered.startswith(f"--set guard.exceptions.{number}.rule: unknown key")


# ── on a day ─────────────────────────────────────────────────────────────────────────────────────────────────────────


PROTOCOL = {"contract/input", *(rule for rule in REPAIRABLE if rule.startswith("protocol/"))} - {"protocol/result"}


@rows(
    ("toml", "repaired"),
    [
        ("", {"contract/input", "protocol/params"}),
        ("repair = false", set()),
        ("strict = true", set()),
        ("strict = true\nrepair = true", {"contract/input", "protocol/params"}),
        ('policy."contract/input" = { repair = false }', {"protocol/params"}),
        ('policy."*" = { repair = false }\npolicy."contract/input" = { repair = true }', {"contract/input"}),
        ('repair = false\npolicy."protocol/params" = { repair = true }', {"protocol/params"}),
        ('policy."contract/input" = "refuse"', {"contract/input", "protocol/params"}),
        ('strict = true\npolicy."protocol/cache-hints" = { repair = true }', {"protocol/cache-hints"}),
        ('policy."protocol/*" = { repair = true }\npolicy."protocol/result" = { repair = false }', PROTOCOL),
        ('policy."*" = { repair = true }', set(REPAIRABLE)),
    ],
)
def test_slips_are_mended_unless_that_is_turned_off(tmp_path: Path, toml: str, repaired: set[str]) -> None:
    made = policy(written(tmp_path, f"[guard]\n{toml}\n"), "2026-01-01")
    assert (set() if made is None else made.repairs) == repaired


@rows(
    ("today", "holds", "said"),
    [
        ("2026-12-16", True, []),
        ("2026-12-17", True, ["the exception for contract/output of search ends on 2026-12-31: bug 123"]),
        ("2026-12-31", True, ["the exception for contract/output of search ends on 2026-12-31: bug 123"]),
        (
            "2027-01-01",
            False,
            ["the exception for contract/output of search ended on 2026-12-31 and no longer holds: bug 123"],
        ),
    ],
)
def test_an_exception_holds_up_to_its_last_day(tmp_path: Path, today: str, holds: bool, said: list[Any]) -> None:
    settings = written(tmp_path, EXCEPTION)
    assert list(warnings(settings, today)) == said
    assert (policy(replace(settings, repair=False), today) is not None) is holds


def test_every_table_on_the_page_is_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    samples = [part.partition("```")[0] for part in page.split("```toml\n")[1:]]
    assert len(samples) >= 2
    for sample in samples:
        assert policy(written(tmp_path, sample), "2026-01-01") is not None

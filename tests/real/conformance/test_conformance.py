"""
The official conformance suite against the asset server: every check is as `asset_server.toml` says, and the page about
it says the same.
"""

import pytest
from signing_in import LIST as SIGNING_IN
from suite import (
    ASSET_SERVER,
    EXPECTED,
    NOTHING,
    ROOT,
    CannotRun,
    Found,
    compared,
    expected_in,
    report,
    run,
    served,
    suite_command,
)

from kit.rows import rows

PAGE = ROOT / "docs" / "conformance.md"
GUARD_PAGE = ROOT / "docs" / "guard-http.md"
LISTED = expected_in(EXPECTED)

REQUIRED = {
    "2025-11-25": {
        *("server-initialize", "ping", "dns-rebinding-protection"),
        *("tools-list", "resources-list", "prompts-list"),
    },
    "2026-07-28": {
        *("http-header-validation", "caching", "sep-2164-resource-not-found", "dns-rebinding-protection"),
        *("tools-list", "server-sse-multiple-streams", "resources-list", "prompts-list"),
    },
}
"""What needs nothing that is there for the suite alone: any server passes it, or is wrong."""

DIAGNOSTIC = ("test_missing_capability", "test_streaming_elicitation", "test_logging_tool")


# ── the asset server ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_suite_finds_what_is_expected_and_every_scenario_is_listed() -> None:
    try:
        suite_command()
    except CannotRun as why:
        pytest.skip(str(why))
    with served(ASSET_SERVER) as url:
        found = run(url, LISTED)
    assert [(each.revision, each.scenario, each.differences) for each in found if each.differences] == []


def test_what_any_server_can_pass_is_expected_to_pass() -> None:
    """What is skipped of the stateless scenario is about notifications that this server does not declare."""
    for revision, names in REQUIRED.items():
        assert {name for name in names if LISTED[revision].get(name) != {}} == set()
    fails = LISTED["2026-07-28"]["server-stateless"]
    others = {check for check, reason in fails.items() if not reason.endswith(DIAGNOSTIC)}
    assert others == {
        "sep-2575-server-sends-subscription-ack",
        "sep-2575-server-tags-subscription-id",
        "sep-2575-server-honors-notification-filter",
        "sep-2575-server-sends-prompts-list-changed-on-subscription",
        "sep-2575-server-sends-tools-list-changed-on-subscription",
    }


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


NEEDS = {
    "a tool, prompt or resource of the suite's own server": (
        *("calls the tool ", "looks for the tool ", "needs a tool "),
        *("completes the prompt ", "gets the prompt ", "reads test://"),
    ),
    "a capability that the asset server does not declare": ("needs the capability ", "is skipped: "),
    "sessions over HTTP": ("checks nothing: the server begins no sessions",),
}
"""What the checks need that do not pass, by how their reasons begin."""


def lines_of_the_page() -> list[str]:
    """Return the rows that the page should have, made from the list: what passes, and what the others need."""
    passing = [
        f"| {revision} | {', '.join(sorted(name for name, fails in scenarios.items() if not fails))} |"
        for revision, scenarios in LISTED.items()
    ]
    return passing + [
        f"| {need} | {' | '.join(str(in_need(revision, begins)) for revision in LISTED)} |"
        for need, begins in NEEDS.items()
    ]


def in_need(revision: str, begins: tuple[str, ...]) -> int:
    """Return how many scenarios have a check that does not pass for such a reason."""
    return sum(any(reason.startswith(begins) for reason in fails.values()) for fails in LISTED[revision].values())


def test_the_pages_have_the_outcome_of_every_scenario() -> None:
    """Of signing in, which `make conformance` runs, only the audience is lost."""
    page = PAGE.read_text(encoding="utf-8")
    assert [line for line in lines_of_the_page() if f"\n{line}\n" not in page] == []
    known = tuple(begin for begins in NEEDS.values() for begin in begins)
    reasons = {reason for scenarios in LISTED.values() for fails in scenarios.values() for reason in fails.values()}
    assert {reason for reason in reasons if not reason.startswith(known)} == set()
    lost = {name: fails for every in expected_in(SIGNING_IN).values() for name, fails in every.items() if fails}
    assert {check for fails in lost.values() for check in fails} == {"resource-parameter-matches-prm"}
    page = GUARD_PAGE.read_text(encoding="utf-8")
    assert [name for name in lost if f"`{name}`" not in page] == []


# ── the comparison ───────────────────────────────────────────────────────────────────────────────────────────────────

FAILURE = ("a", "FAILURE", "no such tool")
WARNING = ("b", "WARNING", "should")


@rows(
    ("listed", "found", "differences"),
    [
        ({"a": "why"}, Found("r", "s", 1, (FAILURE,)), ()),
        ({NOTHING: "why"}, Found("r", "s", 0, ()), ()),
        ({}, Found("r", "s", 3, (FAILURE,)), ("a does not pass: failure: no such tool",)),
        ({}, Found("r", "s", 0, ()), (f"{NOTHING} does not pass: no check does",)),
        ({"a": "why"}, Found("r", "s", 1, (WARNING,)), ("a passes, or is gone", "b does not pass: warning: should")),
        ({}, None, ("did not run",)),
        (None, Found("r", "s", 1, ()), ("is not in the list",)),
    ],
)
def test_any_difference_counts_in_either_direction(
    listed: dict[str, str] | None,
    found: Found | None,
    differences: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    expected = {"r": {} if listed is None else {"s": listed}}
    [row] = compared(expected, [] if found is None else [found])
    assert row.differences == differences
    assert report([row]) == (1 if differences else 0)
    assert (" NO " in capsys.readouterr().out) == bool(differences)

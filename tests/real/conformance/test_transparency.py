"""
The official conformance suite against the fixture servers: through the guard it finds what it finds directly.

What the suite asks is in `fixture_server.toml`: every scenario passes, but for one that the suite skips. `make
conformance` runs all of them by every path; here each server, transport and mode has its turn.
"""

import pytest
from suite import EXTENSIONS, ROOT, CannotRun, suite_command
from transparency import KINDS, LISTED, SERVERS, Trip, visit

PAGE = ROOT / "docs" / "conformance.md"

OLDER, OLD, NEW = "2025-06-18", "2025-11-25", "2026-07-28"

TRIPS = (
    Trip("typescript", "http audit", (OLD,)),
    Trip("python", "child enforce", (NEW,)),
)


@pytest.mark.parametrize("trip", TRIPS, ids=lambda trip: f"{trip.server} {trip.path}")
def test_every_scenario_passes_and_the_server_is_not_blamed(trip: Trip) -> None:
    try:
        suite_command()
        SERVERS[trip.server]()
    except CannotRun as why:
        pytest.skip(str(why))
    assert list(visit(trip).differences) == []


def test_nothing_is_expected_to_fail_and_the_page_says_so() -> None:
    """The official suite, 0.2.0-alpha.12: it skips the scenario about notifications of tasks itself."""
    fails = [name for every in LISTED.values() for name, checks in every.items() if checks]
    assert fails == ["tasks-status-notifications"]
    assert {revision: len(every) for revision, every in LISTED.items()} == {OLDER: 27, OLD: 33, NEW: 40, EXTENSIONS: 13}
    page = PAGE.read_text(encoding="utf-8")
    assert [line for line in lines_of_the_page() if f"\n{line}\n" not in page] == []


def lines_of_the_page() -> list[str]:
    """Return the rows that the page should have; they hold for both servers and every path."""
    lines = []
    for kind in KINDS:
        checks = [fails for name, fails in LISTED[kind.revision].items() if name.startswith(kind.prefix)]
        lines.append(f"| {kind.name} | {checks.count({})} of {len(checks)} |")
    return lines

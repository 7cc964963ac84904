"""
The official conformance suite against the fixture server: through the guard it finds what it finds directly.

What the suite asks is in `fixture_server.toml`: every scenario of both revisions passes.
"""

from collections.abc import Callable

import pytest
import transparency
from suite import CannotRun, Row, expected_in, suite_command

LISTED = expected_in(transparency.EXPECTED)

WAYS: dict[str, Callable[[str], list[str]]] = {
    "direct": transparency.direct,
    "enforce": lambda python: transparency.guarded(python, "--mode", "enforce"),
}


@pytest.fixture(scope="module", params=WAYS)
def rows(request: pytest.FixtureRequest) -> list[Row]:
    """What the suite finds, and whether it is expected: it runs once for each way."""
    if not transparency.SDK.exists():
        pytest.skip("the official SDK is not installed: `make test` does it")
    try:
        suite_command()
    except CannotRun as why:
        pytest.skip(str(why))
    return transparency.rows(WAYS[request.param](str(transparency.SDK)))


def test_every_scenario_passes(rows: list[Row]) -> None:
    assert {(each.scenario, each.revision): each.differences for each in rows if each.differences} == {}


def test_every_scenario_runs(rows: list[Row]) -> None:
    wanted = {(revision, name) for revision in LISTED for name in LISTED[revision]}
    assert {(each.revision, each.scenario) for each in rows if each.found is not None} == wanted


def test_nothing_is_expected_to_fail() -> None:
    assert [name for every in LISTED.values() for name, fails in every.items() if fails] == []
    assert {revision: len(every) for revision, every in LISTED.items()} == {"2025-11-25": 33, "2026-07-28": 40}

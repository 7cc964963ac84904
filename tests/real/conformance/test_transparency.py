"""
The official conformance suite against the fixture servers: through the guard it finds what it finds directly.

What the suite asks is in `fixture_server.toml`: every scenario passes, but for one that the suite skips. `make
conformance` runs all of them by every path; here each server, path, mode and revision has its turn.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from suite import EXTENSIONS, ROOT, CannotRun, suite_command
from transparency import DIRECT, KINDS, LISTED, PATHS, SERVERS, Trip, Visit, python_server, visit

PAGE = ROOT / "docs" / "conformance.md"

OLDER, OLD, NEW = "2025-06-18", "2025-11-25", "2026-07-28"

# Behind a guard of a child each session has a server of its own. One on the Python SDK is forked here, and one on the
# other SDK takes a quarter of a second to start: those with sessions are on the Python SDK.
TRIPS = (
    Trip("python", DIRECT, (OLDER, EXTENSIONS)),
    Trip("python", "http audit", (OLD,)),
    Trip("python", "http enforce", (OLDER, NEW, EXTENSIONS)),
    Trip("python", "child audit", (OLDER, NEW, EXTENSIONS)),
    Trip("python", "child enforce", (OLD, EXTENSIONS)),
    Trip("typescript", DIRECT, (NEW,)),
    Trip("typescript", "http audit", (NEW, EXTENSIONS)),
    Trip("typescript", "http enforce", (OLD, EXTENSIONS)),
    Trip("typescript", "child audit", (NEW,)),
    Trip("typescript", "child enforce", (NEW, EXTENSIONS)),
)

Visits = dict[Trip, "Future[Visit]"]


def forked_server() -> list[str]:
    """The command of the server on the Python SDK, which is imported once for all of them."""
    python, *arguments = python_server()
    return [python, *arguments]


@pytest.fixture(scope="module")
def visits() -> Iterator[Visits]:
    """What the suite finds on each trip. Most of the time a trip waits, so two of them are under way at once."""
    try:
        suite_command()
        for command in SERVERS.values():
            command()
    except CannotRun as why:
        pytest.skip(str(why))
    pool = ThreadPoolExecutor(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SERVERS, "python", forked_server)
        try:
            yield {trip: pool.submit(visit, trip) for trip in TRIPS}
        finally:
            pool.shutdown(cancel_futures=True)


@pytest.fixture
def visited(visits: Visits, trip: Trip) -> Visit:
    """The end of one trip. Waited for here: a test that fails ends what was started meanwhile, as by the next trip."""
    return visits[trip].result()


# The suite has limits of its own. Where a busy machine exceeds them, scenarios are run again: a trip may take twice as
# long as another one. It must end before `faulthandler_timeout`.
@pytest.mark.timeout(240)
@pytest.mark.parametrize("trip", TRIPS, ids=lambda trip: f"{trip.server} {trip.path}")
def test_every_scenario_passes_and_the_server_is_not_blamed(visited: Visit) -> None:
    assert list(visited.differences) == []


def test_each_path_to_each_server_and_each_revision_has_its_turn() -> None:
    assert {(trip.server, trip.path) for trip in TRIPS} == {(server, path) for server in SERVERS for path in PATHS}
    for over in ("http", "child"):
        guarded = {each for trip in TRIPS if trip.path.startswith(over) for each in trip.revisions}
        assert guarded == set(LISTED)
    assert all(EXTENSIONS in trip.revisions for trip in TRIPS if trip.path.endswith("enforce"))


def test_nothing_is_expected_to_fail() -> None:
    """The official suite, 0.2.0-alpha.12: it skips the scenario about notifications of tasks itself."""
    fails = [name for every in LISTED.values() for name, checks in every.items() if checks]
    assert fails == ["tasks-status-notifications"]
    assert {revision: len(every) for revision, every in LISTED.items()} == {OLDER: 27, OLD: 33, NEW: 40, EXTENSIONS: 13}


def test_the_page_has_the_outcome_of_every_path() -> None:
    _, _, after = PAGE.read_text(encoding="utf-8").partition(f"\n{'| --- ' * 7}|\n")
    assert after.splitlines()[: len(lines_of_the_page()) + 1] == [*lines_of_the_page(), ""]


def lines_of_the_page() -> list[str]:
    """The table that the page should have: no path loses anything, so all columns are the same."""
    lines = []
    for server in SERVERS:
        for kind in KINDS:
            checks = [fails for name, fails in LISTED[kind.revision].items() if name.startswith(kind.prefix)]
            outcome = f"{checks.count({})}/{len(checks)}"
            lines.append(f"| {server} | {kind.name} | {' | '.join([outcome] * len(PATHS))} |")
    return lines


@pytest.mark.parametrize("path", PATHS)
def test_the_page_says_what_runs_here(path: str) -> None:
    one, other = (f"{trip.server} | {', '.join(trip.revisions)} |" for trip in TRIPS if trip.path == path)
    assert f"\n| {path} | {one}\n| | {other}\n" in PAGE.read_text(encoding="utf-8")

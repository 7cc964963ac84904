"""Fixtures for every test."""

import gc
import os
import signal
from collections.abc import Generator, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from types import FrameType
from typing import TYPE_CHECKING, Any

import coverage
import pytest
from hypothesis import settings

from kit import laws, processes
from kit.again import Again
from kit.forks import Forks
from kit.meanwhile import Meanwhile
from kit.places import ROOT
from kit.sheltered import state_variables
from kit.warm import MEASURED

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Servers that tests start write no journal, but where one is asked for: most of them run in the checkout.
os.environ.setdefault("ASSAY_JOURNAL", "off")


# What Assay remembers on this machine is the user's own, and no test may read or write it.
def new_state() -> str:
    """Make a directory for it, and have the processes of tests use that."""
    place = mkdtemp(prefix="assay-tests-state-")
    os.environ.update(state_variables(place))
    return place


STATES = [new_state()]
"""The last one is in use."""

# Tests start many processes. Where Python keeps what it has compiled, each takes half as long to start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / ".cache" / "python"))

# Pages have the time at which they were made, and tests compare pages that were made a while apart.
os.environ.setdefault("SOURCE_DATE_EPOCH", "1794000000")

processes.install()
settings.load_profile(laws.PROFILE)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory with reference data that is no part of the project; a test that needs it is skipped without it."""
    path = Path(os.environ.get("ASSAY_SHARED") or ROOT.parent / "shared")
    if not path.is_dir():
        pytest.skip(f"no reference data at {path} (set ASSAY_SHARED)")
    return path


@pytest.fixture
def state() -> Iterator[Path]:
    """A directory for guards and journals, with a short path: that of a socket is limited."""
    # A guard that ends after its console, as one that was killed, may still remove or write files in it.
    with TemporaryDirectory(ignore_cleanup_errors=True) as found:
        yield Path(found)


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """A browser for the tests of one file."""
    from kit.browser import running_browser

    with running_browser() as running:
        yield running


SLOW = (
    *("test_transparency", "test_lies_over_http", "test_real_servers", "test_lies", "test_guard_pressure"),
    *("test_docs", "test_lock_command", "test_guard_records", "test_real_rounds"),
    *("test_children_sessions", "test_guard_faults", "test_console_page", "test_parallel", "test_demo"),
    *("test_report_page", "test_other_files", "test_proxy_headers"),
    *("test_validate_command", "test_guard_serve", "test_console_live", "test_guard_table"),
    *("test_journal_commands", "test_wrap_command"),
    *("test_guard_flights", "test_hostile_reports", "test_hangup", "test_quick_look", "test_without_posix"),
    *("test_guard_verbatim", "test_progress_bar", "test_restart_ends", "test_ci_files"),
    *("test_guard_ends", "test_children_mistakes", "test_lock_guard", "test_remote_command"),
    *("test_proxy_failures", "test_messages", "test_remote_failures", "test_bytes", "test_commands"),
    *("test_recording_laws",),
)
"""Files that take longest, longest first."""


GRACE = 20
"""Seconds that a test which timed out has for its own clean-up; after that the rest is killed again."""


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item) -> Generator[None, object, object]:
    """When the test times out, kill what it started first: its own clean-up may wait for that without a limit."""
    done = yield
    fail: Any = signal.getsignal(signal.SIGALRM)
    before = processes.forget_ended()

    def kill_and_fail(number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, GRACE)
        processes.kill(processes.started[before:])
        fail(number, frame)

    if callable(fail):
        signal.signal(signal.SIGALRM, kill_and_fail)
    return done


MEASURED_TESTS = {
    *("extensions", "guard_restart", "guard_table", "ladder", "stateless", "tests"),
    *("test_call_path", "test_children_batches", "test_children_mistakes", "test_id_map", "test_shared_server"),
    *("test_front_page", "test_guarded_card", "test_host", "test_host_recording", "test_middleware"),
    *("test_guard_discretion", "test_guard_failure", "test_guard_faults", "test_guard_flights", "test_guard_moves"),
    *("test_guard_policy", "test_guard_records", "test_guard_result_repair", "test_guard_stdio", "test_no_answer"),
    *("test_recording_laws", "test_remote_failures", "test_remote_sessions"),
    *("test_server_names", "test_session_calls", "test_session_states", "test_unlisted_tools"),
    *("test_blameless_ends", "test_discovery_time", "test_own_lists"),
}
"""
Folders and files that are measured, with the processes that they start; `tests` has the files that are in no folder.

They reach what all tests together reach of the measured rooms, but for one line in a thousand. To be measured doubles
the time of a test, so all others are not.
"""

UNMEASURED = {
    *("test_bench_targets", "test_call_command", "test_commands", "test_compat", "test_docs"),
    *("test_extras", "test_house", "test_one_of_each", "test_output", "test_public_names"),
    *("test_pydantic_schemas", "test_settings", "test_transcripts", "test_trust", "test_validate_command"),
    *("test_wording",),
}
"""Files of those folders that reach nothing more, or other rooms."""


class Measurement:
    """What coverage measures in this process and in those that it starts, with pauses."""

    def __init__(self) -> None:
        # A measurement that is stopped is not the current one any more.
        self._coverage = coverage.Coverage.current()
        self._running = self._coverage is not None
        self._processes = os.environ.get(MEASURED)

    @property
    def packages(self) -> list[str]:
        """Return what is measured; nothing if this is a run without measurement."""
        measured: Any = None if self._coverage is None else self._coverage.get_option("run:source_pkgs")
        return list(measured or ())

    def run(self, *, on: bool) -> None:
        """Go on, or pause."""
        if self._coverage is not None and on is not self._running:
            (self._coverage.start if on else self._coverage.stop)()
            self._running = on
        if self._processes is not None:
            if on:
                os.environ[MEASURED] = self._processes
            else:
                os.environ.pop(MEASURED, None)


measurement = Measurement()


def import_measured() -> None:
    """
    Import what is measured, then pause until the first test that is.

    Lines outside functions are reached by the import alone. To measure the collection of all tests would take as long
    as the collection itself.
    """
    for name in measurement.packages:
        package = import_module(name)
        for each in walk_packages(package.__path__, f"{name}."):
            import_module(each.name)
    measurement.run(on=False)


import_measured()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Measure the tests of `MEASURED_TESTS`, and pause in all others."""
    folder, file = item.path.parent.name, item.path.stem
    measurement.run(on=not MEASURED_TESTS.isdisjoint({folder, file}) and file not in UNMEASURED)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Kill what a failed test started and left running. Servers that fixtures started end with their fixture."""
    before = len(processes.started)
    try:
        yield
    except BaseException:
        processes.kill(processes.started[before:])
        raise


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the number of processes, what they wait for, and how many failed tests are run again."""
    parser.addoption("--forks", type=int, default=0, help="run files in so many processes, forked after the collection")
    parser.addoption("--meanwhile", metavar="COMMAND", help="run this too; with --forks tests begin when it is done")
    parser.addoption("--again", type=int, default=0, metavar="MOST", help="run so many failed tests once more, alone")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the order of files below: left alone, xdist starts with the files of most tests, which are quick ones."""
    config.option.loadscopereorder = False
    if most := config.getoption("again"):
        config.pluginmanager.register(Again(config, most), "again")
    if config.getoption("forks"):
        config.pluginmanager.register(Forks(config, lambda: STATES.append(new_state())))
        # Registered later, it is asked earlier.
        if command := config.getoption("meanwhile"):
            config.pluginmanager.register(Meanwhile(config, command))


def pytest_unconfigure() -> None:
    """End what is still running, and remove the state directory of this run."""
    processes.kill(processes.started)
    processes.end_warm_starts()
    rmtree(STATES[-1], ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, nor ever again in what that leaves: it takes half of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest files first: a file runs on one worker, and the last one must not run alone."""
    rank = {name: number for number, name in enumerate(SLOW)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))

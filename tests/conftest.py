"""Fixtures for every test, and the two lanes: tests below `tests/real`, and all others."""

import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from kit import laws, processes
from kit.places import ROOT, TESTS
from kit.sheltered import state_variables

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Servers that tests start write no journal, but where one is asked for: most of them run in the checkout.
os.environ.setdefault("ASSAY_JOURNAL", "off")

# What Assay remembers on this machine is the user's own, and no test may read or write it.
STATE = mkdtemp(prefix="assay-tests-state-")
os.environ.update(state_variables(STATE))

# Where Python keeps what it has compiled, each process of ours takes half as long to start.
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


# ── the first lane starts and reaches nothing ────────────────────────────────────────────────────────────────────────

REAL = TESTS / "real"
STRESS = TESTS / "stress"
"""Run by `make soak` alone."""

STARTS_OR_REACHES = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "socket.bind", "socket.connect"}


class Lane:
    """Whether the test that runs now may start processes and reach others, and what it was refused."""

    is_real = True
    refused: list[str]


def refuse(event: str, _: Any) -> None:
    """Refuse a test outside `tests/real` to start a process, or to open a connection."""
    if event in STARTS_OR_REACHES and not Lane.is_real:
        Lane.refused.append(event)
        raise RuntimeError(f"{event}: a test that starts or reaches something belongs into {REAL}")


sys.addaudithook(refuse)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Remember the lane of each test."""
    Lane.refused = []
    Lane.is_real = item.path.is_relative_to(REAL) or item.path.is_relative_to(STRESS)
    try:
        return (yield)
    finally:
        Lane.is_real = True


# ── what tests leave behind ──────────────────────────────────────────────────────────────────────────────────────────

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Kill what a failed test started and left running. Servers that fixtures started end with their fixture."""
    before = len(processes.started)
    try:
        yield
    except BaseException:
        processes.kill(processes.started[before:])
        raise
    # The product may have taken the refusal for an error of the network.
    assert Lane.refused == []


def pytest_unconfigure() -> None:
    """End what is still running, and remove the state directory of this run."""
    processes.kill(processes.started)
    rmtree(STATE, ignore_errors=True)

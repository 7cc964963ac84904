"""Fixtures for every test."""

import os
import signal
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest

from sheltered import state_variables

# Servers that tests start write no journal, but where one is asked for: most of them run in the checkout.
os.environ.setdefault("ASSAY_JOURNAL", "off")

# What Assay remembers on this machine is the user's own, and no test may read or write it.
STATE = mkdtemp(prefix="assay-tests-state-")
os.environ.update(state_variables(STATE))

# Tests start many processes. Where Python keeps what it has compiled, each takes half as long to start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(__file__).parents[1] / ".cache" / "python"))

# `make test &` in a script ignores SIGINT, and nohup SIGHUP. What we start would inherit that and, rightly, ignore them
# too, but tests send both. A handler that does nothing is ignored here just as well, and not inherited.
for sign in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(sign) is signal.SIG_IGN:
        signal.signal(sign, lambda _, __: None)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory with reference data that is no part of the project; a test that needs it is skipped without it."""
    path = Path(os.environ.get("ASSAY_SHARED") or Path(__file__).parents[2] / "shared")
    if not path.is_dir():
        pytest.skip(f"no reference data at {path} (set ASSAY_SHARED)")
    return path


SLOW = (
    *("test_lies_over_http", "test_transparency", "test_lock_command", "test_real_servers"),
    *("test_remote_peers", "test_remote_failures", "test_children_sessions", "test_messages", "test_lies"),
    *("test_docs", "test_quick_look", "test_official_clients", "test_proxy_clients", "test_children_stateless"),
)
"""Files that take longest, longest first."""


def pytest_unconfigure() -> None:
    """Remove the state directory of this run."""
    rmtree(STATE, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest files first: a file runs on one worker, and the last one must not run alone."""
    rank = {name: number for number, name in enumerate(SLOW)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))

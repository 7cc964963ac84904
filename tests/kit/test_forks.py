"""Tests in forked processes are reported as those in one process are, also when a process is lost."""

import re
import subprocess
from pathlib import Path

import pytest

from kit.inner_runs import ran

PLUGIN = """
import os
from kit.forks import Forks
from kit.meanwhile import Meanwhile

def pytest_addoption(parser):
    parser.addoption("--forks", type=int)
    parser.addoption("--meanwhile")

def pytest_configure(config):
    if config.getoption("forks"):
        config.pluginmanager.register(Forks(config, lambda: os.environ.update(BEGUN="yes")))
    if config.getoption("meanwhile"):
        config.pluginmanager.register(Meanwhile(config, config.getoption("meanwhile")))
"""

GOOD = """
import os
import pytest

SEEN = []

@pytest.fixture(scope="module")
def shared():
    SEEN.append(os.getpid())
    yield len(SEEN)
    print("the end of the module", os.getpid())

@pytest.mark.parametrize("number", range(20))
def test_many(number, shared, tmp_path):
    print("said", number)
    (tmp_path / "file").touch()
    assert shared == 1 and os.environ["BEGUN"] == "yes"
"""

BAD = """
import pytest

def test_wrong():
    print("what it said")
    assert [1, 2] == [1, 3]

def test_skipped():
    pytest.skip("not here")

def test_passes():
    pass
"""

LOST = """
import os

def test_before():
    pass

def test_lost():
    os._exit(3)

def test_after():
    pass
"""


def written(directory: Path) -> Path:
    """Write tests into *directory*: three processes are more than there is to do at the end."""
    for name, text in {"conftest": PLUGIN, "test_a": GOOD, "test_b": GOOD, "test_c": BAD, "test_d": GOOD}.items():
        (directory / f"{name}.py").write_text(text)
    return directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with tests."""
    return written(tmp_path)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What pytest makes of them in one process."""
    return ran(written(tmp_path_factory.mktemp("alone")), BEGUN="yes")


def forked(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What pytest makes of the tests in *directory* with `--forks`."""
    return ran(directory, *options, BEGUN="no")


def outcome(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    """The exit status and the last line, without its time."""
    return done.returncode, re.sub(r"in [\d.]+s.*", "", done.stdout.splitlines()[-1].strip("= "))


@pytest.mark.parametrize("number", [1, 3, 9])
def test_the_outcome_is_that_of_one_process(
    directory: Path, alone: subprocess.CompletedProcess[str], number: int
) -> None:
    done = forked(directory, "--forks", str(number))
    assert outcome(done) == outcome(alone) == (1, "1 failed, 61 passed, 1 skipped ")
    for text in ("assert [1, 2] == [1, 3]", "what it said", "test_c.py::test_wrong"):
        assert text in alone.stdout
        assert text in done.stdout


def test_tests_of_a_lost_process_fail(directory: Path) -> None:
    (directory / "test_e.py").write_text(LOST)
    done = forked(directory, "--forks", "2")
    assert outcome(done) == (1, "3 failed, 62 passed, 1 skipped ")
    assert "FAILED test_e.py::test_lost - Its process ended before this test did." in done.stdout
    assert "FAILED test_e.py::test_after" in done.stdout


def test_the_first_failure_ends_all_of_it_where_that_is_asked_for(directory: Path) -> None:
    (directory / "test_a.py").write_text("import time\n\ndef test_long():\n    time.sleep(300)\n")
    done = forked(directory, "--forks", "2", "-x")
    assert done.returncode == 1
    assert "stopping after 1 failures" in done.stdout


WAITING = """
from pathlib import Path

Path("collected").touch()

def test_waiting():
    assert Path("done").exists()
"""


def test_tests_begin_when_what_runs_meanwhile_is_done(directory: Path) -> None:
    """They are collected before that. Its output is shown."""
    (directory / "test_a.py").write_text(WAITING)
    command = "until test -e collected; do sleep 0.01; done; touch done; echo it is"
    done = forked(directory, "--forks", "2", "--meanwhile", command, "test_a.py")
    assert outcome(done) == (0, "1 passed ")
    assert "it is\n" in done.stdout


def test_no_test_begins_when_what_runs_meanwhile_fails(directory: Path) -> None:
    done = forked(directory, "--forks", "2", "--meanwhile", "exit 3")
    assert done.returncode == 3
    assert "no tests ran" in done.stdout
    assert "exit 3 has failed" in done.stdout


def test_what_runs_meanwhile_ends_when_tests_cannot_be_collected(directory: Path) -> None:
    (directory / "test_a.py").write_text("raise ValueError\n")
    # The inner process inherits the pipe that `ran` reads to its end.
    done = forked(directory, "--forks", "2", "--meanwhile", "sleep 300")
    assert "1 error during collection" in done.stdout


def test_a_test_that_takes_too_long_fails_for_that(directory: Path) -> None:
    (directory / "test_a.py").write_text("import time\n\ndef test_long():\n    time.sleep(300)\n")
    done = forked(directory, "-p", "pytest_timeout", "--forks", "2", "--timeout", "5")
    assert re.search(r"FAILED test_a.py::test_long - Failed: Timeout \(>5.0s\)", done.stdout), done.stdout

"""A few tests that failed run once more, alone, and a run that passes by that says so."""

import subprocess
from pathlib import Path

import pytest

from kit.inner_runs import ran

PLUGIN = """
from kit.again import Again
from kit.forks import Forks

def pytest_addoption(parser):
    parser.addoption("--forks", type=int)
    parser.addoption("--again", type=int)

def pytest_configure(config):
    if most := config.getoption("again"):
        config.pluginmanager.register(Again(config, most), "again")
    if config.getoption("forks"):
        config.pluginmanager.register(Forks(config, lambda: None))
"""

ONCE = """
import pathlib
import pytest

@pytest.mark.parametrize("name", ["a b", "c/d::e[f]"])
def test_once(name):
    path = pathlib.Path(__file__).with_name(f"seen {len(name)}")
    is_first = not path.exists()
    path.touch()
    assert not is_first
"""

ALWAYS = "def test_always():\n    assert False\n"

PASSES = "def test_passes():\n    pass\n"


def ran_again(directory: Path, *options: str, **files: str) -> subprocess.CompletedProcess[str]:
    """Return what pytest makes of *files* with tests."""
    for name, text in {"conftest": PLUGIN, "test_passes": PASSES, **files}.items():
        (directory / f"{name}.py").write_text(text, encoding="utf-8")
    return ran(directory, "--again", "2", *options)


@pytest.mark.parametrize("options", [(), ("--forks", "2")])
def test_what_passes_alone_does_not_fail_the_run_and_is_named(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = ran_again(tmp_path, *options, test_once=ONCE)
    assert done.returncode == 0, done.stdout
    assert "2 failed, 1 passed" in done.stdout
    assert "UNSTABLE test_once.py::test_once[a b]\nUNSTABLE test_once.py::test_once[c/d::e[f]]\n" in done.stdout


def test_what_fails_twice_fails_the_run(tmp_path: Path) -> None:
    done = ran_again(tmp_path, test_always=ALWAYS)
    assert done.returncode == 1
    assert "Once more, alone: 1 failed" in done.stdout
    assert "UNSTABLE" not in done.stdout


def test_one_that_fails_twice_is_enough(tmp_path: Path) -> None:
    done = ran_again(tmp_path, test_always=ALWAYS, test_once=ONCE.replace('"c/d::e[f]"', ""))
    assert done.returncode == 1
    assert "UNSTABLE" not in done.stdout


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({"test_once": ONCE, "test_always": ALWAYS}, 1),
        ({"test_broken": "import nothing_of_this_name\n"}, 2),
        ({}, 0),
    ],
    ids=["too many", "not collected", "all pass"],
)
def test_other_runs_are_left_alone(tmp_path: Path, files: dict[str, str], status: int) -> None:
    done = ran_again(tmp_path, **files)
    assert done.returncode == status
    assert "Once more" not in done.stdout

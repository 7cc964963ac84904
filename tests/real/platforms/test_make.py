"""What `make` prints while it sets itself up, and what is published of the checkout."""

import subprocess
from pathlib import Path

import pytest

from kit.places import ROOT
from kit.rows import rows


def planned(venv: Path, target: str) -> list[str]:
    """Return the commands that `make TARGET` would run with *venv* as its environment."""
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target, f"VENV={venv}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


@rows(
    ("target", "line"),
    [
        (".run", "Installing into {} (about half a minute, once) …"),
        (".test", "Installing what the tests need into {} and .venvs (a few minutes, once) …"),
    ],
)
def test_the_first_run_says_that_it_installs_and_the_second_says_nothing(
    tmp_path: Path, target: str, line: str
) -> None:
    tmp_path /= target.removeprefix(".")
    tmp_path.mkdir()
    commands = planned(tmp_path, str(tmp_path / target))
    [pip] = [at for at, command in enumerate(commands) if "pip install" in command]
    assert commands[pip - 1] == f"echo '{line.format(tmp_path)}'"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (tmp_path / target).touch()
    assert not any("echo" in command or "pip" in command for command in planned(tmp_path, str(tmp_path / target)))


NOT_PUBLISHED = {".ci", ".gitignore"}
"""What is for those who work on a checkout only."""


def test_the_source_distribution_has_every_file_of_the_checkout() -> None:
    from hatchling.builders.sdist import SdistBuilder

    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this is no checkout")
    # The last is always added, in a form of its own.
    packed = {each.relative_path for each in SdistBuilder(str(ROOT)).recurse_included_files()} | {"pyproject.toml"}
    tracked = {name for name in listed.stdout.splitlines() if name.partition("/")[0] not in NOT_PUBLISHED}
    assert {name for name in tracked if (ROOT / name).exists()} - packed == set()

"""What `make` prints while it sets itself up."""

import subprocess
from pathlib import Path

import pytest

from kit.places import ROOT


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


@pytest.mark.parametrize(
    ("target", "line"),
    [
        (".run", "Installing into {} (about half a minute, once) …"),
        (".test", "Installing what the tests need into {} and .venvs (a few minutes, once) …"),
    ],
)
def test_the_first_run_says_that_it_installs_and_the_second_says_nothing(
    tmp_path: Path, target: str, line: str
) -> None:
    commands = planned(tmp_path, str(tmp_path / target))
    [pip] = [at for at, command in enumerate(commands) if "pip install" in command]
    assert commands[pip - 1] == f"echo '{line.format(tmp_path)}'"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (tmp_path / target).touch()
    assert not any("echo" in command or "pip" in command for command in planned(tmp_path, str(tmp_path / target)))

"""The floor holds for lines and branches, and for each room by itself."""

import json
from pathlib import Path

import pytest

from kit.coverage_floor import ROOMS, main


def written(path: Path, **rooms: tuple[int, int]) -> Path:
    """Write a report in which each room has a hundred lines and branches, so many of them reached."""
    files = {
        f"src/assay/{room}/module.py": {
            "summary": {
                "covered_lines": lines,
                "num_statements": 100,
                "missing_lines": 100 - lines,
                "covered_branches": branches,
                "num_branches": 100,
                "missing_branches": 100 - branches,
            }
        }
        for room, (lines, branches) in rooms.items()
    }
    path.write_text(json.dumps({"files": files}))
    return path


@pytest.mark.parametrize(("lines", "branches", "status"), [(95, 90, 0), (94, 100, 1), (100, 89, 1)])
def test_each_room_needs_enough_lines_and_branches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: int, branches: int, status: int
) -> None:
    full = dict.fromkeys(ROOMS, (100, 100))
    assert main(written(tmp_path / "report", **{**full, "guard": (lines, branches)})) == status
    shown = capsys.readouterr().out
    assert ("below the floor" in shown) is ("guard/module.py" in shown) is bool(status)


def test_a_room_that_was_not_measured_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(written(tmp_path / "report", core=(100, 100), ladder=(100, 100))) == 1
    assert "guard" in capsys.readouterr().out

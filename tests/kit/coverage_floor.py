"""
Show how much of each room the tests reach, and fail below the floor.

    coverage_floor.py REPORT    a report that `coverage json` wrote

Exit status: 0 every room is above the floor, 1 one is not. The floor is for each room by itself, so that a well tested
one does not hide another.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

ROOMS = ("guard", "judge", "schema")
LINES, BRANCHES = 95.0, 90.0
"""Percent that each room needs."""

MOST_FILES = 10
"""Files to name of a room below the floor, those that miss most first."""


class Reached(NamedTuple):
    """How much of something the tests reach."""

    lines: float
    branches: float

    @classmethod
    def of(cls, summaries: list[dict[str, Any]]) -> "Reached":
        return cls(
            _percent(summaries, "covered_lines", "num_statements"),
            _percent(summaries, "covered_branches", "num_branches"),
        )

    @property
    def suffices(self) -> bool:
        return self.lines >= LINES and self.branches >= BRANCHES


def _percent(summaries: list[dict[str, Any]], covered: str, of: str) -> float:
    whole = sum(each[of] for each in summaries)
    return 100 * sum(each[covered] for each in summaries) / whole if whole else 100.0


def rooms_of(report: Any) -> dict[str, dict[str, Any]]:
    """Return the summaries of the files of each room. A room that is missing from the report has none."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for path, file in report["files"].items():
        _, _, inside = path.replace("\\", "/").partition("src/assay/")
        found[inside.partition("/")[0]][inside] = file["summary"]
    return {room: found[room] for room in ROOMS}


def missing(summary: dict[str, Any]) -> int:
    """Return how many lines and branches are not reached."""
    return int(summary["missing_lines"] + summary["missing_branches"])


def main(report: Path) -> int:
    """Print a line for each room, and the worst files of those below the floor; return the exit status."""
    failed = False
    for room, files in rooms_of(json.loads(report.read_bytes())).items():
        reached = Reached.of(list(files.values()))
        suffices = bool(files) and reached.suffices
        failed |= not suffices
        verdict = "" if suffices else f"  below the floor ({LINES:g} % of lines, {BRANCHES:g} % of branches)"
        print(f"{room:8} {reached.lines:6.2f} % of lines  {reached.branches:6.2f} % of branches{verdict}")
        if not suffices:
            for name in sorted(files, key=lambda name: -missing(files[name]))[:MOST_FILES]:
                print(f"  {name}: {missing(files[name])} lines and branches are not reached")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""
A recording of two million messages, judged by `assay check`: in one process, and in two.

The unit is the CPU time of `orjson.loads` of each line, read from the file. The file is made once, in .cache/bench.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import archive_rows
from tables import PROGRESS, table

MESSAGES: Final = 2_000_000
ROUNDS: Final = 2
"""The best of so many rounds counts."""

FILE: Final = Path(__file__).parents[1] / ".cache" / "bench" / f"archive-{MESSAGES}.jsonl"

_LOADS = """
import sys, orjson
with open(sys.argv[1], "rb") as file:
    for line in file:
        orjson.loads(line)
"""

_COMMANDS: Final = {
    "orjson.loads of each line": ("-c", _LOADS),
    "assay check --jobs 1": ("-m", "assay", "check", "--jobs", "1"),
    "assay check --jobs 2": ("-m", "assay", "check", "--jobs", "2"),
}


class Cost(NamedTuple):
    """What a run of a command took."""

    seconds: float
    """By the clock."""
    cpu: float
    """Seconds of CPU, of all of its processes."""
    memory: float
    """Megabytes of the largest of its processes."""


def measured(command: tuple[str, ...], path: Path) -> Cost:
    """Run a command on *path*."""
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, *command, str(path)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    # Popen must not wait for a process that has ended already.
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in {0, 1}, process.returncode
    return Cost(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def best(path: Path, rounds: int = ROUNDS) -> dict[str, Cost]:
    """Return the best round of each command, interleaved."""
    found: dict[str, Cost] = {}
    for turn in range(rounds):
        for name, command in _COMMANDS.items():
            PROGRESS.show(f"archive: {name}, round {turn + 1}")
            now, before = measured(command, path), found.get(name)
            found[name] = now if before is None else Cost(*map(min, now, before))
    return found


def main(path: Path = FILE, messages: int = MESSAGES) -> dict[str, Any]:
    """Print the table; return the figures."""
    if not path.exists():
        PROGRESS.show(f"archive: {path} is written")
        archive_rows.write_archive(path, messages)
    found = best(path)
    PROGRESS.show("")
    loads, one, two = found.values()
    rows = [
        (name, f"{cost.seconds:.1f}", f"{cost.cpu:.1f}", f"{cost.cpu / loads.cpu:.2f}×", f"{cost.memory:.0f}")
        for name, cost in found.items()
    ]
    size = path.stat().st_size
    print(table((f"{messages:,} messages, {size / 1e6:,.0f} MB", "seconds", "CPU s", "ratio", "MB"), rows))
    return {
        "bytes": size,
        "messages": messages,
        "commands": {name: cost._asdict() for name, cost in found.items()},
        "ratio": one.cpu / loads.cpu,
        "memory_mb": max(one.memory, two.memory),
        "speed_up": one.seconds / two.seconds,
    }


if __name__ == "__main__":
    main()

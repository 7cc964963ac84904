"""
A recording of 1 GB, and 100 recordings of 10 MB, judged by `assay check`: in one process, in two, and by Dask.

The unit is `orjson.loads` of each line of the same files. They are written once, to .cache/bench.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple

import archive_rows
from tables import PROGRESS, table

MESSAGES: Final = 2_000_000
"""Messages of the large file, and of all small files together."""

FILES: Final = 100
ROUNDS: Final = 2
"""The best of so many rounds counts."""

PLACE: Final = Path(__file__).parents[1] / ".cache" / "bench"

_LOADS = """
import sys, orjson
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        for line in file:
            orjson.loads(line)
"""

LOADS: Final = "orjson.loads of each line"
ONE: Final = "assay check --jobs 1"
TWO: Final = "assay check --jobs 2"
DASK: Final = "assay check --cluster, two workers"

_COMMANDS: Final = {
    LOADS: ("-c", _LOADS),
    ONE: ("-m", "assay", "check", "--jobs", "1"),
    TWO: ("-m", "assay", "check", "--jobs", "2"),
}


class Cost(NamedTuple):
    """What a run of a command took."""

    seconds: float
    """By the clock."""
    cpu: float
    """Seconds of CPU of all of its processes; those of Dask are not its own."""
    memory: float
    """Megabytes of the largest of its processes."""


def measured(command: Sequence[str], files: Sequence[Path]) -> Cost:
    """Run a command on *files*."""
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, *command, *map(str, files)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    # Popen must not wait for a process that has ended already.
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in {0, 1}, process.returncode
    return Cost(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def best(title: str, commands: Mapping[str, Sequence[str]], files: Sequence[Path]) -> dict[str, Cost]:
    """Return the best round of each command, interleaved, and print them."""
    found: dict[str, Cost] = {}
    for turn in range(ROUNDS):
        for name, command in commands.items():
            PROGRESS.show(f"archive: {title}, {name}, round {turn + 1}")
            now, before = measured(command, files), found.get(name)
            found[name] = now if before is None else Cost(*map(min, now, before))
    PROGRESS.show("")
    size, unit = sum(each.stat().st_size for each in files), found[LOADS].seconds
    rows = [
        (name, f"{cost.seconds:.1f}", f"{cost.cpu:.1f}", f"{cost.seconds / unit:.2f}×", f"{cost.memory:.0f}")
        for name, cost in found.items()
    ]
    print(table((f"{title}, {size / 1e6:,.0f} MB", "seconds", "CPU s", "ratio", "MB"), rows))
    return found


def cluster() -> Any:
    """Return a Dask cluster of two processes; what has no address if Dask is not installed."""
    try:
        import distributed  # noqa: PLC0415 - it takes a second
    except ImportError:
        return nullcontext()
    start: Any = distributed.LocalCluster
    return start(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1")


def main(messages: int = MESSAGES, place: Path = PLACE) -> dict[str, Any]:
    """Print the tables; return the figures."""
    large = place / f"archive-{messages}.jsonl"
    small = [place / f"archive-{messages}-{FILES}" / f"{each:03}.jsonl" for each in range(FILES)]
    PROGRESS.show(f"archive: files are written to {place}")
    archive_rows.write_archive(large, messages)
    for seed, path in enumerate(small):
        archive_rows.write_archive(path, messages // FILES, seed)
    one = best("one file", {name: _COMMANDS[name] for name in (LOADS, ONE)}, [large])
    many = best(f"{FILES} files", _COMMANDS, small)
    # Afterwards: a process that is started counts with the memory of the one that starts it, which Dask makes larger.
    with cluster() as running:
        if running is not None:
            dask = ("-m", "assay", "check", "--cluster", running.scheduler_address)
            many[DASK] = best(f"{FILES} files, Dask", {LOADS: _COMMANDS[LOADS], DASK: dask}, small)[DASK]
    return {
        "messages": messages,
        "one file": {name: cost._asdict() for name, cost in one.items()},
        "files": {name: cost._asdict() for name, cost in many.items()},
        "ratio": one[ONE].cpu / one[LOADS].cpu,
        "memory_mb": max(one[ONE].memory, many[TWO].memory),
        "speed_up": many[ONE].seconds / many[TWO].seconds,
    }


if __name__ == "__main__":
    main()

"""
What the live feed of a guard costs: the guard over pipes without a feed, with one, and with a console.

The console is `assay console` as a process of its own, with one page that reads its events, which is another process.
All guards have the journal on and run interleaved, in front of the least server. What counts is the median of a round
trip beside that without a feed. Two processes of the same program differ by some percent, so there are several of each,
and the best counts.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson

from client import Process
from guard import DOOR, RESULT, TOOL, assay
from payloads import REVISION
from rounds import Found, Plan, measured
from serve import HERE, environment
from tables import PROGRESS, table

PLAN: Final = Plan(rounds=12, flood_seconds=0.1, trips=1000, trip_seconds=0.1)

PROCESSES: Final = 3
"""Guards of each kind."""

CANDIDATES: Final = {"off": "no feed", "alone": "no listener", "console": "one console"}


@contextmanager
def console(state: Mapping[str, str]) -> Iterator[None]:
    """A console that shows the only guard of the environment *state*, with a page, until the end."""
    command = [sys.executable, "-m", "assay", "console", "--no-browser"]
    reader = [sys.executable, "-IS", str(HERE / "servers" / "console_page.py")]
    with running(command, {**os.environ, **state}) as address, running([*reader, address]) as said:
        assert said == "reading", "the page cannot connect to the console"
        yield


@contextmanager
def running(command: Sequence[str], variables: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run *command* until the end; yield the first line of its output."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=variables, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def beside(place: Path, server: list[str]) -> dict[str, dict[str, Any]]:
    """All candidates, in one run."""
    with ExitStack() as stack:
        running = {
            (name, number): _started(stack, name, place / f"{name}{number}", server)
            for number in range(PROCESSES)
            for name in CANDIDATES
        }
        found = measured("feed", {f"{name} {number}": one for (name, number), one in running.items()}, PLAN)
        apart = _apart(running)
    return {
        name: {
            **_best([found[f"{name} {number}"] for number in range(PROCESSES)]),
            "apart_p50_us": min(apart[name, number] for number in range(PROCESSES)),
        }
        for name in CANDIDATES
    }


def _started(stack: ExitStack, name: str, place: Path, server: list[str]) -> Process:
    """A guard that has answered a call, with a console if it is to have one."""
    place.mkdir()
    options = ("--mode", "enforce", "--set", f"guard.feed={'false' if name == 'off' else 'true'}")
    command = assay(*options, journal="journal")(server, place)
    assert isinstance(command, list)
    # On Linux and, by HOME, on macOS.
    state = {"XDG_STATE_HOME": str(place), "HOME": str(place)}
    process = Process(command, DOOR, {**environment(place), **state})
    stack.callback(process.close)
    process.open()
    process.ask("tools/list")
    process.call()
    if name == "console":
        stack.enter_context(console(state))
    return process


def _best(every: Sequence[Found]) -> dict[str, Any]:
    """The best figures of several processes of one kind."""
    rows = [each.as_json() for each in every]
    most = {"calls_per_second": max(row["calls_per_second"] for row in rows)}
    return most | {name: min(row[name] for row in rows) for name in ("cpu_us", "p50_us", "p99_us")}


def _apart(running: Mapping[tuple[str, int], Process]) -> dict[tuple[str, int], float]:
    """The median round trip of each where the system says who runs where."""
    best = dict.fromkeys(running, float("inf"))
    for number in range(PLAN.rounds):
        for key, process in running.items():
            PROGRESS.show(f"feed: round trips apart, round {number + 1} of {PLAN.rounds}, {key[0]}")
            best[key] = min(best[key], median(process.trips(PLAN.trips, PLAN.trip_seconds, apart=True)))
    return best


def main() -> dict[str, Any]:
    """Measure, and print the table; return the figures."""
    with TemporaryDirectory(prefix="feed") as directory:
        place = Path(directory)
        given = place / "given.json"
        given.write_bytes(orjson.dumps({"revision": REVISION, "tool": TOOL, "result": RESULT}))
        found = beside(place, [sys.executable, str(HERE / "servers" / "scripted.py"), str(given)])
    PROGRESS.show("")
    print("the live feed of a guard over pipes")
    print(
        table(
            ("", "calls/s", "CPU µs", "one CPU p50 µs", "+ %", "p50 µs", "+ %"), [_row(found, name) for name in found]
        )
    )
    return found


def _row(found: Mapping[str, Mapping[str, Any]], name: str) -> tuple[str, ...]:
    one = found[name]
    return (
        CANDIDATES[name],
        f"{one['calls_per_second']:,.0f}",
        f"{one['cpu_us']:.1f}",
        f"{one['p50_us']:.1f}",
        f"{more(found, name, 'p50_us'):+.1f}",
        f"{one['apart_p50_us']:.1f}",
        f"{more(found, name, 'apart_p50_us'):+.1f}",
    )


def more(found: Mapping[str, Mapping[str, Any]], name: str, figure: str) -> float:
    """How much more the figure of a candidate is than without a feed, in percent."""
    return float(100 * (found[name][figure] / found["off"][figure] - 1))


if __name__ == "__main__":
    main()

"""How candidates are measured: all of them interleaved, in many short rounds, of which the best count."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan
from statistics import mean, median, quantiles
from typing import Any, NamedTuple, Protocol

from tables import PROGRESS

_FEWEST = 8
"""Calls of a round: one for each connection. Some candidates take seconds for a hundred."""


class Running(Protocol):
    """A candidate that runs."""

    def flood(self, count: int) -> tuple[float, float]:
        """Seconds, and the CPU seconds of the process, for *count* calls as fast as they go."""

    def trips(self, most: int, seconds: float) -> list[float]:
        """Microseconds of each round trip, one call at a time."""

    def memory(self) -> float | None:
        """Resident megabytes, where the system says so."""


class Plan(NamedTuple):
    """How much is measured. Many short rounds: whoever else is busy on the machine spoils most of the long ones."""

    rounds: int
    flood_seconds: float
    """How long a round of calls is meant to take: the number of calls follows from it."""
    trips: int
    trip_seconds: float
    """A round of round trips ends with the one or with the other."""
    first: int = 100
    """Calls of the first round, by which it is found out how many there are to be."""


@dataclass
class Found:
    """What was measured of one candidate."""

    calls: float = 0.0
    """A second."""
    share: float = 0.0
    """Of its CPU, in the round that counts: well below 1, somebody else was busy there, and the calls say little."""
    used: list[float] = field(default_factory=list)
    p50: float = float("inf")
    p99: float = float("inf")
    starts: list[float] = field(default_factory=list)
    memory: float | None = None

    @property
    def cpu(self) -> float:
        """
        Microseconds of CPU a call, in the better half of the rounds.

        The system counts in steps of 10 ms, so that one round says little; and a busy neighbour costs CPU, too.
        """
        return mean(sorted(self.used)[: (len(self.used) + 1) // 2])

    def as_json(self) -> dict[str, Any]:
        """Return what is written of it."""
        cpu = self.cpu if self.used else float("nan")
        return {
            "calls_per_second": self.calls,
            "cpu_us": None if isnan(cpu) else cpu,
            "p50_us": self.p50,
            "p99_us": self.p99,
            "start_ms": self.start if self.starts else None,
            "memory_mb": self.memory,
        }

    @property
    def start(self) -> float:
        """Milliseconds to the first answer."""
        return median(self.starts)


def measured(title: str, running: Mapping[str, Running], plan: Plan) -> dict[str, Found]:
    """Measure all of them, interleaved."""
    found = {name: Found() for name in running}
    counts = {name: _enough(one, plan) for name, one in running.items()}
    for number in range(plan.rounds):
        for name, one in running.items():
            PROGRESS.show(f"{title}: calls a second, round {number + 1} of {plan.rounds}, {name}")
            _flooded(found[name], counts[name], one)
    for name, one in running.items():
        found[name].memory = one.memory()
    for number in range(plan.rounds):
        for name, one in running.items():
            PROGRESS.show(f"{title}: round trips, round {number + 1} of {plan.rounds}, {name}")
            cuts = quantiles(one.trips(plan.trips, plan.trip_seconds), n=100)
            found[name].p50, found[name].p99 = min(found[name].p50, cuts[49]), min(found[name].p99, cuts[98])
    return found


def _flooded(found: Found, count: int, one: Running) -> None:
    lasted, used = one.flood(count)
    if count / lasted > found.calls:
        found.calls, found.share = count / lasted, used / lasted
    found.used.append(used / count * 1e6)


def _enough(one: Running, plan: Plan) -> int:
    """How many calls a round takes, once the candidate is warm."""
    count = plan.first
    for _ in range(3):
        lasted, _ = one.flood(count)
        count = max(_FEWEST, int(count / lasted * plan.flood_seconds))
    return count

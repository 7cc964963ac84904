"""The figures that Assay is to reach, and which of them a result of `run.py` meets. Measures nothing itself."""

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from tables import table

Result = Mapping[str, Any]
"""What `run.py` writes: the figures by part."""

State = Literal["met", "missed", "not measured"]


class Target(NamedTuple):
    """One figure."""

    title: str
    part: str
    """The part of the bench that measures it."""
    figure: Callable[[Any], float]
    """Reads it from the figures of the part. Raises `KeyError` if something is missing."""
    asked: float
    at_least: bool = True
    """Whether more is better."""
    digits: int = 2

    def judged(self, result: Result) -> "Judged":
        """Compare the figure in *result* with what is asked."""
        try:
            found = self.figure(result["parts"][self.part])
        except (KeyError, TypeError, ZeroDivisionError):
            return Judged(self, None, "not measured")
        met = found >= self.asked if self.at_least else found <= self.asked
        return Judged(self, found, "met" if met else "missed")


class Judged(NamedTuple):
    """A target, and what was measured."""

    target: Target
    found: float | None
    state: State

    def as_json(self) -> dict[str, Any]:
        """Return the row as the result has it."""
        target = self.target
        return {
            "title": target.title,
            "part": target.part,
            "found": self.found,
            "asked": target.asked,
            "better": "more" if target.at_least else "less",
            "state": self.state,
        }

    def cells(self) -> tuple[str, str, str, str]:
        """Return the row as people read it."""
        target = self.target
        asked = f"{'≥' if target.at_least else '≤'} {target.asked:,.{target.digits}f}"
        found = "" if self.found is None else f"{self.found:,.{target.digits}f}"
        return target.title, found, asked, self.state


def ratio(one: str, other: str, figure: str = "calls_per_second") -> Callable[[Any], float]:
    """Return what divides a figure of one candidate by that of another."""
    return lambda part: float(part[one][figure] / part[other][figure])


def calls(name: str) -> Callable[[Any], float]:
    """Return what reads the calls a second of a candidate."""
    return lambda part: float(part[name]["calls_per_second"])


def _added(part: Any) -> float:
    """What the guard adds to a round trip on one CPU, beside what a relay of bytes adds."""
    trips = {name: part["the least server"][name]["p50_us"] for name in ("direct", "relay", "enforce")}
    return float((trips["enforce"] - trips["direct"]) / (trips["relay"] - trips["direct"]))


def _per_cpu(one: str, other: str) -> Callable[[Any], float]:
    """
    Return what divides the calls of one candidate for a second of its CPU by those of another.

    That is the ratio of the calls a second, if both have a CPU for themselves. On a busy machine they do not.
    """
    return lambda part: float(part[other]["cpu_us"] / part[one]["cpu_us"])


def _of_bare(tool: str) -> Callable[[Any], float]:
    """The smaller ratio to the bare application of the two revisions."""
    return lambda part: min(_per_cpu("assay", "bare")(every) for title, every in part.items() if title.endswith(tool))


def _journal(part: Any) -> float:
    """The largest share of the calls that the journal costs, in percent."""
    return max(100 * (1 - _per_cpu("assay", "off")(every)) for every in part.values())


def _guard_journal(part: Any) -> float:
    return 100 * (1 - _per_cpu("enforce", "off")(part["the least server"]))


TARGETS: Final = (
    Target("a verdict of 200 bytes ÷ orjson.loads", "verdict", lambda part: part["200 B"]["ratio"], 4.0, False),
    Target("guard over pipes, added round trip ÷ relay", "guard", _added, 2.5, False),
    Target("guard, HTTP to HTTP, calls a second", "listen", calls("assay"), 4000, True, 0),
    Target("guard, HTTP to HTTP ÷ uvicorn and aiohttp", "listen", ratio("assay", "aiohttp"), 0.7),
    Target("guard, HTTP to child, calls a second", "listen", calls("child"), 4500, True, 0),
    Target("asset server ÷ bare ASGI, list_schemas", "http", _of_bare("list_schemas"), 0.15),
    Target("asset server ÷ bare ASGI, validate_asset", "http", _of_bare("validate_asset"), 0.15),
    Target("journal of the asset server, % of calls", "http", _journal, 12, False, 0),
    Target("journal of the guard over pipes, % of calls", "guard", _guard_journal, 12, False, 0),
    Target("an archive ÷ orjson.loads of its lines", "archive", lambda part: part["ratio"], 20.0, False),
    Target("an archive, MB of the largest process", "archive", lambda part: part["memory_mb"], 100, False, 0),
    Target("100 files, --jobs 2 ÷ one process", "archive", lambda part: part["speed_up"], 1.6),
)


def judged(result: Result) -> Iterator[Judged]:
    """Yield each target with what was measured; those of parts that did not run are left out."""
    for target in TARGETS:
        if target.part in result["parts"]:
            yield target.judged(result)


def shown(result: Result) -> str:
    """Return the table of targets."""
    return table(("target", "found", "asked", ""), [each.cells() for each in judged(result)])


def result_of(figures: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return what is written: the machine, the figures by part, and the targets."""
    result: dict[str, Any] = {
        "version": 1,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(seconds, 1),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "parts": figures,
    }
    result["targets"] = [each.as_json() for each in judged(result)]
    return result

"""The table of targets at the end of `make bench`, and the file with its figures. Nothing is measured here."""

import json
from importlib import import_module
from typing import Any

import pytest

from kit.places import ROOT
from kit.rows import rows

BENCH = ROOT / "bench"

PARTS = {"verdict", "guard", "listen", "http", "archive"}


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the bench that has the targets."""
    monkeypatch.syspath_prepend(str(BENCH))
    return import_module("speed_targets")


def candidate(calls: float, p50: float = 100.0) -> dict[str, Any]:
    return {"calls_per_second": calls, "cpu_us": 1e6 / calls, "p50_us": p50, "p99_us": 200.0, "memory_mb": 30.0}


def figures(calls: float) -> dict[str, Any]:
    """Figures as the parts give them, where Assay answers so many calls a second, and the others 10,000."""
    others = candidate(10_000)
    tools = {"bare": others, "assay": candidate(calls), "off": others}
    pipes = {
        "direct": candidate(10_000, 10.0),
        "relay": candidate(10_000, 20.0),
        "enforce": candidate(calls, 30.0),
        "off": others,
    }
    return {
        "verdict": {"200 B": {"ratio": 3.0}},
        "guard": {"the least server": pipes},
        "listen": {"aiohttp": others, "assay": candidate(calls), "child": candidate(calls)},
        "http": {f"{revision} {tool}": tools for revision in "ab" for tool in ("list_schemas", "validate_asset")},
        "archive": {"ratio": 4.5, "memory_mb": 80.0, "speed_up": 1.9},
    }


@rows(("calls", "state"), [(9_900.0, "met"), (100.0, "missed")])
def test_each_target_is_met_or_missed(targets: Any, calls: float, state: str) -> None:
    found = targets.result_of(figures(calls), 1.0)["targets"]
    assert {each["part"] for each in found} == PARTS
    # The ratio to orjson.loads, the added round trip, and an archive do not depend on the calls.
    assert [each["state"] for each in found] == ["met", "met", *[state] * 7, "met", "met", "met"]
    assert found[1]["found"] == 2.0


def test_what_did_not_run_is_not_measured(targets: Any) -> None:
    every = figures(9_900.0)
    part = targets.result_of({"listen": every["listen"]}, 1.0)["targets"]
    assert [each["part"] for each in part] == ["listen"] * 3
    del every["listen"]["aiohttp"]
    assert [each["state"] for each in targets.result_of(every, 1.0)["targets"]].count("not measured") == 1


def test_the_result_is_json_with_every_figure_and_a_table_of_eighty_columns(targets: Any) -> None:
    result = json.loads(json.dumps(targets.result_of(figures(9_900.0), 61.25)))
    assert set(result) == {"version", "finished", "seconds", "python", "machine", "cpus", "parts", "targets"}
    assert (result["parts"], result["seconds"]) == (figures(9_900.0), 61.2)
    assert set(result["targets"][0]) == {"title", "part", "found", "asked", "better", "state"}
    shown = targets.shown(result).splitlines()
    assert len(shown) == len(targets.TARGETS) + 1
    assert max(map(len, shown)) <= 80
    assert all(line.endswith("met") for line in shown[1:])

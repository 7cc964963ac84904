"""Rows of several guards are in the order of their times, within bounds."""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from time import time
from typing import Any

import pytest

from assay.console import console_sources, time_order
from assay.console.console_sources import MachinePump
from assay.console.console_state import ConsoleSource, ConsoleState
from assay.console.time_order import WINDOW, TimeOrder, in_order
from assay.edges.feed_door import FeedDoor
from assay.records.live.feed_items import RECORD, FeedItem
from assay.records.live.live_feed import LiveFeed
from kit.consoles import console, stdio_guard

ONE, OTHER = ConsoleSource(("guard", 1), "guard"), ConsoleSource(("guard", 2), "guard")


def at(seconds: float, **members: Any) -> FeedItem:
    """A record of that time."""
    ts = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return FeedItem(RECORD, {"ts": ts, "metadata": {}, **members})


def record(seconds: float) -> dict[str, Any]:
    """A whole record of that time."""
    common = {"requestId": "r", "transport": "stdio", "route": "stdio", "method": "ping", "status": "ok"}
    sizes = {"durationMs": 1.0, "inputBytes": 1, "outputBytes": 1, "error": None}
    return {**at(seconds).data, **common, **sizes, "metadata": {"party": "client", "kind": "notification"}}


def names(order: TimeOrder, before: float) -> list[str]:
    return [each.item.data["name"] for each in order.due(before)]


def test_items_of_two_sources_are_released_by_time() -> None:
    order = TimeOrder()
    order.add(ONE, at(10.00, name="a"), 10.1)
    order.add(ONE, at(10.04, name="c"), 10.1)
    order.add(OTHER, at(10.02, name="b"), 10.1)
    order.add(OTHER, at(10.06, name="d"), 10.1)
    assert names(order, 10.03) == ["a", "b"]
    order.add(ONE, at(10.05, name="e"), 10.2)
    assert names(order, inf) == ["c", "e", "d"]


def test_items_of_one_source_keep_their_order() -> None:
    order = TimeOrder()
    order.add(ONE, at(10.5, name="a"), 11.0)
    order.add(ONE, at(10.1, name="b"), 11.0)
    order.add(ONE, FeedItem("bye", {"name": "c"}), 11.0)
    assert names(order, inf) == ["a", "b", "c"]


@pytest.mark.parametrize("ts", ["2999-01-01T00:00:00Z", "no time", "", None, 5])
def test_a_time_that_is_not_believable_is_that_of_arrival(ts: Any) -> None:
    order = TimeOrder()
    order.add(ONE, FeedItem(RECORD, {"ts": ts, "name": "a"}), 10.0)
    assert names(order, 9.9) == []
    assert names(order, 10.0) == ["a"]


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_order, "MOST_HELD", 3)
    monkeypatch.setattr(time_order, "MOST_BYTES", 100)
    order = TimeOrder()
    for number in range(5):
        order.add(ONE, at(10.0 + number, name=str(number)), 20.0)
    assert (names(order, 0.0), len(order)) == (["0", "1"], 3)
    order.add(ONE, at(15.0, name="5", metadata={"frame": "x" * 101}), 20.0)
    assert (names(order, 0.0), order.is_full) == (["2", "3", "4", "5"], False)


def test_times_of_a_journal_never_go_back() -> None:
    found = [each.time for each in in_order(ONE, [at(2.0), at(1.0), at(3.0), at(99.0)], 10.0)]
    assert found == [2.0, 2.0, 3.0, 10.0]


@pytest.fixture
def state() -> Iterator[Path]:
    """Return a short directory: the path of a socket is limited."""
    with tempfile.TemporaryDirectory() as found:
        yield Path(found)


def folder(parent: Path, name: str) -> Path:
    made = parent / name
    made.mkdir()
    return made


def test_rows_of_two_guards_are_in_the_order_of_their_times(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [time()]
    monkeypatch.setattr(console_sources, "time", lambda: clock[0])
    monkeypatch.setattr(console_sources, "PAUSE", 0.005)
    asyncio.run(_two_guards(state, clock))


async def _two_guards(state: Path, clock: list[float]) -> None:
    store = ConsoleState()
    doors = [FeedDoor.open(LiveFeed("guard", "stdio"), str(state)) for _ in range(2)]
    for door in doors:
        door.enter(asyncio.get_running_loop())
    pump = MachinePump(store, lambda: None, str(state), lambda: ())
    running = asyncio.ensure_future(pump.run())
    async with asyncio.timeout(60):
        while sum(door.feed.attended for door in doors) < 2:
            await asyncio.sleep(0.01)
        for number in range(5):
            # The record of the first guard is newer, and comes first.
            for held, (door, moment) in enumerate(zip(doors, (clock[0], clock[0] - 0.02), strict=True)):
                door.feed.lines(json.dumps(record(moment)).encode() + b"\n")
                door.flush()
                while len(pump._order) == held:
                    await asyncio.sleep(0.01)
            assert store.store.newest == 2 * number
            clock[0] += 2 * WINDOW
            while store.store.newest < 2 * (number + 1):
                await asyncio.sleep(0.01)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    for door in doors:
        door.leave()
        door.close()
    times = [json.loads(row)[1] for row in store.store.after(0)]
    assert len(times) == 10
    assert times == sorted(times)


def test_journals_of_earlier_runs_are_in_the_order_of_their_times(state: Path, tmp_path: Path) -> None:
    with (
        stdio_guard(state, folder(tmp_path, "a"), "--name", "first") as one,
        stdio_guard(state, folder(tmp_path, "b"), "--name", "second") as other,
    ):
        one.open()
        other.open()
        for number in range(10):
            (one if number % 2 else other).call("look", count=number)
    # The records of a guard that runs come from its feed, and are newer than those of the others.
    with stdio_guard(state, folder(tmp_path, "c"), "--name", "third") as third:
        third.open()
        with console(state) as running:
            rows = running.wait(lambda rows: len(rows) >= 30 + 5)
    times = [each["time"] for each in rows]
    assert times == sorted(times)


def test_a_clock_that_is_set_back_holds_nothing_back() -> None:
    order = TimeOrder()
    order.add(ONE, at(4000.00, name="a"), 4000.0)
    order.add(OTHER, at(3999.99, name="b"), 4000.0)
    # An hour less: a time from before is not waited for, with or without new items.
    order.clock(400.0)
    assert names(order, 400.0) == ["a", "b"]
    order.add(ONE, at(399.9, name="c"), 400.1)
    order.add(OTHER, at(399.8, name="d"), 400.1)
    assert names(order, 400.1) == ["c", "d"]


def test_messages_that_are_no_text_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_order, "MOST_BYTES", 100)
    order = TimeOrder()
    order.add(ONE, at(1.0, name="a", metadata={"frameBase64": "x" * 101}), 1.0)
    assert (names(order, 0.0), order.is_full) == (["a"], False)

"""What is made of records without I/O: queues, rates, durations, and groups of findings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.records.live import listener_queue, live_totals
from assay.records.live.feed_items import FeedItem, item_of
from assay.records.live.listener_queue import ListenerQueue
from assay.records.live.live_totals import DurationHistogram, LiveTotals, RateWindow
from assay.records.log_histogram import PRECISION


def record(status: str = "ok", rules: tuple[str, ...] = (), **metadata: Any) -> dict[str, Any]:
    """A record of a call."""
    violations = [{"rule": rule, "at": "/params/arguments/limit"} for rule in rules]
    return {
        "ts": "2026-11-17T10:00:00.000000Z",
        "requestId": "r",
        "transport": "stdio",
        "route": "stdio",
        "method": "tools/call",
        "status": status,
        "durationMs": 2.0,
        "inputBytes": 1,
        "outputBytes": 1,
        "error": {"violations": violations} if rules else None,
        "metadata": {"server": "books", "tool": "search", "party": "client", "kind": "request", **metadata},
    }


def sent(queue: ListenerQueue) -> bytes:
    """All that a listener gets."""
    found = b""
    while piece := queue.piece():
        found += bytes(piece)
        queue.sent(len(piece))
    return found


# ── a queue ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_does_not_fit_is_dropped_and_counted_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_queue, "MOST_RECORDS", 3)
    queue = ListenerQueue()
    queue.say(b"hello\n")
    for number in range(6):
        queue.put(b"%d\n" % number, 1)
    assert sent(queue) == b'hello\n0\n1\n2\n{"event":"dropped","count":3}\n'
    queue.put(b"6\n", 1)
    assert sent(queue) == b"6\n"


def test_bytes_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_queue, "MOST_BYTES", 10)
    queue = ListenerQueue()
    queue.put(b"x" * 9 + b"\n", 1)
    queue.put(b"y\n", 1)
    queue.sent(len(queue.piece()))
    queue.put(b"z\n", 1)
    assert sent(queue) == b'{"event":"dropped","count":1}\nz\n'


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 40)), max_size=60), st.integers(1, 50))
def test_every_record_is_sent_or_counted(steps: list[tuple[int, int]], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listener_queue, "MOST_RECORDS", most)
        queue, given_records, got = ListenerQueue(), 0, b""
        for records, taken in steps:
            queue.put(b"r\n" * records, records)
            given_records += records
            piece = queue.piece()[:taken]
            got += bytes(piece)
            queue.sent(len(piece))
        got += sent(queue)
    found = [item for line in got.split(b"\n") if line.startswith(b"{") and (item := item_of(line))]
    assert got.count(b"r\n") + sum(item.data["count"] for item in found) == given_records


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


DURATIONS = st.integers(1, 10**9).map(lambda microseconds: microseconds / 1000)


@given(st.lists(DURATIONS, min_size=1), st.lists(DURATIONS), st.sampled_from([0.5, 0.95, 1.0]))
def test_merged_durations_are_those_of_all(left: list[float], right: list[float], share: float) -> None:
    one, other, both = DurationHistogram(), DurationHistogram(), DurationHistogram()
    for each in left:
        one.add(each)
        both.add(each)
    for each in right:
        other.add(each)
        both.add(each)
    one.merge(other)
    assert one.bounds == both.bounds
    every = sorted((*left, *right))
    true = every[-(-int(len(every) * share * 1000) // 1000) - 1]
    found = both.quantile(share)
    assert found is not None
    assert true * (1 - PRECISION) * 0.999 <= found <= true * (1 + PRECISION) * 1.001


def test_rates_are_of_the_last_minute() -> None:
    window = RateWindow()
    for second in range(100, 400):
        window.add(second)
    assert window.per_minute(399.5) == 60
    assert window.series(399.5, 12) == [5] * 12
    assert window.per_minute(1000.0) == 0
    window.add(1.0)
    assert window.per_minute(399.5) == 60


def test_figures_are_counted_by_server() -> None:
    totals, source = LiveTotals(), object()
    hello = {"transport": "stdio", "mode": "audit", "servers": [{"name": "books", "state": "running"}, "junk"]}
    totals.take(source, FeedItem("hello", hello), 0.0)
    now = 1_794_909_600.0
    totals.take(source, FeedItem("record", record("refused", ("contract/input",), passed=True)), now)
    totals.take(source, FeedItem("record", record("refused", ("contract/input", "protocol/params"))), now)
    totals.take(source, FeedItem("record", record(party="server", kind="result")), now)
    totals.take(source, FeedItem("dropped", {"count": 7}), now)
    [row] = totals.rows(now)
    assert (row.messages, row.findings, row.blocked, row.state) == (3, 3, 1, "running")
    assert row.calls.per_minute(now) == 2
    assert row.durations.total == 1
    assert totals.dropped == 7
    assert totals.groups["contract/input", "search", "/params/arguments/limit"].count == 2
    assert [each.status for each in totals.recent] == ["would block", "blocked", "blocked"]
    totals.take(source, FeedItem("bye", {}), now)
    assert [each.state for each in totals.rows(now)] == ["ended"]
    assert list(totals.rows(now + live_totals.GONE_SECONDS)) == []


def test_servers_and_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_totals, "MOST_SERVERS", 3)
    monkeypatch.setattr(live_totals, "MOST_GROUPS", 4)
    totals = LiveTotals()
    for number in range(20):
        found = record("refused", ("contract/input",), server=f"s{number}", tool=f"t{number}")
        totals.take(None, FeedItem("record", found), 0.0)
    assert len(totals.servers) == 3
    assert sum(each.count for each in totals.groups.values()) == 20
    assert len(totals.groups) == 5


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.dictionaries(
    st.sampled_from(["name", "servers", "sessions", "count", "state", "server", "event", "tools", "revisions"]),
    inner | st.lists(inner, max_size=3), max_size=5), max_leaves=20), st.sampled_from(
    ["hello", "server", "state", "tools", "restart", "session", "dropped", "bye"]))  # fmt: skip
def test_any_event_is_taken(data: Any, event: str) -> None:
    totals = LiveTotals()
    totals.take(None, FeedItem(event, data if isinstance(data, dict) else {}), 0.0)
    list(totals.rows(0.0))

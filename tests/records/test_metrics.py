"""The metrics: what is counted, that a peer cannot make it many, and that Prometheus' own parser reads it."""

import math
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from assay import __version__
from assay.assets.own_tools import TOOLS
from assay.model.verdict import Findings, Party, Verdict, Violation, verdict
from assay.records.metrics import BUCKETS, METHODS, OTHER, Metrics
from assay.records.record import status_of
from assay.rules import RULES
from assay.spec.extensions import extended_methods
from assay.spec.methods import methods
from assay.spec.revisions import REVISIONS
from kit.places import ROOT
from kit.rows import rows
from kit.talk import HITS, SEARCH, Talk, call, error, notification, request, result

PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(metrics: Metrics) -> Samples:
    """What a scrape finds, read by the parser of Prometheus' own client."""
    found: Samples = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        assert family.documentation
        assert family.type in {"counter", "gauge", "histogram"}
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            found[key] = sample.value
    return found


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return samples(metrics)[name, frozenset(labels.items())]


def messages(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Counts by transport, party, method and status."""
    names = ("transport", "party", "method", "status")
    return {
        tuple(dict(labels)[name] for name in names): count
        for (name, labels), count in samples(metrics).items()
        if name == "assay_messages_total"
    }


def violations(metrics: Metrics) -> dict[str, float]:
    """Counts by rule, but for those that were not broken."""
    found = {dict(labels)["rule"]: n for (name, labels), n in samples(metrics).items() if "violations" in name}
    return {rule: count for rule, count in found.items() if count}


def heard(*verdicts: Verdict, transport: str = "stdio") -> Metrics:
    metrics = Metrics()
    for each in verdicts:
        metrics.heard(each, transport)
    return metrics


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


CALL = call(1, "search", {"words": "x"})
PING = request(1, "ping")


def said(message: Any, asked: Any = None) -> Verdict:
    """The verdict on what a client says, or on an answer to what it has *asked*, or on the lack of one."""
    talk = Talk().opened().listed(SEARCH)
    if asked is None:
        return talk.client(message)
    talk.client(asked)
    return talk.server(message) if message is not None else talk.conversation.end(Party.SERVER)[0]


@rows(
    ("message", "asked", "method", "status", "broken"),
    [
        (call(1, "search", {"limit": 0}), None, "tools/call", "refused", ["contract/input"]),
        (result(1, {**HITS, "structuredContent": {}}), CALL, "tools/call", "refused", ["contract/output"]),
        (result(1, {"content": [], "isError": True}), CALL, "tools/call", "failed", []),
        (result(1, {**HITS, "isError": False}), CALL, "tools/call", "ok", []),
        (error(1, -32603), PING, "ping", "failed", []),
        (None, PING, "ping", "failed", ["protocol/unanswered"]),
        (result(9, {}), PING, "other", "refused", ["protocol/unsolicited"]),
        (b"{", None, "other", "refused", ["syntax/json"]),
        (request(1, 'x"\n\\'), None, "other", "refused", ["protocol/method"]),
        ({"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}}, None, "other", "failed", []),
    ],
)
def test_a_message_counts_with_the_status_that_the_journal_gives_it(
    message: Any, asked: Any, method: str, status: str, broken: list[str]
) -> None:
    one, party = said(message, asked), "client" if asked is None else "server"
    metrics = heard(one, one)
    assert status_of(one) == status
    assert messages(metrics) == {("stdio", party, method, status): 2}
    assert set(violations(metrics)) == set(broken)


@rows("method", ["tools/call", "made/up"])
def test_an_exchange_of_our_own_server_counts_like_its_two_messages(method: str) -> None:
    """Its results are not read again: whoever made one says that it has failed."""
    together, apart = Metrics(), Metrics()
    asked = verdict(Party.CLIENT, b"", "request", request(1, method), None, None)
    exchange = said(CALL).exchange if method == "tools/call" else None
    answered = verdict(Party.SERVER, b"", "result", None, exchange, None)
    for _ in range(2):
        together.exchanged(method, "http", 0.002)
        apart.heard(asked, "http")
        apart.heard(answered, "http")
        apart.answered(method, 0.002)
    assert samples(together) == samples(apart)
    apart.heard(answered, "stdio", failed=True)
    shown = method if method == "tools/call" else OTHER
    assert messages(apart)["stdio", "server", shown, "failed"] == 1


def test_the_entries_of_a_batch_count_one_by_one_where_there_are_batches() -> None:
    batch = [request(1, "ping"), request(2, "nope"), request(3, "ping")]
    metrics = heard(Talk().opened("2025-03-26").client(batch))
    assert messages(metrics) == {("stdio", "client", "ping", "ok"): 2, ("stdio", "client", "other", "refused"): 1}
    assert violations(metrics) == {"protocol/method": 1}
    assert messages(heard(Talk().opened().client(batch))) == {("stdio", "client", "other", "refused"): 1}
    assert messages(heard(Talk().client(b" "))) == {}


# ── what is bounded ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_peer_cannot_make_up_series() -> None:
    metrics = Metrics()
    talk = Talk().opened()
    for number in range(100):
        metrics.heard(talk.client(request(number, f"made-up/{number}")), "stdio")
        metrics.heard(talk.client(notification(f"notifications/{number}")), "stdio")
        metrics.answered(f"made-up/{number}", 0.1)
    metrics.answered(None, 0.1)
    assert {method for _, _, method, _ in messages(metrics)} == {OTHER}
    assert value(metrics, "assay_request_duration_seconds_count", method=OTHER) == 101


def test_every_method_and_rule_has_a_name_and_made_up_ones_are_other() -> None:
    """A rule is there before it is broken: a rate needs the zero before the one."""
    extended = [extended_methods(revision) for revision in REVISIONS]
    assert set(METHODS) == set(TOOLS).union(*(methods(revision) for revision in REVISIONS), *extended)
    bare = verdict(Party.CLIENT, b"{}", "request", request(1, "list_schemas"), None, None)
    assert messages(heard(bare)) == {("stdio", "client", "list_schemas", "ok"): 1}
    rules = {dict(labels)["rule"] for name, labels in samples(Metrics()) if name == "assay_violations_total"}
    assert rules == set(RULES)
    odd = Violation("mine/own", "", "", "", "", "", "report")
    metrics = heard(verdict(Party.CLIENT, b"1", "unreadable", None, None, None, Findings((odd, odd), 0, b"1")))
    assert violations(metrics) == {OTHER: 2}


# ── durations ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_durations_are_counted_up_to_each_bound() -> None:
    metrics = Metrics()
    for seconds in (0, 0.0001, 0.00011, 0.3, 10, 11):
        metrics.answered("ping", seconds)
    found = {
        float(dict(labels)["le"]): count
        for (name, labels), count in samples(metrics).items()
        if name == "assay_request_duration_seconds_bucket"
    }
    assert list(found) == [*BUCKETS, math.inf]
    assert [found[bound] for bound in (0.0001, 0.00025, 0.25, 0.5, 10, math.inf)] == [2, 3, 3, 4, 5, 6]
    assert value(metrics, "assay_request_duration_seconds_count", method="ping") == 6
    assert value(metrics, "assay_request_duration_seconds_sum", method="ping") == pytest.approx(21.30021)
    # Prometheus takes a counter that goes down, as by a clock that was set back, for a restart.
    metrics.answered("ping", -5)
    assert value(metrics, "assay_request_duration_seconds_sum", method="ping") == pytest.approx(21.30021)


# ── the rest of the page ─────────────────────────────────────────────────────────────────────────────────────────────


def test_gauges_are_asked_when_they_are_shown_and_one_that_fails_leaves_the_others() -> None:
    metrics = Metrics()
    sessions: list[str] = []
    metrics.gauge("assay_streams", "Streams that are open.", lambda: 1 // 0)
    metrics.gauge("assay_sessions", "Sessions that are open.", lambda: len(sessions))
    assert value(metrics, "assay_sessions") == 0
    sessions.append("a")
    assert value(metrics, "assay_sessions") == 1
    assert math.isnan(value(metrics, "assay_streams"))


@rows("name", ["", "a b", "1a", "ä", "assay_build_info", "assay_sessions"])
def test_a_gauge_has_a_name_of_its_own(name: str) -> None:
    metrics = Metrics()
    metrics.gauge("assay_sessions", "Sessions that are open.", lambda: 0)
    with pytest.raises(ValueError, match=r"invalid name of a gauge|duplicate gauge"):
        metrics.gauge(name, "Something.", lambda: 0)


def test_failures_of_the_journal_and_the_version_are_there() -> None:
    metrics = Metrics()
    assert value(metrics, "assay_journal_failures_total") == 0
    metrics.journal_failed()
    assert value(metrics, "assay_journal_failures_total") == 1
    assert value(metrics, "assay_build_info", version=__version__) == 1


def test_text_is_escaped() -> None:
    """Labels are from tables, but for the transport, which whoever embeds us may choose."""
    metrics = heard(Talk().client(request(1, "ping")), transport='a"b\\c\nd\\n')
    metrics.gauge("assay_sessions", 'With "quotes",\nlines and \\.', lambda: -math.inf)
    [(transport, *_)] = messages(metrics)
    assert transport == 'a"b\\c\nd\\n'
    [family] = [each for each in text_string_to_metric_families(metrics.render().decode()) if each.type == "gauge"][:1]
    assert family.documentation == 'With "quotes",\nlines and \\.'
    assert value(metrics, "assay_sessions") == -math.inf


def test_every_metric_is_documented() -> None:
    metrics = Metrics()
    for name in ("assay_sessions", "assay_streams", "assay_requests_in_flight"):
        metrics.gauge(name, "Something.", lambda: 0)
    for line in metrics.render().decode().splitlines():
        if line.startswith("# TYPE "):
            assert f"`{line.split()[2]}" in PAGE

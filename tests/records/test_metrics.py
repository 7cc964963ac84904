"""The metrics: what is counted, that a peer cannot make it many, and that Prometheus' own parser reads it."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from assay import __version__
from assay.assets.asset_server import AssetServer
from assay.base.verdict import Findings, Party, Verdict, Violation, verdict
from assay.contracts.own_tools import TOOLS
from assay.records.journal.record import status_of
from assay.records.metrics import BUCKETS, CONTENT_TYPE, METHODS, OTHER, Metrics
from assay.rules import RULES
from assay.spec.extensions.official import OFFICIAL
from assay.spec.methods import methods
from assay.spec.revisions import REVISIONS
from kit.places import ROOT
from kit.rows import rows
from kit.talk import HITS, SEARCH, Talk, call, error, frame_of, notification, request, result

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


def test_messages_are_counted_by_who_sent_what_and_what_became_of_it() -> None:
    metrics = Metrics()
    talk = Talk().opened().listed(SEARCH)
    for ident in (1, 2):
        metrics.heard(talk.client(call(ident, "search", {"words": "x"})), "http")
        metrics.heard(talk.server(result(ident, HITS)), "http")
    metrics.heard(talk.client(notification("notifications/cancelled", {"requestId": 1})), "stdio")
    assert messages(metrics) == {
        ("http", "client", "tools/call", "ok"): 2,
        ("http", "server", "tools/call", "ok"): 2,
        ("stdio", "client", "notifications/cancelled", "ok"): 1,
    }


def refused() -> Verdict:
    return Talk().opened().listed(SEARCH).client(call(1, "search", {"limit": 0}))


def broken_answer() -> Verdict:
    talk = Talk().opened().listed(SEARCH)
    talk.client(call(1, "search", {"words": "x"}))
    return talk.server(result(1, {"content": [], "structuredContent": {}}))


def failed_answer() -> Verdict:
    talk = Talk().opened().listed(SEARCH)
    talk.client(call(1, "search", {"words": "x"}))
    return talk.server(result(1, {"content": [], "isError": True}))


def good_answer_that_says_so() -> Verdict:
    talk = Talk().opened().listed(SEARCH)
    talk.client(call(1, "search", {"words": "x"}))
    return talk.server(result(1, {**HITS, "isError": False}))


def error_answer() -> Verdict:
    talk = Talk().opened()
    talk.client(request(1, "ping"))
    return talk.server(error(1, -32603))


def missing_answer() -> Verdict:
    talk = Talk().opened()
    talk.client(request(1, "ping"))
    [missing] = talk.conversation.end(Party.SERVER)
    return missing


def unsolicited() -> Verdict:
    return Talk().opened().server(result(1, {}))


def unreadable() -> Verdict:
    return Talk().opened().client(b"{")


def made_up_method() -> Verdict:
    return Talk().opened().client(request(1, 'x"\n\\'))


def error_without_an_id() -> Verdict:
    return Talk().opened().client({"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}})


@rows(
    ("said", "party", "method", "status", "broken"),
    [
        (refused, "client", "tools/call", "refused", ["contract/input"]),
        (broken_answer, "server", "tools/call", "refused", ["contract/output"]),
        (failed_answer, "server", "tools/call", "failed", []),
        (good_answer_that_says_so, "server", "tools/call", "ok", []),
        (error_answer, "server", "ping", "failed", []),
        (missing_answer, "server", "ping", "failed", ["protocol/unanswered"]),
        (unsolicited, "server", "other", "refused", ["protocol/unsolicited"]),
        (unreadable, "client", "other", "refused", ["syntax/json"]),
        (made_up_method, "client", "other", "refused", ["protocol/method"]),
        (error_without_an_id, "client", "other", "failed", []),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_message_counts_with_the_status_that_the_journal_gives_it(
    said: Callable[[], Verdict], party: str, method: str, status: str, broken: list[str]
) -> None:
    one = said()
    metrics = heard(one, one)
    assert status_of(one) == status
    assert messages(metrics) == {("stdio", party, method, status): 2}
    assert set(violations(metrics)) == set(broken)


@rows("method", ["tools/call", "made/up"])
def test_an_exchange_counts_like_its_two_messages(method: str) -> None:
    together, apart = Metrics(), Metrics()
    asked = {"jsonrpc": "2.0", "id": 1, "method": method}
    exchange = Talk().opened().client(call(1, "search", {"words": "x"})).exchange
    for metrics in (together, apart):
        # One whose answer was none of the good ones came before.
        metrics.heard(verdict(Party.CLIENT, b"", "request", asked, None, None), "http")
    for _ in range(2):
        together.exchanged(method, "http", 0.002)
        apart.heard(verdict(Party.CLIENT, b"", "request", asked, None, None), "http")
        apart.heard(
            verdict(Party.SERVER, b"", "result", None, exchange if method == "tools/call" else None, None), "http"
        )
        apart.answered(method, 0.002)
    assert samples(together) == samples(apart)


def test_what_is_known_to_have_failed_has() -> None:
    """Our own results are not read again: whoever made them says so."""
    talk = Talk().opened().listed(SEARCH)
    exchange = talk.client(call(1, "search", {"words": "x"})).exchange
    assert exchange is not None
    vouched = talk.conversation.vouch(exchange, b"{}")
    metrics = heard(vouched)
    metrics.heard(vouched, "stdio", failed=True)
    metrics.heard(vouched, "stdio", failed=True)
    assert messages(metrics) == {
        ("stdio", "server", "tools/call", "ok"): 1,
        ("stdio", "server", "tools/call", "failed"): 2,
    }


def test_the_entries_of_a_batch_count_one_by_one() -> None:
    talk = Talk().opened("2025-03-26")
    metrics = heard(talk.client([request(1, "ping"), request(2, "nope"), request(3, "ping")]))
    assert messages(metrics) == {
        ("stdio", "client", "ping", "ok"): 2,
        ("stdio", "client", "other", "refused"): 1,
    }
    assert violations(metrics) == {"protocol/method": 1}


def test_a_batch_that_may_not_be_is_one_message() -> None:
    metrics = heard(Talk().opened("2025-11-25").client([request(1, "ping"), request(2, "ping")]))
    assert messages(metrics) == {("stdio", "client", "other", "refused"): 1}


def test_a_blank_line_is_no_message() -> None:
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


def test_methods_of_every_revision_and_our_tools_are_distinguished() -> None:
    extended = [OFFICIAL.methods(revision) for revision in REVISIONS]
    assert set(METHODS) == set(TOOLS).union(*(methods(revision) for revision in REVISIONS), *extended)
    assert len(TOOLS) == 7
    message = frame_of(request(1, "list_schemas"))
    bare = verdict(Party.CLIENT, message, "request", request(1, "list_schemas"), None, None)
    assert messages(heard(bare)) == {("stdio", "client", "list_schemas", "ok"): 1}


def test_a_rule_that_is_not_known_is_other() -> None:
    odd = Violation("mine/own", "", "", "", "", "", "report")
    metrics = heard(verdict(Party.CLIENT, b"1", "unreadable", None, None, None, Findings((odd, odd), 0, b"1")))
    assert violations(metrics) == {OTHER: 2}


def test_every_rule_is_there_before_it_is_broken() -> None:
    """A rate needs the zero before the one."""
    found = {dict(labels)["rule"] for name, labels in samples(Metrics()) if name == "assay_violations_total"}
    assert found == set(RULES)


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


def test_a_clock_that_was_set_back_takes_nothing_from_the_sum() -> None:
    """Prometheus takes a counter that goes down for a restart."""
    metrics = Metrics()
    metrics.answered("ping", -5)
    assert value(metrics, "assay_request_duration_seconds_sum", method="ping") == 0
    assert value(metrics, "assay_request_duration_seconds_bucket", method="ping", le="0.0001") == 1


# ── the rest of the page ─────────────────────────────────────────────────────────────────────────────────────────────


def test_gauges_are_asked_when_they_are_shown() -> None:
    metrics = Metrics()
    sessions: list[str] = []
    metrics.gauge("assay_sessions", "Sessions that are open.", lambda: len(sessions))
    assert value(metrics, "assay_sessions") == 0
    sessions.append("a")
    assert value(metrics, "assay_sessions") == 1


def test_a_gauge_that_cannot_be_had_leaves_the_others() -> None:
    metrics = Metrics()
    metrics.gauge("assay_streams", "Streams that are open.", lambda: 1 // 0)
    metrics.gauge("assay_sessions", "Sessions that are open.", lambda: 2)
    assert math.isnan(value(metrics, "assay_streams"))
    assert value(metrics, "assay_sessions") == 2


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


def test_the_page_has_an_order_that_does_not_change() -> None:
    first, second = Metrics(), Metrics()
    good, bad = Talk().opened().client(request(1, "ping")), refused()
    for each in (good, bad):
        first.heard(each, "stdio")
    for each in (bad, good):
        second.heard(each, "stdio")
    assert first.render() == second.render()
    assert first.render().endswith(b"\n")
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")


def test_the_asset_server_is_counted_like_any_other(tmp_path: Path) -> None:
    """Through the bare door, what is refused there, and an MCP conversation."""
    from assay.assets.asset_sources import Catalogue
    from assay.assets.mcp_methods import Methods

    server = AssetServer(Methods(Catalogue.read({}, tmp_path, log=lambda _: None)))
    frames = [request(1, "list_schemas", {}), request(2, "get_schema", {}), request(3, "nope", {})]
    metrics = heard(*(server.hear(frame_of(each)).verdict for each in frames))
    assert messages(metrics) == {
        ("stdio", "client", "list_schemas", "ok"): 1,
        ("stdio", "client", "get_schema", "refused"): 1,
        ("stdio", "client", "other", "ok"): 1,
    }


def test_every_metric_is_documented() -> None:
    metrics = Metrics()
    for name in ("assay_sessions", "assay_streams", "assay_requests_in_flight"):
        metrics.gauge(name, "Something.", lambda: 0)
    for line in metrics.render().decode().splitlines():
        if line.startswith("# TYPE "):
            assert f"`{line.split()[2]}" in PAGE

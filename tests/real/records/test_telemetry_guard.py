"""The guard's telemetry: a span for every request that passes it, from its coming to the answer that its asker got."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from assay.base.verdict import Party, Verdict
from assay.edges.recorder import Recorder, Records
from assay.records.telemetry import Telemetry
from assay.settings import TelemetrySettings
from kit.collector import SECONDS, Collector, collecting, nothing_said, values
from kit.guard_process import call, enforcing, request
from kit.records import record_verdict
from kit.talk import HITS, SEARCH, Talk, error, notification, result
from kit.talk import call as calls
from kit.talk import request as asks

OF_CLIENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    nothing_said(monkeypatch)
    with collecting() as one:
        yield one


def told(collector: Collector, *said: Verdict) -> list[Span]:
    """The spans of what passed a guard."""
    lines: list[str] = []
    telemetry = Telemetry.open(TelemetrySettings(collector.url, "", {}), log=lines.append)
    assert telemetry is not None, lines
    recorder = Recorder("stdio", "stdio", Records(None, None, telemetry), holding=True)
    for each in said:
        record_verdict(recorder, each, recorder.clock(), len(each.frame))
    telemetry.close(SECONDS)
    assert lines == []
    return collector.spans


def shown(span: Span) -> dict[str, Any]:
    """What says how it went."""
    found = values(span.attributes)
    names = ("error.type", "rpc.response.status_code", "assay.rules")
    return {name: found[name] for name in names if name in found}


def talk(mode: str = "enforce") -> Talk:
    return Talk(mode=mode).opened().listed(SEARCH)


# ── the whole way ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_request_through_a_guard_is_a_span(tmp_path: Path, collector: Collector) -> None:
    (tmp_path / "mine.toml").write_text(f'[telemetry]\nendpoint = "{collector.url}"\nservice_name = "in front"\n')
    script: dict[str, Any] = {
        "tools/call:bad": [["result", {"content": [], "structuredContent": {"hits": "many"}}]],
        "tools/call:failing": [["result", {"content": [], "isError": True}]],
        "prompts/get": [["say", error("$id", -32602)]],
        "resources/read": [["exit", 1]],
    }
    listed = [SEARCH, *({**SEARCH, "name": name} for name in ("bad", "failing"))]
    with enforcing(tmp_path, "--config", "mine.toml", "--journal", "off", on=script, tools=listed) as one:
        one.open()
        traced = call(1)
        traced["params"]["_meta"] = {"traceparent": OF_CLIENT}
        assert "result" in one.ask(traced)
        for ident, tool in enumerate(("bad", "failing", "unheard-of"), 2):
            one.ask(call(ident, tool))
        assert "error" in one.ask(request(5, "prompts/get", {"name": "letter"}))
        assert "error" in one.ask(request(6, "tools/call", {"name": 7}))
        assert "error" in one.ask(request(7, "resources/read", {"uri": "file:///x"}))
        one.ended()
    spans = {values(span.attributes)["jsonrpc.request.id"]: span for span in collector.spans}
    assert {ident: span.name for ident, span in spans.items()} == {
        "open": "initialize",
        "list": "tools/list",
        "1": "tools/call search",
        "2": "tools/call bad",
        "3": "tools/call failing",
        "4": "tools/call unheard-of",
        "5": "prompts/get",
        "6": "tools/call",
        "7": "resources/read",
    }
    how = {ident: shown(span) for ident, span in spans.items()}
    assert how["open"] == how["list"] == how["1"] == {}
    assert how["2"] == {"error.type": "UPSTREAM_INVALID", "assay.rules": ["contract/output"]}
    assert how["3"] == {"error.type": "tool_error"}
    assert how["5"] == {"error.type": "_OTHER", "rpc.response.status_code": "-32602"}
    assert how["6"]["assay.rules"] == ["protocol/params"]
    assert how["7"]["error.type"] == "UPSTREAM_FAILURE"
    assert spans["1"].trace_id.hex() == OF_CLIENT.split("-")[1]
    assert spans["1"].parent_span_id.hex() == OF_CLIENT.split("-")[2]
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano for span in spans.values())
    assert collector.resources[0]["service.name"] == "in front"


# ── what becomes of a request ────────────────────────────────────────────────────────────────────────────────────────


def test_a_span_ends_with_the_answer(collector: Collector) -> None:
    said = talk()
    first, second = (said.client(calls(number, "search", {"words": "x"})) for number in (1, 2))
    spans = told(collector, first, second, said.server(result(2, HITS)), said.server(result(2, HITS)))
    assert [values(span.attributes)["jsonrpc.request.id"] for span in spans] == ["2"]


def test_under_audit_a_bad_answer_passes_and_is_no_error(collector: Collector) -> None:
    said = talk("audit")
    bad = {"content": [], "structuredContent": {"hits": "many"}}
    asked = said.client(calls(1, "search", {}))
    [span] = told(collector, asked, said.server(result(1, bad)))
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert shown(span) == {"assay.rules": ["contract/input", "contract/output"]}


def test_a_request_that_is_given_up_has_timed_out(collector: Collector) -> None:
    said = talk()
    asked = said.client(calls(1, "search", {"words": "x"}))
    missing = said.conversation.give_up(Party.CLIENT, 1)
    assert missing is not None
    [span] = told(collector, asked, missing)
    assert shown(span)["error.type"] == "TIMEOUT"


def test_what_the_server_asks_is_a_span_too(collector: Collector) -> None:
    said = Talk().opened(client={"roots": {}})
    asked = said.server(asks(9, "roots/list"))
    assert asked.findings is None
    [span] = told(collector, asked, said.client(result(9, {"roots": []})))
    assert (span.name, values(span.attributes)["assay.party"]) == ("roots/list", "server")


def test_a_batch_is_as_many_spans_as_it_has_requests(collector: Collector) -> None:
    said = Talk().opened("2025-03-26")
    asked = said.client([asks(1, "ping"), notification("notifications/roots/list_changed"), asks(2, "ping")])
    answers = said.server([result(2, {}), result(1, {})])
    spans = told(collector, asked, answers)
    assert sorted(values(span.attributes)["jsonrpc.request.id"] for span in spans) == ["1", "2"]

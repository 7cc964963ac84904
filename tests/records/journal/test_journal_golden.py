"""The golden file: HTTP and STDIO events of the same messages, good and broken, made in a deterministic run."""

from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from assay.base.errors import CanonicalError
from assay.records.journal.record_ids import deterministic_ids
from assay.records.journal.writer import Journal
from kit.journal_traffic import ROUTES, SAID, golden, heard, sent_for
from kit.places import GOLDEN
from kit.rows import rows

RECORDS: list[dict[str, Any]] = [orjson.loads(line) for line in GOLDEN.read_bytes().splitlines()]

FIELDS = [
    "ts", "requestId", "traceId", "spanId", "transport", "route", "method", "status", "durationMs", "attempt",
    "inputBytes", "outputBytes", "error", "metadata",
]  # fmt: skip
METADATA = ["schemaVersion", "deterministic", "revision", "tool", "party", "kind", "id"]


def of(transport: str) -> list[dict[str, Any]]:
    return [record for record in RECORDS if record["transport"] == transport]


def test_the_same_traffic_gives_the_golden_file_to_the_byte() -> None:
    """Regenerate with `python tests/journal/journal_traffic.py`, and read the difference."""
    assert golden() == GOLDEN.read_bytes()


def test_two_deterministic_runs_are_the_same_to_the_byte_whatever_sessions_are_called(tmp_path: Path) -> None:
    written = []
    for session in ("one", "other"):
        journal = Journal.open(tmp_path / session, deterministic=True)
        assert journal is not None
        for verdict, moment in heard(journal, "http", session):
            journal.write(journal.line(verdict, moment, 0))
        assert journal.clock() == journal.clock() == 0.0
        journal.close()
        written.append(Path(journal.path).read_bytes())
    assert written[0] == written[1] != b""


@rows("number", range(len(RECORDS)))
def test_every_record_has_the_fields_of_the_specification_in_order(number: int) -> None:
    """specs/000, Transport Parity & Logging: timestamp, IDs, transport, route, method, status, duration, error."""
    record = RECORDS[number]
    assert list(record) == FIELDS
    assert list(record["metadata"])[: len(METADATA)] == METADATA
    assert record["metadata"]["schemaVersion"] == "1"
    assert record["metadata"]["deterministic"] is True
    assert record["ts"] == "1970-01-01T00:00:00.000000Z"
    assert record["durationMs"] == 0
    assert UUID(record["requestId"]).version == 5
    assert (len(record["traceId"]), len(record["spanId"])) == (32, 16)
    assert record["route"] == ROUTES[record["transport"]]


def test_both_transports_are_there_with_every_status() -> None:
    for transport in ROUTES:
        assert {record["status"] for record in of(transport)} == {"ok", "reported", "refused", "failed"}
        assert len(of(transport)) == len(SAID) + 1


def test_the_same_message_is_recorded_the_same_over_either_transport_but_for_route_and_ids() -> None:
    """specs/000: HTTP and STDIO share the same validation pipeline."""
    apart = {"transport", "route", "requestId", "traceId", "spanId"}
    for stdio, http in zip(of("stdio"), of("http"), strict=True):
        assert {name for name in FIELDS if stdio[name] != http[name]} == apart


def test_an_id_follows_from_route_method_and_frame_alone() -> None:
    for transport, records in groupby(RECORDS, key=lambda record: record["transport"]):
        for record, (_, frame) in zip(records, SAID, strict=False):
            if record["metadata"]["kind"] in {"request", "notification"}:
                request_id, trace_id, span_id = deterministic_ids(ROUTES[transport], record["method"], frame)
                assert (record["requestId"], record["traceId"], record["spanId"]) == (request_id, trace_id, span_id)
                assert UUID(request_id).hex == trace_id


def test_an_answer_has_the_ids_of_what_it_answers() -> None:
    asked = {
        (record["transport"], record["metadata"]["id"]): record["requestId"]
        for record in RECORDS
        if record["metadata"]["kind"] == "request"
    }
    answers = [record for record in RECORDS if record["metadata"]["kind"] in {"result", "missing"}]
    assert len(answers) == 2 * 8
    for record in answers:
        assert record["requestId"] == asked[record["transport"], record["metadata"]["id"]]


def test_an_error_is_that_of_the_table() -> None:
    """specs/000, Canonical Error Mapping."""
    for record in RECORDS:
        error = record["error"]
        if record["status"] == "ok":
            assert error is None
        elif error["code"] is not None:
            assert error["jsonrpcCode"] == CanonicalError.to_jsonrpc_error(error["code"])["code"]
            assert error["httpStatus"] == CanonicalError.to_http_status(error["code"])
    codes = [record["error"]["code"] for record in of("stdio") if record["error"]]
    assert {"INVALID_ENVELOPE", "INVALID_TOOL_INPUT", "PARSE_ERROR", "UPSTREAM_INVALID", None} <= set(codes)


def test_no_secret_is_in_it() -> None:
    assert b"0123456789abcdefghij" in b"".join(frame for _, frame in SAID)
    assert b"0123456789abcdefghij" not in GOLDEN.read_bytes()


def test_what_goes_out_is_counted(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path)
    assert journal is not None
    sent = [sent_for(verdict) for verdict, _ in heard(journal, "stdio")]
    journal.close()
    assert [record["outputBytes"] for record in of("stdio")] == sent
    assert [record["inputBytes"] for record in of("stdio")] == [*(len(frame) for _, frame in SAID), 0]

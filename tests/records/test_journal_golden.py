"""The golden file: HTTP and STDIO events of the same messages, good and broken, made in a deterministic run."""

from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from assay.model.errors import CanonicalError
from kit.journal_traffic import ROUTES, SAID, golden, heard
from kit.places import GOLDEN
from kit.records import open_journal

RECORDS: list[dict[str, Any]] = [orjson.loads(line) for line in GOLDEN.read_bytes().splitlines()]

FIELDS = [
    "ts", "requestId", "traceId", "spanId", "transport", "route", "method", "status", "durationMs", "attempt",
    "inputBytes", "outputBytes", "error", "metadata",
]  # fmt: skip
METADATA = ["schemaVersion", "deterministic", "revision", "tool", "party", "kind", "id"]


def of(transport: str) -> list[dict[str, Any]]:
    return [record for record in RECORDS if record["transport"] == transport]


def test_the_same_traffic_gives_the_golden_file_to_the_byte() -> None:
    """Regenerate with `python tests/kit/journal_traffic.py`, and read the difference."""
    assert golden() == GOLDEN.read_bytes()


def test_two_deterministic_runs_are_the_same_to_the_byte_whatever_sessions_are_called(tmp_path: Path) -> None:
    written = []
    for session in ("one", "other"):
        journal = open_journal(tmp_path / session, deterministic=True)
        for verdict, moment in heard(journal, "http", session):
            journal.write(journal.line(verdict, moment, 0))
        assert journal.clock() == journal.clock() == 0.0
        journal.close()
        written.append(Path(journal.path).read_bytes())
    assert written[0] == written[1] != b""


def test_every_record_has_the_fields_of_the_specification_in_order() -> None:
    """specs/000, Transport Parity & Logging: timestamp, IDs, transport, route, method, status, duration, error."""
    for record in RECORDS:
        assert list(record) == FIELDS
        assert list(record["metadata"])[: len(METADATA)] == METADATA
        assert (record["metadata"]["schemaVersion"], record["metadata"]["deterministic"]) == ("1", True)
        assert (record["ts"], record["durationMs"]) == ("1970-01-01T00:00:00.000000Z", 0)
        assert (UUID(record["requestId"]).version, len(record["traceId"]), len(record["spanId"])) == (5, 32, 16)
        assert record["route"] == ROUTES[record["transport"]]
    assert {record["status"] for record in RECORDS} == {"ok", "reported", "refused", "failed"}


def test_the_same_message_is_recorded_the_same_over_either_transport_but_for_route_and_ids() -> None:
    """specs/000: HTTP and STDIO share the same validation pipeline."""
    apart = {"transport", "route", "requestId", "traceId", "spanId"}
    for stdio, http in zip(of("stdio"), of("http"), strict=True):
        assert {name for name in FIELDS if stdio[name] != http[name]} == apart


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

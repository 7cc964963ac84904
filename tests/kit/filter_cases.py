"""The table of filters: its records as a journal has them, for Python and for the page in JavaScript."""

import json
from typing import Any

from assay.records.record import Record
from kit.places import DATA
from kit.records import FINDING, record_with

TABLE = json.loads((DATA / "filter_cases.json").read_text(encoding="utf-8"))
CASES = TABLE["cases"]

_METADATA = ("kind", "party", "tool", "id", "session", "server", "principal", "mode", "passed")


def record(given: dict[str, Any]) -> Record:
    """The record of a row of the table."""
    rules, places = given.get("rules", []), given.get("at", [])
    faults = [{**FINDING, "rule": rule, "at": places[min(at, len(places) - 1)]} for at, rule in enumerate(rules)]
    error = {"violations": faults} if given["status"] != "ok" else None
    if error is not None and given.get("quarantined"):
        error["quarantined"] = [{"kind": "tool", "name": "legacy"}]
    metadata = {"id": None} | {name: given[name] for name in _METADATA if name in given}
    if given.get("repaired"):
        metadata["repairs"] = [{"op": "remove", "path": "/result/x"}]
    named = {name: given[name] for name in ("requestId", "method", "status")}
    return record_with(durationMs=2.0, error=error, **named, **metadata)


RECORDS = [record(each) for each in TABLE["records"]]

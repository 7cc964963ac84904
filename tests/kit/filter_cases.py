"""The table of filters: its records as a journal has them, for Python and for the page in JavaScript."""

import json
from typing import Any

from kit.places import DATA

TABLE = json.loads((DATA / "filter_cases.json").read_text(encoding="utf-8"))
CASES = TABLE["cases"]

_METADATA = ("kind", "party", "tool", "id", "session", "server", "principal", "mode", "passed")


def record(given: dict[str, Any]) -> dict[str, Any]:
    """The record of a row of the table."""
    rules, places = given.get("rules", []), given.get("at", [])
    faults = [{"rule": rule, "at": places[min(at, len(places) - 1)]} for at, rule in enumerate(rules)]
    error: dict[str, Any] | None = {"violations": faults} if given["status"] != "ok" else None
    if error is not None and given.get("quarantined"):
        error["quarantined"] = [{"kind": "tool", "name": "legacy"}]
    metadata = {name: given[name] for name in _METADATA if name in given}
    if given.get("repaired"):
        metadata["repairs"] = [{"op": "remove", "path": "/result/x"}]
    return {
        "ts": "2026-11-17T10:00:00.000000Z",
        "requestId": given["requestId"],
        "transport": "stdio",
        "route": "stdio",
        "method": given["method"],
        "status": given["status"],
        "durationMs": 2.0,
        "inputBytes": 1,
        "outputBytes": 1,
        "error": error,
        "metadata": metadata,
    }


RECORDS = [record(each) for each in TABLE["records"]]

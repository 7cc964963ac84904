"""One message for a page: as it came, as it was delivered, and what is wrong with it. No I/O."""

from collections.abc import Iterator
from shlex import quote
from typing import Any, Final
from urllib.parse import unquote

import orjson

from assay.console.console_rows import DeliveredFrame, FrameText, HttpPart, MessageAnswer, ViolationLine
from assay.console.console_state import ConsoleState, ServerFacts
from assay.console.finding_board import action_of, rule_text
from assay.console.row_cells import faults, objects_in
from assay.core import render
from assay.ladder.headers import stateless_headers
from assay.records.journal.reading import Record, is_audited
from assay.records.journal.recorded_verdict import recorded_verdict
from assay.records.outcomes import recorded_outcome
from assay.spec.revisions import handshake, is_known

NO_PAYLOAD: Final = "payload not recorded: run the guard with --set journal.payloads=true"
_TOO_LARGE: Final = "the message is too large to record"

_PAYLOAD: Final = frozenset({"frame", "frameBase64"})

_SCHEMAS: Final = {"contract/input": "inputSchema", "contract/output": "outputSchema"}
"""The schema that a rule is about."""

_LARGEST_BRANCH: Final = 64 << 10
"""Maximal bytes of a branch of a schema that is shown."""


def message_answer(state: ConsoleState, seq: int) -> MessageAnswer | None:
    """Return the message of a row; None if its record was dropped."""
    record, row = state.store.record(seq), state.store.row(seq)
    if record is None or row is None:
        return None
    metadata, error = record["metadata"], record["error"] or {}
    sent = _sent(metadata)
    related = state.store.related(seq)
    http = _http(record, _exchange(state, seq, related))
    repairs = objects_in(metadata, "repairs")
    quarantined = objects_in(error, "quarantined")
    redacted = metadata.get("redacted") is True
    shown = {name: error.get(name) for name in ("code", "jsonrpcCode", "httpStatus", "message")}
    return {
        "seq": seq,
        "row": row,
        "server": row[2],
        "requestId": record["requestId"],
        "traceId": str(record.get("traceId") or ""),
        "sent": sent,
        "delivered": _delivered(record, sent, repairs, quarantined),
        "violations": list(_violations(state, record, row[2])),
        "more": error["more"] if isinstance(error.get("more"), int) else 0,
        "error": shown if any(value is not None for value in shown.values()) else None,
        "quarantined": quarantined,
        "removed": bool(quarantined) and not is_audited(record),
        "repairs": repairs,
        "http": http,
        "redacted": redacted,
        "notes": list(_notes(record, repairs, http)),
        "related": related,
        "record": {**record, "metadata": {name: each for name, each in metadata.items() if name not in _PAYLOAD}},
    }


def _sent(metadata: dict[str, Any]) -> FrameText:
    frame, encoded = metadata.get("frame"), metadata.get("frameBase64")
    if isinstance(frame, str):
        return {"text": frame, "why": ""}
    if isinstance(encoded, str):
        return {"text": None, "base64": encoded, "why": "the message is not UTF-8"}
    lacks = metadata.get("lacks")
    why = lacks if isinstance(lacks, str) else _TOO_LARGE if metadata.get("omitted") is True else NO_PAYLOAD
    return {"text": None, "why": why}


def _delivered(
    record: Record, sent: FrameText, repairs: list[dict[str, Any]], quarantined: list[dict[str, Any]]
) -> DeliveredFrame:
    metadata = record["metadata"]
    if recorded_outcome(record).shown == "blocked":
        return _replaced(record)
    if repairs or (quarantined and not is_audited(record)):
        return _changed(record, sent, repairs, quarantined)
    same: DeliveredFrame = {**sent, "state": "same", "exact": metadata.get("redacted") is not True}
    return same


def _replaced(record: Record) -> DeliveredFrame:
    """Return the error that was sent in place of a blocked message, as far as it is known."""
    metadata = record["metadata"]
    answers = metadata.get("party") == "server" and metadata.get("kind") in {"result", "error", "missing"}
    if not answers:
        why = "the message was blocked; its sender got an error" if record["outputBytes"] else "the message was blocked"
        return {"text": None, "why": why, "state": "not", "exact": False}
    made = recorded_verdict(record)
    if made is None:
        return {"text": None, "why": "the guard sent an error in its place", "state": "replaced", "exact": False}
    ident, tool = orjson.dumps(metadata.get("id")), metadata.get("tool")
    if isinstance(tool, str) and made.revision is not None:
        frame = render.withheld(ident, tool, made.violations, made.more, made.revision)
    else:
        frame = render.failure(ident, "UPSTREAM_INVALID", made.violations, made.more, made.revision)
    return {"text": frame.decode(), "why": "", "state": "replaced", "exact": False}


def _changed(
    record: Record, sent: FrameText, repairs: list[dict[str, Any]], quarantined: list[dict[str, Any]]
) -> DeliveredFrame:
    value = _value(sent["text"])
    if value is None:
        return {"text": None, "why": sent["why"] or "the message is not JSON", "state": "changed", "exact": False}
    for each in repairs:
        _apply(value, each)
    _without(value, quarantined, record["method"])
    try:
        text = orjson.dumps(value).decode()
    except TypeError:
        return {"text": None, "why": "the message is nested too deeply", "state": "changed", "exact": False}
    return {"text": text, "why": "", "state": "changed", "exact": False}


def _value(text: str | None) -> Any:
    try:
        return None if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _apply(value: Any, repair: dict[str, Any]) -> None:
    """Make one recorded change; one without a value is left as it was."""
    path, operation = repair.get("path"), repair.get("op")
    if not isinstance(path, str) or not path.startswith("/"):
        return
    *parts, last = (each.replace("~1", "/").replace("~0", "~") for each in path[1:].split("/"))
    holder = _at(value, parts)
    if isinstance(holder, dict):
        if operation == "remove":
            holder.pop(last, None)
        elif "value" in repair:
            holder[last] = repair["value"]
    elif isinstance(holder, list) and last.isdecimal() and int(last) < len(holder):
        if operation == "remove":
            del holder[int(last)]
        elif "value" in repair:
            holder[int(last)] = repair["value"]


def _at(value: Any, parts: list[str]) -> Any:
    for part in parts:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


_LISTED: Final = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}


def _without(value: Any, quarantined: list[dict[str, Any]], method: str | None) -> None:
    """Remove the quarantined entries of a list."""
    member, key = _LISTED.get(method or "", ("", ""))
    result = value.get("result") if isinstance(value, dict) else None
    listed = result.get(member) if isinstance(result, dict) else None
    if isinstance(listed, list) and isinstance(result, dict):
        names = [each.get("name") for each in quarantined]
        result[member] = [each for each in listed if not (isinstance(each, dict) and each.get(key) in names)]


# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _violations(state: ConsoleState, record: Record, server: int) -> Iterator[ViolationLine]:
    for each in faults(record):
        texts = {name: str(each.get(name) or "") for name in ("rule", "at", "expected", "found", "source", "hint")}
        made: dict[str, Any] = {
            **texts,
            "action": action_of(each),
            "about": rule_text(texts["rule"]),
            "schema": _branch(state, record, each, server),
        }
        kept = {name: each[name] for name in ("schemaAt", "reason") if isinstance(each.get(name), str)}
        entry = each.get("entry")
        if isinstance(entry, dict):
            kept["entry"] = entry
        yield {**made, **kept}  # type: ignore[typeddict-item]  # the members of the row


def _branch(state: ConsoleState, record: Record, fault: dict[str, Any], server: int) -> Any:
    """Return the part of the tool's schema that a violation names; None if the list of tools is unknown."""
    member, at = _SCHEMAS.get(str(fault.get("rule"))), fault.get("schemaAt")
    tool = record["metadata"].get("tool")
    definition = state.contracts.tool(server, tool) if isinstance(tool, str) else None
    if member is None or definition is None or not isinstance(at, str) or not at.startswith("#"):
        return None
    parts = [unquote(each).replace("~1", "/").replace("~0", "~") for each in at[1:].strip("/").split("/") if each]
    # The place ends with a keyword: the schema that has it says more.
    found = _at(definition.get(member), parts[:-1])
    return found if found is not None and len(orjson.dumps(found)) <= _LARGEST_BRANCH else None


def _http(record: Record, related: list[Record]) -> HttpPart | None:
    """Return the HTTP exchange of a message: the request has method and headers, its answer the status."""
    if record["transport"] != "http":
        return None
    parts = [_carried(each) for each in (record, *related)]
    asked: dict[str, Any] = next((each for each in parts if "headers" in each), {})
    status = next((each["status"] for each in parts if isinstance(each.get("status"), int)), None)
    sent = (record["error"] or {}).get("httpStatus")
    method, headers = asked.get("method"), asked.get("headers")
    return {
        "route": record["route"],
        "method": method if isinstance(method, str) else None,
        "headers": headers if isinstance(headers, dict) else None,
        "status": status if status is not None else sent if isinstance(sent, int) else None,
    }


def _carried(record: Record) -> dict[str, Any]:
    found = record["metadata"].get("http")
    return found if isinstance(found, dict) else {}


def _exchange(state: ConsoleState, seq: int, related: list[int]) -> list[Record]:
    """Return the other records of the exchange that may have parts of its HTTP request: the first and the last."""
    others = dict.fromkeys(each for each in (*related[:1], *related[-1:]) if each != seq)
    found = [state.store.record(each) for each in others]
    return [each for each in found if each is not None]


def _notes(record: Record, repairs: list[dict[str, Any]], http: HttpPart | None) -> Iterator[str]:
    metadata = record["metadata"]
    if metadata.get("redacted") is True:
        yield "secrets were masked in the guard, before the message was recorded"
    hidden = sum("value" not in each and each.get("op") != "remove" for each in repairs)
    if hidden:
        yield f"{hidden} changed value{'' if hidden == 1 else 's'} of the payload: a repair is recorded without values"
    if isinstance(metadata.get("lacks"), str):
        yield f"the verdict is the one that the guard recorded: {metadata['lacks']}"
    if isinstance(metadata.get("repeated"), int):
        yield f"the record stands for {metadata['repeated']:,} messages; it has the last of them"
    if http is not None and http["headers"] is None:
        yield "the headers of the HTTP request are not recorded"


# ── curl ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def curl(record: Record, server: ServerFacts | None) -> tuple[str, list[str]] | None:
    """Return a command that sends a client's message again, and notes; None if its guard does not serve HTTP."""
    metadata = record["metadata"]
    frame = metadata.get("frame")
    if server is None or not server.address or metadata.get("party") != "client" or not isinstance(frame, str):
        return None
    lines = [
        f"curl -sS {quote(server.address)}",
        "-H 'Content-Type: application/json'",
        "-H 'Accept: application/json, text/event-stream'",
    ]
    lines += [f"-H {quote(f'{name}: {value}')}" for name, value in protocol_headers(metadata, _value(frame))]
    notes = []
    if metadata.get("session"):
        lines.append('-H "Mcp-Session-Id: $MCP_SESSION"')
        notes.append("set MCP_SESSION to the id of a session: it is never recorded")
    if metadata.get("redacted") is True:
        notes.append("secrets in the message are masked; replace them first")
    return " \\\n  ".join([*lines, f"--data-raw {quote(frame)}"]), notes


def protocol_headers(metadata: dict[str, Any], message: Any) -> Iterator[tuple[str, str]]:
    """Yield the headers that the protocol asks for with a client's message, as far as its revision is known."""
    revision = metadata.get("revision")
    if not isinstance(revision, str) or not is_known(revision):
        return
    if handshake(revision) or not isinstance(message, dict):
        yield "MCP-Protocol-Version", revision
        return
    for name, value in stateless_headers(message):
        yield name.decode("latin-1"), value.decode("latin-1")

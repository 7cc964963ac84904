"""One message for a page: as it came, as it was delivered, and what is wrong with it. No I/O."""

from collections.abc import Iterator
from shlex import quote
from typing import Any, Final

import msgspec
import orjson

from assay.console.contracts import LISTS, is_about
from assay.console.findings import rule_text
from assay.console.rows import HOW_TO_RECORD, member_of, parsed
from assay.console.servers import ServerFacts
from assay.console.state import ConsoleState
from assay.judge import render
from assay.judge.headers import stateless_headers
from assay.model.verdict import Party
from assay.records.outcomes import recorded_outcome
from assay.records.record import Finding, Metadata, Record, violation_of
from assay.rules import RULES
from assay.rules.sentences import sentence
from assay.schema.pointers import NOWHERE, from_fragment, looked_up, step_into, steps
from assay.spec.revisions import handshake, is_known

NO_PAYLOAD: Final = f"the message is not recorded; {HOW_TO_RECORD}"
_TOO_LARGE: Final = "the message is too large to record"

_PAYLOAD: Final = ("frame", "frameBase64")
_ERROR: Final = ("code", "jsonrpcCode", "httpStatus", "message")

_SCHEMAS: Final = {"contract/input": "inputSchema", "contract/output": "outputSchema"}
"""The schema that a rule is about."""

_LARGEST_BRANCH: Final = 64 << 10
"""Maximal bytes of a branch of a schema that is shown."""


def message_answer(state: ConsoleState, seq: int) -> dict[str, Any] | None:
    """Return the message of a row; None if its record was dropped."""
    record, row = state.store.record(seq), state.store.row(seq)
    if record is None or row is None:
        return None
    metadata, error = record.metadata, record.error
    sent = _sent(metadata)
    related = state.store.related(seq)
    http = _http(record, _exchange(state, seq, related))
    shown: dict[str, Any] = msgspec.to_builtins(record)
    for name in _PAYLOAD:
        shown["metadata"].pop(name, None)
    told = {name: shown["error"].get(name) for name in _ERROR} if error is not None else {}
    return {
        "seq": seq,
        "row": row,
        "server": row[2],
        "requestId": record.request_id,
        "traceId": record.trace_id,
        "sent": sent,
        "delivered": _delivered(record, sent),
        "violations": [_violation(state, record, each, row[2]) for each in record.findings],
        "more": record.more,
        "error": told if any(value is not None for value in told.values()) else None,
        "quarantined": msgspec.to_builtins(record.quarantined),
        "removed": bool(record.quarantined) and not record.is_audited,
        "repairs": metadata.repairs,
        "http": http,
        "redacted": metadata.redacted,
        "notes": list(_notes(record, http)),
        "related": related,
        "record": shown,
    }


def _sent(metadata: Metadata) -> dict[str, Any]:
    if metadata.frame is not None:
        return {"text": metadata.frame, "why": ""}
    if metadata.frame_base64 is not None:
        return {"text": None, "base64": metadata.frame_base64, "why": "the message is not UTF-8"}
    return {"text": None, "why": metadata.lacks or (_TOO_LARGE if metadata.omitted else NO_PAYLOAD)}


def _delivered(record: Record, sent: dict[str, Any]) -> dict[str, Any]:
    if recorded_outcome(record).shown == "blocked":
        return _replaced(record)
    if record.metadata.repairs or (record.quarantined and not record.is_audited):
        return _changed(record, sent)
    # A recording does not say what was delivered.
    return {"text": None, "why": "", "state": "judged" if record.transport == "recording" else "same"}


def _replaced(record: Record) -> dict[str, Any]:
    """Return the error that was sent in place of a blocked message, as far as it is known."""
    metadata = record.metadata
    if not (metadata.party is Party.SERVER and record.is_answer):
        why = "the message was blocked; its sender got an error" if record.output_bytes else "the message was blocked"
        return {"text": None, "why": why, "state": "not"}
    if not all(each.rule in RULES for each in record.findings):
        # A later version may have more rules.
        return {"text": None, "why": "the guard sent an error in its place", "state": "replaced"}
    ident, found = orjson.dumps(metadata.id), tuple(map(violation_of, record.findings))
    revision = metadata.revision if is_known(metadata.revision) else None
    if metadata.tool is not None and revision is not None:
        frame = render.withheld(ident, metadata.tool, found, record.more, revision)
    else:
        frame = render.failure(ident, "UPSTREAM_INVALID", found, record.more, revision)
    return {"text": frame.decode(), "why": "", "state": "replaced"}


def _changed(record: Record, sent: dict[str, Any]) -> dict[str, Any]:
    value = parsed(sent["text"])
    if value is None:
        return {"text": None, "why": sent["why"] or "the message is not JSON", "state": "changed"}
    for each in record.metadata.repairs:
        _apply(value, each)
    _remove_quarantined(value, record)
    try:
        text = orjson.dumps(value).decode()
    except TypeError:
        return {"text": None, "why": "the message is nested too deeply", "state": "changed"}
    return {"text": text, "why": "", "state": "changed"}


def _apply(value: Any, repair: dict[str, Any]) -> None:
    """Make one recorded change; one without a value is left as it was."""
    path, removes = repair.get("path"), repair.get("op") == "remove"
    if not isinstance(path, str) or not path.startswith("/") or not (removes or "value" in repair):
        return
    above, _, _ = path.rpartition("/")
    holder, last = looked_up(value, above), steps(path)[-1]
    is_there = step_into(holder, last) is not NOWHERE
    place: Any = int(last) if isinstance(holder, list) and is_there else last
    if removes and is_there:
        del holder[place]
    elif not removes and (is_there or isinstance(holder, dict)):
        holder[place] = repair["value"]


def _remove_quarantined(value: Any, record: Record) -> None:
    """Remove the quarantined entries of a list."""
    member, key = LISTS.get(record.method or "", ("", ""))
    listed = member_of(value, "result", member)
    if not isinstance(listed, list) or record.is_audited:
        return
    names = {each.name for each in record.quarantined}
    found = [each for each in record.findings if each.entry is not None and each.done == "quarantine"]
    value["result"][member] = [
        entry
        for number, entry in enumerate(listed)
        if member_of(entry, key) not in names and not any(is_about(each, number, "") for each in found)
    ]


# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _violation(state: ConsoleState, record: Record, finding: Finding, server: int) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(finding),
        "says": sentence(finding),
        "action": finding.done,
        "stops": finding.stops,
        "about": rule_text(finding.rule),
        "schema": _branch(state, record, finding, server),
    }


def _branch(state: ConsoleState, record: Record, finding: Finding, server: int) -> Any:
    """Return the part of the tool's schema that a finding names; None if the list of tools is unknown."""
    member, at, tool = _SCHEMAS.get(finding.rule), finding.schema_at or "", record.metadata.tool
    facts = state.server(server)
    definition = facts.lists.tool(tool) if facts is not None and tool is not None else None
    pointer = from_fragment(at[1:]) if at.startswith("#") else None
    if member is None or definition is None or pointer is None:
        return None
    # The place ends with a keyword: the schema that has it says more.
    found = looked_up(definition.get(member), pointer.rpartition("/")[0])
    return found if isinstance(found, dict | bool) and len(orjson.dumps(found)) <= _LARGEST_BRANCH else None


def _http(record: Record, related: list[Record]) -> dict[str, Any] | None:
    """Return the HTTP exchange of a message: the request has method and headers, its answer the status."""
    if record.transport != "http":
        return None
    parts = [each.metadata.http or {} for each in (record, *related)]
    asked: dict[str, Any] = next((each for each in parts if "headers" in each), {})
    status = next((each["status"] for each in parts if isinstance(each.get("status"), int)), None)
    sent = record.error.http_status if record.error is not None else None
    method, headers = asked.get("method"), asked.get("headers")
    return {
        "route": record.route,
        "method": method if isinstance(method, str) else None,
        "headers": headers if isinstance(headers, dict) else None,
        "status": status if status is not None else sent,
    }


def _exchange(state: ConsoleState, seq: int, related: list[int]) -> list[Record]:
    """Return the other records of the exchange that may have parts of its HTTP request: the first and the last."""
    others = dict.fromkeys(each for each in (*related[:1], *related[-1:]) if each != seq)
    found = [state.store.record(each) for each in others]
    return [each for each in found if each is not None]


def _notes(record: Record, http: dict[str, Any] | None) -> Iterator[str]:
    metadata = record.metadata
    if metadata.redacted:
        yield "secrets were masked in the guard, before the message was recorded"
    hidden = sum("value" not in each and each.get("op") != "remove" for each in metadata.repairs)
    if hidden:
        yield f"{hidden} changed value{'' if hidden == 1 else 's'} of the payload: a repair is recorded without values"
    if metadata.lacks:
        yield f"the verdict is the one that the guard recorded: {metadata.lacks}"
    if metadata.repeated:
        yield f"the record stands for {metadata.repeated:,} messages; it has the last of them"
    if http is not None and http["headers"] is None:
        yield "the headers of the HTTP request are not recorded"


# ── curl ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def curl(record: Record, server: ServerFacts | None) -> tuple[str, list[str]] | None:
    """Return a command that sends a client's message again, and notes; None if its guard does not serve HTTP."""
    metadata, frame = record.metadata, record.metadata.frame
    if server is None or not server.run.address or metadata.party is not Party.CLIENT or frame is None:
        return None
    lines = [
        f"curl -sS {quote(server.run.address)}",
        "-H 'Content-Type: application/json'",
        "-H 'Accept: application/json, text/event-stream'",
    ]
    lines += [f"-H {quote(f'{name}: {value}')}" for name, value in protocol_headers(metadata.revision, parsed(frame))]
    notes = []
    if metadata.session:
        lines.append('-H "Mcp-Session-Id: $MCP_SESSION"')
        notes.append("set MCP_SESSION to the id of a session: it is never recorded")
    if metadata.redacted:
        notes.append("secrets in the message are masked; replace them first")
    return " \\\n  ".join([*lines, f"--data-raw {quote(frame)}"]), notes


def protocol_headers(revision: str | None, message: Any) -> Iterator[tuple[str, str]]:
    """Yield the headers that the protocol asks for with a client's message, as far as its revision is known."""
    if revision is None or not is_known(revision):
        return
    if handshake(revision) or not isinstance(message, dict):
        yield "MCP-Protocol-Version", revision
        return
    for name, value in stateless_headers(message):
        yield name.decode("latin-1"), value.decode("latin-1")

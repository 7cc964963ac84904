"""Exports of MCP Inspector 2: the tab Protocol, with messages, and the tab Network, with HTTP requests."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from assay.judge import syntax
from assay.model.verdict import Party
from assay.records.importers.conversations import opened, row
from assay.records.importers.har import HttpRows
from assay.records.importers.importer import Head, ImportOptions, seconds, seconds_after
from assay.records.importers.json_documents import Entry, Times, entries_of, in_order
from assay.records.rows import TranscriptRow

_MASK: Final = re.compile(r"\[REDACTED\]")

_RING: Final = 1000
"""Messages that the Inspector keeps; older ones are dropped."""

_NUMBER: Final = 1
"""The Inspector clears its list when it connects, so an export has one conversation."""

_PROTOCOL: Final = re.compile(rb'"(?:origin|direction|message)"\s*:')
_NETWORK: Final = re.compile(rb'"(?:requestHeaders|responseStatus|requestBody)"\s*:')


def is_protocol(head: Head) -> bool:
    """Return whether the file is a list of objects with messages."""
    return _is_list(head) and len(set(_PROTOCOL.findall(head.text))) > 1 and _NETWORK.search(head.text) is None


def is_network(head: Head) -> bool:
    """Return whether the file is a list of objects with HTTP requests."""
    return _is_list(head) and _NETWORK.search(head.text) is not None


def _is_list(head: Head) -> bool:
    return head.text.startswith(b"[") and head.text[1:100].lstrip().startswith(b"{")


def read_protocol(pieces: Iterable[bytes], _: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages in the order of their times. The answer is in the entry of its request."""
    count = 0

    def asked() -> Iterator[tuple[Times, tuple[TranscriptRow | None, ...]]]:
        nonlocal count
        for entry in entries_of(pieces, "MCP Inspector", is_rescued=True):
            count += 1
            yield _rows_of(entry)

    yield opened(1, _NUMBER, "")
    has_gap = False
    for each, is_end in in_order(asked()):
        if count >= _RING and not has_gap:
            has_gap = True
            yield TranscriptRow(1, {"event": "gap", "conversation": _NUMBER})
        found = each[is_end]
        if found is not None:
            yield found


def _rows_of(entry: Entry) -> tuple[Times, tuple[TranscriptRow | None, ...]]:
    """Return the rows of a message and of its answer, and their times."""
    line, value = entry
    begin = seconds(value.get("timestamp"))
    end = seconds_after(begin, value.get("duration"))
    end = begin if end is None else end
    origin = value.get("origin")
    # An export without `origin` has only requests of the client.
    is_client = origin == "client" or (origin != "server" and value.get("direction") == "request")
    party = Party.CLIENT if is_client else Party.SERVER
    message, answer = _frame(value.get("message")), _frame(value.get("response"))
    rows = (
        row(line, _NUMBER, party, message, time=begin) if "message" in value else None,
        row(line, _NUMBER, party.other, answer, time=end) if value.get("response") is not None else None,
    )
    return Times(begin, end, len(message) + len(answer)), rows


def _frame(message: Any) -> bytes:
    """Return the message of an entry; one that is not JSON is there as text."""
    if isinstance(message, str):
        return message.encode(errors="replace")
    # A copy: what orjson returns takes 4 KiB, however short it is, and many messages are held.
    return message if isinstance(message, bytes) else bytes(memoryview(syntax.write(message)))


def read_network(pieces: Iterable[bytes], options: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of all requests that have one."""
    entries = entries_of(pieces, "MCP Inspector")
    found = (_as_har(each) for each in entries if each.value.get("category") != "auth")
    return HttpRows(options.remark, _MASK).rows(found)


def _as_har(entry: Entry) -> Entry:
    """Return an entry of the tab Network as that of a HAR."""
    value = entry.value
    request = {
        "method": value.get("method"),
        "url": str(value.get("url")),
        "headers": _headers(value.get("requestHeaders")),
        "postData": {"text": value.get("requestBody")},
    }
    response = {
        "status": value.get("responseStatus"),
        "headers": _headers(value.get("responseHeaders")),
        "content": {"text": value.get("responseBody")},
    }
    times = {"startedDateTime": value.get("timestamp"), "time": value.get("duration")}
    return Entry(entry.line, {"request": request, "response": response, **times})


def _headers(found: Any) -> list[dict[str, Any]]:
    return [{"name": name, "value": each} for name, each in found.items()] if isinstance(found, dict) else []

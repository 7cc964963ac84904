"""Exports of MCP Inspector 2: the tab Protocol, with messages, and the tab Network, with HTTP requests."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple

from assay.base.verdict import Party
from assay.ladder import syntax
from assay.records.importers.http_bodies import HttpExchange, body_of
from assay.records.importers.http_exchanges import Exchanges
from assay.records.importers.http_facts import Headers, headers_of
from assay.records.importers.importer import ImportOptions, seconds
from assay.records.importers.json_documents import Placed, placed_entries
from assay.records.importers.json_members import readable_members
from assay.records.importers.talks import opened, row
from assay.records.importers.time_sorting import in_order, with_times
from assay.records.rows import TranscriptRow

_MASK: Final = re.compile(r"\[REDACTED\]")
_PARTIES: Final = {"client": Party.CLIENT, "server": Party.SERVER}

_RING: Final = 1000
"""Messages that the Inspector keeps; older ones are dropped."""

_NUMBER: Final = 1
"""The Inspector clears its list when it connects, so an export has one conversation."""

_PROTOCOL: Final = re.compile(rb'"(?:origin|direction|message)"\s*:')
_NETWORK: Final = re.compile(rb'"(?:requestHeaders|responseStatus|requestBody)"\s*:')


def detect_protocol(head: bytes, _: str) -> bool:
    """Return whether the file is a list of objects with messages."""
    return _is_list(head) and len(set(_PROTOCOL.findall(head))) > 1 and _NETWORK.search(head) is None


def detect_network(head: bytes, _: str) -> bool:
    """Return whether the file is a list of objects with HTTP requests."""
    return _is_list(head) and _NETWORK.search(head) is not None


def _is_list(head: bytes) -> bool:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith(b"[") and text[1:].lstrip().startswith(b"{")


class _Moment(NamedTuple):
    """A message and its place in time."""

    place: float
    line: int
    party: Party
    frame: bytes
    time: float | None
    """Its time in seconds; None if the file does not have it."""


class _Export:
    """The messages of an export, in the order of the file."""

    def __init__(self, entries: Iterable[Placed]) -> None:
        self._entries = entries
        self.count = 0
        """The number of entries so far."""

    def moments(self) -> Iterator[_Moment]:
        """Yield each message. The answer is in the entry of its request."""
        for place, placed in with_times(self._counted(), _begin, _end, _size):
            line, entry, begin, end = *placed, _begin(placed), _end(placed)
            party = _PARTIES.get(str(entry.get("origin"))) or _by_direction(entry)
            # The sort keeps the order of the file, which is that of the requests.
            if "message" in entry:
                yield _Moment(place, line, party, _frame(entry["message"]), begin)
            if entry.get("response") is not None:
                yield _Moment(place if end is None else end, line, party.other, _frame(entry["response"]), end)

    def _counted(self) -> Iterator[Placed]:
        for entry in self._entries:
            self.count += 1
            yield entry


def _begin(entry: Placed) -> float | None:
    return seconds(entry.value.get("timestamp"))


def _end(entry: Placed) -> float | None:
    """Return the time of the answer."""
    begin = _begin(entry)
    return None if begin is None else begin + (_milliseconds(entry.value.get("duration")) or 0.0)


def _size(entry: Placed) -> int:
    """Return roughly the bytes of an entry without a time."""
    return len(_frame(entry.value.get("message"))) + len(_frame(entry.value.get("response")))


def _frame(message: Any) -> bytes:
    """Return the message of an entry; one that is not JSON is there as text."""
    if isinstance(message, str):
        return message.encode(errors="replace")
    return message if isinstance(message, bytes) else syntax.write(message)


def read_protocol(pieces: Iterable[bytes], _: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages in the order of their times."""
    export = _Export(placed_entries(pieces, "MCP Inspector", rescue=readable_members))
    ordered = in_order(export.moments(), lambda each: each.place, lambda each: len(each.frame))
    is_told = False
    first = next(ordered, None)
    yield opened(1, _NUMBER, "")
    for each in chain([first] if first is not None else [], ordered):
        if export.count >= _RING and not is_told:
            is_told = True
            yield TranscriptRow(1, {"event": "gap", "conversation": _NUMBER})
        yield row(each.line, _NUMBER, each.party, each.frame, time=each.time)


def _by_direction(entry: Mapping[str, Any]) -> Party:
    """Return the sender in an export without `origin`, where requests are the client's."""
    return Party.CLIENT if entry.get("direction") == "request" else Party.SERVER


def read_network(pieces: Iterable[bytes], options: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of all requests that have one."""
    entries = placed_entries(pieces, "MCP Inspector")
    found = (_exchange(each) for each in entries if each.value.get("category") != "auth")
    return Exchanges(found, options.remark, mask=_MASK).rows()


def _exchange(entry: Placed) -> HttpExchange:
    value = entry.value
    begin, length = seconds(value.get("timestamp")), _milliseconds(value.get("duration"))
    status = value.get("responseStatus")
    return HttpExchange(
        entry.line,
        str(value.get("method")).upper(),
        str(value.get("url")),
        _headers(value.get("requestHeaders")),
        body_of(value.get("requestBody")) or b"",
        status if isinstance(status, int) else 0,
        _headers(value.get("responseHeaders")),
        body_of(value.get("responseBody")),
        begin,
        begin + length if begin is not None and length is not None else None,
    )


def _headers(found: Any) -> Headers:
    return headers_of((name, str(value)) for name, value in found.items()) if isinstance(found, dict) else {}


def _milliseconds(value: Any) -> float | None:
    """Return a duration in seconds."""
    return value / 1000 if isinstance(value, int | float) and value >= 0 else None

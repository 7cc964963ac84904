"""Plain messages, one a line: both sides mixed, or the output of one side as `tee` writes it."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from assay.base.verdict import Party
from assay.records.importers.importer import ImportOptions, first_object, loosely, numbered
from assay.records.importers.talks import Talks, shape_of_value
from assay.records.rows import TranscriptRow
from assay.spec.methods import methods
from assay.spec.revisions import REVISIONS

_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER

_VALUES: Final = frozenset({"id", "method", "result", "error"})

ONE_SIDED: Final = "the messages of the other party, and everything that depends on them"
"""What a file with the messages of one party cannot show."""


def detect(head: bytes, _: str) -> bool:
    """Return whether the first JSON object is a message itself."""
    first = first_object(head)
    return "jsonrpc" in first and not _VALUES.isdisjoint(first)


def read(lines: Iterable[bytes], options: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield a row for each line: what is not JSON is stray output of the server."""
    talks = Talks()
    for number, line, _ in numbered(lines):
        party = options.party or sender(loosely(line), talks)
        yield from with_gap(talks.rows(number, party, line), options)


def with_gap(rows: Iterable[TranscriptRow], options: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield *rows*; in a one-sided file with a gap after the start of each conversation."""
    for row in rows:
        yield row
        if options.party is not None and row.members.get("event") == "open":
            yield TranscriptRow(row.line, {"event": "gap", "conversation": row.members["conversation"]})


def sender(message: Any, talks: Talks, *, server: str = "", key: str = "") -> Party:
    """Return the party that most likely sent *message*: by its method, or by the open requests."""
    where = {"server": server, "key": key}
    if isinstance(message, list) and message:
        message = message[0]
    if not isinstance(message, dict):
        return _SERVER
    shape = shape_of_value(message)
    if shape.kind == "answer":
        mine = talks.is_open(_SERVER, shape.id, **where) and not talks.is_open(_CLIENT, shape.id, **where)
        return _CLIENT if mine else _SERVER
    senders = method_senders().get(shape.method, frozenset())
    if len(senders) == 1:
        return next(iter(senders))
    if shape.kind == "request":
        return _asker(shape.id, talks, where)
    return _notifier(shape.method, message.get("params"), talks, where)


def _asker(ident: Any, talks: Talks, where: Mapping[str, str]) -> Party:
    """Return the party that asks with this id: the ids of a client differ and usually rise."""
    last = talks.last(_CLIENT, **where)
    falls = isinstance(last, int) and isinstance(ident, int) and ident <= last
    return _SERVER if falls or talks.is_open(_CLIENT, ident, **where) else _CLIENT


def _notifier(method: str, params: Any, talks: Talks, where: Mapping[str, str]) -> Party:
    """Return the party that sends a notification which both may send: clients cancel, servers report progress."""
    if method != "notifications/cancelled":
        return _SERVER
    ident = params.get("requestId") if isinstance(params, dict) else None
    theirs = talks.is_open(_SERVER, ident, **where) and not talks.is_open(_CLIENT, ident, **where)
    return _SERVER if theirs else _CLIENT


@cache
def method_senders() -> Mapping[str, frozenset[Party]]:
    """Return the parties that may send each method, in any revision."""
    found: dict[str, set[Party]] = {}
    for revision in REVISIONS:
        for name, method in methods(revision).items():
            found.setdefault(name, set()).update(map(Party, method.senders))
    return {name: frozenset(parties) for name, parties in found.items()}

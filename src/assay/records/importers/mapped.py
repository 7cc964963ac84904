"""Any other file with one JSON object a line that has a message in a member: ``--map`` names the members."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from assay.base.verdict import Party
from assay.engine.wording import shown
from assay.records.importers.importer import ImportOptions, loosely, numbered, seconds
from assay.records.importers.json_members import frame_in, members, readable_members
from assay.records.importers.plain_lines import sender, with_gap
from assay.records.importers.talks import Talks
from assay.records.rows import TranscriptError, TranscriptRow

FIELDS: Final = {
    "msg": "the member with the message",
    "dir": "the member with its direction",
    "c2s": "the value of the direction from the client to the server",
    "s2c": "the value of the direction from the server to the client",
    "ts": "the member with the time",
    "conversation": "the member that differs between conversations",
}
"""The names that ``--map`` takes."""

_GUESSES: Final = {
    Party.CLIENT: frozenset(
        {"c2s", "client", "client-to-server", "client_to_server", "clienttoserver", "client->server", "client->mcp"}
        | {"fromclient", "from-client", "from_client", "client -> server", "toserver", "to-server", "to_server"}
    ),
    Party.SERVER: frozenset(
        {"s2c", "server", "server-to-client", "server_to_client", "servertoclient", "server->client", "mcp->client"}
        | {"fromserver", "from-server", "from_server", "server -> client", "toclient", "to-client", "to_client"}
    ),
}
"""Values that mean a direction in every program; `in`, `out`, `sent` and `received` depend on the recorder."""


_NOT_JSON: Final = "the line is not JSON"


def detect(_: bytes, __: str) -> bool:
    """Return False: such a file is read only with ``--map``."""
    return False


def parsed(text: str) -> dict[str, str]:
    """Return the names in the value of ``--map``: ``dir=direction,msg=payload``. Raises `ValueError`."""
    found: dict[str, str] = {}
    for pair in text.split(","):
        name, is_given, value = pair.partition("=")
        if name not in FIELDS or not is_given or not value:
            raise ValueError(f"{pair}: expected NAME=VALUE, with one of the names {', '.join(FIELDS)}")
        found[name] = value
    if "msg" not in found:
        raise ValueError("expected msg=NAME, the member with the message")
    return found


def read(lines: Iterable[bytes], options: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of the lines that have one."""
    talks, fields = Talks(), options.fields
    for number, text, is_ended in numbered(lines):
        value = loosely(text)
        is_broken = value is None and text.startswith(b"{")
        if is_broken and not is_ended and number > 1:
            # The recorder was killed, or still writes.
            yield TranscriptRow(number, {})
            continue
        value = readable_members(text) if is_broken else value
        if not isinstance(value, dict):
            # A log of the program, not a record.
            continue
        frame = _at(text, fields.get("msg", "msg"))
        key = str(_found(value, fields.get("conversation", "")) or "")
        time = seconds(_found(value, fields.get("ts", "")))
        if frame is None and is_broken:
            yield from talks.rows(number, Party.SERVER, b"", key=key, lacks=_NOT_JSON, time=time)
        elif frame is not None and frame != b"null":
            party = options.party or _party(number, value, fields) or sender(loosely(frame), talks, key=key)
            yield from with_gap(talks.rows(number, party, frame, key=key, time=time), options)


def _party(number: int, value: Mapping[str, Any], fields: Mapping[str, str]) -> Party | None:
    """Return the sender by the direction; None without a member for it."""
    if "dir" not in fields:
        return None
    found = _found(value, fields["dir"])
    for name, party in (("c2s", Party.CLIENT), ("s2c", Party.SERVER)):
        if name in fields and str(found) == fields[name]:
            return party
    given = {"c2s", "s2c"} & fields.keys()
    if len(given) == 1:
        return Party.SERVER if "c2s" in given else Party.CLIENT
    for party, guesses in _GUESSES.items():
        if str(found).lower() in guesses:
            return party
    raise TranscriptError(f"line {number}: unknown direction {shown(found)}; say which one it is: --map c2s=VALUE")


def _found(value: Mapping[str, Any], path: str) -> Any:
    """Return the value at *path*, names of members with dots between; None without one."""
    name, _, rest = path.partition(".")
    found, inner = value.get(path), value.get(name)
    if found is None and rest:
        # In a line that is not JSON, a member may be text.
        inner = readable_members(inner) if isinstance(inner, bytes) else inner
        return _found(inner, rest) if isinstance(inner, dict) else None
    return found.decode(errors="replace") if isinstance(found, bytes) else found


def _at(text: bytes, path: str) -> bytes | None:
    """Return the message at *path* in the JSON object *text*, to the byte."""
    name, _, rest = path.partition(".")
    found = members(text)
    if path in found or not rest:
        return frame_in(text, path)
    inner = found.get(name, b"")
    return _at(inner, rest) if inner.startswith(b"{") else None

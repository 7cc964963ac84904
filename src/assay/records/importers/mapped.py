"""Any other file with one JSON object a line that has a message in a member: ``--map`` names the members."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from assay.base.verdict import Party
from assay.engine.wording import shown
from assay.records.importers.importer import ImportOptions, cut_off, loosely, records, seconds
from assay.records.importers.json_members import frame_in, members
from assay.records.importers.plain_lines import sender, with_gap
from assay.records.importers.talks import Talks
from assay.records.transcript import TranscriptError, TranscriptRow

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
    for line in records(lines, "a log with a message in a member"):
        if not line.value:
            yield cut_off(line)
            continue
        frame = _at(line.text, fields.get("msg", "msg"))
        if frame is None or frame == b"null":
            continue
        key = str(_found(line.value, fields.get("conversation", "")) or "")
        party = options.party or _party(line.number, line.value, fields) or sender(loosely(frame), talks, key=key)
        time = seconds(_found(line.value, fields.get("ts", "")))
        yield from with_gap(talks.rows(line.number, party, frame, key=key, time=time), options)


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
    if path in value:
        return value[path]
    name, _, rest = path.partition(".")
    inner = value.get(name)
    return _found(inner, rest) if rest and isinstance(inner, dict) else None


def _at(text: bytes, path: str) -> bytes | None:
    """Return the message at *path* in the JSON object *text*, to the byte."""
    name, _, rest = path.partition(".")
    found = members(text)
    if path in found or not rest:
        return frame_in(text, path)
    inner = found.get(name, b"")
    return _at(inner, rest) if inner.startswith(b"{") else None

"""The output of VS Code for an MCP server, at the level debug or trace."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from assay.base.verdict import Party
from assay.records.importers.claude_desktop import CUT
from assay.records.importers.importer import ImportOptions, ends_early, lines_of, numbered, seconds
from assay.records.importers.talks import Talks
from assay.records.rows import TranscriptRow

_PARTIES: Final = {
    b"editor -> server": Party.CLIENT,
    b"server -> editor": Party.SERVER,
    b"Client Says": Party.CLIENT,
    b"Server Says": Party.SERVER,
}

_TIME: Final = rb"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?) \[\w+\] "
_MESSAGE: Final = re.compile(
    _TIME + rb"\[(?P<sender>" + b"|".join(map(re.escape, _PARTIES)) + rb")\] (?P<text>.*)", re.DOTALL
)
_STRAY: Final = re.compile(_TIME + rb"Failed to parse message: (?P<text>.*)", re.DOTALL)


def detect(head: bytes, _: str) -> bool:
    """Return whether a line has a message."""
    return any(_MESSAGE.match(line) or _STRAY.match(line) for line in lines_of(head))


def read(lines: Iterable[bytes], _: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of the log, and the lines that the editor could not parse."""
    talks = Talks()
    for number, line, is_ended in numbered(lines):
        found = _MESSAGE.match(line) or _STRAY.match(line)
        if found is None:
            continue
        text, time = found["text"], seconds(found["time"].decode())
        if found.re is _STRAY:
            yield from talks.rows(number, Party.SERVER, _unquoted(text), time=time)
        else:
            lacks = CUT if not is_ended and ends_early(text) else ""
            yield from talks.rows(number, _PARTIES[found["sender"]], text, lacks=lacks, time=time)


def _unquoted(text: bytes) -> bytes:
    """Return a stray line, which is logged as a JSON string."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return found.encode() if isinstance(found, str) else text

"""The logs of Claude Desktop: ``mcp-server-NAME.log``, and ``mcp.log`` with all servers."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from assay.base.verdict import Party, Violation
from assay.ladder import syntax
from assay.records.importers.importer import ImportOptions, ends_early, lines_of, numbered, seconds
from assay.records.importers.talks import Shape, Talks, shape_of
from assay.records.rows import TranscriptRow

CUT: Final = "cut by the log"
SUMMARY: Final = "only a summary was logged"

_LINE: Final = re.compile(
    rb"(?P<time>\d{4}-\d\d-\d\dT\S+) "
    rb"(?:\[(?P<level>info|warn|error|debug)\] \[(?P<all>.*?)\]|\[(?P<one>.*?)\](?: \[(?:info|warn|error|debug)\])?) "
    rb"(?P<text>.*)",
    re.DOTALL,
)
"""A line of mcp.log, which has the level first, or of the log of one server, which has the name first."""

_MESSAGE: Final = re.compile(rb"Message from (client|server): (.*)", re.DOTALL)
_METADATA: Final = re.compile(rb" \{ metadata: [^{}]*\}$")
"""What the logger appends; older lines do not have it."""

_NOT_JSON: Final = re.compile(rb"(?:is not valid JSON|JSON at position \d+|JSON input)\b")
"""How the client reports a line of the server that it cannot parse."""

_EXCERPT: Final = re.compile(rb', (?:\.\.\.)?"(.*)"(?:\.\.\.)? is not valid JSON', re.DOTALL)

_ELISION: Final = re.compile(
    rb"(?:\.\.\.|\xe2\x80\xa6) ?[\[(<]? ?(?:truncated\b|\d[\d,]* (?:more )?(?:bytes|chars|characters)\b)"
    rb"|[\[(<](?:truncated\b|\d[\d,]* (?:more )?(?:bytes|chars|characters)\b)",
    re.IGNORECASE,
)
"""How a logger marks what it left out. With the mark inside a string, a message that was cut is still JSON."""

_ELLIPSIS: Final = re.compile(rb"\.\.\.|\xe2\x80\xa6")
"""How a logger marks what it left out, without a word: a text that is no JSON because of it was cut."""

_SUMMARY: Final = re.compile(rb'(?:method="|id=["\d]|(?:result|error)\()')
"""How a summary begins: ``method="tools/list" id=1 params``, ``id=0 result(1 blocks)``."""

_METHOD: Final = re.compile(rb'\bmethod="([^"]*)"')
_IDENT: Final = re.compile(rb'\bid=(?:"([^"]*)"|(\d{1,18})\b)')

_DEPTH: Final = 200

_PARTIES: Final = {b"client": Party.CLIENT, b"server": Party.SERVER}


class _Logged(NamedTuple):
    """One line of the log with a message, or with a part of one."""

    party: Party
    frame: bytes
    lacks: str = ""
    shape: Shape | None = None


def detect(head: bytes, _: str) -> bool:
    """Return whether a line has a message, or the start of a server."""
    found = filter(None, map(_LINE.match, lines_of(head)))
    return any(_is_ours(each["text"]) for each in found)


def _is_ours(text: bytes) -> bool:
    return _MESSAGE.match(text) is not None or text.startswith((b"Initializing server...", b"Server started and"))


def read(lines: Iterable[bytes], _: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of the log. Other lines are logs of the client, or stderr of a server."""
    talks = Talks()
    for number, line, __ in numbered(lines):
        found = _LINE.match(line)
        logged = _logged(found["text"]) if found is not None else None
        if found is None or logged is None:
            continue
        server = (found["all"] or found["one"] or b"").decode(errors="replace")
        time = seconds(found["time"].decode(errors="replace"))
        yield from talks.rows(
            number, logged.party, logged.frame, server=server, lacks=logged.lacks, shape=logged.shape, time=time
        )


def _logged(text: bytes) -> _Logged | None:
    """Return the message in the text of a line; None without one."""
    found = _MESSAGE.match(text)
    if found is not None:
        return _message(_PARTIES[found[1]], _METADATA.sub(b"", found[2]))
    return _Logged(Party.SERVER, _stray(text)) if _NOT_JSON.search(text) else None


def _message(party: Party, text: bytes) -> _Logged:
    """Return a message that is logged in full, cut, or summed up. Anything else is judged, JSON or not."""
    if _SUMMARY.match(text):
        return _Logged(party, text, SUMMARY, _summed_up(text))
    return _Logged(party, text, CUT, shape_of(text)) if _is_cut(text) else _Logged(party, text)


def _is_cut(text: bytes) -> bool:
    if not text.startswith((b"{", b"[")):
        return False
    if not isinstance(syntax.read(text, _DEPTH), Violation):
        return _ELISION.search(text) is not None
    return ends_early(text) or _ELLIPSIS.search(text) is not None


def _summed_up(text: bytes) -> Shape:
    """Return the shape of a message from its summary: ``method="tools/list" id=1 params``."""
    method, ident = _METHOD.search(text), _IDENT.search(text)
    known = None if ident is None else int(ident[2]) if ident[2] else ident[1].decode(errors="replace")
    if method is not None:
        return Shape("request" if known is not None else "notification", known, method[1].decode(errors="replace"))
    return Shape("answer", known) if known is not None else Shape()


def _stray(text: bytes) -> bytes:
    """Return the part of a line that the client could not parse, as far as the error has it."""
    error = _METADATA.sub(b"", text)
    found = _EXCERPT.search(error)
    unreadable = found is not None and isinstance(syntax.read(found[1], _DEPTH), Violation)
    return found[1] if found is not None and unreadable else error

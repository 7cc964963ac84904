"""The logs of clients: Claude Desktop, and the output of VS Code for an MCP server at the level debug or trace."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from assay.judge import syntax
from assay.model.verdict import Party, Violation
from assay.records.importers.conversations import Conversations, Shape
from assay.records.importers.importer import Head, ImportOptions, numbered, seconds
from assay.records.importers.json_documents import value_of
from assay.records.rows import TranscriptRow

_CUT: Final = "cut by the log"
_SUMMED_UP: Final = "only a summary was logged"

_DEPTH: Final = 200

# ── Claude Desktop ───────────────────────────────────────────────────────────────────────────────────────────────────

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


def is_claude(head: Head) -> bool:
    """Return whether a line is from `mcp-server-NAME.log`, or from `mcp.log` with all servers."""
    starts = (b"Message from client: ", b"Message from server: ", b"Initializing server...", b"Server started and")
    return any(found["text"].startswith(starts) for found in map(_LINE.match, head.lines) if found is not None)


def read_claude(lines: Iterable[bytes], _: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of the log. Other lines are logs of the client, or stderr of a server."""
    conversations = Conversations()
    for number, line, __ in numbered(lines):
        found = _LINE.match(line)
        if found is None:
            continue
        message, party, lacks, shape = _MESSAGE.match(found["text"]), Party.SERVER, "", None
        text = _METADATA.sub(b"", found["text"] if message is None else message[2])
        if message is not None:
            party = Party(message[1].decode())
            if _SUMMARY.match(text):
                lacks, shape = _SUMMED_UP, _summed_up(text)
            elif _is_cut(text):
                lacks = _CUT
        elif _NOT_JSON.search(found["text"]):
            text = _stray(text)
        else:
            continue
        server = (found["all"] or found["one"] or b"").decode(errors="replace")
        time = seconds(found["time"].decode(errors="replace"))
        yield from conversations.rows(number, party, text, server=server, lacks=lacks, shape=shape, time=time)


def _is_cut(text: bytes) -> bool:
    if not text.startswith((b"{", b"[")):
        return False
    if not isinstance(syntax.read(text, _DEPTH), Violation):
        return _ELISION.search(text) is not None
    return _ends_early(text) or _ELLIPSIS.search(text) is not None


def _ends_early(text: bytes) -> bool:
    """Return whether *text* is the beginning of JSON, cut off somewhere."""
    try:
        orjson.loads(text.decode(errors="replace"))
    except orjson.JSONDecodeError as error:
        return "unexpected end" in error.msg
    return False


def _summed_up(text: bytes) -> Shape:
    """Return the shape of a message from its summary: ``method="tools/list" id=1 params``."""
    method, ident = _METHOD.search(text), _IDENT.search(text)
    known = None if ident is None else int(ident[2]) if ident[2] else ident[1].decode(errors="replace")
    if method is not None:
        return Shape("request" if known is not None else "notification", known, method[1].decode(errors="replace"))
    return Shape("answer", known) if known is not None else Shape()


def _stray(error: bytes) -> bytes:
    """Return the part of a line that the client could not parse, as far as its *error* has it."""
    found = _EXCERPT.search(error)
    is_unreadable = found is not None and isinstance(syntax.read(found[1], _DEPTH), Violation)
    return found[1] if found is not None and is_unreadable else error


# ── VS Code ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_PARTIES: Final = {
    b"editor -> server": Party.CLIENT,
    b"server -> editor": Party.SERVER,
    b"Client Says": Party.CLIENT,
    b"Server Says": Party.SERVER,
}

_OUTPUT: Final = re.compile(
    rb"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?) \[\w+\] "
    rb"(?:\[(?P<sender>" + b"|".join(map(re.escape, _PARTIES)) + rb")\] |Failed to parse message: )(?P<text>.*)",
    re.DOTALL,
)
"""A line with a message, or with a line of the server that the editor could not parse."""


def is_vscode(head: Head) -> bool:
    """Return whether a line has a message."""
    return any(map(_OUTPUT.match, head.lines))


def read_vscode(lines: Iterable[bytes], _: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of the log, and the lines that the editor could not parse."""
    conversations = Conversations()
    for number, line, is_ended in numbered(lines):
        found = _OUTPUT.match(line)
        if found is None:
            continue
        text, time = found["text"], seconds(found["time"].decode())
        if found["sender"] is None:
            # It is logged as a JSON string.
            stray = value_of(text)
            frame = stray.encode(errors="replace") if isinstance(stray, str) else text
            yield from conversations.rows(number, Party.SERVER, frame, time=time)
        else:
            lacks = _CUT if not is_ended and _ends_early(text) else ""
            yield from conversations.rows(number, _PARTIES[found["sender"]], text, lacks=lacks, time=time)

"""
The table of all formats, and which of them a file has. No I/O.

The choices of ``--from``, the documentation and the tests come from the table.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from assay.records.importers import (
    claude_desktop,
    har,
    inspector,
    mapped,
    native,
    plain_lines,
    vscode_output,
)
from assay.records.importers.importer import SIZES, Detect, Importer, Read, first_object, forget
from assay.records.importers.not_recordings import NOT_RECORDINGS, RECORD
from assay.records.importers.source_formats import FORMATS
from assay.records.rows import TranscriptError

_READERS: Final[dict[str, tuple[Detect, Read]]] = {
    "assay": (native.detect, native.read),
    "messages": (plain_lines.detect, plain_lines.read),
    "inspector": (inspector.detect_protocol, inspector.read_protocol),
    "inspector-network": (inspector.detect_network, inspector.read_network),
    "claude-desktop": (claude_desktop.detect, claude_desktop.read),
    "vscode": (vscode_output.detect, vscode_output.read),
    "har": (har.detect, har.read),
    "map": (mapped.detect, mapped.read),
}

_EXACT: Final = frozenset({"assay", "messages", "har", "map"})
"""Formats that keep the bytes of a message. In the others its size is not that on the wire."""

_DOCUMENTS: Final = frozenset({"inspector", "inspector-network", "har"})

IMPORTERS: Final[tuple[Importer, ...]] = tuple(
    Importer(
        each,
        *_READERS[each.name],
        frozenset() if each.name in _EXACT else SIZES,
        is_document=each.name in _DOCUMENTS,
    )
    for each in FORMATS
)

BY_NAME: Final = {each.format.name: each for each in IMPORTERS}

NATIVE: Final = BY_NAME["assay"]
MAPPED: Final = BY_NAME["map"]

_LOOKED_AT: Final = 1 << 20
"""Bytes at the start of a file in which its format must show: a log may begin with other lines."""

_MOST_PIECES: Final = 1 << 16
"""Lines at the start of a file in which its format must show: each is looked at by every format, several times."""


def recognised(head: bytes, name: str) -> Importer | None:
    """Return the format of a file that begins with *head*; None if it is not known, or not yet."""
    try:
        return next((each for each in IMPORTERS if each.detect(head, name)), None)
    finally:
        forget()


def looked_at(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the growing start of a file after 1, 2, 4, 8 … of its *pieces*, so that a format is found early."""
    head: list[bytes] = []
    size, due = 0, 1
    for count, piece in enumerate(pieces, 1):
        head.append(piece)
        size += len(piece)
        is_enough = size > _LOOKED_AT or count >= _MOST_PIECES
        if count == due or is_enough:
            yield b"".join(head)
            due *= 2
        if is_enough:
            return
    yield b"".join(head)


def unknown(head: bytes, name: str) -> TranscriptError:
    """Return the error for a file that begins with *head* and has no known format: why, and what to do."""
    reason = next((each.reason for each in NOT_RECORDINGS if each.detect(head, name)), None)
    if reason is not None:
        return TranscriptError(reason)
    found = first_object(head)
    if not found:
        return TranscriptError(f"not a recording: no line is a JSON object, or of a known log; {RECORD}")
    names = ", ".join(each[:40] for each in list(found)[:8])
    return TranscriptError(
        f"not a known recording: a line has the members {names}; name those with the direction and the "
        "message (--map dir=NAME,msg=NAME), or the format (--from)"
    )

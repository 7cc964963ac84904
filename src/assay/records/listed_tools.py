"""
The tools that a server lists anywhere in the evidence, for a call before its conversation lists them. No I/O.

Clients call a tool that they know from another session, and list afterwards or never. A check has all of the evidence,
so such a call is judged by a list before or after it, of the same server.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from assay.records.importers.importer import loosely
from assay.records.rows import TranscriptError

MARK: Final = b"inputSchema"
"""A member that every tool of a list has, as it appears in a frame."""

MOST_BYTES: Final = 64 << 20
"""Bytes of all lists that are remembered; equal ones count once. The largest known list has 300 KB."""

Tool = Mapping[str, Any]


class ListPlace(NamedTuple):
    """The place of a message in the evidence."""

    path: str = ""
    conversation: object = None
    line: int = 0


class ListedTools:
    """The lists of tools in all files. They are read when the first one is needed."""

    def __init__(self, path: str, read: Callable[[], Iterable[tuple[str, ListPlace, bytes]]]) -> None:
        """*read* yields the server, the place and the frame of each list; *path* is the file that is judged."""
        self.here = ListPlace(path)
        """The place of the message that is judged."""
        self._read = read
        self._servers: dict[str, dict[str, list[tuple[ListPlace, Tool]]]] | None = None
        """For each server, the definitions of each tool in the order of the evidence."""
        self._finders: dict[str, Callable[[str], Tool | None]] = {}

    def finder(self, server: str) -> Callable[[str], Tool | None]:
        """Return what finds the definition of a tool of *server* by its name; the same object for the same server."""
        return self._finders.setdefault(server, partial(self._find, server))

    def _find(self, server: str, name: str) -> Tool | None:
        if self._servers is None:
            self._servers = _collected(self._read())
        # A server without a name is that of its file.
        found = self._servers.get(server or self.here.path, {}).get(name, ())
        return min(found, key=lambda each: self._distance(each[0]))[1] if found else None

    def _distance(self, place: ListPlace) -> tuple[int, int]:
        """
        Return how far a list is from the message that is judged, by kind and lines.

        The next list of the conversation itself is the nearest: the client asked that very server. Then comes the last
        one before the message, as a server may have changed since the first.
        """
        if place.path != self.here.path:
            return 3, 0
        lines = place.line - self.here.line
        if lines < 0:
            return 1, -lines
        return 0 if place.conversation == self.here.conversation else 2, lines


def _collected(
    lists: Iterable[tuple[str, ListPlace, bytes]],
) -> dict[str, dict[str, list[tuple[ListPlace, Tool]]]]:
    servers: dict[str, dict[str, list[tuple[ListPlace, Tool]]]] = {}
    parsed: dict[bytes, list[Tool]] = {}
    size = 0
    try:
        for server, place, frame in lists:
            if frame not in parsed:
                size += len(frame)
                if size > MOST_BYTES:
                    break
                parsed[frame] = _tools_in(frame)
            of_server = servers.setdefault(server or place.path, {})
            for tool in parsed[frame]:
                of_server.setdefault(tool["name"], []).append((place, tool))
    except (OSError, TranscriptError):
        # The file is reported where it is judged. What was found in it counts.
        pass
    return servers


def _tools_in(frame: bytes) -> list[Tool]:
    """Return the tools of a list; empty for any other message."""
    value = loosely(frame)
    found: list[Tool] = []
    for each in value if isinstance(value, list) else [value]:
        result = each.get("result") if isinstance(each, dict) else None
        tools = result.get("tools") if isinstance(result, dict) else None
        found += filter(_is_tool, tools) if isinstance(tools, list) else ()
    return found


def _is_tool(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str) and "inputSchema" in tool

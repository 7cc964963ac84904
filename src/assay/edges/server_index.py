"""
``/`` of a guard over HTTP: the servers and their states.

A browser gets a page, a program that accepts JSON gets JSON, any other client text. It contains no secrets.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

import orjson

from assay.edges.http.access import Door
from assay.edges.http.replies import Receive, Route, Send, reads, reply, shared, text
from assay.edges.http.request_headers import headers_of
from assay.model.printable import plain

Row = Mapping[str, str]
"""The row of a server: name, path, server, state, reason."""

_PAGE: Final = """\
<!doctype html>
<meta charset="utf-8">
<title>assay guard</title>
<style>:root{{color-scheme:light dark}}body{{font:1rem/1.5 system-ui,sans-serif;margin:2rem}}\
td,th{{text-align:left;padding:.2rem 1.5rem .2rem 0}}</style>
<h1>assay guard</h1>
<p>MCP clients connect to the paths below.</p>
<table>
<tr><th>server<th>state<th>path<th>reason
{}</table>
"""

_HTML: Final = b"text/html; charset=utf-8"


class Standing(NamedTuple):
    """The state of a server."""

    running: bool
    trouble: str

    @property
    def state(self) -> str:
        """``running``, ``failed`` or ``idle``."""
        return "running" if self.running else "failed" if self.trouble else "idle"


def standing(backend: Any) -> Standing:
    """Return the state of the server of *backend*; running if it is unknown."""
    return Standing(bool(getattr(backend, "running", True)), str(getattr(backend, "trouble", "")))


def row(path: str, name: str, backend: Any, command: Sequence[str] = (), url: str = "") -> Row:
    """Return the row of one server at *path*. It has only the program of a command, or the host of a URL."""
    found = standing(backend)
    server = urlsplit(url).hostname or "" if url else "".join(command[:1])
    why = "" if found.running else found.trouble
    return {"name": name, "path": quote(path), "server": server, "state": found.state, "why": why}


def index(rows: Callable[[], Sequence[Row]], door: Door) -> Route:
    """Return the route that lists the servers of *rows*, for requests that *door* admits."""

    async def listing(scope: dict[str, Any], _: Receive, send: Send) -> None:
        headers = headers_of(scope)
        there = ", ".join(each["path"] for each in rows()[:10])
        if not await reads(scope, send, remedy=f"; MCP is at {there}"):
            return
        if await door.admitted(headers, send) is None:
            return
        wanted = headers.get(b"accept", b"").lower()
        if b"application/json" in wanted:
            await reply(send, 200, orjson.dumps({"servers": rows()}), shared(headers))
        elif b"text/html" in wanted:
            await text(send, 200, _page(rows()).encode(errors="replace"), _HTML)
        else:
            await text(send, 200, "".join(map(_line, rows())).encode(errors="replace"))

    return listing


def _line(each: Row) -> str:
    cells = (f"{each['state']:<7}", each["path"], plain(each["why"]))
    return "  ".join(filter(None, cells)) + "\n"


def _page(rows: Sequence[Row]) -> str:
    cells = ((each["name"], each["state"], each["path"], each["why"]) for each in rows)
    return _PAGE.format("".join(f"<tr>{''.join(f'<td>{escape(plain(one))}' for one in each)}\n" for each in cells))

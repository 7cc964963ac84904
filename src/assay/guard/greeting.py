"""The first line of a guard on stderr: server, mode and journal."""

import os
from typing import Final

WAITING: Final = "assay: waiting for an MCP client on standard input; a client starts this command itself"
"""The line for a person who started the guard in a terminal, where nothing else happens."""


def hello(name: str, mode: str, journal: str | None, url: str = "") -> str:
    """
    Return the first line of a guard of the server *name*.

    *journal* is its file, if there is one; *url* is the address of the guard over HTTP. It is last in the line, so that
    a terminal links it correctly.
    """
    place = f"journal {os.path.dirname(os.path.abspath(journal))}" if journal is not None else "no journal"
    return f"assay: guarding {name} ({mode}), {place}{f', at {url}' if url else ''}"

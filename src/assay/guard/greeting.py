"""How a guard introduces itself on stderr: which server, which mode, and where its journal is."""

import os
from typing import Final

WAITING: Final = "assay: waiting for an MCP client on standard input; a client starts this command itself"
"""For a person who started the guard in a terminal, where nothing else would happen."""


def hello(name: str, mode: str, journal: str | None, url: str = "") -> str:
    """
    Return the first line of a guard of the server *name*.

    *journal* is the file that is written to, if there is one; *url* is where clients find the guard over HTTP. It is
    last in the line, so that a terminal makes a link of it and nothing else.
    """
    place = f"journal {os.path.dirname(os.path.abspath(journal))}" if journal is not None else "no journal"
    return f"assay: guarding {name} ({mode}), {place}{f', at {url}' if url else ''}"

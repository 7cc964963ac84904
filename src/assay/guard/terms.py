"""How strictly a server is guarded, whichever way it and its clients are reached, and the line that says so."""

import os
from typing import Final, Literal, NamedTuple

from assay.base.limits import Limits
from assay.core.policy import Policy

Mode = Literal["audit", "enforce"]


class Terms(NamedTuple):
    """The same for every server of one guard."""

    mode: Mode
    limits: Limits
    timeout: float
    """Seconds that a server has for an answer; 0 for ever."""
    policy: Policy | None = None
    """What is done about which rule, where that is not what the table of rules says."""

    @property
    def enforcing(self) -> bool:
        """Whether what is refused stops."""
        return self.mode == "enforce"


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

"""
A server behind the guard, as the HTTP front sees it: what it is handed, and what it must do with it. No code.

The front reads requests, sees who may come in, and counts them; what becomes of a message is the backend's.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from assay.edges.http.replies import Pairs, Receive, Send


class Request(NamedTuple):
    """One HTTP request that was let in, with its whole body."""

    method: str
    """POST, GET or DELETE."""
    headers: Mapping[bytes, bytes]
    """By name in lower case; those of one name are joined by commas."""
    pairs: Pairs
    """The same, as they came."""
    query: bytes
    frame: bytes
    """The body; of one that is too long, the first bytes, one more than the limit."""
    principal: str
    """Who asks, by the guard's own keys and tokens; "anonymous" where it has none."""


class Backend(Protocol):
    """One server behind the guard."""

    async def answer(self, request: Request, receive: Receive, send: Send) -> None:
        """
        Answers *request*, whole or as a stream; *receive* tells when the client goes.

        Raises for nothing that either side has said.
        """

    def stop(self) -> None:
        """From now on nothing new is begun; streams end, after what is still to be said on them."""

    async def close(self) -> None:
        """Ends everything that it has running. It has been told to stop, and what was in hand has had its time."""

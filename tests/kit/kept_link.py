"""The way from a session over HTTP to its server, which keeps what is sent."""

import json
from typing import Any

from assay.edges.response_stream import ResponseStream


class KeptLink:
    """What leads to a server: there is always room, and no client is slow."""

    def __init__(self) -> None:
        self.said: list[bytes] = []

    def has_room(self, _: int) -> bool:
        """Return that there is."""
        return True

    def send(self, frame: bytes, _: Any = None) -> None:
        """Keep one message."""
        self.said.append(frame)

    def leave(self) -> None:
        """The session is over."""

    def slow(self, _: ResponseStream) -> None:
        """A client is slow."""

    @property
    def refused(self) -> list[Any]:
        """The ids of the errors that the server got."""
        return [each["id"] for each in map(json.loads, self.said) if "error" in each]

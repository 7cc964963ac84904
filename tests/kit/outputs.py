"""Outputs of commands: a stream that says it is a terminal, and a descriptor that is read until something comes."""

import io
import os
import select

SECONDS = 60


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        """It is one, for those who ask."""
        return True


def read_until(descriptor: int, wanted: bytes) -> bytes:
    """Return what comes up to *wanted*, and with it."""
    seen = b""
    while wanted not in seen:
        assert select.select([descriptor], [], [], SECONDS)[0], seen
        chunk = os.read(descriptor, 1 << 16)
        assert chunk, seen
        seen += chunk
    return seen

"""The dialect of a client's file, by its path. No I/O."""

import re
from typing import Final

from assay.cli.clients.codex import Toml
from assay.cli.clients.dialect import JSON, ConfigError, Dialect, NoServersError, ServerEntry

__all__ = [
    "CODEX",
    "GEMINI",
    "JSON",
    "WINDSURF",
    "ConfigError",
    "Dialect",
    "NoServersError",
    "ServerEntry",
    "dialect_of",
]

WINDSURF: Final = Dialect(url="serverUrl")
GEMINI: Final = Dialect(url="httpUrl", sse="url", has_type=False)
"""Its `httpUrl` is streamable HTTP, its `url` HTTP+SSE; a `type` is `http` or `sse`, and in older versions unknown."""
CODEX: Final = Toml()


def dialect_of(name: str) -> Dialect:
    """Return the dialect of the file called *name*, by its path."""
    *folders, file = re.split(r"[\\/]", name)
    if file.lower().endswith(".toml"):
        return CODEX
    if folders[-1:] == [".gemini"]:
        return GEMINI
    return WINDSURF if folders[-1:] == ["windsurf"] else JSON

"""Which trace a message is part of. No I/O."""

from collections.abc import Mapping
from typing import Any


def traceparent_of(value: Any, headers: Mapping[bytes, bytes] | None = None) -> str | None:
    """Return the trace that a message names: MCP has it in `_meta`, HTTP in a header."""
    params = value.get("params") if type(value) is dict else None
    meta = params.get("_meta") if type(params) is dict else None
    given = meta.get("traceparent") if type(meta) is dict else None
    if isinstance(given, str):
        return given
    header = headers.get(b"traceparent") if headers is not None else None
    return header.decode("latin-1") if header is not None else None

"""Titles for messages without a name. No I/O."""

from collections.abc import Container

_NAMELESS = {"blank": "(blank line)", "batch": "a batch"}


def nameless(kind: str, rules: Container[str]) -> str | None:
    """Return the title of a message without a name that breaks these *rules*; None for a kind that has a name."""
    if kind == "unreadable":
        # Bytes that are not UTF-8, a line that is too long, or JSON that is not JSON-RPC may look like a message.
        return "(not JSON)" if "syntax/json" in rules else "(not a message)"
    return _NAMELESS.get(kind)

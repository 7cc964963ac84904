"""Values of messages as the state keeps them, whatever a peer sent in their place. No state."""

from typing import Any, Final

from assay.core.party_state import Id

_NOTHING: Final[dict[str, Any]] = {}


def object_of(value: Any) -> dict[str, Any]:
    """Return *value* if it is an object, otherwise an empty one: its fault is reported elsewhere."""
    return value if isinstance(value, dict) else _NOTHING


def ident_of(value: Any) -> Id | None:
    """Return an id or a token as the state keeps it: 1.0 is 1, "1" is another."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | int) else None

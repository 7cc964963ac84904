"""Values of messages as they are remembered, whatever a peer has sent in their place. No state."""

from typing import Any, Final

from assay.core.party_state import Id

_NOTHING: Final[dict[str, Any]] = {}


def object_of(value: Any) -> dict[str, Any]:
    """*value* if it is an object, else an empty one: what is wrong with it was reported, here it only must not hurt."""
    return value if isinstance(value, dict) else _NOTHING


def ident_of(value: Any) -> Id | None:
    """An id or a token as it is remembered: 1.0 is 1, "1" is another."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | int) else None

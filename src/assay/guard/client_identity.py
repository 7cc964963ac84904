"""What a client says about itself when it opens a session, bounded. No I/O."""

from typing import Any, Final, NamedTuple

from assay.base.message import params_of

_LONGEST: Final = 100
"""Maximal characters of a name or a version: clients choose them."""

_MOST: Final = 20
"""Maximal capabilities to keep; a revision has fewer than ten."""


class ClientIdentity(NamedTuple):
    """The name of a client, its version, and the names of its capabilities."""

    name: str = ""
    version: str = ""
    capabilities: tuple[str, ...] = ()


def identity_of(message: Any) -> ClientIdentity:
    """Return the identity in *message*, an `initialize` request; what is missing or invalid is left empty."""
    params = params_of(message)
    info, capabilities = params.get("clientInfo"), params.get("capabilities")
    said = info if isinstance(info, dict) else {}
    names = list(capabilities)[:_MOST] if isinstance(capabilities, dict) else ()
    return ClientIdentity(_text(said.get("name")), _text(said.get("version")), tuple(name[:_LONGEST] for name in names))


def _text(value: Any) -> str:
    return value[:_LONGEST] if isinstance(value, str) else ""

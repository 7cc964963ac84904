"""The error codes and capabilities of the envelope. Models, tests and pages read these tables."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

TIMED: Final = frozenset({"pro", "enterprise"})
"""The tiers in which `duration_ms` is required (specs/004, Envelope Schema)."""

ENVELOPE: Final = "envelope-v1"
"""The capability of every result in this shape, as in the examples of specs/004."""

ERROR_CODES: Final[Mapping[str, str]] = MappingProxyType({
    "invalid_argument": "An argument is not valid.",
    "invalid_path": "A path is not valid.",
    "forbidden": "This is not allowed.",
    "not_found": "What was asked for was not found.",
    "timeout": "It took too long.",
    "too_large": "It is too large.",
    "resource_exhausted": "The server has run out of memory or of something else it needs.",
    "not_implemented": "This is not implemented.",
    "upgrade_required": "This needs a higher tier.",
    "dependency_unavailable": "Something that the tool depends on did not answer.",
    "internal_error": "The tool failed, and not for anything in the request.",
})  # fmt: skip
"""Every error code with its meaning, which is the message if nothing more specific is safe to show."""

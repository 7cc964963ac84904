"""Identifiers of rules that were removed; they are never used again."""

from typing import Final

REMOVED: Final[frozenset[str]] = frozenset(
    {
        *("card/schema", "card/format", "card/version", "card/primitives", "card/remote", "card/secret"),
        *("card/runtime", "card/media-type", "card/https", "card/cors", "card/caching", "card/catalog"),
    }
)

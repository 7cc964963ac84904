"""Identifiers of rules that were removed. They are never used again."""

from typing import Final

REMOVED: Final[frozenset[str]] = frozenset(
    {
        *("card/schema", "card/format", "card/version", "card/primitives", "card/remote", "card/secret"),
        *("card/runtime", "card/media-type", "card/https", "card/cors", "card/caching", "card/catalog"),
        *("draft/tag-shape", "draft/tag-pages", "draft/tag", "draft/tag-changed", "draft/stale-tags"),
        *("draft/stale-rejection", "draft/required-capabilities", "lock/tag"),
        *("skills/repeated", "skills/identity", "skills/changed", "skills/frontmatter", "skills/unlisted"),
        *("skills/directory", "skills/resource"),
    }
)
"""Recordings and journals of earlier versions may name them."""


def is_removed(rule: object) -> bool:
    """Return whether *rule*, any value from a file, is the identifier of a removed rule."""
    return isinstance(rule, str) and rule in REMOVED

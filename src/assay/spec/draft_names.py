"""
Names from drafts of a working group for the next revision. Tables only.

None of them is part of MCP: they may change or go. Without a preview such members are unknown ones, which pass. Each
has a newer and an older name; the newer one is first.
"""

from collections.abc import Mapping
from typing import Any, Final

TAGS: Final = ("tag", "digest")
"""The member of a cacheable result that identifies its definitions."""

KNOWN_KEYS: Final = ("io.modelcontextprotocol/knownTags", "io.modelcontextprotocol/knownDigests")
"""The key in the `_meta` of a request: the tags that the client works with, by the method that gave them."""

STALE_KEYS: Final = ("io.modelcontextprotocol/staleTags", "io.modelcontextprotocol/staleDigests")
"""The key in the `_meta` of a result: the methods whose tags are out of date."""

STALE_MEMBERS: Final = ("staleTags", "staleDigests", *STALE_KEYS)
"""The member of an error's data with the same list."""

REQUIRED_KEY: Final = "io.modelcontextprotocol/requiredCapabilities"
"""The key in the `_meta` of a tool: the capabilities that a client needs to call it."""

DISCOVER: Final = "server/discover"

TAGGED: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The lists that may have a tag, and the member with their entries. The tag is about the entries of all pages."""

DISCOVERED: Final = ("instructions", "capabilities", "supportedVersions")
"""The members of the result of `server/discover` that its tag is about."""

UNTAGGED: Final = "resources/read"
"""The method with a cacheable result without a tag."""

RELEVANT: Final[Mapping[str, frozenset[str]]] = {
    "tools/call": frozenset({DISCOVER, "tools/list"}),
    "prompts/get": frozenset({DISCOVER, "prompts/list"}),
    "resources/read": frozenset({DISCOVER, "resources/list", "resources/templates/list"}),
}
"""The methods whose tags may be the reason to reject a request."""


def tag_of(result: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the member of *result* that has its tag, and the tag; None without one, or if it is not a string."""
    return next(((name, result[name]) for name in TAGS if isinstance(result.get(name), str)), None)

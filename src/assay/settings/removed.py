"""
What earlier versions had, and what to use in its place. No I/O.

A command, an option, a setting or a format that is gone is an error that names its successor, from this table. The
identifier of a rule that is gone is never used again.
"""

from collections.abc import Mapping
from typing import Final

FORMATS: Final[Mapping[str, str]] = {
    "mcpsnoop": "use --map dir=direction,msg=raw,conversation=session_id,ts=ts",
    "mcp-trace": "use --map dir=direction,msg=payload,ts=ts",
    "mcp-cassette": "use --map dir=dir,msg=frame",
}
"""Values of ``--from``."""

COMMANDS: Final[Mapping[str, str]] = {
    "schemas add": "use a later version: the next revision is part of Assay once its schema is frozen",
    "schemas remove": "leave it out: no schema can be added",
    "top": "use assay console, or assay journal show --follow",
    "card": "use curl: the guard forwards the document, and does not judge it",
}
"""Commands, and subcommands as two words."""

OPTIONS: Final[Mapping[str, str]] = {
    "--draft": "leave it out: a revision is judged once its schema is frozen",
    "--console": "use assay console, which follows the journals of all guards",
    "--preview": "leave it out: a draft is judged once it is part of a revision",
}
"""Options of any command."""

SETTINGS: Final[Mapping[str, str]] = {
    "guard.shared": "leave it out: each session has a child of its own, and requests without a session share one",
    "guard.draft_revisions": "leave it out: a revision is judged once its schema is frozen",
    "extensions": "leave it out: messages of extensions that are not official pass, and are reported",
    "guard.feed": "leave it out: assay console follows the journal",
    "auth.console": "leave it out: assay console shows the journals of its own user",
    "guard.preview": "leave it out: a draft is judged once it is part of a revision",
}
"""Keys of settings, as written in a file; a section stands for all of its keys."""


RULES: Final[frozenset[str]] = frozenset(
    {
        *("card/schema", "card/format", "card/version", "card/primitives", "card/remote", "card/secret"),
        *("card/runtime", "card/media-type", "card/https", "card/cors", "card/caching", "card/catalog"),
        *("draft/tag-shape", "draft/tag-pages", "draft/tag", "draft/tag-changed", "draft/stale-tags"),
        *("draft/stale-rejection", "draft/required-capabilities", "lock/tag"),
        *("skills/repeated", "skills/identity", "skills/changed", "skills/frontmatter", "skills/unlisted"),
        *("skills/directory", "skills/resource"),
    }
)
"""Rules. Recordings and journals of earlier versions may name them."""


def is_removed_rule(rule: object) -> bool:
    """Return whether *rule*, any value from a file, is the identifier of a removed rule."""
    return isinstance(rule, str) and rule in RULES


def removed(name: str, table: Mapping[str, str]) -> str:
    """Return "removed: use …" for a *name* that an earlier version had; empty for any other."""
    instead = table.get(name)
    return "" if instead is None else f"removed: {instead}"


def removed_setting(key: str) -> str:
    """Return the same for the key of a setting, such as ``guard.mode``, or of a section above it."""
    parts = key.split(".")
    above = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((found for each in above if (found := removed(each, SETTINGS))), "")

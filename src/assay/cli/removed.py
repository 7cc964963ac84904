"""Commands, options and formats that earlier versions had, and what to use in their place. No I/O."""

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


def removed(name: str, table: Mapping[str, str]) -> str:
    """Return "removed: use …" for a *name* that an earlier version had; empty for any other."""
    instead = table.get(name)
    return "" if instead is None else f"removed: {instead}"

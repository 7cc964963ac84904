"""Where MCP clients have their configuration, by platform. Looks which of the files are there, and into none."""

import os
import sys
from collections.abc import Mapping
from typing import Final

_CLAUDE: Final = "Claude/claude_desktop_config.json"
_CODE: Final = "Code/User/mcp.json"

_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    # Claude Desktop from the Windows store sees another directory under the name of the first.
    "claude-desktop": (
        f"{{settings}}/{_CLAUDE}",
        f"{{local}}/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/{_CLAUDE}",
    ),
    "cursor": (".cursor/mcp.json", "{home}/.cursor/mcp.json"),
    "vscode": (".vscode/mcp.json", f"{{settings}}/{_CODE}"),
}
"""By client, in the order in which they are looked for: that of the project first, then that of the user."""

CLIENTS: Final = tuple(_PLACES)


def places(
    client: str, platform: str = sys.platform, environment: Mapping[str, str] = os.environ, home: str | None = None
) -> list[str]:
    """Where *client* may have its configuration."""
    home = home or os.path.expanduser("~")
    roots = {"home": home, "settings": _settings(platform, environment, home)}
    if platform == "win32":
        roots["local"] = environment.get("LOCALAPPDATA") or f"{home}/AppData/Local"
    return [
        os.path.normpath(place.format(**roots))
        for place in _PLACES[client]
        if "{local}" not in place or "local" in roots
    ]


def place(client: str) -> str | None:
    """The configuration of *client* that is there."""
    return next((each for each in places(client) if os.path.isfile(each)), None)


def _settings(platform: str, environment: Mapping[str, str], home: str) -> str:
    """Where programs keep what is a user's."""
    if platform == "darwin":
        return f"{home}/Library/Application Support"
    if platform == "win32":
        return environment.get("APPDATA") or f"{home}/AppData/Roaming"
    return environment.get("XDG_CONFIG_HOME") or f"{home}/.config"

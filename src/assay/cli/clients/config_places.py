"""Paths of the configuration of MCP clients, by platform. Checks which files exist, but opens none."""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from assay.spec.schema import closest

_CLAUDE: Final = "Claude/claude_desktop_config.json"

_CLIENTS: Final[Mapping[str, tuple[str, ...]]] = {
    # For Claude Desktop from the Windows store, the first path is redirected to the second.
    "claude-desktop": (
        "Claude Desktop",
        f"{{settings}}/{_CLAUDE}",
        f"{{local}}/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/{_CLAUDE}",
    ),
    # The servers of a project are in the user's file, too, unless they are shared (`--scope project`).
    "claude-code": ("Claude Code", ".mcp.json", "{claude}/.claude.json"),
    "cursor": ("Cursor", ".cursor/mcp.json", "{home}/.cursor/mcp.json"),
    "vscode": ("VS Code", ".vscode/mcp.json", "{settings}/Code/User/mcp.json"),
    "windsurf": ("Windsurf", "{home}/.codeium/windsurf/mcp_config.json"),
    "gemini": ("Gemini CLI", ".gemini/settings.json", "{gemini}/.gemini/settings.json"),
    "zed": ("Zed", ".zed/settings.json", "{zed}/settings.json"),
    # Codex reads the file of a project only if the user trusts the project.
    "codex": ("Codex", ".codex/config.toml", "{codex}/config.toml"),
}
"""By client: its display name, and its paths in the order of search, the project's first, then the user's."""

CLIENTS: Final = tuple(_CLIENTS)
NAMES: Final = {client: name for client, (name, *_) in _CLIENTS.items()}
"""Display names of the clients."""

_OVERWRITTEN: Final = {"claude_desktop_config.json": "claude-desktop", ".claude.json": "claude-code"}
"""Files that the running client overwrites with the servers it read at its start."""


def places(
    client: str, platform: str = sys.platform, environment: Mapping[str, str] = os.environ, home: str | None = None
) -> list[str]:
    """Return the possible paths of the configuration of *client*."""
    home = home or os.path.expanduser("~")

    def moved(variable: str, otherwise: str) -> str:
        # A relative path is invalid: it would depend on the working directory (XDG Base Directory Specification).
        value = environment.get(variable)
        return value if value and os.path.isabs(value) else otherwise

    roots = {
        "home": home,
        "claude": moved("CLAUDE_CONFIG_DIR", home),
        "gemini": moved("GEMINI_CLI_HOME", home),
        "codex": moved("CODEX_HOME", f"{home}/.codex"),
    }
    if platform == "win32":
        roots["settings"] = environment.get("APPDATA") or f"{home}/AppData/Roaming"
        roots["local"] = environment.get("LOCALAPPDATA") or f"{home}/AppData/Local"
        roots["zed"] = f"{roots['settings']}/Zed"
    elif platform == "darwin":
        roots["settings"] = f"{home}/Library/Application Support"
        # Zed uses ~/.config on macOS, too (crates/paths/src/paths.rs).
        roots["zed"] = f"{home}/.config/zed"
    else:
        roots["settings"] = moved("XDG_CONFIG_HOME", f"{home}/.config")
        roots["zed"] = f"{moved('FLATPAK_XDG_CONFIG_HOME', roots['settings'])}/zed"
    there = (place for place in _CLIENTS[client][1:] if "{local}" not in place or "local" in roots)
    return [os.path.normpath(place.format(**roots)) for place in there]


def all_places() -> list[str]:
    """Return the existing configurations of all clients, each file once."""
    return existing([each for client in CLIENTS for each in places(client)])


def client_of(name: str) -> str | None:
    """Return the client that uses the file called *name*; None if it is not at a known path."""
    path = os.path.realpath(name)
    return next((client for client in CLIENTS for each in places(client) if os.path.realpath(each) == path), None)


def overwriting_client(name: str) -> str | None:
    """Return the display name of the client that may overwrite the file called *name* while it runs."""
    client = _OVERWRITTEN.get(os.path.basename(os.path.realpath(name)))
    return None if client is None else NAMES[client]


def short(name: str) -> str:
    """Return the path *name* with ``~`` for the home directory."""
    home = os.path.expanduser("~")
    return f"~{name[len(home) :]}" if home != os.sep and name.startswith(home + os.sep) else name


def meant_clients(name: str) -> list[str]:
    """Return the clients that *name*, given as a file, may stand for: ``claude-desktop``, ``VS Code``, ``claude``."""
    if os.path.basename(name) != name:
        return []
    folded = re.sub(r"[ _]+", "-", name.strip().casefold())
    return [each for each in CLIENTS if folded and each.startswith(folded)] or closest(folded, CLIENTS, 0.75)


def existing(names: Iterable[str]) -> list[str]:
    """Return the existing files among *names*, each file once."""
    found: dict[str, str] = {}
    for each in names:
        if os.path.isfile(each):
            # The working directory may be the home directory, and a link may lead to a file that is already listed.
            found.setdefault(os.path.realpath(each), each)
    return list(found.values())

"""The configuration files of MCP clients: where they are, and how they are read and replaced."""

import os
import re
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from assay.cli.clients.parsing import ConfigError
from assay.model.atomic_file import replace_file
from assay.spec.schema import closest

# ── places ───────────────────────────────────────────────────────────────────────────────────────────────────────────

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

_OVERWRITTEN: Final = {"claude_desktop_config.json": "Claude Desktop", ".claude.json": "Claude Code"}
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


def existing(names: Iterable[str]) -> list[str]:
    """Return the existing files among *names*, each file once."""
    found: dict[str, str] = {}
    for each in names:
        if os.path.isfile(each):
            # The working directory may be the home directory, and a link may lead to a file that is already listed.
            found.setdefault(os.path.realpath(each), each)
    return list(found.values())


def client_of(name: str) -> str | None:
    """Return the display name of the client that uses the file called *name*; None if it is not at a known path."""
    path = os.path.realpath(name)
    known = ((title, os.path.realpath(each)) for client, (title, *_) in _CLIENTS.items() for each in places(client))
    return next((title for title, place in known if place == path), None)


def overwriting_client(name: str) -> str | None:
    """Return the display name of the client that may overwrite the file called *name* while it runs."""
    return _OVERWRITTEN.get(os.path.basename(os.path.realpath(name)))


def meant_clients(name: str) -> list[str]:
    """Return the clients that *name*, given as a file, may stand for: ``claude-desktop``, ``VS Code``, ``claude``."""
    if os.path.basename(name) != name:
        return []
    folded = re.sub(r"[ _]+", "-", name.strip().casefold())
    return [each for each in CLIENTS if folded and each.startswith(folded)] or closest(folded, CLIENTS, 0.75)


def short(name: str | Path) -> str:
    """Return the path *name* with ``~`` for the home directory."""
    home, name = os.path.expanduser("~"), str(name)
    return f"~{name[len(home) :]}" if home != os.sep and name.startswith(home + os.sep) else name


# ── one file ─────────────────────────────────────────────────────────────────────────────────────────────────────────

LONGEST: Final = 8 << 20
"""Maximal size of a file in bytes. The largest we know, with a client's history, has three million."""

_PRIVATE: Final = 0o600
"""The permissions of a backup: it has the secrets of the file, and no other program needs it."""


@dataclass(frozen=True, slots=True)
class FoundConfig:
    """A file as it was read: its real path, its text with a byte order mark, its owner and permissions."""

    path: Path
    text: str
    status: os.stat_result

    @property
    def backup(self) -> Path:
        """The path of the backup."""
        return self.path.with_name(f"{self.path.name}.assay-backup")


def find(name: str | Path) -> FoundConfig:
    """Read the file called *name*, following links. Raises `ConfigError`."""
    try:
        path = Path(name).resolve(strict=True)
        # Checked before opening: opening a pipe would wait for a writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError("not a file")
        with path.open("rb") as file:
            content, status = file.read(LONGEST + 1), os.fstat(file.fileno())
    except OSError as error:
        raise ConfigError(_reason(error)) from None
    except RuntimeError:
        # Python 3.11 and 3.12 raise it here.
        raise ConfigError("a link to itself") from None
    if len(content) > LONGEST:
        raise ConfigError(f"longer than {LONGEST:,} bytes")
    try:
        return FoundConfig(path, content.decode(), status)
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8: byte {error.start + 1:,}") from None


def backup_of(found: FoundConfig) -> str | None:
    """Return the text of the backup of *found*; None if it does not exist or cannot be read."""
    try:
        return find(found.backup).text
    except ConfigError:
        return None


def exchange(found: FoundConfig, content: str, backup: str | None = None) -> None:
    """
    Write the *backup*, if there is one, then replace the content of *found*. Raises `ConfigError`.

    A file that another program has changed since it was read is not overwritten.
    """
    if not os.access(found.path, os.W_OK):
        raise ConfigError("it is read-only")
    if find(found.path).text != found.text:
        raise ConfigError("it has changed in the meantime; nothing was written")
    is_new = backup is not None and not found.backup.exists()
    for path, text, rights in (found.backup, backup, _PRIVATE), (found.path, content, None):
        try:
            if text is not None:
                replace_file(path, text.encode(), found.status, rights=rights)
        except OSError as error:
            if is_new:
                forget_backup(found)
            raise ConfigError(f"cannot write {path.name}: {_reason(error)}") from None


def forget_backup(found: FoundConfig) -> None:
    """Remove the backup of *found*, if there is one."""
    with suppress(OSError):
        found.backup.unlink(missing_ok=True)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__

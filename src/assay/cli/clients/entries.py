"""One server of a client's configuration: which program it starts, and what may be changed in it."""

import os
import re
import sys
from collections.abc import Mapping
from ipaddress import ip_address
from shutil import which
from typing import Any, Final
from urllib.parse import urlsplit

from assay.cli.clients.config_files import FileError
from assay.cli.clients.dialect import ServerEntry
from assay.cli.clients.wrapping import is_program
from assay.cli.options import FROM_ENVIRONMENT
from assay.spec.schema import closest

_CACHES: Final = (
    # uvx and `uv run --with` unpack here; `uv cache clean` and `uv cache prune` remove it.
    (re.compile(r"/(?:archive|environments|builds)-v\d+/"), "uv's cache", "uv tool install"),
    # `pipx run` removes what it has not used for 14 days. PIPX_HOME/.cache in older versions.
    (re.compile(r"/(?:pipx/\.cache|\.cache/pipx|Caches/pipx|pipx/Cache)/"), "the cache of pipx run", "pipx install"),
    (re.compile(r"/_npx/"), "the cache of npx", "npm install --global"),
)
"""Caches that another program may empty: their pattern, their name, and the command for a permanent installation."""


def own_program() -> str:
    """Return the full path of the given command, or of the one that is installed with this module."""
    beside = os.path.join(os.path.dirname(sys.executable), "assay")
    for name in (sys.argv[0] if is_program(sys.argv[0]) else None, beside, "assay"):
        path = which(name) if name else None
        if path is not None:
            return os.path.abspath(path)
    raise FileError("cannot find the assay command; give its path with --program")


def check_lasting(path: str) -> None:
    """Raise `FileError` for a *path* inside a cache: once it is emptied, none of the client's servers would start."""
    for each in (path, os.path.realpath(path)):
        for pattern, cache, install in _CACHES:
            if pattern.search(each.replace("\\", "/")):
                raise FileError(
                    f"nothing was written: {path} is in {cache}, which may be emptied at any time; install assay "
                    f"first ({install} …) and run assay wrap again, or give --program assay if assay is on the "
                    "client's PATH"
                )


def is_ours(command: str, env: Mapping[str, object]) -> bool:
    """
    Whether *command*, started with the variables *env*, is this program.

    False for a relative path, whose directory only the client knows, and for an entry with its own PATH.
    """
    bare = os.path.basename(command) == command
    if not bare and not os.path.isabs(command):
        return False
    if bare and any(name.upper() == "PATH" for name in env):
        return False
    path = which(command)
    return path is not None and os.path.realpath(path) == os.path.realpath(own_program())


_STDIO: Final = ("stdio", "local")
_HTTP: Final = ("http", "streamable-http", "streamableHttp", "streamable_http")

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~][A-Za-z0-9!#$%&'*+.^_`|~-]*")
"""A token (RFC 9110, 5.6.2) without a leading hyphen, which would make it an option."""

_CREDENTIALS: Final = (
    *("auth", "oauth", "headersHelper"),  # Claude Code, Cursor, Gemini CLI
    "authProviderType",  # Gemini CLI
    *("bearer_token", "bearer_token_env_var", "env_http_headers", "scopes", "oauth_resource"),  # Codex
)
"""Members that make a client sign in or add a secret that is not in the file."""


# ── what cannot be put behind the guard ──────────────────────────────────────────────────────────────────────────────


def objection(server: ServerEntry) -> str | None:
    """Return why *server* cannot be put behind the guard; None if it can."""
    entry = server.value
    if not isinstance(entry, dict):
        return "it is not an object"
    if server.unwritable is not None:
        return server.unwritable
    url, command, kind, args = (entry.get(name) for name in ("url", "command", "type", "args"))
    # Without a type, a URL that ends in /sse has that transport by convention.
    by_name = "type" not in entry and isinstance(url, str) and url.partition("?")[0].rstrip("/").endswith("/sse")
    if kind == "sse" or by_name:
        return "it has the HTTP+SSE transport of 2024-11-05, which the guard does not support"
    if "command" in entry and "url" in entry:
        return "it has both a command and a url"
    if "command" not in entry and "url" not in entry:
        meant = ((name, closest(name[:100], ("command", "url"))) for name in entry)
        slip = next((f"; did you mean {close[0]} by {name}?" for name, close in meant if close), "")
        return f"it has neither a command nor a url{slip}"
    if kind is not None and kind not in (_STDIO if "command" in entry else _HTTP):
        return "its type is not that of a server with a command, or of one with a url"
    if "command" in entry and not (isinstance(command, str) and command):
        return "its command is not a string"
    words = isinstance(args, list) and all(isinstance(each, str) for each in args)
    if "args" in entry and not ("command" in entry and words):
        return "its args are not a list of strings for a command"
    # VS Code starts a debugger on the command, which must be node or python (mcpDevMode.ts).
    if isinstance(entry.get("dev"), dict) and entry["dev"].get("debug"):
        return "it has dev.debug, which works on the server's own command only"
    if "command" in entry:
        return None
    if not re.match(r"https?://|\$\{", str(url)):
        return "its url is neither http nor https"
    headers = entry.get("headers", {})
    if not isinstance(headers, dict) or not all(_is_header(name, value) for name, value in headers.items()):
        return "its headers cannot be given on a command line"
    if any(name in entry for name in _CREDENTIALS):
        return "its client signs in to its url, which does not work through the guard"
    return None


def _is_header(name: str, value: Any) -> bool:
    if not _HEADER_NAME.fullmatch(name) or not isinstance(value, str):
        return False
    # The guard would read a value with the prefix env: as the name of a variable.
    return not re.search(r"[\x00-\x1f\x7f]", value) and not FROM_ENVIRONMENT.fullmatch(value.strip())


def hesitation(server: ServerEntry) -> str | None:
    """Return why *server* goes behind the guard only when named with --server; None if it always does."""
    entry = server.value
    if is_disabled(entry):
        return "it is disabled"
    if "url" in entry and not entry.get("headers") and not _is_local(str(entry["url"])):
        return "its client may sign in to its url (OAuth), which does not work through the guard"
    return None


def is_disabled(entry: Mapping[str, Any]) -> bool:
    """Whether *entry* is disabled: Codex and Zed have `enabled`, other clients `disabled`."""
    return entry.get("disabled") is True or entry.get("enabled") is False


def _is_local(url: str) -> bool:
    """Whether *url* is on this machine, where servers need no sign-in."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


_STEERING: Final = ("ASSAY_", "PYTHON", "LD_", "DYLD_")
"""Prefixes of variables that configure a guard or load other code into its process."""


def advice(server: ServerEntry) -> str | None:
    """Return warnings to show before *server* goes behind the guard."""
    entry = server.value
    env = entry.get("env")
    steering = [name for name in env if name.upper().startswith(_STEERING)] if isinstance(env, dict) else []
    if steering:
        return f"env sets {', '.join(steering[:5])}, which the guard obeys too; check that you want this"
    if server.written.get(server.dialect.headers):
        return "headers become arguments, which others on this machine may see in the list of processes"
    # With a token, for example from a variable, the client does not sign in.
    if str(entry.get("url", "")).startswith("https:") and not entry.get("headers"):
        return "if the client signs in to it (OAuth), that does not work through the guard; assay unwrap undoes it"
    return None

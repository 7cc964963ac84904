"""The servers in a client's configuration, and which of them cannot be put behind the guard. No I/O."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from assay.clients.jsonc import JsoncError, Member, Object, plain, read
from assay.guard.given import FROM_ENVIRONMENT

SECTIONS: Final = ("mcpServers", "servers")
"""Where servers are: Claude Desktop, Cursor and Claude Code have the first, VS Code the second."""

_STDIO: Final = frozenset({"stdio", "local"})
_HTTP: Final = frozenset({"http", "streamable-http", "streamableHttp", "streamable_http"})

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~][A-Za-z0-9!#$%&'*+.^_`|~-]*")
"""A token (RFC 9110, 5.6.2), but no option: one that begins with a hyphen would be taken for one."""


class Server(NamedTuple):
    """One server of a configuration: where it is, and the text of its entry."""

    section: str
    name: str
    start: int
    end: int
    text: str


class ConfigError(ValueError):
    """Why a file is no configuration with servers in it."""


def servers(text: str) -> list[Server]:
    """The servers of a configuration, in the order of its *text*. Raises `ConfigError`."""
    try:
        root = read(text).root
    except JsoncError as error:
        raise ConfigError(f"no JSON: {error}") from None
    if not isinstance(root, Object):
        raise ConfigError("no configuration of servers: expected an object")
    sections = [member for member in root.members if member.key.value in SECTIONS]
    if not sections:
        raise ConfigError(f"no servers: it has neither {' nor '.join(SECTIONS)}")
    return [each for section in sections for each in _servers(text, section)]


def _servers(text: str, section: Member) -> list[Server]:
    name, value = section
    if not isinstance(value, Object):
        raise ConfigError(f"no servers: {name.value} is no object")
    return [
        Server(name.value, key.value, entry.start, entry.end, text[entry.start : entry.end])
        for key, entry in value.members
    ]


# ── what cannot be put behind the guard ──────────────────────────────────────────────────────────────────────────────


def objection(text: str) -> str | None:
    """Why the entry in *text* is left alone; None if it can be put behind the guard."""
    entry = plain(read(text).root)
    if not isinstance(entry, dict):
        return "it is no object"
    return next((why for applies, why in _OBJECTIONS if applies(entry)), None)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _type_of(entry: Mapping[str, Any]) -> str:
    """What *entry* says it is, else what its members make it."""
    said = entry.get("type")
    if said is None:
        return "http" if "url" in entry else "stdio"
    return said if isinstance(said, str) else ""


def _is_legacy(entry: Mapping[str, Any]) -> bool:
    """Whether it speaks HTTP as 2024-11-05 has it. Without a type, the client finds out; by convention it is /sse."""
    url = entry.get("url")
    by_name = "type" not in entry and isinstance(url, str) and url.partition("?")[0].rstrip("/").endswith("/sse")
    return entry.get("type") == "sse" or by_name


def _is_debugged(entry: Mapping[str, Any]) -> bool:
    dev = entry.get("dev")
    return isinstance(dev, dict) and bool(dev.get("debug"))


def _has_other_args(entry: Mapping[str, Any]) -> bool:
    if "command" not in entry:
        return "args" in entry
    args = entry.get("args", [])
    return not (isinstance(args, list) and all(isinstance(each, str) for each in args))


def _has_other_headers(entry: Mapping[str, Any]) -> bool:
    headers = entry.get("headers", {})
    if "command" in entry:
        return False
    return not (isinstance(headers, dict) and all(_is_header(name, value) for name, value in headers.items()))


def _is_header(name: str, value: Any) -> bool:
    if not _HEADER_NAME.fullmatch(name) or not isinstance(value, str):
        return False
    # What the guard would take for a variable of its own is no value that can be given to it.
    return not re.search(r"[\x00-\x1f\x7f]", value) and not FROM_ENVIRONMENT.fullmatch(value.strip())


_OBJECTIONS: Final[tuple[tuple[Callable[[Mapping[str, Any]], bool], str], ...]] = (
    (lambda entry: entry.get("disabled") is True or entry.get("enabled") is False, "it is disabled"),
    (_is_legacy, "it has the HTTP+SSE transport of 2024-11-05, which the guard does not speak"),
    (lambda entry: "command" in entry and "url" in entry, "it has both a command and a url"),
    (lambda entry: "command" not in entry and "url" not in entry, "it has neither a command nor a url"),
    (
        lambda entry: _type_of(entry) not in (_STDIO if "command" in entry else _HTTP),
        "its type is not that of a server with a command, or of one with a url",
    ),
    (lambda entry: "command" in entry and not _is_text(entry["command"]), "its command is no text"),
    (_has_other_args, "its args are not a list of texts for a command"),
    # VS Code starts a debugger on the command, which must be node or python (mcpDevMode.ts).
    (_is_debugged, "it has dev.debug, which works on the server's own command only"),
    (
        lambda entry: "url" in entry and not re.match(r"https?://|\$\{", str(entry["url"])),
        "its url is neither http nor https",
    ),
    (_has_other_headers, "its headers cannot be given on a command line"),
    (
        lambda entry: "url" in entry and any(name in entry for name in ("auth", "oauth", "headersHelper")),
        "its client signs in for it, which works on the server's own url only",
    ),
)
"""The first that applies is told."""


_STEERING: Final = ("ASSAY_", "PYTHON", "LD_", "DYLD_")
"""What the variables begin with by which a guard is configured, or by which other code gets into its process."""

_NAMED: Final = 5


def advice(text: str) -> str | None:
    """What to know of the entry in *text* before it goes behind the guard, if there is anything."""
    entry = plain(read(text).root)
    env = entry.get("env")
    steering = [name for name in env if name.upper().startswith(_STEERING)] if isinstance(env, dict) else []
    if steering:
        return (
            f"its env sets {', '.join(steering[:_NAMED])}, which the guard obeys, too; see that this is what you want"
        )
    if entry.get("headers"):
        return "its headers become arguments, which others on this machine may see in the list of processes"
    if str(entry.get("url", "")).startswith("https:"):
        return "if people sign in to it in the client (OAuth), that works on its own url only"
    return None

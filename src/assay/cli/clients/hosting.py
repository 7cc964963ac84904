"""
The servers of a client's configuration, ready for us to start: without a guard, with variables replaced by their
values. Text in, values out, no I/O.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from assay.cli.clients.dialect import JSON, Dialect, ServerEntry
from assay.cli.clients.plan import unwrap
from assay.cli.clients.wrapping import is_disabled, objection
from assay.guard.hosted_server import HostedEntry

_REFERENCE: Final = re.compile(r"\$\{([^{}]*)\}")
"""``${NAME}``, ``${env:NAME}``, ``${NAME:-default}``: Claude Code has the first and the last, VS Code the second."""

_INPUT: Final = "input:"
"""A value that VS Code prompts the user for."""

DISABLED: Final = "it is disabled"
"""The reason for skipping a server that the client does not use either."""


class _TroubleError(ValueError):
    """A server cannot be started; the message has the reason."""


def entries(text: str, environ: Mapping[str, str], folder: str, dialect: Dialect = JSON) -> list[HostedEntry]:
    """
    Return the servers of a configuration by name, in the order of its *text*. Raises `ConfigError`.

    References to variables are replaced from *environ* and the working directory *folder*. An error in one entry
    affects only that entry.
    """
    found: dict[str, HostedEntry] = {}
    bare = unwrap(text, None, dialect=dialect).after if dialect.servers(text) else text
    for server in dialect.servers(bare):
        # Claude Code keeps the servers of all projects in one file.
        elsewhere = server.project is not None and server.project != folder
        if server.name not in found and not elsewhere:
            try:
                found[server.name] = _entry(server, environ, folder)
            except _TroubleError as trouble:
                found[server.name] = HostedEntry(server.name, trouble=str(trouble))
    return list(found.values())


def _entry(server: ServerEntry, environ: Mapping[str, str], folder: str) -> HostedEntry:
    """Return *server* as it is started. Raises `_TroubleError`."""
    why = server.trouble or objection(server) or (DISABLED if is_disabled(server.value) else None)
    if why:
        raise _TroubleError(why)
    known = _filled(server.value, {**environ, "workspaceFolder": folder, "userHome": environ.get("HOME", "")})
    env, cwd, names = known.get("env") or {}, known.get("cwd"), known.get("env_vars")
    if not isinstance(env, dict) or not all(isinstance(value, str | int | float) for value in env.values()):
        raise _TroubleError("its env must be an object of strings")
    # Codex lists variables without a value in `env_vars`; values may be numbers and booleans.
    env = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in env.items()}
    if isinstance(names, list):
        env = {**{name: environ[name] for name in names if name in environ}, **env}
    if not isinstance(cwd, str | None):
        raise _TroubleError("its cwd must be a string")
    if "command" in known:
        return HostedEntry(server.name, (known["command"], *known.get("args", ())), env=env, cwd=cwd)
    return HostedEntry(server.name, url=known["url"], headers=tuple(known.get("headers", {}).items()))


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    """Return *value* with every reference in its strings replaced. Raises `_TroubleError`."""

    def named(found: re.Match[str]) -> str:
        if found[1].startswith(_INPUT):
            raise _TroubleError("it needs an input that only its client can ask for")
        name, default, otherwise = found[1].removeprefix("env:").partition(":-")
        if name not in known and not default:
            raise _TroubleError(f"the variable {name[:100]} is not set")
        return known.get(name, otherwise)

    if isinstance(value, str):
        return _REFERENCE.sub(named, value)
    if isinstance(value, list):
        return [_filled(each, known) for each in value]
    if isinstance(value, dict):
        return {name: _filled(each, known) for name, each in value.items()}
    return value

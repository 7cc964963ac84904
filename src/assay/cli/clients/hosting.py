"""
The servers of a client's configuration as somebody else can start them: without a guard, with their variables filled
in. Text in, values out, no I/O.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from assay.cli.clients.dialect import JSON, Dialect, ServerEntry
from assay.cli.clients.entries import is_disabled, objection
from assay.cli.clients.plan import unwrap

_REFERENCE: Final = re.compile(r"\$\{([^{}]*)\}")
"""``${NAME}``, ``${env:NAME}``, ``${NAME:-otherwise}``: Claude Code has the first and the last, VS Code the second."""

_INPUT: Final = "input:"
"""What VS Code asks a person for."""


DISABLED: Final = "it is disabled"
"""Why a server is not served that the client does not use either."""


class HostedEntry(NamedTuple):
    """One server, ready to be started, or why it is not."""

    name: str
    command: tuple[str, ...] = ()
    """The program and its arguments; empty for a server at a URL."""
    url: str = ""
    env: Mapping[str, str] = {}
    """Variables that the entry names, beside those that every server gets."""
    cwd: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    trouble: str = ""
    """Why it cannot be served; empty if it can."""


class _UnknownError(ValueError):
    """Why something cannot be filled in."""


def entries(text: str, environ: Mapping[str, str], folder: str, dialect: Dialect = JSON) -> list[HostedEntry]:
    """
    The servers of a configuration, each by its name, in the order of its *text*. Raises `ConfigError`.

    *environ* and *folder*, the one that is worked in, fill in what entries leave open. What is wrong with one is told
    of that one only.
    """
    found: dict[str, HostedEntry] = {}
    bare = unwrap(text, None, dialect=dialect).after if dialect.servers(text) else text
    for server in dialect.servers(bare):
        # Claude Code has the servers of every project in one file.
        elsewhere = server.project is not None and server.project != folder
        if server.name not in found and not elsewhere:
            found[server.name] = _entry(server, environ, folder, dialect)
    return list(found.values())


def _entry(server: ServerEntry, environ: Mapping[str, str], folder: str, dialect: Dialect) -> HostedEntry:
    why = server.trouble or objection(server.text, dialect)
    if why:
        return HostedEntry(server.name, trouble=why)
    given = dialect.value(server.text)
    if is_disabled(given):
        return HostedEntry(server.name, trouble=DISABLED)
    try:
        known = _filled(given, {**environ, "workspaceFolder": folder, "userHome": environ.get("HOME", "")})
    except _UnknownError as unknown:
        return HostedEntry(server.name, trouble=str(unknown))
    env, cwd = known.get("env") or {}, known.get("cwd")
    if isinstance(env, dict):
        env = {**_passed_on(known, environ), **env}
    if not _are_texts(env):
        return HostedEntry(server.name, trouble="its env is no object of texts")
    if not isinstance(cwd, str | None):
        return HostedEntry(server.name, trouble="its cwd is no text")
    if "command" in known:
        return HostedEntry(server.name, (known["command"], *known.get("args", ())), env=_texts(env), cwd=cwd)
    return HostedEntry(server.name, url=known["url"], headers=tuple(known.get("headers", {}).items()))


def _passed_on(entry: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that an entry of Codex names without a value."""
    names = entry.get("env_vars")
    return {name: environ[name] for name in names if name in environ} if isinstance(names, list) else {}


def _are_texts(env: Any) -> bool:
    return isinstance(env, dict) and all(isinstance(value, str | int | float) for value in env.values())


def _texts(env: Mapping[str, Any]) -> dict[str, str]:
    """Variables as a program gets them: people write numbers and truths as they are."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in env.items()}


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    """*value* with every reference in its texts replaced. Raises `_UnknownError`."""
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: _named(found[1], known), value)
    if isinstance(value, list):
        return [_filled(each, known) for each in value]
    if isinstance(value, dict):
        return {name: _filled(each, known) for name, each in value.items()}
    return value


def _named(reference: str, known: Mapping[str, str]) -> str:
    if reference.startswith(_INPUT):
        raise _UnknownError("it asks for an input, which only its client can")
    name, default, otherwise = reference.removeprefix("env:").partition(":-")
    found = known.get(name)
    if found is None and not default:
        raise _UnknownError(f"the variable {name[:100]} is not set")
    return found if found is not None else otherwise

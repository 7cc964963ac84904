"""The name of a guarded server: what people, the journal and the lock call it. No I/O."""

import re
from collections.abc import Sequence
from os.path import basename
from typing import Final
from urllib.parse import urlsplit

_LONGEST: Final = 64
"""Characters of a name: it becomes the name of a folder, and is in every record."""

_UNNAMED: Final = "server"

_RUNNERS: Final = frozenset({"npx", "bunx", "uvx", "pipx"})
"""Programs whose first plain argument names the package to run."""

_VERBS: Final = frozenset({"run", "exec", "x", "dlx", "tool"})
"""Words between a package manager and the package it runs: ``uv run``, ``npm exec``, ``pnpm dlx``, ``uv tool run``."""

_MANAGERS: Final = frozenset({"npm", "pnpm", "yarn", "bun", "uv", "deno", "docker", "podman", "pipx", "poetry", "go"})

_INTERPRETERS: Final = re.compile(r"(python|pypy|node|nodejs|ruby|perl|php|java|tsx|ts-node|deno|bun)[0-9.]*")

_CONTAINERS: Final = frozenset({"docker", "podman"})

_WITH_VALUE: Final = frozenset(
    {"-p", "--package", "--from", "--with", "--python", "--directory", "--project", "--env-file", "-W", "-X", "-r",
     "--require", "--import", "--loader", "-C", "--prefix", "--index-url", "--extra", "--group"}
)  # fmt: skip
_CONTAINER_WITH_VALUE: Final = frozenset(
    {"-e", "--env", "--env-file", "-v", "--volume", "--mount", "--name", "--network", "-u", "--user", "-w",
     "--workdir", "-p", "--publish", "--platform", "--entrypoint", "-l", "--label"}
)  # fmt: skip
"""Options whose value is the next argument, so that the value is not taken for the server."""

_CODE: Final = frozenset({"-c", "-e", "--eval", "-p", "--print"})
"""Options of an interpreter that are followed by the program itself."""

_GENERIC: Final = frozenset({"server", "main", "index", "app", "cli", "mcp", "run", "start", "__main__"})
"""File names that say nothing about the server; the folder they are in says more."""

_BUILD_FOLDERS: Final = frozenset({"dist", "build", "src", "bin", "out", "lib", "target", "release", "debug"})

_EXTENSION: Final = re.compile(r"\.(py|pyz|m?js|cjs|m?ts|cts|jar|exe|cmd|bat|sh|rb|pl|php)$", re.IGNORECASE)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def name_of_command(command: Sequence[str]) -> str:
    """
    Return the name of the server that *command* starts: ``server-filesystem`` for ``npx -y @scope/server-filesystem``.

    The program alone says nothing where it is a launcher such as npx, uvx, python, node or docker.
    """
    words = [word for word in command if word] or [_UNNAMED]
    while len(words) > 1 and (basename(words[0]) == "env" or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    program = _EXTENSION.sub("", basename(words[0].replace("\\", "/")))
    if program in _RUNNERS | _MANAGERS or _INTERPRETERS.fullmatch(program):
        found = _started_by(program, words[1:])
        if found is not None:
            return found
    return _from_path(words[0])


def name_of_url(url: str) -> str:
    """Return the name of the server at *url*: its host and port. A path may hold a secret, so it is left out."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or _UNNAMED, parts.port
    except ValueError:
        return _UNNAMED
    return cut_name(host if port is None else f"{host}:{port}")


def folder_of(name: str) -> str:
    """Return *name* as the name of a folder: letters, digits, dots, dashes and underscores, never hidden."""
    return _UNSAFE.sub("-", name).strip("-.")[:_LONGEST].rstrip(".") or _UNNAMED


def cut_name(name: str) -> str:
    """Return *name* printable and at most 64 characters long."""
    shown = name if name.isprintable() else "".join(each for each in name if each.isprintable())
    return shown.strip()[:_LONGEST] or _UNNAMED


def _started_by(program: str, arguments: Sequence[str]) -> str | None:
    """Return the server that a launcher starts; None if its arguments do not say."""
    words = iter(arguments)
    with_value = _CONTAINER_WITH_VALUE if program in _CONTAINERS else _WITH_VALUE
    for word in words:
        if word in _CODE and _INTERPRETERS.fullmatch(program):
            return None
        if word == "-m":
            return cut_name(next(words, program))
        if word in with_value:
            next(words, None)
        elif word.startswith("-") or _ASSIGNMENT.match(word) or (program in _MANAGERS and word in _VERBS):
            continue
        elif _INTERPRETERS.fullmatch(basename(word)):
            return _started_by(basename(word), list(words))
        else:
            return _from_path(word)
    return None


def _from_path(word: str) -> str:
    """Return the name of a package, an image or a script."""
    parts = [part for part in word.replace("\\", "/").split("/") if part and part not in {".", ".."}]
    if not parts:
        return _UNNAMED
    last = _EXTENSION.sub("", _without_version(parts[-1]))
    folders = [part for part in parts[:-1] if part.lower() not in _BUILD_FOLDERS and not part.startswith("@")]
    if last.lower() in _GENERIC and folders:
        last = _without_version(folders[-1])
    return cut_name(last)


def _without_version(part: str) -> str:
    """``server@1.2`` and ``image:tag`` without what follows; a scope's own ``@`` stays."""
    head = re.split(r"(?<=.)[@:]|==|>=|\[", part, maxsplit=1)[0]
    return head or part

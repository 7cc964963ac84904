"""
The name of a server from the command that starts it, and whether two commands start the same server. No I/O.

Which options of a program take a value is not known here, so both are guesses: `--name` is better.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from os.path import basename, isabs, normpath
from typing import Final

from assay.judge.masking import masked_command
from assay.model.names import UNNAMED, cut_name
from assay.model.printable import MASK

_CONTAINERS: Final = frozenset({"docker", "podman", "nerdctl"})

_PROJECTS: Final = frozenset({"npm", "pnpm", "yarn", "bun", "uv", "deno", "poetry", "go"})
"""Programs that run a script of the project in some folder, such as `start`, which many projects have."""

_INTERPRETERS: Final = frozenset(
    {"python", "pypy", "node", "nodejs", "tsx", "ts-node", "ruby", "perl", "php", "java", "javaw"}
)
_CODE: Final = frozenset({"-c", "-e", "--eval", "-p", "--print"})
"""Options of an interpreter that are followed by the program itself; of Java, by paths."""

_LAUNCHERS: Final = _CONTAINERS | _PROJECTS | _INTERPRETERS | {"npx", "bunx", "uvx", "pipx"}
"""Programs that say nothing about the server that they start."""

_VERBS: Final = frozenset({"run", "exec", "x", "dlx", "tool"})
"""Words between a launcher and what it runs: ``uv run``, ``npm exec``, ``pnpm dlx``, ``uv tool run``."""

_SWITCH: Final = re.compile(
    r"-(?:[yumitBEISA]|it|IS|jar|-|-(?:yes|quiet|rm|init|interactive|tty|read-only|privileged|no-[a-z-]+))"
)
"""Usual options of launchers that stand alone, or before the server itself."""

_SHELLS: Final = frozenset(
    {"sh", "bash", "dash", "zsh", "fish", "ksh", "cmd", "powershell", "pwsh", "sudo", "ssh", "nice", "timeout", "wsl",
     "xargs", "make", "just"}
)  # fmt: skip
"""Programs that run any command in their arguments."""

_GENERIC: Final = frozenset({"server", "main", "index", "app", "cli", "mcp", "run", "start", "__main__"})
"""File names that many servers have; the folder is used instead."""

_BUILD_FOLDERS: Final = frozenset({"dist", "build", "src", "bin", "out", "lib", "target", "release", "debug"})

_EXTENSION: Final = re.compile(r"\.(py|pyz|m?js|cjs|m?ts|cts|jar|exe|cmd|bat|sh|rb|pl|php)$", re.IGNORECASE)
_PLAIN: Final = re.compile(r"(?=.*[^\W\d_])[\w@.~/\\][\w@.~/\\:+,<>=\[\]-]*")
"""A word with a letter, which can be a package, an image, a module or a path."""
_PATH: Final = re.compile(r"[/\\~]|\.{1,2}(?:[/\\]|$)|[A-Za-z]:[/\\]")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][\w.-]*=(?!=)")
_VERB: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def name_of_command(command: Sequence[str]) -> str:
    """
    Return the name of the server that *command* starts: ``server-filesystem`` for ``npx -y @scope/server-filesystem``.

    It is the program, or what a launcher such as npx, python or docker starts. The name contains nothing that masking
    hides: it is on stderr, in the journal and in the names of folders.
    """
    word = _server(_words(masked_command(command)))
    return UNNAMED if MASK in word else _shortened(word)


def same_server(one: Sequence[str], other: Sequence[str]) -> bool:
    """
    Return whether two commands start the same server, possibly with other arguments, or from another folder.

    A shell may run anything, and a bridge such as mcp-remote leads to the server at its URL: such arguments count.
    """
    ours, theirs = _words(one), _words(other)
    program, first, second = _program(ours[0]), _server(ours), _server(theirs)
    if program != _program(theirs[0]) or program in _SHELLS | _PROJECTS or MASK in program:
        return False
    if _addresses(ours) != _addresses(theirs):
        return False
    if program not in _LAUNCHERS:
        return _verb(ours) == _verb(theirs)
    return first != ours[0] and not _is_folder(first) and _is_same_word(first, second)


def may_be_same_server(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two commands of launchers have servers of the same name, although `same_server` is not sure."""
    ours, theirs = _words(one), _words(other)
    first, second = _server(ours), _server(theirs)
    if first == ours[0] or second == theirs[0]:
        return False
    return _shortened(first) == _shortened(second) and _addresses(ours) == _addresses(theirs)


def _addresses(words: Sequence[str]) -> list[str]:
    return sorted(word for word in words if "://" in word)


def _verb(words: Sequence[str]) -> str:
    """Return the subcommand of a program; empty without one."""
    return words[1] if len(words) > 1 and _VERB.fullmatch(words[1]) else ""


def _is_same_word(one: str, other: str) -> bool:
    """Whether two words are the same package, image or module in any version, or can be the same script."""
    if not _EXTENSION.search(one):
        return _without_version(one) == _without_version(other)
    first, second = sorted((normpath(one), normpath(other)), key=len)
    return first == second or (not isabs(first) and not first.startswith("..") and second.endswith(f"/{first}"))


def _words(command: Sequence[str]) -> list[str]:
    """Return the words of *command* without the variables that env, or a shell, sets before it."""
    words = [word for word in command if word] or [UNNAMED]
    while len(words) > 1 and (basename(words[0]) == "env" or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    return words


def _server(words: Sequence[str]) -> str:
    """
    Return the word that identifies the server: the program, or the plain word that a launcher starts.

    That is the first plain word that is not the value of an option; if each may be one, it is the last.
    """
    program = _program(words[0])
    last = folder = ""
    for before, word in pairwise(words if program in _LAUNCHERS else ()):
        if word in _CODE and program in _INTERPRETERS and not program.startswith("java"):
            return words[0]
        if not _is_plain(word):
            continue
        if _is_folder(word):
            folder = word
        elif not before.startswith("-") or "=" in before or _is_switch(program, before):
            return word
        else:
            last = word
    return last or folder or words[0]


def _is_switch(program: str, option: str) -> bool:
    """Whether *option* of the launcher *program* stands alone. Containers have `-m MEMORY` and `-u USER`."""
    return bool(_SWITCH.fullmatch(option)) and not (program in _CONTAINERS and option in {"-m", "-u"})


def _is_plain(word: str) -> bool:
    if not _PLAIN.fullmatch(word) or _ASSIGNMENT.match(word) or "://" in word or MASK in word:
        return False
    return word not in _VERBS and _program(word) not in _INTERPRETERS


def _is_folder(word: str) -> bool:
    return bool(_PATH.match(word)) and not _EXTENSION.search(word)


def _program(word: str) -> str:
    """Return a program without its folder and extension, and a launcher without its version."""
    program = _EXTENSION.sub("", basename(word.replace("\\", "/")))
    launcher = program.rstrip("0123456789.")
    return launcher if launcher in _LAUNCHERS else program


def _shortened(word: str) -> str:
    """Return the name of a package, an image or a script."""
    parts = [part for part in word.replace("\\", "/").split("/") if part and part not in {".", ".."}]
    if not parts:
        return UNNAMED
    last = _EXTENSION.sub("", _without_version(parts[-1]))
    folders = [part for part in parts[:-1] if part.lower() not in _BUILD_FOLDERS and not part.startswith("@")]
    if last.lower() in _GENERIC and folders:
        last = _without_version(folders[-1])
    return cut_name(last)


def _without_version(part: str) -> str:
    """Return ``server@1.2`` or ``image:tag`` without the version; the ``@`` of a scope stays."""
    head = re.split(r"(?<=.)[@:]|==|>=|\[", part, maxsplit=1)[0]
    return head or part

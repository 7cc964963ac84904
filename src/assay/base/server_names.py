"""Derive the name of a guarded server, for messages, the journal and the lock. No I/O."""

import re
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from os.path import basename, isabs, normpath
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from assay.base.launchers import CONTAINERS, INTERPRETERS, MANAGERS, RUNNERS, VERBS, takes_value
from assay.base.mask import MASK

_LONGEST: Final = 64
"""Maximal characters of a name: it becomes the name of a folder, and is in every record."""

_DIGEST: Final = 8
"""Hexadecimal digits after the name of a folder that differs from the name of its server."""

_UNNAMED: Final = "server"

_PROJECTS: Final = MANAGERS - CONTAINERS - RUNNERS
"""Managers whose argument may be a script of a project, such as `start`, which many projects have."""

_SHELLS: Final = frozenset(
    {"sh", "bash", "dash", "zsh", "fish", "ksh", "cmd", "powershell", "pwsh", "sudo", "ssh", "nice", "timeout", "wsl",
     "xargs", "make", "just"}
)  # fmt: skip
"""Programs that run any command in their arguments."""

_CODE: Final = frozenset({"-c", "-e", "--eval", "-p", "--print"})
"""Options of an interpreter that are followed by the program itself."""

_GENERIC: Final = frozenset({"server", "main", "index", "app", "cli", "mcp", "run", "start", "__main__"})
"""File names that many servers have; the folder is used instead."""

_BUILD_FOLDERS: Final = frozenset({"dist", "build", "src", "bin", "out", "lib", "target", "release", "debug"})

_EXTENSION: Final = re.compile(r"\.(py|pyz|m?js|cjs|m?ts|cts|jar|exe|cmd|bat|sh|rb|pl|php)$", re.IGNORECASE)
_VERB: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class StartedProgram(NamedTuple):
    """The word of a command that identifies its server."""

    launcher: str
    """The program that starts the server, such as npx or python, without folder and version; empty without one."""
    word: str
    """The package, image, script or module that the launcher starts, as it was given; else the program."""
    is_module: bool = False
    certain: bool = True
    """Whether no other word can be the server: False after an unknown option, which may or may not take a value."""


def started(command: Sequence[str]) -> StartedProgram | None:
    """Return the server in *command*; None if it is not clear from the arguments of a launcher."""
    words = _words(command)
    program = _program(words[0])
    if program in RUNNERS | MANAGERS or INTERPRETERS.fullmatch(program):
        return _started_by(program, words[1:])
    return None if MASK in words[0] else StartedProgram("", words[0])


def _words(command: Sequence[str]) -> list[str]:
    """Return the words of *command* without the variables that env, or a shell, sets before it."""
    words = [word for word in command if word] or [_UNNAMED]
    while len(words) > 1 and (basename(words[0]) == "env" or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    return words


def _program(word: str) -> str:
    return _EXTENSION.sub("", basename(word.replace("\\", "/")))


def name_of_command(command: Sequence[str]) -> str:
    """
    Return the name of the server that *command* starts: ``server-filesystem`` for ``npx -y @scope/server-filesystem``.

    The program alone is not enough if it is a launcher such as npx, uvx, python, node or docker. The name contains
    nothing that masking hides: it is on stderr, in the journal and in the names of folders.
    """
    words = _words(command)
    if not _is_harmless(words):
        from assay.core.masked_commands import masked_command  # noqa: PLC0415 - 30 ms at every start of a guard

        words = _words(masked_command(command))
    if basename(words[0]) == "assay" and words[1:2] == ["guard"] and "--" in words:
        return _guarded(words)
    found = started(words)
    if found is None:
        return _UNNAMED if MASK in words[0] else _from_path(words[0])
    return cut_name(found.word) if found.is_module else _from_path(found.word)


_HARMLESS: Final = re.compile(r"-(?:[yumiBEIS]|IS|-yes|-rm|-no-install|-)|[@A-Za-z0-9_./\\][@A-Za-z0-9_./\\+-]{0,100}")
"""Switches without a value, programs, packages and paths."""

_MOST_DIGITS: Final = 2
"""Maximal digits of a word that is certainly not random: ``python3.11`` has three."""


def _is_harmless(words: Sequence[str]) -> bool:
    """Return whether no word up to the server can be a secret, because none follows an option that may have a value."""
    found = started(words)
    last = words[0] if found is None else found.word
    upto = words.index(last) + 1 if last in words else len(words)
    return all(_HARMLESS.fullmatch(word) and sum(map(str.isdigit, word)) <= _MOST_DIGITS for word in words[:upto])


def same_server(one: Sequence[str], other: Sequence[str]) -> bool:
    """
    Return whether two commands start the same server, possibly with other arguments, or from another folder.

    A shell may run anything, and a bridge such as mcp-remote leads to the server at its URL: such arguments count.
    """
    first, second = started(one), started(other)
    if first is None or second is None or not (first.certain and second.certain):
        return False
    if (first.launcher, first.is_module) != (second.launcher, second.is_module):
        return False
    if _addresses(one) != _addresses(other):
        return False
    if first.launcher == "":
        return _same_program(_words(one), _words(other))
    if INTERPRETERS.fullmatch(first.launcher) and not first.is_module:
        return _same_path(first.word, second.word)
    return first.launcher not in _PROJECTS and _without_version(first.word) == _without_version(second.word)


def may_be_same_server(one: Sequence[str], other: Sequence[str]) -> bool:
    """
    Return whether two commands of launchers have servers of the same name, although `same_server` is not sure.

    The scripts of two folders may be one, and a word after an unknown option may be the server or not.
    """
    first, second = started(one), started(other)
    if first is None or second is None or "" in {first.launcher, second.launcher}:
        return False
    return name_of_command(one) == name_of_command(other) and _addresses(one) == _addresses(other)


def same_address(one: str, other: str) -> bool:
    """Return whether two URLs are of the same server, ignoring query, case of the host, and a last slash."""
    try:
        first, second = (urlsplit(each) for each in (one, other))
        ports = [each.port or {"http": 80, "https": 443}.get(each.scheme) for each in (first, second)]
    except ValueError:
        return False
    same = (first.scheme, first.hostname, ports[0]) == (second.scheme, second.hostname, ports[1])
    return same and bool(first.hostname) and first.path.rstrip("/") == second.path.rstrip("/")


def _same_program(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two commands have the same program, and the same subcommand if they have one."""
    program, verb = _program(one[0]), [each[1] if len(each) > 1 else "" for each in (one, other)]
    verbs = [each if _VERB.fullmatch(each) else "" for each in verb]
    return program == _program(other[0]) and program not in _SHELLS and verbs[0] == verbs[1]


def _addresses(command: Sequence[str]) -> list[str]:
    return sorted(word for word in command if "://" in word)


def _same_path(one: str, other: str) -> bool:
    """Whether two paths can be the same file: equal, or a relative one that ends an absolute one."""
    first, second = sorted((normpath(one), normpath(other)), key=len)
    return first == second or (not isabs(first) and not first.startswith("..") and second.endswith(f"/{first}"))


def name_of_url(url: str) -> str:
    """Return the name of the server at *url*: its host and port. A path may hold a secret, so it is left out."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or _UNNAMED, parts.port
    except ValueError:
        return _UNNAMED
    return cut_name(host if port is None else f"{host}:{port}")


def folder_of(name: str) -> str:
    """
    Return *name* as the name of a folder: letters, digits, dots, dashes and underscores, never hidden.

    A changed name gets a digest, so that no two names share a folder. So does a name with a capital: many file
    systems ignore case.
    """
    plain = _UNSAFE.sub("-", name).strip("-.")[:_LONGEST].rstrip(".") or _UNNAMED
    if plain == name == name.lower():
        return plain
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{plain[: _LONGEST - _DIGEST - 1].rstrip('.')}-{digest}"


def cut_name(name: str) -> str:
    """Return *name* printable and at most 64 characters long."""
    shown = name if name.isprintable() else "".join(each for each in name if each.isprintable())
    return shown.strip()[:_LONGEST] or _UNNAMED


def _guarded(words: Sequence[str]) -> str:
    """Return the name of the server behind another guard."""
    options = words[: words.index("--")]
    given = [after for before, after in pairwise(options) if before == "--name"]
    given += [each.partition("=")[2] for each in options if each.startswith("--name=")]
    if given and MASK not in given[-1]:
        return cut_name(given[-1])
    return name_of_command(words[len(options) + 1 :])


def _started_by(program: str, arguments: Sequence[str]) -> StartedProgram | None:
    """Return the server that a launcher starts; None if it is not clear from its arguments."""
    interpreter = INTERPRETERS.fullmatch(program)
    launcher = interpreter[1] if interpreter else program
    is_java = launcher.startswith("java")
    # A word after an unknown option is its value if a plain word follows, else the server. A hidden one may be either.
    doubtful: list[str] = []
    hidden, before = False, ""
    words = iter(arguments)
    for word in words:
        unknown, before = takes_value(launcher, before) is None, word
        if interpreter and not is_java and word in _CODE:
            return None
        if word == "-jar" and is_java:
            return _if_certain(StartedProgram(launcher, next(words, "")), doubtful, hidden)
        if word == "-m" and (interpreter or program == "uv"):
            return _if_certain(StartedProgram(launcher, next(words, ""), is_module=True), doubtful, hidden)
        if takes_value(launcher, word):
            next(words, None)
        elif word.startswith("-") or _ASSIGNMENT.match(word) or (program in MANAGERS and word in VERBS):
            continue
        elif MASK in word:
            hidden = hidden or not unknown
        elif unknown:
            doubtful.append(word)
        elif INTERPRETERS.fullmatch(basename(word)):
            return _if_certain(_started_by(basename(word), list(words)), doubtful, hidden)
        else:
            return _if_certain(StartedProgram(launcher, word), doubtful, hidden)
    return _if_certain(StartedProgram(launcher, doubtful[0]), doubtful[1:], hidden) if doubtful else None


def _if_certain(found: StartedProgram | None, others: Sequence[str], hidden: bool) -> StartedProgram | None:
    """Return *found*, certain only if no other word can be the server; None if it is hidden or missing."""
    if found is None or not found.word or MASK in found.word:
        return None
    return found._replace(certain=found.certain and not others and not hidden)


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
    """Return ``server@1.2`` or ``image:tag`` without the version; the ``@`` of a scope stays."""
    head = re.split(r"(?<=.)[@:]|==|>=|\[", part, maxsplit=1)[0]
    return head or part

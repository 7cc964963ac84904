"""
The files with settings: the one to read, and those that the operator has accepted, by path and content.

The list of accepted files is a file of this user, in the state directory. A list that another user can write is
ignored, because that user could accept any file.
"""

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

from assay.model.atomic_file import replace_file
from assay.model.errors import SettingsError
from assay.settings.state_directory import state_directory

FILE: Final = "assay.toml"
SHARED_FILE: Final = "pyproject.toml"
"""The file with `[tool.assay]`, read if there is no assay.toml."""

CONFIG: Final = "ASSAY_CONFIG"
"""The variable with the path of the settings file."""

Log = Callable[[str], None]
"""Function that gets a line about the file in use, and about ignored sources."""

LONGEST: Final = 1 << 18
"""Maximal bytes of a file found in the working directory. A thousand API keys fit in half of it."""

_PARTS: Final = 32
"""Maximal parts of a dotted key; a setting has five. tomllib's memory grows with their square: 40 GB for 100,000."""

_LONG_KEY: Final = rb"""(?<![\w"'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % _PARTS


class FoundSettings(NamedTuple):
    """A file with settings."""

    table: Any
    """The settings, not yet checked."""
    place: str
    """The prefix of a key in a message."""
    path: str
    """The absolute path of the file."""
    content: bytes
    named: bool
    """Whether an option or a variable named the file; otherwise it was found in the working directory."""


def found_file(
    environ: Mapping[str, str], cwd: str | os.PathLike[str], file: str | None, log: Log, *, shared: bool = True
) -> FoundSettings | None:
    """
    Return the settings file: the named one, else assay.toml, else our table in pyproject.toml, else None.

    Without *shared*, `[tool.assay]` of a shared file that was found is not used, and *log* gets a line about it.
    """
    named = file or environ.get(CONFIG)
    if named:
        content = _content(cwd, named, asked_by="--config" if file else CONFIG) or b""
        return _parsed(cwd, named, content, named=True)
    own, project = _content(cwd, FILE), _content(cwd, SHARED_FILE)
    has_table = project is not None and b"tool.assay" in project
    if own is not None:
        if has_table:
            log(f"{SHARED_FILE}: [tool.assay] is ignored, because {FILE} exists")
        return _parsed(cwd, FILE, own)
    if not shared:
        if has_table:
            log(f"{SHARED_FILE}: [tool.assay] is ignored by this command; use {FILE} or --config")
        return None
    # Usually the file of another tool: without our table there is nothing to read and no error to report.
    return _parsed(cwd, SHARED_FILE, project) if project is not None and b"assay" in project else None


def _content(cwd: str | os.PathLike[str], name: str, *, asked_by: str = "") -> bytes | None:
    """Return the content of the file; None if a file that was not named is missing."""
    try:
        # Checked before opening: a link in a checkout may lead to a device or a pipe. Opening one can block, or
        # consume the client's messages. A file that the operator names is not checked.
        if not asked_by and not stat.S_ISREG(os.stat(os.path.join(cwd, name)).st_mode):
            raise SettingsError(f"{name}: not a regular file")
        with open(os.path.join(cwd, name), "rb") as file:
            return file.read() if asked_by else file.read(LONGEST + 1)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not asked_by:
            return None
        raise SettingsError(f"{asked_by} {name}: {error.strerror}".lstrip()) from None


def _parsed(cwd: str | os.PathLike[str], name: str, content: bytes, *, named: bool = False) -> FoundSettings | None:
    """Parse the settings in *content*; None for a shared file without our table."""
    if not named and len(content) > LONGEST:
        raise SettingsError(f"{name}: longer than {LONGEST:,} bytes; --config reads a file of any length")
    if not named and re.search(_LONG_KEY, content):
        raise SettingsError(f"{name}: a key has more than {_PARTS} parts")
    import tomllib  # noqa: PLC0415 - 2 ms, which only a file costs

    try:
        table = tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise SettingsError(f"{name}: expected UTF-8") from None
    except ValueError as error:
        # Usually a TOMLDecodeError; a number with thousands of digits raises a plain ValueError.
        raise SettingsError(f"{name}: not valid TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"{name}: not valid TOML: nested too deeply") from None
    path = os.path.abspath(os.path.join(cwd, name))
    if os.path.basename(name) != SHARED_FILE:
        return FoundSettings(table, f"{name}: ", path, content, named)
    tools = table.get("tool")
    if not isinstance(tools, dict) or "assay" not in tools:
        return None
    return FoundSettings(tools["assay"], f"{name}: tool.assay.", path, content, named)


# ── accepted files ───────────────────────────────────────────────────────────────────────────────────────────────────

TRUSTED: Final = "trusted.json"
"""The list, below the state directory."""

_FORMAT: Final = 1

Standing = Literal["trusted", "changed", "unknown"]
"""Whether a file was accepted as it is, with other content, or never."""

Hashes = dict[str, str]
"""The hash of the accepted content by the path of the file."""


def place_of(path: str | os.PathLike[str]) -> str:
    """
    Return the key of a file in the list: its name in the real path of its directory.

    A link at the end is not followed: an untrusted directory could link to a file that was accepted for another one.
    """
    directory, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(directory), name)


def hash_of(content: bytes) -> str:
    """Return the hash of the content of a file."""
    return f"sha256:{sha256(content).hexdigest()}"


def standing(environ: Mapping[str, str], path: str, content: bytes) -> Standing:
    """Whether *content* was accepted for the file at *path*. Raises `SettingsError`."""
    known = accepted(environ).get(place_of(path))
    return "unknown" if known is None else "trusted" if known == hash_of(content) else "changed"


def accepted(environ: Mapping[str, str]) -> Hashes:
    """Return all accepted files. Raises `SettingsError` for a list that cannot be read, or that others can write."""
    directory = state_directory(environ)
    if directory is None:
        return {}
    path = directory / TRUSTED
    try:
        with path.open("rb") as file:
            status, content = os.fstat(file.fileno()), file.read()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    # On Windows the access list of the user's profile protects the file; `st_mode` does not show it.
    if hasattr(os, "geteuid") and (status.st_uid not in (os.geteuid(), 0) or status.st_mode & 0o022):
        raise SettingsError(f"{path}: another user owns it or can write it; remove it, and run assay trust again")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    files = document.get("files") if isinstance(document, dict) and document.get("format") == _FORMAT else None
    if not isinstance(files, dict) or not all(isinstance(each, str) for each in files.values()):
        raise SettingsError(f"{path}: not a list of trusted files; remove it, and run assay trust again")
    return files


def remember(environ: Mapping[str, str], path: str, content: bytes) -> None:
    """Accept *content* for the file at *path*. Raises `SettingsError`."""
    _write(environ, {**accepted(environ), place_of(path): hash_of(content)})


def forget(environ: Mapping[str, str], path: str) -> bool:
    """Remove the file at *path* from the list; return whether it was there. Raises `SettingsError`."""
    known = accepted(environ)
    there = known.pop(place_of(path), None) is not None
    if there:
        _write(environ, known)
    return there


def _write(environ: Mapping[str, str], files: Hashes) -> None:
    directory = state_directory(environ)
    if directory is None:
        raise SettingsError("cannot store the trust: HOME is not set, or is not an absolute path")
    text = json.dumps({"format": _FORMAT, "files": files}, indent=2, sort_keys=True)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(directory / TRUSTED, f"{text}\n".encode(), rights=0o600)
    except OSError as error:
        raise SettingsError(f"cannot write {directory / TRUSTED}: {error.strerror}") from None

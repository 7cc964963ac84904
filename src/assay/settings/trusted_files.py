"""
The settings files that the operator has accepted, by path and content.

The list is a file of this user, in the state directory. A list that another user can write is ignored, because that
user could accept any file.
"""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from assay.base.atomic_file import replace_file
from assay.base.errors import SettingsError
from assay.settings.state_directory import state_directory

NAME: Final = "trusted.json"

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
    path = directory / NAME
    try:
        with path.open("rb") as file:
            status, content = os.fstat(file.fileno()), file.read()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    if not _is_own(status):
        raise SettingsError(f"{path}: another user owns it or can write it; remove it, and run assay trust again")
    return _parsed(path, content)


def _is_own(status: os.stat_result) -> bool:
    # On Windows the access list of the user's profile protects the file; `st_mode` does not show it.
    return not hasattr(os, "geteuid") or (status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022)


def _parsed(path: Path, content: bytes) -> Hashes:
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
        replace_file(directory / NAME, f"{text}\n".encode(), rights=0o600)
    except OSError as error:
        raise SettingsError(f"cannot write {directory / NAME}: {error.strerror}") from None

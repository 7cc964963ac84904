"""
The JSON files under one directory: found, read and named. Knows neither schemas nor examples.

Everything is read here and once, so that no path from a message ever reaches the file system.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from assay.base.verdict import Violation
from assay.ladder import syntax

Log = Callable[[str], None]

FILE_BYTES = 16 << 20
"""Bytes of one file: sixteen times what a request may have, and still nothing that fills the memory by mistake."""

ENDINGS = (".schema.json", ".json")
"""What a file name may end in, the longer one first: `name` is the rest."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that holds one JSON object."""

    path: str
    """As listings show it: relative to the working directory if below it, else as the directory was given."""
    inside: str
    """Relative to its directory."""
    uri: str
    """Its ``file:`` URI."""
    text: bytes
    """The object as compact JSON. Kept as text, since whoever gets a value may change it."""

    @property
    def value(self) -> dict[str, Any]:
        """The object, a new one each time."""
        value: dict[str, Any] = syntax.read_exactly(self.text, orjson.loads(self.text))
        return value

    @property
    def base(self) -> str:
        """The file's own name."""
        return self.inside.rpartition("/")[2]


def read_directory(given: str, cwd: str | os.PathLike[str], log: Log) -> list[File]:
    """Every usable file under *given*, in the order of their paths; a line to *log* for each that is left out."""
    directory = os.path.join(cwd, given)
    if not os.path.isdir(directory):
        log(f"{given}: no such directory")
        return []
    shown = _shown(given, cwd)
    files = [_read(directory, shown, inside, log) for inside in _walked(directory, shown, log)]
    return sorted((file for file in files if file is not None), key=lambda file: file.path)


def name_of(base: str) -> str:
    """A file name without its ending."""
    ending = next((ending for ending in ENDINGS if base.endswith(ending)), "")
    return base.removesuffix(ending)


def _shown(given: str, cwd: str | os.PathLike[str]) -> str:
    """*given* as listings show it, with ``/`` on every platform."""
    whole = Path(os.path.abspath(os.path.join(cwd, given)))
    here = Path(os.path.abspath(cwd))
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) else Path(given).as_posix()


def _walked(directory: str, shown: str, log: Log) -> Iterator[str]:
    """The paths under *directory* of what is called like a file of ours. Symbolic links to directories are left."""

    def unreadable(error: OSError) -> None:
        log(f"{shown}: a directory in it was skipped, {error.strerror}")

    for folder, folders, names in os.walk(directory, onerror=unreadable):
        inside = Path(folder).relative_to(directory)
        folders.sort()
        for name in [name for name in folders if name.startswith(("_", "."))]:
            # `_skip` is where the reference data keeps what matches no schema; its own checks leave it out too.
            folders.remove(name)
            log(f"{_joined(shown, (inside / name).as_posix())}: left out, as are all directories named _… or .…")
        yield from ((inside / name).as_posix() for name in sorted(names) if _is_ours(name))


def _is_ours(name: str) -> bool:
    return name.endswith(".json") and name_of(name) != "" and not name.startswith(".")


def _read(directory: str, shown: str, inside: str, log: Log) -> File | None:
    path = _joined(shown, inside)
    if not path.isprintable():
        # Bytes that are no UTF-8 could not be listed, and control characters would be acted upon where logs are read.
        log(f"{path!a}: skipped, a name that cannot be shown")
        return None
    real = os.path.realpath(os.path.join(directory, inside))
    if not Path(real).is_relative_to(os.path.realpath(directory)):
        log(f"{path}: skipped, a link that leads out of the directory")
        return None
    try:
        content = _content(real)
    except OSError as error:
        log(f"{path}: skipped, {error.strerror or type(error).__name__}")
        return None
    value = syntax.read(content) if isinstance(content, bytes) else content
    if isinstance(content, str) or not isinstance(value, dict):
        log(f"{path}: skipped, {_why(value)}")
        return None
    # Where the file stands by name, not where a link leads: references are written for the names.
    uri = Path(os.path.abspath(os.path.join(directory, inside))).as_uri()
    return File(path, inside, uri, syntax.write(syntax.read_exactly(content, value)))


def _content(path: str) -> bytes | str:
    """What the file holds, or why it was not read: a pipe would be waited for, a device might never end."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        return "no regular file"
    if found.st_size > FILE_BYTES:
        return f"longer than {FILE_BYTES:,} bytes"
    with open(path, "rb") as file:
        return file.read(FILE_BYTES)


def _why(value: Any) -> str:
    if isinstance(value, Violation):
        return f"no JSON: expected {value.expected}, found {value.found} [{value.rule}]"
    return value if isinstance(value, str) else "no JSON object"


def _joined(shown: str, inside: str) -> str:
    return inside if shown == "." else f"{shown.rstrip('/')}/{inside}"

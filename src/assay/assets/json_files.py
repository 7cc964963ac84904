"""
Find and read the JSON files in a directory. Knows neither schemas nor examples.

Everything is read here once, so that no path from a message ever reaches the file system.
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
"""Maximal bytes of one file: sixteen times that of a request, but not enough to fill the memory."""

ENDINGS = (".schema.json", ".json")
"""Suffixes of file names, the longer one first: `name` is the rest."""


@dataclass(frozen=True, slots=True)
class File:
    """A file with one JSON object."""

    path: str
    """The path for listings: relative to the working directory if below it, else as given."""
    inside: str
    """Relative to its directory."""
    uri: str
    """Its ``file:`` URI."""
    text: bytes
    """The object as compact JSON. Text, because a caller could change a value."""

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
    """Return every usable file below *given*, sorted by path; each skipped file is logged."""
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
    """Return *given* for listings, with ``/`` on every platform."""
    whole = Path(os.path.abspath(os.path.join(cwd, given)))
    here = Path(os.path.abspath(cwd))
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) else Path(given).as_posix()


def _walked(directory: str, shown: str, log: Log) -> Iterator[str]:
    """Yield the paths below *directory* with our suffixes. Symbolic links to directories are not followed."""

    def unreadable(error: OSError) -> None:
        log(f"{shown}: a directory in it was skipped, {error.strerror}")

    for folder, folders, names in os.walk(directory, onerror=unreadable):
        inside = Path(folder).relative_to(directory)
        folders.sort()
        for name in [name for name in folders if name.startswith(("_", "."))]:
            # In the reference data, `_skip` has files that match no schema; its own checks skip it, too.
            folders.remove(name)
            log(f"{_joined(shown, (inside / name).as_posix())}: left out, as are all directories named _… or .…")
        yield from ((inside / name).as_posix() for name in sorted(names) if _is_ours(name))


def _is_ours(name: str) -> bool:
    return name.endswith(".json") and name_of(name) != "" and not name.startswith(".")


def _read(directory: str, shown: str, inside: str, log: Log) -> File | None:
    path = _joined(shown, inside)
    if not path.isprintable():
        # Names that are not UTF-8 cannot be listed, and control characters would affect terminals.
        log(f"{path!a}: skipped, a name that cannot be shown")
        return None
    real = os.path.realpath(os.path.join(directory, inside))
    if not Path(real).is_relative_to(os.path.realpath(directory)):
        log(f"{path}: skipped, a link that leads out of the directory")
        return None
    why = "not a JSON object"
    try:
        content = _content(real)
        value = syntax.read(content)
        if isinstance(value, dict):
            # The path of the name, not of a link's target: references use the names.
            uri = Path(os.path.abspath(os.path.join(directory, inside))).as_uri()
            return File(path, inside, uri, syntax.write(syntax.read_exactly(content, value)))
        if isinstance(value, Violation):
            why = f"not JSON: expected {value.expected}, found {value.found} [{value.rule}]"
    except OSError as error:
        why = error.strerror or str(error)
    log(f"{path}: skipped, {why}")
    return None


def _content(path: str) -> bytes:
    """Return the content of the file. Raises `OSError`, also for a pipe, which would block, or a device."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError("not a regular file")
    if found.st_size > FILE_BYTES:
        raise OSError(f"longer than {FILE_BYTES:,} bytes")
    with open(path, "rb") as file:
        return file.read(FILE_BYTES)


def _joined(shown: str, inside: str) -> str:
    return inside if shown == "." else f"{shown.rstrip('/')}/{inside}"

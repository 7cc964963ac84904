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

from assay.judge import syntax
from assay.model.verdict import Violation

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
    whole, here = Path(os.path.abspath(directory)), Path(os.path.abspath(cwd))
    # For listings, with `/` on every platform.
    shown = whole.relative_to(here).as_posix() if whole.is_relative_to(here) else Path(given).as_posix()
    prefix = "" if shown == "." else f"{shown.rstrip('/')}/"
    files = []
    for inside in _walked(directory, shown, prefix, log):
        path = prefix + inside
        if not path.isprintable():
            # Names that are not UTF-8 cannot be listed, and control characters would affect terminals.
            log(f"{path!a}: skipped, a name that cannot be shown")
            continue
        try:
            files.append(_read(directory, path, inside))
        except OSError as error:
            log(f"{path}: skipped, {error.strerror or error}")
        except ValueError as error:
            log(f"{path}: skipped, {error}")
    return sorted(files, key=lambda file: file.path)


def name_of(base: str) -> str:
    """A file name without its ending."""
    ending = next((ending for ending in ENDINGS if base.endswith(ending)), "")
    return base.removesuffix(ending)


def _walked(directory: str, shown: str, prefix: str, log: Log) -> Iterator[str]:
    """Yield the paths below *directory* with our suffixes. Symbolic links to directories are not followed."""

    def unreadable(error: OSError) -> None:
        log(f"{shown}: a directory in it was skipped, {error.strerror}")

    for folder, folders, names in os.walk(directory, onerror=unreadable):
        inside = Path(folder).relative_to(directory)
        folders.sort()
        for name in [name for name in folders if name.startswith(("_", "."))]:
            # In the reference data, `_skip` has files that match no schema; its own checks skip it, too.
            folders.remove(name)
            log(f"{prefix}{(inside / name).as_posix()}: left out, as are all directories named _… or .…")
        for name in sorted(names):
            if name.endswith(".json") and name_of(name) and not name.startswith("."):
                yield (inside / name).as_posix()


def _read(directory: str, path: str, inside: str) -> File:
    """Read one file. Raises `OSError`, or `ValueError` with the reason, if it is unusable."""
    named = os.path.join(directory, inside)
    real = os.path.realpath(named)
    if not Path(real).is_relative_to(os.path.realpath(directory)):
        raise ValueError("a link that leads out of the directory")
    found = os.stat(real)
    # A pipe would block, and a device may have no end.
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("not a regular file")
    if found.st_size > FILE_BYTES:
        raise ValueError(f"longer than {FILE_BYTES:,} bytes")
    with open(real, "rb") as file:
        content = file.read(FILE_BYTES)
    value = syntax.read(content)
    if isinstance(value, Violation):
        raise ValueError(f"not JSON: expected {value.expected}, found {value.found} [{value.rule}]")
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    # The path of the name, not of a link's target: references use the names.
    uri = Path(os.path.abspath(named)).as_uri()
    return File(path, inside, uri, syntax.write(syntax.read_exactly(content, value)))

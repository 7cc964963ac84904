"""The files that names on the command line of `assay check` stand for: directories and patterns are searched."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from glob import glob
from typing import NamedTuple

from assay.records.importers.importer_table import recognised
from assay.records.lines import is_url, size_of_url, unpacked
from assay.records.run_files import LATEST, files_of, is_run, runs_in
from assay.settings.state_directory import FLIGHTS

_DEEPEST = 16
"""Levels of directories below the one that was given."""

_SUFFIXES = (".jsonl", ".har")
"""How recordings end. Such a file is judged, or reported."""

_MAYBE = (".log", ".json", ".ndjson", ".txt")
"""How other logs end. Such a file is judged only if it is recognized: a directory has many files."""

_PACKED = (".gz", ".zst")
"""How compressed files end."""


class Piece(NamedTuple):
    """A name of a file or run to judge."""

    name: str
    """A path, the id of a run, or - for standard input."""
    is_run: bool = False
    """Whether it is the first file of a run, which stands for all files of the run."""


class CheckedFile(NamedTuple):
    """A file to judge, or a run of a journal in several files. It can be pickled."""

    name: str
    """Its name as it was given."""
    path: str
    shown: str
    """Its name for people: relative if it is below the working directory, without invalid bytes."""
    is_run: bool = False
    """Whether it is the first file of a run, which stands for all files of the run."""
    size: int = 0
    """The bytes to read; 0 if they are not known."""
    error: str | None = None
    """Why it cannot be opened."""


class ClusterError(Exception):
    """A cluster cannot be used for the files; the message has the reason."""


class FoundEvidence(NamedTuple):
    """The pieces that a name on the command line stands for."""

    pieces: list[Piece]
    passed_over: list[str]
    """Messages about files that cannot be judged, with the reason."""


def found(name: str) -> FoundEvidence:
    """
    Return the pieces in the directory *name* and below it; *name* itself if it is a file or the id of a run.

    Of a pattern such as ``logs/*.log``, which a shell did not expand, return the pieces of all names that match.
    """
    result = FoundEvidence([], [])
    if os.path.isdir(name):
        _search(name, 0, result)
    elif _is_pattern(name):
        for each in _matches(name):
            pieces, passed_over = found(each)
            result.pieces.extend(pieces)
            result.passed_over.extend(passed_over)
        if not result.pieces and not result.passed_over:
            result.passed_over.append(f"{name}: no file matches")
    else:
        result.pieces.append(Piece(name))
    return result


def is_read_once(name: str) -> bool:
    """Return whether the bytes of *name* are there only once: standard input, or a pipe."""
    if name == "-":
        return True
    if is_url(name):
        return False
    try:
        return not stat.S_ISREG(os.stat(name).st_mode)
    except OSError:
        # Who reads it reports the error.
        return False


def _is_pattern(name: str) -> bool:
    return name != "-" and not is_url(name) and not os.path.lexists(name) and any(each in name for each in "*?[")


def _matches(pattern: str) -> list[str]:
    return sorted(glob(pattern, recursive=True))


def _search(directory: str, depth: int, result: FoundEvidence) -> None:
    try:
        with os.scandir(directory) as entries:
            listed = sorted(entries, key=lambda each: each.name)
        runs = _runs(directory)
    except OSError as error:
        result.passed_over.append(f"{directory}: {error.strerror}")
        return
    result.pieces.extend(runs)
    for each in listed:
        if runs and each.name == FLIGHTS:
            # The messages of flights are in the runs beside them, and would count twice.
            continue
        if each.is_dir():
            _enter(each, depth, result)
        elif _is_recording(each):
            _take(each, result)


def _is_recording(entry: os.DirEntry[str]) -> bool:
    """Return whether a file in a directory is judged."""
    name = entry.name.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    if name.endswith(_SUFFIXES):
        return True
    return name.endswith(_MAYBE) and entry.is_file() and _is_recognized(entry.path)


_SEARCHED = 64 << 10
"""Bytes at the start of a file to recognize its format by, if it is one of many."""


def _is_recognized(path: str) -> bool:
    try:
        with open(path, "rb") as file, unpacked(file) as readable:
            head = readable.read(_SEARCHED)
    except OSError:
        return False
    return recognised(head, path) is not None


def _runs(directory: str) -> list[Piece]:
    """Return the runs of a journal in *directory*, without empty ones."""
    copy = os.path.join(directory, LATEST)
    # A copy of the directory may have the file itself in place of the link.
    copied = [Piece(copy)] if os.path.isfile(copy) and not os.path.islink(copy) else []
    runs = runs_in(directory)
    filled = [each for each in runs if each.size] or runs
    return [*copied, *(Piece(each.path, is_run=True) for each in filled)]


def _enter(entry: os.DirEntry[str], depth: int, result: FoundEvidence) -> None:
    if entry.is_symlink():
        # A link may leave the directory, or form a loop.
        result.passed_over.append(f"{entry.path}: a symbolic link to a directory is not followed")
    elif depth >= _DEEPEST:
        result.passed_over.append(f"{entry.path}: more than {_DEEPEST} levels of directories")
    else:
        _search(entry.path, depth + 1, result)


def _take(entry: os.DirEntry[str], result: FoundEvidence) -> None:
    """Add a file, unless it belongs to a run: the run stands for all of its files."""
    if not entry.is_file():
        result.passed_over.append(f"{entry.path}: not a regular file")
    elif not is_run(entry.name):
        result.pieces.append(Piece(entry.path))
    elif entry.is_symlink():
        result.passed_over.append(f"{entry.path}: a symbolic link to a run is not followed")


def checked_files(
    pieces: Sequence[Piece], resolve: Callable[[str], tuple[str, bool]], *, is_absolute: bool
) -> list[CheckedFile]:
    """
    Return the files behind *pieces*. *resolve* returns the path behind a name, and whether it stands for a run.

    *is_absolute* is for processes with another working directory.
    """
    found = []
    for piece in pieces:
        try:
            path, is_run = (piece.name, True) if piece.is_run else resolve(piece.name)
            if is_absolute and path != "-" and not is_url(path):
                path = os.path.abspath(path)
            found.append(CheckedFile(piece.name, path, shown_path(piece.name), is_run, _size(path, is_run=is_run)))
        except OSError as error:
            why = error.strerror or "cannot be read"
            found.append(CheckedFile(piece.name, piece.name, shown_path(piece.name), error=why))
    return found


def _size(path: str, *, is_run: bool) -> int:
    if path == "-":
        return 0
    try:
        if is_url(path):
            return size_of_url(path) or 0
        return sum(os.path.getsize(each) for each in (files_of(path) if is_run else (path,)))
    except OSError:
        # The process that reads it reports the error.
        return 0


def shown_path(name: str) -> str:
    """Return the path of a file as text: relative if it is below the working directory, without invalid bytes."""
    if os.path.isabs(name):
        below = os.path.relpath(name)
        name = name if below.startswith(os.pardir) else below
    return os.fsencode(name).decode(errors="replace")

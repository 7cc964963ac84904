"""Find what to judge in a directory and below it: every recording, flight and run of a journal."""

# ruff: noqa: PLC0415  each kind of file imports only what it needs

from __future__ import annotations

import os
from typing import NamedTuple

_DEEPEST = 16
"""Levels of directories below the one that was given."""

_SUFFIX = ".jsonl"


class Piece(NamedTuple):
    """One file or run to judge."""

    name: str
    """A path, the id of a run, or - for standard input."""
    is_run: bool = False
    """Whether it is the first file of a run, which stands for all files of the run."""


class FoundEvidence(NamedTuple):
    """The pieces that a name on the command line stands for."""

    pieces: list[Piece]
    passed_over: list[str]
    """Messages about files that cannot be judged, with the reason."""


def found(name: str) -> FoundEvidence:
    """Return the pieces in the directory *name* and below it; *name* itself if it is not a directory."""
    result = FoundEvidence([], [])
    if os.path.isdir(name):
        _search(name, 0, result)
    else:
        result.pieces.append(Piece(name))
    return result


def _search(directory: str, depth: int, result: FoundEvidence) -> None:
    try:
        with os.scandir(directory) as entries:
            listed = sorted(entries, key=lambda each: each.name)
        result.pieces.extend(_runs(directory))
    except OSError as error:
        result.passed_over.append(f"{directory}: {error.strerror}")
        return
    for each in listed:
        if each.is_dir():
            _enter(each, depth, result)
        elif each.name.endswith(_SUFFIX):
            _take(each, result)


def _runs(directory: str) -> list[Piece]:
    """Return the runs of a journal in *directory*, without empty ones."""
    from assay.records.journal.run_files import LATEST
    from assay.records.journal.runs import runs_in

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
    from assay.records.journal.run_files import is_run

    if not entry.is_file():
        result.passed_over.append(f"{entry.path}: not a regular file")
    elif not is_run(entry.name):
        result.pieces.append(Piece(entry.path))
    elif entry.is_symlink():
        result.passed_over.append(f"{entry.path}: a symbolic link to a run is not followed")

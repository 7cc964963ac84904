"""The files that names on the command line of `assay check` stand for: directories and patterns are searched."""

from __future__ import annotations

import os
import stat
from glob import glob
from typing import Final, NamedTuple

from assay.cli.journal_choice import Chosen, Directories, chosen
from assay.records.importers.importer_table import recognised
from assay.records.lines import is_url, size_of_url, unpacked
from assay.records.run_files import LATEST, files_of, is_run, runs_in
from assay.settings.state_directory import FLIGHTS

_DEEPEST: Final = 16
"""Levels of directories below the one that was given."""

_SUFFIXES: Final = (".jsonl", ".har")
"""How recordings end. Such a file is judged, or reported."""

_MAYBE: Final = (".log", ".json", ".ndjson", ".txt")
"""How other logs end. Such a file is judged only if it is recognized: a directory has many files."""

_PACKED: Final = (".gz", ".zst")
"""How compressed files end."""

_SEARCHED: Final = 64 << 10
"""Bytes at the start of a file to recognize its format by, if it is one of many."""


class FoundFiles:
    """The files and runs that names on the command line stand for."""

    def __init__(self) -> None:
        self.chosen: list[Chosen] = []
        self.passed_over: list[str] = []
        """Messages about files that cannot be judged, with the reason."""

    def add(self, name: str, otherwise: str = "") -> None:
        """
        Add what *name* stands for; if that is nothing, the message *otherwise*.

        A directory is searched, with those below it. Any other name is that of a file or the id of a run. A pattern
        such as ``logs/*.log``, which a shell did not expand, stands for all names that match.
        """
        before = len(self)
        if os.path.isdir(name):
            self._search(name, 0)
        elif name != "-" and not is_url(name) and not os.path.lexists(name) and any(each in name for each in "*?["):
            for each in sorted(glob(name, recursive=True)):
                self.add(each)
            otherwise = f"{name}: no file matches"
        else:
            self.chosen.append(Chosen(name))
        if len(self) == before and otherwise:
            self.passed_over.append(otherwise)

    def __len__(self) -> int:
        return len(self.chosen) + len(self.passed_over)

    def _search(self, directory: str, depth: int) -> None:
        try:
            with os.scandir(directory) as entries:
                listed = sorted(entries, key=lambda each: each.name)
            runs = _runs(directory)
        except OSError as error:
            self.passed_over.append(f"{directory}: {error.strerror}")
            return
        self.chosen += runs
        for each in listed:
            if runs and each.name == FLIGHTS:
                # The messages of flights are in the runs beside them, and would count twice.
                continue
            if each.is_dir():
                self._enter(each, depth)
            elif _is_recording(each):
                self._take(each)

    def _enter(self, entry: os.DirEntry[str], depth: int) -> None:
        if entry.is_symlink():
            # A link may leave the directory, or form a loop.
            self.passed_over.append(f"{entry.path}: a symbolic link to a directory is not followed")
        elif depth >= _DEEPEST:
            self.passed_over.append(f"{entry.path}: more than {_DEEPEST} levels of directories")
        else:
            self._search(entry.path, depth + 1)

    def _take(self, entry: os.DirEntry[str]) -> None:
        """Add a file, unless it belongs to a run: the run stands for all of its files."""
        if not entry.is_file():
            self.passed_over.append(f"{entry.path}: not a regular file")
        elif not is_run(entry.name):
            self.chosen.append(Chosen(entry.path))
        elif entry.is_symlink():
            self.passed_over.append(f"{entry.path}: a symbolic link to a run is not followed")


def _runs(directory: str) -> list[Chosen]:
    """Return the runs of a journal in *directory*, without empty ones."""
    copy = os.path.join(directory, LATEST)
    # A copy of the directory may have the file itself in place of the link.
    copied = [Chosen(copy)] if os.path.isfile(copy) and not os.path.islink(copy) else []
    runs = runs_in(directory)
    filled = [each for each in runs if each.size] or runs
    return [*copied, *(Chosen(each.path, is_run=True) for each in filled)]


def _is_recording(entry: os.DirEntry[str]) -> bool:
    """Return whether a file in a directory is judged."""
    name = entry.name.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    if name.endswith(_SUFFIXES):
        return True
    if not name.endswith(_MAYBE) or not entry.is_file():
        return False
    try:
        with open(entry.path, "rb") as file, unpacked(file) as readable:
            return recognised(readable.read(_SEARCHED), entry.path) is not None
    except OSError:
        return False


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


def checked_file(given: Chosen, directories: Directories, *, is_absolute: bool) -> CheckedFile:
    """Return the file behind a name. *is_absolute* is for processes with another working directory."""
    name = given.name
    try:
        path, is_run = resolved(given, directories)
    except OSError as error:
        return CheckedFile(name, name, shown_path(name), error=error.strerror or "cannot be read")
    if is_absolute and path != "-" and not is_url(path):
        path = os.path.abspath(path)
    return CheckedFile(name, path, shown_path(name), is_run, _size(path, is_run=is_run))


def resolved(given: Chosen, directories: Directories) -> Chosen:
    """Return the file or run that a name stands for, which may be the id of a run. Raises `OSError`."""
    if given.is_run or given.name == "-" or os.path.isfile(given.name) or is_url(given.name):
        return given
    return chosen(given.name, directories)


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

"""Choose the journal that a command reads: the given file, directory or run, else the newest run that is not empty."""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from assay.cli import program
from assay.model.names import folder_of
from assay.model.printable import plain
from assay.records import run_files
from assay.records.run_files import JournalRun
from assay.records.tally import servers_in
from assay.settings import JournalSettings, load
from assay.settings.sections import ASSETS_JOURNAL, AUTO, OFF
from assay.settings.state_directory import servers_directory
from assay.spec.schema import suggestion

say = program.speaker("journal")


class Chosen(NamedTuple):
    """A journal to read, or another file to judge."""

    name: str
    """The name that `Pages` opens, or the id of a run."""
    is_run: bool = False
    """Whether it is the first file of a run, which stands for all files of the run."""


class Directories:
    """The directories to search for journals."""

    def __init__(self, settings: JournalSettings) -> None:
        named = os.environ.get("ASSAY_JOURNAL") or settings.directory
        # A journal that is off now may have been written before, in the usual place.
        self.named = None if named.lower() in (OFF, AUTO) else named
        """The directory that ASSAY_JOURNAL or ``journal.directory`` names; None if neither names one."""
        self._only: list[str] | None = None
        self.servers = servers_directory(os.environ)
        """The directory with the folders of guarded servers."""

    def usual(self) -> list[str]:
        """Return the directory that is configured, else those of guarded servers and of the asset server."""
        return [self.named] if self.named is not None else self._unnamed()

    def every(self) -> list[str]:
        """Return all known directories."""
        if self._only is not None:
            return self._only
        named = [self.named] if self.named is not None else []
        return [*named, *(each for each in self._unnamed() if each not in named)]

    def _unnamed(self) -> list[str]:
        folders: list[str] = []
        if self.servers is not None:
            with suppress(OSError), os.scandir(self.servers) as found:
                folders = sorted(each.path for each in found if each.is_dir(follow_symlinks=False))
        return [*folders, *([ASSETS_JOURNAL] if os.path.isdir(ASSETS_JOURNAL) else [])]

    def only(self, directories: list[str]) -> None:
        """Restrict the search to *directories*."""
        self._only = directories

    def where(self) -> str:
        """Return the searched directories, for messages."""
        if self.named is not None:
            return self.named
        assets = ASSETS_JOURNAL if os.path.isdir(ASSETS_JOURNAL) or self.servers is None else None
        return " and ".join(each for each in (self.servers, assets) if each)


def directories_of(args: argparse.Namespace) -> Directories:
    """Return the directories for ``assay journal``, whose options may set one. Raises `SettingsError`."""
    file, flags = getattr(args, "config", None), getattr(args, "set", [])
    return Directories(load(os.environ, os.curdir, file=file, flags=flags, log=say).journal)


def chosen(name: str | None, directories: Directories) -> Chosen:
    """
    Return the journal called *name*: a file, the newest run of a directory, the run with an id, or ``-`` for standard
    input. With None, return the newest run.

    Raises `OSError`.
    """
    if name is None:
        path = run_files.newest_of(directories.usual())
        return Chosen(_found(path, directories.where()), is_run=True)
    if os.path.isdir(name):
        return Chosen(_found(run_files.newest_of(run_files.directories_below(name)), name), is_run=True)
    if not os.path.lexists(name) and os.sep not in name:
        path = run_files.find(directories.every(), name.removesuffix(".jsonl"))
        if path is not None:
            return Chosen(path, is_run=True)
    if name != "-" and not os.path.lexists(name):
        raise UnknownJournalError(name)
    return Chosen(name)


class UnknownJournalError(FileNotFoundError):
    """No run, file or directory has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.ENOENT, os.strerror(errno.ENOENT), name)


def why_not(error: OSError) -> str:
    """Return why a journal cannot be read, in one line that is safe for a terminal."""
    name = os.fsencode(str(error.filename)).decode(errors="replace")
    if isinstance(error, UnknownJournalError):
        return plain(f"no run, file or directory {name}; assay journal list lists the runs")
    return plain(f"{name}: {error.strerror}")


def cannot_read(command: str, error: OSError) -> int:
    """Print why a journal cannot be read by ``assay journal`` *command*; return the exit status."""
    program.say(why_not(error), f"journal {command}")
    return 2


def _found(path: str | None, where: str) -> str:
    if path is None:
        raise FileNotFoundError(errno.ENOENT, "no journals yet", where)
    return path


# ── servers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Named(NamedTuple):
    """A run with the names of its servers."""

    run: JournalRun
    servers: tuple[str, ...]


def named_runs(directories: Sequence[str], servers: str | None) -> Iterator[Named]:
    """Yield the runs in *directories* with their servers. An unreadable directory is reported on stderr."""
    for directory in directories:
        try:
            found = run_files.runs_in(directory)
        except FileNotFoundError:
            # The directory is configured, but nothing was written yet.
            continue
        except OSError as error:
            say(f"{directory}: {error.strerror}")
            continue
        names = [_recorded(run) for run in found]
        # An empty run most likely belongs to the same server as the other runs there.
        others = set(filter(None, names))
        usual = others.pop() if len(others) == 1 else ()
        for run, own in zip(found, names, strict=True):
            yield Named(run, own or usual or _by_folder(run, servers))


def names_of(run: JournalRun, servers: str | None) -> tuple[str, ...]:
    """Return the server names in the records of *run*, else the name of its folder below *servers*."""
    return _recorded(run) or _by_folder(run, servers)


def _recorded(run: JournalRun) -> tuple[str, ...]:
    try:
        return tuple(servers_in(run.paths)) if run.size else ()
    except OSError:
        return ()


def _by_folder(run: JournalRun, servers: str | None) -> tuple[str, ...]:
    is_below = servers is not None and os.path.dirname(os.path.dirname(run.path)) == servers
    return (run_files.folder_name(run),) if is_below else ()


def runs_of(server: str, directories: Directories) -> list[Named]:
    """Return the runs of *server*, oldest first. Raises `UnknownServerError` for an unknown server."""
    every = list(named_runs(directories.every(), directories.servers))
    found = [each for each in every if server in each.servers]
    # A folder name is the server's name without characters that a folder cannot have, and people see it. An empty run
    # has no other name.
    folders = {server, folder_of(server)}
    found = found or [each for each in every if run_files.folder_name(each.run) in folders and len(each.servers) == 1]
    if not found:
        raise UnknownServerError(server, {name for each in every for name in each.servers})
    return sorted(found, key=lambda each: each.run.age)


class UnknownServerError(Exception):
    """There are no runs of a server of this name."""

    def __init__(self, name: str, known: set[str]) -> None:
        close = suggestion(name, known)
        listed = f"{close} (known: {', '.join(sorted(known))})" if known else "; there are no journals yet"
        super().__init__(plain(f"--server {name}: no journal of this server{listed}"))

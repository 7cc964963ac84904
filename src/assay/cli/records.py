"""The records of a server or a guard: where they are kept, and the journal and telemetry that are opened for them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TypedDict, Unpack

from assay.base.printable import plain
from assay.cli.guard_terms import is_client_file, loaded_settings, server_name, signed
from assay.edges.hangup import telling
from assay.edges.recorder import Records
from assay.edges.stderr_writer import WAITING, hello
from assay.records.journal import Journal
from assay.records.telemetry import Telemetry
from assay.settings import JournalSettings, Settings
from assay.settings.sections import ASSETS_JOURNAL, AUTO, OFF
from assay.settings.state_directory import FLIGHTS, UNKNOWN, make_folder, server_folder

TOLD_WITHIN = 3.0
"""Seconds at exit to send the remaining telemetry to the collector."""


class Recorded(TypedDict, total=False):
    """What the journal keeps beside the messages, as for `Journal.open`."""

    deterministic: bool
    server: str
    mode: str
    frame_bytes: int


@contextmanager
def opened(
    option: str | None, settings: Settings, log: Callable[[str], None], **recorded: Unpack[Recorded]
) -> Iterator[Records]:
    """
    Open the journal and telemetry that are configured. Whatever cannot be opened is logged and left out.

    *option* is the journal directory from the command line.
    """
    with opened_journal(option, settings, log, **recorded) as journal:
        telemetry = Telemetry.open(settings.telemetry, log=log, redact=settings.journal.redact)
        try:
            yield Records(journal, None, telemetry)
        finally:
            if telemetry is not None:
                telemetry.close(TOLD_WITHIN)


@contextmanager
def opened_journal(
    option: str | None, settings: Settings, log: Callable[[str], None], **recorded: Unpack[Recorded]
) -> Iterator[Journal | None]:
    """Open only the journal, as `opened` does; None if it is off or cannot be opened."""
    directory = place(option, settings.journal)
    if directory is None:
        yield None
        return

    if os.environ.get("ASSAY_DETERMINISTIC", "") not in ("", "0", "false"):
        recorded["deterministic"] = True
    journal = Journal.open(
        directory,
        payloads=settings.journal.payloads,
        keep=settings.journal.keep,
        file_bytes=settings.journal.bytes,
        total_bytes=settings.journal.total_bytes,
        redact=settings.journal.redact,
        log=log,
        **recorded,
    )
    try:
        with telling(journal.reopen) if journal is not None else nullcontext():
            yield journal
    finally:
        if journal is not None:
            journal.close()


def place(option: str | None, settings: JournalSettings) -> str | None:
    """Return the journal directory: from the option, else ASSAY_JOURNAL, else the settings; None if it is off."""
    usual = ASSETS_JOURNAL if settings.directory == AUTO else settings.directory
    named = option or os.environ.get("ASSAY_JOURNAL") or usual
    return None if named.lower() == OFF else named


def guard_settings(args: argparse.Namespace, log: Callable[[str], None]) -> Settings:
    """Return the settings of a guard, with the directories that it writes to. Raises `SettingsError`."""
    return in_place(args, loaded_settings(args, log), log)


def in_place(args: argparse.Namespace, settings: Settings, log: Callable[[str], None]) -> Settings:
    """Return *settings* with the directories of the one server that is guarded."""
    if any(is_client_file(name) for name in args.config):
        # With several servers, each one has its own directories.
        return settings
    return with_places(args, settings, server_name(args), signed(lambda line: log(plain(line))))


def introduce(args: argparse.Namespace, mode: str, records: Records, log: Callable[[str], None]) -> None:
    """Log the server, the mode and the journal of a guard for a client on standard streams."""
    log(hello(server_name(args), mode, records.journal.path if records.journal is not None else None))
    if os.isatty(0):
        log(WAITING)


def records_of(
    args: argparse.Namespace, settings: Settings, log: Callable[[str], None]
) -> AbstractContextManager[Records]:
    """Open the journal and the telemetry for the guard of one server."""
    return opened(args.journal, settings, signed(log), **how_judged(args, settings, server_name(args)))


def how_judged(args: argparse.Namespace, settings: Settings, server: str = "") -> Recorded:
    """Return the settings that the journal keeps for a replay."""
    mode, longest = args.mode or settings.guard.mode, settings.guard_limits.frame_bytes
    return {"server": server, "mode": mode, "frame_bytes": longest}


def with_places(args: argparse.Namespace, settings: Settings, server: str, say: Callable[[str], None]) -> Settings:
    """
    Return *settings* with the directories for the server called *server* in place of ``auto``.

    All records of a run are in one place: flights are below the journal. If the folder of the server cannot be used,
    *say* gets one line, and there is no journal and no flight recorder.
    """
    journal, flights = _auto(args, settings)
    named = _named_journal(args, settings)
    folder: str | None = named if named.lower() != OFF else ""
    if journal or (flights and not folder):
        folder = _folder(server, say, "no journal" if journal else "no flight recorder")
    if journal:
        settings = replace(settings, journal=replace(settings.journal, directory=folder or OFF))
    if flights:
        there = os.path.join(folder, FLIGHTS) if folder else OFF
        settings = replace(settings, guard=replace(settings.guard, flights=there))
    return settings


def _named_journal(args: argparse.Namespace, settings: Settings) -> str:
    """Return the directory of the journal that the operator named, or `off`; empty if none was named."""
    directory = settings.journal.directory
    return args.journal or os.environ.get("ASSAY_JOURNAL") or ("" if directory == AUTO else directory)


def shares_journal(args: argparse.Namespace, settings: Settings) -> bool:
    """Whether all servers share the directory that the operator named, or the journal is off."""
    return not _auto(args, settings)[0]


def _auto(args: argparse.Namespace, settings: Settings) -> tuple[bool, bool]:
    """Return whether the journal goes to the server's folder, and whether flights do."""
    return not _named_journal(args, settings), settings.guard.flights == AUTO


def _folder(server: str, say: Callable[[str], None], lost: str) -> str | None:
    """Create the folder of *server* if needed and return it; None if it cannot be used."""
    option = "--journal DIR" if lost == "no journal" else "--set guard.flights=DIR"
    folder = server_folder(os.environ, server)
    if folder is None:
        say(f"{lost}: {UNKNOWN}; give {option}")
        return None
    try:
        make_folder(folder)
    except OSError as error:
        say(f"{lost}: {error.filename or folder}: {error.strerror}; give {option}")
        return None
    return folder

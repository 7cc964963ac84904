"""The directories of a guard: those that the operator names, else the folder of each server."""

# ruff: noqa: PLC0415  each command imports only what it needs

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from assay.settings.sections import AUTO

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from assay.settings import Settings


def with_places(args: argparse.Namespace, settings: Settings, server: str, say: Callable[[str], None]) -> Settings:
    """
    Return *settings* with the directories for the server called *server* in place of ``auto``.

    If the folder of the server cannot be used, *say* gets one line, and there is no journal and no flight recorder.
    """
    from dataclasses import replace

    journal, flights = _auto(args, settings)
    if not (journal or flights):
        return settings
    folder = _folder(server, say, "no journal" if journal else "no flight recorder")
    if journal:
        settings = replace(settings, journal=replace(settings.journal, directory=folder or "off"))
    if flights:
        from assay.settings.server_folders import FLIGHTS

        there = "off" if folder is None else os.path.join(folder, FLIGHTS)
        settings = replace(settings, guard=replace(settings.guard, flights=there))
    return settings


def shares_journal(args: argparse.Namespace, settings: Settings) -> bool:
    """Whether all servers share the directory that the operator named, or the journal is off."""
    return not _auto(args, settings)[0]


def _auto(args: argparse.Namespace, settings: Settings) -> tuple[bool, bool]:
    """Return whether the journal goes to the server's folder, and whether flights do."""
    named = args.journal or os.environ.get("ASSAY_JOURNAL")
    return not named and settings.journal.directory == AUTO, settings.guard.flights == AUTO


def _folder(server: str, say: Callable[[str], None], lost: str) -> str | None:
    """Create the folder of *server* if needed and return it; None if it cannot be used."""
    from assay.settings.server_folders import UNKNOWN, make_folder, server_folder

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

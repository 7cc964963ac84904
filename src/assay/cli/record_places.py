"""Where a guard keeps its records, for one server and for a host of several."""

# ruff: noqa: PLC0415  each command imports only what it needs
from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from assay.base.server_names import cut_name
from assay.cli.guard_terms import how_judged, signed
from assay.cli.records import OFF, opened, opened_journal
from assay.settings.sections import AUTO

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from assay.edges.compose import Kept
    from assay.settings import Settings


def with_places(args: argparse.Namespace, settings: Settings, server: str, say: Callable[[str], None]) -> Settings:
    """
    Return *settings* with the directories for the server called *server* in place of ``auto``.

    All records of a run are in one place: flights are below the journal. If the folder of the server cannot be used,
    *say* gets one line, and there is no journal and no flight recorder.
    """
    from dataclasses import replace

    from assay.settings.state_directory import FLIGHTS

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
    from assay.settings.state_directory import UNKNOWN, make_folder, server_folder

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


class HostedRecords:
    """Opens the journal of a server when the server is first used, and closes all journals at the end."""

    def __init__(self, args: argparse.Namespace, settings: Settings, say: Callable[[str], None]) -> None:
        self._args = args
        self._settings = settings
        self._say = signed(say)
        self._stack = ExitStack()
        self._kept: dict[str, Kept] = {}

    def __enter__(self) -> Self:
        # All servers share the telemetry. A journal is opened here only if they share it, too.
        shared = None if shares_journal(self._args, self._settings) else "off"
        self._shared = self._stack.enter_context(
            opened(shared or self._args.journal, self._settings, self._say, **how_judged(self._args, self._settings))
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def journal(self) -> str | None:
        """A file of the journal, for messages about its directory. The journals of the servers are not open yet."""
        if self._shared.journal is not None:
            return self._shared.journal.path
        from assay.settings.state_directory import servers_directory

        servers = None if shares_journal(self._args, self._settings) else servers_directory(os.environ)
        return None if servers is None else os.path.join(servers, "*")

    def keep(self, server: str, route: str) -> Kept:
        """Return the destination for the records of *server*, which is served at *route*."""
        if route not in self._kept:
            self._kept[route] = self._opened(cut_name(server), route)
        return self._kept[route]

    def _opened(self, server: str, route: str) -> Kept:
        from assay.edges.compose import Kept

        settings = with_places(self._args, self._settings, server, self._say)
        records = self._shared
        if not shares_journal(self._args, self._settings):
            journal = self._stack.enter_context(
                opened_journal(None, settings, self._say, server=server, **how_judged(self._args, settings))
            )
            records = records._replace(journal=journal)
        elif records.journal is not None:
            records.journal.name_route(route, server)
        return Kept(records, settings.guard.flights)

"""The records of a server or a guard: where they are kept, and the journal and telemetry that are opened for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from assay.cli.guard_plan import GuardPlan, Say, signed
from assay.edges.hangup import telling
from assay.edges.recorder import Records
from assay.model.names import cut_name
from assay.model.printable import plain
from assay.records.journal import Journal
from assay.records.telemetry import Telemetry
from assay.settings import Settings
from assay.settings.sections import ASSETS_JOURNAL, AUTO, OFF
from assay.settings.state_directory import FLIGHTS, UNKNOWN, make_folder, server_folder, servers_directory

if TYPE_CHECKING:
    from assay.edges.compose import Kept

TOLD_WITHIN = 3.0
"""Seconds at exit to send the remaining telemetry to the collector."""


class Recorded(TypedDict, total=False):
    """What the journal keeps beside the messages, as for `Journal.open`."""

    deterministic: bool
    server: str
    mode: str
    frame_bytes: int


@contextmanager
def opened(settings: Settings, log: Say, **recorded: Unpack[Recorded]) -> Iterator[Records]:
    """Open the journal and telemetry that are configured. Whatever cannot be opened is logged and left out."""
    with opened_journal(settings, log, **recorded) as journal:
        telemetry = Telemetry.open(settings.telemetry, log=log, redact=settings.journal.redact)
        try:
            yield Records(journal, None, telemetry)
        finally:
            if telemetry is not None:
                telemetry.close(TOLD_WITHIN)


@contextmanager
def opened_journal(settings: Settings, log: Say, **recorded: Unpack[Recorded]) -> Iterator[Journal | None]:
    """Open only the journal, as `opened` does; None if it is off or cannot be opened."""
    given = settings.journal
    directory = ASSETS_JOURNAL if given.directory == AUTO else given.directory
    if os.environ.get("ASSAY_DETERMINISTIC", "") not in ("", "0", "false"):
        recorded["deterministic"] = True
    journal = None
    if directory.lower() != OFF:
        journal = Journal.open(
            directory,
            payloads=given.payloads,
            keep=given.keep,
            file_bytes=given.bytes,
            total_bytes=given.total_bytes,
            redact=given.redact,
            log=log,
            **recorded,
        )
    if journal is None:
        yield None
        return
    try:
        with telling(journal.reopen):
            yield journal
    finally:
        journal.close()


# ── guards ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def placed(plan: GuardPlan, server: str | None = None) -> GuardPlan:
    """
    Return *plan* with the directories for the records of *server*, its own one without a name, in place of ``auto``.

    All records of a run are in one place: flights are below the journal. If the folder of the server cannot be used,
    one line says so, and there is no journal and no flight recorder.
    """
    settings, named = plan.settings, plan.settings.journal.directory
    folder: str | None = "" if named == AUTO or named.lower() == OFF else named
    if named == AUTO or (settings.guard.flights == AUTO and not folder):
        lost = "no journal" if named == AUTO else "no flight recorder"
        folder = _folder(server or plan.name, signed(lambda line: plan.say(plain(line))), lost)
    if named == AUTO:
        settings = replace(settings, journal=replace(settings.journal, directory=folder or OFF))
    if settings.guard.flights == AUTO:
        there = os.path.join(folder, FLIGHTS) if folder else OFF
        settings = replace(settings, guard=replace(settings.guard, flights=there))
    return plan._replace(settings=settings)


def judged_by(plan: GuardPlan, server: str) -> Recorded:
    """Return what the journal keeps of *plan* for a replay."""
    return {"server": server, "mode": plan.terms.mode, "frame_bytes": plan.terms.limits.frame_bytes}


class ServedRecords:
    """
    The records of the servers behind one address.

    One server has its records opened at the start, as have several that share a journal. Otherwise the journal of a
    server is opened when the server is first used. All are closed at the end.
    """

    def __init__(self, plan: GuardPlan) -> None:
        self._plan = plan
        self._stack = ExitStack()
        self._kept: dict[str, Kept] = {}
        # Several servers share a journal if the operator names a directory for all of them, or none is to be written.
        self._is_shared = not plan.clients or plan.settings.journal.directory != AUTO

    def __enter__(self) -> Self:
        # All servers share the telemetry. A journal is opened here only if they share it, too.
        plan, settings = self._plan, self._plan.settings
        if not self._is_shared:
            settings = replace(settings, journal=replace(settings.journal, directory=OFF))
        server = "" if plan.clients else plan.name
        self._shared = self._stack.enter_context(opened(settings, signed(plan.say), **judged_by(plan, server)))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def journal(self) -> str | None:
        """A file of the journal, for messages about its directory. The journals of the servers are not open yet."""
        if self._shared.journal is not None:
            return self._shared.journal.path
        servers = None if self._is_shared else servers_directory(os.environ)
        return None if servers is None else os.path.join(servers, "*")

    def keep(self, server: str, route: str) -> Kept:
        """Return the destination for the records of *server*, which is served at *route*."""
        if route not in self._kept:
            self._kept[route] = self._opened(cut_name(server), route)
        return self._kept[route]

    def _opened(self, server: str, route: str) -> Kept:
        from assay.edges.compose import Kept  # noqa: PLC0415 - it needs an extra, which only a guard over HTTP has

        plan, records = self._plan, self._shared
        if plan.clients:
            plan = placed(plan, server)
            if not self._is_shared:
                journal = opened_journal(plan.settings, signed(plan.say), **judged_by(plan, server))
                records = records._replace(journal=self._stack.enter_context(journal))
            elif records.journal is not None:
                records.journal.name_route(route, server)
        return Kept(records, plan.settings.guard.flights)


def _folder(server: str, say: Say, lost: str) -> str | None:
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

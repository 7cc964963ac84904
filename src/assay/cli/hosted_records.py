"""The journals of several guarded servers: one folder for each server, unless the operator names one for all."""

# ruff: noqa: PLC0415  each command imports only what it needs

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from assay.base.server_names import cut_name
from assay.cli.guard_terms import how_judged, signed
from assay.cli.record_places import shares_journal, with_places
from assay.cli.records import opened, opened_journal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from assay.edges.compose import Kept
    from assay.settings import Settings


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
        from assay.settings.server_folders import servers_directory

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

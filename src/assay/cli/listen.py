"""``assay guard`` in front of a server at a URL, or for clients over HTTP, or both."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Self

from assay.base.server_names import cut_name
from assay.cli.ci import exit_status, recording_of
from assay.cli.clients.config_files import FileError, find
from assay.cli.clients.dialect import dialect_of
from assay.cli.clients.hosting import entries
from assay.cli.clients.jsonc import ConfigError
from assay.cli.guard_terms import is_client_file, locked_of, server_name, signed, terms_of
from assay.cli.options import HeaderError, given_headers
from assay.cli.program import leave_what_lasts, log, open_standard_streams
from assay.cli.records import (
    guard_settings,
    how_judged,
    opened,
    opened_journal,
    records_of,
    shares_journal,
    with_places,
)
from assay.edges import compose
from assay.edges.compose import Keep, Kept, Servers
from assay.edges.hangup import heed
from assay.edges.multi_server import Host
from assay.edges.stderr_writer import Errors
from assay.lock.locked import Locked
from assay.settings import Settings, SettingsError
from assay.settings.state_directory import servers_directory


def run(args: argparse.Namespace) -> int:
    """Guard until a signal comes."""
    heed()
    open_standard_streams()
    return serve(args)


def serve(args: argparse.Namespace, ready: Callable[[str], None] | None = None) -> int:
    """Guard until a signal comes. *ready* gets the scheme, host and port once clients can connect."""
    settings = guard_settings(args, log)
    return _listen(args, settings, [name for name in args.config if is_client_file(name)], ready)


def _listen(
    args: argparse.Namespace, settings: Settings, clients: list[str], ready: Callable[[str], None] | None
) -> int:

    with Errors() as errors, recording_of(args, settings, errors.say, alone=False) as recording:
        terms = terms_of(args, settings, errors.say)
        log: Callable[[str], None] = (lambda _: None) if args.quiet else errors.say

        def locked(command: Sequence[str], url: str, name: str) -> Locked | None:
            return locked_of(args, settings, errors.say, command=command, url=url, name=name or None)

        with _keeping(args, settings, errors.say) as (keep, journal):
            return compose.run(
                args.listen,
                settings,
                terms,
                keep,
                _servers(args, clients),
                locked=locked,
                settle=leave_what_lasts,
                ready=ready,
                errors=errors.write,
                say=errors.say,
                log=log,
                recording=recording,
                name="" if clients else server_name(args),
                journal=journal,
                status=lambda watch: exit_status(args, watch, 0, errors.say),
            )


@contextmanager
def _keeping(
    args: argparse.Namespace, settings: Settings, say: Callable[[str], None]
) -> Iterator[tuple[Keep, str | None]]:
    """
    Return the destination for the records of each server, and a file of the journal, which need not exist yet.

    With several servers each one has its own journal, unless the operator names one for all.
    """
    if any(is_client_file(name) for name in args.config):
        with HostedRecords(args, settings, say) as hosted:
            yield hosted.keep, hosted.journal
        return
    with records_of(args, settings, say) as records:
        path = records.journal.path if records.journal is not None else None
        yield lambda _, __: Kept(records, settings.guard.flights), path


def _servers(args: argparse.Namespace, clients: list[str]) -> Servers:
    """Return the servers to guard."""
    if args.target is not None:
        return compose.AtUrl(args.target, _headers(args.header), server_name(args))
    if args.command:
        return compose.Started(args.command, server_name(args))
    return _host(clients[0])


def _host(name: str) -> Servers:
    try:
        found = entries(find(name).text, os.environ, os.getcwd(), dialect_of(name))
    except (ConfigError, FileError) as error:
        raise SettingsError(f"--config {name}: {error}") from None
    if not found:
        raise SettingsError(f"--config {name}: no servers in it")
    return Host(os.path.basename(name), found)


def _headers(options: list[str]) -> list[tuple[bytes, bytes]]:
    """Return the headers in *options*. Raises `SettingsError`, whose message has no header value."""
    try:
        return [(name.lower().encode(), value.encode()) for name, value in given_headers(options, os.environ)]
    except HeaderError as error:
        raise SettingsError(str(error)) from None


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

        servers = None if shares_journal(self._args, self._settings) else servers_directory(os.environ)
        return None if servers is None else os.path.join(servers, "*")

    def keep(self, server: str, route: str) -> Kept:
        """Return the destination for the records of *server*, which is served at *route*."""
        if route not in self._kept:
            self._kept[route] = self._opened(cut_name(server), route)
        return self._kept[route]

    def _opened(self, server: str, route: str) -> Kept:
        settings = with_places(self._args, self._settings, server, self._say)
        records = self._shared
        if not shares_journal(self._args, self._settings):
            journal = self._stack.enter_context(
                opened_journal(None, settings, self._say, **how_judged(self._args, settings, server))
            )
            records = records._replace(journal=journal)
        elif records.journal is not None:
            records.journal.name_route(route, server)
        return Kept(records, settings.guard.flights)

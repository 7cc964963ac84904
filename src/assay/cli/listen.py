"""``assay guard --listen``: guard servers for clients over HTTP."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from assay.cli.clients.config_files import find
from assay.cli.clients.dialect import dialect_of
from assay.cli.clients.hosting import entries
from assay.cli.clients.parsing import ConfigError
from assay.cli.guard_plan import GuardPlan, loaded_settings, plan_of
from assay.cli.options import HeaderError, given_headers
from assay.cli.program import leave_what_lasts, open_standard_streams, say
from assay.cli.records import HostedRecords, placed, records_of
from assay.edges import compose
from assay.edges.compose import Keep, Kept, Servers
from assay.edges.hangup import heed
from assay.edges.multi_server import Host
from assay.edges.stderr_writer import Errors
from assay.lock.locked import Locked
from assay.settings import SettingsError


def run(args: argparse.Namespace) -> int:
    """Guard until a signal comes."""
    heed()
    open_standard_streams()
    return serve(args)


def serve(args: argparse.Namespace, ready: Callable[[str], None] | None = None) -> int:
    """Guard until a signal comes. *ready* gets the scheme, host and port once clients can connect."""
    settings = loaded_settings(args, say)
    with Errors() as errors:
        plan = plan_of(args, settings, errors.say)
        # Several servers have directories of their own.
        plan = plan if plan.clients else placed(plan)
        with plan.recording(alone=False) as recording, _keeping(plan) as (keep, journal):

            def locked(command: Sequence[str], url: str, name: str) -> Locked | None:
                return plan.locked(command, url, name or None)

            return compose.run(
                args.listen,
                plan.settings,
                plan.terms,
                keep,
                _servers(plan, args.header),
                locked=locked,
                settle=leave_what_lasts,
                ready=ready,
                errors=errors.write,
                say=plan.say,
                log=plan.log,
                recording=recording,
                name="" if plan.clients else plan.name,
                journal=journal,
                status=lambda watch: plan.exit_status(watch, 0),
            )


@contextmanager
def _keeping(plan: GuardPlan) -> Iterator[tuple[Keep, str | None]]:
    """
    Return the destination for the records of each server, and a file of the journal, which need not exist yet.

    With several servers each one has its own journal, unless the operator names one for all.
    """
    if plan.clients:
        with HostedRecords(plan) as hosted:
            yield hosted.keep, hosted.journal
        return
    with records_of(plan) as records:
        path = records.journal.path if records.journal is not None else None
        yield lambda _, __: Kept(records, plan.settings.guard.flights), path


def _servers(plan: GuardPlan, header: list[str]) -> Servers:
    """Return the servers to guard."""
    if plan.url:
        return compose.AtUrl(plan.url, _headers(header), plan.name)
    if plan.command:
        return compose.Started(plan.command, plan.name)
    return _host(plan.clients[0])


def _host(name: str) -> Servers:
    try:
        found = entries(find(name).text, os.environ, os.getcwd(), dialect_of(name))
    except ConfigError as error:
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

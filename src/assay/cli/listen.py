"""``assay guard --listen``: guard servers for clients over HTTP."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from assay.cli.clients.config_files import find
from assay.cli.clients.dialect import dialect_of
from assay.cli.clients.hosting import entries
from assay.cli.clients.parsing import ConfigError
from assay.cli.guard_plan import GuardPlan, exit_status, loaded_settings, plan_of, recording_of
from assay.cli.options import HeaderError, given_headers
from assay.cli.program import leave_what_lasts, open_standard_streams, say
from assay.cli.records import ServedRecords, placed
from assay.edges import compose
from assay.edges.compose import Servers
from assay.edges.hangup import heed
from assay.edges.multi_server import Host
from assay.edges.stderr_writer import Errors
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
        opened = recording_of(args.record, settings, plan.say, alone=False, is_quiet=args.quiet)
        with opened as recording, ServedRecords(plan) as records:
            return compose.run(
                args.listen,
                plan.settings,
                plan.terms,
                records.keep,
                _servers(plan),
                locked=lambda command, url, name: plan.locked(command, url, name or None),
                settle=leave_what_lasts,
                ready=ready,
                errors=errors.write,
                say=plan.say,
                log=plan.log,
                recording=recording,
                name="" if plan.clients else plan.name,
                journal=records.journal,
                status=lambda watch: exit_status(args.fail_on, watch, 0, plan.say),
            )


def _servers(plan: GuardPlan) -> Servers:
    """Return the servers to guard. Raises `SettingsError`, whose message has no value of a header."""
    if plan.args.target:
        try:
            headers = given_headers(plan.args.header, os.environ)
        except HeaderError as error:
            raise SettingsError(str(error)) from None
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers]
        return compose.AtUrl(plan.args.target, pairs, plan.name)
    if plan.args.command:
        return compose.Started(plan.args.command, plan.name)
    [name] = plan.clients
    try:
        found = entries(find(name).text, os.environ, os.getcwd(), dialect_of(name))
    except ConfigError as error:
        raise SettingsError(f"--config {name}: {error}") from None
    if not found:
        raise SettingsError(f"--config {name}: no servers in it")
    return Host(os.path.basename(name), found)

"""``assay guard``: in front of another server."""

# ruff: noqa: PLC0415  each command imports only what it needs

from __future__ import annotations

import argparse
import math
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from assay.cli.serve import add_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from assay.edges.child import Child
    from assay.edges.pipes import Outlet, Signals
    from assay.edges.recorder import Records
    from assay.policy import Policy
    from assay.settings import Settings

_EPILOG = """\
In a client's configuration, put `assay guard --` in front of the server's command; nothing else changes.
Under audit, the default, everything passes as it came and findings go to stderr and the journal.
Under enforce what breaks the protocol or a tool's contract stops at the guard, and whoever asked gets an answer.

Exit status: 0 the client left or a signal came, 2 the server could not be started or something is configured
wrongly, 3 the server ended first.
"""

_MOST_LOGGED = 1 << 18
"""Bytes that wait for whoever reads stderr; what comes on top of them is dropped, and the server never waits."""

_LAST_LINES = 1.0
"""Seconds that are waited at the end for whoever reads stderr."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``guard``."""
    parser = subparsers.add_parser(
        "guard",
        help="run another MCP server behind Assay, which judges every message in both directions",
        description="Runs an MCP server as a child process and judges every message between it and the client.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--mode", choices=("audit", "enforce"), help="report only, or stop what is wrong")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, help="how long the server has for an answer; 0 for ever"
    )
    parser.add_argument(
        "--journal", metavar="DIR", help="where verdicts are written down, or off; wins over ASSAY_JOURNAL"
    )
    parser.add_argument("--quiet", action="store_true", help="no findings and no summary on stderr")
    add_settings(parser)
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="the server's command, after --")
    parser.set_defaults(run=run)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not math.isfinite(seconds) or seconds < 0:
        raise argparse.ArgumentTypeError(f"{text}: expected 0 or more seconds")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Guard until the client leaves or the server ends."""
    from assay.cli.serve import _log, _open_standard_streams
    from assay.edges.child import Child, StartError
    from assay.edges.pipes import Outlet, Signals
    from assay.settings import load

    _open_standard_streams()
    settings = load(os.environ, os.curdir, file=args.config, flags=args.set, log=_log)
    errors = Outlet(2, shared=True, most=_MOST_LOGGED)
    try:
        # The server starts while we import what judges it.
        with Signals() as signals, Child(args.command) as child:
            return _guard(args, settings, child, signals, errors)
    except StartError as error:
        _say(errors, f"assay: {error}")
        return 2
    finally:
        errors.finish(_LAST_LINES)


def _guard(args: argparse.Namespace, settings: Settings, child: Child, signals: Signals, errors: Outlet) -> int:
    from dataclasses import replace
    from time import monotonic

    from assay.cli.serve import _leave_what_lasts
    from assay.edges.recorder import Recorder
    from assay.edges.relay import SERVER_ENDED, Relay
    from assay.guard.guard import Guard
    from assay.guard.watch import Watch

    def say(line: str) -> None:
        _say(errors, line)

    log: Callable[[str], None] = (lambda _: None) if args.quiet else say
    enforcing = (args.mode or settings.guard.mode) == "enforce"
    timeout = settings.guard.timeout if args.timeout is None else args.timeout
    limits = replace(settings.limits, frame_bytes=settings.guard.frame_bytes)
    guard = Guard(
        mode="enforce" if enforcing else "audit",
        limits=limits,
        clock=monotonic,
        timeout=timeout,
        policy=policy_of(settings, say),
    )
    watch = Watch(log, errors.say, enforcing=enforcing)
    with _records(args, settings, say) as records:
        recorder = Recorder("stdio", "stdio", records, holding=True)
        relay = Relay(guard, child, recorder, watch, signals, errors, patience=timeout)
        _leave_what_lasts()
        status = relay.run()
    for line in watch.summary():
        log(line)
    if errors.lost:
        log(f"assay: {errors.lost:,} bytes for stderr were dropped, since nobody took them in time")
    if status == SERVER_ENDED:
        say(f"assay: the server ended first: {relay.reason}")
        if settings.guard.flights != "off":
            watch.flight(settings.guard.flights, settings.journal.redact)
    return status


def policy_of(settings: Settings, say: Callable[[str], None]) -> Policy | None:
    """What is done about which rule today, if anything was set; exceptions that have ended, or soon will, are told."""
    guard = settings.guard
    if not guard.policy and not guard.exceptions and not guard.fail_open:
        return None
    from time import gmtime, strftime

    from assay.console.plain import plain
    from assay.guard.ruling import policy, warnings

    today = strftime("%Y-%m-%d", gmtime())
    for line in warnings(guard, today):
        say(plain(f"assay: {line}"))
    return policy(guard, today)


def _say(errors: Outlet, line: str) -> None:
    errors.say(line.encode(errors="replace"))


@contextmanager
def _records(args: argparse.Namespace, settings: Settings, log: Callable[[str], None]) -> Iterator[Records]:
    """Where verdicts go. What cannot be opened is a line in the log, and left out."""
    from assay.edges.recorder import NOWHERE, Records

    directory = args.journal or os.environ.get("ASSAY_JOURNAL") or settings.journal.directory
    if directory == "off":
        yield NOWHERE
        return
    from assay.journal import Journal

    journal = Journal.open(
        directory,
        deterministic=os.environ.get("ASSAY_DETERMINISTIC", "") not in ("", "0", "false"),
        payloads=settings.journal.payloads,
        keep=settings.journal.keep,
        redact=settings.journal.redact,
        log=log,
        mode=args.mode or settings.guard.mode,
        frame_bytes=settings.guard.frame_bytes,
    )
    try:
        yield Records(journal)
    finally:
        if journal is not None:
            journal.close()

"""``assay guard``: guard a server that this process starts, for a client on standard streams."""

# ruff: noqa: PLC0415  each command imports only what it needs

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from assay.cli.ci import add_options, exit_status, recording_of
from assay.cli.guard_terms import (
    in_place,
    loaded_settings,
    locked_of,
    terms_of,
)
from assay.cli.header_options import add_headers
from assay.cli.serve import add_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.edges.child import Child
    from assay.edges.child_supervisor import RestartPolicy
    from assay.edges.pipes import Outlet, Signals
    from assay.guard.backoff import Backoff
    from assay.guard.deliveries import End
    from assay.guard.summary import GuardSummary
    from assay.lock.locked import Locked
    from assay.records.recording.recording_file import Recording
    from assay.settings import Settings

_EPILOG = """\
In a client's configuration, put `assay guard --` in front of the server's command; nothing else changes.
Under audit, the default, every message is forwarded unchanged, and findings go to stderr and the journal.
Under enforce the guard stops messages that break the protocol or a tool's contract, and answers their sender.

  client  server              command
  STDIO   a command           assay guard -- COMMAND
  STDIO   a URL               assay guard --target URL
  HTTP    a command           assay guard --listen ADDRESS -- COMMAND
  HTTP    a URL               assay guard --listen ADDRESS --target URL
  HTTP    all of an mcp.json  assay guard --listen ADDRESS --config mcp.json

Exit status: 0 the client left or a signal came; 2 the server could not be started, the configuration is invalid,
or nothing was judged with --fail-on; 3 the server ended first and was not restarted; 4 a finding counts by
--fail-on. If both 3 and 4 apply, the status is 3.
"""

_MOST_LOGGED = 1 << 18
"""Bytes buffered for stderr. More is dropped, so that a slow reader never blocks the server."""

_LAST_LINES = 1.0
"""Seconds to wait at exit until stderr is read."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``guard``."""
    parser = subparsers.add_parser(
        "guard",
        help="judge every message between a client and a server, and stop invalid ones",
        description="Judge every message between an MCP server and its clients, in both directions.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--mode",
        choices=("audit", "enforce"),
        help="report findings only, which is the default, or stop invalid messages",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        help="time limit for a response of the server, under enforce; default: 600; 0 for no limit",
    )
    parser.add_argument("--journal", metavar="DIR", help="directory of the journal, or off; wins over ASSAY_JOURNAL")
    parser.add_argument(
        "--restart",
        choices=("never", "on-failure", "always"),
        help="when to restart a server that ends, under enforce; default: never",
    )
    parser.add_argument(
        "--lock",
        metavar="FILE",
        help="the lock to compare the server with, or off; default: assay.lock, if it has this server",
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        type=_name,
        help="the server's name in messages, the journal and the lock; default: from its command or URL",
    )
    parser.add_argument("--quiet", action="store_true", help="no introduction, no findings and no summary on stderr")
    add_options(parser)
    add_reach(parser)
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the server's command, after --")
    parser.set_defaults(run=run)


def add_reach(parser: argparse.ArgumentParser) -> None:
    """Add the options for the guarded server and its clients to *parser*."""
    parser.add_argument("--target", metavar="URL", help="guard the server at URL")
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="serve clients over HTTP at ADDRESS, such as 127.0.0.1:8765; port 0 takes any free port",
    )
    add_headers(parser)
    add_settings(parser, "; a .json or .jsonc file is a client's configuration, whose servers are all guarded")


def _name(text: str) -> str:
    from assay.base.server_names import cut_name

    if not text or cut_name(text) != text:
        raise argparse.ArgumentTypeError(f"{text!a}: expected 1 to 64 printable characters")
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds < 0:
        raise argparse.ArgumentTypeError(f"{text}: expected 0 or more seconds")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Guard until the client disconnects or the server ends; return the exit status."""
    if args.listen is not None or args.config or bool(args.command) == bool(args.target) or args.header:
        from assay.cli.listen import check
        from assay.cli.listen import run as listen

        check(args)
        if args.listen is not None:
            return listen(args)
    return _run(args)


def _run(args: argparse.Namespace) -> int:
    """Guard for a client on standard input and output."""
    from assay.cli.serve import _log, _open_standard_streams
    from assay.edges.child import Child, StartError
    from assay.edges.hangup import heed
    from assay.edges.pipes import Outlet, Signals

    heed()
    _open_standard_streams()
    settings = loaded_settings(args, _log)
    errors = Outlet(2, shared=True, most=_MOST_LOGGED)
    try:
        # Over standard streams there is one client, and one conversation.
        with recording_of(args, settings, lambda line: _say(errors, line), alone=True) as recording:
            if args.target is not None:
                from assay.cli.remote import run as remote

                return remote(args, in_place(args, settings, _log), errors, recording)
            locked = locked_of(args, settings, _log, command=args.command)
            # The server starts while the modules that judge it are imported.
            with Signals() as signals, Child(args.command) as child:
                settings = in_place(args, settings, _log)
                return _guard(args, settings, child, signals, errors, locked, recording)
    except StartError as error:
        _say(errors, f"assay: {error}")
        return 2
    finally:
        errors.finish(_LAST_LINES)


def _guard(
    args: argparse.Namespace,
    settings: Settings,
    child: Child,
    signals: Signals,
    errors: Outlet,
    locked: Locked | None,
    recording: Recording | None,
) -> int:

    from assay.cli.serve import _leave_what_lasts
    from assay.cli.stdio_guard import stdio_guard
    from assay.edges.stdio_child import SERVER_ENDED, StdioChild
    from assay.guard.backoff import times
    from assay.guard.deliveries import ClientTraits, ServerTraits

    def say(line: str) -> None:
        _say(errors, line)

    log: Callable[[str], None] = (lambda _: None) if args.quiet else say
    terms = terms_of(args, settings, say)
    with stdio_guard(args, settings, terms, locked, recording, say, log, command=args.command) as (watch, factory):
        backoff = _backoff(args, settings, say, enforcing=terms.enforcing)
        session = factory.open(
            ClientTraits("stdio", sees_loss=True, carries_raw=True),
            ServerTraits("child", restorable=backoff is not None),
            watch=watch,
            backoff=backoff,
        )
        relay = StdioChild(
            session,
            child,
            signals,
            errors,
            patience=terms.timeout,
            policy=_restart_policy(args, settings, watch, say) if backoff is not None else None,
            redact=settings.journal.redact,
        )
        _leave_what_lasts()
        status = relay.run()
    for line in watch.summary():
        log(line)
    if errors.lost:
        log(f"assay: {errors.lost:,} bytes for stderr were dropped, because it was not read in time")
    if session.lost:
        what = "subscription or log level was" if session.lost == 1 else "subscriptions or log levels were"
        log(f"assay: {session.lost:,} {what} lost when the server was restarted")
    again = f"was restarted {times(session.restarts)}" if session.restarts else ""
    if status == SERVER_ENDED:
        if settings.guard.flights != "off":
            watch.flight(settings.guard.flights, settings.journal.redact, relay.end)
        say(f"assay: the server ended first: {relay.reason}{again and f'; it {again}'}")
    elif again:
        who = "the guard was stopped; the server" if signals.stopping else "the client left; the server"
        say(f"assay: {who} {again}")
    return exit_status(args, watch, status, say)


def _backoff(
    args: argparse.Namespace, settings: Settings, say: Callable[[str], None], *, enforcing: bool
) -> Backoff | None:
    """Return when the server is started again; None if it never is."""
    from assay.guard.backoff import Backoff

    policy = args.restart or settings.guard.restart
    if policy == "never":
        return None
    if not enforcing:
        say("assay: --restart needs --mode enforce; under audit a server that ends is not restarted")
        return None
    return Backoff(policy, settings.guard.restarts)


def _restart_policy(
    args: argparse.Namespace, settings: Settings, watch: GuardSummary, say: Callable[[str], None]
) -> RestartPolicy:
    """Return how the server is started again."""
    from assay.edges.child import Child
    from assay.edges.child_supervisor import RestartPolicy

    def report(end: End, wait: float) -> None:
        say(f"assay: the server ended: {end.why}; restarting in {wait:g} s")
        if settings.guard.flights != "off":
            watch.flight(settings.guard.flights, settings.journal.redact, end)

    return RestartPolicy(lambda: Child(args.command), report)


def _say(errors: Outlet, line: str) -> None:
    from assay.base.printable import plain
    from assay.edges.standard_streams import for_stderr

    errors.say(for_stderr(plain(line)))

"""``assay guard``: in front of another server."""

# ruff: noqa: PLC0415  each command imports only what it needs

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from assay.cli.ci import add_options, exit_status, recording_of
from assay.cli.guard_terms import in_place, introduce, loaded_settings, locked_of, records_of, server_name, terms_of
from assay.cli.serve import add_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.edges.child import Child
    from assay.edges.guard.stdio_to_child.keeper import Renewal
    from assay.edges.pipes import Outlet, Signals
    from assay.guard.flight import End
    from assay.guard.watch import Watch
    from assay.lock.inspection import Inspection
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
"""Bytes that wait for whoever reads stderr; what comes on top of them is dropped, and the server never waits."""

_LAST_LINES = 1.0
"""Seconds that are waited at the end for whoever reads stderr."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``guard``."""
    parser = subparsers.add_parser(
        "guard",
        help="judge every message between a client and a server, and stop invalid ones",
        description="Stands between an MCP server and its clients, and judges every message in both directions.",
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
    """Give *parser* the options that say which server is guarded, and for whom."""
    parser.add_argument("--target", metavar="URL", help="guard the server at URL")
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="serve clients over HTTP at ADDRESS, such as 127.0.0.1:8765; port 0 takes any free port",
    )
    parser.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        action="append",
        default=[],
        help="a header for the server at URL; env:NAME as VALUE reads the variable NAME; can be repeated",
    )
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
    """Guard until the client leaves or the server ends."""
    if args.listen is not None or args.config or bool(args.command) == bool(args.target) or args.header:
        from assay.cli.listen import check
        from assay.cli.listen import run as listen

        check(args)
        if args.listen is not None:
            return listen(args)
    return _run(args)


def _run(args: argparse.Namespace) -> int:
    """A client on our standard streams."""
    from assay.cli.serve import _log, _open_standard_streams
    from assay.edges.child import Child, StartError
    from assay.edges.hangup import heed
    from assay.edges.pipes import Outlet, Signals

    heed()
    _open_standard_streams()
    settings = loaded_settings(args, _log)
    errors = Outlet(2, shared=True, most=_MOST_LOGGED)
    try:
        with recording_of(args, settings, lambda line: _say(errors, line)) as recording:
            if args.target is not None:
                from assay.cli.remote import run as remote

                return remote(args, in_place(args, settings, _log), errors, recording)
            locked = locked_of(args, settings, _log, command=args.command)
            # The server starts while we import what judges and names it.
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
    from time import monotonic

    from assay.cli.serve import _leave_what_lasts
    from assay.core.conversation import Conversation
    from assay.edges.guard.stdio_to_child.relay import SERVER_ENDED, Relay
    from assay.edges.recorder import Recorder
    from assay.guard.guard import Guard
    from assay.guard.restarts import times
    from assay.guard.watch import Watch

    def say(line: str) -> None:
        _say(errors, line)

    log: Callable[[str], None] = (lambda _: None) if args.quiet else say
    terms = terms_of(args, settings, say)
    guard = Guard(
        mode=terms.mode,
        limits=terms.limits,
        clock=monotonic,
        timeout=terms.timeout,
        policy=terms.policy,
        lock=_lock(locked),
        lines=True,
        judge=Conversation if recording is None else recording.judge(server_name(args)),
    )
    watch = Watch(
        log,
        say,
        enforcing=terms.enforcing,
        keeping=settings.guard.flights != "off",
        redact=settings.journal.redact,
        name=server_name(args),
        introducing=True,
    )
    with records_of(args, settings, say) as records:
        introduce(args, terms.mode, records, log)
        recorder = Recorder("stdio", "stdio", records, holding=True)
        renewal = _renewal(args, settings, watch, say, enforcing=terms.enforcing)
        relay = Relay(
            guard,
            child,
            recorder,
            watch,
            signals,
            errors,
            patience=terms.timeout,
            renewal=renewal,
            redact=settings.journal.redact,
        )
        _leave_what_lasts()
        status = relay.run()
    for line in watch.summary():
        log(line)
    if errors.lost:
        log(f"assay: {errors.lost:,} bytes for stderr were dropped, because it was not read in time")
    if relay.lost:
        what = "subscription or log level was" if relay.lost == 1 else "subscriptions or log levels were"
        log(f"assay: {relay.lost:,} {what} lost when the server was restarted")
    again = f"was restarted {times(relay.restarts)}" if relay.restarts else ""
    if status == SERVER_ENDED:
        if settings.guard.flights != "off":
            watch.flight(settings.guard.flights, settings.journal.redact, relay.end)
        say(f"assay: the server ended first: {relay.reason}{again and f'; it {again}'}")
    elif again:
        who = "the guard was stopped; the server" if signals.stopping else "the client left; the server"
        say(f"assay: {who} {again}")
    return exit_status(args, watch, status, say)


def _renewal(
    args: argparse.Namespace, settings: Settings, watch: Watch, say: Callable[[str], None], *, enforcing: bool
) -> Renewal | None:
    """How the server is started again, if it is."""
    from assay.guard.restarts import Restarts

    policy = args.restart or settings.guard.restart
    if policy == "never":
        return None
    if not enforcing:
        say("assay: --restart needs --mode enforce; under audit a server that ends is not restarted")
        return None
    from assay.edges.child import Child
    from assay.edges.guard.stdio_to_child.keeper import Renewal

    restarts = Restarts(policy, settings.guard.restarts)

    def told(end: End, wait: float) -> None:
        say(f"assay: the server ended: {end.why}; restarting in {wait:g} s")
        if settings.guard.flights != "off":
            watch.flight(settings.guard.flights, settings.journal.redact, end)

    return Renewal(lambda: Child(args.command), restarts, told)


def _lock(locked: Locked | None) -> Inspection | None:
    if locked is None:
        return None
    from assay.lock.inspection import Inspection

    return Inspection(locked)


def _say(errors: Outlet, line: str) -> None:
    from assay.base.printable import plain
    from assay.edges.standard_streams import for_stderr

    errors.say(for_stderr(plain(line)))

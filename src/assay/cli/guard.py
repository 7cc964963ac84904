"""``assay guard``: guard a server that this process starts, for a client on standard streams."""

from __future__ import annotations

import argparse
import gc
import math

from assay.cli.guard_plan import client_files, loaded_settings, named_servers, plan_of, recording_of
from assay.cli.options import add_fail_on, add_headers, add_record, add_settings
from assay.cli.program import open_standard_streams, say
from assay.edges.child import Child, StartError
from assay.edges.hangup import heed
from assay.edges.pipes import Outlet, Signals
from assay.edges.standard_streams import for_stderr
from assay.model.errors import UsageError
from assay.model.names import cut_name
from assay.model.printable import plain
from assay.settings.extras import missing

_EPILOG = """\
In a client's configuration, put `assay guard --` in front of the server's command; nothing else changes.
Under audit, the default, every message is forwarded unchanged, and findings go to stderr and the journal.
Under enforce the guard blocks messages that break the protocol or a tool's contract, and answers their sender.

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
        description="Judge every message between an MCP server and its clients, in both directions.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "--mode",
        choices=("audit", "enforce"),
        help="report findings only (the default), or block invalid messages",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        help="time limit for a response, under enforce; 0 for none (default: 600)",
    )
    parser.add_argument("--journal", metavar="DIR", help="journal directory, or off; overrides ASSAY_JOURNAL")
    parser.add_argument(
        "--restart",
        choices=("never", "on-failure", "always"),
        help="when to restart a server that exits, under enforce (default: never)",
    )
    parser.add_argument(
        "--lock",
        metavar="FILE",
        help="lock to compare the server with, or off (default: assay.lock, if it has this server)",
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        type=_name,
        help="server name in logs, journal and lock (default: derived from its command or URL)",
    )
    parser.add_argument("--quiet", action="store_true", help="do not print findings and the summary to stderr")
    add_record(parser)
    add_fail_on(parser, "never", "4 after any finding, or only if a message was or would be refused")
    parser.add_argument("--target", metavar="URL", help="guard the server at URL")
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="serve HTTP clients at ADDRESS, such as 127.0.0.1:8765; port 0 picks a free port",
    )
    add_headers(parser)
    add_settings(parser, "; a .json or .jsonc file is a client's configuration, and all of its servers are guarded")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the server's command, after --")
    parser.set_defaults(run=run)


def _name(text: str) -> str:
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
        _check(args)
        if args.listen is not None:
            try:
                # Serving over HTTP needs an extra, and takes 60 ms more to start.
                from assay.cli.listen import run as listen  # noqa: PLC0415
            except ImportError as error:
                say(f"assay: guarding over HTTP needs {missing(error, 'http')}")
                return 2
            return listen(args)
    return _run(args)


def _check(args: argparse.Namespace) -> None:
    """Raise `UsageError` unless the command line names one server, or one client's file, and how to serve it."""
    clients = client_files(args)
    given = named_servers(args)
    if not given:
        raise UsageError("give a COMMAND, --target URL or --config FILE.json")
    if len(given) > 1:
        raise UsageError(f"give only one of {' and '.join(given)}")
    if clients and args.listen is None:
        raise UsageError(f"--config {clients[0]} needs --listen ADDRESS: its servers are served over HTTP")
    if clients and args.name is not None:
        raise UsageError(f"--name is for one server; the servers in {clients[0]} have names")
    if args.header and args.target is None:
        raise UsageError("--header needs --target URL")


def _run(args: argparse.Namespace) -> int:
    """Guard for a client on standard input and output."""
    # Until `leave_what_lasts`: as in `assay.cli.main`.
    gc.disable()
    heed()
    open_standard_streams()
    settings = loaded_settings(args, say)
    errors = Outlet(2, shared=True, most=_MOST_LOGGED)

    def tell(line: str) -> None:
        errors.say(for_stderr(plain(line)))

    try:
        plan = plan_of(args, settings, tell)
        # Over standard streams there is one client, and one conversation.
        with recording_of(args.record, settings, tell, alone=True, is_quiet=args.quiet) as recording:
            if args.target:
                from assay.cli.guard_stdio import guard_url  # noqa: PLC0415 - as below

                return guard_url(plan, errors, recording)
            locked = plan.locked(args.command)
            with Signals() as signals, Child(args.command) as child:
                # The server starts while the modules that judge it are imported: it answers 50 ms earlier.
                from assay.cli.guard_stdio import guard_child  # noqa: PLC0415

                return guard_child(plan, child, signals, errors, locked, recording)
    except StartError as error:
        tell(f"assay: {error}")
        return 2
    finally:
        errors.finish(_LAST_LINES)

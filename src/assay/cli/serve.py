"""``assay serve``: run the asset server."""

# ruff: noqa: PLC0415  each command imports only what it needs: `assay --help` needs none of it

from __future__ import annotations

import argparse
import gc
import os
import sys
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.assets.mcp_methods import Methods
    from assay.edges.recorder import Records
    from assay.settings import Settings

_EPILOG = """\
An asset is a JSON document with a schema; this server lists, validates, compares and stores assets.
Schemas and examples come from the options, else from SYN_SCHEMAS_DIR and SYN_EXAMPLES_DIR, else from
libs/synesthetic-schemas in the working directory. SYN_BACKEND_URL enables populate_backend.
MCP_READY_FILE (default /tmp/mcp.ready) exists while the server is ready.

Exit status: 0 the input ended or a signal came, 2 the configuration is invalid.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``serve``."""
    parser = subparsers.add_parser(
        "serve",
        help="run the bundled asset server: schemas, examples, validation, diff, backend population",
        description="Run the bundled asset server over STDIO or HTTP: bare JSON-RPC methods, and an MCP server.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--http",
        metavar="ADDRESS",
        help="serve over HTTP at ADDRESS, such as 127.0.0.1:8765; port 0 takes any free port",
    )
    parser.add_argument(
        "--schemas", metavar="DIR", type=directory, help="directory of the schemas; wins over SYN_SCHEMAS_DIR"
    )
    parser.add_argument(
        "--examples", metavar="DIR", type=directory, help="directory of the examples; wins over SYN_EXAMPLES_DIR"
    )
    parser.add_argument("--journal", metavar="DIR", help="directory of the journal, or off; wins over ASSAY_JOURNAL")
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="derive ids from the messages and stop the clocks, so that two runs have the same journal",
    )
    add_settings(parser)
    parser.set_defaults(run=run)


def add_settings(parser: argparse.ArgumentParser, others: str = "") -> None:
    """Add --config and --set to *parser*; *others* is the help about other kinds of files that --config accepts."""
    if others:
        about = "read all settings from FILE, not from assay.toml"
        parser.add_argument("--config", metavar="FILE", action="append", default=[], help=about + others)
    else:
        about = "read settings from FILE, not from assay.toml or pyproject.toml"
        parser.add_argument("--config", metavar="FILE", help=about)
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one setting, such as limits.depth=64; wins over the file and the environment; can be repeated",
    )


def directory(name: str) -> str:
    """Return *name* if it is a directory; the type of an option."""
    if not os.path.isdir(name):
        raise argparse.ArgumentTypeError(f"{name}: no such directory")
    return name


def run(args: argparse.Namespace) -> int:
    """Serve until the input ends or a signal comes."""
    from assay.assets.asset_sources import Catalogue
    from assay.assets.mcp_methods import Methods
    from assay.assets.response import Tiers
    from assay.base.limits import REQUESTS
    from assay.cli.records import opened
    from assay.edges.hangup import heed
    from assay.settings import load

    # No garbage collection during start-up: nothing is garbage yet, and the search took 8 ms.
    gc.disable()
    heed()
    _open_standard_streams()
    settings = load(os.environ, os.curdir, file=args.config, flags=args.set, log=_log, limits=REQUESTS)
    longest = settings.limits.frame_bytes
    journaled = 0 if longest == REQUESTS.frame_bytes else longest
    catalogue = Catalogue.read({**os.environ, **_sources(args)}, os.curdir, log=_log)
    with opened(
        args.journal, settings, _log, deterministic=args.deterministic, server="assets", frame_bytes=journaled
    ) as records:
        clock = records.journal.clock if records.journal is not None else perf_counter
        tiers = Tiers(settings.tiers.features)
        methods = Methods(catalogue, tiers=tiers, tier=settings.tiers.tier, clock=clock)
        if args.http is not None:
            return _serve_http(args, settings, methods, records)
        return _serve_stdio(settings, methods, records)


def _serve_stdio(settings: Settings, methods: Methods, records: Records) -> int:
    from assay.assets.asset_responder import responder
    from assay.assets.asset_server import AssetServer
    from assay.edges.recorder import Recorder
    from assay.edges.stdio_lines import StandardStreams
    from assay.records.journal.events import ServerPlace

    recorder = Recorder("stdio", "stdio", records, holding=True)
    server = AssetServer(methods, limits=settings.limits, identify=recorder.identify)
    streams = StandardStreams(
        responder(server, recorder),
        limit=settings.limits.frame_bytes,
        may_take_long=server.may_take_long,
        before_writing=recorder.flush,
        waiting=lambda: recorder.held,
        failed=server.failed,
    )
    if records.journal is not None:
        records.journal.introduce("stdio", "stdio", ServerPlace())
    _leave_what_lasts()
    with streams, _ready_file():
        _log("mcp:ready mode=stdio")
        streams.serve()
    return 0


def _serve_http(args: argparse.Namespace, settings: Settings, methods: Methods, records: Records) -> int:
    try:
        from assay.assets.http import service
    except ImportError as error:
        from assay.base.extras import missing

        _log(f"assay: --http needs {missing(error, 'http')}")
        return 2
    return service.run(
        args.http,
        settings,
        methods,
        records,
        ready=_ready_file,
        settle=_leave_what_lasts,
        log=_log,
    )


def _open_standard_streams() -> None:
    """Open closed standard streams on /dev/null. Otherwise the next opened file would become one of them."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _leave_what_lasts() -> None:
    """
    Exclude permanent objects from garbage collection, and run it less often.

    Messages have no reference cycles, so they are freed without it; the search took a tenth of the CPU time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


def _sources(args: argparse.Namespace) -> dict[str, str]:
    """Return the environment variables of specs/001 that the options replace."""
    given = {"SYN_SCHEMAS_DIR": args.schemas, "SYN_EXAMPLES_DIR": args.examples}
    return {name: value for name, value in given.items() if value is not None}


def _log(line: str) -> None:
    """Print one line to stderr, without control characters. A failed write is ignored; the service goes on."""
    from assay.base.printable import plain

    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            # In one write: a guard shares this stderr, and its own line could come before the end of ours.
            sys.stderr.write(f"{plain(line)}\n")
            sys.stderr.flush()


@contextmanager
def _ready_file() -> Iterator[None]:
    """Keep a file with process id and time while the server is ready. If it cannot be written, serve without it."""
    from datetime import UTC, datetime

    from assay.cli import ready

    path = os.environ.get("MCP_READY_FILE") or "/tmp/mcp.ready"  # noqa: S108 - specs/001 names it
    text = f"{os.getpid()} {datetime.now(UTC).isoformat()}\n".encode()
    try:
        ready.write(path, text)
    except OSError as error:
        _log(f"cannot write the ready file {path}: {error.strerror}")
    try:
        yield
    finally:
        with suppress(OSError):
            ready.remove(path, text)

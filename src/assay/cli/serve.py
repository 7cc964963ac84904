"""``assay serve``: run the asset server."""

from __future__ import annotations

import argparse
import gc
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Final

from assay.assets.asset_server import AssetServer
from assay.assets.asset_sources import Catalogue
from assay.assets.mcp_methods import Methods
from assay.assets.response_envelope import Tiers
from assay.cli.options import add_settings, directory
from assay.cli.program import leave_what_lasts, open_standard_streams, say
from assay.cli.records import opened
from assay.edges.hangup import heed
from assay.edges.recorder import Recorder, Records
from assay.edges.stdio_lines import StandardStreams
from assay.model.atomic_file import replace_file
from assay.model.limits import REQUESTS
from assay.records.record import ServerPlace
from assay.settings import Settings, load
from assay.settings.extras import missing

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
        description="Run the bundled asset server over STDIO or HTTP: bare JSON-RPC methods, and an MCP server.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "--http",
        metavar="ADDRESS",
        help="serve over HTTP at ADDRESS, such as 127.0.0.1:8765; port 0 picks a free port",
    )
    parser.add_argument("--schemas", metavar="DIR", type=directory, help="schema directory; overrides SYN_SCHEMAS_DIR")
    parser.add_argument(
        "--examples", metavar="DIR", type=directory, help="example directory; overrides SYN_EXAMPLES_DIR"
    )
    parser.add_argument("--journal", metavar="DIR", help="journal directory, or off; overrides ASSAY_JOURNAL")
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="write the same journal for the same messages",
    )
    add_settings(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until the input ends or a signal comes."""
    # No garbage collection during start-up: nothing is garbage yet, and the search took 8 ms.
    gc.disable()
    heed()
    open_standard_streams()
    settings = load(os.environ, os.curdir, file=args.config, flags=args.set, log=say, limits=REQUESTS)
    longest = settings.limits.frame_bytes
    journaled = 0 if longest == REQUESTS.frame_bytes else longest
    # The environment variables of specs/001 that the options replace.
    sources = {"SYN_SCHEMAS_DIR": args.schemas, "SYN_EXAMPLES_DIR": args.examples}
    given = {name: value for name, value in sources.items() if value is not None}
    catalogue = Catalogue.read({**os.environ, **given}, os.curdir, log=say)
    directory = args.journal or os.environ.get("ASSAY_JOURNAL") or settings.journal.directory
    settings = replace(settings, journal=replace(settings.journal, directory=directory))
    with opened(settings, say, deterministic=args.deterministic, server="assets", frame_bytes=journaled) as records:
        clock = records.journal.clock if records.journal is not None else perf_counter
        tiers = Tiers(settings.tiers.features)
        methods = Methods(catalogue, tiers=tiers, tier=settings.tiers.tier, clock=clock)
        if args.http is not None:
            return _serve_http(args, settings, methods, records)
        return _serve_stdio(settings, methods, records)


def _serve_stdio(settings: Settings, methods: Methods, records: Records) -> int:
    recorder = Recorder("stdio", "stdio", records, holding=True)
    server = AssetServer(methods, limits=settings.limits, recorder=recorder)
    streams = StandardStreams(
        server.respond,
        limit=settings.limits.frame_bytes,
        may_take_long=server.may_take_long,
        before_writing=recorder.flush,
        waiting=lambda: recorder.held,
        failed=server.failed,
    )
    if records.journal is not None:
        records.journal.introduce("stdio", "stdio", ServerPlace())
    leave_what_lasts()
    with streams, _ready_file():
        say("mcp:ready mode=stdio")
        streams.serve()
    return 0


def _serve_http(args: argparse.Namespace, settings: Settings, methods: Methods, records: Records) -> int:
    try:
        from assay.assets import asset_http  # noqa: PLC0415 - it needs an extra
    except ImportError as error:
        say(f"assay: --http needs {missing(error, 'http')}")
        return 2
    return asset_http.run(
        args.http,
        settings,
        methods,
        records,
        ready=_ready_file,
        settle=leave_what_lasts,
        log=say,
    )


@contextmanager
def _ready_file() -> Iterator[None]:
    """Keep a file with process id and time while the server is ready. If it cannot be written, serve without it."""
    path = os.environ.get("MCP_READY_FILE") or "/tmp/mcp.ready"  # noqa: S108 - specs/001 names it
    text = f"{os.getpid()} {datetime.now(UTC).isoformat()}\n".encode()
    try:
        _write(path, text)
    except OSError as error:
        say(f"cannot write the ready file {path}: {error.strerror}")
    try:
        yield
    finally:
        with suppress(OSError):
            _remove(path, text)


# Some flags do not exist on every platform. With O_NONBLOCK a pipe without a reader is an error, not a wait.
_AS_IT_IS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def _write(path: str, content: bytes) -> None:
    """
    Write *content* to a new file and rename it to *path*. Raises `OSError`.

    A link of that name is replaced, never followed. A device such as `/dev/null`, or a pipe, is written to.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        replace_file(path, content, lasting=False)
        return
    descriptor = os.open(path, os.O_WRONLY | _AS_IT_IS)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def _remove(path: str, content: bytes) -> None:
    """Remove the file at *path* if it still has *content*: another server may have replaced it. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    try:
        ours = stat.S_ISREG(os.fstat(descriptor).st_mode) and os.read(descriptor, len(content) + 1) == content
    finally:
        os.close(descriptor)
    if ours:
        os.unlink(path)

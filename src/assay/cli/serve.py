"""``assay serve``: the asset server."""

# ruff: noqa: PLC0415  each command imports only what it needs: `assay --help` needs none of it

from __future__ import annotations

import argparse
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_EPILOG = """\
Where schemas and examples come from: SYN_SCHEMAS_DIR and SYN_EXAMPLES_DIR, else libs/synesthetic-schemas below the
working directory. SYN_BACKEND_URL enables populate_backend. MCP_READY_FILE (default /tmp/mcp.ready) is there while the
server is ready.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``serve``."""
    parser = subparsers.add_parser(
        "serve",
        help="serve schemas, examples, validation, diff and backend population over STDIO",
        description="The asset server over standard input and output: bare JSON-RPC methods, and a real MCP server.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Serve until the input ends or a signal comes."""
    from assay.assets.methods import Methods
    from assay.assets.server import AssetServer
    from assay.assets.sources import Catalogue
    from assay.edges.stdio import StandardStreams
    from assay.limits import DEFAULT

    methods = Methods(Catalogue.read(os.environ, os.getcwd(), log=_log))
    streams = StandardStreams(AssetServer(methods).hear, limit=DEFAULT.frame_bytes)
    with _ready_file(os.environ.get("MCP_READY_FILE") or "/tmp/mcp.ready"):  # noqa: S108 - specs/001 names it
        _log("mcp:ready mode=stdio")
        streams.serve()
    return 0


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def _ready_file(path: str) -> Iterator[None]:
    """A file that says who is ready and since when, while we are. Without it we serve all the same."""
    from datetime import UTC, datetime

    text = f"{os.getpid()} {datetime.now(UTC).isoformat()}\n"
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        _log(f"no ready file: {path}: {error.strerror}")
    try:
        yield
    finally:
        # Another server may have written its own meanwhile.
        with suppress(OSError):
            with open(path, encoding="ascii") as file:
                ours = file.read() == text
            if ours:
                os.unlink(path)

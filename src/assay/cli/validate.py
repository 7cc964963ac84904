"""``assay validate``: validate asset files against their schemas."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Any, Final

import orjson

from assay.assets.asset_sources import SUBMODULE, Catalogue
from assay.assets.asset_tools import TOO_LARGE, validate_asset
from assay.assets.json_files import read_directory
from assay.assets.library import Library
from assay.cli.options import add_settings, directory
from assay.cli.program import speaker
from assay.judge import syntax
from assay.model.limits import REQUESTS, Limits
from assay.model.printable import escaped
from assay.model.verdict import Violation
from assay.settings import load

_say = speaker("validate", escaped)

_EPILOG = """\
One file gives one line of JSON:
  {"ok":true,"errors":[]}
  {"ok":false,"reason":"validation_failed","errors":[{"path":"/gain","msg":…}]}
Several files, and those of a directory, give one line each, with the name as "file".

The schema of an asset is --schema, else the one that its $schemaRef names, else the one that its file is
named after, else synesthetic-asset. Schemas come from --schemas, else from SYN_SCHEMAS_DIR, else from
libs/synesthetic-schemas/jsonschema in the working directory.
A file may have 1 MiB; the setting limits.frame_bytes changes that.

Exit status: 0 all files are valid, 1 a file is invalid, 2 a file could not be read or is not JSON.
"""

_STATUS: Final = {"validation_failed": 1, "io_error": 2, "parse_error": 2}
"""The exit status by the reason of a result (specs/001 §10). A valid file has no reason."""

_PLACED: Final = frozenset({"syntax/json", "syntax/number", "syntax/surrogate"})
"""The rules that point to a place in the text."""

Result = dict[str, Any]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``validate``."""
    parser = subparsers.add_parser(
        "validate",
        description="Validate asset files against their schemas; the result is JSON.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="an asset; a directory, for every .json file below it; - for standard input",
    )
    parser.add_argument("--schema", metavar="NAME", help="validate against this schema, not the one that a file names")
    parser.add_argument(
        "--schemas", metavar="DIR", type=directory, help="directory of the schemas; wins over SYN_SCHEMAS_DIR"
    )
    add_settings(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Validate the files; return the worst exit status."""
    limits = load(os.environ, os.getcwd(), file=args.config, flags=args.set, log=_say, limits=REQUESTS).limits
    # The schemas that `assay serve` would load, without the examples.
    place = args.schemas or os.environ.get("SYN_SCHEMAS_DIR") or f"{SUBMODULE}/jsonschema"
    library = Library(read_directory(place, os.getcwd(), _say))
    if not library.files:
        _say("no schemas found; give their directory with --schemas or SYN_SCHEMAS_DIR")
    catalogue = Catalogue(library)
    alone = len(args.paths) == 1 and not _is_directory(args.paths[0])
    worst = 0
    for name, failure in _files(args.paths):
        result = failure or _validated(catalogue, name, args.schema, limits)
        worst = max(worst, _STATUS.get(result.get("reason", ""), 0))
        named = result if alone else {"file": os.fsencode(name).decode(errors="replace"), **result}
        sys.stdout.buffer.write(orjson.dumps(named) + b"\n")
        # Flush each line, so that messages on stderr about a file appear next to it.
        sys.stdout.buffer.flush()
    return worst


def _files(paths: list[str]) -> Iterator[tuple[str, Result | None]]:
    """Yield every file in *paths*, sorted within a directory, or the failure for a path without files."""
    for path in paths:
        if not _is_directory(path):
            yield path, None
            continue
        failures: list[OSError] = []
        names = sorted(_below(path, failures))
        yield from ((name, None) for name in names)
        yield from ((str(error.filename), _failed("io_error", str(error.filename), error)) for error in failures)
        if not names and not failures:
            yield path, _failed("io_error", path, "no .json file in it")


def _is_directory(path: str) -> bool:
    return path != "-" and os.path.isdir(path)


def _below(path: str, failures: list[OSError]) -> Iterator[str]:
    """Yield the files below a directory, as a listing does: none in directories named _… or .…, no pipes or devices."""
    for folder, folders, names in os.walk(path, onerror=failures.append):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        whole = (os.path.join(folder, name) for name in names if name.endswith(".json") and not name.startswith("."))
        yield from (name for name in whole if os.path.isfile(name) or os.path.islink(name))


def _validated(catalogue: Catalogue, name: str, schema: str | None, limits: Limits) -> Result:
    """Return the result of `validate_asset` for a file, or the failure to read it."""
    try:
        with open(0 if name == "-" else name, "rb", closefd=name != "-") as file:
            content = file.read(limits.frame_bytes + 1)
    except OSError as error:
        return _failed("io_error", name, error)
    if len(content) > limits.frame_bytes:
        # It is never parsed (specs/001 §6).
        _say(f"{name}: longer than {limits.frame_bytes:,} bytes")
        return dict(TOO_LARGE)
    asset = syntax.read(content, limits.depth)
    if isinstance(asset, Violation):
        place = _place(content) if asset.rule in _PLACED else ""
        return _failed("parse_error", name, f"expected {asset.expected}, found {asset.found}{place}", asset.at)
    base = "" if name == "-" else os.path.basename(name)
    return validate_asset(catalogue, asset, schema or catalogue.schema_of(asset, base))


def _place(content: bytes) -> str:
    """Return the line and column in *content* where the JSON is invalid. Unlike a frame, a file has lines."""
    try:
        orjson.loads(content)
    except orjson.JSONDecodeError as error:
        return f" (line {error.lineno}, column {error.colno})"
    return ""


def _failed(reason: str, name: str, why: OSError | str, at: str = "") -> Result:
    """Return the result for a file that is not an asset, and report it on stderr."""
    said = why if isinstance(why, str) else why.strerror or type(why).__name__
    _say(f"{name}: {at + ': ' if at else ''}{said}")
    return {"ok": False, "reason": reason, "errors": [{"path": at, "msg": said}]}

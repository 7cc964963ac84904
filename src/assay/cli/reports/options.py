"""The options of `assay check` for its reports."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

from assay.cli.reports.json_schema import SCHEMA
from assay.edges.standard_streams import write_utf8
from assay.spec.schema import suggestion

FORMATS: Final = ("text", "json", "ndjson", "sarif", "junit", "github", "gitlab", "markdown", "html")
"""The names of all formats. Apart from the modules that write them, because every `--help` needs the names."""


def add_reports(parser: argparse.ArgumentParser) -> None:
    """Give *parser* the options for formats, files and the baseline."""
    parser.add_argument(
        "--format",
        metavar="FORMAT",
        choices=FORMATS,
        default="text",
        help=f"format on stdout: {', '.join(FORMATS)}",
    )
    parser.add_argument(
        "--output",
        metavar="FORMAT=FILE",
        action="append",
        type=_output,
        default=[],
        help="also write a report to FILE; repeatable",
    )
    parser.add_argument("--baseline", metavar="FILE", help="known findings, which do not count for --fail-on")
    parser.add_argument("--write-baseline", metavar="FILE", help="write all findings to FILE, as a baseline")
    parser.add_argument("--fail-on-stale", action="store_true", help="exit with 1 if a finding of the baseline is gone")
    parser.add_argument("--docs-url", metavar="URL", help="URL of Assay's docs directory, for links to rules")
    parser.add_argument(
        "--schema", action=_PrintSchema, nargs=0, help="print the JSON Schema of --format json, and exit"
    )


class _PrintSchema(argparse.Action):
    """Prints the schema and exits, as `--help` does: no FILE is needed."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print the schema."""
        write_utf8(json.dumps(SCHEMA, indent=2) + "\n")
        parser.exit()


def _output(given: str) -> tuple[str, str]:
    """Return the format and the path of FORMAT=FILE."""
    name, _, path = given.partition("=")
    if not path:
        raise argparse.ArgumentTypeError("expected FORMAT=FILE, such as sarif=assay.sarif")
    if name not in FORMATS:
        remedy = suggestion(name, FORMATS) or f"; there are {', '.join(FORMATS)}"
        raise argparse.ArgumentTypeError(f"unknown format {name!r}{remedy}")
    if path == "-":
        raise argparse.ArgumentTypeError(f"give a file; --format {name} writes to standard output")
    return name, path

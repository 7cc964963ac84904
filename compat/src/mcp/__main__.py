"""
`python -m mcp`: Assay's asset server over standard input and output; `--validate` checks assets instead.

Exit status: that of `assay serve` or `assay validate`; 2 without Assay, and for arguments that there are not.
"""

import argparse
import sys
from collections.abc import Sequence

from mcp import __version__

_EPILOG = "Without arguments it serves, as `assay serve` does; `assay serve --help` lists the variables it reads."


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="python -m mcp", description="Assay's asset server over standard input and output.", epilog=_EPILOG
    )
    top.add_argument("--version", action="version", version=f"mcp {__version__} (assay-mcp-compat)")
    top.add_argument(
        "--validate",
        nargs="+",
        metavar="PATH",
        help="validate assets instead, and print the result as JSON; exit status 0 valid, 1 invalid, 2 unreadable",
    )
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve, or validate; the exit status."""
    paths: list[str] | None = parser().parse_args(arguments).validate
    try:
        from assay.cli.main import main as assay  # noqa: PLC0415 - this is installed before Assay is
    except ModuleNotFoundError as error:
        # Something that Assay itself needs may be missing, too: that is another story.
        if error.name != "assay":
            raise
        print("mcp: Assay is not installed here: run `pip install -e .` in its checkout", file=sys.stderr)
        return 2
    return assay(["serve"] if paths is None else ["validate", "--", *paths])


if __name__ == "__main__":
    sys.exit(main())

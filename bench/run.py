"""
The benches: `make bench` runs all of them, `make bench PARTS="guard http"` or `python bench/run.py guard http` some.

`python bench/run.py serve --only bare,assay` runs some of the candidates, `python bench/run.py worst` the messages that
cost most, which is not a comparison and runs only if it is asked for.

Each compares in one run, everything interleaved, so that a slow moment of the machine hits all alike. All figures are
written to a file, and a table at the end has the targets.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

import archive
import console
import guard
import guard_http
import serve
import serve_http
import speed_targets
import verdict
import worst
from tables import PROGRESS

Part = Callable[[], dict[str, Any]]

PARTS: Final[dict[str, Part]] = {
    "verdict": verdict.main,
    "serve": serve.main,
    "http": serve_http.main,
    "guard": guard.main,
    "listen": guard_http.main,
    "archive": archive.main,
    "console": console.main,
}
KNOWN: Final = (*PARTS, "worst")
RESULT: Final = serve.ROOT / ".cache" / "bench" / "result.json"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="bench/run.py",
        description="What Assay costs: verdicts, the asset server, the guard, a large archive, the page of a console.",
    )
    top.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(KNOWN)}; without one, all but worst")
    top.add_argument("--only", metavar="NAMES", help=f"of serve, some of {','.join(serve.CANDIDATES)}")
    top.add_argument("--result", metavar="FILE", type=Path, default=RESULT, help="where the figures go, as JSON")
    return top


def main(arguments: Sequence[str]) -> int:
    """Run the parts that were asked for; return the exit status."""
    args = parser().parse_args(arguments)
    only = args.only.split(",") if args.only else [*serve.CANDIDATES]
    for kind, given, known in (("part", args.parts, KNOWN), ("candidate", only, serve.CANDIDATES)):
        unknown = [name for name in given if name not in known]
        if unknown:
            print(f"unknown {kind}: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
            return 2
    parts: dict[str, Part] = {**PARTS, "serve": partial(serve.main, only)}
    began = time.monotonic()
    figures = {}
    for name in args.parts or PARTS:
        if name == "worst":
            worst.main()
        else:
            figures[name] = parts[name]()
        PROGRESS.show("")
        print(flush=True)
    if figures:
        report(args.result, figures, time.monotonic() - began)
    return 0


def report(path: Path, figures: dict[str, Any], seconds: float) -> None:
    """Write all figures to *path*, and print the table of targets."""
    result = speed_targets.result_of(figures, seconds)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    print(speed_targets.shown(result))
    print(f"{seconds:.0f} s; all figures are in {path}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

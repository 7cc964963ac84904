"""
The benches: `make bench` runs all of them, `python bench/run.py verdict`, `serve`, `http` or `guard` one.

`python bench/run.py serve --only bare,assay` runs some of the candidates, `python bench/run.py worst` the messages that
cost most, which is no comparison and runs only if it is asked for.

Each compares in one run, everything interleaved, so that a slow moment of the machine hits all alike.
"""

import argparse
import sys
from collections.abc import Sequence

import guard
import guard_http
import serve
import serve_http
import verdict
import worst

BENCHES = ("verdict", "serve", "http", "guard")
KNOWN = (*BENCHES, "worst")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="bench/run.py", description="The cost of a verdict, of the asset server, and of the guard."
    )
    top.add_argument("benches", nargs="*", metavar="BENCH", help=f"{' or '.join(KNOWN)}; without one, all but worst")
    top.add_argument("--only", metavar="NAMES", help=f"of serve, some of {','.join(serve.CANDIDATES)}")
    return top


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; the exit status."""
    args = parser().parse_args(arguments)
    only = args.only.split(",") if args.only else [*serve.CANDIDATES]
    for kind, given, known in (("bench", args.benches, KNOWN), ("candidate", only, serve.CANDIDATES)):
        unknown = [name for name in given if name not in known]
        if unknown:
            print(f"no such {kind}: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
            return 2
    for number, name in enumerate(args.benches or BENCHES):
        if number:
            print()
        if name == "verdict":
            verdict.main()
        elif name == "serve":
            serve.main(only)
        elif name == "guard":
            guard.main()
            print()
            guard_http.main()
        elif name == "worst":
            worst.main()
        else:
            serve_http.main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

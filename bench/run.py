"""
The benches: `make bench` runs all of them, `python bench/run.py verdict` or `serve` one.

Each compares in one run, everything interleaved, so that a slow moment of the machine hits all alike.
"""

import sys
from collections.abc import Callable
from typing import Final

import serve
import verdict

BENCHES: Final[dict[str, Callable[[], None]]] = {"verdict": verdict.main, "serve": serve.main}


def main(names: list[str]) -> int:
    """Run the benches called *names*, all if there are none."""
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"no such bench: {', '.join(unknown)}; there are {' and '.join(BENCHES)}", file=sys.stderr)
        return 2
    for number, name in enumerate(names or BENCHES):
        if number:
            print()
        BENCHES[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

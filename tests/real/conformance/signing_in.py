"""
The suite's scenarios about authorization, with the official TypeScript client: directly, and through the guard.

    signing_in.py [SCENARIO…]    all of them, or those that are named

What the guard must lose is in `signing_in.toml`, with the reason: it makes its own address the `resource`.
Exit status: 0 all is as listed, 1 something is not, 2 the suite could not be run.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from suite import (
    HERE,
    NEUTRAL,
    ROOT,
    SUITE_SECONDS,
    CannotRun,
    Expected,
    Found,
    compared,
    expected_in,
    message,
    suite_command,
)

LIST = HERE / "signing_in.toml"
CLIENT = HERE / "auth_client.mjs"
PACKAGE = ROOT / "tests" / "real" / "clients" / "node_modules" / "@modelcontextprotocol" / "client"
GUARD = (sys.executable, "-m", "assay", "guard", "--mode", "enforce", "--journal", "off", "--set", "guard.flights=off")

AT_ONCE = 2
"""Scenarios: each starts a client, and a guard."""


def scenario(name: str, revision: str, *, guarded: bool) -> Found:
    """What the suite finds of a client in the scenario *name*."""
    node, program = suite_command()
    environment = {**os.environ, **({"ASSAY_GUARD": json.dumps(GUARD)} if guarded else {})}
    with TemporaryDirectory() as directory:
        options = ["--command", f"{node} {CLIENT}", "--scenario", name, "--spec-version", revision, "-o", directory]
        done = subprocess.run(
            [node, program, "client", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            env=environment,
            timeout=SUITE_SECONDS,
            check=False,
        )
        files = list(Path(directory).glob("**/checks.json"))
        if len(files) != 1:
            raise CannotRun(f"the suite has no results for {name}:\n{done.stdout}")
        checks = json.loads(files[0].read_bytes())
    others = ((each["id"], each["status"], message(each)) for each in checks if each["status"] not in NEUTRAL)
    return Found(revision, name, sum(each["status"] == "SUCCESS" for each in checks), tuple(others))


def every(names: Sequence[tuple[str, str]], *, guarded: bool) -> list[Found]:
    """The same for each revision and scenario."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda each: scenario(each[1], each[0], guarded=guarded), names))


def table(direct: Iterable[Found], guarded: Iterable[Found]) -> Iterator[str]:
    """Each scenario with the checks that pass, directly and through the guard, and those that do not."""
    yield f"{'scenario':<46} {'revision':<10} {'direct':>8} {'guarded':>8}"
    for one, other in zip(direct, guarded, strict=True):
        counts = (f"{each.passed}/{each.passed + len(each.others)}" for each in (one, other))
        lost = ", ".join(sorted(other.checks - one.checks))
        yield f"{one.scenario:<46} {one.revision:<10} {next(counts):>8} {next(counts):>8}  {lost}".rstrip()


def main(names: Sequence[str]) -> int:
    """Run both and print the table; the exit status."""
    every_one = expected_in(LIST)
    expected = {
        revision: {name: fails for name, fails in scenarios.items() if not names or name in names}
        for revision, scenarios in every_one.items()
    }
    wanted = [(revision, name) for revision in expected for name in expected[revision]]
    try:
        if not PACKAGE.exists():
            raise CannotRun("the official TypeScript client is not installed: `make test` does it")
        direct, guarded = every(wanted, guarded=False), every(wanted, guarded=True)
    except CannotRun as why:
        print(why, file=sys.stderr)
        return 2
    print(*table(direct, guarded), sep="\n")
    all_pass: Expected = {revision: {name: {} for name in expected[revision]} for revision in expected}
    rows = [*compared(all_pass, direct), *compared(expected, guarded)]
    for row in rows:
        for difference in row.differences:
            print(f"{row.scenario} {row.revision}: {difference}")
    return 1 if any(row.differences for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

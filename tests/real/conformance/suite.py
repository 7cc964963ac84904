"""
The official conformance suite against a server over HTTP, compared check by check with a list of what is expected.

    suite.py                                      the asset server over the bundled catalogue
    suite.py --url http://127.0.0.1:8765/mcp      a server that runs already
    suite.py --expected LIST.toml -- COMMAND…     one that is started, and says on stderr where it is: url=…

The revisions are those of the list, all at the same time; "extensions" stands for the scenarios of extensions. Exit
status: 0 all is as expected, 1 something is not, 2 the suite could not be run. Nothing of ours is imported: the server
is a process like any other.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PACKAGES = HERE / "node_modules"
EXPECTED = HERE / "asset_server.toml"

CATALOGUE = ROOT / "examples" / "catalogue"
ASSET_SERVER = (
    *(sys.executable, "-m", "assay", "serve", "--http", "127.0.0.1:0"),
    *("--schemas", str(CATALOGUE / "jsonschema"), "--examples", str(CATALOGUE / "examples")),
)

START_SECONDS = 60
"""What a server may take to start, and to end; it takes less than one."""

SUITE_SECONDS = 300
"""What the suite may take for one revision; it takes five to ten. Of itself, it gives each scenario 30."""

NODE = 22
"""The oldest Node.js that has what the suite imports."""

EXTENSIONS = "extensions"
"""Stands for a revision: the scenarios of extensions, which belong to none. The suite runs them in 2026-07-28."""

OF_AN_EXTENSION = ("tasks-", "sep-2640-")
"""How the names of those scenarios begin. The suite only runs them among others, which a revision has as well."""

CACHE = ROOT / ".cache"
"""Where Node.js and Python keep what they have compiled: both start in half of the time."""

NEUTRAL = frozenset({"SUCCESS", "INFO"})
"""The statuses of checks that nobody has to look into; the others are FAILURE, WARNING and SKIPPED."""

NOTHING = "nothing-passed"
"""Stands for a check of a scenario of which no check passes and none fails: that is no success."""

Expected = Mapping[str, Mapping[str, Mapping[str, str]]]
"""By revision and scenario: the checks that do not pass, with the reason. None, if the scenario passes."""


class CannotRun(Exception):  # noqa: N818 - it is told to a person, as it is
    """Why the suite cannot be run."""


class Found(NamedTuple):
    """What the suite found in one scenario."""

    revision: str
    scenario: str
    passed: int
    """How many checks did."""
    others: tuple[tuple[str, str, str], ...]
    """Of each that did not: id, status, and what the suite says about it."""

    @property
    def failed(self) -> int:
        """How many checks did: neither warnings nor what was skipped."""
        return sum(status == "FAILURE" for _, status, _ in self.others)

    @property
    def checks(self) -> set[str]:
        """The ids of the checks that did not pass."""
        if not self.others and not self.passed:
            return {NOTHING}
        return {ident for ident, _, _ in self.others}


class Row(NamedTuple):
    """One scenario in one revision: what was found, and whether that is what was expected."""

    revision: str
    scenario: str
    found: Found | None
    reason: str
    """Why it is expected not to pass; empty if it is expected to."""
    differences: tuple[str, ...]


# ── what is expected, and what is found ──────────────────────────────────────────────────────────────────────────────


def expected_in(file: Path) -> Expected:
    """The list in *file*; `asset_server.toml` says what one looks like."""
    with file.open("rb") as stream:
        listed = tomllib.load(stream)
    return {
        revision: {**{scenario: {} for scenario in kinds["passes"]}, **kinds.get("fails", {})}
        for revision, kinds in listed.items()
    }


def compared(expected: Expected, found: Iterable[Found]) -> list[Row]:
    """Every scenario that is expected or was found, by revision and name."""
    by_name = {(each.revision, each.scenario): each for each in found}
    names = by_name.keys() | {(revision, scenario) for revision in expected for scenario in expected[revision]}
    return [
        row(expected, revision, scenario, by_name.get((revision, scenario))) for revision, scenario in sorted(names)
    ]


def row(expected: Expected, revision: str, scenario: str, found: Found | None) -> Row:
    """What was found of one scenario beside what was expected of it."""
    wanted = expected.get(revision, {}).get(scenario)
    reason = "; ".join(dict.fromkeys((wanted or {}).values()))
    if found is None:
        differences = ["did not run"]
    elif wanted is None:
        differences = ["is not in the list"]
    else:
        told = {ident: f"{status.lower()}: {message}" for ident, status, message in found.others}
        more = [f"{check} does not pass: {told.get(check, 'no check does')}" for check in found.checks - wanted.keys()]
        differences = more + [f"{check} passes, or is gone" for check in wanted.keys() - found.checks]
    return Row(revision, scenario, found, reason, tuple(sorted(differences)))


def read_results(directory: Path, revision: str) -> Iterator[Found]:
    """What the suite has left in *directory*: a directory with the checks of each scenario, named with the time."""
    wanted = OF_AN_EXTENSION if revision == EXTENSIONS else ""
    for file in directory.glob("*/checks.json"):
        name = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", file.parent.name)
        if name is None:
            raise CannotRun(f"the suite has named its results otherwise: {file.parent.name}")
        if not name[1].startswith(wanted):
            continue
        checks = json.loads(file.read_bytes())
        others = ((each["id"], each["status"], message(each)) for each in checks if each["status"] not in NEUTRAL)
        passed = sum(each["status"] == "SUCCESS" for each in checks)
        yield Found(revision, name[1], passed, tuple(others))


def message(check: Mapping[str, Any]) -> str:
    """What the suite says about a check, on one line."""
    return " ".join(str(check.get("errorMessage") or check.get("description") or "").split())


# ── running ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def suite_command() -> list[str]:
    """What runs the suite. Raises `CannotRun` where it is not installed."""
    program = PACKAGES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    if not (PACKAGES / ".done").exists() or not program.exists():
        raise CannotRun(
            "the conformance suite is not installed: `make test` does it where there are npm and Node.js 20"
        )
    for node in (str(PACKAGES / ".bin" / "node"), shutil.which("node")):
        if node is not None and node_version(node) >= NODE:
            return [node, str(program)]
    raise CannotRun(f"there is no Node.js {NODE} for this machine, which the conformance suite needs")


def node_version(node: str) -> int:
    """The major version of *node*; 0 if it does not run here."""
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=START_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    return int(said.stdout.strip().removeprefix("v").partition(".")[0])


def environment() -> dict[str, str]:
    """
    The environment for the suite and for servers.

    A guard starts a server for each session, and most of what that takes is compiling.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "NODE_COMPILE_CACHE": str(CACHE / "node"), "PYTHONPYCACHEPREFIX": str(CACHE / "python")}


def selection(revision: str, scenario: str | None) -> list[str]:
    """The options that select the scenarios of *revision*, or one of them."""
    version = [] if revision == EXTENSIONS else ["--spec-version", revision]
    if scenario is not None:
        return ["--scenario", scenario, *version]
    return ["--suite", "all" if version else "pending", *version]


def results(url: str, revision: str, scenario: str | None = None) -> list[Found]:
    """What the suite finds at *url* in *revision*: in all scenarios, or in one of them."""
    with TemporaryDirectory() as directory:
        options = ["--url", url, *selection(revision, scenario), "--output-dir", directory]
        try:
            done = subprocess.run(
                [*suite_command(), "server", *options],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                timeout=SUITE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CannotRun(f"the suite is not done with {revision} in {SUITE_SECONDS} seconds") from None
        found = list(read_results(Path(directory), revision))
    if not found:
        raise CannotRun(f"the suite has no results for {revision}:\n{done.stdout}")
    return found


def run(url: str, expected: Expected) -> list[Row]:
    """Everything that the suite finds at *url*, beside what is expected of it."""
    with ThreadPoolExecutor() as pool:
        found = [each for every in pool.map(lambda revision: results(url, revision), expected) for each in every]
    return compared(expected, found)


@contextmanager
def served(command: Sequence[str], directory: Path | str | None = None) -> Iterator[str]:
    """The address of the server or guard that *command* starts in *directory*, as it says on stderr, while it runs."""
    addresses: SimpleQueue[str | None] = SimpleQueue()
    log: list[str] = []
    with (
        TemporaryDirectory() as scratch,
        subprocess.Popen(
            command,
            cwd=directory or scratch,
            env={**environment(), "MCP_READY_FILE": str(Path(scratch) / "ready")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        ) as process,
    ):

        def listen() -> None:
            # To the end, or a server that logs much would wait for us to read it.
            assert process.stderr is not None
            for line in process.stderr:
                log.append(line)
                if said := re.search(r"(?:\burl=|assay: guarding .* at )(\S+)$", line):
                    addresses.put(said[1])
            addresses.put(None)

        listener = Thread(target=listen, daemon=True)
        listener.start()
        try:
            yield address(addresses, log)
        finally:
            end(process)
            listener.join(START_SECONDS)


def address(addresses: "SimpleQueue[str | None]", log: Sequence[str]) -> str:
    """The first of *addresses*. Raises `CannotRun`, with the *log* of the server, if there is none."""
    try:
        found = addresses.get(timeout=START_SECONDS)
    except Empty:
        found = None
    if found is None:
        raise CannotRun(f"the server does not start:\n{''.join(log)}")
    return found


def end(process: "subprocess.Popen[str]") -> None:
    """Ends *process*, gently if it lets us."""
    process.terminate()
    try:
        process.wait(START_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────────


def table(rows: Iterable[Row]) -> Iterator[str]:
    """The lines of a table: each scenario with the number of checks that passed, failed, and did neither."""
    head = ("scenario", "revision", "passed", "failed", "other", "expected", "why it does not pass")
    lines = [head, *(cells(each) for each in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def cells(each: Row) -> tuple[str, ...]:
    found = each.found
    counts = (found.passed, found.failed, len(found.others) - found.failed) if found is not None else ("-", "-", "-")
    why = "; ".join(each.differences) or each.reason
    return (each.scenario, each.revision, *map(str, counts), "NO" if each.differences else "yes", why)


def report(rows: Sequence[Row]) -> int:
    """Prints the table; the exit status."""
    print(*table(rows), sep="\n")
    different = sum(bool(each.differences) for each in rows)
    passing = sum(each.found is not None and not each.found.checks for each in rows)
    print(f"\n{len(rows)} scenarios, {passing} pass, {different} not as expected")
    return 1 if different else 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="suite.py", description="The official conformance suite against a server.")
    top.add_argument("--url", help="where the server is, if it runs already")
    top.add_argument("--expected", metavar="FILE", type=Path, default=EXPECTED, help="what is expected of it")
    top.add_argument("command", nargs="*", help="starts the server; without it, the asset server is")
    return top


def main(arguments: Sequence[str]) -> int:
    """Run the suite and print the table; the exit status."""
    args = parser().parse_args(arguments)
    expected = expected_in(args.expected)
    try:
        suite_command()
        if args.url:
            rows = run(args.url, expected)
        else:
            # A command of somebody's own may name files as they are seen from here.
            with served(args.command or ASSET_SERVER, os.curdir if args.command else None) as url:
                rows = run(url, expected)
    except CannotRun as why:
        print(why, file=sys.stderr)
        return 2
    return report(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

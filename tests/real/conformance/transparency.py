"""
The official conformance suite against the fixture servers, directly and through the guard, side by side.

    transparency.py [SERVER…]    the servers, of those in `SERVERS`; without any, all of them

Each server is reached directly, over HTTP behind a guard, and over STDIO behind a guard that serves HTTP, each guard
once in audit and once in enforce mode. The guard's journal shows whether it blames a server for anything: these do what
they should. Exit status: 0 the guard changes nothing and blames no server, 1 it does, 2 the suite could not run.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from suite import (
    EXTENSIONS,
    HERE,
    PACKAGES,
    ROOT,
    CannotRun,
    Row,
    expected_in,
    run,
    served,
    suite_command,
)

from kit.journals import records

SDK = ROOT / ".venvs" / "sdk" / "bin" / "python"
EXPECTED = HERE / "fixture_server.toml"
LISTED = expected_in(EXPECTED)


def python_server() -> list[str]:
    """The command of the server on the official Python SDK. Raises `CannotRun` where that is not installed."""
    if not SDK.exists():
        raise CannotRun("the official Python SDK is not installed: `make test` does it")
    return [str(SDK), str(HERE / "fixture_server.py")]


def typescript_server() -> list[str]:
    """The command of the server on the official TypeScript SDK. Raises `CannotRun` where that is not installed."""
    node, _ = suite_command()
    if not (PACKAGES / "@modelcontextprotocol" / "server").exists():
        raise CannotRun("the official TypeScript SDK is not installed: `make test` does it")
    return [node, str(HERE / "typescript_server.mjs")]


SERVERS: dict[str, Callable[[], list[str]]] = {"python": python_server, "typescript": typescript_server}
"""By name, what makes the command that starts the server over STDIO; with `--http ADDRESS`, over HTTP."""

DIRECT = "direct"
PATHS = (DIRECT, "http audit", "http enforce", "child audit", "child enforce")
"""How a server is reached: without a guard, or how it is behind the guard and the guard's mode."""


class Trip(NamedTuple):
    """A server, a path to it, and the revisions to run the suite in."""

    server: str
    path: str
    revisions: tuple[str, ...] = tuple(LISTED)


class Visit(NamedTuple):
    """What came of a trip."""

    trip: Trip
    rows: list[Row]
    """What the suite found, beside what is expected."""
    blamed: list[str]
    """What the guard found wrong with the server."""

    @property
    def differences(self) -> Iterator[str]:
        """A line for each scenario that is not as it should be, and for each time the server is blamed."""
        where = f"{self.trip.server}, {self.trip.path}"
        for row in self.rows:
            if row.differences:
                yield f"{where}, {row.revision}, {row.scenario}: {'; '.join(row.differences)}"
        yield from (f"{where}, the server is blamed: {each}" for each in self.blamed)


def visit(trip: Trip) -> Visit:
    """Run the suite on *trip*, with a new server and a new guard."""
    with TemporaryDirectory() as journal:
        with reached(trip.server, trip.path, journal) as url:
            rows = run(url, {each: LISTED[each] for each in trip.revisions})
        return Visit(trip, rows, list(blamed(Path(journal))))


def blamed(journal: Path) -> Iterator[str]:
    """The findings against the server in a journal."""
    for record in records(journal):
        if record["metadata"]["party"] == "server" and record["error"] is not None:
            for each in record["error"]["violations"]:
                yield f"{record['method']}: {each['at']} {each['rule']}, found {each['found']}"


@contextmanager
def reached(server: str, path: str, journal: str) -> Iterator[str]:
    """The address of *server* by way of *path*, while it runs. A guard on the way writes its journal to *journal*."""
    command = SERVERS[server]()
    over_http = [*command, "--http", "127.0.0.1:0"]
    if path == DIRECT:
        with served(over_http) as url:
            yield url
        return
    over, mode = path.split()
    guard = [sys.executable, "-m", "assay", "guard", "--journal", journal, "--mode", mode, "--listen", "127.0.0.1:0"]
    if over == "child":
        with served([*guard, "--", *command]) as url:
            yield url
        return
    with served(over_http) as target, served([*guard, "--target", target]) as url:
        yield url


def passing(found: Iterable[Row]) -> int:
    """How many scenarios pass."""
    return sum(each.found is not None and not each.found.checks for each in found)


class Kind(NamedTuple):
    """A line of the table: scenarios of one revision, or of one extension."""

    name: str
    revision: str
    prefix: str = ""
    """How the names of its scenarios begin."""

    def has(self, row: Row) -> bool:
        return row.revision == self.revision and row.scenario.startswith(self.prefix)


KINDS = (
    *(Kind(revision, revision) for revision in LISTED if revision != EXTENSIONS),
    Kind("tasks", EXTENSIONS, "tasks-"),
    Kind("skills", EXTENSIONS, "sep-2640-"),
)


def table(server: str, visits: Sequence[Visit]) -> Iterator[str]:
    """How many scenarios pass at *server* on each of *visits*."""
    for kind in KINDS:
        rows = [[row for row in each.rows if kind.has(row)] for each in visits]
        yield line(server, kind.name, *(f"{passing(each)}/{len(each)}" for each in rows))


def line(server: str, kind: str, *cells: str) -> str:
    return "  ".join([f"{server:<10}  {kind:<10}", *(f"{cell:<13}" for cell in cells)]).rstrip()


def main(servers: Sequence[str]) -> int:
    """Run everything and print the table; the exit status."""
    print(line("server", "revision", *PATHS))
    wrong: list[str] = []
    for server in servers:
        try:
            visits = [visit(Trip(server, path)) for path in PATHS]
        except CannotRun as why:
            print(why, file=sys.stderr)
            return 2
        print(*table(server, visits), sep="\n", flush=True)
        wrong += [difference for each in visits for difference in each.differences]
    print("\nThe guard changes nothing." if not wrong else "\n".join(["", *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(SERVERS)))

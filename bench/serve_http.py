"""
The asset server over HTTP, beside a bare application and the official SDK, in one run.

Every candidate is a process of its own on uvicorn with httptools and uvloop, and gives the same answer to the same
call of a tool. `list_schemas` has nothing to do of its own, so that the row shows what serving costs; `validate_asset`
validates a small asset. Assay does the work: it judges the call, validates, holds its answer to the contract, counts,
and writes both down. The others give a constant, and the bare application does not even look at what it is asked.
Ratios count; the rest depends on the machine.
"""

import platform
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from importlib.metadata import version
from math import isnan
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import orjson

from client import FIRST_ID
from client_http import CONNECTIONS, MODERN, HttpDoor, HttpServer, free_port
from payloads import REVISION
from rounds import Found, Plan, measured
from serve import CALLS, HERE, assay, environment, installed, same
from tables import PROGRESS, table

PLAN: Final = Plan(rounds=15, flood_seconds=0.2, trips=300, trip_seconds=0.05)

DOORS: Final = (
    HttpDoor(MODERN, "list_schemas", CALLS["list_schemas"]),
    HttpDoor(MODERN, "validate_asset", CALLS["validate_asset"]),
    HttpDoor(REVISION, "list_schemas", CALLS["list_schemas"]),
    HttpDoor(REVISION, "validate_asset", CALLS["validate_asset"]),
)


# ── the candidates ───────────────────────────────────────────────────────────────────────────────────────────────────


class Candidate(NamedTuple):
    """One that is measured."""

    title: str
    command: Callable[[Path, int], list[str]]
    """How it is started with what it is to say, and the port to listen at."""
    package: str = "uvicorn"
    """What has to be installed for it."""
    handshake: bool = False
    """Whether it makes a difference only where there are sessions."""


def python(script: str, *options: str) -> Callable[[Path, int], list[str]]:
    """How a script of ours is started."""
    return lambda given, port: [sys.executable, str(HERE / "servers" / script), str(given), str(port), *options]


def assay_with(journal: str) -> Callable[[Path, int], list[str]]:
    """Assay, its journal below the directory of this run, or off."""
    return lambda given, port: [
        *assay(),
        "--http",
        f"127.0.0.1:{port}",
        "--journal",
        journal if journal == "off" else str(given.parent / journal),
    ]


CANDIDATES: Final = {
    "bare": Candidate("bare ASGI", python("http_bare.py")),
    "assay": Candidate("assay serve", assay_with("journal")),
    "off": Candidate("  journal off", assay_with("off")),
    "sdk": Candidate("official SDK", python("http_official.py"), "mcp"),
    "sessions": Candidate("  with sessions", python("http_official.py", "sessions"), "mcp", handshake=True),
}


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def learned(door: HttpDoor, given: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """What Assay answers, and the tool as it lists it: what all others are to say."""
    port = free_port()
    server = HttpServer(assay_with("off")(given, port), port, door, environ)
    try:
        server.open()
        result = server.call()
        tools = server.ask("tools/list", {})["tools"]
    finally:
        server.close()
    return {"result": result, "tool": next(tool for tool in tools if tool["name"] == door.tool)}


def tried(
    door: HttpDoor, names: Collection[str], given: Path, expected: dict[str, Any], environ: Mapping[str, str]
) -> dict[str, Found]:
    """All candidates, in one run."""
    with ExitStack() as stack:
        running: dict[str, HttpServer] = {}
        for name in names:
            port = free_port()
            running[name] = server = HttpServer(CANDIDATES[name].command(given, port), port, door, environ)
            stack.callback(server.close)
            server.open()
            assert same(server.call(), expected), f"{name} answers something else"
        return measured(f"http, {door.revision} {door.tool}", running, PLAN)


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────

Column = tuple[str, Callable[[Found, dict[str, Found]], str]]
"""A heading, and a cell from a candidate and all of them."""


def times(other: str, measure: str, digits: int) -> Callable[[Found, dict[str, Found]], str]:
    """How many times that of *other* the *measure* is; nothing if the other was not measured."""
    value = attrgetter(measure)
    return lambda one, every: f"{value(one) / value(every[other]):.{digits}f}" if other in every else ""


COLUMNS: Final[tuple[Column, ...]] = (
    ("calls/s", lambda one, _: f"{one.calls:,.0f}"),
    ("× bare", times("bare", "calls", 2)),
    ("× SDK", times("sdk", "calls", 1)),
    ("× off", times("off", "calls", 2)),
    ("CPU %", lambda one, _: "n/a" if isnan(one.share) else f"{one.share:.0%}"),
    ("CPU µs", lambda one, _: "n/a" if isnan(one.cpu) else f"{one.cpu:,.0f}"),
    ("× bare", times("bare", "cpu", 2)),
    ("p50 µs", lambda one, _: f"{one.p50:,.0f}"),
    ("× bare", times("bare", "p50", 2)),
    ("p99 µs", lambda one, _: f"{one.p99:,.0f}"),
    ("RSS MB", lambda one, _: "n/a" if one.memory is None else f"{one.memory:.0f}"),
)

NOTES: Final = f"""
calls/s: {CONNECTIONS} connections, one call at a time on each, the best of {PLAN.rounds} rounds; × off: without journal
CPU %: what the server had of its CPU in that round; well below 100, the machine was busy: look at CPU µs
CPU µs: of the server, in the system too, a call, the mean of the better half of these rounds; RSS: after them
p50, p99: one connection, one call at a time, the best of {PLAN.rounds} rounds
  Client and server have a CPU each for calls/s and share one for p50 and p99, where the system can do that.
The others give a constant; Assay judges, calls the tool, holds its answer to the contract, and writes both down.
"""


def show(found: dict[str, Found], missing: dict[str, str]) -> None:
    """Print one group of candidates."""
    rows = [(CANDIDATES[name].title, *(cell(one, found) for _, cell in COLUMNS)) for name, one in found.items()]
    rows += [(CANDIDATES[name].title, reason) for name, reason in missing.items()]
    PROGRESS.show("")
    print(table(("", *(head for head, _ in COLUMNS)), rows), end="")


def main(names: Collection[str] = tuple(CANDIDATES)) -> dict[str, Any]:
    """Measure the candidates called *names*, both tools in both eras, and print a table of each; return the figures."""
    figures: dict[str, Any] = {}
    packages = [each for each in ("uvicorn", "httptools", "uvloop", "mcp") if not installed(each)]
    shown = {"Python": platform.python_version()} | {each: version(each) for each in packages}
    print("assay serve --http beside peers; " + ", ".join(f"{name} {each}" for name, each in shown.items()))
    if installed("uvicorn"):
        print("uvicorn is not installed")
        return figures
    with TemporaryDirectory() as directory:
        for door in DOORS:
            found = beside(door, Path(directory), names)
            figures[f"{door.revision} {door.tool}"] = {name: one.as_json() for name, one in found.items()}
    print(NOTES, end="")
    return figures


def beside(door: HttpDoor, directory: Path, names: Collection[str]) -> dict[str, Found]:
    """Measure at one door, and print the table."""
    environ = environment(directory)
    given = directory / "given.json"
    known = learned(door, given, environ)
    given.write_bytes(orjson.dumps(known))
    wanted = [name for name in names if door.handshake or not CANDIDATES[name].handshake]
    missing = {name: reason for name in wanted if (reason := installed(CANDIDATES[name].package))}
    found = tried(door, [name for name in wanted if name not in missing], given, known["result"], environ)
    asked = orjson.dumps({**door.call, "id": FIRST_ID})
    answer = orjson.dumps({"jsonrpc": "2.0", "id": FIRST_ID, "result": known["result"]})
    print(f"\n{door.revision} tools/call {door.tool}: bodies of {len(asked)} bytes in, {len(answer)} bytes out")
    show(found, missing)
    return found


if __name__ == "__main__":
    main()

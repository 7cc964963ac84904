"""
The asset server over standard input and output, beside peers, in one run.

Every candidate is a process of its own, spoken to over pipes, and gives the same answer to the same call of a tool.
`list_schemas` has nothing to do of its own, so that the row shows what serving costs; `validate_asset` validates a
small asset. Assay does the work: it judges the call, validates, holds its answer to the contract, and writes each
verdict to its journal. The peers give a constant, and the bare loop does not even look at what it is asked. Ratios
count; the rest depends on the machine.
"""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from math import isnan
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import orjson

from client import FIRST_ID, Door, Process
from payloads import REVISION
from rounds import Found, Plan, measured
from tables import PROGRESS, table

PLAN: Final = Plan(rounds=8, flood_seconds=0.2, trips=1000, trip_seconds=0.1, first=200)

STARTS: Final = 3
"""Processes started of each. The median counts."""

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
NODE: Final = ROOT / ".cache" / "bench-node"
NODE_PACKAGE: Final = "@modelcontextprotocol/server"

ASSET: Final = {
    "name": "Low hum",
    "waveform": "triangle",
    "frequency": 110,
    "envelope": {"attack": 0.4, "decay": 0.1, "sustain": 0.8, "release": 1.5},
}
CALLS: Final = {"list_schemas": {}, "validate_asset": {"asset": ASSET, "schema": "tone"}}
"""Arguments by tool."""

OPENING: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
)


def door(tool: str, *, mcp: bool) -> Door:
    """A way to call *tool*."""
    if mcp:
        return Door(OPENING, "tools/call", {"name": tool, "arguments": CALLS[tool]})
    return Door((), tool, CALLS[tool])


def environment(directory: Path) -> dict[str, str]:
    """What a candidate is started with: as a user's shell has it, whatever runs the bench."""
    # Without bytecode caches every start would compile; unbuffered streams would cost the peers a system call a write.
    ours = {
        key: value
        for key, value in os.environ.items()
        if key not in {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "SYN_BACKEND_URL"}
    }
    catalogue = ROOT / "examples" / "catalogue"
    return ours | {
        "SYN_SCHEMAS_DIR": str(catalogue / "jsonschema"),
        "SYN_EXAMPLES_DIR": str(catalogue / "examples"),
        "MCP_READY_FILE": str(directory / "ready"),
    }


# ── the candidates ───────────────────────────────────────────────────────────────────────────────────────────────────


def assay() -> list[str]:
    """The command as it is installed."""
    return [str(Path(sysconfig.get_path("scripts")) / "assay"), "serve"]


def assay_with(journal: str) -> Callable[[Path], list[str] | str]:
    """The same, its journal beside what the peers are given, or off."""
    return lambda given: [*assay(), "--journal", journal if journal == "off" else str(given.with_name(journal))]


def python(script: str, package: str = "") -> Callable[[Path], list[str] | str]:
    """How a script of ours is started, or why it is not."""
    return lambda given: (
        (package and installed(package))
        or [
            sys.executable,
            str(HERE / "servers" / script),
            str(given),
        ]
    )


def typescript(*options: str) -> Callable[[Path], list[str] | str]:
    """The same for the TypeScript server."""
    return lambda given: node() or ["node", str(NODE / "typescript.mjs"), str(given), *options]


class Candidate(NamedTuple):
    """One that is measured."""

    title: str
    command: Callable[[Path], list[str] | str]
    """How it is started with what it is to say, or why it is not."""
    bare: bool = False
    """Whether it takes the tool as a bare method, too."""


CANDIDATES: Final = {
    "bare": Candidate("bare loop", python("bare.py"), bare=True),
    "assay": Candidate("assay serve", assay_with("journal"), bare=True),
    "off": Candidate("  journal off", assay_with("off"), bare=True),
    "sdk": Candidate("official SDK", python("official.py", "mcp")),
    "fastmcp": Candidate("fastmcp", python("fast.py", "fastmcp")),
    "ts-low": Candidate("TypeScript, low", typescript("low")),
    "ts": Candidate("TypeScript", typescript()),
}


def installed(package: str) -> str:
    """Why *package* cannot be measured, if it cannot."""
    try:
        version(package)
    except PackageNotFoundError:
        return "not installed"
    return ""


@cache
def node() -> str:
    """Why there is no TypeScript server; sets it up where there can be one."""
    npm = shutil.which("npm")
    if shutil.which("node") is None or npm is None:
        return "no node"
    NODE.mkdir(parents=True, exist_ok=True)
    if not (NODE / "node_modules" / NODE_PACKAGE).is_dir():
        command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(NODE), f"{NODE_PACKAGE}@^2"]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            return "npm install failed"
    # Node looks for packages beside the file.
    shutil.copyfile(HERE / "servers" / "typescript.mjs", NODE / "typescript.mjs")
    return ""


def versions(names: Collection[str]) -> str:
    """What is measured."""
    named = {"Python": platform.python_version()}
    for name, package in (("sdk", "mcp"), ("fastmcp", "fastmcp")):
        if name in names and not installed(package):
            named[package] = version(package)
    manifest = NODE / "node_modules" / NODE_PACKAGE / "package.json"
    if {"ts", "ts-low"}.intersection(names) and not node() and manifest.is_file():
        named["node"] = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout.strip()
        named[NODE_PACKAGE] = orjson.loads(manifest.read_bytes())["version"]
    return ", ".join(f"{name} {each}" for name, each in named.items())


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def learned(door: Door, environ: Mapping[str, str]) -> dict[str, Any]:
    """What Assay answers, and the tool as it lists it: what all others are to say."""
    server = Process([*assay(), "--journal", "off"], door, environ)
    try:
        server.open()
        result = server.call()
        tools = server.ask("tools/list")["tools"] if door.opening else [{"name": door.method}]
    finally:
        server.close()
    return {"result": result, "tool": next(tool for tool in tools if tool["name"] == door.tool)}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two results are alike but for what differs from call to call, and for what a peer adds."""
    first, second = (each.get("structuredContent", each) for each in (one, other))
    return {**first, "request_id": "", "duration_ms": 0} == {**second, "request_id": "", "duration_ms": 0}


def tried(
    door: Door, commands: dict[str, list[str]], expected: dict[str, Any], environ: Mapping[str, str]
) -> dict[str, Found]:
    """All candidates, in one run."""
    with ExitStack() as stack:
        running: dict[str, Process] = {}
        for name, command in commands.items():
            running[name] = process = Process(command, door, environ)
            stack.callback(process.close)
            process.open()
            assert same(process.call(), expected), f"{name} answers something else"
        found = measured(f"serve, {door.method} {door.tool}", running, PLAN)
    for number in range(STARTS):
        for name, command in commands.items():
            PROGRESS.show(f"serve, {door.method} {door.tool}: start {number + 1} of {STARTS}, {name}")
            found[name].starts.append(started(command, door, environ))
    return found


def started(command: list[str], door: Door, environ: Mapping[str, str]) -> float:
    """Milliseconds from the start of the process to its first answer."""
    begin = time.perf_counter()
    process = Process(command, door, environ)
    try:
        process.open()
        return (time.perf_counter() - begin) * 1000
    finally:
        process.close()


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────

Column = tuple[str, Callable[[Found, Found | None, Found | None], str]]
"""A heading, and a cell from a candidate, the bare loop and the official SDK."""


def ratio(one: Found, other: Found | None, measure: Callable[[Found], float], digits: int) -> str:
    """How many times that of *other* the *measure* is; nothing if the other was not measured."""
    return "" if other is None else f"{measure(one) / measure(other):.{digits}f}"


COLUMNS: Final[tuple[Column, ...]] = (
    ("calls/s", lambda one, _, __: f"{one.calls:,.0f}"),
    ("× bare", lambda one, bare, _: ratio(one, bare, attrgetter("calls"), 3)),
    ("× SDK", lambda one, _, sdk: ratio(one, sdk, attrgetter("calls"), 1)),
    ("CPU µs", lambda one, _, __: "n/a" if isnan(one.cpu) else f"{one.cpu:.1f}"),
    ("× bare", lambda one, bare, _: ratio(one, bare, attrgetter("cpu"), 2)),
    ("p50 µs", lambda one, _, __: f"{one.p50:,.0f}"),
    ("× bare", lambda one, bare, _: ratio(one, bare, attrgetter("p50"), 2)),
    ("p99 µs", lambda one, _, __: f"{one.p99:,.0f}"),
    ("start ms", lambda one, _, __: f"{one.start:,.0f}"),
    ("× bare", lambda one, bare, _: ratio(one, bare, attrgetter("start"), 2)),
    ("RSS MB", lambda one, _, __: "n/a" if one.memory is None else f"{one.memory:.0f}"),
)

NOTES: Final = f"""
calls/s: pipelined, the best of {PLAN.rounds} rounds; CPU: of the server, a call, the mean of their better half
  Assay answers frames that arrive together in one write; the bare loop writes and flushes each.
p50, p99: one call at a time, the best of {PLAN.rounds} rounds
  Client and server are on one CPU, where the system can do that: no wake-up across CPUs is measured.
start: from spawn to the first answer, the median of {STARTS}; RSS: after the pipelined calls
Peers give a constant; Assay judges, calls the tool, holds its answer to the contract, and writes each verdict down
unless its journal is off.
"""


def show(found: dict[str, Found], missing: dict[str, str], sdk: Found | None) -> None:
    """Print one group of candidates."""
    rows = [
        (CANDIDATES[name].title, *(cell(one, found.get("bare"), sdk) for _, cell in COLUMNS))
        for name, one in found.items()
    ]
    rows += [(CANDIDATES[name].title, reason) for name, reason in missing.items()]
    PROGRESS.show("")
    print(table(("", *(head for head, _ in COLUMNS)), rows), end="")


def main(names: Collection[str] = tuple(CANDIDATES)) -> dict[str, Any]:
    """Measure the candidates called *names*, both tools at both doors, and print the tables; return the figures."""
    figures = {}
    print(f"assay serve beside peers; {versions(names)}")
    without = [name for name in names if CANDIDATES[name].bare]
    for tool in CALLS:
        called = beside(f"tools/call {tool}", door(tool, mcp=True), names)
        bare = beside(f"bare method {tool}", door(tool, mcp=False), without, called.get("sdk"))
        for title, found in ((f"tools/call {tool}", called), (f"bare method {tool}", bare)):
            figures[title] = {name: one.as_json() for name, one in found.items()}
    print(NOTES, end="")
    return figures


def beside(title: str, door: Door, names: Collection[str], sdk: Found | None = None) -> dict[str, Found]:
    """Measure at one door, and print the table."""
    with TemporaryDirectory() as directory:
        environ = environment(Path(directory))
        known = learned(door, environ)
        given = Path(directory) / "given.json"
        given.write_bytes(orjson.dumps(known))
        every = {name: one.command(given) for name, one in CANDIDATES.items() if name in names}
        commands = {name: how for name, how in every.items() if isinstance(how, list)}
        found = tried(door, commands, known["result"], environ)
    answer = orjson.dumps({"jsonrpc": "2.0", "id": FIRST_ID, "result": known["result"]})
    print(f"\n{title}: {len(door.requests(FIRST_ID, 1)[0])} bytes in, {len(answer) + 1} bytes out")
    show(found, {name: why for name, why in every.items() if isinstance(why, str)}, sdk or found.get("sdk"))
    return found


if __name__ == "__main__":
    main()

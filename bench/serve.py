"""
The asset server over standard input and output, beside peers, in one run.

Every candidate is a process of its own, spoken to over pipes, and gives the same answer to the same small call of a
tool. Assay does the work: it judges the call, validates the asset, holds its answer to the contract. The peers give a
constant, and the bare loop does not even look at what it is asked. Ratios count; the rest depends on the machine.
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
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from math import isinf
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson

from client import FIRST_ID, Door, Process
from payloads import REVISION

ROUNDS: Final = 5
"""Of the pipelined calls and of the round trips. The best counts."""

STARTS: Final = 9
"""Processes started of each. The median counts."""

FLOOD_SECONDS: Final = 1.2
"""How long a round of pipelined calls is meant to take: the number of calls follows from it."""

TRIPS: Final = 2000
TRIP_SECONDS: Final = 0.6
"""A round of round trips ends with the one or with the other."""

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
TOOL: Final = "validate_asset"
ARGUMENTS: Final = {"asset": ASSET, "schema": "tone"}

MCP: Final = Door(
    (
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
    ),
    "tools/call",
    {"name": TOOL, "arguments": ARGUMENTS},
)
BARE: Final = Door((), TOOL, ARGUMENTS)


@dataclass
class Found:
    """What was measured of one candidate."""

    calls: float = 0.0
    cpu: float = float("inf")
    p50: float = float("inf")
    p99: float = float("inf")
    starts: list[float] = field(default_factory=list)
    memory: float | None = None

    @property
    def start(self) -> float:
        """Milliseconds to the first answer."""
        return median(self.starts)


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


def candidates(given: Path) -> dict[str, list[str] | str]:
    """By name: how each is started, or why it is not."""
    script = str(HERE / "servers")
    return {
        "bare loop": [sys.executable, f"{script}/bare.py", str(given)],
        "assay serve": assay(),
        "official SDK": installed("mcp") or [sys.executable, f"{script}/official.py", str(given)],
        "fastmcp": installed("fastmcp") or [sys.executable, f"{script}/fast.py", str(given)],
        "TypeScript, low": node() or ["node", str(NODE / "typescript.mjs"), str(given), "low"],
        "TypeScript": node() or ["node", str(NODE / "typescript.mjs"), str(given)],
    }


PEERS: Final = ("official SDK", "fastmcp", "TypeScript, low", "TypeScript")


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


def versions() -> str:
    """What was measured."""
    named = {"Python": platform.python_version()}
    for package in ("mcp", "fastmcp"):
        if not installed(package):
            named[package] = version(package)
    manifest = NODE / "node_modules" / NODE_PACKAGE / "package.json"
    if not node() and manifest.is_file():
        named["node"] = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout.strip()
        named[NODE_PACKAGE] = orjson.loads(manifest.read_bytes())["version"]
    return ", ".join(f"{name} {each}" for name, each in named.items())


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def learned(door: Door, environ: Mapping[str, str]) -> dict[str, Any]:
    """What Assay answers, and the tool as it lists it: what all others are to say."""
    server = Process(assay(), door, environ)
    try:
        server.open()
        result = server.call()
        tools = server.ask("tools/list")["tools"] if door.opening else [{"name": TOOL}]
    finally:
        server.close()
    return {"result": result, "tool": next(tool for tool in tools if tool["name"] == TOOL)}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two results are alike but for what differs from call to call, and for what a peer adds."""
    first, second = (each.get("structuredContent", each) for each in (one, other))
    return {**first, "request_id": "", "duration_ms": 0} == {**second, "request_id": "", "duration_ms": 0}


def measured(
    door: Door, commands: dict[str, list[str]], expected: dict[str, Any], environ: Mapping[str, str]
) -> dict[str, Found]:
    """All candidates, interleaved."""
    found = {name: Found() for name in commands}
    with ExitStack() as stack:
        running: dict[str, Process] = {}
        for name, command in commands.items():
            running[name] = process = Process(command, door, environ)
            stack.callback(process.close)
            process.open()
            assert same(process.call(), expected), f"{name} answers something else"
        counts = {name: enough(process) for name, process in running.items()}
        for _ in range(ROUNDS):
            for name, process in running.items():
                lasted, used = process.flood(counts[name])
                found[name].calls = max(found[name].calls, counts[name] / lasted)
                found[name].cpu = min(found[name].cpu, used / counts[name] * 1e6)
        for name, process in running.items():
            found[name].memory = process.memory()
        for _ in range(ROUNDS):
            for name, process in running.items():
                cuts = quantiles(process.trips(TRIPS, TRIP_SECONDS), n=100)
                found[name].p50, found[name].p99 = min(found[name].p50, cuts[49]), min(found[name].p99, cuts[98])
    for _ in range(STARTS):
        for name, command in commands.items():
            found[name].starts.append(started(command, door, environ))
    return found


def enough(process: Process) -> int:
    """How many calls a round takes, once the candidate is warm."""
    count = 500
    for _ in range(2):
        lasted, _ = process.flood(count)
        count = max(count, int(count / lasted * FLOOD_SECONDS))
    return count


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

Column = tuple[str, Callable[[Found, Found, Found | None], str], str]
"""A heading, a cell from a candidate, the bare loop and the official SDK, and the target."""

COLUMNS: Final[tuple[Column, ...]] = (
    ("calls/s", lambda one, _, __: f"{one.calls:,.0f}", ""),
    ("× bare", lambda one, bare, _: f"{one.calls / bare.calls:.3f}", "≥ 0.5"),
    ("× SDK", lambda one, _, sdk: "" if sdk is None else f"{one.calls / sdk.calls:.1f}", "≥ 50"),
    ("CPU µs", lambda one, _, __: "n/a" if isinf(one.cpu) else f"{one.cpu:.1f}", ""),
    ("p50 µs", lambda one, _, __: f"{one.p50:,.0f}", ""),
    ("× bare", lambda one, bare, _: f"{one.p50 / bare.p50:.2f}", "≤ 2"),
    ("p99 µs", lambda one, _, __: f"{one.p99:,.0f}", ""),
    ("start ms", lambda one, _, __: f"{one.start:,.0f}", ""),
    ("× bare", lambda one, bare, _: f"{one.start / bare.start:.2f}", "≤ 3"),
    ("RSS MB", lambda one, _, __: "n/a" if one.memory is None else f"{one.memory:.0f}", "≤ 40"),
)


def table(title: str, found: dict[str, Found], missing: dict[str, str], sdk: Found | None) -> None:
    """Print one group of candidates, the targets of Assay's row below."""
    print(f"{title:<18}" + "".join(f"{head:>10}" for head, _, _ in COLUMNS))
    for name, one in found.items():
        print(f"  {name:<16}" + "".join(f"{cell(one, found['bare loop'], sdk):>10}" for _, cell, _ in COLUMNS))
    for name, reason in missing.items():
        print(f"  {name:<16}{reason:>10}")
    print(f"  {'target of assay':<16}" + "".join(f"{target:>10}" for _, _, target in COLUMNS))


def main() -> None:
    """Measure both doors, and print a table of each."""
    print(f"assay serve beside peers: {TOOL} of a small asset; {versions()}")
    with TemporaryDirectory() as name:
        tools = beside("tools/call", MCP, Path(name), PEERS)
        beside("bare method", BARE, Path(name), (), tools.get("official SDK"))
    print(
        f"\ncalls/s: pipelined, the best of {ROUNDS} rounds; CPU: of the server, a call, the best of these rounds;"
        f"\np50, p99: one call at a time, the best of {ROUNDS} rounds; start: from spawn to the first answer,"
        f" the median of {STARTS};\nRSS: after the pipelined calls"
    )


def beside(
    title: str, door: Door, directory: Path, peers: Collection[str], sdk: Found | None = None
) -> dict[str, Found]:
    """Measure Assay at one door beside the bare loop and *peers*, and print the table."""
    environ = environment(directory)
    known = learned(door, environ)
    given = directory / f"{title.replace('/', '-')}.json"
    given.write_bytes(orjson.dumps(known))
    every = {name: how for name, how in candidates(given).items() if name in {"bare loop", "assay serve", *peers}}
    found = measured(
        door, {name: how for name, how in every.items() if isinstance(how, list)}, known["result"], environ
    )
    answer = orjson.dumps({"jsonrpc": "2.0", "id": FIRST_ID, "result": known["result"]})
    print(f"\n{len(door.requests(FIRST_ID, 1)[0])} bytes in, {len(answer) + 1} bytes out")
    missing = {name: why for name, why in every.items() if isinstance(why, str)}
    table(title, found, missing, sdk or found.get("official SDK"))
    return found


if __name__ == "__main__":
    main()

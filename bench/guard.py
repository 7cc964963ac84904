"""
The guard in front of a server on pipes, beside a bare relay of bytes and other proxies, in one run.

All stand in front of the same small server, which gives one result to every call. The relay hands on bytes and looks at
nothing; the proxies parse each message into models of the SDK and write another. Assay judges every message in both
directions, holds call and result to the tool's contract, and writes each verdict to its journal.

What counts is what standing in between adds to a round trip, and what is left of the throughput. The first server is
the least that can answer; the second is made with the official SDK, as most are.
"""

import sys
import sysconfig
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import orjson

from client import Door, Process
from payloads import REVISION
from rounds import Found, Plan, measured
from serve import HERE, ROOT, environment, installed
from tables import PROGRESS, table

PLAN: Final = Plan(rounds=10, flood_seconds=0.2, trips=1000, trip_seconds=0.1)

MCP_PROXY: Final = ROOT / ".venvs" / "bench-mcp-proxy" / "bin" / "python"
"""It wants an older SDK than the others, and so has an environment of its own."""

TOOL: Final[dict[str, Any]] = {
    "name": "search",
    "description": "Finds books.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "words": {"type": "string", "minLength": 1},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50},
            "year": {"type": "integer"},
        },
        "required": ["words"],
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "hits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"title": {"type": "string"}, "year": {"type": "integer"}},
                    "required": ["title", "year"],
                },
            },
        },
        "required": ["ok", "hits"],
    },
}
ARGUMENTS: Final = {"words": "the sea", "limit": 5, "year": 1951}
CONTENT: Final = {
    "ok": True,
    "hits": [{"title": f"The sea, part {number}", "year": 1950 + number} for number in range(5)],
}
RESULT: Final = {
    "content": [{"type": "text", "text": orjson.dumps(CONTENT).decode()}],
    "structuredContent": CONTENT,
    "isError": False,
}

OPENING: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
    },
    {"method": "notifications/initialized"},
)
DOOR: Final = Door(OPENING, "tools/call", {"name": TOOL["name"], "arguments": ARGUMENTS})


class Candidate(NamedTuple):
    """One that stands in front of a server."""

    title: str
    command: Callable[[Sequence[str], Path], list[str] | str]
    """How it is started in front of a command, with a directory to write to; or why it is not."""


def assay(*options: str, journal: str = "off") -> Callable[[Sequence[str], Path], list[str] | str]:
    """The guard as it is installed."""
    script = str(Path(sysconfig.get_path("scripts")) / "assay")

    def command(server: Sequence[str], place: Path) -> list[str]:
        kept = journal if journal == "off" else str(place / journal)
        return [script, "guard", "--quiet", "--journal", kept, *options, "--", *server]

    return command


def fastmcp(server: Sequence[str], _: Path) -> list[str] | str:
    """The proxy of fastmcp."""
    return installed("fastmcp") or [sys.executable, str(HERE / "servers" / "fast_proxy.py"), *server]


def mcp_proxy(server: Sequence[str], _: Path) -> list[str] | str:
    """The proxy of mcp-proxy."""
    if not MCP_PROXY.is_file():
        return "not installed"
    return [str(MCP_PROXY), str(HERE / "servers" / "mcp_proxy_stdio.py"), *server]


CANDIDATES: Final = {
    "direct": Candidate("no guard", lambda server, _: [*server]),
    "relay": Candidate("bare relay", lambda server, _: [sys.executable, str(HERE / "servers" / "relay.py"), *server]),
    "enforce": Candidate("assay, enforce", assay("--mode", "enforce", journal="enforce")),
    "audit": Candidate("assay, audit", assay("--mode", "audit", journal="audit")),
    "off": Candidate("  no journal", assay("--mode", "enforce")),
    "fastmcp": Candidate("fastmcp proxy", fastmcp),
    "mcp-proxy": Candidate("mcp-proxy", mcp_proxy),
}


SERVERS: Final = {"scripted.py": "the least server", "official.py": "a server of the official SDK"}


class Measured(NamedTuple):
    """What was measured of one candidate."""

    found: Found
    apart: float
    """Microseconds of a round trip where the system says who runs where."""

    def as_json(self) -> dict[str, Any]:
        """Return what is written of it."""
        return {**self.found.as_json(), "apart_p50_us": self.apart}


def beside(title: str, commands: Mapping[str, list[str]], environ: Mapping[str, str]) -> dict[str, Measured]:
    """All candidates, in one run."""
    with ExitStack() as stack:
        running: dict[str, Process] = {}
        for name, command in commands.items():
            running[name] = process = Process(command, DOOR, environ)
            stack.callback(process.close)
            process.open()
            listed = process.ask("tools/list")["tools"][0]
            assert listed["name"] == TOOL["name"], f"{name} lists something else"
            assert process.call()["structuredContent"] == CONTENT, f"{name} answers something else"
        found = measured(f"guard, {title}", running, PLAN)
        apart = dict.fromkeys(running, float("inf"))
        for number in range(PLAN.rounds):
            for name, process in running.items():
                PROGRESS.show(f"guard, {title}: round trips apart, round {number + 1} of {PLAN.rounds}, {name}")
                apart[name] = min(apart[name], median(process.trips(PLAN.trips, PLAN.trip_seconds, apart=True)))
        return {name: Measured(found[name], apart[name]) for name in running}


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────

HEADS: Final = (
    "calls/s",
    "× direct",
    "p50 µs",
    "added µs",
    "× relay",
    "one CPU",
    "added µs",
    "× relay",
    "p99 µs",
    "RSS MB",
)
NOTES: Final = f"""
calls/s: pipelined, the best of {PLAN.rounds} rounds
p50: one call at a time, the best of {PLAN.rounds} rounds; then the same, and p99, with all processes on one CPU, which
  leaves out what it takes to wake somebody on another one
added: beyond the server alone; × relay: beside what two threads that hand on bytes add
RSS: of the process in between
"""


def rows(every: Mapping[str, Measured]) -> dict[str, list[str]]:
    """The cells of each candidate."""
    made = {}
    for name, (found, apart) in every.items():
        direct = every.get("direct")
        made[name] = [
            f"{found.calls:,.0f}",
            f"{found.calls / direct.found.calls:.2f}" if direct is not None else "",
            *_added(name, {each: one.apart for each, one in every.items()}, apart),
            *_added(name, {each: one.found.p50 for each, one in every.items()}, found.p50),
            f"{found.p99:,.0f}",
            "n/a" if found.memory is None else f"{found.memory:.0f}",
        ]
    return made


def _added(name: str, p50s: Mapping[str, float], p50: float) -> tuple[str, str, str]:
    """A round trip, what of it is due to whoever stands in between, and that beside the relay."""
    if name == "direct" or "direct" not in p50s:
        return f"{p50:,.0f}", "", ""
    added = p50 - p50s["direct"]
    beside = p50s["relay"] - p50s["direct"] if "relay" in p50s else 0.0
    return f"{p50:,.0f}", f"{added:,.0f}", f"{added / beside:.2f}" if beside > 0 else ""


def main(names: Collection[str] = tuple(CANDIDATES)) -> dict[str, Any]:
    """Measure the candidates called *names* in front of either server, and print the tables; return the figures."""
    figures = {}
    print(f"assay guard beside peers, over pipes; calls of {len(DOOR.requests(1_000_000, 1)[0])} bytes")
    for script, title in SERVERS.items():
        print(f"\nin front of {title}")
        missing = installed("mcp") if script == "official.py" else None
        if missing:
            print(f"  {missing}")
        else:
            figures[title] = {name: one.as_json() for name, one in in_front_of(script, title, names).items()}
    print(NOTES, end="")
    return figures


def in_front_of(script: str, title: str, names: Collection[str]) -> dict[str, Measured]:
    """Measure in front of one server, and print the table."""
    with TemporaryDirectory() as directory:
        place = Path(directory)
        given = place / "given.json"
        given.write_bytes(orjson.dumps({"revision": REVISION, "tool": TOOL, "result": RESULT}))
        server = [sys.executable, str(HERE / "servers" / script), str(given)]
        every = {name: CANDIDATES[name].command(server, place) for name in CANDIDATES if name in names}
        good = {name: how for name, how in every.items() if isinstance(how, list)}
        found = beside(title, good, environment(place))
    shown = [(CANDIDATES[name].title, *cells) for name, cells in rows(found).items()]
    shown += [(CANDIDATES[name].title, why) for name, why in every.items() if isinstance(why, str)]
    PROGRESS.show("")
    print(table(("", *HEADS), shown), end="")
    return found


if __name__ == "__main__":
    main()

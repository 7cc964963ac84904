"""
The guard for clients over HTTP, beside a bare reverse proxy in the same stack and the proxy of fastmcp, in one run.

All stand in front of the same small server over HTTP, which gives one result to every call; one row has the same server
as a child process. The bare proxies forward requests with httpx or aiohttp and look at nothing. Assay judges every
message in both directions, holds call and result to the tool's contract, and writes each verdict to its journal.
"""

import sys
import sysconfig
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import orjson

from client_http import CONNECTIONS, MODERN, HttpDoor, HttpServer, free_port
from guard import ARGUMENTS, CONTENT, RESULT, TOOL
from rounds import Found, Plan, measured
from serve import HERE, environment, installed
from tables import PROGRESS, table

PLAN: Final = Plan(rounds=12, flood_seconds=0.25, trips=300, trip_seconds=0.1, first=16)

DOOR: Final = HttpDoor(MODERN, TOOL["name"], ARGUMENTS)


class Place(NamedTuple):
    """Where candidates find what they stand in front of."""

    url: str
    server: Sequence[str]
    """The same server as a command, over pipes."""
    directory: Path


class Candidate(NamedTuple):
    """One that stands in front of a server."""

    title: str
    command: Callable[[Place, int], list[str] | str]
    """How it is started to listen at a port, or why it is not."""


def assay(*, child: bool = False, journal: bool = True) -> Callable[[Place, int], list[str] | str]:
    """The guard as it is installed, enforcing."""
    script = str(Path(sysconfig.get_path("scripts")) / "assay")

    def command(place: Place, port: int) -> list[str]:
        kept = str(place.directory / f"journal-{port}") if journal else "off"
        reach = ["--", *place.server] if child else ["--target", place.url]
        listen = ["--listen", f"127.0.0.1:{port}"]
        return [script, "guard", "--quiet", "--mode", "enforce", "--journal", kept, *listen, *reach]

    return command


def python(script: str, package: str = "httpx") -> Callable[[Place, int], list[str] | str]:
    """A script of ours."""
    return lambda place, port: (
        installed(package) or [sys.executable, str(HERE / "servers" / script), place.url, str(port)]
    )


CANDIDATES: Final = {
    "proxy": Candidate("proxy with httpx", python("http_proxy.py")),
    "aiohttp": Candidate("proxy with aiohttp", python("http_aiohttp_proxy.py", "aiohttp")),
    "assay": Candidate("assay", assay()),
    "off": Candidate("  no journal", assay(journal=False)),
    "child": Candidate("assay, to a child", assay(child=True)),
    "fastmcp": Candidate("fastmcp proxy", python("http_fast_proxy.py", "fastmcp")),
}


def beside(commands: Mapping[str, tuple[list[str], int]], environ: Mapping[str, str]) -> dict[str, Found]:
    """All candidates, in one run."""
    with ExitStack() as stack:
        running: dict[str, HttpServer] = {}
        for name, (command, port) in commands.items():
            running[name] = server = HttpServer(command, port, DOOR, environ)
            stack.callback(server.close)
            server.open()
            assert server.ask("tools/list", {})["tools"][0]["name"] == TOOL["name"], f"{name} lists something else"
            assert server.call()["structuredContent"] == CONTENT, f"{name} answers something else"
        return measured("listen", running, PLAN)


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────

HEADS: Final = ("calls/s", "× proxy", "p50 µs", "× proxy", "p99 µs", "RSS MB")

NOTES: Final = f"""
calls/s: {CONNECTIONS} connections, one call at a time on each, the best of {PLAN.rounds} rounds
p50, p99: one connection, one call at a time, the best of {PLAN.rounds} rounds
× proxy: beside the bare reverse proxy of uvicorn and aiohttp
"""


def rows(found: Mapping[str, Found]) -> dict[str, list[str]]:
    """The cells of each candidate."""
    proxy = found.get("aiohttp")
    return {
        name: [
            f"{one.calls:,.0f}",
            f"{one.calls / proxy.calls:.2f}" if proxy is not None else "",
            f"{one.p50:,.0f}",
            f"{one.p50 / proxy.p50:.2f}" if proxy is not None else "",
            f"{one.p99:,.0f}",
            "n/a" if one.memory is None else f"{one.memory:.0f}",
        ]
        for name, one in found.items()
    }


def main(names: Collection[str] = tuple(CANDIDATES)) -> dict[str, Any]:
    """Measure the candidates called *names*, and print the table; return the figures."""
    if installed("uvicorn"):
        print("uvicorn is not installed")
        return {}
    with TemporaryDirectory() as directory:
        given = Path(directory) / "given.json"
        given.write_bytes(orjson.dumps({"revision": MODERN, "tool": TOOL, "result": RESULT}))
        port = free_port()
        place = Place(
            f"http://127.0.0.1:{port}/mcp",
            [sys.executable, str(HERE / "servers" / "scripted.py"), str(given)],
            Path(directory),
        )
        upstream = [sys.executable, str(HERE / "servers" / "http_scripted.py"), str(given), str(port)]
        ports = {name: free_port() for name in names}
        every = {name: CANDIDATES[name].command(place, ports[name]) for name in CANDIDATES if name in names}
        good = {name: (how, ports[name]) for name, how in every.items() if isinstance(how, list)}
        found = beside({"direct": (upstream, port), **good}, environment(Path(directory)))
    titles = {"direct": "no guard"} | {name: each.title for name, each in CANDIDATES.items()}
    print("assay guard beside peers, over HTTP; revision " + MODERN)
    shown = [(titles[name], *cells) for name, cells in rows(found).items()]
    shown += [(titles[name], why) for name, why in every.items() if isinstance(why, str)]
    PROGRESS.show("")
    print(table(("", *HEADS), shown), end="")
    print(NOTES, end="")
    return {name: one.as_json() for name, one in found.items()}


if __name__ == "__main__":
    main()

"""A guard over HTTP in front of one server: by a command, with stderr that is not read, with real clients."""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from assay.edges.upstream_client import UpstreamClient, url_of
from assay.spec.revisions import LATEST, handshake
from kit.guard_process import hurried
from kit.guard_process import scripted as scripted_command
from kit.http_client import (
    BOTH,
    INITIALIZED,
    SECONDS,
    Log,
    Service,
    call,
    environment,
    initialize,
    modern,
    request,
    serving,
)
from kit.official_clients import reported, skip_without
from kit.rows import rows
from kit.scripted_http import guarding, listening

CALL = call(7, "search", {"words": "sea"}, LATEST)
LISTING = request(1, "tools/list", {}, LATEST)

# ── connections that are used again ──────────────────────────────────────────────────────────────────────────────────


Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]


def response(text: bytes) -> bytes:
    """A whole response with *text* as its body."""
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)


async def asked_twice(afterwards: Behaviour) -> list[bytes]:
    """Two bodies of a server that numbers its connections, and does *afterwards* behind the first response."""
    connections = 0
    read, done = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        number = connections
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            writer.write(response(b"connection %d" % number))
            await writer.drain()
            if number == 1 and not done.is_set():
                await read.wait()
                await afterwards(writer)
                done.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    client = UpstreamClient(url)
    bodies = []
    for _ in range(2):
        async with client.ask("GET", url_of(url), []) as answer:
            bodies.append(b"".join([each async for each in answer.chunks()]))
        read.set()
        await done.wait()
    await client.close()
    server.close()
    return bodies


async def stays(_: asyncio.StreamWriter) -> None:
    """Leave the connection alone."""


async def says_more(writer: asyncio.StreamWriter) -> None:
    """Send a response too many."""
    writer.write(response(b"a secret of the first client"))
    await writer.drain()


async def closes(writer: asyncio.StreamWriter) -> None:
    """Close the connection."""
    writer.close()
    await writer.wait_closed()


@rows(("afterwards", "second"), [(stays, b"connection 1"), (says_more, b"connection 2"), (closes, b"connection 2")])
def test_only_a_quiet_connection_is_used_again(afterwards: Behaviour, second: bytes) -> None:
    """A response too many must not answer the next request: that may be of another client, with other credentials."""
    found = asyncio.run(asyncio.wait_for(asked_twice(afterwards), SECONDS))
    assert found == [b"connection 1", second]


# ── a server that a command starts ───────────────────────────────────────────────────────────────────────────────────


def test_a_single_server_is_called_by_its_name_and_has_the_environment_of_the_guard(tmp_path: Path) -> None:
    received, secrets = tmp_path / "received", {"GITHUB_TOKEN": "gh-s3cret", "ASSAY_GUARD_TIMEOUT": "55"}
    command = scripted_command(start=[["environ"]], received=str(received))
    with listening(tmp_path, "--journal", "off", "--mode", "enforce", "--", *command, env=secrets) as guard:
        where = guard.log.line("assay: guarding scripted_server (enforce), no journal, at ")
        assert where == f"http://127.0.0.1:{guard.address[1]}/mcp"
        assert guard.post(LISTING, modern(LISTING)).status == 200
    found = json.loads(received.read_text().split("\n")[0])
    assert {name: found[name] for name in secrets} == secrets


def test_a_flood_on_a_stderr_that_is_not_read_holds_up_no_client(tmp_path: Path) -> None:
    server = scripted_command(on={"tools/call": [["logs", 4 << 20], ["good"]]})
    with subprocess.Popen(
        [
            *hurried({"edges.stderr_writer:LAST_LINES": 0.05}),
            "--mode",
            "enforce",
            "--listen",
            "127.0.0.1:0",
            "--",
            *server,
        ],
        env=environment(tmp_path),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        try:
            port = process.stderr.readline().decode().rpartition(":")[2].partition("/")[0]
            with open("/dev/null", "rb") as nothing:
                service = Service(process, tmp_path / "ready", Log(nothing))
                service.address = "127.0.0.1", int(port)
                opened = service.post(initialize("2025-06-18"))
                headers = {**BOTH, "mcp-session-id": opened.header("mcp-session-id") or ""}
                assert service.post(INITIALIZED, headers).status == 202
                assert service.post(call(1, "search", {"words": "a"}), headers).json()["id"] == 1
                assert service.post(request(2, "ping"), headers).json()["result"] == {}
            process.terminate()
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


# ── the official clients ─────────────────────────────────────────────────────────────────────────────────────────────

TALKS = [("python", LATEST), ("typescript", "2025-11-25")]
STEPS: list[list[Any]] = [
    ["call", "list_schemas", {}],
    ["call", "get_schema", {"name": "tone"}],
    ["misuse", "get_schema", {}],
    ["call", "nope", {}],
    ["call", "diff_assets", {"base": {"a": 1}, "new": {}}],
    ["read", "resource://schemas/tone"],
    ["read", "resource://schemas/nope"],
    ["get", "write_asset", {"schema": "tone", "idea": "Something low."}],
    ["complete", {"type": "ref/prompt", "name": "write_asset"}, {"name": "schema", "value": "h"}, {}],
]


def report(client: str, revision: str, url: str, log: Path) -> dict[str, Any]:
    """What *client* gets at *url*."""
    plan = {"revision": revision, "handshake": handshake(revision), "server": {"url": url}, "steps": STEPS}
    return {name: _lasting(value) for name, value in reported(client, plan, log).items()}


def _lasting(value: Any) -> Any:
    """*value* without what is different each time, and without the words of errors, which may be the guard's."""
    if isinstance(value, list):
        return [_lasting(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("isError"):
        return {"isError": True}
    if value.get("error"):
        return {"error": value["error"].get("code")}
    fleeting = {"request_id", "duration_ms"} | ({"text"} if value.get("type") == "text" else set())
    return {name: _lasting(each) for name, each in value.items() if name not in fleeting}


def test_official_clients_get_what_they_get_without_the_guard(tmp_path: Path) -> None:
    for client, _ in TALKS:
        skip_without(client)
    (tmp_path / "server").mkdir()
    with (
        serving(tmp_path / "server") as server,
        guarding(tmp_path, f"http://127.0.0.1:{server.address[1]}/mcp", "--mode", "enforce") as guard,
        ThreadPoolExecutor(4) as pool,
    ):
        urls = [f"http://127.0.0.1:{each.address[1]}/mcp" for each in (server, guard)]
        every = [[pool.submit(report, *talk, url, tmp_path / "log") for url in urls] for talk in TALKS]
        for (_, revision), (direct, guarded) in zip(TALKS, every, strict=True):
            found = guarded.result()
            assert found == direct.result()
            assert (found["revision"], found["steps"][2]) == (revision, {"result": {"isError": True}})
        parties = [line.split(" ")[2] for line in guard.log.so_far().splitlines()[1:]]
    assert "server" not in parties, "nothing that the server says is wrong"

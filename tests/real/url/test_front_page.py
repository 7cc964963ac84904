"""What a guard over HTTP says of its servers: on stderr by their names, and at ``/`` how each of them is."""

import asyncio
import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import main
from assay.edges.auth import Principal
from assay.edges.http.access import MOST_NAMES, Door
from assay.edges.http.listen_address import ListenAddress, called
from assay.edges.http.origin_check import Safety, in_url
from assay.edges.server_index import index, row
from assay.spec.revisions import LATEST
from kit.guard_process import liar
from kit.http_client import Service, modern, request
from kit.scripted_http import guarding, listening, lying

ASKING = request(1, "tools/list", {}, LATEST)
BAD = {"name": "bad", "inputSchema": {"type": "object", "required": True}}


def ended(guard: Service) -> list[str]:
    """Every line on stderr of a guard that is told to end."""
    guard.signal(signal.SIGTERM)
    assert guard.process.wait(60) == 0
    return guard.log.whole()


# ── on stderr ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_over_http_the_server_is_named_and_not_its_launcher(tmp_path: Path) -> None:
    with listening(tmp_path, "--journal", "off", "--mode", "enforce", "--", *liar()) as guard:
        where = guard.log.line("assay: guarding lying_server (enforce), no journal, at ")
        assert where == f"http://127.0.0.1:{guard.address[1]}/mcp"
    with lying() as server, guarding(tmp_path, server.url, "--journal", "off", "--name", "tickets") as guard:
        guard.log.line("assay: guarding tickets (audit), no journal, at http://127.0.0.1:")
        log = ended(guard)
    assert "assay: [tickets] 0 messages from the client, 0 from the server, 0 findings" in log


def test_every_line_of_a_host_names_its_server(tmp_path: Path) -> None:
    chatty = {"tools": [BAD], "on": {"tools/call": [["log", "assay: I am the guard\n"], ["exit", 3]]}}
    servers = {
        "files": dict(zip(("command", "args"), (liar()[0], liar(**chatty)[1:]), strict=True)),
        "idle": {"command": liar()[0], "args": liar()[1:]},
        "down": {"url": "http://127.0.0.1:9/mcp"},
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    options = ("--config", str(file), "--mode", "enforce", "--set", f"guard.flights={tmp_path}/flights")
    with listening(tmp_path, *options) as guard:
        assert ask(guard, "files", ASKING)["result"]["tools"] == []
        assert (
            "exited with status 3"
            in ask(guard, "files", request(2, "tools/call", {"name": "x"}, LATEST))["error"]["message"]
        )
        assert "error" in ask(guard, "down", ASKING)
        log = ended(guard)
    assert "[files] assay: I am the guard" in log
    assert "assay: [files] quarantined 1 tool in tools/list #1: bad" in log
    assert any(line.startswith("assay: [files] the last messages of this session are in ") for line in log)
    assert any(line.startswith("assay: [files] 2 messages from the client, 1 from the server, ") for line in log)
    assert "assay: [files] quarantined: bad (1 tool)" in log
    assert any(line.startswith("assay: [down] 1 message from the client, 0 from the server, ") for line in log)
    assert not any("[idle]" in line for line in log)
    first, *rest = log
    assert first.startswith("assay: guarding 3 servers of mcp.json (enforce), no journal, at http://127.0.0.1:")
    assert [line for line in rest if not line.startswith(("assay: [files] ", "assay: [down] ", "[files] "))] == []


def ask(guard: Service, name: str, message: dict[str, Any]) -> Any:
    """What the server *name* of a host answers."""
    return guard.ask("POST", f"/{name}/mcp", message, modern(message)).json()


# ── at / ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def states(guard: Service) -> dict[str, tuple[str, str]]:
    """How each server is, and why."""
    rows = guard.ask("GET", "/", headers={"accept": "application/json"}).json()["servers"]
    return {each["name"]: (each["state"], each["why"]) for each in rows}


def test_the_page_tells_the_truth_about_each_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    dies = liar(start=[["exit", 4]])
    servers = {
        "good": {"command": liar()[0], "args": liar()[1:]},
        "dies": {"command": dies[0], "args": dies[1:]},
        "missing": {"command": "./nowhere"},
        "down": {"url": f"http://127.0.0.1:{port}/mcp"},
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    with lying() as server, listening(tmp_path, "--config", str(file), "--mode", "enforce") as guard:
        absent = ("failed", "cannot start ./nowhere: No such file or directory")
        assert states(guard) == {"good": ("idle", ""), "dies": ("idle", ""), "missing": absent, "down": ("idle", "")}
        for name in servers:
            ask(guard, name, ASKING)
        assert states(guard) == {
            "good": ("running", ""),
            "dies": ("failed", "it exited with status 4"),
            "missing": absent,
            "down": ("failed", "cannot connect to the server: Connection refused"),
        }
        text = guard.ask("GET", "/").body.decode()
        assert "running  /good/mcp\n" in text
        assert "failed   /missing/mcp  cannot start ./nowhere: No such file or directory\n" in text
    with lying() as server, guarding(tmp_path, server.url, "--name", "tickets") as guard:
        assert states(guard) == {"tickets": ("idle", "")}
        ask_one(guard)
        assert states(guard) == {"tickets": ("running", "")}


def ask_one(guard: Service) -> Any:
    """What the only server of a guard answers."""
    return guard.ask("POST", "/mcp", ASKING, modern(ASKING)).json()


def test_a_browser_gets_a_page_without_anything_that_it_would_act_upon() -> None:
    rows = [row("/<b>/mcp", "<script>", object(), ["/bin/x", "--token=s3cret"])]
    status, headers, body = got(rows, b"text/html,application/xhtml+xml,*/*;q=0.8")
    assert (status, headers[b"content-type"]) == (200, b"text/html; charset=utf-8")
    assert b"<td>&lt;script&gt;<td>running<td>/%3Cb%3E/mcp" in body
    assert b"s3cret" not in body
    assert got(rows, b"*/*")[2] == b"running  /%3Cb%3E/mcp\n"
    assert json.loads(got(rows, b"application/json")[2])["servers"][0]["server"] == "/bin/x"


def got(rows: list[Any], accept: bytes, host: bytes = b"localhost") -> tuple[int, dict[bytes, bytes], bytes]:
    """What ``/`` answers."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        raise AssertionError

    door = Door(Safety(), None, Principal("anonymous", "community"))
    scope = {"method": "GET", "scheme": "http", "headers": [(b"host", host), (b"accept", accept)]}
    asyncio.run(index(lambda: rows, door)(scope, receive, send))  # type: ignore[arg-type]  # a coroutine, as it is
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


def test_the_page_is_for_those_who_may_come_in() -> None:
    assert got([row("/mcp", "a", object())], b"text/html", b"evil.example")[0] == 403


# ── names of this machine ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "hosts", "url", "others", "unnamed"),
    [
        ("127.0.0.1", (), "http://127.0.0.1:80", (), False),
        ("::1", ("books.example",), "http://[::1]:80", (), False),
        ("192.0.2.7", (), "http://192.0.2.7:80", (), False),
        ("0.0.0.0", (), "http://127.0.0.1:80", (), True),  # noqa: S104 - not listened at
        ("0.0.0.0", ("books.example:443",), "http://127.0.0.1:80", ("http://books.example:80",), False),  # noqa: S104
        ("::", ("[2001:db8::1]",), "http://[::1]:80", ("http://[2001:db8::1]:80",), False),
    ],
)
def test_the_url_that_is_shown_can_be_used(
    name: str, hosts: tuple[str, ...], url: str, others: tuple[str, ...], unnamed: bool
) -> None:
    assert called(name, 80, hosts) == (url, others, unnamed)
    with socket.socket() as sock:
        notes = list(ListenAddress(sock, Safety(), url, others, unnamed).notes("/mcp"))
    assert notes[: len(others)] == [f"also at {each}/mcp" for each in others]
    assert ("--set http.hosts=NAME" in "".join(notes)) == unnamed


def test_a_host_stands_in_a_url_as_it_should() -> None:
    assert [in_url(each) for each in ("a.b", "A.b:80", "::1", "[::1]:9")] == ["a.b", "a.b", "[::1]", "[::1]"]


def test_a_refused_host_is_told_once_with_the_setting_that_allows_it() -> None:
    said: list[str] = []
    door = Door(Safety(), None, Principal("anonymous", "community"), said.append)
    for _ in range(3):
        body = refused(door, b"192.0.2.7:8765")
    assert json.loads(body)["error"]["data"]["detail"] == (
        "the Host '192.0.2.7' is not served here; the operator can allow it with http.hosts"
    )
    told = "assay: a request got 403: the Host '192.0.2.7' is not served here; "
    assert said == [told + "if clients use this name for this machine: --set http.hosts=192.0.2.7"]
    assert b"http.origins" in refused(door, b"localhost", b"https://evil.example")
    assert said[1].endswith("if this is a page of yours: --set http.origins=https://evil.example")
    refused(door, b"a\x1b[2J b")
    assert said[2] == "assay: a request got 403: the Host '' is not served here"
    for number in range(100):
        refused(door, b"%d.example" % number)
    assert len(said) == MOST_NAMES


def refused(door: Door, host: bytes, origin: bytes | None = None) -> bytes:
    """The body of the answer to a request that is not let in."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = {b"host": host} | ({} if origin is None else {b"origin": origin})
    assert not asyncio.run(door.passes(headers, send))
    assert sent[0]["status"] == 403
    body: bytes = sent[1]["body"]
    return body


@pytest.mark.parametrize(
    ("option", "line"), [("--listen", ["guard", "--listen", "{}", "--", "cat"]), ("--http", ["serve", "--http", "{}"])]
)
def test_a_port_in_use_says_what_to_do(option: str, line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main([each.format(address) for each in line]) == 2
    advice = f"Address already in use; use another port, or {option} 127.0.0.1:0 for any free one"
    assert f"{option} {address}: {advice}\n" in capsys.readouterr().err

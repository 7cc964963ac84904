"""A host: every server of a client's configuration under one address, and what is wrong with one no other's matter."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_proxy_headers import refused

from assay.cli.clients.dialect import dialect_of
from assay.cli.clients.hosting import entries
from assay.cli.clients.jsonc import ConfigError
from assay.cli.guard_terms import is_client_file
from assay.edges.backend import Backend, HttpRequest
from assay.edges.http.heads import RequestHead, read_head
from assay.edges.http.replies import Receive, Send, reply
from assay.edges.multi_server import Hosted
from assay.guard.hosted_server import HostedEntry, environment
from assay.spec.revisions import LATEST
from kit import journals
from kit.guard_process import liar
from kit.http_client import BOTH, CATALOGUE, Service, call, initialize, modern, request, serving
from kit.scripted_http import REVISION, Peer, Received, good, listening, lying

# ── what a file says ─────────────────────────────────────────────────────────────────────────────────────────────────

ENVIRON = {"TOKEN": "t0p", "HOME": "/home/me", "EMPTY": ""}


def only(entry: dict[str, Any], section: str = "mcpServers") -> HostedEntry:
    """What is read from a file with this one entry."""
    [found] = entries(json.dumps({section: {"a": entry}}), ENVIRON, "/there")
    return found


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "npx", "args": ["-y", "server"]}, HostedEntry("a", ("npx", "-y", "server"))),
        ({"command": "x", "cwd": "${workspaceFolder}/b"}, HostedEntry("a", ("x",), cwd="/there/b")),
        (
            {"command": "x", "env": {"K": "${TOKEN}", "N": 3, "T": True}},
            HostedEntry("a", ("x",), env={"K": "t0p", "N": "3", "T": "true"}),
        ),
        ({"command": "${userHome}/bin/x", "args": ["${env:TOKEN}"]}, HostedEntry("a", ("/home/me/bin/x", "t0p"))),
        ({"command": "x", "args": ["${NONE:-7}", "${EMPTY:-8}", "$5", "${}:-"]}, None),
        (
            {"url": "https://h/${TOKEN}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            HostedEntry("a", url="https://h/t0p", headers=(("Authorization", "Bearer t0p"),)),
        ),
        ({"type": "http", "url": "http://h/"}, HostedEntry("a", url="http://h/")),
        (
            {"command": "/usr/bin/assay", "args": ["guard", "--mode", "enforce", "--", "x", "y"]},
            HostedEntry("a", ("x", "y")),
        ),
        (
            {"command": "assay", "args": ["guard", "--target", "http://h/", "--header", "A: b"]},
            HostedEntry("a", url="http://h/", headers=(("A", "b"),)),
        ),
    ],
)
def test_an_entry_is_read(entry: dict[str, Any], expected: HostedEntry | None) -> None:
    for section in ("mcpServers", "servers"):
        found = only(entry, section)
        if expected is None:
            assert found.trouble == "the variable  is not set"
        else:
            assert found == expected


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "x", "args": ["${NOWHERE}"]}, "the variable NOWHERE is not set"),
        ({"command": "x", "env": {"K": "${input:key}"}}, "it needs an input"),
        ({"command": "x", "disabled": True}, "it is disabled"),
        ({"url": "http://h/sse"}, "HTTP+SSE"),
        ({"command": "x", "env": ["K=V"]}, "its env must be an object of strings"),
        ({"command": "x", "cwd": 5}, "its cwd must be a string"),
        ({}, "neither a command nor a url"),
    ],
)
def test_what_is_wrong_with_an_entry_is_told_of_that_one(entry: dict[str, Any], why: str) -> None:
    text = json.dumps({"mcpServers": {"bad": entry, "good": {"command": "x"}}})
    bad, fine = entries(text, ENVIRON, "/there")
    assert why in bad.trouble
    assert fine == HostedEntry("good", ("x",))


def test_comments_are_read_over_and_a_name_counts_once() -> None:
    text = '{/* mine */ "servers": {"a": {"command": "x"},}, "mcpServers": {"a": {"command": "y"}}}'
    assert entries(text, {}, "/") == [HostedEntry("a", ("x",))]


def test_servers_of_another_project_are_not_hosted() -> None:
    def project(command: str) -> dict[str, Any]:
        return {"mcpServers": {command: {"command": command}}}

    text = json.dumps({"projects": {"/there": project("a"), "/elsewhere": project("b")}, **project("c")})
    assert [entry.name for entry in entries(text, ENVIRON, "/there")] == ["a", "c"]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "windsurf/mcp_config.json",
            '{"mcpServers": {"a": {"serverUrl": "http://h/mcp", "headers": {"K": "v"}}}}',
            HostedEntry("a", url="http://h/mcp", headers=(("K", "v"),)),
        ),
        (".gemini/settings.json", '{"mcpServers": {"a": {"httpUrl": "http://h"}}}', HostedEntry("a", url="http://h")),
        ("zed/settings.json", '{"context_servers": {"a": {"command": "x"}}}', HostedEntry("a", ("x",))),
        (
            ".codex/config.toml",
            '[mcp_servers.a]\ncommand = "x"\nargs = ["y"]\nenv_vars = ["TOKEN", "NOT"]\n[mcp_servers.a.env]\nB = "c"',
            HostedEntry("a", ("x", "y"), env={"TOKEN": "t0ken", "B": "c"}),
        ),
        (
            ".codex/config.toml",
            '[mcp_servers]\na = { url = "http://h", bearer_token_env_var = "TOKEN", http_headers = { K = "v" } }',
            HostedEntry("a", url="http://h", headers=(("K", "v"), ("Authorization", "Bearer t0ken"))),
        ),
    ],
)
def test_files_of_other_clients_are_read(path: str, text: str, expected: HostedEntry) -> None:
    assert is_client_file(path)
    assert entries(text, {"TOKEN": "t0ken"}, "/there", dialect_of(path)) == [expected]


def test_what_is_no_configuration_is_refused() -> None:
    with pytest.raises(ConfigError):
        entries("[]", {}, "/")


# ── a server that is started on first use ────────────────────────────────────────────────────────────────────────────


class Echo:
    """Answers with its number."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.stopped = self.closed = False

    async def answer(self, _: HttpRequest, __: Receive, send: Send) -> None:
        await reply(send, 200, b"%d" % self.number)

    def stop(self) -> None:
        self.stopped = True

    async def close(self) -> None:
        self.closed = True


def asked(hosted: Hosted, frame: bytes, **headers: bytes) -> tuple[int, bytes]:
    """What it answers."""
    import asyncio

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    head = read_head("POST", [(name.encode().replace(b"_", b"-"), value) for name, value in headers.items()])
    assert isinstance(head, RequestHead)
    asyncio.run(hosted.answer(HttpRequest(head, b"", frame, "anonymous"), receive, send))
    return sent[0]["status"], sent[1]["body"]


def test_a_server_is_made_once_when_it_is_first_asked() -> None:
    made: list[Echo] = []

    def make() -> Backend:
        made.append(Echo(len(made)))
        return made[-1]

    hosted = Hosted(HostedEntry("a", ("x",)), make)
    assert (hosted.state, made) == ("idle", [])
    assert [asked(hosted, b"{}") for _ in range(2)] == [(200, b"0"), (200, b"0")]
    assert (hosted.state, len(made)) == ("running", 1)
    hosted.stop()
    assert made[0].stopped


def failing(times: int) -> Callable[[], Backend]:
    """Makes one, after it has failed *times*."""
    left = [times]

    def make() -> Backend:
        if left[0]:
            left[0] -= 1
            raise OSError("too many open files")
        return Echo(1)

    return make


def test_one_that_cannot_be_made_says_so_by_id_and_is_tried_again() -> None:
    hosted = Hosted(HostedEntry("a", ("x",)), failing(2))
    status, body = asked(hosted, b'{"jsonrpc":"2.0","id":"q","method":"ping"}')
    assert (status, json.loads(body)["id"], json.loads(body)["error"]["code"]) == (502, "q", -31011)
    assert hosted.state == "failed"
    status, body = asked(hosted, b'{"jsonrpc":"2.0","id":5,"method":"ping"}', mcp_session_id=b"s")
    assert (status, json.loads(body)["id"]) == (200, 5)
    assert asked(hosted, b"{}") == (200, b"1")
    assert (hosted.state, hosted.trouble) == ("running", "")


# ── as a process ─────────────────────────────────────────────────────────────────────────────────────────────────────


def post(guard: Service, path: str, message: Any) -> Any:
    """What comes of a request of 2026-07-28 to the server at *path*."""
    return guard.ask("POST", path, message, modern(message))


def test_every_server_of_a_file_has_a_path_of_its_own(tmp_path: Path) -> None:
    def token(received: Received, peer: Peer) -> None:
        peer.json({"jsonrpc": "2.0", "id": received.message["id"], "result": {"content": [], "resultType": "complete"}})

    with lying(token) as liar, serving(tmp_path) as server:
        library = f"http://127.0.0.1:{server.address[1]}/mcp"
        servers = {
            "my library": {"url": library},
            "liar": {"url": liar.url, "headers": {"X-Key": "${SECRET}"}},
            "down": {"url": "http://127.0.0.1:9/mcp"},
            "old": {"url": "http://127.0.0.1:9/sse"},
            "unset": {"url": "http://127.0.0.1:9/${NOWHERE}"},
            "absent": {"command": "./nowhere"},
        }
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": servers}))
        with listening(tmp_path, "--config", str(file), "--mode", "enforce", env={"SECRET": "s3"}) as guard:
            asking = request(1, "tools/list", {}, LATEST)
            assert {row["name"]: row["state"] for row in states(guard)} == {
                "my library": "idle",
                "liar": "idle",
                "down": "idle",
                "old": "failed",
                "unset": "failed",
                "absent": "failed",
            }
            names = [tool["name"] for tool in post(guard, "/my%20library/mcp", asking).json()["result"]["tools"]]
            assert "get_schema" in names
            calling = call(2, "anything", {}, LATEST)
            assert post(guard, "/liar/mcp", calling).json()["result"]["content"] == []
            assert liar.next().header("x-key") == "s3"
            assert post(guard, "/liar/mcp/", calling).status == 200
            assert post(guard, "/down/mcp", asking).status == 502
            assert post(guard, "/unset/mcp", asking).error()["data"]["detail"].endswith("NOWHERE is not set")
            assert post(guard, "/mcp", asking).status == 404
            assert {row["name"]: row["state"] for row in states(guard)}["my library"] == "running"
            plain = guard.ask("GET", "/").body.decode()
            assert "running  /my%20library/mcp\n" in plain
            assert "s3" not in plain
            log = guard.log.so_far()
    assert "assay: [absent] cannot start ./nowhere: No such file or directory" in log
    assert "assay: guarding 4 servers of mcp.json (enforce), no journal, at http://127.0.0.1:" in log
    assert "assay: [old] not served: it has the HTTP+SSE transport" in log


def environment_of(guard: Service, received: Path, name: str) -> dict[str, str]:
    """The environment that a server of the host has been started with."""
    assert post(guard, f"/{name}/mcp", request(1, "tools/list", {}, LATEST)).status == 200
    found: dict[str, str] = json.loads(received.read_text().split("\n")[0])
    return found


SECRETS = {"GITHUB_TOKEN": "gh-s3cret", "OTHER": "o-s3cret", "ASSAY_GUARD_TIMEOUT": "55", "LC_TIME": "C", "TZ": "UTC"}


def hosted(directory: Path, **named: dict[str, str]) -> str:
    """A configuration with a server for each of *named*, which are started with those variables."""
    servers = {}
    for name, env in named.items():
        program, *args = liar(start=[["environ"]], received=str(directory / name))
        servers[name] = {"command": program, "args": args, "env": env}
    (directory / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return str(directory / "mcp.json")


def test_a_server_of_a_host_has_its_own_variables_and_not_those_of_the_others(tmp_path: Path) -> None:
    file = hosted(tmp_path, plain={}, hub={"TOKEN": "${GITHUB_TOKEN}", "ASSAY_JOURNAL": "off"})
    with listening(tmp_path, "--config", file, env=SECRETS) as guard:
        plain, hub = (environment_of(guard, tmp_path / name, name) for name in ("plain", "hub"))
    assert "s3cret" not in str(plain)
    assert not [name for name in plain if name.startswith(("ASSAY_", "SYN_"))]
    assert (plain["PATH"], plain["LC_TIME"], plain["TZ"]) == (os.environ["PATH"], "C", "UTC")
    assert (hub.pop("TOKEN"), hub.pop("ASSAY_JOURNAL")) == ("gh-s3cret", "off")
    assert "s3cret" not in str(hub)


@pytest.mark.parametrize(
    ("names", "expected"), [('["GITHUB_*"]', {"GITHUB_TOKEN"}), ('["*"]', {"GITHUB_TOKEN", "OTHER"})]
)
def test_an_operator_can_hand_on_more(tmp_path: Path, names: str, expected: set[str]) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(f"[guard]\nenvironment = {names}\n")
    with listening(tmp_path, "--config", hosted(tmp_path, a={}), "--config", str(settings), env=SECRETS) as guard:
        found = environment_of(guard, tmp_path / "a", "a")
    assert {"GITHUB_TOKEN", "OTHER", "ASSAY_GUARD_TIMEOUT"} & set(found) == expected


def test_a_single_server_has_the_environment_of_the_guard(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with listening(tmp_path, "--", *liar(start=[["environ"]], received=str(received)), env=SECRETS) as guard:
        asking = request(1, "tools/list", {}, LATEST)
        assert guard.post(asking, modern(asking)).status == 200
    found = json.loads(received.read_text().split("\n")[0])
    assert {name: found[name] for name in SECRETS} == SECRETS


def test_a_command_is_looked_for_where_its_entry_says(tmp_path: Path) -> None:
    """What is told at the start is what is true when it is started: both have the same PATH."""
    there = tmp_path / "bin"
    there.mkdir()
    (there / "mine").symlink_to(sys.executable)
    script = liar(received=str(tmp_path / "received"))[1:]
    servers = {
        "found": {"command": "mine", "args": script, "env": {"PATH": str(there)}},
        "absent": {"command": "mine", "args": script},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with listening(tmp_path, "--config", str(tmp_path / "mcp.json")) as guard:
        asking = request(1, "tools/list", {}, LATEST)
        assert [post(guard, f"/{name}/mcp", asking).status for name in servers] == [200, 502]
        log = guard.log.so_far()
    assert "assay: [absent] cannot start " in log
    assert "[found]" not in log


@pytest.mark.parametrize("windows", [False, True])
def test_what_a_shell_would_run_and_what_is_ours_is_not_handed_on(windows: bool) -> None:
    given = {"PATH": "p", "HOME": "() { :;}", "SYSTEMROOT": "r", "ASSAY_X": "1", "X": "2", "LC_ALL": "C"}
    found = environment(given, ["ASSAY_*"], {"X": "3"}, windows=windows)
    assert found == {"PATH": "p", "LC_ALL": "C", "X": "3", **({"SYSTEMROOT": "r"} if windows else {})}


def states(guard: Service) -> list[dict[str, str]]:
    """What the list of servers says."""
    found: list[dict[str, str]] = guard.ask("GET", "/", headers={"accept": "application/json"}).json()["servers"]
    return found


def test_conversations_of_different_servers_do_not_meet(tmp_path: Path) -> None:
    with lying(good) as one, lying(good) as other:
        file = tmp_path / "mcp.jsonc"
        file.write_text(json.dumps({"servers": {"one": {"url": one.url}, "other": {"url": other.url}}}) + "// end")
        with listening(tmp_path, "--config", str(file), "--mode", "enforce", "--journal", str(tmp_path / "j")) as guard:
            for name in ("one", "other"):
                answer = guard.ask("POST", f"/{name}/mcp", initialize(REVISION), BOTH)
                assert answer.header("mcp-session-id") == "5e55-1011"
            [run] = (tmp_path / "j").glob("*.jsonl")
            routes = [each["route"] for each in journals.records(run)]
    assert routes == ["/one/mcp", "/one/mcp", "/other/mcp", "/other/mcp"]


def test_settings_and_a_clients_file_can_both_be_given(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[guard]\nmode = "enforce"\n')
    file = tmp_path / "mcp.json"
    with lying(good) as liar:
        file.write_text(json.dumps({"mcpServers": {"a": {"url": liar.url}}}))
        options = ("--config", str(tmp_path / "mine.toml"), "--config", str(file))
        with listening(tmp_path, *options) as guard:
            bad = request(1, "ping", {}, LATEST)
            assert post(guard, "/a/mcp", bad).status == 404
            assert liar.seen == []


@pytest.mark.parametrize(
    ("text", "why"),
    [("{", "not valid JSON"), ("{}", "no servers"), ('{"mcpServers": {}}', "no servers in it"), (None, "No such file")],
)
def test_a_file_without_servers_is_refused(tmp_path: Path, text: str | None, why: str) -> None:
    file = tmp_path / "mcp.json"
    if text is not None:
        file.write_text(text)
    assert why in refused(tmp_path, "--config", str(file), "--listen", "127.0.0.1:0")


def test_who_gives_out_tokens_is_told_for_each_server(tmp_path: Path) -> None:
    def documented(received: Received, peer: Peer) -> None:
        if received.path == "/.well-known/oauth-protected-resource/mcp":
            peer.json({"resource": f"http://{received.header('host')}/mcp"})
        else:
            good(received, peer)

    with lying(documented) as liar:
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"a": {"url": liar.url}, "b": {"command": str(CATALOGUE)}}}))
        with listening(tmp_path, "--config", str(file)) as guard:
            found = guard.ask("GET", "/.well-known/oauth-protected-resource/a/mcp").json()
            assert found == {"resource": f"http://127.0.0.1:{guard.address[1]}/a/mcp"}
            assert guard.ask("GET", "/.well-known/oauth-protected-resource").status == 404
            assert guard.ask("GET", "/.well-known/oauth-protected-resource/b/mcp").status == 404

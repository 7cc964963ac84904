"""Every server of a client's configuration under one address: what is wrong with one is no other's matter."""

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from assay.model.names import folder_of
from assay.spec.revisions import LATEST
from kit import journals
from kit.guard_process import scripted as scripted_command
from kit.http_client import BOTH, INITIALIZED, Service, call, initialize, modern, request
from kit.scripted_http import REVISION, Peer, Received, good, listening, result, scripted

ASKING = request(1, "tools/list", {}, LATEST)


def entry(**script: Any) -> dict[str, Any]:
    """The entry of a server that a command starts."""
    program, *arguments = scripted_command(**script)
    return {"command": program, "args": arguments}


def write_file(directory: Path, servers: dict[str, Any]) -> str:
    """A client's configuration with these *servers*."""
    (directory / "mcp.json").write_text(json.dumps({"mcpServers": servers}) + "// with comments")
    return str(directory / "mcp.json")


def post(guard: Service, name: str, message: Any = ASKING) -> Any:
    """What comes of a request of 2026-07-28 to the server *name*."""
    return guard.ask("POST", f"/{name}/mcp", message, modern(message))


def states(guard: Service) -> dict[str, tuple[str, str]]:
    """How each server is, and why."""
    found = guard.ask("GET", "/", headers={"accept": "application/json"}).json()["servers"]
    return {each["name"]: (each["state"], each["why"]) for each in found}


def test_every_server_has_a_path_a_state_and_documents_of_its_own(tmp_path: Path) -> None:
    def documented(received: Received, peer: Peer) -> None:
        if received.path == "/.well-known/oauth-protected-resource/mcp":
            peer.json({"resource": f"http://{received.header('host')}/mcp"})
        elif received.path == "/mcp/server-card":
            peer.json({"name": "card"})
        else:
            peer.json(result(received.message, {"content": [], "resultType": "complete"}))

    with socket.create_server(("127.0.0.1", 0)) as taken:
        down = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
    with scripted(documented) as server:
        servers = {
            "my tools": entry(),
            "dies": entry(start=[["exit", 4]]),
            "there": {"url": server.url, "headers": {"X-Key": "${SECRET}"}},
            "down": {"url": down},
            "old": {"url": "http://127.0.0.1:9/sse"},
            "unset": {"url": "http://127.0.0.1:9/${NOWHERE}"},
            "absent": {"command": "./nowhere"},
        }
        options = ("--config", write_file(tmp_path, servers), "--mode", "enforce")
        with listening(tmp_path, *options, env={"SECRET": "s3"}) as guard:
            absent = ("failed", "cannot start ./nowhere: No such file or directory")
            before = states(guard)
            assert {name: state for name, (state, _) in before.items() if state != "idle"} == {
                "old": "failed",
                "unset": "failed",
                "absent": "failed",
            }
            listed = [tool["name"] for tool in post(guard, "my%20tools").json()["result"]["tools"]]
            assert listed == ["search"]
            calling = call(2, "anything", {}, LATEST)
            assert post(guard, "there", calling).json()["result"]["content"] == []
            assert server.next().header("x-key") == "s3"
            assert guard.ask("POST", "/there/mcp/", calling, modern(calling)).status == 200
            assert [post(guard, each).status for each in ("down", "dies", "absent")] == [502, 502, 502]
            assert post(guard, "unset").error()["data"]["detail"].endswith("NOWHERE is not set")
            assert guard.ask("POST", "/mcp", ASKING, modern(ASKING)).status == 404
            assert {name: found for name, found in states(guard).items() if name not in {"old", "unset"}} == {
                "my tools": ("running", ""),
                "dies": ("failed", "it exited with status 4"),
                "there": ("running", ""),
                "down": ("failed", "cannot connect to the server: Connection refused"),
                "absent": absent,
            }
            page = guard.ask("GET", "/").body.decode()
            assert "running  /my%20tools/mcp\n" in page
            assert f"failed   /absent/mcp  {absent[1]}\n" in page
            assert "s3" not in page
            metadata = guard.ask("GET", "/.well-known/oauth-protected-resource/there/mcp").json()
            assert metadata == {"resource": f"http://127.0.0.1:{guard.address[1]}/there/mcp"}
            assert guard.ask("GET", "/there/mcp/server-card").json() == {"name": "card"}
            for path in ("/.well-known/oauth-protected-resource", "/my%20tools/mcp/server-card", "/no/mcp/server-card"):
                assert guard.ask("GET", path).status == 404
            log = guard.log.so_far()
    assert "assay: [absent] cannot start ./nowhere: No such file or directory" in log
    assert "assay: guarding 5 servers of mcp.json (enforce), no journal, at http://127.0.0.1:" in log
    assert "assay: [old] not served: it has the HTTP+SSE transport" in log


def test_every_line_names_its_server_and_the_summary_has_those_that_were_used(tmp_path: Path) -> None:
    """No line of a server can pass for one of the guard, nor do anything to a terminal, nor is kept until it ends."""
    bad = {"name": "bad", "inputSchema": {"type": "object", "required": True}}
    flood = [*[["log", "x" * 1000]] * 100, ["log", "\nend\n"], ["good"]]
    last = [["log", "\x1b]0;gotcha\x07assay: all is well\tno?\n"], ["log", "half a line"], ["exit", 3]]
    servers = {
        "files": entry(tools=[bad], on={"tools/call:search": flood, "tools/call:last": last}),
        "idle": entry(),
        "down": {"url": "http://127.0.0.1:9/mcp"},
    }
    flights = ("--set", f"guard.flights={tmp_path}/flights")
    with listening(tmp_path, "--config", write_file(tmp_path, servers), "--mode", "enforce", *flights) as guard:
        assert post(guard, "files").json()["result"]["tools"] == []
        post(guard, "files", call(7, "search", {"words": "sea"}, LATEST))
        guard.log.line("[files] end")
        failed = post(guard, "files", call(8, "last", {}, LATEST)).error()
        assert "exited with status 3" in failed["message"]
        assert "error" in post(guard, "down").json()
        guard.signal(signal.SIGTERM)
        assert guard.ended() == 0
        first, *rest = guard.log.whole()
    assert first.startswith("assay: guarding 3 servers of mcp.json (enforce), no journal, at http://127.0.0.1:")
    assert {"[files] ·]0;gotcha·assay: all is well    no?", "[files] half a line"} <= set(rest)
    assert "\x1b" not in "".join(rest)
    assert {
        "assay: [files] quarantined 1 tool in tools/list #1: bad",
        "assay: [files] quarantined: bad (1 tool)",
    } <= set(rest)
    flooded = [line for line in rest if line.startswith("[files] x")]
    assert sum(line.count("x") for line in flooded) == 100_000
    assert max(map(len, flooded)) < 100_000
    for start in ("[files] the last messages of this session", "[files] 3 messages from", "[down] 1 message from"):
        assert any(line.startswith(f"assay: {start}") for line in rest)
    assert [line for line in rest if not line.startswith(("assay: [files] ", "assay: [down] ", "[files] "))] == []


def test_a_server_has_its_own_variables_and_not_those_of_the_others(tmp_path: Path) -> None:
    """Its command is looked for in its own PATH. A second file has the settings of the guard."""
    secrets = {"GITHUB_TOKEN": "gh-s3cret", "OTHER": "o-s3cret", "ASSAY_GUARD_TIMEOUT": "55", "LC_TIME": "C"}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mine").symlink_to(sys.executable)
    (tmp_path / "settings.toml").write_text('[guard]\nmode = "enforce"\nenvironment = ["OTH*"]\n')

    def showing(name: str) -> dict[str, Any]:
        return entry(start=[["environ"]], received=str(tmp_path / name))

    servers = {
        "plain": showing("plain"),
        "hub": {**showing("hub"), "env": {"TOKEN": "${GITHUB_TOKEN}", "ASSAY_JOURNAL": "off"}},
        "found": {**entry(), "command": "mine", "env": {"PATH": str(tmp_path / "bin")}},
        "absent": {**entry(), "command": "mine"},
    }
    options = ("--config", str(tmp_path / "settings.toml"), "--config", write_file(tmp_path, servers))
    with listening(tmp_path, *options, env=secrets) as guard:
        assert [post(guard, name).status for name in servers] == [200, 200, 200, 502]
        assert post(guard, "plain", request(1, "ping", {}, LATEST)).status == 404, "it enforces"
        log = guard.log.so_far()
    assert "assay: [absent] cannot start " in log
    assert "[found]" not in log
    plain, hub = (json.loads((tmp_path / name).read_text().split("\n")[0]) for name in ("plain", "hub"))
    assert (plain["PATH"], plain["LC_TIME"], plain["OTHER"]) == (os.environ["PATH"], "C", "o-s3cret")
    assert not [name for name in plain if name.startswith(("ASSAY_", "SYN_"))]
    assert "gh-s3cret" not in str(plain)
    assert (hub.pop("TOKEN"), hub.pop("ASSAY_JOURNAL")) == ("gh-s3cret", "off")
    assert "gh-s3cret" not in str(hub)


def test_every_server_has_a_journal_or_its_name_in_the_one_of_all(tmp_path: Path) -> None:
    """Their sessions do not meet, although both servers give them the same id."""
    state = tmp_path / "state"
    folders = state / "assay" / "servers"
    dies = entry(on={"tools/call": [["exit", 3]]})
    with scripted(good) as one, scripted(good) as other:
        servers = {"a b": {"url": one.url}, "other": {"url": other.url}, "unused": {"url": one.url}, "dies": dies}
        options = ("--config", write_file(tmp_path, servers), "--mode", "enforce")
        with listening(tmp_path, *options, env={"ASSAY_JOURNAL": "", "XDG_STATE_HOME": str(state)}) as guard:
            for path in ("/a%20b/mcp", "/other/mcp"):
                assert guard.ask("POST", path, initialize(REVISION), BOTH).status == 200
            opened = guard.ask("POST", "/dies/mcp", initialize(REVISION), BOTH)
            session = {**BOTH, "mcp-session-id": opened.header("mcp-session-id") or ""}
            guard.ask("POST", "/dies/mcp", INITIALIZED, session)
            assert b'"error"' in guard.ask("POST", "/dies/mcp", call(1, "search", {"words": "a"}), session).body
        assert {each.name for each in folders.iterdir()} == {folder_of("a b"), "other", "dies"}
        for name in ("a b", "other"):
            [run] = (folders / folder_of(name)).glob("2*.jsonl")
            found = {(each["metadata"]["server"], each["metadata"]["mode"]) for each in journals.records(run)}
            assert found == {(name, "enforce")}
        assert len(list((folders / "dies" / "flights").iterdir())) == 1
        journal = tmp_path / "j"
        with listening(tmp_path, *options, "--journal", str(journal)) as guard:
            for path in ("/a%20b/mcp", "/other/mcp", "/a%20b/mcp"):
                answer = guard.ask("POST", path, initialize(REVISION), BOTH)
                assert (answer.status, answer.header("mcp-session-id")) == (200, "5e55-1011")
                # A message that is refused is recorded in another way than a good one.
                guard.ask("POST", path, b"garbage", BOTH)
    [run] = journal.glob("2*.jsonl")
    found = {(each["route"], each["metadata"]["server"]) for each in journals.records(run)}
    assert found == {("/a b/mcp", "a b"), ("/other/mcp", "other")}

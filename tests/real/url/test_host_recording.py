"""A recording of several servers: whose message it is, and each conversation judged apart."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import main
from assay.spec.revisions import LATEST
from kit.guard_process import liar
from kit.http_client import Service, call, modern, request
from kit.scripted_http import listening

LIST = [["result", {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}]]


def post(guard: Service, path: str, message: Any) -> Any:
    """What comes of a request of 2026-07-28 to the server at *path*."""
    return guard.ask("POST", path, message, modern(message))


def test_messages_of_a_host_are_recorded_with_their_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = liar(on={"tools/list": LIST}), liar(on={"tools/list": [["result", {"tools": 7}]]})
    servers = {"good": {"command": good[0], "args": good[1:]}, "bad": {"command": bad[0], "args": bad[1:]}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    options = ["--config", "mcp.json", "--record", "session.jsonl", "--fail-on", "refuse"]
    with listening(tmp_path, *options) as guard:
        for name in servers:
            post(guard, f"/{name}/mcp", request(1, "tools/list", {}, LATEST))
        post(guard, "/good/mcp", call(1, "nothing", {}, LATEST))
        guard.signal(signal.SIGTERM)
        assert guard.ended() == 4
    main(["check", "--messages", "--format", "ndjson", str(tmp_path / "session.jsonl")])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {each["server"] for each in found} == {"good", "bad"}
    assert {each["server"] for each in found if each["kind"] == "result" and each["violations"]} == {"bad"}
    assert {each["revision"] for each in found} == {LATEST}
    assert main(["check", str(tmp_path / "session.jsonl")]) == 1
    assert "(bad, conversation " in capsys.readouterr().out

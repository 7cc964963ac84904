"""Schemas that point to a file or an address, from a server that lists them: a real guard opens and reaches nothing."""

import json
import os
import select
import socket
import sys
from pathlib import Path
from typing import Any

from kit.broken_rules import taking, tool
from kit.guard_process import SERVER, call, guarded
from kit.rows import rows

POINTING: dict[str, dict[str, Any]] = {
    "an address": taking({"$ref": "http://ADDRESS/a.json"}),
    "a pipe": taking({"$ref": "file://PIPE"}),
    "an address by way of an id": tool(
        "odd", inputSchema={"type": "object", "$id": "http://ADDRESS/a/", "properties": {"value": {"$ref": "b"}}}
    ),
    "a dynamic reference": taking({"$dynamicRef": "http://ADDRESS/a.json"}),
    "a dialect": tool("odd", inputSchema={"type": "object", "$schema": "http://ADDRESS/schema"}),
}


@rows("mode", ["enforce", "audit"])
def test_nothing_that_a_schema_points_to_is_opened_or_reached(tmp_path: Path, mode: str) -> None:
    """A pipe that is opened for reading would hang the guard; a connection would wait at the socket."""
    pipe = tmp_path / f"pipe of {mode}"
    os.mkfifo(pipe)
    tools = [tool("first"), *({**each, "name": name} for name, each in POINTING.items()), tool("last")]
    names = [each["name"] for each in tools]
    with socket.create_server(("127.0.0.1", 0)) as trap:
        host, port = trap.getsockname()
        text = json.dumps({"tools": tools}).replace("ADDRESS", f"{host}:{port}")
        (tmp_path / "script").write_text(text.replace("PIPE", str(pipe)))
        command = [sys.executable, "-IS", str(SERVER), f"@{tmp_path / 'script'}"]
        with guarded(tmp_path, "--mode", mode, command=command) as one:
            assert [each["name"] for each in one.open()["tools"]] == names
            for name in names:
                assert "result" in one.ask(call(name, name, value=1))
            one.close()
            log = b"\n".join(one.log.rest())
            assert one.ended() == 0
        assert not select.select([trap], [], [], 0)[0]
    assert b"contract/remote-ref" in log
    assert b"contract/unknown-dialect" in log

"""
The official clients, each in a process of its own, and what they report.

A client is a script that takes a plan as JSON on standard input, and gives a report as JSON on standard output:

    plan                                            report
    server       command, args, env, cwd; or url    revision, server, capabilities, instructions   what was agreed
    log          where the server's stderr goes     tools, resources, templates, prompts           the lists
    handshake    whether by `initialize`            steps     what each came to: result, or error
    answers      to what the server asks            heard     what the server asked and said unasked, by kind
    steps        verbs with what they need
    revision     the one to offer; only TypeScript
"""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kit.places import ROOT, TESTS

SECONDS = 60
"""What a client may take; it takes one to three seconds."""

SCRIPTS = TESTS / "real" / "servers"
SDK = ROOT / ".venvs" / "sdk"
NODE_MODULES = SCRIPTS / "node_modules"

CLIENTS: Mapping[str, list[str]] = {
    "python": [str(SDK / "bin" / "python"), str(SCRIPTS / "real_client.py")],
    "typescript": ["node", str(SCRIPTS / "real_client.mjs")],
}

ANSWERS: dict[str, Any] = {
    "sampling": {
        "role": "assistant",
        "content": {"type": "text", "text": "Four, I should say. — 四"},
        "model": "a model",
        "stopReason": "endTurn",
    },
    "elicitation": {
        "form": {"action": "accept", "content": {"name": "Ada", "check": True, "number": 2.5, "integer": 7}},
        "url": {"action": "accept"},
    },
    "roots": {"roots": [{"uri": "file:///tmp/here", "name": "here"}, {"uri": "file:///tmp/there"}]},
}
"""What a client answers when it is asked."""


def skip_without(client: str) -> None:
    """Skip the test where *client* cannot be run, and say why."""
    if client == "python" and not (SDK / ".done").exists():
        pytest.skip("the official Python SDK is not installed: `make test` installs it")
    if client == "typescript" and (shutil.which("node") is None or not NODE_MODULES.exists()):
        pytest.skip("there is no npm here, or Node.js is too old, so what it installs is missing")


def reported(client: str, plan: dict[str, Any], log: Path, replaced: tuple[str, str] = ("", "")) -> Any:
    """The report of *client* on *plan*; where its text has the first of *replaced*, it has the second."""
    given = json.dumps({"answers": ANSWERS, "log": str(log), **plan})
    done = subprocess.run(
        CLIENTS[client], input=given, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False
    )
    assert done.returncode == 0, f"{done.stderr[-3000:]}\n{log.read_text() if log.exists() else ''}"
    return json.loads(done.stdout.replace(*replaced) if replaced[0] else done.stdout)

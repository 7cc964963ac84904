"""What `assay demo` says of strict clients holds for the official ones."""

import subprocess
import sys
from pathlib import Path

import pytest
from test_official_clients import HERE

from kit.official_clients import SECONDS
from kit.places import ROOT
from kit.rows import rows

SERVER = [sys.executable, str(ROOT / "src" / "assay" / "cli" / "demonstration" / "demo_server.py")]
GUARD = [sys.executable, "-m", "assay", "guard", "--mode", "enforce", "--journal", "off", "--quiet", "--", *SERVER]


def client_command(name: str) -> list[str]:
    """The command of an official client; the test is skipped if it is not installed."""
    if name == "python":
        if not (ROOT / ".venvs" / "sdk" / ".done").exists():
            pytest.skip("the official Python SDK is not installed: `make test` installs it")
        return [str(ROOT / ".venvs" / "sdk" / "bin" / "python"), str(HERE / "list_tools.py")]
    if not (HERE / "node_modules" / ".done").exists():
        pytest.skip("the TypeScript client is not installed: `make test` does it where there are npm and Node.js 20")
    return ["node", str(HERE / "list_tools.mjs")]


def tools(name: str, server: list[str], folder: Path) -> str:
    """The tools that an official client gets of *server*."""
    command = [*client_command(name), *server]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True, cwd=folder)
    return done.stdout.strip()


@rows("name", ["python", "typescript"])
def test_one_invalid_schema_costs_a_client_all_tools_and_the_guard_saves_the_rest(name: str, tmp_path: Path) -> None:
    assert tools(name, SERVER, tmp_path).startswith("no tools: ")
    assert tools(name, GUARD, tmp_path) == "weather, report"

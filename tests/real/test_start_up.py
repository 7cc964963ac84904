"""
The packages of ours, and the large modules of others, that each command loads.

A client waits for the guard to start, and a hook often starts a command for one message. A package that a command loads
without need costs all of them some milliseconds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import assay
from kit.places import ROOT
from kit.rows import rows

CONVERSATION: Final = str(ROOT / "examples" / "conversation.jsonl")

LARGE: Final = frozenset(
    {
        *("aiohttp", "asyncio", "cryptography", "distributed", "fsspec", "http.client", "httptools"),
        *("importlib.metadata", "jwt", "multiprocessing", "opentelemetry", "ssl", "urllib.request", "uvicorn"),
    }
)
"""Modules that take 5 ms or more to import."""

PARSES: Final = {"model", "cli", "edges", "spec"}
READS_SETTINGS: Final = {*PARSES, "schema", "guard", "settings"}
MASKS: Final = {*READS_SETTINGS, "judge", "rules"}
"""Secrets are found by patterns that the engine matches."""
JUDGES: Final = {*MASKS, "records"}


class Loaded(NamedTuple):
    """What a program has loaded."""

    packages: set[str]
    """Packages of ours."""
    large: set[str]
    judges: bool = True
    """Whether conversations are judged: parts of the judge mask secrets, too."""


def loaded(program: str, directory: Path, *arguments: str) -> Loaded:
    code = f"import sys\n{program}\nsys.stderr.write('\\n' + ' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=directory,
        check=False,
        timeout=60,
        env={**os.environ, "XDG_STATE_HOME": str(directory), "MCP_READY_FILE": str(directory / "ready")},
    )
    assert "Traceback" not in done.stderr, done.stderr
    modules = set(done.stderr.splitlines()[-1].split())
    packages = {each.split(".")[1] for each in modules if each.startswith("assay.")}
    return Loaded(packages, modules & LARGE, "assay.judge.conversation" in modules)


COMMAND: Final = "from assay.cli.main import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass"


@rows(
    ("command", "packages"),
    [
        ("--version", PARSES),
        ("rules", {*PARSES, "rules"}),
        ("guard --help", MASKS - {"judge"}),
        ("wrap mcp.json --dry-run", MASKS),
        (f"check {CONVERSATION}", JUDGES),
        # The report is the page of the console.
        (f"report {CONVERSATION} -o page.html", {*JUDGES, "web", "console", "lock"}),
        ("guard -- true", {*JUDGES, "lock"}),
        ("validate none.json", {*READS_SETTINGS, "assets", "judge", "rules"}),
        ("serve", {*JUDGES, "assets"}),
    ],
)
def test_a_command_loads_only_what_it_needs(command: str, packages: set[str], tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}')
    found = loaded(COMMAND, tmp_path, *command.split())
    assert found.packages == packages
    assert found.judges == ("records" in packages)
    assert found.large == ({"importlib.metadata"} if "page.html" in command else set())


@rows(
    ("program", "packages"),
    [
        ("import assay", set()),
        ("from assay.settings import load; load({}, '.')", READS_SETTINGS - {"cli", "edges"}),
        (
            "from assay import Conversation, Party; Conversation().hear(Party.CLIENT, b'{}')",
            {"model", "judge", "schema", "rules", "spec"},
        ),
        (
            "import assay.api.jsonrpc, assay.api.schema_validator, assay.api.registry",
            {"api", "assets", "model", "judge", "schema", "rules", "spec"},
        ),
    ],
)
def test_a_program_loads_only_what_it_needs(program: str, packages: set[str], tmp_path: Path) -> None:
    found = loaded(program, tmp_path)
    assert (found.packages, found.large) == (packages, set())


def test_importing_assay_loads_no_engine_and_schemas_have_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    """Nothing may depend on the order of a set, which changes from process to process."""
    code = (
        "import json, sys, assay; names = dir(assay); engines = {'orjson', 'jsonschema_rs', 'jiter'} & {*sys.modules}; "
        "from assay.spec.schema import protocol_schema; from assay.spec.revisions import REVISIONS; "
        "print(json.dumps([names, [*engines], [protocol_schema(each).document() for each in REVISIONS]]))"
    )
    one, other = (
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    )
    assert one == other
    names, engines, _ = json.loads(one)
    assert engines == []
    assert {*assay.__all__, "__version__", "__doc__"} <= {*names}
    assert not [name for name in names if name not in assay.__all__ and not name.startswith("__")]

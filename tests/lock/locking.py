"""The command, and a server that offers what a test says."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("offering_server.py")

SECONDS = 60

FIND: dict[str, Any] = {
    "name": "find_books",
    "description": "Finds books by words.",
    "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
}
LEND: dict[str, Any] = {
    "name": "lend_book",
    "description": "Lends a book.",
    "inputSchema": {"type": "object"},
    "annotations": {"destructiveHint": True},
}
ALL: dict[str, Any] = {
    "tools": [FIND, LEND],
    "prompts": [{"name": "review", "arguments": [{"name": "book", "required": True}]}],
    "resourceTemplates": [{"name": "book", "uriTemplate": "book://{isbn}", "mimeType": "text/plain"}],
}


def offer(directory: Path, **what: Any) -> list[str]:
    """The command of a server that offers *what* from now on: always the same one."""
    path = directory / "offer.json"
    path.write_text(json.dumps(what or ALL), encoding="utf-8")
    return [sys.executable, "-IS", str(SERVER), "offer.json"]


def assay(directory: Path, *arguments: str, said: bytes = b"", **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line, in *directory*."""
    done = subprocess.run(
        [sys.executable, "-m", "assay", *arguments],
        cwd=directory,
        input=said,
        capture_output=True,
        check=False,
        timeout=SECONDS,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", **environment},
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def lock(directory: Path, *options: str, **what: Any) -> subprocess.CompletedProcess[str]:
    """`assay lock` with *options* on a server that offers *what*."""
    return assay(directory, "lock", *options, "--", *offer(directory, **what))

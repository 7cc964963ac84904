"""`assay serve --http` as a process, over the bundled catalogue: started, spoken to, ended."""

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kit.places import ROOT

CATALOGUE = ROOT / "examples" / "catalogue"
SOURCES = {"SYN_SCHEMAS_DIR": str(CATALOGUE / "jsonschema"), "SYN_EXAMPLES_DIR": str(CATALOGUE / "examples")}

SECONDS = 60
"""What the server may take to start, and to end; it takes less than one."""


@dataclass(slots=True)
class Service:
    """A server that runs, or has run."""

    url: str
    log: str
    """What it wrote to stderr: that it is ready, and once it has ended, the rest."""
    status: int | None = None
    """Its exit status, once it has ended."""


@contextmanager
def serving(directory: Path, variables: Mapping[str, str] = {}) -> Iterator[Service]:
    """A server with *directory* to itself, until the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-m", "assay", "serve", "--http", "127.0.0.1:0"],
        cwd=directory,
        env={**os.environ, **SOURCES, "MCP_READY_FILE": str(directory / "ready"), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            assert process.stderr is not None
            assert select.select([process.stderr], [], [], SECONDS)[0], "the server does not start"
            line = process.stderr.readline()
            said = re.search(r"url=(\S+)", line)
            assert said is not None, line + process.stderr.read()
            service = Service(said[1], line)
            yield service
            process.send_signal(signal.SIGTERM)
            output, rest = process.communicate(timeout=SECONDS)
            assert output == ""
            service.log += rest
            service.status = process.returncode
        finally:
            process.kill()

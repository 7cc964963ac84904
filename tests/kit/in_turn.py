"""One process that lacks something, in which our command runs many times, one after the other."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_PROGRAM = """
import json, os, sys, tempfile, traceback
{before}
from assay.cli.main import main

answer, found = os.dup(1), []
for words in json.loads(sys.argv.pop()):
    files = [tempfile.TemporaryFile() for _ in range(2)]
    for number, file in enumerate(files, 1):
        os.dup2(file.fileno(), number)
    sys.stdout, sys.stderr = (open(each, "w", encoding="utf-8", closefd=False) for each in (1, 2))
    try:
        status = main(words)
    except SystemExit as end:
        status = end.code or 0
    except Exception:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    for file in files:
        file.seek(0)
    found.append((status, *(file.read().decode() for file in files)))
os.write(answer, json.dumps(found).encode())
"""


class Ended(NamedTuple):
    """A command that has ended."""

    status: int
    out: str
    err: str


def run_in_turn(
    commands: Sequence[Sequence[str]], before: str, directory: Path, env: Mapping[str, str] | None = None
) -> list[Ended]:
    """Run all *commands* in *directory*, in a process that has run the statements *before* them."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(before=before), json.dumps(list(map(list, commands)))],
        cwd=directory,
        env={**os.environ, **(env or {}), "XDG_STATE_HOME": str(directory)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    return [Ended(*each) for each in json.loads(done.stdout)]

"""A command served over HTTP by `child_host.py`, as a process, and the lying server behind it."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kit.guard_process import liar
from kit.http_client import SECONDS, Log, Service, Wire, frame_of

HOST = Path(__file__).with_name("child_host.py")
NEWEST = "2025-11-25"


@contextmanager
def hosting(directory: Path, *options: str, command: Sequence[str] | None = None, **script: Any) -> Iterator[Service]:
    """*command*, or a lying server with that *script*, over HTTP; it does not show that the guard lists its tools."""
    script.setdefault("quiet", True)
    with subprocess.Popen(
        [sys.executable, str(HOST), *options, "--", *(command or liar(**script))],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        service = Service(process, directory / "ready", Log(process.stderr))
        try:
            host, _, port = service.log.line("url=http://").removesuffix("/mcp").rpartition(":")
            service.address = host, int(port)
            yield service
        finally:
            for wire in service.wires:
                wire.socket.close()
            process.terminate()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            service.log.whole()


def begun(service: Service, message: Any, headers: Any, method: str = "POST") -> Wire:
    """A request that is sent, on a connection of its own, whose answer is yet to be read."""
    wire = service.open()
    wire.say(method, "/mcp", frame_of(message) if message is not None else b"", headers)
    return wire

"""The guard as a process, in front of a server at a URL: started, spoken to, ended. Every wait is bounded."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from url_server import SECONDS

GUARD = [sys.executable, "-m", "assay", "guard"]
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def request(ident: Any, method: str, params: Any = None) -> dict[str, Any]:
    """A request of a session."""
    return {"jsonrpc": "2.0", "id": ident, "method": method} | ({} if params is None else {"params": params})


def modern(ident: Any, method: str, **params: Any) -> dict[str, Any]:
    """A request of 2026-07-28."""
    return request(ident, method, {**params, "_meta": META})


def call(ident: Any, **arguments: Any) -> dict[str, Any]:
    """A call of a tool, in a session."""
    return request(ident, "tools/call", {"name": "search", "arguments": arguments})


def notification(method: str, **params: Any) -> dict[str, Any]:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method} | ({"params": params} if params else {})


INITIALIZE = request(
    "open",
    "initialize",
    {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}, "sampling": {}, "elicitation": {}},
        "clientInfo": {"name": "a", "version": "1"},
    },
)
INITIALIZED = notification("notifications/initialized")


class Remotely:
    """A guard, and the ends of its streams that are ours."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log
        self._rest = b""
        assert process.stdin is not None
        assert process.stdout is not None
        self._sink, self._source = process.stdin, process.stdout

    def say(self, *messages: Any) -> None:
        """Sends all *messages* at once; bytes are lines already."""
        self._sink.write(b"".join(each if isinstance(each, bytes) else _line(each) for each in messages))
        self._sink.flush()

    def next(self) -> bytes:
        """The next line for the client, without its newline."""
        while b"\n" not in self._rest:
            assert self._read(), f"the stream has ended: {self._rest!r}: {self.log}"
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def answer(self) -> Any:
        """The next message for the client."""
        return json.loads(self.next())

    def ask(self, message: Any) -> Any:
        """What comes next after *message*."""
        self.say(message)
        return self.answer()

    def open(self) -> Any:
        """The handshake; the answer to it."""
        answer = self.ask(INITIALIZE)
        self.say(INITIALIZED)
        return answer

    def rest(self) -> list[Any]:
        """All messages that come until the end, once the client says no more."""
        self.close()
        while self._read():
            pass
        return [json.loads(each) for each in self._rest.splitlines()]

    def close(self) -> None:
        """The client says no more."""
        with suppress(BrokenPipeError):
            self._sink.close()

    def ended(self) -> int:
        """The exit status."""
        return self.process.wait(SECONDS)

    @property
    def log(self) -> str:
        """What it has written to stderr so far."""
        return self._log.read_text(encoding="utf-8")

    def _read(self) -> bool:
        assert select.select([self._source], [], [], SECONDS)[0], f"nothing came: {self._rest[-200:]!r}: {self.log}"
        chunk = os.read(self._source.fileno(), 1 << 16)
        self._rest += chunk
        return chunk != b""


def _line(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


@contextmanager
def remotely(directory: Path, url: str, *options: str, **variables: str) -> Iterator[Remotely]:
    """A guard with *options* in front of the server at *url*."""
    log = directory / "stderr"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [*GUARD, "--target", url, *options],
            cwd=directory,
            env={**os.environ, **variables},
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        try:
            yield Remotely(process, log)
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                if process.stdin is not None:
                    process.stdin.close()


def enforcing(directory: Path, url: str, *options: str, **variables: str) -> Any:
    """A guard that stops what is wrong."""
    return remotely(directory, url, "--mode", "enforce", *options, **variables)

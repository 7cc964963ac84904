"""The guard as a process, in front of a server at a URL: started, spoken to, ended. Every wait is bounded."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.guard_process import GUARD, INITIALIZED, Guarded, Lines, initialize, request

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
INITIALIZE = initialize()


def modern(ident: Any, method: str, **params: Any) -> dict[str, Any]:
    """A request of 2026-07-28."""
    return request(ident, method, {**params, "_meta": META})


@dataclass
class GuardedUrl(Guarded):
    """A guard, and the ends of its streams that are ours."""

    errors: Path

    @property
    def shown(self) -> str:
        """What it has written to stderr so far."""
        return self.errors.read_text(encoding="utf-8")

    def begin(self) -> None:
        """The handshake."""
        assert "result" in self.ask(INITIALIZE)
        self.say(INITIALIZED)

    def rest(self) -> list[Any]:
        """All messages that come until the end, once the client sends no more."""
        self.close()
        return [json.loads(each) for each in self.out.rest()]


@contextmanager
def guarded_url(directory: Path, url: str, *options: str, **variables: str) -> Iterator[GuardedUrl]:
    """A guard with *options* in front of the server at *url*."""
    errors = directory / "stderr"
    with (
        errors.open("wb") as file,
        subprocess.Popen(
            [*GUARD, "--target", url, *options],
            cwd=directory,
            env={**os.environ, **variables},
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
        ) as process,
    ):
        try:
            yield GuardedUrl(process, Lines(-1), errors)
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                if process.stdin is not None:
                    process.stdin.close()


def enforcing(directory: Path, url: str, *options: str, **variables: str) -> Any:
    """A guard that stops what is wrong."""
    return guarded_url(directory, url, "--mode", "enforce", *options, **variables)

"""The guard as a process, in front of a scripted server: started, spoken to, ended. Every wait is bounded."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("scripted_server.py")

SECONDS = 60
"""What anything here may take. It takes a fraction of a second, and seconds where a server has to be killed."""

GUARD = [sys.executable, "-m", "assay", "guard"]

_HURRIED = """
import json, sys
from importlib import import_module
from assay.cli.main import main
for place, seconds in json.loads(sys.argv.pop(1)).items():
    module, _, name = place.partition(":")
    setattr(import_module(f"assay.{module}"), name, seconds)
sys.exit(main())
"""
GRACE = {
    f"edges.{module}:{name}": 0.1
    for module, names in {
        "child": ("TERMINATED",),
        "child_supervisor": ("CLOSED", "TERMINATED", "LAST_WORDS"),
        "child_pipe": ("CLOSED", "TERMINATED", "LAST_WORDS"),
        "stdio_child": ("CLOSED", "LINGER"),
    }.items()
    for name in names
}
"""How long the guard waits for a server that does not end, or has ended and left its output open."""


def hurried(seconds: Mapping[str, float] = GRACE, command: str = "guard") -> list[str]:
    """The command of a guard that waits for these *seconds* where it would wait longer, by module and name."""
    return [sys.executable, "-c", _HURRIED, json.dumps(seconds), command]


def scripted(**script: Any) -> list[str]:
    """The command of a server that does what its *script* says."""
    return [sys.executable, "-IS", str(SERVER), json.dumps(script)]


def frame_of(message: Any) -> bytes:
    """*message* as a frame; bytes are one already."""
    return message if isinstance(message, bytes) else json.dumps(message, separators=(",", ":")).encode()


def request(ident: Any, method: str, params: Any = None) -> dict[str, Any]:
    """A request."""
    return {"jsonrpc": "2.0", "id": ident, "method": method} | ({} if params is None else {"params": params})


def notification(method: str, params: Any = None) -> dict[str, Any]:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})


def call(ident: Any, tool: str = "search", **arguments: Any) -> dict[str, Any]:
    """A call of a tool."""
    return request(ident, "tools/call", {"name": tool, "arguments": arguments or {"words": "sea"}})


def result(ident: Any, value: Any) -> dict[str, Any]:
    """A result."""
    return {"jsonrpc": "2.0", "id": ident, "result": value}


def tool(name: str, **more: Any) -> dict[str, Any]:
    """A tool as it is listed."""
    return {"name": name, "inputSchema": {"type": "object"}, **more}


CAPABILITIES: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {}}


def initialize(revision: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
    """The first thing that a client says."""
    params = {
        "protocolVersion": revision,
        "capabilities": capabilities or CAPABILITIES,
        "clientInfo": {"name": "a", "version": "1"},
    }
    return request("open", "initialize", params)


INITIALIZED = notification("notifications/initialized")


class Lines:
    """The lines that come out of a descriptor, each within bounded time."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._rest = b""

    def next(self) -> bytes:
        """The next one, without its newline."""
        while b"\n" not in self._rest:
            assert self.read(), f"the stream has ended: {self._rest[-200:]!r}"
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def all(self) -> bytes:
        """All that comes until the end."""
        while self.read():
            pass
        data, self._rest = self._rest, b""
        return data

    def rest(self) -> list[bytes]:
        """All lines that come until the end."""
        data = self.all()
        return data.removesuffix(b"\n").split(b"\n") if data else []

    def read(self) -> bool:
        """Whether there is more, which is kept."""
        assert select.select([self.descriptor], [], [], SECONDS)[0], f"nothing came after {self._rest[-200:]!r}"
        chunk = os.read(self.descriptor, 1 << 16)
        self._rest += chunk
        return chunk != b""


@dataclass
class Guarded:
    """A guard, and the ends of its streams that are ours."""

    process: subprocess.Popen[bytes]
    received: Lines
    """What the server receives, if it writes that down."""

    def __post_init__(self) -> None:
        self.sink = self.process.stdin.fileno() if self.process.stdin else -1
        self.out = Lines(self.process.stdout.fileno() if self.process.stdout else -1)
        self.log = Lines(self.process.stderr.fileno() if self.process.stderr else -1)

    def say(self, *messages: Any) -> None:
        """Sends all *messages* at once."""
        self.write(b"".join(frame_of(each) + b"\n" for each in messages))

    def write(self, data: bytes) -> None:
        """Sends *data*; reads what comes meanwhile, so that both sides can go on."""
        os.set_blocking(self.sink, False)
        rest = memoryview(data)
        sources = [self.out.descriptor] if self.out.descriptor >= 0 else []
        while rest:
            readable, writable, _ = select.select(sources, [self.sink], [], SECONDS)
            assert readable or writable, "what is sent is not read"
            if writable:
                with suppress(BlockingIOError):
                    rest = rest[os.write(self.sink, rest) :]
            if readable and not self.out.read():
                return

    def answer(self) -> Any:
        """The next message for the client."""
        return json.loads(self.out.next())

    def ask(self, message: Any) -> Any:
        """What comes next after *message*."""
        self.say(message)
        return self.answer()

    def open(self, *, listing: bool = True, revision: str = "2025-11-25", **capabilities: Any) -> Any:
        """The handshake, and the list of tools; the answer to that."""
        assert "result" in self.ask(initialize(revision, **capabilities))
        self.say(INITIALIZED)
        return self.ask(request("list", "tools/list"))["result"] if listing else None

    def close(self) -> None:
        """The client says no more."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ended(self) -> int:
        """The exit status."""
        return self.process.wait(SECONDS)


@contextmanager
def guarded(
    directory: Path,
    *options: str,
    command: Sequence[str] | None = None,
    streams: Any = None,
    guard: Sequence[str] = GUARD,
    **script: Any,
) -> Iterator[Guarded]:
    """
    A *guard* with *options* in front of *command*, or of a scripted server with that *script*.

    `received=True` in the script has the server write down what it receives. *streams* are options of Popen.
    """
    received = -1
    if script.get("received") is True:
        script["received"] = str(directory / "received")
        os.mkfifo(script["received"])
        received = os.open(script["received"], os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen(
        [*guard, *options, "--", *(command or scripted(**script))],
        cwd=directory,
        bufsize=0,
        **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **(streams or {})},
    ) as process:
        try:
            yield Guarded(process, Lines(received))
        finally:
            process.kill()
            if process.stdin is not None:
                with suppress(BrokenPipeError):
                    process.stdin.close()
            if received >= 0:
                os.close(received)


def enforcing(directory: Path, *options: str, **script: Any) -> Any:
    """A guard that stops what is wrong."""
    return guarded(directory, "--mode", "enforce", *options, **script)


class Watched:
    """A process that is not ours, by its id, to see that it ends."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.pidfd_open(pid)

    def is_alive(self) -> bool:
        """Whether it has not ended by now."""
        return not select.select([self._descriptor], [], [], 0)[0]

    def ends(self) -> bool:
        """Whether it ends, which a signal takes a moment for."""
        ended = bool(select.select([self._descriptor], [], [], SECONDS)[0])
        os.close(self._descriptor)
        return ended


def peak(process: subprocess.Popen[bytes]) -> int:
    """The most memory that a process has ever had, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10

"""A server process that speaks HTTP, and a client that sends it anything: bytes in, answers out, all within bounds."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from assay.judge.headers import encode
from assay.spec.revisions import LATEST, handshake
from kit.places import ROOT

CATALOGUE = ROOT / "examples" / "catalogue"

SECONDS = 60
"""What anything here may take; most takes a fraction of a second."""

READY = "mcp:ready mode=http url="
REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
JSON = {"content-type": "application/json"}
BOTH = {**JSON, "accept": "application/json, text/event-stream"}

Headers = Mapping[str, str | bytes]


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def meta(revision: str = LATEST, **more: Any) -> dict[str, Any]:
    """The `_meta` of a request, as revisions without a handshake want it."""
    return {REVISION_KEY: revision, "io.modelcontextprotocol/clientCapabilities": {}, **more}


def request(ident: Any, method: str, params: Mapping[str, Any] | None = None, revision: str = "") -> dict[str, Any]:
    """A request; with a *revision* that has no handshake, it says so."""
    whole = dict(params or {})
    if revision and not handshake(revision):
        whole["_meta"] = {**meta(revision), **whole.get("_meta", {})}
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": whole}


def call(ident: Any, tool: str, arguments: Any, revision: str = "", **more: Any) -> dict[str, Any]:
    """A call of a tool; *more* goes into `_meta`."""
    params = {"name": tool, "arguments": arguments, **({"_meta": more} if more else {})}
    return request(ident, "tools/call", params, revision)


def notification(method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": dict(params)})}


def initialize(revision: str, ident: Any = "open") -> dict[str, Any]:
    """What a client of the handshake era says first."""
    client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    return request(ident, "initialize", client)


INITIALIZED = notification("notifications/initialized")


def listen(ident: Any = 1) -> dict[str, Any]:
    """What opens a stream in the era without handshake."""
    return request(ident, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, LATEST)


def of(revision: str, **more: str | bytes) -> dict[str, str | bytes]:
    """The headers of a message in *revision*, which has a handshake; no session; *more* are headers too."""
    return {**BOTH, "mcp-protocol-version": revision, **more}


def frame_of(message: Any) -> bytes:
    """*message* as a frame; bytes are one already."""
    if isinstance(message, bytes):
        return message
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


NAMED = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
"""The member of params that a header repeats, by method."""


def modern(message: Any, **more: str | bytes) -> dict[str, str | bytes]:
    """The headers that a request of 2026-07-28 has to have; *more* replaces some of them (`_` stands for `-`)."""
    if isinstance(message, bytes):
        try:
            message = json.loads(message)
        except ValueError:
            message = None
    headers: dict[str, str | bytes] = {**BOTH, "mcp-protocol-version": LATEST}
    if isinstance(message, dict) and isinstance(message.get("method"), str):
        headers["mcp-method"] = message["method"].encode()
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        headers["mcp-protocol-version"] = params.get("_meta", {}).get(REVISION_KEY, LATEST)
        named = NAMED.get(message["method"])
        if named is not None and isinstance(params.get(named), str):
            headers["mcp-name"] = encode(params[named])
    return {**headers, **{name.replace("_", "-"): value for name, value in more.items()}}


# ── a connection ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Answer:
    """What came back."""

    status: int
    pairs: list[tuple[str, str]]
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The value of the header *name*; there must not be two."""
        found = [value for each, value in self.pairs if each == name]
        assert len(found) < 2, self.pairs
        return found[0] if found else None

    def json(self) -> Any:
        """The body, which says that it is JSON."""
        assert self.header("content-type") == "application/json", self
        return json.loads(self.body)

    def error(self) -> Any:
        """The error that it is."""
        return self.json()["error"]

    def events(self) -> list[dict[str, str]]:
        """The body, which says that it is events."""
        assert self.header("content-type") == "text/event-stream", self
        return events(self.body)


def events(text: bytes) -> list[dict[str, str]]:
    """The events of a stream, each field by name; comments have the name ``""``."""
    found = []
    for block in text.decode().replace("\r\n", "\n").split("\n\n"):
        lines = [line.partition(":") for line in block.split("\n") if line]
        if lines:
            found.append({name: value.removeprefix(" ") for name, _, value in lines})
    return found


class Wire:
    """One connection, with nothing between a test and the bytes."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, SECONDS)
        self.held = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Sends *data*, all of it."""
        self.socket.sendall(data)

    def say(self, method: str, path: str, body: bytes = b"", headers: Headers | None = None, host: str = "") -> None:
        """Sends a request whole."""
        self.send(head(method, path, {"host": host or self.name, **_sized(body), **(headers or {})}) + body)

    @property
    def name(self) -> str:
        """What the other end is called in a Host header."""
        host, port = self.socket.getpeername()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def more(self) -> bool:
        """Reads what has come; False at the end."""
        try:
            chunk = self.socket.recv(1 << 16)
        except ConnectionResetError:
            return False
        self.held += chunk
        return chunk != b""

    def until(self, mark: bytes) -> bytes:
        """What comes up to and with *mark*."""
        while mark not in self.held:
            assert self.more(), f"the connection ended after {self.held[:500]!r}"
        found, _, self.held = self.held.partition(mark)
        return found + mark

    def exactly(self, count: int) -> bytes:
        """The next *count* bytes."""
        while len(self.held) < count:
            assert self.more(), f"the connection ended after {self.held[:500]!r}"
        found, self.held = self.held[:count], self.held[count:]
        return found

    def head(self) -> Answer:
        """The head of the next answer."""
        first, *lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, status, *_ = first.split(" ")
        assert version == "HTTP/1.1", first
        pairs = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines if line)]
        return Answer(int(status), pairs)

    def answer(self, *, bodiless: bool = False) -> Answer:
        """The next answer, whole; *bodiless* as that to HEAD is."""
        found = self.head()
        if bodiless or found.status in {204, 304} or found.status < 200:
            return found
        if found.header("transfer-encoding") == "chunked":
            found.body = b"".join(iter(self.chunk, b""))
        else:
            found.body = self.exactly(int(found.header("content-length") or 0))
        return found

    def chunk(self) -> bytes:
        """The next piece of an answer without a length; empty at its end."""
        size = int(self.until(b"\r\n"), 16)
        return self.exactly(size + 2)[:-2]

    def rest(self) -> bytes:
        """All that comes until the other side closes."""
        while self.more():
            pass
        found, self.held = self.held, b""
        return found

    def silent(self) -> bool:
        """Whether nothing has come, as of now."""
        return not self.held and not select.select([self.socket], [], [], 0)[0]


def head(method: str, path: str, headers: Headers) -> bytes:
    """The head of a request."""
    lines = [f"{method} {path} HTTP/1.1".encode()]
    lines += [name.encode() + b": " + (v if isinstance(v, bytes) else v.encode()) for name, v in headers.items()]
    return b"\r\n".join([*lines, b"", b""])


def _sized(body: bytes) -> dict[str, str]:
    return {"content-length": str(len(body))} if body else {}


# ── a server ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Log:
    """What a process writes to stderr, read as it comes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._ended = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self._stream:
            with self._news:
                self._lines.append(line.decode(errors="replace").rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def line(self, start: str) -> str:
        """The first line that begins with *start*, without that."""
        with self._news:
            self._news.wait_for(lambda: self._ended or any(each.startswith(start) for each in self._lines), SECONDS)
            found = [each for each in self._lines if each.startswith(start)]
            assert found, f"no {start!r} in {self._lines}"
            return found[0].removeprefix(start)

    def until(self, holds: Callable[[str], bool]) -> str:
        """What has come, once that *holds* of it."""
        with self._news:
            self._news.wait_for(lambda: self._ended or holds("\n".join(self._lines)), SECONDS)
            found = "\n".join(self._lines)
        assert holds(found), found
        return found

    def whole(self) -> list[str]:
        """Every line, once the process has ended."""
        self._thread.join(SECONDS)
        assert self._ended
        return self._lines

    def so_far(self) -> str:
        """What has come."""
        with self._news:
            return "\n".join(self._lines)


@dataclass
class Service:
    """A server process."""

    process: subprocess.Popen[bytes]
    ready: Path
    log: Log
    address: tuple[str, int] = ("", 0)
    wires: list[Wire] = field(default_factory=list)

    def open(self) -> Wire:
        """A new connection."""
        self.wires.append(Wire(self.address))
        return self.wires[-1]

    def ask(
        self, method: str, path: str = "/mcp", body: Any = b"", headers: Headers | None = None, host: str = ""
    ) -> Answer:
        """One request on a connection of its own."""
        with Wire(self.address) as wire:
            wire.say(method, path, frame_of(body) if body != b"" else b"", headers, host)
            return wire.answer(bodiless=method == "HEAD")

    def post(self, message: Any, headers: Headers | None = None, **more: str | bytes) -> Answer:
        """One message; *more* are headers too (`_` stands for `-`)."""
        every = {**(BOTH if headers is None else headers), **{k.replace("_", "-"): v for k, v in more.items()}}
        return self.ask("POST", "/mcp", message, every)

    def session(self, revision: str, **more: str | bytes) -> dict[str, str | bytes]:
        """The headers of a session that is open in *revision*."""
        opened = self.post(initialize(revision), {**BOTH, **more})
        assert opened.json()["result"]["protocolVersion"] == revision
        headers: dict[str, str | bytes] = {**BOTH, "mcp-session-id": opened.header("mcp-session-id") or "none"}
        headers |= more
        if revision >= "2025-06-18":
            headers["mcp-protocol-version"] = revision
        assert self.post(INITIALIZED, headers).status == 202
        return headers

    def signal(self, wanted: signal.Signals) -> None:
        """Sends a signal."""
        self.process.send_signal(wanted)

    def ended(self, seconds: float = SECONDS) -> int:
        """The exit status, within *seconds*; the ready file is gone."""
        status = self.process.wait(seconds)
        assert not self.ready.exists()
        return status

    def open_files(self) -> int:
        """How many files and connections it has open."""
        listing = Path(f"/proc/{self.process.pid}/fd")
        if not listing.exists():
            pytest.skip("no /proc here to see the connections of a process in")
        return len(list(listing.iterdir()))


def until(holds: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Waits until something *holds* that has no event to wait for."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never did"
        select.select([], [], [], 0.02)


def command(*options: str) -> list[str]:
    """What runs `assay serve`."""
    return [sys.executable, "-m", "assay", "serve", *options]


def environment(directory: Path, **more: str) -> dict[str, str]:
    """The variables of a server in *directory*: the bundled catalogue, and nothing of the surroundings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "SYN_"))}
    return {
        **inherited,
        "SYN_SCHEMAS_DIR": str(CATALOGUE / "jsonschema"),
        "SYN_EXAMPLES_DIR": str(CATALOGUE / "examples"),
        "MCP_READY_FILE": str(directory / "ready"),
        "ASSAY_JOURNAL": "off",
        **more,
    }


@contextmanager
def serving(
    directory: Path, *settings: str, address: str = "127.0.0.1:0", env: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """A server that is ready, with *settings* such as ``http.streams=1``."""
    options = [option for setting in settings for option in ("--set", setting)]
    with started(command("--http", address, *options), directory, READY, env) as service:
        yield service


@contextmanager
def started(line: list[str], directory: Path, ready: str, env: Mapping[str, str] | None = None) -> Iterator[Service]:
    """What *line* starts, once it has said that it is *ready*, and at the end of that where. `with` ends it."""
    with subprocess.Popen(
        line,
        env=environment(directory, **(env or {})),
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        service = Service(process, directory / "ready", Log(process.stderr))
        try:
            url = service.log.line(ready).rpartition(" at ")[2]
            host, _, port = url.removeprefix("http://").partition("/")[0].rpartition(":")
            service.address = host.strip("[]"), int(port)
            yield service
        finally:
            for wire in service.wires:
                wire.socket.close()
            process.kill()
            process.wait(SECONDS)
            service.log.whole()


def run(directory: Path, *options: str, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
    """What comes of an `assay serve` that is expected to end by itself."""
    return subprocess.run(
        command(*options),
        env=environment(directory),
        cwd=directory,
        input="",
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=seconds,
    )


# ── a backend ────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Late(BaseHTTPRequestHandler):
    """Stores an asset once that is allowed, and not before."""

    def do_POST(self) -> None:
        backend = self.server
        assert isinstance(backend, LateBackend)
        backend.asked.release()
        backend.allowed.wait(SECONDS)
        with suppress(OSError):
            self.send_response(201)
            self.end_headers()
            self.wfile.write(b'{"id":"stored"}')

    def log_message(self, *_: Any) -> None:
        pass


class LateBackend(ThreadingHTTPServer):
    """A backend that answers late."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Late)
        self.asked = threading.Semaphore(0)
        self.allowed = threading.Event()

    def was_asked(self) -> None:
        """Waits until it has been asked once more."""
        assert self.asked.acquire(timeout=SECONDS)

    def handle_error(self, *_: Any) -> None:
        """Whoever asked has gone: that is for the test to see, not for stderr."""


@contextmanager
def late_backend() -> Iterator[tuple[LateBackend, dict[str, str]]]:
    """One, and the variable that leads to it."""
    with LateBackend() as backend:
        thread = threading.Thread(target=backend.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield backend, {"SYN_BACKEND_URL": f"http://127.0.0.1:{backend.server_port}"}
        finally:
            backend.allowed.set()
            backend.shutdown()
            thread.join(SECONDS)


STORE = {"asset": {}, "validate_first": False}

PATIENT = """
import sys
from dataclasses import replace
from assay.assets.store_backend import StoreBackend
from assay.cli.main import main
from assay.edges import stdio_lines
stdio_lines.GRACE = 600.0
read = StoreBackend.read
StoreBackend.read = lambda environ: replace(read(environ), timeout=600.0, overall=600.0) if read(environ) else None
sys.exit(main(sys.argv[1:]))
"""
"""The command, which waits ten minutes for a backend, and after a signal: if it ends sooner, it did not wait."""

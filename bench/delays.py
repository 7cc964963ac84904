"""
How long the worst messages keep others waiting, and what they make the guard hold, through every pairing.

One client sends the message, or asks the server that sends it; another one pings all the while, where the pairing has
more than one client, or the same one does right behind it. The promise is 250 ms, and memory of 30 times the message
and 96 MiB. `python bench/delays.py 16` makes messages of 16 MiB, without a number of 4; further words are names of
cases.
"""

import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import orjson

from assay.model.verdict import Party
from worst import CASES, PROMISED_MIB, PROMISED_MS, PROMISED_TIMES, Case

SERVERS: Final = Path(__file__).parent / "servers"
PAIRINGS: Final = ("hh", "hc", "sh", "sc")
SECONDS: Final = 60.0
_VERSION: Final = "io.modelcontextprotocol/protocolVersion"


class Cost(NamedTuple):
    """What one message cost."""

    delay: float
    """The longest that another request waited, in milliseconds."""
    memory: float
    """The most that the guard has held, in MiB."""


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        return int(made.getsockname()[1])


def meta(revision: str) -> dict[str, Any]:
    """What a request of the era without handshake carries."""
    if revision < "2026":
        return {}
    return {"_meta": {_VERSION: revision, "io.modelcontextprotocol/clientCapabilities": {}}}


def request(ident: Any, method: str, params: Any = None, revision: str = "") -> bytes:
    """A request."""
    every = {**(params or {}), **meta(revision)}
    return orjson.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": every})


class Wire:
    """One HTTP connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self._file = self._socket.makefile("rb")
        self._port = port

    def ask(self, body: bytes, headers: dict[str, str], method: str = "POST") -> tuple[dict[str, str], bytes]:
        """The answer to one request, whole."""
        lines = [f"{method} /mcp HTTP/1.1", f"host: 127.0.0.1:{self._port}", f"content-length: {len(body)}"]
        lines += ["content-type: application/json", "accept: application/json, text/event-stream"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        self._file.readline()
        got = dict(iter(lambda: _pair(self._file.readline()), ("", "")))
        return got, self._file.read(int(got.get("content-length", "0")))

    def close(self) -> None:
        """Ends it."""
        self._file.close()
        self._socket.close()


def _pair(line: bytes) -> tuple[str, str]:
    name, _, value = line.decode("latin-1").strip().partition(":")
    return name.lower(), value.strip()


def session(port: int, revision: str) -> tuple[Wire, dict[str, str]]:
    """A connection with an open session, or without one in the era that has none."""
    wire = Wire(port)
    if revision >= "2026":
        return wire, {"mcp-protocol-version": revision}
    client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    got, _ = wire.ask(request(0, "initialize", client), {})
    headers = {"mcp-session-id": got["mcp-session-id"], "mcp-protocol-version": revision}
    wire.ask(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', headers)
    return wire, headers


def named(headers: dict[str, str], method: str, name: str = "") -> dict[str, str]:
    """Headers that repeat the body, in the era that has them."""
    if headers.get("mcp-protocol-version", "") < "2026":
        return headers
    return {**headers, "mcp-method": method, **({"mcp-name": name} if name else {})}


class Guard:
    """A guard in front of a server that can be bad."""

    def __init__(self, pairing: str, mode: str, place: Path) -> None:
        self.pairing, self.place = pairing, place
        self._beside: list[subprocess.Popen[bytes]] = []
        options = ["--mode", mode, "--quiet", "--journal", str(place / "journal"), "--set", "guard.flights=off"]
        line = [sys.executable, "-m", "assay", "guard", *options]
        if pairing[1] == "h":
            port = free_port()
            self._beside.append(
                subprocess.Popen([sys.executable, str(SERVERS / "worst_http.py"), str(place), str(port)])
            )
            _await(port)
            line += ["--target", f"http://127.0.0.1:{port}/mcp"]
        self.port = free_port()
        if pairing[0] == "h":
            line += ["--listen", f"127.0.0.1:{self.port}"]
        if pairing[1] == "c":
            line += ["--", sys.executable, str(SERVERS / "worst_stdio.py"), str(place)]
        piped = subprocess.PIPE if pairing[0] == "s" else None
        self.process = subprocess.Popen(line, stdin=piped, stdout=piped, stderr=subprocess.DEVNULL, bufsize=0)
        if pairing[0] == "h":
            _await(self.port)

    def close(self) -> None:
        """Ends it all."""
        for each in (self.process, *self._beside):
            each.kill()
            each.wait()
            for stream in (each.stdin, each.stdout):
                if stream is not None:
                    stream.close()

    def peak(self) -> float:
        """The most that it has held since `forget`, in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))

    def forget(self) -> None:
        """What it holds now is the most, from now on."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5", encoding="ascii")


def _await(port: int) -> None:
    limit = time.monotonic() + SECONDS
    while time.monotonic() < limit:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise TimeoutError(f"nobody listens at {port}")


def over_http(guard: Guard, case: Case) -> Cost:
    """One message over HTTP, while another client pings."""
    revision = case.revision or "2025-11-25"
    victim, theirs = session(guard.port, "2025-11-25")
    waits: list[float] = []
    ended = threading.Event()

    def ping() -> None:
        while not ended.is_set():
            began = time.perf_counter()
            victim.ask(request(1, "ping"), theirs)
            waits.append(time.perf_counter() - began)
            time.sleep(0.002)

    if case.revision:
        attacker, headers = session(guard.port, revision)
        attacker.ask(request(1, "tools/list", {}, revision), named(headers, "tools/list"))
    else:
        attacker, headers = Wire(guard.port), {}
    guard.forget()
    thread = threading.Thread(target=ping)
    thread.start()
    try:
        _attack(attacker, headers, case, revision)
    finally:
        time.sleep(0.1)
        ended.set()
        thread.join()
    for wire, its in ((attacker, headers), (victim, theirs)):
        if "mcp-session-id" in its:
            with suppress(OSError, ValueError):
                Wire(guard.port).ask(b"", its, "DELETE")
        wire.close()
    return Cost(max(waits) * 1000, guard.peak())


def _attack(wire: Wire, headers: dict[str, str], case: Case, revision: str) -> None:
    if case.party is Party.CLIENT:
        wire.ask(case.frame, named(headers, "tools/call", "t"))
    elif case.asked:
        params = {"name": "t", "arguments": {}} if case.asked == "tools/call" else {}
        name = "t" if case.asked == "tools/call" else ""
        wire.ask(request(2, case.asked, params, revision), named(headers, case.asked, name))
    else:
        wire.ask(request(2, "ping", {}, revision), named(headers, "ping"))


def over_stdio(guard: Guard, case: Case) -> Cost:
    """One message over standard streams, with a ping right behind it: how much longer that takes than another."""
    revision = case.revision or "2025-11-25"
    stream = _Stream(guard.process)
    if case.revision and revision < "2026":
        client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        stream.say(request(0, "initialize", client))
        stream.until(b'"id":0')
        stream.say(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    if case.revision:
        stream.say(request(1, "tools/list", {}, revision))
        stream.until(b'"id":1')
    guard.forget()
    params = {"name": "t", "arguments": {}} if case.asked == "tools/call" else {}
    own = case.frame if case.party is Party.CLIENT else request(2, case.asked or "ping", params, revision)
    cpu = _cpu(guard.process.pid)
    stream.say(own)
    stream.say(request("behind", "ping", {}, revision))
    # What a server sends meanwhile comes first.
    stream.until(b'"behind"')
    return Cost((_cpu(guard.process.pid) - cpu) * 1000, guard.peak())


class _Stream:
    """The client's end of standard streams: it reads while it writes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._held = b""

    def say(self, frame: bytes) -> None:
        rest = memoryview(frame + b"\n")
        while rest:
            ready = select.select([self._out], [self._in], [], SECONDS)
            if ready[0]:
                self._read()
            if ready[1]:
                rest = rest[os.write(self._in, rest[:65536]) :]

    def _read(self) -> None:
        got = os.read(self._out, 1 << 20)
        if not got:
            raise EOFError("the guard has ended")
        self._held = (self._held + got)[-(1 << 20) :]

    def until(self, mark: bytes) -> None:
        while mark not in self._held:
            if not select.select([self._out], [], [], SECONDS)[0]:
                raise TimeoutError(mark)
            self._read()
        self._held = b""


def _cpu(pid: int) -> float:
    """Seconds of CPU of a process."""
    fields = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()
    return int(fields[0]) / 1e9


@contextmanager
def guarded(pairing: str, mode: str, place: Path) -> Iterator[Guard]:
    """A guard, until it is not needed."""
    made = Guard(pairing, mode, place)
    try:
        yield made
    finally:
        made.close()


def prepared(case: Case, place: Path) -> None:
    """What the server is to say."""
    (place / "frame").write_bytes(case.frame if case.party is Party.SERVER else b"")
    (place / "tool").write_bytes(orjson.dumps({"name": "t", "inputSchema": case.schema, "outputSchema": case.schema}))
    (place / "revision").write_text(case.revision or "2025-11-25", encoding="ascii")


def measure(pairing: str, mode: str, names: list[str], size: int) -> dict[str, Cost | str]:
    """Every case through one pairing, in one mode."""
    found: dict[str, Cost | str] = {}
    with TemporaryDirectory() as temporary:
        place = Path(temporary)
        prepared(CASES[names[0]](1000), place)
        if pairing[0] == "h":
            with guarded(pairing, mode, place) as guard:
                for name in names:
                    found[name] = _one(guard, CASES[name](size), place, over_http)
            return found
        for name in names:
            with guarded(pairing, mode, place) as guard:
                found[name] = _one(guard, CASES[name](size), place, over_stdio)
    return found


def _one(guard: Guard, case: Case, place: Path, how: Any) -> Cost | str:
    prepared(case, place)
    try:
        cost: Cost = how(guard, case)
    except (OSError, EOFError, KeyError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return cost


def main(arguments: list[str]) -> int:
    """Measure and print; 1 if a promise was not kept."""
    mib = int(arguments[0]) if arguments and arguments[0].isdigit() else 4
    words = [each for each in arguments if not each.isdigit()]
    pairings = [each for each in words if each in PAIRINGS] or list(PAIRINGS)
    names = [each for each in words if each in CASES] or list(CASES)
    bound = PROMISED_TIMES * mib + PROMISED_MIB
    broken = 0
    for pairing in pairings:
        for mode in ("enforce", "audit"):
            found = measure(pairing, mode, names, mib << 20)
            costs = {name: cost for name, cost in found.items() if isinstance(cost, Cost)}
            slow = sorted(costs.items(), key=lambda item: -item[1].delay)[:5]
            large = sorted(costs.items(), key=lambda item: -item[1].memory)[:3]
            print(f"\n{pairing} {mode}: {len(costs)} of {len(names)} cases of {mib} MiB")
            for name, cost in slow:
                print(f"  {cost.delay:7.0f} ms  {name}")
            for name, cost in large:
                print(f"  {cost.memory:7.0f} MiB  {name}  (bound {bound})")
            for name, each in found.items():
                if isinstance(each, str):
                    print(f"  failed: {name}: {each}")
            broken += sum(cost.delay > PROMISED_MS or cost.memory > bound for cost in costs.values())
            broken += len(found) - len(costs)
    print(f"\n{broken} beyond {PROMISED_MS} ms or {bound} MiB")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

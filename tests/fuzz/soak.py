"""
Changed messages, as many as one likes, against real processes: `assay serve` and every guard, over both transports and
in both modes. No process may end, and every request must get exactly one answer.

    python tests/fuzz/soak.py FRAMES [TARGET ...]
"""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from mutations import OURS, asks, frame, recorded, seeds

from kit.guard_process import INITIALIZED, frame_of, initialize, request
from kit.http_client import BOTH, CATALOGUE, Wire, modern, until
from kit.places import ROOT

HERE = Path(__file__).parent
SECONDS = int(os.environ.get("SOAK_SECONDS", "60"))
"""What any answer may take."""

AT_ONCE = 200
"""Frames that are sent before their answers are looked at."""

ASSAY = [sys.executable, "-m", "assay"]
REVISION = "2025-11-25"


def ask(ident: str, method: str) -> bytes:
    """A request as a frame."""
    return frame_of(request(ident, method))


class WrongError(AssertionError):
    """Something has gone wrong: the frames in question are told."""


class Target(ABC):
    """A process that is spoken to."""

    def __init__(self, place: Path, process: subprocess.Popen[bytes]) -> None:
        self.place = place
        self.process = process

    def run(self, random: Random, messages: Sequence[Any], count: int) -> None:
        """Says *count* changed messages, and sees to it that each request is answered once."""
        self.open()
        for start in range(0, count, AT_ONCE):
            frames = [
                frame(random, messages, f"{OURS}{number}") for number in range(start, min(count, start + AT_ONCE))
            ]
            self.say(frames)
            if self.process.poll() is not None:
                raise WrongError(f"the process ended with {self.process.returncode}: {frames}: {self.log[-3000:]}")
        self.close()
        if "Traceback" in self.log:
            raise WrongError(self.log[-3000:])

    @property
    def log(self) -> str:
        """What it has written to stderr."""
        return (self.place / "log").read_text(errors="replace")

    @abstractmethod
    def open(self) -> None:
        """The handshake."""

    @abstractmethod
    def say(self, frames: list[bytes]) -> None:
        """Says *frames*, and looks at what comes of them."""

    @abstractmethod
    def close(self) -> None:
        """It still answers; then it is ended, and ends well."""


class Stdio(Target):
    """A process on standard input and output."""

    def __init__(self, place: Path, process: subprocess.Popen[bytes]) -> None:
        super().__init__(place, process)
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._rest = b""
        self._count = 0

    def open(self) -> None:
        self.exchange([frame_of(initialize(REVISION))], {"open"})
        self.exchange([frame_of(INITIALIZED), ask("list", "tools/list")], {"list"})

    def say(self, frames: list[bytes]) -> None:
        wanted = {ident for each in frames if (ident := asks(each)) is not None}
        found = self.exchange(frames, wanted)
        often = [ident for ident, times in found.items() if ident in wanted and times != 1]
        if often:
            raise WrongError(f"more than one answer: {[each for each in frames if asks(each) in often]}")
        # An error without an id may have made up for any frame; this one is good.
        self._count += 1
        self.exchange([ask(f"steady-{self._count}", "ping")], {f"steady-{self._count}"})

    def exchange(self, frames: list[bytes], wanted: set[Any]) -> Counter[Any]:
        """Says *frames*, and reads until all that is *wanted* is answered: the answers by id."""
        waiting = memoryview(b"".join(each + b"\n" for each in frames))
        found: Counter[Any] = Counter()
        while waiting or not wanted <= found.keys():
            readable, writable, _ = select.select([self._out], [self._in] if waiting else [], [], SECONDS)
            if not readable and not writable:
                missing = wanted - found.keys()
                raise WrongError(
                    f"no answer: {[each for each in frames if asks(each) in missing][:20]}: {self.log[-2000:]}"
                )
            if writable:
                try:
                    waiting = waiting[os.write(self._in, waiting[: 1 << 15]) :]
                except OSError as error:
                    raise WrongError(f"{error}: {frames}: {self.log[-3000:]}") from error
            if readable:
                self._read(found, frames)
        return found

    def _read(self, found: Counter[Any], frames: list[bytes]) -> None:
        data = os.read(self._out, 1 << 16)
        if not data:
            raise WrongError(f"the process ended: {frames}: {self.log[-3000:]}")
        *lines, self._rest = (self._rest + data).split(b"\n")
        found.update(ident for line in lines for ident in answered(line))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        if self.process.wait(SECONDS) != 0:
            raise WrongError(f"it ended with {self.process.returncode}: {self.log[-3000:]}")


def answered(line: bytes) -> Iterator[Any]:
    """The ids that are answered in *line*."""
    try:
        value = json.loads(line)
    except ValueError:
        return
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict) and "method" not in each and isinstance(each.get("id"), str):
            yield each["id"]


class Http(Target):
    """A process that serves HTTP; half of the frames are said in a session, if it has any, the others without one."""

    def __init__(self, place: Path, process: subprocess.Popen[bytes], ready: str) -> None:
        super().__init__(place, process)
        until(lambda: ready in self.log and self.log.endswith("\n"), SECONDS)
        url = self.log.partition(ready)[2].splitlines()[0].rpartition(" at ")[2].rpartition("url=")[2]
        host, _, port = url.removeprefix("http://").partition("/")[0].rpartition(":")
        self._wire = Wire((host, int(port)))
        self._wire.socket.settimeout(SECONDS)
        self._address = host, int(port)
        self._session: dict[str, Any] = {}

    def open(self) -> None:
        opened = self._post(frame_of(initialize(REVISION)), {**BOTH})
        assert opened.status == 200, opened
        self._session = {**BOTH, "mcp-protocol-version": REVISION}
        if (ident := opened.header("mcp-session-id")) is not None:
            self._session["mcp-session-id"] = ident
        assert self._post(frame_of(INITIALIZED), self._session).status == 202
        self._post(ask("list", "tools/list"), self._session)

    def say(self, frames: list[bytes]) -> None:
        for number, each in enumerate(frames):
            self._one(each, self._session if number % 2 else _without_session(each) or self._session)

    def _one(self, each: bytes, headers: Any) -> None:
        try:
            answer = self._post(each, headers)
        except (AssertionError, OSError) as error:
            raise WrongError(f"{error!r}: {each!r}: {headers}: {self.log[-3000:]}") from error
        ident = asks(each)
        if answer.status == 500 or (answer.status == 404 and headers is self._session and ident is None):
            raise WrongError(f"{answer}: {each!r}: {self.log[-3000:]}")
        if answer.status == 200 and ident is not None:
            told = [event.get("data", "") for event in answer.events()] if _is_stream(answer) else [answer.body]
            found = Counter(
                found for text in told for found in answered(text if isinstance(text, bytes) else text.encode())
            )
            if found[ident] != 1:
                raise WrongError(f"{found}: {answer}: {each!r}: {headers}")
        elif answer.status == 202 and ident is not None:
            raise WrongError(f"taken without an answer: {each!r}: {headers}")

    def _post(self, body: bytes, headers: Any) -> Any:
        try:
            self._wire.say("POST", "/mcp", body, headers)
            answer = self._wire.answer()
        except OSError:
            answer = None
        if answer is None or answer.header("connection") == "close":
            self._wire.socket.close()
            self._wire = Wire(self._address)
            self._wire.socket.settimeout(SECONDS)
            if answer is None:
                self._wire.say("POST", "/mcp", body, headers)
                answer = self._wire.answer()
        return answer

    def close(self) -> None:
        answer = self._post(ask("steady", "ping"), self._session)
        if answer.status != 200:
            raise WrongError(f"{answer}: {self.log[-3000:]}")
        self._wire.socket.close()
        self.process.terminate()
        if self.process.wait(SECONDS) != 0:
            raise WrongError(f"it ended with {self.process.returncode}: {self.log[-3000:]}")


def _without_session(each: bytes) -> dict[str, Any] | None:
    """The headers that a request without a session wants; None where its body has something else in their place."""
    try:
        headers = modern(each)
    except (AttributeError, TypeError, ValueError):
        return None
    plain = all(
        isinstance(value, bytes) or (isinstance(value, str) and value.isprintable()) for value in headers.values()
    )
    clean = all(b"\n" not in value and b"\0" not in value for value in headers.values() if isinstance(value, bytes))
    return headers if plain and clean else None


def _is_stream(answer: Any) -> bool:
    return bool(answer.header("content-type") == "text/event-stream")


# ── what is spoken to ────────────────────────────────────────────────────────────────────────────────────────────────

GUARDS = {
    "sc": "a client over STDIO, a server in a child process",
    "sh": "a client over STDIO, a server at a URL",
    "hc": "clients over HTTP, servers in child processes",
    "hh": "clients over HTTP, a server at a URL",
}
"""Guards by who speaks to them, and whom they speak to."""

TARGETS = ("serve-stdio", "serve-http", *(f"{guard}-{mode}" for guard in GUARDS for mode in ("enforce", "audit")))


@contextmanager
def target(name: str, place: Path, seed: int) -> Iterator[Target]:
    """The process *name*, in *place*; its server behaves as *seed* says."""
    with ExitStack() as stack:
        options, ready = _command(name, place, seed, stack)
        log = stack.enter_context(open(place / "log", "wb"))
        env = {**os.environ, "MCP_READY_FILE": str(place / "ready"), "ASSAY_JOURNAL": str(place / "journal")}
        process = subprocess.Popen(
            [*ASSAY, *options], cwd=place, env=env, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
        stack.enter_context(process)
        stack.callback(process.kill)
        yield Http(place, process, ready) if ready else Stdio(place, process)


def _command(name: str, place: Path, seed: int, stack: ExitStack) -> tuple[list[str], str]:
    """What runs it, and what it says once it is ready."""
    catalogue = ["--schemas", str(CATALOGUE / "jsonschema"), "--examples", str(CATALOGUE / "examples")]
    if name == "serve-stdio":
        return ["serve", *catalogue], ""
    if name == "serve-http":
        return ["serve", "--http", "127.0.0.1:0", *catalogue], "mcp:ready mode=http "
    guard, _, mode = name.partition("-")
    options = ["guard", "--mode", mode, "--set", "guard.flights=off"]
    listening = ["--listen", "127.0.0.1:0"] if guard[0] == "h" else []
    server = [sys.executable, str(HERE / "answering_server.py"), str(seed)]
    behind = ["--", *server] if guard[1] == "c" else ["--target", _elsewhere(server, place, stack)]
    return [*options, *listening, *behind], "assay: guarding " if listening else ""


def _elsewhere(server: list[str], place: Path, stack: ExitStack) -> str:
    """Starts the server over HTTP; its URL."""
    port = place / "port"
    process = stack.enter_context(subprocess.Popen([*server, str(port)], stdin=subprocess.DEVNULL))
    stack.callback(process.kill)
    until(port.exists, SECONDS)
    return f"http://127.0.0.1:{port.read_text()}/mcp"


def all_messages() -> list[Any]:
    """Seeds of our own, and recorded ones where there are any."""
    shared = Path(os.environ.get("ASSAY_SHARED") or ROOT.parent / "shared")
    return [*seeds(), *recorded(shared / "transcripts")]


def soak(name: str, count: int, seed: int, messages: Sequence[Any]) -> None:
    """Runs *count* frames against *name*."""
    with tempfile.TemporaryDirectory() as place, target(name, Path(place), seed) as one:
        one.run(Random(f"{name} {seed}"), messages, count)


def described(name: str) -> str:
    """What is spoken to, for people."""
    if name.startswith("serve-"):
        return f"{name}: assay serve over {name.removeprefix('serve-').upper()}"
    guard, _, mode = name.partition("-")
    return f"{name}: assay guard --mode {mode}, {GUARDS[guard]}"


def main(count: int, names: Sequence[str]) -> int:
    """Runs *count* frames in all; the exit status."""
    print("\n".join(map(described, names)), flush=True)
    messages = all_messages()
    share = max(1, count // len(names))
    failed = 0
    for name in names:
        began = time.monotonic()
        done = 0
        try:
            while done < share:
                part = min(20_000, share - done)
                soak(name, part, done, messages)
                done += part
        except WrongError as wrong:
            failed += 1
            print(f"{name}: after {done:,}: {str(wrong)[:6000]}", flush=True)
        print(f"{name}: {done:,} frames in {time.monotonic() - began:.0f} s", flush=True)
    print(f"{failed} of {len(names)} targets failed" if failed else "no failures")
    return int(failed > 0)


def run(arguments: Sequence[str]) -> int:
    """The same for words of a command line. What is wrong with those is one line, and the exit status 2."""
    count, names = (arguments[0] if arguments else ""), arguments[1:] or TARGETS
    unknown = [name for name in names if name not in TARGETS]
    if not count.isdecimal() or int(count) < 1:
        print(f"soak: FRAMES is a whole number of 1 or more, found {count!r}", file=sys.stderr)
        return 2
    if unknown:
        print(f"soak: {unknown[0]!r} is no target; there are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    return main(int(count), names)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

"""
The client's side of a server on pipes, made to cost little: raw reads and writes, requests made beforehand.

It takes about a microsecond a call, so that what is measured is the server.
"""

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread, Timer
from typing import Any, Final, NamedTuple

import orjson

PATIENCE: Final = 120.0
"""Seconds until a candidate that does not answer is ended."""

GOOD: Final = b'"ok":true'
"""What every answer has once: in the structured content, or in the bare result. In the text its quotes are escaped."""

FIRST_ID: Final = 1_000_000
"""Ids of one length, so that all requests are of one length."""


class Door(NamedTuple):
    """A way to call the tool."""

    opening: tuple[dict[str, Any], ...]
    """What is said first: at most one request, then notifications."""
    method: str
    params: dict[str, Any]

    def requests(self, first: int, count: int) -> list[bytes]:
        """Calls with ids of the same length, as lines."""
        message = {"jsonrpc": "2.0", "id": 0, "method": self.method, "params": self.params}
        before, after = orjson.dumps(message).split(b'"id":0', 1)
        return [b'%b"id":%d%b\n' % (before, ident, after) for ident in range(first, first + count)]


class Process:
    """A candidate that runs, and the client's side of its pipes: raw reads and writes of bytes made beforehand."""

    def __init__(self, command: list[str], door: Door, environment: Mapping[str, str]) -> None:
        self._door = door
        self._next = FIRST_ID
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._sink, self._source = self._process.stdin.fileno(), self._process.stdout.fileno()

    def open(self) -> bytes:
        """The first answer: to the opening if the door has one, else to a call."""
        with self._patience():
            if not self._door.opening:
                return self._ask(self._requests(1)[0])
            request, *notifications = (orjson.dumps({"jsonrpc": "2.0", **each}) for each in self._door.opening)
            answer = self._ask(request + b"\n")
            for each in notifications:
                os.write(self._sink, each + b"\n")
            return answer

    def call(self) -> dict[str, Any]:
        """The result of one call."""
        with self._patience():
            return self._result(self._ask(self._requests(1)[0]))

    def ask(self, method: str) -> dict[str, Any]:
        """The result of a request without params."""
        with self._patience():
            return self._result(self._ask(orjson.dumps({"jsonrpc": "2.0", "id": method, "method": method}) + b"\n"))

    def flood(self, count: int) -> tuple[float, float]:
        """Seconds, and the process's CPU seconds, for *count* calls written as fast as the pipe takes them."""
        rest = memoryview(b"".join(self._requests(count)))
        writer = Thread(target=self._pour, args=(rest,), daemon=True)
        chunks: list[bytes] = []
        missing = count
        with self._patience():
            used = self._cpu()
            begin = time.perf_counter()
            writer.start()
            while missing > 0:
                chunk = os.read(self._source, 1 << 16)
                assert chunk, "the candidate has ended"
                missing -= chunk.count(b"\n")
                chunks.append(chunk)
            lasted = time.perf_counter() - begin
            used = self._cpu() - used
            writer.join()
        assert b"".join(chunks).count(GOOD) == count, b"".join(chunks)[-2000:]
        return lasted, used

    def trips(self, most: int, seconds: float) -> list[float]:
        """Microseconds of each round trip, one request at a time, until there are *most* or the time is up."""
        found: list[float] = []
        requests = self._requests(most)
        sink, source, now = self._sink, self._source, time.perf_counter
        end = now() + seconds
        with self._patience():
            for request in requests:
                begin = now()
                os.write(sink, request)
                answer = os.read(source, 1 << 16)
                while not answer.endswith(b"\n"):
                    answer += self._more()
                found.append((now() - begin) * 1e6)
                if begin > end:
                    break
        return found

    def memory(self) -> float | None:
        """Resident megabytes, where the system says so."""
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        except OSError:
            return None
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))

    def close(self) -> None:
        """End its input, and then the process if that was not enough."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _requests(self, count: int) -> list[bytes]:
        self._next += count
        return self._door.requests(self._next - count, count)

    def _ask(self, line: bytes) -> bytes:
        os.write(self._sink, line)
        answer = b""
        while not answer.endswith(b"\n"):
            answer += self._more()
        return answer

    def _more(self) -> bytes:
        chunk = os.read(self._source, 1 << 16)
        assert chunk, "the candidate has ended"
        return chunk

    def _result(self, line: bytes) -> dict[str, Any]:
        answer = orjson.loads(line)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _pour(self, rest: memoryview) -> None:
        while rest:
            rest = rest[os.write(self._sink, rest) :]

    def _cpu(self) -> float:
        """Seconds of CPU so far, in steps of a clock tick; not a number where the system does not say."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            return float("nan")
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @contextmanager
    def _patience(self) -> Iterator[None]:
        """A candidate that hangs is killed, which the reader sees as the end of its answers."""
        timer = Timer(PATIENCE, self._process.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

"""
The client's side of a server on pipes, made to cost little: raw reads and writes, requests made beforehand.

It takes about a microsecond a call, so that what is measured is the server.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Thread
from typing import Any, Final, NamedTuple

import orjson

from running import Running

GOOD: Final = b'"ok":true'
"""What every answer has once: in the structured content, or in the bare result. In the text its quotes are escaped."""

FIRST_ID: Final = 1_000_000
"""Ids of one length, so that all requests are of one length."""


class Door(NamedTuple):
    """A way to call a tool."""

    opening: tuple[dict[str, Any], ...]
    """What is said first: at most one request, then notifications."""
    method: str
    params: dict[str, Any]

    @property
    def tool(self) -> str:
        """The tool that is called."""
        name: str = self.params["name"] if self.opening else self.method
        return name

    def requests(self, first: int, count: int) -> list[bytes]:
        """Calls with ids of the same length, as lines."""
        message = {"jsonrpc": "2.0", "id": 0, "method": self.method, "params": self.params}
        before, after = orjson.dumps(message).split(b'"id":0', 1)
        return [b'%b"id":%d%b\n' % (before, ident, after) for ident in range(first, first + count)]


class Process(Running):
    """A candidate that runs, and the client's side of its pipes: raw reads and writes of bytes made beforehand."""

    def __init__(self, command: list[str], door: Door, environment: Mapping[str, str]) -> None:
        super().__init__(command, environment, piped=True)
        self._door = door
        self._next = FIRST_ID
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
                chunk = self._more()
                missing -= chunk.count(b"\n")
                chunks.append(chunk)
            lasted = time.perf_counter() - begin
            used = self._cpu() - used
            writer.join()
        assert b"".join(chunks).count(GOOD) == count, b"".join(chunks)[-2000:]
        return lasted, used

    def trips(self, most: int, seconds: float, *, apart: bool = False) -> list[float]:
        """
        Microseconds of each round trip, one request at a time, until there are *most* or the time is up.

        On one CPU, unless they are *apart*: then the system says who runs where.
        """
        found: list[float] = []
        requests = self._requests(most)
        sink, source, now = self._sink, self._source, time.perf_counter
        with self._patience(), nullcontext() if apart else self._on_one_cpu():
            end = now() + seconds
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

    def close(self) -> None:
        """End its input, and then the process if that was not enough."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        super().close()
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
        if not chunk:
            raise self._ended()
        return chunk

    def _result(self, line: bytes) -> dict[str, Any]:
        answer = orjson.loads(line)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _pour(self, rest: memoryview) -> None:
        while rest:
            rest = rest[os.write(self._sink, rest) :]

    @contextmanager
    def _on_one_cpu(self) -> Iterator[None]:
        """
        Client and server on the same CPU, where the system can do that.

        To wake somebody on another CPU of a virtual machine takes 10 to 100 µs, and hides what is measured.
        """
        place: Callable[[int, Collection[int]], None] | None = getattr(os, "sched_setaffinity", None)
        if place is None:
            yield
            return
        allowed = os.sched_getaffinity(0)
        try:
            self._place(place, {max(allowed)})
            yield
        finally:
            self._place(place, allowed)

    def _place(self, place: Callable[[int, Collection[int]], None], cpus: Collection[int]) -> None:
        """Our thread, and all threads of the process and of those that it has started; the next are where these are."""
        for thread in (0, *_threads(self._process.pid)):
            with suppress(ProcessLookupError):
                place(thread, cpus)


def _threads(process: int) -> Iterator[int]:
    """The threads of *process* and of all below it, as far as the system tells."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
    except OSError:
        yield process
        return
    for task in tasks:
        yield int(task.name)
        with suppress(OSError):
            for child in (task / "children").read_text(encoding="ascii").split():
                yield from _threads(int(child))

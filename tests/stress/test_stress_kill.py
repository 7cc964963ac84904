"""A server that is killed in the middle of its work: what it has answered is on record, in whole lines."""

import json
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from typing import IO

from stress_server import Server, call, http, initialize, lines_of, recorded, run_in, serving

from kit.http_client import SECONDS

CLIENTS = 4
KILLS = 20
KILLS_STDIO = 8


class Load:
    """Clients that ask as fast as they are answered, until nobody answers any more."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._news = Condition()
        self.answered: list[str] = []
        self._threads = [Thread(target=self._client, args=(number,), daemon=True) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _client(self, number: int) -> None:
        with suppress(ConnectionError), self._server.connect() as connection:
            for count in range(100_000):
                ident = connection.ask(call(f"{number}-{count}"))
                with self._news:
                    self.answered.append(ident)
                    self._news.notify_all()

    def wait(self, count: int) -> None:
        """Until so many have been answered."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.answered) >= count, SECONDS)

    def end(self) -> None:
        """Until every client has seen that it is over."""
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive()


def test_what_was_answered_over_http_is_on_record_whenever_the_server_is_killed(tmp_path: Path) -> None:
    """Ours: a record is handed to the system before its answer is."""

    def answered(directory: Path, number: int) -> list[str]:
        with serving(directory, *http(), "--journal", str(directory / "journal")) as server:
            load = Load(server)
            load.wait(1 + 11 * number)
            server.kill()
            load.end()
            assert len(server.log()) == 1, server.log()
            return load.answered

    killed(tmp_path, KILLS, answered)


def test_what_was_answered_over_stdio_is_on_record_whenever_the_server_is_killed(tmp_path: Path) -> None:
    """Here records and answers are written many at a time. What is in the pipe counts as answered."""
    opening = initialize("open") + b'\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    frames = opening + b"".join(call(f"0-{count}") + b"\n" for count in range(20_000))

    def answered(directory: Path, number: int) -> list[str]:
        options = ("--journal", str(directory / "journal"))
        with serving(directory, *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            stdin, stdout = server.process.stdin, server.process.stdout
            assert stdin is not None
            assert stdout is not None
            writer = Thread(target=write, args=(stdin, frames), daemon=True)
            writer.start()
            said = lines_of(stdout, 1 + 97 * number)
            server.kill()
            said += stdout.read()
            writer.join(SECONDS)
            assert not writer.is_alive()
            return [json.loads(line)["id"] for line in said.split(b"\n")[:-1]]

    killed(tmp_path, KILLS_STDIO, answered)


def write(sink: IO[bytes], frames: bytes) -> None:
    """Writes *frames* without waiting for answers, until nobody takes them any more."""
    with suppress(BrokenPipeError):
        sink.write(frames)


def killed(directory: Path, times: int, answered: Callable[[Path, int], list[str]]) -> None:
    """
    After each kill every request that was answered is on record with its answer, once; only the last line may be cut.

    *answered* begins a server in a directory of its own, kills it, and says which requests it has answered until then.
    """

    def check(number: int) -> None:
        own = directory / str(number)
        own.mkdir()
        idents = answered(own, number)
        *lines, _ = run_in(own / "journal").read_bytes().split(b"\n")
        records = recorded(lines)
        assert idents
        for ident in idents:
            assert records[ident] == ["client request", "server result"]

    # Most of the time goes into starting: two at once.
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(check, range(times)))

"""SIGHUP: a server or guard of any kind opens its journal anew and goes on; a terminal that is closed ends it."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
import pytest

from assay.spec.revisions import LATEST
from kit import journals
from kit.guard_process import Guarded, Lines, guarded, hurried, request
from kit.guard_process import scripted as scripted_command
from kit.http_client import READY, SECONDS, Service, Wire, call, command, environment, modern, started
from kit.rows import rows
from kit.scripted_http import listening, scripted

CALL = call(7, "search", {"words": "sea"}, LATEST)
SOON = {"records.repeats:SECONDS": 0.05, "edges.stdio_url:RECORDED": 0.05}
GUARD = hurried(SOON)


class Running(NamedTuple):
    """A process that keeps a journal, and how something is said to it."""

    process: "subprocess.Popen[bytes]"
    say: Callable[[], Any]
    babble: Callable[[], Any]
    """Says something that is no message, ten times."""


def over_pipes(one: Guarded, *, opens: bool) -> Running:
    if opens:
        one.open()

    return Running(one.process, lambda: one.ask(request(1, "ping")), lambda: one.say(*[b"1"] * 10))


def garbage(service: Service) -> None:
    for _ in range(10):
        service.post(b"1")


@contextmanager
def piped(line: list[str], directory: Path) -> Iterator[Guarded]:
    with subprocess.Popen(
        line,
        cwd=directory,
        env=environment(directory),
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield Guarded(process, Lines(-1))
        finally:
            process.kill()


@contextmanager
def serve_stdio(directory: Path, *options: str) -> Iterator[Running]:
    with piped([*hurried(SOON, "serve"), *command(*options)[4:]], directory) as one:
        assert b"mcp:ready" in one.log.next()
        yield over_pipes(one, opens=False)


@contextmanager
def serve_http(directory: Path, *options: str) -> Iterator[Running]:
    line = [*hurried(SOON, "serve"), *command("--http", "127.0.0.1:0", *options)[4:]]
    with started(line, directory, READY) as service:
        ping = request(1, "ping")
        yield Running(service.process, lambda: service.post(ping), lambda: garbage(service))


@contextmanager
def stdio_to_child(directory: Path, *options: str) -> Iterator[Running]:
    with guarded(directory, *options, guard=GUARD) as one:
        yield over_pipes(one, opens=True)


@contextmanager
def stdio_to_http(directory: Path, *options: str) -> Iterator[Running]:
    line = [*GUARD, "--mode", "enforce", "--target"]
    with scripted() as server, piped([*line, server.url, *options], directory) as one:
        yield over_pipes(one, opens=True)


@contextmanager
def http_to_child(directory: Path, *options: str) -> Iterator[Running]:
    with listening(directory, *options, "--", *scripted_command(), guard=GUARD) as guard:
        yield Running(guard.process, lambda: guard.post(CALL, modern(CALL)), lambda: garbage(guard))


@contextmanager
def http_to_http(directory: Path, *options: str) -> Iterator[Running]:
    line = ("--mode", "enforce", *options, "--target")
    with scripted() as server, listening(directory, *line, server.url, guard=GUARD) as guard:
        yield Running(guard.process, lambda: guard.post(CALL, modern(CALL)), lambda: garbage(guard))


@contextmanager
def host(directory: Path, *options: str) -> Iterator[Running]:
    entry = {"command": sys.executable, "args": scripted_command()[1:]}
    (directory / "mcp.json").write_bytes(orjson.dumps({"mcpServers": {"books": entry}}))
    with listening(directory, "--config", str(directory / "mcp.json"), *options, guard=GUARD) as guard:
        body = orjson.dumps(CALL)
        yield Running(guard.process, lambda: guard.ask("POST", "/books/mcp", body, modern(CALL)), lambda: None)


@contextmanager
def appended(path: Path) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield the lines of a file that may not be there yet, each as it is written."""
    command = ["tail", "-n", "+1", "-F", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as tail:
        assert tail.stdout is not None
        try:
            yield map(orjson.loads, tail.stdout)
        finally:
            tail.kill()


Way = Callable[..., AbstractContextManager[Running]]
WAYS = [serve_stdio, serve_http, stdio_to_child, stdio_to_http, http_to_child, http_to_http, host]
COUNTING = [serve_stdio, stdio_to_child, http_to_http]
"""Those that record garbage which belongs to no session, one of each kind."""


def moved_away(directory: Path, way: Way) -> None:
    """The journal is moved away, and the signal comes; perhaps garbage follows."""
    journal, moved = directory / "journal", directory / "moved"
    with way(directory, "--journal", str(journal)) as running:
        running.say()
        path = journal / os.readlink(journal / ".latest")
        path.rename(moved)
        running.process.send_signal(signal.SIGHUP)
        with appended(path) as records:
            # Although nothing is said, the file is there with its first line.
            assert "event" in next(records)
            before = len(journals.records(moved))
            running.say()
            running.say()
            assert sum("requestId" in each for each in islice(records, 4)) == 4
            assert running.process.poll() is None
            assert before == len(journals.records(moved)) >= 2
            left = 0
            if way in COUNTING:
                running.babble()
                left = 10
            while left:
                # How many of them one record stands for depends on how quickly they come.
                left -= next(records)["metadata"].get("repeated", 1)
            assert left == 0


def test_a_journal_that_was_moved_away_is_begun_anew_and_everything_goes_on(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """And garbage is counted there, although nothing else comes. All at once, since each looks once a second."""
    with ThreadPoolExecutor(len(WAYS)) as pool:
        begun = {way: pool.submit(moved_away, tmp_path_factory.mktemp(way.__name__), way) for way in WAYS}
        failed = {way.__name__: each.exception() for way, each in begun.items() if each.exception() is not None}
    assert failed == {}


@rows(
    ("line", "stays"),
    [
        ([*GUARD, "--listen", "127.0.0.1:0", "--", *scripted_command()], False),
        ([*GUARD, "--listen", "127.0.0.1:0", "--", *scripted_command()], True),
    ],
)
def test_a_terminal_that_is_closed_ends_what_runs_in_it(tmp_path: Path, line: list[str], stays: bool) -> None:
    """Unless that was started to stay, as nohup does."""
    ours, theirs = pty.openpty()
    program = (
        "import os, signal, sys\n"
        f"signal.signal(signal.SIGHUP, signal.{'SIG_IGN' if stays else 'SIG_DFL'})\n"
        "errors = os.dup(2)\n"
        "os.login_tty(int(sys.argv[1]))\n"
        "os.dup2(errors, 2)\n"
        "os.execv(sys.argv[2], sys.argv[2:])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(theirs), *line],
        cwd=tmp_path,
        env=environment(tmp_path),
        pass_fds=[theirs],
        stderr=subprocess.PIPE,
    ) as process:
        try:
            os.close(theirs)
            assert process.stderr is not None
            first = Lines(process.stderr.fileno()).next()
            assert b"http://" in first
            process.send_signal(signal.SIGHUP)
            os.close(ours)
            if stays:
                url = urlsplit("http://" + first.decode().rpartition("http://")[2])
                address = url.hostname or "", url.port or 0
                for _ in range(20):
                    process.send_signal(signal.SIGHUP)
                    with Wire(address) as wire:
                        wire.say("GET", "/healthz")
                        assert wire.answer().status == 200
            else:
                assert process.wait(SECONDS) == 0
        finally:
            process.kill()

"""The process that serves assets over standard input and output: its signals, its streams, its ready file."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from assay.edges.stdio_lines import GRACE
from assay.spec.revisions import LATEST
from kit.asset_requests import call, frame_of, opening, request
from kit.catalogues import BUNDLED, variables, written

SECONDS = 60
"""What anything here may take; it takes a fraction of a second."""

SOON = GRACE * 0.75
"""What the end of a process may take. Less than what a missed signal would take."""

READY = b"mcp:ready mode=stdio"
BOTH_WAYS = [(signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGTERM)]
LONG = request("long", "diff_assets", {"base": "", "new": "x" * 600_000})
"""Its answer is about ten times what a pipe holds."""


class Lines:
    """The lines that come out of a descriptor, each within bounded time."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._rest = b""

    def next(self) -> bytes:
        """The next one, without its newline."""
        while b"\n" not in self._rest:
            assert self.read(), "the stream has ended"
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def rest(self) -> list[bytes]:
        """All that come until the end; the last one is whole, too."""
        while self.read():
            pass
        assert self._rest == b"" or self._rest.endswith(b"\n"), self._rest[-100:]
        lines, self._rest = self._rest.splitlines(), b""
        return lines

    def read(self) -> bool:
        """Whether there is more, which is kept."""
        assert select.select([self.descriptor], [], [], SECONDS)[0], "nothing came"
        chunk = os.read(self.descriptor, 1 << 16)
        self._rest += chunk
        return chunk != b""


@dataclass
class Running:
    """A server, and the ends of its streams that are ours."""

    process: subprocess.Popen[bytes]
    ready: Path

    def __post_init__(self) -> None:
        self.out = Lines(self.process.stdout.fileno() if self.process.stdout else -1)
        self.log = Lines(self.process.stderr.fileno() if self.process.stderr else -1)

    def say(self, *messages: Any) -> None:
        """Sends all *messages* at once."""
        self.write(b"".join(frame_of(each) + b"\n" for each in messages))

    def write(self, data: bytes) -> None:
        """Sends *data*; if nobody takes it, reads what there is to be read, so that both sides can go on."""
        assert self.process.stdin is not None
        sink = self.process.stdin.fileno()
        os.set_blocking(sink, False)
        rest = memoryview(data)
        out = self.process.stdout
        sources = [out] if out is not None and not out.closed else []
        while rest:
            readable, writable, _ = select.select(sources, [sink], [], SECONDS)
            assert readable or writable, "nobody reads"
            if writable:
                rest = rest[os.write(sink, rest) :]
            else:
                self.out.read()

    def answer(self) -> Any:
        """The next frame."""
        return json.loads(self.out.next())

    def close(self) -> None:
        """Ends the input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ended(self) -> int:
        """The exit status; the ready file is gone."""
        status = self.process.wait(SOON)
        assert not self.ready.exists()
        return status


@contextmanager
def started(directory: Path, redirected: str = "", **options: Any) -> Iterator[Running]:
    """A server that may not be ready yet, its streams *redirected* as a shell would; *options* are those of Popen."""
    ready = directory / "ready"
    environment = {**os.environ, **variables(BUNDLED), "MCP_READY_FILE": str(ready), **options.pop("env", {})}
    command = [sys.executable, "-m", "assay", "serve"]
    if redirected:
        command = ["sh", "-c", f'exec "$0" "$@" {redirected}', *command]
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    directory.mkdir(exist_ok=True)
    with subprocess.Popen(command, env=environment, cwd=directory, bufsize=0, **{**streams, **options}) as process:
        try:
            yield Running(process, ready)
        finally:
            process.kill()
            if process.stdin is not None:
                with suppress(BrokenPipeError):
                    process.stdin.close()


@contextmanager
def serving(directory: Path, **options: Any) -> Iterator[Running]:
    """A server that says it is ready."""
    with started(directory, **options) as running:
        assert running.log.next() == READY
        yield running


# ── the ready file ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_ready_file_is_there_while_the_server_is(tmp_path: Path) -> None:
    """specs/001 §3: `<pid> <ISO8601 timestamp>`."""
    with serving(tmp_path) as running:
        pid, _, stamp = running.ready.read_text().partition(" ")
        assert int(pid) == running.process.pid
        assert stamp.endswith("\n")
        assert "T" in stamp
        running.say(request(1, "list_schemas"))
        assert running.answer()["result"]["ok"] is True
        running.close()
        assert running.ended() == 0


def test_a_link_in_place_of_the_ready_file_is_not_followed(tmp_path: Path) -> None:
    """Ours: the default is in the common temporary directory, where anybody can put a link to a file of ours."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "ready").symlink_to(victim)
    with serving(tmp_path) as running:
        assert not running.ready.is_symlink()
        assert running.ready.read_text().startswith(f"{running.process.pid} ")
        running.close()
        assert running.ended() == 0
    assert victim.read_text() == "precious"
    assert not running.ready.exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_pipe_in_place_of_the_ready_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    with started(tmp_path) as running:
        assert b"cannot write the ready file" in running.log.next()
        running.close()
        assert running.process.wait(SOON) == 0
    assert running.ready.is_fifo()


def test_a_device_can_stand_for_no_ready_file(tmp_path: Path) -> None:
    with serving(tmp_path, env={"MCP_READY_FILE": os.devnull}) as running:
        running.close()
        assert running.ended() == 0
    assert Path(os.devnull).is_char_device()


# ── signals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wanted", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_cleanly(tmp_path: Path, wanted: signal.Signals) -> None:
    with serving(tmp_path) as running:
        running.say(request(1, "list_schemas"))
        running.out.next()
        running.process.send_signal(wanted)
        assert running.ended() == 0
        assert running.out.rest() == []


@pytest.mark.parametrize("wanted", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_the_moment_the_server_is_ready_ends_it_cleanly(tmp_path: Path, wanted: signal.Signals) -> None:
    """Twenty times, four at once: what comes before the first wait must not be missed, nor kill."""
    for turn in range(5):
        with ExitStack() as stack:
            servers = [stack.enter_context(started(tmp_path / f"{turn}-{number}")) for number in range(4)]
            waiting = {each.log.descriptor: each for each in servers}
            while waiting:
                readable, _, _ = select.select(list(waiting), [], [], SECONDS)
                assert readable, "nobody is ready"
                for descriptor in readable:
                    waiting.pop(descriptor).process.send_signal(wanted)
            for each in servers:
                assert each.ended() == 0
                assert each.log.rest() == [READY]
                assert each.out.rest() == []


class Late(BaseHTTPRequestHandler):
    """Stores an asset when it is told to, and not before."""

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, LateBackend)
        server.asked.set()
        server.allowed.wait(SECONDS)
        self.send_response(201)
        self.end_headers()
        self.wfile.write(b'{"id":"stored"}')

    def log_message(self, *_: Any) -> None:
        pass


class LateBackend(HTTPServer):
    """A backend that answers late."""

    timeout = SECONDS

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Late)
        self.asked, self.allowed = threading.Event(), threading.Event()


@contextmanager
def late_backend() -> Iterator[tuple[LateBackend, dict[str, str]]]:
    """One that takes one asset, and the variable that leads to it."""
    with LateBackend() as backend:
        thread = threading.Thread(target=backend.handle_request, daemon=True)
        thread.start()
        try:
            yield backend, {"SYN_BACKEND_URL": f"http://127.0.0.1:{backend.server_port}"}
        finally:
            backend.allowed.set()
            thread.join(SECONDS)


STORE = request("store", "populate_backend", {"asset": {}, "validate_first": False})


def test_a_signal_lets_the_request_in_hand_finish(tmp_path: Path) -> None:
    """specs/001 §3, and what came after it is not begun."""
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running:
        running.say(STORE, request("after", "list_schemas"))
        assert backend.asked.wait(SECONDS)
        running.process.send_signal(signal.SIGTERM)
        backend.allowed.set()
        assert running.answer()["result"]["asset_id"] == "stored"
        assert running.ended() == 0
        assert running.out.rest() == []


def test_a_signal_lets_an_answer_be_written_to_its_end(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        running.say(LONG)
        assert select.select([running.out.descriptor], [], [], SECONDS)[0]
        running.process.send_signal(signal.SIGTERM)
        assert len(running.answer()["result"]["patch"][0]["value"]) == 600_000
        assert running.ended() == 0


@pytest.mark.parametrize(("signals", "blocking"), [(BOTH_WAYS[0], True), (BOTH_WAYS[1], False)], ids=str)
def test_a_second_signal_ends_a_server_whose_client_does_not_read(
    tmp_path: Path, signals: tuple[signal.Signals, ...], blocking: bool
) -> None:
    """Ours. Two kinds of signals, since two of the same kind may arrive as one."""
    reader, writer = os.pipe()
    os.set_blocking(writer, blocking)
    try:
        with serving(tmp_path, stdout=writer) as running:
            running.say(LONG)
            assert select.select([reader], [], [], SECONDS)[0]
            for each in signals:
                running.process.send_signal(each)
            # With one signal only it would be over, too, but later: see `SOON`.
            assert running.ended() == 0
    finally:
        os.close(reader)
        os.close(writer)


def test_a_second_signal_ends_a_server_that_waits_for_its_backend(tmp_path: Path) -> None:
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running:
        running.say(STORE)
        assert backend.asked.wait(SECONDS)
        for each in BOTH_WAYS[0]:
            running.process.send_signal(each)
        assert running.ended() == 0


# ── streams that are not what they should be ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full"])
def test_requests_are_answered_whatever_became_of_the_log(tmp_path: Path, redirected: str) -> None:
    """What would have been logged is nowhere, least of all among the frames."""
    if "/dev/full" in redirected and not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with started(tmp_path, redirected, env={"SYN_EXAMPLES_DIR": "nowhere"}) as running:
        running.say(request(1, "list_schemas"), request(2, "list_examples"))
        running.close()
        assert [json.loads(each)["id"] for each in running.out.rest()] == [1, 2]
        assert running.ended() == 0


def test_requests_are_answered_when_nobody_reads_the_log(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        with started(tmp_path, stderr=writer, env={"SYN_EXAMPLES_DIR": "nowhere"}) as running:
            running.say(request(1, "list_schemas"), request(2, "list_examples"))
            running.close()
            assert [json.loads(each)["id"] for each in running.out.rest()] == [1, 2]
            assert running.ended() == 0
    finally:
        os.close(writer)


@pytest.mark.parametrize("redirected", ["<&-", "<&- 2>&-"])
def test_without_an_input_the_server_ends_at_once(tmp_path: Path, redirected: str) -> None:
    with started(tmp_path, redirected) as running:
        assert running.out.rest() == []
        assert running.log.rest() == ([] if "2>&-" in redirected else [READY])
        assert running.ended() == 0


def test_a_client_that_reads_no_more_ends_the_server(tmp_path: Path) -> None:
    """Nobody is left to serve, and that is no failure."""
    with serving(tmp_path) as running:
        assert running.process.stdout is not None
        running.process.stdout.close()
        running.say(request(1, "list_schemas"))
        assert running.ended() == 0
        assert running.log.rest() == []


def test_a_file_is_an_input_too(tmp_path: Path) -> None:
    """With a last line that has no newline."""
    (tmp_path / "input").write_bytes(b"\n".join(frame_of(request(number, "list_schemas")) for number in range(3)))
    with started(tmp_path, "<input") as running:
        assert [json.loads(each)["id"] for each in running.out.rest()] == [0, 1, 2]
        assert running.ended() == 0


def test_nothing_is_lost_in_an_output_that_does_not_block(tmp_path: Path) -> None:
    """Whoever starts us can make the pipe so, for all who have it; then a full one is an error, not a wait."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    texts = [f"{number}".ljust(20_000, ".") for number in range(30)]
    try:
        with serving(tmp_path, stdout=writer) as running:
            frames = [request(text[:2], "diff_assets", {"base": "", "new": text}) for text in texts]
            writing = threading.Thread(target=running.say, args=frames, daemon=True)
            writing.start()
            wait_until_full(reader, writer)
            os.close(writer)
            lines = Lines(reader)
            answers = [json.loads(lines.next()) for _ in texts]
            assert [each["result"]["patch"][0]["value"] for each in answers] == texts
            writing.join(SECONDS)
            running.close()
            assert running.ended() == 0
            assert lines.rest() == []
    finally:
        os.close(reader)
        with suppress(OSError):
            os.close(writer)


def wait_until_full(reader: int, writer: int) -> None:
    """Waits until a pipe has something in it and takes no more."""
    assert select.select([reader], [], [], SECONDS)[0], "nothing came"
    watch = select.poll()
    watch.register(writer, select.POLLOUT)
    until = time.monotonic() + SECONDS
    while watch.poll(0):
        assert time.monotonic() < until, "there is room still"
        os.sched_yield()


# ── many, long and slow ──────────────────────────────────────────────────────────────────────────────────────────────


def test_requests_that_come_together_are_answered_in_their_order(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        tools = ["list_schemas", "list_examples", "diff_assets", "nope"] * 25
        frames = [request(number, tool, {}) for number, tool in enumerate(tools)]
        running.say(*frames)
        assert [running.answer()["id"] for _ in frames] == list(range(len(frames)))
        # In pieces that end anywhere, it is the same stream.
        whole = b"".join(frame_of(each) + b"\n" for each in frames[:10])
        for begin in range(0, len(whole), 7):
            running.write(whole[begin : begin + 7])
        assert [running.answer()["id"] for _ in frames[:10]] == list(range(10))


@pytest.mark.parametrize("revision", ["", "2025-11-25"])
def test_a_slow_backend_holds_back_no_answer_that_was_due_before(tmp_path: Path, revision: str) -> None:
    store = call("store", "populate_backend", STORE["params"], revision) if revision else STORE
    quick = request("quick", "tools/list", {}, revision) if revision else request("quick", "list_schemas")
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running:
        for message in opening(revision) if revision else ():
            running.say(message)
            if "id" in message:
                running.answer()
        running.say(quick, store, {**quick, "id": "after"})
        assert running.answer()["id"] == "quick"
        assert backend.asked.wait(SECONDS)
        backend.allowed.set()
        stored = running.out.next()
        assert json.loads(stored)["id"] == "store"
        assert b"stored" in stored
        assert running.answer()["id"] == "after"


def test_a_mebibyte_is_served_and_one_byte_more_is_not(tmp_path: Path) -> None:
    """specs/001 §3."""
    begin, end = b'{"jsonrpc":"2.0","id":1,"method":"diff_assets","params":{"base":"', b'","new":1}}'
    fill = (1 << 20) - len(begin) - len(end)
    with serving(tmp_path) as running:
        running.say(begin + b"x" * fill + end)
        assert running.answer()["result"]["ok"] is True
        running.say(begin + b"x" * (fill + 1) + end)
        assert running.answer()["result"]["errors"] == [{"path": "", "msg": "payload_too_large"}]


def test_a_long_answer_is_one_line_and_its_id_is_free_again(tmp_path: Path) -> None:
    """The limit is for requests."""
    written(tmp_path, {"jsonschema/long.schema.json": {"description": "x" * 1_200_000}, "examples/a.json": {}})
    read = {"uri": "resource://schemas/long"}
    with serving(tmp_path, env=variables(tmp_path)) as running:
        for _ in range(2):
            running.say(request(1, "get_schema", {"name": "long"}))
            assert len(running.answer()["result"]["schema"]["description"]) == 1_200_000
        for _ in range(2):
            running.say(
                request(1, "resources/read", read, LATEST),
                call(2, "get_schema", {"name": "long"}, LATEST),
                call(3, "diff_assets", {"base": "", "new": "x" * 600_000}, LATEST),
            )
            text = running.answer()["result"]["contents"][0]["text"]
            assert len(json.loads(text)["description"]) == 1_200_000
            schema = running.answer()["result"]["structuredContent"]["data"]["schema"]
            assert len(schema["description"]) == 1_200_000
            assert len(running.answer()["result"]["structuredContent"]["data"]["patch"][0]["value"]) == 600_000
        running.close()
        assert running.out.rest() == []
        assert running.ended() == 0


def test_a_hundred_mebibytes_without_a_newline_keep_memory_flat(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        running.say(request(1, "list_schemas"))
        running.answer()
        before = resident(running.process.pid)
        for _ in range(100):
            running.write(b"x" * (1 << 20))
        running.say(b"", request(1, "list_schemas"))
        assert running.answer()["result"]["errors"] == [{"path": "", "msg": "payload_too_large"}]
        assert running.answer()["result"]["ok"] is True
        assert resident(running.process.pid) - before < 8 << 20


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    status = Path(f"/proc/{pid}/statm")
    if not status.exists():
        pytest.skip("no /proc here to read the memory of a process from")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("redirected", [">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_without_an_output_the_server_ends_cleanly(tmp_path: Path, redirected: str) -> None:
    with started(tmp_path, redirected) as running:
        if "<&-" not in redirected:
            running.say(request(1, "list_schemas"))
            running.close()
        assert running.ended() == 0
        assert [each for each in running.log.rest() if each != READY] == []


def test_a_second_signal_is_no_failure_of_the_request_in_hand(tmp_path: Path) -> None:
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running:
        running.say(STORE)
        assert backend.asked.wait(SECONDS)
        for each in BOTH_WAYS[0]:
            running.process.send_signal(each)
        assert running.ended() == 0
        assert running.out.rest() == []
        assert running.log.rest() == []


@pytest.mark.parametrize("signals", BOTH_WAYS, ids=str)
def test_a_second_signal_at_once_ends_an_idle_server_as_cleanly(tmp_path: Path, signals: Any) -> None:
    for _ in range(5):
        with serving(tmp_path) as running:
            for each in signals:
                running.process.send_signal(each)
            assert running.ended() == 0

"""The process that serves assets over standard input and output: its signals, its streams, its ready file."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.spec.revisions import LATEST
from kit.catalogues import BUNDLED, variables, written
from kit.guard_process import SECONDS, Guarded, Lines
from kit.http_client import PATIENT, call, frame_of, late_backend, request
from kit.rows import rows

READY = b"mcp:ready mode=stdio"
TERM, INT = signal.SIGTERM, signal.SIGINT
STORE = request("store", "populate_backend", {"asset": {}, "validate_first": False})
LONG = request("long", "diff_assets", {"base": "", "new": "x" * 600_000})
"""Its answer is about ten times what a pipe holds."""


@dataclass
class Running(Guarded):
    """A server, and the ends of its streams that are ours."""

    ready: Path

    def ended(self) -> int:
        """The exit status; the ready file is gone."""
        status = super().ended()
        assert not self.ready.exists()
        return status


@contextmanager
def started(directory: Path, redirected: str = "", **options: Any) -> Iterator[Running]:
    """A server that may not be ready yet, its streams *redirected* as a shell would; *options* are those of Popen."""
    ready = directory / "ready"
    environment = {**os.environ, **variables(BUNDLED), "MCP_READY_FILE": str(ready), **options.pop("env", {})}
    command = [sys.executable, "-c", PATIENT, "serve"]
    if redirected:
        command = ["sh", "-c", f'exec "$0" "$@" {redirected}', *command]
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    directory.mkdir(exist_ok=True)
    with subprocess.Popen(command, env=environment, cwd=directory, bufsize=0, **{**streams, **options}) as process:
        try:
            yield Running(process, Lines(-1), ready)
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
    """specs/001 §3: `<pid> <ISO8601 timestamp>`. Ours: what is in its place is neither followed nor waited for."""
    victim, ready = tmp_path / "victim", tmp_path / "ready"
    victim.write_text("precious")
    # The default is in the common temporary directory, where anybody can put a link to a file of ours.
    ready.symlink_to(victim)
    with serving(tmp_path) as running:
        assert not ready.is_symlink()
        pid, _, stamp = ready.read_text().partition(" ")
        assert (int(pid), "T" in stamp, stamp[-1]) == (running.process.pid, True, "\n")
        running.say(request(1, "list_schemas"))
        assert running.answer()["result"]["ok"] is True
        running.close()
        assert running.ended() == 0
    assert victim.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    with serving(tmp_path, env={"MCP_READY_FILE": os.devnull}) as running:
        running.close()
        assert running.ended() == 0
    assert Path(os.devnull).is_char_device()
    os.mkfifo(ready)
    with started(tmp_path) as running:
        assert b"cannot write the ready file" in running.log.next()
        running.close()
        assert running.process.wait(SECONDS) == 0
    assert ready.is_fifo()


# ── signals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_signal_ends_the_server_when_what_is_in_hand_is_answered(tmp_path: Path) -> None:
    """specs/001 §3, and what came after it is not begun."""
    # What comes before the first wait must not be missed, nor kill.
    for said, wanted in (((), TERM), ((), INT), ((request(1, "list_schemas"),), INT)):
        with serving(tmp_path) as running:
            running.say(*said)
            assert len([running.answer() for _ in said]) == len(said)
            running.process.send_signal(wanted)
            assert running.ended() == 0
            assert (running.out.rest(), running.log.rest()) == ([], [])
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running:
        running.say(STORE, request("after", "list_schemas"))
        backend.was_asked()
        running.process.send_signal(INT)
        backend.allowed.set()
        assert running.answer()["result"]["asset_id"] == "stored"
        assert running.ended() == 0
        assert running.out.rest() == []
    # An answer is written to its end.
    with serving(tmp_path) as running:
        running.say(LONG)
        assert select.select([running.out.descriptor], [], [], SECONDS)[0]
        running.process.send_signal(TERM)
        assert len(running.answer()["result"]["patch"][0]["value"]) == 600_000
        assert running.ended() == 0


def test_a_second_signal_waits_for_neither_client_nor_backend(tmp_path: Path) -> None:
    """Ours. Two kinds of signals, since two of the same kind may arrive as one."""

    def end(running: Running, *signals: signal.Signals) -> None:
        for each in signals:
            running.process.send_signal(each)
        assert running.ended() == 0
        assert running.log.rest() == []

    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running:
        running.say(STORE)
        backend.was_asked()
        end(running, TERM, INT)
        assert running.out.rest() == []
    for blocking in (True, False):
        reader, writer = os.pipe()
        os.set_blocking(writer, blocking)
        try:
            with serving(tmp_path, stdout=writer) as running:
                running.say(LONG)
                assert select.select([reader], [], [], SECONDS)[0]
                end(running, INT, TERM)
        finally:
            os.close(reader)
            os.close(writer)


# ── streams that are not what they should be ─────────────────────────────────────────────────────────────────────────


@rows(
    ("redirected", "answered", "logged"),
    [
        ("2>&-", [1, 2], []),
        ("2>/dev/full", [1, 2], []),
        ("<&-", [], [READY]),
        ("<&- 2>&-", [], []),
        (">&-", [], [READY]),
        ("<&- >&- 2>&-", [], []),
        # The last line has no newline.
        ("<input", [1, 2], [READY]),
    ],
)
def test_requests_are_answered_or_the_server_ends_whatever_became_of_its_streams(
    tmp_path: Path, redirected: str, answered: list[int], logged: list[bytes]
) -> None:
    """What would have been logged is nowhere, least of all among the frames."""
    asked = [request(1, "list_schemas"), request(2, "list_examples")]
    (tmp_path / "input").write_bytes(b"\n".join(map(frame_of, asked)))
    with started(tmp_path, redirected, env={"SYN_EXAMPLES_DIR": "nowhere"}) as running:
        with suppress(BrokenPipeError):
            running.say(*(asked if "<" not in redirected else ()))
            running.close()
        assert [json.loads(each)["id"] for each in running.out.rest()] == answered
        assert running.ended() == 0
        assert [each for each in running.log.rest() if b"nowhere" not in each] == logged


# ── many, long and slow ──────────────────────────────────────────────────────────────────────────────────────────────


@rows("blocking", [True, False])
def test_many_long_and_slow_requests_are_answered_in_their_order(tmp_path: Path, blocking: bool) -> None:
    """Whoever starts us can make the pipe so that it does not block: then a full one is an error, not a wait."""
    written(tmp_path, {"jsonschema/long.schema.json": {"description": "x" * 1_200_000}, "examples/a.json": {}})
    begin, end = b'{"jsonrpc":"2.0","id":1,"method":"diff_assets","params":{"base":"', b'","new":1}}'
    fill = (1 << 20) - len(begin) - len(end)
    reader, writer = os.pipe()
    os.set_blocking(writer, blocking)
    with (
        late_backend() as (backend, variable),
        serving(tmp_path, stdout=writer, env=variables(tmp_path, **variable)) as running,
        open(reader, "rb"),
    ):
        os.close(writer)
        running.out = Lines(reader)
        tools = ["list_schemas", "list_examples", "diff_assets", "nope"] * 25
        frames = [request(number, tool, {}) for number, tool in enumerate(tools)]
        running.say(*frames)
        assert [running.answer()["id"] for _ in frames] == list(range(len(frames)))
        # More than a pipe holds, both ways.
        texts = [f"{number}".ljust(20_000, ".") for number in range(30)]
        running.say(*(request(text[:2], "diff_assets", {"base": "", "new": text}) for text in texts))
        assert [running.answer()["result"]["patch"][0]["value"] for _ in texts] == texts
        # In pieces that end anywhere, it is the same stream.
        whole = b"".join(frame_of(each) + b"\n" for each in frames[:10])
        for start in range(0, len(whole), 7):
            running.write(whole[start : start + 7])
        assert [running.answer()["id"] for _ in frames[:10]] == list(range(10))
        # specs/001 §3: a mebibyte is served, one byte more is not, and a line without an end is one answer.
        running.say(begin + b"x" * fill + end, begin + b"x" * (fill + 1) + end)
        assert running.answer()["result"]["ok"] is True
        assert running.answer()["result"]["errors"] == [{"path": "", "msg": "payload_too_large"}]
        for _ in range(20):
            running.write(b"x" * (1 << 20))
        running.say(b"", request(1, "list_schemas"))
        assert running.answer()["result"]["errors"] == [{"path": "", "msg": "payload_too_large"}]
        assert running.answer()["result"]["ok"] is True
        # The limit is for requests: a long answer is one line, and its id is free again.
        for _ in range(2):
            running.say(request(1, "get_schema", {"name": "long"}))
            assert len(running.answer()["result"]["schema"]["description"]) == 1_200_000
        for _ in range(2):
            running.say(
                request(1, "resources/read", {"uri": "resource://schemas/long"}, LATEST),
                call(2, "get_schema", {"name": "long"}, LATEST),
            )
            assert len(running.answer()["result"]["contents"][0]["text"]) > 1_200_000
            schema = running.answer()["result"]["structuredContent"]["data"]["schema"]
            assert len(schema["description"]) == 1_200_000
        # A slow backend holds back no answer that was due before.
        quick = request("quick", "tools/list", {}, LATEST)
        running.say(quick, call("store", "populate_backend", STORE["params"], LATEST), {**quick, "id": "after"})
        assert running.answer()["id"] == "quick"
        backend.was_asked()
        backend.allowed.set()
        stored = running.out.next()
        assert (json.loads(stored)["id"], b"stored" in stored) == ("store", True)
        assert running.answer()["id"] == "after"
    # Nothing is left to serve once the output is closed, and that is no failure.
    with serving(tmp_path) as running:
        assert running.process.stdout is not None
        running.process.stdout.close()
        running.out = Lines(-1)
        running.say(request(1, "list_schemas"))
        assert running.ended() == 0
        assert running.log.rest() == []

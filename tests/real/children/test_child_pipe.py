"""A child that prints very many lines at once, and its end: no one waits for all of them, and none is lost."""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence

import pytest

from assay.edges import child_pipe, time_slice
from assay.edges.child import Child
from assay.edges.child_pipe import CHUNK, ERRORS_CHUNK, SLICE, ChildPipe, PipeLine
from kit.guard_process import Watched
from kit.http_client import SECONDS

MANY = 50_000


class Owner:
    """The owner of a child, which prints what a Python program prints."""

    def __init__(self, program: str, first: Callable[["Owner"], None] = lambda _: None) -> None:
        """*first* is called with the first lines."""
        self._first = first
        self.lines: list[bytes] = []
        self.slices: list[int] = []
        self.errors: list[bytes] = []
        self.reason = ""
        self.over = asyncio.Event()
        command = [sys.executable, "-ISc", f"import os, sys; {program}"]
        self.pipe = ChildPipe(command, self, limit=1 << 20, errors=self.errors.append)

    def heard(self, lines: Sequence[PipeLine]) -> None:
        assert not self.over.is_set()
        self.lines += [each.frame for each in lines]
        self.slices.append(len(lines))
        if len(self.slices) == 1:
            self._first(self)

    def ended(self, reason: str, _: list[str]) -> None:
        self.reason = reason
        self.over.set()


def run(program: str, first: Callable[[Owner], None] = lambda _: None) -> Owner:
    """The owner of a child that has run *program* and ended."""

    async def whole() -> Owner:
        owner = Owner(program, first)
        async with asyncio.timeout(SECONDS):
            await owner.over.wait()
            await owner.pipe.end()
        return owner

    return asyncio.run(whole())


def test_all_lines_come_in_order_before_the_end_and_others_have_a_turn_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More than a pipe holds, some of it still unread when the child is gone, and a last line without an end."""
    monkeypatch.setattr(time_slice, "SECONDS", 0.0)
    seen: list[int] = []
    tasks: list[asyncio.Task[None]] = []

    async def held(owner: Owner) -> None:
        for _ in range(2000):
            seen.append(len(owner.lines))
            await asyncio.sleep(0)
        owner.pipe.go_on()

    def first(owner: Owner) -> None:
        owner.pipe.hold()
        tasks.append(asyncio.ensure_future(held(owner)))

    owner = run(f"sys.stdout.write('\\n'.join(map(str, range({MANY}))))", first)
    assert owner.lines == [b"%d" % number for number in range(MANY)]
    assert seen[0] == SLICE
    assert max(owner.slices) == SLICE
    taken = sum(len(line) + 1 for line in owner.lines[: seen[-1]])
    assert taken <= CHUNK, "while it is held nothing more is read"


def test_blank_lines_are_left_out_and_stderr_is_taken_whole_in_small_pieces() -> None:
    out = "sys.stdout.write('\\n' * 70_000 + 'a\\n \\t\\r\\n\\nb\\n\\n  ')"
    owner = run(f"{out}; sys.stderr.write('x\\n' * {MANY})")
    assert owner.lines == [b"a", b"b"]
    assert b"".join(owner.errors) == b"x\n" * MANY
    assert max(map(len, owner.errors)) <= ERRORS_CHUNK


def test_its_end_is_noticed_where_processes_are_no_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS. What it has started keeps its output open, so that only its own end shows that it is over."""
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.setattr(child_pipe, "LAST_WORDS", 0.05)
    forks = "os.fork() or __import__('time').sleep(100)"
    assert run(f"{forks}; os._exit(7)").reason == "it exited with status 7"
    assert run(f"{forks}; os.kill(os.getpid(), 9)").reason == "it was ended by SIGKILL"


def test_one_that_ignores_the_end_of_its_input_and_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLOSED", "TERMINATED"):
        monkeypatch.setattr(child_pipe, name, 0.05)
    tasks: list[asyncio.Task[None]] = []

    def first(owner: Owner) -> None:
        tasks.append(asyncio.ensure_future(owner.pipe.end()))

    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)"
    assert run(f"{stubborn}; time.sleep(100)", first).reason == "it was ended by SIGKILL"


# ── the process itself ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_child_is_ended_once() -> None:
    """Its descriptors and its process id may be those of others by the second time."""
    with Child(["sleep", "1000"]) as child:
        os.close(child.stdin)
        child.end()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, child.stdout)
        child.end()
        child.sweep()
    assert os.fstat(child.stdout)
    os.close(child.stdout)
    os.close(null)


def test_a_child_takes_with_it_what_it_has_started() -> None:
    with Child(["sh", "-c", "sleep 1000 & echo $!; exit 3"]) as child:
        assert child.wait(60) == 3
        os.set_blocking(child.stdout, True)
        started = Watched(int(os.read(child.stdout, 100)))
        assert started.is_alive()
        child.sweep()
        assert started.ends()
    os.close(child.stdin)

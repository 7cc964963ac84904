"""A child that prints very many lines at once: nobody else waits for all of them, and none is lost or out of order."""

import asyncio
import sys
from collections.abc import Callable, Sequence

import pytest

from assay.edges import time_slice
from assay.edges.child_pipe import ERRORS_CHUNK, SLICE, ChildPipe, PipeLine
from kit.http_client import SECONDS

MANY = 20_000


class Listener:
    """Whoever hears the child."""

    def __init__(self, first: Callable[["Listener"], None] = lambda _: None) -> None:
        """*first* is called with the first lines."""
        self._first = first
        self.lines: list[bytes] = []
        self.slices: list[int] = []
        self.many = asyncio.Event()
        self.over = asyncio.Event()
        self.pipe: ChildPipe | None = None

    def heard(self, lines: Sequence[PipeLine]) -> None:
        assert not self.over.is_set()
        self.lines += [each.frame for each in lines]
        self.slices.append(len(lines))
        if len(self.slices) == 1:
            self._first(self)
        if len(self.lines) >= MANY:
            self.many.set()

    def ended(self, _: str, __: list[str]) -> None:
        self.over.set()


def started(listener: Listener, program: str, errors: Callable[[bytes], None] = lambda _: None) -> Listener:
    """*listener*, to whom a Python *program* speaks from now on."""
    command = [sys.executable, "-c", f"import sys; {program}"]
    listener.pipe = ChildPipe(command, listener, limit=1 << 20, errors=errors)
    return listener


async def heard_of(listener: Listener, program: str) -> Listener:
    """*listener*, after it has heard all that a Python *program* prints."""
    pipe = started(listener, program).pipe
    assert pipe is not None
    async with asyncio.timeout(SECONDS):
        await listener.over.wait()
        await pipe.end()
    return listener


def test_others_have_a_turn_before_all_lines_of_one_read_are_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "SECONDS", 0.0)
    so_far: list[int] = []

    def first(listener: Listener) -> None:
        asyncio.get_running_loop().call_soon(lambda: so_far.append(len(listener.lines)))

    async def run() -> Listener:
        return await heard_of(Listener(first), f"sys.stdout.write('x\\n' * {MANY})")

    listener = asyncio.run(run())
    assert listener.lines == [b"x"] * MANY
    assert so_far == [SLICE]
    assert max(listener.slices) == SLICE


def test_the_end_is_told_after_all_lines_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a pipe holds, some of it still unread when the child is gone, and a last line without an end."""
    monkeypatch.setattr(time_slice, "SECONDS", 0.0)

    async def run() -> Listener:
        return await heard_of(Listener(), f"sys.stdout.write('\\n'.join(map(str, range({MANY}))))")

    assert asyncio.run(run()).lines == [b"%d" % number for number in range(MANY)]


def test_a_child_that_is_held_and_let_go_on_amid_a_flood_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "SECONDS", 0.0)

    def first(listener: Listener) -> None:
        assert listener.pipe is not None
        listener.pipe.hold()
        asyncio.get_running_loop().call_soon(listener.pipe.go_on)

    async def run() -> Listener:
        # It stays, so that nothing is taken from it at its end.
        program = f"print(*range({MANY}), sep='\\n', flush=True); sys.stdin.read()"
        listener = started(Listener(first), program)
        assert listener.pipe is not None
        async with asyncio.timeout(SECONDS):
            await listener.many.wait()
            await listener.pipe.end()
        return listener

    assert asyncio.run(run()).lines == [b"%d" % number for number in range(MANY)]


def test_blank_lines_are_left_out_before_anybody_handles_them() -> None:
    async def run() -> Listener:
        return await heard_of(Listener(), "sys.stdout.write('\\n' * 70_000 + 'a\\n \\t\\r\\n\\nb\\n\\n  ')")

    listener = asyncio.run(run())
    assert listener.lines == [b"a", b"b"]


@pytest.mark.parametrize("rest", ["", "; sys.stdin.read()"], ids=["at-its-end", "while-it-runs"])
def test_stderr_is_taken_in_small_pieces_and_whole(rest: str) -> None:
    pieces: list[bytes] = []

    async def run() -> None:
        whole = asyncio.Event()

        def errors(data: bytes) -> None:
            pieces.append(data)
            if sum(map(len, pieces)) == 2 * MANY:
                whole.set()

        listener = started(Listener(), f"sys.stderr.write('x\\n' * {MANY}); sys.stderr.flush(){rest}", errors)
        assert listener.pipe is not None
        async with asyncio.timeout(SECONDS):
            await whole.wait()
            await listener.pipe.end()

    asyncio.run(run())
    assert b"".join(pieces) == b"x\n" * MANY
    assert max(map(len, pieces)) <= ERRORS_CHUNK

"""Pipes that never keep anybody waiting, and what is kept of a log."""

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from assay.edges.child import TAIL_BYTES, TAIL_LINES, Tail, unstartable
from assay.edges.pipes import FULL, Inlet, Loop, Outlet
from kit.rows import rows

Ends = tuple[int, int]


@contextmanager
def piped() -> Iterator[Ends]:
    """The reading and the writing end of a pipe; either may be closed by now."""
    ends = os.pipe()
    os.set_blocking(ends[0], False)
    yield ends
    for each in ends:
        with suppress(OSError):
            os.close(each)


@pytest.fixture
def pipe() -> Iterator[Ends]:
    with piped() as ends:
        yield ends


@pytest.fixture
def second() -> Iterator[Ends]:
    with piped() as ends:
        yield ends


def taken(reader: int) -> bytes:
    """What is in a pipe."""
    try:
        return os.read(reader, 1 << 20)
    except BlockingIOError:
        return b""


def test_replies_are_counted_apart_and_only_while_they_wait(pipe: Ends) -> None:
    """However much of something else is before and after them."""
    outlet = Outlet(pipe[1])
    outlet.write(b"x" * 100_000, b"\n")
    outlet.reply(b"y" * FULL)
    outlet.write(b"z" * 100_000, b"\n")
    sizes = []
    while outlet.clogged:
        sizes.append(outlet.size)
        outlet.push()
        assert taken(pipe[0])
    # Gone as soon as the last of the reply is, and not before.
    assert sizes[-1] > 100_001 >= outlet.size > 0
    outlet.write(b"x" * FULL, b"\n")
    assert [outlet.full, outlet.clogged] == [True, False]


def test_a_line_of_our_own_begins_on_a_line_of_its_own(pipe: Ends) -> None:
    outlet = Outlet(pipe[1])
    outlet.write(b"half a line")
    outlet.say(b"ours")
    outlet.write(b"whole", b"\n")
    outlet.say(b"ours")
    outlet.write(b"whole\n")
    outlet.say(b"ours")
    outlet.push()
    assert taken(pipe[0]) == b"half a line\nours\nwhole\nours\nwhole\nours\n"


def test_what_is_too_much_is_dropped_and_counted(pipe: Ends) -> None:
    outlet = Outlet(pipe[1], most=10)
    for each in (b"12345", b"1234567", b"12345"):
        outlet.write(each)
    outlet.push()
    assert taken(pipe[0]) == b"1234512345"
    assert outlet.lost == 7


def test_a_pipe_that_others_have_is_written_only_while_there_is_room(pipe: Ends) -> None:
    """It still blocks, and nothing does."""
    outlet = Outlet(pipe[1], shared=True)
    assert os.get_blocking(pipe[1])
    outlet.write(b"x" * 200_000)
    outlet.push()
    assert outlet.size == 200_000
    while select.select([], [pipe[1]], [], 0)[1]:
        outlet.push(room=True)
    assert 0 < outlet.size < 200_000
    outlet.finish(0.01)
    assert outlet.size > 0


def test_a_pipe_without_a_reader_takes_nothing_more(pipe: Ends) -> None:
    outlet = Outlet(pipe[1])
    os.close(pipe[0])
    outlet.write(b"x")
    outlet.push()
    assert outlet.broken
    outlet.write(b"x")
    outlet.reply(b"x")
    assert not outlet.waiting
    outlet.close()
    outlet.close()
    outlet.restore()


def test_a_loop_notices_who_is_gone_although_nothing_is_said(pipe: Ends) -> None:
    heeded, unheeded = Outlet(pipe[1], heeded=True), Outlet(os.dup(pipe[1]))
    loop = Loop([], [heeded, unheeded])
    loop.wait(0)
    assert not heeded.broken
    os.close(pipe[0])
    loop.wait(10)
    assert [heeded.broken, unheeded.broken] == [True, False]
    unheeded.close()


def test_a_loop_notices_who_hangs_up_although_it_does_not_read(pipe: Ends) -> None:
    """Once, and then it waits for something else."""
    full = Outlet(os.open(os.devnull, os.O_WRONLY))
    full.write(b"x" * FULL)
    read: list[bytes] = []
    inlet = Inlet(pipe[0], read.append, feeds=full)
    os.write(pipe[1], b"unread")
    loop = Loop([inlet], [])
    loop.wait(0)
    assert not inlet.hung_up
    os.close(pipe[1])
    loop.wait(10)
    assert [inlet.hung_up, inlet.ended, read] == [True, False, []]
    loop.wait(0)
    full.give_up()
    loop.wait(10)
    loop.wait(10)
    assert (read, inlet.ended) == ([b"unread", b""], True)
    full.close()


def test_what_is_read_is_not_written_before_the_reader_has_had_its_say(pipe: Ends, second: Ends) -> None:
    """Else an answer could leave before it is recorded, if something else was waiting to be written."""
    (source, sender), (reader, sink) = pipe, second
    outlet = Outlet(sink)
    # Whichever of them comes first in the list of what has happened.
    for order in (0, 1):
        inlet = Inlet(source, lambda data: outlet.write(data, b"\n"), feeds=outlet)
        loop = Loop([inlet], [])
        if order:
            loop.add(outlet)
        outlet.write(b"waiting", b"\n")
        loop.wait(0)
        loop.add(outlet)
        os.write(sender, b"fresh")
        loop.wait(10)
        assert os.read(reader, 100) == b"waiting\n"
        assert outlet.size == len(b"fresh\n")
        loop.push()
        assert os.read(reader, 100) == b"fresh\n"
        loop.drop(inlet, outlet)


# ── last words ───────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("written", "lines"),
    [
        ([b""], []),
        ([b"a\n", b"b\r\n", b"\n", b"c"], ["a", "b", "c"]),
        ([b"a", b"b\nc", b"d\n"], ["ab", "cd"]),
        ([b"%d\n" % number for number in range(50)], [str(number) for number in range(50 - TAIL_LINES, 50)]),
        ([b"%d\n" % number * 1 for number in range(50)] + [b"end"], [*map(str, range(51 - TAIL_LINES, 50)), "end"]),
        ([b"caf\xe9 \x1b[31m\ta\n"], ["caf\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}[31m\ta"]),
    ],
)
def test_the_last_lines_are_kept(written: list[bytes], lines: list[str]) -> None:
    tail = Tail()
    for each in written:
        tail.add(each)
    assert tail.lines() == lines


@rows("size", [1, 7, 1000, 65_536])
def test_no_flood_makes_the_last_lines_long(size: int) -> None:
    tail = Tail()
    for _ in range(200):
        tail.add(b"x" * size)
    tail.add(b"\nthe end\n")
    assert sum(map(len, tail.lines())) <= TAIL_BYTES
    assert tail.lines()[-1] == "the end"


# ── children ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("command", "path", "cwd", "found"),
    [
        ("nowhere-at-all", None, None, "cannot start nowhere-at-all: No such file or directory"),
        ("./nowhere", None, None, "cannot start ./nowhere: No such file or directory"),
        ("/etc/passwd", None, None, "cannot start /etc/passwd: Permission denied"),
        ("/etc", None, None, "cannot start /etc: Permission denied"),
        ("true", "/nowhere", None, "cannot start true: No such file or directory"),
        ("./sh", None, "/etc", "cannot start ./sh: No such file or directory"),
        ("true", None, None, None),
        ("./true", None, "/bin", None),
        ("true", "/nowhere:/bin", None, None),
    ],
)
def test_what_cannot_be_started_is_known_before(
    command: str, path: str | None, cwd: str | None, found: str | None
) -> None:
    assert unstartable([command], env=None if path is None else {"PATH": path}, cwd=cwd) == found

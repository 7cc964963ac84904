"""Ends that the relay has to see through without restarts: servers that are deaf, clients that are slow, pipes."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.edges.child import Child
from assay.edges.pipes import Inlet, Loop, Outlet
from kit.guard_process import Watched, call, enforcing, request

Ends = tuple[int, int]


@pytest.fixture
def pipes() -> Iterator[list[Ends]]:
    """Two pipes."""
    made = [os.pipe(), os.pipe()]
    yield made
    for each in [end for ends in made for end in ends]:
        os.close(each)


# ── the relay ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("patience", ["0", "600"])
def test_a_deaf_server_counts_as_ended_although_the_client_says_no_more(tmp_path: Path, patience: str) -> None:
    """Its answer is not waited for, not even where answers are waited for for ever."""
    deaf = [["close", "stdin"], ["tell", "deaf"], ["stay"]]
    with enforcing(tmp_path, "--timeout", patience, received=True, on={"#4": deaf}) as one:
        one.open()
        one.say(call(1))
        while one.received.next() != b"deaf":
            pass
        one.say(request(2, "ping"))
        one.close()
        errors = [one.answer(), one.answer()]
        assert [(each["id"], each["error"]["code"]) for each in errors] == [(1, -31011), (2, -31011)]
        assert one.ended() == 3


def test_what_a_server_leaves_running_ends_although_the_client_does_not_read(tmp_path: Path) -> None:
    """Later its group could be that of others, who would be killed in its place."""
    lots = [["notes", 3, 100_000], ["spawn"], ["exit", 1]]
    with enforcing(tmp_path, received=True, on={"ping": lots}) as one:
        one.open()
        one.say(request(1, "ping"))
        while not (line := one.received.next()).isdigit():
            pass
        assert Watched(int(line)).ends()
        assert one.process.poll() is None
        assert [one.answer()["method"] for _ in range(3)] == ["notifications/message"] * 3
        assert one.answer()["id"] == 1
        assert one.ended() == 3


def test_a_signal_in_the_last_moments_is_heeded(tmp_path: Path) -> None:
    """The server has ended, and the client does not take what is left for it."""
    with enforcing(tmp_path, received=True, on={"ping": [["notes", 3, 100_000], ["tell", "bye"], ["exit", 1]]}) as one:
        one.open()
        one.say(request(1, "ping"))
        while one.received.next() != b"bye":
            pass
        one.process.send_signal(signal.SIGTERM)
        assert one.ended() in {0, 3}


# ── pipes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_read_is_not_written_before_the_reader_has_had_its_say(pipes: list[Ends]) -> None:
    """Else an answer could leave before it is on record, if something else was waiting to be written."""
    (source, sender), (reader, sink) = pipes
    os.set_blocking(reader, False)
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


def test_a_descriptor_that_comes_back_is_that_of_the_new_pipe(pipes: list[Ends]) -> None:
    """A server's pipes are closed, and the next one's have their numbers."""
    (source, sender), (reader, sink) = pipes
    taken: list[bytes] = []
    first = Inlet(source, taken.append)
    outlet = Outlet(sink)
    loop = Loop([first], [outlet])
    outlet.write(b"x")
    loop.wait(0)
    loop.drop(first, outlet)
    loop.drop(first, outlet)
    again = Inlet(sink, taken.append)
    os.dup2(source, sink)
    loop.add(again)
    os.write(sender, b"hello")
    loop.wait(10)
    assert taken == [b"hello"]
    assert os.read(reader, 10) == b"x"


# ── children ─────────────────────────────────────────────────────────────────────────────────────────────────────────


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

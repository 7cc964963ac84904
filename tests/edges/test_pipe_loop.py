"""The loop of the relay between pipes: in which order it reads and writes, and descriptors that come back."""

import os
from collections.abc import Iterator

import pytest

from assay.edges.pipes import Inlet, Loop, Outlet

Ends = tuple[int, int]


@pytest.fixture
def pipes() -> Iterator[list[Ends]]:
    """Two pipes."""
    made = [os.pipe(), os.pipe()]
    yield made
    for each in [end for ends in made for end in ends]:
        os.close(each)


def test_what_is_read_is_not_written_before_the_reader_has_had_its_say(pipes: list[Ends]) -> None:
    """Else an answer could leave before it is recorded, if something else was waiting to be written."""
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

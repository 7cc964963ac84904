"""The socket of a feed in a process without free descriptors, and in a storm of connections."""

import os
import resource
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest

from assay.edges.feed_door import FeedDoor
from assay.records.live.live_feed import LiveFeed

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors as Linux does")


@pytest.fixture
def door() -> Iterator[FeedDoor]:
    """Return the socket of a feed, in a directory with a short name."""
    folder = mkdtemp()
    found = FeedDoor.open(LiveFeed("guard", "stdio"), folder)
    yield found
    found.close()
    rmtree(folder)


@contextmanager
def without_descriptors() -> Iterator[None]:
    """Let the process open nothing more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare: list[int] = []
    try:
        # The lowest numbers are used first, so all below the limit are taken.
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 2, before[1]))
        with suppress(OSError):
            while True:
                spare.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for each in spare:
            os.close(each)


def has_work(door: FeedDoor) -> bool:
    """Whether the loop of a guard would wake for it."""
    return bool(select.select([door.fileno()], [], [], 0)[0])


def connected(door: FeedDoor) -> socket.socket:
    """Return a connection that waits to be accepted."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(60)
    made.connect(door.path)
    return made


def test_without_descriptors_a_listener_is_turned_away(door: FeedDoor) -> None:
    waiting = [connected(door) for _ in range(3)]
    with without_descriptors():
        for _ in range(10):
            door.attend()
        # Otherwise the guard would never rest again.
        assert not has_work(door)
    assert [each.recv(100) for each in waiting] == [b"", b"", b""]
    late = connected(door)
    door.attend()
    assert late.recv(20).startswith(b'{"event":"hello"')
    for each in (*waiting, late):
        each.close()


def test_one_listener_comes_in_at_a_turn(door: FeedDoor) -> None:
    waiting = [connected(door) for _ in range(5)]
    for count in range(1, 6):
        assert has_work(door)
        door.attend()
        assert len(door.feed.queues) == count
    for each in waiting:
        each.close()

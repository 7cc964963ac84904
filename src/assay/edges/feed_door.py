"""
The socket of a live feed: accepts listeners and writes to them, and never waits.

It has a selector of its own, whose descriptor becomes readable when a listener comes, goes or has room. So the loop of
a guard, whatever its kind, watches one more descriptor, and nothing else changes for it.
"""

import selectors
import socket
from collections.abc import Callable
from contextlib import suppress
from errno import EMFILE, ENFILE
from math import inf
from os import O_CLOEXEC, O_RDONLY, close, devnull, unlink
from os import open as os_open
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Self

from assay.edges.pipes import Inlet
from assay.records.live.live_feed import GATHERED, LiveFeed, refusal
from assay.records.live.live_sockets import is_own_peer, listening, remove_stale

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

MOST_LISTENERS: Final = 8
"""Maximal listeners at once: a console, a terminal, and some more."""

_MOST_HEARD: Final = 64 << 10
"""Maximal bytes that a listener may send, all of which are ignored: it has nothing to say."""

_CHUNK: Final = 4096

_NO_DESCRIPTOR: Final = frozenset({EMFILE, ENFILE})
"""Errors of a process, or a system, that has no descriptor left."""

LINGER: Final = 0.1
"""Seconds at the end of the process in which listeners can read what waits for them: why a server failed comes last."""

_MOST_PIECES: Final = 4
"""Pieces that one listener gets in one turn, a megabyte in all; the messages between client and server come first."""


class FeedDoor:
    """The socket of one process, and its listeners."""

    def __init__(self, feed: LiveFeed, sock: socket.socket, path: str) -> None:
        self.feed = feed
        self.path = path
        self._sock = sock
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ)
        self._listeners: set[_Listener] = set()
        self._reserve = _reserve()
        self._loop: AbstractEventLoop | None = None

    @classmethod
    def open(cls, feed: LiveFeed, directory: str) -> Self:
        """Listen in *directory*, after sockets of killed processes are removed from it. Raises `OSError`."""
        remove_stale(directory)
        sock, path = listening(directory)
        return cls(feed, sock, path)

    def fileno(self) -> int:
        """Return the descriptor that is readable when `attend` has work."""
        found: int = getattr(self._selector, "fileno", lambda: -1)()
        return found

    def inlet(self) -> Inlet:
        """Return the inlet of a poll loop for it."""
        return _FeedInlet(self.fileno(), self.attend)

    def attend(self) -> None:
        """Accept listeners, drop those that have gone, and write to those that have room again."""
        for key, events in self._selector.select(0):
            if key.data is None:
                self._accept()
            else:
                key.data.attend(events)

    def flush(self) -> None:
        """Send what waits, as far as there is room."""
        feed = self.feed
        feed.look()
        feed.distribute()
        feed.flush_time.due = inf
        for each in list(self._listeners):
            each.push()

    def enter(self, loop: "AbstractEventLoop") -> None:
        """Be served by an event loop."""
        self._loop = loop
        loop.add_reader(self.fileno(), self.attend)
        # After the loop, `close` sends what is left: the states of servers change at the end.
        self.feed.arm = lambda: None if loop.is_closed() else _ignore(loop.call_later(GATHERED, self.flush))

    def leave(self) -> None:
        """Be served no longer; call it before the event loop is closed."""
        if self._loop is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self.fileno())
            self._loop = None

    def close(self) -> None:
        """Tell the listeners that it is the end, wait a moment for those that still read, and remove the socket."""
        with suppress(OSError):
            unlink(self.path)
        if self._sock.fileno() >= 0:
            self._selector.unregister(self._sock)
            self._sock.close()
        if self._reserve >= 0:
            close(self._reserve)
            self._reserve = -1
        self.feed.look()
        self.feed.distribute()
        for each in list(self._listeners):
            each.say_goodbye(self.feed.bye())
        due = perf_counter() + LINGER
        while self._listeners and (left := due - perf_counter()) > 0:
            for key, events in self._selector.select(left):
                key.data.attend(events)
        for each in list(self._listeners):
            each.drop()
        self._selector.close()

    def _accept(self) -> None:
        """Accept one listener. The next one waits for the next turn: messages come between."""
        try:
            connection, _ = self._sock.accept()
        except OSError as error:
            if error.errno in _NO_DESCRIPTOR:
                self._turn_away()
            return
        self._welcome(connection)

    def _turn_away(self) -> None:
        """Close the connection that waits: while no descriptor is left for it, the selector would never rest."""
        with suppress(OSError):
            if self._reserve >= 0:
                close(self._reserve)
                self._reserve = -1
            connection, _ = self._sock.accept()
            connection.close()
            self._reserve = _reserve()
            return
        # Another thread was faster: no further listeners.
        self._selector.unregister(self._sock)
        self._sock.close()

    def _welcome(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        if not is_own_peer(connection):
            connection.close()
        elif len(self._listeners) >= MOST_LISTENERS:
            with suppress(OSError):
                connection.send(refusal(MOST_LISTENERS))
            connection.close()
        else:
            listener = _Listener(connection, self.feed, self._selector, self._listeners.discard)
            self._listeners.add(listener)
            listener.push()


def _reserve() -> int:
    """Return a descriptor that can be closed when there is no other left."""
    return os_open(devnull, O_RDONLY | O_CLOEXEC)


class _FeedInlet(Inlet):
    """The selector of a feed as an inlet of a poll loop."""

    __slots__ = ("_attend",)

    def __init__(self, descriptor: int, attend: Callable[[], None]) -> None:
        super().__init__(descriptor, lambda _: None)
        self._attend = attend

    def read(self) -> None:
        """Handle what the listeners do."""
        self._attend()


class _Listener:
    """One connection."""

    def __init__(
        self,
        connection: socket.socket,
        feed: LiveFeed,
        selector: selectors.BaseSelector,
        gone: "Callable[[_Listener], None]",
    ) -> None:
        self._connection = connection
        self._feed = feed
        self._selector = selector
        self._gone = gone
        self._heard = 0
        self._blocked = self._leaving = False
        self._queue = feed.join()
        selector.register(connection, selectors.EVENT_READ, self)

    def attend(self, events: int) -> None:
        """Handle *events* of the connection."""
        if events & selectors.EVENT_READ and not self._hear():
            self.drop()
        elif events & selectors.EVENT_WRITE:
            self.push()

    def push(self) -> None:
        """Send what waits, as far as there is room."""
        queue = self._queue
        for _ in range(_MOST_PIECES):
            piece = queue.piece()
            if not piece:
                if self._leaving:
                    self.drop()
                self._watch(blocked=False)
                return
            try:
                queue.sent(self._connection.send(piece))
            except BlockingIOError:
                break
            except OSError:
                self.drop()
                return
        self._watch(blocked=bool(queue.piece()))

    def say_goodbye(self, line: bytes) -> None:
        """Send what waits and *line*, and close the connection after that."""
        self._queue.say(line)
        self._leaving = True
        self.push()

    def drop(self) -> None:
        """Close the connection."""
        if self._connection.fileno() >= 0:
            self._selector.unregister(self._connection)
            self._connection.close()
            self._feed.part(self._queue)
            self._gone(self)

    def _hear(self) -> bool:
        """Ignore what the listener says; return whether it is still there, and has not said too much."""
        try:
            data = self._connection.recv(_CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._heard += len(data)
        return bool(data) and self._heard <= _MOST_HEARD

    def _watch(self, *, blocked: bool) -> None:
        if blocked != self._blocked and self._connection.fileno() >= 0:
            self._blocked = blocked
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if blocked else 0)
            self._selector.modify(self._connection, events, self)


def _ignore(_: Any) -> None:
    pass

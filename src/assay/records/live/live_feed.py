"""
What a running guard offers to other programs of the same user: its records as they are made, and events.

No I/O: `assay.edges.feed_door` has the socket. While no listener is there, no message takes longer: no line is made for
the feed, and nothing is called for a message. With the first listener, the lines of the journal are handed on as they
are written.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from time import gmtime, perf_counter, strftime, time
from typing import TYPE_CHECKING, Any, Final

import orjson

from assay import __version__
from assay.records.journal.record import cut
from assay.records.live.listener_queue import PIECE, ListenerQueue
from assay.records.live.live_server import MOST_SESSIONS, LiveServer
from assay.records.live.live_state import FlushTime

if TYPE_CHECKING:
    from assay.core.redaction import Redactor

VERSION: Final = 1
"""Version of the feed. It changes when a member changes its meaning, not when one is added."""

GATHERED: Final = 0.05
"""Seconds that lines are gathered before they are sent: a send for each message would take 10 µs of the guard."""

_MOST_FRESH: Final = 1000
"""Maximal writes of a journal that are gathered."""

_LONGEST: Final = 500
"""Maximal characters of a text of a peer in an event."""

_LONGEST_START: Final = 4096
"""Maximal characters of a command that is offered to be started again: it is shown whole before it is."""


class LiveFeed:
    """The feed of one process."""

    def __init__(
        self, kind: str, transport: str, *, mode: str = "", payloads: bool = False, redact: Sequence[str] = ()
    ) -> None:
        """*kind* is ``guard`` or ``assets``; what looks like a secret or is matched by *redact* is left out."""
        self._kind, self._transport, self._mode, self._payloads = kind, transport, mode, payloads
        self._patterns = tuple(redact)
        self._redactor: Redactor | None = None
        self._began = time()
        self.address = ""
        """The address of the guard over HTTP."""
        self.servers: list[LiveServer] = []
        self._fresh: list[bytes] = []
        """Lines that are not in the queues yet."""
        self.queues: list[ListenerQueue] = []
        """What waits for each listener."""
        self.switches: list[Callable[[bool], None]] = []
        """Called with true when the first listener comes, and with false when the last one goes."""
        self.flush_time = FlushTime()
        self.arm: Callable[[], None] = _nothing
        """Called when lines begin to wait; an event loop sets a timer."""

    @property
    def attended(self) -> bool:
        """Whether a listener is there."""
        return bool(self.queues)

    def add(self, name: str, route: str, *, command: Sequence[str] = (), url: str = "") -> LiveServer:
        """Return a new server of the feed, with its *command* or *url* masked."""
        made = LiveServer(self, name, route, partial(self._what, tuple(command), url))
        self.servers.append(made)
        return made

    def at(self, route: str) -> LiveServer | None:
        """Return the server at *route*."""
        return next((each for each in self.servers if each.route == route), None)

    # ── listeners ────────────────────────────────────────────────────────────────────────────────────────────────────

    def join(self) -> ListenerQueue:
        """Return the queue of a new listener, which begins with hello."""
        # What was written before is for the others; the new listener knows it from the journal.
        self.distribute()
        queue = ListenerQueue()
        self.queues.append(queue)
        if len(self.queues) == 1:
            self._switch(True)
        queue.say(self.hello())
        return queue

    def part(self, queue: ListenerQueue) -> None:
        """A listener is gone."""
        self.queues.remove(queue)
        if not self.queues:
            self.flush_time.due = inf
            self._fresh.clear()
            self._switch(False)

    def _switch(self, on: bool) -> None:
        for server in self.servers:
            (server.attend if on else server.leave)()
        for switch in self.switches:
            switch(on)

    # ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def lines(self, lines: bytes) -> None:
        """Hand on whole *lines* of a journal. This is called while a client waits for its response."""
        fresh = self._fresh
        fresh.append(lines)
        if len(fresh) == 1:
            self.flush_time.due = perf_counter() + GATHERED
            self.arm()
        elif len(fresh) >= _MOST_FRESH:
            self.distribute()

    def event(self, kind: str, **members: Any) -> None:
        """Hand on an event."""
        if self.queues:
            self.lines(_line(kind, members))

    def distribute(self) -> None:
        """Put what was handed on into the queues of the listeners, in pieces of a moderate size."""
        fresh, self._fresh = self._fresh, []
        first = size = 0
        for number, lines in enumerate(fresh, 1):
            size += len(lines)
            if size >= PIECE or number == len(fresh):
                whole = b"".join(fresh[first:number])
                records = whole.count(b"\n")
                for queue in self.queues:
                    queue.put(whole, records)
                first, size = number, 0

    def look(self) -> None:
        """Report changed states of servers."""
        if self.queues:
            for server in self.servers:
                server.look()

    # ── what is known ────────────────────────────────────────────────────────────────────────────────────────────────

    def hello(self) -> bytes:
        """Return the first line for a listener."""
        sessions = [(server, each) for server in self.servers for each in server.opened_sessions()]
        members = {
            "feed": VERSION,
            "assay": __version__,
            "pid": os.getpid(),
            "startedAt": _instant(self._began),
            "kind": self._kind,
            "transport": self._transport,
            "address": self.address,
            "mode": self._mode,
            "payloads": self._payloads,
            "servers": [server.row() for server in self.servers],
            "sessions": [server.session(each) for server, each in sessions[:MOST_SESSIONS]],
            "sessionCount": len(sessions),
        }
        return _line("hello", members)

    def bye(self) -> bytes:
        """Return the last line for a listener."""
        return _line("bye", {})

    def shown(self, text: str) -> str:
        """Return a text of a peer, without secrets, cut."""
        # Redact first, then cut: part of a secret is not recognized.
        return self._redacted(text[: 4 * _LONGEST])[:_LONGEST] if text else text

    def _redacted(self, text: str) -> str:
        if self._redactor is None:
            from assay.core.redaction import Redactor  # noqa: PLC0415 - some milliseconds, for listeners only

            self._redactor = Redactor(self._patterns)
        return self._redactor.text(text)

    def _what(self, command: tuple[str, ...], url: str) -> dict[str, Any]:
        """Return what is guarded, without secrets; also how it is started, if nothing is masked."""
        from shlex import join  # noqa: PLC0415

        from assay.core.masked_commands import masked_command  # noqa: PLC0415
        from assay.core.masking import masked_url  # noqa: PLC0415

        if url:
            return {"url": cut(self._redacted(masked_url(url)), _LONGEST)}
        if not command:
            return {}
        masked = tuple(map(self._redacted, masked_command(command)))
        shown = {"command": cut(join(masked), _LONGEST)}
        # Where clients come over HTTP, a program can call the server through the guard, and need not start it.
        if self._transport != "stdio" or masked != command or len(join(command)) > _LONGEST_START:
            return shown
        try:
            directory = os.getcwd()
            # A word or a path that is not UTF-8 has no place in JSON.
            "".join((*command, directory)).encode()
        except (OSError, UnicodeEncodeError):
            # The directory may be removed by now.
            return shown
        return {**shown, "start": {"words": list(command), "directory": directory}}


def refusal(most: int) -> bytes:
    """Return the only line for a listener that is one too many."""
    return _line("refused", {"why": f"at most {most} listeners at once"})


def _line(kind: str, members: dict[str, Any]) -> bytes:
    whole = {"event": kind, "ts": _instant(time()), **members}
    try:
        return orjson.dumps(whole, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        import json  # noqa: PLC0415 - hardly ever

        # A lone surrogate, which an argument may have, is no JSON: a reader would drop the whole line.
        return json.dumps(whole, ensure_ascii=False).encode(errors="replace") + b"\n"


def _instant(seconds: float) -> str:
    return f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(seconds))}.{int(seconds % 1 * 1e6):06}Z"


def _nothing() -> None:
    pass

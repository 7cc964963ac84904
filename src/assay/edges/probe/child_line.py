"""The connection to a probed server that runs as a child process. One thread; every wait is bounded."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from assay.edges.child import CLOSED, Child, StartError, why
from assay.edges.pipes import Inlet, Loop, Outlet, Signals
from assay.edges.probe.server_probe import (
    InquiryError,
    InterruptedInquiryError,
    LateError,
    LineError,
    UnreachableError,
)
from assay.judge.framing import Splitter, is_blank
from assay.schema.header_arguments import ParamHeaders

_MOST_HELD: Final = 10_000
"""Maximal frames of the server in the queue."""

_LAST_WORDS: Final = 0.5
"""Seconds for a server that has closed its output to exit, so that its status is known."""


class ChildLine:
    """A server as a child process. The last lines of its stderr are kept; `with` ends it."""

    def __init__(
        self,
        command: Sequence[str],
        signals: Signals | None,
        limit: int,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        """
        *limit* is the maximal length of a message in bytes. Raises `UnreachableError`.

        *signals* interrupt a wait; in a thread that gets none it is None.
        """
        try:
            self._child = Child(command, env=env, cwd=cwd)
        except StartError as error:
            raise UnreachableError(str(error)) from None
        self._signals = signals
        self._splitter = Splitter(limit)
        self._frames: deque[bytes] = deque()
        self._sink = Outlet(self._child.stdin)
        self._source = Inlet(self._child.stdout, self._from_server, tells=self._sink)
        self._errors = Inlet(self._child.stderr, self._child.tail.add)
        interrupts = (signals.inlet(),) if signals is not None else ()
        self._loop = Loop((self._source, self._errors, *interrupts), (self._sink,))
        self._closed: float | None = None
        """When our side was closed, by `time.monotonic`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        self._sink.close()
        # After the last response the server may exit by itself; a server that does not respond is ended at once.
        if error is None:
            self._child.wait(self._closing() - time.monotonic())
        self._child.end()

    def _closing(self) -> float:
        """Return when a server that has not ended by itself is ended."""
        self._closed = time.monotonic() if self._closed is None else self._closed
        return self._closed + CLOSED

    def say(self, frame: bytes, _: dict[str, Any], __: str, ___: float, ____: ParamHeaders = ()) -> None:
        """Send a message, as soon as the server reads."""
        self._sink.say(frame)
        self._loop.push()

    def hear(self, deadline: float) -> bytes:
        """Return the next frame of the server."""
        while True:
            left = deadline - time.monotonic()
            if self._signals is not None and self._signals.stopping:
                raise InterruptedInquiryError("interrupted")
            # Checked first: a server that sends without end must not be read for ever.
            if left <= 0:
                raise LateError("no response in time", self._child.tail.lines())
            if self._frames:
                return self._frames.popleft()
            if self._source.ended:
                raise LineError(f"the server ended: {self._reason()}", self._child.tail.lines())
            self._loop.wait(left)
            self._loop.push()

    def close(self) -> Iterator[bytes]:
        """Close the server's input; yield what it sends until it ends."""
        self._loop.drop(self._sink)
        self._sink.close()
        with suppress(LineError):
            while True:
                yield self.hear(self._closing())

    @property
    def status(self) -> int | None:
        """The exit status of the server; None while it runs."""
        return self._child.status

    def _reason(self) -> str:
        status = self._child.wait(_LAST_WORDS)
        while self._loop.has_more(self._errors) and not self._errors.ended:
            self._errors.read()
        return "it closed its output" if status is None else why(status)

    def _from_server(self, data: bytes) -> None:
        self._frames.extend(frame for frame in self._splitter.feed(data) if not is_blank(frame))
        if not data:
            last = self._splitter.end()
            self._frames.extend([last] if last is not None else [])
        if len(self._frames) > _MOST_HELD:
            raise InquiryError(f"the server sent more than {_MOST_HELD:,} messages at once")

"""What leads from a session to a child process of its own."""

from collections.abc import Callable, Sequence
from typing import Protocol

from assay.edges.child import StartError
from assay.edges.guard.http_to_child.backoff import Backoff
from assay.edges.guard.http_to_child.childtalk import Talk
from assay.edges.guard.http_to_child.mistakes import contained
from assay.edges.guard.http_to_child.outflow import Stream
from assay.edges.guard.http_to_child.pipe import Line, Owner, Pipe
from assay.guard.deliveries import End
from assay.guard.guard import line


class House(Protocol):
    """Where children run."""

    def spawn(self, owner: Owner, principal: str) -> Pipe:
        """Starts one for *principal*. Raises `StartError`."""

    def end(self, pipe: Pipe) -> None:
        """Ends one, soon."""

    def broke(self, talk: Talk, end: End) -> None:
        """One has ended by itself."""

    def shown(self, last_words: list[str]) -> list[str]:
        """Return what a client may read of the last lines that its own child wrote to stderr."""

    def flush(self) -> None:
        """Puts on record what was heard."""


class Direct:
    """One session, one child. It starts with the first message that goes to it."""

    def __init__(self, house: House, backoff: Callable[[], Backoff], clock: Callable[[], float]) -> None:
        """*backoff* gives what counts the children that end before they have answered `initialize`."""
        self._house = house
        self._backoff = backoff
        self._clock = clock
        self._began = 0.0
        self._pipe: Pipe | None = None
        self._left = False
        self.talk: Talk | None = None

    @property
    def pipe(self) -> Pipe | None:
        """The child, while there is one."""
        return self._pipe

    def has_room(self, size: int) -> bool:
        """Whether *size* bytes more may wait for it."""
        return self._pipe is None or self._pipe.has_room(size)

    def say(self, frame: bytes) -> None:
        """Sends one message."""
        if self._pipe is None and not self._left:
            self._start()
        if self._pipe is not None:
            self._pipe.say(line(frame))

    def _start(self) -> None:
        self._left = True
        backoff = self._backoff()
        if backoff.closed:
            self._fail(backoff.reason)
            return
        self._began = self._clock()
        try:
            self._pipe = self._house.spawn(self, self.talk.principal if self.talk is not None else "")
        except StartError as error:
            backoff.failed(self._began, str(error))
            self._fail(str(error))

    def _fail(self, reason: str) -> None:
        if self.talk is not None:
            self.talk.server_ended(reason)

    def slow(self, stream: Stream) -> None:
        """The client is slow: the child has to wait for it."""
        if self._pipe is not None:
            self._pipe.hold()
            stream.taken = self._pipe.go_on

    def leave(self) -> None:
        """The session is over, and so is its child."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            self._house.end(pipe)

    def heard(self, lines: Sequence[Line]) -> None:
        """What the child said at once."""
        if self.talk is not None and self._pipe is not None:
            for each in lines:
                self.talk.from_server(*each)
            with contained("what was heard could not be put on record"):
                self._house.flush()

    def ended(self, reason: str, last_words: list[str]) -> None:
        """The child has ended."""
        if self._pipe is None or self.talk is None:
            return
        self._pipe = None
        if not self.talk.opened:
            self._backoff().failed(self._began, reason)
        # The session has this child to itself, so nothing of another client is in what it wrote.
        shown: list[str] = []
        with contained("the last words of a server could not be shown"):
            shown = self._house.shown(last_words)
        self.talk.server_ended(reason, shown)
        with contained("the end of a server could not be reported"):
            self._house.broke(self.talk, End(reason, last_words))
        self._house.flush()

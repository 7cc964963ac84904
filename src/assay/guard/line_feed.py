"""
Lines of one peer, judged one by one and forwarded together. No I/O: the fast path of a guard between two streams.

Accepted lines are forwarded as they came, in the order they came.
"""

from collections.abc import Callable, Iterable
from typing import Final

from assay.guard.deliveries import EMPTY, Outcome
from assay.guard.session import GuardedSession
from assay.judge.framing import Rest, Splitter
from assay.model.verdict import Party

Forward = Callable[[bytes, bytes], None]
Act = Callable[[Outcome, bytes], None]

_CLIENT: Final = Party.CLIENT


class LineFeed:
    """The bytes of one party on their way into a session."""

    __slots__ = ("_act", "_limit", "_party", "_session", "_splitter", "forward")

    def __init__(self, session: GuardedSession, party: Party, forward: Forward, act: Act) -> None:
        """
        Accepted bytes go to *forward*, with their ending; every other outcome goes to *act*.

        *act* gets the ending of a forwarded line too: it is empty for an over-long line, whose rest follows.
        """
        self._session = session
        self._party = party
        self.forward = forward
        self._act = act
        self._limit = session.conversation.limits.frame_bytes
        self._splitter = Splitter(self._limit, passing=True)

    def anew(self) -> None:
        """Another peer speaks: its first line is its own."""
        self._splitter = Splitter(self._limit, passing=True)

    def feed(self, data: bytes) -> None:
        """Judge the lines that *data* completes, and forward them."""
        session, splitter, party = self._session, self._splitter, self._party
        whole = splitter.between
        frames = iter(splitter.feed(data))
        if not session.calm:
            self._feed_each(frames)
            return
        judge = session.judge
        good: list[bytes] = []
        for frame in frames:
            verdict = None
            if type(frame) is not Rest:
                verdict = judge(party, frame)
                if verdict.findings is None:
                    good.append(frame)
                    continue
            # In their order: what came before goes first.
            whole = False
            if good:
                self.forward(b"\n".join(good), b"\n")
                good.clear()
            if verdict is None:
                self._feed_rest(frame)
            else:
                self._act(session.outcome(verdict), self._ending(frame))
            if not self._session.calm:
                self._feed_each(frames)
                return
        if good and whole and splitter.between:
            # Whole lines and nothing else, all of them good, as nearly always: the very bytes that were read.
            self.forward(data, b"")
        elif good:
            self.forward(b"\n".join(good), b"\n")

    def end(self) -> None:
        """Judge the last line of a stream, if it has no newline."""
        last = self._splitter.end()
        if last is not None:
            self._act(self._heard(last), b"")
        self._act(self._session.more(self._party, b"\n"), b"\n")

    def _feed_each(self, frames: Iterable[bytes]) -> None:
        """Judge one line after the other, while there is more to be looked at than its findings."""
        for frame in frames:
            if type(frame) is Rest:
                self._feed_rest(frame)
            else:
                self._act(self._heard(frame), self._ending(frame))

    def _heard(self, frame: bytes) -> Outcome:
        session = self._session
        return session.from_client(frame, rest=None) if self._party is _CLIENT else session.from_server(frame, None)

    def _feed_rest(self, rest: bytes) -> None:
        """More of an over-long line; under audit it is forwarded as it came."""
        if not self._session.enforcing:
            self.forward(rest, b"")
        made = self._session.more(self._party, rest)
        if made is not EMPTY:
            self._act(made, b"\n")

    def _ending(self, frame: bytes) -> bytes:
        return b"\n" if len(frame) <= self._limit else b""

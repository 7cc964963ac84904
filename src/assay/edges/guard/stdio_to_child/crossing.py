"""
What comes from either side, as bytes: judged, put on record, told, and on to the other side. Nothing here waits.

Accepted frames leave as they came, in the order they came.
"""

from collections.abc import Iterable
from typing import Final

from assay.base.verdict import Party, Verdict
from assay.edges.guard.overseer import Overseer, Watcher, passing
from assay.edges.pipes import FULL, Outlet
from assay.edges.recorder import Recorder
from assay.guard.failure import log_once
from assay.guard.guard import NO_MOVE, Guard, Move, Settled
from assay.guard.standing import Hear
from assay.ladder.framing import Rest, Splitter

CROWDED: Final = FULL // 2
"""Bytes that wait for the next server, from which on requests are not added to them."""

_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER


class Crossing:
    """The frames of one guarded conversation, on their way over two streams."""

    def __init__(
        self, guard: Guard, hear: Hear, recorder: Recorder, watcher: Watcher, client: Outlet, server: Outlet
    ) -> None:
        """*hear* is that of *guard*, or of whoever wants to hear what it says."""
        self._guard = guard
        self._hear = hear
        self._recorder = recorder
        self._watcher = watcher
        self._overseer = Overseer(guard, recorder, watcher)
        self._enforcing = guard.mode == "enforce"
        self._limit = guard.conversation.limits.frame_bytes
        self._splitters = {party: Splitter(self._limit, passing=True) for party in Party}
        self.client = client
        """Where frames for the client go."""
        self.server = server
        """Where those for the server go, or are kept until there is one."""

    def split_anew(self) -> None:
        """Another server speaks: its first line is its own."""
        self._splitters[_SERVER] = Splitter(self._limit, passing=True)
        self.client.end_line()

    def feed(self, party: Party, data: bytes) -> None:
        """More from one side."""
        other = self.server if party is _CLIENT else self.client
        hear, clock, passed = self._hear, self._recorder.clock, self._watcher.passed
        record = None if self._recorder.idle else self._recorder.message
        splitter = self._splitters[party]
        between = splitter.between
        good: list[bytes] = []
        count = 0
        for frame in splitter.feed(data):
            count += 1
            failure = verdict = None
            if type(frame) is not Rest:
                try:
                    now = clock()
                    verdict = hear(party, frame)
                    if verdict.findings is None:
                        if record is not None:
                            record(verdict, now, len(frame))
                        passed(verdict, now)
                        good.append(frame)
                        continue
                except Exception as error:
                    failure = error
            # One after the other: what came before goes first.
            if good:
                other.write(b"\n".join(good), b"\n")
                good.clear()
            if failure is not None:
                self.fail(party, frame, failure, verdict, ending=b"\n")
            elif verdict is None:
                self._feed_rest(party, frame)
            else:
                self._act(verdict, now, b"\n")
        if good and between and splitter.between and len(good) == count:
            # Whole lines and nothing else, all of them good: as nearly always.
            other.write(data)
        elif good:
            other.write(b"\n".join(good), b"\n")

    def feed_waiting(self, data: bytes) -> None:
        """More from the client, for a server that is not there yet. What is asked beyond measure fails at once."""
        for frame in self.split(_CLIENT, data):
            self.feed_one(_CLIENT, frame, crowded=self.server.size >= CROWDED)

    def split(self, party: Party, data: bytes) -> Iterable[bytes]:
        """The frames that *data* completes, to be fed one by one."""
        return self._splitters[party].feed(data)

    def feed_one(self, party: Party, frame: bytes, *, crowded: bool = False) -> None:
        """One frame, or more of a long one. If it is *crowded* where it goes to, requests do not."""
        if type(frame) is Rest:
            self._feed_rest(party, frame)
            return
        try:
            now = self._recorder.clock()
            verdict = self._hear(party, frame)
        except Exception as error:
            self.fail(party, frame, error, ending=b"\n")
            return
        if crowded and _asks(verdict):
            self._turn_away(verdict, now)
        else:
            self._act(verdict, now, b"\n")

    def _turn_away(self, verdict: Verdict, now: float) -> None:
        """Too much waits for the next server: what else is asked fails at once."""
        try:
            self._overseer.tell(verdict, now, NO_MOVE)
        except Exception as error:
            log_once(error)
        if verdict.back is not None:
            self.client.reply(verdict.back)
        for each in (verdict, *verdict.parts):
            if each.exchange is not None:
                why = "too much waits for the next server already"
                settled = self._guard.give_up(each.exchange, "UPSTREAM_FAILURE", why)
                if settled is not None:
                    self.settle(settled)

    def _feed_rest(self, party: Party, rest: bytes) -> None:
        """More of a line that is too long."""
        if not self._enforcing:
            (self.server if party is _CLIENT else self.client).write(rest)
        self._carry_out(party, self._rest(party, rest))

    def _rest(self, party: Party, rest: bytes) -> Move:
        """What comes of more of a line that is too long, on record."""
        try:
            move = self._guard.rest(party, rest)
            self._settle(move)
        except Exception as error:
            log_once(error)
            return NO_MOVE
        return move

    def _settle(self, move: Move) -> None:
        """Record what *move* says beside the frames to send."""
        if move.aside is not None:
            self._watcher.aside(move.aside)
        for settled in move.settled:
            self._overseer.settle(settled)

    def feed_end(self, party: Party) -> None:
        """The last line of a stream, if it has no newline."""
        last = self._splitters[party].end()
        if last is not None:
            try:
                now = self._recorder.clock()
                verdict = self._hear(party, last)
            except Exception as error:
                self.fail(party, last, error)
            else:
                self._act(verdict, now, b"")
        self._carry_out(party, self._rest(party, b"\n"))

    def _act(self, verdict: Verdict, now: float, ending: bytes) -> None:
        """Does what is to be done about one frame."""
        move = NO_MOVE
        try:
            move = self._guard.act(verdict) if verdict.findings is not None else passing(verdict)
            self._overseer.tell(verdict, now, move)
        except Exception as error:
            self.fail(verdict.party, verdict.frame, error, verdict, move.settled, ending=ending)
            return
        self._end(verdict, move, ending)

    def fail(
        self,
        party: Party,
        frame: bytes,
        error: Exception,
        heard: Verdict | None = None,
        settled: tuple[Settled, ...] = (),
        *,
        ending: bytes = b"",
    ) -> None:
        """Answer, or forward, a frame after *error*, an internal error; nothing was sent for it yet."""
        verdict, move = self._overseer.failed(party, frame, error, heard, settled)
        self._end(verdict, move, ending)

    def _end(self, verdict: Verdict, move: Move, ending: bytes) -> None:
        if len(verdict.frame) > self._limit:
            # The rest of the line follows, and brings its end.
            ending = b""
        self._carry_out(verdict.party, move, verdict.frame, ending)

    def _carry_out(self, speaker: Party, move: Move, frame: bytes = b"", ending: bytes = b"") -> None:
        """Sends what *move* says, all of which is on record."""
        for party, outlet, data in (
            (_SERVER, self.server, move.to_server),
            (_CLIENT, self.client, move.to_client),
        ):
            if data is None:
                continue
            if data is frame:
                outlet.write(data, ending)
            elif party is speaker:
                outlet.reply(data)
            else:
                outlet.say(data)
        for settled in move.settled:
            if settled.answer:
                self.client.reply(settled.answer)

    def settle(self, settled: Settled) -> None:
        """A request that the server does not answer is answered here."""
        self._overseer.settle(settled)
        if settled.answer:
            self.client.reply(settled.answer)


def _asks(verdict: Verdict) -> bool:
    """Whether somebody waits for an answer to it, and it would go on."""
    return any(each.kind == "request" and each.onward is not None for each in (verdict, *verdict.parts))

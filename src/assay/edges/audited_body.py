"""
A body that is forwarded as it comes, and judged at its end: under audit nothing waits for a verdict. No I/O.

It is kept until it is complete, within a limit, and judged before its end is forwarded: the client's next message is
then judged after it.
"""

from collections.abc import Callable

from assay.edges.upstream_errors import NoAnswerError


class AuditedBody:
    """One such body."""

    __slots__ = ("_done", "_held", "_hold", "_judge", "_limit", "_unjudged")

    def __init__(
        self,
        limit: int,
        *,
        hold: Callable[[int], None],
        judge: Callable[[bytes], None],
        unjudged: Callable[[str], None],
    ) -> None:
        """
        *limit* is the maximal length of a message; *judge* gets the body, cut one byte past the limit.

        *hold* gets the number of kept bytes, and raises `NoAnswerError` beyond its limit: then *unjudged* gets the
        reason.
        """
        self._limit = limit
        self._hold = hold
        self._judge = judge
        self._unjudged = unjudged
        self._held = bytearray()
        self._done = False

    def more(self, chunk: bytes) -> None:
        """Hear the next bytes, before they go on."""
        if self._done:
            return
        self._held += chunk
        try:
            self._hold(len(self._held))
        except NoAnswerError as error:
            self.give_up(str(error))
            return
        if len(self._held) > self._limit:
            self.end()

    def give_up(self, why: str) -> None:
        """Keep no more of it, and do not judge it."""
        if not self._done:
            self._close()
            self._unjudged(why)

    def end(self) -> None:
        """Judge what there is, since nothing more comes or it is too long already."""
        if not self._done:
            content = bytes(self._held[: self._limit + 1])
            self._close()
            self._judge(content)

    def _close(self) -> None:
        self._done = True
        self._held.clear()
        self._hold(0)

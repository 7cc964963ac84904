"""
A body that goes to the client as it comes, and is judged all the same: under audit nothing waits for a verdict. No I/O.

It is kept until it is whole, within bounds, and judged before the client knows that this was all of it: what the
client does next is then judged by what it was told.
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
        *limit* is how long a message may be; *judge* gets the whole, or one byte more than that.

        *hold* is told how many bytes are kept, and raises `NoAnswerError` if that is too much: then *unjudged* is told
        why.
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
            self._close()
            self._unjudged(str(error))
            return
        if len(self._held) > self._limit:
            self.end()

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

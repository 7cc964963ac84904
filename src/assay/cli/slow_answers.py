"""``--max-ms``: responses that took longer than a limit. They are shown, and change no verdict and no exit status."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from heapq import nlargest
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from assay.model.verdict import Verdict
    from assay.records.judged_records import JudgedRecord

_SHOWN: Final = 20
"""Slow responses that are listed; the others are counted."""


def add_max_ms(parser: argparse.ArgumentParser) -> None:
    """Add `--max-ms` to *parser*."""
    parser.add_argument(
        "--max-ms",
        metavar="N",
        type=_milliseconds,
        help="list responses slower than N milliseconds, without effect on the exit status",
    )


def _milliseconds(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else 0
    if not number:
        raise argparse.ArgumentTypeError(f"{text}: expected a number of milliseconds, at least 1")
    return number


class SlowAnswers:
    """The responses that took more than *limit* milliseconds, the slowest first. It can be pickled."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._slowest: list[tuple[int, str]] = []
        self._count = 0
        self._timed = False
        """Whether the time of a response was known."""

    def add(self, message: JudgedRecord) -> None:
        """Add a message of a recording, which may have a time."""
        if message.latency is not None:
            self._took(message.latency, message.record.method, message.record.metadata.tool)

    def note(self, verdict: Verdict, seconds: float) -> None:
        """Note a message at a time in *seconds*, by a clock of any start."""
        exchange = verdict.exchange
        if exchange is None:
            return
        if verdict.kind == "request":
            exchange.asked_at = seconds
        elif verdict.kind in {"result", "error"} and seconds >= exchange.asked_at:
            self._took((seconds - exchange.asked_at) * 1000, verdict.method, verdict.tool)

    def _took(self, milliseconds: float, method: str | None, tool: str | None) -> None:
        self._timed = True
        # A thousandth more or less is the clock's.
        took = round(milliseconds * 1000) // 1000
        if took > self._limit:
            self._count += 1
            self._keep((took, f"{method or 'response'} {tool or ''}".strip()))

    def merge(self, other: SlowAnswers) -> None:
        """Add those of another part of the same file."""
        self._timed = self._timed or other._timed
        self._count += other._count
        self._keep(*other._slowest)

    def _keep(self, *slow: tuple[int, str]) -> None:
        self._slowest = nlargest(_SHOWN, [*self._slowest, *slow])

    def lines(self) -> Iterator[str]:
        """Yield a line for each slow response, the slowest first."""
        if not self._timed:
            yield "--max-ms: no response has a time"
        for took, what in self._slowest:
            yield f"slow: {what} took {took:,} ms"
        if self._count > len(self._slowest):
            yield f"slow: {self._count - len(self._slowest):,} more responses"

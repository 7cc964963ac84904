"""``--max-ms``: responses that took longer than a limit. They are shown, and change no verdict and no exit status."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from heapq import nlargest
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from assay.base.verdict import Verdict
    from assay.cli.reports.check_findings import CheckedMessage

_SHOWN: Final = 20
"""Slow responses that are listed; the others are counted."""


def add_max_ms(parser: argparse.ArgumentParser) -> None:
    """Add `--max-ms` to *parser*."""
    parser.add_argument(
        "--max-ms",
        metavar="N",
        type=_milliseconds,
        help="show responses that took more than N milliseconds; they do not change the exit status",
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

    def add(self, message: CheckedMessage) -> None:
        """Add a message of a recording, which may have a time."""
        seconds = message.judged.time
        if seconds is not None:
            self.note(message.judged.verdict, seconds, message.method, message.tool)

    def note(self, verdict: Verdict, seconds: float, method: str | None, tool: str | None) -> None:
        """Note a message at a time in *seconds*, by a clock of any start."""
        exchange, micros = verdict.exchange, round(seconds * 1e6)
        if exchange is None:
            return
        if verdict.kind == "request":
            # In microseconds, as the page of a report notes it.
            exchange.asked_at = micros
        elif verdict.kind in {"result", "error"} and micros >= exchange.asked_at > 0:
            self._timed = True
            took = int(micros - exchange.asked_at) // 1000
            if took > self._limit:
                self._count += 1
                self._keep((took, f"{method or exchange.method} {tool or ''}".strip()))

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

"""
What people are told of guarded conversations: findings as they come, and a summary at the end. No I/O; whatever there
is to say it hands on, and the last messages are kept by `flight`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Final

from assay.guard.flight import FLIGHTS, KEPT, KEPT_BYTES, Flight
from assay.verdict import Exchange, Party, Verdict

__all__ = ("FLIGHTS", "KEPT", "KEPT_BYTES", "MOST_SHOWN", "Watch")

MOST_SHOWN: Final = 100
"""Messages whose findings are shown as they come; the rest are only counted."""

SLOW: Final = 1.0
SLOWEST: Final = 3
"""Seconds from which on a summary mentions an answer, and how many of them."""

MOST_RULES: Final = 10
"""Rules that a summary names."""

_MOST_COUNTED: Final = 1000
"""Findings that are told apart: names are the peer's, and may be many."""

_ANSWERS: Final = frozenset({"result", "error"})
_CLIENT: Final = Party.CLIENT

Log = Callable[[str], None]


class _Tally:
    """What all conversations of one guard come to."""

    __slots__ = ("client", "excused", "printed", "repaired", "rules", "server", "shown", "slowest", "stopped")

    def __init__(self) -> None:
        self.client = self.server = 0
        self.rules: Counter[tuple[str, str]] = Counter()
        self.excused: Counter[tuple[str, str]] = Counter()
        self.stopped = self.repaired = 0
        self.shown = 0
        self.printed = 0
        self.slowest: list[tuple[float, str]] = []


class Watch:
    """One guarded conversation, as people see it; what is counted is counted for all of them together."""

    def __init__(
        self, log: Log, aside: Callable[[bytes], None], *, enforcing: bool, tally: _Tally | None = None
    ) -> None:
        """Lines go to *log*, and to *aside* what a server has printed where only messages belong."""
        self._log = log
        self._aside = aside
        self._enforcing = enforcing
        self._tally = _Tally() if tally is None else tally
        self._flight = Flight()
        self._kept = self._flight.kept

    def another(self) -> "Watch":
        """A watch on another conversation of the same guard: it keeps messages of its own, and counts with this one."""
        return Watch(self._log, self._aside, enforcing=self._enforcing, tally=self._tally)

    @property
    def findings(self) -> int:
        """How many violations there were."""
        return self._tally.rules.total()

    def passed(self, verdict: Verdict, now: float) -> None:
        """Nothing is to be said of a message, which came *now*, in seconds by some clock."""
        party, frame, kind, exchange = verdict.party, verdict.frame, verdict.kind, verdict.exchange
        if party is _CLIENT:
            self._tally.client += 1
        else:
            self._tally.server += 1
        kept = self._kept
        if len(kept) == KEPT:
            self._flight.fill()
        if len(frame) > KEPT_BYTES:
            frame = frame[: KEPT_BYTES + 1]
        # Not by a method of the flight: this is done for every message.
        kept.append((party, frame, kind, exchange))
        if exchange is None:
            return
        if kind == "request":
            exchange.asked_at = now
        elif kind in _ANSWERS:
            if now - exchange.asked_at >= SLOW:
                self._took_long(exchange, now - exchange.asked_at)
            # Only the first answer tells how long it took; another one may come long after.
            exchange.asked_at = inf

    def heard(self, verdict: Verdict, now: float) -> None:
        """Something is."""
        if verdict.kind != "missing":
            self.passed(verdict, now)
        tally = self._tally
        if verdict.kind == "unreadable":
            # Whatever it is, it is no message.
            tally.client -= verdict.party is Party.CLIENT
            tally.server -= verdict.party is Party.SERVER
        if not verdict.violations:
            return
        where = verdict.tool or verdict.method or ""
        for each in verdict.violations:
            known = len(tally.rules) < _MOST_COUNTED or (each.rule, where) in tally.rules
            tally.rules[each.rule, where if known else ""] += 1
            tally.repaired += each.action == "repair"
            if each.reason is not None:
                tally.excused[each.rule, each.reason] += 1
        tally.stopped += self._enforcing and not verdict.accepted
        tally.shown += 1
        if tally.shown <= MOST_SHOWN:
            self._log(_line(verdict, enforcing=self._enforcing))
            for line in _further(verdict):
                self._log(line)
        elif tally.shown == MOST_SHOWN + 1:
            self._log("assay: further findings are counted, and not shown")

    def aside(self, data: bytes) -> None:
        """What a server printed where only messages belong goes where such things belong."""
        self._tally.printed += 1
        self._aside(data)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def summary(self) -> Iterator[str]:
        """What happened, for people."""
        from assay.console.plain import plain  # noqa: PLC0415 - not while a server starts

        tally = self._tally
        stopped = f", {tally.stopped} stopped" if self._enforcing else ""
        stopped += f", {tally.repaired} repaired" if tally.repaired else ""
        said = f"{_counted(tally.client, 'message')} from the client, {tally.server:,} from the server"
        yield f"assay: {said}, {_counted(self.findings, 'finding')}{stopped}"
        most = sorted(tally.rules.items(), key=lambda item: (-item[1], item[0]))
        for (rule, where), count in most[:MOST_RULES]:
            yield plain(f"assay: {count:>6,} × {rule}{f' in {where[:100]}' if where else ''}")
        if len(most) > MOST_RULES:
            rest = sum(count for _, count in most[MOST_RULES:])
            yield f"assay: {rest:>6,} others"
        for (rule, reason), count in sorted(tally.excused.items()):
            yield plain(f"assay: {count:>6,} × {rule} by an exception: {reason}")
        if tally.printed:
            yield f"assay: {_counted(tally.printed, 'line')} of the server's output went to stderr"
        for seconds, what in tally.slowest:
            yield plain(f"assay: slow: {what} took {seconds:.1f} s")

    def flight(self, directory: str, redact: Sequence[str] = ()) -> str | None:
        """Writes the last messages, redacted, into a file that `assay check` reads; its path, if there is one."""
        return self._flight.write(directory, redact, self._log)

    def _took_long(self, exchange: Exchange, seconds: float) -> None:
        what = f"{exchange.method[:100]} {(exchange.tool or '')[:100]}".rstrip()
        self._tally.slowest = sorted([*self._tally.slowest, (seconds, what)], reverse=True)[:SLOWEST]


def _fate(verdict: Verdict, *, enforcing: bool) -> str:
    """What became of a message, in a word or two; nothing for one that never came."""
    if verdict.kind == "missing":
        return ""
    if enforcing and not verdict.accepted:
        return "stopped: "
    done = {each.action for each in verdict.violations} if enforcing else set()
    if "repair" in done:
        return "repaired: "
    # A call may name a tool whose schema is found unusable only then: it goes on, and nothing is left out of it.
    aside = verdict.kind == "result" and "quarantine" in done
    return "passed, entries set aside: " if aside else "passed: "


def _line(verdict: Verdict, *, enforcing: bool) -> str:
    """The first thing that is wrong with a message. What peers have said is printed safely."""
    from assay.console.plain import plain  # noqa: PLC0415 - most conversations never need it
    from assay.console.verdicts import title  # noqa: PLC0415 - as above

    more = len(verdict.violations) - 1 + verdict.more
    first = f"{verdict.violations[0]}{f' and {more} more' if more else ''}"
    return plain(f"assay: {_fate(verdict, enforcing=enforcing)}{verdict.party} {title(verdict)}: {first}")


def _further(verdict: Verdict) -> Iterator[str]:
    """What else differs from a lock: each is a thing of its own that somebody has to review."""
    from assay.console.plain import plain  # noqa: PLC0415 - as above

    yield from (plain(f"assay:     {each}") for each in verdict.violations[1:] if each.rule.startswith("lock/"))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

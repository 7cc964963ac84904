"""
Report guarded conversations on stderr: findings as they come, and a summary at the end. No I/O: lines go to a function,
and `flight` keeps the last messages.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from assay.guard.deliveries import UNKNOWN, End
from assay.guard.recent_messages import ENTRY_BYTES, FLIGHTS, KEPT, KEPT_BYTES, RecentMessages, Shelf
from assay.guard.sinks import EventKind, Sink
from assay.judge.lifecycle import spoken
from assay.judge.list_filter import Quarantined, summed
from assay.judge.redaction import Redactor
from assay.judge.render import changes
from assay.model.printable import OURS, counted, label, labelled, plain
from assay.model.verdict import Exchange, Party, Verdict, Violation
from assay.rules.sentences import located

__all__ = ("FLIGHTS", "KEPT", "KEPT_BYTES", "MOST_SHOWN", "GuardSummary")

MOST_SHOWN: Final = 100
"""Maximal messages whose findings are shown as they come; the rest are only counted."""

SLOW: Final = 1.0
SLOWEST: Final = 3
"""Minimal seconds of a slow response in the summary, and the maximal number of them."""

MOST_RULES: Final = 10
"""Maximal rules in the summary."""

_MOST_COUNTED: Final = 1000
"""Maximal different findings to count: peers choose names, so there may be many."""

_MOST_ASIDE: Final = 1000
"""Maximal bytes to show of server output that is not a message."""

_ANSWERS: Final = frozenset({"result", "error"})
_CLIENT: Final = Party.CLIENT

Log = Callable[[str], None]


class _Lines:
    """Lines for stderr. A repeated line is shown once and then counted."""

    __slots__ = ("_last", "_say", "_times")

    def __init__(self, say: Log) -> None:
        self._say = say
        self._last = ""
        self._times = 0

    def say(self, line: str) -> None:
        """Show *line*, unless it equals the last one."""
        if line == self._last:
            self._times += 1
            if self._times in _SHOWN_AT:
                self.end()
            return
        self.end()
        self._last = line
        self._say(line)

    def end(self) -> None:
        """Show how often the last line was repeated."""
        if self._times:
            self._say(f"assay: {self._times:,} × again: {self._last.removeprefix('assay: ')}")
            self._times = 0


_SHOWN_AT: Final = frozenset({1000})
"""Repetitions after which an unchanged line is shown again."""


class _Secrets:
    """Hides secrets. The patterns are compiled on first use, which takes milliseconds; most conversations need none."""

    __slots__ = ("_made", "_patterns")

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = tuple(patterns)
        self._made: Redactor | None = None

    @property
    def redactor(self) -> "Redactor":
        if self._made is None:
            self._made = Redactor(self._patterns)
        return self._made

    def hidden(self, text: str) -> str:
        """Return *text* without secrets."""
        return self.redactor.text(text)


class _Tally:
    """The counts of all conversations of one guard."""

    __slots__ = (
        "asides", "blocked", "client", "excused", "known", "log", "printed", "quarantined", "refused", "repaired",
        "repeated", "rules", "secrets", "server", "shelf", "shown", "slowest",
    )  # fmt: skip

    def __init__(self, log: Log, aside: Log, secrets: _Secrets, shelf: Shelf) -> None:
        self.log = _Lines(log)
        self.asides = _Lines(aside)
        self.secrets = secrets
        self.shelf = shelf
        self.client = self.server = 0
        self.rules: Counter[tuple[str, str]] = Counter()
        self.excused: Counter[tuple[str, str]] = Counter()
        self.blocked = self.repaired = 0
        self.refused = 0
        """Messages that a rule refuses, or with an entry that it quarantines, in either mode."""
        self.shown = 0
        self.known: set[object] = set()
        """The findings shown so far, by conversation; bounded by `MOST_SHOWN`."""
        self.repeated: Counter[tuple[str, str]] = Counter()
        """Messages that were not shown, because an equal one was."""
        self.printed = 0
        self.quarantined: Quarantined | None = None
        self.slowest: list[tuple[float, str]] = []

    def add_quarantined(self, verdict: Verdict) -> None:
        """Keep the names of quarantined entries for the summary."""
        if self.quarantined is None:
            self.quarantined = Quarantined()
        self.quarantined.add(verdict.quarantined)


class GuardSummary(Sink):
    """The report of one guarded conversation; the counts are shared by all conversations of a guard."""

    def __init__(
        self,
        log: Log,
        aside: Log,
        *,
        enforcing: bool,
        keeping: bool = True,
        redact: Sequence[str] = (),
        tally: _Tally | None = None,
        name: str = "",
        introducing: bool = False,
    ) -> None:
        """
        Lines go to *log*, and server output that is not a message to *aside*, one line each.

        Without *keeping*, the last messages are not kept, and there is no `flight`. Secrets and matches of *redact* are
        hidden. *name* is that of the server; with *introducing*, the agreed revision is logged, too.
        """
        self._name = name
        self._label = ""
        self._servers: list[GuardSummary] = []
        self._examined_from = -inf if introducing else SLOW
        """Minimal duration of a response to examine; until the revision is logged, every response is examined."""
        self._mark = object()
        """Stands for this conversation among the known findings, which outlive the watch."""
        self._log = log
        self._aside = aside
        self._enforcing = enforcing
        self._keeping = keeping
        self._tally = _Tally(log, aside, _Secrets(redact), Shelf()) if tally is None else tally
        self._shelf = self._tally.shelf
        self._flight = RecentMessages()
        self._kept = self._flight.kept
        if keeping:
            self._shelf.add(self._flight)

    def another(self) -> "GuardSummary":
        """Return a watch for another conversation of the guard: it shares the counts, but not the kept messages."""
        return GuardSummary(self._log, self._aside, enforcing=self._enforcing, keeping=self._keeping, tally=self._tally)

    def of_server(self, name: str) -> "GuardSummary":
        """
        Return a watch for one of several servers: its lines have the server's *name*, and it has separate counts.

        All servers share the limit of kept messages. The summary of this watch includes theirs.
        """
        log, aside, tally = labelled(self._log, name), labelled(self._aside, name), self._tally
        own = _Tally(log, aside, tally.secrets, tally.shelf)
        one = GuardSummary(log, aside, enforcing=self._enforcing, keeping=self._keeping, tally=own, name=name)
        one._label = label(name)
        self._servers.append(one)
        return one

    @property
    def findings(self) -> int:
        """The number of violations."""
        return self._tally.rules.total() + sum(each.findings for each in self._servers)

    @property
    def messages(self) -> int:
        """The number of judged messages; a frame that is not a message counts if it has findings."""
        heard = self._tally.client + self._tally.server + sum(each.messages for each in self._servers)
        return heard or self.findings

    def count(self, level: str) -> int:
        """Return the number of findings, or for the *level* refuse, of messages refused or with quarantined entries."""
        if level != "refuse":
            return self.findings
        return self._tally.refused + sum(each.count(level) for each in self._servers)

    def passed(self, verdict: Verdict, now: float, _session: str = "", /) -> None:
        """Record a message without findings, which came *now*, in seconds."""
        party, frame, kind, exchange = verdict.party, verdict.frame, verdict.kind, verdict.exchange
        if party is _CLIENT:
            self._tally.client += 1
        else:
            self._tally.server += 1
        if self._keeping:
            # Inlined, not a method of the flight: this runs for every message.
            kept, shelf, size = self._kept, self._shelf, len(frame)
            if len(kept) == KEPT and not self._flight.opened:
                self._flight.fill()
            if size > KEPT_BYTES:
                frame = frame[: KEPT_BYTES + 1]
            if exchange is None:
                kept.append((party, frame, kind, None, None, now, b""))
            else:
                kept.append((party, frame, kind, exchange.id, exchange.entry.name, now, b""))
            shelf.room -= size + ENTRY_BYTES
            if shelf.room < 0:
                shelf.weigh()
        if exchange is None:
            return
        if kind == "request":
            exchange.asked_at = now
        elif kind in _ANSWERS:
            if now - exchange.asked_at >= self._examined_from:
                self._answered(verdict, exchange, now - exchange.asked_at)
            # Only the first response counts for the duration; another one may come long after.
            exchange.asked_at = inf

    def found(self, verdict: Verdict, now: float, _session: str = "", _sent: int = 0, /) -> None:
        """Record a message that has findings, or was not forwarded."""
        self.heard(verdict, now)

    def event(self, kind: EventKind, data: bytes, _session: str = "", /) -> None:
        """Show server output that is not a message."""
        if kind == "stray":
            self.aside(data)

    def heard(self, verdict: Verdict, now: float) -> None:
        """Record a message that has findings, which came *now*."""
        from assay.records.outcomes import outcome_of  # noqa: PLC0415 - most conversations never need it

        if verdict.kind != "missing":
            self.passed(verdict, now)
        tally = self._tally
        if verdict.kind == "unreadable":
            # Not a message.
            tally.client -= verdict.party is Party.CLIENT
            tally.server -= verdict.party is Party.SERVER
        if not verdict.violations:
            return
        if self._keeping and verdict.kind != "missing":
            self._shelf.room -= self._flight.add_findings(verdict)
        # Cut, because it is kept; at twice the shown length, so that a secret is still recognized.
        where = (verdict.tool or verdict.method or "")[:200]
        for each in verdict.violations:
            known = len(tally.rules) < _MOST_COUNTED or (each.rule, where) in tally.rules
            tally.rules[each.rule, where if known else ""] += 1
            if each.reason is not None:
                tally.excused[each.rule, each.reason] += 1
        tally.repaired += len(verdict.repairs)
        if verdict.quarantined:
            tally.add_quarantined(verdict)
        tally.refused += not verdict.accepted or any(each.action == "quarantine" for each in verdict.violations)
        tally.blocked += outcome_of(verdict).shown == "blocked"
        first = (verdict.violations[0].rule, where)
        like = _likeness(verdict)
        if like is not None and (self._mark, like) in tally.known:
            tally.repeated[first if first in tally.rules else (first[0], "")] += 1
            return
        tally.shown += 1
        if tally.shown <= MOST_SHOWN:
            tally.known.add((self._mark, like))
            redactor = tally.secrets.redactor
            tally.log.say(_line(verdict, redactor, enforcing=self._enforcing))
            for line in _further(verdict, redactor, enforcing=self._enforcing):
                tally.log.say(line)
        elif tally.shown == MOST_SHOWN + 1:
            tally.log.say("assay: further findings are counted, not shown")

    def aside(self, data: bytes) -> None:
        """Send server output that is not a message to stderr, as one line."""
        self._tally.printed += 1
        self._tally.asides.say(_shown(data, self._tally.secrets.redactor))

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def summary(self) -> Iterator[str]:
        """Return the lines of the summary. Of several servers, those with any message."""
        if not self._servers:
            yield from self._summary()
            return
        used = [each for each in self._servers if each.messages]
        for each in used:
            yield from each._summary()
        if not used:
            yield "assay: no messages"

    def _summary(self) -> Iterator[str]:
        ours = f"{OURS}{self._label}"
        head = f"{OURS}{label(self._name)}" if self._name else OURS
        for number, line in enumerate(self._counts()):
            yield f"{ours if number else head}{line}"

    def _counts(self) -> Iterator[str]:
        tally = self._tally
        tally.asides.end()
        tally.log.end()
        done = f", {tally.blocked} blocked" if self._enforcing or tally.blocked else ""
        done += f", {tally.repaired} repaired" if tally.repaired else ""
        said = f"{counted(tally.client, 'message')} from the client, {tally.server:,} from the server"
        yield f"{said}, {counted(self.findings, 'finding')}{done}"
        most = sorted(tally.rules.items(), key=lambda item: (-item[1], item[0]))
        for (rule, where), count in most[:MOST_RULES]:
            times = tally.repeated[rule, where]
            more = f": reported once per conversation, {times:,} more like it" if times else ""
            place = f" in {tally.secrets.hidden(where)[:100]}" if where else ""
            yield plain(f"{count:>6,} × {rule}{place}{more}")
        if len(most) > MOST_RULES:
            rest = sum(count for _, count in most[MOST_RULES:])
            yield f"{rest:>6,} others"
        word = "quarantined" if self._enforcing else "would be quarantined"
        for line in tally.quarantined.lines(tally.secrets.hidden) if tally.quarantined is not None else ():
            yield plain(f"{word}: {line}")
        for (rule, reason), count in sorted(tally.excused.items()):
            yield plain(f"{count:>6,} × {rule} by an exception: {reason}")
        if tally.printed:
            yield f"{counted(tally.printed, 'line')} of the server's output went to stderr"
        for seconds, what in tally.slowest:
            yield plain(f"slow: {tally.secrets.hidden(what)} took {seconds:.1f} s")

    def flight(self, directory: str, redact: Sequence[str] = (), end: End = UNKNOWN) -> str | None:
        """Write the last messages, redacted, and the *end* of the server into a file; return its path, if any."""
        return self._flight.write(directory, redact, self._log, end) if self._keeping else None

    def _answered(self, verdict: Verdict, exchange: Exchange, seconds: float) -> None:
        """Record a slow response, or the first one that shows the revision."""
        if self._examined_from < SLOW:
            self._introduce(verdict)
        if seconds >= SLOW:
            self._took_long(exchange, seconds)

    def _introduce(self, verdict: Verdict) -> None:
        """Log the revision as soon as a result shows it."""
        revision = spoken(verdict) if verdict.kind == "result" else None
        if revision is not None:
            self._examined_from = SLOW
            self._tally.log.say(f"{OURS}{self._name} speaks MCP {revision}")

    def _took_long(self, exchange: Exchange, seconds: float) -> None:
        what = f"{exchange.method[:100]} {(exchange.tool or '')[:100]}".rstrip()
        self._tally.slowest = sorted([*self._tally.slowest, (seconds, what)], reverse=True)[:SLOWEST]


def _likeness(verdict: Verdict) -> object:
    """Return the key of messages with the same findings; None for one that is always shown."""
    if verdict.kind == "missing":
        # Each missing response is reported.
        return None
    wrong = tuple((each.rule, each.at, each.action) for each in verdict.violations)
    # A hash: text of peers may be long, and this is kept.
    return hash((verdict.party, verdict.kind, verdict.method, verdict.tool, wrong))


def _has_lost(verdict: Verdict, *, enforcing: bool) -> bool:
    """Whether entries of a list were quarantined, and the rest of it was forwarded."""
    # The schema of a tool may be found unusable only by a call: the call is forwarded, and nothing is quarantined.
    return enforcing and verdict.accepted and verdict.kind == "result" and bool(verdict.quarantined)


def _line(verdict: Verdict, redactor: "Redactor", *, enforcing: bool) -> str:
    """Return the line about the first violation of a message, printable and without secrets."""
    from assay.records.outcomes import outcome_of, title  # noqa: PLC0415 - as above

    what = redactor.text(title(verdict))
    if _has_lost(verdict, enforcing=enforcing):
        entries = summed(verdict.quarantined, what.removeprefix("result of "), redactor.text)
        return plain(f"assay: quarantined {entries}")
    # The title of a missing response says what happened.
    word = "" if verdict.kind == "missing" else f"{outcome_of(verdict).shown}: "
    more = len(verdict.violations) - 1 + verdict.more
    first = f"{_worded(verdict.violations[0], redactor)}{f' and {more} more' if more else ''}"
    return plain(f"assay: {word}{verdict.party} {what}: {first}")


def _further(verdict: Verdict, redactor: "Redactor", *, enforcing: bool) -> Iterator[str]:
    """Yield a line for each difference from a lock and for each invalid entry, which an operator has to review."""
    # With quarantined entries the first line has only their names.
    first = 0 if _has_lost(verdict, enforcing=enforcing) else 1
    listed = {None, *(each.entry for each in verdict.violations[:first])}
    further = []
    for each in verdict.violations[first:]:
        if each.rule.startswith("lock/") or each.entry not in listed:
            further.append(each)
        listed.add(each.entry)
    yield from (plain(f"assay:     {_worded(each, redactor)}") for each in further)
    if verdict.repairs:
        yield plain(f"assay:     {changes([redactor.repair(each) for each in verdict.repairs])}")


def _worded(violation: Violation, redactor: "Redactor") -> str:
    """Return a violation as one line, without secrets in the found value or in a name."""
    entry = violation.entry
    shown = None if entry is None else entry._replace(name=redactor.text(entry.name))
    return f"{located(replace(violation, found=redactor.found(violation), entry=shown))} [{violation.rule}]"


def _shown(data: bytes, redactor: "Redactor") -> str:
    """Return the line about server output that is not a message, cut and without control characters."""
    # Redact first, then cut: part of a secret is not recognized.
    text = redactor.text(data[: 2 * _MOST_ASIDE].decode(errors="replace").rstrip("\r"))
    cut = len(data) > 2 * _MOST_ASIDE or len(text) > _MOST_ASIDE
    return plain(f"assay: the server sent: {text[:_MOST_ASIDE]}{'…' if cut else ''}")

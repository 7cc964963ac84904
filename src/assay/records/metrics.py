"""
Counts what passes, and shows the counts in Prometheus' text format. No I/O, no clock.

Written by hand because the client library takes a lock and four times as long for each count (2 µs against 0.5), and
all that is needed of it is a page of text. Nothing here locks: whoever counts and whoever renders do so on one thread,
that of the event loop.

Labels come from tables of ours, never from a message: a peer that makes up methods cannot make up series.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from assay import __version__
from assay.base.verdict import Verdict
from assay.contracts.own_tools import TOOLS
from assay.records.journal.record import Status, status_of
from assay.rules import RULES
from assay.spec.methods import methods
from assay.spec.revisions import REVISIONS

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""What `Metrics.render` gives, for whoever serves it."""

OTHER: Final = "other"
"""The label for what is in no table."""

METHODS: Final = frozenset(name for revision in REVISIONS for name in methods(revision)).union(TOOLS)
"""The methods that are told apart: those of any revision, and our own tools, which are bare methods too (specs/001)."""

BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Seconds. Our own tools answer within the first few, a server behind the guard in the middle, a backend at the end."""

_MESSAGES: Final = "assay_messages_total"
_VIOLATIONS: Final = "assay_violations_total"
_DURATION: Final = "assay_request_duration_seconds"
_JOURNAL_FAILURES: Final = "assay_journal_failures_total"
_BUILD: Final = "assay_build_info"
_NAMES: Final = frozenset({_MESSAGES, _VIOLATIONS, _DURATION, _JOURNAL_FAILURES, _BUILD})


class Metrics:
    """The counts of one process."""

    def __init__(self) -> None:
        self._messages: dict[tuple[str, str, str, Status], int] = {}
        # Every rule is there from the start: a rate needs the zero before the one.
        self._violations = dict.fromkeys(RULES, 0)
        self._answered: dict[str, _Durations] = {}
        self._journal_failures = 0
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def heard(self, verdict: Verdict, transport: str, *, failed: bool = False) -> None:
        """
        One message has been judged; its status is that of the journal, with the same *failed*.

        The entries of a batch count one by one. A blank line is no message.
        """
        if verdict.findings is None and not failed and _is_good(verdict):
            try:
                # What is no key yet, None above all, is left to the slow way.
                self._messages[transport, verdict.party, verdict.method, "ok"] += 1  # type: ignore[index]  # None is no key
            except KeyError:
                self._count(verdict, transport, "ok")
        elif verdict.parts:
            for part in verdict.parts:
                self.heard(part, transport, failed=failed)
        elif verdict.kind != "blank":
            self._count(verdict, transport, status_of(verdict, failed=failed))

    def _count(self, verdict: Verdict, transport: str, status: Status) -> None:
        key = transport, str(verdict.party), method_label(verdict.method), status
        self._messages[key] = self._messages.get(key, 0) + 1
        for violation in verdict.violations:
            rule = violation.rule if violation.rule in RULES else OTHER
            self._violations[rule] = self._violations.get(rule, 0) + 1

    def answered(self, method: str | None, seconds: float) -> None:
        """A request has been answered or refused, *seconds* after it was heard."""
        durations = self._answered.get(method) if method is not None else None
        if durations is None:
            durations = self._answered.setdefault(method_label(method), _Durations())
        durations.add(seconds)

    def exchanged(self, method: str, transport: str, seconds: float) -> None:
        """A good request has got its good answer, *seconds* after it was heard: both count, in half the time."""
        for party in ("client", "server"):
            try:
                self._messages[transport, party, method, "ok"] += 1
            except KeyError:
                key: tuple[str, str, str, Status] = (transport, party, method_label(method), "ok")
                self._messages[key] = self._messages.get(key, 0) + 1
        self.answered(method, seconds)

    def journal_failed(self, records: int = 1) -> None:
        """Records of the journal could not be written."""
        self._journal_failures += records

    def gauge(self, name: str, help: str, value: Callable[[], float]) -> None:  # noqa: A002 - Prometheus' own word
        """From now on *name* is shown with what *value* gives at that time."""
        if not name.isidentifier() or not name.isascii():
            raise ValueError(f"no name for a gauge: {name!r}")
        if name in self._gauges or name in _NAMES:
            raise ValueError(f"there is a {name} already")
        self._gauges[name] = help, value

    # ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def render(self) -> bytes:
        """All of it, in text format 0.0.4, in an order that does not change."""
        return "".join(f"{line}\n" for line in self._lines()).encode()

    def _lines(self) -> Iterator[str]:
        yield from _family(_MESSAGES, "counter", "Messages judged, by what became of them.")
        for (transport, party, method, status), count in sorted(self._messages.items()):
            labels = {"transport": transport, "party": party, "method": method, "status": status}
            yield _sample(_MESSAGES, labels, count)
        yield from _family(_VIOLATIONS, "counter", "Violations listed in verdicts.")
        for rule, count in sorted(self._violations.items()):
            yield _sample(_VIOLATIONS, {"rule": rule}, count)
        yield from self._durations()
        yield from _family(_JOURNAL_FAILURES, "counter", "Records that the journal could not write.")
        yield _sample(_JOURNAL_FAILURES, {}, self._journal_failures)
        for name, (text, value) in sorted(self._gauges.items()):
            yield from _family(name, "gauge", text)
            yield _sample(name, {}, _present(value))
        yield from _family(_BUILD, "gauge", "The version that runs; always 1.")
        yield _sample(_BUILD, {"version": __version__}, 1)

    def _durations(self) -> Iterator[str]:
        yield from _family(_DURATION, "histogram", "From hearing a request to its answer or refusal.")
        for method, durations in sorted(self._answered.items()):
            total = 0
            for bound, count in zip((*map(_number, BUCKETS), "+Inf"), durations.counts, strict=True):
                total += count
                yield _sample(f"{_DURATION}_bucket", {"method": method, "le": bound}, total)
            yield _sample(f"{_DURATION}_sum", {"method": method}, durations.sum)
            yield _sample(f"{_DURATION}_count", {"method": method}, total)


class _Durations:
    """How long something took: for each bucket, how often."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        # A clock that was set back must not make a sum go down: Prometheus would take it for a restart.
        if seconds > 0:
            self.sum += seconds
        self.counts[bisect_left(BUCKETS, seconds)] += 1


def method_label(method: str | None) -> str:
    """*method* if it is one of a table, else `other`."""
    return method if method in METHODS and method is not None else OTHER


def _is_good(verdict: Verdict) -> bool:
    """Whether a message that no rule objects to is in order at first sight. What is not may be so at the second."""
    kind = verdict.kind
    if kind == "result":
        # Our own results have no value: they are not read again.
        return verdict.value is None or "isError" not in verdict.value["result"]
    return kind in {"request", "notification"}


def _present(value: Callable[[], float]) -> float:
    # One that cannot be had must not keep the others from being seen.
    with suppress(Exception):
        return value()
    return float("nan")


def _family(name: str, kind: str, text: str) -> Iterable[str]:
    escaped = text.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {escaped}", f"# TYPE {name} {kind}"


def _sample(name: str, labels: dict[str, str], value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {_number(value)}" if shown else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(repr(value), repr(value))

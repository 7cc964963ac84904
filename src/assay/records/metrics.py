"""
Count messages, and render the counts in Prometheus' text format. No I/O, no clock.

Written by hand because the client library takes a lock and four times as long for each count (2 µs against 0.5), and
only a page of text is needed. Nothing here locks: counting and rendering happen on one thread, that of the event loop.

Labels come from our tables, never from a message: a peer cannot create new series with invented methods.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from assay import __version__
from assay.model.limits import ASSET_TOOLS
from assay.model.verdict import Kind, Verdict
from assay.records.record import Status, status_of
from assay.rules import RULES
from assay.spec.extensions import extended_methods
from assay.spec.methods import methods
from assay.spec.revisions import REVISIONS

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of `Metrics.render`."""

OTHER: Final = "other"
"""The label for values that are in no table."""

METHODS: Final = frozenset(
    name for revision in REVISIONS for name in (*methods(revision), *extended_methods(revision))
).union(ASSET_TOOLS)
"""
Methods with their own label: those of all revisions and official extensions, and our own tools, which are also bare
methods (specs/001).
"""

BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Seconds. Our own tools fall in the first buckets, guarded servers in the middle, backends at the end."""

_ASKING: Final[frozenset[Kind]] = frozenset({"request", "notification"})

_MESSAGES: Final = "assay_messages_total"
_VIOLATIONS: Final = "assay_violations_total"
_DURATION: Final = "assay_request_duration_seconds"
_JOURNAL_FAILURES: Final = "assay_journal_failures_total"
_BUILD: Final = "assay_build_info"
_NAMES: Final = frozenset({_MESSAGES, _VIOLATIONS, _DURATION, _JOURNAL_FAILURES, _BUILD})


class Metrics:
    """The counts of one process."""

    content_type: Final = CONTENT_TYPE
    """The media type of the page that `render` returns."""

    def __init__(self) -> None:
        self._messages: dict[tuple[str, str, str, Status], int] = {}
        # Every rule is listed from the start: a rate needs the zero before the first count.
        self._violations = dict.fromkeys(RULES, 0)
        self._answered: dict[str, _Durations] = {}
        self._journal_failures = 0
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def heard(self, verdict: Verdict, transport: str, *, failed: bool = False) -> None:
        """
        Count a judged message; its status is that of the journal, with the same *failed*.

        The entries of a batch count one by one. A blank line does not count.
        """
        kind, value = verdict.kind, verdict.value
        if (
            verdict.findings is None
            and not failed
            # Our own results have no value: they are not parsed again.
            and (kind in _ASKING or (kind == "result" and (value is None or "isError" not in value["result"])))
        ):
            try:
                # A combination without a counter yet takes the slow path.
                self._messages[transport, verdict.party, verdict.method, "ok"] += 1  # type: ignore[index]  # None is no key
            except KeyError:
                self._count(verdict, transport, "ok")
        elif verdict.parts:
            for part in verdict.parts:
                self.heard(part, transport, failed=failed)
        elif kind != "blank":
            self._count(verdict, transport, status_of(verdict, failed=failed))

    def _count(self, verdict: Verdict, transport: str, status: Status) -> None:
        key = transport, str(verdict.party), method_label(verdict.method), status
        self._messages[key] = self._messages.get(key, 0) + 1
        for violation in verdict.violations:
            rule = violation.rule if violation.rule in RULES else OTHER
            self._violations[rule] = self._violations.get(rule, 0) + 1

    def answered(self, method: str | None, seconds: float) -> None:
        """Record that a request was answered or refused after *seconds*."""
        durations = self._answered.get(method) if method is not None else None
        if durations is None:
            durations = self._answered.setdefault(method_label(method), _Durations())
        durations.add(seconds)

    def exchanged(self, method: str, transport: str, seconds: float) -> None:
        """Count a good request and its good response after *seconds*, in half the time of two calls."""
        for party in ("client", "server"):
            try:
                self._messages[transport, party, method, "ok"] += 1
            except KeyError:
                key: tuple[str, str, str, Status] = (transport, party, method_label(method), "ok")
                self._messages[key] = self._messages.get(key, 0) + 1
        self.answered(method, seconds)

    def journal_failed(self, records: int = 1) -> None:
        """Count journal records that could not be written."""
        self._journal_failures += records

    def gauge(self, name: str, help: str, value: Callable[[], float]) -> None:  # noqa: A002 - Prometheus' own word
        """Add a gauge called *name*; *value* is called for each rendering."""
        if not name.isidentifier() or not name.isascii():
            raise ValueError(f"invalid name of a gauge: {name!r}")
        if name in self._gauges or name in _NAMES:
            raise ValueError(f"duplicate gauge: {name}")
        self._gauges[name] = help, value

    # ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def render(self) -> bytes:
        """Return all metrics in text format 0.0.4, in a stable order."""
        return "".join(f"{line}\n" for line in self._lines()).encode()

    def _lines(self) -> Iterator[str]:
        yield from _family(_MESSAGES, "counter", "Messages judged, by outcome.")
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
            shown = float("nan")
            # A gauge that fails must not hide the others.
            with suppress(Exception):
                shown = value()
            yield _sample(name, {}, shown)
        yield from _family(_BUILD, "gauge", "The running version; always 1.")
        yield _sample(_BUILD, {"version": __version__}, 1)

    def _durations(self) -> Iterator[str]:
        yield from _family(_DURATION, "histogram", "Seconds from a request to its response or refusal.")
        for method, durations in sorted(self._answered.items()):
            total = 0
            for bound, count in zip((*map(_number, BUCKETS), "+Inf"), durations.counts, strict=True):
                total += count
                yield _sample(f"{_DURATION}_bucket", {"method": method, "le": bound}, total)
            yield _sample(f"{_DURATION}_sum", {"method": method}, durations.sum)
            yield _sample(f"{_DURATION}_count", {"method": method}, total)


class _Durations:
    """A histogram of durations."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        # If the clock was set back, the sum must not decrease: Prometheus would treat that as a restart.
        if seconds > 0:
            self.sum += seconds
        self.counts[bisect_left(BUCKETS, seconds)] += 1


def method_label(method: str | None) -> str:
    """Return *method* if it is in a table, else `other`."""
    return method if method in METHODS and method is not None else OTHER


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

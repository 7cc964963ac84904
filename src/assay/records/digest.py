"""
What many records say together: findings in groups, figures by method and tool, and counts over time.

`assay check`, its reports and the console have their numbers from here. Memory is bounded whatever the records, and the
digests of parts can be merged. No I/O, no clock.
"""

import re
from collections import Counter, deque
from collections.abc import Iterator
from hashlib import sha256
from math import frexp, log2
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from assay.records.judged_records import JudgedRecord
from assay.records.outcomes import recorded_outcome
from assay.records.record import Finding, Record, RecordError

# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────────────

MOST_GROUPS: Final = 2000
"""Maximal number of groups: some 4 KB each. GitHub shows at most 5,000 results of a run."""

MOST_PLACES: Final = 10
"""Maximal places that are listed of one group: the first ones, and the last ones."""

_LONGEST_KEPT: Final = 4096
"""Characters of a message up to which a group keeps it."""

_NUMBER: Final = re.compile(r"(?<!\w)\d+(?!\w)")
"""A number by itself, unlike in ``tool2``: ids and indices differ between findings that are otherwise equal."""

Level = Literal["error", "warning"]
SEVERITY: Final[tuple[Level, ...]] = ("error", "warning")
"""The levels, the worst first."""


def level_of(finding: Finding) -> Level:
    """Return how severe a finding is."""
    return "warning" if finding.done in {"report", "repair", ""} else "error"


class FindingKey(NamedTuple):
    """The parts of a finding that are the same in every run: no line, no id, no index, no value."""

    rule: str
    party: str
    method: str
    tool: str
    entry: str
    """The entry of a list, such as ``tool search``; "" without one."""
    place: str
    """A JSON Pointer with ``*`` in place of every index."""
    server: str

    def __str__(self) -> str:
        words = (self.rule, self.party, self.method, self.tool or self.entry, self.place, self.server)
        return " ".join(each for each in words if each)

    @property
    def fingerprint(self) -> str:
        """The key as 32 hexadecimal digits. It is made of masked texts, so no secret can be guessed from it."""
        return sha256("\0".join(self).encode(errors="replace")).hexdigest()[:32]


def key_of(record: Record, finding: Finding) -> FindingKey:
    """Return the key of a finding of *record*."""
    metadata = record.metadata
    entry = "" if finding.entry is None else str(finding.entry)
    names = (record.method or "", metadata.tool or "", entry, finding.general_place, metadata.server)
    return FindingKey(finding.rule, str(metadata.party), *names)


class FindingPlace(NamedTuple):
    """Where a finding of a group is."""

    line: int
    at: str


class FindingGroup:
    """Findings of one file that differ only in lines, ids, indices and values."""

    def __init__(self, ident: int, key: FindingKey, message: JudgedRecord, finding: Finding, *, is_known: bool) -> None:
        self.id = ident
        """A number of its own among all groups, from 1 on."""
        self.key = key
        self.message, self.finding = _light(message), finding
        """The first finding, and its message, without its text if that is long."""
        self.is_known = is_known
        self.level = level_of(finding)
        self.count = 0
        self.places: list[FindingPlace] = []
        """The first places, without repeats."""
        self.lasts: deque[int] = deque(maxlen=MOST_PLACES)
        """The lines of the last messages with such a finding."""
        self.first = self.last = message.time
        """Seconds since 1970 of the first and the last one; None if they are unknown."""
        self.trend = Trend()
        self.blocked = self.would_block = self.quarantined = self.would_quarantine = 0
        """Messages that were blocked or lost an entry because of it, and that would have been under enforce."""

    @property
    def file(self) -> str:
        """The file of all its findings."""
        return self.message.file

    @property
    def subject(self) -> str:
        """What the findings are about, the same in every run: the entry of a list, the tool, or else the method."""
        entry = self.finding.entry
        return (entry.name if entry is not None else self.key.tool) or self.key.method or "message"

    def add(self, message: JudgedRecord, finding: Finding) -> None:
        """Count one finding."""
        self.count += 1
        self.level = min(self.level, level_of(finding), key=SEVERITY.index)
        place = FindingPlace(message.line, finding.at)
        if len(self.places) < MOST_PLACES and place not in self.places:
            self.places.append(place)
        time = message.time
        if time is not None:
            self.trend.add(time)
            self.first = time if self.first is None else min(self.first, time)
            self.last = time if self.last is None else max(self.last, time)
        if not self.lasts or self.lasts[-1] != message.line:
            self.lasts.append(message.line)
            # This is the first such finding of the message.
            outcome = recorded_outcome(message.record)
            if finding.stops and outcome.word == "blocked":
                self.would_block += outcome.is_forwarded
                self.blocked += not outcome.is_forwarded
            elif finding.done == "quarantine":
                self.would_quarantine += message.record.is_audited
                self.quarantined += not message.record.is_audited


def _light(message: JudgedRecord) -> JudgedRecord:
    """Return *message* without a long text: a group is kept, and there are many."""
    record, metadata = message.record, message.record.metadata
    if len(metadata.frame or metadata.frame_base64 or "") <= _LONGEST_KEPT:
        return message
    bare = replace(metadata, frame=None, frame_base64=None, omitted=True)
    return message._replace(record=replace(record, metadata=bare))


class FindingGroups:
    """All groups, in order of first appearance."""

    def __init__(self, *, by_text: bool = False) -> None:
        """With *by_text*, findings are apart that differ in their texts by more than a number."""
        self._by_text = by_text
        self._groups: dict[tuple[str, FindingKey, str, bool], FindingGroup] = {}
        self.left_out = 0
        """Findings of groups beyond the limit."""
        self.known = 0
        """Findings that the baseline has."""

    def add(self, message: JudgedRecord) -> list[FindingGroup]:
        """Add the findings of one message; return their groups, without repeats."""
        found: dict[int, FindingGroup] = {}
        for number, finding in enumerate(message.findings):
            is_known = number in message.known
            self.known += is_known
            key = key_of(message.record, finding)
            text = _NUMBER.sub("0", f"{finding.expected} {finding.found}") if self._by_text else ""
            place = (message.file, key, text, is_known)
            group = self._groups.get(place)
            if group is None:
                if len(self._groups) >= MOST_GROUPS:
                    self.left_out += 1
                    continue
                group = FindingGroup(len(self._groups) + 1, key, message, finding, is_known=is_known)
                self._groups[place] = group
            group.add(message, finding)
            found[group.id] = group
        return list(found.values())

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[FindingGroup]:
        return iter(self._groups.values())

    def new(self) -> list[FindingGroup]:
        """Return the groups that the baseline does not have, the worst first."""
        return sorted((each for each in self if not each.is_known), key=lambda each: SEVERITY.index(each.level))

    @property
    def rest(self) -> str:
        """A sentence about findings beyond the limit; "" without any."""
        return f"{self.left_out:,} other findings are not listed; --format ndjson lists all" if self.left_out else ""


# ── counts over time ─────────────────────────────────────────────────────────────────────────────────────────────────


_MOST_BUCKETS: Final = 48


class Trend:
    """
    Counts over time, in a bounded number of buckets whose width is a power of two of a millisecond.

    The width depends on the first and the last time only: it doubles until both fit. So the order does not matter.
    """

    __slots__ = ("_counts", "_shift")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._shift = 0

    @property
    def width(self) -> float:
        """The width of a bucket in seconds."""
        return (1 << self._shift) / 1000

    @property
    def start(self) -> float:
        """The start of the first bucket in seconds since 1970; 0 without any."""
        return (min(self._counts, default=0) << self._shift) / 1000

    @property
    def series(self) -> list[int]:
        """The numbers of all buckets from the first one on, without gaps."""
        first, last = min(self._counts, default=0), max(self._counts, default=-1)
        return [self._counts.get(each, 0) for each in range(first, last + 1)]

    def add(self, seconds: float) -> None:
        """Count one at a time in seconds since 1970."""
        bucket = int(seconds * 1000) >> self._shift
        is_new = bucket not in self._counts
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        while is_new and (span := max(self._counts) - min(self._counts) + 1) > _MOST_BUCKETS:
            # The number of bits by which the span is too long, then one more if that was not enough.
            by = max(1, frexp(span / _MOST_BUCKETS)[1] - 1)
            before, self._counts = self._counts, {}
            self._shift += by
            for each, number in before.items():
                self._counts[each >> by] = self._counts.get(each >> by, 0) + number


MINUTE: Final = 60
"""Seconds of a rate."""

_PARTS: Final = 12


class RateWindow:
    """Counts by second of the last minute."""

    __slots__ = ("_counts", "_newest")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._newest = 0

    def add(self, at: float) -> None:
        """Count one at the time *at*, in seconds."""
        second = int(at)
        if second > self._newest - MINUTE:
            self._counts[second] = self._counts.get(second, 0) + 1
            self._newest = max(self._newest, second)
            if len(self._counts) > 2 * MINUTE:
                self._counts = {each: n for each, n in self._counts.items() if each > self._newest - MINUTE}

    def per_minute(self, now: float) -> int:
        """Return how many there were in the last minute."""
        return sum(count for second, count in self._counts.items() if now - MINUTE < second <= now)

    def series(self, now: float) -> list[int]:
        """Return the counts of the last minute in twelve parts, oldest first."""
        made = [0] * _PARTS
        for second, count in self._counts.items():
            age = int(now) - second
            if 0 <= age < MINUTE:
                made[_PARTS - 1 - age * _PARTS // MINUTE] += count
        return made


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_STEPS: Final = 8
"""Buckets for each power of two: the limits of a bucket are 9 % apart, so its middle is within 4.5 % of each value."""

_LAST_BUCKET: Final = 64 * _STEPS
"""The last bucket, for everything from 2**64 on."""


class LogHistogram:
    """Whole numbers from 0 on, such as microseconds or bytes, counted in buckets of a fixed ratio."""

    __slots__ = ("buckets", "count", "least", "most", "total")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.count = self.total = 0
        self.least: int | None = None
        self.most: int | None = None

    def add(self, value: int) -> None:
        """Count one value."""
        bucket = _bucket(value)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        self.count += 1
        self.total += value
        self.least = value if self.least is None else min(self.least, value)
        self.most = value if self.most is None else max(self.most, value)

    def merge(self, other: "LogHistogram") -> None:
        """Add the values of *other*."""
        if other.least is None or other.most is None:
            return
        for bucket, number in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + number
        self.count += other.count
        self.total += other.total
        self.least = other.least if self.least is None else min(self.least, other.least)
        self.most = other.most if self.most is None else max(self.most, other.most)

    def quantile(self, part: float) -> float:
        """Return the value that *part* of all values do not exceed, within 4.5 %."""
        left = part * self.count
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                middle = 2 ** ((bucket - 0.5) / _STEPS) if bucket else 0.0
                return min(max(float(middle), self.least or 0), self.most or 0)
        return self.most or 0

    def bounds(self) -> list[tuple[float, int]]:
        """Return the upper bound and the number of each bucket that is not empty, in order."""
        return [(round(float(2 ** (each / _STEPS)), 3), self.buckets[each]) for each in sorted(self.buckets)]


def _bucket(value: int) -> int:
    if value < 1:
        return 0
    # A whole number may be too large for a float.
    power = log2(value) if value < 1 << 64 else 64
    return min(1 + int(power * _STEPS), _LAST_BUCKET)


_MOST_CODES: Final = 50
"""Maximal error codes of one method: a server can choose a new one for each error."""

_MOST_MICROSECONDS: Final = 10**10
"""The longest duration that is distinguished, some hours."""


class FigureKey(NamedTuple):
    """What has figures of its own."""

    server: str
    party: str
    """The sender of the request or notification."""
    method: str
    tool: str


def figure_key(record: Record) -> FigureKey:
    """Return where *record* is counted."""
    metadata = record.metadata
    asker = metadata.party.other if record.is_answer else metadata.party
    method = f"({metadata.kind})" if record.method is None else record.method
    return FigureKey(metadata.server, str(asker), method, metadata.tool or "")


class Figures:
    """The figures of one method, or of one tool."""

    __slots__ = ("answers", "codes", "guard", "latency", "sent")

    def __init__(self) -> None:
        self.codes: Counter[str] = Counter()
        """Answers that report a failure, by its code."""
        self.latency = LogHistogram()
        """Microseconds from the request to its answer, where both have a time."""
        self.guard = LogHistogram()
        """Microseconds until a request was forwarded."""
        self.sent = LogHistogram()
        """Bytes of requests and notifications."""
        self.answers = LogHistogram()
        """Bytes of results and errors."""

    def add(self, record: Record, latency: float | None) -> None:
        """Count one message; *latency* in milliseconds since its request, if it is an answer and that is known."""
        kind = record.metadata.kind
        if not record.is_answer:
            self.sent.add(record.input_bytes)
            if kind == "request":
                self.guard.add(_micros(record.duration_ms))
            return
        if kind != "missing":
            self.answers.add(record.input_bytes)
        if recorded_outcome(record).word in {"failed", "blocked"} and (kind != "missing" or record.findings):
            code = _code_of(record.error)
            self.codes[code if code in self.codes or len(self.codes) < _MOST_CODES else "others"] += 1
        if latency is not None:
            self.latency.add(_micros(latency))

    def merge(self, other: "Figures") -> None:
        """Add the messages of *other*."""
        self.codes.update(other.codes)
        self.latency.merge(other.latency)
        self.guard.merge(other.guard)
        self.sent.merge(other.sent)
        self.answers.merge(other.answers)


def _code_of(error: RecordError | None) -> str:
    """Return the code of an error: its canonical name, its number, or that it is the failed result of a tool."""
    if error is None or (error.code is None and error.jsonrpc_code is None):
        return "isError"
    return error.code or str(error.jsonrpc_code)


def _micros(milliseconds: float) -> int:
    return min(max(0, round(milliseconds * 1000)), _MOST_MICROSECONDS)

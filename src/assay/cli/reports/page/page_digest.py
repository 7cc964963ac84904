"""
What the HTML report keeps of all messages: counts, histograms, and samples. No I/O, no clock.

Memory is bounded, whatever the input. Digests of parts can be merged: the result is the same as that of one digest over
everything, as long as the messages of a conversation are in one part, or in several in their order.
"""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from math import frexp
from typing import Any, Final, NamedTuple

from assay.base.verdict import Party, Verdict
from assay.cli.reports.check_findings import LONGEST_NAME, SEVERITY, CheckedMessage, CheckFinding, cut
from assay.cli.reports.check_report import FileEnd
from assay.cli.reports.page.page_groups import PageGroup, PageGroupKey, PageSample, group_key, group_rank
from assay.cli.reports.page.page_talks import PageTalk
from assay.cli.reports.page.page_tools import PageTool, compact, listed_tools, tokens_of
from assay.cli.reports.page.shown_message import message_text, shown_message
from assay.cli.reports.page.smallest import DistinctCount, Smallest, rank
from assay.cli.terminal.verdicts import title
from assay.core.redaction import Redactor
from assay.records.log_histogram import LogHistogram
from assay.spec.methods import revisions_of

_MOST_BUCKETS: Final = 240
"""Bars that a chart can show."""


class TimeBuckets:
    """
    Messages over time, in at most 240 buckets whose width is a power of two of a millisecond.

    The width depends on the first and the last time only: it doubles until both fit.
    """

    __slots__ = ("_counts", "_shift")

    def __init__(self) -> None:
        self._counts: dict[int, list[int]] = {}
        self._shift = 0

    def add(self, milliseconds: int, *, has_findings: bool) -> None:
        """Count one message."""
        if self._count(milliseconds >> self._shift, 1, int(has_findings)):
            self._fit()

    def merge(self, other: "TimeBuckets") -> None:
        """Add the messages of *other*."""
        self._coarsen(other._shift - self._shift)
        for bucket, (messages, faulty) in other._counts.items():
            self._count(bucket >> (self._shift - other._shift), messages, faulty)
        self._fit()

    def as_json(self) -> list[list[int]]:
        """Return the start of each bucket that is not empty, in milliseconds since 1970, and its numbers."""
        return [[bucket << self._shift, *numbers] for bucket, numbers in sorted(self._counts.items())]

    @property
    def width(self) -> int:
        """The width of a bucket in milliseconds."""
        return 1 << self._shift

    def _count(self, bucket: int, messages: int, faulty: int) -> bool:
        """Count messages; return whether the bucket is new."""
        found = self._counts.get(bucket)
        if found is None:
            self._counts[bucket] = [messages, faulty]
            return True
        found[0] += messages
        found[1] += faulty
        return False

    def _fit(self) -> None:
        if len(self._counts) < 2:
            return
        first, last = min(self._counts), max(self._counts)
        if last - first >= _MOST_BUCKETS:
            # The number of bits by which the span is too long, then one more if that was not enough.
            by = max(1, frexp((last - first + 1) / _MOST_BUCKETS)[1] - 1)
            self._coarsen(by)
            self._fit()

    def _coarsen(self, by: int) -> None:
        if by <= 0:
            return
        before, self._counts = self._counts, {}
        self._shift += by
        for bucket, (messages, faulty) in before.items():
            self._count(bucket >> by, messages, faulty)


class MethodFigures:
    """The figures of one method, or of one tool."""

    __slots__ = (
        "answers",
        "errors",
        "failed",
        "findings",
        "latency",
        "notifications",
        "requests",
        "sent",
        "unanswered",
    )

    def __init__(self) -> None:
        self.requests = self.notifications = self.errors = self.failed = self.unanswered = self.findings = 0
        self.latency = LogHistogram()
        """Microseconds from the request to its answer, where both have a time."""
        self.sent = LogHistogram()
        """Bytes of requests and notifications."""
        self.answers = LogHistogram()
        """Bytes of results and errors."""

    def add(self, verdict: Verdict, findings: int, microseconds: int | None) -> None:
        """Count one message; *microseconds* since its request, if it is an answer and both times are known."""
        kind = verdict.kind
        self.findings += findings
        if kind == "missing":
            self.unanswered += bool(verdict.violations)
            return
        if kind in {"result", "error"}:
            self.answers.add(len(verdict.frame))
            # A server before 2026-07-28 does not know the first request of newer clients, which is not its failure.
            self.errors += kind == "error" and verdict.method != "server/discover"
            self.failed += kind == "result" and _has_failed(verdict.value)
            if microseconds is not None:
                self.latency.add(microseconds)
            return
        self.sent.add(len(verdict.frame))
        self.requests += kind == "request"
        self.notifications += kind == "notification"

    def merge(self, other: "MethodFigures") -> None:
        """Add the messages of *other*."""
        for name in ("requests", "notifications", "errors", "failed", "unanswered", "findings"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("latency", "sent", "answers"):
            getattr(self, name).merge(getattr(other, name))

    def as_json(self) -> dict[str, Any]:
        """Return the figures for a page."""
        counts = ("requests", "notifications", "errors", "failed", "unanswered", "findings")
        spread = ("latency", "sent", "answers")
        return {name: getattr(self, name) for name in counts} | {name: getattr(self, name).as_json() for name in spread}


def _has_failed(value: Any) -> bool:
    """Whether a result of a call says that the tool failed."""
    result = value.get("result") if isinstance(value, dict) else None
    return isinstance(result, dict) and result.get("isError") is True


MOST_GROUPS: Final = 1000
"""Groups of findings that a page has: some 10 KB each, with their samples."""

MOST_KNOWN: Final = 10_000
"""Groups of findings that the baseline has, to count."""

EXCERPT: Final = 4000
"""Characters of a sample message, if it is not one of those that are kept in full."""

MOST_WHOLE: Final = 100
WHOLE: Final = 48_000
"""Messages that are kept in full, and the characters of each. Longer ones are cut, even of these."""

MOST_TALKS: Final = 100
MOST_FAULTY_TALKS: Final = 50
"""Conversations that are kept, and further ones with findings."""

MOST_METHODS: Final = 300
"""Pairs of method and tool with figures of their own, for each server."""

MOST_TOOLS: Final = 500
MOST_FILES: Final = 1000
MOST_LARGEST: Final = 10
MOST_SERVERS: Final = 50

_MOST_REVISIONS: Final = 50

_LATEST: Final = 1e11
"""Seconds since 1970 that are still a time. Recordings have anything."""


class NameMask:
    """Masks secrets in names and titles, which repeat. It can be sent to another process."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self._masked: Callable[[str], str] = lru_cache(4096)(redactor.text)

    def __call__(self, name: str) -> str:
        """Return a name that a peer chose, short and without secrets."""
        return self._masked(cut(name, LONGEST_NAME))

    def text(self, text: str) -> str:
        """Return a text of limited length without secrets."""
        return self.redactor.text(text)

    def __reduce__(self) -> tuple[type["NameMask"], tuple[Redactor]]:
        return NameMask, (self.redactor,)


class FigureKey(NamedTuple):
    """What has figures of its own."""

    server: str
    party: str
    """The sender of the request or notification."""
    method: str
    tool: str


class TalkKey(NamedTuple):
    """One conversation."""

    file: str
    server: str
    number: int
    recording: int
    """The line with which its recording begins: the next one in the file has the same numbers."""


class LargeMessage(NamedTuple):
    """One of the largest messages; the largest is the smallest of them."""

    minus_size: int
    file: str
    line: int
    party: str
    title: str


class PageDigest:
    """Everything that the page shows."""

    def __init__(self, redactor: Redactor) -> None:
        self._name = NameMask(redactor)
        self.outcomes: Counter[str] = Counter()
        self._levels: Counter[str] = Counter()
        self.known: Counter[PageGroupKey] = Counter()
        """Findings that the baseline has, by group. Only the process that has the baseline counts them."""
        self.rules: Counter[str] = Counter()
        self.blocked: Counter[str] = Counter()
        """Messages that enforce mode blocks, by what they are."""
        self.quarantined: dict[str, DistinctCount] = {}
        """Entries of lists that enforce mode quarantines, by kind."""
        self.revisions: Counter[str] = Counter()
        self.bytes = 0
        self.timed = 0
        """Messages that have a time."""
        self.period: tuple[float, float] | None = None
        """Milliseconds since 1970 of the first and the last message."""
        self.activity = TimeBuckets()
        self.conversations = DistinctCount()
        self.servers: Smallest[str, None] = Smallest(MOST_SERVERS)
        self.groups: Smallest[PageGroupKey, PageGroup] = Smallest(MOST_GROUPS)
        self.whole: Smallest[int, dict[str, Any]] = Smallest(MOST_WHOLE)
        """Texts of messages in full, by the rank of the message."""
        self.talks: Smallest[TalkKey, PageTalk] = Smallest(MOST_TALKS)
        self.faulty_talks: Smallest[TalkKey, PageTalk] = Smallest(MOST_FAULTY_TALKS)
        self.figures: Smallest[FigureKey, MethodFigures] = Smallest(MOST_METHODS)
        self.tools: Smallest[tuple[str, str], PageTool] = Smallest(MOST_TOOLS)
        self.lists = LogHistogram()
        """Tokens of each list of tools, or of each page of one."""
        self.largest: list[LargeMessage] = []
        self.files: list[FileEnd] = []
        self.more_files: Counter[str] = Counter()
        """The number of further files, and of those with problems."""

    # ── one message ──────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, message: CheckedMessage) -> None:
        """Add one message, with or without findings."""
        verdict, seconds = message.judged.verdict, message.judged.time
        is_timed = seconds is not None and 0 <= seconds < _LATEST
        micros = round(seconds * 1e6) if is_timed and seconds is not None else None
        time = None if micros is None else micros / 1000
        self._count(message, verdict)
        if time is not None:
            self._seen_at(time, has_findings=bool(message.findings))
        self._figure(message, verdict, micros)
        self._talk(message, time)
        if verdict.kind == "result" and verdict.method == "tools/list":
            self._list(message)
        if message.findings:
            self._find(message, time)

    def _count(self, message: CheckedMessage, verdict: Verdict) -> None:
        is_missing = verdict.kind == "missing"
        self.outcomes["missing" if is_missing else message.outcome] += 1
        if verdict.revision is not None and (
            verdict.revision in self.revisions or len(self.revisions) < _MOST_REVISIONS
        ):
            self.revisions[verdict.revision] += 1
        if not is_missing:
            self.bytes += len(verdict.frame)
            self._measure(message, verdict)
        if message.outcome == "blocked" and not is_missing:
            self.blocked[_blocked(verdict)] += 1
        for entry in verdict.quarantined:
            self.quarantined.setdefault(entry.kind, DistinctCount(1024)).add(rank(message.server, entry.name))

    def _measure(self, message: CheckedMessage, verdict: Verdict) -> None:
        size = -len(verdict.frame)
        if len(self.largest) == MOST_LARGEST and size > self.largest[-1].minus_size:
            return
        shown = LargeMessage(size, message.file, message.judged.line, str(verdict.party), self._title(verdict))
        self.largest = sorted([*self.largest, shown])[:MOST_LARGEST]

    def _seen_at(self, time: float, *, has_findings: bool) -> None:
        self.timed += 1
        first, last = self.period or (time, time)
        self.period = (min(first, time), max(last, time))
        self.activity.add(int(time), has_findings=has_findings)

    def _title(self, verdict: Verdict) -> str:
        return self._name.text(title(verdict))

    # ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _figure(self, message: CheckedMessage, verdict: Verdict, micros: int | None) -> None:
        took = _latency(verdict, micros)
        method = verdict.method
        tool = verdict.tool
        key = FigureKey(
            message.server,
            str(_asker(verdict)),
            f"({verdict.kind})" if method is None else self._name(method),
            "" if tool is None else self._name(tool),
        )
        figures = self.figures.get(key)
        if figures is None:
            # Methods of the protocol come first: a peer can invent any number of others.
            priority = (0 if not key.tool and revisions_of(key.method) else 1, rank(*key))
            if not self.figures.admits(priority):
                return
            figures = MethodFigures()
            self.figures.put(key, priority, figures)
        figures.add(verdict, len(message.findings), took)

    def _list(self, message: CheckedMessage) -> None:
        """Add the tools of a list."""
        tokens = 0
        for name, tool in listed_tools(message.judged.verdict):
            text = compact(tool)
            tokens += tokens_of(len(text))
            self._tool(message, name, tool, text)
        self.lists.add(tokens)

    def _tool(self, message: CheckedMessage, name: str, tool: dict[str, Any], text: str) -> None:
        key = (message.server, self._name(name))
        found = self.tools.get(key)
        if found is None:
            priority = (rank(*key),)
            if not self.tools.admits(priority):
                return
            found = PageTool()
            self.tools.put(key, priority, found)
        found.add((message.file, message.judged.line), tool, text, self._name.text)

    # ── conversations ────────────────────────────────────────────────────────────────────────────────────────────────

    def _talk(self, message: CheckedMessage, time: float | None) -> None:
        judged = message.judged
        key = TalkKey(message.file, message.server, judged.conversation, judged.recording)
        known, faulty = self.talks.get(key), self.faulty_talks.get(key)
        if known is None and faulty is None:
            ranked = rank(*key)
            self.conversations.add(ranked)
            if message.server and self.servers.get(message.server) is None:
                self._server(message.server)
            known = self._kept(self.talks, key, ranked)
        if faulty is None and message.findings:
            # By another rank: the first ones by the same are kept already.
            faulty = self._kept(self.faulty_talks, key, rank("faulty", *key))
            if faulty is not None:
                faulty.is_since_finding = True
        for talk in (known, faulty):
            if talk is not None:
                talk.add(message, time, lambda: self._title(message.judged.verdict), self._name)

    @staticmethod
    def _kept(talks: Smallest[TalkKey, PageTalk], key: TalkKey, ranked: int) -> PageTalk | None:
        if not talks.admits((ranked,)):
            return None
        talk = PageTalk(key.file, key.server, key.number)
        talks.put(key, (ranked,), talk)
        return talk

    def _server(self, server: str) -> None:
        priority = (rank(server),)
        if self.servers.admits(priority):
            self.servers.put(server, priority, None)

    # ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _find(self, message: CheckedMessage, time: float | None) -> None:
        ident = _ident(message)
        samples = _Samples(self, message, ident, time)
        self._keep_whole(message, ident)
        for number, finding in enumerate(message.findings):
            self.rules[finding.violation.rule] += 1
            self._levels[finding.level] += 1
            self._group(finding, number, ident, time, samples)

    def _group(self, finding: CheckFinding, number: int, ident: int, time: float | None, samples: "_Samples") -> None:
        key = group_key(finding)
        group = self.groups.get(key)
        if group is None:
            priority = (SEVERITY.index(finding.level), group_rank(key))
            if not self.groups.admits(priority):
                return
            group = PageGroup()
            self.groups.put(key, priority, group)
        is_first = group.add(finding, ident, time)
        is_sample = group.samples.get(ident) is None and group.samples.admits((ident,))
        if not is_first and not is_sample:
            return
        sample = samples.of(number)
        if sample is None:
            return
        if is_first:
            group.first_sample = sample
        if is_sample:
            group.samples.put(ident, (ident,), sample)

    def _keep_whole(self, message: CheckedMessage, ident: int) -> None:
        """Keep the whole text of a long message, if it is one of those: by level, then by rank, as samples are."""
        priority = (min(SEVERITY.index(each.level) for each in message.findings), ident)
        if len(message.judged.verdict.frame) > EXCERPT and self.whole.admits(priority):
            findings: list[dict[str, Any]] = [{"at": each.violation.at} for each in message.findings]
            text = message_text(message.judged.verdict, self._name.redactor, WHOLE, findings)
            spans = [each.get("span") for each in findings]
            self.whole.put(ident, priority, {**text, "spans": spans})

    def shown(self, message: CheckedMessage, time: float | None) -> dict[str, Any]:
        """Return a message for the page."""
        return shown_message(message, self._title(message.judged.verdict), time, self._name.redactor, EXCERPT)

    def know(self, message: CheckedMessage) -> None:
        """Note which findings of a message the baseline has. Another digest may have the message itself."""
        for finding in message.findings:
            key = group_key(finding)
            if finding.is_known and (key in self.known or len(self.known) < MOST_KNOWN):
                self.known[key] += 1

    @property
    def levels(self) -> Counter[str]:
        """Findings by level, without those that the baseline has."""
        known: Counter[str] = Counter()
        for key, number in self.known.items():
            known[key.level] += number
        return self._levels - known

    # ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def end(self, ended: FileEnd) -> None:
        """Add a file that was judged."""
        if len(self.files) < MOST_FILES:
            self.files.append(ended)
            return
        self.more_files["files"] += 1
        self.more_files["problems"] += ended.error is not None or ended.is_partial

    def merge(self, other: "PageDigest") -> None:
        """Add everything of *other*, which has later files, or other conversations of the same ones."""
        for name in ("outcomes", "_levels", "known", "rules", "blocked", "revisions", "more_files"):
            getattr(self, name).update(getattr(other, name))
        for name in ("bytes", "timed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.period is not None:
            own = self.period or other.period
            self.period = (min(own[0], other.period[0]), max(own[1], other.period[1]))
        for kind, entries in other.quarantined.items():
            self.quarantined.setdefault(kind, DistinctCount(1024)).merge(entries)
        self.activity.merge(other.activity)
        self.lists.merge(other.lists)
        self.conversations.merge(other.conversations)
        self.servers.merge(other.servers, _same)
        self.groups.merge(other.groups, PageGroup.merge)
        self.whole.merge(other.whole, _same)
        self.talks.merge(other.talks, PageTalk.merge)
        self.faulty_talks.merge(other.faulty_talks, PageTalk.merge)
        self.figures.merge(other.figures, MethodFigures.merge)
        self.tools.merge(other.tools, PageTool.merge)
        self.largest = sorted([*self.largest, *other.largest])[:MOST_LARGEST]
        for each in other.files:
            self.end(each)


class _Samples:
    """The samples of one message, which is made for the page only if one of its findings is kept."""

    def __init__(self, digest: PageDigest, message: CheckedMessage, ident: int, time: float | None) -> None:
        self._digest, self._message, self._ident, self._time = digest, message, ident, time
        self._shown: dict[str, Any] | None = None

    def of(self, number: int) -> PageSample | None:
        """Return the finding with this number; None if the page does not have it."""
        if self._shown is None:
            self._shown = self._digest.shown(self._message, self._time)
        return PageSample(self._ident, self._shown, number) if number < len(self._shown["findings"]) else None


def _same(_: object, __: object) -> None:
    """Keep the first of two equal values."""


def _ident(message: CheckedMessage) -> int:
    """Return the rank of a message, by which samples are chosen."""
    judged = message.judged
    return rank(message.file, judged.line, judged.conversation, judged.verdict.party, judged.verdict.kind,
                title(judged.verdict), judged.verdict.frame[:1024])  # fmt: skip


def _asker(verdict: Verdict) -> Party:
    if verdict.exchange is not None:
        return verdict.exchange.asker
    return verdict.party.other if verdict.kind in {"result", "error", "missing"} else verdict.party


def _latency(verdict: Verdict, micros: int | None) -> int | None:
    """Return the microseconds since the request of an answer; None if they are unknown. A request notes its time."""
    exchange = verdict.exchange
    if exchange is None or micros is None:
        return None
    if verdict.kind == "request":
        exchange.asked_at = micros
        return None
    took = micros - exchange.asked_at
    # Without the time of the request it is minus infinity; a clock that was set back gives less than 0.
    return int(took) if verdict.kind in {"result", "error"} and took >= 0 else None


_BLOCKED: Final = {"blank": "blank line", "unreadable": "unreadable message"}


def _blocked(verdict: Verdict) -> str:
    if verdict.kind == "request" and verdict.method == "tools/call":
        return "call"
    return _BLOCKED.get(verdict.kind, str(verdict.kind))

"""
What the HTML report keeps of all messages: counts, histograms, and samples. No I/O, no clock.

Memory is bounded, whatever the input. Digests of parts can be merged: the result is the same as that of one digest over
everything, as long as the messages of a conversation are in one part, or in several in their order.
"""

from collections import Counter
from typing import Any, Final, NamedTuple

from assay.cli.reports.page.page_groups import PageGroup, PageGroupKey, PageSample, group_key, group_rank
from assay.cli.reports.page.page_talks import PageTalk
from assay.cli.reports.page.page_tools import PageTool, compact, listed_tools, tokens_of
from assay.cli.reports.page.shown_message import message_text, name_of, shown_message, title_of
from assay.cli.reports.page.smallest import DistinctCount, Smallest, rank
from assay.records.digest import SEVERITY, FigureKey, Figures, Trend, figure_key, level_of
from assay.records.judged_records import JudgedRecord
from assay.records.log_histogram import LogHistogram
from assay.records.outcomes import recorded_outcome
from assay.records.record import Finding, Record

MOST_BUCKETS: Final = 240
"""Bars that a chart can show."""

MOST_GROUPS: Final = 1000
"""Groups of findings that a page has: some 10 KB each, with their samples."""

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

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self._levels: Counter[str] = Counter()
        self.known: Counter[PageGroupKey] = Counter()
        """Findings that the baseline has, by group: known after the last file."""
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
        self.activity, self.faulty = Trend(MOST_BUCKETS), Trend(MOST_BUCKETS)
        """Messages over time, and those with findings."""
        self.conversations = DistinctCount()
        self.servers: Smallest[str, None] = Smallest(MOST_SERVERS)
        self.groups: Smallest[PageGroupKey, PageGroup] = Smallest(MOST_GROUPS)
        self.whole: Smallest[int, dict[str, Any]] = Smallest(MOST_WHOLE)
        """Texts of messages in full, by the rank of the message."""
        self.talks: Smallest[TalkKey, PageTalk] = Smallest(MOST_TALKS)
        self.faulty_talks: Smallest[TalkKey, PageTalk] = Smallest(MOST_FAULTY_TALKS)
        self.figures: Smallest[FigureKey, Figures] = Smallest(MOST_METHODS)
        self.tools: Smallest[tuple[str, str], PageTool] = Smallest(MOST_TOOLS)
        self.lists = LogHistogram()
        """Tokens of each list of tools, or of each page of one."""
        self.largest: list[LargeMessage] = []

    # ── one message ──────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, message: JudgedRecord) -> None:
        """Add one message, with or without findings."""
        record = message.record
        time = None if message.time is None else round(message.time * 1e6) / 1000
        self._count(message, record)
        if time is not None:
            self._seen_at(time, has_findings=bool(message.findings))
        self._figure(message, record)
        self._talk(message, time)
        if record.metadata.kind == "result" and record.method == "tools/list":
            self._list(message)
        if message.findings:
            self._find(message, time)

    def _count(self, message: JudgedRecord, record: Record) -> None:
        metadata, outcome = record.metadata, recorded_outcome(record).word
        is_missing = metadata.kind == "missing"
        self.outcomes["missing" if is_missing else outcome] += 1
        if metadata.revision is not None and (
            metadata.revision in self.revisions or len(self.revisions) < _MOST_REVISIONS
        ):
            self.revisions[metadata.revision] += 1
        if not is_missing:
            self.bytes += record.input_bytes
            self._measure(message, record)
        if outcome == "blocked" and not is_missing:
            self.blocked[_blocked(record)] += 1
        for entry in record.quarantined:
            self.quarantined.setdefault(entry.kind, DistinctCount(1024)).add(rank(metadata.server, entry.name))

    def _measure(self, message: JudgedRecord, record: Record) -> None:
        size = -record.input_bytes
        if len(self.largest) == MOST_LARGEST and size > self.largest[-1].minus_size:
            return
        shown = LargeMessage(size, message.file, message.line, str(record.metadata.party), title_of(record))
        self.largest = sorted([*self.largest, shown])[:MOST_LARGEST]

    def _seen_at(self, time: float, *, has_findings: bool) -> None:
        self.timed += 1
        first, last = self.period or (time, time)
        self.period = (min(first, time), max(last, time))
        self.activity.add(time / 1000)
        if has_findings:
            self.faulty.add(time / 1000)

    # ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _figure(self, message: JudgedRecord, record: Record) -> None:
        key = figure_key(record)
        figures = self.figures.get(key)
        if figures is None:
            # Methods of the protocol come first: a peer can invent any number of others.
            priority = (int(key.is_invented), rank(*key))
            if not self.figures.admits(priority):
                return
            figures = Figures()
            self.figures.put(key, priority, figures)
        figures.add(record, message.latency)

    def _list(self, message: JudgedRecord) -> None:
        """Add the tools of a list."""
        tokens = 0
        for name, tool in listed_tools(message.record):
            text = compact(tool)
            tokens += tokens_of(len(text))
            self._tool(message, name, tool, text)
        self.lists.add(tokens)

    def _tool(self, message: JudgedRecord, name: str, tool: dict[str, Any], text: str) -> None:
        key = (message.record.metadata.server, name_of(name))
        found = self.tools.get(key)
        if found is None:
            priority = (rank(*key),)
            if not self.tools.admits(priority):
                return
            found = PageTool()
            self.tools.put(key, priority, found)
        found.add((message.file, message.line), tool, text)

    # ── conversations ────────────────────────────────────────────────────────────────────────────────────────────────

    def _talk(self, message: JudgedRecord, time: float | None) -> None:
        server = message.record.metadata.server
        key = TalkKey(message.file, server, message.conversation, message.recording)
        known, faulty = self.talks.get(key), self.faulty_talks.get(key)
        if known is None and faulty is None:
            ranked = rank(*key)
            self.conversations.add(ranked)
            if server and self.servers.get(server) is None:
                self._server(server)
            known = self._kept(self.talks, key, ranked)
        if faulty is None and message.findings:
            # By another rank: the first ones by the same are kept already.
            faulty = self._kept(self.faulty_talks, key, rank("faulty", *key))
            if faulty is not None:
                faulty.is_since_finding = True
        for talk in (known, faulty):
            if talk is not None:
                talk.add(message, time)

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

    def _find(self, message: JudgedRecord, time: float | None) -> None:
        ident = _ident(message)
        samples = _Samples(message, ident, time)
        self._keep_whole(message, ident)
        for number, finding in enumerate(message.findings):
            self.rules[finding.rule] += 1
            self._levels[level_of(finding)] += 1
            self._group(message, finding, number, samples)

    def _group(self, message: JudgedRecord, finding: Finding, number: int, samples: "_Samples") -> None:
        key, ident = group_key(message, finding), samples.ident
        group = self.groups.get(key)
        if group is None:
            priority = (SEVERITY.index(key.level), group_rank(key))
            if not self.groups.admits(priority):
                return
            group = PageGroup()
            self.groups.put(key, priority, group)
        is_first = group.add(message.file, message.line, ident, samples.time)
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

    def _keep_whole(self, message: JudgedRecord, ident: int) -> None:
        """Keep the whole text of a long message, if it is one of those: by level, then by rank, as samples are."""
        priority = (min(SEVERITY.index(level_of(each)) for each in message.findings), ident)
        if message.record.input_bytes > EXCERPT and self.whole.admits(priority):
            findings: list[dict[str, Any]] = [{"at": each.at} for each in message.findings]
            text = message_text(message.record, WHOLE, findings)
            spans = [each.get("span") for each in findings]
            self.whole.put(ident, priority, {**text, "spans": spans})

    @property
    def levels(self) -> Counter[str]:
        """Findings by level, without those that the baseline has."""
        known: Counter[str] = Counter()
        for key, number in self.known.items():
            known[key.level] += number
        return self._levels - known

    # ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def merge(self, other: "PageDigest") -> None:
        """Add everything of *other*, which has later files, or other conversations of the same ones."""
        for name in ("outcomes", "_levels", "rules", "blocked", "revisions"):
            getattr(self, name).update(getattr(other, name))
        for name in ("bytes", "timed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.period is not None:
            own = self.period or other.period
            self.period = (min(own[0], other.period[0]), max(own[1], other.period[1]))
        for kind, entries in other.quarantined.items():
            self.quarantined.setdefault(kind, DistinctCount(1024)).merge(entries)
        self.activity.merge(other.activity)
        self.faulty.merge(other.faulty)
        self.lists.merge(other.lists)
        self.conversations.merge(other.conversations)
        self.servers.merge(other.servers, _same)
        self.groups.merge(other.groups, PageGroup.merge)
        self.whole.merge(other.whole, _same)
        self.talks.merge(other.talks, PageTalk.merge)
        self.faulty_talks.merge(other.faulty_talks, PageTalk.merge)
        self.figures.merge(other.figures, Figures.merge)
        self.tools.merge(other.tools, PageTool.merge)
        self.largest = sorted([*self.largest, *other.largest])[:MOST_LARGEST]


class _Samples:
    """The samples of one message, which is made for the page only if one of its findings is kept."""

    def __init__(self, message: JudgedRecord, ident: int, time: float | None) -> None:
        self._message, self.ident, self.time = message, ident, time
        self._shown: dict[str, Any] | None = None

    def of(self, number: int) -> PageSample | None:
        """Return the finding with this number; None if the page does not have it."""
        if self._shown is None:
            self._shown = shown_message(self._message, self.time, EXCERPT)
        return PageSample(self.ident, self._shown, number) if number < len(self._shown["findings"]) else None


def _same(_: object, __: object) -> None:
    """Keep the first of two equal values."""


def _ident(message: JudgedRecord) -> int:
    """Return the rank of a message, by which samples are chosen."""
    record, metadata = message.record, message.record.metadata
    return rank(message.file, message.line, message.conversation, metadata.party, metadata.kind,
                title_of(record), (record.frame or b"")[:1024])  # fmt: skip


_BLOCKED: Final = {"blank": "blank line", "unreadable": "unreadable message"}


def _blocked(record: Record) -> str:
    kind = record.metadata.kind
    return "call" if kind == "request" and record.method == "tools/call" else _BLOCKED.get(kind, kind)

"""Evidence that `assay check` judges: journals, and recordings of the guard and of other programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from assay.base.printable import plain
from assay.base.verdict import Party, Verdict
from assay.cli.checking.check_stream import ChangedVerdict, UnitEnd
from assay.cli.checking.evidence_files import is_read_once
from assay.cli.terminal.journal_table import title
from assay.contracts.tool_contracts import Tools
from assay.core.conversation import Conversation
from assay.core.lifecycle import preferred, spoken
from assay.records.importers.importer import Importer, ImportOptions, loosely, seconds
from assay.records.importers.importer_table import BY_NAME, MAPPED, NATIVE, looked_at, recognised, unknown
from assay.records.importers.plain_lines import ONE_SIDED
from assay.records.journal.reading import (
    LONGEST_LINE,
    JournalEntry,
    Pages,
    entries,
    is_event,
    recorded_frame,
    server_of,
    violations,
)
from assay.records.journal.recorded_verdict import recorded_verdict
from assay.records.journal.replay import (
    MOST_CONVERSATIONS,
    Replayed,
    ReplayJudge,
    ReplayOpening,
    conversation_key,
    replay,
    survey,
)
from assay.records.line_blocks import LineBlock
from assay.records.outcomes import outcome_of, recorded_outcome
from assay.records.recording.judged_talk import RecordingOpening
from assay.records.recording.judging import Judging
from assay.records.recording.listed_tools import MARK, ListedTools, ListPlace
from assay.records.transcript import Judged, Meeting, TranscriptError, TranscriptRow, conversation_of, frame_of, read
from assay.spec.revisions import handshake

if TYPE_CHECKING:
    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.work import Tick

_JOURNAL = re.compile(rb'\s*\{\s*"ts":')
"""How every record of a journal begins."""

_NO_PAYLOAD = "no payload in the journal"
_TOO_LARGE = "too large to record"
_NO_REQUEST = "its request is not in the journal, or the guard could not judge it"

_NOT_COMPARED = "a recording, not a journal: it has no verdicts to compare; assay check judges it"

_UNJUDGED = {
    "no payload": _NO_PAYLOAD,
    "redacted": "secrets were redacted",
    "by its headers": "blocked because of HTTP headers",
    "by a lock": "the lock is not in the journal",
    "not judged": "not judged by the guard either",
    "broken": "not a journal record",
}
"""Why a line of a journal is not judged. Each text follows a count, singular or plural."""


class Evidence(Protocol):
    """A file whose messages can be judged."""

    def follow(self) -> Iterator[Judged | Meeting | ChangedVerdict]:
        """Yield verdicts in order. Raises `OSError` and `TranscriptError`."""

    def end(self) -> UnitEnd:
        """Return the counts and the notes beside the verdicts. Valid after the last verdict."""


@contextmanager
def opened(terms: CheckTerms, path: str, tick: Tick, *, is_run: bool) -> Iterator[Evidence]:
    """Open a file, or all files of the run that begins with it. *tick* gets what is read. Raises `OSError`."""
    longest = longest_line(terms)
    with Pages(path, whole=is_run, longest=longest) as pages:
        head = pages.peek()
        if is_journal(terms, head) or (terms.is_compared and not head.strip()):
            yield _JournalEvidence(terms, path, pages, tick)
        else:
            pages.tick = tick
            yield _RecordingEvidence(terms, path, RecordedLines(pages, path, longest))


def longest_line(terms: CheckTerms) -> int:
    """Return the maximal bytes of a line."""
    # A byte of a message may take six in a recording, as a NUL does, and a row has more than the message.
    return max(LONGEST_LINE, 8 * terms.settings.guard_limits.frame_bytes)


def is_journal(terms: CheckTerms, head: bytes) -> bool:
    """Return whether a file is a journal. Records of other programs may begin with a time, too."""
    if terms.fields or terms.source not in {None, "assay"} or _JOURNAL.match(head) is None:
        return False
    first = loosely(head.partition(b"\n")[0].strip())
    return not isinstance(first, dict) or "metadata" in first or is_event(first)


def _conversation(terms: CheckTerms, listed: ListedTools | None, opening: RecordingOpening) -> Conversation:
    """Return a new conversation of a recording, which takes tools that it has not listed from *listed*."""
    settings = terms.settings
    made = Conversation(
        mode=opening.mode,
        revision=terms.revision or opening.revision,
        errata=not terms.is_literal,
        limits=opening.limited(settings.guard_limits),
        policy=terms.policy or opening.effect,
        lines=opening.lines,
        tools=opening.tools,
    )
    if listed is not None:
        made.tools.elsewhere = listed.finder(opening.server)
    return made


def chosen_importer(terms: CheckTerms) -> Importer | None:
    """Return the format that the options name; None if it is to be recognized."""
    if terms.source is not None:
        return BY_NAME[terms.source]
    return MAPPED if terms.fields else None


def import_options(terms: CheckTerms) -> ImportOptions:
    """Return the options for reading a recording of another program."""
    return ImportOptions(Party(terms.party) if terms.party is not None else None, terms.fields or {})


class RecordedLines:
    """The lines of a recording. Its format is found without reading the file twice."""

    def __init__(self, pages: Pages, name: str, longest: int) -> None:
        """*name* is the path of the file, *longest* the maximal bytes of a line."""
        self._pages, self._name, self._longest = pages, name, longest
        self._blocks = pages.blocks()
        self._held: list[LineBlock] = []

    @property
    def too_long(self) -> str:
        """A note about lines that are too long; "" without such lines."""
        count = self._pages.too_long
        lines = "1 line is" if count == 1 else f"{count:,} lines are"
        return f"{lines} longer than {self._longest:,} bytes, and not read" if count else ""

    def recognised(self) -> Importer:
        """Return the format. Raises `TranscriptError` if it is not known."""
        # A document may be one line of any length, so it must be found before a line is read.
        document = recognised(self._pages.peek(), self._name)
        if document is not None and document.is_document:
            return document
        head = b""
        for head in looked_at(self._hold()):
            found = recognised(head, self._name)
            if found is not None:
                return found
        if not head.strip():
            return NATIVE
        raise TranscriptError(self.too_long) if self.too_long else unknown(head, self._name)

    def _hold(self) -> Iterator[bytes]:
        for block in self._blocks:
            self._held.append(block)
            yield from block

    def blocks(self) -> Iterator[LineBlock]:
        """Yield every line, in large blocks."""
        held, self._held = self._held, []
        return chain(held, self._blocks)

    def pieces(self) -> Iterator[bytes]:
        """Yield everything, in pieces of any size."""
        # A document whose first bytes show what it is has a line of any length.
        return map(b"".join, self.blocks()) if self._held else self._pages.pieces()

    def readable(self) -> Iterator[bytes]:
        """Yield every line, a blank one in place of one that is too long."""
        for line in chain.from_iterable(self.blocks()):
            yield b"\n" if self._pages.too_long and line.startswith(b"(a line of ") else line


class _RecordingEvidence:
    """The rows of a recording, of the guard or of another program."""

    def __init__(self, terms: CheckTerms, path: str, lines: RecordedLines) -> None:
        self._terms, self._path, self._lines = terms, path, lines
        self._judging: Judging | None = None
        self._importer: Importer | None = None
        self._remarks: list[str] = []

    def follow(self) -> Iterator[Judged | Meeting | ChangedVerdict]:
        importer = self._importer = chosen_importer(self._terms) or self._lines.recognised()
        if self._terms.is_compared:
            raise TranscriptError(_NOT_COMPARED)
        terms = self._terms
        listed = tools_of(terms, self._path)
        begin = partial(_conversation, terms, listed)
        judging = Judging(begin, terms.policy, importer.blind, every=terms.every, listed=listed)
        self._judging = judging
        if importer is NATIVE:
            return judging.follow_rows(read(chain.from_iterable(self._lines.blocks())))
        text = self._lines.pieces() if importer.is_document else self._lines.readable()
        options = import_options(terms)._replace(remark=self._remarks.append)
        return judging.follow_rows(importer.read(text, options))

    def end(self) -> UnitEnd:
        skipped, cannot = self._skipped(), self._cannot()
        if self._judging is None:
            return UnitEnd()
        judging, remarks = self._judging, [*self._remarks, *([skipped] if skipped else [])]
        if cannot and self._importer is not None:
            remarks.insert(0, f"read as {self._importer.format.title}; not observed: {'; '.join(cannot)}")
        return UnitEnd(
            good=judging.good,
            failed=judging.failed,
            remarks=tuple(remarks),
            notes=judging.notes,
            unjudged=judging.unjudged,
            recorded=judging.recorded,
            revision=judging.revision,
            is_partial=bool(skipped) or judging.is_incomplete or bool(judging.unjudged),
            remedy="; assay guard --record FILE writes a recording",
        )

    def _cannot(self) -> tuple[str, ...]:
        """Return what cannot be found in the file because of how it was recorded."""
        cannot = self._importer.format.cannot if self._importer is not None else ()
        return (*cannot, ONE_SIDED) if cannot and self._terms.party is not None else cannot

    def _skipped(self) -> str:
        return "" if self._importer is NATIVE else self._lines.too_long


class _JournalEvidence:
    """The records of a journal, judged again."""

    def __init__(self, terms: CheckTerms, path: str, pages: Pages, tick: Tick) -> None:
        self._terms, self._pages, self._tick = terms, pages, tick
        self._listed = tools_of(terms, path)
        self._unjudged: Counter[str] = Counter()
        self._recorded: Counter[str] = Counter()
        self._tools: dict[str, Tools] = {}
        self._revision: str | None = None
        self._outcomes: Counter[str] = Counter()
        self._good = self._failed = 0

    def follow(self) -> Iterator[Judged | Meeting | ChangedVerdict]:
        self._pages.keep()
        # Two passes: the exceptions of a conversation must be known before its first line is judged.
        seen = survey(entries(self._pages))
        self._pages.rewind()
        self._pages.tick = self._tick
        met: set[int] = set()
        for each in replay(self._entries(), seen, limits=self._terms.settings.guard_limits, judge=self._judge):
            number = each.entry.number
            if self._terms.is_compared:
                self._outcomes[each.outcome] += 1
                if each.outcome == "different":
                    yield ChangedVerdict(difference_text(each))
            verdict, lacks = each.verdict, ""
            if verdict is None or each.outcome == "by a lock":
                lacks = _lack(each)
                verdict = self._as_recorded(each)
            if verdict is None:
                self._unjudged[lacks] += 1
                continue
            if lacks:
                self._recorded[lacks] += 1
            self._revision = preferred(self._revision, spoken(verdict))
            if each.conversation not in met:
                met.add(each.conversation)
                # So much older conversations have been forgotten, and do not come back.
                met.discard(each.conversation - MOST_CONVERSATIONS)
                yield Meeting(each.conversation, _server(each.entry))
            if verdict.findings is None and not self._terms.every:
                self._good += 1
                # Without its payload, a message says only in its record that it failed.
                record = each.entry.record
                self._failed += record is not None and recorded_outcome(record).word == "failed"
                continue
            time = seconds(each.entry.record["ts"]) if each.entry.record is not None else None
            yield Judged(number, verdict, each.conversation, _server(each.entry), lacks, time)

    def _entries(self) -> Iterator[JournalEntry]:
        """Yield every line, and keep the place of the tools there."""
        for entry in entries(self._pages):
            if self._listed is not None and entry.record is not None:
                key = conversation_key(entry.record)
                self._listed.here = self._listed.here._replace(conversation=key, line=entry.number)
            yield entry

    def _as_recorded(self, replayed: Replayed) -> Verdict | None:
        """Return the guard's recorded verdict on a message that cannot be judged again; otherwise None."""
        record = replayed.entry.record
        if record is None or (replayed.outcome == "no payload" and not record["metadata"].get("omitted")):
            # A journal without payloads has no messages to judge, only the findings of an earlier run.
            return None
        return recorded_verdict(record, self._terms.policy)

    def end(self) -> UnitEnd:
        too_long = "not a journal record: a line is too long; raise limits.frame_bytes"
        return UnitEnd(
            good=self._good,
            failed=self._failed,
            remarks=(too_long,) if self._pages.too_long else (),
            unjudged=self._unjudged,
            recorded=self._recorded,
            revision=self._revision,
            is_partial=bool(self._unjudged),
            remedy=_NO_PAYLOADS if self._unjudged[_NO_PAYLOAD] else "",
            outcomes=self._outcomes,
        )

    def _judge(self, opening: ReplayOpening) -> ReplayJudge:
        if opening.server == "assets":
            # It has the tools of that server, which no other journal needs: 20 ms.
            from assay.cli.checking.asset_evidence import AssetJudge  # noqa: PLC0415

            return AssetJudge(opening)
        terms = self._terms
        alone = opening.revision is not None and not handshake(opening.revision)
        made = Conversation(
            mode=opening.mode,
            revision=terms.revision or opening.revision,
            errata=not terms.is_literal,
            limits=opening.limits,
            policy=terms.policy or opening.effect,
            # Without sessions each request is a conversation of its own, and all share the server's tools.
            tools=self._tools.get(opening.route) if alone else None,
        )
        if self._listed is not None:
            server = server_in_journal(self._listed.here.path, opening.name, opening.route)
            made.tools.elsewhere = self._listed.finder(server)
        if alone:
            self._tools.setdefault(opening.route, made.tools)
        return made


_NO_PAYLOADS = "; the journal has no payloads: run the guard with --set journal.payloads=true, or with --record FILE"


def _server(entry: JournalEntry) -> str:
    """Return the server name of a record; "" if it has none."""
    name = entry.record["metadata"].get("server") if entry.record is not None else None
    return name if isinstance(name, str) else ""


def _lack(replayed: Replayed) -> str:
    """Return why a line of a journal is not judged."""
    metadata = replayed.entry.record["metadata"] if replayed.entry.record is not None else {}
    if replayed.outcome == "no payload" and metadata.get("omitted"):
        return _TOO_LARGE
    if replayed.outcome == "not judged" and metadata.get("kind") in {"result", "error"}:
        return _NO_REQUEST
    return _UNJUDGED[replayed.outcome]


def difference_text(replayed: Replayed) -> str:
    """Return the lines that show a verdict of a journal and that of today."""
    record, verdict = replayed.entry.record, replayed.verdict
    if record is None or verdict is None:
        return ""
    again = [(each.rule, each.at) for each in verdict.violations]
    return "\n".join(
        (
            f"line {replayed.entry.number}: {record['metadata']['party']} {plain(title(record))}",
            f"    recorded: {_words(recorded_outcome(record).word, violations(record))}",
            f"    replayed: {_words(outcome_of(verdict).word, again)}",
        )
    )


def _words(word: str, found: list[tuple[str, str]]) -> str:
    return plain(", ".join([word, *(f"{rule} at {at or 'the message'}" for rule, at in found)]))


_OPENS = b'"event"'
"""A member of each row that names the server of a conversation."""

_Found = tuple[str, ListPlace, bytes]


def tools_of(terms: CheckTerms, path: str) -> ListedTools | None:
    """Return the tools that are listed in the evidence, for judging the file *path*; None if only it is compared."""
    return None if terms.is_compared else ListedTools(path, partial(_all_lists, terms, path))


def _all_lists(terms: CheckTerms, path: str) -> Iterator[_Found]:
    """Yield the lists of all files: those of the file *path* first, which need not be one of the command line."""
    files = {path: False, **dict(terms.evidence)}
    for each, is_run in files.items():
        # What can be read only once is read where it is judged.
        if not is_read_once(each):
            # A file that cannot be read is reported where it is judged.
            with suppress(OSError, TranscriptError):
                yield from _lists(terms, each, is_run=is_run)


def _lists(terms: CheckTerms, path: str, *, is_run: bool) -> Iterator[_Found]:
    longest = longest_line(terms)
    with Pages(path, whole=is_run, longest=longest) as pages:
        if is_journal(terms, pages.peek()):
            yield from _in_journal(path, entries(_marked(pages)))
        else:
            yield from _in_rows(path, _rows(terms, RecordedLines(pages, path, longest)))


def _marked(pages: Pages) -> Iterator[bytes]:
    """Yield a blank line in place of each one that has no list, which is then not parsed."""
    for line in pages:
        yield line if MARK in line else b"\n" * (line.count(b"\n") or 1)


def _in_journal(path: str, entries: Iterable[JournalEntry]) -> Iterator[_Found]:
    for entry in entries:
        frame = None if entry.record is None else recorded_frame(entry.record["metadata"])
        if entry.record is not None and frame is not None and MARK in frame:
            server = server_in_journal(path, server_of(entry.record), entry.record["route"])
            yield server, ListPlace(path, conversation_key(entry.record), entry.number), frame


def server_in_journal(path: str, name: str, route: str) -> str:
    """Return what a server of a journal is known by: its name, or without one its route."""
    return name or f"{path}{route}"


def _rows(terms: CheckTerms, lines: RecordedLines) -> Iterator[TranscriptRow]:
    importer = chosen_importer(terms) or lines.recognised()
    if importer is NATIVE:
        return read(
            line if MARK in line or _OPENS in line else b"\n" * (line.count(b"\n") or 1)
            for block in lines.blocks()
            for line in block
        )
    text = lines.pieces() if importer.is_document else lines.readable()
    return importer.read(text, import_options(terms))


def _in_rows(path: str, rows: Iterable[TranscriptRow]) -> Iterator[_Found]:
    servers: dict[int, str] = {}
    for row in rows:
        members = row.members
        if members.get("event") == "open":
            servers[conversation_of(members)] = str(members.get("server") or "")
        elif "event" not in members and not row.lacks and ("msg" in members or "base64" in members):
            frame = frame_of(row)
            if MARK in frame:
                number = conversation_of(members)
                yield servers.get(number, ""), ListPlace(path, number, row.line), frame

"""Judge one file: its rows, the verdicts on them, and the records that reports are made of. Any process can do it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, tee
from typing import Any, Final, NamedTuple, Protocol

from assay.cli.checking.files import CheckedFile, is_read_once
from assay.judge.conversation import Conversation
from assay.model.printable import counted
from assay.model.verdict import Party, Verdict
from assay.records.importers.importer import ONE_SIDED, Importer, ImportOptions
from assay.records.importers.importer_table import BY_NAME, MAPPED, NATIVE, looked_at, recognised, unknown
from assay.records.importers.journal import is_journal
from assay.records.judged_records import JudgedRecord, JudgedRecords
from assay.records.judging import Judging, RecordingOpening
from assay.records.lines import LineBlock
from assay.records.listed_tools import MARK, ListedTools, ListPlace
from assay.records.outcomes import recorded_outcome
from assay.records.reading import LONGEST_LINE, Pages
from assay.records.record import Record, status_of
from assay.records.rows import Judged, Meeting, TranscriptError, TranscriptRow, conversation_of, frame_of
from assay.rules.policy import Policy
from assay.rules.table import is_removed_rule
from assay.settings import Settings

Tick = Callable[[int], None]
"""Gets the bytes that were read since the last time."""

_NOT_COMPARED: Final = "a recording, not a journal: it has no verdicts to compare; assay check judges it"
_NO_PAYLOADS: Final = (
    "; the journal has no payloads: run the guard with --set journal.payloads=true, or with --record FILE"
)


class MessageDigest(Protocol):
    """What a report keeps of all messages, with or without findings. It can be pickled."""

    def add(self, message: JudgedRecord) -> None:
        """Add one message. What the baseline has is not known yet."""

    def merge(self, other: Any) -> None:
        """Add everything that *other*, a digest of the same kind, has of later files."""


DigestFactory = Callable[[], MessageDigest]
"""Returns a new, empty digest. It can be pickled: a class, or a function of a module."""


@dataclass(frozen=True, slots=True)
class CheckTerms:
    """The options and settings that decide about verdicts and findings. It can be pickled."""

    settings: Settings
    policy: Policy | None = None
    """The policy that replaces the recorded actions, if any."""
    revision: str | None = None
    """The revision of a recording that begins after the handshake, if any."""
    is_literal: bool = False
    """Whether the official schema is used without corrections."""
    source: str | None = None
    """The format of the files; None if it is recognized."""
    fields: Mapping[str, str] | None = None
    """The members of lines in a format of the user."""
    party: str | None = None
    """The sender of all messages in files with one side."""
    is_compared: bool = False
    """Whether verdicts are compared with those of the journal."""
    with_messages: bool = False
    """Whether messages without findings are listed, too."""
    digests: tuple[DigestFactory, ...] = ()
    """The digests that reports ask for."""
    evidence: tuple[tuple[str, bool], ...] = ()
    """The path of each file of the run, and whether it stands for all files of a journal."""

    @property
    def every(self) -> bool:
        """Whether messages without findings are needed one by one."""
        return self.with_messages or self.is_compared or bool(self.digests)

    def is_journal(self, head: bytes) -> bool:
        """Whether a file that begins with *head* is read as a journal, which has the verdicts of a guard."""
        return is_journal(head) and not self.fields and self.source in {None, "assay"}

    @property
    def longest_line(self) -> int:
        """The maximal bytes of a line."""
        # A byte of a message may take six in a recording, as a NUL does, and a row has more than the message.
        return max(LONGEST_LINE, 8 * self.settings.guard_limits.frame_bytes)


class ChangedVerdict(NamedTuple):
    """A verdict of a journal that is another one today."""

    message: JudgedRecord
    was: Record


@dataclass(slots=True)
class FileEnd:
    """What is known of a file after its last message."""

    name: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    """
    Messages by outcome. Beside them, ``missing`` counts requests that were never answered, and ``unjudged`` messages
    that were not judged.
    """
    remarks: list[str] = field(default_factory=list)
    revision: str | None = None
    is_judged: bool = False
    """Whether a message was judged."""
    is_partial: bool = False
    """Whether messages are missing or were not judged."""
    remedy: str = ""
    """The hint for a file with nothing to judge."""
    error: str | None = None
    """Why the file could not be read, or not to its end."""
    compared: Counter[str] = field(default_factory=Counter)
    """The records of a journal by the result of the comparison: ``same``, ``different``, or why they were not."""
    digests: list[MessageDigest] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """The remarks, and the error if there is one."""
        return [*self.remarks, *([] if self.error is None else [self.error])]

    def count(self, record: Record) -> None:
        """Count a message by its outcome."""
        if record.metadata.kind != "missing":
            self.counts[recorded_outcome(record).word] += 1
        elif record.findings:
            # A client that leaves with an open request is not the fault of the server.
            self.counts["missing"] += 1


StreamItem = JudgedRecord | Meeting | ChangedVerdict | FileEnd
"""What judging a file yields: messages and other items in order, then one `FileEnd`."""


def results_of(terms: CheckTerms, file: CheckedFile, tick: Tick) -> Iterator[StreamItem]:
    """Judge a file; yield the messages with findings as they come, feed the digests, and yield the end."""
    records = JudgedRecords(file.shown, terms.settings.journal.redact)
    end = FileEnd(file.shown, error=file.error, digests=[make() for make in terms.digests])
    if file.error is None:
        try:
            with opened(terms, file.path, is_run=file.is_run, tick=tick) as evidence:
                for judged in evidence.follow(end):
                    if isinstance(judged, Meeting):
                        end.is_judged = True
                        yield judged._replace(server=records.server(judged.server))
                    else:
                        yield from _items(terms, judged, records.make(judged), end)
        except (OSError, TranscriptError) as error:
            # What was judged before the error counts; remarks would be about a file that was read to its end.
            end.error = (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error.args[0])
    # The error and the remarks may quote the file.
    end.error = None if end.error is None else records.redactor.text(end.error)
    end.remarks = [records.redactor.text(each) for each in end.remarks]
    yield end


def _items(terms: CheckTerms, judged: Judged, message: JudgedRecord, end: FileEnd) -> Iterator[StreamItem]:
    """Count a message, and yield it, and its difference from a journal, as far as reports need them."""
    for digest in end.digests:
        digest.add(message)
    end.count(message.record)
    if terms.is_compared and judged.record is not None and not judged.lacks:
        is_same = _is_same(judged.record, judged.verdict)
        end.compared["same" if is_same else "different"] += 1
        if not is_same:
            yield ChangedVerdict(message, judged.record)
    if terms.with_messages or judged.verdict.findings is not None:
        yield message


def _is_same(record: Record, found: Verdict) -> bool:
    """Whether a verdict is that of the journal. Rules that are gone do not count."""
    recorded = [(each.rule, each.at) for each in record.findings]
    known = [each for each in recorded if not is_removed_rule(each[0])]
    was = "ok" if record.status == "reported" and recorded and not known else record.status
    # A failed tool is not a verdict, so the recorded status is used.
    status = status_of(found, failed=record.status == "failed")
    return status == was and [(each.rule, each.at) for each in found.violations] == known


# ── one file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def opened(terms: CheckTerms, path: str, *, is_run: bool, tick: Tick | None = None) -> Iterator["Evidence"]:
    """Open a file, or all files of the run that begins with it. *tick* gets what is read. Raises `OSError`."""
    with Pages(path, whole=is_run, longest=terms.longest_line) as pages:
        pages.tick = tick
        yield Evidence(terms, path, pages)


class Evidence:
    """A file whose messages are judged. Its format is found without reading it twice."""

    def __init__(self, terms: CheckTerms, path: str, pages: Pages) -> None:
        self._terms, self._path, self._pages = terms, path, pages
        self._remarks: list[str] = []

    def follow(self, end: FileEnd) -> Iterator[Judged | Meeting]:
        """Yield the verdicts in order, then complete *end*. Raises `OSError` and `TranscriptError`."""
        terms, head = self._terms, self._pages.peek()
        is_journal = terms.is_journal(head)
        importer, rows = self._read()
        if terms.is_compared and not is_journal and head.strip():
            raise TranscriptError(_NOT_COMPARED)
        listed = None if terms.is_compared else ListedTools(self._path, partial(_lists, terms, self._path))
        begin = partial(_conversation, terms, listed)
        judging = Judging(begin, terms.policy, importer.blind, every=terms.every, listed=listed)
        try:
            yield from judging.follow(rows)
        finally:
            end.counts["ok"] += judging.good - judging.failed
            end.counts["failed"] += judging.failed
        end.counts["unjudged"] += judging.unjudged.total()
        end.compared.update(judging.unjudged)
        end.compared.update(judging.recorded)
        end.revision = judging.revision
        if importer.cannot:
            cannot = (*importer.cannot, ONE_SIDED) if terms.party is not None else importer.cannot
            end.remarks.append(f"read as {importer.title}; not observed: {'; '.join(cannot)}")
        too_long = self._too_long()
        end.remarks += [*self._remarks, *([too_long] if too_long else []), *judging.notes]
        for counts, what in ((judging.unjudged, "not judged"), (judging.recorded, "with the guard's own verdict")):
            end.remarks += [f"{counted(count, 'message')} {what}: {why}" for why, count in counts.items()]
        end.is_partial = bool(too_long) or judging.is_incomplete or bool(judging.unjudged)
        end.remedy = "; assay guard --record FILE writes a recording"
        if is_journal:
            end.remedy = _NO_PAYLOADS if judging.unjudged["no payload in the journal"] else ""

    def rows(self) -> Iterator[TranscriptRow]:
        """Yield the rows of the file. Raises `OSError` and `TranscriptError`."""
        return self._read()[1]

    def _read(self) -> tuple[Importer, Iterator[TranscriptRow]]:
        """Return the format that the options name, or that the file has, and the rows. Raises `TranscriptError`."""
        terms, pages = self._terms, self._pages
        importer, blocks = BY_NAME[terms.source] if terms.source is not None else None, pages.blocks()
        if importer is None:
            # A document may be one line of any length, so it must be found before a line is read.
            document = None if terms.fields else recognised(pages.peek(), self._path)
            importer = MAPPED if terms.fields else document if document and document.is_document else None
        text = pages.pieces()
        if importer is None:
            looked, blocks = tee(blocks)
            importer = self._recognised(chain.from_iterable(looked))
            text = map(b"".join, blocks)
        if not importer.is_document:
            text = self._lines(blocks, is_strict=importer is NATIVE)
        party = Party(terms.party) if terms.party is not None else None
        return importer, importer.read(text, ImportOptions(party, terms.fields or {}, self._remarks.append))

    def _recognised(self, lines: Iterator[bytes]) -> Importer:
        head = b""
        for head in looked_at(lines):
            found = recognised(head, self._path)
            if found is not None:
                return found
        if not head.strip():
            return NATIVE
        raise TranscriptError(self._too_long()) if self._too_long() else unknown(head, self._path)

    def _lines(self, blocks: Iterator[LineBlock], *, is_strict: bool) -> Iterator[bytes]:
        """Yield every line; unless *is_strict*, a blank one in place of one that is too long."""
        for line in chain.from_iterable(blocks):
            is_note = not is_strict and self._pages.too_long and line.startswith(b"(a line of ")
            yield b"\n" if is_note else line

    def _too_long(self) -> str:
        """Return a note about lines that are too long; "" without such lines."""
        count = self._pages.too_long
        lines = "1 line is" if count == 1 else f"{count:,} lines are"
        return f"{lines} longer than {self._terms.longest_line:,} bytes, and not read" if count else ""


def _conversation(terms: CheckTerms, listed: ListedTools | None, opening: RecordingOpening) -> Conversation:
    """Return a new conversation of a recording, which takes tools that it has not listed from *listed*."""
    limits = opening.limited(terms.settings.guard_limits)
    if opening.is_assets:
        # It has the tools of that server, which no other journal needs: 20 ms.
        from assay.cli.checking.asset_evidence import AssetConversation  # noqa: PLC0415

        return AssetConversation(opening.revision, limits)
    made = Conversation(
        mode=opening.mode,
        revision=terms.revision or opening.revision,
        errata=not terms.is_literal,
        limits=limits,
        policy=terms.policy or opening.effect,
        lines=opening.lines,
        tools=opening.tools,
    )
    if listed is not None:
        made.tools.elsewhere = listed.finder(opening.place)
    return made


# ── lists of tools ───────────────────────────────────────────────────────────────────────────────────────────────────


def _lists(terms: CheckTerms, path: str) -> Iterator[tuple[str, ListPlace, bytes]]:
    """Yield the lists of all files: those of the file *path* first, which need not be one of the command line."""
    for each, is_run in {path: False, **dict(terms.evidence)}.items():
        # What can be read only once is read where it is judged. A file that cannot be read is reported there, too.
        if is_read_once(each):
            continue
        servers: dict[int, str] = {}
        with suppress(OSError, TranscriptError), opened(terms, each, is_run=is_run) as evidence:
            for row in evidence.rows():
                members, number = row.members, conversation_of(row.members)
                if members.get("event") == "open":
                    servers[number] = str(members.get("place") or members.get("server") or "")
                elif "event" not in members and not row.lacks and ("msg" in members or "base64" in members):
                    frame = frame_of(row)
                    if MARK in frame:
                        yield servers.get(number, ""), ListPlace(each, number, row.line), frame

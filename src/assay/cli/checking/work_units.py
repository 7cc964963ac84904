"""
The units of work of a run: a file, some conversations of a large recording, or the rows of it that belong to all.

A unit can be pickled, and gives the same result in whatever process it is done, however often.
"""

# ruff: noqa: PLC0415  most runs have one kind of unit

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from assay.cli.checking.check_stream import ChangedVerdict, StreamItem, UnitEnd
from assay.cli.reports.check_findings import FindingMask, KnownFindings
from assay.records.recording.judging import END, Judging, RecordingPart
from assay.records.transcript import Judged, Meeting, TranscriptError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.cli.checking.check_terms import CheckTerms
    from assay.records.line_blocks import LineBlock
    from assay.records.recording.block_judging import BlockJudging

_NOTHING_KNOWN: Final = KnownFindings()

MISREAD: Final = "a row does not belong to the conversation that its head names"
"""The error of a part of a file that has to be judged as a whole. People never see it."""


Tick = Callable[[int], None]
"""Gets the bytes that were read since the last time."""


class WorkUnit(Protocol):
    """Something to do. It can be pickled."""

    def results(self, terms: CheckTerms, tick: Tick) -> Iterator[Any]:
        """Do it, and yield the results."""


class WholeFile(NamedTuple):
    """A file, or a run of a journal in several files."""

    path: str
    shown: str
    """Its name for people."""
    is_run: bool = False
    """Whether it is the first file of a run, which stands for all files of the run."""

    def results(self, terms: CheckTerms, tick: Tick) -> Iterator[StreamItem]:
        """Judge the file."""
        from assay.cli.checking.evidence import opened

        reader, good, failed = FindingReader(terms, self.shown), 0, 0
        try:
            with opened(terms, self.path, tick, is_run=self.is_run) as evidence:
                try:
                    yield from reader.checked(evidence.follow())
                finally:
                    end = evidence.end()
                    good, failed = end.good, end.failed
        except (OSError, TranscriptError) as error:
            # What was judged before the error counts; remarks would be about a file that was read to its end.
            end = UnitEnd(good=good, failed=failed, error=reason_of(error))
        yield reader.ended(end)


class FilePart(NamedTuple):
    """Some conversations of a recording in our own format, and the bytes that have all of their rows."""

    path: str
    shown: str
    offset: int
    size: int
    before: int
    """Lines before the first one."""
    part: RecordingPart
    share: int = 0
    """Its share of the bytes of the file, for the progress."""

    def results(self, terms: CheckTerms, tick: Tick) -> Iterator[StreamItem]:
        """Judge the conversations."""
        from assay.records.line_blocks import open_binary
        from assay.records.recording.block_judging import MisreadRowError

        reader = FindingReader(terms, self.shown)
        judging = _judging(terms, self.part, self.path)
        left = self.size

        def read(most: int) -> bytes:
            nonlocal left
            data = file.read(min(most, left))
            left -= len(data)
            # The bytes of a file count once, however many of its parts read them.
            tick(len(data) * self.share // self.size)
            return data

        try:
            with open_binary(self.path) as file:
                file.seek(self.offset)
                yield from reader.checked(judging.follow_blocks(_whole_lines(read), self.before))
                end = _end_of(judging)
        except (OSError, TranscriptError) as error:
            end = UnitEnd(error=reason_of(error))
        except MisreadRowError:
            end = UnitEnd(error=MISREAD)
        yield reader.ended(end)


class SharedRows(NamedTuple):
    """The rows of a recording that belong to no conversation: where it starts, ends and is cut off."""

    shown: str
    rows: tuple[tuple[int, bytes], ...]
    """Each row, with its number and its newline."""

    def results(self, terms: CheckTerms, tick: Tick) -> Iterator[StreamItem]:
        """Collect the notes about the recording."""
        del tick
        yield self.end(terms)

    def end(self, terms: CheckTerms) -> UnitEnd:
        """Return the notes about the recording. That is all: the rows have no messages."""
        from assay.records.transcript import members_of, row_of

        reader = FindingReader(terms, self.shown)
        judging = _judging(terms, None)
        rows = (row_of(number, members_of(number, text)) for number, text in self.rows)
        list(judging.follow_rows(rows))
        return reader.ended(_end_of(judging))


def _judging(terms: CheckTerms, part: RecordingPart | None, path: str | None = None) -> BlockJudging:
    from functools import partial

    from assay.cli.checking.evidence import conversation_of_recording
    from assay.cli.checking.tool_evidence import tools_of
    from assay.records.recording.block_judging import BlockJudging

    listed = None if path is None else tools_of(terms, path)
    begin = partial(conversation_of_recording, terms, listed)
    return BlockJudging(begin, terms.policy, every=terms.every, part=part, listed=listed)


def _end_of(judging: Judging) -> UnitEnd:
    from assay.cli.checking.evidence import end_of_judging

    return end_of_judging(judging)


def _whole_lines(read: Callable[[int], bytes]) -> Iterable[LineBlock]:
    """Return the lines of a part. No line of a part is too long: such a file is judged as a whole."""
    from assay.records.line_blocks import split_blocks

    return split_blocks(read, END, lambda _: b"")


def reason_of(error: OSError | TranscriptError) -> str:
    """Return why a file cannot be read, without its name."""
    return (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error.args[0])


class FindingReader:
    """Makes findings of verdicts, and feeds the digests."""

    def __init__(self, terms: CheckTerms, shown: str) -> None:
        from assay.core.redaction import Redactor

        self._terms, self._shown = terms, shown
        self._masking = FindingMask(Redactor(terms.settings.journal.redact), with_messages=terms.every)
        self._digests = [make() for make in terms.digests]
        self._unlisted = self._failed = 0
        self._is_judged = False

    def checked(self, verdicts: Iterable[Judged | Meeting | ChangedVerdict]) -> Iterator[StreamItem]:
        """Yield the findings of *verdicts*."""
        is_each = self._terms.with_messages
        for each in verdicts:
            if isinstance(each, Judged):
                message = self._masking.message(each, self._shown, _NOTHING_KNOWN)
                for digest in self._digests:
                    digest.add(message)
                if is_each or each.verdict.findings is not None:
                    yield message
                else:
                    self._unlisted += 1
                    self._failed += message.outcome == "failed"
            elif isinstance(each, Meeting):
                self._is_judged = True
                yield each._replace(server=self._masking.name(each.server))
            else:
                yield each

    def ended(self, end: UnitEnd) -> UnitEnd:
        """Complete the end of the unit. Its error and its notes may quote the file."""
        text = self._masking.redactor.text
        end.error = None if end.error is None else text(end.error)
        end.notes = [(line, text(note)) for line, note in end.notes]
        end.good += self._unlisted
        end.failed += self._failed
        end.is_judged = self._is_judged
        end.digests = self._digests
        return end

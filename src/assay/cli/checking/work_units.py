"""
The unit of work of a run: a file, or a run of a journal.

A unit can be pickled, and gives the same result in whatever process it is done, however often.
"""

# ruff: noqa: PLC0415  a name that cannot be opened needs none of it

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from assay.cli.checking.check_stream import ChangedVerdict, StreamItem, UnitEnd
from assay.cli.reports.check_findings import FindingMask, KnownFindings
from assay.records.transcript import Judged, Meeting, TranscriptError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.cli.checking.check_terms import CheckTerms

_NOTHING_KNOWN: Final = KnownFindings()

Tick = Callable[[int], None]
"""Gets the bytes that were read since the last time."""


class WorkUnit(Protocol):
    """Something to do. It can be pickled."""

    @property
    def path(self) -> str:
        """The file that it reads."""

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
        end.notes = [text(note) for note in end.notes]
        end.good += self._unlisted
        end.failed += self._failed
        end.is_judged = self._is_judged
        end.digests = self._digests
        return end

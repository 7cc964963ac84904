"""The interface of every report of `assay check`, and how a format is found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from assay.cli.checking.check_stream import ChangedVerdict
    from assay.cli.checking.check_terms import DigestFactory, MessageDigest
    from assay.cli.reports.baseline import BaselineEntry
    from assay.cli.reports.check_findings import CheckedMessage, FindingMask, MessageCounts
    from assay.cli.reports.report_outputs import ReportOutput


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What the command line asks of every report."""

    fail_on: str
    masking: FindingMask
    is_all: bool = False
    """Whether each of several equal findings is shown."""
    with_messages: bool = False
    """Whether messages without findings are shown, too."""
    has_several: bool = False
    """Whether there may be several files."""
    docs_url: str | None = None
    """The address of the documentation, for links to rules; None if it is unknown."""

    def page_of(self, rule: str) -> str | None:
        """Return the address of the section about *rule*; None if it is unknown."""
        if self.docs_url is None:
            return None
        # As GitHub makes anchors of headings: the slash is left out.
        return f"{self.docs_url.rstrip('/')}/rules.md#{rule.replace('/', '')}"


class FileEnd(NamedTuple):
    """What is known of a file after its last message."""

    name: str
    counts: MessageCounts
    revision: str | None = None
    remarks: Sequence[str] = ()
    is_partial: bool = False
    """Whether messages are missing or were not judged."""
    error: str | None = None
    """Why the file could not be judged, or not to its end; None if it was."""
    outcomes: Mapping[str, int] = MappingProxyType({})
    """The number of records of a journal by the outcome of the comparison, if there was one."""


class RunEnd(NamedTuple):
    """What is known after the last file."""

    status: int
    """The exit status."""
    remarks: Sequence[str] = ()
    """Problems with names on the command line."""
    stale: Sequence[BaselineEntry] = ()
    """Entries of the baseline that were not found."""


class CheckReport(ABC):
    """
    One report. For each file `begin`, then `add` for each message with findings, then `end`; after the last file
    `close`.

    With `--messages` it gets every message. A report that needs something of every message in any case has a `digest`.
    """

    digest: DigestFactory | None = None
    """
    Returns a new digest, if the report has one. Several processes may fill digests, each with the messages of some
    conversations, and they are merged; the report gets the result with `use`, before `close`.
    """

    def __init__(self, options: ReportOptions, output: ReportOutput) -> None:
        self.options = options
        self.write = output.write
        self.output = output

    @property
    def summary(self) -> str:
        """The report in one sentence, after `close`; "" if it has none."""
        return ""

    @abstractmethod
    def begin(self, name: str) -> None:
        """Start the file *name*."""

    def meet(self, conversation: int, server: str) -> None:  # noqa: B027 - most reports have no need of it
        """Note that the next message is the first one of a conversation. It may not be added, if it has no findings."""

    @abstractmethod
    def add(self, message: CheckedMessage) -> None:
        """Add one message."""

    def differ(self, difference: ChangedVerdict) -> None:  # noqa: B027 - as above
        """Add a verdict of a journal that is another one today."""

    def use(self, digest: MessageDigest) -> None:  # noqa: B027 - as above
        """Take the digest of all messages."""

    @abstractmethod
    def end(self, ended: FileEnd) -> None:
        """End the file."""

    @abstractmethod
    def close(self, ended: RunEnd) -> None:
        """End the report. Raises `OSError`."""


def report_of(name: str, options: ReportOptions, output: ReportOutput) -> CheckReport:
    """Return a new report in the format *name*: the `REPORT` of the module that is called after it."""
    kind: type[CheckReport] = import_module(f"assay.cli.reports.{name}_report").REPORT
    return kind(options, output)

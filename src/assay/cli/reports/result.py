"""What a run of `assay check` has found: the one value that every format is a function of."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from assay.cli.checking.evidence import FileEnd, MessageDigest
from assay.model.printable import plain
from assay.records.digest import FindingGroup, FindingGroups, FindingKey
from assay.records.judged_records import JudgedRecord
from assay.records.outcomes import WORDS, recorded_title
from assay.records.record import Finding
from assay.rules.sentences import located

_MOST_SERVERS: Final = 100
"""Maximal servers whose names are kept."""


def title_of(group: FindingGroup) -> str:
    """Return the first message of a group, for people."""
    return recorded_title(group.message.record)


def sentence_of(group: FindingGroup) -> str:
    """Return the first finding of a group with its message, on one line."""
    return plain(f"{title_of(group)}: {located(group.finding)}")


def others_of(group: FindingGroup) -> str:
    """Return the other places of a group, for people; "" if there is only one."""
    if group.count == 1:
        return ""
    listed = [f"line {line}" if line else "the end" for line in dict.fromkeys(each.line for each in group.places)]
    rest = group.count - len(group.places)
    return f"{group.count:,} times: {', '.join(listed)}{f' and {rest:,} more' if rest > 0 else ''}"


def further_places(group: FindingGroup) -> list[str]:
    """Return the listed places of a group after the first, for people."""
    return [f"line {each.line}: {plain(each.at) or 'the message'}" for each in group.places[1:]]


def counts_by(fail_on: str, finding: Finding, *, is_known: bool) -> bool:
    """Whether *finding* makes the check fail with this `--fail-on`."""
    if is_known or fail_on == "never":
        return False
    return fail_on == "report" or finding.stops or finding.done == "quarantine"


def is_inside(path: str) -> bool:
    """
    Whether *path*, as `shown_path` returns it, is below the working directory, which is a checkout where a CI runs.

    A location elsewhere would be an annotation outside of the repository. Standard input has no location.
    """
    return path != "-" and "://" not in path and not os.path.normpath(path).startswith((os.sep, os.pardir))


def members_of(key: FindingKey) -> dict[str, str]:
    """Return the members of a key that are not empty, besides the rule and the party."""
    return {name: each for name, each in key._asdict().items() if each or name in {"rule", "party"}}


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What the command line asks of every report."""

    fail_on: str = "report"
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


@dataclass(slots=True)
class RunResult:
    """The finished value of a run. `add`, `meet` and `end` complete it as files are judged."""

    options: ReportOptions = field(default_factory=ReportOptions)
    files: list[FileEnd] = field(default_factory=list)
    groups: FindingGroups = field(default_factory=FindingGroups)
    rules: Counter[str] = field(default_factory=Counter)
    """Findings by rule."""
    servers: dict[str, None] = field(default_factory=dict)
    """The servers that were met, in order."""
    digests: list[MessageDigest] = field(default_factory=list)
    """What reports keep of all messages, with or without findings."""
    status: int = 0
    """The exit status."""
    remarks: list[str] = field(default_factory=list)
    """Problems with names on the command line."""
    stale: Sequence[tuple[FindingKey, int]] = ()
    """Entries of the baseline that were not found, with their numbers."""

    @property
    def is_judged(self) -> bool:
        """Whether any file had a message to judge."""
        return any(each.is_judged for each in self.files)

    def meet(self, server: str) -> None:
        """Note a server."""
        if server in self.servers or len(self.servers) < _MOST_SERVERS:
            self.servers[server] = None

    def add(self, message: JudgedRecord) -> None:
        """Add a message with findings, of which those are marked that the baseline has."""
        self.groups.add(message)
        self.rules.update(each.rule for each in message.findings)

    def end(self, file: FileEnd) -> None:
        """Add a file that was judged."""
        for mine, theirs in zip(self.digests, file.digests, strict=False):
            mine.merge(theirs)
        file.digests = []
        self.files.append(file)


def messages_of(file: FileEnd) -> int:
    """Return all messages with a verdict; a request that was never answered is not another message."""
    return sum(file.counts[word] for word in WORDS)

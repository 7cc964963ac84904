"""
Reports that are written as files are judged. For people: equal findings once, each with the part of the message that is
wrong. For scripts: one JSON object for each message.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from assay.cli.checking.evidence import ChangedVerdict, FileEnd
from assay.cli.reports.result import ReportOptions, messages_of
from assay.cli.terminal.excerpts import excerpt_lines
from assay.cli.terminal.style import Style
from assay.cli.terminal.verdicts import headline, place_lines, rule_lines, without_repeats
from assay.judge.list_filter import Quarantined
from assay.model.json_values import dumped
from assay.model.printable import counted, plain
from assay.model.verdict import ListEntry
from assay.records.digest import FindingGroup, FindingGroups
from assay.records.judged_records import JudgedRecord
from assay.records.outcomes import WORDS, recorded_outcome, recorded_title
from assay.records.record import Finding, Record

Write = Callable[[str], object]

_INDENT: Final = 9
"""Columns before the lines about a finding."""

_MOST_LINES: Final = 5
"""Maximal line numbers to list with a finding."""


class StreamReport:
    """A report that is written while files are judged. For each file `begin`, then its items, then `end`."""

    def __init__(self, options: ReportOptions, write: Write, style: Style) -> None:
        self._options, self._write, self._style = options, write, style

    def begin(self, name: str) -> None:
        """Start the file *name*."""

    def meet(self) -> None:
        """Note that the next message is the first one of a conversation. It is not added, if it has no findings."""

    def add(self, message: JudgedRecord) -> None:
        """Add a message with findings; with ``--messages``, any message."""

    def differ(self, changed: ChangedVerdict) -> None:
        """Add a verdict of a journal that is another one today."""

    def end(self, file: FileEnd) -> None:
        """End the file."""


class TextReport(StreamReport):
    """Findings of each file, and counts below them."""

    def __init__(self, options: ReportOptions, write: Write, style: Style) -> None:
        super().__init__(options, write, style)
        self._each = options.is_all or options.with_messages
        self._is_first = True
        self.begin("")

    def begin(self, name: str) -> None:
        """Start the file *name*. The name is printed with its first message."""
        self._name, self._is_named, self._known = name, False, 0
        self._rules: Counter[str] = Counter()
        self._quarantined = Quarantined()
        self._groups = FindingGroups(by_text=True)
        self._blocks: list[tuple[JudgedRecord, list[tuple[FindingGroup, list[str]]]]] = []

    def meet(self) -> None:
        """Print the name of the file before its first message."""
        if not self._is_named:
            self._print(("" if self._is_first else "\n") + self._style.paint(plain(self._name), "bold"))
            self._is_first, self._is_named = False, True

    def add(self, message: JudgedRecord) -> None:
        """Print the message, or keep its findings until the end of the file."""
        record = message.record
        self._rules.update(each.rule for each in record.findings)
        self._quarantined.add(ListEntry(each.kind, each.name) for each in record.quarantined)
        self._known += len(message.known)
        if self._each and (self._options.with_messages or message.findings):
            known = self._style.paint(f"{' ' * _INDENT}ignored (in baseline)", "dim")
            shown = [
                (
                    self._places(record, each),
                    [*rule_lines(each, self._style), *([known] if number in message.known else [])],
                )
                for number, each in enumerate(message.findings)
            ]
            self._message(message, shown)
        elif not self._each:
            before = len(self._groups)
            new = [each for each in self._groups.add(message) if each.id > before and not each.is_known]
            if new:
                # The message itself is not kept: it may be long.
                places = [self._places(record, each.finding) for each in new]
                self._blocks.append((new[0].message, list(zip(new, places, strict=True))))

    def end(self, file: FileEnd) -> None:
        """Print the findings, and the counts if the file was judged to its end."""
        for message, groups in self._blocks:
            shown = [
                ([*places, *self._repeats(each)], rule_lines(each.finding, self._style)) for each, places in groups
            ]
            self._message(message, shown)
        if self._groups.left_out:
            self._print(f"and {self._groups.left_out:,} other findings, which --all lists")
        if file.error is None:
            for line in self._summary(file):
                self._print(line)
        if self._known:
            rest = "" if self._each else f"; --all shows {'it' if self._known == 1 else 'them'}"
            self._print(self._style.paint(f"{counted(self._known, 'finding')} ignored (in baseline){rest}", "dim"))

    def _message(self, message: JudgedRecord, shown: list[tuple[list[str], list[str]]]) -> None:
        """Print one message with the places and rules of its findings."""
        record, style = message.record, self._style
        metadata = record.metadata
        number = f"{message.line:>5}" if message.line else "  end"
        place = (plain(metadata.server[:40]), f"conversation {message.conversation}")
        where = f"  ({', '.join(filter(None, place))})" if message.conversation else ""
        lacking = f"  (as the guard judged it: {metadata.lacks})" if metadata.lacks else ""
        # A check has no mode: it says what enforce mode does.
        shown_line = headline(recorded_outcome(record).word, metadata.party, recorded_title(record), style)
        self._print(f"{style.paint(number, 'dim')}  {shown_line}{style.paint(where + lacking, 'dim')}")
        for line in without_repeats(shown):
            self._print(line)
        if record.more:
            self._print(f"{' ' * _INDENT}and at least {record.more} more")

    def _places(self, record: Record, finding: Finding) -> list[str]:
        return [*place_lines(finding, self._style), *excerpt_lines(record, finding, self._style, _INDENT)]

    def _repeats(self, group: FindingGroup) -> list[str]:
        """Return how often a finding was repeated, and where."""
        if group.count == 1:
            return []
        lines = [
            each
            for each in dict.fromkeys(place.line for place in group.places)
            if each not in {0, group.places[0].line}
        ]
        rest = f" … {group.lasts[-1]}" if len(lines) > _MOST_LINES else ""
        listed = ", ".join(map(str, lines[:_MOST_LINES]))
        where = f", in line{'' if len(lines) == 1 else 's'} {listed}{rest}" if lines else ""
        text = f"and {group.count - 1:,} more like this{where}"
        return [self._style.paint(line, "dim") for line in self._style.wrapped(text, _INDENT)]

    def _summary(self, file: FileEnd) -> Iterator[str]:
        """Yield the lines with the counts of messages and of rules, and the quarantined entries."""
        counts, style = file.counts, self._style
        words = [f"{counts[word]:,} {word}" for word in WORDS if counts[word] or word == "ok"]
        total = f"{counted(messages_of(file), 'message')}{f' of MCP {file.revision}' if file.revision else ''}"
        others = f"; {counted(counts['missing'], 'request')} never answered" if counts["missing"] else ""
        # A message without evidence is not a pass.
        others += f"; {counted(counts['unjudged'], 'message')} not judged" if counts["unjudged"] else ""
        for line in style.wrapped(f"{total}: {', '.join(words)}{others}", 0):
            yield style.paint(line, "bold")
        for rule, count in sorted(self._rules.items(), key=lambda item: (-item[1], item[0])):
            yield f"  {count:>5,} × {rule}"
        for line in self._quarantined.lines():
            yield from style.wrapped(f"quarantined: {line}", 2)

    def _print(self, text: str) -> None:
        self._write(f"{text}\n")


class NdjsonReport(StreamReport):
    """One line a message. Nothing is kept in memory, so nothing is left out. Problems go to standard error."""

    def add(self, message: JudgedRecord) -> None:
        """Write the message, if it has findings or all messages are asked for."""
        if message.findings or self._options.with_messages:
            self._write(dumped(_members(message)) + "\n")


def _members(message: JudgedRecord) -> dict[str, Any]:
    record = message.record
    metadata = record.metadata
    members: dict[str, Any] = {
        "file": message.file,
        "line": message.line,
        "party": metadata.party,
        "kind": metadata.kind,
        "method": record.method,
        "tool": metadata.tool,
        "revision": metadata.revision,
        "verdict": recorded_outcome(record).word,
        "violations": [
            {**msgspec.to_builtins(each), **({"known": True} if number in message.known else {})}
            for number, each in enumerate(message.findings)
        ],
        "more": record.more,
    }
    if metadata.server:
        members["server"] = metadata.server
    if metadata.lacks:
        members["lacks"] = metadata.lacks
    if message.conversation:
        members["conversation"] = message.conversation
    if record.quarantined:
        members["quarantined"] = msgspec.to_builtins(record.quarantined)
    return members


class ComparisonReport(StreamReport):
    """The verdicts of a journal that are other ones today, as they are found, and counts below them."""

    def begin(self, name: str) -> None:
        """Print the name of the file, if there are several."""
        if self._options.has_several:
            self._write(f"{self._style.paint(plain(name), 'bold')}\n")

    def differ(self, changed: ChangedVerdict) -> None:
        """Print a difference: the message, the recorded verdict, and that of today."""
        message, was = changed
        self._write(f"line {message.line}: {was.metadata.party} {recorded_title(was)}\n")
        self._write(f"    recorded: {_verdict(was)}\n    replayed: {_verdict(message.record)}\n")

    def end(self, file: FileEnd) -> None:
        """Print how many records are the same."""
        if file.error is None:
            found = file.compared
            different = f", {found['different']} different" if found["different"] else ""
            records = counted(found.total(), "record")
            self._write(f"{records}: {found['same']:,} the same{different}{_left_out(found)}\n")


def comparison_problem(compared: Mapping[str, int]) -> str | None:
    """Return why nothing was compared; None if something was."""
    if compared.get("same") or compared.get("different"):
        return None
    hint = "; a guard or server writes them with --set journal.payloads=true"
    return f"nothing to replay{_left_out(compared)}{hint if compared.get('no payload in the journal') else ''}"


def _left_out(compared: Mapping[str, int]) -> str:
    """Return how many records were not compared, with the reasons."""
    reasons = [f"{count:,} ({why})" for why, count in compared.items() if why not in {"same", "different"} and count]
    return f"; not replayable: {', '.join(reasons)}" if reasons else ""


def _verdict(record: Record) -> str:
    found = [f"{each.rule} at {each.at or 'the message'}" for each in record.findings]
    return plain(", ".join([recorded_outcome(record).word, *found]))

"""Findings as reports show them: without secrets, short, and with a fingerprint that is the same in every run."""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Final, Literal, NamedTuple

from assay.base.printable import plain
from assay.base.verdict import Action, ListEntry, Verdict, Violation
from assay.cli.terminal.verdicts import title
from assay.core.redaction import Redactor
from assay.records.outcomes import WORDS, outcome_of
from assay.records.transcript import Judged

LONGEST_NAME: Final = 200
"""Maximal characters of a name that a peer chose. The longest names in use have 64."""

_LONGEST_PLACE: Final = 1000
_LONGEST_TEXT: Final = 500
"""Maximal characters of a place, and of a text about it: peers choose parts of both."""

Level = Literal["error", "warning"]

_LEVELS: Final[Mapping[Action, Level]] = {
    "refuse": "error",
    "drop": "error",
    "quarantine": "error",
    "report": "warning",
    "repair": "warning",
}

SEVERITY: Final[tuple[Level, ...]] = ("error", "warning")
"""The levels, the worst first."""


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

    @property
    def fingerprint(self) -> str:
        """The key as 32 hexadecimal digits. It is made of masked texts, so no secret can be guessed from it."""
        return sha256("\0".join(self).encode(errors="replace")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One broken rule at one place of one message."""

    file: str
    line: int
    """The line of the recording; 0 for a request that was never answered."""
    conversation: int
    key: FindingKey
    violation: Violation
    """The violation without secrets."""
    title: str
    """The message, for people."""
    revision: str | None
    is_known: bool
    """Whether the baseline has it."""

    @property
    def level(self) -> Level:
        """How severe it is."""
        return _LEVELS[self.violation.action]

    @property
    def subject(self) -> str:
        """What it is about, the same in every run: the tool or other entry of a list, or else the method."""
        entry = self.violation.entry
        return (entry.name if entry is not None else self.key.tool) or self.key.method or "message"

    @property
    def sentence(self) -> str:
        """What is wrong, on one line."""
        each = self.violation
        return plain(f"{each.place}: expected {each.expected}, found {each.found}")


class CheckedMessage(NamedTuple):
    """One judged message, and its findings."""

    judged: Judged
    file: str
    outcome: str
    """One of the words of `records.outcomes`."""
    findings: tuple[CheckFinding, ...]
    method: str | None
    tool: str | None
    server: str


class FindingMask:
    """Makes the findings of verdicts printable: no secrets, no long names."""

    def __init__(self, redactor: Redactor, *, with_messages: bool = False) -> None:
        """With *with_messages*, messages without findings have their names, too."""
        self.redactor = redactor
        self._with_messages = with_messages
        # Rules, methods and tools repeat. All texts are cut before, so the memory is bounded.
        self._text: Callable[[str], str] = lru_cache(2048)(redactor.text)

    def message(self, judged: Judged, file: str, is_known: "KnownFindings") -> CheckedMessage:
        """Return *judged* for reports; *is_known* tells which findings the baseline has."""
        verdict, server = judged.verdict, self.name(judged.server)
        if not verdict.violations and not self._with_messages:
            return CheckedMessage(judged, file, outcome_of(verdict).word, (), None, None, server)
        method, tool = self._name(verdict.method), self._name(verdict.tool)
        shown = self.redactor.text(title(verdict)) if verdict.violations else ""
        findings = []
        for each in verdict.violations:
            violation = self._violation(each, is_masked=bool(judged.lacks))
            key = _key(violation, verdict, method, tool, server)
            place = (file, judged.line, judged.conversation)
            findings.append(CheckFinding(*place, key, violation, shown, verdict.revision, is_known(key)))
        return CheckedMessage(judged, file, outcome_of(verdict).word, tuple(findings), method, tool, server)

    def name(self, name: str) -> str:
        """Return the name of a server for reports."""
        return self._name(name) or ""

    def _name(self, name: str | None) -> str | None:
        # Cut first: searching a name of a megabyte for secrets takes long, and a peer can send many.
        return None if name is None else self._text(cut(name, LONGEST_NAME))

    def _violation(self, violation: Violation, *, is_masked: bool) -> Violation:
        text = self._text
        short = replace(violation, at=cut(violation.at, _LONGEST_PLACE), found=cut(violation.found, _LONGEST_TEXT))
        entry = violation.entry
        # A message that the guard masked has no value of a secret left to hide.
        found = text(short.found) if is_masked else self.redactor.found(short)
        hint = self.redactor.hint(short, found)
        return replace(
            short,
            at=text(short.at),
            expected=text(cut(violation.expected, _LONGEST_TEXT)),
            found=found,
            source=text(cut(violation.source, _LONGEST_TEXT)),
            hint=text(cut(hint, _LONGEST_TEXT)),
            schema_at=None if violation.schema_at is None else text(cut(violation.schema_at, _LONGEST_PLACE)),
            entry=None if entry is None else ListEntry(entry.kind, text(cut(entry.name, LONGEST_NAME))),
        )


class KnownFindings:
    """Says which findings are known. Without a baseline none is."""

    def __call__(self, key: FindingKey) -> bool:
        """Count one finding, and return whether it is known."""
        del key
        return False

    def marked(self, message: CheckedMessage) -> CheckedMessage:
        """Count the findings of *message*, and return it with those marked that are known."""
        return message


def counts(fail_on: str, finding: CheckFinding) -> bool:
    """Whether *finding* makes the check fail with this `--fail-on`."""
    if finding.is_known or fail_on == "never":
        return False
    return fail_on == "report" or finding.violation.stops or finding.violation.action == "quarantine"


def cut(text: str, most: int) -> str:
    """Return *text*, shortened to *most* characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def shown_path(name: str) -> str:
    """Return the path of a file as text: relative if it is below the working directory, without invalid bytes."""
    if os.path.isabs(name):
        below = os.path.relpath(name)
        name = name if below.startswith(os.pardir) else below
    return os.fsencode(name).decode(errors="replace")


def is_inside(path: str) -> bool:
    """
    Whether *path*, as `shown_path` returns it, is below the working directory, which is a checkout where a CI runs.

    A location elsewhere would be an annotation outside of the repository. Standard input has no location.
    """
    return path != "-" and "://" not in path and not os.path.normpath(path).startswith((os.sep, os.pardir))


class MessageCounts(Counter[str]):
    """
    The number of messages of one file by verdict.

    Beside them, ``missing`` counts requests that were never answered, and ``unjudged`` messages that were not judged.
    """

    def count(self, message: CheckedMessage) -> None:
        """Count one message."""
        verdict = message.judged.verdict
        if verdict.kind != "missing":
            self[message.outcome] += 1
        elif verdict.violations:
            # A client that leaves with an open request is not the fault of the server.
            self["missing"] += 1

    @property
    def messages(self) -> int:
        """All messages with a verdict; a request that was never answered is not another message."""
        return sum(self[word] for word in WORDS)

    def as_json(self) -> dict[str, int]:
        """Return the numbers by the names that documents have for them."""
        return {
            "messages": self.messages,
            **{word: self[word] for word in WORDS},
            "unanswered": self["missing"],
            "notJudged": self["unjudged"],
        }


def _key(violation: Violation, verdict: Verdict, method: str | None, tool: str | None, server: str) -> FindingKey:
    return FindingKey(
        violation.rule,
        str(verdict.party),
        method or "",
        tool or "",
        "" if violation.entry is None else str(violation.entry),
        "/".join("*" if each.isdecimal() else each for each in violation.at.split("/")),
        server,
    )

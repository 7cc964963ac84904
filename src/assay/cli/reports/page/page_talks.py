"""Conversations as a page shows them: who sent what and when, up to a limit. No I/O."""

from typing import Any, Final

from assay.base.message import params_of
from assay.cli.reports.page.page_groups import group_key, group_name
from assay.cli.reports.page.shown_message import name_of, title_of, value_of
from assay.records.digest import level_of
from assay.records.judged_records import JudgedRecord
from assay.records.outcomes import recorded_outcome

MOST_ROWS: Final = 250
"""Rows of one conversation that a page has: more than most conversations, and more than a reader looks at."""

MORE_WITH_FINDINGS: Final = 50
"""Further rows, for messages with findings only."""

_ANSWER: Final = 7
_GROUPS: Final = 8
"""The columns of a row with the answer, and with the names of its findings."""

_MOST_NAMES: Final = 3
"""Groups of findings that a row names."""

Row = list[Any]
"""
Line, milliseconds since 1970, sender (c or s), kind, title, bytes, outcome, the same of the answer or None, and the
names of the groups of its findings.
"""


class PageTalk:
    """One conversation. Its messages are added in their order."""

    __slots__ = (
        *("client", "errors", "file", "findings", "first", "is_since_finding", "last", "left", "messages", "number"),
        *("open", "peer", "revision", "rows", "server"),
    )

    def __init__(self, file: str, server: str, number: int) -> None:
        self.file, self.server, self.number = file, server, number
        self.client = ""
        """The name and version of the client."""
        self.peer = ""
        """The name and version of the server."""
        self.revision: str | None = None
        self.messages = self.findings = self.errors = 0
        self.first: float | None = None
        self.last: float | None = None
        """Milliseconds since 1970 of the first and the last message."""
        self.rows: list[Row] = []
        self.open: dict[tuple[str, object], Row] = {}
        """Requests in `rows` without an answer."""
        self.left = 0
        """Messages beyond the limit."""
        self.is_since_finding = False
        """Whether it has only the messages from the first one with a finding on."""

    def add(self, message: JudgedRecord, time: float | None) -> None:
        """Add the next message."""
        record = message.record
        metadata, outcome = record.metadata, recorded_outcome(record).word
        party, kind, ident = metadata.party, metadata.kind, metadata.id
        self.messages += kind != "missing"
        self.findings += len(message.findings)
        self.errors += sum(level_of(each) == "error" for each in message.findings)
        self.revision = metadata.revision or self.revision
        if time is not None:
            self.first = time if self.first is None else min(self.first, time)
            self.last = time if self.last is None else max(self.last, time)
        if record.method in _INTRODUCTIONS:
            self._introduce(kind, value_of(record))
        names = list(dict.fromkeys(group_name(group_key(message, each)) for each in message.findings[:_MOST_NAMES]))
        head = [message.line, time]
        if kind in {"result", "error"} and ident is not None:
            asked = self.open.pop((party.other, ident), None)
            if asked is not None:
                asked[_ANSWER] = [*head, kind, record.input_bytes, outcome, names]
                return
        if not self._has_room(has_findings=bool(message.findings)):
            self.left += 1
            return
        row: Row = [*head, str(party)[0], kind, title_of(record), record.input_bytes, outcome, None, names]
        self.rows.append(row)
        if kind == "request" and ident is not None:
            self.open[party, ident] = row

    def _has_room(self, *, has_findings: bool) -> bool:
        return len(self.rows) < MOST_ROWS + (MORE_WITH_FINDINGS if has_findings else 0)

    def _introduce(self, kind: str, value: Any) -> None:
        if not isinstance(value, dict):
            return
        if kind == "request":
            self.client = self.client or _introduced(params_of(value).get("clientInfo"))
        elif kind == "result" and isinstance(value.get("result"), dict):
            self.peer = self.peer or _introduced(value["result"].get("serverInfo"))

    def merge(self, other: "PageTalk") -> None:
        """Add the messages of a later part of the same conversation."""
        self.messages += other.messages
        self.findings += other.findings
        self.errors += other.errors
        self.client, self.peer = self.client or other.client, self.peer or other.peer
        self.revision = other.revision or self.revision
        times = [each for each in (self.first, self.last, other.first, other.last) if each is not None]
        self.first, self.last = min(times, default=None), max(times, default=None)
        self.left += other.left
        for row in other.rows:
            if self._has_room(has_findings=bool(row[_GROUPS])):
                self.rows.append(row)
            else:
                self.left += 1 + (row[_ANSWER] is not None)
        self.open |= other.open

    def as_json(self, ident: str) -> dict[str, Any]:
        """Return the conversation for a page."""
        return {
            "id": ident,
            "file": self.file,
            "server": self.server,
            "number": self.number,
            "client": self.client,
            "peer": self.peer,
            "revision": self.revision,
            "messages": self.messages,
            "findings": self.findings,
            "errors": self.errors,
            "period": None if self.first is None else [self.first, self.last],
            "rows": self.rows,
            "left": self.left,
            "since": self.is_since_finding,
        }


_INTRODUCTIONS: Final = frozenset({"initialize", "server/discover"})


def _introduced(info: Any) -> str:
    """Return the name and version of a peer; "" if it has none."""
    if not isinstance(info, dict):
        return ""
    words = [info.get("name"), info.get("version")]
    return " ".join(name_of(each) for each in words if isinstance(each, str))

"""
The page of a console as a report: its answers, made once of all messages that were judged. Bounded. No I/O, no clock.

Counts are those of all messages. The rows are those with findings, the requests of such answers, and the first others.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import orjson
from msgspec.structs import replace

from assay.console.findings import line, rules_of
from assay.console.message import message_answer
from assay.console.performance import PerformanceBoard
from assay.console.rows import COLUMNS
from assay.console.servers import ConsoleSource, MessageCounts
from assay.console.state import ConsoleState
from assay.model.bounded import Bounded
from assay.records.digest import FindingGroup, FindingGroups
from assay.records.judged_records import JudgedRecord
from assay.records.outcomes import recorded_outcome

MOST_FAULTY: Final = 3_000
"""Maximal rows of messages that are not ok."""

MOST_OTHERS: Final = 5_000
"""Maximal rows of other messages: a page has a megabyte for each 4,000 rows."""

_MOST_OPEN: Final = 1_000
"""Maximal requests that are kept until their answers come."""

_MOST_TALKS: Final = 1_000
"""Maximal sessions with counts of their own, as many as a console has."""

_MOST_RUNS: Final = 10_000
"""Maximal files, each with the servers in it."""

_MOST_TEXT: Final = 8 << 20
"""Maximal bytes of all messages in a page; others have their findings, and no text."""

_LARGEST_TEXT: Final = 100_000
"""Maximal bytes of one message in a page."""

_TOO_LONG: Final = "the message is too long for the report; `assay console FILE` shows it"


_SAME_IN_EVERY_RUN: Final = {"requestId": "", "traceId": "", "record": None}
"""Members of a message that are left out of a report: its ids are made anew by each run."""


class TalkKey(NamedTuple):
    """What has counts of its own: a session of a server in a file."""

    file: str
    server: str
    session: str


class ReportDigest:
    """What a report has of all messages. Those of parts can be merged."""

    def __init__(self) -> None:
        self.rows: list[JudgedRecord] = []
        """The messages that the page shows one by one, in order."""
        self.performance = PerformanceBoard()
        """The figures of servers by name."""
        self.talks: dict[TalkKey, MessageCounts] = {}
        self.messages = 0
        self._open: Bounded[str, JudgedRecord] = Bounded(_MOST_OPEN)
        """Requests that are no rows yet, by their id: their answers may not be ok."""
        self._awaited: set[str] = set()
        """The ids of requests that are rows, and whose answers will be."""
        self._faulty = self._others = self._text = 0

    def add(self, message: JudgedRecord) -> None:
        """Add one message, with or without findings."""
        record = message.record
        server = _source(message.file).server_of(record.metadata.server)
        self.messages += 1
        self._talk(TalkKey(message.file, server, record.metadata.session)).count(record)
        self.performance.take(record, server, message.latency)
        self._offer(message)

    def _talk(self, key: TalkKey) -> MessageCounts:
        if key not in self.talks and len(self.talks) >= _MOST_TALKS:
            key = key._replace(session="")
        return self.talks.setdefault(key, MessageCounts())

    def _offer(self, message: JudgedRecord) -> None:
        """Make a row of a message, if there is room for one of its kind."""
        record = message.record
        ident, is_answer = record.request_id, record.is_answer
        asked = self._open.pop(ident, None) if is_answer else None
        if recorded_outcome(record).word != "ok":
            is_row = self._faulty < MOST_FAULTY
            self._faulty += is_row
        else:
            is_row = self._others < MOST_OTHERS or ident in self._awaited
            self._others += is_row
        if is_answer:
            self._awaited.discard(ident)
        if is_row:
            self._add_row(asked)
            self._add_row(message)
            if record.metadata.kind == "request":
                self._awaited.add(ident)
        elif record.metadata.kind == "request":
            self._open[ident] = message

    def _add_row(self, message: JudgedRecord | None) -> None:
        if message is None:
            return
        metadata = message.record.metadata
        size = len(metadata.frame or metadata.frame_base64 or "")
        if size > _LARGEST_TEXT or self._text + size > _MOST_TEXT:
            # A copy: other reports of the same run show the text.
            bare = replace(metadata, frame=None, frame_base64=None, omitted=True)
            message, size = message._replace(record=replace(message.record, metadata=bare)), 0
        self._text += size
        self.rows.append(message)

    def merge(self, other: "ReportDigest") -> None:
        """Add everything of *other*, which has later files."""
        self.messages += other.messages
        for key, counts in other.talks.items():
            self._talk(key).add(counts)
        self.performance.merge(other.performance, {})
        for message in other.rows:
            self._offer(message)


def report_answers(
    digest: ReportDigest, groups: FindingGroups, overview: dict[str, Any], page_of: Callable[[str], str | None]
) -> dict[str, Any]:
    """
    Return the answers of a console to everything that a page reads, by their path.

    *groups* are the findings, *overview* the verdict on all files. *page_of* returns the address of the page about a
    rule.
    """
    state, numbers = _fed(digest)
    rules = rules_of(groups)
    for rule, about in rules.items():
        about["page"] = page_of(rule) or ""
    rows = [orjson.loads(each) for each in state.store.after(0)]
    answers: dict[str, Any] = {
        "state": state.answer("report", [], 0.0) | {"overview": overview},
        "rows": {"newest": state.store.newest, "columns": COLUMNS, "rows": rows},
        "findings": {"groups": [_group(each, state, numbers) for each in groups], "rules": rules},
        "contracts": {"contracts": [state.contract(each) for each in state.servers]},
        "sessions": {"sessions": state.sessions.answer()},
        "performance": {"lines": state.performance.answer()},
    }
    answers["state"]["dropped"]["rows"] = digest.messages - len(digest.rows)
    answers["state"]["dropped"]["groups"] = groups.left_out
    for seq in range(1, state.store.newest + 1):
        answer = message_answer(state, seq)
        # Of a good message only the row is known: looking for secrets in all of them would take most of the time.
        if answer is not None and (answer["violations"] or answer["sent"]["text"] is not None):
            message = digest.rows[seq - 1]
            if message.record.metadata.omitted:
                for frame in (answer["sent"], answer["delivered"]):
                    frame["why"] = frame["why"] and _TOO_LONG
            answers[f"messages/{seq}"] = answer | _SAME_IN_EVERY_RUN | {"file": message.file, "line": message.line}
    return answers


def _source(file: str) -> ConsoleSource:
    return ConsoleSource(("file", file), "file", file)


def _fed(digest: ReportDigest) -> tuple[ConsoleState, dict[tuple[str, int], list[int]]]:
    """Return the state of a console with the rows, and the counts of all messages; and the rows by file and line."""
    state, numbers = ConsoleState(most_runs=_MOST_RUNS), dict[tuple[str, int], list[int]]()
    for message in digest.rows:
        state.take(_source(message.file), message.record, 0.0)
        numbers.setdefault((message.file, message.line), []).append(state.store.newest)
    for server in state.servers:
        server.reset()
    for key, counts in digest.talks.items():
        server = state.run_of(_source(key.file), key.server).server
        server.add(counts)
        state.sessions.counted(server, key.session, counts)
    for file in {each.file for each in digest.rows}:
        state.live(_source(file), grows=False)
    state.performance = PerformanceBoard()
    state.performance.merge(digest.performance, {each.name: each.id for each in state.servers})
    return state, numbers


def _group(group: FindingGroup, state: ConsoleState, numbers: dict[tuple[str, int], list[int]]) -> dict[str, Any]:
    """Return a group of findings for the page."""
    lines = dict.fromkeys([*reversed(group.lasts), *(each.line for each in group.places)])
    samples = [seq for number in lines for seq in numbers.get((group.file, number), ())]
    server = state.run_of(_source(group.file), group.key.server).server
    return line(group, server.id) | {"samples": samples[:10]}

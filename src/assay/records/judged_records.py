"""The records of a recording that is judged now, as a guard would have written them. No I/O, no clock."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from assay.judge.redaction import Redactor
from assay.model.verdict import Party
from assay.records.moments import FRESH, Moment, shown_time
from assay.records.record import ANSWERS, Finding, Record, RunIdentity, cut, record_of
from assay.records.rows import Judged

_MOST_OPEN: Final = 20_000
"""Maximal requests whose answers are awaited."""

_LATEST: Final = 1e11
"""Seconds since 1970 that are still a time. Recordings have anything."""

_SHOWN: Final = frozenset({"initialize", "server/discover", "tools/list", "prompts/get", "resources/read"})
"""Methods of which reports show something although there are no findings: both parties, tools, what is asked for."""

_NAME_LENGTH: Final = 200
"""Maximal characters of the name of a server. The longest names in use have 64."""


class JudgedRecord(NamedTuple):
    """One judged message of a file. It can be pickled."""

    file: str
    line: int
    """The line of the recording; 0 for a request that was never answered."""
    record: Record
    conversation: int = 0
    """The number of the conversation; 0 if the recording has only one."""
    recording: int = 0
    """The line with which its recording begins, as a file may have several; 0 without one."""
    time: float | None = None
    """Seconds since 1970; None if the recording does not have it."""
    latency: float | None = None
    """Milliseconds since the request of an answer; None if a time is unknown."""
    known: frozenset[int] = frozenset()
    """The numbers of the findings that the baseline has."""

    @property
    def findings(self) -> list[Finding]:
        """The broken rules that are listed."""
        return self.record.findings


class JudgedRecords:
    """Makes the records of one file: without secrets, with names and texts of limited length."""

    def __init__(self, file: str, patterns: Sequence[str] = (), *, whole: bool = False) -> None:
        """
        *patterns* are those of more secrets.

        With *whole* every record has its message, otherwise only those whose messages reports show: looking for secrets
        takes most of the time.
        """
        self._file, self._whole = file, whole
        self._run = RunIdentity(payloads=True, patterns=patterns)
        self._began = 0.0
        """The time of the last message that has one."""
        self._open: dict[tuple[int, Party, Any], tuple[bytes, float | None]] = {}
        """The ids and the time of each open request."""
        # Methods, tools and servers repeat. They are cut before, so the memory is bounded.
        self.text: Callable[[str], str] = lru_cache(2048)(self._run.redactor.text)

    @property
    def redactor(self) -> Redactor:
        """The redactor of the payloads."""
        return self._run.redactor

    def server(self, name: str) -> str:
        """Return the name of a server for reports."""
        return self.text(cut(name, _NAME_LENGTH))

    def make(self, judged: Judged) -> JudgedRecord:
        """Return the record of *judged*, with its place."""
        found, time = judged.verdict, judged.time
        time = time if time is not None and 0 <= time < _LATEST else None
        ids, asked = self._ids(judged, time)
        latency = (time - asked) * 1000 if time is not None and asked is not None and time >= asked else None
        self._began = time if time is not None else self._began
        self._run.server = self.server(judged.server)
        self._run.payloads = self._whole or found.findings is not None or found.method in _SHOWN
        record = record_of(
            found,
            Moment("recording", "recording", ids, 0.0),
            self._run,
            ts=shown_time(int(self._began * 1e9)),
            milliseconds=latency or 0.0,
            sent=len(found.onward or found.back or b""),
        )
        metadata = record.metadata
        record.method = None if record.method is None else self.text(record.method)
        metadata.tool = None if metadata.tool is None else self.text(metadata.tool)
        metadata.session = str(judged.conversation) if judged.conversation else ""
        # The message is not there in full, or was masked: the verdict is the recorded one.
        metadata.lacks = judged.lacks
        if judged.lacks and not found.frame:
            metadata.frame = None
        return JudgedRecord(self._file, judged.line, record, judged.conversation, judged.recording, time, latency)

    def _ids(self, judged: Judged, time: float | None) -> tuple[bytes, float | None]:
        """Return the ids of the record, which a request and its answer share, and the time of the request."""
        found = judged.verdict
        value, exchange = found.value, found.exchange
        fresh = next(FRESH.left, None) or FRESH.more()
        ident = exchange.id if exchange is not None else value.get("id") if isinstance(value, dict) else None
        if not isinstance(ident, str | int):
            return fresh, None
        if found.kind == "request":
            if len(self._open) >= _MOST_OPEN:
                del self._open[next(iter(self._open))]
            self._open[judged.conversation, found.party, ident] = fresh, time
        elif found.kind in ANSWERS:
            return self._open.pop((judged.conversation, found.party.other, ident), (fresh, None))
        return fresh, None

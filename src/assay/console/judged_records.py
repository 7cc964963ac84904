"""The records of a recording that was judged just now, as a guard would have written them. No I/O, no clock."""

from time import gmtime, strftime
from typing import Any, Final, cast

import orjson

from assay.base.verdict import Party, Verdict
from assay.core.redaction import Redactor
from assay.records.journal.reading import Record
from assay.records.journal.record import RecordContext, RunIdentity, record
from assay.records.journal.record_ids import FRESH, Moment
from assay.records.transcript import Judged

_MOST_OPEN: Final = 20_000
"""Maximal requests whose answers are awaited."""

_ANSWERS: Final = frozenset({"result", "error", "missing"})

_Asked = tuple[bytes, float | None]
"""The ids and the time of a request."""


class JudgedRecords:
    """Makes the records of one file. Secrets are masked by the project's redactor."""

    def __init__(self, patterns: tuple[str, ...] = (), began: float = 0.0) -> None:
        """*began* is the time of messages in a file without times."""
        self._run = RunIdentity(deterministic=False, payloads=True, server="", patterns=patterns)
        self._open: dict[tuple[int, Party, Any], _Asked] = {}
        self._time = began

    @property
    def redactor(self) -> Redactor:
        """The redactor of the payloads."""
        return self._run.redactor

    def record(self, judged: Judged) -> Record:
        """Return the record of *judged*."""
        verdict = judged.verdict
        self._time = judged.time if judged.time is not None else self._time
        ids, asked = self._ids(judged)
        duration = max(0.0, judged.time - asked) * 1000 if judged.time is not None and asked is not None else 0.0
        moment = Moment("stdio", "stdio", ids, 0.0)
        sent = len(verdict.onward or verdict.back or b"")
        context = RecordContext(_instant(self._time), f"{duration:.3f}", sent)
        self._run.server = self._run.redactor.text(judged.server[:200])
        made = record(verdict, moment, context, self._run)
        made["transport"] = "recording"
        metadata = made["metadata"]
        if judged.conversation:
            metadata["session"] = str(judged.conversation)
        if judged.lacks:
            # The message is not there in full, or was masked: the verdict is the recorded one.
            metadata["lacks"] = judged.lacks
            if not verdict.frame:
                metadata.pop("frame", None)
        # With fragments of JSON resolved, as if it were read from a file.
        return cast("Record", orjson.loads(orjson.dumps(made)))

    def _ids(self, judged: Judged) -> tuple[bytes, float | None]:
        """Return the ids of the record, which a request and its answer share, and the time of the request."""
        verdict = judged.verdict
        if verdict.kind == "request":
            key = _key(judged, verdict.party, verdict)
            ids = _new_ids()
            if key is not None:
                if len(self._open) >= _MOST_OPEN:
                    del self._open[next(iter(self._open))]
                self._open[key] = ids, judged.time
            return ids, None
        if verdict.kind in _ANSWERS:
            key = _key(judged, verdict.party.other, verdict)
            found = self._open.pop(key, None) if key is not None else None
            if found is not None:
                return found
        return _new_ids(), None


def _key(judged: Judged, asker: Party, verdict: Verdict) -> tuple[int, Party, Any] | None:
    exchange, value = verdict.exchange, verdict.value
    ident = exchange.id if exchange is not None else value.get("id") if isinstance(value, dict) else None
    return (judged.conversation, asker, ident) if isinstance(ident, str | int) else None


def _new_ids() -> bytes:
    return next(FRESH.left, None) or FRESH.more()


def _instant(seconds: float) -> str:
    return f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(seconds))}.{int(seconds % 1 * 1e6):06}Z"

"""
The journal of a run: one JSON line for each verdict.

A line is made in about a microsecond and handed to the system before the answer is sent, so that no answered request is
lost when the process is killed.
"""

import os
from collections.abc import Callable, Sequence
from time import perf_counter, time_ns
from typing import Any, Final

import orjson

from assay.base.verdict import Verdict
from assay.records.journal.events import ServerPlace, event_line, server_line
from assay.records.journal.journal_output import FILE_BYTES, TOTAL_BYTES, JournalOutput, Log
from assay.records.journal.line_templates import LineTemplates, shown
from assay.records.journal.record import NAME_LENGTH, RecordContext, RunIdentity, cut, record
from assay.records.journal.record_ids import FRESH, Moment, deterministic_ids, spelled_ids, trace_of
from assay.records.journal.repeats import Place, RepeatRow, Repeats

NO_TIME: Final = "1970-01-01T00:00:00.000000Z"
"""The time in a deterministic run."""

# A third of the time that the constructor of a named tuple takes.
_new_tuple: Final = tuple.__new__


def _stands_still() -> float:
    return 0.0


class Journal:
    """
    The record of one run; `open` makes it.

    Any thread may make moments and lines; one writes them.
    """

    __slots__ = ("_heads", "_quick", "_repeats", "_run", "_templates", "clock", "output", "rows", "write")

    clock: Callable[[], float]
    """The clock of the journal in seconds; it stands still in a deterministic run."""
    output: JournalOutput
    """The files of the journal."""
    write: Callable[[bytes], None]
    """Appends whole lines in one write; what cannot be written is counted."""
    rows: dict[Place, RepeatRow]
    """Garbage that is counted before it is written; nearly always empty."""

    def __init__(self, output: JournalOutput, run: RunIdentity) -> None:
        self.clock = _stands_still if run.deterministic else perf_counter
        self.output = output
        self.write = output.write
        self._run = run
        self._quick = not (run.payloads or run.deterministic)
        self._templates: dict[tuple[str, str], LineTemplates] = {}
        self._heads: dict[str, bytes] = {}
        self._repeats = Repeats(self._counted, self.clock, verbatim=run.payloads)
        self.rows = self._repeats.rows

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        deterministic: bool = False,
        payloads: bool = False,
        keep: int = 50,
        redact: Sequence[str] = (),
        log: Log = lambda _: None,
        server: str = "",
        mode: str = "",
        frame_bytes: int = 0,
        file_bytes: int = FILE_BYTES,
        total_bytes: int = TOTAL_BYTES,
    ) -> "Journal | None":
        """
        Open a journal in a new file below *directory*; None, with a line to *log*, if that fails.

        At most *keep* runs are kept there. With *payloads* the frames are written, too, without secrets and matches of
        *redact*. *server* is the name of the server. *mode* is that of a guard, *frame_bytes* its limit of a message,
        if a replay needs them. After *file_bytes* it continues in another file, and the oldest files are removed so
        that all have at most *total_bytes*.

        Raises `ValueError` for an invalid pattern.
        """
        run = RunIdentity(
            deterministic=deterministic,
            payloads=payloads,
            server=cut(server, NAME_LENGTH),
            patterns=tuple(redact),
            mode=mode,
            frame_bytes=frame_bytes,
        )
        output = JournalOutput.open(os.fspath(directory), keep, log, file_bytes, total_bytes)
        return None if output is None else cls(output, run)

    @property
    def payloads(self) -> bool:
        """Whether records have the frames."""
        return self._run.payloads

    @property
    def path(self) -> str:
        """The current file."""
        return self.output.path

    @property
    def written(self) -> int:
        """The bytes of complete records in the files."""
        return self.output.written

    @property
    def failures(self) -> int:
        """The number of records that could not be written."""
        return self.output.failures

    @failures.setter
    def failures(self, count: int) -> None:
        self.output.failures = count

    def name_route(self, route: str, server: str) -> None:
        """Give the records of messages at *route* the name *server*, where this journal has several servers."""
        self._run.servers[route] = cut(server, NAME_LENGTH)
        self._forget_templates()

    def introduce(self, transport: str, route: str, place: ServerPlace) -> None:
        """Write what is guarded at *route*, now and at the beginning of each further file."""
        line = self._heads[route] = server_line(transport, route, self._run, place)
        self.output.head = b"".join(self._heads.values())
        if line:
            self.write(line)

    def event(self, kind: str, route: str, connection: str, members: dict[str, Any]) -> bytes:
        """Return the line of an event of the server at *route*, and of the session of *connection* if it has one."""
        return event_line(kind, route, self._run, {**self._run.connection(connection), **members})

    def templates(self, transport: str, route: str) -> LineTemplates | None:
        """Return the templates of good messages at *route*; None if each record has more than a template can."""
        if not self._quick:
            return None
        made = self._templates.get((transport, route))
        if made is None:
            made = self._templates[transport, route] = LineTemplates(self._run, transport, route)
        return made

    def moment(
        self,
        transport: str,
        route: str,
        method: str | None,
        frame: bytes,
        traceparent: str | None = None,
        session: str = "",
        began: float | None = None,
    ) -> Moment:
        """
        Return the ids of a message, and when it came: now, or at *began* by the clock of this journal.

        An invalid *traceparent* is ignored. Of *session*, the id of a connection, only a digest is written.
        """
        if self._run.deterministic:
            ids = spelled_ids(*deterministic_ids(route, method, frame))
        else:
            ids = next(FRESH.left, None) or FRESH.more()
        made = _new_tuple(Moment, (transport, route, ids, self.clock() if began is None else began, session, method))
        trace = trace_of(traceparent) if traceparent is not None else None
        if trace is not None:
            return made._replace(ids=spelled_ids(made.request_id, trace, made.span_id))
        return made

    def line(
        self,
        verdict: Verdict,
        moment: Moment,
        sent: int,
        *,
        failed: bool = False,
        code: str | None = None,
    ) -> bytes:
        """
        Return the record of *verdict*, with its newline.

        *sent* counts the bytes that were sent for it. *failed* marks a result that reports a failure, where it has not
        been parsed; *code* is the canonical error of the answer, where that is known.
        """
        if verdict.findings is None and not failed and code is None:
            templates = self.templates(moment.transport, moment.route)
            line = templates.line(verdict, moment, 0.0, moment.session, sent) if templates is not None else None
            if line is not None:
                return line
        return self._thorough(verdict, moment, sent, failed, code)

    def repeats(
        self, verdict: Verdict, began: float, sent: int, session: str, transport: str, route: str
    ) -> tuple[bool, bytes]:
        """
        Return whether *verdict* is only counted, as garbage equal to the previous one; and the lines to write first.

        Call it for possible garbage, and for every message while there are `rows`.
        """
        if self._run.deterministic:
            # Counting depends on the time.
            return False, b""
        row, ended = self._repeats.heard(verdict, session)
        if row is None:
            return False, ended
        if row.moment is None:
            row.moment = self.moment(transport, route, None, verdict.frame, None, session, began)
        row.add(verdict, sent)
        return True, b""

    @property
    def waiting(self) -> bool:
        """Whether `tend` has work, now or soon."""
        return bool(self.rows) or self.output.reopening

    def tend(self) -> None:
        """Write counts that are a second old, and reopen the file if requested."""
        if self.output.reopening:
            self.output.turn(0)
        lines = self._repeats.due()
        if lines:
            self.write(lines)

    def reopen(self) -> None:
        """
        Request that the file is reopened before the next write: it may have been moved away.

        A stopped journal continues after that. This only sets a flag, so a signal handler may call it.
        """
        self.output.reopening = True

    def restarted(self, times: int) -> None:
        """Write in every record from now on that the server was restarted so many times."""
        self._write_rows()
        self._run.restarts = times
        self._forget_templates()

    def close(self) -> None:
        """Write the counts, and close the file."""
        self._write_rows()
        self.output.close()

    def _forget_templates(self) -> None:
        for each in self._templates.values():
            each.clear()

    def _write_rows(self) -> None:
        lines = self._repeats.all()
        if lines:
            self.write(lines)

    # ── messages without a template ──────────────────────────────────────────────────────────────────────────────────

    def _thorough(self, verdict: Verdict, moment: Moment, sent: int, failed: bool, code: str | None) -> bytes:
        return self._record(verdict, moment, RecordContext(NO_TIME, "0", sent, failed, code))

    def _counted(self, row: RepeatRow) -> bytes:
        """Return the record of counted garbage."""
        if row.last is None or row.moment is None:
            return b""
        return self._record(
            row.last, row.moment, RecordContext(NO_TIME, "0", row.sent, repeated=row.count, came=row.came)
        )

    def _record(self, verdict: Verdict, moment: Moment, context: RecordContext) -> bytes:
        if not self._run.deterministic:
            took = f"{(perf_counter() - moment.began) * 1e3:.3f}"
            context = context._replace(ts=shown(time_ns()), duration=took)
        return orjson.dumps(record(verdict, moment, context, self._run), option=orjson.OPT_APPEND_NEWLINE)

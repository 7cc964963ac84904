"""
The journal of a run: one JSON line for each verdict, in files up to a size that are reopened when that is asked for.

A line is made in about a microsecond and handed to the system before the answer is sent, so that no answered request is
lost when the process is killed. Never in the way of the traffic: what cannot be written is counted, and lost.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter, time_ns
from typing import Any, Final

from assay.model.verdict import Verdict
from assay.records import run_files
from assay.records.line_templates import LineTemplates
from assay.records.moments import FRESH, Moment, deterministic_ids, shown_time, spelled_ids, trace_of
from assay.records.record import (
    NAME_LENGTH,
    RunIdentity,
    ServerPlace,
    cut,
    event_line,
    record_of,
    server_line,
    written_record,
)
from assay.records.repeats import Place, RepeatRow, Repeats

Log = Callable[[str], None]

FILE_BYTES: Final = 64 << 20
"""Bytes of a file, after which a run goes on in a further one."""

TOTAL_BYTES: Final = 1 << 30
"""Bytes of all files in the directory."""


class JournalOutput:
    """The files of one run. One thread writes them."""

    __slots__ = (
        "_closed", "_descriptor", "_file_bytes", "_log", "_most", "_size", "_total_bytes", "failures", "head", "path",
        "reopening", "written",
    )  # fmt: skip

    path: str
    """The file that is written to."""
    written: int
    """Bytes of whole lines in the files."""
    failures: int
    """Lines that could not be written."""
    reopening: bool
    """Whether the file is to be opened anew before the next write."""
    head: bytes
    """Lines that every file begins with."""

    def __init__(self, descriptor: int, path: str, log: Log, file_bytes: int, total_bytes: int) -> None:
        self.path = path
        self.written = self.failures = self._size = 0
        self._descriptor = descriptor
        self._log = log
        self._most = self._file_bytes = file_bytes
        self._total_bytes = total_bytes
        self._closed = self.reopening = False
        self.head = b""

    @classmethod
    def open(cls, folder: str, keep: int, log: Log, file_bytes: int, total_bytes: int) -> "JournalOutput | None":
        """Create a file below *folder*, and keep the files of *keep* runs; None, and a line to *log*, on failure."""
        try:
            descriptor, path = run_files.create(folder)
        except OSError as error:
            log(f"no journal: {error.filename or folder}: {error.strerror}")
            return None
        try:
            run_files.point_at(path)
            run_files.prune(path, keep)
            run_files.bound(path, file_bytes, total_bytes)
        except OSError as error:
            log(f"journal: {error.filename or folder}: {error.strerror}")
        return cls(descriptor, path, log, file_bytes, total_bytes)

    def write(self, lines: bytes) -> None:
        """
        Append whole *lines* in one write.

        If that fails the journal ends there: one line goes to the log, and later lines are counted.
        """
        if self._size + len(lines) > self._most or self.reopening:
            self.turn(len(lines))
        taken, why = 0, "only a part was written"
        try:
            taken = os.write(self._descriptor, lines)
            if taken != len(lines):
                # Most likely the disk is full, and the second try says so.
                taken += os.write(self._descriptor, lines[taken:])
        except OSError as error:
            why = str(error.strerror)
        if taken == len(lines):
            self.written += taken
            self._size += taken
        else:
            self._stop(lines, taken, why)

    def close(self) -> None:
        """Close the file for good."""
        self._closed = True
        self._let_go()

    def turn(self, coming: int) -> None:
        """Open the file anew if that was asked for, or a further one if *coming* bytes are too many for this one."""
        if self.reopening:
            self.reopening = False
            if not self._closed:
                self._begin_anew()
        if self._size > len(self.head) and self._size + coming > self._most and self._descriptor >= 0:
            self._go_on()

    def _let_go(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):
            os.close(descriptor)

    def _begin_anew(self) -> None:
        try:
            descriptor = run_files.reopen(self.path)
        except OSError as error:
            self._log(f"journal: {error.filename or self.path}: {error.strerror}")
            return
        self._take(descriptor, self.path, os.fstat(descriptor).st_size)

    def _go_on(self) -> None:
        try:
            descriptor, path = run_files.go_on(self.path)
        except OSError as error:
            # The file grows on, and a further one is tried when it is as long again.
            self._most = self._size + self._file_bytes
            self._log(f"journal: {error.filename or self.path}: {error.strerror}")
            return
        self._take(descriptor, path, 0)
        try:
            run_files.point_on(path)
            run_files.bound(path, self._file_bytes, self._total_bytes)
        except OSError as error:
            self._log(f"journal: {error.filename or path}: {error.strerror}")

    def _take(self, descriptor: int, path: str, size: int) -> None:
        self._let_go()
        self._descriptor, self.path, self._size, self._most = descriptor, path, size, self._file_bytes
        if self.head and not size:
            self._begin()

    def _begin(self) -> None:
        """Write the first lines of a file, whole or not at all: what fails here fails again with the next line."""
        with suppress(OSError):
            taken = os.write(self._descriptor, self.head)
            if taken == len(self.head):
                self._size = taken
            else:
                os.ftruncate(self._descriptor, 0)

    def _stop(self, lines: bytes, taken: int, why: str) -> None:
        """End the journal with its last whole line."""
        if self._descriptor < 0:
            self.failures += lines.count(b"\n")
            return
        whole = lines.rfind(b"\n", 0, taken) + 1
        if whole < taken:
            self._remove_half_a_line(taken, whole)
        self.written += whole
        self._size += whole
        self.failures += lines.count(b"\n", whole)
        self._log(f"journal stopped: {self.path}: {why}")
        self._let_go()

    def _remove_half_a_line(self, taken: int, whole: int) -> None:
        """
        Cut the file after its last whole line.

        Only if the file holds what we have written and nothing else: a process that was forked from this one may have
        gone on, and its lines would be cut. Then the half line stays, and ends with a newline.
        """
        with suppress(OSError):
            if os.fstat(self._descriptor).st_size == self._size + taken:
                os.ftruncate(self._descriptor, self._size + whole)
            else:
                os.write(self._descriptor, b"\n")


NO_TIME: Final = "1970-01-01T00:00:00.000000Z"
"""The time in a deterministic run."""

# A third of the time that the constructor of a named tuple takes.
_new_tuple: Final = tuple.__new__


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
        self.clock = (lambda: 0.0) if run.deterministic else perf_counter
        self.output = output
        self.write = output.write
        self._run = run
        self._quick = not (run.payloads or run.deterministic)
        self._templates: dict[tuple[str, str], LineTemplates] = {}
        self._heads: dict[str, bytes] = {}
        self._repeats = Repeats(self._record, self.clock, verbatim=run.payloads)
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
            ids = deterministic_ids(route, method, frame)
        else:
            ids = next(FRESH.left, None) or FRESH.more()
        made = _new_tuple(
            Moment, (transport, route, ids, self.clock() if began is None else began, session, method, None)
        )
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
        return self._record(verdict, moment, sent, failed=failed, code=code)

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
        return self._repeats.heard(
            verdict,
            session,
            sent,
            lambda: self.moment(transport, route, None, verdict.frame, None, session, began),
        )

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

    def _record(self, verdict: Verdict, moment: Moment, sent: int, **more: Any) -> bytes:
        """Return the line of a message without a template; *more* is as for `record_of`."""
        ts = NO_TIME
        milliseconds: float = 0
        if not self._run.deterministic:
            ts, milliseconds = shown_time(time_ns()), (perf_counter() - moment.began) * 1e3
        made = record_of(verdict, moment, self._run, ts=ts, milliseconds=milliseconds, sent=sent, **more)
        return written_record(made) + b"\n"

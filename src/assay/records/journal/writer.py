"""
Writes verdicts down, one JSON line each. Never in the way of the traffic: what cannot be written is counted, and lost.

A line is made in about two microseconds and handed to the system in one write, so that nothing that was answered is
lost when the process is killed.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import gmtime, perf_counter, strftime, time_ns
from typing import Any, Final

import orjson

from assay.base.verdict import Exchange, Kind, Party, Verdict
from assay.records.journal import run_files
from assay.records.journal.record import (
    NAME_LENGTH,
    ROUTE_LENGTH,
    SCHEMA_VERSION,
    RecordContext,
    RunIdentity,
    cut,
    id_text,
    name_of,
    record,
)
from assay.records.journal.record_ids import FRESH, Moment, deterministic_ids, trace_of
from assay.records.journal.repeats import Place, RepeatRow, Repeats

Log = Callable[[str], None]

NO_TIME: Final = "1970-01-01T00:00:00.000000Z"
"""What every clock shows in a deterministic run."""

_MOST_KEPT: Final = 1024
"""Patterns that are kept for the next line: methods times tools times two. Names are the peer's, and may be many."""

FILE_BYTES: Final = 64 << 20
"""Bytes of a file, after which a run goes on in a further one."""

TOTAL_BYTES: Final = 1 << 30
"""Bytes of all files in the directory."""

_QUICK: Final[frozenset[Kind]] = frozenset({"request", "result", "notification"})
_CLIENT: Final = Party.CLIENT
_new_tuple: Final = tuple.__new__


Note = tuple[Exchange, bool, int, float, float, int, str]
"""
Of a message: what it belongs to, whether it asks, how long it is, when it came and when it was done with by our clock,
when that was for everybody else, and the session.
"""


def _stands_still() -> float:
    return 0.0


class Journal:
    """
    The record of one run; `open` makes it.

    Any thread may make moments and lines; one writes them.
    """

    __slots__ = (
        "_closed", "_descriptor", "_end", "_file_bytes", "_log", "_most", "_pairs", "_patterns", "_quick", "_reopening",
        "_repeats", "_run", "_second", "_sessions", "_size", "_total_bytes", "clock", "failures", "path", "rows",
        "written",
    )  # fmt: skip

    clock: Callable[[], float]
    """Seconds since some moment; in a deterministic run it stands still. What moments begin by."""
    path: str
    """The file that is written to."""
    rows: dict[Place, RepeatRow]
    """What is counted before it is written; nearly always nothing is."""
    written: int
    """Bytes of whole records in the files."""
    failures: int
    """Records that could not be written."""

    def __init__(
        self,
        descriptor: int,
        path: str,
        run: RunIdentity,
        log: Log,
        file_bytes: int = FILE_BYTES,
        total_bytes: int = TOTAL_BYTES,
    ) -> None:
        self.path = path
        self.clock = _stands_still if run.deterministic else perf_counter
        self.written = self.failures = 0
        self._descriptor = descriptor
        self._run = run
        self._log = log
        self._quick = not (run.payloads or run.deterministic)
        self._second = 0, b""
        self._patterns: dict[tuple[object, ...], bytes] = {}
        self._pairs: dict[tuple[object, ...], tuple[bytes, bytes]] = {}
        self._sessions: dict[str, str] = {}
        self._end = self._ending()
        self._closed = self._reopening = False
        self._size = 0
        self._most = self._file_bytes = file_bytes
        self._total_bytes = total_bytes
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
        A journal in a new file below *directory*; None, and a line to *log*, if there cannot be one.

        Of all runs there, *keep* are left. With *payloads* the frames are written too, without what looks like a secret
        or is matched by *redact*. *server* is the name of the server. *mode* is that of a guard, and *frame_bytes* its
        longest message, where a replay has to know it. After *file_bytes* it goes on in a further file, and the oldest
        files there are removed so that all take *total_bytes* at most.

        Raises `ValueError` for a pattern that is none.
        """
        run = RunIdentity(
            deterministic=deterministic,
            payloads=payloads,
            server=cut(server, NAME_LENGTH),
            patterns=tuple(redact),
            mode=mode,
            frame_bytes=frame_bytes,
        )
        folder = os.fspath(directory)
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
        return cls(descriptor, path, run, log, file_bytes, total_bytes)

    def name_route(self, route: str, server: str) -> None:
        """Give the records of messages at *route* the name *server*, where this journal has several servers."""
        self._run.servers[route] = cut(server, NAME_LENGTH)

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
        What a message is known by, and when it came: now, or *began* by the clock of this journal.

        An invalid *traceparent* is ignored. *session* is what tells a connection from others; of it only a digest is
        written.
        """
        if self._run.deterministic:
            request_id, trace_id, span_id = deterministic_ids(route, method, frame)
        else:
            request_id, trace_id, span_id = next(FRESH.left, None) or FRESH.more()
        if traceparent is not None:
            trace_id = trace_of(traceparent) or trace_id
        if began is None:
            began = self.clock()
        return _new_tuple(Moment, (transport, route, request_id, trace_id, span_id, began, session, method))

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
        The record of *verdict*, with its newline.

        *sent* counts the bytes that went out for it. *failed* says of a result that it reports a failure, where nobody
        has read it; *code* is the canonical error that somebody got, where that is known.
        """
        if failed or code is not None or verdict.findings is not None or not self._quick:
            return self._thorough(verdict, moment, sent, failed, code)
        # A good message, as nearly all are. This writes what the thorough way would, in a fifth of the time; what it
        # leaves to that one, it leaves without a word.
        kind, value, exchange = verdict.kind, verdict.value, verdict.exchange
        transport, route, _, _, _, began, session, method = moment
        ident: Any = None
        tool = None
        if exchange is not None:
            method = exchange.entry.name
            ident = exchange.id
            if method == "tools/call":
                contract = exchange.contract
                tool = contract.name if contract is not None else exchange.detail
        if value is not None:
            ident = value.get("id")
            if kind == "result":
                result = value.get("result")
                failed = type(result) is dict and result.get("isError") is True
            elif exchange is None:
                method = value.get("method")
        if failed or kind not in _QUICK or (exchange is not None and kind == "notification"):
            return self._thorough(verdict, moment, sent, failed, code)
        pattern = self._patterns.get(
            (kind, method, tool, verdict.revision, verdict.party is _CLIENT, route, transport)
        ) or self._learned(verdict, transport, route, method, tool)
        stamp = time_ns()
        second, shown = self._second
        if second != stamp // 1_000_000_000:
            shown = self._told(stamp)
        took = (perf_counter() - began) * 1e3
        micros = stamp // 1000 % 1_000_000
        return pattern % (shown, micros, _known(moment), took, len(verdict.frame), sent, self._ended(ident, session))

    def note(self, verdict: Verdict, began: float, session: str = "") -> Note | None:
        """
        What `spelt` needs to know of a good request or result that goes on as it came; None for what is left to `line`.

        The two together do what `moment` and `line` would, in half of the time.
        """
        exchange, value = verdict.exchange, verdict.value
        if exchange is None or value is None or not self._quick or exchange.spelling is not None:
            return None
        if exchange.contract is None and exchange.detail is not None:
            return None
        if verdict.kind == "request":
            params = value.get("params")
            if params is not None and "traceparent" in params.get("_meta", ()):
                return None
            return exchange, True, len(verdict.frame), began, perf_counter(), time_ns(), session
        if verdict.kind != "result" or value["result"].get("isError") is True:
            return None
        return exchange, False, len(verdict.frame), began, perf_counter(), time_ns(), session

    def spelt(self, notes: "Sequence[Note | bytes]", transport: str, route: str) -> bytes:
        """
        The lines of *notes*; those that are lines already stay as they are.

        A request gets its moment here, and its result has the same. Most often one follows the other, and shares most
        of its line.
        """
        lines: list[bytes] = []
        last = last_session = None
        for note in notes:
            if isinstance(note, bytes):
                lines.append(note)
                continue
            exchange, asks, size, began, ended, stamp, session = note
            if exchange is not last or session is not last_session:
                last, last_session = exchange, session
                if exchange.moment is None:
                    ids = next(FRESH.left, None) or FRESH.more()
                    told = (transport, route, *ids, began, session, exchange.entry.name)
                    exchange.moment = _new_tuple(Moment, told)
                moment = exchange.moment
                since = moment.began
                known = _known(moment)
                contract = exchange.contract
                asked, answered = self._pairs.get(
                    (exchange.entry, contract.name if contract is not None else None, route, transport)
                ) or self._learned_pair(exchange, transport, route)
                end = self._ended(exchange.id, session)
            second, shown = self._second
            if second != stamp // 1_000_000_000:
                shown = self._told(stamp)
            pattern, since = (asked, began) if asks else (answered, since)
            lines.append(pattern % (shown, stamp // 1000 % 1_000_000, known, (ended - since) * 1e3, size, size, end))
        return b"".join(lines)

    def pair(self, asked: Verdict, answer: Verdict, moment: Moment) -> bytes:
        """
        The records of a request and of its answer, which nothing is to be said of, where both are known at once.

        What `line` would write of either, in two thirds of the time.
        """
        exchange = asked.exchange
        if exchange is None or not self._quick or exchange.spelling is not None or _is_particular(exchange):
            return self.line(asked, moment, len(asked.frame)) + self.line(answer, moment, len(answer.frame))
        transport, route, _, _, _, began, session, _ = moment
        contract = exchange.contract
        first, second = self._pairs.get(
            (exchange.entry, contract.name if contract is not None else None, route, transport)
        ) or self._learned_pair(exchange, transport, route)
        stamp = time_ns()
        last, shown = self._second
        if last != stamp // 1_000_000_000:
            shown = self._told(stamp)
        known, end = _known(moment), self._ended(exchange.id, session)
        micros, took = stamp // 1000 % 1_000_000, (perf_counter() - began) * 1e3
        came, went = len(asked.frame), len(answer.frame)
        return first % (shown, micros, known, took, came, came, end) + second % (
            shown,
            micros,
            known,
            took,
            went,
            went,
            end,
        )

    def write(self, lines: bytes) -> None:
        """
        Appends whole *lines*, in one write.

        If that fails the journal ends there: the log is told once, and what would have come after is counted.
        """
        if self._size + len(lines) > self._most or self._reopening:
            self._turn(len(lines))
        taken = 0
        try:
            taken = os.write(self._descriptor, lines)
            if taken != len(lines):
                # Most likely the disk is full, and the second try says so.
                taken += os.write(self._descriptor, lines[taken:])
        except OSError as error:
            self._stop(lines, taken, error)
        else:
            if taken == len(lines):
                self.written += taken
                self._size += taken
            else:
                self._stop(lines, taken, None)

    def repeats(
        self, verdict: Verdict, began: float, sent: int, session: str, transport: str, route: str
    ) -> tuple[bool, bytes]:
        """
        Whether *verdict* only counts, since it is the same garbage as the one before; and lines to be written first.

        To be asked about what may be garbage, and while there are `rows` about everything.
        """
        if self._run.deterministic:
            # When something is counted depends on the time.
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
        """Whether there is something for `tend` to do, now or soon."""
        return bool(self.rows) or self._reopening

    def tend(self) -> None:
        """Writes what was counted for a second, and opens the file anew if that was asked for."""
        if self._reopening:
            self._turn(0)
        lines = self._repeats.due()
        if lines:
            self.write(lines)

    def reopen(self) -> None:
        """
        Has the file opened anew, before anything else is written to it: somebody may have moved it away.

        A journal that has stopped goes on by that. Only notes it, so that it can be called at any time, also by a
        signal.
        """
        self._reopening = True

    def restarted(self, times: int) -> None:
        """The server of this run was restarted so many times: every record says so from now on."""
        self._write_rows()
        self._run.restarts = times
        self._end = self._ending()

    def close(self) -> None:
        """Nothing more is written."""
        self._write_rows()
        self._closed = True
        self._let_go()

    def _write_rows(self) -> None:
        lines = self._repeats.all()
        if lines:
            self.write(lines)

    def _let_go(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _turn(self, coming: int) -> None:
        """Opens the file anew, if that was asked for, or a further one, if *coming* bytes would be too many here."""
        if self._reopening:
            self._reopening = False
            self._begin_anew()
        if self._size and self._size + coming > self._most and self._descriptor >= 0:
            self._go_on()

    def _begin_anew(self) -> None:
        if self._closed:
            return
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
        with suppress(OSError):
            self._let_go()
        self._descriptor, self.path, self._size, self._most = descriptor, path, size, self._file_bytes

    # ── the thorough way ─────────────────────────────────────────────────────────────────────────────────────────────

    def _thorough(self, verdict: Verdict, moment: Moment, sent: int, failed: bool, code: str | None) -> bytes:
        return self._record(verdict, moment, RecordContext(NO_TIME, "0", sent, failed, code))

    def _counted(self, row: RepeatRow) -> bytes:
        """The record of what was counted."""
        if row.last is None or row.moment is None:
            return b""
        return self._record(
            row.last, row.moment, RecordContext(NO_TIME, "0", row.sent, repeated=row.count, came=row.came)
        )

    def _record(self, verdict: Verdict, moment: Moment, told: RecordContext) -> bytes:
        if not self._run.deterministic:
            stamp = time_ns()
            told = told._replace(
                ts=f"{self._told(stamp).decode()}{stamp // 1000 % 1_000_000:06}Z",
                duration=f"{(perf_counter() - moment.began) * 1e3:.3f}",
            )
        return orjson.dumps(record(verdict, moment, told, self._run), option=orjson.OPT_APPEND_NEWLINE)

    # ── what is kept for the next line ───────────────────────────────────────────────────────────────────────────────

    def _learned(self, verdict: Verdict, transport: str, route: str, method: str | None, tool: str | None) -> bytes:
        """The pattern of every line of such a message."""
        kind, revision, party = verdict.kind, verdict.revision, verdict.party
        pattern = _pattern(transport, route, method, tool, revision, party, kind, self._run.server_of(route))
        if len(method or "") > NAME_LENGTH or len(tool or "") > NAME_LENGTH:
            # A thousand names of a megabyte are a gigabyte.
            return pattern
        if len(self._patterns) >= _MOST_KEPT:
            self._patterns.clear()
        self._patterns[kind, method, tool, revision, party is _CLIENT, route, transport] = pattern
        return pattern

    def _learned_pair(self, exchange: Exchange, transport: str, route: str) -> tuple[bytes, bytes]:
        """The same of a request, and of its result."""
        method, tool, revision, asker = exchange.method, exchange.tool, exchange.revision, exchange.asker
        server = self._run.server_of(route)
        both = (
            _pattern(transport, route, method, tool, revision, asker, "request", server),
            _pattern(transport, route, method, tool, revision, asker.other, "result", server),
        )
        contract = exchange.contract
        name = contract.name if contract is not None else None
        if len(name or "") > NAME_LENGTH:
            return both
        if len(self._pairs) >= _MOST_KEPT:
            self._pairs.clear()
        # By the name: a contract that is kept here would keep its schemas, long after its session has ended.
        self._pairs[exchange.entry, name, route, transport] = both
        return both

    def _ending(self) -> str:
        restarts = f',"restarts":{self._run.restarts}' if self._run.restarts else ""
        mode = f',"mode":{_json(self._run.mode)}' if self._run.mode else ""
        return f"{restarts}{mode}}}}}\n"

    def _ended(self, ident: Any, session: str) -> bytes:
        """The end of a line, from the id on."""
        shown = ident if type(ident) is int else id_text(ident)
        if session:
            name = self._sessions.get(session) or self._named(session)
            return f'{shown},"session":"{name}"{self._end}'.encode()
        return f"{shown}{self._end}".encode()

    def _named(self, session: str) -> str:
        if len(self._sessions) >= _MOST_KEPT:
            self._sessions.clear()
        self._sessions[session] = name = self._run.session_name(session)
        return name

    def _told(self, stamp: int) -> bytes:
        """The second of *stamp*, which counts nanoseconds, as far as the point."""
        second = stamp // 1_000_000_000
        shown = strftime("%Y-%m-%dT%H:%M:%S.", gmtime(second)).encode()
        self._second = second, shown
        return shown

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _stop(self, lines: bytes, taken: int, error: OSError | None) -> None:
        """The journal ends here, with its last whole line."""
        if self._descriptor < 0:
            self.failures += lines.count(b"\n")
            return
        whole = lines.rfind(b"\n", 0, taken) + 1
        if whole < taken:
            with suppress(OSError):
                self._mend(taken, whole)
        self.written += whole
        self._size += whole
        self.failures += lines.count(b"\n", whole)
        reason = error.strerror if error is not None else "only a part was written"
        self._log(f"journal stopped: {self.path}: {reason}")
        with suppress(OSError):
            self._let_go()
        self._descriptor = -1

    def _mend(self, taken: int, whole: int) -> None:
        """
        Takes back half a line.

        Only if the file holds what we have written and nothing else: a process that was forked from this one may have
        gone on, and what it wrote would be cut. Then half a line stays, with an end of its own.
        """
        if os.fstat(self._descriptor).st_size == self._size + taken:
            os.ftruncate(self._descriptor, self._size + whole)
        else:
            os.write(self._descriptor, b"\n")


def _pattern(
    transport: str,
    route: str,
    method: str | None,
    tool: str | None,
    revision: str | None,
    party: Party,
    kind: Kind,
    server: str,
) -> bytes:
    """
    A line of a good message, but for what is its own.

    That is the second and its millionths, what it is known by, milliseconds, bytes in and out, and the end. Bytes: that
    is quicker than text, which would have to be encoded.
    """
    named = f'"server":{_json(server)},' if server else ""
    middle = (
        f'"transport":{_json(transport)},"route":{_json(cut(route, ROUTE_LENGTH))},'
        f'"method":{_json(name_of(method))},"status":"ok","durationMs":'
    )
    tail = (
        f',"error":null,"metadata":{{"schemaVersion":"{SCHEMA_VERSION}","deterministic":false,'
        f'"revision":{_json(revision)},"tool":{_json(name_of(tool))},"party":"{party}","kind":"{kind}",{named}"id":'
    )
    # What peers call their tools may have anything in it.
    spelt = middle.replace("%", "%%"), tail.replace("%", "%%")
    return '{{"ts":"%b%06d%b{}%.3f,"attempt":1,"inputBytes":%d,"outputBytes":%d{}%b'.format(*spelt).encode()


def _known(moment: Moment) -> bytes:
    """What a message is known by, as far as the pattern wants it."""
    return f'Z","requestId":"{moment[2]}","traceId":"{moment[3]}","spanId":"{moment[4]}",'.encode()


def _is_particular(exchange: Exchange) -> bool:
    """Whether what is told of a request is not the same for all that are like it: a tool that has no contract."""
    return exchange.contract is None and exchange.detail is not None


def _json(text: str | None) -> str:
    return orjson.dumps(text).decode()

"""
Recordings: files with every message of guarded conversations, which a guard writes and `assay check` judges.

A recording is the log of the calls of its conversations, so repeating the calls gives the same verdicts. Each row is
written in one call before anything is sent for its message, so a guard that is killed leaves a readable file. A failed
write is reported once, and the recording ends there.
"""

import errno
import os
import stat
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from time import gmtime, monotonic_ns, strftime, time_ns
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import orjson

from assay import __version__
from assay.guard.internal_errors import log_once
from assay.judge.conversation import NO_FACTS, Conversation, Facts
from assay.judge.framing import Text
from assay.judge.redaction import Redactor
from assay.model.json_values import Id
from assay.model.verdict import Exchange, Party, Verdict
from assay.records.record import payload
from assay.records.rows import DIRECTIONS, VERSION, spelt_facts, spelt_findings
from assay.schema.tool_contracts import Tools

Log = Callable[[str], None]


class RecordedConversation(Conversation):
    """One conversation of a recording."""

    def __init__(self, recording: "Recording", server: str, *, tools: Tools | None = None, **terms: Any) -> None:
        """*server* is the name of the guarded server, *tools* and *terms* are those of `Conversation`."""
        super().__init__(tools=tools, **terms)
        self._recording = recording
        self._server_name = server
        self._hearing = False
        self._number = recording.number()
        self._write(
            {
                "event": "open",
                "server": server,
                "mode": self.mode,
                "revision": terms.get("revision"),
                "lines": bool(terms.get("lines")),
                "frameBytes": self.limits.frame_bytes,
                **recording.tools_of(self.tools, self._number),
            }
        )

    def hear(self, party: Party, frame: Text, facts: Facts = NO_FACTS) -> Verdict:
        """Judge and record *frame*; return the verdict."""
        if self._hearing:
            # Judging a large frame calls this method again.
            return super().hear(party, frame, facts)
        self._hearing = True
        try:
            verdict = super().hear(party, frame, facts)
        finally:
            self._hearing = False
        if verdict.kind != "blank":
            self._record(verdict, facts)
        return verdict

    def unjudged(self, party: Party, frame: bytes, why: str, heard: Verdict | None = None) -> Verdict:
        """Return the verdict on a frame after an internal error, and record it unless it is already recorded."""
        verdict = super().unjudged(party, frame, why, heard)
        if heard is None:
            self._record(verdict, NO_FACTS, failed=why)
        return verdict

    def give_up(
        self,
        asker: Party,
        ident: Id,
        code: str = "TIMEOUT",
        why: str = "",
        data: Mapping[str, Any] | None = None,
        *,
        unstarted: bool = False,
        excused: bool = False,
    ) -> Verdict | None:
        """Fail one request without a response, and record it."""
        missing = super().give_up(asker, ident, code, why, data, unstarted=unstarted, excused=excused)
        if missing is not None:
            row = {"event": "unanswered", "dir": DIRECTIONS[asker.other], "id": ident, "code": code, "why": why}
            self._write(row, unstarted=unstarted, excused=excused)
        return missing

    def end(
        self,
        party: Party,
        why: str = "",
        data: Mapping[str, Any] | None = None,
        *,
        unstarted: bool = False,
        excused: bool = False,
    ) -> list[Verdict]:
        """Fail every request that *party* has not answered, and record the end of its messages."""
        left = super().end(party, why, data, unstarted=unstarted, excused=excused)
        row = {"event": "end", "dir": DIRECTIONS[party], "why": why}
        self._write(row, unstarted=unstarted, excused=excused)
        return left

    def beside(self, revision: str) -> Conversation:
        """Return a conversation of the guard itself with the same server, which is recorded as well."""
        return RecordedConversation(
            self._recording, self._server_name, tools=self.tools, revision=revision, **self._terms
        )

    def renew(self) -> None:
        """Record that the server was restarted."""
        super().renew()
        self._write({"event": "restart"})

    def forget_settled(self) -> None:
        """Record that the next requests come from another client."""
        super().forget_settled()
        self._write({"event": "forget"})

    def release(self) -> None:
        """Record the end of the conversation."""
        super().release()
        self._write({"event": "release"})

    def _record(self, verdict: Verdict, facts: Facts, *, failed: str = "") -> None:
        try:
            members: dict[str, Any] = {"failed": failed} if failed else {}
            policy = self._policy
            is_repaired = any(each.action == "repair" for each in verdict.violations)
            if policy is not None and verdict.violations and (policy.decides or is_repaired):
                # An action may differ from the default in the table of rules. Places in a batch are relative to their
                # message.
                members["actions"] = [
                    {"rule": each.rule, "at": each.at, "action": each.action}
                    for part in verdict.parts or (verdict,)
                    for each in part.violations
                ]
            self._recording.message(self._number, verdict, {**spelt_facts(facts), **members})
        except Exception as error:
            # After any error the message is still judged and forwarded.
            log_once(error, "a message could not be written to the recording")

    def _write(self, row: dict[str, Any], **marks: bool) -> None:
        """Write an event, with the *marks* that are true."""
        try:
            self._recording.event(self._number, {**row, **{name: True for name, value in marks.items() if value}})
        except Exception as error:
            log_once(error, "an event could not be written to the recording")


_ENDING: Final = 1024
"""Bytes reserved for the last row, which has the reason why a recording stopped."""

_LOOKED_AT: Final = 4096
"""Bytes to read from a file to recognize a recording."""

_MEMBERS: Final = {"frame": "msg", "frame_base64": "base64"}
"""Names of the members of a record in a recording."""

_PRIVATE: Final = 0o600
_PREFIX: Final = "recording-"
_SUFFIX: Final = ".jsonl"
"""Prefix and suffix of recordings in a directory."""


class RecordingError(Exception):
    """The file of a recording cannot be used; the message has the reason and a fix."""


class Recording:
    """The recording of one run of a guard, in one file."""

    def __init__(self, path: str, *, most: int, redactor: Redactor | None, log: Log, alone: bool = False) -> None:
        """
        Open *path* for a new recording of at most *most* bytes. Raises `RecordingError`.

        In a directory each recording is a new file.

        *redactor* hides secrets; None keeps them. Later errors go to *log*. *alone* is for a guard with only one
        conversation: its rows need no number.
        """
        self._alone = alone
        self.messages = 0
        """Messages in the file so far."""
        self._epoch = time_ns() - monotonic_ns()
        self._log = log
        self._most = most
        self._redactor = redactor
        self._size = 0
        self._numbers = count(1)
        self._tools: WeakKeyDictionary[Tools, int] = WeakKeyDictionary()
        self._left_out: WeakSet[Exchange] = WeakSet()
        """Open requests that are not in the file. Without the request `assay check` cannot judge the response."""
        self.path, self._descriptor = _created(path) if is_directory(path) else (path, _opened(path))
        """The path of the file: *path* itself, or a new file in that directory."""

        self._append({"event": "recording", "version": VERSION, "assay": __version__})

    def judge(self, server: str) -> Callable[..., Conversation]:
        """Return a factory of recorded conversations for the server of this name."""
        return partial(RecordedConversation, self, server)

    def number(self) -> int:
        """Return the number of the next conversation."""
        return next(self._numbers)

    def tools_of(self, tools: Tools, number: int) -> dict[str, int]:
        """Return the tools member for the conversation *number*: empty if its *tools* are not shared."""
        owner = self._tools.setdefault(tools, number)
        return {} if owner == number else {"tools": owner}

    def hand_down(self, tools: Tools) -> Tools:
        """Return the tools for the next server process, after one that had *tools*."""
        made = tools.handed_down()
        owner = self._tools.get(tools)
        if owner is not None:
            self._tools[made] = number = self.number()
            self.event(number, {"event": "tools", "from": owner})
        return made

    def message(self, number: int, verdict: Verdict, members: dict[str, Any]) -> None:
        """Write the frame of *verdict*, with the members in *members*."""
        if self._descriptor < 0:
            return
        row = {
            "dir": DIRECTIONS[verdict.party],
            **self._numbered(number),
            **self._discreet(members),
            "time": self._time(),
            **_payload(verdict, self._redactor),
        }
        if "omitted" in row:
            row |= {"kind": verdict.kind, **_ident(verdict)}
        if self._redactor is not None and self._is_lost(verdict, row):
            row |= spelt_findings(verdict, self._redactor.text)
        if self._append(row):
            self.messages += 1

    def _time(self) -> int:
        """
        Return the time in microseconds since 1970. It does not go back when the clock is set back.

        It follows a clock that goes ahead: the other one stands still while the machine sleeps.
        """
        # In this order: a pause between the two calls makes the sum smaller, and is made up for by the next one.
        now, ticks = time_ns(), monotonic_ns()
        self._epoch = max(self._epoch, now - ticks)
        return (ticks + self._epoch) // 1000

    def _is_lost(self, verdict: Verdict, row: dict[str, Any]) -> bool:
        """Whether the message cannot be judged again from *row*."""
        exchange = verdict.exchange
        if "omitted" in row:
            if verdict.kind == "request" and exchange is not None:
                self._left_out.add(exchange)
            return True
        return "redacted" in row or (exchange is not None and exchange in self._left_out)

    def event(self, number: int, row: dict[str, Any]) -> None:
        """Write another event of a conversation."""
        if self._descriptor < 0:
            return
        if self._redactor is not None and row.get("why"):
            # The reason may contain text of the server.
            row["why"] = self._redactor.text(row["why"])
        self._append({"event": row["event"], **self._numbered(number), **row})

    def close(self) -> None:
        """End the recording."""
        if self._descriptor >= 0:
            self._append({"event": "close"}, _ENDING)
            self._let_go()

    def _numbered(self, number: int) -> dict[str, int]:
        return {} if self._alone else {"conversation": number}

    def _discreet(self, members: dict[str, Any]) -> dict[str, Any]:
        """Return *members* without secrets in HTTP headers that repeat arguments."""
        headers = members.get("http", {}).get("headers")
        if not headers or self._redactor is None:
            return members
        shown = self._redactor.value(headers)
        if shown is headers:
            return members
        return {**members, "http": {**members["http"], "headers": shown}, "redacted": True}

    # ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _append(self, row: dict[str, Any], reserve: int = 0) -> bool:
        """Write *row*; return whether it is in the file."""
        line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        if self._size + len(line) + _ENDING - reserve > self._most:
            self._stop(f"it has reached {self._most:,} bytes", "; guard.record_bytes sets the limit")
            return False
        taken = 0
        try:
            while taken < len(line):
                taken += os.write(self._descriptor, line[taken:])
        except OSError as error:
            self._stop(error.strerror or "it cannot be written")
            return False
        self._size += taken
        return True

    def _stop(self, why: str, hint: str = "") -> None:
        """End the recording, with a last row if there is room for it."""
        line = orjson.dumps({"event": "stopped", "why": why}, option=orjson.OPT_APPEND_NEWLINE)
        with suppress(OSError):
            # A partial row would make the file invalid.
            os.ftruncate(self._descriptor, self._size)
            if os.write(self._descriptor, line) < len(line):
                os.ftruncate(self._descriptor, self._size)
        self._log(f"assay: recording stopped: {self.path}: {why}{hint}")
        self._let_go()

    def _let_go(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):
            os.close(descriptor)


def _payload(verdict: Verdict, redactor: Redactor | None) -> dict[str, Any]:
    """Return the members with the frame: to the byte without a *redactor*."""
    if redactor is not None:
        return {_MEMBERS.get(name, name): value for name, value in payload(verdict, redactor).items()}
    try:
        return {"msg": verdict.frame.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(verdict.frame).decode()}


def _ident(verdict: Verdict) -> dict[str, Any]:
    """Return the id of a message that is left out, so that its response or request does not count as missing."""
    value = verdict.value
    ident = value.get("id") if isinstance(value, dict) else None
    short = type(ident) is int or (isinstance(ident, str) and len(ident) <= _ENDING)
    return {"id": ident} if short else {}


def is_directory(path: str) -> bool:
    """Whether *path* is a directory for new files: it exists, or ends with a separator."""
    return path.endswith(os.sep) or os.path.isdir(path)


def _created(directory: str) -> tuple[str, int]:
    """Return the path and descriptor of a new file in *directory*, which is created if needed."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    # Several guards of one test suite may start in the same second, or in containers with the same process id.
    name = f"{_PREFIX}{strftime('%Y%m%dT%H%M%SZ', gmtime())}-{os.urandom(4).hex()}{_SUFFIX}"
    path = os.path.join(directory, name)
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        return path, os.open(path, flags, _PRIVATE)
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}") from None


def _opened(path: str) -> int:
    """Open *path* for writing, emptied and readable only by this user. Raises `RecordingError`."""
    # Links are not followed, and opening a named pipe does not wait for a reader.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, _PRIVATE)
        try:
            _claim(descriptor, path)
        except BaseException:
            os.close(descriptor)
            raise
    except OSError as error:
        why = "is a symbolic link; give the file itself" if error.errno == errno.ELOOP else error.strerror
        raise RecordingError(f"{path}: {why}") from None
    return descriptor


def _claim(descriptor: int, path: str) -> None:
    """Lock the file and empty it, if it is empty or an earlier recording."""
    import fcntl  # noqa: PLC0415 - not on every platform

    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise RecordingError(f"{path}: not a regular file")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RecordingError(f"{path}: another guard is recording to it; give each guard its own file") from None
    except OSError:
        # Some file systems have no locks.
        pass
    start = os.pread(descriptor, _LOOKED_AT, 0)
    if start and not start.startswith(b'{"event":"recording",'):
        raise RecordingError(f"{path}: exists and is not a recording of a guard; remove it, or give another file")
    os.fchmod(descriptor, _PRIVATE)
    os.ftruncate(descriptor, 0)

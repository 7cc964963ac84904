"""
What people are told of a guarded conversation: findings as they come, a summary at the end, and after a broken session
the last messages in a file. Writes that file; whatever else there is to say it hands on.
"""

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson

from assay.verdict import Exchange, Kind, Party, Verdict

MOST_SHOWN: Final = 100
"""Messages whose findings are shown as they come; the rest are only counted."""

KEPT: Final = 50
KEPT_BYTES: Final = 64 << 10
"""Messages that a flight recorder keeps, and bytes of each: some 3 MB at most."""

FLIGHTS: Final = 50
"""Files of broken sessions that are left where a new one is written. As many as there are runs in a journal."""

SLOW: Final = 1.0
SLOWEST: Final = 3
"""Seconds from which on a summary mentions an answer, and how many of them."""

MOST_RULES: Final = 10
"""Rules that a summary names."""

_MOST_TIMED: Final = 10_000
_MOST_COUNTED: Final = 1000
"""Requests that are timed at once, and findings that are told apart: names are the peer's, and may be many."""

_ANSWERS: Final = frozenset({"result", "error"})
_OPENING: Final = frozenset({"initialize", "notifications/initialized"})
"""Without these nobody could judge what follows; so they are kept, however long ago they were."""

Log = Callable[[str], None]

_Kept = tuple[Party, bytes, Kind, Exchange | None]


class Watch:
    """One guarded conversation, as people see it."""

    def __init__(self, log: Log, aside: Callable[[bytes], None], *, enforcing: bool) -> None:
        """Lines go to *log*, and to *aside* what a server has printed where only messages belong."""
        self._log = log
        self._aside = aside
        self._enforcing = enforcing
        self._client = self._server = 0
        self._rules: Counter[tuple[str, str]] = Counter()
        self._stopped = 0
        self._shown = 0
        self._printed = 0
        self._slowest: list[tuple[float, str]] = []
        self._asked: dict[Exchange, float] = {}
        self._opened = False
        self._opening: list[_Kept] = []
        self._kept: deque[_Kept] = deque(maxlen=KEPT)

    @property
    def findings(self) -> int:
        """How many violations there were."""
        return self._rules.total()

    def passed(self, verdict: Verdict, now: float) -> None:
        """Nothing is to be said of a message, which came *now*, in seconds by some clock."""
        party, frame, kind, exchange = verdict.party, verdict.frame, verdict.kind, verdict.exchange
        if party is Party.CLIENT:
            self._client += 1
        else:
            self._server += 1
        if not self._opened and len(self._kept) == KEPT:
            self._opened = True
            self._opening = [each for each in self._kept if _method(each) in _OPENING]
        if len(frame) > KEPT_BYTES:
            frame = frame[: KEPT_BYTES + 1]
        self._kept.append((party, frame, kind, exchange))
        if exchange is None:
            return
        if kind == "request":
            self._asked[exchange] = now
            if len(self._asked) > _MOST_TIMED:
                del self._asked[next(iter(self._asked))]
        elif kind in _ANSWERS:
            begun = self._asked.pop(exchange, None)
            if begun is not None and now - begun >= SLOW:
                self._took_long(exchange, now - begun)

    def heard(self, verdict: Verdict, now: float) -> None:
        """Something is."""
        if verdict.kind != "missing":
            self.passed(verdict, now)
        if verdict.kind == "unreadable":
            # Whatever it is, it is no message.
            self._client -= verdict.party is Party.CLIENT
            self._server -= verdict.party is Party.SERVER
        if not verdict.violations:
            return
        where = verdict.tool or verdict.method or ""
        for each in verdict.violations:
            known = len(self._rules) < _MOST_COUNTED or (each.rule, where) in self._rules
            self._rules[each.rule, where if known else ""] += 1
        self._stopped += self._enforcing and not verdict.accepted
        self._shown += 1
        if self._shown <= MOST_SHOWN:
            self._log(_line(verdict, enforcing=self._enforcing))
        elif self._shown == MOST_SHOWN + 1:
            self._log("assay: further findings are counted, and not shown")

    def aside(self, data: bytes) -> None:
        """What a server printed where only messages belong goes where such things belong."""
        self._printed += 1
        self._aside(data)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def summary(self) -> Iterator[str]:
        """What happened, for people."""
        from assay.console.journal import plain  # noqa: PLC0415 - not while a server starts

        stopped = f", {self._stopped} stopped" if self._enforcing else ""
        said = f"{_counted(self._client, 'message')} from the client, {self._server:,} from the server"
        yield f"assay: {said}, {_counted(self.findings, 'finding')}{stopped}"
        most = sorted(self._rules.items(), key=lambda item: (-item[1], item[0]))
        for (rule, where), count in most[:MOST_RULES]:
            yield plain(f"assay: {count:>6,} × {rule}{f' in {where[:100]}' if where else ''}")
        if len(most) > MOST_RULES:
            rest = sum(count for _, count in most[MOST_RULES:])
            yield f"assay: {rest:>6,} others"
        if self._printed:
            yield f"assay: {_counted(self._printed, 'line')} of the server's output went to stderr"
        for seconds, what in self._slowest:
            yield plain(f"assay: slow: {what} took {seconds:.1f} s")

    def flight(self, directory: str, redact: Sequence[str] = ()) -> str | None:
        """Writes the last messages, redacted, into a file that `assay check` reads; its path, if there is one."""
        name = f"flight-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}.jsonl"
        path = os.path.join(directory, name)
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.writelines(self._rows(redact))
            _prune(directory)
        except OSError as error:
            self._log(f"assay: no flight recorder: {path}: {error.strerror}")
            return None
        self._log(f"assay: the last messages of this session are in {path}")
        return path

    def _rows(self, redact: Sequence[str]) -> Iterator[bytes]:
        from assay.journal.redaction import Redactor  # noqa: PLC0415 - for broken sessions only

        redactor = Redactor(redact)
        kept = [*(each for each in self._opening if each not in self._kept), *self._kept]
        asked = {exchange for _, _, kind, exchange in kept if kind == "request"}
        for party, frame, kind, exchange in kept:
            if kind in _ANSWERS and exchange is not None and exchange not in asked:
                # Its request is no longer here, and without that it would seem to answer nothing.
                continue
            row: dict[str, Any] = {"dir": "c2s" if party is Party.CLIENT else "s2c", **_payload(frame, redactor)}
            yield orjson.dumps({**row, "cut": True} if len(frame) > KEPT_BYTES else row) + b"\n"

    def _took_long(self, exchange: Exchange, seconds: float) -> None:
        what = f"{exchange.method[:100]} {(exchange.tool or '')[:100]}".rstrip()
        self._slowest = sorted([*self._slowest, (seconds, what)], reverse=True)[:SLOWEST]


def _fate(verdict: Verdict, *, enforcing: bool) -> str:
    """What became of a message, in a word or two; nothing for one that never came."""
    if verdict.kind == "missing":
        return ""
    if enforcing and not verdict.accepted:
        return "stopped: "
    # A call may name a tool whose schema is found unusable only then: it goes on, and nothing is left out of it.
    aside = enforcing and verdict.kind == "result" and any(each.action == "quarantine" for each in verdict.violations)
    return "passed, entries set aside: " if aside else "passed: "


def _line(verdict: Verdict, *, enforcing: bool) -> str:
    """The first thing that is wrong with a message. What peers have said is printed safely."""
    from assay.console.journal import plain  # noqa: PLC0415 - most conversations never need it
    from assay.console.verdicts import title  # noqa: PLC0415 - as above

    more = len(verdict.violations) - 1 + verdict.more
    first = f"{verdict.violations[0]}{f' and {more} more' if more else ''}"
    return plain(f"assay: {_fate(verdict, enforcing=enforcing)}{verdict.party} {title(verdict)}: {first}")


def _payload(frame: bytes, redactor: Any) -> dict[str, str]:
    """A frame without its secrets, as a recording has it."""
    try:
        return {"msg": redactor.frame(frame.decode())}
    except UnicodeDecodeError:
        from base64 import b64encode  # noqa: PLC0415 - for bytes that are no text

        # Every byte is a character in Latin-1, and that is all that the patterns need.
        return {"base64": b64encode(redactor.unreadable(frame.decode("latin-1")).encode("latin-1")).decode()}


def _method(kept: _Kept) -> str | None:
    _, frame, kind, exchange = kept
    if exchange is not None:
        return exchange.method
    return "notifications/initialized" if kind == "notification" and b'"notifications/initialized"' in frame else None


def _prune(directory: str) -> None:
    """Removes the oldest flights beyond those that are left."""
    names = sorted(name for name in os.listdir(directory) if name.startswith("flight-") and name.endswith(".jsonl"))
    for name in names[:-FLIGHTS]:
        # Another process may have removed it already.
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, name))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

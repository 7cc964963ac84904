"""
One guarded request of a client: what to send to the server, and what of its response to send to the client.

Bytes in, bytes out: it knows statuses and events, but no connections. Every message is judged here.
"""

from collections.abc import Collection
from math import inf
from time import perf_counter
from typing import Final, NamedTuple

from assay.edges.http.heads import RequestHead, visible
from assay.edges.http.replies import error_body, refusal, status_of
from assay.edges.http.sessions import DROPPED
from assay.edges.upstream_errors import addressed, explained
from assay.edges.url_sessions import LONGEST_ID, REMEMBERED, Stream, UrlSession
from assay.guard.deadlines import limit_of
from assay.guard.deliveries import Loss, LossReason
from assay.judge import render, syntax
from assay.judge.conversation import Facts
from assay.judge.events import PING, Event, event
from assay.model.bounded import Bounded
from assay.model.json_values import Id, versions_of
from assay.model.verdict import Exchange, Verdict
from assay.records.http_notes import HttpNote, HttpNotes

_FIRST: Final = frozenset({"initialize", "server/discover"})

_ANSWERS: Final = frozenset({"result", "error"})
_FORGOTTEN: Final = frozenset({"protocol/answered-twice", "protocol/unsolicited"})
"""Rules that an answer breaks which comes once more, and is not remembered."""

_RETRY_DIGITS: Final = 9
"""Maximal digits of milliseconds: eleven days."""


class GuardResponse(NamedTuple):
    """A response that the guard makes itself."""

    status: int
    content: bytes


class Heard(NamedTuple):
    """The result of a message of the server."""

    frame: bytes | None
    """The message for the client, if any."""
    answers: list[bytes]
    """Errors for requests that the message leaves unanswered."""
    is_repaired: bool = False
    """Whether the message is that of the server, repaired."""


class JudgedExchange:
    """One request in progress."""

    __slots__ = (
        "_beside",
        "_came",
        "_enforcing",
        "_last",
        "asked",
        "back",
        "note",
        "patient",
        "response",
        "resumed",
        "speaks",
        "stream",
        "talk",
        "to_server",
        "verdict",
    )  # fmt: skip

    def __init__(self, talk: UrlSession, *, patient: bool, enforcing: bool) -> None:
        self.talk = talk
        self.patient = patient
        """Whether the client treats any status but 200 as a broken connection."""
        self.note: HttpNote | None = None
        """The HTTP request, if it is recorded."""
        self.stream = Stream()
        self.resumed = False
        """Whether the client resumes a stream: only then may a judged event come again."""
        self.verdict: Verdict | None = None
        self.response: GuardResponse | None = None
        """The response, if the request is not forwarded."""
        self.to_server: bytes | None = None
        """The frame for the server."""
        self.asked: list[Id] = []
        """The server's requests to the client."""
        self.back: list[bytes] = []
        """Frames for the server, about its own messages."""
        self.speaks: list[str] | None = None
        """The revisions that the server lists, if known."""
        self._beside: bytes | None = None
        """Responses to the entries of a batch that are not forwarded."""
        self._came: Bounded[tuple[bytes | None, int], None] = Bounded(REMEMBERED)
        """The last events of this stream with an id."""
        self._enforcing = enforcing
        self._last: Verdict | None = None
        """The verdict on the last message of the server."""

    def hear(self, frame: bytes, facts: Facts) -> None:
        """Judge the client's message."""
        session = self.talk.session
        outcome = session.from_client(frame, facts)
        verdict = self.verdict = outcome.verdict
        answer = outcome.to_client[0].frame if outcome.to_client else None
        if verdict is not None and verdict.findings is not None:
            self.talk.found = True
        if verdict is None:
            self.response = GuardResponse(500, error_body("INTERNAL_ERROR", "the session is closed; its log says why"))
        elif len(frame) > session.conversation.limits.frame_bytes:
            # The rest of it was not read: it cannot be forwarded, in either mode.
            self.response = GuardResponse(413, answer or _refusal(verdict))
        elif not outcome.to_server:
            self.response = self._refused(verdict, answer)
        else:
            self.to_server = outcome.to_server[0].frame
            self._beside = answer
            self.stream = Stream(outcome.opened)

    def hear_noted(self, frame: bytes, facts: Facts, notes: HttpNotes, head: RequestHead) -> None:
        """Judge the client's message, as `hear` does, whose HTTP request is recorded."""
        self.note = notes.begin(head.method, head.headers)
        try:
            self.hear(frame, facts)
        finally:
            notes.end(self.response.status if self.response is not None else None)

    def narrow(self, spoken: Collection[str]) -> None:
        """
        Restrict the revisions in an error for the client to those that the server supports.

        A client chooses one of them, and its choice must work.
        """
        rules = self.verdict.violations if self.verdict is not None else ()
        if self.response is None or not any(each.rule == "protocol/unsupported-revision" for each in rules):
            return
        answer = syntax.read_exactly(self.response.content, syntax.read(self.response.content))
        data = answer.get("error", {}).get("data", {})
        if "supported" in data:
            data["supported"] = [each for each in data["supported"] if each in spoken]
            self.response = self.response._replace(content=syntax.write(answer))

    @property
    def opens(self) -> bool:
        """Whether it is the first request of a client."""
        return self.verdict is not None and self.verdict.method in _FIRST

    @property
    def due(self) -> list[Exchange]:
        """The open requests of the client."""
        return self.stream.open()

    @property
    def patience(self) -> float | None:
        """Seconds until the first of them times out; None without a limit."""
        due = min(map(self.talk.session.due_of, self.due), default=inf)
        return max(0.0, due - perf_counter()) if due < inf else None

    def limit(self, timeout: float) -> float:
        """Return the seconds that the server has for the first answer, where it has *timeout* for most."""
        return min((limit_of(each.method, timeout) for each in self.due), default=timeout)

    def _refused(self, verdict: Verdict, answer: bytes | None) -> GuardResponse:
        return GuardResponse(*refusal(verdict, answer, render.code_of(verdict), patient=self.patient))

    # ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────────

    def body(self, content: bytes, status: int) -> GuardResponse:
        """Judge a complete response of the server with this status. Requests that it leaves open fail."""
        if status >= 500:
            content = self._addressed(content) or content
        heard = self._heard(content)
        frames = heard.answers if heard.frame is None else [heard.frame, *heard.answers]
        passes = heard.frame is not None
        if not passes and not self.stream.due and status < 300:
            # No request is open: only the accepted status counts.
            return GuardResponse(202, b"")
        if 400 <= status < 500 and passes:
            self.forget()
        elif self._enforcing:
            why = "its answer answers something else" if passes else "its answer could not be read"
            # The status alone is enough for the client.
            frames += self.failures("UPSTREAM_INVALID", why if status < 300 else f"{why}, with HTTP status {status}")
        else:
            self.record("UPSTREAM_INVALID", "its answer answers something else")
        if (heard.frame == content or heard.is_repaired) and len(frames) == 1 and self._beside is None:
            return GuardResponse(200 if self._enforcing and status < 300 else status, frames[0])
        return self.made(frames, "UPSTREAM_INVALID", status if 400 <= status < 500 else None)

    def refused(self, content: bytes, status: int) -> GuardResponse:
        """Return the response for a request that the server rejects with a 4xx *status* and *content*."""
        for each in self.due:
            # After signing in, a client sends the same request again.
            each.reusable = True
        if not content.strip():
            self.forget()
            return GuardResponse(status, b"")
        answer = self._addressed(content)
        if answer is not None:
            return self.body(answer, status)
        revision = self.talk.session.conversation.revision
        frames = [explained(content, status, each, revision) for each in self.due]
        self.forget()
        if not frames:
            return GuardResponse(status, explained(content, status, None, revision))
        return self.made(frames, "UPSTREAM_FAILURE", status)

    def _addressed(self, content: bytes) -> bytes | None:
        """Return the error in the body of a failure with the id of the one open request, otherwise None."""
        due = self.due
        return addressed(content, due[0]) if len(due) == 1 else None

    def made(self, frames: list[bytes], code: str, status: int | None = None) -> GuardResponse:
        """Return a response of our own: these *frames* with the error *code*, and the responses beside them."""
        whole = "batch" if self.verdict is not None and self.verdict.kind == "batch" else ""
        if status is None:
            good = frames and (whole or _is_result(frames[0]))
            status = status_of(None if good else code, patient=bool(frames) and self.patient)
        if whole:
            inner = [each for frame in (*frames, self._beside) if frame for each in _entries(frame)]
            return GuardResponse(status, render.array(inner) or error_body(code, "no answer came"))
        return GuardResponse(status, frames[0] if frames else error_body(code, "no answer came"))

    def failures(self, code: str, why: str, reason: LossReason = "broken") -> list[bytes]:
        """Return the errors for the requests that are still open, once."""
        failed = self.talk.session.exchange_lost(self.due, Loss(reason, why, code=code)).failed
        return [each.answer for each in failed]

    def record(self, code: str, why: str) -> None:
        """Record the failure of the open requests, without an error for the client."""
        self.failures(code, why)

    def forget(self) -> None:
        """Close the open requests: a status alone answers them, or no client waits."""
        for each in self.due:
            self.talk.session.forget(each)

    # ── a stream ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def first(self) -> bytes:
        """Return what to send before the server's events."""
        return b"".join(event(each) for each in _entries(self._beside)) if self._beside is not None else b""

    def event(self, one: Event) -> bytes:
        """Return what to send to the client for one event of the server."""
        if self._enforcing and one.ident and not (visible(one.ident) and len(one.ident) <= LONGEST_ID):
            # The id is invalid in a header, so no client can resume after it.
            one = one._replace(ident=None)
        if one.ident:
            self.stream.resumable = True
        if not one.whole:
            return self._too_long(one)
        if not one.is_message or one.data is None:
            return self._without_message(one)
        known = self.talk.known(one.ident, one.data) if self.resumed else None
        if known is not None and self._comes_first(one.ident, one.data):
            return self._as_judged(one, one.data) if known.sent is None else known.sent
        forgotten = self.resumed and self._enforcing and self.talk.stream_of(one.ident) is None
        sent = self._judged_again(one, one.data) if forgotten else self._judged(one, one.data)
        self._comes_first(one.ident, one.data)
        self.talk.remember(one.ident, one.data, sent, self.stream)
        return self._as_judged(one, one.data) if sent is None else sent

    def _as_judged(self, one: Event, data: bytes) -> bytes:
        """Return an event with an accepted message: written on one line of data, or under audit unchanged."""
        return _retry(one) + event(data, one.ident or None) if self._enforcing else one.raw

    def _without_message(self, one: Event) -> bytes:
        """Return an event without a message: under enforce only its id, its retry time or a keep-alive."""
        self.talk.place(one.ident, self.stream)
        if not self._enforcing:
            return one.raw
        if one.data:
            self.talk.session.records.event("stray", one.raw, self.talk.session.name)
        fields = _retry(one) + (b"id: %b\r\n" % one.ident if one.ident else b"")
        if fields:
            # With an empty line of data clients of 2025-11-25 remember the id; others skip such an event.
            return fields + (b"data: \r\n\r\n" if one.data == b"" else b"\r\n")
        return PING if one.raw.strip(b"\r\n") else b""

    def _comes_first(self, ident: bytes | None, data: bytes) -> bool:
        """Whether an event with an id is new on this stream: a known one means that the stream was resumed."""
        key = ident, hash(data)
        if not ident or len(ident) > LONGEST_ID or key in self._came:
            return False
        self._came[key] = None
        return True

    def _judged(self, one: Event, data: bytes) -> bytes | None:
        """Return what to send in place of an event; None if its message is forwarded unchanged."""
        heard = self._heard(data)
        if heard.frame == data:
            return None
        frames = heard.answers if heard.frame is None else [heard.frame, *heard.answers]
        return b"".join(event(frame, one.ident or None) for frame in frames)

    def _judged_again(self, one: Event, data: bytes) -> bytes | None:
        """
        Return what to send in place of an event of a resumed stream that is not remembered.

        If it is an answer that came before, the client may not have got it: so it gets an error, and does not wait.
        """
        sent = self._judged(one, data)
        verdict = self._last
        if sent != b"" or verdict is None or verdict.kind not in _ANSWERS:
            return sent
        ident = render.usable_id(data, verdict.value)
        if ident is None or not any(each.rule in _FORGOTTEN for each in verdict.violations):
            return sent
        return event(
            render.plain_error(syntax.write(ident), "UPSTREAM_FAILURE", DROPPED, why=DROPPED), one.ident or None
        )

    def _heard(self, frame: bytes) -> Heard:
        """Judge a message of the server."""
        outcome = self.talk.session.from_server(frame)
        verdict = self._last = outcome.verdict
        if verdict is None:
            return Heard(None, [])
        if verdict.findings is not None:
            self.talk.found = True
        if verdict.method == "server/discover" and verdict.kind == "result" and verdict.accepted:
            # In a revision without this method its result is not judged, so it may contain anything.
            self.speaks = versions_of(verdict.value) or None
        for part in verdict.parts or (verdict,):
            if part.kind == "request" and part.onward is not None and part.exchange is not None:
                self.asked.append(part.exchange.id)
        self.back += [each.frame for each in outcome.to_server]
        answers = [each.answer for each in outcome.failed if each.answer]
        passes = len(outcome.to_client) > len(answers)
        repaired = bool(verdict.repairs) and not verdict.parts
        return Heard(outcome.to_client[0].frame if passes else None, answers, passes and repaired)

    def _too_long(self, one: Event) -> bytes:
        if one.data is None:
            return b"" if self._enforcing else one.raw
        limit = self.talk.session.conversation.limits.frame_bytes
        heard = self._heard(one.data[: limit + 1].ljust(limit + 1))
        if not self._enforcing:
            return one.raw
        return b"".join(event(each, one.ident or None) for each in heard.answers)


def _retry(one: Event) -> bytes:
    """Return the retry time of an event, if it is reasonable."""
    return b"retry: %b\r\n" % one.retry if one.retry is not None and len(one.retry) <= _RETRY_DIGITS else b""


def _refusal(verdict: Verdict) -> bytes:
    return render.refusal(None, verdict.violations, verdict.more, verdict.revision)


def _entries(frame: bytes) -> list[bytes]:
    """Return the messages in *frame*: one, or those of a batch."""
    return render.entries(frame) if frame.lstrip().startswith(b"[") else [frame]


def _is_result(frame: bytes) -> bool:
    """Whether it is a result: a list without quarantined entries, or the replacement of a tool's bad result."""
    value = syntax.read(frame)
    return isinstance(value, dict) and "result" in value

"""
A client on our standard streams and a server at a URL, with a guarded session between them. One event loop.

Every request that the server does not answer is answered by the guard. Messages of the client are sent in their order:
a notification or an answer is accepted by the server before the next message goes, a request is on its way.
"""

import asyncio
import selectors
import signal
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import inf
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlsplit

from assay.edges.client_stdio import StdioClient
from assay.edges.hangup import is_heeded
from assay.edges.http.origin_check import leads_here
from assay.edges.pipes import Outlet
from assay.edges.server_url import Asked, UrlServer
from assay.edges.upstream_answer import Lost, Refused, SessionGone
from assay.edges.upstream_client import DIRECTLY, Pairs, objection_to
from assay.edges.upstream_errors import explained, shown_url
from assay.guard.deliveries import Delivery, Loss, Outcome, State
from assay.guard.internal_errors import log_once
from assay.guard.outgoing import requests
from assay.guard.own_frames import CANCELLED, line
from assay.guard.session import GuardedSession
from assay.guard.tool_listing import MARK
from assay.judge import render, syntax
from assay.judge.headers import is_stateless, stateless_headers
from assay.judge.partial_frame import outline
from assay.model.json_values import Id
from assay.model.limits import DEEPEST
from assay.model.verdict import Exchange, Party, Verdict
from assay.settings.http_section import UpstreamSettings

CLIENT_LEFT: Final = 0
CANNOT_RUN: Final = 2
SERVER_LOST: Final = 3
"""Exit status where the server was lost first."""

MOST_ASKED: Final = 200
"""Requests at once. Each has a connection of its own, and some systems let a process have 256 files."""

MOST_REFUSED: Final = 1000
"""Refusals of the server's requests that it has not accepted yet; a server that accepts none gets no more."""

REFUSED_AT_ONCE: Final = 20
"""How many of them are sent at once."""

ON_ITS_WAY: Final = 2.0
"""Seconds that the next message waits for a request to be sent. Then the order is given up, not the message."""

TAKEN: Final = 5.0
"""Seconds that the next message waits for the server to accept a message without an answer."""

GOODBYE: Final = 2.0
"""Seconds for the end of a session, and for a client to read the rest once the guard is to stop."""

CROSSING: Final = 5.0
"""Seconds in which the answer to a cancelled request may still arrive."""

RECORDED: Final = 1.0
"""Seconds between two looks at records that wait to be written."""

MOST_REFUSALS: Final = 100
"""Refused requests that are reported, as many as messages with findings are."""

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LEFT: Final = frozenset({"closed", "stopped"})
"""Reasons for an end that is not the server's."""

Log = Callable[[str], None]


class TargetError(ValueError):
    """Why there can be no server at a URL."""


def check_target(url: str, headers: Sequence[tuple[str, str]]) -> None:
    """Raise `TargetError` if *url* leads nowhere, or if it and *headers* both say who asks."""
    why = objection_to(url)
    shows_who = any(name.lower() == "authorization" for name, _ in headers)
    if why is None and shows_who and urlsplit(url).username is not None:
        why = "it has a user name, and --header has Authorization: give one of them"
    if why is not None:
        raise TargetError(f"--target: {why}: {shown_url(url)}")


def run(
    target: str,
    headers: Sequence[tuple[str, str]],
    session: GuardedSession,
    *,
    patience: float = 0.0,
    log: Log = lambda _: None,
    errors: Outlet | None = None,
    upstream: UpstreamSettings = DIRECTLY,
) -> int:
    """
    Serve until the client leaves, a signal comes or the server is lost; return the exit status.

    *headers* go with every request. *patience* is how many seconds the server has to accept a message without an
    answer; 0 for no limit. Lines for people go to *log*; what waits in *errors* is written as there is room.
    *upstream* says how the server is reached.
    """

    async def serve() -> int:
        return await StdioUrl(session, patience, log, errors).serve(target, headers, upstream)

    parts = urlsplit(target)
    if parts.scheme == "http" and not leads_here(parts.hostname or ""):
        log(f"assay: {shown_url(target)} has no encryption: everybody on the way can read the messages")
    # `poll` takes files and terminals too, which standard streams may be.
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.PollSelector())) as runner:
        try:
            return runner.run(serve())
        except Lost as lost:
            log(f"assay: {lost.why}")
            return CANNOT_RUN


class StdioUrl:
    """One run of the guard: a guarded session and its two ports."""

    def __init__(self, session: GuardedSession, patience: float, log: Log, errors: Outlet | None) -> None:
        self._session = session
        self._patience = patience
        self._say = log
        self._errors = errors
        self._limit = session.conversation.limits.frame_bytes
        self._server: UrlServer
        self._client = StdioClient(0, 1, limit=self._limit, before_writing=session.records.commit)
        self._asked: dict[Id, Asked] = {}
        """Frames that are on their way or wait for an answer, by each id in them."""
        self._outgoing: deque[Delivery] = deque()
        """What the server gets next, in this order."""
        self._more = asyncio.Event()
        self._sent = asyncio.Event()
        """Set while nothing is outgoing."""
        self._sent.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusals: set[asyncio.Task[None]] = set()
        self._refusing = asyncio.Semaphore(REFUSED_AT_ONCE)
        self._is_crowded = False
        """Refusals of the server's requests that it has not accepted yet."""
        self._listening: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf
        self._stop = asyncio.Event()
        self._stopped = False
        self._closed: Loss | None = None
        self._left = True
        """Whether the client left first, and the server owed it nothing."""
        self._gone = ""
        """Why the last session of the server ended, if it ended before ours."""
        self._refused = 0
        """How many requests the server has refused by a status."""

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def serve(self, target: str, headers: Sequence[tuple[str, str]], upstream: UpstreamSettings) -> int:
        """Serve until it is over; return the exit status."""
        loop = asyncio.get_running_loop()
        # Lines from before there was a loop.
        self._push_errors()
        self._server = UrlServer(
            target, headers, upstream, hear=self._from_server, limit=self._limit, patience=self._patience
        )
        for each in _STOPPING:
            # The program that started us may want some of them to be ignored, as nohup does.
            if signal.getsignal(each) is not signal.SIG_IGN and not (each == signal.SIGHUP and is_heeded()):
                loop.add_signal_handler(each, self._signalled)
        beside = [self._begin(each) for each in (self._send_all(), self._keep_records(), self._see_client_go())]
        reading = self._begin(self._read())
        try:
            await self._until(reading)
            if not self._stop.is_set():
                self._apply(self._session.client_done())
                await self._stop.wait()
            return await self._end([*beside, reading])
        finally:
            self._session.records.commit()
            self._client.close()
            if self._errors is not None:
                loop.remove_writer(self._errors.descriptor)
            await self._server.close()

    def _signalled(self) -> None:
        self._stopped = True
        self._stop.set()

    async def _see_client_go(self) -> None:
        await self._client.gone.wait()
        self._signalled()

    async def _until(self, awaited: "asyncio.Future[Any]") -> None:
        """Wait for *awaited*, unless the guard is to stop."""
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({awaited, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()

    async def _end(self, running: "list[asyncio.Task[None]]") -> int:
        self._apply(self._session.tick())
        self._apply(self._session.close(Loss("stopped", "the guard was stopped")))
        why = self._closed or Loss("stopped")
        lost = why.reason not in _LEFT and why.reason != "timeout"
        for task in [*running, *self._tasks]:
            task.cancel()
        await asyncio.wait([*running, *self._tasks], timeout=GOODBYE)
        if not lost:
            with suppress(Lost, TimeoutError):
                async with asyncio.timeout(GOODBYE):
                    await self._server.end()
        # The client has as long as it likes to read the rest, unless the guard is to stop.
        finishing = asyncio.ensure_future(self._client.finish())
        while not self._stopped and not finishing.done():
            self._stop.clear()
            await self._until(finishing)
        await asyncio.wait({finishing}, timeout=GOODBYE)
        finishing.cancel()
        if lost:
            self._log(f"assay: the server was lost: {why.detail}")
        return CLIENT_LEFT if self._left else SERVER_LOST

    def _log(self, text: str) -> None:
        self._say(text)
        self._push_errors()

    def _push_errors(self) -> None:
        """Write to stderr as there is room: no message waits for its reader."""
        if self._errors is not None and self._errors.waiting:
            asyncio.get_running_loop().add_writer(self._errors.descriptor, self._write_errors, self._errors)

    def _write_errors(self, errors: Outlet) -> None:
        errors.push(room=True)
        if not errors.waiting:
            asyncio.get_running_loop().remove_writer(errors.descriptor)

    def _begin(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # An internal error. What it held up is answered at the end.
            if isinstance(error, Exception):
                log_once(error, "the guard failed")
            self._log(f"assay: the guard failed: {type(error).__name__}")

    # ── outcomes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _apply(self, outcome: Outcome) -> None:
        """Deliver what the session returned, and keep its deadline."""
        for each in outcome.to_client:
            self._client.say(line(each.frame))
        for each in outcome.to_server:
            if each.replies:
                self._refuse_server(each)
            elif each.author == "guard" and each.verdict is not None and each.verdict.method == CANCELLED:
                self._cancel(each)
            else:
                self._outgoing.append(each)
                self._sent.clear()
                self._more.set()
        for failed in outcome.failed:
            self._forget(failed.exchange)
        if outcome.closed is not None and self._closed is None:
            self._closed = outcome.closed
            # A request that has waited too long has got its answer: the client left with nothing unanswered.
            late = all(each.code == "TIMEOUT" for each in outcome.failed)
            self._left = outcome.closed.reason in _LEFT or (outcome.closed.reason == "timeout" and late)
            self._stop.set()
        elif outcome.restart_in is not None:
            self._open_again()
        self._keep_time()
        self._push_errors()

    def _refuse_server(self, delivery: Delivery) -> None:
        if len(self._refusals) >= MOST_REFUSED:
            if not self._is_crowded:
                self._is_crowded = True
                self._log("assay: the server does not take the guard's refusals of its requests; some were dropped")
            return
        refusal = self._begin(self._refuse(delivery.frame))
        self._refusals.add(refusal)
        refusal.add_done_callback(self._refusals.discard)

    async def _refuse(self, frame: bytes) -> None:
        async with self._refusing:
            await self._tell(frame, None, "our refusal of its request")

    def _cancel(self, delivery: Delivery) -> None:
        """Cancel a request at the server; without a session, by closing its response."""
        asked = self._asked.get(delivery.about.id) if delivery.about is not None else None
        if asked is not None and not asked.stateless:
            self._begin(self._tell(delivery.frame, None, CANCELLED))

    def _forget(self, exchange: Exchange | None) -> None:
        asked = self._asked.get(exchange.id) if exchange is not None else None
        if asked is not None:
            self._cross_off(asked)

    def _cross_off(self, asked: Asked) -> None:
        """End a request whose response is no longer expected; of several, the last."""
        if asked.task is not None and asked.task is not asyncio.current_task() and not asked.waits:
            asked.task.cancel()

    # ── from the client ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _read(self) -> None:
        async for frame in self._client.frames():
            outcome = self._session.from_client(frame)
            if outcome.to_server and len(frame) > self._limit and outcome.verdict is not None:
                self._refuse_long(outcome.verdict)
                outcome = outcome._replace(to_server=())
            self._apply(outcome)
            await self._client.quiet()
            await self._sent.wait()

    def _refuse_long(self, verdict: Verdict) -> None:
        """Answer a message that is longer than the guard keeps, under audit too: only its beginning could be sent."""
        found = outline(verdict.frame, b"")
        if found.asks and found.token is not None:
            revision = self._session.conversation.revision
            self._client.reply(render.refusal(found.token, verdict.violations, verdict.more, revision))

    async def _send_all(self) -> None:
        """Send what is outgoing, one after the other."""
        while True:
            if not self._outgoing:
                self._sent.set()
                await self._more.wait()
                self._more.clear()
                continue
            delivery = self._outgoing.popleft()
            verdict = delivery.verdict
            if verdict is None or verdict.kind == "blank":
                continue
            try:
                if not self._withdraws(verdict):
                    await self._send(delivery, verdict)
            except Exception as error:
                # Whether it has reached the server is unknown. The client gets this answer, and no second one.
                log_once(error, "a message could not be sent to the server")
                why = Loss("internal", f"the guard failed ({type(error).__name__})", code="INTERNAL_ERROR")
                self._apply(self._session.exchange_lost(_requests(verdict), why))

    async def _send(self, delivery: Delivery, verdict: Verdict) -> None:
        # What the guard repeats in a new session is not a message of the client, which waits for nothing of that.
        again = delivery.author == "guard" and delivery.frame is verdict.frame
        stateless = is_stateless(verdict.value, verdict.revision) if isinstance(verdict.value, dict) else False
        headers = stateless_headers(_sent(verdict), _params(verdict)) if stateless else None
        every = _requests(verdict)
        tracked = tuple(each for each in every if again or self._session.conversation.is_open(each))
        if tracked:
            await self._ask(Asked(delivery.frame, tracked, headers or [], stateless=stateless, again=again))
        elif not every or any(each.state == "open" for each in every):
            # Under audit, also a request that cannot be tracked, because another one has its id.
            await self._tell_in_order(verdict, delivery.frame, headers, again=again)

    async def _ask(self, asked: Asked) -> None:
        if len(self._asked) >= MOST_ASKED:
            self._fail(asked, Lost(f"{MOST_ASKED} requests are open already"))
            return
        for each in asked.exchanges:
            self._asked[each.id] = asked
        asked.task = self._begin(self._exchange(asked))
        if asked.method == "initialize":
            await asyncio.wait({asked.task}, timeout=self._patience or None)
        else:
            await asyncio.wait({asked.sent}, timeout=ON_ITS_WAY)

    async def _exchange(self, asked: Asked) -> None:
        """One or more requests, from their sending to their answers, or to the errors in their place."""
        try:
            await self._server.ask(asked)
        except SessionGone as gone:
            # The guard's own request for the tools is not part of the handshake that it repeats.
            self._session_gone(gone, again=asked.again and MARK not in asked.frame)
        except Lost as lost:
            self._fail(asked, lost)
        except Exception as error:
            log_once(error, "the answer of the server could not be taken")
            self._fail(asked, Lost(f"the guard could not take its answer: {type(error).__name__}"))
        finally:
            asked.on_its_way()
            for each in asked.exchanges:
                if self._asked.get(each.id) is asked:
                    del self._asked[each.id]

    def _fail(self, asked: Asked, lost: Lost) -> None:
        """Answer requests in the place of the server."""
        if asked.again and asked.method == "initialize":
            self._apply(self._session.server_lost(self._not_restored(lost.why)))
        elif isinstance(lost, Refused) or asked.again:
            self._explain(asked.exchanges, lost)
        else:
            why = Loss("broken", lost.why, code=lost.code, data=lost.data or None)
            self._apply(self._session.exchange_lost(asked.exchanges, why))

    def _explain(self, exchanges: Iterable[Exchange], lost: Lost) -> None:
        """Answer what the server has refused by a status with its reason: it may, so that is not a finding."""
        revision = self._session.conversation.revision
        known = {name: value for name, value in lost.data.items() if name != "status"}
        body, status = (lost.body, lost.status) if isinstance(lost, Refused) else (b"", lost.data.get("status", 0))
        for each in [each for each in exchanges if each.state == "open"]:
            self._note_refusal(each.method, lost.why)
            self._heard(explained(body, status, each, revision, lost.why, known))

    def _note_refusal(self, method: str, why: str) -> None:
        self._refused += 1
        if self._refused <= MOST_REFUSALS:
            self._log(f"assay: the server refused {method[:60]!r}: {why}")
        elif self._refused == MOST_REFUSALS + 1:
            self._log("assay: further requests that the server refuses are not reported")

    async def _tell_in_order(self, verdict: Verdict, frame: bytes, headers: Pairs | None, *, again: bool) -> None:
        """Send a message without an answer; the next one waits until the server has accepted it."""
        opens = verdict.kind == "notification" and verdict.method == "notifications/initialized"
        task = self._begin(self._tell(frame, headers, verdict.method or verdict.kind, again=again))
        await asyncio.wait({task}, timeout=TAKEN)
        if opens and self._server.revision is not None:
            self._listen()

    async def _tell(self, frame: bytes, headers: Pairs | None, what: str, *, again: bool = False) -> None:
        """Send a message without an answer; *again* if the guard repeats it in a new session."""
        try:
            await self._server.tell(frame, headers)
        except SessionGone as gone:
            self._session_gone(gone, again=again)
        except Lost as lost:
            self._log(f"assay: the server did not take {what[:60]!r}: {lost.why}")
        except Exception as error:
            log_once(error, f"{what[:60]!r} could not be sent to the server")

    def _listen(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        self._listening = self._begin(self._server.listen())

    def _withdraws(self, verdict: Verdict) -> bool:
        """
        Whether the client cancels a request without a session: there the end of the response says so, nothing else.

        In a session the notification says so, and the answer may still cross it.
        """
        if verdict.kind != "notification" or verdict.method != CANCELLED:
            return False
        asked = self._asked.get(verdict.exchange.id) if verdict.exchange is not None else None
        if asked is None or asked.task is None:
            return is_stateless(verdict.value, verdict.revision)
        if asked.stateless:
            asked.task.cancel()
        else:
            asyncio.get_running_loop().call_later(CROSSING, self._cross_off, asked)
        return asked.stateless

    # ── from the server ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _from_server(self, frame: bytes) -> None:
        if self._client.full:
            self._session.client_blocked(True)
            try:
                await self._client.room()
            finally:
                self._session.client_blocked(False)
                self._keep_time()
        self._heard(frame)

    def _heard(self, frame: bytes) -> None:
        restoring = self._session.state is State.RESTORING
        outcome = self._session.from_server(frame)
        if outcome.verdict is not None:
            self._note_opening(outcome.verdict)
        if restoring and self._session.state in (State.OPEN, State.NEW):
            self._log(f"assay: {self._gone}; a new one was begun")
        self._apply(outcome)

    def _note_opening(self, verdict: Verdict) -> None:
        opens = verdict.exchange is not None and verdict.exchange.method == "initialize" and verdict.kind == "result"
        if opens and verdict.onward is not None and isinstance(verdict.value["result"], dict):
            self._server.agreed(verdict.value["result"].get("protocolVersion"))

    # ── sessions and time ────────────────────────────────────────────────────────────────────────────────────────────

    def _session_gone(self, gone: SessionGone, *, again: bool) -> None:
        """The server has forgotten the session: what is open fails, and the guard opens another one for the client."""
        if gone.session != self._server.session:
            return
        if again:
            # A session that is gone before it has begun would be opened again without end.
            self._apply(self._session.server_lost(self._not_restored(gone.why)))
            return
        self._gone = f"its session is gone: {gone.why}"
        # A server may end a session so, and is not to blame for what was open in it.
        lost = Lost(self._gone, gone.code, **gone.data)
        self._explain(self._session.conversation.open_requests(Party.CLIENT), lost)
        for asked in set(self._asked.values()):
            if asked.task is not None and asked.task is not asyncio.current_task():
                asked.task.cancel()
        if self._listening is not None:
            self._listening.cancel()
        self._outgoing.clear()
        self._apply(self._session.server_lost(Loss("session_gone", self._gone, data={"status": 404})))

    def _not_restored(self, why: str) -> Loss:
        return Loss("broken", f"{self._gone or 'its session is gone'}, and no other could be begun: {why}")

    def _open_again(self) -> None:
        """Begin a new session at the server, with the handshake of the client."""
        self._server.session = None
        self._apply(self._session.server_ready())

    def _keep_time(self) -> None:
        """Have the session fail what has waited too long, when it is time."""
        due = self._session.deadline
        if due == self._due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        wait = max(0.0, due - perf_counter()) + 0.001
        self._timer = asyncio.get_running_loop().call_later(wait, self._tick) if due < inf else None

    def _tick(self) -> None:
        self._timer, self._due = None, inf
        self._apply(self._session.tick())

    async def _keep_records(self) -> None:
        """Write records that wait for an answer, if that takes long."""
        while True:
            await asyncio.sleep(RECORDED)
            self._session.records.commit()


def _requests(verdict: Verdict) -> list[Exchange]:
    return [each for each in requests(verdict) if each is not None]


def _sent(verdict: Verdict) -> Any:
    """The message that goes to the server, repaired if it was."""
    if verdict.onward is None or not any(each.action == "repair" for each in verdict.violations):
        return verdict.value
    return syntax.read(verdict.onward, DEEPEST)


def _params(verdict: Verdict) -> Any:
    """The headers that the called tool wants of its arguments."""
    contract = verdict.exchange.contract if verdict.exchange is not None else None
    return contract.headers if contract is not None else ()

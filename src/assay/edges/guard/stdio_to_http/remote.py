"""
A client on our standard streams and a server at a URL, with the guard between them. One event loop.

Nobody is left waiting: a request that the server does not answer, for whatever reason, is answered here. What the
client says is sent in its order: a notification or an answer is taken before the next message goes, a request is on its
way.
"""

import asyncio
import selectors
import signal
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from assay.base.limits import DEEPEST
from assay.base.verdict import Exchange, Party, Verdict
from assay.core import render
from assay.core.party_state import Id
from assay.edges.guard.overseer import Overseer, Oversight, Watcher
from assay.edges.guard.refusals import explained
from assay.edges.guard.stdio_to_http.client import Client
from assay.edges.guard.stdio_to_http.dialogue import Asked, Dialogue, Refused, SessionGone
from assay.edges.guard.stdio_to_http.upstream import Lost, Upstream
from assay.edges.hangup import is_heeded
from assay.edges.http.origin_check import leads_here
from assay.edges.http_client import DIRECTLY, objection_to
from assay.edges.pipes import Outlet
from assay.edges.upstream_errors import shown_url
from assay.guard.failure import log_once
from assay.guard.guard import Move, Settled, line
from assay.guard.outline import outline
from assay.ladder import syntax
from assay.ladder.headers import is_stateless, stateless_headers
from assay.settings.upstream_section import UpstreamSettings

CLIENT_LEFT: Final = 0
CANNOT_RUN: Final = 2
SERVER_LOST: Final = 3
"""Exit status where the server was lost first."""

MOST_ASKED: Final = 200
"""Requests at once. Each has a connection of its own, and some systems let a process have 256 files."""

MOST_REFUSED: Final = 20
"""Refusals of what the server has asked that it has not taken yet; one that takes none gets no more."""

ON_ITS_WAY: Final = 2.0
"""Seconds that the next message waits for a request to be sent. Then the order is given up, not the message."""

TAKEN: Final = 5.0
"""The same, for what the server only has to take."""

GOODBYE: Final = 2.0
"""Seconds for the end of a session, and for a client to read what is left for it once we were asked to stop."""

CROSSING: Final = 5.0
"""Seconds in which the answer to a cancelled request may still cross on its way."""

RECORDED: Final = 1.0
"""Seconds between two looks at what waits to be written down."""

TOLD: Final = 100
"""Requests that the server refused of which people are told, as many as there are messages whose findings are."""

OPENING: Final = 60.0
"""Seconds for a new session in place of one that the server has forgotten."""

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER

Log = Callable[[str], None]


class TargetError(ValueError):
    """Why there can be no server at a URL."""


def check_target(url: str) -> None:
    """Raises `TargetError` if *url* leads nowhere."""
    why = objection_to(url)
    if why is not None:
        raise TargetError(f"--target: {why}: {shown_url(url)}")


def run(
    target: str,
    headers: Sequence[tuple[str, str]],
    oversight: Oversight,
    *,
    patience: float = 0.0,
    log: Log = lambda _: None,
    errors: Outlet | None = None,
    watcher: Watcher | None = None,
    source: int = 0,
    sink: int = 1,
    upstream: UpstreamSettings = DIRECTLY,
) -> int:
    """
    Serves until the client leaves, a signal comes or the server is lost; the exit status.

    *headers* go with every request. *patience* is how many seconds after the client's last word its requests are still
    waited for; 0 for ever. Lines for people go to *log*; what waits in *errors* is written as there is room.
    With *watcher*, that one keeps the last messages. *upstream* says how the server is reached.
    """

    async def serve() -> int:
        return await Remote(target, headers, oversight, patience, log, errors, watcher, source, sink, upstream).serve()

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


class Remote:
    """One run of the guard."""

    def __init__(
        self,
        target: str,
        headers: Sequence[tuple[str, str]],
        oversight: Oversight,
        patience: float,
        log: Log,
        errors: Outlet | None,
        watcher: Watcher | None,
        source: int,
        sink: int,
        upstream: UpstreamSettings,
    ) -> None:
        self._overseer: Overseer = oversight.begin(watcher=watcher)
        self._guard = self._overseer.guard
        self._say = log
        self._errors = errors
        self._patience = patience
        self._limit = oversight.frame_bytes
        self._upstream = Upstream(target, headers, upstream)
        self._client = Client(source, sink, limit=self._limit, before_writing=oversight.recorder.flush)
        self._flush = oversight.recorder.flush
        is_open = self._guard.conversation.is_open
        self._dialogue = Dialogue(self._upstream, self._from_server, is_open, limit=self._limit, patience=patience)
        self._asked: dict[Id, Asked] = {}
        """What is on its way or waited for, by each id in it."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusals: set[asyncio.Task[None]] = set()
        """What the server is told about what it has asked, and has not taken yet."""
        self._listening: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        """Held while a session is begun anew: nobody speaks meanwhile."""
        self._opened: tuple[bytes, Id, dict[str, Any]] | None = None
        """How the client has opened the session, and what the server has answered."""
        self._initialized: bytes | None = None
        self._news = asyncio.Event()
        """Something was asked or answered."""
        self._stop = asyncio.Event()
        self._stopped = False
        self._refused = 0
        """How many requests the server has refused by a status."""
        self._lost = ""
        """Why the server counts as lost."""

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def serve(self) -> int:
        """Serves until it is over; the exit status."""
        loop = asyncio.get_running_loop()
        # What was said before there was a loop.
        self._push_errors()
        for each in _STOPPING:
            # Whoever started us may want some of them to be ignored, as nohup does.
            if signal.getsignal(each) is not signal.SIG_IGN and not (each == signal.SIGHUP and is_heeded()):
                loop.add_signal_handler(each, self._signalled)
        beside = [self._begin(each) for each in (self._keep_time(), self._keep_records(), self._see_client_go())]
        reading = self._begin(self._read())
        try:
            await self._until(reading)
            await self._owed()
            return await self._end([*beside, reading])
        finally:
            self._flush()
            self._client.close()
            if self._errors is not None:
                loop.remove_writer(self._errors.descriptor)
            await self._upstream.close()

    def _signalled(self) -> None:
        self._stopped = True
        self._stop.set()

    async def _see_client_go(self) -> None:
        await self._client.gone.wait()
        self._stopped = True
        self._stop.set()

    async def _until(self, awaited: "asyncio.Future[Any]") -> None:
        """Waits for *awaited*, unless we are to stop."""
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({awaited, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()

    async def _owed(self) -> None:
        """Answers are still waited for, although the client says no more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience or None):
                while self._guard.owed and not self._stop.is_set():
                    self._news.clear()
                    news = asyncio.ensure_future(self._news.wait())
                    await self._until(news)
                    news.cancel()

    async def _end(self, running: "list[asyncio.Task[None]]") -> int:
        # What was asked just before the client's last word has waited as long as that is ago.
        self._settled(settled for settled, _ in self._overseer.overdue())
        left = not self._lost and (self._stopped or not self._guard.owed)
        why = self._lost or ("the guard was stopped" if self._stopped else "it did not answer in time")
        self._fail_all(why)
        for task in [*running, *self._tasks]:
            task.cancel()
        await asyncio.wait([*running, *self._tasks], timeout=GOODBYE)
        if not self._lost:
            with suppress(Lost, TimeoutError):
                async with asyncio.timeout(GOODBYE):
                    await self._dialogue.end()
        # The client has as long as it likes to read the rest, unless we are to stop.
        finishing = asyncio.ensure_future(self._client.finish())
        while not self._stopped and not finishing.done():
            self._stop.clear()
            await self._until(finishing)
        await asyncio.wait({finishing}, timeout=GOODBYE)
        finishing.cancel()
        if self._lost:
            self._log(f"assay: the server was lost: {self._lost}")
        return CLIENT_LEFT if left else SERVER_LOST

    def _log(self, text: str) -> None:
        self._say(text)
        self._push_errors()

    def _push_errors(self) -> None:
        """Whoever reads stderr is never waited for."""
        if self._errors is not None and self._errors.waiting:
            asyncio.get_running_loop().add_writer(self._errors.descriptor, self._write_errors, self._errors)

    def _write_errors(self, errors: Outlet) -> None:
        errors.push(room=True)
        if not errors.waiting:
            asyncio.get_running_loop().remove_writer(errors.descriptor)

    def _lose(self, why: str) -> None:
        self._lost = self._lost or why
        self._stop.set()

    def _begin(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A fault of our own. What it held up is answered at the end.
            if isinstance(error, Exception):
                log_once(error, "the guard failed")
            self._log(f"assay: the guard failed: {type(error).__name__}")

    # ── from the client ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _read(self) -> None:
        async for frame in self._client.frames():
            await self._from_client(frame)

    async def _from_client(self, frame: bytes) -> None:
        async with self._turn:
            pass
        verdict, move = self._overseer.hear(_CLIENT, frame)
        self._give(move)
        self._news.set()
        await self._client.quiet()
        if move.to_server is None or verdict.kind == "blank":
            return
        try:
            await self._pass_on(verdict, move.to_server)
        except Exception as error:
            # Whether it has reached the server is unknown. The client gets this answer, and no second one.
            log_once(error, "a message could not be sent to the server")
            self._fail(_requests(verdict), Lost(f"the guard failed ({type(error).__name__})", "INTERNAL_ERROR"))

    async def _pass_on(self, verdict: Verdict, frame: bytes) -> None:
        """Sends what the client has said, unless it is too long or means something else over HTTP."""
        if len(verdict.frame) > self._limit:
            self._too_long(verdict)
        elif not self._cancels(verdict):
            await self._send(verdict, frame)

    async def _send(self, verdict: Verdict, frame: bytes) -> None:
        stateless = is_stateless(verdict.value, verdict.revision) if isinstance(verdict.value, dict) else False
        headers = stateless_headers(_sent(verdict), _params(verdict)) if stateless else None
        requests = _requests(verdict)
        exchanges = tuple(each for each in requests if self._guard.conversation.is_open(each))
        if exchanges:
            await self._ask(Asked(frame, exchanges, headers or [], stateless=stateless))
        elif not requests or any(each.state == "open" for each in requests):
            # Under audit, also a request of which nobody can keep track, since another one has its id.
            await self._tell(verdict, frame, headers)

    async def _ask(self, asked: Asked) -> None:
        if len(self._asked) >= MOST_ASKED:
            self._fail(asked.exchanges, Lost(f"{MOST_ASKED} requests are open already"))
            return
        for each in asked.exchanges:
            self._asked[each.id] = asked
        asked.task = self._begin(self._exchange(asked))
        if asked.method == "initialize":
            await asyncio.wait({asked.task}, timeout=self._patience or None)
        else:
            await asyncio.wait({asked.sent}, timeout=ON_ITS_WAY)

    async def _exchange(self, asked: Asked) -> None:
        """One or more requests, from their sending to their answers, or to what is said in their place."""
        try:
            await self._dialogue.ask(asked)
        except SessionGone as gone:
            await self._renew(gone)
        except Refused as refused:
            self._refuse(asked.exchanges, refused)
        except Lost as lost:
            self._fail(asked.exchanges, lost)
        except Exception as error:
            log_once(error, "the answer of the server could not be taken")
            self._fail(asked.exchanges, Lost(f"the guard could not take its answer: {type(error).__name__}"))
        finally:
            asked.on_its_way()
            for each in asked.exchanges:
                if self._asked.get(each.id) is asked:
                    del self._asked[each.id]

    def _refuse(self, exchanges: Iterable[Exchange], refused: Refused) -> None:
        """What the server has refused by a status is answered with its reason; people are told, too."""
        revision = self._guard.conversation.revision
        known = {name: value for name, value in refused.data.items() if name != "status"}
        for each in list(filter(self._guard.conversation.is_open, exchanges)):
            self._note_refusal(each.method, refused.why)
            self._heard(explained(refused.body, refused.status, each, revision, refused.why, known))

    def _note_refusal(self, method: str, why: str) -> None:
        self._refused += 1
        if self._refused <= TOLD:
            self._log(f"assay: the server refused {method[:60]!r}: {why}")
        elif self._refused == TOLD + 1:
            self._log("assay: further requests that the server refuses are not told")

    async def _tell(self, verdict: Verdict, frame: bytes, headers: Any) -> None:
        """What the server only has to take; the next message waits until it has."""
        opens = verdict.kind == "notification" and verdict.method == "notifications/initialized"
        if opens and headers is None:
            self._initialized = frame
        what = verdict.method or verdict.kind
        task = self._begin(self._told(frame, headers, what))
        await asyncio.wait({task}, timeout=TAKEN)
        if opens and self._dialogue.revision is not None:
            self._listen()

    async def _told(self, frame: bytes, headers: Any, what: str) -> None:
        try:
            await self._dialogue.tell(frame, headers)
        except SessionGone as gone:
            await self._renew(gone)
        except Lost as lost:
            self._log(f"assay: the server did not take {what[:60]!r}: {lost.why}")
        except Exception as error:
            log_once(error, f"{what[:60]!r} could not be sent to the server")

    def _listen(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        self._listening = self._begin(self._dialogue.listen())

    def _too_long(self, verdict: Verdict) -> None:
        """A message that is longer than we keep cannot be sent: if it shows whose it is, that one is answered."""
        found = outline(verdict.frame, b"")
        if found.asks and found.token is not None:
            revision = self._guard.conversation.revision
            self._client.reply(render.refusal(found.token, verdict.violations, verdict.more, revision))

    def _cancels(self, verdict: Verdict) -> bool:
        """
        Whether the client cancels what was asked without a session: there, closing the stream says so, nothing else.

        In a session the notification says so, and the answer may still cross it.
        """
        if verdict.kind != "notification" or verdict.method != "notifications/cancelled":
            return False
        asked = self._asked.get(verdict.exchange.id) if verdict.exchange is not None else None
        if asked is None or asked.task is None:
            return is_stateless(verdict.value, verdict.revision)
        if asked.stateless:
            asked.task.cancel()
        else:
            asyncio.get_running_loop().call_later(CROSSING, self._cross_off, asked)
        return asked.stateless

    def _cross_off(self, asked: Asked) -> None:
        """Nothing more is expected of what was asked, unless it was more than one thing."""
        if asked.task is not None and not any(map(self._guard.conversation.is_open, asked.exchanges)):
            asked.task.cancel()

    # ── from the server ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _from_server(self, frame: bytes) -> None:
        await self._client.room()
        self._heard(frame)

    def _heard(self, frame: bytes) -> None:
        verdict, move = self._overseer.hear(_SERVER, frame)
        try:
            self._note_opening(verdict)
        except Exception as error:
            # The client gets the answer; only a session that the server forgets could not be begun anew.
            log_once(error, "the answer to initialize could not be kept")
        # What cannot be read, or is too long to be, was said over HTTP: on a line of its own it would help nobody.
        # Where its id says what it answers, something has to come of that.
        lost = verdict.kind == "unreadable" and verdict.exchange is None
        self._give(move._replace(to_client=None) if lost else move)
        self._news.set()
        if move.to_server is not None and len(self._refusals) < MOST_REFUSED:
            refusal = self._begin(self._told(move.to_server, None, "our refusal of its request"))
            self._refusals.add(refusal)
            refusal.add_done_callback(self._refusals.discard)

    def _note_opening(self, verdict: Verdict) -> None:
        exchange = verdict.exchange
        if exchange is None or exchange.method != "initialize" or verdict.kind != "result":
            return
        asked = self._asked.get(exchange.id)
        result = verdict.value["result"]
        if asked is not None and verdict.onward is not None and isinstance(result, dict):
            self._opened = asked.frame, exchange.id, result
            self._initialized = None
            self._dialogue.agreed(result.get("protocolVersion"))

    def _give(self, move: Move) -> None:
        """What goes to the client."""
        if move.to_client is not None:
            self._client.say(line(move.to_client))
        self._settled(move.settled)
        self._push_errors()

    def _settled(self, settled: Iterable[Settled]) -> None:
        for each in settled:
            # Here it is us who have lost the answer, under audit as well: nobody else could say so.
            answer = each.answer or each.verdict.onward
            if answer:
                self._client.say(line(answer))
        self._push_errors()

    def _fail(self, exchanges: Iterable[Exchange], lost: Lost) -> None:
        given_up = [self._overseer.give_up(each, lost.code, lost.why, lost.data or None) for each in exchanges]
        self._settled(each for each in given_up if each is not None)
        self._news.set()

    def _fail_all(self, why: str) -> None:
        self._settled(self._overseer.server_ended(why, []))
        self._news.set()

    # ── time and sessions ────────────────────────────────────────────────────────────────────────────────────────────

    async def _keep_time(self) -> None:
        """Fails what has waited too long, and tells the server that nobody waits for it."""
        while True:
            patience = self._guard.patience
            if patience is None:
                asking = asyncio.ensure_future(self._news.wait())
                await asking
                self._news.clear()
                continue
            await asyncio.sleep(patience + 0.001)
            try:
                self._fail_overdue()
            except Exception as error:
                log_once(error, "a late request could not be answered")

    def _fail_overdue(self) -> None:
        for settled, told in self._overseer.overdue():
            self._settled([settled])
            exchange = settled.verdict.exchange
            asked = self._asked.get(exchange.id) if exchange is not None else None
            if asked is None:
                continue
            if told is not None and not asked.stateless:
                self._begin(self._told(told, None, "notifications/cancelled"))
            self._cross_off(asked)

    async def _keep_records(self) -> None:
        """Sees to it that nothing waits for long to be written down."""
        while True:
            await asyncio.sleep(RECORDED)
            self._flush()

    async def _renew(self, gone: SessionGone) -> None:
        """The server has forgotten the session: what is open fails, and another one is begun as the client began it."""
        async with self._turn:
            if gone.session != self._dialogue.session or self._opened is None:
                return
            why = f"its session is gone: {gone.why}"
            # A server may end a session so, and is not to blame for what was open in it.
            gone.why = why
            self._refuse(self._guard.conversation.open_requests(_CLIENT), Refused(gone, b""))
            self._drop_all()
            frame, ident, before = self._opened
            try:
                async with asyncio.timeout(OPENING):
                    after = await self._dialogue.open_again(frame, ident, self._initialized)
            except Lost as lost:
                self._lose(f"{why}, and no other could be begun: {lost.why}")
                return
            except TimeoutError:
                self._lose(f"{why}, and no other could be begun within {OPENING:g} seconds")
                return
            differs = [each for each in ("protocolVersion", "capabilities") if before.get(each) != after.get(each)]
            if differs:
                self._lose(f"{why}, and the server has other {' and '.join(differs)} now")
                return
            self._log(f"assay: {why}; a new one was begun")
            if self._initialized is not None:
                self._listen()

    def _drop_all(self) -> None:
        """Ends everything that is on its way but for whoever calls this."""
        for asked in set(self._asked.values()):
            if asked.task is not None and asked.task is not asyncio.current_task():
                asked.task.cancel()
        if self._listening is not None:
            self._listening.cancel()


def _requests(verdict: Verdict) -> tuple[Exchange, ...]:
    """The requests in a message, which may be a batch."""
    heard = verdict.parts if verdict.kind == "batch" else (verdict,)
    return tuple(each.exchange for each in heard if each.kind == "request" and each.exchange is not None)


def _sent(verdict: Verdict) -> Any:
    """The message that goes to the server: without the slips that were mended in it."""
    if verdict.onward is None or not any(each.action == "repair" for each in verdict.violations):
        return verdict.value
    return syntax.read(verdict.onward, DEEPEST)


def _params(verdict: Verdict) -> Any:
    """The headers that the tool which is called wants of its arguments."""
    contract = verdict.exchange.contract if verdict.exchange is not None else None
    return contract.headers if contract is not None else ()

"""
A guard over HTTP in front of a scripted server at a URL, all in this process: no sockets, and no time passes.

It is composed as `assay guard --listen` does, but for the client that reaches the server and the server that clients
reach: those are in memory. Scripts are those of `kit.scripted_http`; one that is asynchronous may wait.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, Self, TypeVar

from multidict import CIMultiDict
from yarl import URL

from assay.edges.auth import Gate, Principal
from assay.edges.auth.api_keys import new_key, written_hash
from assay.edges.compose import AtUrl, Composition, Kept
from assay.edges.http.access import Door
from assay.edges.http.origin_check import Safety
from assay.edges.http.replies import Pairs
from assay.edges.http_front import Front
from assay.edges.recorder import Records
from assay.edges.upstream_client import headed_by
from assay.edges.upstream_errors import BrokenError
from assay.edges.url_backend import UrlBackend
from assay.guard.connection_name import ANONYMOUS
from assay.guard.summary import GuardSummary
from assay.guard.terms import Mode, Terms
from assay.model.limits import DEFAULT
from assay.records.metrics import Metrics
from assay.rules.policy import Policy
from assay.settings import Settings
from assay.settings.auth_section import ApiKey, Auth
from assay.settings.http_section import Http
from kit.http_client import BOTH, INITIALIZED, Answer, Headers, frame_of, initialize
from kit.memory_http import HERE, Exchange, as_pairs, begun, settled
from kit.scripted_http import Peer, Received, answer_own_listing, good, is_own_listing
from kit.still_loop import StillLoop

T = TypeVar("T")

URL_OF_SERVER = "http://server.example/mcp"
KEYS = {name: new_key() for name in ("alice", "bob")}
BEARERS: dict[str, dict[str, Any]] = {name: {"authorization": f"Bearer {key}"} for name, key in KEYS.items()}
"""The header with which each principal shows its key, where a guard has keys."""


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────────


class MemoryPeer(Peer):
    """The server's end of a connection: what it sends is taken from a queue."""

    def __init__(self, released: asyncio.Event) -> None:
        self.sent: asyncio.Queue[bytes] = asyncio.Queue()
        self._released = released

    def send(self, data: bytes) -> None:
        """Send *data*, all of it."""
        if data:
            self.sent.put_nowait(data)

    async def wait(self) -> None:
        """Until the test lets go."""
        await self._released.wait()

    async def taken(self) -> None:
        """Until the other end has taken all that was sent."""
        while not self.sent.empty():
            await asyncio.sleep(0)


def holding(*events: Any, then: Any = None) -> Callable[[Received, MemoryPeer], Coroutine[Any, Any, None]]:
    """A script that sends *events*, if any, on a stream, and when the test lets go *then*: an event, or an answer."""

    async def script(_: Received, peer: MemoryPeer) -> None:
        if events:
            peer.events(*events)
        await peer.wait()
        if then is not None:
            (peer.event if events else peer.json)(then)

    return script


class MemoryAnswer:
    """The head of an answer and the pieces of its body, as the HTTP client would give them."""

    def __init__(self, peer: MemoryPeer, script: asyncio.Task[Any] | None) -> None:
        self._sent, self._script = peer.sent, script
        self._first = b""
        self._left: int | None = None
        self.status, self.reason = 0, "Something"
        self.pairs: list[tuple[bytes, bytes]] = []
        self.is_closed = False

    async def begin(self) -> None:
        """Wait for the head. Raises `BrokenError` if none comes."""
        held = b""
        while b"\r\n\r\n" not in held:
            piece = await self._next()
            if not piece:
                raise BrokenError("the server closed the connection before it answered")
            held += piece
        head, _, self._first = held.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        self.status = int(first.split()[1])
        self.pairs = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        length = self.header(b"content-length")
        self._left = None if length is None else int(length)

    def header(self, name: bytes) -> bytes | None:
        """The first value of a header."""
        return next((value for each, value in self.pairs if each == name), None)

    async def piece(self) -> bytes:
        """The next bytes of the body."""
        piece, self._first = self._first, b""
        if self.is_whole:
            return b""
        piece = piece or await self._next()
        if self._left is not None:
            if not piece:
                raise BrokenError("the server closed the connection before its answer was complete")
            self._left -= len(piece)
        return piece

    async def chunks(self) -> AsyncIterator[bytes]:
        """All of the body."""
        while piece := await self.piece():
            yield piece

    @property
    def is_whole(self) -> bool:
        """Whether nothing more follows."""
        return self._left == 0

    def close(self) -> None:
        """Read no more of it."""
        self.is_closed = True
        if self._script is not None:
            self._script.cancel()

    async def _next(self) -> bytes:
        """What is sent next; empty at the end of the script."""
        if not self._sent.empty() or self._script is None:
            return b"" if self._sent.empty() else self._sent.get_nowait()
        more = asyncio.ensure_future(self._sent.get())
        await asyncio.wait((more, self._script), return_when=asyncio.FIRST_COMPLETED)
        if more.done():
            return more.result()
        more.cancel()
        return b"" if self._sent.empty() else self._sent.get_nowait()


class MemoryServer:
    """The server, and what it has been asked. It takes the place of the HTTP client."""

    def __init__(self, script: Callable[[Received, Any], Any]) -> None:
        self.script = script
        self.seen: list[Received] = []
        self.answers: list[MemoryAnswer] = []
        self.released = asyncio.Event()
        self.shows_lists = False
        """Whether requests of the guard for the tools are seen, and answered by the script."""

    async def answer(self, method: str, url: URL, pairs: Any, body: bytes | None = None, _: Any = None) -> MemoryAnswer:
        """The head of the answer to a request."""
        headed = pairs if isinstance(pairs, CIMultiDict) else headed_by(pairs)
        given = [("host", url.host_port_subcomponent or ""), *((name.lower(), value) for name, value in headed.items())]
        received, peer = Received(method, url.raw_path_qs, given, body or b""), MemoryPeer(self.released)
        script: asyncio.Task[Any] | None = None
        if is_own_listing(received) and not self.shows_lists:
            answer_own_listing(received, peer)
        else:
            self.seen.append(received)
            made = self.script(received, peer)
            script = asyncio.ensure_future(made) if inspect.iscoroutine(made) else None
        answer = MemoryAnswer(peer, script)
        self.answers.append(answer)
        try:
            await answer.begin()
        except BaseException:
            answer.close()
            raise
        return answer

    async def close(self) -> None:
        """Nothing is kept."""

    def asked(self) -> list[str]:
        """The methods of all messages so far."""
        return [each.message.get("method", "") for each in self.seen if each.body]

    def last(self, method: str) -> Received:
        """The last request that carries *method*."""
        return [each for each in self.seen if each.body and each.message.get("method") == method][-1]


# ── the guard ────────────────────────────────────────────────────────────────────────────────────────────────────────


class UrlGuard:
    """A guard. As a context it ends with it."""

    def __init__(
        self,
        mode: Mode = "enforce",
        script: Callable[[Received, Any], Any] = good,
        *,
        url: str = URL_OF_SERVER,
        headers: Pairs = (),
        http: Http | None = None,
        keys: bool = False,
        policy: Policy | None = None,
        timeout: float = 60.0,
        frame_bytes: int = DEFAULT.frame_bytes,
        flights: str = "off",
    ) -> None:
        self.mode = mode
        self.said: list[str] = []
        """What the operator sees."""
        auth = Auth(keys={name: ApiKey(written_hash(key.encode())) for name, key in KEYS.items()}) if keys else None
        settings = Settings(http=http or Http(), auth=auth)
        self.terms = Terms(mode, replace(DEFAULT, frame_bytes=frame_bytes), timeout, policy)
        gate = Gate.read(auth, cwd=".", tier="community")
        watch = GuardSummary(self.said.append, self.said.append, enforcing=mode == "enforce")
        self.metrics = Metrics()
        desk = Composition(
            self.terms,
            settings,
            lambda *_: Kept(Records(), flights),
            self.metrics,
            [],
            watch,
            keys,
            self.said.append,
            lambda *_: None,
            lambda _: None,
            name="server",
        )
        server = AtUrl(url, headers, "server")
        backends = server.backends(desk)
        backend = backends["/mcp"]
        assert isinstance(backend, UrlBackend)
        self.backend = backend
        self.server = MemoryServer(script)
        self.backend.target._client = self.server  # type: ignore[assignment]  # it has what is used of the client
        safety = Safety(settings.http.hosts, settings.http.origins, settings.http.public_url)
        door = Door(safety, gate, Principal(ANONYMOUS, "community"), self.said.append)
        self.front = Front(
            backends,
            door,
            settings.http,
            frame_bytes=frame_bytes,
            metrics=self.metrics.render,
            beside=server.beside(backends, door),
        )
        self._runner = asyncio.Runner(loop_factory=StillLoop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self.front.close())
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do *work* in the loop of the guard."""
        return self._runner.run(work)

    @property
    def log(self) -> list[str]:
        """What the operator sees, but for calls of tools that no list had: under audit the guard does not ask."""
        return [line for line in self.said if "[contract/not-judged]" not in line]

    # ── asking ──

    async def begun(
        self, method: str, path: str = "/mcp", body: Any = b"", headers: Any = None, host: str = HERE
    ) -> Exchange:
        """A request that is sent; *headers* are a mapping, or pairs of bytes."""
        frame = frame_of(body) if body != b"" else b""
        exchange = begun(self.front, method, path, frame, [(b"host", host.encode()), *as_pairs(headers or {})])
        await settled()
        return exchange

    async def asked(self, *request: Any, **more: Any) -> Answer:
        """The answer to a request."""
        answer = await (await self.begun(*request, **more)).answer()
        await settled()
        return answer

    def ask(self, *request: Any, **more: Any) -> Answer:
        """The same."""
        return self.run(self.asked(*request, **more))

    def post(self, message: Any, headers: Headers | None = None, **more: str | bytes) -> Answer:
        """One message; *more* are headers too (`_` stands for `-`)."""
        every = {**(BOTH if headers is None else headers), **{k.replace("_", "-"): v for k, v in more.items()}}
        return self.ask("POST", "/mcp", message, every)

    def session(
        self, revision: str, capabilities: Mapping[str, Any] | None = None, **more: str | bytes
    ) -> dict[str, str | bytes]:
        """The headers of a session that is open in *revision*."""
        first = initialize(revision)
        first["params"]["capabilities"] = dict(capabilities or {})
        opened = self.post(first, {**BOTH, **more})
        assert opened.json()["result"]["protocolVersion"] == revision
        headers: dict[str, str | bytes] = {**BOTH, "mcp-session-id": opened.header("mcp-session-id") or "none", **more}
        if revision >= "2025-06-18":
            headers["mcp-protocol-version"] = revision
        assert self.post(INITIALIZED, headers).status == 202
        return headers

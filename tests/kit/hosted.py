"""
A command served over HTTP without a process and without a socket: a child that is a scripted server in this process.

Everything between a request and the child's pipe is the guard's own. Nothing waits: what a child does follows at once.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from assay.edges import child_backend
from assay.edges.auth import Principal
from assay.edges.child import StartError, why
from assay.edges.child_backend import ChildBackend
from assay.edges.child_pipe import PipeLine, PipeOwner
from assay.edges.http.access import Door
from assay.edges.http.origin_check import Safety
from assay.edges.http.replies import Send
from assay.edges.http_front import Front
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sink, Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Mode, Terms
from assay.model.limits import DEFAULT
from assay.rules.policy import Policy
from assay.settings.http_section import Http
from kit.http_client import BOTH, INITIALIZED, Answer, frame_of, initialize, modern
from kit.memory_http import Exchange, as_pairs, begun, run
from kit.scripted_server import Server

NEWEST = "2025-11-25"

Headers = Mapping[str, str | bytes]


# ── the child ────────────────────────────────────────────────────────────────────────────────────────────────────────


class ScriptedChild(Server):
    """Stands in the place of `ChildPipe`: one run of a scripted server."""

    def __init__(self, script: dict[str, Any], owner: PipeOwner, errors: Callable[[bytes], None]) -> None:
        if "unstartable" in script:
            raise StartError(script["unstartable"])
        super().__init__(script)
        self.frames: list[bytes] = []
        """What it has received; of a quiet one without requests for its tools."""
        self.is_held = self.is_over = False
        self.last_line = self.lost_for = ""
        self._owner, self._errors = owner, errors
        self._last_words: list[str] = []
        self._when_over: list[Callable[[], None]] = []
        self._loop = asyncio.get_running_loop()
        for action in script.get("start", ()):
            self.do(action, {})

    @property
    def methods(self) -> list[str]:
        """The methods of what it has received."""
        return [json.loads(each).get("method", "answer") for each in self.frames]

    # What the guard does with it.

    def when_over(self, done: Callable[[], None]) -> None:
        self._when_over.append(done)

    def has_room(self, _: int) -> bool:
        return True

    def send(self, frame: bytes) -> None:
        self.take(frame, b"\n")

    def hold(self) -> None:
        self.is_held = True

    def go_on(self) -> None:
        self.is_held = False

    async def end(self, **_: bool) -> None:
        self._over()

    def _over(self) -> None:
        if not self.is_over:
            self.is_over = True
            for each in self._when_over:
                self._loop.call_soon(each)

    # What it does by itself.

    def take(self, line: bytes, ending: bytes) -> None:
        """One line."""
        if not self.script.get("quiet") or b'"tools/list"' not in line or "tools/list" in self.on:
            self.frames.append(line)
        super().take(line, ending)

    def out(self, data: bytes) -> None:
        """Write *data*, whole lines."""
        lines = [PipeLine(each) for each in data.split(b"\n") if each.strip()]
        if not self.is_over:
            self._loop.call_soon(self._owner.heard, lines)

    def do_log(self, _: Any, text: str) -> None:
        self._errors(text.encode())
        self._last_words += text.splitlines()

    def do_exit(self, _: Any, status: int) -> None:
        self.lost_for = why(status)
        self.last_line = "".join(self._last_words[-1:])
        self._loop.call_soon(self._owner.ended, self.lost_for, self._last_words)
        self._over()

    def do_die(self, _: Any) -> None:
        self.do_exit({}, -9)


# ── the guard ────────────────────────────────────────────────────────────────────────────────────────────────────────


class _OpenDoor(Door):
    """Lets everybody in, as whom they say they are."""

    def known(self, headers: Any) -> Principal | None:
        return None if super().known(headers) is None else _named(headers)

    async def admitted(self, headers: Any, send: Send, endpoint: str = "") -> Principal | None:
        return None if await super().admitted(headers, send, endpoint) is None else _named(headers)


def _named(headers: Any) -> Principal:
    return Principal(headers.get(b"x-principal", b"anonymous").decode(), "free")


class Hosted:
    """A guard in front of a scripted server, whose clock stands still unless it is moved."""

    def __init__(
        self,
        mode: Mode = "enforce",
        *,
        timeout: float = 60.0,
        policy: Policy | None = None,
        http: Http | None = None,
        frame_bytes: int = 16 << 20,
        sinks: Sequence[Sink] = (),
        options: Mapping[str, Any] | None = None,
        **script: Any,
    ) -> None:
        """*options* are those of the backend. The server is quiet, if its *script* does not say otherwise."""
        self.script = {"quiet": True, **script}
        """The script of each child that is started from now on."""
        self.children: list[ScriptedChild] = []
        """All that were started."""
        self.now = 1000.0
        self.log: list[str] = []
        self.stderr = b""
        terms = Terms(mode, replace(DEFAULT, frame_bytes=frame_bytes), timeout, policy)
        watch = GuardSummary(self.log.append, lambda _: None, enforcing=mode == "enforce")
        factory = SessionFactory(terms, Sinks(sinks), watch)
        factory._clock = asyncio.get_running_loop().time
        http = http or Http()
        self.backend = ChildBackend(
            factory, ["python"], http=http, errors=self._to_stderr, clock=lambda: self.now, **(options or {})
        )
        door = _OpenDoor(Safety(), None, Principal("anonymous", "free"))
        self._front = Front({"/mcp": self.backend}, door, http, frame_bytes=frame_bytes, metrics=bytes)

    def _to_stderr(self, data: bytes) -> None:
        self.stderr += data

    def started(
        self, _: Sequence[str], owner: PipeOwner, *, errors: Callable[[bytes], None], **__: Any
    ) -> ScriptedChild:
        """The next child."""
        self.children.append(ScriptedChild(self.script, owner, errors))
        return self.children[-1]

    def begin(self, message: Any, headers: Headers | None = None, method: str = "POST", **more: str) -> Exchange:
        """A request that is sent; *more* are headers too (`_` stands for `-`)."""
        extra = {name.replace("_", "-"): value for name, value in more.items()}
        pairs = as_pairs({"host": "127.0.0.1", **(BOTH if headers is None else headers), **extra})
        return begun(self._front, method, "/mcp", b"" if message is None else frame_of(message), pairs)

    async def post(self, message: Any, headers: Headers | None = None, **more: str) -> Answer:
        """The answer to a message."""
        return await self.begin(message, headers, **more).answer()

    async def ask(self, message: Any, **more: str) -> Answer:
        """The answer to a message of 2026-07-28."""
        return await self.post(message, modern(message), **more)

    def asking(self, message: Any, **more: str) -> Exchange:
        """A request of 2026-07-28 that is sent."""
        return self.begin(message, modern(message), **more)

    async def get(self, headers: Headers, **more: str) -> Answer:
        """The answer to a GET that is refused, or whose stream has ended."""
        return await self.listen(headers, **more).answer()

    def listen(self, headers: Headers, **more: str) -> Exchange:
        """A GET."""
        return self.begin(None, {**headers, "accept": "text/event-stream"}, "GET", **more)

    async def delete(self, headers: Headers) -> int:
        """The status of a DELETE."""
        return (await self.begin(None, headers, "DELETE").answer()).status

    async def open(self, who: str = "anonymous", revision: str = NEWEST, **capabilities: Any) -> dict[str, Any]:
        """The headers of a new session."""
        message = initialize(revision)
        message["params"]["capabilities"] = capabilities
        answer = await self.post(message, x_principal=who)
        assert answer.status == 200, answer
        headers = {**BOTH, "mcp-session-id": answer.header("mcp-session-id") or "", "x-principal": who}
        assert headers["mcp-session-id"]
        assert (await self.post(INITIALIZED, headers)).status == 202
        return headers


Scenario = Callable[[Hosted], Awaitable[None]]


def host(scenario: Scenario, mode: Mode = "enforce", **given: Any) -> Hosted:
    """Run *scenario* with a guard; return that, ended. What is *given* is for `Hosted`."""

    async def work() -> Hosted:
        hosted = Hosted(mode, **given)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(child_backend, "ChildPipe", hosted.started)
            try:
                await scenario(hosted)
            finally:
                await hosted.backend.close()
        return hosted

    return run(work())


def hosting(mode: Mode = "enforce", **given: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Make a test of a scenario with such a guard, `hosted`; an argument `mode` of the test is that of the guard."""

    def decorate(scenario: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        def test(**arguments: Any) -> None:
            host(lambda hosted: scenario(hosted=hosted, **arguments), arguments.get("mode", mode), **given)

        signature = inspect.signature(scenario)
        kept = [each for name, each in signature.parameters.items() if name != "hosted"]
        test.__name__, test.__qualname__, test.__doc__ = scenario.__name__, scenario.__qualname__, scenario.__doc__
        test.__module__ = scenario.__module__
        vars(test)["__signature__"] = signature.replace(parameters=kept)
        return test

    return decorate

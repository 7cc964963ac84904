"""A guarded session without I/O: asked for its outcomes, between streams of lines, or before a scripted server."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from assay.guard.backoff import Backoff
from assay.guard.deliveries import ClientTraits, Delivery, Loss, Outcome, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.line_feed import LineFeed
from assay.guard.sinks import Sink, Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Mode, Terms
from assay.judge import syntax
from assay.judge.conversation import Conversation
from assay.lock.locked import Locked
from assay.model.limits import Limits
from assay.model.verdict import Party, Verdict, Violation
from assay.rules.policy import Policy
from assay.schema.tool_contracts import Tools
from assay.settings import Settings
from assay.settings.loading import in_flags, made
from assay.settings.policy_settings import policy as policy_of
from assay.spec.revisions import handshake
from kit.guard_process import INITIALIZED, frame_of, initialize, request, result
from kit.scripted_server import TOOL, Server

TODAY = "2026-01-01"
TIMEOUT, DRAIN = 10.0, 20.0
STDIO = ClientTraits("stdio", sees_loss=True, carries_raw=True)
LOST = Loss("exited", "it exited with status 1")
INFORMATION = {"name": "a", "version": "1"}
CAPABILITIES: dict[str, Any] = {"tools": {"listChanged": True}, "logging": {}, "resources": {}, "prompts": {}}


def opened_in(revision: str = "2025-11-25", capabilities: Mapping[str, Any] = CAPABILITIES) -> dict[str, Any]:
    """The result of initialize."""
    return {"protocolVersion": revision, "capabilities": dict(capabilities), "serverInfo": INFORMATION}


class Records(Sink):
    """What is recorded: the frames that pass, and the rules that are broken, each with the method of its message."""

    def __init__(self) -> None:
        self.passes: list[bytes] = []
        self.finds: list[tuple[str | None, str]] = []
        self.violations: list[Violation] = []

    @property
    def rules(self) -> list[str]:
        """The broken rules."""
        return [rule for _, rule in self.finds]

    def passed(self, verdict: Verdict, _: float, __: str, /) -> None:
        """Keep the frame."""
        self.passes.append(verdict.frame)

    def found(self, verdict: Verdict, _: float, __: str, ___: int, /) -> None:
        """Keep the rules and the violations."""
        self.violations += verdict.violations
        self.finds += [(verdict.method, each.rule) for each in verdict.violations]


class _Session:
    """A session over standard streams with a child, its clock, its records, and what people are shown."""

    def __init__(
        self,
        mode: Mode = "enforce",
        *,
        policy: Policy | None = None,
        timeout: float = TIMEOUT,
        limits: Limits | None = None,
        restorable: bool = False,
        revision: str | None = None,
        tools: Tools | None = None,
        judge: Conversation | None = None,
        locked: Locked | None = None,
        sinks: Sinks | None = None,
        client: ClientTraits = STDIO,
        redact: tuple[str, ...] = (),
        name: str = "",
    ) -> None:
        """With a *revision* it is open. *judge* takes the place of the one that the factory makes."""
        self.now = 1000.0
        self.records = Records()
        self.log: list[str] = []
        """The lines for people, without those that the server printed."""
        self.printed: list[str] = []
        """These."""
        enforcing = mode == "enforce"
        self.watch = GuardSummary(
            self.log.append, self.printed.append, enforcing=enforcing, redact=redact, name=name, introducing=bool(name)
        )
        terms = Terms(mode, limits or Limits(), timeout, policy)
        factory = SessionFactory(terms, sinks or Sinks([self.records]), self.watch, locked)
        factory._clock = lambda: self.now
        if judge is not None:
            factory._judge = lambda **_: judge
        self.session = factory.open(
            client,
            ServerTraits("child", restorable=restorable),
            watch=self.watch,
            revision=revision,
            tools=tools,
            drain=DRAIN,
            backoff=Backoff("always", 2) if restorable else None,
        )


class Guard(_Session):
    """One that is asked for the outcome of each event."""

    def client(self, message: Any) -> Outcome:
        """The client sends a message."""
        return self.session.from_client(frame_of(message))

    def server(self, message: Any) -> Outcome:
        """The server sends a message."""
        return self.session.from_server(frame_of(message))

    def later(self, seconds: float) -> Outcome:
        """The time goes on, and the session looks at it."""
        self.now += seconds
        return self.session.tick()

    def opened(self, revision: str = "2025-11-25", **capabilities: Any) -> Self:
        """The same after the handshake, if there is one; the server has these capabilities, or those of a good one."""
        if handshake(revision):
            self.client(initialize(revision))
            self.server(result("open", opened_in(revision, capabilities or CAPABILITIES)))
            self.client(INITIALIZED)
        return self

    def listed(self, *tools: Any) -> Self:
        """The same after the server has listed its tools."""
        self.client(request("list", "tools/list"))
        self.server(result("list", {"tools": list(tools)}))
        return self


def read(deliveries: Sequence[Delivery]) -> list[Any]:
    """The messages that are delivered."""
    return [syntax.read(each.frame) for each in deliveries]


class GuardedLines(_Session):
    """One between two streams of lines, and what it has sent to either side."""

    def __init__(self, mode: Mode = "enforce", *, limits: Limits | None = None, **options: Any) -> None:
        names = {"frame_bytes"} & options.keys()
        limits = limits or Limits(**{name: options.pop(name) for name in names})
        super().__init__(mode, limits=limits, **options)
        self._sent = {Party.CLIENT: b"", Party.SERVER: b""}
        """What each side has got."""
        self._feeds = {
            Party.CLIENT: LineFeed(self.session, Party.CLIENT, self._to_server, self._carry_out),
            Party.SERVER: LineFeed(self.session, Party.SERVER, self._to_client, self._carry_out),
        }

    def say(self, party: Party, *messages: Any) -> None:
        """*party* sends all *messages*, each as a line."""
        self.write(party, b"".join(frame_of(each) + b"\n" for each in messages))

    def write(self, party: Party, data: bytes) -> None:
        """*party* sends *data*."""
        self._feeds[party].feed(data)

    def end(self, party: Party) -> None:
        """*party* sends nothing more."""
        self._feeds[party].end()

    def got(self, party: Party) -> bytes:
        """What *party* has got since it was last asked for."""
        data, self._sent[party] = self._sent[party], b""
        return data

    def messages(self, party: Party) -> list[Any]:
        """The same, read."""
        return [syntax.read(each) for each in self.got(party).splitlines()]

    def client(self, *messages: Any) -> list[Any]:
        """What the client gets when it sends *messages*."""
        self.say(Party.CLIENT, *messages)
        return self.messages(Party.CLIENT)

    def server(self, *messages: Any) -> list[Any]:
        """What the client gets when the server sends *messages*."""
        self.say(Party.SERVER, *messages)
        return self.messages(Party.CLIENT)

    def open(self, *tools: Any, revision: str = "2025-11-25") -> list[Any]:
        """The handshake, and the list of tools; the tools that the client gets."""
        self.client(initialize(revision))
        self.server(result("open", opened_in(revision)))
        self.client(INITIALIZED, request("list", "tools/list"))
        [answer] = self.server(result("list", {"tools": list(tools)}))
        self.got(Party.SERVER)
        listed: list[Any] = answer["result"]["tools"]
        return listed

    def lost(self, why: str = LOST.detail) -> None:
        """The server ends."""
        self.end(Party.SERVER)
        self._carry_out(self.session.server_lost(Loss("exited", why)))

    def _to_server(self, data: bytes, ending: bytes) -> None:
        self._sent[Party.SERVER] += data + ending

    def _to_client(self, data: bytes, ending: bytes) -> None:
        self._sent[Party.CLIENT] += data + ending

    def _carry_out(self, outcome: Outcome, ending: bytes = b"\n") -> None:
        for party, deliveries in ((Party.SERVER, outcome.to_server), (Party.CLIENT, outcome.to_client)):
            for each in deliveries:
                as_it_came = each.author == "peer" and each.verdict is outcome.verdict
                self._sent[party] += each.frame + (ending if as_it_came else b"\n")


# ── before a scripted server ─────────────────────────────────────────────────────────────────────────────────────────


class EndedError(Exception):
    """The server has ended."""


class QuietServer(Server):
    """A server without streams: what it gets, and what it writes, is kept."""

    def __init__(self, script: dict[str, Any]) -> None:
        super().__init__(script)
        self.got = self.said = self.unread = b""
        """What it has got and written, and what of that the guard has not read yet."""

    def out(self, data: bytes) -> None:
        """Keep *data*."""
        self.said += data
        self.unread += data

    def take(self, line: bytes, ending: bytes) -> None:
        """One line."""
        self.got += line + ending
        super().take(line, ending)

    def do_log(self, _: Any, text: str) -> None:
        """Drop it."""

    def do_exit(self, _: Any, status: int) -> None:
        """End."""
        raise EndedError(f"it ended with status {status}")


class ScriptedSession(GuardedLines):
    """One between a client of ours and a scripted server."""

    def __init__(
        self, script: dict[str, Any], mode: Mode, settings: Sequence[str] = (), locked: Mapping[str, Any] | None = None
    ) -> None:
        """*locked* is the script of the server when it was locked, if it was."""
        self.scripted = QuietServer(script)
        self.sent = self.received = b""
        """What the client has sent, and what it has got."""
        given: Settings = made(in_flags(settings))
        super().__init__(
            mode,
            limits=given.guard_limits,
            timeout=given.guard.timeout,
            policy=policy_of(given.guard, TODAY),
            locked=None if locked is None else locked_by(locked),
        )

    def converse(self, *frames: bytes) -> None:
        """The client sends *frames*; everything that comes of them happens."""
        data = b"".join(each + b"\n" for each in frames)
        self.sent += data
        self.write(Party.CLIENT, data)
        while lines := self.got(Party.SERVER).removesuffix(b"\n"):
            try:
                for line in lines.split(b"\n"):
                    self.scripted.take(line, b"\n")
            except EndedError as end:
                self._hear()
                self.lost(str(end))
                break
            self._hear()
        self.received += self.got(Party.CLIENT)

    def leave(self) -> None:
        """The client sends no more, so the server ends: a request that it has not answered fails."""
        self.end(Party.CLIENT)
        self._carry_out(self.session.client_done())
        self.end(Party.SERVER)
        self._carry_out(self.session.close(Loss("exited", "it ended with status 0")))
        self.received += self.got(Party.CLIENT)
        self.log += self.watch.summary()

    def _hear(self) -> None:
        data, self.scripted.unread = self.scripted.unread, b""
        self.write(Party.SERVER, data)


def locked_by(script: Mapping[str, Any]) -> Locked:
    """What a lock has of a server with that *script*."""
    tools = {each["name"]: (each,) for each in script.get("tools", [TOOL])}
    return Locked(("run",), "", "2025-11-25", {"name": "scripted", "version": "1"}, listed={"tools": tools})

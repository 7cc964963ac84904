"""A guarded session between a client of ours and a scripted server, joined as a guard joins its streams. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.base.verdict import Party, Verdict
from assay.guard.deliveries import ClientTraits, Delivery, Loss, Outcome, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.line_feed import LineFeed
from assay.guard.sinks import Sink, Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Mode, Terms
from assay.lock.locked import Locked
from assay.settings import Settings
from assay.settings.loading import settings_of
from assay.settings.policy_settings import policy
from kit.scripted_server import TOOL, Server

TODAY = "2026-01-01"


class EndedError(Exception):
    """The server has ended."""


class QuietServer(Server):
    """A server without streams: what it gets, and what it writes, is kept."""

    def __init__(self, script: dict[str, Any]) -> None:
        super().__init__(script)
        self.got = self.said = b""
        self.unread = bytearray()
        """What it has written, and the guard has not read yet."""

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


class Findings(Sink):
    """The rules that were found to be broken."""

    def __init__(self) -> None:
        self.rules: set[str] = set()

    def found(self, verdict: Verdict, _: float, __: str, ___: int, /) -> None:
        """Keep them."""
        self.rules |= {each.rule for each in verdict.violations}


class ScriptedSession:
    """One conversation over standard streams with a child, without either."""

    def __init__(
        self, script: dict[str, Any], mode: Mode, settings: Sequence[str] = (), locked: Mapping[str, Any] | None = None
    ) -> None:
        """*locked* is the script of the server when it was locked, if it was."""
        self.server = QuietServer(script)
        self.log: list[str] = []
        self.findings = Findings()
        self.wrote = self.got = b""
        """What the client has sent, and what it has got."""
        given = settings_of(Settings, None, {}, settings, self.log.append)
        watch = GuardSummary(self.log.append, self.log.append, enforcing=mode == "enforce")
        terms = Terms(mode, given.guard_limits, given.guard.timeout, policy(given.guard, TODAY))
        factory = SessionFactory(terms, Sinks([self.findings]), watch, None if locked is None else locked_by(locked))
        self.session = factory.open(
            ClientTraits("stdio", sees_loss=True, carries_raw=True), ServerTraits("child"), watch=watch
        )
        self._summary = watch.summary
        self._for_server = bytearray()
        self._from_client = LineFeed(self.session, Party.CLIENT, self._to_server, self._carry_out)
        self._from_server = LineFeed(self.session, Party.SERVER, self._to_client, self._carry_out)

    def say(self, *frames: bytes) -> None:
        """The client sends *frames*; everything that comes of them happens."""
        data = b"".join(each + b"\n" for each in frames)
        self.wrote += data
        self._from_client.feed(data)
        self._go_on()

    def leave(self) -> None:
        """The client sends no more, so the server ends: a request that it has not answered fails."""
        self._from_client.end()
        self._carry_out(self.session.client_done())
        self._from_server.end()
        self._carry_out(self.session.close(Loss("exited", "it ended with status 0")))
        self.log += self._summary()

    def _go_on(self) -> None:
        while self._for_server:
            *lines, rest = bytes(self._for_server).split(b"\n")
            self._for_server[:] = rest
            try:
                for line in lines:
                    self.server.take(line, b"\n")
            except EndedError as end:
                self._read_server()
                self._from_server.end()
                self._carry_out(self.session.server_lost(Loss("exited", str(end))))
                return
            self._read_server()
            if not lines:
                return

    def _read_server(self) -> None:
        data = bytes(self.server.unread)
        self.server.unread.clear()
        if data:
            self._from_server.feed(data)

    def _to_server(self, data: bytes, ending: bytes) -> None:
        self._for_server += data + ending

    def _to_client(self, data: bytes, ending: bytes) -> None:
        self.got += data + ending

    def _carry_out(self, outcome: Outcome, ending: bytes = b"\n") -> None:
        for each in outcome.to_server:
            self._to_server(each.frame, _ending(each, outcome, ending))
        for each in outcome.to_client:
            self._to_client(each.frame, _ending(each, outcome, ending))


def _ending(delivery: Delivery, outcome: Outcome, ending: bytes) -> bytes:
    return ending if delivery.author == "peer" and delivery.verdict is outcome.verdict else b"\n"


def locked_by(script: Mapping[str, Any]) -> Locked:
    """What a lock has of a server with that *script*."""
    tools = {each["name"]: each for each in script.get("tools", [TOOL])}
    return Locked(("run",), "", "2025-11-25", {"name": "scripted", "version": "1"}, listed={"tools": tools})

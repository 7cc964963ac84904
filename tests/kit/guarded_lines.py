"""A guard between two streams of lines, without the streams: what each side gets, and what people are shown."""

from typing import Any

from assay.base.limits import Limits
from assay.base.verdict import Party
from assay.core.policy import Policy
from assay.guard.deliveries import ClientTraits, Delivery, Loss, Outcome, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.line_feed import LineFeed
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Mode, Terms
from assay.ladder import syntax
from kit.guard_process import INITIALIZED, frame_of, initialize, request, result

CAPABILITIES = {"tools": {"listChanged": True}, "logging": {}, "resources": {}, "prompts": {}}
OPENED = {"capabilities": CAPABILITIES, "serverInfo": {"name": "a", "version": "1"}}


class GuardedLines:
    """A guard, and what it has sent to either side."""

    def __init__(
        self,
        mode: Mode = "enforce",
        *,
        policy: Policy | None = None,
        redact: tuple[str, ...] = (),
        name: str = "",
        **limits: int,
    ) -> None:
        self.log: list[str] = []
        """The lines for people, without those that the server printed."""
        self.printed: list[str] = []
        """These."""
        self.watch = GuardSummary(
            self.log.append,
            self.printed.append,
            enforcing=mode == "enforce",
            redact=redact,
            name=name,
            introducing=bool(name),
        )
        factory = SessionFactory(Terms(mode, Limits(**limits), 0.0, policy), Sinks(), self.watch)
        client = ClientTraits("stdio", sees_loss=True, carries_raw=True)
        self.session = factory.open(client, ServerTraits("child"), watch=self.watch)
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
        self.server(result("open", {"protocolVersion": revision, **OPENED}))
        self.client(INITIALIZED, request("list", "tools/list"))
        [answer] = self.server(result("list", {"tools": list(tools)}))
        self.got(Party.SERVER)
        listed: list[Any] = answer["result"]["tools"]
        return listed

    def lost(self, why: str = "it exited with status 1") -> list[Any]:
        """What the client gets when the server ends."""
        self.end(Party.SERVER)
        self._carry_out(self.session.server_lost(Loss("exited", why)))
        return self.messages(Party.CLIENT)

    def _to_server(self, data: bytes, ending: bytes) -> None:
        self._sent[Party.SERVER] += data + ending

    def _to_client(self, data: bytes, ending: bytes) -> None:
        self._sent[Party.CLIENT] += data + ending

    def _carry_out(self, outcome: Outcome, ending: bytes = b"\n") -> None:
        for party, deliveries in ((Party.SERVER, outcome.to_server), (Party.CLIENT, outcome.to_client)):
            for each in deliveries:
                self._sent[party] += each.frame + self._ending(each, outcome, ending)

    @staticmethod
    def _ending(delivery: Delivery, outcome: Outcome, ending: bytes) -> bytes:
        return ending if delivery.author == "peer" and delivery.verdict is outcome.verdict else b"\n"

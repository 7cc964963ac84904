"""
The state of a conversation: the phase, both parties, the tools of the server, and what each topic keeps. No I/O.

`topics` has the functions that read and change it, message by message.
"""

from typing import Any, Literal, TypeVar

from assay.judge.lifecycle import Lifecycle
from assay.judge.party_state import PartyState
from assay.judge.topics import all_topics as _  # noqa: F401 - fills the table
from assay.judge.topics import extensions, handshake
from assay.judge.topics.capabilities import undeclared
from assay.judge.topics.table import Note, hearing
from assay.model.json_values import obj
from assay.model.limits import Limits
from assay.model.verdict import Exchange, Party
from assay.rules.report import Report
from assay.schema.tool_contract import Contract
from assay.schema.tool_contracts import Tools
from assay.spec.extensions import extended_methods

_Topic = TypeVar("_Topic")


class State:
    """The state of one conversation."""

    def __init__(
        self,
        limits: Limits,
        revision: str | None,
        *,
        errata: bool,
        quick: bool,
        tools: Tools | None = None,
    ) -> None:
        """With *quick* valid calls may be accepted at once."""
        self.limits = limits
        self.whole = revision is None
        """Whether the conversation is known from its first message on: otherwise it goes on from another one."""
        self.lifecycle = Lifecycle(revision, errata=errata)
        self.tools = Tools(limits.tools, limits.contract_bytes) if tools is None else tools
        self.parties = {party: PartyState(party, limits, self.lifecycle.rules) for party in Party}
        self._quick = quick
        self._topics: dict[type, Any] = {}
        self.settle()

    # ── what topics keep ─────────────────────────────────────────────────────────────────────────────────────────────

    def own(self, kind: type[_Topic]) -> _Topic:
        """Return what a topic keeps of this conversation."""
        known: _Topic | None = self._topics.get(kind)
        if known is None:
            known = self._topics[kind] = kind(self)  # type: ignore[call-arg]  # every topic's state takes this one
        return known

    def shared(self, kind: type[_Topic]) -> _Topic:
        """Return what a topic keeps of the server, for all conversations with it."""
        known = self.known(kind)
        if known is None:
            known = self.tools.topics[kind] = kind(self.limits)  # type: ignore[call-arg]  # they take the limits
        return known

    def known(self, kind: type[_Topic]) -> _Topic | None:
        """Return what a topic keeps of the server; None if it keeps nothing yet."""
        return self.tools.topics.get(kind)

    def called(self, message: dict[str, Any]) -> Contract | None:
        """Return the contract of the tool that *message* calls; None if it is not known."""
        params = message.get("params")
        name = params.get("name") if type(params) is dict else None
        return self.tools.known.get(name) if type(name) is str else None

    # ── what topics do with a message ────────────────────────────────────────────────────────────────────────────────

    def check(
        self,
        moment: Literal["request", "result", "entries", "error"],
        exchange: Exchange,
        value: dict[str, Any],
        report: Report,
    ) -> None:
        """Report what is wrong with the params of a request, its result or its error, before it is forwarded."""
        for hear in hearing(moment, exchange.method):
            hear(self, exchange, value, report)

    def check_note(self, note: Note, report: Report) -> None:
        """Report what is wrong with a notification, before it is forwarded."""
        extended = extended_methods(note.rules.revision).get(note.method)
        if extended is None or not extensions.leaves_out(self, extended.extension):
            for hear in hearing("note", note.method):
                hear(self, note, report)

    def forwarded(self, exchange: Exchange, message: dict[str, Any]) -> None:
        """Note that a request was forwarded, which may decide the era."""
        params = obj(message.get("params"))
        for hear in hearing("forwarded", exchange.method):
            hear(self, exchange, params)

    def answered(self, exchange: Exchange, message: dict[str, Any], report: Report) -> None:
        """Note that an answer was forwarded; the entries of a list may break rules themselves."""
        if "error" in message:
            handshake.fail(self, exchange, message["error"])
            return
        for hear in hearing("answered", exchange.method):
            hear(self, exchange, message["result"], report)

    def noted(self, note: Note) -> Exchange | None:
        """Note that a notification was forwarded. Return the exchange that it concerns, if any."""
        concerned = [hear(self, note) for hear in hearing("noted", note.method)]
        return next((each for each in concerned if each is not None), None)

    # ── changes that concern every topic ─────────────────────────────────────────────────────────────────────────────

    def catch_up(self) -> None:
        """Copy the capabilities that the server declared in another conversation about the same tools."""
        server = self.parties[Party.SERVER]
        if server.capabilities is not self.tools.declared and self.lifecycle.phase == "stateless":
            server.capabilities = self.tools.declared
            self.settle()

    def settle(self) -> None:
        """Give both parties the revision in force, and find the methods that neither may send."""
        rules = self.lifecycle.rules
        declared = {party: each.capabilities for party, each in self.parties.items()}
        for party, each in self.parties.items():
            each.use(rules)
            each.undeclared = undeclared(party, rules.revision, declared)
            settled = self.lifecycle.phase in {"operating", "stateless"}
            if self._quick and settled and "tools/call" not in each.undeclared:
                each.call = rules.calls[party, "request"].get("tools/call")

    def refuse_handshake(self) -> None:
        """Forget a failed handshake; another one may follow."""
        self.lifecycle.refused()
        self.parties[Party.CLIENT].capabilities = self.parties[Party.SERVER].capabilities = None
        self.settle()

    def renew(self) -> None:
        """Forget what concerned only the server before."""
        server = self.parties[Party.SERVER]
        server.open.clear()
        for each in self.parties.values():
            each.forget_excused()
        # An answer to a cancelled request may still be forwarded, but not to a server that never made it.
        server.settled.clear()
        server.tokens.clear()
        server.garbage = 0
        for topic in self._topics.values():
            if hasattr(topic, "renew"):
                topic.renew()
        self.tools.renew()

    def forget_client(self) -> None:
        """Forget all settled requests, and what the next client has not declared or seen."""
        for each in self.parties.values():
            each.settled.clear()
        for topic in self._topics.values():
            if hasattr(topic, "forget_client"):
                topic.forget_client()
        self.lifecycle.modern_only = ""

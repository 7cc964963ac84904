"""
The judge: takes the frames of both parties of one conversation, and returns a verdict on each.

No I/O, no clock, no thread. The client, the server, our own tools and a server behind the guard are judged by the same
code.
"""

import gc
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from assay.base import no_answer
from assay.base.large_frames import paused
from assay.base.meta import named_revision
from assay.base.verdict import Exchange, Findings, Party, Verdict, Violation, verdict
from assay.contracts.tool_contracts import Tools
from assay.core import render, state_rules
from assay.core.broken_frames import BrokenFrames
from assay.core.history import irregular
from assay.core.judge_base import CLIENT, NO_FACTS, SERVER, Facts
from assay.core.judge_failure import Unjudged, loosely_read
from assay.core.party_state import Id, Side
from assay.core.quick_look import QuickLook
from assay.core.request_judge import RequestJudge
from assay.engine.budget import LARGE, Budget
from assay.ladder import envelope, framing, syntax
from assay.spec.revisions import FEATURES, features_of, handshake, is_known

__all__ = ["NO_FACTS", "Conversation", "Facts"]

_read: Final = syntax.read

_IDS: Final = (int, str, float)
"""The types that an id may have in a frame that was read."""


class Conversation(QuickLook, RequestJudge, BrokenFrames):
    """
    One conversation between a client and a server.

    *mode* decides what happens to a refused message. Under ``enforce`` it is stopped: `Verdict.back` has the answer for
    its sender, and `Verdict.onward` what the other party gets in its place, if anything. Under ``audit`` every message
    is forwarded unchanged, and the verdict has the violations.

    With *revision* the conversation counts as opened in that revision already: for stateless HTTP, where the handshake
    was elsewhere. There each request of a client may be a conversation of its own; they share the *tools* that the
    server listed, and the *lock* of the server, if it was locked.

    *policy* replaces the actions that the table of rules has. With *lines* frames are forwarded as lines of a stream,
    so each must be one line for every reader.

    An unknown *mode*, *profile* or *revision* is a `ValueError`.
    """

    def is_open(self, exchange: Exchange) -> bool:
        """Return whether the sender of a request still waits for the answer."""
        return self._sides[exchange.asker].open.get(exchange.id) is exchange

    def open_requests(self, party: Party) -> tuple[Exchange, ...]:
        """Return the requests of *party* that are not answered, oldest first."""
        return tuple(self._sides[party].open.values())

    def __repr__(self) -> str:
        waiting = sum(len(side.open) for side in self._sides.values())
        asked = f"{waiting} open request{'' if waiting == 1 else 's'}"
        return f"<Conversation: {self.mode}, {self.revision or 'no revision yet'}, {asked}>"

    def hear(self, party: Party, frame: framing.Text, facts: Facts = NO_FACTS) -> Verdict:
        """
        Return the verdict on a frame that *party* sent.

        *frame* is text or bytes; anything else is a `TypeError`. No frame raises, whatever it contains.
        """
        if type(frame) is not bytes:
            frame = framing.as_frame(frame)
        if len(frame) > self._frame_bytes:
            return self._garbled(party, frame, framing.check(frame, self._frame_bytes))
        if len(frame) > LARGE and gc.isenabled():
            with paused():
                return self.hear(party, frame, facts)
        if self._lines and b"\r" in frame:
            broken = framing.check_returns(frame)
            if broken is not None:
                return self._garbled(party, frame, broken)
        value = _read(frame, self._depth, self._values)
        if type(value) is dict and (facts.headers is None or self._keeps_headers(value, facts.headers)):
            # The cost of a large message is bounded before it is judged.
            if len(frame) <= LARGE:
                if party is CLIENT:
                    exchange = self._quick_call(value)
                    if exchange is not None:
                        return verdict(CLIENT, frame, "request", value, exchange, exchange.entry.revision)
                elif party is SERVER:
                    exchange = self._quick_result(value)
                    if exchange is not None:
                        return verdict(SERVER, frame, "result", value, exchange, exchange.entry.revision)
                else:
                    # "client" is equal to Party.CLIENT and not the same object; any other text raises ValueError.
                    return self.hear(Party(party), frame, facts)  # type: ignore[unreachable]  # for untyped callers
        elif type(value) is Violation:
            if framing.is_blank(frame):
                return verdict(party, frame, "blank", None, None, self.revision, Findings(()))
            return self._garbled(party, frame, value)
        self._budget = Budget(frame, self.limits.violations)
        if type(value) is list:
            return self._batch(party, frame, value, facts)
        return self._message(party, frame, value, facts)

    def failure(self, why: str) -> Violation:
        """Return the violation for a message that could not be judged because of an internal error."""
        return self._decided([state_rules.failure(why, self.revision)])[0]

    def unjudged(self, party: Party, frame: bytes, why: str, heard: Verdict | None = None) -> Verdict:
        """
        Return the verdict on a frame that could not be judged because of an internal error; *why* is one word.

        A request that waits gets an answer. If such a frame is forwarded, so is the answer to it. *heard* is the
        verdict on the frame if it was judged and the failure came later, before anything was sent.
        """
        wrong = self.failure(why)
        lost, self._closing = self._closing, None
        closing = [] if lost is None else [lost]
        if heard is not None:
            closing += [each for each in map(_answered, heard.parts or (heard,)) if each is not None]
        hear = Unjudged(
            self._sides, self._most_open, wrong, closing, passes=not self._enforcing or not wrong.stops
        ).hear
        value = loosely_read(frame)
        if not isinstance(value, list) or not value:
            return hear(party, frame, value)
        spelt = zip(render.entries(frame), value, strict=True)
        return self._of_parts(party, frame, value, tuple(hear(party, *each) for each in spelt))

    def unlisted(self, message: Any) -> tuple[dict[str, Any], str] | None:
        """
        Return the call for which to request the tools before *message* is judged, and the revision; None without one.

        It is *message* itself, or one of its entries if it is a batch: it calls a tool that may exist, and whose
        contract is not known.
        """
        if self._tools.complete:
            return None
        if type(message) is not list:
            revision = self._unlisted(message)
            return None if revision is None else (message, revision)
        if not features_of(self.revision).batches or len(message) > self.limits.batch_entries:
            return None
        called = ((each, self._unlisted(each)) for each in message)
        return next(((each, revision) for each, revision in called if revision is not None), None)

    def _unlisted(self, message: Any) -> str | None:
        if type(message) is not dict or message.get("method") != "tools/call":
            return None
        params = message.get("params")
        name = params.get("name") if type(params) is dict else None
        # A call without a valid id, or of a server without tools, is refused. The id may be spelt as 1.0.
        if type(name) is not str or type(message.get("id")) not in _IDS or not self._tools.is_missing(name):
            return None
        revision = named_revision(message)
        if revision is None or handshake(revision) or not is_known(revision):
            revision = self.revision if self._memory.lifecycle.phase == "operating" else None
        return None if "tools/call" in self._client.undeclared else revision

    def refuses(self, frame: bytes, revision: str, facts: Facts) -> bool:
        """Return whether a request is refused, whatever tools there are. Nothing is remembered of it."""
        scratch = Conversation(revision=revision, **self._terms)
        found = scratch.hear(CLIENT, frame, facts).violations
        return any(each.stops and each.rule != state_rules.NOT_JUDGED for each in found)

    def beside(self, revision: str) -> "Conversation":
        """Return a conversation of the guard itself with the same server; what is listed in it is known here, too."""
        return Conversation(revision=revision, tools=self._tools, **self._terms)

    def release(self) -> None:
        """Release the tools of a conversation that has ended: their contracts take most of its memory."""
        self._tools = self._memory.tools = Tools(self.limits.tools, self.limits.contract_bytes)
        self._memory.extensions.use(self._tools)

    def forget_settled(self) -> None:
        """Forget the settled requests: the next ones come from another client, with ids of its own."""
        self._memory.forget_settled()

    def end(
        self,
        party: Party,
        why: str = "",
        data: Mapping[str, Any] | None = None,
        *,
        unstarted: bool = False,
        excused: bool = False,
    ) -> list[Verdict]:
        """
        Return the verdicts on the answers that *party* owes and will not send: each of those requests fails, once.

        The requests of *party* itself are forgotten. The errors for the other party have *why* and *data*;
        *unstarted* means that there never was a server. *excused* means that *party* could not answer, because the
        other party left or the guard ended: then the verdicts have no violation.
        """
        asker = self._sides[party.other]
        self._sides[party].open.clear()
        self._sides[party].tokens.clear()
        self._sides[party].irregular.clear()
        asker.irregular.clear()
        return [
            self._abandoned(asker, each, "answered", "UPSTREAM_FAILURE", why, data, unstarted, excused)
            for each in list(asker.open.values())
        ]

    def renew(self) -> None:
        """
        Continue with another server, after the `end` of the one before.

        The revision and the capabilities stay in force. The requests of the old server are dropped, and its tools are
        known until the new one lists its own.
        """
        self._memory.renew()

    def give_up(
        self,
        asker: Party,
        ident: Id,
        code: str = "TIMEOUT",
        why: str = "",
        data: Mapping[str, Any] | None = None,
        *,
        unstarted: bool = False,
        excused: bool = False,
    ) -> Verdict | None:
        """
        Fail a request of *asker* that timed out, or gets no answer because of *why*; None if it is not open.

        The edge measures the time. An answer that still comes is not delivered.
        The error also has *data*; *unstarted* and *excused* are as in `end`.
        """
        exchange = self._sides[asker].open.get(ident)
        state: Literal["answered", "timed-out"] = "timed-out" if code == "TIMEOUT" else "answered"
        if exchange is None:
            return None
        return self._abandoned(self._sides[asker], exchange, state, code, why, data, unstarted, excused)

    def _message(self, party: Party, frame: bytes, value: Any, facts: Facts, batched: bool = False) -> Verdict:
        kind = envelope.classify(value, self._profile, self.limits.id_bytes)
        if kind is None:
            return self._unusual(party, frame, value, facts, batched)
        if kind == "request":
            return self._request(party, frame, value, facts, batched, value["id"])
        if kind == "result":
            return self._answer(party, frame, value, kind, value["id"])
        return self._notification(party, frame, value, facts)

    def _unusual(self, party: Party, frame: bytes, value: Any, facts: Facts, batched: bool) -> Verdict:
        """Return the verdict on what the quick look did not decide: errors, ids such as 1.0, and invalid messages."""
        revision = self.revision
        error_id = revision is not None and not FEATURES[revision].optional_error_id
        kind, faults = envelope.read(value, self._profile, id_limit=self.limits.id_bytes, error_id=error_id)
        ident = value.get("id") if isinstance(value, dict) else None
        if not faults and isinstance(ident, float):
            # 1.0 is 1; a number that only rounds to an integer is not an id.
            ident = render.exact_id(frame)
            faults = () if ident is not None else (state_rules.no_whole_number(self._profile, revision),)
        if faults and not self._enforcing and kind in {"result", "error"}:
            ident, faults = self._excused(party, frame, value, ident, faults)
        if faults and kind == "error" and value.get("id", "") is None:
            # JSON-RPC 2.0, 5, requires null where the id of the request is unknown: `_unread` reports it.
            faults = tuple(each for each in faults if each.rule != "envelope/id")
        if faults:
            return self._malformed(party, frame, kind, value, faults, facts)
        if kind == "request":
            return self._request(party, frame, value, facts, batched, cast("Id", ident))
        if kind == "notification":
            return self._notification(party, frame, value, facts)
        heard = self._answer(party, frame, value, kind, ident)
        irregular.spell(heard)
        return heard

    def _abandoned(
        self,
        asker: Side,
        exchange: Exchange,
        state: Literal["answered", "timed-out"],
        code: str,
        why: str,
        data: Mapping[str, Any] | None,
        unstarted: bool,
        excused: bool,
    ) -> Verdict:
        """Return the verdict on an answer that does not come."""
        asker.close(exchange, state)
        # After a time-out the server has the request. Otherwise clients may send it again, as after a 401.
        exchange.reusable = state == "answered"
        if exchange.method == "initialize":
            self._memory.refused()
        late = code == "TIMEOUT"
        wrong = () if excused else (state_rules.unanswered(exchange, why, late=late, unstarted=unstarted),)
        if unstarted:
            reason = why.removeprefix("cannot start ")
            data = {"detail": f"the server could not be started: {reason}", **(data or {})}
        elif excused:
            data = {"detail": why, **(data or {})}
        ident = exchange.spelling or syntax.write(exchange.id)
        error = no_answer.error(code, why, (data or {}).get("stderr", ()), asker.party.other)
        onward = render.failure(ident, error, wrong, 0, exchange.revision, data)
        findings = Findings(wrong, 0, onward)
        return verdict(asker.party.other, b"", "missing", None, exchange, exchange.revision, findings)

    def _batch(self, party: Party, frame: bytes, values: list[Any], facts: Facts) -> Verdict:
        """
        Return a verdict on the frame, which has a verdict on each entry.

        Entries are messages of their own: under enforcement the valid ones are forwarded, byte for byte, without the
        others.
        """
        allowed = features_of(self.revision).batches and self._profile.batches
        if not self._enforcing and not allowed and _answers(values):
            # A party that sent a batch may be answered with a batch.
            allowed = self._sides[party.other].irregular.answers_batch()
        if not allowed or not 0 < len(values) <= self.limits.batch_entries:
            return self._no_batch(party, frame, values, allowed, facts)
        # The frame is scanned once more for the text of each entry.
        self._budget.steps //= 2
        parts = tuple(
            self._message(party, spelt, value, facts, batched=True)
            for spelt, value in zip(render.entries(frame), values, strict=True)
        )
        return self._of_parts(party, frame, values, parts)

    def _of_parts(self, party: Party, frame: bytes, values: list[Any], parts: tuple[Verdict, ...]) -> Verdict:
        found = [each.under(f"/{index}") for index, part in enumerate(parts) for each in part.violations]
        listed, more = self._listed(found, sum(part.more for part in parts))
        untouched = all(part.onward is part.frame for part in parts)
        onward = frame if untouched else render.array([part.onward for part in parts])
        back = render.array([part.back for part in parts])
        aside = tuple(dict.fromkeys(each for part in parts for each in part.quarantined))
        repairs = tuple(each.under(f"/{index}") for index, part in enumerate(parts) for each in part.repairs)
        findings = Findings(listed, more, onward, back, parts, aside, repairs)
        return verdict(party, frame, "batch", values, None, self.revision, findings)


def _answered(heard: Verdict) -> Exchange | None:
    """Return the exchange that a forwarded answer closes; None for any other message."""
    return heard.exchange if heard.kind in {"result", "error"} and heard.onward is not None else None


def _answers(values: list[Any]) -> bool:
    """Return whether a batch consists of answers only."""
    return all(isinstance(each, dict) and "method" not in each for each in values)

"""
The judge: hears both parties of one conversation, frame by frame, and returns a verdict on each.

No I/O, no clock, no thread, and no side of its own: the client, the server, our own tools and a server behind the guard
are judged by the same code.
"""

import gc
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from assay.base import no_answer
from assay.base.collector import paused
from assay.base.limits import DEFAULT, Limits
from assay.base.meta import CAPABILITIES_KEY, LEVEL_KEY, REVISION_KEY, named_revision
from assay.base.verdict import Exchange, Findings, Kind, Party, Verdict, Violation, verdict
from assay.contracts.header_arguments import ParamHeaders
from assay.contracts.tool_contracts import Contract, Tools
from assay.core import list_filter, render, repair, state_rules
from assay.core.history import absent, irregular, reuse
from assay.core.history.asking_back import declared_in
from assay.core.history.log_levels import RANKS
from assay.core.judge_failure import Unjudged, loosely_read
from assay.core.party_state import Id, Side
from assay.core.policy import Policy
from assay.core.state import Memory
from assay.engine.budget import LARGE, Budget
from assay.ladder import contract, envelope, framing, serving, syntax
from assay.ladder.headers import Headers, check_headers, keeps_headers
from assay.ladder.protocol import Judge
from assay.spec.revisions import FEATURES, features_of

if TYPE_CHECKING:
    from assay.lock.inspection import Inspection

_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER
_read: Final = syntax.read


class Facts(NamedTuple):
    """What the transport knows of a frame beside its bytes."""

    transport: Literal["stdio", "http"] = "stdio"
    revision: str | None = None
    """The revision that a header names, over HTTP."""
    headers: Headers | None = None
    """The headers of a request of its own, by name in lower case, over HTTP."""
    served: bool = False
    """Whether the guard is itself the HTTP server of a revision without handshake: see `serving`."""
    spoken: Collection[str] | None = None
    """The revisions that the server behind it speaks, if that was heard."""


NO_FACTS = Facts()

Heard = Callable[[bytes, dict[str, Any]], Verdict]
"""Who judges a frame, and the message in it."""


class Conversation:
    """
    One conversation between a client and a server.

    *mode* says what becomes of a refused message. Under ``enforce`` it stops here: `Verdict.back` has the answer for
    whoever sent it, `Verdict.onward` what the other party gets in its place, if anything. Under ``audit`` everything
    travels on as it came, and only the violations tell.

    With *revision* the conversation counts as opened in it already: for stateless HTTP, where the handshake was
    elsewhere. There a client's requests may be conversations of their own, which share the *tools* they were told of,
    and the *lock* that the server is held to, if it was locked.

    *policy* says what is done about broken rules, where that is not what the table of rules says. With *lines* frames
    go on as lines of a stream, and must be one line to everybody.

    An unknown *mode*, *profile* or *revision* is a `ValueError`.
    """

    def __init__(
        self,
        *,
        mode: Literal["enforce", "audit"] = "enforce",
        revision: str | None = None,
        profile: Literal["mcp", "strict"] = "mcp",
        limits: Limits = DEFAULT,
        errata: bool = True,
        tools: Tools | None = None,
        lock: "Inspection | None" = None,
        policy: Policy | None = None,
        lines: bool = False,
    ) -> None:
        if mode not in {"enforce", "audit"}:
            raise ValueError(f"mode is enforce or audit, not {mode!r}")
        if profile not in {"mcp", "strict"}:
            raise ValueError(f"profile is mcp or strict, not {profile!r}")
        self.mode = mode
        self._lines = lines
        self.limits = limits
        self._enforcing = mode == "enforce"
        self._profile = envelope.PROFILES[profile]
        # The quick look knows the common profile only.
        self._memory = Memory(limits, revision, errata=errata, quick=profile == "mcp", tools=tools, policy=policy)
        self._policy = policy
        self._sides = self._memory.sides
        self._client, self._server = self._sides[_CLIENT], self._sides[_SERVER]
        self._tools = self._memory.tools
        self._contracts = self._tools.known
        self._lock = lock
        self._frame_bytes = limits.frame_bytes
        self._depth = limits.depth
        self._values = limits.values
        self._id_bytes = limits.id_bytes
        self._most_open = limits.open_requests
        self._budget = Budget(b"", limits.violations)
        """What may still be spent on the message that is being judged."""
        self._closing: Exchange | None = None
        """A request whose answer is being judged, and is not delivered yet."""

    @property
    def revision(self) -> str | None:
        """The negotiated revision; None before one is known."""
        return self._memory.lifecycle.revision

    @property
    def tools(self) -> Tools:
        """The server's tools, as far as it has listed them."""
        return self._tools

    def is_open(self, exchange: Exchange) -> bool:
        """Whether whoever asked still waits for the answer."""
        return self._sides[exchange.asker].open.get(exchange.id) is exchange

    def open_requests(self, party: Party) -> tuple[Exchange, ...]:
        """What *party* has asked and waits for, oldest first."""
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
            # What a large message may cost is looked at before it is judged.
            if len(frame) <= LARGE:
                if party is _CLIENT:
                    accepted = self._quick_call(frame, value)
                elif party is _SERVER:
                    accepted = self._quick_result(frame, value)
                else:
                    # "client" is equal to Party.CLIENT and not the same object; any other text raises ValueError.
                    return self.hear(Party(party), frame, facts)  # type: ignore[unreachable]  # for untyped callers
                if accepted is not None:
                    return accepted
        elif type(value) is Violation:
            if framing.is_blank(frame):
                return verdict(party, frame, "blank", None, None, self.revision, Findings(()))
            return self._garbled(party, frame, value)
        self._budget = Budget(frame, self.limits.violations)
        if type(value) is list:
            return self._batch(party, frame, value, facts)
        return self._message(party, frame, value, facts)

    def vouch(self, exchange: Exchange, frame: bytes) -> Verdict:
        """
        The server's answer to *exchange*, of which whoever speaks for the server knows already that it is right.

        For our own tools, which hold what they give to their contract before it is written: it is not read again. The
        value of the verdict is None.
        """
        self._client.close(exchange, "answered")
        made = Verdict()
        made.party = _SERVER
        made.frame = frame
        made.kind = "result"
        made.value = made.findings = None
        made.exchange = exchange
        made.revision = exchange.entry.revision
        return made

    def failure(self, why: str) -> Violation:
        """What stands against a message that we failed to judge, and what is done about it."""
        return self._decided([state_rules.failure(why, self.revision)])[0]

    def unjudged(self, party: Party, frame: bytes, why: str, heard: Verdict | None = None) -> Verdict:
        """
        The verdict on a frame that we failed to judge; *why*, in a word.

        Whoever waits for an answer gets one. Where such a frame passes, so does what answers it. *heard* is the verdict
        on the frame if it was judged and the failure came later, before anything was sent.
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

    def release(self) -> None:
        """Let go of the tools, because nothing more is said here: their contracts take most of what is kept."""
        self._tools = self._memory.tools = Tools(self.limits.tools, self.limits.contract_bytes)
        self._contracts = self._tools.known

    def forget_settled(self) -> None:
        """Forget the requests that are settled: the next ones are of another client, with ids of its own."""
        self._memory.forget_settled()

    def end(self, party: Party, why: str = "", data: Mapping[str, Any] | None = None) -> list[Verdict]:
        """
        *party* says no more: each request that it still owes an answer to fails, once.

        What it has asked itself is forgotten, because nobody is left to read the answers. *why*, and *data*, are told
        to whoever waits.
        """
        asker = self._sides[party.other]
        self._sides[party].open.clear()
        self._sides[party].tokens.clear()
        self._sides[party].irregular.clear()
        asker.irregular.clear()
        return [
            self._abandoned(asker, each, "answered", "UPSTREAM_FAILURE", why, data)
            for each in list(asker.open.values())
        ]

    def renew(self) -> None:
        """
        Another server takes the place of one that has come to its `end`.

        What was agreed stands. What the one before has asked is nobody's any more, and its tools are known until the
        new one lists its own.
        """
        self._memory.renew()

    def give_up(
        self, asker: Party, ident: Id, code: str = "TIMEOUT", why: str = "", data: Mapping[str, Any] | None = None
    ) -> Verdict | None:
        """
        The request of *asker* has waited too long, or gets no answer for what *why* says; None if it is not open.

        The edge keeps the time. An answer that still comes is one too many, and is not delivered. *data* is told too.
        """
        exchange = self._sides[asker].open.get(ident)
        state: Literal["answered", "timed-out"] = "timed-out" if code == "TIMEOUT" else "answered"
        return self._abandoned(self._sides[asker], exchange, state, code, why, data) if exchange else None

    # ── the quick look ───────────────────────────────────────────────────────────────────────────────────────────────
    #
    # Calls of tools and their results are most of all traffic, and most of them are good. These two say so in half
    # the time, or say nothing: then the thorough way decides. What they accept it accepts too; a test holds them
    # together.

    def _quick_call(self, frame: bytes, message: dict[str, Any]) -> Verdict | None:
        try:
            if message["method"] != "tools/call" or message["jsonrpc"] != "2.0" or len(message) != 4:
                return None
            ident = message["id"]
            params = message["params"]
            # A name that is known is a string, and that the arguments are an object is all else that any revision asks
            # of these two members; a test holds this against the schema.
            known = self._contracts[params["name"]]
            arguments = params["arguments"]
        except (KeyError, TypeError):
            return None
        if type(ident) is not int and (type(ident) is not str or len(ident) > self._id_bytes):
            return None
        if type(arguments) is not dict or not known.valid_input(arguments):
            return None
        names = known.names
        if names is not None:
            # A loop in place of a set operation: for a few keys it takes half of the time.
            for name in arguments:
                if name not in names:
                    if known.has_look_alikes(arguments):
                        return None
                    break
        side = self._client
        entry = side.call
        requests = side.open
        # 0 may have been written -0, which the thorough way keeps.
        if entry is None or not ident or ident in requests or len(requests) >= self._most_open:
            return None
        if ident in side.settled and not side.stateless:
            return None
        requests[ident] = exchange = Exchange()
        exchange.entry = entry
        exchange.id = ident
        exchange.contract = known
        if not _quick_meta(exchange, params) if side.stateless else len(params) != 2:
            del requests[ident]
            return None
        side.garbage = 0
        made = Verdict()
        made.party = _CLIENT
        made.frame = frame
        made.kind = "request"
        made.value = message
        made.exchange = exchange
        made.revision = entry.revision
        made.findings = None
        return made

    def _quick_result(self, frame: bytes, message: dict[str, Any]) -> Verdict | None:
        client = self._client
        try:
            exchange = client.open[message["id"]]
            result = message["result"]
            known = exchange.contract
            promised = known.output is not None
            if message["jsonrpc"] != "2.0" or len(message) != 3 or exchange.as_task or not known.ready:
                return None
        except (KeyError, TypeError, AttributeError):
            return None
        entry = exchange.entry
        # A request of an unknown revision, which passes under audit, has no shape for its result.
        if entry.result is None or type(message["id"]) is not type(exchange.id) or not entry.result.is_valid(result):
            return None
        if client.call is None or (entry.stateless and result["resultType"] != "complete"):
            return None
        if promised and not contract.keeps_output(known, result):
            return None
        keys = entry.result.keys
        for key in result:
            if key not in keys:
                if entry.result.look_alikes(result, "", entry.revision, 1):
                    return None
                break
        client.close(exchange, "answered")
        self._server.garbage = 0
        made = Verdict()
        made.party = _SERVER
        made.frame = frame
        made.kind = "result"
        made.value = message
        made.exchange = exchange
        made.revision = entry.revision
        made.findings = None
        return made

    def _keeps_headers(self, message: dict[str, Any], headers: Headers) -> bool:
        known = self._called(message)
        if known is not None and not known.ready:
            return False
        return keeps_headers(message, headers, self._memory.lifecycle.judge.revision, _repeated(known))

    def _called(self, message: dict[str, Any]) -> Contract | None:
        """The contract of the tool that is called, if it is known."""
        params = message.get("params")
        name = params.get("name") if type(params) is dict else None
        return self._contracts.get(name) if type(name) is str else None

    # ── one message ──────────────────────────────────────────────────────────────────────────────────────────────────

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
        """What the quick look did not settle: errors, ids such as 1.0, and everything that is wrong."""
        revision = self.revision
        error_id = revision is not None and not FEATURES[revision].optional_error_id
        kind, faults = envelope.read(value, self._profile, id_limit=self.limits.id_bytes, error_id=error_id)
        if (revision is None or error_id) and kind == "error" and value.get("id", "") is None:
            # JSON-RPC answers unreadable input with a null id. Before a revision is agreed nothing else is in force,
            # and up to 2025-06-18 there is no other way to say it: `_unread` reports it then.
            faults = tuple(each for each in faults if each.rule != "envelope/id")
        ident = value.get("id") if isinstance(value, dict) else None
        if not faults and isinstance(ident, float):
            # 1.0 is 1; a number that only rounds to an integer is no id.
            ident = render.exact_id(frame)
            faults = () if ident is not None else (state_rules.no_whole_number(self._profile, revision),)
        if faults and not self._enforcing and kind in {"result", "error"}:
            ident, faults = self._excused(party, frame, value, ident, faults)
        if faults:
            return self._malformed(party, frame, kind, value, faults, facts)
        if kind == "request":
            return self._request(party, frame, value, facts, batched, cast("Id", ident))
        if kind == "notification":
            return self._notification(party, frame, value, facts)
        heard = self._answer(party, frame, value, kind, ident)
        irregular.spell(heard)
        return heard

    def _request(
        self,
        party: Party,
        frame: bytes,
        message: dict[str, Any],
        facts: Facts,
        batched: bool,
        ident: Id,
        *,
        mending: bool = True,
    ) -> Verdict:
        self._memory.catch_up()
        side = self._sides[party]
        method = message["method"]
        judge, early = self._memory.lifecycle.place_request(party, message, facts.revision)
        found = list(early)
        entry = judge.calls[party, "request"].get(method)
        if entry is None:
            found.append(self._no_such_method(judge, party, "request", message))
            entry = judge.stranger(party, method)
        if facts.headers is not None:
            # Before all else: a body that names another revision than its header is refused for that.
            known = self._called(message) if method == "tools/call" else None
            unusable = contract.check_usable(known, judge.revision, over_http=True) if known is not None else []
            wrong = list(check_headers(message, facts.headers, judge.revision, _repeated(known)))
            found = wrong + [each for each in found if each not in wrong] + unusable
        faults, more = judge.check_params(entry, message, self._budget)
        found += faults
        if ident in side.open or len(side.open) >= self._most_open:
            found.append(state_rules.no_room(side, ident, self.limits, judge.revision))
        elif ident in side.settled:
            found += reuse.check_id(side, ident, method, judge.revision)
        if judge is side.judge and method in side.undeclared:
            found.append(state_rules.undeclared(self._sides, side.party, method, judge.revision))
        if batched and method == "initialize":
            found.append(state_rules.batched_initialize(judge.revision))
        exchange = Exchange.of(entry, ident)
        exchange.alone = facts.transport == "http" and entry.stateless
        exchange.over_http = facts.transport == "http"
        if type(ident) is int and (ident is not message["id"] or ident == 0):
            exchange.spelling = render.id_token(frame, message["id"])
        called = _tool_named(message)
        found = self._decided(found, called)
        if facts.served:
            found += serving.check_alone(message, found, judge.revision)
        if "params" in message and not _refused(found):
            more += self._memory.take_params(side, exchange, message["params"], found, self._budget)
            if facts.transport == "stdio":
                more += self._memory.check_retry(exchange, message["params"], found, self._budget)
            found = self._decided(found, called)
        elif not self._enforcing and _refused(found):
            irregular.take_request(self._memory, side, exchange, message, found)
        useless = self._called(message) if any(each.action == "quarantine" for each in found) else None
        if useless is not None and self._enforcing:
            # The tool's schemas were compiled for this call only, and cannot be judged by.
            self._tools.set_aside(useless.name)
            found.append(state_rules.set_aside(useless.name, judge.revision))
        if useless is not None:
            found = list_filter.about(useless.name, found)
        side.garbage = 0
        # Under audit nothing is mended: the call goes on as it came, and its progress is still to be known.
        if mending and self._enforcing and self._policy is not None and method == "tools/call" and _refused(found):
            side.forget_token(exchange)

            def again(spelt: bytes, value: dict[str, Any]) -> Verdict:
                return self._request(party, spelt, value, facts, batched, ident, mending=False)

            mended = self._mended(frame, message, found, again)
            if mended is not None:
                return mended
        return self._heard_request(side, frame, message, exchange, found, more, facts)

    def _mended(self, frame: bytes, message: dict[str, Any], found: list[Violation], judge: Heard) -> Verdict | None:
        """The verdict on a call whose slips are all mended; None if they are not to be, or nothing good comes of it."""
        rules = self._policy.repairs if self._policy is not None and self._enforcing else ()
        if not rules:
            return None
        known = self._called(message)
        schema = known.input.schema if known is not None and known.input is not None else None
        wanted = repair.WantedType(rules, schema, self._depth, self.limits.violations)
        mended = repair.repaired(frame, message, found, wanted, judge)
        if mended is None:
            return None
        again = mended.verdict
        told, more = self._listed([*mended.done, *again.violations], again.more)
        findings = Findings(told, more, again.frame)
        return verdict(again.party, frame, "request", message, again.exchange, again.revision, findings)

    def _heard_request(
        self,
        side: Side,
        frame: bytes,
        message: dict[str, Any],
        exchange: Exchange,
        found: list[Violation],
        more: int,
        facts: Facts,
    ) -> Verdict:
        """A request goes on unless it is refused and refusals are enforced."""
        found = self._memory.lifecycle.once(found) if found else found
        goes_on = not self._stops(message, found, facts)
        listed, more = self._listed(found, more)
        back = None
        if goes_on:
            # Where nothing is enforced an id may be in use already, or there are more requests than we remember.
            if len(side.open) < self._most_open and side.open.setdefault(exchange.id, exchange) is exchange:
                self._memory.asked(exchange, message)
            else:
                side.irregular.add(exchange)
        else:
            side.forget_token(exchange)
            ident = exchange.spelling or render.id_token(frame, message["id"])
            requested = named_revision(message) or facts.revision
            back = render.refusal(ident, listed, more, exchange.revision, requested=requested)
        aside = list_filter.quarantined(found) if found else ()
        findings = Findings(listed, more, frame if goes_on else None, back, (), aside) if found else None
        return verdict(side.party, frame, "request", message, exchange, exchange.revision, findings)

    def _notification(self, party: Party, frame: bytes, message: dict[str, Any], facts: Facts) -> Verdict:
        self._memory.catch_up()
        side = self._sides[party]
        method = message["method"]
        judge, early = self._memory.lifecycle.place_notification(party, method)
        found = list(early)
        if facts.headers is not None:
            found += check_headers(message, facts.headers, judge.revision)
        more = 0
        entry = judge.calls[party, "notification"].get(method)
        if entry is None:
            found.append(self._no_such_method(judge, party, "notification", message))
        else:
            faults, more = judge.check_params(entry, message, self._budget)
            found += faults
        if judge is side.judge and method in side.undeclared:
            found.append(state_rules.undeclared(self._sides, side.party, method, judge.revision))
        found = self._decided(found)
        if early:
            found = self._memory.lifecycle.once(found)
        if facts.served:
            found += serving.check_alone(message, found, judge.revision)
        if not self._enforcing or not _refused(found):
            found += self._decided(self._memory.check_note(side, method, message.get("params", {}), judge))
        side.garbage = 0
        goes_on = not self._stops(message, found, facts)
        exchange = self._memory.noted(side, method, message.get("params", {}), judge) if goes_on else None
        listed, more = self._listed(found, more)
        findings = Findings(listed, more, frame if goes_on else None) if found else None
        return verdict(party, frame, "notification", message, exchange, judge.revision, findings)

    def _answer(self, party: Party, frame: bytes, message: dict[str, Any], kind: Kind, ident: Id | None) -> Verdict:
        self._sides[party].garbage = 0
        if ident is None:
            return self._unread(party, frame, message)
        asker = self._sides[party.other]
        if ident in asker.irregular.requests:
            budget = Budget(frame, 1)
            irregular.promote(self._memory, asker, ident, lambda each: self._fits(each, message, kind, budget))
        exchange = asker.open.get(ident) or asker.settled.get(ident)
        if exchange is None or exchange.state not in {"open", "cancelled"}:
            return self._unsolicited(party, frame, message, kind, exchange)
        found: list[Violation] = []
        more = self._memory.check_answer(exchange, message, kind, found, self._budget)
        found = self._decided_answer(exchange, message, found)
        if found and kind == "result" and exchange.method in list_filter.LISTS:
            read = absent.filled(exchange, exchange.entry.result, message["result"])
            found = list_filter.set_aside(exchange, read, found)
        if self._lock is not None and kind == "result":
            found += self._decided_answer(exchange, message, self._lock.check(exchange, message["result"]))
        self._closing = exchange
        asker.close(exchange, "answered")
        onward: bytes | None = frame
        if not self._enforcing or not _refused(found):
            # What a list teaches may be wrong in turn.
            learned: list[Violation] = []
            self._memory.answered(exchange, message, learned)
            found += self._decided_answer(exchange, message, learned)
        if found:
            found = list_filter.named(exchange, message, found)
        if self._enforcing and found and kind == "result":
            onward = self._mended_answer(frame, message, exchange, found, more)
        elif self._enforcing and _refused(found):
            onward = self._failed(frame, message, exchange, found, more)
        listed, more = self._listed(found, more)
        aside = () if _refused(found) else list_filter.quarantined(found)
        findings = Findings(listed, more, onward, quarantined=aside) if found else None
        self._closing = None
        return verdict(party, frame, kind, message, exchange, exchange.revision, findings)

    def _fits(self, exchange: Exchange, message: dict[str, Any], kind: Kind, budget: Budget) -> bool:
        """Whether nothing is wrong with *message* as the answer to *exchange*."""
        found: list[Violation] = []
        return not self._memory.check_answer(exchange, message, kind, found, budget) and not found

    def _excused(
        self, party: Party, frame: bytes, value: dict[str, Any], ident: Any, faults: tuple[Violation, ...]
    ) -> tuple[Any, tuple[Violation, ...]]:
        """The id and the faults of an answer, where its id is wrong only because that of the request was."""
        forwarded = self._sides[party.other].irregular
        known = irregular.key(frame, value, self._id_bytes)
        waiting = len(forwarded.requests.get(known, ())) if "id" in value else 0
        blank = "error" in value and value.get("id") is None
        if waiting and not (blank and forwarded.unreadable > waiting):
            ident = known
        elif not blank or not forwarded.answers_unreadable():
            return ident, faults
        return ident, tuple(each for each in faults if each.rule != "envelope/id")

    def _unread(self, party: Party, frame: bytes, message: dict[str, Any]) -> Verdict:
        """An error without an id: something could not be read. It goes on, although no request is known for it."""
        revision = self.revision
        # From 2025-11-25 on a null id is a fault of the envelope, and only gets here where it is excused.
        odd = "id" in message and revision is not None and not FEATURES[revision].optional_error_id
        if odd and not self._enforcing:
            odd = not self._sides[party.other].irregular.answers_unreadable()
        found = self._decided([state_rules.null_id(str(revision))]) if odd else []
        if found:
            found = state_rules.answers_nothing(found, message, self._sides[party.other])
        goes_on = not self._enforcing or not _refused(found)
        findings = Findings(tuple(found), 0, frame if goes_on else None) if found else None
        return verdict(party, frame, "error", message, None, revision, findings)

    def _decided_answer(self, exchange: Exchange, message: dict[str, Any], found: list[Violation]) -> list[Violation]:
        if self._policy is None or exchange.method != "tools/list":
            return self._decided(found, exchange.tool)
        return [self._policy.decide(each, list_filter.tool_at(each, message.get("result"))) for each in found]

    def _mended_answer(
        self, frame: bytes, message: dict[str, Any], exchange: Exchange, found: Sequence[Violation], more: int
    ) -> bytes:
        """What whoever asked gets for a result: the very frame, a list without what nobody could use, or why not."""
        numbers = list_filter.entries(exchange, found)
        if numbers and exchange.method == "tools/list":
            self._tools.forget(message["result"]["tools"], numbers)
        if _refused(found):
            return self._failed(frame, message, exchange, found, more, result=True)
        return list_filter.without(frame, message, exchange.method, numbers) if numbers else frame

    def _failed(
        self,
        frame: bytes,
        message: dict[str, Any],
        exchange: Exchange,
        found: Sequence[Violation],
        more: int,
        *,
        result: bool = False,
    ) -> bytes:
        """What whoever asked gets in place of a broken answer; *result* says that it is a result, however wrong."""
        if exchange.method == "initialize":
            self._memory.refused()
        listed, more = self._listed(found, more)
        ident = render.id_token(frame, message["id"])
        if result and exchange.tool is not None and not exchange.as_task:
            return render.withheld(ident, exchange.tool, listed, more, exchange.revision)
        return render.failure(ident, "UPSTREAM_INVALID", listed, more, exchange.revision)

    # ── what is no message, or comes at the wrong time ───────────────────────────────────────────────────────────────

    def _garbled(self, party: Party, frame: bytes, why: Violation | None) -> Verdict:
        """A frame that is too long, or no JSON."""
        if not self._enforcing and why is not None:
            irregular.take_unreadable(self._memory, party, frame, why.rule)
        return self._unreadable(party, frame, why)

    def _unreadable(self, party: Party, frame: bytes, why: Violation | None, *, stops: bool | None = None) -> Verdict:
        """
        A frame that cannot be read. A client is told, within bounds; a server is not: what it prints by mistake is no
        question, and an answer would only confuse it further.
        """
        side = self._sides[party]
        side.garbage += 1
        violations = tuple(self._decided([why] if why is not None else []))
        back = None
        told = party is _CLIENT and not any(each.action == "drop" for each in violations)
        stops = self._enforcing if stops is None else stops
        if stops and told and side.garbage <= self.limits.garbage_answers:
            back = render.refusal(None, violations, 0, self.revision)
        findings = Findings(violations, 0, None if stops else frame, back)
        return verdict(party, frame, "unreadable", None, None, self.revision, findings)

    def _malformed(
        self, party: Party, frame: bytes, kind: Kind, value: Any, faults: Sequence[Violation], facts: Facts
    ) -> Verdict:
        """A JSON value that is no message: a request is answered, a broken answer fails what it seems to answer."""
        asker = self._sides[party.other]
        faults = self._decided(list(faults))
        if kind in {"result", "error"}:
            faults = state_rules.answers_nothing(faults, value, asker)
        listed, more = self._listed(faults, 0)
        ident = render.usable_id(frame, value)
        exchange, onward, back = None, None, None
        stops = self._enforcing or self._stops(value, faults, facts)
        if kind in {"result", "error"} or (party is _SERVER and not _asks(value)):
            exchange = asker.open.get(ident) if ident is not None else None
            if exchange is not None:
                asker.close(exchange, "answered")
                if self._enforcing:
                    onward = self._failed(frame, value, exchange, faults, 0)
                else:
                    irregular.take_answer(self._memory, exchange, value)
        elif not stops:
            irregular.take_malformed(self._memory, party, frame, value, faults)
        elif ident is not None:
            back = render.refusal(render.id_token(frame, value["id"]), listed, more, self.revision)
        elif kind != "notification":
            back = self._unreadable(party, frame, listed[0], stops=True).back
        findings = Findings(listed, more, onward, back) if stops else Findings(listed, more, frame)
        return verdict(party, frame, kind, value, exchange, self.revision, findings)

    def _unsolicited(
        self, party: Party, frame: bytes, message: dict[str, Any], kind: Kind, exchange: Exchange | None
    ) -> Verdict:
        """An answer that nobody waits for: never delivered, unless it may answer a request that we could not read."""
        asker = self._sides[party.other]
        if not self._enforcing and asker.irregular.answers_unknown():
            return verdict(party, frame, kind, message, None, self.revision)
        wrong = self._decided([state_rules.unsolicited(message["id"], exchange, asker, self.revision)])
        findings = Findings(tuple(wrong), 0, None if self._enforcing else frame)
        return verdict(party, frame, kind, message, exchange, self.revision, findings)

    def _abandoned(
        self,
        asker: Side,
        exchange: Exchange,
        state: Literal["answered", "timed-out"],
        code: str,
        why: str = "",
        data: Mapping[str, Any] | None = None,
    ) -> Verdict:
        """The verdict on an answer that does not come."""
        asker.close(exchange, state)
        # After a time-out the server has it; in the other cases clients send the same request again, as after a 401.
        exchange.reusable = state == "answered"
        if exchange.method == "initialize":
            self._memory.refused()
        wrong = state_rules.unanswered(exchange, why)
        if why.startswith(state_rules.UNSTARTED):
            told = why.removeprefix(state_rules.UNSTARTED)
            data = {"detail": f"the server could not be started: {told}", **(data or {})}
        ident = exchange.spelling or syntax.write(exchange.id)
        error = no_answer.error(code, why, (data or {}).get("stderr", ()), asker.party.other)
        onward = render.failure(ident, error, (wrong,), 0, exchange.revision, data)
        findings = Findings((wrong,), 0, onward)
        return verdict(asker.party.other, b"", "missing", None, exchange, exchange.revision, findings)

    # ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _batch(self, party: Party, frame: bytes, values: list[Any], facts: Facts) -> Verdict:
        """
        A verdict on each entry, and one on the frame.

        Entries are messages of their own: under enforcement the good ones go on, as they were spelt, without the
        others.
        """
        allowed = features_of(self.revision).batches and self._profile.batches
        if not self._enforcing and not allowed and _answers(values):
            # A party that sent a batch may be answered with a batch.
            allowed = self._sides[party.other].irregular.answers_batch()
        if not allowed or not 0 < len(values) <= self.limits.batch_entries:
            return self._no_batch(party, frame, values, allowed, facts)
        # The frame is gone through once more, to find how each entry is spelt.
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
        findings = Findings(listed, more, onward, back, parts, aside)
        return verdict(party, frame, "batch", values, None, self.revision, findings)

    def _no_batch(self, party: Party, frame: bytes, values: list[Any], allowed: bool, facts: Facts) -> Verdict:
        wrong = state_rules.no_batch(len(values), self.limits, self.revision, allowed=allowed)
        stops = self._enforcing or facts.served
        if not stops:
            irregular.take_batch(self._memory, party, render.entries(frame), values, self.limits.batch_entries)
        refused = self._unreadable(party, frame, wrong, stops=stops)
        return verdict(party, frame, "batch", values, None, self.revision, refused.findings)

    def _stops(self, message: Any, found: Sequence[Violation], facts: Facts) -> bool:
        """Whether a message of a client or server goes no further, by the mode or by what served it."""
        enforced = self._enforcing and _refused(found)
        return enforced or (facts.served and serving.must_stop(message, found, facts.spoken))

    def _no_such_method(self, judge: Judge, party: Party, kind: Kind, message: dict[str, Any]) -> Violation:
        return state_rules.no_such_method(judge, party, kind, message, self._memory.rule_beyond(judge, party, message))

    def _decided(self, found: list[Violation], tool: str | None = None) -> list[Violation]:
        """*found*, each with what the policy says of it."""
        return found if self._policy is None or not found else self._policy.decided(found, tool)

    def _listed(self, found: Sequence[Violation], more: int) -> tuple[tuple[Violation, ...], int]:
        """Return the violations to list, the first that stops the message before all, and how many more there are."""
        most = self.limits.violations
        return tuple(_reason_first(found)[:most]), more + max(0, len(found) - most)


def _repeated(known: Contract | None) -> ParamHeaders:
    """The headers that repeat arguments of a tool."""
    return () if known is None else known.headers


def _quick_meta(exchange: Exchange, params: dict[str, Any]) -> bool:
    """Whether params have, beside a name and arguments, just what a revision without handshake wants in `_meta`."""
    meta = params.get("_meta")
    if type(meta) is not dict or len(params) != 3 or "progressToken" in meta:
        return False
    known = exchange.entry.params
    if (
        meta.get(REVISION_KEY) != exchange.entry.revision
        or not known.is_valid(params)
        or not known.has_plain_meta(meta)
    ):
        return False
    exchange.declared = declared_in(meta[CAPABILITIES_KEY])
    if LEVEL_KEY in meta:
        exchange.level = RANKS[meta[LEVEL_KEY]]
    return True


def _answered(heard: Verdict) -> Exchange | None:
    """The exchange that an answer was about to close for whoever asked; None for any other message."""
    return heard.exchange if heard.kind in {"result", "error"} and heard.onward is not None else None


def _asks(value: Any) -> bool:
    """Whether a broken message of a server is still meant as a request: else nobody there waits for an answer."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("method"), str)
        and "result" not in value
        and "error" not in value
    )


def _answers(values: list[Any]) -> bool:
    """Whether a batch holds nothing but answers."""
    return all(isinstance(each, dict) and "method" not in each for each in values)


def _tool_named(message: dict[str, Any]) -> str | None:
    """The tool that a request calls."""
    params = message.get("params")
    name = params.get("name") if type(params) is dict and message["method"] == "tools/call" else None
    return name if type(name) is str else None


def _refused(found: Sequence[Violation]) -> bool:
    return any(each.stops for each in found)


def _reason_first(found: Sequence[Violation]) -> Sequence[Violation]:
    """
    Return *found* with the first violation that stops the message before all others, which keep their order.

    Only that one: it is what people see as the reason. If all that stop came first, they could push out every report.
    """
    reason = next((number for number, each in enumerate(found) if each.stops), 0)
    return [found[reason], *found[:reason], *found[reason + 1 :]] if reason else found

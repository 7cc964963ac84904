"""
The judge: takes the frames of both parties of one conversation, and returns a verdict on each.

No I/O, no clock, no thread. The client, the server, our own tools and a server behind the guard are judged by the same
code. Read from top to bottom: a frame becomes a message; a request, a notification or an answer is judged by its
schema, by the headers, and by the topics, which know the earlier messages; the policy decides what is forwarded.
"""

import gc
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from assay.judge import (
    contract,
    envelope,
    exchange_rules,
    excused,
    framing,
    judge_failure,
    list_filter,
    render,
    repair,
    result_repair,
    syntax,
)
from assay.judge.answers import check_answer, filled
from assay.judge.headers import Headers, check_headers
from assay.judge.party_state import PartyState
from assay.judge.quick_look import QuickLook
from assay.judge.revision_rules import Entry, RevisionRules
from assay.judge.state import State
from assay.judge.topics import capabilities, extensions, rounds
from assay.judge.topics import tools as tools_topic
from assay.judge.topics.table import Note
from assay.model.errors import no_answer
from assay.model.json_values import Id, named_revision
from assay.model.large_frames import paused
from assay.model.limits import DEFAULT, Limits
from assay.model.verdict import Exchange, Findings, Kind, Party, Repair, Verdict, Violation, verdict
from assay.rules.policy import REPAIRED_RESULTS, Policy
from assay.rules.report import Report
from assay.schema.budget import LARGE, Budget
from assay.schema.tool_contracts import Tools
from assay.spec.extensions import extended_methods
from assay.spec.revisions import FEATURES, features_of

if TYPE_CHECKING:
    from assay.lock.inspection import Inspection

_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER

_read: Final = syntax.read

_LEGIBLE: Final = frozenset({"envelope/jsonrpc", "envelope/id", "envelope/members"})
"""Rules that a message may break and still show what it is."""

_OUTCOMES: Final = ("result", "error")


class Facts(NamedTuple):
    """What the transport knows of a frame beside its bytes."""

    transport: Literal["stdio", "http"] = "stdio"
    revision: str | None = None
    """The revision that a header names, over HTTP."""
    headers: Headers | None = None
    """The headers of an HTTP request, by name in lower case."""
    served: bool = False
    """Whether the guard itself is the HTTP server of a revision without a handshake: see `serving`."""
    spoken: Collection[str] | None = None
    """The revisions that the server behind the guard supports, if it has listed them."""


NO_FACTS: Final = Facts()


class HeardAnswer(NamedTuple):
    """An answer as it came, or repaired, and what was found in it."""

    frame: bytes
    message: dict[str, Any]
    report: Report
    """What is wrong; first what was repaired."""
    repairs: tuple[Repair, ...] = ()


class Conversation:
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
        self.limits = limits
        self._terms: dict[str, Any] = {
            "mode": mode, "profile": profile, "limits": limits, "errata": errata, "lock": lock, "policy": policy,
            "lines": lines,
        }  # fmt: skip
        self._lines = lines
        self._enforcing = mode == "enforce"
        self._profile = envelope.PROFILES[profile]
        self._policy = policy
        self._lock = lock
        # The quick look supports the common profile only.
        self._state = State(limits, revision, errata=errata, quick=profile == "mcp", tools=tools)
        self._parties = self._state.parties
        self._quick = QuickLook(self._state)
        self._frame_bytes, self._depth, self._values = limits.frame_bytes, limits.depth, limits.values
        self._small = min(LARGE, limits.frame_bytes)
        self._budget = Budget(b"", limits.violations)
        """The work that the current message may still cost."""
        self._closing: Exchange | None = None
        """The request whose answer is being judged and is not delivered yet."""

    @property
    def revision(self) -> str | None:
        """The negotiated revision; None before one is known."""
        return self._state.lifecycle.revision

    @property
    def tools(self) -> Tools:
        """The tools that the server has listed."""
        return self._state.tools

    def is_open(self, exchange: Exchange) -> bool:
        """Return whether the sender of a request still waits for the answer."""
        return self._parties[exchange.asker].open.get(exchange.id) is exchange

    def open_requests(self, party: Party) -> tuple[Exchange, ...]:
        """Return the requests of *party* that are not answered, oldest first."""
        return tuple(self._parties[party].open.values())

    def __repr__(self) -> str:
        waiting = sum(len(sender.open) for sender in self._parties.values())
        asked = f"{waiting} open request{'' if waiting == 1 else 's'}"
        return f"<Conversation: {self.mode}, {self.revision or 'no revision yet'}, {asked}>"

    # ── a frame ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def hear(self, party: Party, frame: framing.Text, facts: Facts = NO_FACTS) -> Verdict:
        """
        Return the verdict on a frame that *party* sent.

        *frame* is text or bytes; anything else is a `TypeError`. No frame raises, whatever it contains.
        """
        if type(frame) is not bytes:
            frame = framing.as_frame(frame)
        is_large = len(frame) > self._small
        if is_large:
            if len(frame) > self._frame_bytes:
                return self._garbled(party, frame, framing.check(frame, self._frame_bytes))
            if gc.isenabled():
                with paused():
                    return self.hear(party, frame, facts)
        if self._lines and b"\r" in frame:
            broken = framing.check_returns(frame)
            if broken is not None:
                return self._garbled(party, frame, broken)
        value = _read(frame, self._depth, self._values)
        headers = None if facts is NO_FACTS else facts.headers
        if type(value) is dict and (headers is None or self._quick.keeps_headers(value, headers)):
            # The cost of a large message is bounded before it is judged.
            if not is_large:
                if party is _CLIENT:
                    exchange = self._quick.call(value)
                    if exchange is not None:
                        return verdict(_CLIENT, frame, "request", value, exchange, exchange.entry.revision)
                elif party is _SERVER:
                    exchange = self._quick.result(value)
                    if exchange is not None:
                        return verdict(_SERVER, frame, "result", value, exchange, exchange.entry.revision)
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

    def vouch(self, exchange: Exchange, frame: bytes) -> Verdict:
        """
        Return the verdict on the server's answer to *exchange*, which is known to be valid.

        For our own tools, whose results are checked against their contract before they are written: the frame is not
        parsed again, and the value of the verdict is None.
        """
        self._parties[_CLIENT].close(exchange, "answered")
        return verdict(_SERVER, frame, "result", None, exchange, exchange.entry.revision)

    def _garbled(self, party: Party, frame: bytes, why: Violation | None) -> Verdict:
        """Return the verdict on a frame that is too long, or is not JSON."""
        if not self._enforcing and why is not None:
            excused.take_unreadable(self._state, party, frame, why)
        return self._unreadable(party, frame, why)

    def _unreadable(self, party: Party, frame: bytes, why: Violation | None, *, stops: bool | None = None) -> Verdict:
        """
        Return the verdict on a frame that cannot be read.

        A client gets an error, up to a limit. A server gets none: a line that it prints by mistake is not a request.
        """
        sender = self._parties[party]
        sender.garbage += 1
        report = self._report(self.revision)
        report.take([why] if why is not None else [])
        back = None
        answered = party is _CLIENT and not any(each.action == "drop" for each in report.found)
        stops = self._enforcing if stops is None else stops
        if stops and answered and sender.garbage <= self.limits.garbage_answers:
            back = render.refusal(None, report.found, 0, self.revision)
        findings = Findings(tuple(report.found), 0, None if stops else frame, back)
        return verdict(party, frame, "unreadable", None, None, self.revision, findings)

    # ── a batch ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _batch(self, party: Party, frame: bytes, values: list[Any], facts: Facts) -> Verdict:
        """
        Return a verdict on the frame, which has a verdict on each entry.

        Entries are messages of their own: under enforcement the valid ones are forwarded, byte for byte, without the
        others.
        """
        allowed = features_of(self.revision).batches and self._profile.batches
        if not allowed and all(isinstance(each, dict) and "method" not in each for each in values):
            # A party that sent a batch, which audit forwarded, may be answered with a batch.
            allowed = self._parties[party.other].answers_unreadable()
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
        report = self._report(self.revision)
        report.found = [each.under(f"/{index}") for index, part in enumerate(parts) for each in part.violations]
        report.more = sum(part.more for part in parts)
        untouched = all(part.onward is part.frame for part in parts)
        onward = frame if untouched else render.array([part.onward for part in parts])
        back = render.array([part.back for part in parts])
        aside = tuple(dict.fromkeys(each for part in parts for each in part.quarantined))
        repairs = tuple(each.under(f"/{index}") for index, part in enumerate(parts) for each in part.repairs)
        findings = Findings(*report.listed, onward, back, parts, aside, repairs)
        return verdict(party, frame, "batch", values, None, self.revision, findings)

    def _no_batch(self, party: Party, frame: bytes, values: list[Any], allowed: bool, facts: Facts) -> Verdict:
        wrong = exchange_rules.no_batch(len(values), self.limits, self.revision, allowed=allowed)
        stops = self._enforcing or facts.served
        if not stops:
            excused.take_batch(self._state, party, render.entries(frame), values)
        refused = self._unreadable(party, frame, wrong, stops=stops)
        return verdict(party, frame, "batch", values, None, self.revision, refused.findings)

    # ── a message ────────────────────────────────────────────────────────────────────────────────────────────────────

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
        kind, most = envelope.kind_of(value), self.limits.id_bytes
        faults = tuple(envelope.check(value, self._profile, id_limit=most, error_id=error_id))
        ident = value.get("id") if isinstance(value, dict) else None
        if not faults and isinstance(ident, float):
            # 1.0 is 1; a number that only rounds to an integer is not an id.
            ident = render.exact_id(frame)
            faults = () if ident is not None else (exchange_rules.no_whole_number(self._profile, revision),)
        if kind in _OUTCOMES and faults and all(each.rule == "envelope/id" for each in faults):
            # It may repeat the wrong id of its request.
            blank = kind == "error" and value.get("id") is None
            if not blank and self._parties[party.other].answers_unknown():
                return verdict(party, frame, kind, value, None, revision)
        if faults and kind == "error" and value.get("id", "") is None:
            # JSON-RPC 2.0, 5, requires null where the id of the request is unknown: `_unread` reports it.
            faults = tuple(each for each in faults if each.rule != "envelope/id")
        if faults:
            return self._malformed(party, frame, kind, value, faults, facts)
        if kind == "request":
            return self._request(party, frame, value, facts, batched, cast("Id", ident))
        if kind == "notification":
            return self._notification(party, frame, value, facts)
        return self._answer(party, frame, value, kind, ident)

    def _malformed(
        self, party: Party, frame: bytes, kind: Kind, value: Any, faults: Sequence[Violation], facts: Facts
    ) -> Verdict:
        """Return the verdict on a malformed message: a request is answered, an answer fails the request of its id."""
        asker = self._parties[party.other]
        report = self._report(self.revision)
        report.take(faults)
        if kind in _OUTCOMES:
            report.found = exchange_rules.answers_nothing(report.found, value, asker)
        ident = render.usable_id(frame, value)
        onward, back = None, None
        stops = self._enforcing or self._stops(value, report, facts)
        answers = kind in _OUTCOMES or (party is _SERVER and not _asks(value))
        exchange = asker.awaited(ident, kind) if answers and ident is not None else None
        own_faults = list(report.found)
        self._judge_within(party, value, exchange, facts, report)
        listed, more = report.listed
        if answers:
            if exchange is not None and exchange.excused:
                asker.close_excused(exchange)
            elif exchange is not None:
                # If the guard fails until the verdict is made, this request is still answered.
                self._closing = exchange
                asker.close(exchange, "answered")
                if self._enforcing:
                    onward = self._failed(frame, value, exchange, report)
            if exchange is not None and not self._enforcing:
                excused.take_malformed_answer(self._state, exchange, value)
        elif not stops:
            excused.take_malformed(self._state, party, frame, value, own_faults)
        elif ident is not None:
            back = render.refusal(render.id_token(frame, value["id"]), listed, more, self.revision)
        elif kind != "notification":
            back = self._unreadable(party, frame, listed[0], stops=True).back
        findings = Findings(listed, more, onward, back) if stops else Findings(listed, more, frame)
        self._closing = None
        return verdict(party, frame, kind, value, exchange, self.revision, findings)

    def _judge_within(self, party: Party, value: Any, exchange: Exchange | None, facts: Facts, report: Report) -> None:
        """
        Report the violations inside a malformed message, whose own faults *report* has. It changes no state.

        Its author then learns of all mistakes at once. What it is must be clear: only one of method, result and error
        may have a value.
        """
        if not all(each.rule in _LEGIBLE or _is_null_error(each, value) for each in report.found):
            return
        read = {name: each for name, each in value.items() if name not in _OUTCOMES or each is not None}
        read["jsonrpc"] = "2.0"
        if len(read.keys() & {"method", *_OUTCOMES}) != 1:
            return
        if "method" in read:
            self._judge_call_within(party, read, facts, report)
        elif exchange is not None and isinstance(read.get("result", {}), dict):
            inside = self._answer_report(exchange, read)
            as_task = exchange.as_task
            check_answer(self._state, exchange, {**read, "id": exchange.id}, envelope.kind_of(read), inside)
            exchange.as_task = as_task
            report.join(inside)

    def _judge_call_within(self, party: Party, message: dict[str, Any], facts: Facts, report: Report) -> None:
        """Report the same for a request or a notification, by its definition and by the contract of its tool."""
        method, lifecycle = message["method"], self._state.lifecycle
        if "id" in message:
            rules, early = lifecycle.place_request(party, message, facts.revision)
        else:
            rules, early = lifecycle.place_notification(party, method)
        entry = exchange_rules.entry(self._state, rules, party, envelope.kind_of(message), message)
        if entry is None or any(each.rule == "protocol/unsupported-revision" for each in early):
            return
        known = self._state.called(message) if method == "tools/call" else None
        inside = self._report(rules.revision, None if known is None else known.name)
        rules.check_params(entry, message, inside)
        if known is not None and not inside.stops:
            contract.check_input(known, message["params"], inside)
        report.join(inside)

    # ── a request ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _request(
        self,
        party: Party,
        frame: bytes,
        message: dict[str, Any],
        facts: Facts,
        batched: bool,
        ident: Id,
        *,
        repairing: bool = True,
    ) -> Verdict:
        state, sender, method = self._state, self._parties[party], message["method"]
        state.catch_up()
        rules, early = state.lifecycle.place_request(party, message, facts.revision)
        report = self._report(rules.revision, _tool_named(message))
        entry = exchange_rules.entry(self._state, rules, party, "request", message)
        faults = list(early)
        if entry is None:
            faults.append(exchange_rules.no_such_method(self._state, rules, party, "request", message))
            entry = rules.stranger(party, method)
        if method == "tools/call" and state.tools.elsewhere is not None:
            state.tools.recall(_tool_named(message), rules.revision)
        if facts.headers is not None:
            self._check_headers(entry, message, facts.headers, faults, report)
        else:
            report.take(faults)
        rules.check_params(entry, message, report)
        exchange_rules.check_id(sender, ident, method, self.limits.open_requests, report)
        if rules is sender.rules:
            capabilities.check_method(self._parties, sender, method, report)
        if batched and method == "initialize":
            report.add("protocol/batched-initialize", "/method", expected="initialize alone", found="in a batch")
        exchange = Exchange.of(entry, ident)
        exchange.alone = facts.transport == "http" and entry.stateless
        exchange.over_http = facts.transport == "http"
        if type(ident) is int and (ident is not message["id"] or ident == 0):
            exchange.spelling = render.id_token(frame, message["id"])
        if facts.served:
            # No policy lets it pass.
            report.found += exchange_rules.check_alone(message, report.found, rules.revision)
        if "params" in message and not report.stops:
            state.check("request", exchange, message["params"], report)
            # The arguments of a call that is repaired are compared once they are repaired.
            if not self._enforcing or not report.stops:
                rounds.check_retry(state, exchange, message["params"], report)
        elif not self._enforcing and report.stops:
            excused.take_refused(state, sender, exchange, message, report)
        self._quarantine_called(message, report)
        sender.garbage = 0
        # Under audit nothing is repaired: the call is forwarded unchanged, and its progress is still tracked.
        if repairing and self._enforcing and self._policy is not None and method == "tools/call" and report.stops:
            sender.forget_token(exchange)

            def again(spelt: bytes, value: dict[str, Any]) -> Verdict:
                return self._request(party, spelt, value, facts, batched, ident, repairing=False)

            repaired = self._repaired_call(frame, message, report.found, again)
            if repaired is not None:
                return repaired
        return self._heard_request(sender, frame, message, exchange, report, facts)

    def _check_headers(
        self, entry: Entry, message: dict[str, Any], headers: Headers, faults: list[Violation], report: Report
    ) -> None:
        """Report wrong headers before the *faults*: a body that names another revision is refused for that first."""
        known = self._state.called(message) if message["method"] == "tools/call" else None
        unusable = report.apart()
        if known is not None:
            contract.check_usable(self._state.tools, known, unusable, over_http=True)
        # An extension that is not judged may name something else, or nothing, in its header.
        rules: RevisionRules = entry.rules
        named = entry.params is not None or message["method"] not in extended_methods(rules.revision)
        params = () if known is None else known.headers
        wrong = list(check_headers(message, headers, rules.revision, params, named=named))
        report.take([*wrong, *(each for each in faults if each not in wrong)])
        report.join(unusable)

    def _quarantine_called(self, message: dict[str, Any], report: Report) -> None:
        """Quarantine a tool whose schemas were compiled for this call only, and cannot be used."""
        if not report.found or not any(each.action == "quarantine" for each in report.found):
            return
        useless = self._state.called(message)
        if useless is None:
            return
        if self._enforcing:
            self._state.tools.quarantine(useless.name)
            tools_topic.report_quarantined(useless.name, report)
        report.found = list_filter.about(useless.name, report.found)

    def _repaired_call(
        self, frame: bytes, message: dict[str, Any], found: list[Violation], again: repair.JudgeCall
    ) -> Verdict | None:
        """Return the verdict on a call after repair; None if it is not to be repaired, or is refused all the same."""
        wanted = self._policy.repairs if self._policy is not None else ()
        if not wanted:
            return None
        known = self._state.called(message)
        schema = known.input.schema if known is not None and known.input is not None else None
        outcome = repair.repaired(frame, message, found, wanted, schema, self.limits, again)
        if outcome is None:
            return None
        heard, repaired = outcome
        report = self._report(heard.revision)
        report.found, report.more = [*repaired.done, *heard.violations], heard.more
        findings = Findings(*report.listed, heard.frame, repairs=repaired.repairs)
        return verdict(heard.party, frame, "request", message, heard.exchange, heard.revision, findings)

    def _heard_request(
        self,
        sender: PartyState,
        frame: bytes,
        message: dict[str, Any],
        exchange: Exchange,
        report: Report,
        facts: Facts,
    ) -> Verdict:
        """Return the verdict on a request: it is forwarded unless it is refused and the mode enforces that."""
        self._once(report)
        forwarded = not self._stops(message, report, facts)
        listed, more = report.listed
        back = None
        if forwarded:
            self._take_request(sender, exchange, message)
        else:
            sender.forget_token(exchange)
            ident = exchange.spelling or render.id_token(frame, message["id"])
            requested = named_revision(message) or facts.revision
            back = render.refusal(ident, listed, more, exchange.revision, requested=requested, spoken=facts.spoken)
        aside = list_filter.quarantined(report.found) if listed else ()
        findings = Findings(listed, more, frame if forwarded else None, back, (), aside) if listed else None
        return verdict(sender.party, frame, "request", message, exchange, exchange.revision, findings)

    def _take_request(self, sender: PartyState, exchange: Exchange, message: dict[str, Any]) -> None:
        """Note that a request was forwarded, and waits for its answer."""
        first = sender.open.get(exchange.id)
        if first is None and len(sender.open) < self.limits.open_requests:
            sender.open[exchange.id] = exchange
            self._state.forwarded(exchange, message)
            invalid = sender.excused.get(exchange.id)
            if invalid is not None and invalid.method != exchange.method:
                sender.close_excused(invalid)
                sender.make_unclear(exchange.id)
            return
        # It was reported, and passes all the same.
        sender.forget_token(exchange)
        if first is not None:
            sender.make_unclear(exchange.id)
        else:
            sender.unknown += 1

    # ── a notification ───────────────────────────────────────────────────────────────────────────────────────────────

    def _notification(self, party: Party, frame: bytes, message: dict[str, Any], facts: Facts) -> Verdict:
        state, sender, method = self._state, self._parties[party], message["method"]
        state.catch_up()
        rules, early = state.lifecycle.place_notification(party, method)
        report = self._report(rules.revision)
        report.take(early)
        if facts.headers is not None:
            report.take(check_headers(message, facts.headers, rules.revision))
        entry = exchange_rules.entry(self._state, rules, party, "notification", message)
        if entry is None:
            report.take((exchange_rules.no_such_method(self._state, rules, party, "notification", message),))
        else:
            rules.check_params(entry, message, report)
        if rules is sender.rules:
            capabilities.check_method(self._parties, sender, method, report)
        self._once(report)
        if facts.served:
            # No policy lets it pass.
            report.found += exchange_rules.check_alone(message, report.found, rules.revision)
        note = Note(sender, method, message.get("params", {}), rules)
        if not self._enforcing or not report.stops:
            state.check_note(note, report)
        sender.garbage = 0
        forwarded = not self._stops(message, report, facts)
        exchange = state.noted(note) if forwarded else None
        findings = Findings(*report.listed, frame if forwarded else None) if report.found else None
        return verdict(party, frame, "notification", message, exchange, rules.revision, findings)

    # ── an answer ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _answer(self, party: Party, frame: bytes, message: dict[str, Any], kind: Kind, ident: Id | None) -> Verdict:
        self._parties[party].garbage = 0
        if ident is None:
            return self._unread(party, frame, message)
        asker = self._parties[party.other]
        exchange = asker.awaited(ident, kind) or asker.settled.get(ident)
        if exchange is None or exchange.state not in {"open", "cancelled"}:
            return self._unsolicited(party, frame, message, kind, exchange)
        heard = HeardAnswer(frame, message, self._judged_answer(exchange, message, kind))
        further = self._answer_report(exchange, message)
        if self._lock is not None and kind == "result":
            # By what the server sent: the lock was made from that, not from a repaired list.
            further.take(self._lock.check(exchange, message["result"]))
        sent = heard if further.stops else self._repaired_answer(heard, exchange, kind)
        self._closing = exchange
        if exchange.excused:
            asker.close_excused(exchange)
        else:
            asker.close(exchange, "answered")
        if not self._enforcing or not (sent.report.stops or further.stops):
            excused.take_answer(self._state, exchange, sent.message, further)
        if sent.repairs and further.stops:
            # The list is useless all the same, and none of it is forwarded.
            sent = heard
        heard_all = self._conclude(sent, further, exchange, kind)
        self._closing = None
        return verdict(party, frame, kind, message, exchange, exchange.revision, heard_all)

    def _conclude(self, sent: HeardAnswer, further: Report, exchange: Exchange, kind: Kind) -> Findings | None:
        """Return what was found in an answer, and what is forwarded for it; None if there is nothing to say."""
        report = sent.report
        report.join(further)
        if not report.found:
            return None
        report.found = list_filter.named(exchange, sent.message, extensions.once(self._state, report.found))
        onward = sent.frame
        if self._enforcing and kind == "result":
            onward = self._forwarded_result(sent, exchange, report)
        elif self._enforcing and report.stops:
            onward = self._failed(sent.frame, sent.message, exchange, report)
        aside = () if report.stops else list_filter.quarantined(report.found)
        return Findings(*report.listed, onward, quarantined=aside, repairs=sent.repairs) if report.found else None

    def _judged_answer(self, exchange: Exchange, message: dict[str, Any], kind: Kind) -> Report:
        """Return what is wrong with an answer, by its request; it changes no state."""
        report = self._answer_report(exchange, message)
        check_answer(self._state, exchange, message, kind, report)
        if report.found and kind == "result" and exchange.method in list_filter.LISTS:
            read = filled(exchange, exchange.entry.result, message["result"])
            report.found = list_filter.limited(exchange, read, report.found)
        return report

    def _repaired_answer(self, heard: HeardAnswer, exchange: Exchange, kind: Kind) -> HeardAnswer:
        """Return an answer after repair; itself if it is not to be repaired, or would be refused all the same."""
        wanted = self._policy.repairs if self._policy is not None and self._enforcing else frozenset()
        if wanted.isdisjoint(REPAIRED_RESULTS):
            return heard
        repaired = result_repair.repaired(exchange, heard.frame, heard.message, heard.report.found, wanted, self.limits)
        if repaired is None:
            return heard
        report = self._judged_answer(exchange, repaired.message, kind)
        if report.stops:
            return heard
        report.found = [*repaired.done, *report.found]
        return HeardAnswer(repaired.frame, repaired.message, report, repaired.repairs)

    def _forwarded_result(self, sent: HeardAnswer, exchange: Exchange, report: Report) -> bytes:
        """Return what the client gets for a result: the frame itself, a list without invalid entries, or an error."""
        frame, message = sent.frame, sent.message
        numbers = list_filter.entries(exchange, report.found)
        if numbers and exchange.method == "tools/list":
            self._state.tools.forget(message["result"]["tools"], numbers)
        if report.stops:
            return self._failed(frame, message, exchange, report, result=True)
        return list_filter.without(frame, message, exchange.method, numbers) if numbers else frame

    def _failed(
        self, frame: bytes, message: dict[str, Any], exchange: Exchange, report: Report, *, result: bool = False
    ) -> bytes:
        """Return the frame that replaces an invalid answer; *result* is true if the answer is a result."""
        if exchange.method == "initialize":
            self._state.refuse_handshake()
        ident = render.id_token(frame, message["id"])
        if result and exchange.tool is not None and not exchange.as_task:
            return render.withheld(ident, exchange.tool, *report.listed, exchange.revision)
        return render.failure(ident, "UPSTREAM_INVALID", *report.listed, exchange.revision)

    def _unread(self, party: Party, frame: bytes, message: dict[str, Any]) -> Verdict:
        """Return the verdict on an error without an id, about an invalid message. It is forwarded."""
        revision, asker = self.revision, self._parties[party.other]
        report = self._report(revision)
        # Before a revision is agreed only JSON-RPC applies, which requires null.
        if "id" in message and revision is not None and not asker.answers_unreadable():
            # The schema of every revision forbids it.
            report.add("envelope/null-id", "/id", expected="a string or an integer", found="null")
            report.found = exchange_rules.answers_nothing(report.found, message, asker)
        forwarded = not self._enforcing or not report.stops
        findings = Findings(tuple(report.found), 0, frame if forwarded else None) if report.found else None
        return verdict(party, frame, "error", message, None, revision, findings)

    def _unsolicited(
        self, party: Party, frame: bytes, message: dict[str, Any], kind: Kind, exchange: Exchange | None
    ) -> Verdict:
        """Return the verdict on an answer without an open request; it is delivered only if it may have one."""
        asker = self._parties[party.other]
        if asker.answers_unknown():
            return verdict(party, frame, kind, message, None, self.revision)
        report = self._report(self.revision)
        report.take((exchange_rules.unsolicited(message["id"], exchange, asker, self.revision),))
        findings = Findings(tuple(report.found), 0, None if self._enforcing else frame)
        return verdict(party, frame, kind, message, exchange, self.revision, findings)

    # ── what all of them need ────────────────────────────────────────────────────────────────────────────────────────

    def _report(self, revision: str | None, tool: str | None = None) -> Report:
        return Report(revision, self._budget, self._policy, tool)

    def _answer_report(self, exchange: Exchange, message: dict[str, Any]) -> Report:
        report = self._report(exchange.revision, exchange.tool)
        if exchange.method == "tools/list":
            report.tool_at = lambda each: list_filter.tool_at(each, message.get("result"))
        return report

    def _once(self, report: Report) -> None:
        """Leave out reports that were made before in this conversation."""
        if report.found:
            report.found = extensions.once(self._state, self._state.lifecycle.once(report.found))

    def _stops(self, message: Any, report: Report, facts: Facts) -> bool:
        """Return whether a message is stopped: by the mode, or because the guard that serves it has to."""
        enforced = self._enforcing and report.stops
        return enforced or (facts.served and exchange_rules.must_stop(message, report.found, facts.spoken))

    # ── what the guard asks beside frames ────────────────────────────────────────────────────────────────────────────

    def failure(self, why: str) -> Violation:
        """Return the violation for a message that could not be judged because of an internal error."""
        report = self._report(self.revision)
        report.add("guard/failure", expected="a verdict", found=f"an error in the guard ({why})")
        return report.found[0]

    def unjudged(self, party: Party, frame: bytes, why: str, heard: Verdict | None = None) -> Verdict:
        """
        Return the verdict on a frame that could not be judged because of an internal error; *why* is one word.

        A request that waits gets an answer. If such a frame is forwarded, so is the answer to it. *heard* is the
        verdict on the frame if it was judged and the failure came later, before anything was sent.
        """
        wrong = self.failure(why)
        lost, self._closing = self._closing, None
        closing = [] if lost is None else [lost]
        parts = () if heard is None else heard.parts or (heard,)
        answers = (each for each in parts if each.kind in _OUTCOMES and each.onward is not None)
        closing += [each.exchange for each in answers if each.exchange is not None]
        passes = not self._enforcing or not wrong.stops

        def hear(party: Party, frame: bytes, value: Any) -> Verdict:
            return judge_failure.unjudged(self._state, party, frame, value, wrong, closing, passes=passes)

        value = judge_failure.loosely_read(frame)
        if not isinstance(value, list) or not 0 < len(value) <= self.limits.batch_entries:
            return hear(party, frame, value)
        spelt = zip(render.entries(frame), value, strict=True)
        return self._of_parts(party, frame, value, tuple(hear(party, *each) for each in spelt))

    def unlisted(self, message: Any) -> tuple[dict[str, Any], str] | None:
        """
        Return the call for which to request the tools before *message* is judged, and the revision; None without one.

        It is *message* itself, or one of its entries if it is a batch: it calls a tool that may exist, and whose
        contract is not known.
        """
        if self.tools.complete:
            return None
        calls = message if type(message) is list else [message]
        if calls is message and (not features_of(self.revision).batches or len(calls) > self.limits.batch_entries):
            return None
        found = ((each, tools_topic.unlisted(self._state, each)) for each in calls)
        return next(((each, revision) for each, revision in found if revision is not None), None)

    def refuses(self, frame: bytes, revision: str, facts: Facts) -> bool:
        """Return whether a request is refused, whatever tools there are. Nothing is remembered of it."""
        scratch = Conversation(revision=revision, **self._terms)
        found = scratch.hear(_CLIENT, frame, facts).violations
        return any(each.stops and each.rule != tools_topic.NOT_JUDGED for each in found)

    def beside(self, revision: str) -> "Conversation":
        """Return a conversation of the guard itself with the same server; what is listed in it is known here, too."""
        return Conversation(revision=revision, tools=self.tools, **self._terms)

    def release(self) -> None:
        """Release the tools of a conversation that has ended: their contracts take most of its memory."""
        self._state.tools = Tools(self.limits.tools, self.limits.contract_bytes)

    def forget_settled(self) -> None:
        """Forget the settled requests: the next ones come from another client, with ids of its own."""
        self._state.forget_client()

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
        asker = self._parties[party.other]
        self._parties[party].open.clear()
        self._parties[party].tokens.clear()
        for each in self._parties.values():
            each.forget_excused()
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
        self._state.renew()

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
        exchange = self._parties[asker].open.get(ident)
        if exchange is None:
            return None
        state: Literal["answered", "timed-out"] = "timed-out" if code == "TIMEOUT" else "answered"
        return self._abandoned(self._parties[asker], exchange, state, code, why, data, unstarted, excused)

    def _abandoned(
        self,
        asker: PartyState,
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
            self._state.refuse_handshake()
        late = code == "TIMEOUT"
        wrong = () if excused else (exchange_rules.unanswered(exchange, why, late=late, unstarted=unstarted),)
        if unstarted:
            reason = why.removeprefix("cannot start ")
            data = {"detail": f"the server could not be started: {reason}", **(data or {})}
        elif excused:
            data = {"detail": why, **(data or {})}
        ident = exchange.spelling or syntax.write(exchange.id)
        error = no_answer(code, why, (data or {}).get("stderr", ()), asker.party.other)
        onward = render.failure(ident, error, wrong, 0, exchange.revision, data)
        findings = Findings(wrong, 0, onward)
        return verdict(asker.party.other, b"", "missing", None, exchange, exchange.revision, findings)


def _tool_named(message: dict[str, Any]) -> str | None:
    """Return the tool that a request calls; None for other requests."""
    params = message.get("params")
    name = params.get("name") if type(params) is dict and message["method"] == "tools/call" else None
    return name if type(name) is str else None


def _is_null_error(fault: Violation, value: Any) -> bool:
    """Return whether *fault* is about an error that is null: some servers send one beside the result."""
    return fault.rule == "envelope/error" and "result" in value and value.get("error") is None


def _asks(value: Any) -> bool:
    """Return whether a malformed message of a server is a request, so that the server waits for an answer."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("method"), str)
        and "result" not in value
        and "error" not in value
    )

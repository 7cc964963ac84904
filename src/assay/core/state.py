"""
The state of a conversation, and how each message changes it. No I/O, no clock.

It has the revision, the capabilities of both parties, the tools and their contracts, progress and tasks. A message that
contradicts it gets a violation in the list that the caller passes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from assay.base.limits import Limits
from assay.base.meta import CAPABILITIES_KEY
from assay.base.verdict import Exchange, Kind, Party, Violation
from assay.contracts.tool_contracts import Tools, cursor_key
from assay.core import state_rules
from assay.core.extensions.extension_state import ExtensionState
from assay.core.history import (
    absent,
    answer_rules,
    asking_back,
    discovery,
    features,
    reserved_codes,
    reuse,
    subscriptions,
)
from assay.core.history.forms import Forms
from assay.core.history.retries import is_retry, take_subject
from assay.core.history.reuse import ident_of, object_of
from assay.core.history.rounds import Rounds
from assay.core.history.shared_rounds import SharedRounds
from assay.core.history.stateless_state import StatelessState
from assay.core.history.tasks import Tasks, is_task
from assay.core.lifecycle import Lifecycle
from assay.core.list_filter import LISTS
from assay.core.party_state import Side, undeclared
from assay.core.policy import Policy
from assay.engine.budget import Budget
from assay.ladder import contract
from assay.ladder.protocol import MAY_ASK_BACK, Definition, Judge
from assay.spec.extensions.official import Extension
from assay.spec.revisions import handshake

Found = list[Violation]

_CAPABILITIES_AT: Final = f"/params/_meta/{CAPABILITIES_KEY.replace('/', '~1')}"


class Memory:
    """The state of one conversation."""

    def __init__(
        self,
        limits: Limits,
        revision: str | None,
        *,
        errata: bool,
        quick: bool,
        tools: Tools | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.limits = limits
        self._quick = quick
        self._policy = policy
        self.lifecycle = Lifecycle(revision, errata=errata)
        self.tools = Tools(limits.tools, limits.contract_bytes) if tools is None else tools
        self.sides = {party: Side(party, limits, self.lifecycle.judge) for party in Party}
        self._tasks = Tasks(self.sides, limits)
        self._forms = Forms()
        self._rounds = Rounds(whole=revision is None)
        self._whole = revision is None
        """Whether it begins here: otherwise rounds may begin in another conversation about the same server."""
        self._stateless = StatelessState(self.sides[Party.CLIENT], whole=revision is None)
        self.extensions = ExtensionState(self.sides, self.tools, limits)
        self._settle()

    def once(self, found: Found) -> Found:
        """Return *found* without reports that were made before in this conversation."""
        return self.extensions.once(self.lifecycle.once(found))

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def take_params(self, side: Side, exchange: Exchange, params: dict[str, Any], found: Found, budget: Budget) -> int:
        """
        Keep what the answer to a request will need of its params, and judge the params by the state.

        The params may be anything if the method is unknown, or if invalid messages are forwarded.

        Return at least how many violations there are beyond those in *found*.
        """
        meta = params.get("_meta")
        if isinstance(meta, dict):
            self._take_meta(side, exchange, meta, found, budget)
        name = params.get("name")
        if exchange.method == "tools/call" and isinstance(name, str):
            exchange.detail = name[:100]
            known = self.tools.known.get(name)
            exchange.as_task = "task" in params and self._tasks.runs(exchange)
            exchange.contract = known
            if exchange.entry.stateless:
                take_subject(exchange, params)
            found += features.check_features(exchange, params, self.sides)
            if known is not None:
                if exchange.over_http and not known.ready:
                    budget.compiles -= 1
                if not known.has_room or budget.compiles < 0:
                    found.append(state_rules.not_judged(name, exchange.revision))
                if budget.compiles < 0:
                    exchange.contract = None
                    return 0
                found += contract.check_usable(self.tools, known, exchange.revision, over_http=exchange.over_http)
                faults, more = contract.check_input(known, params, exchange.revision, budget)
                found += faults
                return more
            if self.tools.is_quarantined(name):
                found.append(state_rules.quarantined(name, exchange.revision))
            elif self.tools.complete:
                found.append(state_rules.unknown_tool(name, self.tools.known, exchange.revision))
            else:
                found.append(state_rules.not_judged(name, exchange.revision))
        elif params:
            self._take_details(exchange, params, found)
            return self.extensions.take_request(exchange, params, found, budget)
        return 0

    def check_retry(self, exchange: Exchange, params: dict[str, Any], found: Found, budget: Budget) -> int:
        """Judge a request that has the input which the answer to an earlier one asked for."""
        # A method of an unknown extension may use these members in its own way.
        if not exchange.entry.stateless or exchange.entry.params is None or not is_retry(params):
            return 0
        if not exchange.over_http:
            return self._rounds.check(exchange, params, found, budget)
        shared: SharedRounds = self.tools.rounds or SharedRounds()
        return shared.check(exchange, params, found, budget)

    def _take_meta(self, side: Side, exchange: Exchange, meta: dict[str, Any], found: Found, budget: Budget) -> None:
        token = ident_of(meta.get("progressToken"))
        if token is not None:
            if isinstance(token, str) and len(token) > self.limits.id_bytes:
                found.append(state_rules.too_long("/params/_meta/progressToken", token, self.limits.id_bytes))
                return
            if token in side.tokens:
                found += reuse.check_token(side, token, exchange.revision)
            exchange.token = token
            side.tokens[token] = None
        declared = meta.get(CAPABILITIES_KEY)
        if isinstance(declared, dict) and not handshake(exchange.revision):
            exchange.declared = asking_back.declared_in(declared)
            if "extensions" in declared or "experimental" in declared:
                judge: Judge = exchange.entry.judge
                found += self.extensions.declared(side.party, declared, _CAPABILITIES_AT, judge, budget)

    def _take_details(self, exchange: Exchange, params: dict[str, Any], found: Found) -> None:
        cursor = params.get("cursor")
        if isinstance(cursor, str):
            # The detail of a call is the name of its tool; one without a name is forwarded if the operator wants that.
            exchange.detail = cursor_key(cursor) if exchange.method != "tools/call" else None
            if len(cursor) > self.limits.cursor_bytes:
                found.append(state_rules.too_long("/params/cursor", cursor, self.limits.cursor_bytes))
        if exchange.method in MAY_ASK_BACK and exchange.entry.stateless:
            take_subject(exchange, params)
        exchange.as_task = "task" in params and self._tasks.runs(exchange)
        task = params.get("taskId")
        if exchange.features.tasks and exchange.method.startswith("tasks/") and isinstance(task, str):
            found += self._tasks.check_asked(params)
            exchange.detail = task if len(task) <= self.limits.id_bytes else None
        found += features.check_features(exchange, params, self.sides)
        if exchange.method == "initialize":
            found += self._check_client(exchange, params)
        if exchange.method == "elicitation/create":
            self._forms.asked(exchange, params)

    def _check_client(self, exchange: Exchange, params: dict[str, Any]) -> list[Violation]:
        """Return the violations of the extensions that a client declares in its handshake."""
        declared = object_of(params.get("capabilities"))
        budget = Budget(b"", self.limits.violations)
        judge: Judge = exchange.entry.judge
        return self.extensions.declared(exchange.asker, declared, "/params/capabilities", judge, budget)

    def asked(self, exchange: Exchange, message: dict[str, Any]) -> None:
        """Note that a request was forwarded, which may decide the era."""
        self._stateless.asked(exchange, message)
        if exchange.retries is not None:
            exchange.retries.open = False
        if exchange.method == "initialize" and exchange.asker is Party.CLIENT:
            if self.lifecycle.phase not in {"new", "stateless"}:
                return
            self.lifecycle.initialize(message)
            reuse.begin_session(self.sides[Party.CLIENT])
            self.sides[Party.CLIENT].capabilities = object_of(object_of(message.get("params")).get("capabilities"))
            self._settle()
        elif (
            self.lifecycle.phase != "stateless"
            and not handshake(exchange.revision)
            and exchange.method != "server/discover"
        ):
            # A client that sends server/discover may still be refused, and fall back to initialize.
            self.lifecycle.stateless(exchange.entry.judge)
            self._settle()

    def rule_beyond(self, judge: Judge, party: Party, message: dict[str, Any]) -> str | None:
        """
        Return the rule for a method that may belong to an extension; None if it cannot.

        It may if an unknown extension was declared, or if the declarations are unknown: over HTTP the handshake may
        have been elsewhere, and `server/discover` is optional.
        """
        if self.extensions.goes_beyond(judge, _declared_in(message)):
            return "protocol/extension"
        heard = self.sides[Party.SERVER].capabilities is not None or self.tools.declared is not None
        if handshake(judge.revision):
            return None if heard or self.lifecycle.phase != "operating" else "protocol/unheard-extension"
        # A server without a handshake sends no requests, with or without extensions.
        return None if heard or (party is Party.SERVER and "id" in message) else "protocol/unheard-extension"

    def leaves_out(self, extension: Extension, message: dict[str, Any]) -> bool:
        """Return whether *extension*, of a method that *message* has, was declared in an unknown revision."""
        return self.extensions.leaves_out(extension, _declared_in(message))

    def catch_up(self) -> None:
        """Copy the capabilities that the server declared in another conversation about the same tools."""
        server = self.sides[Party.SERVER]
        if server.capabilities is not self.tools.declared and self.lifecycle.phase == "stateless":
            server.capabilities = self.tools.declared
            self._settle()

    # ── notifications ────────────────────────────────────────────────────────────────────────────────────────────────

    def check_note(self, side: Side, method: str, params: Mapping[str, Any], judge: Judge) -> list[Violation]:
        """Return the violations of a notification by the state."""
        extended = judge.extensions.methods(judge.revision).get(method)
        if extended is not None and self.extensions.leaves_out(extended.extension):
            return []
        check = _CHECKED.get(method)
        found = list(check(self, side, params, judge)) if check else []
        found += self._stateless.check_note(side.party, method, params, judge.revision)
        if side.party is Party.SERVER:
            declared = self._stateless.declared_by(params)
            found += self.extensions.check_note(method, object_of(params), judge, declared)
        return found

    def _check_cancel(self, side: Side, params: Mapping[str, Any], judge: Judge) -> Iterator[Violation]:
        """
        Return the violations of a cancellation: only the sender of a request may cancel it.

        A server without requests of its own may cancel those of the client; but only subscriptions may end that way,
        because any other request would never be answered.
        """
        ident = ident_of(params.get("requestId"))
        if ident is None:
            return
        asker = self._cancelling(side, judge)
        exchange = asker.open.get(ident)
        if asker is not side and exchange is not None and exchange.method != "subscriptions/listen":
            yield state_rules.cancels_other(exchange, judge.revision)
        elif exchange is None and ident not in asker.settled and not asker.irregular.may_have(ident):
            yield state_rules.cancels_nothing(ident, judge.revision)
        elif exchange is not None and exchange.method == "initialize":
            yield state_rules.cancels_initialize(ident, judge.revision)
        elif self._tasks.has(exchange or asker.settled.get(ident)):
            yield state_rules.cancels_task(judge.revision)

    def _check_progress(self, side: Side, params: Mapping[str, Any], judge: Judge) -> Iterator[Violation]:
        asker = self.sides[side.party.other]
        tokens = asker.tokens
        if subscriptions.is_on_subscription(params) and not handshake(judge.revision):
            yield state_rules.progress_on_subscription(judge.revision)
            return
        token, progress = ident_of(params.get("progressToken")), params.get("progress")
        if token is None or token in asker.shared or not isinstance(progress, int | float):
            return
        last = tokens.get(token)
        if token not in tokens:
            if asker.irregular.unknown or asker.broke_off(token):
                # The id may be that of an unreadable request, or the two messages crossed on the way.
                return
            yield state_rules.no_progress(token, judge.revision)
        elif last is not None and progress <= last:
            yield state_rules.no_rise(last, progress, judge.revision)

    def noted(self, side: Side, method: str, params: Mapping[str, Any], judge: Judge) -> Exchange | None:
        """Note that a notification was forwarded. Return the exchange that it concerns, if any."""
        self._stateless.noted(method, params)
        if side.party is Party.SERVER:
            self.extensions.noted(method, params)
        effect = _NOTED.get(method)
        return effect(self, side, params, judge) if effect else None

    def _initialized(self, side: Side, *_: Any) -> None:
        if side.party is Party.CLIENT:
            self.lifecycle.initialized()
            self._settle()

    def _tools_changed(self, *_: Any) -> None:
        self.tools.changed()

    def _cancelling(self, side: Side, judge: Judge) -> Side:
        """Return the party whose requests *side* may cancel."""
        return side if side.party is Party.CLIENT or handshake(judge.revision) else self.sides[Party.CLIENT]

    def _cancelled(self, side: Side, params: Mapping[str, Any], judge: Judge) -> Exchange | None:
        ident = ident_of(params.get("requestId"))
        if ident is None:
            return None
        asker = self._cancelling(side, judge)
        exchange = asker.open.get(ident)
        if exchange is None:
            return asker.settled.get(ident)
        # A request that the server may not cancel stays open: its answer is still due.
        if asker is side or exchange.method == "subscriptions/listen":
            asker.close(exchange, "cancelled")
        return exchange

    def _progress(self, side: Side, params: Mapping[str, Any], _: Judge) -> None:
        tokens = self.sides[side.party.other].tokens
        token, progress = ident_of(params.get("progressToken")), params.get("progress")
        if token in tokens and isinstance(progress, int | float):
            tokens[token] = progress

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def check_answer(
        self, exchange: Exchange, message: dict[str, Any], kind: Kind, found: Found, budget: Budget
    ) -> int:
        """Judge an answer by its request. Return at least how many violations there are beyond those in *found*."""
        entry = exchange.entry
        judge: Judge = entry.judge
        if kind == "error":
            faults, more = judge.check_error(message, budget)
            found += faults
            found += answer_rules.check_code(
                exchange,
                message["error"]["code"],
                self.sides,
                listed=bool(self.tools.known),
                extended=self._is_extended(exchange),
            )
            found += reserved_codes.check(exchange, message["error"])
            found += features.check_error(exchange, message["error"]["code"], self.sides)
            found += self.extensions.check_error(exchange, message["error"]["code"])
            return more
        result = message["result"]
        if entry.result is None:
            return 0
        definition: Definition = entry.result
        exchange.as_task = exchange.as_task and is_task(exchange, result)
        if exchange.method == "initialize":
            judge, early = self.lifecycle.place_initialize_result(result)
            definition = judge.definition("InitializeResult")
            found += early
        elif exchange.method == discovery.METHOD and not discovery.is_answer(result):
            found += definition.look_alikes(result, "/result", judge.revision, budget.violations)
            found.append(discovery.unknown(exchange, result))
            return 0
        elif exchange.as_task or judge.features.result_types:
            definition = self._result_definition(exchange, result, judge, found)
            found += absent.check(exchange, definition, result)
        if result and (alike := definition.look_alikes(result, "/result", judge.revision, budget.violations)):
            found += alike
        read = absent.filled(exchange, definition, result)
        faults, more = definition.check("protocol/result", read, "/result", judge.revision, budget)
        found += faults if read is result else absent.described(faults, result)
        if faults and any(each.stops for each in self._decided(faults, exchange.tool)):
            # A list is forwarded without its invalid entries, so the others are judged all the same.
            is_list = exchange.method in LISTS
            return more + (self.extensions.check_result(exchange, result, found, budget) if is_list else 0)
        found += self._stateless.check_result(exchange, result)
        return self._check_promise(exchange, result, found, budget)

    def _decided(self, faults: list[Violation], tool: str | None) -> list[Violation]:
        return faults if self._policy is None else self._policy.decided(faults, tool)

    def _result_definition(self, exchange: Exchange, result: dict[str, Any], judge: Judge, found: Found) -> Definition:
        """Return what a result is judged by, according to its type, which may be that of a declared extension."""
        kind = result.get("resultType")
        form = judge.result_form(exchange.method, kind) if isinstance(kind, str) and kind != "complete" else None
        if form is not None and self.extensions.leaves_out(form[0]):
            return judge.definition("Result")
        if form is not None and form[0].identifier in (exchange.declared or ()):
            return form[1]
        wrong = list(judge.check_result_type(exchange.method, result))
        if wrong:
            found += self._undeclared_type(exchange, wrong, kind, None if form is None else form[0].identifier)
        name = judge.result_definition(exchange.method, result, as_task=exchange.as_task)
        definition: Definition = exchange.entry.result
        return definition if name is None else judge.definition(name)

    def _undeclared_type(self, exchange: Exchange, wrong: Found, kind: Any, identifier: str | None) -> Found:
        """Return what is *wrong* with a result type; *identifier* is that of the known extension that defines it."""
        if identifier is not None:
            return [state_rules.undeclared_result(each, identifier) for each in wrong]
        # Asking for input is no type of an extension: the specification defines it, for three methods.
        if kind == "input_required" or not self._is_extended(exchange):
            return wrong
        return [state_rules.beyond(each, exchange.revision) for each in wrong]

    def _is_extended(self, exchange: Exchange) -> bool:
        """Return whether either party declared something that is unknown here."""
        return self.extensions.goes_beyond(exchange.entry.judge)

    def _check_promise(self, exchange: Exchange, result: dict[str, Any], found: Found, budget: Budget) -> int:
        """Judge a result beyond its schema: by the contract of the tool, the task, and what it may ask back."""
        found += answer_rules.check_result(exchange, result, budget.violations)
        more = self.extensions.check_result(exchange, result, found, budget)
        if exchange.as_task:
            found += self._tasks.check_started(result)
            return 0
        if exchange.method == "elicitation/create":
            return self._forms.check(exchange, result, found, budget)
        if exchange.method == "tasks/result":
            more = self._tasks.check_payload(exchange, result, found, budget)
            return more + self._forms.check(self._tasks.request_of(exchange), result, found, budget)
        if not handshake(exchange.revision) and result.get("resultType") == "input_required":
            found += asking_back.check(exchange, result, budget.violations)
        elif exchange.contract is not None and _is_final(exchange, result):
            faults, more = contract.check_output(exchange.contract, result, exchange.revision, budget)
            found += faults
        return more

    def answered(self, exchange: Exchange, message: dict[str, Any], found: Found) -> None:
        """Note that an answer was forwarded."""
        if "error" in message:
            self._failed(exchange, message["error"])
            return
        result = message["result"]
        self._stateless.answered(exchange, result)
        self.extensions.answered(exchange, result)
        if exchange.as_task:
            self._tasks.started(exchange, result)
            return
        if exchange.method == "tasks/result":
            self._tasks.fetched(exchange)
        if exchange.entry.stateless:
            self._take_result_type(exchange, result)
        effect = _ANSWERED.get(exchange.method)
        if effect is not None and exchange.asker is Party.CLIENT:
            effect(self, exchange, result, found)

    def _failed(self, exchange: Exchange, error: dict[str, Any]) -> None:
        if exchange.method == "initialize" and self.lifecycle.phase == "initializing":
            self.refused()
        elif error["code"] == discovery.UNSUPPORTED and exchange.entry.stateless:
            self._listed(exchange, object_of(error.get("data")).get("supported"))

    def _listed(self, exchange: Exchange, versions: Any) -> None:
        """
        Note the revisions that the server lists.

        A client that cancelled the request has not waited for the list, and over HTTP the next request may be that of
        another client.
        """
        if not exchange.cancelled and not exchange.over_http:
            self.lifecycle.server_supports(versions)

    def _take_result_type(self, exchange: Exchange, result: dict[str, Any]) -> None:
        """Note that a request was not answered yet, but by asking for input, or by a task."""
        kind = result.get("resultType")
        if kind == "task" and exchange.retries is not None:
            self._rounds.ended(exchange)
        elif kind == "input_required":
            self._rounds.asked_back(exchange, result)
            if exchange.over_http or not self._whole:
                self.tools.rounds = self.tools.rounds or SharedRounds()
                self.tools.rounds.asked_back(exchange, result)
            elif exchange.contract is not None:
                self.tools.asked_back(exchange.contract)

    def refused(self) -> None:
        """Forget a failed handshake; another one may follow."""
        self.lifecycle.refused()
        self.sides[Party.CLIENT].capabilities = self.sides[Party.SERVER].capabilities = None
        self._settle()

    def renew(self) -> None:
        """Forget what concerned only the server before."""
        server = self.sides[Party.SERVER]
        server.open.clear()
        for each in self.sides.values():
            each.irregular.clear()
        # An answer to a cancelled request may still be forwarded, but not to a server that never made it.
        server.settled.clear()
        server.tokens.clear()
        server.garbage = 0
        self._tasks.renew()
        self._stateless.renew()
        self.extensions.renew()
        self.tools.changed()

    def forget_settled(self) -> None:
        """Forget all settled requests, their rounds, and what the next client has not declared or seen."""
        for side in self.sides.values():
            side.settled.clear()
        self._rounds.clear()
        self.lifecycle.modern_only = ""
        self.extensions.forget_client()

    def _negotiated(self, _: Exchange, result: dict[str, Any], found: Found) -> None:
        if self.lifecycle.phase != "initializing":
            return
        self.lifecycle.negotiated(self.lifecycle.place_initialize_result(result).judge)
        self._server_declared(result, found)

    def _discovered(self, exchange: Exchange, result: dict[str, Any], found: Found) -> None:
        if discovery.is_answer(result) and self.lifecycle.phase in {"new", "stateless"}:
            self.lifecycle.stateless(exchange.entry.judge)
            self._listed(exchange, result.get("supportedVersions"))
            self._server_declared(result, found)
            self.tools.declared = self.sides[Party.SERVER].capabilities

    def _server_declared(self, result: dict[str, Any], found: Found) -> None:
        declared = object_of(result.get("capabilities"))
        self.sides[Party.SERVER].capabilities = declared
        self._settle()
        budget = Budget(b"", self.limits.violations)
        found += self.extensions.declared(Party.SERVER, declared, "/result/capabilities", self.lifecycle.judge, budget)

    def _tools_listed(self, exchange: Exchange, result: dict[str, Any], found: Found) -> None:
        page, cursor = result.get("tools"), result.get("nextCursor", "")
        if isinstance(page, list):
            found += self.tools.learn(
                page,
                cursor=exchange.detail,
                # Under audit a cursor may be anything; such a page is not the last one, and has no next one.
                following=cursor_key(str(cursor)) if "nextCursor" in result else None,
                outputs=exchange.features.output_schemas,
                revision=exchange.revision,
                over_http=exchange.over_http,
            )

    def _settle(self) -> None:
        """Give both parties the revision in force, and find the methods that neither may send."""
        judge = self.lifecycle.judge
        declared = {party: side.capabilities for party, side in self.sides.items()}
        for party, side in self.sides.items():
            side.use(judge)
            side.undeclared = undeclared(party, judge.revision, declared)
            settled = self.lifecycle.phase in {"operating", "stateless"}
            if self._quick and settled and "tools/call" not in side.undeclared:
                side.call = judge.calls[party, "request"].get("tools/call")


# Functions, not bound methods: those would keep an ended conversation and its tools in a reference cycle.
_CHECKED: Final[Mapping[str, Callable[[Memory, Side, Mapping[str, Any], Judge], Iterator[Violation]]]] = {
    "notifications/cancelled": Memory._check_cancel,
    "notifications/progress": Memory._check_progress,
}
_NOTED: Final[Mapping[str, Callable[[Memory, Side, Mapping[str, Any], Judge], Exchange | None]]] = {
    "notifications/initialized": Memory._initialized,
    "notifications/cancelled": Memory._cancelled,
    "notifications/progress": Memory._progress,
    "notifications/tools/list_changed": Memory._tools_changed,
}
_ANSWERED: Final[Mapping[str, Callable[[Memory, Exchange, dict[str, Any], Found], None]]] = {
    "initialize": Memory._negotiated,
    "server/discover": Memory._discovered,
    "tools/list": Memory._tools_listed,
}
"""The checks and updates for a notification or an answer, by its method."""


def _declared_in(message: dict[str, Any]) -> dict[str, Any]:
    """Return the capabilities that a request declares in its `_meta`; empty without any."""
    return object_of(object_of(object_of(message.get("params")).get("_meta")).get(CAPABILITIES_KEY))


def _is_final(exchange: Exchange, result: dict[str, Any]) -> bool:
    """Return whether *result* is that of the call itself; a result type of an extension comes before it."""
    return handshake(exchange.revision) or result.get("resultType", "complete") == "complete"

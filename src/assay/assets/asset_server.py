"""
The asset server: a frame in, frames out. No I/O but that of `populate_backend`, no transport, no clock.

Two doors. A connection that opens an MCP conversation (`initialize`, or a revision in `_meta`) is MCP's, and is judged
like any other. One that has not is specs/001's: the seven tools as bare methods, one line a request, one line an
answer, and a method that is no tool is `unsupported`.

Hearing and answering are apart: an edge may hear the next frame while a slow request is still being answered.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import orjson

from assay.assets.asset_tools import TOOLS
from assay.assets.mcp_methods import MethodError, Methods, capabilities
from assay.base.limits import REQUESTS, Limits
from assay.base.meta import REVISION_KEY
from assay.base.verdict import Findings, Kind, Party, Verdict, Violation, verdict
from assay.contracts.tool_contracts import Contract
from assay.core import render
from assay.core.conversation import NO_FACTS, Conversation, Facts
from assay.engine.budget import Budget
from assay.ladder import contract, envelope, framing, syntax
from assay.spec.methods import revisions_of

TOO_LARGE: Final = {
    "ok": False,
    "reason": "validation_failed",
    "errors": [{"path": "", "msg": "payload_too_large"}],
}
"""What a frame over the limit gets on the bare door (specs/001 §6)."""

WAITING: Final = "populate_backend"
"""The one tool that waits for somebody else."""

_WAITING: Final = WAITING.encode()

_SHORT: Final = 4096
"""Bytes of a frame that is judged and answered in well under a millisecond, whatever is in it."""

_DECLARED: Final = capabilities()
_CONTRACTS: Final = {name: Contract.of_input(name, tool.input) for name, tool in TOOLS.items()}
"""What our tools take, the same in every revision and for every connection. Compiled when first used."""

# specs/001 takes any number for an id; all else of the envelope is MCP's.
_BARE: Final = envelope.MCP._replace(id_types=(str, int, float), id_words="a string or a number")

# These compare or store what they are given.
_EXACT: Final = frozenset({"diff_assets", "populate_backend"})

# What these answer is held to our contracts when it is made, and is known to the conversation already.
_VOUCHED: Final = frozenset({"tools/call", "tools/list"})


class AssetTurn(NamedTuple):
    """What comes of one frame."""

    verdict: Verdict
    said: Sequence[bytes] = ()
    """To be sent at once: refusals and acknowledgements."""
    asked: Sequence[Verdict] = ()
    """Requests that were let through, and are to be answered."""
    code: str | None = None
    """The canonical error of a frame that was refused."""

    def frames(self, answers: "Sequence[Settled]") -> Sequence[bytes]:
        """All that is sent, now that there are *answers*: to a batch, one array."""
        said = [*self.said, *(each.onward or b"" for each, _ in answers)]
        if not self.verdict.parts:
            return said
        together = render.array(said)
        return () if together is None else (together,)


Answer = tuple[bytes, str | None]
"""The answer to a request, and the canonical error that it is, if it is one."""

Settled = tuple[Verdict, str | None]
"""The verdict on an answer, and the canonical error that it is, if it is one."""


class AssetServer:
    """One connection to the asset server."""

    def __init__(
        self,
        methods: Methods,
        *,
        limits: Limits = REQUESTS,
        tier: str | None = None,
        revision: str | None = None,
        identify: Callable[[Verdict], str | None] = lambda _: None,
    ) -> None:
        """
        With *revision* the conversation counts as opened in it already.

        *identify* gives the id that the records have for a request which is answered while it is heard.
        """
        self._identify = identify
        self._methods = methods
        self._limits = limits
        self._tier = tier or methods.tier
        self._conversation = Conversation(limits=limits, revision=revision)
        self._unopened = revision is None
        self._garbage = 0
        # Our own tools need not be listed to be known: calls are held to their contracts from the first one on.
        self._conversation.tools.adopt(_CONTRACTS, _DECLARED)

    @property
    def revision(self) -> str | None:
        """The revision of the conversation; None before one is known."""
        return self._conversation.revision

    @property
    def idle(self) -> bool:
        """Whether nothing is open."""
        return not self._conversation.open_requests(Party.CLIENT)

    def forget_settled(self) -> None:
        """Forget the requests that were answered: the next ones are of another client, with ids of its own."""
        self._conversation.forget_settled()

    def respond(self, frame: bytes) -> Sequence[bytes]:
        """What is to be sent for *frame*, in order."""
        turn = self.hear(frame)
        return turn.frames(self.answers(turn)) if turn.asked else turn.said

    def may_take_long(self, frame: bytes) -> bool:
        """Whether *frame* could keep us so long that what was answered before it should be sent first."""
        return len(frame) > _SHORT or _WAITING in frame

    def hear(self, frame: bytes, facts: Facts = NO_FACTS) -> AssetTurn:
        """The verdict on *frame*, and what is due for it."""
        if self._unopened and facts.revision is None:
            turn = self._bare(frame, facts.transport)
            if turn is not None:
                return turn
        heard = self._conversation.hear(Party.CLIENT, frame, facts)
        if self._unopened:
            self._unopened = self._conversation.revision is None
        if heard.findings is None:
            return self._let_through(heard) if heard.kind == "request" else AssetTurn(heard)
        parts = heard.parts or (heard,)
        turns = [self._let_through(each) for each in parts if each.kind == "request" and each.onward is not None]
        refusals = [back for each in parts if (back := self._refusal(each)) is not None]
        if heard.back is not None and not refusals:
            refusals = [heard.back]
        said = [*refusals, *(each for turn in turns for each in turn.said)]
        return AssetTurn(heard, said, [each for turn in turns for each in turn.asked], render.code_of(heard))

    def answers(self, turn: AssetTurn, request_id: str | None = None) -> list[Settled]:
        """The answers to all that was asked, one after the other."""
        settled = []
        for request in turn.asked:
            answer = self.answer(request, request_id)
            settled.append((self.settle(request, answer), answer[1]))
        return settled

    def answer(self, request: Verdict, request_id: str | None = None) -> Answer:
        """
        The answer to *request*, whatever happens. Leaves the conversation alone: any thread may do this.

        *request_id* is what the records call it; the caller's own, if there is one, comes first.
        """
        message, exchange = request.value, request.exchange
        token = render.id_token(request.frame, message["id"])
        method = message["method"]
        try:
            params = _exact_params(request)
            if exchange is None:
                return render.result_frame(token, self._methods.bare(method, params, self._tier)), None
            revision = exchange.entry.revision
            return render.result_frame(
                token, self._methods.answer(method, params, revision, self._tier, request_id)
            ), None
        except MethodError as failure:
            return render.error_frame(token, failure.error(), failure.data, None), failure.code
        except Exception as error:  # a mistake of ours, and no reason to fail the next request
            import logging  # noqa: PLC0415 - not needed where nothing fails

            logging.getLogger("assay").exception("%s failed", method, exc_info=error)
            return render.failure(token, "INTERNAL_ERROR", (), 0, None), "INTERNAL_ERROR"

    def settle(self, request: Verdict, answer: Answer) -> Verdict:
        """The verdict on *answer*. What is no result of a tool is judged like an answer of any other server."""
        exchange, frame = request.exchange, answer[0]
        if exchange is None:
            return verdict(Party.SERVER, frame, "result", None, None, None)
        if exchange.entry.name in _VOUCHED or len(frame) > self._limits.frame_bytes:
            # The limit is for what others send: a schema of ours may be longer.
            return self._conversation.vouch(exchange, frame)
        said = self._conversation.hear(Party.SERVER, frame)
        self._unopened = self._conversation.revision is None
        return said

    def failed(self, frame: bytes, error: Exception) -> Sequence[bytes]:
        """
        Return the answers to *frame* after *error*, an internal error: one for each request in it, nothing otherwise.

        For whatever fails between hearing a frame and sending its answers. The error is logged, and no request of the
        frame stays open.
        """
        from assay.guard.failure import failed  # noqa: PLC0415 - only after an internal error
        from assay.guard.outline import outline  # noqa: PLC0415 - as above

        made = failed(self._conversation, Party.CLIENT, frame, error)
        back = made.back
        if back is None and made.value is None:
            found = outline(frame, b"")
            if found.asks and found.token is not None:
                back = render.refusal(found.token, made.violations, made.more, None)
        return () if back is None else (back,)

    def end(self) -> Sequence[bytes]:
        """What is to be said when the server ends: that nothing more comes of what is listened to."""
        waiting = self._conversation.open_requests(Party.CLIENT)
        listening = [each for each in waiting if each.method == "subscriptions/listen"]
        return [
            self._conversation.hear(Party.SERVER, render.result_frame(token, orjson.dumps(_ended(token)))).onward or b""
            for token in (each.spelling or orjson.dumps(each.id) for each in listening)
        ]

    # ── MCP ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _let_through(self, heard: Verdict) -> AssetTurn:
        message = heard.value
        if message["method"] == "subscriptions/listen":
            # Nothing changes while the server runs: it is acknowledged, and stays open until the client has enough.
            acknowledged = _acknowledged(render.id_token(heard.frame, message["id"]))
            return AssetTurn(heard, (self._conversation.hear(Party.SERVER, acknowledged).onward or b"",))
        return AssetTurn(heard, (), (heard,))

    def _refusal(self, heard: Verdict) -> bytes | None:
        """What a refused message gets. All that a tool answers is an envelope (specs/004), this too."""
        exchange = heard.exchange
        if heard.back is None or exchange is None or not exchange.features.failed_results:
            return heard.back
        tool = exchange.tool
        if tool is None or tool not in TOOLS:
            return heard.back
        wrong = [each for each in heard.violations if each.action == "refuse"]
        if any(each.rule != "contract/input" for each in wrong):
            return heard.back
        params = heard.value["params"]
        result = self._methods.refused(tool, params, wrong, exchange.revision, self._tier, self._identify(heard))
        return render.result_frame(render.id_token(heard.frame, heard.value["id"]), result)

    # ── the bare door ────────────────────────────────────────────────────────────────────────────────────────────────

    def _bare(self, frame: bytes, transport: str) -> AssetTurn | None:
        """What comes of a frame on the bare door; None for one that is MCP's."""
        large = framing.check(frame, self._limits.frame_bytes)
        if large is not None and transport == "http":
            # The status says it there.
            return _refused(frame, "unreadable", None, (large,))
        if large is not None:
            return _refused(frame, "unreadable", None, (large,), render.result_frame(b"null", orjson.dumps(TOO_LARGE)))
        value = syntax.read(frame, self._limits.depth)
        if isinstance(value, Violation):
            if framing.is_blank(frame):
                return AssetTurn(verdict(Party.CLIENT, frame, "blank", None, None, None, Findings(())))
            return self._unreadable(_refused(frame, "unreadable", None, (value,)), transport)
        if isinstance(value, dict) and is_mcp(value):
            self._garbage = 0
            return None
        kind = envelope.classify(value, envelope.MCP, self._limits.id_bytes)
        if kind not in ("request", "notification"):
            faults = tuple(envelope.check_call(value, _BARE, id_limit=self._limits.id_bytes))
            if faults:
                refused = _refused(frame, "unreadable", value, faults[: self._limits.violations])
                return refused if _usable_id(value) else self._unreadable(refused, transport)
        self._garbage = 0
        if "id" not in value:
            return AssetTurn(verdict(Party.CLIENT, frame, "notification", value, None, None))
        return self._bare_request(frame, value)

    def _unreadable(self, turn: AssetTurn, transport: str) -> AssetTurn:
        """
        What comes of a frame that belongs to no request: over standard streams the answers stop after so many in a row.

        Over HTTP each request is answered. So is each frame that is too long, which has an answer of its own.
        """
        if transport == "http":
            return turn
        self._garbage += 1
        if self._garbage <= self._limits.garbage_answers:
            return turn
        heard = turn.verdict
        findings = Findings(heard.violations, heard.more)
        silent = verdict(Party.CLIENT, heard.frame, heard.kind, heard.value, None, None, findings)
        return AssetTurn(silent, (), (), turn.code)

    def _bare_request(self, frame: bytes, message: dict[str, Any]) -> AssetTurn:
        method, params = message["method"], message.get("params", {})
        known = _CONTRACTS.get(method)
        if known is not None and (not known.valid_input(params) or known.has_look_alikes(params)):
            wrong, more = contract.check_bare_input(known, params, Budget(frame, self._limits.violations))
            if wrong:
                return _refused(frame, "request", message, tuple(wrong), more=more)
        heard = verdict(Party.CLIENT, frame, "request", message, None, None)
        return AssetTurn(heard, (), (heard,))


def is_mcp(message: dict[str, Any]) -> bool:
    """Whether *message* opens an MCP conversation, or means to be part of one."""
    method, params = message.get("method"), message.get("params")
    if isinstance(method, str) and method not in TOOLS and revisions_of(method):
        return True
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and REVISION_KEY in meta


def _refused(
    frame: bytes, kind: Kind, value: Any, wrong: tuple[Violation, ...], back: bytes | None = None, more: int = 0
) -> AssetTurn:
    """A frame that the bare door does not take."""
    if back is None:
        token = render.id_token(frame, value["id"]) if _usable_id(value) else None
        back = render.refusal(token, wrong, more, None)
    heard = verdict(Party.CLIENT, frame, kind, value, None, None, Findings(wrong, more, None, back))
    return AssetTurn(heard, (back,), (), render.code_of(heard))


def _usable_id(value: Any) -> bool:
    """Whether *value* has an id that an answer on the bare door can carry."""
    ident = value.get("id") if isinstance(value, dict) else None
    return isinstance(ident, str | int | float) and not isinstance(ident, bool)


def _exact_params(request: Verdict) -> Any:
    """The params of *request*; for the tools that compare or store values, with every integer to the last digit."""
    message = request.value
    params = message.get("params", {})
    tool = message["method"]
    if request.exchange is not None:
        # Other methods may carry a `name` of any type: only a call names a tool by it.
        tool = params.get("name") if tool == "tools/call" else None
    if not isinstance(tool, str) or tool not in _EXACT:
        return params
    return syntax.read_exactly(request.frame, message).get("params", {})


def _subscription(token: bytes) -> dict[str, Any]:
    return {"io.modelcontextprotocol/subscriptionId": orjson.Fragment(token)}


def _acknowledged(token: bytes) -> bytes:
    params = {"_meta": _subscription(token), "notifications": {}}
    method = "notifications/subscriptions/acknowledged"
    return orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params})


def _ended(token: bytes) -> dict[str, Any]:
    return {"resultType": "complete", "_meta": _subscription(token)}

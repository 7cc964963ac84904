"""
The asset server: a frame in, frames out. No I/O except in `populate_backend`, no transport, no clock.

A connection that opens an MCP conversation (`initialize`, or a revision in `_meta`) is judged like any other. Any other
connection follows specs/001: the seven tools as bare methods, one line for each request and response; a method that is
not a tool is `unsupported`.

Judging and answering are separate: an edge may judge the next frame while a slow request is still being answered.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson

from assay.assets.asset_tools import TOO_LARGE, TOOLS
from assay.assets.mcp_content import MethodError
from assay.assets.mcp_methods import Methods, capabilities
from assay.edges.recorder import Recorder
from assay.guard.internal_errors import failed
from assay.judge import contract, envelope, framing, render, syntax
from assay.judge.conversation import NO_FACTS, Conversation, Facts
from assay.judge.partial_frame import outline
from assay.model.json_values import REVISION_KEY
from assay.model.limits import REQUESTS, Limits
from assay.model.verdict import Findings, Kind, Party, Verdict, Violation, verdict
from assay.rules.report import Report
from assay.schema.budget import Budget
from assay.schema.tool_contract import Contract
from assay.schema.tool_contracts import ToolList
from assay.spec.methods import revisions_of

WAITING: Final = "populate_backend"
"""The one tool that waits for another service."""

_WAITING: Final = WAITING.encode()

_SHORT: Final = 4096
"""Bytes of a frame that is judged and answered in well under a millisecond, whatever its content."""

_DECLARED: Final = capabilities()
_CONTRACTS: Final = {name: Contract({"name": name, "inputSchema": tool.input}) for name, tool in TOOLS.items()}
_LIST: Final = ToolList(_CONTRACTS)
"""The contracts of our tools, the same in every revision and connection. Compiled on first use."""

# specs/001 accepts any number as an id; the rest of the envelope is that of MCP.
_BARE: Final = envelope.MCP._replace(id_types=(str, int, float), id_words="a string or a number")

# These tools compare or store their arguments.
_EXACT: Final = frozenset({"diff_assets", "populate_backend"})

# Their results are checked when they are made, so the conversation need not judge them again.
_VOUCHED: Final = frozenset({"tools/call", "tools/list"})


class AssetTurn(NamedTuple):
    """The result of one frame."""

    verdict: Verdict
    said: Sequence[bytes] = ()
    """Frames to send at once: refusals."""
    asked: Sequence[Verdict] = ()
    """Accepted requests, to be answered."""
    code: str | None = None
    """The canonical error of a frame that was refused."""

    def frames(self, answers: "Sequence[Settled]") -> Sequence[bytes]:
        """Return all frames to send, with *answers*; for a batch, one array."""
        said = [*self.said, *(each.onward or b"" for each, _ in answers)]
        if not self.verdict.parts:
            return said
        together = render.array(said)
        return () if together is None else (together,)


Answer = tuple[bytes, str | None]
"""The response to a request, and its canonical error, if it is an error."""

Settled = tuple[Verdict, str | None]
"""The verdict on a response, and its canonical error, if it is an error."""


class AssetServer:
    """One connection to the asset server."""

    def __init__(
        self,
        methods: Methods,
        *,
        limits: Limits = REQUESTS,
        tier: str | None = None,
        revision: str | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """
        With *revision* the conversation counts as already opened in it.

        *recorder* records each frame and the responses to it, and knows the id that the records have for a request.
        """
        self._methods = methods
        self._limits = limits
        self._tier = tier or methods.tier
        self._recorder = None if recorder is None or recorder.idle else recorder
        self._conversation = Conversation(limits=limits, revision=revision)
        self._unopened = revision is None
        self._garbage = 0
        # Our tools are known without a list: calls are judged by their contracts from the first one on.
        tools = self._conversation.tools
        tools.expect(_LIST)
        tools.declared, tools.complete = _DECLARED, True

    def respond(self, frame: bytes) -> Sequence[bytes]:
        """Return the frames to send for *frame*, in order, and record them."""
        recorder = self._recorder
        if recorder is None:
            turn = self.hear(frame)
            return turn.frames(self.answers(turn))
        began = recorder.clock()
        turn = self.hear(frame)
        if turn.verdict.kind == "blank":
            return ()
        moment = recorder.moment(turn.verdict, began)
        answers = self.answers(turn, moment.request_id)
        recorder.exchange(turn, answers, moment)
        return turn.frames(answers)

    def may_take_long(self, frame: bytes) -> bool:
        """Whether *frame* could take so long that earlier responses should be sent first."""
        return len(frame) > _SHORT or _WAITING in frame

    def hear(self, frame: bytes, facts: Facts = NO_FACTS) -> AssetTurn:
        """Judge *frame*; return what to send and what to answer."""
        if self._unopened and facts.revision is None:
            turn = self._bare(frame, facts.transport)
            if turn is not None:
                return turn
        heard = self._conversation.hear(Party.CLIENT, frame, facts)
        if self._unopened:
            self._unopened = self._conversation.revision is None
        if heard.findings is None:
            return AssetTurn(heard, (), (heard,)) if heard.kind == "request" else AssetTurn(heard)
        parts = heard.parts or (heard,)
        asked = [each for each in parts if each.kind == "request" and each.onward is not None]
        refusals = [back for each in parts if (back := self._refusal(each)) is not None]
        if heard.back is not None and not refusals:
            refusals = [heard.back]
        return AssetTurn(heard, refusals, asked, render.code_of(heard))

    def answers(self, turn: AssetTurn, request_id: str | None = None) -> list[Settled]:
        """Return the responses to all accepted requests, in order."""
        settled = []
        for request in turn.asked:
            answer = self.answer(request, request_id)
            settled.append((self.settle(request, answer), answer[1]))
        return settled

    def answer(self, request: Verdict, request_id: str | None = None) -> Answer:
        """
        Return the response to *request*; never raises. Does not use the conversation, so any thread may call it.

        *request_id* is its id in the records; an id from the caller has precedence.
        """
        message, exchange = request.value, request.exchange
        token = render.id_token(request.frame, message["id"])
        method = message["method"]
        try:
            params = message.get("params", {})
            # Other methods may have a `name` of any type: only in a call it is a tool.
            tool = method if exchange is None else params.get("name") if method == "tools/call" else None
            if tool in _EXACT:
                params = syntax.read_exactly(request.frame, message).get("params", {})
            if exchange is None:
                result = self._methods.bare(method, params, self._tier)
            else:
                result = self._methods.answer(method, params, exchange.entry.revision, self._tier, request_id)
            return render.result_frame(token, result), None
        except MethodError as failure:
            return render.error_frame(token, failure.error(), failure.data, None), failure.code
        except Exception as error:  # a bug of ours must not affect the next request
            logging.getLogger("assay").exception("%s failed", method, exc_info=error)
            return render.failure(token, "INTERNAL_ERROR", (), 0, None), "INTERNAL_ERROR"

    def settle(self, request: Verdict, answer: Answer) -> Verdict:
        """Return the verdict on *answer*. A response that is not a tool result is judged as for any other server."""
        exchange, frame = request.exchange, answer[0]
        if exchange is None:
            return verdict(Party.SERVER, frame, "result", None, None, None)
        if exchange.entry.name in _VOUCHED or len(frame) > self._limits.frame_bytes:
            # The limit is for messages of others: our own schemas may be longer.
            return self._conversation.vouch(exchange, frame)
        said = self._conversation.hear(Party.SERVER, frame)
        self._unopened = self._conversation.revision is None
        return said

    def failed(self, frame: bytes, error: Exception) -> Sequence[bytes]:
        """
        Return the answers to *frame* after *error*, an internal error: one for each request in it, nothing otherwise.

        For any failure between reading a frame and sending its responses. The error is logged, and no request of the
        frame stays open.
        """
        made = failed(self._conversation, Party.CLIENT, frame, error)
        back = made.back
        if back is None and made.value is None:
            found = outline(frame, b"")
            if found.asks and found.token is not None:
                back = render.refusal(found.token, made.violations, made.more, None)
        return () if back is None else (back,)

    # ── MCP ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _refusal(self, heard: Verdict) -> bytes | None:
        """Return the response to a refused message. For a tool it is an envelope, too (specs/004)."""
        exchange = heard.exchange
        if heard.back is None or exchange is None or not exchange.features.failed_results:
            return heard.back
        tool = exchange.tool
        wrong = [each for each in heard.violations if each.action == "refuse"]
        if tool is None or tool not in TOOLS or any(each.rule != "contract/input" for each in wrong):
            return heard.back
        params = heard.value["params"]
        known_as = self._recorder.identify(heard) if self._recorder is not None else None
        result = self._methods.refused(tool, params, wrong, exchange.revision, self._tier, known_as)
        return render.result_frame(render.id_token(heard.frame, heard.value["id"]), result)

    # ── the bare door ────────────────────────────────────────────────────────────────────────────────────────────────

    def _bare(self, frame: bytes, transport: str) -> AssetTurn | None:
        """Return the result of a frame with a bare method; None for a message of MCP."""
        limits = self._limits
        large = framing.check(frame, limits.frame_bytes)
        if large is not None:
            # Over HTTP the status shows it.
            back = None if transport == "http" else render.result_frame(b"null", orjson.dumps(TOO_LARGE))
            return _refused(frame, "unreadable", None, (large,), back)
        value = syntax.read(frame, limits.depth)
        if isinstance(value, Violation):
            if framing.is_blank(frame):
                return AssetTurn(verdict(Party.CLIENT, frame, "blank", None, None, None, Findings(())))
            return _refused(frame, "unreadable", None, (value,), answered=self._answers_garbage(transport))
        if isinstance(value, dict) and is_mcp(value):
            self._garbage = 0
            return None
        kind = envelope.classify(value, envelope.MCP, limits.id_bytes)
        if kind not in ("request", "notification"):
            faults = tuple(envelope.check_call(value, _BARE, id_limit=limits.id_bytes))[: limits.violations]
            if faults:
                answered = _usable_id(value) or self._answers_garbage(transport)
                return _refused(frame, "unreadable", value, faults, answered=answered)
        self._garbage = 0
        if "id" not in value:
            return AssetTurn(verdict(Party.CLIENT, frame, "notification", value, None, None))
        known, params = _CONTRACTS.get(value["method"]), value.get("params", {})
        if known is not None and (not known.valid_input(params) or known.is_odd(params)):
            report = Report(None, Budget(frame, limits.violations))
            contract.check_bare_input(known, params, report)
            if report.stops:
                return _refused(frame, "request", value, tuple(report.found), more=report.more)
        heard = verdict(Party.CLIENT, frame, "request", value, None, None)
        return AssetTurn(heard, (), (heard,))

    def _answers_garbage(self, transport: str) -> bool:
        """Whether an unreadable frame is answered: over STDIO only some in a row are, over HTTP every request is."""
        self._garbage += 1
        return transport == "http" or self._garbage <= self._limits.garbage_answers


def is_mcp(message: dict[str, Any]) -> bool:
    """Whether *message* opens an MCP conversation, or looks like part of one."""
    method, params = message.get("method"), message.get("params")
    if isinstance(method, str) and method not in TOOLS and revisions_of(method):
        return True
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and REVISION_KEY in meta


def _refused(
    frame: bytes,
    kind: Kind,
    value: Any,
    wrong: tuple[Violation, ...],
    back: bytes | None = None,
    more: int = 0,
    *,
    answered: bool = True,
) -> AssetTurn:
    """Return the error for a frame that is not a valid bare method."""
    if back is None and answered:
        token = render.id_token(frame, value["id"]) if _usable_id(value) else None
        back = render.refusal(token, wrong, more, None)
    heard = verdict(Party.CLIENT, frame, kind, value, None, None, Findings(wrong, more, None, back))
    return AssetTurn(heard, () if back is None else (back,), (), render.code_of(heard))


def _usable_id(value: Any) -> bool:
    """Whether *value* has an id that is valid for bare methods."""
    ident = value.get("id") if isinstance(value, dict) else None
    return isinstance(ident, str | int | float) and not isinstance(ident, bool)

"""
The asset server: a frame in, frames out. No I/O but that of `populate_backend`, no transport.

Two doors. A connection that opens an MCP conversation (`initialize`, or a revision in `_meta`) is MCP's, and is judged
in both directions like any other. One that has not is specs/001's: the seven tools as bare methods, one line a request,
one line an answer, and a method that is no tool is `unsupported`.
"""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from assay import render
from assay.assets.methods import MethodError, Methods
from assay.assets.tools import TOOLS
from assay.conversation import Conversation
from assay.engine.compiled import compile_schema
from assay.ladder import envelope, framing, syntax
from assay.limits import DEFAULT, Limits
from assay.rules import broken
from assay.spec.methods import revisions_of
from assay.spec.revisions import LATEST
from assay.verdict import Party, Verdict, Violation

TOO_LARGE: Final = {
    "ok": False,
    "reason": "validation_failed",
    "errors": [{"path": "", "msg": "payload_too_large"}],
}
"""What a frame over the limit gets on the bare door (specs/001 §6)."""

UNSUPPORTED: Final = {"ok": False, "reason": "unsupported", "detail": "tool not implemented"}

_CONTRACTS: Final = {name: compile_schema(tool.input) for name, tool in TOOLS.items()}

# specs/001 takes any number for an id; all else of the envelope is MCP's.
_BARE: Final = envelope.MCP._replace(id_types=(str, int, float), id_words="a string or a number")


class AssetServer:
    """One connection to the asset server."""

    def __init__(self, methods: Methods, *, limits: Limits = DEFAULT) -> None:
        self._methods = methods
        self._limits = limits
        self._conversation = Conversation(limits=limits)
        self._teach(LATEST)

    def hear(self, frame: bytes) -> Iterator[bytes]:
        """What is to be sent for *frame*, in order."""
        answer = self._bare(frame) if self._conversation.revision is None else None
        if answer is None:
            yield from self._mcp(frame)
        elif answer:
            yield answer

    # ── the bare door ────────────────────────────────────────────────────────────────────────────────────────────────

    def _bare(self, frame: bytes) -> bytes | None:
        """The answer of the bare door, empty where none is due; None for a frame that is MCP's."""
        if framing.check(frame, self._limits.frame_bytes):
            return _result(b"null", TOO_LARGE)
        value = syntax.read(frame, self._limits.depth)
        if isinstance(value, Violation):
            return b"" if framing.is_blank(frame) else render.refusal(None, (value,), 0, None)
        method = value.get("method") if isinstance(value, dict) else None
        if isinstance(method, str) and method not in TOOLS and revisions_of(method):
            return None
        faults = tuple(envelope.check_call(value, _BARE, id_limit=self._limits.id_bytes))
        if faults:
            token = None if render.usable_id(frame, value) is None else render.id_token(frame, value["id"])
            return render.refusal(token, faults[: self._limits.violations], 0, None)
        if "id" not in value:
            return b""
        return self._call(render.id_token(frame, value["id"]), value["method"], value.get("params", {}))

    def _call(self, token: bytes, method: str, params: dict[str, Any]) -> bytes:
        tool = TOOLS.get(method)
        if tool is None:
            return _result(token, UNSUPPORTED)
        contract = _CONTRACTS[method]
        if contract.is_valid(params):
            return _result(token, self._methods.bare(tool, params))
        faults = contract.faults(params, at="/params", most=self._limits.violations)
        wrong = [broken("contract/input", each, detail=f"input of {method}") for each in faults.distinct()]
        return render.failure(token, "INVALID_TOOL_INPUT", wrong, faults.more, None)

    # ── MCP ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _mcp(self, frame: bytes) -> Iterator[bytes]:
        verdict = self._conversation.hear(Party.CLIENT, frame)
        if verdict.back is not None:
            yield verdict.back
        for part in verdict.parts or (verdict,):
            if part.kind == "request" and part.onward is not None:
                yield from self._answered(part)

    def _answered(self, verdict: Verdict) -> Iterator[bytes]:
        """The answer to a request that was let through, judged like one of any other server."""
        revision = verdict.revision or ""
        method, params = verdict.value["method"], verdict.value.get("params", {})
        token = render.id_token(verdict.frame, verdict.value["id"])
        if method == "subscriptions/listen":
            # Nothing changes while the server runs: it is acknowledged, and stays open until the client has enough.
            yield self._said(_acknowledged(verdict.value["id"]))
            return
        try:
            answer = _result(token, self._methods.answer(method, params, revision))
        except MethodError as failure:
            data = {"data": failure.data} if failure.data else {}
            error = {"code": failure.code, "message": failure.message, **data}
            answer = b'{"jsonrpc":"2.0","id":' + token + b',"error":' + orjson.dumps(error) + b"}"
        yield self._said(answer)
        if method == "initialize" and self._conversation.revision is not None:
            self._teach(self._conversation.revision)

    def _said(self, frame: bytes) -> bytes:
        """*frame*, if it keeps to the protocol; the error in its place if we do not."""
        return self._conversation.hear(Party.SERVER, frame).onward or b""

    def _teach(self, revision: str) -> None:
        """Our own tools need not be listed to be known: calls are held to their contracts from the first one on."""
        tools = self._methods.tools(revision)
        outputs = revision >= "2025-06-18"
        wrong = list(self._conversation.tools.learn(tools, first=True, last=True, outputs=outputs, revision=revision))
        assert not wrong, wrong  # noqa: S101 - our own schemas, the same for every connection


def _result(token: bytes, result: dict[str, Any]) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + token + b',"result":' + orjson.dumps(result) + b"}"


def _acknowledged(ident: Any) -> bytes:
    params = {"_meta": {"io.modelcontextprotocol/subscriptionId": ident}, "notifications": {}}
    method = "notifications/subscriptions/acknowledged"
    return orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params})

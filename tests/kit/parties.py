"""
Conversations brought into a state, and the frames to do it with.

Everything that can be declared is declared, so that what a law sees refused is refused for its own sake.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from assay.judge.conversation import Conversation
from assay.model.json_values import CAPABILITIES_KEY, REVISION_KEY
from assay.model.limits import DEFAULT, Limits
from assay.model.verdict import Party, Verdict
from assay.spec.methods import Method, methods
from assay.spec.revisions import REVISIONS, handshake
from assay.spec.schema import ProtocolSchema, protocol_schema
from kit.generated_messages import Node, least, part_of
from kit.talk import found

CLIENT, SERVER = Party.CLIENT, Party.SERVER

CLIENT_CAPABILITIES: dict[str, Any] = {
    "roots": {"listChanged": True},
    "sampling": {"context": {}, "tools": {}},
    "elicitation": {"form": {}, "url": {}},
    "tasks": {
        "list": {},
        "cancel": {},
        "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
    },
}
SERVER_CAPABILITIES: dict[str, Any] = {
    "logging": {},
    "completions": {},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "tools": {"listChanged": True},
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
}
META: dict[str, Any] = {REVISION_KEY: "2026-07-28", CAPABILITIES_KEY: CLIENT_CAPABILITIES}
"""What each request of a revision without handshake carries."""

_INFO = {"name": "a party", "version": "1"}
_CACHE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


# ── frames ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def frame(message: Any, *, ascii_only: bool = False, spaced: bool = False) -> bytes:
    """*message* as bytes; by the standard library, which writes integers of any size."""
    separators = None if spaced else (",", ":")
    return json.dumps(message, ensure_ascii=ascii_only, separators=separators).encode()


def request(ident: Any, method: str, params: Any = None) -> dict[str, Any]:
    """A request, without params if they are None."""
    return {"jsonrpc": "2.0", "id": ident, "method": method} | ({} if params is None else {"params": params})


def notification(method: str, params: Any = None) -> dict[str, Any]:
    """A notification, without params if they are None."""
    return {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})


def result(ident: Any, value: Any) -> dict[str, Any]:
    """The answer to a request that succeeded."""
    return {"jsonrpc": "2.0", "id": ident, "result": value}


def ask(revision: str, ident: Any, token: Any = None) -> dict[str, Any]:
    """A request that any client of *revision* may make, and in the handshake revisions any server."""
    meta = ({} if handshake(revision) else META) | ({} if token is None else {"progressToken": token})
    return request(ident, "ping" if handshake(revision) else "tools/list", {"_meta": meta})


# ── states ───────────────────────────────────────────────────────────────────────────────────────────────────────────

Mode = Literal["enforce", "audit"]


def negotiated(
    revision: str, mode: Mode = "enforce", limits: Limits = DEFAULT, without: str | None = None
) -> Conversation:
    """
    A conversation in which initialize was answered, and the client has not yet said that it is ready.

    *without* names a capability that neither side declares.
    """
    conversation = Conversation(mode=mode, limits=limits)
    theirs, ours = (
        {name: declared for name, declared in capabilities.items() if name != without}
        for capabilities in (CLIENT_CAPABILITIES, SERVER_CAPABILITIES)
    )
    params = {"protocolVersion": revision, "capabilities": theirs, "clientInfo": _INFO}
    said(conversation, CLIENT, request("opening", "initialize", params))
    answer = {"protocolVersion": revision, "capabilities": ours, "serverInfo": _INFO}
    said(conversation, SERVER, result("opening", answer))
    return conversation


def opened(
    revision: str,
    mode: Mode = "enforce",
    tools: Sequence[dict[str, Any]] = (),
    limits: Limits = DEFAULT,
    without: str | None = None,
) -> Conversation:
    """A conversation in *revision* where both sides have declared everything, and the server has listed *tools*."""
    if handshake(revision):
        conversation = negotiated(revision, mode, limits, without)
        said(conversation, CLIENT, notification("notifications/initialized"))
    else:
        conversation = Conversation(mode=mode, limits=limits)
        said(conversation, CLIENT, request("opening", "server/discover", {"_meta": META}))
        # Without a handshake, tasks are an extension.
        ours = {name: declared for name, declared in SERVER_CAPABILITIES.items() if name != "tasks"}
        answer = _CACHE | {"supportedVersions": [revision], "capabilities": ours}
        said(conversation, SERVER, result("opening", answer))
    if tools:
        listed(conversation, revision, tools)
    return conversation


def listed(conversation: Conversation, revision: str, tools: Sequence[dict[str, Any]]) -> None:
    """The server lists *tools*, all on one page."""
    said(conversation, CLIENT, request("listing", "tools/list", {} if handshake(revision) else {"_meta": META}))
    said(conversation, SERVER, result("listing", ({} if handshake(revision) else _CACHE) | {"tools": list(tools)}))


def said(conversation: Conversation, party: Party, message: Any) -> Verdict:
    """Has *party* say *message*, which nothing can be wrong with."""
    verdict = conversation.hear(party, frame(message))
    assert not found(verdict), verdict.violations
    return verdict


# ── every method of every revision ───────────────────────────────────────────────────────────────────────────────────


class Case(NamedTuple):
    """A method, as one party may send it in one revision."""

    revision: str
    sender: Party
    method: Method

    @property
    def schema(self) -> ProtocolSchema:
        """The schema it is judged by."""
        return protocol_schema(self.revision)

    @property
    def needs_params(self) -> bool:
        """Whether it may not go without params."""
        return "params" in self.schema.definition(self.method.definition).get("required", ())

    def params(self) -> Node:
        """
        What its params have to fit.

        Up to 2025-06-18 that is its own definition and that of any JSON-RPC request or notification, which alone speaks
        of progress tokens.
        """
        node = part_of(self.schema, self.method.definition, "/properties/params")
        if self.revision > "2025-06-18":
            return node
        return {"allOf": [node, part_of(self.schema, self._base, "/properties/params")]}

    def takes(self, params: Any) -> bool:
        """Whether the compiled schema accepts *params*."""
        names = [self.method.definition] + ([] if self.revision > "2025-06-18" else [self._base])
        return all(self.schema.validator(name, "/properties/params").is_valid(params) for name in names)

    def plain(self) -> dict[str, Any] | None:
        """The least params it may be sent with."""
        params: dict[str, Any] = least(self.schema, self.params())
        return self.placed(params) or None

    def placed(self, params: dict[str, Any]) -> dict[str, Any]:
        """*params* with the revision in them, where a revision has to be named."""
        if self.method.name == "initialize":
            return params | {"protocolVersion": self.revision}
        if self.method.kind == "request" and not handshake(self.revision):
            return params | {"_meta": params["_meta"] | {REVISION_KEY: self.revision}}
        return params

    @property
    def _base(self) -> str:
        return "JSONRPCRequest" if self.method.kind == "request" else "JSONRPCNotification"

    def __str__(self) -> str:
        return f"{self.revision}-{self.sender}-{self.method.name}"


CASES = tuple(
    Case(revision, Party(sender), method)
    for revision in REVISIONS
    for method in methods(revision).values()
    for sender in method.senders
)
REQUESTS = tuple(case for case in CASES if case.method.kind == "request")

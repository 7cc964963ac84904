"""
Words to write short conversations with, once for all revisions: who says what, and what is wrong with it.

A row is one conversation and the page of the specification that it is about. What differs between revisions only in
form (`_meta` of requests, `resultType` of results, the handshake) is added when the row is played in a revision.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import orjson

from assay.judge.conversation import NO_FACTS, Facts
from assay.model.verdict import Party
from assay.spec.revisions import LATEST, REVISIONS, handshake

ALL: Final = tuple(REVISIONS)
HANDSHAKE: Final = tuple(each for each in REVISIONS if handshake(each))
STATELESS: Final = (LATEST,)


def since(revision: str, until: str = LATEST) -> tuple[str, ...]:
    """The revisions from *revision* on, up to *until*."""
    return tuple(each for each in REVISIONS if revision <= each <= until)


@dataclass(frozen=True)
class Step:
    """One message of one party."""

    party: Party
    message: Any
    """The message, or the frame itself."""
    breaks: str | None = None
    """The rule that it breaks."""
    kind: str = ""
    """The method that it asks or answers, for what a revision adds to it."""
    meta: Mapping[str, Any] | None = None
    """What else the `_meta` of a request has."""
    facts: Facts = NO_FACTS
    plain: bool = False
    """Whether nothing is added to it."""

    def frame(self, revision: str) -> bytes:
        """What is said in *revision*."""
        message = self.message
        if isinstance(message, bytes):
            return message
        if not self.plain and isinstance(message, dict):
            message = _completed(self, message, revision)
        return orjson.dumps(message)


class Row(NamedTuple):
    """One conversation, as it may go in some revisions."""

    says: str
    """What may be done, or must not be, in our words."""
    page: str
    """The page of the specification."""
    revisions: tuple[str, ...]
    steps: "list[Step | Opening]"


CACHED: Final = frozenset(
    {"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read", "server/discover"}
)
"""What has cache hints in the newest revision."""

CLIENT: Final[dict[str, Any]] = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}
SERVER: Final[dict[str, Any]] = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
}
INFORMATION: Final = {"name": "a", "version": "1"}


@dataclass(frozen=True)
class Opening:
    """The way into a conversation: the handshake, or what the server says of itself where there is none."""

    client: Mapping[str, Any]
    server: Mapping[str, Any]

    def steps(self, revision: str) -> Iterator[Step]:
        """What is said."""
        if handshake(revision):
            yield from shaken(revision, self.client, self.server)
        else:
            yield ask("open", "server/discover", declares=self.client)
            yield gives("open", "server/discover", {"supportedVersions": [LATEST], "capabilities": self.server})


def shaken(revision: str, client: Mapping[str, Any], server: Mapping[str, Any]) -> list[Step]:
    """The handshake."""
    asked: dict[str, Any] = {"protocolVersion": revision, "capabilities": client, "clientInfo": INFORMATION}
    answered = {"protocolVersion": revision, "capabilities": server, "serverInfo": INFORMATION}
    return [
        ask("open", "initialize", **asked),
        gives("open", "initialize", answered),
        tells("notifications/initialized"),
    ]


def opened(*, client: Mapping[str, Any] = CLIENT, server: Mapping[str, Any] = SERVER) -> Opening:
    """The conversation is opened, with what both declare."""
    return Opening(client, server)


# ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────────────


def ask(ident: Any, method: str, *, declares: Any = CLIENT, meta: Any = None, **params: Any) -> Step:
    """The client asks."""
    message = {"jsonrpc": "2.0", "id": ident, "method": method, **({"params": params} if params else {})}
    own = {"io.modelcontextprotocol/clientCapabilities": declares}
    return Step(Party.CLIENT, message, kind=method, meta={**own, **(meta or {})})


def gives(ident: Any, method: str, value: Any = None) -> Step:
    """The server answers what the client has asked."""
    return Step(Party.SERVER, {"jsonrpc": "2.0", "id": ident, "result": {} if value is None else value}, kind=method)


def fails(ident: Any, code: int, **more: Any) -> Step:
    """The server answers with an error."""
    return Step(Party.SERVER, _error(ident, code, more))


def says(method: str, **params: Any) -> Step:
    """The server tells something."""
    return Step(Party.SERVER, _note(method, params))


def wants(ident: Any, method: str, **params: Any) -> Step:
    """The server asks."""
    return Step(Party.SERVER, {**_note(method, params), "id": ident})


def answers(ident: Any, value: Any = None) -> Step:
    """The client answers what the server has asked."""
    return Step(Party.CLIENT, {"jsonrpc": "2.0", "id": ident, "result": {} if value is None else value})


def declines(ident: Any, code: int, **more: Any) -> Step:
    """The client answers with an error."""
    return Step(Party.CLIENT, _error(ident, code, more))


def tells(method: str, **params: Any) -> Step:
    """The client tells something."""
    return Step(Party.CLIENT, _note(method, params))


def sent(message: Any) -> Step:
    """The client sends just this: a message, or the bytes of a frame."""
    return Step(Party.CLIENT, message, plain=True)


def heard(message: Any) -> Step:
    """The server sends just this."""
    return Step(Party.SERVER, message, plain=True)


def bare(step: Step) -> Step:
    """The same, to which nothing is added."""
    return replace(step, plain=True)


def over_http(step: Step, **headers: str) -> Step:
    """The same as a POST with these headers, beside those that follow from it."""
    method = step.message["method"]
    own = {"mcp-protocol-version": LATEST, "mcp-method": method}
    named = step.message.get("params", {}).get("name") or step.message.get("params", {}).get("uri")
    if method in {"tools/call", "prompts/get", "resources/read"}:
        own["mcp-name"] = named
    given = {**own, **{name.replace("_", "-"): value for name, value in headers.items()}}
    kept = {name.encode(): value.encode() for name, value in given.items() if value != "none"}
    return replace(step, facts=Facts("http", LATEST, kept))


def bad(rule: str, step: Step) -> Step:
    """The same, which breaks *rule*."""
    return replace(step, breaks=rule)


Rows = list[Row]
Made = Callable[[str], list[Step]]


def played(row: Row, revision: str) -> list[Step]:
    """All messages of *row* in *revision*."""
    return [step for each in row.steps for step in (each.steps(revision) if isinstance(each, Opening) else [each])]


# ── what a revision adds ─────────────────────────────────────────────────────────────────────────────────────────────


def _note(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}


def _error(ident: Any, code: int, more: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": "no", **more}}


def _completed(step: Step, message: dict[str, Any], revision: str) -> dict[str, Any]:
    if handshake(revision):
        extra = {name: each for name, each in (step.meta or {}).items() if not name.startswith("io.model")}
        return _with_meta(message, extra) if extra else message
    if "method" in message and "id" in message and step.party is Party.CLIENT:
        return _with_meta(message, {"io.modelcontextprotocol/protocolVersion": revision, **(step.meta or {})})
    if isinstance(message.get("result"), dict) and step.party is Party.SERVER:
        added: dict[str, Any] = {"resultType": "complete"}
        if step.kind in CACHED:
            added |= {"ttlMs": 0, "cacheScope": "private"}
        if "resultType" in message["result"] and message["result"]["resultType"] != "complete":
            added = {}
        return {**message, "result": {**added, **message["result"]}}
    return message


def _with_meta(message: dict[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
    params = message.get("params", {})
    if not isinstance(params, dict):
        return message
    own = params.get("_meta", {})
    return {**message, "params": {**params, "_meta": {**meta, **own} if isinstance(own, dict) else own}}

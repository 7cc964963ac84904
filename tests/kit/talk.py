"""A conversation to test with: says messages as either party, and opens the handshake."""

from typing import Any, NamedTuple

import orjson

from assay.judge.conversation import Conversation
from assay.model.verdict import Party, Verdict, Violation
from assay.spec.revisions import handshake

ALL_CLIENT: dict[str, Any] = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}
ALL_SERVER: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
}

SEARCH: dict[str, Any] = {
    "name": "search",
    "inputSchema": {
        "type": "object",
        "properties": {"words": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
        "required": ["words"],
    },
    "outputSchema": {"type": "object", "properties": {"hits": {"type": "integer"}}, "required": ["hits"]},
}
HITS: dict[str, Any] = {"content": [], "structuredContent": {"hits": 1}}
"""A result of it."""


def request(ident: Any, method: str, params: Any = None) -> dict[str, Any]:
    """A request, params left out if they are None."""
    head = {"jsonrpc": "2.0", "id": ident, "method": method}
    return head if params is None else {**head, "params": params}


def notification(method: str, params: Any = None) -> dict[str, Any]:
    """A notification, params left out if they are None."""
    head = {"jsonrpc": "2.0", "method": method}
    return head if params is None else {**head, "params": params}


def result(ident: Any, value: Any) -> dict[str, Any]:
    """A result."""
    return {"jsonrpc": "2.0", "id": ident, "result": value}


def error(ident: Any, code: int, message: str = "no", **more: Any) -> dict[str, Any]:
    """An error."""
    return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message, **more}}


def call(ident: Any, tool: str, arguments: Any) -> dict[str, Any]:
    """A call of a tool, as the handshake revisions have it."""
    return request(ident, "tools/call", {"name": tool, "arguments": arguments})


class Talk:
    """Two parties and what is concluded of what they say."""

    def __init__(self, **options: Any) -> None:
        self.conversation = Conversation(**options)
        self._lists = 0

    def client(self, message: Any) -> Verdict:
        """What is concluded when the client says *message*."""
        return self.conversation.hear(Party.CLIENT, frame_of(message))

    def server(self, message: Any) -> Verdict:
        """What is concluded when the server says *message*."""
        return self.conversation.hear(Party.SERVER, frame_of(message))

    def opened(
        self, revision: str = "2025-11-25", *, client: dict[str, Any] = ALL_CLIENT, server: dict[str, Any] = ALL_SERVER
    ) -> "Talk":
        """The same, after the handshake."""
        assert handshake(revision)
        information = {"name": "a", "version": "1"}
        params = {"protocolVersion": revision, "capabilities": client, "clientInfo": information}
        good(self.client(request("init", "initialize", params)))
        answer = {"protocolVersion": revision, "capabilities": server, "serverInfo": information}
        good(self.server(result("init", answer)))
        good(self.client(notification("notifications/initialized")))
        return self

    def listed(self, *tools: dict[str, Any]) -> "Talk":
        """The same, after the server has listed its *tools*."""
        self._lists += 1
        ident = f"list {self._lists}"
        good(self.client(request(ident, "tools/list")))
        self.server(result(ident, {"tools": list(tools)}))
        return self


def frame_of(message: Any) -> bytes:
    """*message* as a frame; bytes are one already."""
    return message if isinstance(message, bytes) else orjson.dumps(message)


NOT_JUDGED = "contract/not-judged"
"""What is reported of a call of a tool that was not listed, as most tests call one."""


def good(verdict: Verdict) -> Verdict:
    """*verdict*, of which nothing is to be said, except perhaps that the called tool was not listed."""
    assert found(verdict) == []
    assert verdict.onward is verdict.frame
    assert verdict.back is None
    return verdict


def found(verdict: Verdict) -> list[Violation]:
    """What is wrong with a message, but for the list of tools that is missing."""
    return [each for each in verdict.violations if each.rule != NOT_JUDGED]


def rules(verdict: Verdict) -> list[str]:
    """The rules that were broken, with the same exception."""
    return [each.rule for each in found(verdict)]


class Said(NamedTuple):
    """One message of a conversation that is told as a table."""

    party: Party
    message: Any
    breaks: tuple[str, ...]
    """The rules that it breaks; without any, it is good."""


def client(message: Any, *breaks: str) -> Said:
    """The client says *message*, which breaks these rules."""
    return Said(Party.CLIENT, message, breaks)


def server(message: Any, *breaks: str) -> Said:
    """The server says *message*, which breaks these rules."""
    return Said(Party.SERVER, message, breaks)


def played(talk: Talk, *steps: Said) -> Verdict:
    """The verdict on the last of *steps*; each of them breaks just what it names, and is good if that is nothing."""
    for party, message, breaks in steps:
        verdict = talk.conversation.hear(party, frame_of(message))
        assert tuple(rules(verdict)) == breaks, (message, verdict.violations)
        if not breaks:
            good(verdict)
    return verdict


def answer(verdict: Verdict) -> Any:
    """What goes back to the speaker, read."""
    assert verdict.back is not None
    return orjson.loads(verdict.back)


def replacement(verdict: Verdict) -> Any:
    """What the other party gets in place of the frame, read."""
    assert verdict.onward is not None
    assert verdict.onward is not verdict.frame
    return orjson.loads(verdict.onward)

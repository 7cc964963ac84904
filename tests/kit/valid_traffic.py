"""Good traffic of every revision, by chance but the same in every run, spelt in all the ways that JSON allows."""

import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from assay.spec.revisions import handshake

TOKEN = "progressToken"  # noqa: S105 - the protocol's name for it
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"roots": {}, "sampling": {}, "elicitation": {}},
}
INFO = {"name": "a", "version": "1"}
CLIENT = {"roots": {"listChanged": True}, "sampling": {}}
SERVER = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}, "logging": {}, "completions": {}}
TOOL = {
    "name": "search",
    "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
    "outputSchema": {"type": "object", "properties": {"hits": {"type": "integer"}}, "required": ["hits"]},
}
TEXTS = ("", "a", "é", "漢字 🙂", '"quoted"', "back\\slash", "tab\t", "\u2028", "x" * 300, "/", "null", "\x00\x1f")


class Exchanged(NamedTuple):
    """What a client says, what the server says to that, and what the client replies to what it is asked in between."""

    asked: bytes
    answered: list[bytes]
    replies: tuple[bytes, ...] = ()


def opening(revision: str) -> list[Exchanged]:
    """How a conversation begins: up to the list of tools."""
    say = Speaker(revision, "opening").spell
    listed = {"tools": [TOOL if revision >= "2025-06-18" else {**TOOL, "outputSchema": {}}]}
    if not handshake(revision):
        cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
        return [
            Exchanged(
                say({"jsonrpc": "2.0", "id": "list", "method": "tools/list", "params": {"_meta": META}}),
                [say({"jsonrpc": "2.0", "id": "list", "result": {**cached, **listed}})],
            )
        ]
    offer = {"protocolVersion": revision, "capabilities": CLIENT, "clientInfo": INFO}
    taken = {"protocolVersion": revision, "capabilities": SERVER, "serverInfo": INFO}
    if revision < "2025-06-18":
        del listed["tools"][0]["outputSchema"]
    return [
        Exchanged(
            say({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": offer}),
            [say({"jsonrpc": "2.0", "id": "open", "result": taken})],
        ),
        Exchanged(say({"jsonrpc": "2.0", "method": "notifications/initialized"}), []),
        Exchanged(
            say({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}),
            [say({"jsonrpc": "2.0", "id": "list", "result": listed})],
        ),
    ]


def exchanges(revision: str, number: int, seed: str) -> Iterator[Exchanged]:
    """So many exchanges after the opening."""
    speaker = Speaker(revision, seed)
    for _ in range(number):
        yield speaker.exchange()


class Speaker:
    """Says one thing after another."""

    def __init__(self, revision: str, seed: str) -> None:
        self.revision = revision
        self.stateless = not handshake(revision)
        self.chance = random.Random(seed)  # noqa: S311 - no secret
        self.count = 0

    def spell(self, message: dict[str, Any]) -> bytes:
        """*message* as a line, in one of many ways."""
        chance = self.chance
        if chance.random() < 0.5:
            message = dict(chance.sample(list(message.items()), len(message)))
        comma, colon = (chance.choice((first, first, first + " ", f" {first}\t")) for first in ",:")
        text = json.dumps(message, ensure_ascii=chance.random() < 0.5, separators=(comma, colon))
        return chance.choice(("", "", " ")).encode() + text.encode() + chance.choice((b"\n", b"\n", b"\r\n", b" \n"))

    def ident(self) -> str | int:
        """A new id."""
        self.count += 1
        return self.chance.choice((self.count, -self.count, f"{self.count}", f"é{self.count}", 2**53 - self.count))

    def meta(self) -> dict[str, Any]:
        """What every request of the era without handshake says of itself."""
        return META

    def exchange(self) -> Exchanged:
        """A request with its answer, and what comes in between."""
        ident, token = self.ident(), self.ident()
        method, params, outcome = self.chance.choice(self.choices())
        meta = {**(self.meta() if self.stateless else {}), **({TOKEN: token} if self.chance.random() < 0.5 else {})}
        if meta:
            params = {**params, "_meta": meta}
        asked = {"jsonrpc": "2.0", "id": ident, "method": method, **({"params": params} if params else {})}
        answered = [self.spell(each) for each in self.between(token if TOKEN in meta else None)]
        replies: list[bytes] = []
        if not self.stateless and self.chance.random() < 0.2:
            back = self.ident()
            answered.append(self.spell({"jsonrpc": "2.0", "id": back, "method": "roots/list"}))
            replies.append(self.spell({"jsonrpc": "2.0", "id": back, "result": {"roots": [{"uri": "file:///a"}]}}))
        if self.chance.random() < 0.1:
            failed = {"code": -32602, "message": self.chance.choice(TEXTS), "data": {"a": [1.5e300]}}
            answered.append(self.spell({"jsonrpc": "2.0", "id": ident, "error": failed}))
        else:
            answered.append(self.spell({"jsonrpc": "2.0", "id": ident, "result": outcome}))
        return Exchanged(self.spell(asked), answered, tuple(replies))

    def between(self, token: Any) -> Iterator[dict[str, Any]]:
        """What a server says before it answers."""
        if token is not None:
            for step in range(self.chance.randrange(4)):
                progress = {TOKEN: token, "progress": step + 0.5, "total": 4}
                yield {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
        if not self.stateless and self.chance.random() < 0.3:
            told = {"level": "info", "logger": "x", "data": {"text": self.chance.choice(TEXTS), "n": 2**70}}
            yield {"jsonrpc": "2.0", "method": "notifications/message", "params": told}

    def choices(self) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Methods, params and results."""
        text = self.chance.choice(TEXTS)
        content: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
        if self.revision >= "2025-06-18":
            content["structuredContent"] = {"hits": len(text), "more": {text: [text, None, 1e-7, 12345678901234567890]}}
        failed = {"content": content["content"], "isError": True}
        read = {"contents": [{"uri": "file:///a", "text": text}, {"uri": "file:///b", "blob": "AAAA"}]}
        found: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
            ("tools/call", {"name": "search", "arguments": {"words": text, "x": [text]}}, content),
            ("tools/call", {"name": "search", "arguments": {"words": text}}, failed),
            ("resources/read", {"uri": "file:///a"}, read),
            ("resources/list", {}, {"resources": [{"uri": "file:///a", "name": text}]}),
            ("prompts/list", {}, {"prompts": [{"name": text}]}),
            ("prompts/get", {"name": "p"}, {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}),
        ]
        if not self.stateless:
            return [*found, ("ping", {}, {}), ("logging/setLevel", {"level": "debug"}, {})]
        cached = {"ttlMs": 1000, "cacheScope": "private"}
        return [
            (
                name,
                params,
                {"resultType": "complete", **(cached if name.endswith(("/list", "/read")) else {}), **result},
            )
            for name, params, result in found
        ]

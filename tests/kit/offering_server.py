"""
A server that offers what a file says, each time it is asked.

    offering_server.py OFFER

`OFFER` is the path of a JSON object:

    name, version       of the server
    instructions
    revisions           that it speaks; the first is its own
    tools, prompts, resourceTemplates
    page                entries of one page
    tags                a tag, or an array of one for each page, by method
    tagged              the member that has the tag, if not "tag"
    record              a file for all that the server is told
    next                another such object, which holds from the second listing of tools on, after a list_changed
    capable             another such object, whose members hold for a client that declares capabilities
    on                  what is done in place of an answer, by method: an array of texts, each written to stdout as a
                        line; or "exit", "silence", "forever", "spawn"
"""

import json
import os
import signal
import sys
import time
from typing import Any

MEMBERS = {"tools/list": "tools", "prompts/list": "prompts", "resources/templates/list": "resourceTemplates"}
STATELESS = "2026-07-28"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
LIFETIME = 60


class Server:
    """One run."""

    def __init__(self, offer: dict[str, Any]) -> None:
        self.offer = offer
        self.listings = 0

    def take(self, message: dict[str, Any]) -> None:
        """One message."""
        method = message.get("method")
        if declares_capabilities(message.get("params") or {}):
            self.offer = {**self.offer, **self.offer.get("capable", {})}
        if "id" not in message or method is None:
            return
        unusual = self.offer.get("on", {}).get(method)
        if unusual is not None:
            self.misbehave(unusual, message["id"])
            return
        result, error = self.answer(method, message.get("params", {}))
        body = {"error": error} if result is None else {"result": result}
        say({"jsonrpc": "2.0", "id": message["id"], **body})
        if self.listings == 1 and method == "tools/list" and "next" in self.offer:
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

    def misbehave(self, how: Any, ident: Any) -> None:
        """What a good server does not do."""
        if how == "exit":
            print("cannot go on", file=sys.stderr, flush=True)
            os._exit(3)
        if how == "forever":
            while True:
                say(
                    {
                        "jsonrpc": "2.0",
                        "method": "notifications/message",
                        "params": {"level": "info", "data": "still here"},
                    }
                )
        if how == "spawn":
            pid = os.fork()
            if not pid:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(LIFETIME)
                os._exit(0)
            with open("spawned", "w", encoding="ascii") as file:
                file.write(str(pid))
        if isinstance(how, list):
            for line in how:
                sys.stdout.write(line.replace("$id", json.dumps(ident)) + "\n")
            sys.stdout.flush()

    def answer(self, method: str, params: dict[str, Any]) -> tuple[Any, Any]:
        """The result, or the error."""
        offer = self.offer
        revisions = offer.get("revisions", ["2025-11-25"])
        capabilities: dict[str, Any] = {
            name: {"listChanged": True} if name == "tools" else {}
            for name, member in (("tools", "tools"), ("prompts", "prompts"), ("resources", "resourceTemplates"))
            if member in offer
        }
        itself = {"name": offer.get("name", "library"), "version": offer.get("version", "1")}
        said = {"instructions": offer["instructions"]} if "instructions" in offer else {}
        stateless = STATELESS in str(params.get("_meta"))
        if method == "initialize":
            return {"protocolVersion": revisions[0], "capabilities": capabilities, "serverInfo": itself, **said}, None
        if method == "server/discover" and STATELESS in revisions:
            meta = {"_meta": {SERVER_KEY: itself}}
            cached = {"ttlMs": 0, "cacheScope": "public", "resultType": "complete"}
            itself = {"supportedVersions": revisions, "capabilities": capabilities, **said, **cached, **meta}
            return itself | self.tag(method, 0), None
        if method in MEMBERS and MEMBERS[method] in offer:
            return self.page(method, params, stateless), None
        return None, {"code": -32601, "message": "Method not found"}

    def page(self, method: str, params: dict[str, Any], stateless: bool) -> dict[str, Any]:
        """A part of a list."""
        if method == "tools/list" and "cursor" not in params:
            self.listings += 1
            if self.listings > 1 and "next" in self.offer:
                self.offer = {**self.offer, **self.offer["next"]}
        entries = self.offer[MEMBERS[method]]
        start, size = int(params.get("cursor", "0")), self.offer.get("page", 1000)
        result: dict[str, Any] = {MEMBERS[method]: entries[start : start + size]}
        if start + size < len(entries):
            result["nextCursor"] = str(start + size)
        result |= self.tag(method, start // size)
        return result | ({"resultType": "complete", "ttlMs": 0, "cacheScope": "public"} if stateless else {})

    def tag(self, method: str, page: int) -> dict[str, Any]:
        """The member with the tag of a page, if it has one."""
        tag = self.offer.get("tags", {}).get(method)
        tag = tag[page] if isinstance(tag, list) else tag
        return {} if tag is None else {self.offer.get("tagged", "tag"): tag}


def declares_capabilities(params: dict[str, Any]) -> bool:
    """Whether a client says that it can do something, in a handshake or in `_meta`."""
    meta = params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities")
    return bool(params.get("capabilities") or meta)


def say(message: Any) -> None:
    """A message, as a line."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    signal.alarm(LIFETIME)
    with open(sys.argv[1], "rb") as given:
        server = Server(json.loads(given.read()))
    for text in sys.stdin:
        if "record" in server.offer:
            with open(server.offer["record"], "a", encoding="utf-8") as seen:
                seen.write(text)
        server.take(json.loads(text))

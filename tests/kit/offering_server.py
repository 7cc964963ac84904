"""
A server that offers what a file says, each time it is asked.

    offering_server.py OFFER

`OFFER` is the path of a JSON object:

    name, version       of the server
    instructions
    revisions           that it speaks; the first is its own
    tools, prompts, resourceTemplates
    page                entries of one page
    record              a file for all that the server hears
    next                another such object, which holds from the second listing of tools on, after a list_changed
    capable             another such object, whose members hold for a client that declares capabilities
    on                  what is done in place of an answer, by method: an array of texts, each written to stdout as a
                        line; or "exit", "silence", "forever", "spawn"
    last                texts that are written, each as a line, when there is no more input
    status              the exit status at the end
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

MEMBERS = {"tools/list": "tools", "prompts/list": "prompts", "resources/templates/list": "resourceTemplates"}
STATELESS = "2026-07-28"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
LIFETIME = 60


class Server:
    """One run, which writes its lines with *write*."""

    def __init__(self, offer: dict[str, Any], write: Callable[[str], None]) -> None:
        self.offer = offer
        self.listings = 0
        self.write = write

    def say(self, message: Any) -> None:
        """A message, as a line."""
        self.write(json.dumps(message))

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
        self.say({"jsonrpc": "2.0", "id": message["id"], **body})
        if self.listings == 1 and method == "tools/list" and "next" in self.offer:
            self.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

    def misbehave(self, how: Any, ident: Any) -> None:
        """What a good server does not do."""
        if how == "exit":
            print("cannot go on", file=sys.stderr, flush=True)
            os._exit(3)
        if how == "forever":
            params = {"level": "info", "data": "still here"}
            while True:
                self.say({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
        if how == "spawn":
            pid = os.fork()
            if not pid:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(LIFETIME)
                os._exit(0)
            with open("spawned", "w", encoding="ascii") as file:
                file.write(str(pid))
            self.write("spawned")
        if isinstance(how, list):
            for line in how:
                self.write(line.replace("$id", json.dumps(ident)))

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
            return {"supportedVersions": revisions, "capabilities": capabilities, **said, **cached, **meta}, None
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
        return result | ({"resultType": "complete", "ttlMs": 0, "cacheScope": "public"} if stateless else {})


def declares_capabilities(params: dict[str, Any]) -> bool:
    """Whether a client says that it can do something, in a handshake or in `_meta`."""
    meta = params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities")
    return bool(params.get("capabilities") or meta)


if __name__ == "__main__":
    signal.alarm(LIFETIME)
    with open(sys.argv[1], "rb") as given:
        server = Server(json.loads(given.read()), lambda line: print(line, flush=True))
    for text in sys.stdin:
        if "record" in server.offer:
            with open(server.offer["record"], "a", encoding="utf-8") as seen:
                seen.write(text)
        server.take(json.loads(text))
    for line in server.offer.get("last", ()):
        print(line, flush=True)
    sys.exit(server.offer.get("status", 0))

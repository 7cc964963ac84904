"""
An MCP server over STDIO that does what its script says, right or wrong.

Without a script it is a good server with one tool. The script is a JSON object, the one argument, or in the file that
the argument names after an @:

    received    a file, or a named pipe, that every line it receives is written to, as it came
    sent        a file that all that it writes to stdout is written to as well
    tools       what it lists in place of its own
    quiet       whether requests for tools are answered, and neither written nor counted: the guard makes them itself
    start       actions before it reads anything
    on          actions by what comes in: `tools/call:NAME`, a method, `answer` for anything without a method, or the
                number of the message as `#3`; the most exact one counts. In place of what it would do by itself
    end         actions when its input ends; without any it exits

An action is an array of a verb and what it needs. `"$id"`, alone or in an object, stands for the id of the request.

    raw TEXT             writes TEXT to stdout, each character a byte
    often NUMBER TEXT    does that so many times
    long TEXT SIZE TEXT  writes that many x between two texts
    say MESSAGE          writes MESSAGE as a line
    result RESULT        answers the request
    good                 does what it would do by itself
    log TEXT             writes TEXT to stderr
    logs SIZE            writes so many bytes to stderr, in lines
    notes NUMBER SIZE    so many notifications, each with a text of that size
    close NAME           closes stdin or stdout
    exit STATUS, die     ends it, by itself or by SIGKILL
    stubborn             from now on SIGTERM is ignored
    spawn                starts a process that ignores SIGTERM and holds all its streams; `received` gets its id
    await PATH           waits until the named pipe PATH is opened for writing, and closed
    tell TEXT, pid       writes a line to `received`, the second one with the process id
    environ              writes its environment there, as JSON
    stay                 waits for ever
"""

import json
import os
import signal
import sys
import time
from typing import Any

TOOL = {
    "name": "search",
    "inputSchema": {
        "type": "object",
        "properties": {"words": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
        "required": ["words"],
    },
    "outputSchema": {"type": "object", "properties": {"hits": {"type": "integer"}}, "required": ["hits"]},
}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "logging": {},
    "resources": {"subscribe": True},
    "prompts": {},
    "completions": {},
}
LIFETIME = 120
"""Seconds after which anything here ends by itself, whatever a test has done wrong."""


class Server:
    """One run."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.script = script
        self.on = script.get("on", {})
        self.number = 0
        self.received, self.sent = (
            os.open(script[name], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600) if script.get(name) else -1
            for name in ("received", "sent")
        )

    def out(self, data: bytes) -> None:
        """Write *data* to stdout, and where a copy is wanted."""
        if self.sent >= 0:
            write(self.sent, data)
        write(1, data)

    def say(self, message: Any) -> None:
        """Write a message, as a line."""
        self.out(json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")

    def serve(self) -> None:
        """Until the input ends."""
        for action in self.script.get("start", ()):
            self.do(action, {})
        rest = b""
        while True:
            data = os.read(0, 1 << 16)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self.take(line, b"\n")
            if not data:
                break
        if rest:
            self.take(rest, b"")
        for action in self.script.get("end", ()):
            self.do(action, {})

    def take(self, line: bytes, ending: bytes) -> None:
        """One line."""
        if self.script.get("quiet") and b'"tools/list"' in line and "tools/list" not in self.on:
            self.good(json.loads(line))
            return
        if self.received >= 0:
            write(self.received, line + ending)
        try:
            message = json.loads(line)
        except ValueError:
            return
        for each in message if isinstance(message, list) else [message]:
            if isinstance(each, dict):
                self.react(each)

    def react(self, message: dict[str, Any]) -> None:
        """One message; those of a batch one after the other."""
        self.number += 1
        method = message.get("method", "answer")
        params = message.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        for key in (f"#{self.number}", f"{method}:{name}", method):
            if key in self.on:
                for action in self.on[key]:
                    self.do(action, message)
                return
        self.good(message)

    def good(self, message: dict[str, Any]) -> None:
        """What a good server does."""
        if "id" not in message or "method" not in message:
            return
        method = message["method"]
        stateless = "io.modelcontextprotocol/protocolVersion" in str(message.get("params"))
        if method == "initialize":
            result: Any = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": CAPABILITIES,
                "serverInfo": {"name": "scripted", "version": "1"},
            }
        elif method == "tools/list":
            result = {"tools": self.script.get("tools", [TOOL])}
        elif method == "tools/call":
            hits = {"hits": len(str(message["params"].get("arguments")))}
            result = {"content": [{"type": "text", "text": json.dumps(hits)}], "structuredContent": hits}
        else:
            result = {}
        if stateless:
            result = {"resultType": "complete", **result}
            if method == "tools/list":
                result |= {"ttlMs": 0, "cacheScope": "public"}
        self.say({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def do(self, action: list[Any], message: dict[str, Any]) -> None:
        """One action."""
        verb, *given = filled(action, message.get("id"))
        getattr(self, f"do_{verb}")(message, *given)

    def do_raw(self, _: Any, text: str) -> None:
        self.out(text.encode("latin-1"))

    def do_often(self, _: Any, number: int, text: str) -> None:
        for start in range(0, number, 1000):
            self.out(text.encode("latin-1") * min(1000, number - start))

    def do_long(self, _: Any, before: str, size: int, after: str) -> None:
        self.out(before.encode())
        for start in range(0, size, 1 << 20):
            self.out(b"x" * min(1 << 20, size - start))
        self.out(after.encode())

    def do_say(self, _: Any, message: Any) -> None:
        self.say(message)

    def do_result(self, request: dict[str, Any], result: Any) -> None:
        self.say({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def do_good(self, message: dict[str, Any]) -> None:
        self.good(message)

    def do_log(self, _: Any, text: str) -> None:
        write(2, text.encode())

    def do_logs(self, _: Any, size: int) -> None:
        line = b"a line of a log, as long as such lines are, and of no interest at all.\n"
        for _ in range(0, size, 1000 * len(line)):
            write(2, line * 1000)

    def do_notes(self, _: Any, number: int, size: int) -> None:
        for count in range(number):
            data = f"{count} ".ljust(size, ".")
            self.say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": data}})

    def do_close(self, _: Any, name: str) -> None:
        os.close({"stdin": 0, "stdout": 1}[name])

    def do_exit(self, _: Any, status: int) -> None:
        os._exit(status)

    def do_die(self, _: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def do_stubborn(self, _: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def do_spawn(self, _: Any) -> None:
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(LIFETIME)
            os._exit(0)
        self.do_tell({}, str(pid))

    def do_await(self, _: Any, path: str) -> None:
        with open(path, "rb") as pipe:
            pipe.read()

    def do_pid(self, _: Any) -> None:
        self.do_tell({}, str(os.getpid()))

    def do_environ(self, _: Any) -> None:
        self.do_tell({}, json.dumps(dict(os.environ)))

    def do_tell(self, _: Any, text: str) -> None:
        write(self.received, text.encode() + b"\n")

    def do_stay(self, _: Any) -> None:
        time.sleep(LIFETIME)
        os._exit(99)


def filled(value: Any, ident: Any) -> Any:
    """*value* with the id of the request in its places."""
    if value == "$id":
        return ident
    if isinstance(value, list):
        return [filled(each, ident) for each in value]
    if isinstance(value, dict):
        return {name: filled(each, ident) for name, each in value.items()}
    return value.replace("$id", json.dumps(ident)) if isinstance(value, str) else value


def write(descriptor: int, data: bytes) -> None:
    """All of *data*, however long that takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


if __name__ == "__main__":
    signal.alarm(LIFETIME)
    given = sys.argv[1] if len(sys.argv) > 1 else "{}"
    if given.startswith("@"):
        with open(given[1:], "rb") as file:
            given = file.read().decode()
    Server(json.loads(given)).serve()

"""
`obedient_server.py` over Streamable HTTP: the same script, with answers as JSON or as events. Imports nothing of ours.

Its arguments: the script, the file for what it receives, and the port. It writes a line when it listens. Messages
alone are JSON or an event by the first bit of their SHA-256; more than one are events. What it says unasked goes over
the stream of a GET, if there is one, by the second bit. What is said without an answer leaves the response open. A
session that it has not opened itself is gone: 404.
"""

import asyncio
import hashlib
import json
import os
import signal
import socket
import sys
from typing import Any

from obedient_server import LAST_WORD, LIFETIME, answer, write

SESSION = "mcp-session-id"
PLAIN = "application/json"
EVENTS = "text/event-stream"
HANGS = b"no answer follows"
"""What is in a message after which the response stays open."""


class ObedientHttp:
    """The server."""

    def __init__(self, path: str, received: str) -> None:
        with open(path, "rb") as file:
            self.script = json.load(file)
        self.copy = os.open(received, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.streams: dict[str, list[asyncio.StreamWriter]] = {}
        """Those of GET requests, by the session."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while await self.request(reader, writer):
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether there can be another."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        verb, ident = first.split(" ")[0], headers.get(SESSION)
        if ident is not None and ident not in self.streams:
            head(writer, 404, 0)
        elif verb == "POST":
            return await self.post(body, ident, reader, writer)
        elif ident is None:
            head(writer, 405, 0)
        elif verb == "GET":
            head(writer, 200, None, EVENTS)
            self.streams[ident].append(writer)
            await reader.read()
            return False
        else:
            for each in self.streams.pop(ident):
                each.write(b"0\r\n\r\n")
            head(writer, 200, 0)
        return True

    async def post(
        self, body: bytes, session: str | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """One message."""
        write(self.copy, body + b"\n")
        try:
            message = json.loads(body)
        except ValueError:
            message = {}
        if "method" not in message or "id" not in message:
            head(writer, 202, 0)
            return True
        more: dict[str, str] = {}
        if message["method"] == "initialize":
            more[SESSION] = os.urandom(16).hex()
            self.streams[more[SESSION]] = []
        said = answer(self.script, body)
        if not said:
            await reader.read()
            return False
        chance = hashlib.sha256(body).digest()[0]
        is_open = HANGS in said
        if said.count(b"\n") > 1 or chance & 1 or is_open:
            self.events(writer, said, self.streams.get(session or "") if chance & 2 else None, more)
        else:
            text = said.removesuffix(LAST_WORD).removesuffix(b"\n")
            head(writer, 200, len(text) + said.endswith(LAST_WORD), PLAIN, more)
            writer.write(text)
        if said.endswith(LAST_WORD):
            os.kill(os.getpid(), signal.SIGKILL)
        if is_open:
            await writer.drain()
            await reader.read()
        return not is_open

    def events(
        self, writer: asyncio.StreamWriter, said: bytes, beside: list[asyncio.StreamWriter] | None, more: dict[str, str]
    ) -> None:
        """Each line as an event; without its end if there is none."""
        head(writer, 200, None, EVENTS, more)
        *lines, last = said.removesuffix(LAST_WORD).split(b"\n")
        for line in lines:
            text = line.removesuffix(b"\r")
            if text.strip():
                unasked = b'"notifications/message"' in text
                chunk((beside or [writer])[0] if unasked else writer, b"data: " + text + b"\n\n")
        if last:
            chunk(writer, b"data: " + last)
        if not said.endswith(LAST_WORD) and HANGS not in said:
            writer.write(b"0\r\n\r\n")


def chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    """A piece of a body without a length."""
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))


def head(writer: asyncio.StreamWriter, status: int, length: int | None, kind: str = "", more: Any = None) -> None:
    """The head of an answer, with a body of *length* bytes, or in pieces."""
    lines = [f"HTTP/1.1 {status} So", "transfer-encoding: chunked" if length is None else f"content-length: {length}"]
    lines += [f"content-type: {kind}"] if kind else []
    lines += [f"{name}: {value}" for name, value in (more or {}).items()]
    writer.write("\r\n".join([*lines, "", ""]).encode())


async def main(path: str, received: str, port: str) -> None:
    """For ever, or for its lifetime."""
    signal.alarm(LIFETIME)
    obedient = ObedientHttp(path, received)
    # The protocol is given, or asyncio would not turn off the delay of short packets.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        # The test keeps the port while there is no server: without listening, so that no connection is made.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", int(port)))
        server = await asyncio.start_server(obedient.serve, sock=listener)
        print("listening", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

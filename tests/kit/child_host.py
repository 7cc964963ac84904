"""
Serves a command over HTTP through `ChildBackend`, as a process: a small ASGI application around the backend.

    child_host.py [--mode MODE] [--timeout SECONDS] [--children N] [--set NAME=NUMBER] [--pass RULE]
                  -- COMMAND…

Where it is it says on stderr: url=…
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import uvicorn

from assay.base.limits import DEFAULT
from assay.core.policy import Policy
from assay.edges.auth import Principal
from assay.edges.backend import HttpRequest
from assay.edges.child_backend import ChildBackend
from assay.edges.http import body
from assay.edges.http.access import Door
from assay.edges.http.heads import HeadRefusal, RequestHead, check_accept, read_head
from assay.edges.http.http_server import Connection, listening
from assay.edges.http.origin_check import Safety
from assay.edges.http.replies import AwaitedReply, HttpReply, Pairs, Receive, Send, not_allowed, refuse
from assay.edges.http.request_headers import headers_of
from assay.edges.recorder import Recorder, Records
from assay.guard import backoff
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.records.journal.writer import Journal
from assay.settings.http_section import Http


class Host:
    """What the front of the guard does for a backend, as far as tests need it."""

    def __init__(self, backend: ChildBackend, frame_bytes: int) -> None:
        self.backend = backend
        self._limit = frame_bytes
        self._door = Door(Safety(), None, Principal("anonymous", "free"))

    def at_once(self, pairs: Pairs, frame: bytes) -> HttpReply | AwaitedReply | None:
        """One request that is there whole, as the front of the guard begins it."""
        head = read_head("POST", pairs)
        if not isinstance(head, RequestHead) or check_accept(head) is not None or len(frame) > self._limit:
            return None
        if self._door.known(head.headers) is None:
            return None
        return self.backend.begin(
            HttpRequest(head, b"", frame, head.headers.get(b"x-principal", b"anonymous").decode())
        )

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """One request."""
        headers = headers_of(scope)
        if await self._door.admitted(headers, send) is None:
            return
        method = scope["method"]
        if method not in {"POST", "GET", "DELETE"}:
            await not_allowed(send, "POST, GET, DELETE")
            return
        head = read_head(method, scope["headers"])
        refusal = head if isinstance(head, HeadRefusal) else check_accept(head)
        if isinstance(head, HeadRefusal) or refusal is not None:
            assert refusal is not None
            await refuse(send, "INVALID_ENVELOPE", refusal.detail, status=refusal.status)
            return
        frame = b""
        if method == "POST":
            try:
                frame = await body.read(receive, self._limit)
            except body.Gone:
                return
        principal = headers.get(b"x-principal", b"anonymous").decode()
        request = HttpRequest(head, scope["query_string"], frame, principal)
        await self.backend.answer(request, receive, send)


class Server(uvicorn.Server):
    """uvicorn, which ends the backend at the end."""

    host: Host

    async def on_tick(self, counter: int) -> bool:
        """Once every tenth of a second."""
        self.host.backend.sweep()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: Any = None) -> None:
        """Ends streams, waits for what is in hand, ends children."""
        self.host.backend.stop()
        await super().shutdown(sockets)
        await self.host.backend.close()


def log(line: str) -> None:
    """A line for people."""
    print(line, file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> None:
    """Serve until a signal comes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("audit", "enforce"), default="enforce")
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--frame-bytes", type=int, default=16 << 20)
    parser.add_argument("--children", type=int, default=64)
    parser.add_argument("--children-each", type=int)
    parser.add_argument("--journal")
    parser.add_argument("--flights", default="off")
    parser.add_argument("--stderr-in-errors", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--pass", action="append", default=[], dest="passes", help="a rule that only reports")
    parser.add_argument("--first-pause", type=float, help="seconds before a child is started again, at first")
    parser.add_argument("--without-pidfd", action="store_true", help="as on macOS, where a process is no descriptor")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args(arguments)
    if args.first_pause is not None:
        vars(backoff)["FIRST"] = args.first_pause
    if args.without_pidfd:
        del os.pidfd_open
    http = Http(**{name: type(getattr(Http(), name))(value) for name, _, value in (x.partition("=") for x in args.set)})
    journal = Journal.open(args.journal, log=log) if args.journal else None
    policy = Policy(dict.fromkeys(args.passes, "pass")) if args.passes else None
    terms = Terms(args.mode, replace(DEFAULT, frame_bytes=args.frame_bytes), args.timeout, policy)
    watch = GuardSummary(log, lambda data: log(repr(data[:500])), enforcing=terms.enforcing)
    recorder = Recorder("http", "/mcp", Records(journal), holding=True)
    factory = SessionFactory(terms, Sinks(recorder.sinks), watch)
    sock = listening("127.0.0.1", 0)

    async def serve() -> None:
        backend = ChildBackend(
            factory,
            args.command,
            children=args.children,
            children_each=args.children_each,
            http=http,
            flights=args.flights,
            stderr_in_errors=args.stderr_in_errors,
        )
        host = Host(backend, args.frame_bytes)
        Connection.outbox.flush = backend.flush
        config = uvicorn.Config(
            host,
            http=Connection,
            proxy_headers=False,
            log_config=None,
            lifespan="off",
            access_log=False,
            timeout_graceful_shutdown=5,
            server_header=False,
        )
        server = Server(config)
        server.host = host
        log(f"url=http://127.0.0.1:{sock.getsockname()[1]}/mcp")
        await server.serve(sockets=[sock])

    asyncio.run(serve())
    if journal is not None:
        journal.close()
    for line in watch.summary():
        log(line)


if __name__ == "__main__":
    main(sys.argv[1:])

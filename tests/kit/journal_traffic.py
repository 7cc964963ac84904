"""
A conversation that has everything a journal can tell, heard over either transport, and its journal.

`python tests/journal/journal_traffic.py` writes golden.jsonl anew.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import orjson

from assay.judge.conversation import Conversation, Facts
from assay.model.verdict import Party, Verdict
from assay.records.journal import Journal
from assay.records.moments import Moment
from kit.places import GOLDEN

ROUTES: dict[Literal["stdio", "http"], str] = {"stdio": "stdio", "http": "/mcp"}

FIND = {
    "name": "find_books",
    "inputSchema": {
        "type": "object",
        "properties": {"words": {"type": "string"}, "limit": {"type": "integer"}, "apiKey": {"type": "string"}},
        "required": ["words"],
    },
    "outputSchema": {"type": "object", "properties": {"hits": {"type": "integer"}}, "required": ["hits"]},
}


def client(message: Any) -> tuple[Party, bytes]:
    return Party.CLIENT, _frame(message)


def server(message: Any) -> tuple[Party, bytes]:
    return Party.SERVER, _frame(message)


def _frame(message: Any) -> bytes:
    return message if isinstance(message, bytes) else orjson.dumps({"jsonrpc": "2.0", **message})


def call(ident: int | str, **arguments: Any) -> tuple[Party, bytes]:
    params = {"name": "find_books", "arguments": arguments}
    return client({"id": ident, "method": "tools/call", "params": params})


def gives(ident: int | str, structured: Any, **more: Any) -> tuple[Party, bytes]:
    content = [{"type": "text", "text": orjson.dumps(structured).decode()}]
    return server({"id": ident, "result": {"content": content, "structuredContent": structured, **more}})


_ME = {"name": "example", "version": "1"}

SAID: tuple[tuple[Party, bytes], ...] = (
    client(b'{"jsonrpc":"2.0","id":"early","method":"tools/list"}'),
    client(
        {
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _ME},
        }
    ),
    server(b"library server 0.3 starting"),
    server(
        {"id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": _ME}},
    ),
    client({"method": "notifications/initialized"}),
    client({"id": 2, "method": "tools/list"}),
    server({"id": 2, "result": {"tools": [FIND]}}),
    call(3, words="sea", limit=5),
    gives(3, {"hits": 2}),
    call(4, words="sea", limit="five"),
    call(5, words="sea"),
    gives(5, {"hits": "two"}),
    call(6, words="sea"),
    gives(6, {"reason": "closed"}, isError=True),
    call("seven", words="sea", apiKey="sk-0123456789abcdefghij"),
    gives("seven", {"hits": 0}),
    client({"id": 8, "method": "tools/run"}),
    client({"id": 9, "method": "ping"}),
    server({"id": 9, "error": {"code": -32603, "message": "out of order"}}),
    server({"id": 9, "result": {}}),
    server({"method": "notifications/message", "params": {"level": "info", "data": "hello"}}),
    client(b'{"jsonrpc":"2.0","id":10,"id":11,"method":"ping"}'),
    client(b'{"jsonrpc":"2.0","id":true,"method":"ping"}'),
    client(b'{"jsonrpc":"2.0","id":12,"method":"\xff"}'),
    client(b'[{"jsonrpc":"2.0","id":13,"method":"ping"}]'),
    client(b"  "),
    client({"id": 14, "method": "ping"}),
)
"""Who says what, in order. The last request is given up."""


class Heard(NamedTuple):
    """A verdict and its moment."""

    verdict: Verdict
    moment: Moment


def heard(journal: Journal, transport: Literal["stdio", "http"], session: str = "golden") -> Iterator[Heard]:
    """Everything that is said, judged; an answer has the moment of what it answers."""
    conversation = Conversation()
    asked: dict[int | str, Moment] = {}
    for party, frame in SAID:
        verdict = conversation.hear(party, frame, Facts(transport))
        moment = journal.moment(transport, ROUTES[transport], verdict.method, frame, session=session)
        exchange = verdict.exchange
        if exchange is not None and verdict.kind == "request":
            asked[exchange.id] = moment
        elif exchange is not None:
            moment = asked[exchange.id]
        yield Heard(verdict, moment)
    missing = conversation.give_up(Party.CLIENT, 14)
    assert missing is not None
    yield Heard(missing, asked[14])


def sent_for(verdict: Verdict) -> int:
    """How many bytes go out for it."""
    return len(verdict.onward or b"") + len(verdict.back or b"")


def golden() -> bytes:
    """The journal of both transports, in a deterministic run."""
    with TemporaryDirectory() as directory:
        journal = Journal.open(directory, deterministic=True, payloads=True, log=sys.exit)
        assert journal is not None
        for transport in ROUTES:
            for verdict, moment in heard(journal, transport):
                journal.write(journal.line(verdict, moment, sent_for(verdict)))
        journal.close()
        return Path(journal.path).read_bytes()


if __name__ == "__main__":
    GOLDEN.write_bytes(golden())

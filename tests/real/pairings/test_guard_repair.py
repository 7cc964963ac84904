"""Slips in the arguments of calls, and defects of results, through a real guard that enforces, and a real server."""

import json
from typing import Any, NamedTuple

import pytest
from obedient_server import blanked, key
from pairings import PAIRINGS, Pairing

from assay.core.policy import REPAIRED_RESULTS
from kit.guard_process import INITIALIZED, frame_of, initialize, request, result
from kit.rows import rows

LENT: dict[str, Any] = {"content": [{"type": "text", "text": "lent"}]}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "n", "version": "1"},
}
HINTS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def tool(dialect: str) -> dict[str, Any]:
    """The tool, with a dialect by this name."""
    properties = {
        "days": {"type": "integer"},
        "gift": {"type": "boolean"},
        "note": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "integer"}},
    }
    return {"name": "lend", "inputSchema": {"$schema": dialect, "type": "object", "properties": properties}}


ODD_TOOL, USUAL_TOOL = tool("draft-07"), tool("http://json-schema.org/draft-07/schema#")


class Turn(NamedTuple):
    """A request, what the server gets of it and answers, and what the client gets of that."""

    sent: dict[str, Any]
    arrives: dict[str, Any]
    answer: dict[str, Any]
    got: dict[str, Any]


def lend(ident: int, arguments: Any, **more: Any) -> dict[str, Any]:
    return request(ident, "tools/call", {"name": "lend", "arguments": arguments, **more})


def missing(ident: int, code: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": "Resource not found"}}


def repaired(sent: dict[str, Any], answer: dict[str, Any], got: dict[str, Any]) -> Turn:
    """A request that is right, and an answer that is repaired."""
    return Turn(sent, sent, answer, got)


def mended(ident: int, sent: Any, arrives: Any) -> Turn:
    """A call whose arguments have slips with one reading."""
    return Turn(lend(ident, sent), lend(ident, arrives), result(ident, LENT), result(ident, LENT))


OPENED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "lenient", "version": "1"},
}
READ = request(3, "resources/read", {"uri": "a:b", "_meta": META})

TURNS: dict[str, list[Turn]] = {
    "2026-07-28": [
        repaired(
            request(1, "tools/list", {"_meta": META}),
            result(1, {"tools": [ODD_TOOL]}),
            result(1, {"tools": [USUAL_TOOL], **HINTS}),
        ),
        repaired(lend(2, {}, _meta=META), result(2, LENT), result(2, {**LENT, "resultType": "complete"})),
        repaired(READ, missing(3, -32002), missing(3, -32602)),
    ],
    "2025-11-25": [
        repaired(initialize(), result("open", OPENED), result("open", OPENED)),
        repaired(request(1, "tools/list"), result(1, {"tools": [ODD_TOOL]}), result(1, {"tools": [USUAL_TOOL]})),
        repaired(lend(2, {}), result(2, {"structuredContent": [1], **LENT}), result(2, LENT)),
        mended(
            3, {"days": "5", "gift": "true", "note": None, "tags": "[1,2]"}, {"days": 5, "gift": True, "tags": [1, 2]}
        ),
        mended(4, '{"days":"7"}', {"days": 7}),
    ],
}


def written(revision: str, *, blanks: bool) -> dict[str, str]:
    """The script of the server for one conversation."""
    lines = [(frame_of(each.arrives), frame_of(each.answer) + b"\n") for each in TURNS[revision]]
    if blanks:
        lines = [(blanked(arrives), blanked(answer)) for arrives, answer in lines]
    return {key(arrives): answer.decode() for arrives, answer in lines}


@rows("kind", PAIRINGS, ids=lambda kind: kind.name)
def test_slips_of_the_client_and_defects_of_the_server_are_repaired_on_their_way(
    tmp_path_factory: pytest.TempPathFactory, kind: type[Pairing]
) -> None:
    """Slips by themselves, defects of results because a setting says so."""
    place = tmp_path_factory.mktemp(kind.name)
    scripts = [written(each, blanks=kind.renumbers and each == "2026-07-28") for each in TURNS]
    (place / "script").write_text(json.dumps({name: said for each in scripts for name, said in each.items()}))
    settings = [f'guard.policy."{rule}".repair=true' for rule in REPAIRED_RESULTS]
    options = ["--journal", "off", *(option for each in settings for option in ("--set", each))]
    with kind(place, next(iter(TURNS)), "enforce", options) as pairing:
        for revision, turns in TURNS.items():
            if revision != pairing.revision:
                pairing.leave()
                pairing.converse(revision)
            for turn in turns:
                pairing.send([frame_of(turn.sent) + b"\n"])
                assert pairing.receive() == [frame_of(turn.got) + b"\n"]
                if turn.sent["method"] == "initialize":
                    pairing.send([frame_of(INITIALIZED) + b"\n"])
        pairing.leave()
    received = (place / "received").read_bytes().splitlines()
    calls = [line for line in received if b"tools/call" in line and b"_meta" not in line]
    assert calls == [frame_of(turn.arrives) for turn in TURNS["2025-11-25"] if turn.sent["method"] == "tools/call"]

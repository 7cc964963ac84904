"""Slips in the arguments of calls, and defects of results, through a real guard that enforces, and a real server."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from obedient_server import blanked
from pairings import PAIRINGS, Pairing

from kit.guard_process import INITIALIZED, initialize, request, result

TOOL = {
    "name": "lend",
    "inputSchema": {
        "type": "object",
        "properties": {
            "days": {"type": "integer"},
            "gift": {"type": "boolean"},
            "note": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "integer"}},
        },
    },
}
OPENED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "lenient", "version": "1"},
}
LENT = {"content": [{"type": "text", "text": "lent"}]}


def lend(ident: int, arguments: Any) -> dict[str, Any]:
    return request(ident, "tools/call", {"name": "lend", "arguments": arguments})


SAID = {
    "slips": lend(2, {"days": "5", "gift": "true", "note": None, "tags": "[1,2]"}),
    "whole": lend(3, '{"days":"7"}'),
}
MENDED = {"slips": lend(2, {"days": 5, "gift": True, "tags": [1, 2]}), "whole": lend(3, {"days": 7})}


def spelt(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def script(*answers: tuple[dict[str, Any], dict[str, Any]]) -> str:
    """What the server says to what it receives, as it is spelt."""
    told = {hashlib.sha256(spelt(asked)).hexdigest(): spelt(said).decode() + "\n" for asked, said in answers}
    return json.dumps(told)


@pytest.mark.parametrize("kind", PAIRINGS, ids=lambda kind: kind.name)
def test_slips_with_one_reading_are_mended_before_they_reach_the_server(tmp_path: Path, kind: type[Pairing]) -> None:
    opening, listing = initialize("2025-11-25"), request(1, "tools/list")
    (tmp_path / "script").write_text(
        script(
            (opening, result(opening["id"], OPENED)),
            (listing, result(1, {"tools": [TOOL]})),
            *((message, result(message["id"], LENT)) for message in MENDED.values()),
        )
    )
    with kind(tmp_path, "2025-11-25", "enforce") as pairing:
        for message in (opening, INITIALIZED, listing, *SAID.values()):
            pairing.send([spelt(message) + b"\n"])
            if "id" in message:
                assert [json.loads(line)["id"] for line in pairing.receive()] == [message["id"]]
        pairing.leave()
    received = (tmp_path / "received").read_bytes().splitlines()
    assert received[3:] == [spelt(message) for message in MENDED.values()]


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "n", "version": "1"},
}
ODD_TOOL = {"name": "lend", "inputSchema": {"$schema": "draft-07", "type": "object"}}
USUAL_TOOL = {"name": "lend", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}}
SHAPELESS = {"structuredContent": [1], **LENT}
HINTS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def missing(ident: int, code: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": "Resource not found"}}


Turn = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
"""A request, what the server answers, and what the client gets."""

TURNS: dict[str, list[Turn]] = {
    "2025-11-25": [
        (request(1, "tools/list"), result(1, {"tools": [ODD_TOOL]}), result(1, {"tools": [USUAL_TOOL]})),
        (lend(2, {}), result(2, SHAPELESS), result(2, LENT)),
    ],
    "2026-07-28": [
        (
            request(1, "tools/list", {"_meta": META}),
            result(1, {"tools": [ODD_TOOL]}),
            result(1, {"tools": [USUAL_TOOL], **HINTS}),
        ),
        (
            request(2, "tools/call", {"name": "lend", "arguments": {}, "_meta": META}),
            result(2, LENT),
            result(2, {**LENT, "resultType": "complete"}),
        ),
        (request(3, "resources/read", {"uri": "a:b", "_meta": META}), missing(3, -32002), missing(3, -32602)),
    ],
}


@pytest.mark.parametrize("revision", TURNS)
@pytest.mark.parametrize("kind", PAIRINGS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("repairing", [True, False], ids=["repairing", "plain"])
def test_defects_of_results_are_repaired_before_they_reach_the_client(
    tmp_path: Path, kind: type[Pairing], revision: str, repairing: bool
) -> None:
    class Repairing(kind):  # type: ignore[misc, valid-type]  # a class that is given
        @property
        def options(self) -> list[str]:
            wanted = ["--set", 'guard.policy."*".repair=true'] if repairing else []
            return [*super().options, *wanted]

    opening = [] if revision == "2026-07-28" else [(initialize(revision), result(0, OPENED), result(0, OPENED))]
    opening = [(asked, {**said, "id": asked["id"]}, {**got, "id": asked["id"]}) for asked, said, got in opening]
    turns = [*opening, *TURNS[revision]]
    with_blanks = kind.name == "http-child" and revision == "2026-07-28"
    (tmp_path / "script").write_text(
        json.dumps(
            {
                hashlib.sha256(blanked(spelt(asked)) if with_blanks else spelt(asked)).hexdigest(): (
                    blanked(spelt(said)) if with_blanks else spelt(said)
                ).decode()
                + "\n"
                for asked, said, _ in turns
            }
        )
    )
    with Repairing(tmp_path, revision, "enforce") as pairing:
        for asked, said, got in turns:
            pairing.send([spelt(asked) + b"\n"])
            received = [line.removesuffix(b"\n") for line in pairing.receive()]
            if repairing:
                assert received == [spelt(got)]
            elif "structuredContent" in said.get("result", ()):
                assert b"withheld" in received[0]
            else:
                assert received == [spelt(said)]
            if asked["method"] == "initialize":
                pairing.send([spelt(INITIALIZED) + b"\n"])
        pairing.leave()

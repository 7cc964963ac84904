"""Slips in the arguments of calls, through a real guard that enforces, with nothing set, to a real server."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from guarded import INITIALIZED, initialize, request, result
from pairings import PAIRINGS, Pairing

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

"""A repaired answer of a server at a URL keeps the HTTP status that the server gave it."""

from pathlib import Path

import pytest

from assay.spec.revisions import LATEST
from kit.http_client import modern, request
from kit.scripted_http import Peer, Received, guarding, lying

REPAIRING = ("--mode", "enforce", "--set", 'guard.policy."protocol/*".repair=true')


@pytest.mark.parametrize(("status", "streamed"), [(200, False), (200, True), (400, False), (404, False)])
def test_a_repaired_error_has_the_status_of_the_server(tmp_path: Path, status: int, streamed: bool) -> None:
    def answer(received: Received, peer: Peer) -> None:
        error = {"jsonrpc": "2.0", "id": received.message["id"], "error": {"code": -32002, "message": "Not found"}}
        if streamed:
            peer.events(error)
        else:
            peer.json(error, status)

    message = request(3, "resources/read", {"uri": "a:b"}, LATEST)
    with lying(answer) as server, guarding(tmp_path, server.url, *REPAIRING) as guard:
        got = guard.post(message, modern(message))
    assert got.status == status
    assert b'"code":-32602' in got.body.replace(b" ", b"")
    assert b"-32002" not in got.body


def test_a_repaired_result_has_status_200(tmp_path: Path) -> None:
    def answer(received: Received, peer: Peer) -> None:
        peer.json({"jsonrpc": "2.0", "id": received.message["id"], "result": {"tools": []}})

    message = request(3, "tools/list", {}, LATEST)
    with lying(answer) as server, guarding(tmp_path, server.url, *REPAIRING) as guard:
        got = guard.post(message, modern(message))
    assert (got.status, got.json()["result"]) == (
        200,
        {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"},
    )

"""Messages of every revision over HTTP: no session is begun, every request stands for itself, and has its status."""

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.http_client import (
    BOTH,
    INITIALIZED,
    JSON,
    Headers,
    Service,
    call,
    frame_of,
    initialize,
    meta,
    modern,
    notification,
    of,
    request,
    serving,
)
from kit.rows import rows

PING = request(1, "ping")
LIST = request(1, "tools/list", {}, LATEST)
CALL = call(1, "list_schemas", {}, LATEST)
RESPONSE = {"jsonrpc": "2.0", "id": 99, "result": {}}
ERROR = {"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "no"}}
CANCELLED = "notifications/cancelled"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("messages")) as running:
        yield running
        log = running.log.so_far()
    assert "Traceback" not in log, log


def without(headers: Headers, *names: str) -> Headers:
    return {name: value for name, value in headers.items() if name not in names}


def sentinel(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


def read(uri: str) -> dict[str, Any]:
    return request(1, "resources/read", {"uri": uri}, LATEST)


def test_a_client_is_served_from_its_first_message_on_without_a_session(service: Service) -> None:
    """2025-11-25, Session Management: a server MAY assign a session id; this one does not."""
    for revision in (each for each in REVISIONS if handshake(each)):
        opened = service.post(initialize(revision))
        assert (opened.status, opened.header("mcp-session-id")) == (200, None)
        assert opened.json()["result"]["protocolVersion"] == revision
        assert service.post(INITIALIZED, of(revision)).status == 202
        tools = service.post(request(1, "tools/list"), of(revision)).json()["result"]["tools"]
        assert ("outputSchema" in tools[0]) == (revision >= "2025-06-18")
    for asked in ("2030-01-01", LATEST, "nope"):
        assert service.post(initialize(asked)).json()["result"]["protocolVersion"] == "2025-11-25"
    # 2025-06-18, Protocol Version Header: without it, it is 2025-03-26, which has batches.
    assert "outputSchema" not in service.post(request(1, "tools/list")).json()["result"]["tools"][0]
    assert [each["id"] for each in service.post([PING, request(2, "tools/list")]).json()] == [1, 2]
    # 2026-07-28, Backward Compatibility: both eras on one connection; what the older one has in headers is ignored.
    with service.open() as wire:
        for said in (LIST, CALL, initialize("2025-11-25"), request("d", "server/discover", {}, LATEST)):
            old = said["method"] == "initialize"
            headers = BOTH if old else modern(said, mcp_session_id="left-over", last_event_id="1-0")
            wire.say("POST", "/mcp", frame_of(said), {name.upper(): value for name, value in headers.items()})
            found = wire.answer()
            assert (found.status, found.header("mcp-session-id")) == (200, None)
            assert found.json()["result"].get("resultType") == (None if old else "complete")
    # A message may take several lines.
    pretty = json.dumps(request(1, "list_schemas"), indent=2).replace("\n", "\r\n").encode()
    assert service.post(b"\r\n " + pretty + b"\n\n").json() == service.post(request(1, "list_schemas")).json()


@rows(
    ("said", "headers", "status", "code"),
    [
        # As people look for it who have curl alone.
        (b"{", JSON, 400, -32700),
        (request(1, "get_schema", {}), JSON, 422, -32602),
        (request(1, "nope/nope", {}, LATEST), modern(request(1, "nope/nope", {}, LATEST)), 404, -32601),
        # ── with a handshake ─────────────────────────────────────────────────────────────────────────────────────────
        *((PING, of(version), 400, -32022) for version in ("2030-01-01", "")),
        (INITIALIZED, BOTH, 202, None),
        # JSON-RPC 2.0, 4.1. The official TypeScript client throws on any other status.
        *((said, of("2025-11-25"), 202, None) for said in (notification("tools/list"), RESPONSE, ERROR)),
        # ── 2026-07-28, streamable-http, Server Validation ───────────────────────────────────────────────────────────
        (PING, of(LATEST), 400, -32020),
        (LIST, without(modern(LIST), "mcp-protocol-version"), 400, -32020),
        (CALL, without(modern(CALL), "mcp-name"), 400, -32020),
        (LIST, modern(LIST, mcp_method="TOOLS/LIST"), 400, -32020),
        (CALL, modern(CALL, mcp_name=sentinel("get_schema")), 400, -32020),
        (CALL, modern(CALL, mcp_name="list_schemas\xff".encode("latin-1")), 400, -32020),
        (LIST, modern(LIST, mcp_protocol_version="2025-11-25"), 400, -32020),
        (LIST, modern(LIST, mcp_name="anything", mcp_param_x="y"), 200, None),
        # What failed once is answered when it is good: a name is compared once it is decoded.
        (read("resource://schemas/é"), modern(read("resource://schemas/é")), 400, -32602),
        (read("resource://schemas/tone"), modern(read(""), mcp_name=sentinel("resource://schemas/tone")), 200, None),
        *(
            (call(1, name, {}, LATEST), modern(CALL, mcp_name=sentinel(name)), 200, -32602)
            for name in ("wörter", " padded ", "a\nb")
        ),
        (notification(CANCELLED, {"requestId": 1, "_meta": meta()}), modern(notification(CANCELLED)), 202, None),
    ],
)
def test_a_message_has_its_status_and_its_error(
    service: Service, said: Any, headers: Headers, status: int, code: int | None
) -> None:
    found = service.post(said, headers)
    assert found.status == status
    if status == 202:
        assert (found.body, found.header("content-type")) == (b"", None)
        return
    answer = found.json()
    assert answer.get("error", {}).get("code") == code
    if code == -32022:
        asked = headers["mcp-protocol-version"]
        assert answer["error"]["data"]["supported"] == list(REVISIONS)
        assert answer["error"]["data"]["requested"] == (asked if isinstance(asked, str) else asked.decode("latin-1"))
    if isinstance(said, dict) and status == 200:
        assert answer["id"] == 1
    if isinstance(said, dict) and "id" not in said:
        assert answer.get("id") is None

"""Revision 2026-07-28 over HTTP: the header rules end to end."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.http_client import (
    BOTH,
    STORE,
    Service,
    call,
    frame_of,
    initialize,
    late_backend,
    listen,
    meta,
    modern,
    notification,
    request,
    serving,
)

LIST = request(1, "tools/list", {}, LATEST)
CALL = call(1, "list_schemas", {}, LATEST)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("stateless")) as running:
        yield running
        log = running.log.so_far()
    assert "Traceback" not in log, log


def without(headers: dict[str, str | bytes], *names: str) -> dict[str, str | bytes]:
    return {name: value for name, value in headers.items() if name not in names}


def sentinel(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


# ── good requests ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_request_stands_for_itself(service: Service) -> None:
    """No session is asked for, minted or echoed; what the headers of the older era say is ignored."""
    for said in (LIST, CALL, request("d", "server/discover", {}, LATEST)):
        found = service.post(said, modern(said, mcp_session_id="left-over", last_event_id="1-0"))
        assert found.status == 200
        assert found.json()["result"]["resultType"] == "complete"
        assert found.header("mcp-session-id") is None


def test_the_same_id_can_be_used_by_everybody_at_once(tmp_path: Path) -> None:
    slow = call(1, "populate_backend", STORE, LATEST)
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running, running.open() as wire:
        wire.say("POST", "/mcp", frame_of(slow), modern(slow))
        backend.was_asked()
        assert running.post(LIST, modern(LIST)).status == 200
        backend.allowed.set()
        assert wire.answer().json()["id"] == 1


def test_names_of_headers_may_be_spelt_in_any_letters(service: Service) -> None:
    headers = {name.upper(): value for name, value in modern(CALL).items()}
    assert service.post(CALL, headers).json()["result"]["isError"] is False


def test_a_client_of_either_era_can_begin_with_the_other(service: Service) -> None:
    """2026-07-28, Backward Compatibility: a modern request first, then initialize, on the same connection."""
    with service.open() as wire:
        wire.say("POST", "/mcp", frame_of(LIST), modern(LIST))
        assert wire.answer().status == 200
        wire.say("POST", "/mcp", frame_of(initialize("2025-11-25")), BOTH)
        opened = wire.answer()
        assert opened.json()["result"]["protocolVersion"] == "2025-11-25"
        wire.say("POST", "/mcp", frame_of(CALL), modern(CALL))
        assert wire.answer().json()["result"]["resultType"] == "complete"


# ── header rules ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("said", "headers", "rule", "at"),
    [
        pytest.param(LIST, without(modern(LIST), "mcp-protocol-version"), "protocol/header-missing",
                     "/params/_meta/io.modelcontextprotocol~1protocolVersion", id="no-version"),
        pytest.param(LIST, without(modern(LIST), "mcp-method"), "protocol/header-missing", "/method", id="no-method"),
        pytest.param(CALL, without(modern(CALL), "mcp-name"), "protocol/header-missing", "/params/name", id="no-name"),
        pytest.param(LIST, BOTH, "protocol/header-missing", "/params/_meta/io.modelcontextprotocol~1protocolVersion",
                     id="none-at-all"),
        pytest.param(LIST, modern(LIST, mcp_method="tools/call"), "protocol/header-mismatch", "/method",
                     id="another-method"),
        pytest.param(LIST, modern(LIST, mcp_method="TOOLS/LIST"), "protocol/header-mismatch", "/method",
                     id="upper-case-method"),
        pytest.param(LIST, modern(LIST, mcp_method=sentinel("tools/list")), "protocol/header-mismatch", "/method",
                     id="encoded-method"),
        pytest.param(CALL, modern(CALL, mcp_name="get_schema"), "protocol/header-mismatch", "/params/name",
                     id="another-name"),
        pytest.param(CALL, modern(CALL, mcp_name="List_Schemas"), "protocol/header-mismatch", "/params/name",
                     id="name-in-other-letters"),
        pytest.param(CALL, modern(CALL, mcp_name=sentinel("get_schema")), "protocol/header-mismatch", "/params/name",
                     id="another-name-encoded"),
        pytest.param(CALL, modern(CALL, mcp_name="=?base64?bGlzdF9zY2hlbWFz!?="), "protocol/header-encoding",
                     "/params/name", id="no-base64"),
        pytest.param(CALL, modern(CALL, mcp_name="=?base64?bGlzdF9zY2hlbWFz==?="), "protocol/header-encoding",
                     "/params/name", id="base64-spelt-otherwise"),
        pytest.param(CALL, modern(CALL, mcp_name="=?base64?/w==?="), "protocol/header-encoding", "/params/name",
                     id="base64-of-no-utf8"),
        pytest.param(CALL, modern(CALL, mcp_name="=?BASE64?bGlzdF9zY2hlbWFz?="), "protocol/header-mismatch",
                     "/params/name", id="sentinel-in-other-letters"),
        pytest.param(CALL, modern(CALL, mcp_name="list_schemas\xff".encode("latin-1")), "protocol/header-encoding",
                     "/params/name", id="not-ascii"),
        pytest.param(LIST, modern(LIST, mcp_protocol_version="2025-11-25"), "protocol/header-mismatch",
                     "/params/_meta/io.modelcontextprotocol~1protocolVersion", id="version-of-the-other-era"),
        pytest.param(LIST, modern(LIST, mcp_protocol_version="2030-01-01"), "protocol/header-mismatch",
                     "/params/_meta/io.modelcontextprotocol~1protocolVersion", id="unknown-version-in-the-header"),
    ],
)  # fmt: skip
def test_what_a_request_says_twice_it_says_the_same(
    service: Service, said: Any, headers: dict[str, str | bytes], rule: str, at: str
) -> None:
    """2026-07-28, streamable-http, Server Validation: 400 and -32020, whatever else is wrong."""
    found = service.post(said, headers)
    assert found.status == 400
    assert found.json()["id"] == 1
    error = found.error()
    assert (error["code"], error["message"]) == (-32020, "Header mismatch")
    assert (error["data"]["violations"][0]["rule"], error["data"]["violations"][0]["at"]) == (rule, at)


def test_a_method_header_that_is_empty_is_refused_before_the_body_is_read(service: Service) -> None:
    found = service.post(LIST, modern(LIST, mcp_method=""))
    assert (found.status, found.error()["code"]) == (400, -32020)


@pytest.mark.parametrize("uri", ["resource://schemas/tone", "resource://schemas/é", "resource://schemas/=?base64?x?="])
@pytest.mark.parametrize("encoded", [True, False])
def test_a_uri_is_compared_once_it_is_decoded(service: Service, uri: str, encoded: bool) -> None:
    said = request(1, "resources/read", {"uri": uri}, LATEST)
    headers = modern(said, mcp_name=sentinel(uri)) if encoded else modern(said)
    found = service.post(said, headers)
    if uri.endswith("tone"):
        assert found.json()["result"]["contents"][0]["uri"] == uri
    else:
        # Known by its name, and not there.
        assert (found.status, found.error()["code"]) == (400, -32602)


@pytest.mark.parametrize("name", ["wörter", " padded ", "=?base64?literal?=", "a\nb", ""])
def test_any_name_can_be_said_in_base64(service: Service, name: str) -> None:
    """2026-07-28, streamable-http, Value Encoding."""
    said = call(1, name, {}, LATEST)
    found = service.post(said, modern(said, mcp_name=sentinel(name)))
    assert (found.status, found.error()["code"]) == (200, -32602)
    assert found.error()["message"].startswith("Unknown tool")


def test_a_name_that_is_not_asked_for_is_not_judged(service: Service) -> None:
    assert service.post(LIST, modern(LIST, mcp_name="anything", mcp_param_x="y")).status == 200


def test_an_unknown_revision_is_told_which_ones_there_are(service: Service) -> None:
    """2026-07-28, versioning: 400 and -32022, so that the client can choose."""
    said = request(1, "tools/list", {"_meta": meta("2030-01-01")})
    found = service.post(said, modern(said))
    assert (found.status, found.error()["code"]) == (400, -32022)
    assert found.error()["data"]["supported"] == list(REVISIONS)
    assert found.error()["data"]["requested"] == "2030-01-01"


@pytest.mark.parametrize("version", [each for each in REVISIONS if handshake(each)])
def test_a_revision_with_a_handshake_cannot_be_discovered(service: Service, version: str) -> None:
    said = request(1, "server/discover", {"_meta": meta(version)})
    found = service.post(said, {**BOTH, "mcp-protocol-version": version, "mcp-method": "server/discover"})
    assert found.json()["error"]["code"] in {-32022, -32601}


@pytest.mark.parametrize("method", ["tools/run", "list_schemas", "ping", "initialize", "logging/setLevel", "x" * 200])
def test_an_unknown_method_is_404(service: Service, method: str) -> None:
    """2026-07-28, streamable-http: 404 with -32601 in the body, which tells it from a server that is not there."""
    said = request(1, method, {}, LATEST)
    found = service.post(said, modern(said))
    assert (found.status, found.error()["code"], found.json()["id"]) == (404, -32601, 1)


@pytest.mark.parametrize("params", [{}, {"_meta": {}}, {"_meta": {"io.modelcontextprotocol/protocolVersion": LATEST}}])
def test_a_request_that_lacks_what_belongs_into_meta_is_400(service: Service, params: dict[str, Any]) -> None:
    said = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
    found = service.post(said, modern(said))
    assert found.status == 400
    assert found.error()["code"] in {-32602, -32020}


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"jsonrpc": "2.0", "id": 1, "result": {}}, id="result"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}, id="error"),
        pytest.param(notification("notifications/nope"), id="notification"),
        pytest.param(notification("notifications/initialized"), id="of-the-other-era"),
    ],
)
def test_what_a_server_would_ignore_is_taken_and_not_acted_upon(service: Service, said: Any) -> None:
    found = service.post(said, modern(said))
    assert (found.status, found.body) == (202, b"")


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([LIST], id="batch"),
        pytest.param(notification("notifications/cancelled", {"requestId": {}}), id="params"),
        pytest.param({"jsonrpc": "1.0", "method": "notifications/nope"}, id="no-json-rpc"),
    ],
)
def test_a_batch_and_a_malformed_notification_are_400(service: Service, said: Any) -> None:
    found = service.post(said, modern(said))
    assert found.status == 400
    assert "error" in found.json()


def test_a_notification_is_accepted(service: Service) -> None:
    said = notification("notifications/cancelled", {"requestId": 1, "_meta": meta()})
    found = service.post(said, modern(said))
    assert (found.status, found.body) == (202, b"")


@pytest.mark.parametrize("arguments", [{"name": 5}, {}])
def test_a_call_that_breaks_the_contract_is_a_result(service: Service, arguments: dict[str, Any]) -> None:
    said = call(1, "get_schema", arguments, LATEST)
    found = service.post(said, modern(said))
    assert found.status == 200
    assert found.json()["result"]["isError"] is True


# ── subscriptions ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ident", [1, "a", 2**60])
def test_there_is_nothing_to_subscribe_to(service: Service, ident: Any) -> None:
    """Nothing changes while the server runs, and it declares no change: to listen is no method of it."""
    found = service.post(listen(ident), modern(listen(ident)))
    assert (found.status, found.error()["code"], found.json()["id"]) == (404, -32601, ident)


def test_what_failed_once_is_answered_when_it_is_good(service: Service) -> None:
    """Counting the first must not get in the way of the second."""
    for uri, status in (("resource://schemas/nope", 400), ("resource://schemas/tone", 200)):
        said = request(1, "resources/read", {"uri": uri}, LATEST)
        assert service.post(said, modern(said)).status == status

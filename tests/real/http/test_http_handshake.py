"""The handshake revisions over HTTP: no session is begun, and every request stands for itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.http_client import (
    BOTH,
    INITIALIZED,
    STORE,
    Service,
    call,
    frame_of,
    initialize,
    late_backend,
    of,
    request,
    serving,
)

HANDSHAKE = [each for each in REVISIONS if handshake(each)]
PING = request(1, "ping")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("handshake")) as running:
        yield running
        log = running.log.so_far()
    assert "Traceback" not in log, log


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_client_is_served_from_initialize_on_without_a_session(service: Service, revision: str) -> None:
    """2025-11-25, Session Management: a server MAY assign a session id; this one does not."""
    opened = service.post(initialize(revision))
    assert (opened.status, opened.header("mcp-session-id")) == (200, None)
    assert opened.json()["result"]["protocolVersion"] == revision
    assert service.post(INITIALIZED, of(revision)).status == 202
    tools = service.post(request(1, "tools/list"), of(revision)).json()["result"]["tools"]
    assert ("outputSchema" in tools[0]) == (revision >= "2025-06-18")


def test_a_client_that_sends_no_version_header_is_served_in_2025_03_26(service: Service) -> None:
    """2025-06-18, basic/transports, Protocol Version Header. Before it, no revision had the header."""
    assert service.post(INITIALIZED).status == 202
    tools = service.post(request(1, "tools/list")).json()["result"]["tools"]
    assert "annotations" in tools[0]
    assert "outputSchema" not in tools[0]
    found = service.post([PING, request(2, "tools/list")])
    assert (found.status, [each["id"] for each in found.json()]) == (200, [1, 2])


@pytest.mark.parametrize("asked", ["2030-01-01", LATEST, "nope"])
def test_a_revision_that_is_not_spoken_is_answered_with_one_that_is(service: Service, asked: str) -> None:
    assert service.post(initialize(asked)).json()["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize(
    "headers", [BOTH, of("2025-03-26"), of("2025-11-25")], ids=["none", "2025-03-26", "2025-11-25"]
)
@pytest.mark.parametrize(
    ("said", "code"),
    [
        (request(1, "resources/read", {"uri": "resource://schemas/nope"}), -32002),
        (request(1, "prompts/get", {"name": "nope"}), -32602),
        (request(1, "logging/setLevel", {"level": "info"}), -32601),
        (call(1, "nope", {}), -32602),
    ],
    ids=["resource", "prompt", "method", "tool"],
)
def test_an_error_has_status_200(service: Service, said: Any, code: int, headers: dict[str, str | bytes]) -> None:
    """The libraries of these revisions read no body whose status is another one, and some wait for ever."""
    found = service.post(said, headers)
    assert (found.status, found.json()["id"], found.error()["code"]) == (200, 1, code)


@pytest.mark.parametrize("ident", ["none", "x" * 1000, "../.."])
def test_a_session_id_of_another_server_means_nothing(service: Service, ident: str) -> None:
    assert service.post(PING, of("2025-11-25", **{"mcp-session-id": ident})).json()["result"] == {}


@pytest.mark.parametrize("ident", ["", "a b", "a\tb", b"\xff\xfe", "x" * 5000])
def test_a_session_id_that_is_none_is_400(service: Service, ident: str | bytes) -> None:
    """2025-11-25, Session Management: an id is visible ASCII."""
    found = service.post(PING, {**BOTH, "mcp-session-id": ident})
    assert found.status == 400
    assert "Mcp-Session-Id" in found.error()["data"]["detail"]


@pytest.mark.parametrize("version", ["2030-01-01", "nope", "", "2025-11-25, 2025-11-25", "2025-11-2", b"\xff"])
@pytest.mark.parametrize("said", [PING, request(1, "list_schemas")], ids=["mcp", "bare"])
def test_a_version_header_that_names_no_revision_is_400(service: Service, said: Any, version: str | bytes) -> None:
    """2025-11-25, Protocol Version Header: invalid or unsupported MUST be 400."""
    found = service.post(said, {**BOTH, "mcp-protocol-version": version})
    assert (found.status, found.error()["code"]) == (400, -32022)


def test_a_batch_under_an_unknown_version_is_400(service: Service) -> None:
    assert service.post([PING], of("2030-01-01")).status == 400


def test_a_version_header_that_names_no_revision_is_told_which_there_are(service: Service) -> None:
    """2026-07-28, schema: an error -32022 has to carry `supported` and `requested`."""
    data = service.post(PING, of("2030-01-01")).error()["data"]
    assert (data.get("supported"), data.get("requested")) == (list(REVISIONS), "2030-01-01")


def test_a_request_of_the_era_without_handshake_keeps_its_header_rules(service: Service) -> None:
    found = service.post(PING, of(LATEST))
    assert (found.status, found.error()["code"]) == (400, -32020)


def test_an_id_that_is_open_can_be_used_in_another_request(tmp_path: Path) -> None:
    """No request knows of another one: they may come from two clients."""
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running, running.open() as wire:
        wire.say("POST", "/mcp", frame_of(call(7, "populate_backend", STORE)), of("2025-11-25"))
        backend.was_asked()
        assert running.post(request(7, "ping"), of("2025-11-25")).json()["result"] == {}
        backend.allowed.set()
        assert wire.answer().json()["result"]["structuredContent"]["data"]["asset_id"] == "stored"


def test_the_requests_of_a_batch_are_answered_in_one_array_behind_a_backend(tmp_path: Path) -> None:
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running:
        backend.allowed.set()
        found = running.post([call(1, "populate_backend", STORE), PING | {"id": 2}, INITIALIZED], of("2025-03-26"))
        assert [each["id"] for each in found.json()] == [1, 2]

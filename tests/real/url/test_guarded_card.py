"""The card of a server behind the guard over HTTP: forwarded byte for byte in both modes, and not judged."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from card_server import CARD, ETAG, GOOD_HEADERS, MEDIA_TYPE, CardServer, card_server

from assay.edges.auth.api_keys import new_key, written_hash
from kit.http_client import Answer, Service
from kit.scripted_http import guarding, listening

PATH = "/mcp/server-card"
ODD = b'{ "name":  "no card at all",\n"version":"^1" }\n'

Where = tuple[Service, CardServer]


@pytest.fixture(scope="module", params=["enforce", "audit"])
def _guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Where]:
    with card_server() as server:
        options = ("--mode", request.param, "--set", "http.origins=https://page.example")
        with guarding(tmp_path_factory.mktemp("guard"), server.url, *options) as guard:
            yield guard, server


@pytest.fixture
def guarded(_guarded: Where) -> Where:
    """A guard in front of a server with a good card."""
    _, server = _guarded
    server.show(CARD)
    server.headers, server.status, server.asked = dict(GOOD_HEADERS), 200, []
    return _guarded


def got(guard: Service, headers: Mapping[str, str] | None = None, method: str = "GET", path: str = PATH) -> Answer:
    return guard.ask(method, path, headers={"accept": MEDIA_TYPE, **(headers or {})})


def test_a_card_is_forwarded_byte_for_byte_with_its_headers(guarded: Where) -> None:
    guard, server = guarded
    server.show(ODD)
    answer = got(guard, {"mcp-session-id": "of-another-server"})
    assert (answer.status, answer.body) == (200, ODD)
    assert {name: answer.header(name.lower()) for name in GOOD_HEADERS} == dict(GOOD_HEADERS)
    [(method, path, headers)] = server.asked
    assert (method, path, headers["accept"]) == ("GET", PATH, MEDIA_TYPE)
    assert "mcp-session-id" not in headers


def test_the_head_of_a_card_has_the_length_of_the_server(guarded: Where) -> None:
    guard, server = guarded
    answer = got(guard, method="HEAD")
    assert (answer.status, answer.body, answer.header("etag")) == (200, b"", ETAG)
    assert answer.header("content-length") == str(len(json.dumps(CARD)))
    assert server.asked[0][0] == "HEAD"


def test_a_card_that_the_client_has_already_is_not_sent_again(guarded: Where) -> None:
    guard, server = guarded
    answer = got(guard, {"if-none-match": ETAG})
    assert (answer.status, answer.body, answer.header("etag")) == (304, b"", ETAG)
    assert answer.header("content-length") is None
    assert server.asked[0][2]["if-none-match"] == ETAG


def test_no_other_method_reaches_the_server(guarded: Where) -> None:
    guard, server = guarded
    for method in ("POST", "PUT", "DELETE"):
        answer = guard.ask(method, PATH, {}, {"content-type": "application/json"})
        assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")
    assert server.asked == []


def test_pages_of_every_origin_that_is_let_in_can_read_the_card(guarded: Where) -> None:
    guard, server = guarded
    origin = {"origin": "https://page.example"}
    assert got(guard, origin).header("access-control-allow-origin") == "*"
    del server.headers["Access-Control-Allow-Origin"]
    assert got(guard, origin).header("access-control-allow-origin") == "https://page.example"
    preflight = guard.ask("OPTIONS", PATH, headers={**origin, "access-control-request-method": "GET"})
    assert preflight.status == 204


def test_clients_that_may_not_use_the_endpoint_do_not_get_the_card(guarded: Where) -> None:
    guard, server = guarded
    assert got(guard, {"origin": "https://evil.example"}).status == 403
    assert guard.ask("GET", PATH, host="evil.example").status == 403
    assert server.asked == []


def test_a_server_without_a_card_says_so_through_the_guard(guarded: Where) -> None:
    guard, server = guarded
    server.documents.clear()
    assert got(guard).status == 404


def test_a_document_that_is_too_long_is_not_forwarded(guarded: Where) -> None:
    guard, server = guarded
    server.show(b" " * ((1 << 20) + 1))
    answer = got(guard)
    assert answer.status == 502
    assert "the document is too long" in json.dumps(answer.error())


def test_a_redirect_is_forwarded_under_audit_only(guarded: Where, request: pytest.FixtureRequest) -> None:
    guard, server = guarded
    server.status = 302
    server.headers["Location"] = "https://elsewhere.example/card"
    answer = got(guard)
    audit = "audit" in request.node.callspec.id
    assert answer.status == (302 if audit else 502)
    assert (answer.header("location") is not None) is audit


def test_a_query_is_forwarded_under_audit_only(guarded: Where, request: pytest.FixtureRequest) -> None:
    guard, server = guarded
    server.show(CARD, f"{PATH}?v=2")
    audit = "audit" in request.node.callspec.id
    assert got(guard, path=f"{PATH}?v=2").status == (200 if audit else 400)


def test_a_server_that_is_gone_is_an_error_of_the_guard(tmp_path: Path) -> None:
    with card_server() as server:
        url = server.url
    with guarding(tmp_path, url) as guard:
        answer = got(guard)
        assert (answer.status, answer.error()["code"]) == (502, -31011)


def test_the_key_of_the_operator_goes_to_the_server_with_the_request(tmp_path: Path) -> None:
    with card_server() as server:
        server.show(CARD, f"{PATH}?key=hunter2")
        with guarding(tmp_path, f"{server.url}?key=hunter2", "--header", "X-Api-Key: k") as guard:
            assert got(guard).status == 200
        assert [(path, headers["x-api-key"]) for _, path, headers in server.asked] == [(f"{PATH}?key=hunter2", "k")]


def test_with_keys_of_the_guard_the_card_needs_one_too(tmp_path: Path) -> None:
    key = new_key()
    (tmp_path / "settings.toml").write_text(f'[auth.keys.ada]\nhash = "{written_hash(key.encode())}"\n')
    with card_server() as server, guarding(tmp_path, server.url, "--config", str(tmp_path / "settings.toml")) as guard:
        assert got(guard).status == 401
        assert server.asked == []
        assert got(guard, {"authorization": f"Bearer {key}"}).body == json.dumps(CARD).encode()
        assert "authorization" not in server.asked[0][2]
        server.status = 302
        server.headers["Location"] = "https://elsewhere.example/card"
        answer = got(guard, {"authorization": f"Bearer {key}"})
        assert (answer.status, answer.header("location")) == (502, None)


def test_every_server_of_a_host_has_its_own_card(tmp_path: Path) -> None:
    with card_server() as one, card_server({**CARD, "version": "2.x"}) as two:
        servers: dict[str, Any] = {"one": {"url": one.url}, "two": {"url": two.url}, "child": {"command": "cat"}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        with listening(tmp_path, "--config", str(tmp_path / "mcp.json")) as guard:
            assert got(guard, path="/one/mcp/server-card").body == json.dumps(CARD).encode()
            assert json.loads(got(guard, path="/two/mcp/server-card").body)["version"] == "2.x"
            assert got(guard, path="/child/mcp/server-card").status == 404
            assert got(guard, path="/three/mcp/server-card").status == 404
